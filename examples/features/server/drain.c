/* A graceful end: no new connections, what has arrived is answered, and connections hear of it. What remains is cut off.
 *
 * feature: server/drain
 */
#include "../peer.h"
#include "../serve.h"

static size_t echo(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    must(pace_conn_write(conn, bytes, size, NULL));
    return size;
}

static void say_goodbye(void *data, pace_conn_t *conn) {
    (void)data;
    must(pace_conn_write(conn, "bye\n", 4, NULL));
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_conn_hooks_t hooks = hooks_with(echo);
    pace_listener_options_t listener = free_port();
    pace_drain_report_t report = {.struct_size = sizeof report};
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    hooks.draining = say_goodbye;
    pace_server_t *server = serve(pool, &listener, &hooks, address);

    int peer = peer_connect(address);
    peer_send(peer, "hello");
    CHECK(strcmp(peer_read(peer, 5), "hello") == 0);
    must(pace_server_drain(server, 60000000000, &report)); /* a minute at most */
    CHECK(report.drained && report.cut_off == 0);
    CHECK(strcmp(peer_read_all(peer), "bye\n") == 0);
    close(peer);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
