/* What no program should do, and some do: whatever the header does not forbid ends well, and what it
 * answers with a status is answered so. */
#include "check.h"

static pace_pool_t *pool;
static counts_t counts;

#define C &counts, count_drop

static void start(uint32_t threads) {
    atomic_store(&counts.runs, 0);
    atomic_store(&counts.drops, 0);
    atomic_store(&counts.gate, false);
    pool = pool_of(threads);
}

static void wait_for_gate(void) { UNTIL(atomic_load(&counts.gate)); }

/* --- arguments ---------------------------------------------------------------------------------- */

/* Packed structs and casts of char arrays are how this happens. */
static void structs_that_are_not_aligned(void) {
    union {
        uint64_t words[64];
        char bytes[512];
    } memory = {{0}};
    void *odd = memory.bytes + 1;
    size_t count;
    pace_cq_t *cq;
    start(1);
    OK(pace_cq_new(pool, NULL, &cq));
    SAYS(PACE_EINVAL, pace_pool_config_init((pace_pool_config_t *)odd, sizeof(pace_pool_config_t)));
    TELLS("aligned");
    SAYS(PACE_EINVAL, pace_pool_new((pace_pool_config_t *)odd, &pool));
    SAYS(PACE_EINVAL, pace_pool_audit(pool, (pace_audit_t *)odd));
    SAYS(PACE_EINVAL, pace_pool_post_batch(pool, 2, (pace_work_t *)odd, 1, &count));
    SAYS(PACE_EINVAL, pace_cq_post(cq, (uint64_t *)odd, 1, &count));
    SAYS(PACE_EINVAL, pace_cq_after(cq, 0, 1, (pace_timer_t *)odd));
    SAYS(PACE_EINVAL, pace_cq_wait(cq, (pace_cq_entry_t *)odd, 1, 0, &count));
    SAYS(PACE_EINVAL, pace_cq_done(cq, (pace_cq_entry_t *)odd, 1));
    SAYS(PACE_EINVAL, pace_cq_complete(cq, (pace_cq_completion_t *)odd, 1));
    pace_cq_free(cq);
    CHECK(atomic_load(&counts.runs) == 0 && atomic_load(&counts.drops) == 0);
    finish(pool);
}

static void sizes_that_are_too_large(void) {
    pace_queue_t *queue;
    pace_ring_t *ring;
    pace_cq_t *cq;
    pace_cq_entry_t entry;
    pace_cq_completion_t completion = {0};
    uint64_t items[2] = {7, 8};
    size_t count = 0;
    start(1);
    SAYS(PACE_EINVAL, pace_queue_new(256, SIZE_MAX, &queue));
    SAYS(PACE_EINVAL, pace_queue_new(SIZE_MAX, 8, &queue));
    SAYS(PACE_EINVAL, pace_ring_serial(pool, SIZE_MAX, 8, NULL, C, &ring));
    SAYS(PACE_EINVAL, pace_pool_post_batch(pool, 2, (pace_work_t *)items, SIZE_MAX, &count));
    OK(pace_cq_new(pool, NULL, &cq));
    SAYS(PACE_EINVAL, pace_cq_post(cq, items, SIZE_MAX, &count));
    SAYS(PACE_EINVAL, pace_cq_complete(cq, &completion, SIZE_MAX));
    OK(pace_queue_new(8, 2, &queue));
    SAYS(PACE_EINVAL, pace_queue_push_batch(queue, items, SIZE_MAX, &count));
    OK(pace_queue_push_batch(queue, items, 2, &count));
    OK(pace_queue_pop_batch(queue, items, SIZE_MAX, 0, &count));
    CHECK(count == 2);
    OK(pace_cq_post(cq, items, 1, NULL));
    OK(pace_cq_wait(cq, &entry, SIZE_MAX, PACE_FOREVER, &count));
    CHECK(count == 1 && entry.tag == 7);
    pace_cq_free(cq);
    pace_queue_free(queue);
    finish(pool);
}

static void *push_later(void *queue) {
    uint64_t item = 1;
    check_nap();
    OK(pace_queue_push((pace_queue_t *)queue, &item, 0));
    return NULL;
}

static void *shut_down_later(void *data) {
    check_nap();
    OK(pace_pool_shutdown((pace_pool_t *)data, 0, NULL));
    return NULL;
}

/* Times whose sum with the clock is too large for it. */
static void times_without_end(void) {
    static const uint64_t times[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, INT64_MAX};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        pace_queue_t *queue;
        pace_timer_t timer;
        pthread_t other;
        uint64_t item;
        bool flag;
        OK(pace_queue_new(8, 2, &queue));
        CHECK(pthread_create(&other, NULL, push_later, queue) == 0);
        OK(pace_queue_pop(queue, &item, times[i]));
        CHECK(pthread_join(other, NULL) == 0);
        pace_queue_free(queue);

        start(0);
        CHECK(pthread_create(&other, NULL, shut_down_later, pool) == 0);
        pace_status_t status = pace_pool_join(pool, times[i], NULL);
        CHECK(status == PACE_OK || status == PACE_ESHUTDOWN);
        CHECK(pthread_join(other, NULL) == 0);
        pace_pool_free(pool);

        start(1);
        SAYS(PACE_EINVAL, pace_pool_after(pool, times[i], count_run, C, NULL));
        OK(pace_pool_after(pool, SECOND, count_run, C, &timer));
        OK(pace_timer_postpone(pool, timer, times[i], &flag));
        check_nap();
        OK(pace_timer_cancel(pool, timer, &flag));
        CHECK(flag && atomic_load(&counts.runs) == 0 && atomic_load(&counts.drops) == 1);
        finish(pool);
    }
}

/* --- from inside -------------------------------------------------------------------------------- */

static void free_in_task(void *data, int32_t *outcome) {
    (void)data;
    wait_for_gate();
    pace_pool_free(pool);
    *outcome = 0;
}

static int32_t free_in_ready(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)data, (void)self, (void)fd, (void)ready;
    wait_for_gate();
    pace_pool_free(pool);
    return PACE_FLOW_AGAIN;
}

static int32_t free_in_tick(void *data, pace_handle_t self) { return free_in_ready(data, self, 0, 0); }

static void free_in_events(void *data, const void *events, size_t stride, size_t count) {
    (void)data, (void)events, (void)stride, (void)count;
    wait_for_gate();
    pace_pool_free(pool);
}

static void free_in_drop(void *data) {
    wait_for_gate();
    pace_pool_free(pool);
    count_drop(data);
}

static void pools_that_are_freed_by_their_own_handlers(void) {
    int ends[2];
    uint64_t event = 1;
    make_pipe(ends);
    for (int i = 0; i < 60; i++) {
        pace_ring_t *ring = NULL;
        pace_handle_t handle;
        start(1 + (uint32_t)i % 3);
        switch (i % 6) {
        case 0: OK(pace_pool_post(pool, 2, free_in_task, C)); break;
        case 1: OK(pace_pool_after(pool, 0, free_in_task, C, NULL)); break;
        case 2: OK(pace_pool_every(pool, 1000, free_in_tick, C, &handle)); break;
        case 3: OK(pace_pool_register(pool, ends[1], NULL, free_in_ready, C, &handle)); break;
        case 4: OK(pace_pool_post(pool, 2, count_run, &counts, free_in_drop)); break;
        default:
            OK((i % 4 ? pace_ring_serial : pace_ring_concurrent)(pool, 8, 8, free_in_events, C, &ring));
            OK(pace_ring_publish(ring, &event));
        }
        atomic_store(&counts.gate, true);
        UNTIL(atomic_load(&counts.drops) == 1);
        pace_ring_free(ring);
    }
    close(ends[0]);
    close(ends[1]);
}

static pace_ring_t *own_ring;

static void free_own_ring(void *data, const void *events, size_t stride, size_t count) {
    (void)events, (void)stride, (void)count;
    wait_for_gate();
    if (atomic_fetch_add(&((counts_t *)data)->runs, 1) == 0) pace_ring_free(own_ring);
}

static void rings_that_are_freed_by_their_own_handlers(void) {
    uint64_t event = 1;
    for (int i = 0; i < 40; i++) {
        start(2);
        OK((i % 2 ? pace_ring_serial : pace_ring_concurrent)(pool, 8, 8, free_own_ring, C, &own_ring));
        OK(pace_ring_publish(own_ring, &event));
        atomic_store(&counts.gate, true);
        UNTIL(atomic_load(&counts.drops) == 1);
        finish(pool);
    }
}

static pace_handle_t own_handle;

static int32_t tick_once(void *data, pace_handle_t self) {
    SAYS(PACE_ECLOSING, pace_handle_deregister(pool, self));
    SAYS(PACE_ECLOSING, pace_handle_deregister(pool, self));
    return atomic_fetch_add(&((counts_t *)data)->runs, 1) % 4;
}

static void deregister_again(void *data) {
    bool open;
    pace_status_t status = pace_handle_deregister(pool, own_handle);
    CHECK(status == PACE_ESTALE || status == PACE_ECLOSING);
    OK(pace_handle_is_open(pool, own_handle, &open));
    count_drop(data);
}

static void handles_that_deregister_themselves(void) {
    start(2);
    for (int i = 1; i <= 40; i++) {
        pace_handle_t handle;
        OK(pace_pool_every(pool, 1000, tick_once, C, &handle));
        UNTIL(atomic_load(&counts.drops) == i);
        CHECK(atomic_load(&counts.runs) == i);
    }
    OK(pace_pool_every(pool, 1000 * SECOND, tick_once, &counts, deregister_again, &own_handle));
    OK(pace_handle_deregister(pool, own_handle));
    CHECK(atomic_load(&counts.drops) == 41);
    finish(pool);
}

/* Posts its successor, and tries whatever else a drop might try while the pool goes down. */
static void drop_that_is_busy(void *data) {
    pace_task_t task;
    pace_handle_t handle;
    bool more = atomic_fetch_add(&((counts_t *)data)->drops, 1) < 500;
    pace_status_t status = pace_pool_post(pool, 2, count_run, data, more ? drop_that_is_busy : NULL);
    CHECK(status == PACE_OK || status == PACE_ESHUTDOWN || status == PACE_EFULL);
    if (pace_pool_try_submit(pool, 2, count_run, data, NULL, &task) == PACE_OK) {
        status = pace_task_wait(pool, task, 0, NULL);
        if (status == PACE_ETIMEDOUT)
            OK(pace_task_detach(pool, task));
        else
            CHECK(status == PACE_OK || status == PACE_ECANCELLED);
    }
    if (pace_pool_every(pool, SECOND, tick_once, data, NULL, &handle) == PACE_OK) {
        status = pace_handle_deregister(pool, handle);
        CHECK(status == PACE_OK || status == PACE_ESTALE || status == PACE_ECLOSING);
    }
    OK(pace_promote_new_leader());
}

static void drops_that_are_busy(void) {
    for (int i = 0; i < 20; i++) {
        pace_strand_t strand;
        pace_audit_t audit = {0};
        audit.struct_size = sizeof audit;
        start(1 + (uint32_t)i % 2);
        OK(pace_strand_new(pool, &strand));
        for (int j = 0; j < 20; j++) {
            OK(pace_pool_post(pool, 2, count_run, &counts, drop_that_is_busy));
            OK(pace_strand_post(pool, strand, count_run, &counts, drop_that_is_busy));
            OK(pace_pool_after(pool, 1000 * SECOND, count_run, &counts, drop_that_is_busy, NULL));
        }
        OK(pace_pool_shutdown(pool, i % 3 ? 0 : MILLI, NULL));
        OK(pace_pool_audit(pool, &audit));
        CHECK(audit.balances && audit.in_flight == 0);
        pace_pool_free(pool);
    }
}

static pace_task_t own_task;

static void wait_for_myself(void *data, int32_t *outcome) {
    (void)data;
    wait_for_gate();
    SAYS(PACE_ETIMEDOUT, pace_task_wait(pool, own_task, MILLI, NULL));
    *outcome = 5;
}

static void a_task_that_waits_for_itself(void) {
    int32_t outcome;
    start(2);
    OK(pace_pool_submit(pool, 2, wait_for_myself, C, &own_task));
    atomic_store(&counts.gate, true);
    UNTIL(atomic_load(&counts.drops) == 1);
    OK(pace_task_wait(pool, own_task, PACE_FOREVER, &outcome));
    CHECK(outcome == 5);
    finish(pool);
}

/* --- processes and signals ---------------------------------------------------------------------- */

/* A child in which a handler returns would run what the parent runs, and take its events. */
static atomic_int child;

static void fork_and_return(void) {
    int pid = fork();
    CHECK(pid >= 0);
    if (pid > 0) atomic_store(&child, pid);
}

static void fork_in_task(void *data, int32_t *outcome) {
    (void)data;
    wait_for_gate();
    fork_and_return();
    *outcome = 0;
}

static int32_t fork_in_tick(void *data, pace_handle_t self) {
    (void)data, (void)self;
    fork_and_return();
    return PACE_FLOW_DONE;
}

static void child_of_a_handler_is_aborted(void) {
    int status = 0;
    UNTIL(atomic_load(&child) != 0);
    CHECK(waitpid(atomic_load(&child), &status, 0) == atomic_load(&child));
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    atomic_store(&child, 0);
}

static void handlers_that_fork_and_return(void) {
    pace_handle_t handle;
    pace_strand_t strand;
    start(2);
    OK(pace_pool_post(pool, 2, fork_in_task, C));
    /* Claimed with it: nothing of this may run in the child. */
    for (int i = 0; i < 100; i++) OK(pace_pool_post(pool, 2, count_run, &counts, NULL));
    atomic_store(&counts.gate, true);
    child_of_a_handler_is_aborted();
    OK(pace_pool_every(pool, 1000, fork_in_tick, C, &handle));
    child_of_a_handler_is_aborted();
    OK(pace_strand_new(pool, &strand));
    OK(pace_strand_post(pool, strand, fork_in_task, C));
    child_of_a_handler_is_aborted();
    finish(pool);
    CHECK(atomic_load(&counts.runs) == 100 && atomic_load(&counts.drops) == 3);
}

static void leave(void *data, int32_t *outcome) {
    (void)data, (void)outcome;
    exit(7);
}

static void *traffic(void *data) {
    (void)data;
    for (;;) {
        pace_status_t status = pace_pool_post(pool, 2, count_run, &counts, NULL);
        if (status == PACE_ESHUTDOWN) return NULL;
        CHECK(status == PACE_OK);
    }
}

static void shut_down_at_exit(void) { OK(pace_pool_shutdown(pool, 0, NULL)); }

/* exit() in mid-traffic: in main and in a task, with an atexit handler that shuts down and without. */
static void exits_in_mid_traffic(void) {
    for (int how = 0; how < 20; how++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            pthread_t other;
            alarm(240);
            start(3);
            CHECK(how % 2 == 0 || atexit(shut_down_at_exit) == 0);
            CHECK(pthread_create(&other, NULL, traffic, NULL) == 0);
            CHECK(pthread_detach(other) == 0);
            UNTIL(atomic_load(&counts.runs) > 100);
            if (how % 4 < 2) exit(7);
            OK(pace_pool_post(pool, 0, leave, NULL, NULL));
            for (;;) pause();
        }
        int status = 0;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
}

static void ignore_signal(int number) { (void)number; }

/* Waits that are interrupted all the time are neither shorter nor failures. */
static void signals_without_end(void) {
    struct sigaction action;
    timer_t timer;
    struct sigevent event;
    struct itimerspec often = {{0, 200000}, {0, 200000}}, never = {{0, 0}, {0, 0}};
    pace_queue_t *queue;
    uint64_t item, begin = 0;
    memset(&action, 0, sizeof action);
    action.sa_handler = ignore_signal;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR1;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &often, NULL) == 0);
    OK(pace_queue_new(8, 8, &queue));
    begin = check_now();
    SAYS(PACE_ETIMEDOUT, pace_queue_pop(queue, &item, 20 * MILLI));
    CHECK(check_now() - begin >= 20 * MILLI);
    pace_queue_free(queue);
    start(0);
    begin = check_now();
    OK(pace_pool_join(pool, 20 * MILLI, NULL));
    CHECK(check_now() - begin >= 20 * MILLI);
    finish(pool);
    CHECK(timer_settime(timer, 0, &never, NULL) == 0);
    CHECK(timer_delete(timer) == 0);
}

/* --- names of others ---------------------------------------------------------------------------- */

/* An id of another pool names something here or nothing; it never does harm. */
static void ids_of_another_pool(void) {
    pace_task_t task;
    pace_handle_t handle;
    pace_timer_t timer;
    pace_strand_t strand;
    bool flag;
    start(1);
    pace_pool_t *other = pool_of(1);
    OK(pace_pool_submit(pool, 2, count_run, C, &task));
    OK(pace_pool_every(pool, SECOND, tick_once, C, &handle));
    OK(pace_pool_after(pool, 1000 * SECOND, count_run, C, &timer));
    OK(pace_strand_new(pool, &strand));
    SAYS(PACE_ESTALE, pace_task_wait(other, task, PACE_FOREVER, NULL));
    SAYS(PACE_ESTALE, pace_handle_deregister(other, handle));
    SAYS(PACE_ESTALE, pace_strand_post(other, strand, count_run, C));
    SAYS(PACE_ESTALE, pace_strand_close(other, strand));
    OK(pace_timer_cancel(other, timer, &flag));
    CHECK(!flag);
    OK(pace_task_wait(pool, task, PACE_FOREVER, NULL));
    OK(pace_handle_deregister(pool, handle));
    OK(pace_timer_cancel(pool, timer, &flag));
    CHECK(flag && atomic_load(&counts.drops) == 3);
    finish(other);
    finish(pool);
}

/* --- the operations endpoint --------------------------------------------------------------------- */

static void endpoints_with_wrong_settings(void) {
    const char *none[1] = {NULL};
    pace_ops_options_t options;
    pace_ops_t *ops = NULL;
    start(1);
    SAYS(PACE_EVERSION, pace_ops_options_init(&options, 3));
    OK(pace_ops_options_init(&options, sizeof options));
    SAYS(PACE_EINVAL, pace_ops_serve(NULL, "127.0.0.1:0", &options, &ops));
    SAYS(PACE_EINVAL, pace_ops_serve(pool, "127.0.0.1:0", &options, NULL));
    SAYS(PACE_EINVAL, pace_ops_serve(pool, "nowhere", &options, &ops));
    options.settings = none;
    options.settings_count = 1;
    SAYS(PACE_EINVAL, pace_ops_serve(pool, "127.0.0.1:0", &options, &ops));
    TELLS("settings is NULL");
    options.settings = NULL;
    SAYS(PACE_EINVAL, pace_ops_serve(pool, "127.0.0.1:0", &options, &ops));
    options.settings_count = 0;
    options.token = "a secret of \xff\xfe";
    SAYS(PACE_EINVAL, pace_ops_serve(pool, "127.0.0.1:0", &options, &ops));
    TELLS("token");
    CHECK(strstr(pace_last_error(), "secret") == NULL);
    options.token = NULL;
    options.struct_size = 1;
    SAYS(PACE_EVERSION, pace_ops_serve(pool, "127.0.0.1:0", &options, &ops));
    CHECK(ops == NULL);
    finish(pool);
}

/* Freed in a handler of the pool that it watches, used in a child, and freed after the pool. */
static void free_ops(void *data, int32_t *outcome) {
    (void)outcome;
    pace_ops_free((pace_ops_t *)data);
}

static void endpoints_that_end_in_any_order(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_ops_t *ops, *late, *mounted, *none;
    pace_http_t *http;
    pace_task_t task;
    pid_t child;
    int status;
    start(1);
    OK(pace_ops_serve(pool, "127.0.0.1:0", NULL, &ops));
    OK(pace_ops_serve(pool, "127.0.0.1:0", NULL, &late));
    OK(pace_ops_serve(pool, NULL, NULL, &mounted));
    SAYS(PACE_EINVAL, pace_ops_address(mounted, address, sizeof address));
    TELLS("only mounted");
    SAYS(PACE_EINVAL, pace_ops_address(NULL, address, sizeof address));
    SAYS(PACE_EINVAL, pace_ops_address(ops, address, 3));
    OK(pace_http_new(pool, &http));
    SAYS(PACE_EINVAL, pace_http_mount_ops(http, mounted, "ops"));
    SAYS(PACE_EINVAL, pace_http_mount_ops(http, NULL, "/ops"));
    SAYS(PACE_EINVAL, pace_http_mount_ops(NULL, mounted, "/ops"));
    OK(pace_http_mount_ops(http, mounted, "/ops"));
    child = fork();
    if (child == 0) {
        SAYS(PACE_EFORKED, pace_ops_address(ops, address, sizeof address));
        SAYS(PACE_EFORKED, pace_http_mount_ops(http, ops, "/more"));
        SAYS(PACE_EFORKED, pace_ops_serve(pool, "127.0.0.1:0", NULL, &none));
        pace_ops_free(ops);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    pace_ops_free(mounted);
    OK(pace_pool_submit(pool, 2, free_ops, ops, NULL, &task));
    OK(pace_task_wait(pool, task, PACE_FOREVER, NULL));
    pace_http_free(http);
    finish(pool);
    OK(pace_ops_address(late, address, sizeof address));
    pace_ops_free(late);
    pace_ops_free(NULL);
}

int main(void) {
    check_begin();
    endpoints_with_wrong_settings();
    endpoints_that_end_in_any_order();
    structs_that_are_not_aligned();
    sizes_that_are_too_large();
    times_without_end();
    pools_that_are_freed_by_their_own_handlers();
    rings_that_are_freed_by_their_own_handlers();
    handles_that_deregister_themselves();
    drops_that_are_busy();
    a_task_that_waits_for_itself();
    handlers_that_fork_and_return();
    exits_in_mid_traffic();
    signals_without_end();
    ids_of_another_pool();
    return 0;
}
