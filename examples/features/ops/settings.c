/* Settings of a whole service from a file of JSON or YAML and from the environment.
 *
 * feature: ops/settings
 */
#define _GNU_SOURCE
#include "../check.h"
#include <paceline/hub.h>
#include <paceline/net.h>
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "pool:\n  threads: 3\n  name: shop\n"
                           "tasks:\n  retries: 5\n  timeout: 2s\n"
                           "hub:\n  max_payload: 64 KiB\n";

int main(void) {
    char path[] = "/tmp/settings-XXXXXX.yaml";
    int file = mkstemps(path, 5);
    pace_pool_config_t pool;
    pace_task_type_config_t tasks;
    pace_hub_options_t hub;
    CHECK(file >= 0 && write(file, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    close(file);
    CHECK(setenv("PACELINE_POOL_THREADS", "2", 1) == 0); /* wins over the file */

    must(pace_pool_config_init(&pool, sizeof pool));
    must(pace_pool_config_load(&pool, path, true));
    CHECK(pool.threads == 2 && strcmp(pool.name, "shop") == 0);
    must(pace_task_type_config_init(&tasks, sizeof tasks));
    must(pace_task_type_config_load(&tasks, path, true));
    CHECK(tasks.retry.retries == 5 && tasks.timeout_ns == 2000000000);
    must(pace_hub_options_init(&hub, sizeof hub));
    must(pace_hub_options_load(&hub, path, true));
    CHECK(hub.max_payload == 65536);

    CHECK(setenv("PACELINE_POOL_THREADS", "many", 1) == 0);
    CHECK(pace_pool_config_load(&pool, path, true) == PACE_EINVAL);
    CHECK(strstr(pace_last_error(), "PACELINE_POOL_THREADS") != NULL && pool.threads == 2);
    unlink(path);
    return 0;
}
