/* A bounded number of requests in work, and an answer that comes later from another thread.
 *
 * feature: server/requests
 */
#include "../peer.h"
#include "../serve.h"
#include <stdatomic.h>

static pace_server_t *server;
static pace_admission_t *admission;
static pace_conn_id_t waiting;
static atomic_bool is_admitted;

static size_t request(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data, (void)bytes;
    if (pace_conn_admit(conn, &admission) == PACE_OK) { /* else: the busy message is written */
        must(pace_conn_id(conn, &waiting));
        atomic_store(&is_admitted, true);
    }
    return size;
}

/* Runs on another thread than the hook, or later on the same one. */
static void answer(void *data, int32_t *outcome) {
    (void)data;
    must(pace_server_conn_write(server, waiting, "done\n", 5, NULL));
    must(pace_admission_answered(admission));
    *outcome = 0;
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_conn_hooks_t hooks = hooks_with(request);
    pace_listener_options_t listener = free_port();
    pace_server_stats_t stats = {.struct_size = sizeof stats};
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    listener.max_requests = 1;
    listener.busy = "busy\n";
    listener.busy_size = 5;
    server = serve(pool, &listener, &hooks, address);

    int first = peer_connect(address), second = peer_connect(address);
    peer_send(first, "?");
    WAIT_FOR(atomic_load(&is_admitted));
    peer_send(second, "?");
    CHECK(strcmp(peer_read(second, 5), "busy\n") == 0);
    must(pace_pool_post(pool, PACE_LANE_NORMAL, answer, NULL, NULL));
    CHECK(strcmp(peer_read(first, 5), "done\n") == 0);
    close(first), close(second);
    must(pace_server_drain(server, PACE_FOREVER, NULL));
    must(pace_server_stats(server, &stats));
    CHECK(stats.answered == 1 && stats.busy == 1 && stats.in_work == 0);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
