/* Two threads that do a call together.
 *
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "team.h"

enum { THREADS = 2, LINE = 64 };

typedef enum todo { SLEEP, END, READY, CALLS } todo;

struct bench_team {
    /* the barrier, on a line of its own: threads that spin on it must not disturb those that still read the rest */
    _Alignas(LINE) atomic_uint arrived;
    atomic_uint generation;

    /* what to do after the next barrier; written by the caller before it */
    _Alignas(LINE) todo work;
    const bench_call *call;
    unsigned placement;
    size_t calls;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    int awake; /* under the lock */

    pthread_t thread;
    cpu_set_t before; /* where the caller could run */
};

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void barrier(bench_team *team)
{
    unsigned now = atomic_load_explicit(&team->generation, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) + 1 == THREADS) {
        atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&team->generation, now + 1, memory_order_release);
    } else
        while (atomic_load_explicit(&team->generation, memory_order_acquire) == now)
            pause_briefly();
}

static void do_calls(bench_team *team, int ith)
{
    const bench_call *call = team->call;
    unsigned placement = team->placement;
    int phases = bench_call_phases(call);
    for (size_t calls = team->calls; calls; calls--)
        for (int phase = 0; phase < phases; phase++) {
            bench_call_share(call, placement, phase, ith, THREADS);
            barrier(team);
        }
}

static void sleep_until_woken(bench_team *team)
{
    pthread_mutex_lock(&team->lock);
    while (!team->awake)
        pthread_cond_wait(&team->changed, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

static void *second(void *ctx)
{
    bench_team *team = ctx;
    for (;;) {
        sleep_until_woken(team);
        todo work;
        do {
            barrier(team);
            work = team->work;
            if (work == CALLS)
                do_calls(team, 1); /* ends with a barrier */
            else
                barrier(team); /* `work` has been read and may change */
        } while (work == CALLS || work == READY);
        if (work == END)
            return NULL;
    }
}

/* Wakes it and waits until it spins: a batch that follows does not pay for that. */
static void wake(bench_team *team)
{
    if (team->awake)
        return;
    pthread_mutex_lock(&team->lock);
    team->awake = 1;
    pthread_cond_signal(&team->changed);
    pthread_mutex_unlock(&team->lock);
    team->work = READY;
    barrier(team);
    barrier(team);
}

static void rest(bench_team *team)
{
    if (!team->awake)
        return;
    team->work = SLEEP;
    barrier(team);
    pthread_mutex_lock(&team->lock);
    team->awake = 0;
    pthread_mutex_unlock(&team->lock);
    barrier(team);
}

/* The first two CPUs of a set, as sets of one. */
static int two_cpus(const cpu_set_t *all, cpu_set_t one[THREADS])
{
    int found = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < THREADS; cpu++)
        if (CPU_ISSET(cpu, all)) {
            CPU_ZERO(&one[found]);
            CPU_SET(cpu, &one[found++]);
        }
    return found == THREADS;
}

static int start(bench_team *team, const cpu_set_t *cpu)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return 0;
    int started =
        pthread_attr_setaffinity_np(&attr, sizeof *cpu, cpu) == 0 && pthread_create(&team->thread, &attr, second, team) == 0;
    pthread_attr_destroy(&attr);
    return started;
}

const char *bench_team_make(bench_team **result)
{
    cpu_set_t before, cpu[THREADS];
    if (pthread_getaffinity_np(pthread_self(), sizeof before, &before) != 0 || !two_cpus(&before, cpu))
        return "two threads want two CPUs to run on";
    bench_team *team = aligned_alloc(LINE, (sizeof *team + LINE - 1) / LINE * LINE);
    if (!team)
        return "not enough memory";
    *team = (bench_team){.work = SLEEP, .before = before};
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
    if (!start(team, &cpu[1])) {
        free(team);
        return "no second thread";
    }
    pthread_setaffinity_np(pthread_self(), sizeof cpu[0], &cpu[0]);
    *result = team;
    return NULL;
}

void bench_team_free(bench_team *team)
{
    wake(team);
    team->work = END;
    barrier(team);
    barrier(team);
    pthread_join(team->thread, NULL);
    pthread_setaffinity_np(pthread_self(), sizeof team->before, &team->before);
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

void bench_team_before_one(void *team_call)
{
    bench_team_call *c = team_call;
    rest(c->team);
    bench_call_before(c->call);
}

void bench_team_before_two(void *team_call)
{
    bench_team_call *c = team_call;
    bench_call_before(c->call);
    wake(c->team);
}

void bench_team_run_one(void *team_call, unsigned placement, size_t calls)
{
    bench_call_run(((bench_team_call *)team_call)->call, placement, calls);
}

void bench_team_run_two(void *team_call, unsigned placement, size_t calls)
{
    bench_team_call *c = team_call;
    bench_team *team = c->team;
    team->work = CALLS;
    team->call = c->call;
    team->placement = placement;
    team->calls = calls;
    barrier(team);
    do_calls(team, 0);
}
