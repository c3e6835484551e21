/* Datagrams as data.
 *
 * feature: cq/datagrams
 * prints:
 *   a datagram with the tag 7: hello
 *   from the socket itself: yes
 */
#include <paceline/cq.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

int main(void) {
    char address[64];
    pace_udp_options_t options;
    pace_ip_t self;
    pace_udp_t *udp;
    pace_pool_t *pool;
    pace_cq_t *cq;
    pace_cq_entry_t entry;
    size_t got;
    must(pace_pool_new(NULL, &pool));
    must(pace_cq_new(pool, NULL, &cq));
    must(pace_udp_options_init(&options, sizeof options));
    options.bind = "127.0.0.1:0";                      /* a free port */
    must(pace_cq_udp(cq, &options, 1 << 20, 7, &udp)); /* up to 1 MiB may wait */
    must(pace_udp_address(udp, address, sizeof address));
    must(pace_ip_read(address, &self));
    must(pace_udp_send_to(udp, "hello", 5, &self));
    must(pace_cq_wait(cq, &entry, 1, PACE_FOREVER, &got));
    if (entry.kind == PACE_CQ_DATAGRAM)
        printf("a datagram with the tag %d: %.*s\n", (int)entry.tag, (int)entry.size,
               (const char *)entry.bytes);
    printf("from the socket itself: %s\n", entry.detail.datagram.peer.port == self.port ? "yes" : "no");
    must(pace_cq_done(cq, &entry, 1));
    pace_udp_free(udp);
    pace_cq_free(cq);
    pace_pool_free(pool);
    return 0;
}
