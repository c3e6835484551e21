/* Statistics and books. */
#include "check.h"

static int32_t tick(void *data, pace_handle_t self) {
    (void)self;
    atomic_fetch_add(&((counts_t *)data)->runs, 1);
    return 5; /* no flow */
}

static char *figures_of(pace_pool_t *pool, uint32_t format) {
    static char text[1 << 16];
    size_t needed = 0;
    SAYS(PACE_EFULL, pace_pool_metrics(pool, format, NULL, 0, &needed));
    CHECK(needed > 100);
    OK(pace_pool_metrics(pool, format, text, sizeof text, &needed));
    CHECK(strlen(text) == needed - 1);
    return text;
}

/* Figures of a pool, the process and a file system, without a worker pool. */
static void figures(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    size_t needed;
    OK(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    config.name = "figured";
    OK(pace_pool_new(&config, &pool));
    const char *text = figures_of(pool, PACE_METRICS_PROMETHEUS);
    CHECK(strstr(text, "pool=\"figured\"") && strstr(text, "process_resident_memory_bytes"));
    CHECK(!strstr(text, "system_disk"));
    SAYS(PACE_EOS, pace_pool_disk(pool, "/nowhere/at/all"));
    TELLS("/nowhere/at/all");
    SAYS(PACE_EINVAL, pace_pool_disk(pool, NULL));
    OK(pace_pool_disk(pool, "/tmp"));
    OK(pace_pool_disk(pool, "/tmp"));
    text = figures_of(pool, PACE_METRICS_OPENMETRICS);
    CHECK(strstr(text, "system_disk_free_bytes{path=\"/tmp\"}") && strstr(text, "# EOF"));
    CHECK(strstr(text, "system_disk_total_bytes{path=\"/tmp\"}"));
    CHECK(figures_of(pool, PACE_METRICS_JSON)[0] == '{');
    SAYS(PACE_EINVAL, pace_pool_metrics(pool, 2, NULL, 0, &needed));
    SAYS(PACE_EINVAL, pace_pool_metrics(pool, 0, NULL, 9, &needed));

    /* So are the parts of the pool, as long as they last. */
    pace_cq_t *cq;
    pace_cq_entry_t entry;
    size_t got;
    uint64_t tag = 7;
    OK(pace_cq_new(pool, NULL, &cq));
    OK(pace_cq_post(cq, &tag, 1, &needed));
    OK(pace_cq_wait(cq, &entry, 1, PACE_FOREVER, &got));
    text = figures_of(pool, PACE_METRICS_PROMETHEUS);
    CHECK(strstr(text, "paceline_queue_brought_total{pool=\"figured\",queue=\"1\"}"));
    CHECK(strstr(text, "paceline_queue_out{pool=\"figured\",queue=\"1\"} 0"));
    pace_cq_free(cq);
    CHECK(!strstr(figures_of(pool, PACE_METRICS_PROMETHEUS), "paceline_queue"));

    /* A worker pool tells of it, too. */
    pace_workers_config_t how;
    pace_workers_t *workers;
    static char more[1 << 16];
    OK(pace_workers_config_init(&how, sizeof how));
    how.metrics = true;
    OK(pace_workers_new(pool, &how, &workers));
    OK(pace_workers_metrics(workers, PACE_METRICS_PROMETHEUS, more, sizeof more, &needed));
    CHECK(strstr(more, "system_disk_free_bytes{path=\"/tmp\"}") &&
          strstr(more, "paceline_task_in_flight"));
    pace_workers_free(workers);
    finish(pool);
}

int main(void) {
    figures();
    check_begin();
    pace_pool_t *pool = pool_of(2);
    pace_pool_stats_t stats = {0};
    pace_thread_stats_t thread = {0};
    pace_set_stats_t set = {0};
    counts_t counts = {0};
    pace_handle_t handle;
    SAYS(PACE_EVERSION, pace_pool_stats(pool, &stats));
    stats.struct_size = sizeof stats;
    thread.struct_size = sizeof thread;
    set.struct_size = sizeof set;
    for (int i = 0; i < 100; i++) OK(pace_pool_post(pool, 2, count_run, &counts, NULL));
    UNTIL(atomic_load(&counts.runs) == 100);
    OK(pace_pool_every(pool, MILLI, tick, &counts, count_drop, &handle));
    UNTIL(atomic_load(&counts.drops) == 1);
    CHECK(atomic_load(&counts.runs) == 101);

    uint64_t tasks = 0, panics = 0;
    do {
        check_nap();
        tasks = panics = 0;
        OK(pace_pool_stats(pool, &stats));
        CHECK(stats.threads == 6 && stats.sets == 1); /* two, and four places */
        for (uint32_t i = 0; i < stats.threads; i++) {
            OK(pace_pool_thread_stats(pool, i, &thread));
            CHECK(thread.role <= PACE_ROLE_TASK && thread.cpu == PACE_NONE && !thread.pin_failed);
            tasks += thread.tasks;
            panics += thread.panics;
        }
    } while (tasks != 100 || panics != 1 || stats.handles != 0);
    OK(pace_pool_set_stats(pool, 0, &set));
    CHECK(set.leader < 2 || set.leader == PACE_NONE);
    SAYS(PACE_EINVAL, pace_pool_thread_stats(pool, 6, &thread));
    TELLS("thread is 6, but must be less than 6");
    SAYS(PACE_EINVAL, pace_pool_set_stats(pool, 1, &set));
    SAYS(PACE_EINVAL, pace_pool_audit(pool, NULL));
    finish(pool);
    return 0;
}
