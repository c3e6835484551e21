/* Datagrams of UDP: a handler gets them in batches, and answers each of their senders.
 *
 * feature: server/datagrams
 */
#include "../check.h"
#include <paceline/pool.h>
#include <paceline/udp.h>
#include <stdatomic.h>
#include <string.h>

static void echo(void *data, pace_udp_t *udp, const pace_datagram_t *datagrams, size_t count) {
    (void)data;
    for (size_t n = 0; n < count; n++)
        must(pace_udp_send_to(udp, datagrams[n].bytes, datagrams[n].size, &datagrams[n].peer));
}

static void receive(void *answers, pace_udp_t *udp, const pace_datagram_t *datagrams, size_t count) {
    (void)udp;
    for (size_t n = 0; n < count; n++) {
        CHECK(datagrams[n].size == 5 && memcmp(datagrams[n].bytes, "hello", 5) == 0);
        atomic_fetch_add((atomic_int *)answers, 1);
    }
}

static pace_udp_t *socket_with(pace_pool_t *pool, pace_udp_data_fn data, void *user_data) {
    pace_udp_options_t options;
    pace_udp_hooks_t hooks;
    pace_udp_t *udp;
    must(pace_udp_options_init(&options, sizeof options));
    options.bind = "127.0.0.1:0";
    must(pace_udp_hooks_init(&hooks, sizeof hooks));
    hooks.data = data;
    hooks.user_data = user_data;
    must(pace_udp_new(pool, &options, &hooks, &udp));
    return udp;
}

int main(void) {
    atomic_int answers = 0;
    char address[64];
    pace_ip_t to;
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    pace_udp_t *server = socket_with(pool, echo, NULL);
    pace_udp_t *client = socket_with(pool, receive, &answers);
    must(pace_udp_address(server, address, sizeof address));
    must(pace_ip_read(address, &to));
    for (int n = 0; n < 10; n++) must(pace_udp_send_to(client, "hello", 5, &to));
    WAIT_FOR(atomic_load(&answers) == 10);
    pace_udp_free(client);
    pace_udp_free(server);
    pace_pool_free(pool);
    return 0;
}
