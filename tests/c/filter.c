/* Filters between socket and hooks: a "TLS" that greets, turns letters by one, and says goodbye. */
#include "net.h"

/* One connection's. */
typedef struct turning {
    bool greeted;
    char kept[64];
    size_t size;
} turning_t;

static atomic_int made, freed, finishes, drops;
static char things;

static void turn(pace_sink_t *sink, const char *bytes, size_t size, int by) {
    char turned[256];
    while (size > 0) {
        const size_t some = size < sizeof turned ? size : sizeof turned;
        for (size_t i = 0; i < some; i++) turned[i] = (char)(bytes[i] + by);
        OK(pace_sink_append(sink, turned, some));
        bytes += some, size -= some;
    }
}

static int32_t make(void *data, pace_conn_t *conn, void **filter) {
    char text[PACE_ADDRESS_SIZE];
    pace_conn_id_t id;
    CHECK(data == &things && *filter == NULL);
    OK(pace_conn_peer(conn, text, sizeof text));
    OK(pace_conn_id(conn, &id));
    CHECK(id.id != 0 && strncmp(text, "127.0.0.1:", 10) == 0);
    atomic_fetch_add(&made, 1);
    *filter = calloc(1, sizeof(turning_t));
    return 0;
}

static int32_t received(void *filter, const void *bytes, size_t size, pace_sink_t *plain,
                        pace_sink_t *wire) {
    turning_t *own = (turning_t *)filter;
    const char *text = (const char *)bytes;
    SAYS(PACE_EINVAL, pace_sink_append(NULL, "x", 1));
    SAYS(PACE_EINVAL, pace_sink_append(plain, NULL, 1));
    OK(pace_sink_append(plain, NULL, 0));
    if (!own->greeted) {
        if (text[0] != '!') return -EPROTO;
        own->greeted = true;
        OK(pace_sink_append(wire, "?", 1));
        turn(wire, own->kept, own->size, 1);
        text++, size--;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '.') return PACE_FILTER_READ_ENDED;
        if (text[i] == '#') return -EBADMSG;
        if (text[i] == '$') return 77;
        turn(plain, &text[i], 1, -1);
    }
    return PACE_FILTER_READ_OPEN;
}

static int32_t written(void *filter, const void *bytes, size_t size, pace_sink_t *wire) {
    turning_t *own = (turning_t *)filter;
    if (own->greeted) {
        turn(wire, (const char *)bytes, size, 1);
    } else {
        CHECK(own->size + size <= sizeof own->kept);
        memcpy(own->kept + own->size, bytes, size);
        own->size += size;
    }
    return 0;
}

static void finish_it(void *filter, pace_sink_t *wire) {
    CHECK(filter != NULL);
    atomic_fetch_add(&finishes, 1);
    OK(pace_sink_append(wire, "~", 1));
}

static int32_t not_like_that(void *filter) {
    CHECK(filter != NULL);
    return -EPIPE;
}

static void free_it(void *filter) {
    CHECK(filter != NULL);
    atomic_fetch_add(&freed, 1);
    free(filter);
}

static void drop_things(void *data) {
    CHECK(data == &things);
    CHECK(atomic_load(&made) == atomic_load(&freed)); /* it is the last call */
    atomic_fetch_add(&drops, 1);
}

static pace_filter_hooks_t turning(void) {
    pace_filter_hooks_t hooks;
    OK(pace_filter_hooks_init(&hooks, sizeof hooks));
    hooks.make = make;
    hooks.received = received;
    hooks.written = written;
    hooks.finish = finish_it;
    hooks.free = free_it;
    hooks.user_data = &things;
    hooks.drop = drop_things;
    return hooks;
}

static atomic_int opened, ended, last_reason, last_error, plains;

static int32_t say_early(void *data, pace_conn_t *conn) {
    (void)data;
    atomic_fetch_add(&opened, 1);
    OK(pace_conn_write(conn, "early ", 6, NULL));
    return PACE_ACCEPT_YES;
}

static size_t echo(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    atomic_fetch_add(&plains, (int)size);
    OK(pace_conn_write(conn, bytes, size, NULL));
    return size;
}

static void note_close(void *data, pace_conn_t *conn, uint32_t reason, int32_t detail) {
    (void)data, (void)conn;
    atomic_store(&last_reason, (int)reason);
    atomic_store(&last_error, detail);
    atomic_fetch_add(&ended, 1);
}

static pace_server_t *serve_turned(pace_pool_t *pool, const pace_filter_hooks_t *filter, bool early,
                                   char address[PACE_ADDRESS_SIZE]) {
    pace_listener_options_t listener = listener_at(TCP);
    pace_conn_hooks_t hooks = hooks_with(echo);
    pace_server_t *server = NULL;
    listener.filter = filter;
    if (early) hooks.open = say_early;
    hooks.close = note_close;
    pace_server_options_t options = options_with(&listener, 1);
    OK(pace_server_new(pool, &options, &hooks, &server));
    OK(pace_server_address(server, 0, address, PACE_ADDRESS_SIZE));
    return server;
}

static void forget(void) {
    atomic_store(&made, 0), atomic_store(&freed, 0), atomic_store(&finishes, 0);
    atomic_store(&ended, 0), atomic_store(&plains, 0), atomic_store(&drops, 0);
}

static void hooks_see_plain_bytes(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(2);
    pace_filter_hooks_t filter = turning();
    forget();
    pace_server_t *server = serve_turned(pool, &filter, true, address);
    memset(&filter, 0xee, sizeof filter); /* it was copied */
    int fd = dial(address);
    send_text(fd, "!");
    expect_text(fd, "?fbsmz!"); /* "early ", by one */
    send_text(fd, "ifmmp");
    expect_text(fd, "ifmmp");
    CHECK(atomic_load(&plains) == 5);
    send_text(fd, ".");
    expect_text(fd, "~");
    expect_end(fd);
    UNTIL(atomic_load(&freed) == 1);
    CHECK(atomic_load(&made) == 1 && atomic_load(&finishes) == 1);
    UNTIL(atomic_load(&ended) == 1);
    CHECK(atomic_load(&last_reason) == (int)PACE_REASON_PEER);
    CHECK(atomic_load(&drops) == 0);
    stop(server);
    finish(pool);
    UNTIL(atomic_load(&drops) == 1);
}

/* What the peer sends, and how the connection ends by it. */
static void ends_with(const char *text, const pace_filter_hooks_t *filter, uint32_t reason, int error) {
    char address[PACE_ADDRESS_SIZE], byte;
    pace_pool_t *pool = pool_of(2);
    forget();
    pace_server_t *server = serve_turned(pool, filter, false, address);
    int fd = dial(address);
    send_text(fd, text);
    CHECK(shutdown(fd, SHUT_WR) == 0 || errno == ENOTCONN);
    UNTIL(atomic_load(&ended) == 1);
    CHECK(atomic_load(&last_reason) == (int)reason);
    if (error != 0) CHECK(atomic_load(&last_error) == error);
    while (receive(fd, &byte, 1, 0) > 0) continue;
    close(fd);
    stop(server);
    finish(pool);
    CHECK(atomic_load(&freed) == (filter->free != NULL ? atomic_load(&made) : 0));
}

static int32_t make_none(void *data, pace_conn_t *conn, void **filter) {
    (void)data, (void)conn, (void)filter;
    return ECONNREFUSED;
}

static turning_t lent;

static int32_t make_lent(void *data, pace_conn_t *conn, void **filter) {
    (void)data, (void)conn;
    lent = (turning_t){0};
    *filter = &lent;
    return 0;
}

static void failures_are_told(void) {
    pace_filter_hooks_t filter = turning();
    ends_with("what?", &filter, PACE_REASON_FAILED, EIO); /* EPROTO has no kind of its own */
    ends_with("!ab#", &filter, PACE_REASON_FAILED, 0);
    CHECK(atomic_load(&plains) == 2); /* what came before was shown */
    ends_with("!ab$", &filter, PACE_REASON_FAILED, 0);
    ends_with("!ab", &filter, PACE_REASON_PEER, 0);
    filter.cut_off = not_like_that;
    ends_with("!ab", &filter, PACE_REASON_FAILED, EPIPE);
    filter = turning();
    filter.make = make_none;
    ends_with("!ab", &filter, PACE_REASON_FAILED, ECONNREFUSED);
    CHECK(atomic_load(&freed) == 0 && atomic_load(&plains) == 0);
    filter = turning();
    filter.make = make_lent;
    filter.finish = NULL;
    filter.free = NULL;
    ends_with("!a.", &filter, PACE_REASON_PEER, 0);
}

static void *talk(void *data) {
    for (int round = 0; round < 20; round++) {
        int fd = dial((const char *)data);
        send_text(fd, "!bcd");
        expect_text(fd, "?bcd");
        close(fd);
    }
    return NULL;
}

static void ten_threads_at_once(void) {
    char address[PACE_ADDRESS_SIZE];
    pthread_t threads[10];
    pace_pool_t *pool = pool_of(4);
    pace_filter_hooks_t filter = turning();
    forget();
    pace_server_t *server = serve_turned(pool, &filter, false, address);
    for (int i = 0; i < 10; i++) CHECK(pthread_create(&threads[i], NULL, talk, address) == 0);
    for (int i = 0; i < 10; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    stop(server);
    finish(pool);
    CHECK(atomic_load(&made) == 200 && atomic_load(&freed) == 200);
    UNTIL(atomic_load(&drops) == 1);
}

static void answer(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    OK(pace_response_text(response, "hal"));
}

static void http_sees_plain_bytes(void) {
    char address[PACE_ADDRESS_SIZE], head[4096] = {0};
    pace_pool_t *pool = pool_of(2);
    pace_filter_hooks_t filter = turning();
    pace_listener_options_t listener = listener_at(TCP);
    pace_http_options_t options;
    pace_http_t *http = NULL;
    pace_server_t *beneath = NULL;
    forget();
    listener.filter = &filter;
    OK(pace_http_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    OK(pace_http_new(pool, &http));
    OK(pace_http_route(http, "GET", "/", answer, NULL, NULL));
    OK(pace_http_start(http, &options));
    OK(pace_http_server(http, &beneath));
    OK(pace_server_address(beneath, 0, address, sizeof address));
    char asked[] = "GET / HTTP/1.0\r\nHost: a\r\n\r\n";
    for (char *byte = asked; *byte != 0; byte++) (*byte)++;
    int fd = dial(address);
    send_text(fd, "!");
    send_text(fd, asked);
    CHECK(receive(fd, head, sizeof head - 1, MSG_WAITALL) > 0);
    CHECK(strstr(head, "ibm~") != NULL); /* "hal", by one, and the last word */
    close(fd);
    CHECK(atomic_load(&drops) == 0);
    pace_http_free(http);
    UNTIL(atomic_load(&freed) == 1);
    finish(pool);
    UNTIL(atomic_load(&drops) == 1);
}

static void servers_of_completion_queues_have_them(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(1);
    pace_filter_hooks_t filter = turning();
    pace_listener_options_t listeners[] = {listener_at(TCP), listener_at(TCP)};
    pace_server_options_t options = options_with(listeners, 2);
    pace_cq_t *cq = NULL;
    pace_server_t *server = NULL;
    pace_cq_entry_t entry;
    pace_cq_completion_t completion;
    char byte;
    size_t count = 0;
    forget();
    listeners[0].filter = listeners[1].filter = &filter;
    OK(pace_cq_new(pool, NULL, &cq));
    OK(pace_cq_server(cq, &options, 0, 1, &server));
    OK(pace_server_address(server, 1, address, sizeof address));
    int fd = dial(address);
    send_text(fd, "!bcd");
    OK(pace_cq_wait(cq, &entry, 1, PACE_FOREVER, &count));
    CHECK(count == 1 && entry.kind == PACE_CQ_CONN);
    CHECK(entry.detail.conn.event == PACE_CONN_EVENT_DATA);
    CHECK(entry.size == 3 && memcmp(entry.bytes, "abc", 3) == 0);
    memset(&completion, 0, sizeof completion);
    completion.token = entry.token;
    completion.length = 3;
    completion.bytes = "abc";
    completion.size = 3;
    OK(pace_cq_complete(cq, &completion, 1));
    expect_text(fd, "?bcd");
    CHECK(atomic_load(&drops) == 0);
    pace_server_free(server);
    while (receive(fd, &byte, 1, 0) > 0) continue;
    close(fd);
    pace_cq_free(cq);
    finish(pool);
    UNTIL(atomic_load(&drops) == 2); /* one for each listener */
    CHECK(atomic_load(&made) == 1 && atomic_load(&freed) == 1);
}

/* What has not started gives nothing up, and calls nothing. */
static void failures_leave_user_data(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(1);
    pace_filter_hooks_t filter = turning(), wrong = turning();
    pace_conn_hooks_t hooks = hooks_with(echo);
    pace_server_t *server = serve_turned(pool, NULL, false, address), *none = NULL;
    pace_listener_options_t listeners[] = {listener_at(TCP), listener_at(address)};
    pace_server_options_t options = options_with(listeners, 2);
    pace_http_options_t http_options;
    pace_cq_t *cq = NULL;
    pace_http_t *http = NULL;
    forget();
    OK(pace_cq_new(pool, NULL, &cq));
    listeners[0].filter = listeners[1].filter = &filter;
    SAYS(PACE_EOS, pace_server_new(pool, &options, &hooks, &none)); /* the address is in use */
    SAYS(PACE_EOS, pace_cq_server(cq, &options, 0, 1, &none));
    OK(pace_http_options_init(&http_options, sizeof http_options));
    http_options.listeners = listeners;
    http_options.listener_count = 2;
    OK(pace_http_new(pool, &http));
    SAYS(PACE_EOS, pace_http_start(http, &http_options));
    wrong.make = NULL;
    listeners[1].filter = &wrong;
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &none));
    SAYS(PACE_EINVAL, pace_cq_server(cq, &options, 0, 1, &none));
    SAYS(PACE_EINVAL, pace_http_start(http, &http_options));
    CHECK(none == NULL);
    pace_cq_free(cq);
    pace_http_free(http);
    stop(server);
    finish(pool);
    CHECK(atomic_load(&drops) == 0 && atomic_load(&made) == 0);
}

static int what_it_does;
static pace_server_t *_Atomic lent_server;
static char much[1 << 16];

static void free_lent(void) { pace_server_free(atomic_exchange(&lent_server, NULL)); }

static int32_t make_strange(void *data, pace_conn_t *conn, void **filter) {
    (void)data;
    if (what_it_does == 0) {
        (void)pace_conn_write(conn, "not here", 8, NULL);
        OK(pace_conn_pause(conn));
        OK(pace_conn_close(conn));
    }
    if (what_it_does == 1) free_lent();
    if (what_it_does == 2) return INT32_MIN;
    atomic_fetch_add(&made, 1);
    *filter = calloc(1, sizeof(turning_t));
    return 0;
}

static int32_t receive_strangely(void *filter, const void *bytes, size_t size, pace_sink_t *plain,
                                 pace_sink_t *wire) {
    CHECK(filter != NULL);
    SAYS(PACE_EINVAL, pace_sink_append(plain, bytes, SIZE_MAX));
    OK(pace_sink_append(plain, bytes, size));
    for (int i = 0; i < 100 && what_it_does == 3; i++) OK(pace_sink_append(wire, much, sizeof much));
    for (int i = 0; i < 20 && what_it_does == 4; i++) OK(pace_sink_append(plain, much, sizeof much));
    if (what_it_does == 5) return INT32_MIN;
    return what_it_does == 6 ? PACE_FILTER_READ_ENDED : PACE_FILTER_READ_OPEN;
}

static int32_t write_strangely(void *filter, const void *bytes, size_t size, pace_sink_t *wire) {
    CHECK(filter != NULL);
    OK(pace_sink_append(wire, bytes, size));
    return what_it_does == 7 ? ENOSPC : 0;
}

static void free_strangely(void *filter) {
    free_it(filter);
    if (what_it_does == 8) free_lent();
}

static void drop_strangely(void *data) {
    drop_things(data);
    if (what_it_does == 9) free_lent();
}

/* It cannot be written, or it can. */
static size_t echo_or_not(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    pace_status_t status = pace_conn_write(conn, bytes, size, NULL);
    CHECK(what_it_does == 7 ? status == PACE_ESTALE : status == PACE_OK || status == PACE_EFULL);
    return size;
}

/* Whatever the hooks of a filter do: every filter that was made is freed, and their user_data dropped. */
static void strange_filters(void) {
    for (what_it_does = 0; what_it_does < 10; what_it_does++) {
        char address[PACE_ADDRESS_SIZE], bytes[4096];
        pace_pool_t *pool = pool_of(2);
        pace_filter_hooks_t filter = turning();
        pace_listener_options_t listener = listener_at(TCP);
        pace_conn_hooks_t hooks = hooks_with(echo_or_not);
        pace_server_options_t options = options_with(&listener, 1);
        pace_server_t *server = NULL;
        int fds[3];
        forget();
        filter.make = make_strange;
        filter.received = receive_strangely;
        filter.written = write_strangely;
        filter.free = free_strangely;
        filter.drop = drop_strangely;
        listener.filter = &filter;
        hooks.close = note_close;
        OK(pace_server_new(pool, &options, &hooks, &server));
        OK(pace_server_address(server, 0, address, sizeof address));
        for (int i = 0; i < 3; i++) fds[i] = dial(address);
        atomic_store(&lent_server, server);
        for (int i = 0; i < 3; i++) {
            (void)send(fds[i], "hello", 5, MSG_NOSIGNAL);
            (void)shutdown(fds[i], SHUT_WR);
            while (receive(fds[i], bytes, sizeof bytes, 0) > 0) continue;
            if (what_it_does == 7) {
                UNTIL(atomic_load(&ended) == i + 1);
                CHECK(atomic_load(&last_reason) == (int)PACE_REASON_FAILED);
            }
            close(fds[i]);
        }
        free_lent();
        finish(pool);
        UNTIL(atomic_load(&drops) == 1);
        CHECK(atomic_load(&made) == atomic_load(&freed));
    }
}

static void answer_in_vain(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    SAYS(PACE_ESTALE, pace_response_text(response, "hal"));
}

/* An answer that cannot be turned is one to a peer that is gone. */
static void answers_that_cannot_be_turned(void) {
    char address[PACE_ADDRESS_SIZE], byte;
    pace_pool_t *pool = pool_of(2);
    pace_filter_hooks_t filter = turning();
    pace_listener_options_t listener = listener_at(TCP);
    pace_http_options_t options;
    pace_http_t *http = NULL;
    pace_server_t *beneath = NULL;
    forget();
    what_it_does = 7;
    filter.received = receive_strangely;
    filter.written = write_strangely;
    listener.filter = &filter;
    OK(pace_http_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    OK(pace_http_new(pool, &http));
    OK(pace_http_route(http, "GET", "/", answer_in_vain, NULL, NULL));
    OK(pace_http_start(http, &options));
    OK(pace_http_server(http, &beneath));
    OK(pace_server_address(beneath, 0, address, sizeof address));
    int fd = dial(address);
    send_text(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(receive(fd, &byte, 1, 0) <= 0);
    UNTIL(stats_of(beneath).closed_failed == 1);
    close(fd);
    pace_http_free(http);
    finish(pool);
    UNTIL(atomic_load(&drops) == 1);
}

static void senseless_calls(void) {
    pace_pool_t *pool = pool_of(1);
    pace_filter_hooks_t filter = turning();
    pace_listener_options_t listener = listener_at(TCP), outgoing = listener_at(NULL);
    pace_conn_hooks_t hooks = hooks_with(echo);
    pace_server_options_t options = options_with(&listener, 1);
    pace_server_t *server = NULL;
    SAYS(PACE_EINVAL, pace_filter_hooks_init(NULL, sizeof filter));
    SAYS(PACE_EVERSION, pace_filter_hooks_init(&filter, 63));
    SAYS(PACE_EVERSION, pace_filter_hooks_init(&filter, 0));
    listener.filter = &filter;
    filter.make = NULL;
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
    TELLS("filter.make is NULL");
    filter = turning();
    filter.received = NULL;
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
    TELLS("filter.received is NULL");
    filter = turning();
    filter.written = NULL;
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
    TELLS("filter.written is NULL");
    filter = turning();
    filter.reserved = 1;
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
    filter = turning();
    filter.struct_size = 8;
    SAYS(PACE_EVERSION, pace_server_new(pool, &options, &hooks, &server));
    filter = turning();
    listener.filter = NULL;
    outgoing.filter = &filter;
    options.outgoing = &outgoing;
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
    TELLS("filter");
    CHECK(server == NULL);
    finish(pool);
}

int main(void) {
    check_begin();
    hooks_see_plain_bytes();
    failures_are_told();
    ten_threads_at_once();
    http_sees_plain_bytes();
    servers_of_completion_queues_have_them();
    failures_leave_user_data();
    strange_filters();
    answers_that_cannot_be_turned();
    senseless_calls();
    return 0;
}
