/* Without descriptors to spare a server stops accepting for a moment, tells so, and goes on when there are some.
 *
 * feature: server/exhausted
 */
#include "../peer.h"
#include <paceline/net.h>
#include <paceline/pool.h>
#include <stdatomic.h>
#include <sys/resource.h>

static void hear(void *told, const char *message) {
    CHECK(strlen(message) > 0);
    atomic_fetch_add((atomic_int *)told, 1);
}

static size_t echo(void *told, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)told;
    must(pace_conn_write(conn, bytes, size, NULL));
    return size;
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    atomic_int told = 0;
    struct rlimit before, few;
    pace_listener_options_t listener;
    pace_server_options_t options;
    pace_conn_hooks_t hooks;
    pace_server_t *server;
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0";
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    options.on_exhausted = hear;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = echo;
    hooks.user_data = &told;
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_server_address(server, 0, address, sizeof address));

    int peer = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    few = before;
    few.rlim_cur = (rlim_t)peer + 1; /* all are in use */
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    peer_join(peer, address); /* the kernel has it, but the server cannot accept it */
    peer_send(peer, "hello");
    WAIT_FOR(atomic_load(&told) == 1);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(strcmp(peer_read(peer, 5), "hello") == 0);
    close(peer);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
