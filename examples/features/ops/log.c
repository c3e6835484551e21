/* A structured log: to a function, or to a file of JSON lines that is rotated.
 *
 * feature: ops/log
 * prints:
 *   info pool.started: 3 threads
 *   servers are logged from debug on
 *   servers are logged from warn on
 */
#include <paceline/log.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE UINT64_C(60000000000)

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void print(void *data, const pace_log_record_t *record) {
    (void)data;
    if (strcmp(record->event, "pool.started") != 0) return;
    for (size_t n = 0; n < record->field_count; n++)
        if (strcmp(record->fields[n].name, "threads") == 0)
            printf("%s %s: %d threads\n", pace_log_level_name(record->level), record->event,
                   (int)record->fields[n].u64);
}

static void print_level(pace_log_t *log) {
    uint32_t level;
    must(pace_log_level(log, PACE_LOG_NET, &level));
    printf("servers are logged from %s on\n", pace_log_level_name(level));
}

int main(void) {
    pace_log_config_t config;
    pace_pool_config_t threads;
    pace_log_t *log;
    pace_pool_t *pool;
    must(pace_log_config_init(&config, sizeof config));
    config.levels = "info,net=debug"; /* and `file`, `max_size`, `files` */
    config.on_record = print;
    must(pace_log_new(&config, &log));
    must(pace_pool_config_init(&threads, sizeof threads));
    threads.threads = 3;
    threads.log = log;
    must(pace_pool_new(&threads, &pool));
    must(pace_log_flush(log, MINUTE)); /* what was logged has been printed */

    print_level(log);
    must(pace_log_set_levels(log, "warn")); /* at any time */
    print_level(log);
    pace_pool_free(pool);
    must(pace_log_close(log, MINUTE));
    pace_log_free(log);
    return 0;
}
