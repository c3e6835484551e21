/* HTTP: routes, answers at once and later, bodies both ways, limits, upgrades, the books. */
#include "net.h"

static pace_pool_t *pool;
static pace_http_t *http;
static pace_server_t *beneath;
static char address[PACE_ADDRESS_SIZE];
static atomic_int drops, calls;

static void count_drops(void *data) {
    CHECK(data == &drops);
    atomic_fetch_add(&drops, 1);
}

#define D &drops, count_drops

static pace_http_options_t options_at(const pace_listener_options_t *listener) {
    pace_http_options_t options;
    OK(pace_http_options_init(&options, sizeof options));
    options.listeners = listener;
    options.listener_count = 1;
    return options;
}

static void prepare(void) {
    pool = pool_of(2);
    OK(pace_http_new(pool, &http));
    atomic_store(&drops, 0);
    atomic_store(&calls, 0);
}

static void begin(const pace_http_options_t *options) {
    OK(pace_http_start(http, options));
    OK(pace_http_server(http, &beneath));
    OK(pace_server_address(beneath, 0, address, sizeof address));
}

static void start(void) {
    pace_listener_options_t listener = listener_at(TCP);
    pace_http_options_t options = options_at(&listener);
    begin(&options);
}

static pace_http_stats_t books(void) {
    pace_http_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_http_stats(http, &stats));
    return stats;
}

static void end(void) {
    pace_drain_report_t report = {0};
    report.struct_size = sizeof report;
    OK(pace_server_drain(beneath, PACE_FOREVER, &report));
    CHECK(report.drained && report.cut_off == 0);
    CHECK(books().balances && books().in_work == 0);
    pace_http_free(http);
    finish(pool);
}

/* Reads a head, and leaves the body. */
static void read_head(int fd, char *head, size_t room) {
    size_t size = 0;
    while (size < 4 || memcmp(head + size - 4, "\r\n\r\n", 4) != 0) {
        CHECK(size + 1 < room && receive(fd, head + size, 1, 0) == 1);
        size++;
    }
    head[size] = 0;
}

/* An answer of this status and body. */
static void expect_answer(int fd, const char *status, const char *body) {
    char head[4096], length[64];
    read_head(fd, head, sizeof head);
    if (strncmp(head + 9, status, 3) != 0) check_failed(__FILE__, __LINE__, head);
    snprintf(length, sizeof length, "Content-Length: %d\r\n", (int)strlen(body));
    CHECK(strstr(head, length) != NULL && strstr(head, "Date: ") != NULL);
    expect_text(fd, body);
}

static bool is(pace_text_t text, const char *expected) {
    return text.size == strlen(expected) && memcmp(text.text, expected, text.size) == 0;
}

/* --- what a handler sees -------------------------------------------------------------------------- */

static void look(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_text_t text;
    pace_piece_t body;
    pace_field_t fields[3];
    pace_conn_id_t id = {0};
    char peer[PACE_ADDRESS_SIZE];
    uint32_t version = 9;
    size_t count = 0;
    CHECK(data == &drops);
    OK(pace_request_method(request, &text));
    CHECK(is(text, "POST"));
    OK(pace_request_target(request, &text));
    CHECK(is(text, "/look/at/this%20?loud=1&x"));
    OK(pace_request_path(request, &text));
    CHECK(is(text, "/look/at/this%20"));
    OK(pace_request_query(request, &text));
    CHECK(is(text, "loud=1&x"));
    OK(pace_request_version(request, &version));
    CHECK(version == 1);
    OK(pace_request_header(request, "x-SPACED", &text));
    CHECK(is(text, "some value"));
    OK(pace_request_header(request, "x-bytes", &text));
    CHECK(text.text == NULL); /* not UTF-8 */
    OK(pace_request_header(request, "absent", &text));
    CHECK(text.text == NULL && text.size == 0);
    SAYS(PACE_EINVAL, pace_request_header(request, "\xff", &text));
    OK(pace_request_headers(request, fields, 3, &count));
    CHECK(count == 4 && is(fields[0].name, "Host") && is(fields[0].value, "here"));
    CHECK(is(fields[2].name, "X-Bytes") && is(fields[2].value, "a\xff"));
    OK(pace_request_headers(request, NULL, 0, &count));
    CHECK(count == 4);
    SAYS(PACE_EINVAL, pace_request_headers(request, NULL, 1, &count));
    OK(pace_request_param(request, "what", &text));
    CHECK(is(text, "this "));
    OK(pace_request_param(request, "nothing", &text));
    CHECK(text.text == NULL);
    OK(pace_request_params(request, fields, 3, &count));
    CHECK(count == 2 && is(fields[0].name, "how") && is(fields[0].value, "at"));
    OK(pace_request_body(request, &body));
    CHECK(body.size == 5 && memcmp(body.bytes, "bytes", 5) == 0);
    OK(pace_request_upgrade(request, &text));
    CHECK(text.text == NULL);
    OK(pace_request_conn(request, &id));
    bool is_open = false;
    OK(pace_server_conn_is_open(beneath, id, &is_open));
    CHECK(is_open);
    OK(pace_request_peer(request, peer, sizeof peer));
    CHECK(strncmp(peer, "127.0.0.1:", 10) == 0);
    SAYS(PACE_EINVAL, pace_request_peer(request, peer, 2));

    SAYS(PACE_EINVAL, pace_request_method(NULL, &text));
    SAYS(PACE_EINVAL, pace_request_method(request, NULL));
    SAYS(PACE_EINVAL, pace_request_version(request, NULL));
    SAYS(PACE_EINVAL, pace_request_header(request, NULL, &text));
    SAYS(PACE_EINVAL, pace_request_header(request, "x", NULL));
    SAYS(PACE_EINVAL, pace_request_params(request, fields, 3, NULL));
    SAYS(PACE_EINVAL, pace_request_body(request, NULL));
    SAYS(PACE_EINVAL, pace_request_conn(request, NULL));
    SAYS(PACE_EINVAL, pace_response_status(NULL, 200));
    SAYS(PACE_EINVAL, pace_response_header(response, NULL, "x"));
    SAYS(PACE_EINVAL, pace_response_header(response, "x", NULL));
    SAYS(PACE_EINVAL, pace_response_send(response, NULL, 1));
    SAYS(PACE_EINVAL, pace_response_send(NULL, "x", 1));
    SAYS(PACE_EINVAL, pace_response_text(response, NULL));
    SAYS(PACE_EINVAL, pace_response_text(response, "\xff"));
    SAYS(PACE_EINVAL, pace_response_stream(response, 0, NULL));
    SAYS(PACE_EINVAL, pace_response_upgrade(response, NULL, NULL));
    SAYS(PACE_EINVAL, pace_response_upgrade(response, "x", NULL));
    SAYS(PACE_EINVAL, pace_response_close(NULL));
    pace_response_free(NULL);

    OK(pace_response_status(response, 201));
    OK(pace_response_header(response, "X-Seen", "yes"));
    OK(pace_response_send(response, "seen", 4));
    atomic_fetch_add(&calls, 1);
}

static void what_is_asked(void) {
    prepare();
    OK(pace_http_route(http, "POST", "/look/{how}/{what}", look, D));
    start();
    int client = dial(address);
    for (int i = 0; i < 3; i++) {
        char head[4096];
        send_text(client,
                  "POST /look/at/this%20?loud=1&x HTTP/1.1\r\nHost: here\r\nX-Spaced:  some value \r\n"
                  "X-Bytes: a\xff\r\nContent-Length: 5\r\n\r\nbytes");
        read_head(client, head, sizeof head);
        CHECK(strncmp(head, "HTTP/1.1 201 ", 13) == 0 && strstr(head, "\r\nX-Seen: yes\r\n") != NULL);
        expect_text(client, "seen");
    }
    CHECK(atomic_load(&calls) == 3);
    close(client);
    end();
    UNTIL(atomic_load(&drops) == 1);
}

/* --- answers -------------------------------------------------------------------------------------- */

static void hello(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_text_t name;
    char text[256];
    (void)data;
    OK(pace_request_param(request, "name", &name));
    snprintf(text, sizeof text, "Hello, %.*s!\n", (int)name.size, name.text);
    OK(pace_response_text(response, text));
}

static void echo(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_piece_t body;
    (void)data;
    OK(pace_request_body(request, &body));
    OK(pace_response_send(response, body.bytes, body.size));
}

static void forget(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    pace_response_free(response);
}

static void bad_status(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    OK(pace_response_status(response, 99999));
    SAYS(PACE_EINVAL, pace_response_send(response, "x", 1));
    TELLS("status");
}

static void bad_header(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    OK(pace_response_header(response, "Content-Length", "7"));
    SAYS(PACE_EINVAL, pace_response_text(response, "x"));
    TELLS("Content-Length");
}

static void last(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    OK(pace_response_close(response));
    OK(pace_response_text(response, "bye"));
}

static void too_large(void *data, const pace_request_t *request, pace_response_t *response) {
    static char large[17 << 20];
    (void)data, (void)request;
    SAYS(PACE_EFULL, pace_response_send(response, large, sizeof large));
}

static void answers(void) {
    prepare();
    OK(pace_http_route(http, "GET", "/hello/{name}", hello, D));
    OK(pace_http_route(http, "POST", "/echo", echo, D));
    OK(pace_http_route(http, "GET", "/forget", forget, NULL, NULL));
    OK(pace_http_route(http, "GET", "/status", bad_status, NULL, NULL));
    OK(pace_http_route(http, "GET", "/header", bad_header, NULL, NULL));
    OK(pace_http_route(http, "GET", "/last", last, NULL, NULL));
    OK(pace_http_route(http, "GET", "/large", too_large, NULL, NULL));
    start();
    int client = dial(address);
    send_text(client, "GET /hello/you HTTP/1.1\r\nHost: a\r\n\r\n"
                      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                      "GET /forget HTTP/1.1\r\nHost: a\r\n\r\n");
    expect_answer(client, "200", "Hello, you!\n");
    expect_answer(client, "200", "abc");
    char head[4096];
    static const char *const failing[] = {"status", "header", "large", "forget"};
    read_head(client, head, sizeof head);
    CHECK(strncmp(head, "HTTP/1.1 500 ", 13) == 0);
    close(client);
    for (size_t i = 0; i < 4; i++) {
        client = dial(address);
        snprintf(head, sizeof head, "GET /%s HTTP/1.1\r\nHost: a\r\n\r\n", failing[i]);
        send_text(client, head);
        read_head(client, head, sizeof head);
        CHECK(strncmp(head, "HTTP/1.1 500 ", 13) == 0);
        close(client);
    }
    client = dial(address);
    send_text(client, "GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\nGET /last HTTP/1.1\r\nHost: a\r\n\r\n");
    read_head(client, head, sizeof head);
    CHECK(strncmp(head, "HTTP/1.1 404 ", 13) == 0);
    unsigned length = (unsigned)atoi(strstr(head, "Content-Length: ") + 16);
    while (length-- > 0) CHECK(receive(client, head, 1, 0) == 1);
    expect_answer(client, "200", "bye");
    expect_end(client);
    UNTIL(stats_of(beneath).open == 0);
    pace_http_stats_t stats = books();
    CHECK(stats.answered_successful == 3 && stats.refused_unanswered == 5 &&
          stats.refused_not_found == 1);
    CHECK(stats.begun == 9 && stats.panics == 0);
    end();
    UNTIL(atomic_load(&drops) == 2);
}

/* --- later, from another thread ------------------------------------------------------------------- */

#define KEPT 8
static pace_response_t *_Atomic kept[KEPT];

static void keep(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    CHECK(atomic_exchange(&kept[atomic_fetch_add(&calls, 1) % KEPT], response) == NULL);
}

static pace_response_t *taken(int number) {
    pace_response_t *response;
    UNTIL((response = atomic_exchange(&kept[number % KEPT], NULL)) != NULL);
    return response;
}

static void answers_later(void) {
    prepare();
    OK(pace_http_route(http, "GET", "/", keep, D));
    start();
    int client = dial(address);
    send_text(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    pace_response_t *first = taken(0);
    CHECK(atomic_load(&calls) == 1); /* the second waits */
    OK(pace_response_header(first, "X-Late", "1"));
    OK(pace_response_text(first, "one"));
    expect_answer(client, "200", "one");
    OK(pace_response_send(taken(1), "two", 3));
    expect_answer(client, "200", "two");

    /* The peer goes meanwhile. */
    send_text(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    first = taken(2);
    struct linger abrupt = {1, 0};
    bool gone = true;
    OK(pace_response_is_client_gone(first, &gone));
    CHECK(!gone);
    SAYS(PACE_EINVAL, pace_response_is_client_gone(first, NULL));
    CHECK(setsockopt(client, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt) == 0);
    close(client);
    UNTIL(pace_response_is_client_gone(first, &gone) == PACE_OK && gone);
    UNTIL(stats_of(beneath).open == 0); /* though nobody has answered */
    SAYS(PACE_ESTALE, pace_response_text(first, "to nobody"));
    CHECK(books().answered_successful == 2 && books().aborted_disconnected == 1);

    /* A response that outlives its server and its pool. */
    client = dial(address);
    send_text(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    first = taken(3);
    pace_http_free(http);
    UNTIL(receive(client, address, 1, 0) <= 0);
    close(client);
    finish(pool);
    CHECK(atomic_load(&drops) == 0);
    SAYS(PACE_ESTALE, pace_response_send(first, "late", 4));
    CHECK(atomic_load(&drops) == 1);
}

/* The end of the pool waits for an answer as long as it may, and says how many connections it has cut off. */
static void *shut_down(void *to) {
    pace_report_t *report = (pace_report_t *)to;
    OK(pace_pool_shutdown(pool, report->left, report));
    return NULL;
}

static void answers_while_the_pool_ends(void) {
    for (int answered = 0; answered < 2; answered++) {
        prepare();
        OK(pace_http_route(http, "GET", "/", keep, D));
        start();
        int client = dial(address);
        send_text(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        pace_response_t *response = taken(0);
        pthread_t thread;
        pace_report_t report = {.struct_size = sizeof report};
        report.left = answered ? 100 * SECOND : 20 * MILLI; /* the drain's time */
        CHECK(pthread_create(&thread, NULL, shut_down, &report) == 0);
        if (answered) {
            UNTIL(try_dial(address) < 0);
            OK(pace_response_text(response, "at last"));
            expect_answer(client, "200", "at last");
            expect_end(client);
        } else {
            expect_reset(client);
        }
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(report.drained == (answered == 1) && report.connections == (answered ? 0 : 1));
        CHECK(report.left == 0 && report.stuck == 0);
        CHECK(books().answered_successful == (uint64_t)answered && books().balances);
        if (!answered) pace_response_free(response);
        pace_http_free(http);
        pace_pool_free(pool);
    }
}

/* --- bodies of answers ---------------------------------------------------------------------------- */

static pace_body_t *_Atomic kept_body;
static uint64_t announced;

static void stream(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_body_t *body;
    (void)data, (void)request;
    OK(pace_response_stream(response, announced, &body));
    atomic_store(&kept_body, body);
}

static pace_body_t *streamed(int client) {
    pace_body_t *body;
    send_text(client, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    UNTIL((body = atomic_exchange(&kept_body, NULL)) != NULL);
    return body;
}

static atomic_int writables;

static void count_writable(void *data) {
    CHECK(data == &drops);
    atomic_fetch_add(&writables, 1);
}

static int32_t produce(void *data, pace_body_t *body) {
    static char bytes[10000];
    int *left = (int *)data;
    memset(bytes, 'p', sizeof bytes);
    OK(pace_body_write(body, bytes, sizeof bytes, NULL));
    return --*left > 0 ? PACE_FLOW_AGAIN : *left == 0 ? PACE_FLOW_DONE : 77;
}

static void free_int(void *data) {
    free(data);
    atomic_fetch_add(&drops, 1);
}

static int *new_int(int value) {
    int *made = (int *)malloc(sizeof *made);
    CHECK(made != NULL);
    *made = value;
    return made;
}

static void bodies_of_answers(void) {
    char head[4096];
    uint32_t wrote;
    bool is_pressed = true;
    prepare();
    OK(pace_http_route(http, "GET", "/stream", stream, NULL, NULL));
    start();
    int client = dial(address);

    announced = PACE_LENGTH_UNKNOWN;
    pace_body_t *body = streamed(client);
    OK(pace_body_write(body, "abc", 3, &wrote));
    OK(pace_body_write(body, NULL, 0, NULL));
    OK(pace_body_is_pressed(body, &is_pressed));
    CHECK(!is_pressed);
    OK(pace_body_write(body, "defgh", 5, NULL));
    OK(pace_body_finish(body));
    read_head(client, head, sizeof head);
    CHECK(strstr(head, "Transfer-Encoding: chunked\r\n") != NULL);
    expect_text(client, "3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n");

    announced = 6;
    body = streamed(client);
    OK(pace_body_on_writable(body, count_writable, D));
    UNTIL(atomic_load(&writables) >= 1);
    OK(pace_body_on_writable(body, count_writable, D));
    UNTIL(atomic_load(&drops) == 1);
    OK(pace_body_write(body, "abcd", 4, NULL));
    SAYS(PACE_EINVAL, pace_body_write(body, "efg", 3, NULL));
    OK(pace_body_write(body, "ef", 2, NULL));
    SAYS(PACE_EINVAL, pace_body_write(NULL, "x", 1, NULL));
    SAYS(PACE_EINVAL, pace_body_write(body, NULL, 1, NULL));
    SAYS(PACE_EINVAL, pace_body_is_pressed(body, NULL));
    SAYS(PACE_EINVAL, pace_body_on_writable(body, NULL, D));
    SAYS(PACE_EINVAL, pace_body_pump(body, NULL, D));
    SAYS(PACE_EINVAL, pace_body_pump(NULL, produce, D));
    SAYS(PACE_EINVAL, pace_body_finish(NULL));
    pace_body_free(NULL);
    OK(pace_body_finish(body));
    UNTIL(atomic_load(&drops) == 2);
    expect_answer(client, "200", "abcdef");

    /* A pump, much larger than any queue, with a slow reader. */
    announced = 3000 * 10000;
    OK(pace_body_pump(streamed(client), produce, new_int(3000), free_int));
    read_head(client, head, sizeof head);
    for (int i = 0; i < 3000; i++) {
        char bytes[10000];
        CHECK(receive(client, bytes, sizeof bytes, MSG_WAITALL) == sizeof bytes && bytes[9999] == 'p');
        if (i % 1000 == 0) check_nap();
    }
    UNTIL(atomic_load(&drops) == 3);

    /* Never whole: too little, freed, and a producer that fails. */
    for (int how = 0; how < 3; how++) {
        announced = how == 0 ? 6 : PACE_LENGTH_UNKNOWN;
        body = streamed(client);
        OK(pace_body_write(body, "abc", 3, NULL));
        if (how == 0) SAYS(PACE_EINVAL, pace_body_finish(body));
        if (how == 1) pace_body_free(body);
        if (how == 2) OK(pace_body_pump(body, produce, new_int(-5), free_int));
        ssize_t got;
        while ((got = receive(client, head, sizeof head, 0)) > 0) {
        }
        CHECK(got < 0 && errno == ECONNRESET);
        close(client);
        client = dial(address);
    }
    UNTIL(atomic_load(&drops) == 4);
    close(client);
    UNTIL(stats_of(beneath).open == 0);
    pace_http_stats_t stats = books();
    CHECK(stats.answered_successful == 3 && stats.aborted_unfinished + stats.aborted_closed == 3);
    CHECK(stats.panics == 1);
    end();
}

/* --- bodies of requests --------------------------------------------------------------------------- */

typedef struct upload {
    pace_response_t *response;
    size_t size;
    pace_conn_id_t conn;
} upload_t;

static atomic_int ends, stalls;
static atomic_bool greedy;
static _Atomic uint64_t upload_conn;

static void begin_upload(void *data, const pace_request_t *request, pace_response_t *response,
                         void **body) {
    pace_text_t text;
    CHECK(data == &drops && *body == NULL);
    OK(pace_request_query(request, &text));
    if (text.text != NULL) { /* is not wanted */
        OK(pace_response_status(response, 403));
        OK(pace_response_text(response, "no"));
        return;
    }
    upload_t *upload = (upload_t *)calloc(1, sizeof *upload);
    CHECK(upload != NULL);
    upload->response = response;
    OK(pace_request_conn(request, &upload->conn));
    *body = upload;
}

static size_t take_upload(void *body, const void *bytes, size_t size) {
    upload_t *upload = (upload_t *)body;
    (void)bytes;
    if (atomic_load(&greedy)) return size + 1;
    if (atomic_load(&stalls) == 0 && size > 10) {
        atomic_fetch_add(&stalls, 1);
        atomic_store(&upload_conn, upload->conn.id);
        upload->size += 10;
        return 10;
    }
    upload->size += size;
    return size;
}

static void end_upload(void *body, bool is_whole) {
    upload_t *upload = (upload_t *)body;
    char text[32];
    snprintf(text, sizeof text, "%zu", upload->size);
    if (is_whole)
        OK(pace_response_text(upload->response, text));
    else
        pace_response_free(upload->response);
    free(upload);
    atomic_fetch_add(&ends, 1);
}

static void bodies_of_requests(void) {
    pace_request_body_hooks_t hooks;
    char head[4096];
    prepare();
    OK(pace_request_body_hooks_init(&hooks, sizeof hooks));
    SAYS(PACE_EINVAL, pace_http_route_streaming(http, "PUT", "/up", &hooks, D));
    TELLS("hooks.begin is NULL");
    hooks.begin = begin_upload;
    hooks.data = take_upload;
    SAYS(PACE_EINVAL, pace_http_route_streaming(http, "PUT", "/up", &hooks, D));
    hooks.end = end_upload;
    SAYS(PACE_EINVAL, pace_http_route_streaming(http, "PUT", "/up", NULL, D));
    hooks.struct_size = 5;
    SAYS(PACE_EVERSION, pace_http_route_streaming(http, "PUT", "/up", &hooks, D));
    hooks.struct_size = sizeof hooks;
    OK(pace_http_route_streaming(http, "PUT", "/up", &hooks, D));
    start();
    int client = dial(address);
    send_text(client, "PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n01234567890123456789");
    UNTIL(atomic_load(&stalls) == 1);
    check_nap();
    OK(pace_server_conn_resume(beneath, (pace_conn_id_t){atomic_load(&upload_conn)}));
    expect_answer(client, "200", "20");
    send_text(client, "PUT /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    send_text(client, "10\r\n0123456789abcdef\r\n0\r\n\r\n");
    expect_answer(client, "200", "19");
    send_text(client, "PUT /up?no HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    expect_answer(client, "403", "no");
    CHECK(atomic_load(&ends) == 2);
    send_text(client, "PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\nabc");
    close(client); /* never whole */
    UNTIL(atomic_load(&ends) == 3);
    client = dial(address);
    atomic_store(&greedy, true);
    send_text(client, "PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    UNTIL(atomic_load(&ends) == 4);
    while (receive(client, head, sizeof head, 0) > 0) {
    }
    close(client);
    UNTIL(stats_of(beneath).open == 0);
    CHECK(books().panics == 1);
    end();
    UNTIL(atomic_load(&drops) == 1);
}

/* --- failures -------------------------------------------------------------------------------------- */

static void fail_unanswered(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    SAYS(PACE_EINVAL, pace_request_fail(NULL));
    OK(pace_request_fail("not UTF-8: \xef"));
    OK(pace_request_fail("on purpose"));
    pace_response_fail(response);
}

static void fail_freed(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    pace_response_free(response);
    OK(pace_request_fail("on purpose"));
}

static void fail_response(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    pace_response_fail(response);
}

static void fail_answered(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    OK(pace_response_text(response, "all is well"));
    OK(pace_request_fail("on purpose"));
}

static void fail_midway(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_body_t *body;
    (void)data, (void)request;
    OK(pace_response_stream(response, PACE_LENGTH_UNKNOWN, &body));
    pace_body_fail(body);
}

static int32_t fail_to_produce(void *data, pace_body_t *body) {
    (void)data, (void)body;
    OK(pace_request_fail("on purpose"));
    return PACE_FLOW_AGAIN;
}

static void fail_pumping(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_body_t *body;
    (void)data, (void)request;
    OK(pace_response_stream(response, PACE_LENGTH_UNKNOWN, &body));
    OK(pace_body_pump(body, fail_to_produce, NULL, NULL));
}

static void fail_at_the_end(void *body, bool is_whole) {
    end_upload(body, false);
    CHECK(is_whole);
    OK(pace_request_fail("on purpose"));
}

/* A failure closes its connection, after a 500 if nothing was sent, and is counted, once. */
static void failures(void) {
    static const pace_request_fn handlers[] = {fail_unanswered, fail_freed,  fail_response,
                                               fail_answered,   fail_midway, fail_pumping};
    static const char *const told[] = {"500", "500", "500", "200", NULL, NULL};
    pace_request_body_hooks_t hooks;
    char head[4096];
    prepare();
    for (size_t i = 0; i < 6; i++) {
        snprintf(head, sizeof head, "/%zu", i);
        OK(pace_http_route(http, "GET", head, handlers[i], NULL, NULL));
    }
    OK(pace_request_body_hooks_init(&hooks, sizeof hooks));
    hooks.begin = begin_upload;
    hooks.data = take_upload;
    hooks.end = fail_at_the_end;
    OK(pace_http_route_streaming(http, "PUT", "/up", &hooks, D));
    OK(pace_http_route(http, "GET", "/", keep, D));
    OK(pace_http_route(http, "GET", "/stream", stream, NULL, NULL));
    start();
    SAYS(PACE_ESTALE, pace_request_fail("not in a handler"));
    for (size_t i = 0; i < 6; i++) {
        int client = dial(address);
        snprintf(head, sizeof head, "GET /%zu HTTP/1.1\r\nHost: a\r\n\r\n", i);
        send_text(client, head);
        if (told[i] != NULL) {
            read_head(client, head, sizeof head);
            CHECK(strncmp(head + 9, told[i], 3) == 0);
        }
        while (receive(client, head, sizeof head, 0) > 0) {
        }
        close(client);
        UNTIL(stats_of(beneath).open == 0);
        CHECK(books().panics == i + 1);
    }
    atomic_store(&greedy, false);
    int client = dial(address);
    send_text(client, "PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    read_head(client, head, sizeof head);
    CHECK(strncmp(head + 9, "500", 3) == 0);
    while (receive(client, head, sizeof head, 0) > 0) {
    }
    close(client);

    /* Elsewhere. */
    client = dial(address);
    send_text(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    pace_response_fail(taken(0));
    read_head(client, head, sizeof head);
    CHECK(strncmp(head + 9, "500", 3) == 0 && strstr(head, "Connection: close") != NULL);
    while (receive(client, head, sizeof head, 0) > 0) {
    }
    close(client);
    announced = PACE_LENGTH_UNKNOWN;
    client = dial(address);
    pace_body_fail(streamed(client));
    while (receive(client, head, sizeof head, 0) > 0) {
    }
    close(client);
    UNTIL(stats_of(beneath).open == 0);
    pace_http_stats_t stats = books();
    CHECK(stats.panics == 9 && stats.refused_panicked == 3 && stats.aborted_unfinished == 3);
    end();
}

/* --- upgrades ------------------------------------------------------------------------------------- */

static size_t shout(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    CHECK(data == &drops);
    OK(pace_conn_write(conn, bytes, size, NULL));
    OK(pace_conn_write(conn, "!", 1, NULL));
    return size;
}

static void upgrade(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_conn_hooks_t hooks = hooks_with(shout);
    pace_text_t protocol;
    (void)data;
    hooks.user_data = &drops;
    hooks.drop = count_drops;
    OK(pace_request_upgrade(request, &protocol));
    if (protocol.text == NULL || is(protocol, "h2c")) {
        SAYS(PACE_EINVAL, pace_response_upgrade(response, "shouting", &hooks));
    } else {
        CHECK(is(protocol, "shouting"));
        OK(pace_response_upgrade(response, "shouting", &hooks));
    }
}

static void upgrades(void) {
    char head[4096];
    prepare();
    OK(pace_http_route(http, "GET", "/", upgrade, NULL, NULL));
    start();
    int client = dial(address);
    send_text(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    read_head(client, head, sizeof head);
    CHECK(strncmp(head, "HTTP/1.1 426 ", 13) == 0 && atomic_load(&drops) == 0);
    CHECK(strstr(head, "Upgrade: shouting\r\n") != NULL &&
          strstr(head, "Connection: upgrade\r\n") != NULL);
    close(client);
    client = dial(address);
    send_text(client, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
    read_head(client, head, sizeof head);
    CHECK(strncmp(head, "HTTP/1.1 426 ", 13) == 0 && atomic_load(&drops) == 0);
    close(client);
    client = dial(address);
    send_text(client,
              "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: shouting\r\n\r\nhey");
    read_head(client, head, sizeof head);
    CHECK(strncmp(head, "HTTP/1.1 101 ", 13) == 0 && strstr(head, "Upgrade: shouting\r\n") != NULL);
    expect_text(client, "hey!");
    send_text(client, "you");
    expect_text(client, "you!");
    CHECK(shutdown(client, SHUT_WR) == 0);
    expect_end(client);
    UNTIL(atomic_load(&drops) == 1);
    CHECK(books().answered_upgraded == 1);
    end();
}

/* --- settings ------------------------------------------------------------------------------------- */

#define REFUSES(field, value, name)                                                                     \
    do {                                                                                                \
        pace_http_options_t changed = options_at(&listener);                                            \
        changed.field = (value);                                                                        \
        SAYS(PACE_EINVAL, pace_http_start(http, &changed));                                             \
        TELLS(name);                                                                                    \
    } while (0)

static void settings(void) {
    pace_listener_options_t listener = listener_at(TCP);
    pace_http_options_t options = options_at(&listener);
    pace_http_stats_t stats = {0};
    prepare();
    REFUSES(max_head, 63, "max_head is 63, but must be 64 to 1048576");
    REFUSES(max_target, 0, "max_target");
    REFUSES(max_headers, 257, "max_headers");
    REFUSES(max_body, UINT64_MAX, "max_body");
    REFUSES(max_requests, 0, "max_requests");
    REFUSES(head_timeout_ns, 5, "head_timeout");
    REFUSES(body_timeout_ns, 0, "body_timeout");
    REFUSES(keep_alive_timeout_ns, 0, "keep_alive_timeout");
    REFUSES(keep_alive_requests, 0, "keep_alive_requests");
    REFUSES(reserved, 1, "reserved");
    REFUSES(listeners, NULL, "listeners is NULL");
    options.listener_count = 0;
    SAYS(PACE_EINVAL, pace_http_start(http, &options));
    TELLS("listen is empty, but must be an address or more");
    options.listener_count = 1;
    listener.busy = "busy", listener.busy_size = 4;
    SAYS(PACE_EINVAL, pace_http_start(http, &options));
    TELLS("busy is 4 bytes, but must be empty: what HTTP answers beyond max_requests is 503");
    listener = listener_at(TCP);
    listener.max_unconsumed = 147455;
    SAYS(PACE_EINVAL, pace_http_start(http, &options));
    TELLS("max_unconsumed is 147455, but must be 147456, which is max_head and 128 KiB, or more");
    listener = listener_at(TCP);
    listener.max_requests = 0;
    SAYS(PACE_EINVAL, pace_http_start(http, &options));
    TELLS("max_requests is 0");
    listener = listener_at(TCP);
    options.struct_size = 3;
    SAYS(PACE_EVERSION, pace_http_start(http, &options));
    options.struct_size = sizeof options;
    SAYS(PACE_EINVAL, pace_http_start(http, NULL));
    SAYS(PACE_EINVAL, pace_http_new(pool, NULL));
    SAYS(PACE_EINVAL, pace_http_new(NULL, &http));
    SAYS(PACE_EINVAL, pace_http_server(http, &beneath));
    TELLS("has not been started");
    stats.struct_size = sizeof stats;
    SAYS(PACE_EINVAL, pace_http_stats(http, &stats));
    SAYS(PACE_EVERSION, pace_http_options_init(&options, 5));
    SAYS(PACE_EVERSION, pace_request_body_hooks_init((pace_request_body_hooks_t *)&options, 5));
    options = options_at(&listener);
    SAYS(PACE_EINVAL, pace_http_route(http, NULL, "/", hello, D));
    SAYS(PACE_EINVAL, pace_http_route(http, "GET", NULL, hello, D));
    SAYS(PACE_EINVAL, pace_http_route(http, "GET", "/", NULL, D));
    SAYS(PACE_EINVAL, pace_http_route(NULL, "GET", "/", hello, D));
    SAYS(PACE_EINVAL, pace_http_route(http, "GET", "/\xff", hello, D));
    CHECK(atomic_load(&drops) == 0);

    /* A start that fails can be tried again. */
    listener.address = "unix:/nowhere/at all";
    SAYS(PACE_EOS, pace_http_start(http, &options));
    listener.address = TCP;
    options.max_body = 4;
    options.keep_alive_timeout_ns = 60 * SECOND;
    OK(pace_http_route(http, "POST", "/echo", echo, D));
    begin(&options);
    SAYS(PACE_EINVAL, pace_http_start(http, &options));
    TELLS("started already");
    SAYS(PACE_EINVAL, pace_http_route(http, "GET", "/", hello, D));
    SAYS(PACE_EVERSION, pace_http_stats(http, &(pace_http_stats_t){0}));
    int client = dial(address);
    char head[4096];
    send_text(client, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde");
    read_head(client, head, sizeof head);
    CHECK(strncmp(head, "HTTP/1.1 413 ", 13) == 0 && books().refused_body_too_large == 1);
    close(client);
    end();
    UNTIL(atomic_load(&drops) == 1);

    /* Routes that cannot be. */
    static const char *const wrong[][3] = {
        {"GET", "no-slash", "must be a path that begins with /"},
        {"G T", "/", "must be a token"},
        {"GET", "/{a", "route is /{a"},
        {"GET", "/items/:id", "a path whose parameters are written {id}, not :id"},
        {"GET", "/a/{x}/{x}", "{x} is there twice"},
        {"get", "/", "method is \"get\", but must be \"GET\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        prepare();
        SAYS(PACE_EINVAL, pace_http_route(http, wrong[i][0], wrong[i][1], hello, D));
        TELLS(wrong[i][2]);
        CHECK(atomic_load(&drops) == 0);
        /* Nothing is left of it. */
        OK(pace_http_route(http, "GET", "/{name}", hello, D));
        SAYS(PACE_EINVAL, pace_http_route(http, "GET", "/{name}", hello, D));
        TELLS("route is GET /{name}, but must be there once");
        SAYS(PACE_EINVAL, pace_http_route(http, "GET", "/{other}", hello, D));
        TELLS("route is /{other}, but must be a pattern of its own");
        SAYS(PACE_EINVAL, pace_http_serve(http, "nowhere"));
        OK(pace_http_serve(http, "127.0.0.1:0"));
        SAYS(PACE_EINVAL, pace_http_serve(http, "127.0.0.1:0"));
        SAYS(PACE_EINVAL, pace_http_start(http, &options));
        pace_http_free(http);
        UNTIL(atomic_load(&drops) == 1);
        finish(pool);
    }

    /* Times of a listener of its own: idle and head. */
    prepare();
    listener.idle_timeout_ns = 5 * MILLI;
    OK(pace_http_route(http, "POST", "/echo", echo, D));
    begin(&options);
    client = dial(address);
    expect_end(client);
    end();
}

/* --- requests in work at a listener --------------------------------------------------------------- */

/* Goal: a listener's maximum is its own. Method: one that has one, and one that has none, which is last. */
static void requests_in_work_at_a_listener(void) {
    static const char ask[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    pace_listener_options_t at[] = {listener_at(TCP), listener_at(TCP)};
    pace_http_options_t options = options_at(at);
    int one, two;
    at[0].max_requests = 1;
    options.listener_count = 2;
    prepare();
    OK(pace_http_route(http, "GET", "/", keep, D));
    begin(&options);
    one = dial(address), two = dial(address);
    send_text(one, ask);
    pace_response_t *first = taken(0);
    send_text(two, ask);
    expect_answer(two, "503", "503 Service Unavailable\n");
    OK(pace_server_address(beneath, 1, address, sizeof address));
    int others[2] = {dial(address), dial(address)};
    for (int i = 0; i < 2; i++) {
        send_text(others[i], ask);
        OK(pace_response_text(taken(i + 1), "other"));
        expect_answer(others[i], "200", "other");
        close(others[i]);
    }
    OK(pace_response_text(first, "first"));
    expect_answer(one, "200", "first");
    pace_server_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    UNTIL((OK(pace_server_listener_stats(beneath, 0, &stats)), stats.in_work == 0));
    send_text(two, ask);
    OK(pace_response_text(taken(3), "second"));
    expect_answer(two, "200", "second");
    close(one), close(two);
    UNTIL((OK(pace_server_listener_stats(beneath, 0, &stats)),
           stats.answered == 2 && stats.in_work == 0 && stats.open == 0));
    CHECK(stats.requests == 2 && stats.balances && stats.busy == 1 && books().refused_busy == 1);
    end();
}

/* --- a handler that frees everything -------------------------------------------------------------- */

static void free_everything(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    pace_http_free(http);
    pace_pool_free(pool);
    pace_status_t status = pace_response_text(response, "the end");
    CHECK(status == PACE_OK || status == PACE_ESTALE);
}

static void freed_inside(void) {
    char bytes[512];
    prepare();
    OK(pace_http_route(http, "GET", "/", free_everything, D));
    start();
    int client = dial(address);
    send_text(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    while (receive(client, bytes, sizeof bytes, 0) > 0) {
    }
    close(client);
    UNTIL(atomic_load(&drops) == 1);
}

/* --- around every handler ------------------------------------------------------------------------- */

static char seen[4096];
/* When the server was made. */
static uint64_t begun;
static atomic_int ended;

static void note(const char *text, size_t size) {
    strncat(seen, text, size);
    strcat(seen, " ");
}

static void outer(void *data, const pace_request_t *request, pace_response_t *response,
                  pace_next_t *next) {
    pace_text_t text;
    uint32_t status = 9;
    char number[32];
    (void)data;
    OK(pace_request_pattern(request, &text));
    note(text.text == NULL ? "-" : text.text, text.text == NULL ? 1 : text.size);
    OK(pace_response_header(response, "X-Outer", "1"));
    SAYS(PACE_EINVAL, pace_next_run(NULL, request, response, NULL));
    SAYS(PACE_EINVAL, pace_next_run(next, NULL, response, NULL));
    SAYS(PACE_EINVAL, pace_next_run(next, request, NULL, NULL));
    OK(pace_next_run(next, request, response, &status));
    snprintf(number, sizeof number, "%u", status);
    note(number, sizeof number);
}

static void inner(void *data, const pace_request_t *request, pace_response_t *response,
                  pace_next_t *next) {
    pace_text_t text;
    (void)data;
    OK(pace_request_query(request, &text));
    if (is(text, "stop")) {
        OK(pace_response_status(response, 403));
        OK(pace_response_error(response));
        return;
    }
    OK(pace_next_run(next, request, response, NULL));
    if (is(text, "twice"))
        SAYS(PACE_EINVAL, pace_next_run(next, request, (pace_response_t *)data, NULL));
}

static void fails(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    OK(pace_request_fail("on purpose"));
    pace_response_free(response);
}

static void note_end(void *data, const pace_http_end_t *end) {
    char line[256];
    (void)data;
    CHECK(end->peer.size > 0 && end->duration_ns <= check_now() - begun);
    snprintf(line, sizeof line, "%.*s|%.*s|%u;", (int)end->method.size, end->method.text,
             (int)end->target.size, end->target.text, end->status);
    strcat(seen, line);
    atomic_fetch_add(&ended, 1);
}

static void lost(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_text_t path;
    (void)data;
    OK(pace_request_path(request, &path));
    if (is(path, "/page")) {
        OK(pace_response_status(response, 200));
        OK(pace_response_send_as(response, "text/html", "<p>a page", 9));
    } else {
        OK(pace_response_error(response));
    }
}

static void pairs(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_text_t query;
    pace_field_t found[8];
    char room[256], text[512] = "";
    size_t count = 0;
    (void)data;
    OK(pace_request_query(request, &query));
    CHECK(query.size < sizeof room);
    OK(pace_query_pairs(query.text, query.size, room, found, 8, &count));
    for (size_t i = 0; i < count; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s>%.*s;", (int)found[i].name.size,
                 found[i].name.text, (int)found[i].value.size, found[i].value.text);
    }
    OK(pace_query_pairs(query.text, query.size, NULL, NULL, 0, &count));
    SAYS(PACE_EINVAL, pace_query_pairs(query.text, query.size, NULL, found, 8, &count));
    SAYS(PACE_EINVAL, pace_query_pairs(query.text, query.size, room, NULL, 8, &count));
    SAYS(PACE_EINVAL, pace_query_pairs(query.text, query.size, room, found, 8, NULL));
    SAYS(PACE_EINVAL, pace_response_send_as(response, NULL, "x", 1));
    OK(pace_response_send_as(response, "text/x-pairs", text, strlen(text)));
}

static void no_json(const char *json, const char *pointer, const char *says) {
    char text[8];
    size_t needed;
    double number;
    SAYS(PACE_EINVAL, pace_json_text(json, strlen(json), pointer, text, sizeof text, &needed));
    CHECK(strstr(pace_last_error(), says) != NULL);
    SAYS(PACE_EINVAL, pace_json_number(json, strlen(json), pointer, &number));
}

/* Goal: values come out of JSON as they are, what is missing or something else is an error that names the place, and a text
 * that went into JSON comes out the same. */
static void json(void) {
    static const char text[] = "{\"item\": \"\\\"caf\\u00e9\\\"\\u0000\", "
                               "\"a/b\": [1, -2.5e3, null, true, {}], \"n\": 9007199254740992}";
    static const struct {
        const char *pointer;
        uint32_t kind;
    } kinds[] = {{"", PACE_JSON_OBJECT},        {"/item", PACE_JSON_TEXT},   {"/a~1b", PACE_JSON_ARRAY},
                 {"/a~1b/0", PACE_JSON_NUMBER}, {"/a~1b/2", PACE_JSON_NULL}, {"/a~1b/3", PACE_JSON_BOOL},
                 {"/a~1b/4", PACE_JSON_OBJECT}, {"/a~1b/5", PACE_JSON_NONE}, {"/none", PACE_JSON_NONE},
                 {"item", PACE_JSON_NONE},      {"/item/0", PACE_JSON_NONE}};
    const size_t size = sizeof text - 1;
    char found[32], quoted[64], all[128];
    uint32_t kind;
    size_t needed, length;
    double number;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        OK(pace_json_kind(text, size, kinds[i].pointer, &kind));
        CHECK(kind == kinds[i].kind);
    }
    OK(pace_json_number(text, size, "/a~1b/1", &number));
    CHECK(number == -2500);
    OK(pace_json_number(text, size, "/n", &number));
    CHECK(number == 9007199254740992.0);
    OK(pace_json_text(text, size, "/item", found, sizeof found, &needed));
    CHECK(needed == 9 && memcmp(found, "\"caf\xc3\xa9\"\0", 9) == 0);
    SAYS(PACE_EFULL, pace_json_text(text, size, "/item", found, 8, &needed));
    CHECK(needed == 9);
    SAYS(PACE_EFULL, pace_json_text(text, size, "/item", NULL, 0, &needed));

    no_json(text, "/none", "/none is missing, but must be a text");
    no_json(text, "/a~1b/2", "/a~1b/2 is null, but must be a text");
    no_json(text, "", "json is an object, but must be a text");
    no_json("[1,", "/0", "column 3");
    no_json("", "", "0 bytes");
    SAYS(PACE_EINVAL, pace_json_kind(text, size, NULL, &kind));
    SAYS(PACE_EINVAL, pace_json_kind(text, size, "\xff", &kind));
    SAYS(PACE_EINVAL, pace_json_kind("{} {}", 5, "", &kind));
    SAYS(PACE_EINVAL, pace_json_kind(text, size, "", NULL));

    for (size_t i = 0; i < sizeof all; i++) all[i] = (char)i;
    for (size_t from = 0; from < sizeof all; from += 8) {
        OK(pace_json_quote(all + from, 8, quoted, sizeof quoted, &length));
        CHECK(length <= 6 * 8 + 3 && quoted[length - 1] == 0 && strlen(quoted) == length - 1);
        OK(pace_json_text(quoted, length - 1, "", found, sizeof found, &needed));
        CHECK(needed == 9 && memcmp(found, all + from, 8) == 0);
    }
    OK(pace_json_quote(NULL, 0, quoted, 3, &needed));
    CHECK(needed == 3 && strcmp(quoted, "\"\"") == 0);
    SAYS(PACE_EFULL, pace_json_quote("a", 1, quoted, 3, &needed));
    CHECK(needed == 4);
    SAYS(PACE_EINVAL, pace_json_quote("\xff", 1, quoted, sizeof quoted, &needed));
}

/* Goal: what is around every handler sees every request, and its end. */
static void around(void) {
    static const struct {
        const char *line, *status, *body, *seen;
    } cases[] = {
        {"GET /hello/you", "200", "Hello, you!\n", "/hello/{name} 200 GET|/hello/you|200;"},
        {"GET /nowhere", "404", "404 Not Found\n", "- 404 GET|/nowhere|404;"},
        {"GET /page", "200", "<p>a page", "- 200 GET|/page|200;"},
        {"PUT /hello/you", "405", "405 Method Not Allowed\n", "- 405 PUT|/hello/you|405;"},
        {"GET /fails", "500", "500 Internal Server Error\n", "/fails 500 GET|/fails|500;"},
        {"GET /pairs?a=1&b=%20+x&c", "200", "a>1;b>  x;c>;", "/pairs 200 GET|/pairs?a=1&b=%20+x&c|200;"},
        {"GET /pairs?stop", "403", "403 Forbidden\n", "/pairs 403 GET|/pairs?stop|403;"},
        {"GET /hello/a?twice", "200", "Hello, a!\n", "/hello/{name} 200 GET|/hello/a?twice|200;"},
        {"(", "400", "400 Bad Request\n", "||400;"},
    };
    begun = check_now();
    prepare();
    OK(pace_http_route(http, "GET", "/hello/{name}", hello, D));
    OK(pace_http_route(http, "GET", "/fails", fails, D));
    OK(pace_http_route(http, "GET", "/pairs", pairs, D));
    OK(pace_http_around(http, outer, D));
    OK(pace_http_around(http, inner, D));
    OK(pace_http_fallback(http, lost, D));
    OK(pace_http_on_end(http, note_end, D));
    SAYS(PACE_EINVAL, pace_http_around(http, NULL, D));
    SAYS(PACE_EINVAL, pace_http_fallback(http, NULL, D));
    SAYS(PACE_EINVAL, pace_http_on_end(http, NULL, D));
    start();
    SAYS(PACE_EINVAL, pace_http_around(http, outer, D));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char request[256];
        int client = dial(address);
        seen[0] = 0;
        atomic_store(&ended, 0);
        snprintf(request, sizeof request, "%s HTTP/1.1\r\nHost: a\r\n\r\n", cases[i].line);
        send_text(client, request);
        expect_answer(client, cases[i].status, cases[i].body);
        UNTIL(atomic_load(&ended) == 1);
        if (strcmp(seen, cases[i].seen) != 0) check_failed(__FILE__, __LINE__, seen);
        close(client);
    }
    CHECK(books().panics == 1 && books().refused_not_found == 1);
    end();
    UNTIL(atomic_load(&drops) == 7);
}

static char line[256];
static atomic_int lines;

static void keep_line(void *data, const pace_log_record_t *record) {
    (void)data;
    if (strcmp(record->event, "request.ended") != 0) return;
    CHECK(record->level == PACE_LOG_INFO && record->component == PACE_LOG_HTTP);
    snprintf(line, sizeof line, "%s", record->message);
    for (size_t i = 0; i < record->field_count; i++)
        if (strcmp(record->fields[i].name, "target") == 0)
            snprintf(line, sizeof line, "%s", record->fields[i].text);
    atomic_fetch_add(&lines, 1);
}

/* Goal: a log has a line for each request, which the log's callback gives as it is. */
static void access_log(void) {
    pace_listener_options_t listener = listener_at(TCP);
    pace_http_options_t options = options_at(&listener);
    for (uint32_t format = PACE_ACCESS_COMBINED; format <= PACE_ACCESS_JSON; format++) {
        pace_log_config_t config;
        pace_log_t *log;
        OK(pace_log_config_init(&config, sizeof config));
        config.on_record = keep_line;
        OK(pace_log_new(&config, &log));
        prepare();
        OK(pace_http_route(http, "GET", "/hello/{name}", hello, D));
        OK(pace_http_access_log(http, PACE_ACCESS_JSON, NULL));
        SAYS(PACE_EINVAL, pace_http_start(http, &options)); /* its pool has no log */
        SAYS(PACE_EINVAL, pace_http_access_log(http, 2, log));
        OK(pace_http_access_log(http, format, log));
        pace_log_free(log);
        begin(&options);
        SAYS(PACE_EINVAL, pace_http_access_log(http, format, NULL));
        atomic_store(&lines, 0);
        int client = dial(address);
        send_text(client, "GET /hello/you HTTP/1.1\r\nHost: a\r\nUser-Agent: an \"agent\"\r\n\r\n");
        expect_answer(client, "200", "Hello, you!\n");
        UNTIL(atomic_load(&lines) == 1);
        const char *expected = format == PACE_ACCESS_JSON
                                   ? "/hello/you"
                                   : "] \"GET /hello/you HTTP/1.1\" 200 12 \"-\" \"an \\\"agent\\\"\"";
        if (strstr(line, expected) == NULL) check_failed(__FILE__, __LINE__, line);
        close(client);
        end();
    }
}

int main(void) {
    check_begin();
    json();
    around();
    access_log();
    what_is_asked();
    answers();
    answers_later();
    answers_while_the_pool_ends();
    bodies_of_answers();
    bodies_of_requests();
    failures();
    upgrades();
    settings();
    requests_in_work_at_a_listener();
    freed_inside();
    return 0;
}
