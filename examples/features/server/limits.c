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
    char small_address[PACE_ADDRESS_SIZE], strict_address[PACE_ADDRESS_SIZE];
    pace_conn_hooks_t hooks = hooks_with(echo);
    pace_listener_options_t one = free_port(), idle = free_port();
    pace_server_stats_t stats = {.struct_size = sizeof stats};
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    one.max_connections = 1;
    one.refusal = "too many\n";
    one.refusal_size = 9;
    pace_server_t *small = serve(pool, &one, &hooks, small_address);
    idle.idle_timeout_ns = 20000000;
    pace_server_t *strict = serve(pool, &idle, &hooks, strict_address);

    int first = peer_connect(small_address);
    peer_send(first, "hello");
    CHECK(strcmp(peer_read(first, 5), "hello") == 0);
    int second = peer_connect(small_address);
    CHECK(strcmp(peer_read_all(second), "too many\n") == 0); /* and the end */
    close(first), close(second);
    must(pace_server_drain(small, PACE_FOREVER, NULL)); /* the counters are exact at rest */
    must(pace_server_stats(small, &stats));
    CHECK(stats.turned_away == 1);

    int silent = peer_connect(strict_address);
    CHECK(strcmp(peer_read_all(silent), "") == 0); /* it says nothing, and is closed */
    close(silent);
    must(pace_server_drain(strict, PACE_FOREVER, NULL));
    stats.struct_size = sizeof stats;
    must(pace_server_stats(strict, &stats));
    CHECK(stats.closed_timed_out == 1 && stats.balances);
    pace_server_free(small);
    pace_server_free(strict);
    pace_pool_free(pool);
    return 0;
}
