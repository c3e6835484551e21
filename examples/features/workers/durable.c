/* Durable tasks: a NATS server keeps them until they have ended, so that they outlive the process, and any process with a
 * handler for a task's name runs it. The address of a server with streams (nats-server -js) is in NATS_URL; without one there
 * is nothing to show.
 *
 * feature: workers/durable
 * prints:
 *   hello, Ada (attempt 2)
 *   failed for good: nobody is there
 *   tasks that were left: 0
 */
#include <paceline/bridge.h>
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* The first attempt fails, and another follows. A task without a name to greet fails for good. */
static pace_status_t greet(void *data, pace_job_t *job) {
    pace_job_info_t info = {.struct_size = sizeof info};
    char greeting[64];
    (void)data;
    must(pace_job_info(job, &info));
    if (info.size == 0) {
        must(pace_job_fail(job, "nobody is there", true, 0));
        return PACE_OK;
    }
    if (info.number == 1) return PACE_EFAILED;
    int size =
        snprintf(greeting, sizeof greeting, "hello, %.*s", (int)info.size, (const char *)info.arguments);
    must(pace_job_complete(job, greeting, (size_t)size));
    return PACE_OK;
}

static void submit_and_wait(pace_durable_t *queue, const char *name) {
    pace_durable_info_t info = {.struct_size = sizeof info};
    pace_durable_report_t *report;
    pace_durable_id_t id; /* another process may wait for it as well */
    must(pace_durable_submit(queue, "greet", NULL, name, strlen(name), 30 * SECOND, &id, NULL));
    must(pace_durable_wait(queue, id.text, 60 * SECOND, &report)); /* it was stored, and has ended */
    must(pace_durable_report_info(report, &info));
    if (info.status == PACE_DURABLE_COMPLETED)
        printf("%.*s (attempt %d)\n", (int)info.size, (const char *)info.bytes, (int)info.attempts);
    else
        printf("failed for good: %.*s\n", (int)info.failure.size, info.failure.text);
    pace_durable_report_free(report);
}

int main(void) {
    const char *url = getenv("NATS_URL");
    pace_bridge_options_t broker;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_durable_t *queue;
    uint64_t left;
    if (url == NULL) {
        puts("There is no NATS_URL, the address of a NATS server.");
        return 0;
    }
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_bridge_options_init(&broker, sizeof broker));
    broker.servers = url;
    must(pace_durable_new(workers, "greetings_c", &broker, NULL, &queue));
    pace_retry_t retry = {.shape = PACE_RETRY_FIXED, .retries = 3, .first_ns = 10000000};
    must(pace_durable_task(queue, "greet", &retry, greet, NULL, NULL));
    must(pace_durable_open(queue));

    submit_and_wait(queue, "Ada");
    submit_and_wait(queue, ""); /* pace_durable_dead() gives it, and it may be submitted again */

    must(pace_durable_close(queue, 60 * SECOND, &left));
    printf("tasks that were left: %d\n", (int)left);
    pace_durable_free(queue);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
