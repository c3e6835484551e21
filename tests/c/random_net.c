/* A million random calls to servers, connections and HTTP, from outside and inside of hooks.
 *
 *     random_net [seed [calls]]
 *
 * Nothing crashes or hangs, every status is one, every connection that was opened is closed once, what
 * was registered is dropped once, every body that has begun ends, and the books of every server
 * balance. The seed is printed; it makes the same calls again, as far as threads allow. */
#include "net.h"

#define KEPT 64
#define CLIENTS 24

static _Thread_local uint64_t state;
static uint64_t seed;
static atomic_int threads;

/* SplitMix64, as in random.c; each thread has its own. */
static uint64_t next(void) {
    if (state == 0)
        state = seed + (uint64_t)atomic_fetch_add(&threads, 1) * UINT64_C(0x5851f42d4c957f2d) + 1;
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t bound) { return next() % bound; }

static bool any(pace_status_t status) {
    CHECK(status <= 0 && status >= PACE_EBUSY && status != PACE_EPANIC && status != PACE_EFORKED);
    return status == PACE_OK;
}

/* NULL now and then. */
#define MAYBE(value) (below(100) == 0 ? NULL : (value))

static pace_server_t *server;
static char address[PACE_ADDRESS_SIZE];
static _Atomic uint64_t ids[KEPT];
static pace_admission_t *_Atomic admissions[KEPT];
static pace_response_t *_Atomic responses[KEPT];
static pace_body_t *_Atomic bodies[KEPT];
static atomic_long calls, opened, closed, registered, dropped, begun, ended;
static char bytes[100000];

static void count_drops(void *data) {
    CHECK(data == &dropped);
    atomic_fetch_add(&dropped, 1);
}

static pace_conn_id_t pick(void) {
    uint64_t id = atomic_load(&ids[below(KEPT)]);
    switch (below(20)) {
    case 0: return (pace_conn_id_t){next()};
    case 1: return (pace_conn_id_t){id + 1};
    case 2: return (pace_conn_id_t){id ^ (UINT64_C(1) << below(64))};
    default: return (pace_conn_id_t){id};
    }
}

static size_t any_size(void) { return (size_t)below(below(50) == 0 ? sizeof bytes : 200); }

/* Ends, or keeps for others to end. */
static void end_response(pace_response_t *response) {
    pace_body_t *body = NULL;
    if (below(8) == 0) any(pace_response_status(response, (uint32_t)below(700)));
    if (below(4) == 0) any(pace_response_header(response, below(9) == 0 ? "Date" : "X-Any", "value"));
    if (below(9) == 0) any(pace_response_close(response));
    if (below(9) == 0) any(pace_request_fail("any"));
    switch (below(7)) {
    case 0: pace_response_free(response); break;
    case 6: pace_response_fail(response); break;
    case 1: any(pace_response_send(response, bytes, any_size())); break;
    case 2:
        if (any(pace_response_stream(response, below(2) ? PACE_LENGTH_UNKNOWN : below(300), &body))) {
            body = atomic_exchange(&bodies[below(KEPT)], body);
            if (body != NULL) pace_body_free(body);
        }
        break;
    case 3:
        response = atomic_exchange(&responses[below(KEPT)], response);
        if (response != NULL) any(pace_response_text(response, "late"));
        break;
    default: any(pace_response_text(response, "text")); break;
    }
}

static void any_body_call(void) {
    pace_body_t *_Atomic *place = &bodies[below(KEPT)];
    pace_body_t *body = atomic_exchange(place, NULL);
    bool flag;
    if (body == NULL) return;
    any(pace_body_write(body, bytes, any_size(), NULL));
    any(pace_body_is_pressed(body, MAYBE(&flag)));
    if (below(3) == 0)
        any(pace_body_finish(body));
    else if (below(3) == 0)
        pace_body_free(body);
    else if (below(3) == 0)
        pace_body_fail(body);
    else if ((body = atomic_exchange(place, body)) != NULL)
        pace_body_free(body);
}

static void any_outside_call(void) {
    pace_conn_id_t id = pick();
    pace_piece_t pieces[3] = {{bytes, any_size()}, {NULL, 0}, {bytes, any_size()}};
    char text[PACE_ADDRESS_SIZE];
    pace_admission_t *admission;
    pace_response_t *response;
    pace_server_stats_t stats = {0};
    uint32_t wrote;
    size_t size;
    bool flag;
    atomic_fetch_add(&calls, 1);
    switch (below(19)) {
    case 17: {
        size_t count = any_size();
        void *lent = malloc(count + 1);
        if (lent != NULL && !any(pace_server_conn_write_owned(server, id, memset(lent, 'l', count + 1),
                                                              count, lent, free, &wrote)))
            free(lent);
        break;
    }
    case 0:
    case 1: any(pace_server_conn_write(server, id, MAYBE(bytes), any_size(), &wrote)); break;
    case 2: any(pace_server_conn_write_vectored(server, id, pieces, below(4), NULL)); break;
    case 3: any(pace_server_conn_write_tracked(server, id, bytes, any_size(), next(), NULL)); break;
    case 4:
        if (below(9) == 0) any(pace_server_conn_shutdown_write(server, id));
        break;
    case 5:
        if (below(9) == 0) any(pace_server_conn_close(server, id));
        break;
    case 6:
        if (below(9) == 0) any(pace_server_conn_abort(server, id));
        break;
    case 7: any(pace_server_conn_pause(server, id)); break;
    case 8:
    case 9: any(pace_server_conn_resume(server, id)); break;
    case 10: any(pace_server_conn_notify(server, id)); break;
    case 11: any(pace_server_conn_is_open(server, id, MAYBE(&flag))); break;
    case 12: any(pace_server_conn_queued(server, id, &size)); break;
    case 13: any(pace_server_conn_peer(server, id, text, below(sizeof text + 1))); break;
    case 14: any(pace_server_conn_local(server, id, MAYBE(text), sizeof text)); break;
    case 15:
        admission = atomic_exchange(&admissions[below(KEPT)], NULL);
        if (below(2))
            pace_admission_free(admission);
        else if (admission != NULL)
            any(pace_admission_answered(admission));
        break;
    case 16:
        stats.struct_size = below(9) ? sizeof stats : (uint32_t)next();
        any(below(2) ? pace_server_stats(server, &stats)
                     : pace_server_listener_stats(server, below(3), &stats));
        break;
    default:
        response = atomic_exchange(&responses[below(KEPT)], NULL);
        if (response != NULL) end_response(response);
        any_body_call();
        break;
    }
}

static void any_inside_call(pace_conn_t *conn) {
    pace_piece_t pieces[2] = {{bytes, any_size()}, {bytes, any_size()}};
    char text[PACE_ADDRESS_SIZE];
    pace_admission_t *admission = NULL;
    pace_conn_id_t id;
    uint32_t wrote;
    size_t size;
    bool flag;
    atomic_fetch_add(&calls, 1);
    switch (below(20)) {
    case 0:
    case 1: any(pace_conn_write(conn, bytes, any_size(), MAYBE(&wrote))); break;
    case 2: any(pace_conn_write_vectored(conn, MAYBE(pieces), below(3), NULL)); break;
    case 3: any(pace_conn_write_tracked(conn, bytes, any_size(), next(), NULL)); break;
    case 4: any(pace_conn_flush(conn)); break;
    case 5:
        if (below(9) == 0) any(pace_conn_shutdown_write(conn));
        break;
    case 6:
        if (below(9) == 0) any(pace_conn_close(conn));
        break;
    case 7:
        if (below(9) == 0) any(pace_conn_abort(conn));
        break;
    case 8: any(pace_conn_pause(conn)); break;
    case 9: any(pace_conn_resume(conn)); break;
    case 10: any(pace_conn_set_deadline(conn, below(9) ? below(MILLI) : PACE_FOREVER)); break;
    case 11:
        if (below(20) == 0) any(pace_conn_fail(conn));
        break;
    case 12:
        if (!any(pace_conn_admit(conn, MAYBE(&admission))) || admission == NULL) break;
        admission = atomic_exchange(&admissions[below(KEPT)], admission);
        pace_admission_free(admission);
        break;
    case 13:
        if (any(pace_conn_id(conn, MAYBE(&id)))) break;
        break;
    case 14: any(pace_conn_peer(conn, text, below(sizeof text + 1))); break;
    case 15: any(pace_conn_local(conn, MAYBE(text), sizeof text)); break;
    case 16: any(pace_conn_is_outgoing(conn, &flag)); break;
    case 17: any(pace_conn_is_draining(conn, MAYBE(&flag))); break;
    case 18: any(pace_conn_queued(conn, &size)); break;
    default: any_outside_call(); break;
    }
}

static int32_t any_open(void *data, pace_conn_t *conn) {
    pace_conn_id_t id;
    CHECK(data == &dropped);
    OK(pace_conn_id(conn, &id));
    atomic_store(&ids[below(KEPT)], id.id);
    atomic_fetch_add(&opened, 1);
    OK(pace_conn_set_user_data(conn, &opened));
    any_inside_call(conn);
    return below(50) == 0 ? (int32_t)below(4) : PACE_ACCEPT_YES;
}

static size_t any_data(void *data, pace_conn_t *conn, const void *at, size_t size) {
    CHECK(data == &opened && at != NULL);
    any_inside_call(conn);
    return below(200) == 0 ? size + below(3) : below(4) == 0 ? (size_t)below(size + 1) : size;
}

static void any_event(void *data, pace_conn_t *conn) {
    CHECK(data == &opened);
    any_inside_call(conn);
}

static void any_written(void *data, pace_conn_t *conn, uint64_t token) {
    (void)token;
    any_event(data, conn);
}

static int32_t any_timeout(void *data, pace_conn_t *conn, uint32_t kind) {
    CHECK(kind <= PACE_TIMEOUT_DEADLINE);
    (void)data;
    any_inside_call(conn);
    return (int32_t)below(below(9) == 0 ? 3 : 2);
}

static void any_error(void *data, pace_conn_t *conn, int32_t os_error) {
    CHECK(os_error > 0);
    (void)data;
    any_inside_call(conn);
}

static void any_close(void *data, pace_conn_t *conn, uint32_t reason, int32_t detail) {
    CHECK(reason <= PACE_REASON_POOL_ENDED && detail >= 0);
    any_inside_call(conn);
    /* An outgoing one that was not made has not been opened. */
    if (data == &opened) atomic_fetch_add(&closed, 1);
}

static void any_request(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_text_t text;
    pace_field_t fields[4];
    pace_piece_t body;
    size_t count;
    CHECK(data == &dropped);
    any(pace_request_header(request, MAYBE("host"), &text));
    any(pace_request_headers(request, fields, below(5), &count));
    any(pace_request_param(request, "name", MAYBE(&text)));
    any(pace_request_query(request, &text));
    any(pace_request_body(request, &body));
    atomic_fetch_add(&calls, 6);
    end_response(response);
}

static void any_begin(void *data, const pace_request_t *request, pace_response_t *response,
                      void **body) {
    any_request(data, request, response);
    if (below(4) == 0) return;
    atomic_fetch_add(&begun, 1);
    *body = &begun;
}

static size_t any_upload(void *body, const void *at, size_t size) {
    CHECK(body == &begun && at != NULL);
    return below(100) == 0 ? size + 1 : size;
}

static void any_end(void *body, bool is_whole) {
    (void)is_whole;
    CHECK(body == &begun);
    atomic_fetch_add(&ended, 1);
}

static pace_conn_hooks_t any_hooks(void) {
    pace_conn_hooks_t hooks = hooks_with(any_data);
    if (below(3)) hooks.finished = any_event;
    hooks.open = any_open;
    hooks.writable = any_event;
    hooks.written = any_written;
    hooks.timeout = any_timeout;
    hooks.notified = any_event;
    hooks.draining = any_event;
    hooks.error = any_error;
    hooks.close = any_close;
    hooks.user_data = &dropped;
    hooks.drop = count_drops;
    return hooks;
}

static void any_client(int *client, const char *http_address) {
    static const char *const requests[] = {
        "GET /any/1?x HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /any/2 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",
        "PUT /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\npart",
        "nonsense\r\n\r\n",
    };
    char got[4096];
    switch (*client < 0 ? 0 : 1 + below(6)) {
    case 0:
        /* Reset as it is opened, or by its neighbour's hooks: connect() itself may hear of it. */
        *client = try_dial(below(2) ? address : http_address);
        CHECK(*client >= 0 ? fcntl(*client, F_SETFL, O_NONBLOCK) == 0 : errno == ECONNRESET);
        break;
    case 1: {
        struct linger abrupt = {1, 0};
        if (below(2)) CHECK(setsockopt(*client, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt) == 0);
        close(*client);
        *client = -1;
        break;
    }
    case 2:
        if (send(*client, bytes, any_size(), MSG_NOSIGNAL) < 0) CHECK(errno != EBADF);
        break;
    case 3:
    case 4: {
        const char *request = requests[below(2) ? 2 : below(5)];
        if (send(*client, request, strlen(request), MSG_NOSIGNAL) < 0) CHECK(errno != EBADF);
        break;
    }
    case 5:
        if (below(9) == 0 && shutdown(*client, SHUT_WR) != 0) CHECK(errno == ENOTCONN);
        break;
    default:
        if (recv(*client, got, sizeof got, 0) < 0) CHECK(errno != EBADF);
        break;
    }
}

static void one_life(long share) {
    char http_address[PACE_ADDRESS_SIZE];
    int clients[CLIENTS];
    pace_pool_t *pool = pool_of(1 + (uint32_t)below(3));
    pace_listener_options_t listener = listener_at(TCP);
    pace_server_options_t options = options_with(&listener, 1);
    pace_http_options_t http_options;
    pace_conn_hooks_t hooks = any_hooks();
    pace_request_body_hooks_t upload;
    pace_http_t *http;
    pace_server_t *beneath;
    const long enough = atomic_load(&calls) + share;
    for (int i = 0; i < CLIENTS; i++) clients[i] = -1;
    listener.max_requests = 20;
    listener.max_connections = 20;
    listener.linger_ns = below(2) * MILLI;
    listener.idle_timeout_ns = below(2) ? PACE_FOREVER : 5 * MILLI;
    listener.output_low = 100, listener.output_high = 1000, listener.output_max = 200000;
    atomic_store(&registered, 3), atomic_store(&dropped, 0);
    OK(pace_server_new(pool, &options, &hooks, &server));
    OK(pace_server_address(server, 0, address, sizeof address));
    OK(pace_http_new(pool, &http));
    OK(pace_http_route(http, below(2) ? "GET" : "POST", "/any/{name}", any_request, &dropped,
                       count_drops));
    OK(pace_request_body_hooks_init(&upload, sizeof upload));
    upload.begin = any_begin, upload.data = any_upload, upload.end = any_end;
    OK(pace_http_route_streaming(http, "PUT", "/up", &upload, &dropped, count_drops));
    OK(pace_http_options_init(&http_options, sizeof http_options));
    http_options.listeners = &listener, http_options.listener_count = 1;
    OK(pace_http_start(http, &http_options));
    OK(pace_http_server(http, &beneath));
    OK(pace_server_address(beneath, 0, http_address, sizeof http_address));
    while (atomic_load(&calls) < enough) {
        any_client(&clients[below(CLIENTS)], http_address);
        for (int i = 0; i < 20; i++) any_outside_call();
        if (below(20) == 0) {
            pace_conn_id_t id;
            pace_conn_hooks_t own = any_hooks();
            if (any(pace_server_connect(server, MAYBE(below(9) ? address : "127.0.0.1:1"), &own,
                                        MAYBE(&id))))
                atomic_fetch_add(&registered, 1);
        }
    }
    const bool in_order = below(2);
    if (in_order) {
        OK(pace_server_drain(server, below(10) * MILLI, NULL));
        CHECK(stats_of(server).open > 0 || stats_of(server).balances || stats_of(server).in_work > 0);
        OK(pace_server_drain(beneath, below(10) * MILLI, NULL));
    } else {
        OK(pace_pool_shutdown(pool, 0, NULL));
    }
    for (int i = 0; i < 200; i++) any_outside_call();
    for (int i = 0; i < KEPT; i++) {
        pace_admission_free(atomic_exchange(&admissions[i], NULL));
        pace_response_free(atomic_exchange(&responses[i], NULL));
        pace_body_free(atomic_exchange(&bodies[i], NULL));
    }
    UNTIL(stats_of(server).open == 0 && stats_of(beneath).open == 0);
    CHECK(stats_of(server).balances && stats_of(server).in_work == 0);
    pace_http_stats_t books = {0};
    books.struct_size = sizeof books;
    OK(pace_http_stats(http, &books));
    CHECK(books.balances && books.in_work == 0);
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i] >= 0) close(clients[i]);
    pace_http_free(http);
    pace_server_free(server);
    pace_pool_free(pool);
    UNTIL(atomic_load(&dropped) == atomic_load(&registered));
    CHECK(atomic_load(&opened) == atomic_load(&closed) && atomic_load(&begun) == atomic_load(&ended));
}

int main(int argc, char **argv) {
    check_begin();
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    long wanted = argc > 2 ? strtol(argv[2], NULL, 0) : 1000000;
    printf("seed %llu\n", (unsigned long long)seed);
    while (atomic_load(&calls) < wanted) one_life(20000);
    printf("%ld connections, %ld bodies\n", atomic_load(&opened), atomic_load(&begun));
    CHECK(atomic_load(&opened) > wanted / 10000 && atomic_load(&begun) > 0);
    return 0;
}
