/* Worker pools: tasks with retries, limits and reports; tasks with a tag; shutdown. */
#include "check.h"

#include <stddef.h>

static pace_workers_t *workers_of(pace_pool_t *pool) {
    pace_workers_config_t config;
    pace_workers_t *workers = NULL;
    OK(pace_workers_config_init(&config, sizeof config));
    config.seed = 7;
    OK(pace_workers_new(pool, &config, &workers));
    return workers;
}

/* A kind that tries up to three times, at once. */
static pace_task_type_t *kind_of(pace_workers_t *workers, const char *name) {
    pace_task_type_config_t config;
    pace_task_type_t *kind = NULL;
    OK(pace_task_type_config_init(&config, sizeof config));
    config.lane = PACE_LANE_HIGH;
    config.retry.shape = PACE_RETRY_FIXED;
    config.retry.retries = 2;
    OK(pace_task_type_new(workers, name, &config, &kind));
    return kind;
}

static pace_task_report_t wait_for(pace_workers_t *workers, pace_task_t task) {
    pace_task_report_t report = {0};
    report.struct_size = sizeof report;
    OK(pace_workers_wait(workers, task, PACE_FOREVER, &report));
    CHECK(report.struct_size == sizeof report);
    return report;
}

static void settle(pace_workers_t *workers, bool drained) {
    pace_workers_report_t report = {0};
    report.struct_size = sizeof report;
    OK(pace_workers_shutdown(workers, 3600 * SECOND, SECOND, SECOND, &report, NULL, NULL));
    CHECK(report.drained == drained && !report.requested);
    pace_workers_free(workers);
}

/* A completion queue that the attempts of tasks with a tag come to. */
static pace_cq_t *host_of(pace_pool_t *pool, pace_workers_t *workers) {
    pace_cq_t *cq = NULL;
    OK(pace_cq_new(pool, NULL, &cq));
    OK(pace_cq_workers(cq, workers, 99));
    return cq;
}

/* So many entries, all of this kind. */
static void take(pace_cq_t *cq, uint32_t kind, pace_cq_entry_t *entries, size_t count) {
    size_t got = 0;
    OK(pace_cq_wait(cq, entries, count, PACE_FOREVER, &got));
    CHECK(got == count);
    for (size_t i = 0; i < count; i++) CHECK(entries[i].kind == kind);
}

static pace_cq_completion_t completion(uint64_t token, uint32_t flags) {
    pace_cq_completion_t one = {0};
    one.token = token;
    one.flags = flags;
    return one;
}

static uint32_t number(const pace_attempt_t *attempt) {
    uint32_t number = 0;
    OK(pace_attempt_number(attempt, &number));
    return number;
}

/* Succeeds at its third attempt. */
static void third(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    counts_t *counts = (counts_t *)data;
    uint64_t id = 0, left = 0;
    bool cancelled = true;
    CHECK(*outcome == PACE_EFAILED);
    atomic_fetch_add(&counts->runs, 1);
    OK(pace_attempt_task(attempt, &id));
    OK(pace_attempt_is_cancelled(attempt, &cancelled));
    OK(pace_attempt_time_left(attempt, &left));
    OK(pace_attempt_heartbeat(attempt));
    CHECK(id != 0 && !cancelled && left == PACE_FOREVER);
    *outcome = number(attempt) < 3 ? 17 : 0;
}

static void fails(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    atomic_fetch_add(&((counts_t *)data)->runs, 1);
    OK(pace_attempt_fail(attempt, "no such file"));
    *outcome = -77;
}

static void fails_for_good(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    atomic_fetch_add(&((counts_t *)data)->runs, 1);
    OK(pace_attempt_permanent(attempt));
    (void)outcome;
}

static void comes_back_at_once(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    atomic_fetch_add(&((counts_t *)data)->runs, 1);
    OK(pace_attempt_retry_after(attempt, 1));
    *outcome = number(attempt) < 2;
}

static void listens(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    bool cancelled = false;
    atomic_fetch_add(&((counts_t *)data)->runs, 1);
    while (!cancelled) OK(pace_attempt_is_cancelled(attempt, &cancelled));
    *outcome = 5;
}

static void waits_for_gate(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)attempt;
    count_gated(data, outcome);
}

static void outcomes(void) {
    pace_pool_t *pool = pool_of(2);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "outcomes");
    pace_task_t task = {0};
    counts_t counts = {0};
    uint32_t status = 99;
    bool cancelled = true;

    OK(pace_workers_submit(workers, kind, third, &counts, count_drop, NULL, &task));
    pace_task_report_t report = wait_for(workers, task);
    CHECK(report.status == PACE_TASK_COMPLETED && report.attempts == 3 && report.outcome == 0);
    CHECK(report.message == NULL && strcmp(report.name, "outcomes") == 0 && report.id != 0);
    CHECK(report.worker < 2 && atomic_load(&counts.runs) == 3);
    UNTIL(atomic_load(&counts.drops) == 1);
    SAYS(PACE_ESTALE, pace_workers_wait(workers, task, 0, NULL));
    SAYS(PACE_ESTALE, pace_workers_status(workers, task, &status));
    SAYS(PACE_ESTALE, pace_workers_cancel(workers, task, &cancelled));
    SAYS(PACE_ESTALE, pace_workers_detach(workers, task));
    CHECK(status == 99 && cancelled);

    OK(pace_workers_submit(workers, kind, fails, &counts, count_drop, NULL, &task));
    report = wait_for(workers, task);
    CHECK(report.status == PACE_TASK_FAILED && report.attempts == 3 && report.outcome == -77);
    CHECK(strcmp(report.message, "no such file") == 0);

    OK(pace_workers_submit(workers, kind, fails_for_good, &counts, count_drop, NULL, &task));
    report = wait_for(workers, task);
    CHECK(report.status == PACE_TASK_FAILED && report.attempts == 1);
    CHECK(report.outcome == PACE_EFAILED);
    CHECK(strcmp(report.message, "it ended without reporting success") == 0);

    OK(pace_workers_submit(workers, kind, comes_back_at_once, &counts, count_drop, NULL, &task));
    CHECK(wait_for(workers, task).attempts == 2);

    /* Ids of one kind of tasks are none of the other. */
    pace_task_t own = {0};
    OK(pace_pool_submit(pool, 2, count_run, &counts, count_drop, &own));
    OK(pace_workers_submit(workers, kind, third, &counts, count_drop, NULL, &task));
    SAYS(PACE_ESTALE, pace_workers_status(workers, own, &status));
    SAYS(PACE_ESTALE, pace_task_detach(pool, task));
    OK(pace_task_wait(pool, own, PACE_FOREVER, NULL));
    OK(pace_workers_detach(workers, task));

    /* One that runs is asked. */
    UNTIL(atomic_load(&counts.drops) == 6);
    atomic_store(&counts.runs, 0);
    OK(pace_workers_submit(workers, kind, listens, &counts, count_drop, NULL, &task));
    UNTIL(atomic_load(&counts.runs) >= 1);
    SAYS(PACE_ETIMEDOUT, pace_workers_wait(workers, task, 0, NULL));
    SAYS(PACE_ETIMEDOUT, pace_workers_wait(workers, task, MILLI, NULL));
    UNTIL((pace_workers_cancel(workers, task, &cancelled), !cancelled));
    report = wait_for(workers, task);
    CHECK(report.status == PACE_TASK_CANCELLED && report.outcome == 5);
    CHECK(strcmp(report.message, "it reported 5") == 0);

    /* One whose time is over, too. */
    pace_task_options_t options;
    OK(pace_task_options_init(&options, sizeof options));
    options.timeout_ns = MILLI;
    options.retry.shape = PACE_RETRY_NONE;
    OK(pace_workers_submit(workers, kind, listens, &counts, count_drop, &options, &task));
    CHECK(wait_for(workers, task).status == PACE_TASK_TIMED_OUT);

    /* Without an id it runs all the same. */
    UNTIL(atomic_load(&counts.drops) == 8);
    OK(pace_workers_submit(workers, kind, third, &counts, count_drop, NULL, NULL));
    UNTIL(atomic_load(&counts.drops) == 9);
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
}

static void options(void) {
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "options");
    pace_task_options_t options;
    pace_task_t task = {0}, gate = {0};
    counts_t counts = {0}, gated = {0};
    uint32_t status = 99;
    bool cancelled = false;
    OK(pace_task_options_init(&options, sizeof options));
    OK(pace_workers_submit(workers, kind, waits_for_gate, &gated, count_drop, NULL, &gate));
    UNTIL(atomic_load(&gated.runs) == 1);

    /* Nothing begins now: a task that waits can be cancelled, and its time may be over. */
    OK(pace_workers_submit(workers, kind, third, &counts, count_drop, &options, &task));
    OK(pace_workers_status(workers, task, &status));
    OK(pace_workers_cancel(workers, task, &cancelled));
    CHECK(status == PACE_TASK_PENDING && cancelled);
    pace_task_report_t report = wait_for(workers, task);
    CHECK(report.status == PACE_TASK_CANCELLED && report.attempts == 0);
    CHECK(report.worker == PACE_NONE && report.outcome == PACE_EFAILED);
    options.queue_timeout_ns = 1;
    OK(pace_workers_submit(workers, kind, third, &counts, count_drop, &options, &task));
    CHECK(wait_for(workers, task).status == PACE_TASK_TIMED_OUT);
    options.queue_timeout_ns = 0;
    options.deadline_ns = 1;
    OK(pace_workers_submit(workers, kind, third, &counts, count_drop, &options, &task));
    CHECK(wait_for(workers, task).status == PACE_TASK_TIMED_OUT);
    atomic_store(&gated.gate, true);
    CHECK(wait_for(workers, gate).status == PACE_TASK_COMPLETED);
    CHECK(atomic_load(&counts.runs) == 0);
    UNTIL(atomic_load(&counts.drops) == 3);

    OK(pace_task_options_init(&options, sizeof options));
    options.lane = PACE_LANE_LOW;
    options.retry.shape = PACE_RETRY_NONE;
    options.delay_ns = MILLI;
    options.key = 5;
    options.keyed = true;
    OK(pace_workers_submit(workers, kind, third, &counts, count_drop, &options, &task));
    report = wait_for(workers, task);
    CHECK(report.status == PACE_TASK_FAILED && report.attempts == 1);
    options.lane = 4;
    SAYS(PACE_EINVAL, pace_workers_submit(workers, kind, third, &counts, count_drop, &options, &task));
    TELLS("lane is 4");
    options.lane = PACE_DEFAULT;
    options.retry.shape = PACE_RETRY_CUSTOM;
    SAYS(PACE_EINVAL, pace_workers_submit(workers, kind, third, &counts, count_drop, &options, &task));
    TELLS("retry.shape is 6");
    options.struct_size = 3;
    SAYS(PACE_EVERSION, pace_workers_submit(workers, kind, third, &counts, count_drop, &options, &task));
    SAYS(PACE_EINVAL, pace_workers_submit(workers, kind, NULL, &counts, count_drop, NULL, &task));
    TELLS("run is NULL");
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
    CHECK(atomic_load(&counts.drops) == 4);
}

static uint64_t no_delay(void *data, uint32_t retry) {
    CHECK(retry >= 1);
    atomic_fetch_add(&((counts_t *)data)->runs, 1);
    return 0;
}

static void kinds(void) {
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_config_t config;
    pace_task_type_t *kind = NULL, *same = NULL;
    pace_task_t task = {0};
    counts_t delays = {0}, counts = {0};

    OK(pace_task_type_config_init(&config, sizeof config));
    config.retry.shape = PACE_RETRY_CUSTOM;
    SAYS(PACE_EINVAL, pace_task_type_new(workers, "custom", &config, &kind));
    TELLS("retry_delay is NULL");
    config.retry.retries = 4;
    config.retry_delay = no_delay;
    config.retry_data = &delays;
    config.retry_drop = count_drop;
    config.timeout_ns = PACE_FOREVER - 1;
    SAYS(PACE_EINVAL, pace_task_type_new(workers, "custom", &config, &kind));
    TELLS("timeout is ");
    config.timeout_ns = SECOND * 3600;
    config.rate_starts = 1000000;
    config.retry_budget = true;
    OK(pace_task_type_new(workers, "custom", &config, &kind));
    OK(pace_workers_submit(workers, kind, fails, &counts, count_drop, NULL, &task));
    CHECK(wait_for(workers, task).attempts == 5);
    CHECK(atomic_load(&delays.runs) == 4 && atomic_load(&delays.drops) == 0);
    pace_task_type_free(kind);

    for (uint32_t shape = PACE_RETRY_DEFAULT; shape <= PACE_RETRY_RANDOM; shape++) {
        char name[2] = {(char)('0' + shape), 0};
        OK(pace_task_type_config_init(&config, sizeof config));
        config.retry.shape = shape;
        config.retry.jitter = shape % 4;
        config.retry.first_ns = shape == PACE_RETRY_EXPONENTIAL ? 0 : MILLI;
        config.retry.cap_ns = shape == PACE_RETRY_EXPONENTIAL ? 0 : 2 * MILLI;
        config.retry.within_ns = SECOND;
        OK(pace_task_type_new(workers, name, &config, &kind));
        OK(pace_task_type_new(workers, name, &config, &same));
        pace_task_type_free(same);
        pace_task_type_free(kind);
        config.lane = PACE_LANE_LOW;
        SAYS(PACE_EINVAL, pace_task_type_new(workers, name, &config, &same));
        TELLS("task type is ");
    }
    OK(pace_task_type_config_init(&config, sizeof config));
    config.retry.shape = 7;
    SAYS(PACE_EINVAL, pace_task_type_new(workers, "wrong", &config, &kind));
    config.retry.shape = PACE_RETRY_FIXED;
    config.retry.jitter = 4;
    SAYS(PACE_EINVAL, pace_task_type_new(workers, "wrong", &config, &kind));
    config.retry.jitter = 0;
    config.retry.reserved = 1;
    SAYS(PACE_EINVAL, pace_task_type_new(workers, "wrong", &config, &kind));
    SAYS(PACE_EINVAL, pace_task_type_new(workers, "\xff", NULL, &kind));
    SAYS(PACE_EINVAL, pace_task_type_new(workers, NULL, NULL, &kind));
    pace_task_type_free(NULL);
    settle(workers, true);
    finish(pool);
}

/* What is done when a lane is full, and how many run at once. */
static void bounds(void) {
    pace_pool_config_t settings;
    pace_pool_t *pool = NULL;
    pace_task_type_config_t config;
    pace_task_type_t *kind = NULL;
    pace_cq_entry_t entries[8];
    counts_t gate = {0}, counts = {0};
    pace_task_t task = {0}, oldest = {0};
    size_t got = 0;
    OK(pace_pool_config_init(&settings, sizeof settings));
    settings.threads = 1;
    settings.pin = "none";
    settings.lane_capacity = 2;
    OK(pace_pool_new(&settings, &pool));
    pace_workers_t *workers = workers_of(pool);
    pace_cq_t *cq = host_of(pool, workers);

    OK(pace_task_type_config_init(&config, sizeof config));
    config.full = 5;
    SAYS(PACE_EINVAL, pace_task_type_new(workers, "wrong", &config, &kind));
    TELLS("full is 5");
    config.full = PACE_OVERLOAD_DROP_OLDEST;
    OK(pace_task_type_new(workers, "dropped", &config, &kind));
    OK(pace_workers_submit(workers, kind, waits_for_gate, &gate, NULL, NULL, NULL));
    UNTIL(atomic_load(&gate.runs) == 1);
    OK(pace_workers_submit(workers, kind, third, &counts, count_drop, NULL, &oldest));
    OK(pace_workers_submit(workers, kind, third, &counts, count_drop, NULL, NULL));
    OK(pace_workers_submit(workers, kind, third, &counts, count_drop, NULL, NULL));
    CHECK(wait_for(workers, oldest).status == PACE_TASK_REJECTED);
    pace_task_type_free(kind);
    config.full = PACE_OVERLOAD_REJECT;
    OK(pace_task_type_new(workers, "rejected", &config, &kind));
    SAYS(PACE_EFULL, pace_workers_submit(workers, kind, third, &counts, count_drop, NULL, NULL));
    pace_task_type_free(kind);
    config.full = PACE_OVERLOAD_WAIT;
    config.full_wait_ns = MILLI;
    OK(pace_task_type_new(workers, "waited", &config, &kind));
    SAYS(PACE_EFULL, pace_workers_submit(workers, kind, third, &counts, count_drop, NULL, NULL));
    pace_task_type_free(kind);
    config.full = PACE_OVERLOAD_RUN_HERE;
    config.soft_timeout_ns = MILLI;
    config.grace_ns = SECOND;
    OK(pace_task_type_new(workers, "here", &config, &kind));
    OK(pace_workers_submit(workers, kind, listens, &counts, count_drop, NULL, &task));
    pace_task_report_t report = wait_for(workers, task);
    CHECK(report.status == PACE_TASK_FAILED && report.worker == PACE_NONE && report.outcome == 5);
    pace_task_type_free(kind);
    atomic_store(&gate.gate, true);

    OK(pace_task_type_config_init(&config, sizeof config));
    config.max_running = 2;
    OK(pace_task_type_new(workers, "two", &config, &kind));
    for (uint64_t tag = 0; tag < 3; tag++)
        OK(pace_workers_submit_tagged(workers, kind, tag, NULL, NULL));
    OK(pace_cq_wait(cq, entries, 8, PACE_FOREVER, &got));
    CHECK(got == 2);
    OK(pace_cq_done(cq, entries, 2));
    OK(pace_cq_wait(cq, entries, 8, PACE_FOREVER, &got));
    CHECK(got == 1 && entries[0].tag == 2);
    OK(pace_cq_done(cq, entries, 1));
    pace_task_type_free(kind);
    pace_cq_free(cq);
    settle(workers, true);
    finish(pool);
    CHECK(atomic_load(&counts.drops) == 4);
}

/* The first attempt waits for the gate; the second gives itself time. */
static void outlives(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    counts_t *counts = (counts_t *)data;
    uint32_t which = number(attempt);
    OK(pace_attempt_heartbeat(attempt));
    atomic_fetch_add(&counts->runs, 1);
    while (which == 1 && !atomic_load(&counts->gate)) sched_yield();
    bool cancelled = false;
    OK(pace_attempt_is_cancelled(attempt, &cancelled));
    *outcome = which == 1 && !cancelled ? 1 : 0;
}

static void overlapping(void) {
    pace_pool_t *pool = pool_of(4);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_config_t config;
    OK(pace_task_type_config_init(&config, sizeof config));
    config.timeout_ns = 100 * MILLI;
    config.retry.shape = PACE_RETRY_FIXED;
    config.retry.retries = 50;
    config.overlap_retries = true;
    pace_task_type_t *kind = NULL;
    OK(pace_task_type_new(workers, "overlapping", &config, &kind));
    counts_t counts = {0};
    pace_task_t task;
    OK(pace_workers_submit(workers, kind, outlives, &counts, count_drop, NULL, &task));
    pace_task_report_t report = wait_for(workers, task);
    CHECK(report.status == PACE_TASK_COMPLETED && report.attempts >= 2);
    CHECK(atomic_load(&counts.drops) == 0);
    atomic_store(&counts.gate, true);
    UNTIL(atomic_load(&counts.drops) == 1);
    pace_task_type_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_task_type_stats(kind, &stats));
    CHECK(stats.completed == 1 && stats.discarded == report.attempts - 1);
    CHECK(atomic_load(&counts.runs) == (int)report.attempts);

    /* All of a batch. */
    counts_t both = {0};
    pace_attempt_work_t work[2] = {{outlives, &both, count_drop}, {outlives, &both, count_drop}};
    pace_task_t tasks[2];
    size_t accepted = 55;
    OK(pace_workers_submit_batch(workers, kind, work, 2, NULL, tasks, &accepted));
    CHECK(accepted == 2);
    for (int i = 0; i < 2; i++) {
        report = wait_for(workers, tasks[i]);
        CHECK(report.status == PACE_TASK_COMPLETED && report.attempts >= 2);
    }
    atomic_store(&both.gate, true);
    UNTIL(atomic_load(&both.drops) == 2);
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
}

static void batches(void) {
    enum { COUNT = 1000 };
    static pace_attempt_work_t work[COUNT];
    static pace_task_t tasks[COUNT];
    pace_pool_t *pool = pool_of(2);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "batches");
    counts_t counts = {0};
    size_t accepted = 55;
    for (size_t i = 0; i < COUNT; i++) work[i] = (pace_attempt_work_t){third, &counts, count_drop};
    OK(pace_workers_submit_batch(workers, kind, work, COUNT, NULL, tasks, &accepted));
    CHECK(accepted == COUNT);
    for (size_t i = 0; i < COUNT; i++) CHECK(wait_for(workers, tasks[i]).status == PACE_TASK_COMPLETED);
    OK(pace_workers_submit_batch(workers, kind, work, COUNT, NULL, NULL, &accepted));
    OK(pace_workers_submit_batch(workers, kind, NULL, 0, NULL, NULL, &accepted));
    CHECK(accepted == 0);
    pace_task_options_t options;
    OK(pace_task_options_init(&options, sizeof options));
    options.retry.shape = PACE_RETRY_NONE;
    options.lane = PACE_LANE_LOW;
    counts_t once = {0};
    for (size_t i = 0; i < COUNT; i++) work[i].user_data = &once;
    OK(pace_workers_submit_batch(workers, kind, work, COUNT, &options, tasks, &accepted));
    CHECK(accepted == COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        pace_task_report_t report = wait_for(workers, tasks[i]);
        CHECK(report.status == PACE_TASK_FAILED && report.attempts == 1);
    }
    UNTIL(atomic_load(&once.drops) == COUNT);
    CHECK(atomic_load(&once.runs) == COUNT);
    work[7].run = NULL;
    accepted = 55;
    SAYS(PACE_EINVAL, pace_workers_submit_batch(workers, kind, work, COUNT, NULL, tasks, &accepted));
    TELLS("work[7].run");
    CHECK(accepted == 55);
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
    CHECK(atomic_load(&counts.drops) == 2 * COUNT && atomic_load(&counts.runs) == 6 * COUNT);
}

/* Of a batch that is not taken whole, the rest is the caller's. */
static void broken_batches(void) {
    enum { COUNT = 300, IDS = 256 };
    static pace_attempt_work_t work[COUNT];
    static pace_task_t tasks[COUNT];
    counts_t gate = {0}, counts = {0};
    pace_pool_config_t settings;
    pace_workers_config_t config;
    pace_pool_t *pool = NULL;
    pace_workers_t *workers = NULL;
    size_t accepted = 55;
    for (size_t i = 0; i < COUNT; i++) work[i] = (pace_attempt_work_t){third, &counts, count_drop};
    OK(pace_pool_config_init(&settings, sizeof settings));
    settings.threads = 1;
    settings.pin = "none";
    settings.lane_capacity = 512;
    OK(pace_pool_new(&settings, &pool));
    OK(pace_workers_config_init(&config, sizeof config));
    config.max_tasks = IDS;
    config.full = PACE_OVERLOAD_REJECT;
    OK(pace_workers_new(pool, &config, &workers));
    pace_task_type_t *kind = kind_of(workers, "broken");
    OK(pace_workers_submit(workers, kind, waits_for_gate, &gate, NULL, NULL, NULL));
    UNTIL(atomic_load(&gate.runs) == 1);

    SAYS(PACE_EFULL, pace_workers_submit_batch(workers, kind, work, COUNT, NULL, tasks, &accepted));
    TELLS("all ids are in use");
    CHECK(accepted == IDS);
    SAYS(PACE_EFULL, pace_workers_submit_batch(workers, kind, work, COUNT, NULL, NULL, &accepted));
    CHECK(accepted > 0 && accepted < COUNT);
    CHECK(atomic_load(&counts.drops) == 0 && atomic_load(&counts.runs) == 0);
    const int taken = IDS + (int)accepted;
    SAYS(PACE_EFULL, pace_workers_submit_batch(workers, kind, work, 1, NULL, NULL, &accepted));
    CHECK(accepted == 0);
    atomic_store(&gate.gate, true);
    for (size_t i = 0; i < IDS; i++) CHECK(wait_for(workers, tasks[i]).status == PACE_TASK_COMPLETED);
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
    CHECK(atomic_load(&counts.drops) == taken && atomic_load(&counts.runs) == 3 * taken);
}

/* What one task may have in place of its task type's: policy, soft time, grace. And what has no record. */
static void posts_and_policies(void) {
    counts_t gate = {0}, counts = {0};
    pace_pool_config_t settings;
    pace_task_options_t options;
    pace_pool_t *pool = NULL;
    pace_task_t task = {0};
    OK(pace_pool_config_init(&settings, sizeof settings));
    settings.threads = 1;
    settings.pin = "none";
    settings.lane_capacity = 2;
    OK(pace_pool_new(&settings, &pool));
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "posts");
    OK(pace_task_type_post(kind, count_gated, &gate, count_drop));
    UNTIL(atomic_load(&gate.runs) == 1);
    OK(pace_task_type_post(kind, count_run, &counts, count_drop));
    OK(pace_task_type_post(kind, count_run, &counts, count_drop));
    SAYS(PACE_EINVAL, pace_task_type_post(kind, NULL, &counts, count_drop));

    OK(pace_task_options_init(&options, sizeof options));
    options.reserved2 = 1;
    SAYS(PACE_EINVAL, pace_workers_submit(workers, kind, third, &counts, NULL, &options, NULL));
    options.reserved2 = 0;
    options.full = 5;
    SAYS(PACE_EINVAL, pace_workers_submit(workers, kind, third, &counts, NULL, &options, NULL));
    TELLS("full is 5");
    options.full = PACE_OVERLOAD_REJECT;
    SAYS(PACE_EFULL, pace_workers_submit(workers, kind, third, &counts, NULL, &options, NULL));
    options.full = PACE_OVERLOAD_WAIT;
    options.full_wait_ns = MILLI;
    SAYS(PACE_EFULL, pace_workers_submit(workers, kind, third, &counts, NULL, &options, NULL));
    options.full = PACE_OVERLOAD_RUN_HERE;
    options.soft_timeout_ns = MILLI;
    options.grace_ns = SECOND;
    options.retry.shape = PACE_RETRY_NONE;
    OK(pace_workers_submit(workers, kind, listens, &counts, count_drop, &options, &task));
    pace_task_report_t report = wait_for(workers, task);
    CHECK(report.status == PACE_TASK_FAILED && report.worker == PACE_NONE && report.outcome == 5);
    /* A program that was compiled when options ended with `keyed`. */
    options.full = 77;
    options.struct_size = 96;
    atomic_store(&gate.gate, true);
    OK(pace_workers_submit(workers, kind, third, &counts, count_drop, &options, NULL));
    settle(workers, true);
    pace_task_type_free(kind);
    finish(pool);
    CHECK(atomic_load(&gate.drops) == 1 && atomic_load(&counts.drops) == 4);
}

/* --- ends as entries ---------------------------------------------------------------------------- */

static void told(void) {
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "told");
    pace_cq_t *cq = NULL;
    pace_cq_entry_t entry;
    pace_task_t tasks[3], waits;
    counts_t gate = {0};
    size_t got = 0;
    uint64_t sum = 0;
    OK(pace_cq_new(pool, NULL, &cq));
    for (uint64_t i = 0; i < 3; i++) {
        OK(pace_workers_submit(workers, kind, waits_for_gate, &gate, NULL, NULL, &tasks[i]));
        OK(pace_cq_task(cq, workers, tasks[i], i));
    }
    SAYS(PACE_ETIMEDOUT, pace_cq_wait(cq, &entry, 1, 0, &got));
    bool dropped = false;
    OK(pace_workers_submit(workers, kind, waits_for_gate, &gate, NULL, NULL, &waits));
    OK(pace_workers_drop(workers, waits, &dropped));
    CHECK(dropped && wait_for(workers, waits).status == PACE_TASK_REJECTED);
    SAYS(PACE_ESTALE, pace_workers_drop(workers, waits, &dropped));
    UNTIL(atomic_load(&gate.runs) == 1);
    OK(pace_workers_drop(workers, tasks[0], &dropped));
    CHECK(!dropped);
    atomic_store(&gate.gate, true);
    for (int i = 0; i < 3; i++) {
        take(cq, PACE_CQ_TASK_ENDED, &entry, 1);
        CHECK(entry.token == 0 && entry.detail.attempt.status == PACE_TASK_COMPLETED);
        sum += entry.tag;
    }
    CHECK(sum == 3);
    /* One that has ended. */
    OK(pace_cq_task(cq, workers, tasks[0], 7));
    OK(pace_cq_wait(cq, &entry, 1, 0, &got));
    CHECK(got == 1 && entry.tag == 7);
    for (int i = 0; i < 3; i++) wait_for(workers, tasks[i]);
    SAYS(PACE_ESTALE, pace_cq_task(cq, workers, tasks[0], 7));
    /* The queue goes before the end that it would tell. */
    atomic_store(&gate.gate, false);
    OK(pace_workers_submit(workers, kind, waits_for_gate, &gate, NULL, NULL, &tasks[0]));
    OK(pace_cq_task(cq, workers, tasks[0], 7));
    pace_cq_free(cq);
    atomic_store(&gate.gate, true);
    wait_for(workers, tasks[0]);
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
}

/* --- around attempts ----------------------------------------------------------------------------- */

typedef struct seen {
    atomic_int before, after, errors, drops;
    atomic_bool refuses;
} seen_t;

static void sees_before(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    seen_t *seen = (seen_t *)data;
    const char *name = NULL;
    OK(pace_attempt_name(attempt, &name));
    CHECK(*outcome == 0 && strcmp(name, "around") == 0);
    atomic_fetch_add(&seen->before, 1);
    if (!atomic_load(&seen->refuses)) return;
    OK(pace_attempt_fail(attempt, "not today"));
    OK(pace_attempt_permanent(attempt));
    *outcome = 31;
}

static void sees_after(void *data, const pace_attempt_t *attempt) {
    CHECK(number(attempt) > 0);
    atomic_fetch_add(&((seen_t *)data)->after, 1);
}

static void sees_error(void *data, const pace_attempt_t *attempt, int32_t outcome, const char *message) {
    (void)attempt;
    CHECK(outcome == 17 || outcome == 31);
    CHECK(strcmp(message, outcome == 17 ? "it reported 17" : "not today") == 0);
    atomic_fetch_add(&((seen_t *)data)->errors, 1);
}

static void drop_seen(void *data) { atomic_fetch_add(&((seen_t *)data)->drops, 1); }

static void around(void) {
    seen_t outer = {0}, inner = {0};
    pace_middleware_t both[3] = {{sees_before, sees_after, sees_error, &outer, drop_seen},
                                 {NULL, NULL, NULL, NULL, NULL},
                                 {sees_before, NULL, NULL, &inner, drop_seen}};
    pace_pool_t *pool = pool_of(2);
    pace_workers_t *workers = NULL;
    pace_workers_config_t config;
    pace_task_t task = {0};
    counts_t counts = {0};
    OK(pace_workers_config_init(&config, sizeof config));
    config.middleware = both;
    config.middleware_count = 65;
    SAYS(PACE_EINVAL, pace_workers_new(pool, &config, &workers));
    TELLS("middleware_count is 65");
    config.middleware_count = 3;
    config.max_waiting = 0;
    SAYS(PACE_EINVAL, pace_workers_new(pool, &config, &workers));
    CHECK(atomic_load(&outer.drops) == 0 && atomic_load(&inner.drops) == 0);
    config.max_waiting = 1;
    config.middleware = NULL;
    SAYS(PACE_EINVAL, pace_workers_new(pool, &config, &workers));
    config.middleware = both;
    OK(pace_workers_new(pool, &config, &workers));
    memset(both, 0, sizeof both);

    pace_task_type_t *kind = kind_of(workers, "around");
    OK(pace_workers_submit(workers, kind, third, &counts, NULL, NULL, &task));
    CHECK(wait_for(workers, task).status == PACE_TASK_COMPLETED);
    CHECK(atomic_load(&outer.before) == 3 && atomic_load(&outer.after) == 3);
    CHECK(atomic_load(&outer.errors) == 2 && atomic_load(&inner.before) == 3);
    atomic_store(&inner.refuses, true);
    OK(pace_workers_submit(workers, kind, third, &counts, NULL, NULL, &task));
    pace_task_report_t report = wait_for(workers, task);
    CHECK(report.status == PACE_TASK_FAILED && report.outcome == 31 && report.attempts == 1);
    CHECK(strcmp(report.message, "not today") == 0 && atomic_load(&counts.runs) == 3);
    CHECK(atomic_load(&outer.errors) == 3 && atomic_load(&outer.after) == 4);
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
    CHECK(atomic_load(&outer.drops) == 1 && atomic_load(&inner.drops) == 1);
}

/* --- a log of its own ----------------------------------------------------------------------------- */

typedef struct noted {
    atomic_int ends, retries, drops;
} noted_t;

static uint64_t number_in(const pace_log_record_t *record, const char *name) {
    for (size_t i = 0; i < record->field_count; i++)
        if (strcmp(record->fields[i].name, name) == 0) return record->fields[i].u64;
    CHECK(false);
    return 0;
}

static void note_record(void *data, const pace_log_record_t *record) {
    noted_t *noted = (noted_t *)data;
    if (record->component != PACE_LOG_TASK) return;
    CHECK(record->level == PACE_LOG_DEBUG && number_in(record, "id") != 0);
    if (strcmp(record->event, "task.retried") == 0) {
        CHECK(number_in(record, "attempt") == 1 && strcmp(record->message, "it reported 1") == 0);
        atomic_fetch_add(&noted->retries, 1);
    } else {
        CHECK(strcmp(record->event, "task.completed") == 0 && *record->message == 0);
        CHECK(number_in(record, "attempts") == 2 && number_in(record, "thread") < 2);
        atomic_fetch_add(&noted->ends, 1);
    }
}

static void drop_noted(void *data) { atomic_fetch_add(&((noted_t *)data)->drops, 1); }

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static int lines_of(const char *path) {
    int lines = 0;
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    for (int c; (c = fgetc(file)) != EOF;) lines += c == '\n';
    fclose(file);
    return lines;
}

/* Each end of a task is in the log that its worker pool was given, and in that of no other. */
static void logged(void) {
    noted_t noted = {0};
    counts_t counts = {0};
    pace_log_config_t config;
    pace_log_t *log = NULL;
    pace_workers_config_t with_log;
    pace_workers_t *workers = NULL;
    pace_task_t task = {0};
    char path[64];
    snprintf(path, sizeof path, "/tmp/paceline-c-%d.log", (int)getpid());
    OK(pace_log_config_init(&config, sizeof config));
    config.levels = "off,task=debug";
    config.file = path;
    config.on_record = note_record;
    config.user_data = &noted;
    config.drop = drop_noted;
    OK(pace_log_new(&config, &log));
    pace_pool_t *pool = pool_of(2);
    OK(pace_workers_config_init(&with_log, sizeof with_log));
    with_log.log = log;
    OK(pace_workers_new(pool, &with_log, &workers));
    pace_task_type_t *kind = kind_of(workers, "logged");
    for (int i = 0; i < 10; i++) {
        OK(pace_workers_submit(workers, kind, comes_back_at_once, &counts, NULL, NULL, &task));
        wait_for(workers, task);
    }
    /* A waiter may hear of an end before the log does. */
    UNTIL(atomic_load(&noted.ends) == 10 && atomic_load(&noted.retries) == 10);
    OK(pace_log_close(log, 3600 * SECOND));
    CHECK(lines_of(path) == 20);
    pace_task_type_free(kind);
    settle(workers, true);
    pace_log_free(log);
    finish(pool);
    UNTIL(atomic_load(&noted.drops) == 1);
    unlink(path);
}

/* --- tasks with a tag ------------------------------------------------------------------------ */

static void tagged(void) {
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_cq_t *cq = host_of(pool, workers);
    pace_task_type_t *kind = kind_of(workers, "tagged");
    pace_task_options_t options;
    pace_cq_entry_t entries[4];
    pace_cq_completion_t done[3];
    pace_task_t task = {0}, tasks[4];
    size_t count = 0;
    bool cancelled = true;

    /* What the host says of each attempt is in the report. */
    OK(pace_workers_submit_tagged(workers, kind, 42, NULL, &task));
    for (uint32_t attempt = 1; attempt <= 3; attempt++) {
        take(cq, PACE_CQ_ATTEMPT, entries, 1);
        CHECK(entries[0].tag == 42 && entries[0].detail.attempt.number == attempt);
        done[0] = completion(entries[0].token, PACE_CQ_FAIL | PACE_CQ_AFTER);
        done[0].error = attempt < 3 ? 9 : -9;
        done[0].message = "the host said no";
        done[0].after_ns = 1;
        OK(pace_cq_complete(cq, done, 1));
        CHECK(done[0].status == (attempt < 3 ? PACE_TASK_RETRYING : PACE_TASK_FAILED));
    }
    pace_task_report_t report = wait_for(workers, task);
    CHECK(report.status == PACE_TASK_FAILED && report.outcome == -9 && report.attempts == 3);
    CHECK(strcmp(report.message, "the host said no") == 0 && report.worker == PACE_NONE);

    /* A batch: one succeeds, one fails for good, one is stale, one is cancelled while it waits. */
    const uint64_t tags[4] = {1, 2, 3, 4};
    OK(pace_workers_submit_tagged_batch(workers, kind, tags, 4, NULL, tasks, &count));
    CHECK(count == 4);
    take(cq, PACE_CQ_ATTEMPT, entries, 3);
    OK(pace_workers_cancel(workers, tasks[3], &cancelled));
    CHECK(cancelled);
    done[0] = completion(entries[0].token, 0);
    done[1] = completion(UINT64_MAX, 0);
    done[2] = completion(entries[1].token, PACE_CQ_FAIL | PACE_CQ_PERMANENT);
    SAYS(PACE_ESTALE, pace_cq_complete(cq, done, 3));
    CHECK(done[0].result == PACE_OK && done[0].status == PACE_TASK_COMPLETED);
    CHECK(done[1].result == PACE_ESTALE);
    CHECK(done[2].result == PACE_OK && done[2].status == PACE_TASK_FAILED);
    uint64_t out = entries[2].token;
    take(cq, PACE_CQ_TASK_ENDED, entries, 1);
    CHECK(entries[0].tag == 4 && entries[0].token == 0);
    CHECK(entries[0].detail.attempt.status == PACE_TASK_CANCELLED);
    CHECK(wait_for(workers, tasks[0]).status == PACE_TASK_COMPLETED);
    CHECK(wait_for(workers, tasks[1]).status == PACE_TASK_FAILED);
    CHECK(wait_for(workers, tasks[3]).status == PACE_TASK_CANCELLED);

    /* What is out is waited for by a drain; what waits is cancelled after it. */
    OK(pace_task_options_init(&options, sizeof options));
    options.lane = PACE_LANE_CRITICAL;
    OK(pace_workers_submit_tagged(workers, kind, 5, &options, NULL));
    pace_workers_report_t ends = {0};
    ends.struct_size = sizeof ends;
    OK(pace_workers_shutdown(workers, MILLI, MILLI, 0, &ends, NULL, NULL));
    CHECK(!ends.drained && ends.cancelled == 1 && ends.stuck == 1);
    SAYS(PACE_ESHUTDOWN, pace_workers_submit_tagged(workers, kind, 6, NULL, NULL));
    done[0] = completion(out, PACE_CQ_FAIL);
    OK(pace_cq_complete(cq, done, 1));
    CHECK(done[0].status == PACE_TASK_CANCELLED);
    take(cq, PACE_CQ_TASK_ENDED, entries, 2);
    CHECK(entries[0].tag + entries[1].tag == 8);
    take(cq, PACE_CQ_ENDED, entries, 1);
    CHECK(entries[0].tag == 99);
    OK(pace_workers_detach(workers, tasks[2]));
    pace_cq_free(cq);
    pace_task_type_free(kind);
    pace_workers_free(workers);
    finish(pool);
}

/* Who has taken an attempt and is silent for its lease counts as gone: another attempt follows, or the end. */
static void leased(void) {
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_cq_t *cq = host_of(pool, workers);
    pace_task_type_config_t config;
    pace_task_type_t *kind = NULL;
    OK(pace_task_type_config_init(&config, sizeof config));
    config.lease_ns = MILLI - 1;
    SAYS(PACE_EINVAL, pace_task_type_new(workers, "leased", &config, &kind));
    TELLS("lease is 999.999");
    config.lease_ns = MILLI;
    config.retry.shape = PACE_RETRY_FIXED;
    config.retry.retries = 1;
    OK(pace_task_type_new(workers, "leased", &config, &kind));

    OK(pace_workers_submit_tagged(workers, kind, 7, NULL, NULL));
    pace_cq_entry_t entries[3];
    for (int at = 0; at < 3; at++)
        take(cq, at < 2 ? PACE_CQ_ATTEMPT : PACE_CQ_TASK_ENDED, &entries[at], 1);
    CHECK(entries[0].detail.attempt.number == 1 && entries[1].detail.attempt.number == 2);
    CHECK(entries[2].tag == 7 && entries[2].detail.attempt.status == PACE_TASK_FAILED);
    for (int at = 0; at < 2; at++) {
        SAYS(PACE_ESTALE, pace_cq_renew(cq, entries[at].token));
        pace_cq_completion_t late = completion(entries[at].token, 0);
        SAYS(PACE_ESTALE, pace_cq_complete(cq, &late, 1));
    }
    pace_cq_free(cq);
    pace_task_type_free(kind);
    pace_workers_free(workers);
    finish(pool);
}

static size_t tagged_tasks = 20000; /* fewer under valgrind */

static void *host(void *data) {
    pace_cq_t *cq = (pace_cq_t *)data;
    pace_cq_entry_t entries[64];
    pace_cq_completion_t done[64];
    size_t got = 0, total = 0;
    while (pace_cq_wait(cq, entries, 64, PACE_FOREVER, &got) == PACE_OK) {
        size_t attempts = 0;
        for (size_t i = 0; i < got; i++) {
            if (entries[i].kind == PACE_CQ_ENDED) {
                OK(pace_cq_close(cq));
                continue;
            }
            CHECK(entries[i].kind == PACE_CQ_ATTEMPT);
            bool succeeds = entries[i].tag % 3 < entries[i].detail.attempt.number;
            done[attempts++] = completion(entries[i].token, succeeds ? 0 : PACE_CQ_FAIL);
        }
        OK(pace_cq_complete(cq, done, attempts));
        for (size_t i = 0; i < attempts; i++) total += done[i].status == PACE_TASK_COMPLETED;
    }
    return (void *)total;
}

static void hosts(void) {
    enum { MOST = 20000, HOSTS = 3 };
    static uint64_t tags[MOST];
    const size_t count = tagged_tasks;
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_cq_t *cq = host_of(pool, workers);
    pace_task_type_t *kind = kind_of(workers, "hosts");
    pthread_t threads[HOSTS];
    size_t accepted = 0, total = 0;
    for (int i = 0; i < HOSTS; i++) CHECK(pthread_create(&threads[i], NULL, host, cq) == 0);
    for (size_t i = 0; i < count; i++) tags[i] = i;
    OK(pace_workers_submit_tagged_batch(workers, kind, tags, count, NULL, NULL, &accepted));
    CHECK(accepted == count);
    OK(pace_workers_shutdown(workers, 3600 * SECOND, 0, 0, NULL, NULL, NULL));
    for (int i = 0; i < HOSTS; i++) {
        void *some;
        CHECK(pthread_join(threads[i], &some) == 0);
        total += (size_t)some;
    }
    CHECK(total == count);
    pace_cq_free(cq);
    pace_task_type_free(kind);
    pace_workers_free(workers);
    finish(pool);
}

/* --- what each setting changes ------------------------------------------------------------------- */

/* A kind whose settings are all other ones than the defaults, and none like another. */
static pace_task_type_config_t peculiar(void) {
    pace_task_type_config_t config;
    OK(pace_task_type_config_init(&config, sizeof config));
    config.lane = PACE_LANE_HIGH;
    config.retry =
        (pace_retry_t){PACE_RETRY_FIXED, PACE_JITTER_EQUAL, 3, 0, MILLI, 2 * MILLI, 3603 * SECOND};
    config.timeout_ns = 3600 * SECOND;
    config.queue_timeout_ns = 3601 * SECOND;
    config.deadline_ns = 3602 * SECOND;
    config.retry_budget = true;
    config.budget_per_second = 5;
    config.budget_ratio = 0.5;
    config.budget_burst = 50;
    config.rate_starts = 3;
    config.rate_per_ns = 2 * SECOND;
    config.rate_burst = 4;
    config.max_running = 5;
    config.soft_timeout_ns = 3604 * SECOND;
    config.grace_ns = 3605 * SECOND;
    config.full = PACE_OVERLOAD_WAIT;
    config.full_wait_ns = 3606 * SECOND;
    config.lease_ns = 3607 * SECOND;
    return config;
}

/* What has no limit by default says so by one word for times, and one for counts; in a kind 0 is the default, too. */
static void no_limit_has_one_spelling(void) {
    pace_listener_options_t listener;
    pace_http_options_t http;
    pace_publisher_options_t publisher;
    pace_history_options_t history;
    pace_task_type_config_t config, zero;
    pace_task_type_t *named = NULL, *default_ = NULL;
    OK(pace_listener_options_init(&listener, sizeof listener));
    CHECK(listener.idle_timeout_ns == PACE_FOREVER && listener.read_timeout_ns == PACE_FOREVER);
    CHECK(listener.max_requests == PACE_UNLIMITED);
    OK(pace_http_options_init(&http, sizeof http));
    CHECK(http.max_requests == PACE_UNLIMITED && http.keep_alive_requests == PACE_UNLIMITED32);
    OK(pace_publisher_options_init(&publisher, sizeof publisher));
    CHECK(publisher.quota == PACE_UNLIMITED32);
    OK(pace_history_options_init(&history, sizeof history));
    CHECK(history.keep_age_ns == PACE_FOREVER && history.keep_bytes == PACE_UNLIMITED);
    OK(pace_task_type_config_init(&config, sizeof config));
    CHECK(config.timeout_ns == PACE_FOREVER && config.queue_timeout_ns == PACE_FOREVER);
    CHECK(config.deadline_ns == PACE_FOREVER && config.soft_timeout_ns == PACE_FOREVER);
    CHECK(config.lease_ns == PACE_FOREVER);
    CHECK(config.rate_starts == PACE_UNLIMITED32 && config.max_running == PACE_UNLIMITED32);
    zero = config;
    zero.timeout_ns = zero.queue_timeout_ns = zero.deadline_ns = zero.soft_timeout_ns = zero.lease_ns =
        0;
    zero.rate_starts = zero.max_running = 0;
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    OK(pace_task_type_new(workers, "unlimited", &config, &named));
    OK(pace_task_type_new(workers, "unlimited", &zero, &default_));
    pace_task_type_free(named);
    pace_task_type_free(default_);
    pace_workers_free(workers);
    finish(pool);
}

/* One name has one set of settings: what differs in any of them is refused, so none is lost on the way. */
static void settings_of_kinds(void) {
    enum { MOST = 64 };
    static pace_task_type_config_t all[MOST];
    size_t count = 1;
    all[0] = peculiar();
#define VARIANT(field, value) all[count] = all[0], all[count++].field = (value)
    VARIANT(lane, PACE_LANE_LOW);
    VARIANT(lane, PACE_LANE_NORMAL);
    VARIANT(lane, PACE_LANE_CRITICAL);
    VARIANT(retry.shape, PACE_RETRY_NONE);
    VARIANT(retry.shape, PACE_RETRY_LINEAR);
    VARIANT(retry.shape, PACE_RETRY_EXPONENTIAL);
    all[count] = all[count - 1], all[count++].retry.jitter = PACE_JITTER_NONE;
    all[count] = all[count - 1], all[count++].retry.jitter = PACE_JITTER_FULL;
    VARIANT(retry.shape, PACE_RETRY_RANDOM);
    VARIANT(retry.jitter, PACE_JITTER_NONE);
    VARIANT(retry.jitter, PACE_JITTER_FULL);
    VARIANT(retry.retries, 4);
    VARIANT(retry.first_ns, MILLI + 1);
    VARIANT(retry.cap_ns, 2 * MILLI + 1);
    VARIANT(retry.cap_ns, 0);
    VARIANT(retry.within_ns, 3603 * SECOND + 1);
    VARIANT(retry.within_ns, 0);
    VARIANT(timeout_ns, 3600 * SECOND + 1);
    VARIANT(timeout_ns, 0);
    VARIANT(queue_timeout_ns, 3601 * SECOND + 1);
    VARIANT(queue_timeout_ns, 0);
    VARIANT(deadline_ns, 3602 * SECOND + 1);
    VARIANT(deadline_ns, 0);
    VARIANT(retry_budget, false);
    VARIANT(budget_per_second, 6);
    VARIANT(budget_ratio, 0.25);
    VARIANT(budget_burst, 51);
    VARIANT(rate_starts, 2);
    VARIANT(rate_starts, 0);
    VARIANT(rate_per_ns, 2 * SECOND + 1);
    VARIANT(rate_burst, 5);
    VARIANT(max_running, 6);
    VARIANT(max_running, 0);
    VARIANT(soft_timeout_ns, 3604 * SECOND + 1);
    VARIANT(soft_timeout_ns, 0);
    VARIANT(grace_ns, 3605 * SECOND + 1);
    VARIANT(grace_ns, 0);
    VARIANT(full, PACE_OVERLOAD_REJECT);
    VARIANT(full, PACE_OVERLOAD_RUN_HERE);
    VARIANT(full, PACE_OVERLOAD_DROP_OLDEST);
    VARIANT(full, PACE_OVERLOAD_DEFAULT);
    VARIANT(full_wait_ns, 3606 * SECOND + 1);
    VARIANT(full_wait_ns, PACE_FOREVER);
    VARIANT(full_wait_ns, 0);
    VARIANT(lease_ns, 3607 * SECOND + 1);
    VARIANT(lease_ns, 0);
    VARIANT(overlap_retries, true);
#undef VARIANT
    CHECK(count < MOST);
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = NULL, *again = NULL;
    for (size_t i = 0; i < count; i++) {
        char name[8];
        snprintf(name, sizeof name, "%zu", i);
        OK(pace_task_type_new(workers, name, &all[i], &kind));
        for (size_t j = 0; j < count; j++) {
            if (i == j) {
                OK(pace_task_type_new(workers, name, &all[j], &again));
                pace_task_type_free(again);
                continue;
            }
            pace_status_t status = pace_task_type_new(workers, name, &all[j], &again);
            if (status != PACE_EINVAL) fprintf(stderr, "settings %zu and %zu are one\n", i, j);
            CHECK(status == PACE_EINVAL);
            TELLS("task type is ");
        }
        pace_task_type_free(kind);
    }
    /* Exponential delays of 0 are those that the header names. */
    pace_task_type_config_t config;
    OK(pace_task_type_config_init(&config, sizeof config));
    config.retry.shape = PACE_RETRY_EXPONENTIAL;
    config.retry.retries = 2;
    OK(pace_task_type_new(workers, "exponential", &config, &kind));
    config.retry.first_ns = 100 * MILLI;
    config.retry.cap_ns = 30 * SECOND;
    OK(pace_task_type_new(workers, "exponential", &config, &again));
    pace_task_type_free(again);
    pace_task_type_free(kind);
    config.retry.shape = PACE_RETRY_RANDOM;
    config.retry.first_ns = 31 * SECOND;
    SAYS(PACE_EINVAL, pace_task_type_new(workers, "random", &config, &kind));
    settle(workers, true);
    finish(pool);
}

/* Between two marks of this it has waited or run for at least as long. */
static uint64_t now(void) {
    struct timespec time;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void nap_for(uint64_t nanos) {
    for (uint64_t begin = now(); now() - begin < nanos;) check_nap();
}

/* What single tasks have in place of their task type's settings. */
static void settings_of_tasks(void) {
    pace_pool_t *pool = pool_of(2);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "tasks"), *late = NULL;
    pace_task_type_config_t config;
    pace_task_options_t options;
    pace_task_t task = {0}, delayed = {0}, held = {0};
    counts_t gate = {0}, same = {0}, other = {0};
    bool cancelled = false;

    /* It waits for its key, and what has another key does not. */
    OK(pace_task_options_init(&options, sizeof options));
    options.keyed = true;
    OK(pace_workers_submit(workers, kind, waits_for_gate, &gate, NULL, &options, &held));
    UNTIL(atomic_load(&gate.runs) == 1);
    OK(pace_workers_submit(workers, kind, third, &same, NULL, &options, NULL));
    options.key = 1;
    OK(pace_workers_submit(workers, kind, third, &other, NULL, &options, &task));
    CHECK(wait_for(workers, task).status == PACE_TASK_COMPLETED);
    CHECK(atomic_load(&same.runs) == 0);
    atomic_store(&gate.gate, true);
    wait_for(workers, held);
    UNTIL(atomic_load(&same.runs) == 3);

    OK(pace_task_options_init(&options, sizeof options));
    options.delay_ns = 3600 * SECOND;
    OK(pace_workers_submit(workers, kind, third, &same, NULL, &options, &delayed));
    OK(pace_workers_submit(workers, kind, third, &other, NULL, NULL, &task));
    wait_for(workers, task);
    SAYS(PACE_ETIMEDOUT, pace_workers_wait(workers, delayed, 20 * MILLI, NULL));
    OK(pace_workers_cancel(workers, delayed, &cancelled));
    CHECK(cancelled && wait_for(workers, delayed).attempts == 0 && atomic_load(&same.runs) == 3);

    OK(pace_task_options_init(&options, sizeof options));
    options.retry.shape = PACE_RETRY_RANDOM;
    options.retry.first_ns = 2;
    options.retry.cap_ns = 1;
    SAYS(PACE_EINVAL, pace_workers_submit(workers, kind, third, &same, NULL, &options, NULL));

    /* It need not return for its task to end, since the task's grace is shorter than the task type's. */
    OK(pace_task_type_config_init(&config, sizeof config));
    config.timeout_ns = MILLI;
    config.grace_ns = 3600 * SECOND;
    config.retry.shape = PACE_RETRY_FIXED;
    config.retry.retries = 1;
    OK(pace_task_type_new(workers, "late", &config, &late));
    OK(pace_task_options_init(&options, sizeof options));
    options.grace_ns = MILLI;
    atomic_store(&gate.gate, false);
    OK(pace_workers_submit(workers, late, waits_for_gate, &gate, NULL, &options, &task));
    CHECK(wait_for(workers, task).status == PACE_TASK_TIMED_OUT);
    atomic_store(&gate.gate, true);

    /* In the lane of its own, which is that of most that come out first. */
    pace_cq_t *cq = host_of(pool, workers);
    pace_cq_entry_t entries[80];
    uint64_t tags[80];
    size_t accepted = 0, urgent = 0;
    for (size_t i = 0; i < 80; i++) tags[i] = UINT64_MAX - i;
    OK(pace_task_options_init(&options, sizeof options));
    options.lane = PACE_LANE_LOW;
    OK(pace_workers_submit_tagged_batch(workers, kind, tags, 40, &options, NULL, &accepted));
    options.lane = PACE_LANE_CRITICAL;
    OK(pace_workers_submit_tagged_batch(workers, kind, tags + 40, 40, &options, NULL, &accepted));
    take(cq, PACE_CQ_ATTEMPT, entries, 80);
    for (size_t i = 0; i < 40; i++) urgent += entries[i].tag <= UINT64_MAX - 40;
    CHECK(urgent >= 30);
    uint64_t low = 0, critical = 40;
    for (size_t i = 0; i < 80; i++) {
        bool is_critical = entries[i].tag <= UINT64_MAX - 40;
        CHECK(entries[i].tag == UINT64_MAX - (is_critical ? critical++ : low++));
    }
    OK(pace_cq_done(cq, entries, 80));
    pace_cq_free(cq);
    pace_task_type_free(kind);
    pace_task_type_free(late);
    settle(workers, true);
    finish(pool);
}

typedef struct watched {
    counts_t counts;
    atomic_ullong id;
} watched_t;

/* Its time is an hour, of which a heartbeat gives back what has gone. */
static void keeps_time(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    watched_t *watched = (watched_t *)data;
    uint64_t id = 0, first = 0, left = 0, more = 0;
    OK(pace_attempt_task(attempt, &id));
    atomic_store(&watched->id, id);
    OK(pace_attempt_time_left(attempt, &first));
    /* Times are rounded up to ticks. */
    CHECK(first <= 3601 * SECOND && first > 1800 * SECOND);
    do {
        check_nap();
        OK(pace_attempt_time_left(attempt, &left));
        OK(pace_attempt_heartbeat(attempt));
        OK(pace_attempt_time_left(attempt, &more));
    } while (more <= left);
    *outcome = 0;
}

static void comes_back_in_an_hour(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    atomic_fetch_add(&((counts_t *)data)->runs, 1);
    OK(pace_attempt_retry_after(attempt, 3600 * SECOND));
    *outcome = 1;
}

static uint64_t an_hour(void *data, uint32_t retry) {
    CHECK(retry == 1);
    (void)data;
    return 3600 * SECOND;
}

static void times(void) {
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "times"), *slow = NULL;
    pace_task_type_config_t config;
    pace_task_options_t options;
    pace_task_t first = {0}, second = {0};
    counts_t gate = {0}, counts = {0};
    watched_t watched = {0};
    bool cancelled = false;

    /* One runs meanwhile, and the other waits. */
    OK(pace_workers_submit(workers, kind, waits_for_gate, &gate, NULL, NULL, &first));
    UNTIL(atomic_load(&gate.runs) == 1);
    OK(pace_workers_submit(workers, kind, third, &counts, NULL, NULL, &second));
    uint64_t begin = now();
    nap_for(30 * MILLI);
    uint64_t took = now() - begin;
    atomic_store(&gate.gate, true);
    pace_task_report_t ran = wait_for(workers, first), waited = wait_for(workers, second);
    CHECK(ran.run_time_ns >= took && waited.queue_time_ns >= took);
    CHECK(ran.id != waited.id);

    OK(pace_task_options_init(&options, sizeof options));
    options.timeout_ns = 3600 * SECOND;
    OK(pace_workers_submit(workers, kind, keeps_time, &watched, NULL, &options, &first));
    pace_task_report_t report = wait_for(workers, first);
    CHECK(report.status == PACE_TASK_COMPLETED && report.id == atomic_load(&watched.id));

    OK(pace_workers_submit(workers, kind, comes_back_in_an_hour, &counts, NULL, NULL, &first));
    SAYS(PACE_ETIMEDOUT, pace_workers_wait(workers, first, 20 * MILLI, NULL));
    OK(pace_task_type_config_init(&config, sizeof config));
    config.retry.shape = PACE_RETRY_CUSTOM;
    config.retry.retries = 1;
    config.retry_delay = an_hour;
    OK(pace_task_type_new(workers, "slow", &config, &slow));
    OK(pace_workers_submit(workers, slow, fails, &counts, NULL, NULL, &second));
    SAYS(PACE_ETIMEDOUT, pace_workers_wait(workers, second, 20 * MILLI, NULL));
    for (int i = 0; i < 2; i++) {
        pace_task_t task = i ? second : first;
        uint32_t status = 0;
        UNTIL((pace_workers_status(workers, task, &status), status == PACE_TASK_RETRYING));
        OK(pace_workers_cancel(workers, task, &cancelled));
        CHECK(cancelled && wait_for(workers, task).attempts == 1);
    }
    pace_task_type_free(slow);
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
}

static pace_worker_stats_t of_worker(pace_workers_t *workers, uint32_t worker) {
    pace_worker_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_workers_worker_stats(workers, worker, &stats));
    CHECK(stats.struct_size == sizeof stats);
    return stats;
}

/* What one thread has run, and what it runs now. */
static void of_each_worker(void) {
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "counted");
    pace_pool_stats_t threads = {0};
    pace_worker_stats_t stats = {0};
    pace_task_t task = {0};
    counts_t counts = {0}, gated = {0};
    OK(pace_workers_submit(workers, kind, third, &counts, NULL, NULL, &task));
    CHECK(wait_for(workers, task).worker == 0);
    stats = of_worker(workers, 0);
    CHECK(stats.attempts == 3 && stats.completed == 1 && stats.failed == 2);
    CHECK(stats.task_type == NULL && !stats.stuck);

    OK(pace_workers_submit(workers, kind, waits_for_gate, &gated, NULL, NULL, &task));
    UNTIL(atomic_load(&gated.runs) == 1);
    stats = of_worker(workers, 0);
    CHECK(stats.task_type != NULL && strcmp(stats.task_type, "counted") == 0);
    CHECK(stats.role == PACE_ROLE_TASK && !stats.stuck && stats.attempts == 4);
    CHECK(stats.utilisation > 0 && stats.utilisation <= 1 && stats.run_time_ns > 0);
    atomic_store(&gated.gate, true);
    CHECK(wait_for(workers, task).status == PACE_TASK_COMPLETED);
    CHECK(of_worker(workers, 0).completed == 2);

    threads.struct_size = sizeof threads;
    OK(pace_pool_stats(pool, &threads));
    stats = of_worker(workers, threads.threads - 1);
    CHECK(stats.role == PACE_ROLE_AWAY && stats.attempts == 0 && stats.utilisation == 0);
    SAYS(PACE_EINVAL, pace_workers_worker_stats(workers, threads.threads, &stats));
    stats.struct_size = 0;
    SAYS(PACE_EVERSION, pace_workers_worker_stats(workers, 0, &stats));
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
}

/* Each figure is a number that no other is. */
static void books(void) {
    enum { ROOM = 40, RUN = 7 };
    pace_pool_t *pool = pool_of(1);
    pace_workers_config_t settings;
    pace_workers_t *workers = NULL;
    pace_task_options_t options;
    pace_task_t task = {0};
    pace_cq_entry_t entries[ROOM];
    pace_cq_completion_t done[3];
    pace_task_type_stats_t stats = {0};
    pace_workers_audit_t audit = {0};
    size_t got = 0, accepted = 0;
    bool flag = false;
    uint64_t tags[ROOM + 1] = {0};
    OK(pace_workers_config_init(&settings, sizeof settings));
    settings.max_queued = ROOM;
    OK(pace_workers_new(pool, &settings, &workers));
    pace_cq_t *cq = host_of(pool, workers);
    pace_task_type_config_t config;
    pace_task_type_t *kind = NULL, *poor = NULL;
    OK(pace_task_type_config_init(&config, sizeof config));
    config.retry.shape = PACE_RETRY_FIXED;
    config.retry.retries = 5;
    OK(pace_task_type_new(workers, "booked", &config, &kind));
    config.retry_budget = true;
    config.budget_ratio = 0;
    config.budget_per_second = 0;
    config.budget_burst = 1;
    OK(pace_task_type_new(workers, "poor", &config, &poor));

    /* 1 completes, 2 fail, one of which is tried three times more. */
    OK(pace_workers_submit_tagged_batch(workers, kind, tags, 3, NULL, NULL, &accepted));
    take(cq, PACE_CQ_ATTEMPT, entries, 3);
    done[0] = completion(entries[0].token, 0);
    done[1] = completion(entries[1].token, PACE_CQ_FAIL | PACE_CQ_PERMANENT);
    done[2] = completion(entries[2].token, PACE_CQ_FAIL);
    OK(pace_cq_complete(cq, done, 3));
    for (int i = 0; i < 3; i++) {
        take(cq, PACE_CQ_ATTEMPT, entries, 1);
        done[2] = completion(entries[0].token, PACE_CQ_FAIL | (i == 2 ? PACE_CQ_PERMANENT : 0));
        OK(pace_cq_complete(cq, &done[2], 1));
    }
    CHECK(done[2].status == PACE_TASK_FAILED);
    /* 3 are cancelled, 5 are dropped, and the time of 4 is over. */
    for (int i = 0; i < 8; i++) {
        OK(pace_workers_submit_tagged(workers, kind, 0, NULL, &task));
        OK((i < 3 ? pace_workers_cancel : pace_workers_drop)(workers, task, &flag));
        CHECK(flag);
        pace_task_report_t report = wait_for(workers, task);
        take(cq, PACE_CQ_TASK_ENDED, entries, 1);
        CHECK(entries[0].detail.attempt.id == report.id);
    }
    OK(pace_task_options_init(&options, sizeof options));
    options.queue_timeout_ns = 1;
    for (int i = 0; i < 4; i++) {
        OK(pace_workers_submit_tagged(workers, kind, 0, &options, &task));
        CHECK(wait_for(workers, task).status == PACE_TASK_TIMED_OUT);
        take(cq, PACE_CQ_TASK_ENDED, entries, 1);
        CHECK(entries[0].detail.attempt.status == PACE_TASK_TIMED_OUT);
    }
    /* Ends come out before what waits: what has ended there takes room until a host comes past it. */
    SAYS(PACE_ETIMEDOUT, pace_cq_wait(cq, entries, ROOM, 0, &got));
    /* So many wait that 6 are refused, and of those 7 run. */
    SAYS(PACE_EFULL,
         pace_workers_submit_tagged_batch(workers, kind, tags, ROOM + 1, NULL, NULL, &accepted));
    CHECK(accepted == ROOM);
    for (int i = 1; i < 6; i++)
        SAYS(PACE_EFULL, pace_workers_submit_tagged(workers, kind, 0, NULL, NULL));
    take(cq, PACE_CQ_ATTEMPT, entries, RUN);

    stats.struct_size = sizeof stats;
    audit.struct_size = sizeof audit;
    OK(pace_task_type_stats(kind, &stats));
    CHECK(stats.submitted == 15 + ROOM + 6 && stats.accepted == 15 + ROOM && stats.rejected == 6);
    CHECK(stats.completed == 1 && stats.failed == 2 && stats.cancelled == 3 && stats.timed_out == 4);
    CHECK(stats.dropped == 5 && stats.retried == 3 && stats.running == RUN);
    CHECK(stats.retries_refused == 0 && stats.discarded == 0);
    OK(pace_workers_audit(workers, &audit));
    CHECK(audit.submitted == 15 + ROOM + 6 && audit.accepted == 15 + ROOM && audit.rejected == 6);
    CHECK(audit.completed == 1 && audit.failed == 2 && audit.cancelled == 3 && audit.timed_out == 4);
    CHECK(audit.dropped == 5 && audit.in_flight == ROOM && audit.balances);

    /* What runs is told that its task was cancelled, and a number names it in entries and in its report. */
    OK(pace_cq_done(cq, entries, RUN));
    OK(pace_task_options_init(&options, sizeof options));
    options.lane = PACE_LANE_CRITICAL;
    OK(pace_workers_submit_tagged(workers, kind, UINT64_MAX, &options, &task));
    do take(cq, PACE_CQ_ATTEMPT, entries, 1);
    while (entries[0].tag != UINT64_MAX);
    OK(pace_workers_cancel(workers, task, &flag));
    CHECK(!flag);
    OK(pace_cq_is_cancelled(cq, entries[0].token, &flag));
    CHECK(flag);
    uint64_t id = entries[0].detail.attempt.id;
    done[0] = completion(entries[0].token, PACE_CQ_FAIL);
    OK(pace_cq_complete(cq, done, 1));
    CHECK(done[0].status == PACE_TASK_CANCELLED && wait_for(workers, task).id == id);

    /* One retry is paid for, and the next one is refused. */
    OK(pace_workers_shutdown(workers, 0, 0, 0, NULL, NULL, NULL));
    pace_cq_free(cq);
    pace_task_type_free(kind);
    pace_task_type_free(poor);
    pace_workers_free(workers);
    workers = workers_of(pool);
    cq = host_of(pool, workers);
    OK(pace_task_type_new(workers, "poor", &config, &poor));
    OK(pace_workers_submit_tagged(workers, poor, 1, NULL, NULL));
    for (int i = 0; i < 2; i++) {
        take(cq, PACE_CQ_ATTEMPT, entries, 1);
        done[0] = completion(entries[0].token, PACE_CQ_FAIL);
        OK(pace_cq_complete(cq, done, 1));
    }
    OK(pace_task_type_stats(poor, &stats));
    CHECK(stats.failed == 1 && stats.retried == 1 && stats.retries_refused == 1 && stats.running == 0);
    /* A host says that another attempt may come in an hour: none comes before. */
    pace_task_type_t *later = kind_of(workers, "later");
    OK(pace_workers_submit_tagged(workers, later, 2, NULL, &task));
    take(cq, PACE_CQ_ATTEMPT, entries, 1);
    done[0] = completion(entries[0].token, PACE_CQ_FAIL | PACE_CQ_AFTER);
    done[0].after_ns = 3600 * SECOND;
    OK(pace_cq_complete(cq, done, 1));
    SAYS(PACE_ETIMEDOUT, pace_cq_wait(cq, entries, 1, 100 * MILLI, &got));
    OK(pace_workers_cancel(workers, task, &flag));
    CHECK(flag && wait_for(workers, task).attempts == 1);
    pace_cq_free(cq);
    pace_task_type_free(later);
    pace_task_type_free(poor);
    settle(workers, true);
    finish(pool);
}

/* An attempt that is out for much longer than its time, but says that it goes on. */
static void heartbeats(void) {
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_config_t config;
    pace_task_type_t *kind = NULL;
    pace_cq_t *cq = host_of(pool, workers);
    pace_cq_entry_t entry;
    size_t got = 0;
    bool cancelled = true;
    OK(pace_task_type_config_init(&config, sizeof config));
    config.timeout_ns = 20 * MILLI;
    OK(pace_task_type_new(workers, "beats", &config, &kind));
    /* Who is not let run for so long has been silent, and tries again. */
    while (cancelled) {
        OK(pace_workers_submit_tagged(workers, kind, 1, NULL, NULL));
        do OK(pace_cq_wait(cq, &entry, 1, PACE_FOREVER, &got));
        while (entry.kind != PACE_CQ_ATTEMPT);
        cancelled = false;
        for (uint64_t begin = now(); !cancelled && now() - begin < 100 * MILLI; check_nap()) {
            pace_status_t status = pace_cq_renew(cq, entry.token);
            if (status == PACE_OK) status = pace_cq_is_cancelled(cq, entry.token, &cancelled);
            cancelled = cancelled || status == PACE_ESTALE;
        }
        pace_cq_completion_t done = completion(entry.token, 0);
        (void)pace_cq_complete(cq, &done, 1);
        cancelled = cancelled || done.status != PACE_TASK_COMPLETED;
    }
    pace_cq_free(cq);
    pace_task_type_free(kind);
    OK(pace_workers_shutdown(workers, 0, 0, 0, NULL, NULL, NULL));
    pace_workers_free(workers);
    finish(pool);
}

typedef struct submitter {
    pace_task_type_t *kind;
    pace_workers_t *workers;
    counts_t *counts;
    atomic_bool asks;
} submitter_t;

static void *submits(void *data) {
    submitter_t *of = (submitter_t *)data;
    atomic_store(&of->asks, true);
    OK(pace_workers_submit(of->workers, of->kind, third, of->counts, NULL, NULL, NULL));
    return NULL;
}

/* Who has all the time waits for room; how many may be dropped; what a post that is refused keeps. */
static void room(void) {
    pace_pool_config_t settings;
    pace_workers_config_t how;
    pace_task_type_config_t config;
    pace_pool_t *pool = NULL;
    pace_workers_t *workers = NULL;
    pace_task_type_t *patient = NULL, *hasty = NULL, *dropped = NULL;
    pace_task_t oldest = {0};
    counts_t gate = {0}, counts = {0}, refused = {0};
    pthread_t thread;
    OK(pace_pool_config_init(&settings, sizeof settings));
    settings.threads = 1;
    settings.pin = "none";
    settings.lane_capacity = 4;
    OK(pace_pool_new(&settings, &pool));
    OK(pace_workers_config_init(&how, sizeof how));
    how.max_droppable = 1;
    OK(pace_workers_new(pool, &how, &workers));
    OK(pace_task_type_config_init(&config, sizeof config));
    config.retry.shape = PACE_RETRY_FIXED;
    config.retry.retries = 2;
    config.full = PACE_OVERLOAD_WAIT;
    config.full_wait_ns = PACE_FOREVER;
    OK(pace_task_type_new(workers, "patient", &config, &patient));
    config.full = PACE_OVERLOAD_REJECT;
    OK(pace_task_type_new(workers, "hasty", &config, &hasty));
    config.full = PACE_OVERLOAD_DROP_OLDEST;
    OK(pace_task_type_new(workers, "dropped", &config, &dropped));
    OK(pace_workers_submit(workers, hasty, waits_for_gate, &gate, NULL, NULL, NULL));
    UNTIL(atomic_load(&gate.runs) == 1);
    OK(pace_workers_submit(workers, dropped, third, &counts, NULL, NULL, &oldest));
    OK(pace_workers_submit(workers, dropped, third, &counts, NULL, NULL, NULL));
    CHECK(wait_for(workers, oldest).status == PACE_TASK_REJECTED);
    while (pace_workers_submit(workers, hasty, third, &counts, NULL, NULL, NULL) == PACE_OK) continue;
    SAYS(PACE_EFULL, pace_task_type_post(hasty, count_run, &refused, count_drop));
    CHECK(atomic_load(&refused.drops) == 0);
    submitter_t submitter = {.kind = patient, .workers = workers, .counts = &counts};
    CHECK(pthread_create(&thread, NULL, submits, &submitter) == 0);
    UNTIL(atomic_load(&submitter.asks));
    nap_for(20 * MILLI);
    atomic_store(&gate.gate, true);
    CHECK(pthread_join(thread, NULL) == 0);
    pace_task_type_free(patient);
    pace_task_type_free(hasty);
    pace_task_type_free(dropped);
    settle(workers, true);
    finish(pool);
}

/* The first tasks of a pool and of a worker pool on it: the name of one is none of the other. */
static void first_names(void) {
    pace_pool_t *pool = pool_of(2);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "first");
    counts_t gate = {0};
    pace_task_t own = {0}, task = {0};
    uint32_t status = 0;
    bool done = false;
    OK(pace_pool_submit(pool, PACE_LANE_NORMAL, count_gated, &gate, NULL, &own));
    OK(pace_workers_submit(workers, kind, waits_for_gate, &gate, NULL, NULL, &task));
    SAYS(PACE_ESTALE, pace_workers_status(workers, own, &status));
    SAYS(PACE_ESTALE, pace_task_is_done(pool, task, &done));
    atomic_store(&gate.gate, true);
    OK(pace_task_detach(pool, own));
    SAYS(PACE_ESTALE, pace_task_is_done(pool, own, &done));
    OK(pace_workers_detach(workers, task));
    SAYS(PACE_ESTALE, pace_workers_status(workers, task, &status));
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
}

/* How many threads take tasks when none has waited yet, and what scaling may not be. */
static void scaled(void) {
    pace_pool_t *pool = pool_of(3);
    pace_workers_config_t config;
    pace_workers_t *workers = NULL;
    pace_health_t health = {0};
    OK(pace_workers_config_init(&config, sizeof config));
    config.scaling = true;
    config.scaling_period_ns = 0;
    SAYS(PACE_EINVAL, pace_workers_new(pool, &config, &workers));
    TELLS("period is ");
    config.scaling_period_ns = 20 * MILLI;
    config.scaling_patience = 0;
    SAYS(PACE_EINVAL, pace_workers_new(pool, &config, &workers));
    TELLS("patience is ");
    config.scaling_patience = 1;
    config.min_active = 4;
    SAYS(PACE_EINVAL, pace_workers_new(pool, &config, &workers));
    TELLS("min_active is ");
    config.min_active = 2;
    OK(pace_workers_new(pool, &config, &workers));
    health.struct_size = sizeof health;
    UNTIL((pace_workers_health(workers, &health), health.capacity == 2));
    settle(workers, true);
    finish(pool);
}

/* --- again and again, and figures --------------------------------------------------------------- */

static void periodic(void) {
    pace_pool_t *pool = pool_of(2);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "periodic");
    pace_periodic_t *periodic = NULL;
    counts_t counts = {0};
    uint64_t runs = 0, missed = 77;
    SAYS(PACE_EINVAL,
         pace_workers_every(workers, kind, MILLI, 2, third, &counts, count_drop, NULL, &periodic));
    TELLS("missed is 2");
    SAYS(PACE_EINVAL, pace_workers_every(workers, kind, 0, PACE_MISSED_TICK_SKIP, third, &counts,
                                         count_drop, NULL, &periodic));
    TELLS("period is ");
    CHECK(atomic_load(&counts.drops) == 0 && periodic == NULL);
    for (uint32_t how = PACE_MISSED_TICK_SKIP; how <= PACE_MISSED_TICK_COALESCE; how++) {
        atomic_store(&counts.runs, 0);
        OK(pace_workers_every(workers, kind, MILLI, how, third, &counts, count_drop, NULL, &periodic));
        UNTIL(atomic_load(&counts.runs) >= 9);
        OK(pace_periodic_counts(periodic, &runs, &missed));
        CHECK(runs >= 3 && missed != 77);
        OK(pace_periodic_counts(periodic, NULL, NULL));
        pace_periodic_free(periodic);
        UNTIL(atomic_load(&counts.drops) == (int)how + 1);
    }
    pace_periodic_free(NULL);

    /* One run holds up all others, and its options are followed. */
    counts_t gate = {0};
    pace_task_options_t options;
    pace_task_type_stats_t stats = {0};
    OK(pace_workers_every(workers, kind, MILLI, PACE_MISSED_TICK_SKIP, waits_for_gate, &gate, NULL, NULL,
                          &periodic));
    UNTIL((pace_periodic_counts(periodic, &runs, &missed), missed >= 3));
    CHECK(runs == 1);
    /* It waits for the run. */
    atomic_store(&gate.gate, true);
    pace_periodic_free(periodic);
    /* One run makes up for those that were missed, as soon as the one before has ended: long before a tick
     * that comes after the last one. Who is not let run for so long tries again. */
    for (bool at_once = false; !at_once;) {
        counts_t held = {0};
        OK(pace_workers_every(workers, kind, 200 * MILLI, PACE_MISSED_TICK_COALESCE, waits_for_gate,
                              &held, count_drop, NULL, &periodic));
        UNTIL((pace_periodic_counts(periodic, NULL, &missed), missed >= 1));
        uint64_t begin = now();
        atomic_store(&held.gate, true);
        UNTIL(atomic_load(&held.runs) >= 2);
        at_once = now() - begin < 100 * MILLI;
        pace_periodic_free(periodic);
        UNTIL(atomic_load(&held.drops) == 1);
    }
    pace_task_type_t *once = kind_of(workers, "once");
    OK(pace_task_options_init(&options, sizeof options));
    options.retry.shape = PACE_RETRY_NONE;
    OK(pace_workers_every(workers, once, MILLI, PACE_MISSED_TICK_SKIP, fails, &gate, NULL, &options,
                          &periodic));
    stats.struct_size = sizeof stats;
    UNTIL((pace_task_type_stats(once, &stats), stats.failed >= 2));
    CHECK(stats.retried == 0);
    pace_periodic_free(periodic);
    pace_task_type_free(once);
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
}

static void note_end(void *data, uint32_t status) {
    atomic_fetch_add(&((counts_t *)data)->runs, status == PACE_TASK_COMPLETED ? 1 : 100);
}

typedef struct asks {
    pace_workers_t *workers;
    pace_task_t task;
    uint32_t status;
} asks_t;

static void ask_for_it(void *data, uint32_t status) {
    asks_t *asks = (asks_t *)data;
    bool flag;
    OK(pace_workers_status(asks->workers, asks->task, &asks->status));
    CHECK(asks->status == status);
    OK(pace_workers_cancel(asks->workers, asks->task, &flag));
    CHECK(!flag);
}

/* Who hears of an end, on the thread that has brought it about, may ask for the task. */
static void ends_that_ask(void) {
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "asked");
    pace_task_options_t options;
    OK(pace_task_options_init(&options, sizeof options));
    options.delay_ns = 3600 * SECOND;
    for (int way = 0; way < 2; way++) {
        asks_t asks = {.workers = workers};
        bool flag = false;
        OK(pace_workers_submit(workers, kind, third, &asks, NULL, &options, &asks.task));
        OK(pace_workers_on_end(workers, asks.task, ask_for_it, &asks, NULL));
        OK((way ? pace_workers_drop : pace_workers_cancel)(workers, asks.task, &flag));
        CHECK(flag && asks.status == (way ? PACE_TASK_REJECTED : PACE_TASK_CANCELLED));
        OK(pace_workers_detach(workers, asks.task));
    }
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
}

static void ends(void) {
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "ends");
    counts_t gate = {0}, noted = {0};
    pace_task_t task = {0};
    OK(pace_workers_submit(workers, kind, waits_for_gate, &gate, NULL, NULL, &task));
    OK(pace_workers_on_end(workers, task, note_end, &noted, count_drop));
    CHECK(atomic_load(&noted.runs) == 0);
    atomic_store(&gate.gate, true);
    UNTIL(atomic_load(&noted.drops) == 1);
    CHECK(atomic_load(&noted.runs) == 1);
    OK(pace_workers_on_end(workers, task, note_end, &noted, count_drop));
    CHECK(atomic_load(&noted.runs) == 2 && atomic_load(&noted.drops) == 2);
    OK(pace_workers_detach(workers, task));
    SAYS(PACE_ESTALE, pace_workers_on_end(workers, task, note_end, &noted, count_drop));
    CHECK(atomic_load(&noted.drops) == 2);
    pace_task_type_free(kind);
    settle(workers, true);
    finish(pool);
}

static void figures(void) {
    pace_pool_config_t settings;
    pace_pool_t *pool = NULL;
    pace_workers_config_t config;
    pace_workers_t *workers = NULL;
    pace_task_type_stats_t stats = {0};
    pace_workers_audit_t audit = {0};
    pace_health_t health = {0};
    pace_thread_stats_t thread = {0};
    counts_t counts = {0}, gate = {0};
    pace_task_t task = {0};
    char small[4], *text;
    const char *media_type = NULL;
    uint32_t format = 0;
    size_t needed = 0;
    stats.struct_size = sizeof stats;
    audit.struct_size = sizeof audit;
    health.struct_size = sizeof health;
    thread.struct_size = sizeof thread;

    OK(pace_pool_config_init(&settings, sizeof settings));
    settings.threads = 2;
    settings.pin = "none";
    settings.ageing_ns = 1;
    SAYS(PACE_EINVAL, pace_pool_new(&settings, &pool));
    TELLS("ageing");
    settings.ageing_ns = PACE_FOREVER;
    settings.reserve[PACE_LANE_CRITICAL] = 1;
    OK(pace_pool_new(&settings, &pool));
    OK(pace_workers_config_init(&config, sizeof config));
    config.metrics = true;
    config.name = "figures";
    OK(pace_workers_new(pool, &config, &workers));
    pace_task_type_t *kind = kind_of(workers, "figured");
    OK(pace_workers_submit(workers, kind, fails, &counts, count_drop, NULL, &task));
    CHECK(wait_for(workers, task).status == PACE_TASK_FAILED);

    OK(pace_task_type_stats(kind, &stats));
    CHECK(stats.submitted == 1 && stats.accepted == 1 && stats.failed == 1 && stats.retried == 2);
    CHECK(stats.completed + stats.cancelled + stats.timed_out + stats.dropped + stats.rejected == 0);
    OK(pace_workers_audit(workers, &audit));
    CHECK(audit.balances && audit.failed == 1 && audit.in_flight == 0);
    OK(pace_workers_health(workers, &health));
    CHECK(health.health == PACE_HEALTH_READY && health.threads == 2 && health.stuck == 0);
    CHECK(health.capacity == 2 && health.reserved_threads == 1 && health.queued == 0);

    SAYS(PACE_EFULL, pace_workers_metrics(workers, PACE_METRICS_PROMETHEUS, NULL, 0, &needed));
    SAYS(PACE_EFULL, pace_workers_metrics(workers, PACE_METRICS_JSON, small, 4, &needed));
    CHECK(needed > 1000);
    text = (char *)malloc(4 * needed);
    OK(pace_workers_metrics(workers, PACE_METRICS_PROMETHEUS, text, 4 * needed, &needed));
    CHECK(strlen(text) == needed - 1 && strstr(text, "workers=\"figures\"") != NULL);
    CHECK(strstr(text, "task_type=\"figured\"") != NULL || strstr(text, "figured") != NULL);
    CHECK(strstr(text, "\nprocess_threads ") != NULL || strstr(text, "\nprocess_threads{") != NULL);
    CHECK(strstr(text, "{pool=\"figures\"") != NULL);
    CHECK(strstr(text, "# EOF") == NULL);
    OK(pace_metrics_format(NULL, &format, &media_type));
    CHECK(format == PACE_METRICS_PROMETHEUS);
    CHECK(strcmp(media_type, "text/plain; version=0.0.4; charset=utf-8") == 0);
    OK(pace_metrics_format("application/openmetrics-text;q=0.5, */*;q=0.1", &format, &media_type));
    CHECK(format == PACE_METRICS_OPENMETRICS);
    CHECK(strcmp(media_type, "application/openmetrics-text; version=1.0.0; charset=utf-8") == 0);
    OK(pace_workers_metrics(workers, format, text, 4 * needed, &needed));
    CHECK(strcmp(text + strlen(text) - 7, "\n# EOF\n") == 0);
    OK(pace_workers_metrics(workers, PACE_METRICS_JSON, text, 4 * needed, &needed));
    CHECK(text[0] == '{');
    SAYS(PACE_EINVAL, pace_workers_metrics(workers, 2, text, 1, &needed));
    free(text);

    /* A thread that is set aside says so, and health knows what is left. */
    SAYS(PACE_EINVAL, pace_pool_set_active(pool, 0));
    OK(pace_pool_set_active(pool, 1));
    UNTIL((pace_pool_thread_stats(pool, 1, &thread), thread.role == PACE_ROLE_PARKED));
    UNTIL((pace_workers_health(workers, &health), health.capacity == 1));
    OK(pace_pool_set_active(pool, 2));

    /* One runs, and what comes after two waits. */
    counts_t busy = {0};
    pace_task_t at_work[4];
    OK(pace_workers_submit(workers, kind, waits_for_gate, &busy, NULL, NULL, &at_work[0]));
    UNTIL(atomic_load(&busy.runs) == 1);
    UNTIL((pace_workers_health(workers, &health), health.capacity == 2 && health.free == 1));
    OK(pace_workers_submit(workers, kind, waits_for_gate, &busy, NULL, NULL, &at_work[1]));
    UNTIL(atomic_load(&busy.runs) == 2);
    for (int i = 2; i < 4; i++)
        OK(pace_workers_submit(workers, kind, waits_for_gate, &busy, NULL, NULL, &at_work[i]));
    OK(pace_workers_health(workers, &health));
    CHECK(health.queued == 2 && health.free == 0 && health.health == PACE_HEALTH_READY);
    atomic_store(&busy.gate, true);
    for (int i = 0; i < 4; i++) wait_for(workers, at_work[i]);

    /* A function that does not listen: degraded until it returns. */
    pace_task_options_t options;
    OK(pace_task_options_init(&options, sizeof options));
    options.timeout_ns = MILLI;
    options.retry.shape = PACE_RETRY_NONE;
    OK(pace_workers_submit(workers, kind, waits_for_gate, &gate, NULL, &options, &task));
    CHECK(wait_for(workers, task).status == PACE_TASK_TIMED_OUT);
    OK(pace_workers_health(workers, &health));
    CHECK(health.health == PACE_HEALTH_DEGRADED && health.stuck == 1);
    atomic_store(&gate.gate, true);
    UNTIL((pace_workers_health(workers, &health), health.health == PACE_HEALTH_READY));
    pace_task_type_free(kind);
    OK(pace_workers_shutdown(workers, 3600 * SECOND, 0, 0, NULL, NULL, NULL));
    OK(pace_workers_health(workers, &health));
    CHECK(health.health == PACE_HEALTH_DRAINING);
    pace_workers_free(workers);
    workers = workers_of(pool);
    SAYS(PACE_EINVAL, pace_workers_metrics(workers, PACE_METRICS_JSON, NULL, 0, &needed));
    TELLS("metrics is false");
    settle(workers, true);
    finish(pool);
}

/* A whole service, from two files of which the later one wins, and the environment over both. */
static void a_service_from_files(void) {
    char base[64], own[64];
    snprintf(base, sizeof base, "/tmp/paceline-c-base-%d.yaml", (int)getpid());
    snprintf(own, sizeof own, "/tmp/paceline-c-own-%d.json", (int)getpid());
    write_file(base,
               "pool: {threads: 2}\n"
               "tasks: {lane: high, timeout: 2s, retries: 3, retry_growth: fixed, full: reject}\n"
               "hub: {max_payload: 8 B, notice_interval: 2s}\n"
               "history: {pattern: 'a.>', keep_count: 2, lines: /tmp/none, disk_wait: 1s}\n"
               "server: {address: '127.0.0.1:0', max_connections: 7, idle_timeout: 3s, backlog: 9}\n"
               "http: {max_body: 3, head_timeout: 1s, keep_alive_requests: 5}\n"
               "webhook: {url: 'http://127.0.0.1:9/', capacity: 4, retry_delay: 2s}\n");
    write_file(
        own,
        "{\"tasks\": {\"retries\": 2, \"retry_delay\": \"5ms\"}, \"history\": {\"keep_age\": \"1h\"},"
        " \"server\": {\"no_delay\": false}}");
    setenv("PACELINE_TASKS_QUEUE_TIMEOUT", "4s", 1);
    setenv("PACELINE_HUB_ERRORS", "77", 1);

    pace_task_type_config_t tasks;
    OK(pace_task_type_config_init(&tasks, sizeof tasks));
    OK(pace_task_type_config_load(&tasks, base, false));
    CHECK(tasks.retry.retries == 3 && tasks.retry.first_ns == 100 * MILLI && tasks.retry.cap_ns == 0);
    OK(pace_task_type_config_load(&tasks, own, true));
    CHECK(tasks.lane == PACE_LANE_HIGH && tasks.timeout_ns == 2 * SECOND);
    CHECK(tasks.queue_timeout_ns == 4 * SECOND && tasks.deadline_ns == PACE_FOREVER);
    CHECK(tasks.retry.shape == PACE_RETRY_FIXED && tasks.retry.retries == 2);
    CHECK(tasks.retry.first_ns == 5 * MILLI && tasks.full == PACE_OVERLOAD_REJECT);

    pace_hub_options_t hub;
    OK(pace_hub_options_init(&hub, sizeof hub));
    OK(pace_hub_options_load(&hub, base, true));
    CHECK(hub.max_payload == 8 && hub.notice_interval_ns == 2 * SECOND && hub.errors == 77);

    pace_history_options_t history;
    OK(pace_history_options_init(&history, sizeof history));
    OK(pace_history_options_load(&history, base, false));
    OK(pace_history_options_load(&history, own, false));
    CHECK(strcmp(history.pattern, "a.>") == 0 && strcmp(history.lines, "/tmp/none") == 0);
    CHECK(history.keep_count == 2 && history.keep_age_ns == 3600 * SECOND && history.archive == NULL);
    CHECK(history.when_full == PACE_DISK_WAIT && history.disk_wait_ns == SECOND);

    pace_listener_options_t listener;
    OK(pace_listener_options_init(&listener, sizeof listener));
    OK(pace_listener_options_load(&listener, base, false));
    CHECK(listener.no_delay);
    OK(pace_listener_options_load(&listener, own, false));
    CHECK(strcmp(listener.address, "127.0.0.1:0") == 0 && listener.max_connections == 7);
    CHECK(listener.idle_timeout_ns == 3 * SECOND && listener.backlog == 9 && !listener.no_delay);

    pace_http_options_t http;
    OK(pace_http_options_init(&http, sizeof http));
    OK(pace_http_options_load(&http, base, false));
    CHECK(http.max_body == 3 && http.head_timeout_ns == SECOND && http.keep_alive_requests == 5);

    pace_webhook_options_t webhook;
    pace_webhook_t *posts = NULL;
    OK(pace_webhook_options_init(&webhook, sizeof webhook));
    SAYS(PACE_EINVAL, pace_webhook_new(NULL, &webhook, &posts));
    OK(pace_webhook_options_load(&webhook, base, false));
    CHECK(webhook.capacity == 4 && webhook.retry.retries == 5 && webhook.retry.first_ns == 2 * SECOND);
    pace_status_t status = pace_webhook_new(NULL, &webhook, &posts);
    CHECK(status == PACE_OK || status == PACE_EUNSUPPORTED);
    pace_webhook_free(posts);

    /* What was loaded is good for making them. */
    pace_pool_t *pool = pool_of(2);
    pace_workers_t *workers;
    pace_task_type_t *task_type;
    pace_hub_t *made;
    OK(pace_workers_new(pool, NULL, &workers));
    OK(pace_task_type_new(workers, "set", &tasks, &task_type));
    hub.histories = &history;
    hub.history_count = 1;
    history.lines = NULL;
    OK(pace_hub_new(pool, &hub, &made));
    SAYS(PACE_EINVAL, pace_hub_publish(made, "a.b", "123456789", 9, PACE_PUBLISH_NO_RECEIPT, NULL));
    pace_hub_free(made);
    pace_task_type_free(task_type);
    pace_workers_free(workers);
    finish(pool);

    write_file(own, "{\"hub\": {\"max_payload\": 0}, \"http\": {\"max_headers\": 257}}");
    SAYS(PACE_EINVAL, pace_http_options_load(&http, own, false));
    TELLS("hub.max_payload");
    TELLS("http.max_headers");
    CHECK(http.max_body == 3);
    unsetenv("PACELINE_TASKS_QUEUE_TIMEOUT");
    unsetenv("PACELINE_HUB_ERRORS");
    unlink(base);
    unlink(own);
}

static void from_a_file(void) {
    char path[64];
    pace_pool_t *pool = NULL;
    pace_pool_stats_t stats = {0};
    snprintf(path, sizeof path, "/tmp/paceline-c-%d.json", (int)getpid());
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs("{\"pool\": {\"threads\": 2, \"max_joined\": 1}}", file) >= 0);
    CHECK(fclose(file) == 0);
    pace_pool_config_t own;
    OK(pace_pool_config_init(&own, sizeof own));
    OK(pace_pool_config_load(&own, path, false));
    CHECK(own.spin_ns == 0 && own.name == NULL && own.leaders == PACE_DEFAULT);
    OK(pace_pool_new(&own, &pool));
    stats.struct_size = sizeof stats;
    OK(pace_pool_stats(pool, &stats));
    CHECK(stats.threads == 3);
    finish(pool);
    setenv("PACELINE_POOL_THREADS", "1", 1);
    OK(pace_pool_config_load(&own, path, true));
    OK(pace_pool_new(&own, &pool));
    OK(pace_pool_stats(pool, &stats));
    CHECK(stats.threads == 2);
    finish(pool);
    unsetenv("PACELINE_POOL_THREADS");
    write_file(
        path,
        "{\"pool\": {\"leaders\": 2, \"source\": \"ring\", \"promotion\": \"eager\","
        " \"watch_period\": \"1ms\", \"spin\": \"5us\", \"max_turn\": \"2ms\", \"lane_capacity\": 16, "
        "\"strand_capacity\": 32,"
        " \"max_handles\": 64, \"stack_size\": \"128 KiB\", \"pin\": \"0,2-3\", \"pin_strict\": true,"
        " \"name\": \"own\"}}");
    OK(pace_pool_config_load(&own, path, false));
    CHECK(own.threads == 1 && own.leaders == 2 && own.source == PACE_SOURCE_RING);
    CHECK(own.promotion == PACE_PROMOTION_EAGER && own.watch_period_ns == 1000000 &&
          own.spin_ns == 5000 && own.max_turn_ns == 2000000);
    CHECK(own.lane_capacity == 16 && own.strand_capacity == 32 && own.max_handles == 64);
    CHECK(own.stack_size == 128 << 10 && own.pin_strict);
    CHECK(strcmp(own.pin, "0,2-3") == 0 && strcmp(own.name, "own") == 0);
    own.struct_size = 3;
    SAYS(PACE_EVERSION, pace_pool_config_load(&own, path, false));
    OK(pace_pool_config_init(&own, sizeof own));
    write_file(path, "{\"pool\": {\"threads\": -3, \"pinn\": 1}}");
    SAYS(PACE_EINVAL, pace_pool_config_load(&own, path, false));
    TELLS("pool.threads");
    TELLS("pool.pinn");
    CHECK(own.threads == PACE_DEFAULT);
    unlink(path);
    SAYS(PACE_EINVAL, pace_pool_config_load(&own, path, false));
    TELLS(path);

    /* Of worker pools: what code says last wins over the environment, that over the file. */
    pace_workers_config_t config;
    pace_workers_t *workers = NULL;
    write_file(path, "{\"workers\": {\"min_active\": 1, \"full\": \"reject\", \"max_droppable\": 5,"
                     " \"max_waiting\": 6}}");
    setenv("PACELINE_WORKERS_MAX_WAITING", "7", 1);
    SAYS(PACE_EINVAL, pace_workers_config_load(NULL, path, false));
    memset(&config, 0, sizeof config);
    SAYS(PACE_EVERSION, pace_workers_config_load(&config, path, false));
    OK(pace_workers_config_init(&config, sizeof config));
    OK(pace_workers_config_load(&config, NULL, false));
    CHECK(!config.scaling && config.full == PACE_OVERLOAD_DEFAULT && config.max_waiting == 65536);
    OK(pace_workers_config_load(&config, path, true));
    CHECK(config.scaling && config.min_active == 1 && config.max_droppable == 5);
    CHECK(config.full == PACE_OVERLOAD_REJECT && config.max_waiting == 7);
    OK(pace_workers_config_load(&config, path, false));
    CHECK(config.max_waiting == 6);
    const char *names[3] = {"wait", "run_here", "drop_oldest"};
    for (uint32_t full = 0; full < 3; full++) {
        char text[64];
        snprintf(text, sizeof text, "{\"workers\": {\"full\": \"%s\"}}", names[full]);
        write_file(path, text);
        OK(pace_workers_config_load(&config, path, false));
        CHECK(config.full == PACE_OVERLOAD_WAIT + full);
        CHECK(config.full_wait_ns == (full == 0 ? PACE_FOREVER : 0));
        CHECK(config.max_waiting == 6);
    }
    write_file(path, "{\"workers\": {\"max_waiting\": 0, \"min_actve\": 1}}");
    SAYS(PACE_EINVAL, pace_workers_config_load(&config, path, false));
    TELLS("workers.max_waiting");
    TELLS("workers.min_actve");
    CHECK(config.max_waiting == 6);
    unsetenv("PACELINE_WORKERS_MAX_WAITING");
    unlink(path);
    config.full = 9;
    pool = pool_of(2);
    SAYS(PACE_EINVAL, pace_workers_new(pool, &config, &workers));
    TELLS("full is 9");
    config.full = PACE_OVERLOAD_REJECT;
    OK(pace_workers_new(pool, &config, &workers));
    settle(workers, true);
    finish(pool);
}

/* --- signals ----------------------------------------------------------------------------------- */

static void note_signal(void *data, int32_t signal) { atomic_store((atomic_int *)data, signal); }

static void waits_for_a_signal(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    int32_t signal = 0;
    (void)attempt;
    SAYS(PACE_EDEADLOCK, pace_signals_wait((pace_signals_t *)data, &signal));
    *outcome = 0;
}

static void signals(void) {
    const int32_t user = SIGUSR1, kill_it = SIGKILL;
    pace_signals_t *own = NULL, *term = NULL;
    atomic_int seen = 0;
    counts_t counts = {0};
    int32_t signal = 0;
    pace_task_t task = {0};
    pace_pool_t *pool = pool_of(2);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "signals");
    SAYS(PACE_EINVAL, pace_signals_new(pool, &kill_it, 1, note_signal, &seen, count_drop, &own));
    TELLS("signal is 9");
    SAYS(PACE_EINVAL, pace_signals_new(pool, NULL, 0, note_signal, &seen, count_drop, &own));
    SAYS(PACE_EINVAL, pace_signals_new(pool, NULL, 1, note_signal, &seen, count_drop, &own));
    SAYS(PACE_EINVAL, pace_signals_new(pool, &user, 1, NULL, &seen, count_drop, &own));
    OK(pace_signals_new(pool, &user, 1, note_signal, &seen, NULL, &own));
    OK(pace_signals_shut_down(pool, 3600 * SECOND, &term));
    OK(pace_workers_submit(workers, kind, waits_for_a_signal, own, NULL, NULL, &task));
    CHECK(wait_for(workers, task).status == PACE_TASK_COMPLETED);
    CHECK(kill(getpid(), SIGUSR1) == 0);
    OK(pace_signals_wait(own, &signal));
    CHECK(signal == SIGUSR1 && atomic_load(&seen) == SIGUSR1);
    CHECK(kill(getpid(), SIGTERM) == 0);
    OK(pace_signals_wait(term, &signal));
    CHECK(signal == SIGTERM);
    SAYS(PACE_ESHUTDOWN, pace_workers_submit(workers, kind, third, &counts, NULL, NULL, NULL));
    pace_task_type_free(kind);
    pace_workers_free(workers);
    finish(pool);
    SAYS(PACE_ESHUTDOWN, pace_signals_wait(own, &signal));
    pace_signals_free(own);
    pace_signals_free(term);
}

/* --- shutdown --------------------------------------------------------------------------------- */

typedef struct lines {
    uint64_t completed, cancelled, stuck;
    uint32_t thread;
    char hooks[8];
} lines_t;

static void note_line(void *data, uint32_t what, const char *name, uint64_t count, uint32_t thread) {
    lines_t *lines = (lines_t *)data;
    CHECK(strcmp(name, "work") == 0);
    if (what == PACE_ENDED_COMPLETED) lines->completed += count;
    if (what == PACE_ENDED_CANCELLED) lines->cancelled += count;
    if (what == PACE_ENDED_STUCK) {
        lines->stuck += count;
        lines->thread = thread;
    }
}

static lines_t lines;

static void first_hook(void *data) {
    (void)data;
    strcat(lines.hooks, "1");
}

static void last_hook(void *data) {
    (void)data;
    strcat(lines.hooks, "2");
}

static void requests_it(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    pace_workers_report_t report = {0};
    report.struct_size = sizeof report;
    (void)attempt;
    OK(pace_workers_shutdown((pace_workers_t *)data, 0, 0, 0, &report, NULL, NULL));
    CHECK(report.requested);
    *outcome = 0;
}

typedef struct ended {
    counts_t hook;
    pthread_t caller;
    int hooks, completed;
} ended_t;

static void note_ended(void *data, uint32_t what, const char *name, uint64_t count, uint32_t thread) {
    ended_t *ended = (ended_t *)data;
    CHECK(thread == PACE_NONE && (what == PACE_ENDED_HOOK || what == PACE_ENDED_COMPLETED));
    if (what == PACE_ENDED_COMPLETED) {
        CHECK(strcmp(name, "work") == 0);
        ended->completed += (int)count;
    } else {
        CHECK(strcmp(name, "slow") == 0 || strcmp(name, "first") == 0);
        ended->hooks += (int)count;
    }
}

/* In the thread that shuts down, if none of the pool has come in time, it is waited for. */
static void slow_hook(void *data) {
    ended_t *ended = (ended_t *)data;
    int32_t outcome;
    if (!pthread_equal(pthread_self(), ended->caller)) count_gated(&ended->hook, &outcome);
}

static void drop_ended(void *data) { count_drop(&((ended_t *)data)->hook); }

typedef struct ender {
    pace_workers_t *workers;
    pace_workers_report_t report;
    ended_t ended;
} ender_t;

static void *ends_it(void *data) {
    ender_t *ender = (ender_t *)data;
    OK(pace_workers_shutdown(ender->workers, 3600 * SECOND, 3600 * SECOND, 0, &ender->report, note_ended,
                             &ender->ended));
    return NULL;
}

/* A hook that does not return in its time is told of, and keeps what it was given until it has; one for
 * which there is no time is told of, too. False: no thread of the pool has come to it in time. */
static bool is_left_alone(pace_pool_t *pool, ended_t *ended) {
    pace_workers_t *workers = workers_of(pool);
    pace_workers_report_t report = {0};
    memset(ended, 0, sizeof *ended);
    ended->caller = pthread_self();
    report.struct_size = sizeof report;
    OK(pace_workers_on_shutdown(workers, "first", slow_hook, ended, NULL));
    OK(pace_workers_on_shutdown(workers, "slow", slow_hook, ended, drop_ended));
    OK(pace_workers_shutdown(workers, 0, 3600 * SECOND, 20 * MILLI, &report, note_ended, ended));
    bool left_alone = atomic_load(&ended->hook.drops) == 0;
    CHECK(!left_alone || (report.drained && report.failed_hooks == 2 && ended->hooks == 2));
    atomic_store(&ended->hook.gate, true);
    pace_workers_free(workers);
    return left_alone;
}

/* And so is what completes meanwhile. */
static void hooks_without_time(void) {
    pace_pool_t *pool = pool_of(2);
    ended_t ended;
    UNTIL(is_left_alone(pool, &ended));

    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "work");
    ender_t ender = {.workers = workers};
    ender.ended.caller = pthread_self();
    counts_t gate = {0}, counts = {0};
    pthread_t thread;
    ender.report.struct_size = sizeof ender.report;
    OK(pace_workers_on_shutdown(workers, "first", slow_hook, &ender.ended, NULL));
    for (int i = 0; i < 2; i++)
        OK(pace_workers_submit(workers, kind, waits_for_gate, &gate, NULL, NULL, NULL));
    UNTIL(atomic_load(&gate.runs) == 2);
    for (int i = 0; i < 3; i++) OK(pace_workers_submit(workers, kind, third, &counts, NULL, NULL, NULL));
    CHECK(pthread_create(&thread, NULL, ends_it, &ender) == 0);
    pace_status_t status;
    /* What is refused says that it has begun. */
    while ((status = pace_workers_submit(workers, kind, third, &counts, NULL, NULL, NULL)) == PACE_OK)
        check_nap();
    CHECK(status == PACE_ESHUTDOWN);
    atomic_store(&gate.gate, true);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(ender.report.drained && ender.report.failed_hooks == 1 && ender.ended.hooks == 1);
    CHECK(ender.report.completed == (uint64_t)ender.ended.completed && ender.ended.completed >= 5);
    pace_task_type_free(kind);
    pace_workers_free(workers);
    finish(pool);
    CHECK(atomic_load(&ended.hook.drops) == 1 && atomic_load(&ender.ended.hook.runs) == 0);
}

static void shut_down(void) {
    pace_pool_t *pool = pool_of(1);
    pace_workers_t *workers = workers_of(pool);
    pace_task_type_t *kind = kind_of(workers, "work");
    pace_workers_report_t report = {0};
    counts_t gate = {0}, counts = {0};
    report.struct_size = sizeof report;
    OK(pace_workers_on_shutdown(workers, "first", first_hook, &counts, count_drop));
    OK(pace_workers_on_shutdown(workers, "last", last_hook, &counts, count_drop));
    SAYS(PACE_EINVAL, pace_workers_on_shutdown(workers, "none", NULL, &counts, count_drop));
    OK(pace_workers_submit(workers, kind, third, &counts, count_drop, NULL, NULL));
    OK(pace_workers_submit(workers, kind, requests_it, workers, NULL, NULL, NULL));
    atomic_store(&gate.gate, true);
    UNTIL(pace_workers_submit(workers, kind, waits_for_gate, &gate, NULL, NULL, NULL) == PACE_ESHUTDOWN);
    OK(pace_workers_shutdown(workers, 3600 * SECOND, SECOND, SECOND, &report, note_line, &lines));
    CHECK(report.drained && report.stuck == 0 && report.failed_hooks == 0);
    CHECK(strcmp(lines.hooks, "21") == 0 && lines.cancelled == 0 && lines.stuck == 0);
    CHECK(lines.completed == report.completed);
    pace_task_type_free(kind);
    pace_workers_free(workers);
    UNTIL(atomic_load(&counts.drops) == 3);

    workers = workers_of(pool);
    kind = kind_of(workers, "work");
    atomic_store(&gate.gate, false);
    atomic_store(&gate.runs, 0);
    OK(pace_workers_submit(workers, kind, waits_for_gate, &gate, count_drop, NULL, NULL));
    UNTIL(atomic_load(&gate.runs) == 1);
    for (int i = 0; i < 3; i++)
        OK(pace_workers_submit(workers, kind, third, &counts, count_drop, NULL, NULL));
    memset(&lines, 0, sizeof lines);
    OK(pace_workers_shutdown(workers, MILLI, MILLI, 0, &report, note_line, &lines));
    CHECK(!report.drained && report.cancelled == 3 && report.stuck == 1);
    CHECK(lines.cancelled == 3 && lines.stuck == 1 && lines.thread == 0);
    atomic_store(&gate.gate, true);
    pace_task_type_free(kind);
    pace_workers_free(workers);
    pace_workers_free(NULL);
    finish(pool);
    CHECK(atomic_load(&counts.drops) == 6 && atomic_load(&gate.drops) == 1);
}

static void settings(void) {
    pace_pool_t *pool = pool_of(2);
    pace_workers_config_t config;
    pace_workers_t *workers = NULL;
    OK(pace_workers_config_init(&config, sizeof config));
    config.max_tasks = 0;
    SAYS(PACE_EINVAL, pace_workers_new(pool, &config, &workers));
    TELLS("max_tasks is 0");
    config.max_tasks = 1;
    config.max_queued = 0;
    SAYS(PACE_EINVAL, pace_workers_new(pool, &config, &workers));
    TELLS("max_queued is 0");
    config.max_queued = 1;
    config.max_waiting = 0;
    SAYS(PACE_EINVAL, pace_workers_new(pool, &config, &workers));
    TELLS("max_waiting is 0");
    config.max_waiting = 1;
    config.scaling = true;
    config.scaling_percentile = 0;
    SAYS(PACE_EINVAL, pace_workers_new(pool, &config, &workers));
    TELLS("percentile");
    config.scaling_percentile = 99;
    config.reserved[1] = 1;
    SAYS(PACE_EINVAL, pace_workers_new(pool, &config, &workers));
    config.reserved[1] = 0;
    OK(pace_workers_new(pool, &config, &workers));
    pace_task_type_t *kind = kind_of(workers, "few");
    OK(pace_workers_submit_tagged(workers, kind, 1, NULL, NULL));
    SAYS(PACE_EFULL, pace_workers_submit_tagged(workers, kind, 2, NULL, NULL));
    const uint64_t tags[3] = {3, 4, 5};
    size_t accepted = 55;
    SAYS(PACE_EFULL, pace_workers_submit_tagged_batch(workers, kind, tags, 3, NULL, NULL, &accepted));
    CHECK(accepted == 0);
    pace_task_type_free(kind);
    pace_workers_free(workers);
    finish(pool);
}

int main(int argc, char **argv) {
    (void)argv;
    check_begin();
    if (argc > 1) tagged_tasks = 2000;
    settings();
    outcomes();
    options();
    kinds();
    no_limit_has_one_spelling();
    settings_of_kinds();
    settings_of_tasks();
    times();
    bounds();
    room();
    overlapping();
    batches();
    broken_batches();
    posts_and_policies();
    told();
    around();
    logged();
    tagged();
    leased();
    heartbeats();
    books();
    of_each_worker();
    first_names();
    scaled();
    hosts();
    periodic();
    ends();
    ends_that_ask();
    /* What reads the system's figures looks for the auxiliary vector where valgrind has put another. */
    if (argc == 1) figures();
    from_a_file();
    a_service_from_files();
    shut_down();
    hooks_without_time();
    signals();
    return 0;
}
