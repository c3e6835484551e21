/* Bridges and durable tasks in the hands of programs that are wrong: NULL, forked children, ten threads on the same objects,
 * also while these are closed, and objects that outlive what they came from. Nothing crashes, hangs or leaks, what is answered
 * is documented, and every `drop` runs once. */
#include "check.h"

#include "broker.h"

#define B(status) (UINT32_C(1) << -(status))
#define IS_OK B(PACE_OK)
#define INV B(PACE_EINVAL)
#define LATE B(PACE_ETIMEDOUT)
#define GONE B(PACE_ESTALE)
#define BUSY B(PACE_EBUSY)
#define DOWN B(PACE_ESHUTDOWN)

typedef struct things {
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_workers_t *workers;
    pace_bridge_t *bridge;
    pace_durable_t *queue;
    pace_pending_store_t *pending;
    pace_job_t *job;
    pace_durable_report_t *report;
} things_t;

static counts_t counts;
static atomic_int given; /* drops that are to come */

static pace_bridge_options_t options_of(const char *servers) {
    pace_bridge_options_t options;
    OK(pace_bridge_options_init(&options, sizeof options));
    options.servers = servers;
    options.reconnect_first_ns = MILLI;
    options.reconnect_cap_ns = 10 * MILLI;
    return options;
}

/* What was taken is dropped once. */
static pace_status_t took(pace_status_t status) {
    if (status == PACE_OK) atomic_fetch_add(&given, 1);
    return status;
}

static pace_status_t echo(void *data, pace_job_t *job) {
    pace_job_info_t info = {0};
    info.struct_size = sizeof info;
    atomic_fetch_add(&((counts_t *)data)->runs, 1);
    OK(pace_job_info(job, &info));
    return pace_job_complete(job, info.arguments, info.size);
}

static void stored(void *data, pace_status_t status) {
    (void)status;
    atomic_fetch_add(&((counts_t *)data)->runs, 1);
}

/* --- each function ------------------------------------------------------------------------------- */

static pace_status_t do_bridge_new(things_t *t) {
    pace_bridge_options_t options = options_of("nats://127.0.0.1:1");
    pace_bridge_t *made = NULL;
    pace_status_t status = pace_bridge_new(t->hub, &options, &made);
    pace_bridge_free(made);
    return status;
}
static pace_status_t do_bridge_load(things_t *t) {
    pace_bridge_t *made = NULL;
    pace_status_t status = pace_bridge_load(t->hub, NULL, 0, false, &made);
    pace_bridge_free(made);
    return status;
}
static pace_status_t do_bridge_export(things_t *t) { return pace_bridge_export(t->bridge, "x", NULL); }
static pace_status_t do_bridge_import(things_t *t) { return pace_bridge_import(t->bridge, "y", NULL); }
static pace_status_t do_bridge_permit(things_t *t) { return pace_bridge_permit(t->bridge, ">"); }
static pace_status_t do_bridge_open(things_t *t) { return pace_bridge_open(t->bridge); }
static pace_status_t do_bridge_wait(things_t *t) {
    return pace_bridge_wait_connected(t->bridge, SECOND);
}
static pace_status_t do_bridge_publish(things_t *t) {
    pace_pending_store_t *pending = NULL;
    pace_status_t status = pace_bridge_publish(t->bridge, "a", NULL, "x", 1, 0, &pending);
    if (status == PACE_OK && atomic_load(&counts.runs) % 2 == 0)
        OK(took(pace_pending_store_then(pending, stored, &counts, count_drop)));
    pace_pending_store_free(pending);
    return status;
}
static pace_status_t do_pending_wait(things_t *t) { return pace_pending_store_wait(t->pending, SECOND); }
static pace_status_t do_pending_then(things_t *t) {
    return took(pace_pending_store_then(t->pending, stored, &counts, count_drop));
}
static pace_status_t do_bridge_flush(things_t *t) { return pace_bridge_flush(t->bridge, SECOND); }
static pace_status_t do_bridge_stats(things_t *t) {
    pace_bridge_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_bridge_stats(t->bridge, &stats);
}
static pace_status_t do_bridge_server(things_t *t) {
    char text[256];
    size_t needed;
    return pace_bridge_server(t->bridge, text, sizeof text, &needed);
}
static pace_status_t do_bridge_reason(things_t *t) {
    char text[256];
    size_t needed;
    return pace_bridge_reason(t->bridge, text, sizeof text, &needed);
}
static pace_status_t do_export_stats(things_t *t) {
    pace_bridge_export_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_bridge_export_stats(t->bridge, 0, &stats);
}
static pace_status_t do_import_stats(things_t *t) {
    pace_bridge_import_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_bridge_import_stats(t->bridge, 0, &stats);
}
static pace_status_t do_durable_new(things_t *t) {
    pace_bridge_options_t options = options_of("nats://127.0.0.1:1");
    pace_durable_t *made = NULL;
    pace_status_t status = pace_durable_new(t->workers, "other", &options, NULL, &made);
    pace_durable_free(made);
    return status;
}
static pace_status_t do_durable_task(things_t *t) {
    return took(pace_durable_task(t->queue, "more", NULL, echo, &counts, count_drop));
}
static pace_status_t do_durable_pulled(things_t *t) {
    return pace_durable_task_pulled(t->queue, "more", NULL);
}
static pace_status_t do_durable_schedule(things_t *t) {
    return pace_durable_schedule(t->queue, "l", "0 0 1 1 *", "echo", "x", 1);
}
static pace_status_t do_durable_open(things_t *t) { return pace_durable_open(t->queue); }
static pace_status_t do_durable_wait_connected(things_t *t) {
    return pace_durable_wait_connected(t->queue, SECOND);
}
static pace_status_t do_durable_submit(things_t *t) {
    pace_durable_report_t *report = NULL;
    pace_durable_id_t id;
    pace_status_t status = pace_durable_submit(t->queue, "echo", NULL, "x", 1, PACE_FOREVER, &id, NULL);
    if (status == PACE_OK) {
        status = pace_durable_wait(t->queue, id.text, SECOND, &report);
        pace_durable_report_free(report);
    }
    return status;
}
static pace_status_t do_durable_wait(things_t *t) {
    pace_durable_report_t *report;
    return pace_durable_wait(t->queue, "n00000000000000000000000000000000", MILLI, &report);
}
static pace_status_t do_durable_cancel(things_t *t) {
    return pace_durable_cancel(t->queue, "n00000000000000000000000000000000", NULL);
}
static pace_status_t do_durable_take(things_t *t) {
    pace_job_t *job = NULL;
    pace_status_t status = pace_durable_take(t->queue, MILLI, &job);
    pace_job_free(job); /* it comes again */
    return status;
}
static pace_status_t do_job_info(things_t *t) {
    pace_job_info_t info = {0};
    info.struct_size = sizeof info;
    return pace_job_info(t->job, &info);
}
static pace_status_t do_job_is_cancelled(things_t *t) {
    return pace_job_is_cancelled(t->job, &(bool){false});
}
static pace_status_t do_job_complete(things_t *t) { return pace_job_complete(t->job, "x", 1); }
static pace_status_t do_job_fail(things_t *t) { return pace_job_fail(t->job, "x", false, 0); }
static pace_status_t do_durable_dead(things_t *t) {
    pace_durable_report_t *report = NULL;
    pace_status_t status = pace_durable_dead(t->queue, 0, &report);
    pace_durable_report_free(report);
    return status;
}
static pace_status_t do_durable_resubmit(things_t *t) {
    return pace_durable_resubmit(t->queue, 9, NULL);
}
static pace_status_t do_durable_forget(things_t *t) { return pace_durable_forget(t->queue, 9); }
static pace_status_t do_report_info(things_t *t) {
    pace_durable_info_t info = {0};
    info.struct_size = sizeof info;
    return pace_durable_report_info(t->report, &info);
}
static pace_status_t do_durable_reason(things_t *t) {
    char text[200];
    size_t needed;
    return pace_durable_reason(t->queue, text, sizeof text, &needed);
}
static pace_status_t do_durable_stats(things_t *t) {
    pace_bridge_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_durable_stats(t->queue, &stats);
}
static pace_status_t do_durable_close(things_t *t) { return pace_durable_close(t->queue, SECOND, NULL); }
static pace_status_t do_bridge_close(things_t *t) { return pace_bridge_close(t->bridge, SECOND, NULL); }

typedef struct row {
    const char *name;
    pace_status_t (*call)(things_t *t);
    uint32_t open;   /* what it answers of open things */
    uint32_t closed; /* what else after that */
} row_t;

static const row_t table[] = {
    {"bridge_new", do_bridge_new, IS_OK, 0},
    {"bridge_load", do_bridge_load, INV, 0},
    {"bridge_export", do_bridge_export, INV, 0},
    {"bridge_import", do_bridge_import, INV, 0},
    {"bridge_permit", do_bridge_permit, INV, 0},
    {"bridge_open", do_bridge_open, INV, 0},
    {"bridge_wait_connected", do_bridge_wait, IS_OK, DOWN},
    {"bridge_publish", do_bridge_publish, IS_OK, DOWN},
    {"pending_store_wait", do_pending_wait, IS_OK | BUSY, DOWN},
    {"pending_store_then", do_pending_then, IS_OK | BUSY, 0},
    {"bridge_flush", do_bridge_flush, IS_OK | LATE, DOWN},
    {"bridge_stats", do_bridge_stats, IS_OK, 0},
    {"bridge_server", do_bridge_server, IS_OK, 0},
    {"bridge_reason", do_bridge_reason, IS_OK, 0},
    {"bridge_export_stats", do_export_stats, IS_OK, 0},
    {"bridge_import_stats", do_import_stats, IS_OK, 0},
    {"durable_new", do_durable_new, IS_OK, 0},
    {"durable_task", do_durable_task, INV, 0},
    {"durable_task_pulled", do_durable_pulled, INV, 0},
    {"durable_schedule", do_durable_schedule, INV, 0},
    {"durable_open", do_durable_open, INV, 0},
    {"durable_wait_connected", do_durable_wait_connected, IS_OK, DOWN},
    {"durable_submit", do_durable_submit, IS_OK, DOWN | LATE},
    {"durable_wait", do_durable_wait, LATE, DOWN},
    {"durable_cancel", do_durable_cancel, IS_OK, DOWN | LATE},
    {"durable_take", do_durable_take, IS_OK | LATE, DOWN},
    {"job_info", do_job_info, IS_OK, 0},
    {"job_is_cancelled", do_job_is_cancelled, IS_OK, 0},
    {"job_complete", do_job_complete, IS_OK | GONE, 0},
    {"job_fail", do_job_fail, IS_OK | GONE, 0},
    {"durable_dead", do_durable_dead, GONE, DOWN | LATE},
    {"durable_resubmit", do_durable_resubmit, GONE, DOWN | LATE},
    {"durable_forget", do_durable_forget, GONE, DOWN | LATE},
    {"durable_report_info", do_report_info, IS_OK, 0},
    {"durable_reason", do_durable_reason, IS_OK, 0},
    {"durable_stats", do_durable_stats, IS_OK, 0},
    {"durable_close", do_durable_close, 0, IS_OK},
    {"bridge_close", do_bridge_close, 0, IS_OK},
};
#define ROWS (sizeof table / sizeof *table)

static void expect(const char *situation, const row_t *row, uint32_t allowed, pace_status_t status) {
    if (status <= 0 && status > -32 && (allowed & B(status)) != 0) return;
    fprintf(stderr, "%s, %s: %s (%s)\n", row->name, situation, pace_status_name(status),
            pace_last_error());
    abort();
}

static void make(things_t *t, const broker_t *broker) {
    pace_bridge_options_t options = options_of(broker->url);
    pace_bridge_export_options_t out;
    pace_durable_id_t id;
    char name[32]; /* that no other process has */
    snprintf(name, sizeof name, "hostile_%d", (int)getpid());
    memset(t, 0, sizeof *t);
    t->pool = pool_of(2);
    OK(pace_hub_new(t->pool, NULL, &t->hub));
    OK(pace_workers_new(t->pool, NULL, &t->workers));
    OK(pace_bridge_new(t->hub, &options, &t->bridge));
    OK(pace_bridge_export_options_init(&out, sizeof out));
    out.stream = "HOSTILE";
    OK(pace_bridge_export(t->bridge, "a", &out));
    OK(pace_bridge_import(t->bridge, "b", NULL));
    OK(pace_bridge_open(t->bridge));
    OK(pace_durable_new(t->workers, name, &options, NULL, &t->queue));
    OK(took(pace_durable_task(t->queue, "echo", NULL, echo, &counts, count_drop)));
    OK(pace_durable_task_pulled(t->queue, "pulled", NULL));
    OK(pace_durable_open(t->queue));
    OK(pace_bridge_publish(t->bridge, "a", NULL, "x", 1, 0, &t->pending));
    OK(pace_pending_store_wait(t->pending, PACE_FOREVER));
    OK(pace_durable_submit(t->queue, "echo", NULL, "x", 1, PACE_FOREVER, &id, NULL));
    OK(pace_durable_wait(t->queue, id.text, PACE_FOREVER, &t->report));
    OK(pace_durable_submit(t->queue, "pulled", NULL, "x", 1, PACE_FOREVER, &id, NULL));
    OK(pace_durable_take(t->queue, PACE_FOREVER, &t->job));
}

/* What came from a thing may outlive it. */
static void unmake(things_t *t) {
    pace_durable_free(t->queue);
    pace_bridge_free(t->bridge);
    t->queue = NULL, t->bridge = NULL;
    expect("its queue is gone", &table[26], IS_OK, do_job_info(t));
    expect("its queue is gone", &table[28], IS_OK | GONE, do_job_complete(t));
    expect("its queue is gone", &table[33], IS_OK, do_report_info(t));
    expect("its bridge is gone", &table[8], IS_OK | BUSY, do_pending_wait(t));
    pace_job_free(t->job);
    pace_durable_report_free(t->report);
    pace_pending_store_free(t->pending);
    pace_workers_free(t->workers);
    pace_hub_free(t->hub);
    finish(t->pool);
    UNTIL(atomic_load(&counts.drops) == atomic_load(&given));
}

static void with_null(const broker_t *broker) {
    things_t nothing = {0}, t;
    pace_bridge_options_t options = options_of(broker->url);
    for (size_t i = 0; i < ROWS; i++) expect("NULL", &table[i], INV, table[i].call(&nothing));
    make(&t, broker);
    SAYS(PACE_EINVAL, pace_bridge_options_init(NULL, sizeof options));
    SAYS(PACE_EINVAL, pace_bridge_export_options_init(NULL, sizeof(pace_bridge_export_options_t)));
    SAYS(PACE_EINVAL, pace_bridge_import_options_init(NULL, sizeof(pace_bridge_import_options_t)));
    SAYS(PACE_EINVAL, pace_durable_options_init(NULL, sizeof(pace_durable_options_t)));
    SAYS(PACE_EINVAL, pace_submission_init(NULL, sizeof(pace_submission_t)));
    SAYS(PACE_EINVAL, pace_bridge_new(t.hub, &options, NULL));
    SAYS(PACE_EINVAL, pace_bridge_load(t.hub, NULL, 1, false, &t.bridge));
    SAYS(PACE_EINVAL, pace_bridge_publish(t.bridge, NULL, NULL, "x", 1, 0, &t.pending));
    SAYS(PACE_EINVAL, pace_bridge_publish(t.bridge, "a", NULL, NULL, 1, 0, &t.pending));
    SAYS(PACE_EINVAL, pace_bridge_publish(t.bridge, "a", NULL, "x", 1, 0, NULL));
    SAYS(PACE_EINVAL, pace_pending_store_then(t.pending, NULL, &counts, count_drop));
    SAYS(PACE_EINVAL, pace_bridge_stats(t.bridge, NULL));
    SAYS(PACE_EINVAL, pace_bridge_server(t.bridge, NULL, 1, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_bridge_server(t.bridge, NULL, 0, NULL));
    SAYS(PACE_EINVAL, pace_bridge_reason(t.bridge, NULL, 1, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_bridge_reason(t.bridge, NULL, 0, NULL));
    SAYS(PACE_EINVAL, pace_bridge_export_stats(t.bridge, 0, NULL));
    SAYS(PACE_EINVAL, pace_bridge_import_stats(t.bridge, 0, NULL));
    SAYS(PACE_EINVAL, pace_durable_new(t.workers, "q", &options, NULL, NULL));
    SAYS(PACE_EINVAL, pace_durable_schedule(t.queue, NULL, "* * * * *", "echo", "x", 1));
    SAYS(PACE_EINVAL, pace_durable_schedule(t.queue, "l", NULL, "echo", "x", 1));
    SAYS(PACE_EINVAL, pace_durable_schedule(t.queue, "l", "* * * * *", NULL, "x", 1));
    SAYS(PACE_EINVAL, pace_durable_schedule(t.queue, "l", "* * * * *", "echo", NULL, 1));
    SAYS(PACE_EINVAL,
         pace_durable_submit(t.queue, NULL, NULL, "x", 1, 0, &(pace_durable_id_t){{0}}, NULL));
    SAYS(PACE_EINVAL,
         pace_durable_submit(t.queue, "echo", NULL, NULL, 1, 0, &(pace_durable_id_t){{0}}, NULL));
    SAYS(PACE_EINVAL, pace_durable_submit(t.queue, "echo", NULL, "x", 1, 0, NULL, NULL));
    SAYS(PACE_EINVAL, pace_durable_wait(t.queue, NULL, 0, &t.report));
    SAYS(PACE_EINVAL, pace_durable_wait(t.queue, "n00000000000000000000000000000000", 0, NULL));
    SAYS(PACE_EINVAL, pace_durable_cancel(t.queue, NULL, NULL));
    SAYS(PACE_EINVAL, pace_durable_take(t.queue, 0, NULL));
    SAYS(PACE_EINVAL, pace_job_info(t.job, NULL));
    SAYS(PACE_EINVAL, pace_job_is_cancelled(t.job, NULL));
    SAYS(PACE_EINVAL, pace_job_complete(t.job, NULL, 1));
    SAYS(PACE_EINVAL, pace_durable_dead(t.queue, 0, NULL));
    SAYS(PACE_EINVAL, pace_durable_report_info(t.report, NULL));
    SAYS(PACE_EINVAL, pace_durable_stats(t.queue, NULL));
    /* What was refused has ended nothing. */
    OK(pace_job_fail(t.job, NULL, false, 0));
    unmake(&t);
    pace_bridge_free(NULL);
    pace_pending_store_free(NULL);
}

static void in_a_forked_child(const broker_t *broker) {
    things_t t;
    make(&t, broker);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
        for (size_t i = 0; i < ROWS; i++)
            expect("forked", &table[i], B(PACE_EFORKED), table[i].call(&t));
        pace_job_free(t.job); /* nothing, in a child */
        pace_durable_report_free(t.report);
        pace_pending_store_free(t.pending);
        pace_durable_free(t.queue);
        pace_bridge_free(t.bridge);
        make(&t, broker); /* its own works */
        OK(pace_job_complete(t.job, NULL, 0));
        OK(pace_durable_close(t.queue, PACE_FOREVER, NULL));
        _exit(42);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    unmake(&t);
}

static void *call_all(void *data) {
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < ROWS - 2; i++)
            expect("ten threads", &table[i], table[i].open, table[i].call((things_t *)data));
    return NULL;
}

static void *call_all_closing(void *data) {
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < ROWS; i++)
            expect("closing", &table[i], table[i].open | table[i].closed,
                   table[i].call((things_t *)data));
    return NULL;
}

/* On the same things at once; and while all of them close these. */
static void by_ten_threads(const broker_t *broker) {
    things_t t;
    pthread_t threads[10];
    make(&t, broker);
    for (int i = 0; i < 10; i++) CHECK(pthread_create(&threads[i], NULL, call_all, &t) == 0);
    for (int i = 0; i < 10; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 10; i++) CHECK(pthread_create(&threads[i], NULL, call_all_closing, &t) == 0);
    for (int i = 0; i < 10; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    unmake(&t);
}

/* False: the library has none. */
static bool has_bridges(void) {
    things_t t = {0};
    t.pool = pool_of(1);
    OK(pace_hub_new(t.pool, NULL, &t.hub));
    pace_status_t status = do_bridge_new(&t);
    CHECK(status == PACE_OK || status == PACE_EUNSUPPORTED);
    pace_hub_free(t.hub);
    finish(t.pool);
    return status == PACE_OK;
}

int main(void) {
    broker_t broker;
    check_begin();
    if (!broker_start(&broker)) return 0;
    if (has_bridges()) {
        with_null(&broker);
        in_a_forked_child(&broker);
        by_ten_threads(&broker);
    }
    broker_stop(&broker);
    return 0;
}
