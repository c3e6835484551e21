/* Messages and replies of the hub as data.
 *
 * feature: cq/messages
 * prints:
 *   order: 1
 *   order: 2
 *   reply: pong
 */
#include <paceline/cq.h>
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>

enum { ORDERS, REPLIES };

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void answer(void *hub, const pace_message_t *request, int32_t *outcome) {
    must(pace_hub_reply(*(pace_hub_t **)hub, request, "pong", 4, NULL));
    *outcome = 0;
}

/* Waits for the next entry, prints it, and completes it. */
static void print_next(pace_cq_t *cq) {
    pace_cq_entry_t entry; /* or an array: as many as have come are taken at once */
    size_t got;
    must(pace_cq_wait(cq, &entry, 1, PACE_FOREVER, &got));
    must(entry.status); /* of a reply: PACE_ETIMEDOUT, for example */
    printf("%s: %.*s\n", entry.tag == ORDERS ? "order" : "reply", (int)entry.detail.message.size,
           (const char *)entry.detail.message.payload);
    must(pace_cq_done(cq, &entry, 1)); /* or pace_cq_complete() with PACE_CQ_FAIL: a dead letter */
}

int main(void) {
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
    must(pace_hub_publish(hub, "orders.eu", "1", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_hub_publish(hub, "orders.us", "2", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    print_next(cq);
    print_next(cq);

    must(pace_hub_subscribe(hub, "ping", NULL, answer, &hub, NULL, &subscription));
    must(pace_hub_key(hub, "ping", &ping));
    must(pace_cq_request(cq, ping, NULL, "?", 1, 60000000000, REPLIES, &asked));
    print_next(cq);
    pace_key_free(ping);
    pace_cq_free(cq);
    pace_mailbox_free(mailbox);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
