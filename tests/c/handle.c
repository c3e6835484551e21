/* Descriptors and periodic timers: readiness, flows, pausing, deregistering, drops. */
#include "check.h"

typedef struct reader {
    counts_t counts;
    atomic_int bytes;
    atomic_int flow; /* what it answers at EAGAIN */
    atomic_uint_least64_t self;
    pace_pool_t *pool;
    atomic_int inside_status;
} reader_t;

static int32_t read_all(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    reader_t *reader = (reader_t *)data;
    char bytes[16];
    ssize_t size;
    CHECK(ready < 64 && self.id != 0);
    atomic_store(&reader->self, self.id);
    atomic_fetch_add(&reader->counts.runs, 1);
    while ((size = read(fd, bytes, sizeof bytes)) > 0) atomic_fetch_add(&reader->bytes, (int)size);
    if (size == 0) return PACE_FLOW_DONE;
    return atomic_load(&reader->flow);
}

static void drop_reader(void *data) { count_drop(&((reader_t *)data)->counts); }

static void readers(void) {
    pace_pool_t *pool = pool_of(2);
    reader_t reader = {0};
    pace_handle_t handle = {0};
    bool open = false;
    int ends[2];
    make_pipe(ends);
    OK(pace_pool_register(pool, ends[0], NULL, read_all, &reader, drop_reader, &handle));
    for (int i = 1; i <= 100; i++) {
        CHECK(write(ends[1], "x", 1) == 1);
        UNTIL(atomic_load(&reader.bytes) == i);
    }
    CHECK(atomic_load(&reader.self) == handle.id);
    SAYS(PACE_EOS, pace_pool_register(pool, ends[0], NULL, read_all, &reader, drop_reader, &handle));
    CHECK(pace_last_os_error() == EEXIST && atomic_load(&reader.counts.drops) == 0);

    OK(pace_handle_pause(pool, handle));
    CHECK(write(ends[1], "yz", 2) == 2);
    OK(pace_handle_is_open(pool, handle, &open));
    CHECK(open);
    OK(pace_handle_resume(pool, handle));
    UNTIL(atomic_load(&reader.bytes) == 102);

    OK(pace_handle_deregister(pool, handle));
    CHECK(atomic_load(&reader.counts.drops) == 1);
    OK(pace_handle_is_open(pool, handle, &open));
    CHECK(!open);
    SAYS(PACE_ESTALE, pace_handle_deregister(pool, handle));
    SAYS(PACE_ESTALE, pace_handle_pause(pool, handle));
    SAYS(PACE_ESTALE, pace_handle_resume(pool, handle));

    /* DONE ends it; PAUSE holds it; nonsense is counted and closes. */
    OK(pace_pool_register(pool, ends[0], NULL, read_all, &reader, drop_reader, &handle));
    atomic_store(&reader.flow, PACE_FLOW_PAUSE);
    CHECK(write(ends[1], "a", 1) == 1);
    UNTIL(atomic_load(&reader.bytes) == 103);
    CHECK(write(ends[1], "b", 1) == 1);
    atomic_store(&reader.flow, 77);
    UNTIL(pace_handle_resume(pool, handle) != PACE_OK); /* until the answer has closed it */
    UNTIL(atomic_load(&reader.counts.drops) == 2);
    CHECK(atomic_load(&reader.bytes) == 104);

    atomic_store(&reader.flow, PACE_FLOW_WAIT);
    OK(pace_pool_register(pool, ends[0], NULL, read_all, &reader, drop_reader, &handle));
    close(ends[1]);
    UNTIL(atomic_load(&reader.counts.drops) == 3);
    finish(pool);
    close(ends[0]);
}

static void refusals(void) {
    pace_pool_t *pool = pool_of(1);
    reader_t reader = {0};
    pace_handle_t handle = {0};
    pace_handle_options_t options;
    int blocking[2];
    CHECK(pipe(blocking) == 0);
    SAYS(PACE_EINVAL, pace_pool_register(pool, -1, NULL, read_all, &reader, drop_reader, &handle));
    SAYS(PACE_EOS, pace_pool_register(pool, 9999, NULL, read_all, &reader, drop_reader, &handle));
    SAYS(PACE_EINVAL,
         pace_pool_register(pool, blocking[0], NULL, read_all, &reader, drop_reader, &handle));
    TELLS("blocking mode");
    SAYS(PACE_EINVAL, pace_pool_register(pool, 0, NULL, NULL, &reader, drop_reader, &handle));
    SAYS(PACE_EINVAL, pace_pool_every(pool, 10, NULL, &reader, drop_reader, &handle));

    pace_cq_t *cq;
    OK(pace_cq_new(pool, NULL, &cq));
    SAYS(PACE_EVERSION, pace_handle_options_init(&options, 4));
    memset(&options, 0, sizeof options);
    SAYS(PACE_EVERSION, pace_cq_register(cq, blocking[0], &options, 0, &handle));
    OK(pace_handle_options_init(&options, sizeof options));
    options.level = true;
    options.interest = 8;
    SAYS(PACE_EINVAL, pace_cq_register(cq, blocking[0], &options, 0, &handle));
    TELLS("interest");
    pace_cq_free(cq);
    CHECK(handle.id == 0 && atomic_load(&reader.counts.drops) == 0);

    options.interest = PACE_INTEREST_READABLE;
    options.paused = true;
    options.may_block = true;
    CHECK(write(blocking[1], "x", 1) == 1);
    CHECK(fcntl(blocking[0], F_SETFL, O_NONBLOCK) == 0);
    OK(pace_pool_register(pool, blocking[0], &options, read_all, &reader, drop_reader, &handle));
    OK(pace_handle_resume(pool, handle));
    UNTIL(atomic_load(&reader.bytes) == 1);
    finish(pool); /* closes what is left */
    CHECK(atomic_load(&reader.counts.drops) == 1);
    close(blocking[0]);
    close(blocking[1]);
}

static int32_t deregister_self(void *data, pace_handle_t self) {
    reader_t *reader = (reader_t *)data;
    atomic_store(&reader->inside_status, pace_handle_deregister(reader->pool, self));
    return PACE_FLOW_WAIT;
}

static int32_t gated_tick(void *data, pace_handle_t self) {
    (void)self;
    int32_t outcome;
    count_gated(&((reader_t *)data)->counts, &outcome);
    return PACE_FLOW_AGAIN;
}

typedef struct closer {
    pace_pool_t *pool;
    pace_handle_t handle;
    atomic_int status;
} closer_t;

static void *close_it(void *data) {
    closer_t *closer = (closer_t *)data;
    atomic_store(&closer->status, pace_handle_deregister(closer->pool, closer->handle));
    return NULL;
}

static void ticks(void) {
    pace_pool_t *pool = pool_of(2);
    reader_t reader = {0};
    pace_handle_t handle;
    reader.pool = pool;
    atomic_store(&reader.inside_status, 99);
    SAYS(PACE_EINVAL, pace_pool_every(pool, 999, deregister_self, &reader, drop_reader, &handle));
    OK(pace_pool_every(pool, MILLI, deregister_self, &reader, drop_reader, &handle));
    UNTIL(atomic_load(&reader.counts.drops) == 1);
    CHECK(atomic_load(&reader.inside_status) == PACE_ECLOSING);

    /* From outside, deregistering waits for the handler; a second one does not. */
    OK(pace_pool_every(pool, MILLI, gated_tick, &reader, drop_reader, &handle));
    UNTIL(atomic_load(&reader.counts.runs) == 1);
    closer_t closer = {pool, handle, 99};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, close_it, &closer) == 0);
    pace_status_t second;
    do {
        check_nap();
        second = atomic_load(&closer.status) == 99 ? pace_handle_pause(pool, handle) : PACE_EFAILED;
    } while (second == PACE_OK);
    SAYS(PACE_ESTALE, second); /* it is closing: nothing can be paused any more */
    SAYS(PACE_ECLOSING, pace_handle_deregister(pool, handle));
    CHECK(atomic_load(&closer.status) == 99 && atomic_load(&reader.counts.drops) == 1);
    atomic_store(&reader.counts.gate, true);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(atomic_load(&closer.status) == PACE_OK && atomic_load(&reader.counts.drops) == 2);
    finish(pool);
}

/* Ids of one kind are none of another. */
static void kinds(void) {
    pace_pool_t *pool = pool_of(1);
    counts_t counts = {0};
    pace_strand_t strand;
    pace_timer_t timer;
    bool flag = true;
    OK(pace_strand_new(pool, &strand));
    OK(pace_pool_after(pool, 3600 * SECOND, count_run, &counts, count_drop, &timer));
    SAYS(PACE_ESTALE, pace_handle_deregister(pool, (pace_handle_t){timer.id}));
    for (uint64_t id = 0; id < 64; id++) {
        SAYS(PACE_ESTALE, pace_handle_deregister(pool, (pace_handle_t){id}));
        if (id == timer.id) continue;
        OK(pace_timer_cancel(pool, (pace_timer_t){id}, &flag));
        CHECK(!flag);
    }
    OK(pace_strand_post(pool, strand, count_run, &counts, count_drop));
    UNTIL(atomic_load(&counts.drops) == 1);
    OK(pace_timer_cancel(pool, timer, &flag));
    CHECK(flag);
    finish(pool);
}

static void note_reuse(void *data, const pace_log_record_t *record) {
    if (strcmp(record->event, "pool.closed_registered") == 0) atomic_fetch_add((atomic_int *)data, 1);
}

/* A descriptor that is closed before its handle, and whose number the next one has, silences nobody. */
static void closed_before_its_handle(void) {
    pace_log_config_t config;
    pace_log_t *log = NULL;
    atomic_int told = 0;
    pace_pool_config_t settings;
    pace_pool_t *pool = NULL;
    pace_handle_options_t options;
    reader_t old = {0}, reader = {0};
    pace_handle_t handles[2];
    int ends[2], next[2];
    OK(pace_log_config_init(&config, sizeof config));
    config.on_record = note_reuse;
    config.user_data = &told;
    OK(pace_log_new(&config, &log));
    OK(pace_pool_config_init(&settings, sizeof settings));
    settings.threads = 2;
    settings.log = log;
    OK(pace_pool_new(&settings, &pool));
    OK(pace_handle_options_init(&options, sizeof options));
    options.interest = PACE_INTEREST_READABLE;
    make_pipe(ends);
    OK(pace_pool_register(pool, ends[0], &options, read_all, &old, drop_reader, &handles[0]));
    CHECK(close(ends[0]) == 0);
    make_pipe(next);
    CHECK(next[0] == ends[0]);
    OK(pace_pool_register(pool, next[0], &options, read_all, &reader, drop_reader, &handles[1]));
    CHECK(atomic_load(&old.counts.drops) == 1);
    SAYS(PACE_ESTALE, pace_handle_deregister(pool, handles[0]));
    CHECK(write(next[1], "x", 1) == 1);
    UNTIL(atomic_load(&reader.bytes) == 1);
    OK(pace_log_flush(log, 3600 * SECOND));
    CHECK(atomic_load(&told) == 1);
    CHECK(atomic_load(&old.counts.runs) == 0 && atomic_load(&reader.counts.drops) == 0);
    OK(pace_handle_deregister(pool, handles[1]));
    close(ends[1]), close(next[0]), close(next[1]);
    finish(pool);
    pace_log_free(log);
}

int main(void) {
    check_begin();
    readers();
    closed_before_its_handle();
    refusals();
    ticks();
    kinds();
    return 0;
}
