/* Output never blocks: what a slow reader has not taken waits in a bounded queue, and the hook hears when there is room.
 * The peer may finish sending, and still read.
 *
 * feature: server/output
 */
#include "../peer.h"
#include "../serve.h"
#include <stdatomic.h>

#define CHUNK 65536
#define CHUNKS 300

/* Reading stops above the high mark, so this program writes from its hooks only while there is room. */
static void write_on(void *left, pace_conn_t *conn) {
    static const char chunk[CHUNK];
    uint32_t wrote = PACE_WRITE_STATUS_SENT;
    while (*(int *)left > 0 && wrote != PACE_WRITE_STATUS_ABOVE_HIGH_MARK) {
        must(pace_conn_write(conn, chunk, CHUNK, &wrote));
        --*(int *)left;
    }
}

static size_t begin(void *left, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)bytes;
    write_on(left, conn);
    CHECK(*(int *)left > 0); /* more than the buffers of the kernel and the queue hold */
    return size;
}

static void writable(void *left, pace_conn_t *conn) {
    write_on(left, conn);
    if (*(int *)left == 0) must(pace_conn_close(conn)); /* when all is sent */
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    int left = CHUNKS;
    size_t total = 0, got;
    pace_conn_hooks_t hooks = hooks_with(begin);
    pace_listener_options_t listener = free_port();
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    hooks.writable = writable;
    hooks.user_data = &left;
    listener.output_low = 1 << 16, listener.output_high = 1 << 18, listener.output_max = 1 << 20;
    listener.allow_half_open = true; /* stays open though the peer has finished sending */
    pace_server_t *server = serve(pool, &listener, &hooks, address);

    int peer = peer_connect(address);
    peer_send(peer, "!");
    CHECK(shutdown(peer, SHUT_WR) == 0);
    usleep(10000); /* reads nothing for a while */
    do {
        char bytes[CHUNK];
        ssize_t size = recv(peer, bytes, sizeof bytes, 0);
        got = size > 0 ? (size_t)size : 0;
        total += got;
    } while (got > 0);
    CHECK(total == (size_t)CHUNK * CHUNKS);
    close(peer);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
