/* Connections as data: what has arrived comes as an entry, and its completion says what is written, and what next.
 *
 * feature: cq/server
 */
#include "../peer.h"
#include <paceline/cq.h>
#include <paceline/pool.h>
#include <pthread.h>

static void *serve(void *queue) {
    pace_cq_entry_t entry;
    size_t got;
    for (;;) {
        if (pace_cq_wait(queue, &entry, 1, PACE_FOREVER, &got) != PACE_OK) return NULL; /* closed */
        if (entry.kind != PACE_CQ_CONN) continue; /* the server has ended */
        pace_cq_completion_t completion = {.token = entry.token};
        if (entry.detail.conn.event == PACE_CONN_EVENT_DATA) {
            completion.bytes = entry.bytes; /* an echo */
            completion.size = entry.size;
            if (memchr(entry.bytes, '\n', entry.size)) completion.flags = PACE_CQ_CLOSE;
        }
        must(pace_cq_complete(queue, &completion, 1));
    }
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_listener_options_t listener;
    pace_server_options_t options;
    pace_server_t *server;
    pace_pool_t *pool;
    pace_cq_t *cq;
    pthread_t thread;
    must(pace_pool_new(NULL, &pool));
    must(pace_cq_new(pool, NULL, &cq));
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0";
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_cq_server(cq, &options, PACE_WANTED_OPENED | PACE_WANTED_CLOSED, 1, &server));
    must(pace_server_address(server, 0, address, sizeof address));
    CHECK(pthread_create(&thread, NULL, serve, cq) == 0); /* or several of them */

    int peer = peer_connect(address);
    peer_send(peer, "hello");
    CHECK(strcmp(peer_read(peer, 5), "hello") == 0);
    peer_send(peer, "bye\n");
    CHECK(strcmp(peer_read_all(peer), "bye\n") == 0);
    close(peer);
    must(pace_server_drain(server, PACE_FOREVER, NULL));
    must(pace_cq_close(cq));
    pthread_join(thread, NULL);
    pace_server_free(server);
    pace_cq_free(cq);
    pace_pool_free(pool);
    return 0;
}
