/* Where a message ends: at a delimiter, after a length in front of it, or after a fixed length.
 *
 * feature: server/frames
 */
#include "../peer.h"
#include "../serve.h"

/* Answers each whole line with a '+' in front, and leaves a part of a line for the next call. */
static size_t lines(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    size_t consumed = 0, searched = 0;
    pace_frame_t frame;
    while (pace_frame_delimited((const char *)bytes + consumed, size - consumed, "\n", 1, 1024,
                                &searched, &frame) == PACE_OK &&
           frame.length > 0) {
        const pace_piece_t answer[] = {{"+", 1}, {frame.body, frame.size}, {"\n", 1}};
        must(pace_conn_write_vectored(conn, answer, 3, NULL));
        consumed += frame.length;
        searched = 0;
    }
    return consumed;
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_frame_t frame;
    pace_conn_hooks_t hooks = hooks_with(lines);
    pace_listener_options_t listener = free_port();
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    pace_server_t *server = serve(pool, &listener, &hooks, address);
    int peer = peer_connect(address);
    peer_send(peer, "one\ntwo\nthr");
    CHECK(strcmp(peer_read(peer, 10), "+one\n+two\n") == 0);
    peer_send(peer, "ee\n");
    CHECK(strcmp(peer_read(peer, 7), "+three\n") == 0);
    close(peer);
    pace_server_free(server);
    pace_pool_free(pool);

    must(pace_frame_prefixed("\0\3abcd", 6, 2, 1024, &frame)); /* two bytes of length */
    CHECK(frame.size == 3 && frame.length == 5 && memcmp(frame.body, "abc", 3) == 0);
    must(pace_frame_fixed("abcd", 4, 3, &frame));
    CHECK(frame.size == 3 && frame.length == 3);
    return 0;
}
