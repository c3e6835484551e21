// A oneTBB task_arena as a pool of workers for small tasks. From outside tasks are enqueued, the
// documented way to hand work over without waiting; from inside a task_group puts them on the
// worker's own deque.

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "shim.hpp"

struct Pool {
    // oneTBB counts the calling thread in, which does not take part here.
    tbb::global_control limit;
    tbb::task_arena arena;
    explicit Pool(int workers)
        : limit(tbb::global_control::max_allowed_parallelism, workers + 1), arena(workers, 0) {}
};

extern "C" {
void *onetbb_pool_new(int workers) { return new Pool(workers); }

void onetbb_pool_free(void *pool) { delete static_cast<Pool *>(pool); }

void onetbb_pool_post(void *pool, size_t count) {
    for (size_t i = 0; i < count; i++)
        static_cast<Pool *>(pool)->arena.enqueue([] { comparison_tick(); });
}

void onetbb_pool_post_started(void *pool) {
    static_cast<Pool *>(pool)->arena.enqueue([] { comparison_started(); });
}

void onetbb_pool_post_inside(void *pool) {
    static_cast<Pool *>(pool)->arena.enqueue([] {
        tbb::task_group group;
        while (comparison_go_on(kBurst)) {
            for (size_t i = 0; i < kBurst; i++) group.run([] { comparison_tick(); });
            if (comparison_in_flight() > kInFlight) group.wait();
        }
        group.wait();
    });
}
}
