/* --threads: two threads against one, as the threads of a host do a call: each its share of a phase, then a barrier.
 *
 * SPDX-License-Identifier: MIT */
#include <atomic>
#include <pthread.h>
#include <sched.h>
#include <thread>

#include "modes.h"

namespace bench
{

/* The caller and one thread more, on a CPU each. The other is there only for batches of both, in which it spins between calls: it
 * is made and joined before a batch, which does not pay for that. */
class Team
{
  public:
    Team()
    {
        int found = 0;
        pthread_getaffinity_np(pthread_self(), sizeof all_, &all_);
        for (int cpu = 0; cpu < CPU_SETSIZE && found < THREADS; cpu++)
            if (CPU_ISSET(cpu, &all_)) {
                CPU_ZERO(&own_[found]);
                CPU_SET(cpu, &own_[found++]);
            }
        if (found < THREADS)
            throw std::runtime_error("two threads want two CPUs to run on");
        pthread_setaffinity_np(pthread_self(), sizeof own_[0], &own_[0]);
    }

    /* Lets the caller run where it could before. */
    ~Team()
    {
        rest();
        pthread_setaffinity_np(pthread_self(), sizeof all_, &all_);
    }

    Contender alone(Call &call)
    {
        Contender c = call.contender();
        c.wall = true;
        c.before = [this, before = c.before] {
            rest();
            before();
        };
        return c;
    }

    Contender together(Call &call)
    {
        Contender c = call.contender();
        c.wall = true;
        c.before = [this, before = c.before] {
            before();
            wake();
        };
        c.run = [this, &call](unsigned placement, size_t calls) {
            call_ = &call;
            placement_ = placement;
            calls_ = calls;
            barrier();
            do_calls(0);
        };
        return c;
    }

    /* Ends the other thread, if it is there. */
    void rest()
    {
        if (!other_.joinable())
            return;
        call_ = nullptr;
        barrier();
        other_.join();
    }

  private:
    enum { THREADS = 2, LINE = 64 };

    static void pause()
    {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }

    void barrier()
    {
        const unsigned now = generation_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == THREADS) {
            arrived_.store(0, std::memory_order_relaxed);
            generation_.store(now + 1, std::memory_order_release);
        } else
            while (generation_.load(std::memory_order_acquire) == now)
                pause();
    }

    void do_calls(int ith)
    {
        const auto &share = call_->function->share;
        void *const *const part = call_->parts[placement_].part;
        for (size_t calls = calls_; calls; calls--)
            for (int phase = 0; phase < BENCH_PHASES && share[phase]; phase++) {
                share[phase](part, ith, THREADS);
                barrier();
            }
    }

    /* Makes the thread and waits until it spins. */
    void wake()
    {
        if (other_.joinable())
            return;
        other_ = std::thread([this] {
            pthread_setaffinity_np(pthread_self(), sizeof own_[1], &own_[1]);
            for (barrier(); barrier(), call_;)
                do_calls(1);
        });
        barrier();
    }

    /* on a line of its own: threads that spin on it must not disturb those that still read the rest */
    alignas(LINE) std::atomic<unsigned> arrived_{0};
    std::atomic<unsigned> generation_{0};

    /* what to do after the next barrier, NULL: end; written by the caller before it */
    alignas(LINE) const bench_call *call_ = nullptr;
    unsigned placement_ = 0;
    size_t calls_ = 0;

    cpu_set_t all_, own_[THREADS];
    std::thread other_;
};

static Table::Cells figures_of(const bench_args &args, Team &team, const bench_case &c)
{
    const Memory memory(&c, 1);
    Call call(c, memory);
    std::vector<Contender> by = {team.alone(call), team.together(call)};
    measure(by, seconds_of(args), bench_case_bytes(&c));
    team.rest(); /* while memory is freed and made */
    return {time_text(by[0].ns), time_text(by[1].ns), text("%.2f", ratio(by[0], by[1]))};
}

enum { FITS = 64 * 4096, LARGER = 512 * 4096 };
static const struct {
    const char *kernel, *op;
    bench_shape shape;
} lines[] = {
    {"norm_forward", "rms+silu-post", BENCH_ROWS(64, 4096)},
    {"norm_forward", "rms+silu-post", BENCH_ROWS(512, 4096)},
    {"norm_backward", "layer", BENCH_ROWS(64, 4096)},
    {"norm_backward", "layer", BENCH_ROWS(512, 4096)},
    {"activation", "gelu", BENCH_ROWS(1, FITS)},
    {"activation", "gelu", BENCH_ROWS(1, LARGER)},
    {"channel_norm_forward", "group_silu", BENCH_IMAGES(2, 640, 32, 32)},
    {"channel_norm_forward", "group_silu-nhwc", BENCH_IMAGES(2, 640, 32, 32)},
    {"channel_norm_forward", "batch_train", BENCH_IMAGES(32, 256, 28, 28)},
    {"channel_norm_forward", "batch_train-nhwc", BENCH_IMAGES(32, 256, 28, 28)},
    {"channel_norm_forward", "batch_infer", BENCH_IMAGES(32, 256, 28, 28)},
    {"channel_norm_backward", "group", BENCH_IMAGES(2, 640, 32, 32)},
    {"channel_norm_backward", "batch", BENCH_IMAGES(32, 256, 28, 28)},
    {"channel_norm_backward", "batch-nhwc", BENCH_IMAGES(32, 256, 28, 28)},
};

int threads_mode(const bench_args &args)
try {
    Team team;
    Table table(args, "Two threads against one, each on a CPU of its own, with a barrier after every phase of every call",
                "path:-6,dtype:-5,kernel:-21,op:-16,shape:-12,one thread:10,two threads:11,speed-up:8");
    for (int isa = 0; isa < NRG_ISA_COUNT; isa++)
        for (int dtype = NRG_F32; admits(args, (nrg_isa)isa) && dtype <= NRG_BF16; dtype++)
            for (const auto &l : lines) {
                const bench_case c = bench_case_of(l.kernel, l.op, (nrg_dtype)dtype, (nrg_isa)isa, l.shape);
                if (admits(args, c, "f32", nullptr))
                    table.row({nrg_isa_name(c.isa), nrg_dtype_name(c.dtype), l.kernel, l.op, shape_of(c)},
                              [&] { return figures_of(args, team, c); });
            }
    return table.rows() ? 0 : nothing("no line has these names");
} catch (const std::runtime_error &wrong) {
    return nothing(text("--threads: %s", wrong.what()).c_str());
}

} // namespace bench
