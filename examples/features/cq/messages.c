/* Messages and replies of the hub as data.
 *
 * feature: cq/messages
 */
#include "../check.h"
#include <paceline/cq.h>
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <string.h>

enum { ORDERS, REPLIES };

static void answer(void *hub, const pace_message_t *request, int32_t *outcome) {
    must(pace_hub_reply(*(pace_hub_t **)hub, request, "pong", 4, NULL));
    *outcome = 0;
}

int main(void) {
    int orders = 0, replies = 0;
    pace_subscription_t subscription;
    pace_mailbox_t *mailbox;
    pace_asked_t asked;
    pace_key_t *ping;
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_cq_t *cq;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_cq_new(pool, NULL, &cq));
    must(pace_hub_mailbox(hub, "orders.>", NULL, &mailbox));
    must(pace_cq_mailbox(cq, mailbox, ORDERS));
    must(pace_hub_subscribe(hub, "ping", NULL, answer, &hub, NULL, &subscription));
    must(pace_hub_key(hub, "ping", &ping));

    must(pace_cq_request(cq, ping, NULL, "?", 1, 60000000000, REPLIES, &asked));
    for (int n = 0; n < 3; n++)
        must(pace_hub_publish(hub, "orders.eu", "42", 2, PACE_PUBLISH_NO_RECEIPT, NULL));
    while (orders + replies < 4) {
        pace_cq_entry_t entries[8];
        size_t got = 0;
        must(pace_cq_wait(cq, entries, 8, PACE_FOREVER, &got));
        for (size_t n = 0; n < got; n++) {
            const pace_message_t *message = &entries[n].detail.message;
            if (entries[n].tag == ORDERS) {
                CHECK(entries[n].kind == PACE_CQ_MESSAGE && message->size == 2);
                orders++;
            } else {
                CHECK(entries[n].kind == PACE_CQ_REPLY && entries[n].status == PACE_OK);
                CHECK(memcmp(message->payload, "pong", 4) == 0);
                replies++;
            }
        }
        must(
            pace_cq_done(cq, entries, got)); /* or pace_cq_complete() with PACE_CQ_FAIL: a dead letter */
    }
    pace_key_free(ping);
    pace_cq_free(cq);
    pace_mailbox_free(mailbox);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
