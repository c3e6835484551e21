// paceline through its C interface, as a program in C uses it: statically linked, each task a function
// and its outcome.

#include <paceline.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <deque>

#include "shim.hpp"

extern "C" void *paceline_pool_new(int workers);

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

// Tasks of a worker pool: a function and its attempt.
void tick_attempt(void *, pace_attempt_t *, int32_t *outcome) {
    comparison_tick();
    *outcome = 0;
}

// Handles that wait to be redeemed: as in src/tasks/peers.rs.
constexpr size_t kKept = 4096;

struct Workers {
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *kind;
    std::deque<pace_task_t> kept;

    void redeem(size_t count) {
        if (count == 0) return;
        // The youngest first, so that nobody waits for each of them.
        wait(kept[count - 1]);
        for (size_t i = 0; i + 1 < count; i++) wait(kept[i]);
        kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count));
    }

    void wait(pace_task_t task) {
        pace_task_report_t report;
        report.struct_size = sizeof report;
        if (pace_workers_wait(workers, task, PACE_FOREVER, &report) != PACE_OK ||
            report.status != PACE_TASK_COMPLETED)
            abort();
    }
};

} // namespace

extern "C" {
void *paceline_workers_new(int threads) {
    pace_task_type_config_t config;
    auto *made =
        new Workers{static_cast<pace_pool_t *>(paceline_pool_new(threads)), nullptr, nullptr, {}};
    if (pace_workers_new(made->pool, nullptr, &made->workers) != PACE_OK) abort();
    pace_task_type_config_init(&config, sizeof config);
    config.lane = PACE_LANE_HIGH;
    config.timeout_ns = 2000000000;
    if (pace_task_type_new(made->workers, "tick", &config, &made->kind) != PACE_OK) abort();
    return made;
}

void paceline_workers_free(void *workers) {
    auto *made = static_cast<Workers *>(workers);
    pace_task_type_free(made->kind);
    pace_workers_free(made->workers);
    pace_pool_free(made->pool);
    delete made;
}

void paceline_workers_submit(void *workers, size_t count) {
    auto &made = *static_cast<Workers *>(workers);
    for (size_t i = 0; i < count; i++) {
        pace_task_t task;
        if (pace_workers_submit(made.workers, made.kind, tick_attempt, nullptr, nullptr, nullptr,
                                &task) != PACE_OK)
            abort();
        made.kept.push_back(task);
        if (made.kept.size() >= kKept) made.redeem(kKept / 2);
    }
}

void paceline_workers_settle(void *workers) {
    auto &made = *static_cast<Workers *>(workers);
    made.redeem(made.kept.size());
}

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
