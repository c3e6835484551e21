/* Connections: hooks, writing, ends, times, requests, names. */
#include "net.h"

static pace_pool_t *pool;
static pace_server_t *server;
static char address[PACE_ADDRESS_SIZE];

static void start(const pace_conn_hooks_t *hooks) {
    pool = pool_of(2);
    server = serve(pool, TCP, hooks, address);
}

static void start_with(pace_listener_options_t listener, const pace_conn_hooks_t *hooks) {
    pace_server_options_t options = options_with(&listener, 1);
    pool = pool_of(2);
    OK(pace_server_new(pool, &options, hooks, &server));
    OK(pace_server_address(server, 0, address, sizeof address));
}

static void end(void) {
    stop(server);
    finish(pool);
}

/* --- what hooks see ------------------------------------------------------------------------------- */

/* One per connection, made by `open`, freed by `close`. */
typedef struct session {
    pace_conn_id_t id;
    int opens, finishes;
    size_t bytes;
} session_t;

static atomic_int sessions, shown, last_reason, last_detail, session_reason, session_detail;
static _Atomic uint64_t last_id, told;

static int32_t open_session(void *data, pace_conn_t *conn) {
    char peer[PACE_ADDRESS_SIZE], local[PACE_ADDRESS_SIZE];
    session_t *session = (session_t *)calloc(1, sizeof *session);
    bool flag = true;
    size_t queued = 1;
    CHECK(data == &sessions && session != NULL);
    session->opens++;
    OK(pace_conn_id(conn, &session->id));
    OK(pace_conn_peer(conn, peer, sizeof peer));
    OK(pace_conn_local(conn, local, sizeof local));
    CHECK(strcmp(local, address) == 0 && strncmp(peer, "127.0.0.1:", 10) == 0);
    SAYS(PACE_EINVAL, pace_conn_peer(conn, peer, 3));
    OK(pace_conn_is_outgoing(conn, &flag));
    CHECK(!flag);
    OK(pace_conn_is_draining(conn, &flag));
    CHECK(!flag);
    OK(pace_conn_queued(conn, &queued));
    CHECK(queued == 0);
    OK(pace_conn_set_user_data(conn, session));
    atomic_store(&last_id, session->id.id);
    atomic_fetch_add(&sessions, 1);
    return PACE_ACCEPT_YES;
}

/* Lines: answers each with its length, consumes no part of one. */
static size_t count_lines(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    session_t *session = (session_t *)data;
    const char *text = (const char *)bytes, *line = text, *feed;
    CHECK(session->opens == 1);
    atomic_fetch_add(&shown, 1);
    while ((feed = (const char *)memchr(line, '\n', size - (size_t)(line - text))) != NULL) {
        char answer[32];
        int length = snprintf(answer, sizeof answer, "%d\n", (int)(feed - line));
        uint32_t wrote = 99;
        OK(pace_conn_write(conn, answer, (size_t)length, &wrote));
        CHECK(wrote == PACE_WRITE_STATUS_QUEUED);
        line = feed + 1;
    }
    session->bytes += (size_t)(line - text);
    return (size_t)(line - text);
}

static void last_words(void *data, pace_conn_t *conn) {
    session_t *session = (session_t *)data;
    session->finishes++;
    OK(pace_conn_write(conn, "bye\n", 4, NULL));
    OK(pace_conn_close(conn));
    SAYS(PACE_ESTALE, pace_conn_write(conn, "more", 4, NULL));
}

static void close_session(void *data, pace_conn_t *conn, uint32_t reason, int32_t detail) {
    session_t *session = (session_t *)data;
    char local[PACE_ADDRESS_SIZE];
    pace_conn_id_t id;
    OK(pace_conn_id(conn, &id));
    CHECK(id.id == session->id.id && session->opens == 1);
    SAYS(PACE_ESTALE, pace_conn_local(conn, local, sizeof local));
    SAYS(PACE_ESTALE, pace_conn_write(conn, "late", 4, NULL));
    atomic_store(&session_reason, (int)reason);
    atomic_store(&session_detail, detail);
    free(session);
    atomic_fetch_sub(&sessions, 1);
}

static atomic_int session_error;

/* Before the end, with what `open` has made. */
static void note_session_error(void *data, pace_conn_t *conn, int32_t os_error) {
    pace_conn_id_t id;
    OK(pace_conn_id(conn, &id));
    CHECK(((session_t *)data)->id.id == id.id && atomic_load(&session_reason) != PACE_REASON_FAILED);
    CHECK(atomic_exchange(&session_error, os_error) == 0);
}

static pace_conn_hooks_t session_hooks(void) {
    pace_conn_hooks_t hooks = hooks_with(count_lines);
    hooks.error = note_session_error;
    hooks.open = open_session;
    hooks.finished = last_words;
    hooks.close = close_session;
    hooks.user_data = &sessions;
    return hooks;
}

static void lives_of_connections(void) {
    pace_conn_hooks_t hooks = session_hooks();
    start(&hooks);
    int one = dial(address), two = dial(address);
    send_text(one, "abc\nde");
    expect_text(one, "3\n");
    send_text(two, "\n\nx\n");
    expect_text(two, "0\n0\n1\n");
    send_text(one, "f\n");
    expect_text(one, "3\n");
    CHECK(atomic_load(&sessions) == 2);
    CHECK(shutdown(one, SHUT_WR) == 0);
    expect_text(one, "bye\n");
    expect_end(one);
    UNTIL(atomic_load(&sessions) == 1);
    CHECK(atomic_load(&session_reason) == PACE_REASON_PEER && atomic_load(&session_error) == 0);
    struct linger abrupt = {1, 0};
    CHECK(setsockopt(two, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt) == 0);
    close(two);
    UNTIL(atomic_load(&sessions) == 0);
    CHECK(atomic_load(&session_reason) == PACE_REASON_FAILED &&
          atomic_load(&session_detail) == ECONNRESET);
    CHECK(atomic_exchange(&session_error, 0) == ECONNRESET);
    end();
}

/* --- refusing, failing, and answers that are none ------------------------------------------------- */

static int32_t verdict;
static size_t appetite;
static bool fails;

static void remember(void *data, pace_conn_t *conn, uint32_t reason, int32_t detail) {
    (void)data, (void)conn;
    atomic_store(&last_reason, (int)reason);
    atomic_store(&last_detail, detail);
    atomic_fetch_add(&told, 1);
}

static int32_t give_verdict(void *data, pace_conn_t *conn) {
    (void)data;
    OK(pace_conn_write(conn, "no\n", 3, NULL));
    if (fails) OK(pace_conn_fail(conn));
    return verdict;
}

static size_t eat(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data, (void)bytes, (void)size;
    if (fails) OK(pace_conn_fail(conn));
    return appetite;
}

static void until_told(uint32_t reason) {
    UNTIL(atomic_load(&told) == 1);
    CHECK(atomic_load(&last_reason) == (int)reason);
    atomic_store(&told, 0);
}

static void answers_of_hooks(void) {
    pace_conn_hooks_t hooks = hooks_with(eat);
    hooks.open = give_verdict;
    hooks.close = remember;
    start(&hooks);
    verdict = PACE_ACCEPT_REFUSE;
    int client = dial(address);
    expect_text(client, "no\n");
    expect_end(client);
    until_told(PACE_REASON_REFUSED);
    verdict = 7;
    expect_reset_at(address);
    until_told(PACE_REASON_PANICKED);
    verdict = PACE_ACCEPT_YES, fails = true;
    expect_reset_at(address);
    until_told(PACE_REASON_PANICKED);
    fails = false, appetite = 3;
    client = dial(address);
    send_text(client, "ab");
    expect_text(client, "no\n");
    expect_reset(client);
    until_told(PACE_REASON_PANICKED);
    appetite = SIZE_MAX;
    client = dial(address);
    expect_text(client, "no\n");
    send_text(client, "ab");
    expect_reset(client);
    until_told(PACE_REASON_PANICKED);
    pace_server_stats_t stats = stats_of(server);
    CHECK(stats.closed_panicked == 4 && stats.closed_refused == 1);
    appetite = 0;
    end();
}

static void fail_in_close(void *data, pace_conn_t *conn, uint32_t reason, int32_t detail) {
    remember(data, conn, reason, detail);
    OK(pace_conn_fail(conn));
}

static void a_failure_in_close(void) {
    pace_conn_hooks_t hooks = hooks_with(eat);
    hooks.close = fail_in_close;
    start(&hooks);
    close(dial(address));
    until_told(PACE_REASON_PEER);
    UNTIL(stats_of(server).panics_in_close == 1);
    end();
}

static void too_much_unconsumed(void) {
    static char bytes[200000];
    pace_conn_hooks_t hooks = hooks_with(eat);
    pace_listener_options_t listener = listener_at(TCP);
    hooks.close = remember;
    listener.max_unconsumed = 1000;
    start_with(listener, &hooks);
    int client = dial(address);
    send_all(client, bytes, 1000);
    send_all(client, bytes, 1);
    until_told(PACE_REASON_UNCONSUMED);
    close(client);
    end();
}

/* --- times ---------------------------------------------------------------------------------------- */

static int32_t patience;
static atomic_int timeouts, last_kind;

static int32_t be_patient(void *data, pace_conn_t *conn, uint32_t kind) {
    (void)data, (void)conn;
    atomic_store(&last_kind, (int)kind);
    return atomic_fetch_add(&timeouts, 1) == 0 ? patience : PACE_TIMEOUT_ACTION_CLOSE;
}

static int32_t set_deadline(void *data, pace_conn_t *conn) {
    (void)data;
    OK(pace_conn_set_deadline(conn, SECOND));
    OK(pace_conn_set_deadline(conn, PACE_FOREVER));
    OK(pace_conn_set_deadline(conn, 5 * MILLI));
    return PACE_ACCEPT_YES;
}

static void one_timeout(pace_listener_options_t listener, pace_conn_open_fn open, const char *text,
                        uint32_t kind) {
    for (patience = PACE_TIMEOUT_ACTION_CLOSE; patience <= PACE_TIMEOUT_ACTION_KEEP + 1; patience++) {
        const bool is_kept = patience == PACE_TIMEOUT_ACTION_KEEP && kind != PACE_TIMEOUT_DEADLINE;
        pace_conn_hooks_t hooks = hooks_with(eat);
        hooks.open = open;
        hooks.timeout = be_patient;
        hooks.close = remember;
        atomic_store(&timeouts, 0);
        start_with(listener, &hooks);
        int client = dial(address);
        send_text(client, text);
        if (patience == PACE_TIMEOUT_ACTION_KEEP && !is_kept) {
            UNTIL(atomic_load(&timeouts) == 1);
            close(client);
            UNTIL(atomic_load(&told) == 1);
            atomic_store(&told, 0);
        } else {
            const bool is_answer = patience <= PACE_TIMEOUT_ACTION_KEEP;
            until_told(is_answer ? PACE_REASON_TIMED_OUT : PACE_REASON_PANICKED);
            CHECK(!is_answer || atomic_load(&last_detail) == (int)kind);
            close(client);
        }
        CHECK(atomic_load(&timeouts) == 1 + is_kept && atomic_load(&last_kind) == (int)kind);
        end();
    }
}

static void times(void) {
    pace_listener_options_t idle = listener_at(TCP), part = idle, never = idle;
    idle.idle_timeout_ns = part.read_timeout_ns = 5 * MILLI;
    appetite = 0;
    one_timeout(idle, NULL, "", PACE_TIMEOUT_IDLE);
    one_timeout(part, NULL, "part", PACE_TIMEOUT_READ);
    one_timeout(never, set_deadline, "", PACE_TIMEOUT_DEADLINE);
}

/* --- output --------------------------------------------------------------------------------------- */

#define BIG (4 << 20)
static char big[BIG];
static atomic_int writables, writtens;
static atomic_bool pressed;

static size_t write_all_kinds(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    pace_piece_t pieces[40];
    uint32_t wrote;
    (void)data, (void)bytes;
    for (int i = 0; i < 40; i++)
        pieces[i] = (pace_piece_t){i % 2 == 0 ? "ab" : NULL, i % 2 == 0 ? 2 : 0};
    OK(pace_conn_write_vectored(conn, pieces, 4, &wrote));
    OK(pace_conn_write_vectored(conn, pieces, 40, NULL));
    OK(pace_conn_write_vectored(conn, NULL, 0, NULL));
    OK(pace_conn_write(conn, NULL, 0, NULL));
    OK(pace_conn_write_tracked(conn, "c", 1, 77, &wrote));
    OK(pace_conn_flush(conn));
    SAYS(PACE_EINVAL, pace_conn_write(conn, NULL, 1, NULL));
    SAYS(PACE_EINVAL, pace_conn_write(conn, "x", SIZE_MAX, NULL));
    SAYS(PACE_EINVAL, pace_conn_write_vectored(conn, NULL, 1, NULL));
    SAYS(PACE_EINVAL, pace_conn_write_vectored(conn, pieces, SIZE_MAX / 16, NULL));
    pieces[1].size = 1;
    SAYS(PACE_EINVAL, pace_conn_write_vectored(conn, pieces, 2, NULL));
    SAYS(PACE_EINVAL, pace_conn_write_vectored(conn, (pace_piece_t *)((char *)pieces + 1), 1, NULL));
    OK(pace_conn_shutdown_write(conn));
    SAYS(PACE_ESTALE, pace_conn_write(conn, "x", 1, NULL));
    return size;
}

static void note_written(void *data, pace_conn_t *conn, uint64_t token) {
    (void)data, (void)conn;
    atomic_store(&told, token);
    atomic_fetch_add(&writtens, 1);
}

static void writes_of_all_kinds(void) {
    pace_conn_hooks_t hooks = hooks_with(write_all_kinds);
    hooks.written = note_written;
    start(&hooks);
    int client = dial(address);
    send_text(client, "go");
    expect_text(client, "ababababababababababababababababababababababc");
    expect_end(client);
    UNTIL(atomic_load(&told) == 77 && atomic_load(&writtens) == 1);
    atomic_store(&told, 0);
    end();
}

/* More pieces than the kernel takes at once. */
static size_t write_many_pieces(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    static pace_piece_t pieces[3000];
    (void)data, (void)bytes;
    for (size_t i = 0; i < 3000; i++) pieces[i] = (pace_piece_t){big + i, 100};
    OK(pace_conn_write_vectored(conn, pieces, 3000, NULL));
    OK(pace_conn_close(conn));
    return size;
}

static void many_pieces(void) {
    pace_conn_hooks_t hooks = hooks_with(write_many_pieces);
    for (size_t i = 0; i < BIG; i++) big[i] = (char)(i * 7 + i / 256);
    start(&hooks);
    int client = dial(address);
    send_text(client, "go");
    for (size_t i = 0; i < 3000; i++) {
        char bytes[100];
        CHECK(receive(client, bytes, 100, MSG_WAITALL) == 100 && memcmp(bytes, big + i, 100) == 0);
    }
    expect_end(client);
    end();
}

static size_t write_big(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    uint32_t wrote;
    size_t queued;
    (void)data, (void)bytes;
    OK(pace_conn_write(conn, big, BIG / 2, &wrote));
    OK(pace_conn_write_tracked(conn, big + BIG / 2, BIG / 2, 5, &wrote));
    CHECK(wrote == PACE_WRITE_STATUS_ABOVE_HIGH_MARK);
    OK(pace_conn_queued(conn, &queued));
    CHECK(queued > 1000000);
    SAYS(PACE_EFULL, pace_conn_write(conn, big, BIG, &wrote));
    atomic_store(&pressed, true);
    return size;
}

static void note_writable(void *data, pace_conn_t *conn) {
    (void)data;
    atomic_fetch_add(&writables, 1);
    OK(pace_conn_close(conn));
}

static void a_slow_reader(void) {
    static char got[BIG];
    pace_conn_hooks_t hooks = hooks_with(write_big);
    pace_listener_options_t listener = listener_at(TCP);
    hooks.writable = note_writable;
    hooks.written = note_written;
    listener.output_max = BIG + 10;
    listener.send_buffer = 65536;
    start_with(listener, &hooks);
    int client = dial(address);
    send_text(client, "go");
    UNTIL(atomic_load(&pressed));
    CHECK(atomic_load(&writables) == 0);
    CHECK(receive(client, got, BIG, MSG_WAITALL) == BIG && memcmp(got, big, BIG) == 0);
    expect_end(client);
    /* The peer may have heard of the end before the hook. */
    UNTIL(atomic_load(&writables) == 1 && atomic_load(&told) == 5);
    atomic_store(&told, 0);
    end();
}

/* --- buffers that are lent ------------------------------------------------------------------------- */

#define LENT (1 << 20)
static atomic_int given_back;

/* Some of the pattern. */
static char *lend(size_t from, size_t size) {
    char *bytes = (char *)malloc(size);
    CHECK(bytes != NULL);
    memcpy(bytes, big + from, size);
    return bytes;
}

static void give_back(void *bytes) {
    free(bytes);
    atomic_fetch_add(&given_back, 1);
}

/* What C still has after a call that has failed. */
static void not_lent(char *bytes) {
    check_nap();
    CHECK(atomic_load(&given_back) == 1);
    free(bytes);
}

static size_t write_lent(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    char *small = lend(0, 3), *one = lend(6, LENT), *two = lend(9 + LENT, LENT), *more = lend(0, LENT);
    uint32_t wrote;
    (void)data, (void)bytes;
    OK(pace_conn_write_owned(conn, small, 3, small, give_back, &wrote));
    CHECK(atomic_load(&given_back) == 1);
    OK(pace_conn_write_owned(conn, big + 3, 3, NULL, NULL, NULL));
    OK(pace_conn_write_owned(conn, one, LENT, one, give_back, &wrote));
    CHECK(wrote == PACE_WRITE_STATUS_ABOVE_HIGH_MARK);
    OK(pace_conn_write(conn, big + 6 + LENT, 3, NULL));
    OK(pace_conn_write_owned(conn, two, LENT, two, give_back, NULL));
    SAYS(PACE_EFULL, pace_conn_write_owned(conn, more, LENT, more, give_back, &wrote));
    SAYS(PACE_EINVAL, pace_conn_write_owned(conn, NULL, 1, more, give_back, &wrote));
    SAYS(PACE_EINVAL, pace_conn_write_owned(conn, more, SIZE_MAX, more, give_back, &wrote));
    SAYS(PACE_EINVAL, pace_conn_write_owned(NULL, more, 1, more, give_back, &wrote));
    not_lent(more);
    atomic_store(&pressed, true);
    return size;
}

/* A buffer that was lent comes back once: when it was sent, or never will be; and not if the call fails. */
static void lent_buffers(void) {
    static char got[2 * LENT + 9];
    pace_conn_hooks_t hooks = hooks_with(write_lent);
    pace_listener_options_t listener = listener_at(TCP);
    hooks.close = remember;
    listener.output_max = 2 * LENT + 100;
    listener.send_buffer = 65536;
    start_with(listener, &hooks);
    for (int reads = 0; reads < 2; reads++) {
        atomic_store(&given_back, 0);
        atomic_store(&pressed, false);
        int client = dial(address);
        send_text(client, "go");
        UNTIL(atomic_load(&pressed));
        if (reads) {
            CHECK(receive(client, got, sizeof got, MSG_WAITALL) == sizeof got);
            CHECK(memcmp(got, big, sizeof got) == 0);
            UNTIL(atomic_load(&given_back) == 3);
        } else {
            CHECK(atomic_load(&given_back) < 3);
        }
        close(client);
        UNTIL(stats_of(server).open == 0);
        CHECK(atomic_load(&given_back) == 3);
    }
    end();
}

/* --- from other threads --------------------------------------------------------------------------- */

static atomic_int notices;

static void note_notice(void *data, pace_conn_t *conn) {
    (void)data;
    atomic_fetch_add(&notices, 1);
    OK(pace_conn_write(conn, "noticed\n", 8, NULL));
}

static size_t swallow(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data, (void)conn, (void)bytes;
    atomic_fetch_add(&shown, (int)size);
    return size;
}

static int32_t tell_id(void *data, pace_conn_t *conn) {
    pace_conn_id_t id;
    (void)data;
    OK(pace_conn_id(conn, &id));
    atomic_store(&last_id, id.id);
    return PACE_ACCEPT_YES;
}

static pace_conn_id_t connected(int *client) {
    atomic_store(&last_id, 0);
    *client = dial(address);
    UNTIL(atomic_load(&last_id) != 0);
    return (pace_conn_id_t){atomic_load(&last_id)};
}

static void never_given_back(void *bytes) {
    (void)bytes;
    CHECK(false);
}

static void everything_is_stale(pace_server_t *at, pace_conn_id_t id) {
    char text[PACE_ADDRESS_SIZE];
    pace_piece_t piece = {"x", 1};
    size_t queued;
    bool is_open = true;
    SAYS(PACE_ESTALE, pace_server_conn_write(at, id, "x", 1, NULL));
    SAYS(PACE_ESTALE, pace_server_conn_write_vectored(at, id, &piece, 1, NULL));
    SAYS(PACE_ESTALE, pace_server_conn_write_tracked(at, id, "x", 1, 1, NULL));
    SAYS(PACE_ESTALE, pace_server_conn_write_owned(at, id, "x", 1, NULL, never_given_back, NULL));
    SAYS(PACE_ESTALE, pace_server_conn_shutdown_write(at, id));
    SAYS(PACE_ESTALE, pace_server_conn_close(at, id));
    SAYS(PACE_ESTALE, pace_server_conn_abort(at, id));
    SAYS(PACE_ESTALE, pace_server_conn_pause(at, id));
    SAYS(PACE_ESTALE, pace_server_conn_resume(at, id));
    SAYS(PACE_ESTALE, pace_server_conn_notify(at, id));
    SAYS(PACE_ESTALE, pace_server_conn_queued(at, id, &queued));
    SAYS(PACE_ESTALE, pace_server_conn_peer(at, id, text, sizeof text));
    SAYS(PACE_ESTALE, pace_server_conn_local(at, id, text, sizeof text));
    OK(pace_server_conn_is_open(at, id, &is_open));
    CHECK(!is_open);
}

static void by_name(void) {
    static const uint64_t made_up[] = {0, 1ULL << 32, 0xffffffff, UINT64_MAX, UINT64_MAX - 1, 12345};
    char text[PACE_ADDRESS_SIZE];
    pace_conn_hooks_t hooks = hooks_with(swallow);
    pace_piece_t pieces[] = {{"ef", 2}, {NULL, 0}, {"g\n", 2}};
    uint32_t wrote;
    size_t queued = 1;
    bool is_open = false;
    int client;
    hooks.open = tell_id;
    hooks.notified = note_notice;
    hooks.written = note_written;
    hooks.close = remember;
    start(&hooks);
    pace_conn_id_t id = connected(&client);
    OK(pace_server_conn_write(server, id, "abc", 3, &wrote));
    CHECK(wrote == PACE_WRITE_STATUS_SENT);
    atomic_store(&told, 0);
    OK(pace_server_conn_write_tracked(server, id, "d", 1, 9, NULL));
    UNTIL(atomic_load(&told) == 9);
    atomic_store(&told, 0);
    OK(pace_server_conn_write_vectored(server, id, pieces, 3, &wrote));
    expect_text(client, "abcdefg\n");
    char *lent = (char *)malloc(5);
    CHECK(lent != NULL);
    atomic_store(&given_back, 0);
    OK(pace_server_conn_write_owned(server, id, memcpy(lent, "lent\n", 5), 5, lent, give_back, &wrote));
    CHECK(wrote == PACE_WRITE_STATUS_SENT && atomic_load(&given_back) == 1);
    expect_text(client, "lent\n");
    OK(pace_server_conn_notify(server, id));
    expect_text(client, "noticed\n");
    OK(pace_server_conn_queued(server, id, &queued));
    OK(pace_server_conn_is_open(server, id, &is_open));
    CHECK(queued == 0 && is_open);
    OK(pace_server_conn_local(server, id, text, sizeof text));
    CHECK(strcmp(text, address) == 0);
    OK(pace_server_conn_peer(server, id, text, sizeof text));
    SAYS(PACE_EINVAL, pace_server_conn_peer(server, id, text, 1));
    SAYS(PACE_EINVAL, pace_server_conn_peer(server, id, NULL, 1));

    /* A pause holds data back, and a resume shows it. */
    atomic_store(&shown, 0);
    OK(pace_server_conn_pause(server, id));
    send_text(client, "first");
    check_nap();
    send_text(client, "later");
    OK(pace_server_conn_resume(server, id));
    UNTIL(atomic_load(&shown) == 10);

    /* The name is nothing at another server. */
    char elsewhere[PACE_ADDRESS_SIZE];
    pace_pool_t *pool2 = pool_of(1);
    pace_server_t *other = serve(pool2, TCP, &hooks, elsewhere);
    everything_is_stale(other, id);
    stop(other);
    finish(pool2);
    for (size_t i = 0; i < sizeof made_up / sizeof *made_up; i++)
        everything_is_stale(server, (pace_conn_id_t){made_up[i]});

    OK(pace_server_conn_write(server, id, "end", 3, NULL));
    OK(pace_server_conn_shutdown_write(server, id));
    expect_text(client, "end");
    OK(pace_server_conn_close(server, id));
    expect_end(client);
    until_told(PACE_REASON_LOCAL);
    UNTIL(stats_of(server).open == 0);
    everything_is_stale(server, id);

    id = connected(&client);
    OK(pace_server_conn_abort(server, id));
    expect_reset(client);
    until_told(PACE_REASON_ABORTED);
    end();
}

/* --- requests ------------------------------------------------------------------------------------- */

static pace_admission_t *_Atomic admitted;

static size_t admit(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    pace_admission_t *admission = NULL;
    (void)data, (void)bytes;
    pace_status_t status = pace_conn_admit(conn, &admission);
    if (status == PACE_OK) {
        CHECK(atomic_exchange(&admitted, admission) == NULL);
        OK(tell_id(data, conn));
    } else {
        CHECK(status == PACE_EFULL && admission == NULL);
    }
    SAYS(PACE_EINVAL, pace_conn_admit(conn, NULL));
    return size;
}

static pace_admission_t *admission(void) {
    pace_admission_t *taken;
    UNTIL((taken = atomic_exchange(&admitted, NULL)) != NULL);
    return taken;
}

static void requests(void) {
    pace_conn_hooks_t hooks = hooks_with(admit);
    pace_listener_options_t listener = listener_at(TCP);
    listener.max_requests = 1;
    listener.busy = "busy\n";
    listener.busy_size = 5;
    start_with(listener, &hooks);
    int one = dial(address), two = dial(address);
    send_text(one, "request");
    pace_admission_t *first = admission();
    send_text(two, "request");
    expect_text(two, "busy\n");
    OK(pace_server_conn_write(server, (pace_conn_id_t){atomic_load(&last_id)}, "answer\n", 7, NULL));
    OK(pace_admission_answered(first));
    expect_text(one, "answer\n");
    send_text(two, "again");
    pace_admission_free(admission());
    pace_admission_free(NULL);
    SAYS(PACE_EINVAL, pace_admission_answered(NULL));
    send_text(one, "last");
    first = admission();
    /* A reset: who only finishes still has his answer. */
    struct linger abrupt = {1, 0};
    CHECK(setsockopt(one, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt) == 0);
    close(one);
    close(two);
    UNTIL(stats_of(server).open == 0);
    OK(pace_admission_answered(first)); /* to nobody */
    pace_server_stats_t stats = stats_of(server);
    CHECK(stats.requests == 3 && stats.answered == 1 && stats.requests_aborted == 2 && stats.busy == 1);
    end();
}

/* A drain waits for a request in work, and the hook is told. */
static atomic_int drainings;

static void note_draining(void *data, pace_conn_t *conn) {
    bool is_draining = false;
    (void)data;
    OK(pace_conn_is_draining(conn, &is_draining));
    CHECK(is_draining);
    atomic_fetch_add(&drainings, 1);
}

static void *answer_later(void *first) {
    UNTIL(atomic_load(&drainings) == 1);
    OK(pace_server_conn_write(server, (pace_conn_id_t){atomic_load(&last_id)}, "answer\n", 7, NULL));
    OK(pace_admission_answered((pace_admission_t *)first));
    return NULL;
}

static void a_drain_with_a_request_in_work(void) {
    pthread_t thread;
    pace_conn_hooks_t hooks = hooks_with(admit);
    hooks.draining = note_draining;
    hooks.close = remember;
    start(&hooks);
    int client = dial(address);
    send_text(client, "request");
    CHECK(pthread_create(&thread, NULL, answer_later, admission()) == 0);
    stop(server);
    CHECK(pthread_join(thread, NULL) == 0);
    expect_text(client, "answer\n");
    expect_end(client);
    CHECK(atomic_load(&last_reason) == PACE_REASON_DRAINED);
    atomic_store(&told, 0);
    finish(pool);
}

/* --- outgoing connections ------------------------------------------------------------------------- */

static atomic_int drops, errors;

static void count_drops(void *data) {
    CHECK(data == &drops);
    atomic_fetch_add(&drops, 1);
}

static int32_t greet(void *data, pace_conn_t *conn) {
    bool is_outgoing = false;
    CHECK(data == &drops);
    OK(pace_conn_is_outgoing(conn, &is_outgoing));
    CHECK(is_outgoing);
    OK(pace_conn_write(conn, "\nhello\n", 7, NULL));
    return PACE_ACCEPT_YES;
}

static size_t hear(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    if (size < 4) return 0;
    /* "abc" was written before or after "\nhello\n". */
    CHECK(memcmp(bytes, "3\n5\n", 4) == 0 || memcmp(bytes, "0\n5\n", 4) == 0);
    OK(pace_conn_close(conn));
    return size;
}

static void note_error(void *data, pace_conn_t *conn, int32_t os_error) {
    (void)data, (void)conn;
    CHECK(os_error == ECONNREFUSED);
    atomic_fetch_add(&errors, 1);
}

static pace_conn_hooks_t client_hooks(void) {
    pace_conn_hooks_t hooks = hooks_with(hear);
    hooks.open = greet;
    hooks.error = note_error;
    hooks.close = remember;
    hooks.user_data = &drops;
    hooks.drop = count_drops;
    return hooks;
}

static void outgoing(void) {
    pace_conn_hooks_t hooks = session_hooks(), own = client_hooks();
    pace_conn_id_t id;
    start(&hooks);
    OK(pace_server_connect(server, address, &own, &id));
    pace_status_t status = pace_server_conn_write(server, id, "abc", 3, NULL);
    CHECK(status == PACE_OK || status == PACE_ESTALE); /* it may be over already */
    until_told(PACE_REASON_LOCAL);
    UNTIL(atomic_load(&drops) == 1);
    CHECK(stats_of(server).connected == 1);

    /* Nobody listens there: `error`, and `close` without `open`. */
    char nobody[PACE_ADDRESS_SIZE];
    pace_server_t *gone = serve(pool, TCP, &hooks, nobody);
    stop(gone);
    OK(pace_server_connect(server, nobody, &own, &id));
    until_told(PACE_REASON_FAILED);
    UNTIL(atomic_load(&drops) == 2);
    CHECK(atomic_load(&errors) == 1 && atomic_load(&last_detail) == ECONNREFUSED);

    /* What fails at once moves nothing. */
    SAYS(PACE_EOS, pace_server_connect(server, "unix:/nowhere/at all", &own, &id));
    SAYS(PACE_EINVAL, pace_server_connect(server, "localhost:80", &own, &id));
    SAYS(PACE_EINVAL, pace_server_connect(server, NULL, &own, &id));
    SAYS(PACE_EINVAL, pace_server_connect(server, address, NULL, &id));
    SAYS(PACE_EINVAL, pace_server_connect(server, address, &own, NULL));
    OK(pace_server_drain(server, SECOND, NULL));
    SAYS(PACE_ESHUTDOWN, pace_server_connect(server, address, &own, &id));
    CHECK(atomic_load(&drops) == 2);
    pace_server_free(server);
    finish(pool);
}

/* --- clients that have finished ------------------------------------------------------------------- */

#define FINISHING 200

/* What is to be answered by another thread: an admission and a name for each. */
static struct {
    pace_admission_t *_Atomic admission;
    pace_conn_id_t id;
} asked[FINISHING];
static atomic_int asks;

static size_t ask_later(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    const int number = atomic_fetch_add(&asks, 1);
    pace_admission_t *admission;
    (void)data, (void)bytes;
    CHECK(number < FINISHING && size == 3);
    OK(pace_conn_id(conn, &asked[number].id));
    OK(pace_conn_admit(conn, &admission));
    atomic_store(&asked[number].admission, admission);
    return size;
}

static void *answer_all(void *data) {
    (void)data;
    usleep(20000); /* their ends are here */
    for (int number = 0; number < FINISHING; number++) {
        pace_admission_t *admission;
        UNTIL((admission = atomic_exchange(&asked[number].admission, NULL)) != NULL);
        OK(pace_server_conn_write(server, asked[number].id, "answer", 6, NULL));
        OK(pace_admission_answered(admission));
    }
    return NULL;
}

static void no_news(void *data, pace_conn_t *conn) { (void)data, (void)conn; }

/* Each is answered, with a hook for the end and without one, and its connection is closed then. */
static void answers_for_clients_that_have_finished(void) {
    static int clients[FINISHING];
    pthread_t thread;
    for (int with_a_hook = 0; with_a_hook < 2; with_a_hook++) {
        pace_conn_hooks_t hooks = hooks_with(ask_later);
        if (with_a_hook) hooks.finished = no_news;
        atomic_store(&asks, 0);
        start(&hooks);
        CHECK(pthread_create(&thread, NULL, answer_all, NULL) == 0);
        for (int number = 0; number < FINISHING; number++) {
            clients[number] = dial(address);
            send_text(clients[number], "ask");
            CHECK(shutdown(clients[number], SHUT_WR) == 0);
        }
        for (int number = 0; number < FINISHING; number++) {
            expect_text(clients[number], "answer");
            expect_end(clients[number]);
        }
        CHECK(pthread_join(thread, NULL) == 0);
        UNTIL(stats_of(server).open == 0);
        CHECK(stats_of(server).answered == FINISHING && stats_of(server).closed_peer == FINISHING);
        end();
    }
}

static atomic_int finishes;

static void note_finish(void *data, pace_conn_t *conn) {
    (void)data;
    OK(pace_conn_id(conn, &asked[0].id));
    atomic_fetch_add(&finishes, 1);
}

/* A server that allows it leaves them open. */
static void half_open_connections(void) {
    pace_conn_hooks_t hooks = hooks_with(swallow);
    pace_listener_options_t listener = listener_at(TCP);
    hooks.finished = note_finish;
    listener.allow_half_open = true;
    start_with(listener, &hooks);
    int client = dial(address);
    CHECK(shutdown(client, SHUT_WR) == 0);
    UNTIL(atomic_load(&finishes) == 1);
    usleep(20000);
    OK(pace_server_conn_write(server, asked[0].id, "late", 4, NULL));
    expect_text(client, "late");
    CHECK(stats_of(server).open == 1);
    OK(pace_server_conn_close(server, asked[0].id));
    expect_end(client);
    end();
}

/* --- hooks that end everything -------------------------------------------------------------------- */

static int how_to_end;

static size_t end_everything(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    pace_drain_report_t report = {0};
    (void)data, (void)conn, (void)bytes;
    report.struct_size = sizeof report;
    switch (how_to_end) {
    case 0:
        OK(pace_server_drain(server, SECOND, &report));
        CHECK(report.requested && !report.drained);
        break;
    case 1: pace_server_free(server); break;
    case 2: OK(pace_pool_shutdown(pool, 0, NULL)); break;
    case 3: pace_server_free(server), pace_pool_free(pool); break;
    case 4: pace_pool_free(pool), pace_server_free(server); break;
    default: SAYS(PACE_EDEADLOCK, pace_server_wait(server)); break;
    }
    return size;
}

static void ends_inside_hooks(void) {
    for (how_to_end = 0; how_to_end < 6; how_to_end++) {
        pace_conn_hooks_t hooks = hooks_with(end_everything);
        hooks.user_data = &drops;
        hooks.drop = count_drops;
        hooks.close = remember;
        atomic_store(&drops, 0);
        start(&hooks);
        int client = dial(address);
        send_text(client, "end");
        if (how_to_end == 0 || how_to_end == 5) CHECK(shutdown(client, SHUT_WR) == 0);
        UNTIL(atomic_load(&told) == 1);
        atomic_store(&told, 0);
        close(client);
        if (how_to_end == 0 || how_to_end == 5) stop(server);
        if (how_to_end == 2) pace_server_free(server);
        UNTIL(atomic_load(&drops) == 1);
        if (how_to_end < 3 || how_to_end == 5) pace_pool_free(pool);
    }
}

/* Takes parts, and has reading resumed for each before it pauses. */
static size_t take_a_part(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    const unsigned char *at = (const unsigned char *)bytes;
    size_t part = size < 4096 ? size : 4096, seen = (size_t)atomic_load(&shown);
    pace_conn_id_t id;
    (void)data;
    CHECK(size <= 65536);
    for (size_t i = 0; i < part; i++) CHECK(at[i] == (unsigned char)((seen + i) % 251));
    OK(pace_conn_id(conn, &id));
    OK(pace_server_conn_resume(server, id));
    OK(pace_conn_pause(conn));
    atomic_fetch_add(&shown, (int)part);
    return part;
}

static void a_resume_that_comes_at_once(void) {
    enum { MUCH = 3 << 20 };
    pace_conn_hooks_t hooks = hooks_with(take_a_part);
    unsigned char *bytes = (unsigned char *)malloc(MUCH);
    CHECK(bytes != NULL);
    for (size_t i = 0; i < MUCH; i++) bytes[i] = (unsigned char)(i % 251);
    atomic_store(&shown, 0);
    start(&hooks);
    int client = dial(address);
    for (size_t sent = 0; sent < MUCH;) {
        ssize_t now = send(client, bytes + sent, MUCH - sent, MSG_NOSIGNAL);
        CHECK(now > 0);
        sent += (size_t)now;
    }
    UNTIL(atomic_load(&shown) == MUCH);
    close(client);
    free(bytes);
    end();
}

int main(void) {
    check_begin();
    lives_of_connections();
    answers_of_hooks();
    a_failure_in_close();
    too_much_unconsumed();
    times();
    writes_of_all_kinds();
    many_pieces();
    lent_buffers();
    a_slow_reader();
    by_name();
    a_resume_that_comes_at_once();
    requests();
    a_drain_with_a_request_in_work();
    outgoing();
    answers_for_clients_that_have_finished();
    half_open_connections();
    ends_inside_hooks();
    return 0;
}
