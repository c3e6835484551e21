/* Logs in wrong hands: NULL, numbers without end, structs of another size, calls inside their
 * own callbacks, after their end, in forked children and by ten threads at once. Nothing crashes or hangs, each
 * call has a status, what was refused has changed nothing, and every `drop` runs once. */
#include "check.h"

static pace_pool_t *pool_with(pace_log_t *log) {
    pace_pool_config_t config;
    pace_pool_t *pool = NULL;
    OK(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    config.pin = "none";
    config.log = log;
    OK(pace_pool_new(&config, &pool));
    return pool;
}

static pace_log_config_t log_config(void) {
    pace_log_config_t config;
    OK(pace_log_config_init(&config, sizeof config));
    return config;
}

static void null_is_refused(void) {
    pace_log_t *log = NULL;
    pace_log_config_t config;
    pace_log_stats_t stats = {0};
    uint32_t level = 7;
    SAYS(PACE_EINVAL, pace_log_config_init(NULL, sizeof config));
    SAYS(PACE_EINVAL, pace_log_config_load(NULL, NULL, false));
    SAYS(PACE_EINVAL, pace_log_new(NULL, NULL));
    SAYS(PACE_EINVAL, pace_log_install(NULL));
    SAYS(PACE_EINVAL, pace_log_set_levels(NULL, "info"));
    SAYS(PACE_EINVAL, pace_log_level(NULL, 0, &level));
    SAYS(PACE_EINVAL, pace_log_flush(NULL, PACE_FOREVER));
    SAYS(PACE_EINVAL, pace_log_close(NULL, PACE_FOREVER));
    SAYS(PACE_EINVAL, pace_log_stats(NULL, &stats));
    pace_log_free(NULL);
    config = log_config();
    config.cq_capacity = 1;
    OK(pace_log_new(&config, &log));
    SAYS(PACE_EINVAL, pace_log_set_levels(log, NULL));
    SAYS(PACE_EINVAL, pace_log_level(log, 0, NULL));
    SAYS(PACE_EINVAL, pace_log_stats(log, NULL));
    CHECK(level == 7);
    pace_log_free(log);
}

/* What is refused is named, and its `drop` does not run: the caller still has what it was to drop. */
static void numbers_without_end(void) {
    pace_log_t *log = NULL;
    counts_t counts = {0};
    const uint64_t sizes[] = {0, 1, 1023, ((uint64_t)1 << 40) + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pace_log_config_t config = log_config();
        config.user_data = &counts;
        config.drop = count_drop;
        config.file = "/nowhere/at/all.log";
        config.max_size = sizes[i];
        SAYS(PACE_EINVAL, pace_log_new(&config, &log));
        TELLS("max_size");
    }
    const uint32_t numbers[] = {0, (1 << 20) + 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        pace_log_config_t config = log_config();
        config.user_data = &counts;
        config.drop = count_drop;
        config.capacity = numbers[i];
        SAYS(PACE_EINVAL, pace_log_new(&config, &log));
        TELLS("capacity");
        config.capacity = 1;
        config.files = numbers[i];
        SAYS(PACE_EINVAL, pace_log_new(&config, &log));
        TELLS("files");
        config.files = 1;
        config.cq_capacity = numbers[i];
        if (numbers[i] > 0) SAYS(PACE_EINVAL, pace_log_new(&config, &log));
    }
    const uint32_t wrong[] = {0, 1, 7, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pace_log_config_t config = log_config();
        SAYS(PACE_EVERSION, pace_log_config_init(&config, wrong[i]));
        config.struct_size = wrong[i];
        SAYS(PACE_EVERSION, pace_log_new(&config, &log));
        SAYS(PACE_EVERSION, pace_log_config_load(&config, NULL, false));
    }
    CHECK(log == NULL && atomic_load(&counts.drops) == 0);
    OK(pace_log_new(NULL, &log));
    pace_log_stats_t stats = {0};
    SAYS(PACE_EVERSION, pace_log_stats(log, &stats));
    uint32_t level = 7;
    for (uint32_t component = 9; component != 0; component *= 2)
        SAYS(PACE_EINVAL, pace_log_level(log, component, &level));
    char *text = (char *)malloc(1 << 20);
    memset(text, ',', 1 << 20);
    text[(1 << 20) - 1] = '\0';
    SAYS(PACE_EINVAL, pace_log_set_levels(log, text));
    SAYS(PACE_EINVAL, pace_log_set_levels(log, "\xff\xfe"));
    SAYS(PACE_EINVAL, pace_log_set_levels(log, ""));
    memset(text, 'x', (1 << 20) - 1);
    SAYS(PACE_EINVAL, pace_log_set_levels(log, text));
    free(text);
    CHECK(level == 7);
    CHECK(strcmp(pace_log_level_name(UINT32_MAX), "?") == 0);
    CHECK(strcmp(pace_log_component_name(UINT32_MAX), "?") == 0);
    OK(pace_log_close(log, PACE_FOREVER));
    pace_log_free(log);
}

/* --- inside their own callbacks ------------------------------------------------------------------- */

typedef struct inner {
    counts_t counts;
    _Atomic(pace_log_t *) log;
    bool frees, forks;
} inner_t;

static void drop_inner(void *data) { count_drop(&((inner_t *)data)->counts); }

/* In the child there is no such thread, though this one is called as it was. */
static void fork_here(pace_log_t *log) {
    int status = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
        SAYS(PACE_EFORKED, pace_log_flush(log, PACE_FOREVER));
        _exit(42);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static void asks_its_log(void *data, const pace_log_record_t *record) {
    inner_t *inner = (inner_t *)data;
    pace_log_t *log = atomic_load(&inner->log), *other = NULL;
    pace_log_stats_t stats = {0};
    uint32_t level;
    CHECK(record->event != NULL);
    if (log == NULL || atomic_fetch_add(&inner->counts.runs, 1) > 0) return;
    stats.struct_size = sizeof stats;
    SAYS(PACE_EDEADLOCK, pace_log_flush(log, 0));
    SAYS(PACE_EDEADLOCK, pace_log_close(log, 0));
    OK(pace_log_stats(log, &stats));
    OK(pace_log_level(log, PACE_LOG_POOL, &level));
    OK(pace_log_set_levels(log, "trace"));
    OK(pace_log_new(NULL, &other));
    /* A pool that tells here of itself. */
    finish(pool_with(log));
    finish(pool_with(other));
    OK(pace_log_close(other, PACE_FOREVER));
    pace_log_free(other);
    if (inner->forks) fork_here(log);
    if (inner->frees) pace_log_free(log);
}

static void succeeds(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    *outcome = 0;
}

/* Runs some tasks, whose ends the log has. */
static void work(pace_pool_t *pool, pace_log_t *log) {
    pace_workers_config_t config;
    pace_workers_t *workers = NULL;
    pace_task_type_t *kind = NULL;
    pace_task_t task;
    OK(pace_workers_config_init(&config, sizeof config));
    config.log = log;
    OK(pace_workers_new(pool, &config, &workers));
    OK(pace_task_type_new(workers, "work", NULL, &kind));
    for (int i = 0; i < 10; i++) {
        OK(pace_workers_submit(workers, kind, succeeds, NULL, NULL, NULL, &task));
        OK(pace_workers_wait(workers, task, PACE_FOREVER, NULL));
    }
    pace_task_type_free(kind);
    OK(pace_workers_shutdown(workers, PACE_FOREVER, 0, 0, NULL, NULL, NULL));
    pace_workers_free(workers);
}

static void inside_their_own_callbacks(void) {
    for (int way = 0; way < 4; way++) {
        inner_t told = {0};
        pace_log_t *log = NULL;
        pace_log_config_t config = log_config();
        told.frees = way & 1;
        told.forks = way & 2;
        config.cq_capacity = 64;
        config.levels = "info,task=debug";
        config.on_record = asks_its_log;
        config.user_data = &told;
        config.drop = drop_inner;
        OK(pace_log_new(&config, &log));
        pace_pool_t *pool = pool_with(log);
        pace_pool_t *other = pool_with(NULL);
        atomic_store(&told.log, log);
        work(other, told.frees ? NULL : log);
        finish(pool);
        UNTIL(atomic_load(&told.counts.runs) > 0);
        finish(other);
        if (!told.frees) {
            OK(pace_log_close(log, PACE_FOREVER));
            pace_log_free(log);
        }
        UNTIL(atomic_load(&told.counts.drops) == 1);
    }
}

/* --- after their end ------------------------------------------------------------------------------ */

static void a_closed_log_answers(void) {
    pace_log_t *log = NULL;
    pace_log_config_t config = log_config();
    pace_log_stats_t stats = {0};
    pace_cq_t *cq = NULL;
    pace_cq_entry_t entry;
    counts_t counts = {0};
    uint32_t level = 7;
    size_t count = 0;
    config.cq_capacity = 8;
    config.user_data = &counts;
    config.drop = count_drop;
    OK(pace_log_new(&config, &log));
    OK(pace_log_close(log, PACE_FOREVER));
    CHECK(atomic_load(&counts.drops) == 1);
    /* A pool that has it all the same. */
    finish(pool_with(log));
    stats.struct_size = sizeof stats;
    /* It can be attached still, and brings its end. */
    OK(pace_cq_new(NULL, NULL, &cq));
    OK(pace_cq_log(cq, log, 1));
    OK(pace_cq_wait(cq, &entry, SIZE_MAX, PACE_FOREVER, &count));
    CHECK(count == 1 && entry.kind == PACE_CQ_ENDED);
    SAYS(PACE_ETIMEDOUT, pace_cq_wait(cq, &entry, SIZE_MAX, 0, &count));
    pace_cq_free(cq);
    OK(pace_log_flush(log, PACE_FOREVER));
    OK(pace_log_close(log, PACE_FOREVER));
    OK(pace_log_stats(log, &stats));
    OK(pace_log_level(log, PACE_LOG_POOL, &level));
    CHECK(level == PACE_LOG_OFF && stats.told == 0);
    OK(pace_log_set_levels(log, "trace"));
    finish(pool_with(log));
    OK(pace_log_flush(log, PACE_FOREVER));
    OK(pace_log_stats(log, &stats));
    CHECK(stats.told == 0);
    pace_log_free(log);
    CHECK(atomic_load(&counts.drops) == 1);
}

static void after_a_fork(void) {
    pace_log_t *log = NULL;
    pace_log_config_t config = log_config();
    counts_t counts = {0};
    int status = 0;
    config.cq_capacity = 8;
    config.user_data = &counts;
    config.drop = count_drop;
    OK(pace_log_new(&config, &log));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pace_log_stats_t stats = {0};
        pace_log_t *own = NULL;
        uint32_t level;
        alarm(60);
        stats.struct_size = sizeof stats;
        SAYS(PACE_EFORKED, pace_log_install(log));
        SAYS(PACE_EFORKED, pace_log_set_levels(log, "info"));
        SAYS(PACE_EFORKED, pace_log_level(log, 0, &level));
        SAYS(PACE_EFORKED, pace_log_flush(log, PACE_FOREVER));
        SAYS(PACE_EFORKED, pace_log_close(log, PACE_FOREVER));
        SAYS(PACE_EFORKED, pace_log_stats(log, &stats));
        pace_pool_t *pool = pool_with(NULL);
        pace_workers_config_t workers_config;
        pace_workers_t *workers = NULL;
        OK(pace_workers_config_init(&workers_config, sizeof workers_config));
        workers_config.log = log;
        SAYS(PACE_EFORKED, pace_workers_new(pool, &workers_config, &workers));
        CHECK(workers == NULL);
        finish(pool);
        pace_log_free(log);
        CHECK(atomic_load(&counts.drops) == 0);
        /* One of its own is none of the parent's business. */
        OK(pace_log_new(NULL, &own));
        finish(pool_with(own));
        OK(pace_log_close(own, PACE_FOREVER));
        pace_log_free(own);
        _exit(42);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    finish(pool_with(log));
    OK(pace_log_close(log, PACE_FOREVER));
    CHECK(atomic_load(&counts.drops) == 1);
    pace_log_free(log);
}

/* --- ten threads ---------------------------------------------------------------------------------- */

enum { THREADS = 10, ROUNDS = 40 };

typedef struct shared {
    pace_log_t *log;
    pace_pool_t *pool;
    pace_cq_t *cq;
    atomic_uint_least64_t brought;
} shared_t;

static void *does_all(void *data) {
    shared_t *shared = (shared_t *)data;
    const char *levels[] = {"off", "trace", "info,pool=debug", "loud"};
    for (int round = 0; round < ROUNDS; round++) {
        pace_cq_entry_t entries[4];
        pace_log_stats_t stats = {0};
        uint32_t level;
        size_t count = 0;
        stats.struct_size = sizeof stats;
        SAYS(round % 4 == 3 ? PACE_EINVAL : PACE_OK,
             pace_log_set_levels(shared->log, levels[round % 4]));
        OK(pace_pool_set_active(shared->pool, 1 + (uint32_t)round % 2));
        OK(pace_log_level(shared->log, (uint32_t)round % 9, &level));
        pace_status_t status = pace_cq_wait(shared->cq, entries, 4, round % 2 ? MILLI : 0, &count);
        CHECK(status == PACE_OK || status == PACE_ETIMEDOUT);
        if (status == PACE_OK) {
            OK(pace_cq_done(shared->cq, entries, count));
            atomic_fetch_add(&shared->brought, count);
        }
        OK(pace_log_flush(shared->log, PACE_FOREVER));
        OK(pace_log_stats(shared->log, &stats));
        if (round % 10 == 0) work(shared->pool, shared->log);
    }
    return NULL;
}

static void *takes_until_the_end(void *data) {
    shared_t *shared = (shared_t *)data;
    pace_cq_entry_t entries[4];
    size_t count;
    for (bool over = false; !over; atomic_fetch_add(&shared->brought, count - over)) {
        OK(pace_cq_wait(shared->cq, entries, 4, PACE_FOREVER, &count));
        over = entries[count - 1].kind == PACE_CQ_ENDED;
        OK(pace_cq_done(shared->cq, entries, count));
    }
    return NULL;
}

static void *closes(void *data) {
    OK(pace_log_close(((shared_t *)data)->log, PACE_FOREVER));
    return NULL;
}

static void by_ten_threads(void) {
    shared_t shared = {0};
    pthread_t threads[THREADS], taker, others[THREADS];
    pace_log_config_t config = log_config();
    pace_log_stats_t stats = {0};
    counts_t counts = {0};
    config.cq_capacity = 1 << 16;
    config.user_data = &counts;
    config.drop = count_drop;
    OK(pace_log_new(&config, &shared.log));
    OK(pace_cq_new(NULL, NULL, &shared.cq));
    OK(pace_cq_log(shared.cq, shared.log, 1));
    shared.pool = pool_with(shared.log);
    CHECK(pthread_create(&taker, NULL, takes_until_the_end, &shared) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, does_all, &shared) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    stats.struct_size = sizeof stats;
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&others[i], NULL, closes, &shared) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(others[i], NULL) == 0);
    CHECK(pthread_join(taker, NULL) == 0);
    OK(pace_log_stats(shared.log, &stats));
    CHECK(stats.queued == atomic_load(&shared.brought) && stats.dropped == 0);
    CHECK(atomic_load(&counts.drops) == 1);
    finish(shared.pool);
    pace_cq_free(shared.cq);
    pace_log_free(shared.log);
}

int main(void) {
    check_begin();
    null_is_refused();
    numbers_without_end();
    inside_their_own_callbacks();
    a_closed_log_answers();
    after_a_fork();
    by_ten_threads();
    return 0;
}
