/* Datagrams as data.
 *
 * feature: cq/datagrams
 */
#include "../check.h"
#include <paceline/cq.h>
#include <paceline/pool.h>
#include <string.h>

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
    options.bind = "127.0.0.1:0";
    must(pace_cq_udp(cq, &options, 1 << 20, 7, &udp)); /* so many bytes may wait */
    must(pace_udp_address(udp, address, sizeof address));
    must(pace_ip_read(address, &self));
    must(pace_udp_send_to(udp, "hello", 5, &self));
    must(pace_cq_wait(cq, &entry, 1, PACE_FOREVER, &got));
    CHECK(entry.kind == PACE_CQ_DATAGRAM && entry.tag == 7 && entry.size == 5);
    CHECK(memcmp(entry.bytes, "hello", 5) == 0 && entry.detail.datagram.peer.port == self.port);
    must(pace_cq_done(cq, &entry, 1));
    pace_udp_free(udp);
    pace_cq_free(cq);
    pace_pool_free(pool);
    return 0;
}
