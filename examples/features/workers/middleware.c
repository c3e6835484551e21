/* Middleware runs around each attempt of every task.
 *
 * feature: workers/middleware
 * prints:
 *   fetch begins
 *   fetch fails: busy
 *   fetch ends
 *   fetch begins
 *   fetch ends
 */
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static const char *name_of(const pace_attempt_t *attempt) {
    const char *name;
    must(pace_attempt_name(attempt, &name));
    return name;
}

static void before(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data;
    printf("%s begins\n", name_of(attempt));
    *outcome = 0; /* else the attempt fails, and is not run */
}

static void after(void *data, const pace_attempt_t *attempt) {
    (void)data;
    printf("%s ends\n", name_of(attempt));
}

static void on_error(void *data, const pace_attempt_t *attempt, int32_t outcome, const char *message) {
    (void)data, (void)outcome;
    printf("%s fails: %s\n", name_of(attempt), message);
}

static void fail_once(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    uint32_t number;
    (void)data;
    must(pace_attempt_number(attempt, &number));
    if (number == 1)
        must(pace_attempt_fail(attempt, "busy"));
    else
        *outcome = 0;
}

int main(void) {
    const pace_middleware_t middleware = {before, after, on_error, NULL, NULL};
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
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
