/* The structured log: levels, records to a callback, to a file, and to a completion queue; its end. */
#include "check.h"

#include <stdatomic.h>
#include <sys/wait.h>

/* What a callback is told; the log's thread alone writes, and others read after a flush. */
typedef struct {
    _Atomic(pace_log_t *) log;
    atomic_int told, panics, drops;
    char order[1024];
} noted_t;

static void note(void *data, const pace_log_record_t *record) {
    noted_t *noted = (noted_t *)data;
    pace_log_t *log = atomic_load(&noted->log);
    size_t used = strlen(noted->order);
    snprintf(noted->order + used, sizeof noted->order - used, "%s ", record->event);
    if (log != NULL) {
        SAYS(PACE_EDEADLOCK, pace_log_flush(log, PACE_FOREVER));
        SAYS(PACE_EDEADLOCK, pace_log_close(log, PACE_FOREVER));
    }
    CHECK(record->time_ns > UINT64_C(1600000000) * SECOND);
    CHECK(record->component == PACE_LOG_POOL || record->component == PACE_LOG_LOG);
    CHECK(strcmp(record->pool, "logged") == 0 && record->message[0] != '\0');
    if (strcmp(record->event, "pool.started") == 0) {
        CHECK(record->level == PACE_LOG_INFO && record->field_count == 3);
        CHECK(strcmp(record->fields[0].name, "threads") == 0);
        CHECK(record->fields[0].kind == PACE_LOG_U64 && record->fields[0].u64 == 2);
        CHECK(record->fields[0].text == NULL && record->fields[0].i64 == 0);
    }
    atomic_fetch_add(&noted->told, 1);
}

static void dropped(void *data) { atomic_fetch_add(&((noted_t *)data)->drops, 1); }

static pace_pool_t *logged(pace_log_t *log) {
    pace_pool_config_t config;
    pace_pool_t *pool = NULL;
    OK(pace_pool_config_init(&config, sizeof config));
    CHECK(config.log == NULL);
    config.threads = 2;
    config.name = "logged";
    config.log = log;
    OK(pace_pool_new(&config, &pool));
    return pool;
}

/* Tells one record at debug for each, on this thread. */
static void tell(pace_pool_t *pool, int count) {
    for (int index = 0; index < count; index++) OK(pace_pool_set_active(pool, index % 2 == 0 ? 1 : 2));
}

static void records_reach_a_callback(void) {
    noted_t noted = {NULL, 0, 0, 0, ""};
    pace_log_config_t config;
    pace_log_t *log = NULL;
    pace_log_stats_t stats = {0};
    uint32_t level = 77;
    OK(pace_log_config_init(&config, sizeof config));
    CHECK(config.capacity == 8192 && config.files == 4 && config.cq_capacity == 0);
    CHECK(config.levels == NULL && config.max_size == 64 << 20);
    config.levels = "warn,pool=debug";
    config.on_record = note;
    config.user_data = &noted;
    config.drop = dropped;
    OK(pace_log_new(&config, &log));
    atomic_store(&noted.log, log);
    OK(pace_log_level(log, PACE_LOG_POOL, &level));
    CHECK(level == PACE_LOG_DEBUG);
    OK(pace_log_level(log, PACE_LOG_HUB, &level));
    CHECK(level == PACE_LOG_WARN);
    SAYS(PACE_EINVAL, pace_log_level(log, 9, &level));
    TELLS("component is 9, but must be 0 to 8");
    CHECK(level == PACE_LOG_WARN);

    pace_pool_t *pool = logged(log);
    tell(pool, 2);
    OK(pace_log_set_levels(log, "off,pool=info"));
    tell(pool, 2);
    SAYS(PACE_EINVAL, pace_log_set_levels(log, "info,pol=debug"));
    TELLS("levels is \"info,pol=debug\", but must be levels (off, error, warn");
    SAYS(PACE_EINVAL, pace_log_set_levels(log, NULL));
    OK(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    OK(pace_log_flush(log, 3600 * SECOND));
    CHECK(strcmp(noted.order, "pool.started pool.active pool.active pool.draining pool.stopped ") == 0);
    stats.struct_size = sizeof stats;
    OK(pace_log_stats(log, &stats));
    CHECK(stats.told == 5 && stats.dropped == 0 && stats.errors == 0 && stats.last_error == NULL);

    OK(pace_log_close(log, 3600 * SECOND));
    CHECK(atomic_load(&noted.told) == 5 && atomic_load(&noted.drops) == 1);
    OK(pace_log_close(log, 0));
    pace_pool_free(pool);
    pace_log_free(log);
    CHECK(atomic_load(&noted.told) == 5 && atomic_load(&noted.drops) == 1);
}

/* One that is only freed ends with its last pool. */
static void a_freed_log_lives_as_long_as_its_pool(void) {
    noted_t noted = {NULL, 0, 0, 0, ""};
    pace_log_config_t config;
    pace_log_t *log = NULL;
    OK(pace_log_config_init(&config, sizeof config));
    config.on_record = note;
    config.user_data = &noted;
    config.drop = dropped;
    OK(pace_log_new(&config, &log));
    pace_pool_t *pool = logged(log);
    pace_log_free(log);
    OK(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    UNTIL(atomic_load(&noted.told) == 3);
    CHECK(atomic_load(&noted.drops) == 0);
    pace_pool_free(pool);
    UNTIL(atomic_load(&noted.drops) == 1);
}

static void records_are_brought(void) {
    pace_log_config_t config;
    pace_log_t *log = NULL;
    pace_cq_t *cq = NULL;
    pace_cq_entry_t entries[8];
    pace_log_stats_t stats = {0};
    size_t count = 0;
    OK(pace_log_config_init(&config, sizeof config));
    config.levels = "off,pool=debug";
    config.cq_capacity = 4;
    OK(pace_log_new(&config, &log));
    OK(pace_cq_new(NULL, NULL, &cq));
    OK(pace_cq_log(cq, log, 1));
    SAYS(PACE_ETIMEDOUT, pace_cq_wait(cq, entries, 8, 0, &count));
    pace_pool_t *pool = logged(log);
    tell(pool, 2);
    OK(pace_log_flush(log, 3600 * SECOND));
    OK(pace_cq_wait(cq, entries, 2, 0, &count));
    const pace_log_record_t *first = &entries[0].detail.record, *second = &entries[1].detail.record;
    CHECK(count == 2 && strcmp(first->event, "pool.started") == 0);
    CHECK(strcmp(second->event, "pool.active") == 0 && second->level == PACE_LOG_DEBUG);
    CHECK(second->field_count == 2 && strcmp(second->fields[1].name, "threads") == 0);
    CHECK(second->fields[1].u64 == 1);
    OK(pace_cq_done(cq, entries, count));
    OK(pace_cq_wait(cq, entries, 8, PACE_FOREVER, &count));
    CHECK(count == 1 && first->fields[1].u64 == 2);
    OK(pace_cq_done(cq, entries, count));
    tell(pool, 7);
    OK(pace_log_flush(log, 3600 * SECOND));
    OK(pace_cq_wait(cq, entries, 8, 0, &count));
    CHECK(count == 4);
    stats.struct_size = sizeof stats;
    OK(pace_log_stats(log, &stats));
    CHECK(stats.told == 10 && stats.dropped == 3 && stats.queued == 7);
    OK(pace_log_set_levels(log, "off"));
    OK(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_pool_free(pool);
    OK(pace_log_close(log, 3600 * SECOND));
    OK(pace_cq_done(cq, entries, count));
    OK(pace_cq_wait(cq, entries, 8, PACE_FOREVER, &count));
    CHECK(count == 1 && entries[0].kind == PACE_CQ_ENDED && entries[0].tag == 1);
    pace_cq_free(cq);
    pace_log_free(log);
}

static void *ends(void *log) {
    OK(pace_log_close((pace_log_t *)log, 3600 * SECOND));
    return NULL;
}

/* Who takes records while the log is closed has all that there were when it hears of the end. */
static void all_is_brought_before_the_end_is_told(void) {
    for (int round = 0; round < 300; round++) {
        pace_log_config_t config;
        pace_log_t *log = NULL;
        pace_cq_t *cq = NULL;
        pace_cq_entry_t entries[2] = {0};
        pace_log_stats_t stats = {0};
        uint64_t brought = 0;
        size_t count = 0;
        pthread_t other;
        OK(pace_log_config_init(&config, sizeof config));
        config.levels = "off,pool=debug";
        config.cq_capacity = 64;
        OK(pace_log_new(&config, &log));
        OK(pace_cq_new(NULL, NULL, &cq));
        OK(pace_cq_log(cq, log, 1));
        pace_pool_t *pool = logged(log);
        tell(pool, 4);
        CHECK(pthread_create(&other, NULL, ends, log) == 0);
        for (bool over = false; !over; brought += count - over) {
            pace_status_t status = pace_cq_wait(cq, entries, 2, 0, &count);
            if (status != PACE_OK) {
                SAYS(PACE_ETIMEDOUT, status);
                count = 0;
                continue;
            }
            over = entries[count - 1].kind == PACE_CQ_ENDED;
            OK(pace_cq_done(cq, entries, count));
        }
        CHECK(pthread_join(other, NULL) == 0);
        stats.struct_size = sizeof stats;
        OK(pace_log_stats(log, &stats));
        CHECK(brought == stats.queued && brought == stats.told);
        pace_pool_free(pool);
        pace_cq_free(cq);
        pace_log_free(log);
    }
}

static void a_file_is_written_as_settings_say(void) {
    char path[] = "/tmp/paceline-log-XXXXXX", settings[64], text[256], line[1024];
    pace_log_config_t config;
    pace_log_t *log = NULL;
    int lines = 0;
    close(mkstemp(path));
    snprintf(settings, sizeof settings, "%s.yaml", path);
    snprintf(text, sizeof text, "log:\n  file: %s\n  levels: off,pool=debug\n  files: 7\n", path);
    FILE *file = fopen(settings, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    OK(pace_log_config_init(&config, sizeof config));
    OK(pace_log_config_load(&config, settings, false));
    CHECK(config.files == 7 && strcmp(config.file, path) == 0);
    CHECK(strcmp(config.levels, "off,pool=debug") == 0);
    OK(pace_log_new(&config, &log));
    pace_pool_t *pool = logged(log);
    tell(pool, 6);
    pace_pool_free(pool);
    OK(pace_log_close(log, 3600 * SECOND));
    pace_log_free(log);
    file = fopen(path, "r");
    CHECK(file != NULL);
    for (; fgets(line, sizeof line, file) != NULL; lines++) {
        CHECK(strncmp(line, "{\"time\":\"2", 10) == 0 && strstr(line, "\"component\":\"pool\"") != NULL);
    }
    fclose(file);
    CHECK(lines == 1 + 6 + 3); /* with what it tells of its end */
    unlink(path);
    unlink(settings);
}

static void wrong_settings_are_named(void) {
    pace_log_config_t config;
    pace_log_t *log = NULL;
    OK(pace_log_config_init(&config, sizeof config));
    config.levels = "loud";
    SAYS(PACE_EINVAL, pace_log_new(&config, &log));
    TELLS("levels is \"loud\"");
    config.levels = NULL;
    config.cq_capacity = (1 << 20) + 1;
    SAYS(PACE_EINVAL, pace_log_new(&config, &log));
    TELLS("cq_capacity is 1048577, but must be 0 to 1048576");
    config.cq_capacity = 0;
    config.files = 1001;
    SAYS(PACE_EINVAL, pace_log_new(&config, &log));
    TELLS("files is 1001, but must be 1 to 1000");
    SAYS(PACE_EINVAL, pace_log_new(NULL, NULL));
    CHECK(log == NULL);
}

static void names_are_those_of_texts(void) {
    CHECK(strcmp(pace_log_level_name(PACE_LOG_OFF), "off") == 0);
    CHECK(strcmp(pace_log_level_name(PACE_LOG_TRACE), "trace") == 0);
    CHECK(strcmp(pace_log_level_name(6), "?") == 0);
    CHECK(strcmp(pace_log_component_name(PACE_LOG_POOL), "pool") == 0);
    CHECK(strcmp(pace_log_component_name(9), "?") == 0);
    pace_log_t *log = NULL;
    OK(pace_log_new(NULL, &log));
    for (uint32_t component = PACE_LOG_POOL; component <= PACE_LOG_LOG; component++) {
        char text[64];
        uint32_t level = 0;
        snprintf(text, sizeof text, "off,%s=trace", pace_log_component_name(component));
        OK(pace_log_set_levels(log, text));
        OK(pace_log_level(log, component, &level));
        CHECK(level == PACE_LOG_TRACE);
        OK(pace_log_level(log, component == 0 ? 1 : 0, &level));
        CHECK(level == PACE_LOG_OFF);
    }
    pace_log_free(log);
    pace_log_free(NULL);
}

/* Last, as it stays for the life of the process. */
static void the_installed_log_is_that_of_pools_without_one(void) {
    noted_t noted = {NULL, 0, 0, 0, ""};
    pace_log_config_t config;
    pace_log_t *log = NULL;
    OK(pace_log_config_init(&config, sizeof config));
    config.on_record = note;
    config.user_data = &noted;
    OK(pace_log_new(&config, &log));
    OK(pace_log_install(log));
    SAYS(PACE_EFULL, pace_log_install(log));
    pace_pool_t *pool = logged(NULL);
    pace_pool_free(pool);
    OK(pace_log_close(log, 3600 * SECOND));
    CHECK(atomic_load(&noted.told) == 3);
    pace_log_free(log);
}

/* --- without a log ---------------------------------------------------------------------------- */

static int32_t fails(void *data, pace_handle_t self) {
    (void)self;
    atomic_fetch_add((atomic_int *)data, 1);
    return 77;
}

/* A timer fails, and a thousand times what a wrapper catches is told. */
static void faults(void) {
    atomic_int ticks = 0;
    pace_handle_t timer;
    pace_pool_t *pool = logged(NULL);
    OK(pace_pool_every(pool, MILLI, fails, &ticks, NULL, &timer));
    while (atomic_load(&ticks) == 0) usleep(1000);
    for (int count = 0; count < 1000; count++) pace_unhandled("na\xefve", false);
    pace_unhandled(NULL, false);
    finish(pool);
}

static void quiet_faults(void) {
    pace_quiet(true);
    faults();
}

static void logged_faults(void) {
    pace_log_config_t config;
    pace_log_t *log = NULL;
    OK(pace_log_config_init(&config, sizeof config));
    config.levels = "off";
    OK(pace_log_new(&config, &log));
    OK(pace_log_install(log));
    faults();
    pace_log_free(log);
}

/* What is said on the standard error stream by a child, which has no threads and no log yet. */
static int said_by(void (*body)(void), char *said, size_t room) {
    int ends[2], status = -1, lines = 0;
    size_t used = 0;
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        body();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], said + used, room - 1 - used)) > 0;) used += (size_t)got;
    close(ends[0]);
    said[used] = '\0';
    CHECK(waitpid(child, &status, 0) == child);
    if (status != 0) fprintf(stderr, "%s\n", said);
    CHECK(status == 0);
    for (size_t at = 0; at < used; at++) lines += said[at] == '\n';
    return lines;
}

static void what_is_said_when_nobody_listens(void) {
    static char said[1 << 16];
    CHECK(said_by(faults, said, sizeof said) == 2);
    CHECK(strstr(said, "paceline: ") == said && strstr(said, " pool=logged ") != NULL);
    CHECK(strstr(said, "pool.panicked: a handler's answer is no PACE_FLOW_ number what=timer") != NULL);
    CHECK(strstr(said, "pool.unhandled: na\xef\xbf\xbdve (give the pool a log") != NULL);
    CHECK(said_by(quiet_faults, said, sizeof said) == 0);
    CHECK(said_by(logged_faults, said, sizeof said) == 0);
}

int main(void) {
    what_is_said_when_nobody_listens();
    records_reach_a_callback();
    a_freed_log_lives_as_long_as_its_pool();
    records_are_brought();
    all_is_brought_before_the_end_is_told();
    a_file_is_written_as_settings_say();
    wrong_settings_are_named();
    names_are_those_of_texts();
    the_installed_log_is_that_of_pools_without_one();
    return 0;
}
