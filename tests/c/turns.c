/* Turns: no backlog keeps a thread from what else is ready, and a pool without threads loses nothing. */
#include "check.h"

enum { THREADS = 2, MESSAGES = 20000 };

/* What the handlers of a backlog have done, and what they do when the test has seen enough. */
typedef struct backlog {
    atomic_int runs;
    atomic_bool enough;
} backlog_t;

static void work(backlog_t *backlog) {
    atomic_fetch_add(&backlog->runs, 1);
    if (!atomic_load(&backlog->enough)) {
        struct timespec time = {0, MILLI};
        nanosleep(&time, NULL);
    }
}

static void work_message(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)message;
    work((backlog_t *)data);
    *outcome = 0;
}

static void work_task(void *data, int32_t *outcome) {
    work((backlog_t *)data);
    *outcome = 0;
}

static int32_t read_all(void *data, pace_handle_t handle, int32_t fd, uint32_t ready) {
    char bytes[16];
    (void)handle;
    (void)ready;
    while (read(fd, bytes, sizeof bytes) > 0) {
    }
    atomic_fetch_add(&((counts_t *)data)->runs, 1);
    return PACE_FLOW_WAIT;
}

static void hold(pace_pool_t *pool, counts_t *gate) {
    for (int i = 0; i < THREADS; i++)
        OK(pace_pool_post(pool, PACE_LANE_NORMAL, count_gated, gate, NULL));
    UNTIL(atomic_load(&gate->runs) == THREADS);
}

/* Goal: a descriptor, a timer and an urgent task are served while as many backlogs as threads are at work. Each must come
 * before half of these is done. */
static void serves_beside(pace_pool_t *pool, backlog_t *backlog, counts_t *gate) {
    counts_t piped = {0}, timed = {0}, urgent = {0};
    pace_handle_t handle;
    int ends[2];
    make_pipe(ends);
    OK(pace_pool_register(pool, ends[0], NULL, read_all, &piped, NULL, &handle));
    UNTIL(write(ends[1], "x", 1) == 1);
    atomic_store(&gate->gate, true);
    UNTIL(atomic_load(&backlog->runs) >= 2 * THREADS);
    int before = atomic_load(&piped.runs);
    CHECK(write(ends[1], "x", 1) == 1);
    OK(pace_pool_after(pool, 0, count_run, &timed, NULL, NULL));
    OK(pace_pool_post(pool, PACE_LANE_CRITICAL, count_run, &urgent, NULL));
    UNTIL(atomic_load(&urgent.runs) && atomic_load(&timed.runs) && atomic_load(&piped.runs) > before);
    CHECK(atomic_load(&backlog->runs) < MESSAGES / 2);
    atomic_store(&backlog->enough, true);
    OK(pace_handle_deregister(pool, handle));
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void subscriptions(void) {
    static const char *const keys[THREADS] = {"a", "b"};
    pace_pool_t *pool = pool_of(THREADS);
    pace_hub_t *hub;
    pace_subscription_options_t options;
    pace_receipt_t receipt = {0};
    backlog_t backlog = {0};
    counts_t gate = {0};
    receipt.struct_size = sizeof receipt;
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_subscription_options_init(&options, sizeof options));
    options.capacity = MESSAGES;
    for (int i = 0; i < THREADS; i++)
        OK(pace_hub_subscribe(hub, keys[i], &options, work_message, &backlog, NULL, NULL));
    hold(pool, &gate);
    for (int i = 0; i < MESSAGES; i++) OK(pace_hub_publish(hub, keys[i % THREADS], "x", 1, 0, &receipt));
    serves_beside(pool, &backlog, &gate);
    UNTIL(atomic_load(&backlog.runs) == MESSAGES);
    pace_hub_free(hub);
    finish(pool);
}

static void strands(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    pace_strand_t strand[THREADS];
    backlog_t backlog = {0};
    counts_t gate = {0};
    OK(pace_pool_config_init(&config, sizeof config));
    config.threads = THREADS;
    config.strand_capacity = MESSAGES;
    config.max_turn_ns = 100000;
    OK(pace_pool_new(&config, &pool));
    for (int i = 0; i < THREADS; i++) OK(pace_strand_new(pool, &strand[i]));
    hold(pool, &gate);
    for (int i = 0; i < MESSAGES; i++)
        OK(pace_strand_post(pool, strand[i % THREADS], work_task, &backlog, NULL));
    serves_beside(pool, &backlog, &gate);
    finish(pool);
    CHECK(atomic_load(&backlog.runs) == MESSAGES);
}

static pace_pool_t *hosted(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    OK(pace_pool_config_init(&config, sizeof config));
    config.threads = 0;
    OK(pace_pool_new(&config, &pool));
    return pool;
}

/* A join without time has one turn; one with a time ends after it. The tasks take longer than a turn. */
static void stays_are_bounded(void) {
    pace_pool_t *pool = hosted();
    backlog_t backlog = {0};
    uint64_t ran;
    for (int i = 0; i < 500; i++) OK(pace_pool_post(pool, PACE_LANE_NORMAL, work_task, &backlog, NULL));
    OK(pace_pool_join(pool, 0, &ran));
    CHECK(ran >= 1 && ran <= 4);
    OK(pace_pool_join(pool, 5 * MILLI, &ran));
    CHECK(ran >= 1 && ran <= 10);
    atomic_store(&backlog.enough, true);
    while (atomic_load(&backlog.runs) < 500) OK(pace_pool_join(pool, 0, &ran));
    finish(pool);
}

/* Who ends a pool that nobody drives runs what was accepted. */
static void nothing_is_lost_without_threads(void) {
    for (int frees = 0; frees < 2; frees++) {
        pace_pool_t *pool = hosted();
        pace_strand_t strand;
        counts_t counts = {0};
        OK(pace_strand_new(pool, &strand));
        for (int i = 0; i < 5; i++) {
            OK(pace_pool_post(pool, PACE_LANE_NORMAL, count_run, &counts, count_drop));
            OK(pace_strand_post(pool, strand, count_run, &counts, count_drop));
        }
        if (frees)
            pace_pool_free(pool);
        else
            finish(pool);
        CHECK(atomic_load(&counts.runs) == 10 && atomic_load(&counts.drops) == 10);
    }
}

int main(void) {
    check_begin();
    subscriptions();
    strands();
    stays_are_bounded();
    nothing_is_lost_without_threads();
    return 0;
}
