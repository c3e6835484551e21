/* A hundred tasks of mixed priority against a function that often fails: retries, a deadline, a periodic
 * task beside them, a graceful stop, and a report.
 *
 *     cc examples/c/worker.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -o worker
 *
 * feature: workers/retries
 * feature: workers/shutdown
 */
#include <paceline/workers.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)
#define SECOND (1000 * MILLISECOND)

/* Ends the program with the reason unless a call has worked. */
static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* What a task is asked for, and where it leaves its value. */
typedef struct fetch {
    unsigned number, square;
} fetch_t;

/* A backend as they are: it wants to be asked up to three times, does not know some numbers at all, and
 * never answers about 50. */
static void fetch(void *user_data, pace_attempt_t *attempt, int32_t *outcome) {
    fetch_t *fetch = user_data;
    if (fetch->number == 50) {
        bool cancelled = false;
        while (!cancelled) {
            usleep(1000);
            pace_attempt_is_cancelled(attempt, &cancelled);
        }
        pace_attempt_fail(attempt, "gave up");
        return; /* what is not said to have worked has failed */
    }
    if (fetch->number % 25 == 13) {
        pace_attempt_fail(attempt, "there is no such number");
        pace_attempt_permanent(attempt);
        return;
    }
    uint32_t number = 0;
    pace_attempt_number(attempt, &number);
    if (number <= fetch->number % 3) {
        pace_attempt_fail(attempt, "busy, ask again");
        return;
    }
    fetch->square = fetch->number * fetch->number;
    *outcome = 0;
}

static atomic_uint ticks;

static void tick(void *user_data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)user_data, (void)attempt;
    atomic_fetch_add(&ticks, 1);
    *outcome = 0;
}

static void say_goodbye(void *user_data) {
    (void)user_data;
    puts("clean-up: the backend is told goodbye");
}

static const char *const names[] = {"PENDING", "RUNNING",   "RETRYING",  "COMPLETED",
                                    "FAILED",  "CANCELLED", "TIMED_OUT", "REJECTED"};

int main(void) {
    enum { TASKS = 100 };
    static fetch_t fetches[TASKS];
    static pace_task_t tasks[TASKS];
    pace_pool_t *pool;
    pace_workers_t *workers;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));

    /* A name has settings, which single tasks may override. */
    pace_task_type_config_t config;
    pace_task_type_t *kind, *heartbeat;
    must(pace_task_type_config_init(&config, sizeof config));
    config.retry.shape = PACE_RETRY_FIXED;
    config.retry.retries = 3;
    config.retry.first_ns = 5 * MILLISECOND;
    config.deadline_ns = 60 * SECOND;
    must(pace_task_type_new(workers, "fetch", &config, &kind));
    must(pace_task_type_new(workers, "heartbeat", NULL, &heartbeat));
    must(pace_workers_on_shutdown(workers, "say goodbye", say_goodbye, NULL, NULL));

    /* Every 5 ms, beside the tasks, until it is freed. */
    pace_periodic_t *periodic;
    must(pace_workers_every(workers, heartbeat, 5 * MILLISECOND, PACE_MISSED_TICK_SKIP, tick, NULL, NULL,
                            NULL, &periodic));

    for (unsigned number = 0; number < TASKS; number++) {
        pace_task_options_t options;
        must(pace_task_options_init(&options, sizeof options));
        options.lane = number % 4; /* PACE_LANE_CRITICAL to PACE_LANE_LOW */
        if (number == 50) options.deadline_ns = 200 * MILLISECOND;
        fetches[number].number = number;
        must(
            pace_workers_submit(workers, kind, fetch, &fetches[number], NULL, &options, &tasks[number]));
    }

    unsigned ends[8] = {0}, unknown = 0, sum = 0;
    for (unsigned number = 0; number < TASKS; number++) {
        pace_task_report_t report;
        report.struct_size = sizeof report;
        must(pace_workers_wait(workers, tasks[number], PACE_FOREVER, &report));
        ends[report.status]++;
        if (report.status == PACE_TASK_COMPLETED) sum += fetches[number].square;
        if (report.status == PACE_TASK_FAILED)
            unknown += strcmp(report.message, "there is no such number") == 0;
    }
    while (atomic_load(&ticks) < 3) usleep(1000);
    pace_periodic_free(periodic);

    printf("%-12s%6s\n", "status", "tasks");
    for (unsigned status = PACE_TASK_COMPLETED; status <= PACE_TASK_REJECTED; status++)
        if (ends[status] > 0) printf("%-12s%6u\n", names[status], ends[status]);
    printf("the squares add up to %u\n", sum);
    printf("%u failed, because there is no such number\n", unknown);
    pace_task_type_stats_t stats;
    stats.struct_size = sizeof stats;
    must(pace_task_type_stats(kind, &stats));
    printf("attempts that were followed by another: %u\n", (unsigned)stats.retried);
    puts("the periodic task ran at least 3 times");

    pace_workers_report_t report;
    pace_workers_audit_t audit;
    report.struct_size = sizeof report;
    audit.struct_size = sizeof audit;
    must(pace_workers_shutdown(workers, 30 * SECOND, 5 * SECOND, 5 * SECOND, &report, NULL, NULL));
    printf("drained: %s, stuck: %u\n", report.drained ? "true" : "false", (unsigned)report.stuck);
    must(pace_workers_audit(workers, &audit));
    printf("the books balance: %s\n", audit.balances ? "true" : "false");

    pace_task_type_free(heartbeat);
    pace_task_type_free(kind);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
