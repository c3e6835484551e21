/* Sockets that systemd has opened for the program. Here the program stands for systemd, too.
 *
 * feature: server/inherited
 */
#define _GNU_SOURCE
#include "../peer.h"
#include "../serve.h"

static size_t echo(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    must(pace_conn_write(conn, bytes, size, NULL));
    return size;
}

/* What systemd does: a socket that listens becomes descriptor 3 of the program. */
static void stand_for_systemd(void) {
    char pid[16];
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&any, sizeof any) == 0 && listen(listener, 8) == 0);
    CHECK(dup2(listener, 3) == 3);
    snprintf(pid, sizeof pid, "%d", getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_FDNAMES", "echo", 1);
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    size_t found;
    pace_inherited_t sockets[4];
    pace_conn_hooks_t hooks = hooks_with(echo);
    pace_listener_options_t listener;
    pace_pool_t *pool;
    stand_for_systemd();
    must(pace_inherited_take(sockets, 4, &found));
    CHECK(found == 1 && strcmp(sockets[0].name, "echo") == 0);
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.fd = sockets[0].fd;
    must(pace_pool_new(NULL, &pool));
    pace_server_t *server = serve(pool, &listener, &hooks, address);
    int peer = peer_connect(address);
    peer_send(peer, "hello");
    CHECK(strcmp(peer_read(peer, 5), "hello") == 0);
    close(peer);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
