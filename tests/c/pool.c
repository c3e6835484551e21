/* Settings, structs that grow, hooks, the end. */
#include "check.h"

#include <spawn.h>

static counts_t hooks;
static atomic_int started, stopped, slow;

static void on_start(void *data, uint32_t thread) {
    CHECK(data == &hooks && thread < 2);
    atomic_fetch_add(&started, 1);
}

static void on_stop(void *data, uint32_t thread) {
    CHECK(data == &hooks && thread < 2 && atomic_load(&hooks.drops) == 0);
    atomic_fetch_add(&stopped, 1);
}

static void on_slow(void *data, uint32_t thread, uint64_t elapsed_ns, bool running) {
    (void)running;
    CHECK(data == &hooks && thread < 2 && elapsed_ns >= 10000);
    atomic_fetch_add(&slow, 1);
}

static void until_slow(void *data, int32_t *outcome) {
    (void)data;
    UNTIL(atomic_load(&slow) > 0);
    *outcome = 0;
}

static void hooks_are_called(void) {
    pace_pool_config_t config;
    pace_pool_t *pool = NULL;
    OK(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    config.name = "hooked";
    config.pin = "none";
    config.on_start = on_start;
    config.on_stop = on_stop;
    config.on_slow = on_slow;
    config.slow_ns = 10000;
    config.hook_data = &hooks;
    config.hook_drop = count_drop;
    OK(pace_pool_new(&config, &pool));
    OK(pace_pool_post(pool, PACE_LANE_NORMAL, until_slow, NULL, NULL));
    UNTIL(atomic_load(&started) == 2);
    finish(pool);
    CHECK(atomic_load(&stopped) == 2 && atomic_load(&slow) > 0);
    CHECK(atomic_load(&hooks.drops) == 1);

    /* Nothing has moved if it fails. */
    config.leaders = 7;
    pool = NULL;
    SAYS(PACE_EINVAL, pace_pool_new(&config, &pool));
    TELLS("leaders is 7");
    CHECK(pool == NULL && atomic_load(&hooks.drops) == 1);

    /* Without a hook its data is not needed: given back at once. */
    OK(pace_pool_config_init(&config, sizeof config));
    config.threads = 1;
    config.hook_data = &hooks;
    config.hook_drop = count_drop;
    OK(pace_pool_new(&config, &pool));
    CHECK(atomic_load(&hooks.drops) == 2);
    finish(pool);
}

static void every_field_is_checked(void) {
    struct {
        const char *name;
        size_t offset, size;
        uint64_t value;
    } bad[] = {
        {"threads", offsetof(pace_pool_config_t, threads), 4, 1025},
        {"max_joined", offsetof(pace_pool_config_t, max_joined), 4, 1025},
        {"leaders", offsetof(pace_pool_config_t, leaders), 4, 1024},
        {"source", offsetof(pace_pool_config_t, source), 4, 2},
        {"promotion", offsetof(pace_pool_config_t, promotion), 4, 2},
        {"watch_period", offsetof(pace_pool_config_t, watch_period_ns), 8, 9999},
        {"spin", offsetof(pace_pool_config_t, spin_ns), 8, 100000001},
        {"max_turn", offsetof(pace_pool_config_t, max_turn_ns), 8, 9999},
        {"lane_capacity", offsetof(pace_pool_config_t, lane_capacity), 4, 1},
        {"strand_capacity", offsetof(pace_pool_config_t, strand_capacity), 4, 1},
        {"max_handles", offsetof(pace_pool_config_t, max_handles), 4, 0},
        {"pin_strict", offsetof(pace_pool_config_t, pin_strict), 1, 2},
        {"reserved", offsetof(pace_pool_config_t, reserved), 1, 1},
        {"stack_size", offsetof(pace_pool_config_t, stack_size), 8, 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pace_pool_config_t config;
        pace_pool_t *pool = NULL;
        OK(pace_pool_config_init(&config, sizeof config));
        memcpy((char *)&config + bad[i].offset, &bad[i].value, bad[i].size);
        SAYS(PACE_EINVAL, pace_pool_new(&config, &pool));
        TELLS(bad[i].name);
        CHECK(pool == NULL);
    }
    const char *pins[] = {"", "everywhere", "0-", "\xff"};
    for (size_t i = 0; i < 4; i++) {
        pace_pool_config_t config;
        pace_pool_t *pool = NULL;
        OK(pace_pool_config_init(&config, sizeof config));
        config.pin = pins[i];
        SAYS(PACE_EINVAL, pace_pool_new(&config, &pool));
        TELLS("pin is");
    }
}

static void structs_may_grow(void) {
    pace_pool_config_t config;
    pace_pool_t *pool = NULL;
    SAYS(PACE_EVERSION, pace_pool_config_init(&config, 0));
    SAYS(PACE_EVERSION, pace_pool_config_init(&config, 127));
    TELLS("sizeof(pace_pool_config_t)");

    memset(&config, 0, sizeof config);
    SAYS(PACE_EVERSION, pace_pool_new(&config, &pool)); /* _init was forgotten */

    /* A client of tomorrow: fields behind ours. Zero is their default, and goes. */
    struct {
        pace_pool_config_t known;
        uint64_t tomorrow[2];
    } later;
    memset(&later, 0xff, sizeof later);
    OK(pace_pool_config_init(&later.known, sizeof later));
    CHECK(later.known.struct_size == sizeof later && later.tomorrow[1] == 0);
    later.known.threads = 1;
    OK(pace_pool_new(&later.known, &pool));
    later.tomorrow[1] = 1;
    pace_pool_t *second = NULL;
    SAYS(PACE_EVERSION, pace_pool_new(&later.known, &second));
    CHECK(second == NULL);

    /* Results: as much as both know. */
    struct {
        pace_audit_t known;
        uint64_t tomorrow;
    } audit;
    memset(&audit, 0x55, sizeof audit);
    audit.known.struct_size = sizeof audit;
    OK(pace_pool_audit(pool, &audit.known));
    CHECK(audit.known.struct_size == sizeof audit.known && audit.known.balances);
    CHECK(audit.tomorrow == UINT64_C(0x5555555555555555));
    audit.known.struct_size = sizeof audit.known - 8;
    SAYS(PACE_EVERSION, pace_pool_audit(pool, &audit.known));
    finish(pool);
}

static pace_pool_t *own;
static atomic_int freed;

static void shut_down_inside(void *data, int32_t *outcome) {
    pace_report_t report = {0};
    (void)data;
    report.struct_size = sizeof report;
    OK(pace_pool_shutdown(own, 0, &report));
    CHECK(report.requested);
    *outcome = 0;
}

static void free_inside(void *data, int32_t *outcome) {
    (void)data;
    pace_pool_free(own);
    *outcome = 0;
    atomic_store(&freed, 1);
}

static void ends(void) {
    counts_t counts = {0};
    pace_task_t tasks[8];
    pace_report_t report = {0};
    report.struct_size = sizeof report;
    pace_pool_free(NULL);

    /* Without a drain what has not begun is cancelled; drop runs all the same. */
    own = pool_of(1);
    OK(pace_pool_submit(own, PACE_LANE_NORMAL, count_gated, &counts, count_drop, &tasks[0]));
    UNTIL(atomic_load(&counts.runs) == 1);
    for (int i = 1; i < 8; i++)
        OK(pace_pool_submit(own, PACE_LANE_NORMAL, count_run, &counts, count_drop, &tasks[i]));
    OK(pace_pool_shutdown(own, 0, &report));
    CHECK(!report.drained && report.cancelled == 7 && report.stuck == 1);
    SAYS(PACE_ESHUTDOWN, pace_pool_post(own, PACE_LANE_NORMAL, count_run, &counts, count_drop));
    for (int i = 1; i < 8; i++) SAYS(PACE_ECANCELLED, pace_task_wait(own, tasks[i], PACE_FOREVER, NULL));
    atomic_store(&counts.gate, true);
    OK(pace_task_wait(own, tasks[0], PACE_FOREVER, NULL));
    OK(pace_pool_shutdown(own, 0, NULL)); /* again is harmless */
    pace_pool_free(own);
    CHECK(atomic_load(&counts.runs) == 1 && atomic_load(&counts.drops) == 8);

    own = pool_of(2);
    pace_task_t task;
    OK(pace_pool_submit(own, PACE_LANE_NORMAL, shut_down_inside, NULL, NULL, &task));
    OK(pace_task_wait(own, task, PACE_FOREVER, NULL));
    pace_pool_free(own);

    own = pool_of(2);
    OK(pace_pool_post(own, PACE_LANE_NORMAL, free_inside, NULL, NULL));
    UNTIL(atomic_load(&freed));

    OK(pace_promote_new_leader()); /* outside: nothing */
}

/* What a program has that is started here. Not by a shell, as some of these let all signals through. */
static void blocked_by(char *line, size_t size) {
    char *const arguments[] = {(char *)"grep", (char *)"SigBlk", (char *)"/proc/self/status", NULL};
    posix_spawn_file_actions_t actions;
    int ends[2], status;
    pid_t child;
    make_pipe(ends);
    CHECK(posix_spawn_file_actions_init(&actions) == 0);
    CHECK(posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) == 0);
    CHECK(posix_spawnp(&child, "grep", &actions, NULL, arguments, environ) == 0);
    CHECK(posix_spawn_file_actions_destroy(&actions) == 0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    ssize_t got = read(ends[0], line, size - 1);
    CHECK(got > 0);
    line[got] = 0;
    close(ends[0]);
    close(ends[1]);
}

static void start_programs(void *data, int32_t *outcome) {
    const char *host = (const char *)data;
    char own[64], line[64];
    (void)outcome;
    pace_confine(); /* without the other: nothing */
    blocked_by(own, sizeof own);
    CHECK(strcmp(own, host) != 0);
    pace_unconfine();
    pace_unconfine();
    blocked_by(line, sizeof line);
    CHECK(strcmp(line, host) == 0);
    pace_confine();
    blocked_by(line, sizeof line);
    CHECK(strcmp(line, host) == 0);
    pace_confine();
    blocked_by(line, sizeof line);
    CHECK(strcmp(line, own) == 0);
}

static void programs(void) {
    char host[64];
    blocked_by(host, sizeof host);
    pace_pool_t *own = pool_of(2);
    pace_task_t task;
    OK(pace_pool_submit(own, PACE_LANE_NORMAL, start_programs, host, NULL, &task));
    OK(pace_task_wait(own, task, PACE_FOREVER, NULL));
    pace_pool_free(own);
    pace_unconfine(); /* on a thread that is no pool's: nothing */
    pace_confine();
}

int main(void) {
    check_begin();
    programs();
    hooks_are_called();
    every_field_is_checked();
    structs_may_grow();
    ends();
    return 0;
}
