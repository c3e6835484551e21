/* Datagrams of UDP: a handler gets them in batches, and answers each of their senders.
 *
 * feature: server/datagrams
 * prints:
 *   answer: one
 *   answer: two
 *   answer: three
 */
#include <paceline/pool.h>
#include <paceline/udp.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sem_t answered;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void echo(void *data, pace_udp_t *udp, const pace_datagram_t *datagrams, size_t count) {
    (void)data;
    for (size_t n = 0; n < count; n++)
        must(pace_udp_send_to(udp, datagrams[n].bytes, datagrams[n].size, &datagrams[n].peer));
}

static void print(void *data, pace_udp_t *udp, const pace_datagram_t *datagrams, size_t count) {
    (void)data, (void)udp;
    for (size_t n = 0; n < count; n++) {
        printf("answer: %.*s\n", (int)datagrams[n].size, (const char *)datagrams[n].bytes);
        sem_post(&answered);
    }
}

static pace_udp_t *socket_with(pace_pool_t *pool, pace_udp_data_fn data) {
    pace_udp_options_t options;
    pace_udp_hooks_t hooks;
    pace_udp_t *udp;
    must(pace_udp_options_init(&options, sizeof options));
    options.bind = "127.0.0.1:0"; /* a free port */
    must(pace_udp_hooks_init(&hooks, sizeof hooks));
    hooks.data = data;
    must(pace_udp_new(pool, &options, &hooks, &udp));
    return udp;
}

int main(void) {
    const char *const texts[] = {"one", "two", "three"};
    char address[64];
    pace_ip_t to;
    pace_pool_t *pool;
    sem_init(&answered, 0, 0);
    must(pace_pool_new(NULL, &pool));
    pace_udp_t *server = socket_with(pool, echo);
    pace_udp_t *client = socket_with(pool, print);
    must(pace_udp_address(server, address, sizeof address));
    must(pace_ip_read(address, &to));
    for (int n = 0; n < 3; n++) must(pace_udp_send_to(client, texts[n], strlen(texts[n]), &to));
    for (int n = 0; n < 3; n++) sem_wait(&answered);
    pace_udp_free(client);
    pace_udp_free(server);
    pace_pool_free(pool);
    return 0;
}
