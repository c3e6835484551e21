/* Limits of a listener: connections at once, with a message for those that are refused, and time without a byte.
 *
 * feature: server/limits
 */
#include "../peer.h"
#include "../serve.h"

static size_t echo(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    must(pace_conn_write(conn, bytes, size, NULL));
    return size;
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_conn_hooks_t hooks = hooks_with(echo);
    pace_listener_options_t listener = free_port();
    pace_server_stats_t stats = {.struct_size = sizeof stats};
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    listener.max_connections = 1;
    listener.refusal = "too many\n";
    listener.refusal_size = 9;
    listener.idle_timeout_ns = 200000000;
    pace_server_t *server = serve(pool, &listener, &hooks, address);

    int first = peer_connect(address);
    peer_send(first, "hello");
    CHECK(strcmp(peer_read(first, 5), "hello") == 0);
    int second = peer_connect(address);
    CHECK(strcmp(peer_read_all(second), "too many\n") == 0); /* and the end */
    CHECK(strcmp(peer_read_all(first), "") == 0);            /* it says nothing, and is closed */
    must(pace_server_drain(server, PACE_FOREVER, NULL));
    must(pace_server_stats(server, &stats));
    CHECK(stats.turned_away == 1 && stats.closed_timed_out == 1 && stats.balances);
    close(first), close(second);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
