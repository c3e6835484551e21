/* A TCP proxy: whoever connects here talks to whoever listens there.
 *
 *     cc examples/c/proxy.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -o proxy
 *     ./proxy --listen 127.0.0.1:7000 --to 127.0.0.1:80
 *
 * A stream is two connections, and what the one reads is written to the other:
 *
 *     client ==> data -> write ==> upstream        not all of it sent? pause the reader,
 *            <== write <- data <==                 until the kernel has the last byte
 *
 * Back-pressure in each direction by itself: what the library reads at once, 64 KiB, is the most that
 * waits here. The output's own marks would not do: above the high mark the library stops reading from
 * that same connection, and a client that sends much before it reads anything would wait for itself.
 *
 * An end is passed on as what it was: a half-close as a half-close, a reset as a reset. An upstream
 * that cannot be reached resets the client, and is told on stderr. When interrupted, it lets streams
 * go on to their ends, for up to 10 s.
 *
 * feature: server/connect
 */
#include "common.h"

#include <ctype.h>
#include <stdatomic.h>

static const char *to;
static pace_server_t *clients, *upstreams;
static atomic_ullong unreachable, peak;

/* What both connections of a stream share. */
typedef struct stream {
    atomic_int halves;
    atomic_bool half_done; /* one of both peers has finished */
    /* Keeps the client's connection from being drained away before the stream has ended. */
    pace_admission_t *_Atomic admission;
} stream_t;

/* A connection of a stream: the client's or the upstream's. */
typedef struct half {
    stream_t *stream;
    pace_server_t *at; /* the other one's */
    pace_conn_id_t other;
    bool is_open;
} half_t;

static half_t *new_half(stream_t *stream, pace_server_t *at, pace_conn_id_t other) {
    half_t *half = malloc(sizeof *half);
    if (half == NULL) FAIL(1, "out of memory");
    atomic_fetch_add(&stream->halves, 1);
    *half = (half_t){stream, at, other, false};
    return half;
}

static void free_half(void *user_data) {
    half_t *half = user_data;
    if (atomic_fetch_sub(&half->stream->halves, 1) == 1) {
        pace_admission_free(atomic_load(&half->stream->admission));
        free(half->stream);
    }
    free(half);
}

static void tell_unreachable(const char *why) {
    atomic_fetch_add(&unreachable, 1);
    fprintf(stderr, "proxy: no upstream at %s: %c%s\n", to, tolower((unsigned char)*why), why + 1);
}

static pace_conn_hooks_t hooks_with(pace_conn_open_fn open);

static int32_t upstream_is_there(void *user_data, pace_conn_t *conn) {
    (void)conn;
    ((half_t *)user_data)->is_open = true;
    return PACE_ACCEPT_YES;
}

static int32_t connect_upstream(void *user_data, pace_conn_t *conn) {
    stream_t *stream = calloc(1, sizeof *stream);
    pace_admission_t *admission;
    pace_conn_id_t client;
    (void)user_data;
    if (stream == NULL) FAIL(1, "out of memory");
    must(pace_conn_id(conn, &client));
    half_t *half = new_half(stream, upstreams, (pace_conn_id_t){0});
    half->is_open = true;
    must(pace_conn_set_user_data(conn, half));
    must(pace_conn_admit(conn, &admission));
    atomic_store(&stream->admission, admission);

    pace_conn_hooks_t hooks = hooks_with(upstream_is_there);
    hooks.user_data = new_half(stream, clients, client);
    if (pace_server_connect(upstreams, to, &hooks, &half->other) != PACE_OK) {
        tell_unreachable(pace_last_error());
        free_half(hooks.user_data); /* it has not moved */
        must(pace_conn_abort(conn));
    }
    return PACE_ACCEPT_YES;
}

static size_t pass_on(void *user_data, pace_conn_t *conn, const void *bytes, size_t size) {
    half_t *half = user_data;
    uint32_t wrote;
    if (pace_server_conn_write(half->at, half->other, bytes, size, &wrote) != PACE_OK ||
        wrote != PACE_WRITE_STATUS_SENT) {
        size_t queued = 0;
        /* First the pause: another thread may tell of the token at once. */
        must(pace_conn_pause(conn));
        (void)pace_server_conn_queued(half->at, half->other, &queued);
        unsigned long long before = atomic_load(&peak);
        while (before < queued && !atomic_compare_exchange_weak(&peak, &before, queued)) {
        }
        /* It fails if the other has ended, and then the other's `close` ends this one. */
        (void)pace_server_conn_write_tracked(half->at, half->other, NULL, 0, 0, NULL);
    }
    return size;
}

static void let_go_on(void *user_data, pace_conn_t *conn, uint64_t token) {
    half_t *half = user_data;
    (void)conn, (void)token;
    /* It fails if the other has ended: then nobody waits for this. */
    (void)pace_server_conn_resume(half->at, half->other);
}

static void finished(void *user_data, pace_conn_t *conn) {
    half_t *half = user_data;
    (void)pace_server_conn_shutdown_write(half->at, half->other);
    if (!atomic_exchange(&half->stream->half_done, true)) return;
    pace_admission_t *admission = atomic_exchange(&half->stream->admission, NULL);
    /* Before the client's connection may end. */
    if (admission != NULL) must(pace_admission_answered(admission));
    must(pace_conn_close(conn));
    (void)pace_server_conn_close(half->at, half->other);
}

static void end(void *user_data, pace_conn_t *conn, uint32_t reason, int32_t detail) {
    half_t *half = user_data;
    bool is_outgoing;
    must(pace_conn_is_outgoing(conn, &is_outgoing));
    if (is_outgoing && !half->is_open)
        tell_unreachable(reason == PACE_REASON_FAILED ? strerror(detail) : "it does not answer");
    /* An end in good order is one for both, and only such a stream is drained; any other breaks off the
     * other one, too. It fails if that has ended already. */
    if (reason != PACE_REASON_LOCAL && reason != PACE_REASON_PEER && reason != PACE_REASON_DRAINED)
        (void)pace_server_conn_abort(half->at, half->other);
    if (!is_outgoing) pace_admission_free(atomic_exchange(&half->stream->admission, NULL));
    free_half(half);
}

static pace_conn_hooks_t hooks_with(pace_conn_open_fn open) {
    pace_conn_hooks_t hooks;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.open = open;
    hooks.data = pass_on;
    hooks.written = let_go_on;
    hooks.finished = finished;
    hooks.close = end;
    return hooks;
}

int main(int argc, char **argv) {
    const char *listen = NULL, *threads = NULL;
    const common_flag_t flags[] = {{"listen", &listen}, {"to", &to}, {"threads", &threads}};
    pace_server_options_t options, connecting;
    pace_server_stats_t books = {.struct_size = sizeof books};
    program = "proxy";
    common_flags(argc, argv, "proxy --listen ADDR --to ADDR [--threads N]", flags, 3);
    pace_listener_options_t listener = common_listener(common_needed("listen", listen));
    common_needed("to", to);
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_server_options_init(&connecting, sizeof connecting));
    listener.allow_half_open = true; /* each direction of a stream ends by itself */
    connecting.outgoing = &listener; /* its address is not looked at */

    /* A server without listeners only connects. Apart from the clients', so that these drain first. */
    pace_pool_t *pool = common_pool(threads);
    pace_conn_hooks_t of_upstreams = hooks_with(upstream_is_there);
    pace_conn_hooks_t of_clients = hooks_with(connect_upstream);
    must(pace_server_new(pool, &connecting, &of_upstreams, &upstreams));
    must(pace_server_new(pool, &options, &of_clients, &clients));
    common_serve(clients);
    must(pace_server_drain(clients, 10 * SECOND, NULL));
    must(pace_server_stats(clients, &books));
    printf("%llu streams: %llu to their ends, %llu broken off, of them %llu without upstream; "
           "up to %llu bytes waited\n",
           (unsigned long long)books.requests, (unsigned long long)books.answered,
           (unsigned long long)books.requests_aborted, atomic_load(&unreachable), atomic_load(&peak));
    must(pace_server_drain(upstreams, 10 * SECOND, NULL));
    pace_pool_free(pool); /* no hook runs any more, so nobody uses the servers */
    pace_server_free(clients);
    pace_server_free(upstreams);
    return 0;
}
