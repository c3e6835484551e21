/* A server with a TCP and a Unix listener, and with state of its own for each connection.
 *
 * feature: server/handlers
 */
#include "../peer.h"
#include <paceline/net.h>
#include <paceline/pool.h>
#include <stdatomic.h>

static atomic_int closed;

static int32_t open_conn(void *data, pace_conn_t *conn) {
    (void)data;
    must(pace_conn_set_user_data(conn, calloc(1, sizeof(int)))); /* this connection's counter */
    must(pace_conn_write(conn, "hello\n", 6, NULL));
    return PACE_ACCEPT_YES; /* or PACE_ACCEPT_REFUSE */
}

/* Answers each byte with the number of bytes so far. */
static size_t count(void *counter, pace_conn_t *conn, const void *bytes, size_t size) {
    char text[16];
    (void)bytes;
    *(int *)counter += (int)size;
    must(
        pace_conn_write(conn, text, (size_t)snprintf(text, sizeof text, "%d\n", *(int *)counter), NULL));
    return size; /* so many are consumed; what is left comes again, with more */
}

static void close_conn(void *counter, pace_conn_t *conn, uint32_t reason, int32_t detail) {
    (void)conn, (void)detail;
    CHECK(reason == PACE_REASON_PEER);
    free(counter);
    atomic_fetch_add(&closed, 1);
}

int main(void) {
    char name[64], tcp[PACE_ADDRESS_SIZE];
    pace_listener_options_t listeners[2];
    pace_server_options_t options;
    pace_conn_hooks_t hooks;
    pace_server_t *server;
    pace_pool_t *pool;
    snprintf(name, sizeof name, "unix:@handlers-%d", getpid());
    must(pace_pool_new(NULL, &pool));
    for (int n = 0; n < 2; n++) must(pace_listener_options_init(&listeners[n], sizeof listeners[n]));
    listeners[0].address = "127.0.0.1:0"; /* a free port */
    listeners[1].address = name;
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = listeners;
    options.listener_count = 2;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.open = open_conn;
    hooks.data = count;
    hooks.close = close_conn;
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_server_address(server, 0, tcp, sizeof tcp));

    int one = peer_connect(tcp), other = peer_connect(name);
    CHECK(strcmp(peer_read(one, 6), "hello\n") == 0 && strcmp(peer_read(other, 6), "hello\n") == 0);
    peer_send(one, "abc");
    CHECK(strcmp(peer_read(one, 2), "3\n") == 0);
    peer_send(other, "x");
    CHECK(strcmp(peer_read(other, 2), "1\n") == 0);
    close(one), close(other);
    WAIT_FOR(atomic_load(&closed) == 2);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
