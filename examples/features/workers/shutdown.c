/* The end in phases: no new tasks, a drain, a stop of what is left, hooks that clean up; and a report.
 *
 * feature: workers/shutdown
 */
#include "../check.h"
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdatomic.h>

#define SECOND UINT64_C(1000000000)

static atomic_bool running;

static void until_stopped(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    bool is_cancelled = false;
    (void)data;
    atomic_store(&running, true);
    while (!is_cancelled) {
        usleep(1000);
        must(pace_attempt_is_cancelled(attempt, &is_cancelled));
    }
    *outcome = 0;
}

static void clean_up(void *cleaned) { *(bool *)cleaned = true; }

/* A line of the report: so many tasks of this name were completed, cancelled, or are stuck. */
static void count(void *ended, uint32_t what, const char *name, uint64_t tasks, uint32_t thread) {
    (void)name, (void)thread;
    if (what == PACE_ENDED_COMPLETED || what == PACE_ENDED_CANCELLED) *(uint64_t *)ended += tasks;
}

int main(void) {
    bool cleaned = false;
    uint64_t ended = 0;
    pace_workers_report_t report = {.struct_size = sizeof report};
    pace_workers_audit_t audit = {.struct_size = sizeof audit};
    pace_task_t task;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "endless", NULL, &type));
    must(pace_workers_on_shutdown(workers, "close the database", clean_up, &cleaned, NULL));
    must(pace_workers_submit(workers, type, until_stopped, NULL, NULL, NULL, &task));
    WAIT_FOR(atomic_load(&running));

    /* Drains for 10 ms, which is too short; stops for a minute; cleans up for a minute. */
    must(pace_workers_shutdown(workers, SECOND / 100, 60 * SECOND, 60 * SECOND, &report, count, &ended));
    CHECK(!report.drained && report.stuck == 0 && ended == 1);
    CHECK(cleaned && report.failed_hooks == 0);
    CHECK(pace_workers_submit(workers, type, until_stopped, NULL, NULL, NULL, &task) == PACE_ESHUTDOWN);
    must(pace_workers_audit(workers, &audit));
    CHECK(audit.balances && audit.in_flight == 0);
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
