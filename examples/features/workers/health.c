/* Health, what each thread has run, and figures of tasks as text for a collector, with figures of the program's own.
 *
 * feature: workers/health
 * prints:
 *   attempts of the thread that has run the task: 1
 *   ready, threads that are stuck: 0
 *   orders_total{shop="eu"} 3.0
 *   draining
 */
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void work(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    *outcome = 0;
}

int main(void) {
    static char text[1 << 16];
    size_t needed;
    uint32_t format;
    const char *media_type, *line;
    const pace_label_t label = {"shop", "eu"};
    pace_health_t health = {.struct_size = sizeof health};
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_worker_stats_t thread = {.struct_size = sizeof thread};
    pace_workers_config_t config;
    pace_task_t task;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    pace_metric_t *orders;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_config_init(&config, sizeof config));
    config.metrics = true;
    must(pace_workers_new(pool, &config, &workers));
    must(pace_task_type_new(workers, "fetch", NULL, &type));
    must(pace_workers_submit(workers, type, work, NULL, NULL, NULL, &task));
    must(pace_workers_wait(workers, task, PACE_FOREVER, &report));
    must(pace_workers_worker_stats(workers, report.worker, &thread));
    printf("attempts of the thread that has run the task: %d\n", (int)thread.attempts);

    must(pace_workers_health(workers, &health));
    printf("%s, threads that are stuck: %d\n",
           health.health == PACE_HEALTH_READY ? "ready" : "not ready", (int)health.stuck);
    must(pace_workers_metric(workers, PACE_METRIC_COUNTER, "orders", "Orders.", &label, 1, &orders));
    must(pace_metric_count(orders, 3));
    must(pace_metrics_format("text/plain", &format, &media_type)); /* of a request's Accept header */
    must(pace_workers_metrics(workers, format, text, sizeof text, &needed));
    line = strstr(text, "\norders_total{"); /* among the library's */
    if (line != NULL) printf("%.*s\n", (int)strcspn(line + 1, "\n"), line + 1);
    pace_metric_free(orders);

    must(pace_workers_shutdown(workers, PACE_FOREVER, 0, 0, NULL, NULL, NULL));
    health.struct_size = sizeof health;
    must(pace_workers_health(workers, &health));
    puts(health.health == PACE_HEALTH_DRAINING ? "draining" : "not draining");
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
