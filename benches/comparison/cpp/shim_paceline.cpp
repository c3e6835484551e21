// paceline through its C interface, as a program in C uses it: statically linked, each task a function
// and its outcome.

#include <paceline.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>

#include "shim.hpp"

namespace {

pace_pool_t *pool_of(void *pool) { return static_cast<pace_pool_t *>(pool); }

void tick(void *, int32_t *outcome) {
    comparison_tick();
    *outcome = 0;
}

void started(void *, int32_t *outcome) {
    comparison_started();
    *outcome = 0;
}

// From outside this waits for room inside the call, and the loop ends at once.
void post(pace_pool_t *pool, pace_task_fn run) {
    while (pace_pool_post(pool, PACE_LANE_NORMAL, run, pool, nullptr) == PACE_EFULL) sched_yield();
}

// Posts a burst and itself behind it.
void burst(void *pool, int32_t *outcome) {
    if (burst_of([&] { post(pool_of(pool), tick); })) post(pool_of(pool), burst);
    *outcome = 0;
}

}  // namespace

extern "C" {
void *paceline_pool_new(int workers) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    pace_pool_config_init(&config, sizeof config);
    config.threads = workers;
    config.lane_capacity = kInFlight;
    if (pace_pool_new(&config, &pool) != PACE_OK) abort();
    return pool;
}

void paceline_pool_free(void *pool) { pace_pool_free(pool_of(pool)); }

void paceline_pool_post(void *pool, size_t count) {
    for (size_t i = 0; i < count; i++) post(pool_of(pool), tick);
}

void paceline_pool_post_batches(void *pool, size_t batches, size_t size) {
    pace_work_t work[kBurst];
    size_t accepted;
    std::fill_n(work, size, pace_work_t{tick, nullptr, nullptr});
    for (size_t i = 0; i < batches; i++) {
        if (pace_pool_post_batch(pool_of(pool), PACE_LANE_NORMAL, work, size, &accepted) != PACE_OK)
            abort();
    }
}

void paceline_pool_post_started(void *pool) { post(pool_of(pool), started); }

void paceline_pool_post_inside(void *pool) { post(pool_of(pool), burst); }
}
