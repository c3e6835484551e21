/* A structured log: to a function, or to a file of JSON lines that is rotated.
 *
 * feature: ops/log
 */
#include "../check.h"
#include <paceline/log.h>
#include <paceline/pool.h>
#include <stdatomic.h>
#include <string.h>

#define MINUTE UINT64_C(60000000000)

static void hear(void *started, const pace_log_record_t *record) {
    if (strcmp(record->event, "pool.started") != 0) return;
    CHECK(record->level == PACE_LOG_INFO && record->component == PACE_LOG_POOL);
    for (size_t n = 0; n < record->field_count; n++)
        if (strcmp(record->fields[n].name, "threads") == 0)
            atomic_store((atomic_int *)started, (int)record->fields[n].u64);
}

int main(void) {
    atomic_int started = 0;
    uint32_t level;
    pace_log_config_t config;
    pace_pool_config_t threads;
    pace_log_t *log;
    pace_pool_t *pool;
    must(pace_log_config_init(&config, sizeof config));
    config.levels = "info,net=debug"; /* and `file`, `max_size`, `files` */
    config.on_record = hear;
    config.user_data = &started;
    must(pace_log_new(&config, &log));
    must(pace_pool_config_init(&threads, sizeof threads));
    threads.threads = 3;
    threads.log = log;
    must(pace_pool_new(&threads, &pool));
    must(pace_log_flush(log, MINUTE));
    CHECK(atomic_load(&started) == 3);

    must(pace_log_set_levels(log, "warn")); /* at any time */
    must(pace_log_level(log, PACE_LOG_NET, &level));
    CHECK(level == PACE_LOG_WARN);
    pace_pool_free(pool);
    must(pace_log_close(log, MINUTE));
    pace_log_free(log);
    return 0;
}
