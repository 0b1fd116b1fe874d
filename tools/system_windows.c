/* SPDX-License-Identifier: MIT */
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <windows.h>

/* A newline is one byte. */
void system_begin(void)
{
    _setmode(_fileno(stdin), _O_BINARY);
    _setmode(_fileno(stdout), _O_BINARY);
}

void *system_allocate(size_t bytes) { return _aligned_malloc(bytes, 64); }
void system_free(void *memory) { _aligned_free(memory); }

/* The null device is a character device, too, and has no console. Nor is a console of old, which does not know "\033[K", one. */
int system_stderr_is_terminal(void)
{
    const DWORD escapes = 0x4; /* ENABLE_VIRTUAL_TERMINAL_PROCESSING */
    HANDLE console = GetStdHandle(STD_ERROR_HANDLE);
    DWORD mode;
    return GetConsoleMode(console, &mode) && SetConsoleMode(console, mode | escapes);
}

void system_write_stderr(const char *text, size_t length) { _write(_fileno(stderr), text, (unsigned)length); }

/* ---- ticks ---- */

static HANDLE timer;
static void (*on_tick)(void);

static void CALLBACK on_timer(void *nothing, BOOLEAN fired)
{
    (void)nothing;
    (void)fired;
    on_tick();
}

int system_start_ticks(void (*tick)(void))
{
    enum { SECOND = 1000 };
    on_tick = tick;
    /* in the timers' own thread: no two ticks at once */
    return CreateTimerQueueTimer(&timer, NULL, on_timer, NULL, SECOND, SECOND, WT_EXECUTEINTIMERTHREAD) != 0;
}

void system_stop_ticks(void)
{
    if (timer && DeleteTimerQueueTimer(NULL, timer, INVALID_HANDLE_VALUE)) /* waits for a tick that runs */
        timer = NULL;
}

/* ---- interrupts: Ctrl-C, Ctrl-Break, a console that is closed; the handler has a thread of its own ---- */

static volatile LONG is_held, is_pending;

static BOOL WINAPI on_control(DWORD event)
{
    (void)event;
    if (!is_held)
        return FALSE; /* the default: the end */
    InterlockedExchange(&is_pending, 1);
    return TRUE;
}

void system_hold_interrupts(void)
{
    if (!is_held && SetConsoleCtrlHandler(on_control, TRUE))
        InterlockedExchange(&is_held, 1);
}

int system_interrupted(void) { return is_pending != 0; }

void system_release_interrupts(void)
{
    const UINT control_c = 0xC000013A; /* STATUS_CONTROL_C_EXIT, as without a handler */
    if (!is_held)
        return;
    InterlockedExchange(&is_held, 0);
    SetConsoleCtrlHandler(on_control, FALSE);
    if (is_pending)
        ExitProcess(control_c);
}

/* ---- files ---- */

static void set_errno(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
        errno = ENOENT;
        break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
        errno = EEXIST;
        break;
    case ERROR_DISK_FULL:
        errno = ENOSPC;
        break;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
        errno = EACCES;
        break;
    default:
        errno = EIO;
    }
}

const char *system_base(const char *name)
{
    const char *base = name;
    for (const char *c = name; *c; c++)
        if (*c == '/' || *c == '\\' || (*c == ':' && c == name + 1))
            base = c + 1;
    return base;
}

/* Without links: what an administrator has made of them, opening a file will follow. */
char *system_real_path(const char *name)
{
    if (!system_exists(name)) {
        errno = ENOENT;
        return NULL;
    }
    char *path = _fullpath(NULL, name, 0);
    for (char *c = path; c && *c; c++)
        if (*c == '\\')
            *c = '/';
    return path;
}

int system_same_path(const char *a, const char *b) { return _stricmp(a, b) == 0; }

int system_exists(const char *name) { return GetFileAttributesA(name) != INVALID_FILE_ATTRIBUTES; }

int system_is_special(const char *name)
{
    struct stat found;
    return stat(name, &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

/* Who may write is a matter of lists, which only an attempt asks. */
int system_may_create_in(const char *directory)
{
    const DWORD found = GetFileAttributesA(directory);
    if (found != INVALID_FILE_ATTRIBUTES && found & FILE_ATTRIBUTE_DIRECTORY)
        return 1;
    errno = ENOTDIR;
    return 0;
}

const char *system_why_not_replaced(const char *path, int *mode)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return strerror(errno);
    /* NUL and its like are everywhere */
    if (!S_ISREG(found.st_mode))
        return "exists and is not a regular file";
    if (_access(path, 2) != 0)
        return strerror(errno);
    *mode = -1;
    return NULL;
}

FILE *system_new_file(const char *path, int mode)
{
    (void)mode;
    const int fd = _open(path, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
    if (fd < 0)
        return NULL;
    FILE *file = _fdopen(fd, "wb");
    if (!file)
        _close(fd);
    return file;
}

int system_flush(FILE *file) { return fflush(file) == 0 && (_commit(_fileno(file)) == 0 || errno == EBADF); }

/* Not every file system has links; what is done then is done there as well. */
int system_link(const char *path, const char *second)
{
    if (CreateHardLinkA(second, path, NULL))
        return 1;
    set_errno();
    return 0;
}

int system_rename(const char *from, const char *to)
{
    if (MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING))
        return 1;
    set_errno();
    return 0;
}

void system_remove(const char *path) { DeleteFileA(path); }

long system_process(void) { return (long)GetCurrentProcessId(); }
