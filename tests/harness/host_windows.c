/* SPDX-License-Identifier: MIT */
#include "host.h"

#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: error %lu\n", what, GetLastError());
    abort();
}

size_t host_page(void)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
}

/* shared: there are no processes that inherit memory, and so no tests in processes of their own. */
unsigned char *host_pages(size_t bytes, int shared)
{
    (void)shared;
    unsigned char *pages = VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    must(pages != NULL, "VirtualAlloc");
    return pages;
}

void host_protect(unsigned char *pages, size_t bytes, enum host_access access)
{
    static const DWORD protections[] = {PAGE_NOACCESS, PAGE_READONLY, PAGE_READWRITE};
    DWORD before;
    must(VirtualProtect(pages, bytes, protections[access], &before), "VirtualProtect");
}

void host_free_pages(unsigned char *pages, size_t bytes)
{
    (void)bytes;
    VirtualFree(pages, 0, MEM_RELEASE);
}

/* A process cannot be copied. The program is started once more, does again what it has done so far, but for bodies, of which it
 * leaves out all up to this one, and ends with it. */
static const char which_variable[] = "NRG_TEST_BODY";

static LONG CALLBACK end_with_code(EXCEPTION_POINTERS *about)
{
    ExitProcess(about->ExceptionRecord->ExceptionCode);
    return EXCEPTION_CONTINUE_SEARCH;
}

/* What a command line ended with. to: its standard output, or NULL for this one's. */
static DWORD run(char *command, HANDLE to)
{
    HANDLE output = to ? to : GetStdHandle(STD_OUTPUT_HANDLE);
    STARTUPINFOA start = {.cb = sizeof start, .dwFlags = STARTF_USESTDHANDLES, .hStdOutput = output};
    PROCESS_INFORMATION child;
    DWORD code;
    start.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    must(CreateProcessA(NULL, command, NULL, NULL, TRUE, 0, NULL, NULL, &start, &child), "CreateProcess");
    if (to)
        CloseHandle(to);
    WaitForSingleObject(child.hProcess, INFINITE);
    must(GetExitCodeProcess(child.hProcess, &code), "GetExitCodeProcess");
    CloseHandle(child.hProcess);
    CloseHandle(child.hThread);
    return code;
}

static DWORD run_again(const char *which)
{
    char *command = _strdup(GetCommandLineA());
    must(command != NULL, "_strdup");
    SetEnvironmentVariableA(which_variable, which);
    const DWORD code = run(command, NULL);
    SetEnvironmentVariableA(which_variable, NULL);
    free(command);
    return code;
}

int host_in_process(int body(const void *data), const void *data)
{
    static int bodies;
    enum { BIT = 0x40000000 }; /* beside a body's result: no other end of the program has it */
    const char *asked_for = getenv(which_variable);
    char which[16];
    snprintf(which, sizeof which, "%d", ++bodies);
    if (asked_for && strcmp(asked_for, which) != 0)
        return HOST_LOST;
    if (asked_for) {
        AddVectoredExceptionHandler(1, end_with_code);
        ExitProcess(BIT | (UINT)body(data));
    }
    fflush(stdout);
    const DWORD code = run_again(which);
    if ((code & ~0xffu) == BIT)
        return (int)(code & 0xff);
    return code == (DWORD)EXCEPTION_ACCESS_VIOLATION ? HOST_CRASHED : HOST_LOST;
}

/* What it prints fits in a pipe. */
int host_run_self(const char *argument, const char *variable, const char *value, char *output, size_t room)
{
    char command[MAX_PATH + 64], program[MAX_PATH];
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, NULL, TRUE};
    HANDLE from, to;
    DWORD length = 0, n;
    must(GetModuleFileNameA(NULL, program, sizeof program) != 0, "GetModuleFileName");
    snprintf(command, sizeof command, "\"%s\" %s", program, argument);
    must(CreatePipe(&from, &to, &inherited, 0), "CreatePipe");
    SetEnvironmentVariableA(variable, value);
    const DWORD code = run(command, to);
    while (length < room - 1 && ReadFile(from, output + length, (DWORD)(room - 1) - length, &n, NULL) && n)
        length += n;
    output[length] = 0;
    CloseHandle(from);
    return code == EXIT_SUCCESS;
}

void host_set_variable(const char *variable, const char *value)
{
    must(_putenv_s(variable, value ? value : "") == 0, "_putenv_s");
}

void host_write_stderr(const char *text) { _write(2, text, (unsigned)strlen(text)); }
