/* Tasks: outcomes, inline bytes, batches, cancelling, drops, books. */
#include "check.h"

static void reports_7(void *data, int32_t *outcome) {
    (void)data;
    CHECK(*outcome == PACE_EFAILED);
    *outcome = 7;
}

static void reports_nothing(void *data, int32_t *outcome) { (void)data, (void)outcome; }

static atomic_uint sum;

static void fails_with_bytes(void *bytes, size_t size, int32_t *outcome) {
    CHECK(bytes != NULL && size == 0);
    *outcome = 3;
}

static void add_bytes(void *bytes, size_t size, int32_t *outcome) {
    CHECK((uintptr_t)bytes % 8 == 0);
    for (size_t i = 0; i < size; i++) atomic_fetch_add(&sum, ((unsigned char *)bytes)[i]);
    *outcome = 0;
}

static void outcomes(void) {
    pace_pool_t *pool = pool_of(2);
    pace_task_t task = {0};
    int32_t outcome = 99;
    bool flag = true;
    counts_t counts = {0};
    OK(pace_pool_submit(pool, PACE_LANE_HIGH, reports_7, NULL, NULL, &task));
    OK(pace_task_wait(pool, task, PACE_FOREVER, &outcome));
    CHECK(outcome == 7);
    SAYS(PACE_ESTALE, pace_task_wait(pool, task, 0, &outcome));
    SAYS(PACE_ESTALE, pace_task_is_done(pool, task, &flag));
    SAYS(PACE_ESTALE, pace_task_cancel(pool, task, &flag));
    SAYS(PACE_ESTALE, pace_task_detach(pool, task));
    CHECK(flag && outcome == 7);

    OK(pace_pool_submit(pool, PACE_LANE_LOW, reports_nothing, NULL, NULL, &task));
    OK(pace_task_wait(pool, task, PACE_FOREVER, &outcome));
    CHECK(outcome == PACE_EFAILED);

    OK(pace_pool_submit(pool, PACE_LANE_NORMAL, count_gated, &counts, count_drop, &task));
    SAYS(PACE_ETIMEDOUT, pace_task_wait(pool, task, 0, &outcome));
    SAYS(PACE_ETIMEDOUT, pace_task_wait(pool, task, MILLI, &outcome));
    OK(pace_task_is_done(pool, task, &flag));
    CHECK(!flag && atomic_load(&counts.drops) == 0);
    atomic_store(&counts.gate, true);
    OK(pace_task_wait(pool, task, PACE_FOREVER, &outcome));
    CHECK(outcome == 0 && atomic_load(&counts.drops) == 1);

    pace_audit_t audit = {0};
    audit.struct_size = sizeof audit;
    /* A task is counted by its thread after its end, which may be known before. */
    UNTIL((OK(pace_pool_audit(pool, &audit)), audit.failed == 2));
    OK(pace_pool_post_bytes(pool, PACE_LANE_NORMAL, fails_with_bytes, NULL, 0));
    UNTIL((OK(pace_pool_audit(pool, &audit)), audit.failed == 3));
    finish(pool);
}

static void ways_in(void) {
    pace_pool_t *pool = pool_of(2);
    counts_t counts = {0};
    pace_task_t task = {0};
    for (uint32_t lane = 0; lane < 4; lane++) {
        OK(pace_pool_post(pool, lane, count_run, &counts, count_drop));
        OK(pace_pool_try_post(pool, lane, count_run, &counts, count_drop));
        OK(pace_pool_submit(pool, lane, count_run, &counts, count_drop, &task));
        OK(pace_task_detach(pool, task));
        OK(pace_pool_try_submit(pool, lane, count_run, &counts, count_drop, &task));
        OK(pace_task_wait(pool, task, PACE_FOREVER, NULL));
    }
    SAYS(PACE_EINVAL, pace_pool_post(pool, 4, count_run, &counts, count_drop));
    SAYS(PACE_EINVAL, pace_pool_post(pool, 0, NULL, &counts, count_drop));
    TELLS("run is NULL");

    unsigned char bytes[40];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i + 1);
    for (size_t size = 0; size <= PACE_INLINE_BYTES; size++)
        OK(pace_pool_post_bytes(pool, 2, add_bytes, size == 0 ? NULL : bytes, size));
    SAYS(PACE_EINVAL, pace_pool_post_bytes(pool, 2, add_bytes, bytes, PACE_INLINE_BYTES + 1));
    SAYS(PACE_EINVAL, pace_pool_post_bytes(pool, 2, add_bytes, NULL, 1));
    unsigned expected = 0;
    for (unsigned size = 0; size <= PACE_INLINE_BYTES; size++) expected += size * (size + 1) / 2;
    UNTIL(atomic_load(&sum) == expected);

    pace_work_t work[100];
    size_t accepted = 55;
    for (size_t i = 0; i < 100; i++) work[i] = (pace_work_t){count_run, &counts, count_drop};
    OK(pace_pool_post_batch(pool, 2, work, 100, &accepted));
    CHECK(accepted == 100);
    OK(pace_pool_post_batch(pool, 2, NULL, 0, &accepted));
    CHECK(accepted == 0);
    work[99].run = NULL;
    accepted = 55;
    SAYS(PACE_EINVAL, pace_pool_post_batch(pool, 2, work, 100, &accepted));
    TELLS("work[99].run");
    CHECK(accepted == 55);
    SAYS(PACE_EINVAL, pace_pool_post_batch(pool, 2, work, SIZE_MAX, &accepted));
    finish(pool);
    CHECK(atomic_load(&counts.runs) == 116 && atomic_load(&counts.drops) == 116);
}

/* What does not fit is the caller's still, and is not dropped. */
static void full(void) {
    pace_pool_config_t config;
    pace_pool_t *pool = NULL;
    counts_t gate = {0}, counts = {0};
    size_t accepted = 0;
    pace_work_t work[8];
    pace_task_t task = {0};
    OK(pace_pool_config_init(&config, sizeof config));
    config.threads = 0; /* nobody takes anything out */
    config.max_turn_ns = SECOND;
    config.lane_capacity = 4;
    OK(pace_pool_new(&config, &pool));
    (void)gate;
    for (int i = 0; i < 4; i++) OK(pace_pool_try_post(pool, 2, count_run, &counts, count_drop));
    SAYS(PACE_EFULL, pace_pool_try_post(pool, 2, count_run, &counts, count_drop));
    TELLS("the normal lane of the pool is full (4); what helps: a larger lane_capacity");
    SAYS(PACE_EFULL, pace_pool_try_submit(pool, 2, count_run, &counts, count_drop, &task));
    CHECK(task.id == 0 && atomic_load(&counts.drops) == 0);
    for (size_t i = 0; i < 8; i++) work[i] = (pace_work_t){count_run, &counts, count_drop};
    uint64_t ran = 0;
    OK(pace_pool_join(pool, 0, &ran));
    CHECK(ran == 4 && atomic_load(&counts.drops) == 4);
    OK(pace_pool_shutdown(pool, 0, NULL));
    SAYS(PACE_ESHUTDOWN, pace_pool_post_batch(pool, 2, work, 8, &accepted));
    CHECK(accepted == 0 && atomic_load(&counts.drops) == 4);
    pace_pool_free(pool);
}

typedef struct batch {
    pace_pool_t *pool;
    counts_t *counts;
    size_t accepted;
    pace_status_t status;
} batch_t;

static void batch_inside(void *data, int32_t *outcome) {
    batch_t *batch = (batch_t *)data;
    pace_work_t work[100];
    for (size_t i = 0; i < 100; i++) work[i] = (pace_work_t){count_run, batch->counts, count_drop};
    batch->status = pace_pool_post_batch(batch->pool, 3, work, 100, &batch->accepted);
    *outcome = 0;
}

static void full_batch(void) {
    pace_pool_config_t config;
    counts_t counts = {0};
    batch_t batch = {NULL, &counts, 0, PACE_OK};
    pace_task_t task;
    OK(pace_pool_config_init(&config, sizeof config));
    config.threads = 1;
    config.lane_capacity = 64;
    OK(pace_pool_new(&config, &batch.pool));
    OK(pace_pool_submit(batch.pool, 2, batch_inside, &batch, NULL, &task));
    OK(pace_task_wait(batch.pool, task, PACE_FOREVER, NULL));
    CHECK(batch.status == PACE_EFULL && batch.accepted == 64);
    finish(batch.pool);
    CHECK(atomic_load(&counts.runs) == 64 && atomic_load(&counts.drops) == 64);
}

typedef struct wait {
    pace_pool_t *pool;
    pace_task_t task;
    pace_status_t status;
} wait_t;

static void *wait_for(void *data) {
    wait_t *wait = (wait_t *)data;
    do wait->status = pace_task_wait(wait->pool, wait->task, PACE_FOREVER, NULL);
    while (wait->status == PACE_EBUSY);
    return NULL;
}

static void wait_inside(void *data, int32_t *outcome) {
    wait_for(data);
    *outcome = 0;
}

static void cancelling_and_waiting(void) {
    pace_pool_t *pool = pool_of(1);
    counts_t gate = {0}, counts = {0};
    pace_task_t first, second;
    bool flag = false;
    OK(pace_pool_submit(pool, 2, count_gated, &gate, count_drop, &first));
    UNTIL(atomic_load(&gate.runs) == 1);
    OK(pace_pool_submit(pool, 2, count_run, &counts, count_drop, &second));
    OK(pace_task_cancel(pool, first, &flag));
    CHECK(!flag);
    OK(pace_task_cancel(pool, second, &flag));
    CHECK(flag);

    /* One waits; others may look, but neither wait nor detach. */
    wait_t wait = {pool, first, PACE_EFAILED};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for, &wait) == 0);
    UNTIL(pace_task_detach(pool, (pace_task_t){0}) == PACE_ESTALE &&
          pace_task_wait(pool, first, MILLI, NULL) == PACE_EBUSY);
    SAYS(PACE_EBUSY, pace_task_detach(pool, first));
    OK(pace_task_is_done(pool, first, &flag));
    CHECK(!flag);
    atomic_store(&gate.gate, true);
    CHECK(pthread_join(thread, NULL) == 0 && wait.status == PACE_OK);
    SAYS(PACE_ECANCELLED, pace_task_wait(pool, second, PACE_FOREVER, NULL));
    CHECK(atomic_load(&counts.runs) == 0 && atomic_load(&counts.drops) == 1);

    /* The only thread cannot wait for what it would have to run itself. */
    counts_t never = {0};
    OK(pace_pool_after(pool, 3600 * SECOND, count_run, &never, count_drop, NULL));
    wait_t inside = {pool, {0}, PACE_OK};
    pace_task_t outer;
    counts_t hold = {0};
    OK(pace_pool_post(pool, 2, count_gated, &hold, NULL));
    UNTIL(atomic_load(&hold.runs) == 1);
    OK(pace_pool_submit(pool, 2, wait_inside, &inside, NULL, &outer));
    OK(pace_pool_submit(pool, 3, count_run, &counts, count_drop, &inside.task));
    atomic_store(&hold.gate, true);
    OK(pace_task_wait(pool, outer, PACE_FOREVER, NULL));
    CHECK(inside.status == PACE_EDEADLOCK);
    OK(pace_task_wait(pool, inside.task, PACE_FOREVER, NULL));
    OK(pace_pool_shutdown(pool, 0, NULL));
    CHECK(atomic_load(&never.drops) == 1 && atomic_load(&never.runs) == 0);
    pace_pool_free(pool);
}

int main(void) {
    check_begin();
    outcomes();
    ways_in();
    full();
    full_batch();
    cancelling_and_waiting();
    return 0;
}
