/* Middleware runs around each attempt of every task.
 *
 * feature: workers/middleware
 */
#include "../check.h"
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <string.h>

static void before(void *log, pace_attempt_t *attempt, int32_t *outcome) {
    const char *name;
    must(pace_attempt_name(attempt, &name));
    strcat(log, name);
    strcat(log, " begins; ");
    *outcome = 0; /* else the attempt fails, and is not run */
}

static void after(void *log, const pace_attempt_t *attempt) {
    (void)attempt;
    strcat(log, "ends; ");
}

static void on_error(void *log, const pace_attempt_t *attempt, int32_t outcome, const char *message) {
    (void)attempt, (void)outcome;
    strcat(log, "fails: ");
    strcat(log, message);
}

static void fail_once(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    uint32_t number;
    (void)data;
    must(pace_attempt_number(attempt, &number));
    if (number == 1)
        must(pace_attempt_fail(attempt, "busy; "));
    else
        *outcome = 0;
}

int main(void) {
    char log[256] = ""; /* of one task: nothing here runs at the same time */
    const pace_middleware_t middleware = {before, after, on_error, log, NULL};
    pace_workers_config_t config;
    pace_task_options_t options;
    pace_task_t task;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_config_init(&config, sizeof config));
    config.middleware = &middleware;
    config.middleware_count = 1;
    must(pace_workers_new(pool, &config, &workers));
    must(pace_task_type_new(workers, "fetch", NULL, &type));
    must(pace_task_options_init(&options, sizeof options));
    options.retry = (pace_retry_t){.shape = PACE_RETRY_FIXED, .retries = 1, .first_ns = 1000000};
    must(pace_workers_submit(workers, type, fail_once, NULL, NULL, &options, &task));
    must(pace_workers_wait(workers, task, PACE_FOREVER, NULL));
    must(pace_workers_shutdown(workers, PACE_FOREVER, 0, 0, NULL, NULL, NULL));
    CHECK(strcmp(log, "fetch begins; fails: busy; ends; fetch begins; ends; ") == 0);
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
