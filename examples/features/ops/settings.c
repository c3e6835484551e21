/* Settings of a whole service from a file of JSON or YAML and from the environment.
 *
 * feature: ops/settings
 * prints:
 *   pool: 2 threads, name shop
 *   tasks: 5 retries, a time-out of 2 s
 *   hub: payloads of up to 65536 bytes
 *   PACELINE_POOL_THREADS: pool.threads is "many", but must be 0 to 1024
 */
#define _GNU_SOURCE
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

int main(void) {
    char path[] = "/tmp/settings-XXXXXX.yaml";
    const int file = mkstemps(path, 5);
    pace_status_t status;
    pace_pool_config_t pool;
    pace_task_type_config_t tasks;
    pace_hub_options_t hub;
    dprintf(file, "pool:\n  threads: 3\n  name: shop\n"
                  "tasks:\n  retries: 5\n  timeout: 2s\n"
                  "hub:\n  max_payload: 64 KiB\n");
    close(file);
    setenv("PACELINE_POOL_THREADS", "2", 1); /* wins over the file */

    must(pace_pool_config_init(&pool, sizeof pool));
    must(pace_pool_config_load(&pool, path, true));
    printf("pool: %d threads, name %s\n", (int)pool.threads, pool.name);
    must(pace_task_type_config_init(&tasks, sizeof tasks));
    must(pace_task_type_config_load(&tasks, path, true));
    printf("tasks: %d retries, a time-out of %d s\n", (int)tasks.retry.retries,
           (int)(tasks.timeout_ns / 1000000000));
    must(pace_hub_options_init(&hub, sizeof hub));
    must(pace_hub_options_load(&hub, path, true));
    printf("hub: payloads of up to %d bytes\n", (int)hub.max_payload);

    setenv("PACELINE_POOL_THREADS", "many", 1);
    status = pace_pool_config_load(&pool, path, true);
    if (status == PACE_EINVAL) puts(pace_last_error());
    unlink(path);
    return 0;
}
