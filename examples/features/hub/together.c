/* Several messages that all mailboxes take, or none.
 *
 * feature: hub/together
 * prints:
 *   mailboxes that have taken theirs: 2
 *   one mailbox is full: PACE_EFULL
 *   waiting in the other one: 1
 */
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

int main(void) {
    pace_status_t status;
    pace_subscription_options_t options;
    pace_publish_item_t messages[2] = {{.bytes = "-10", .size = 3}, {.bytes = "+10", .size = 3}};
    pace_subscription_stats_t stats = {.struct_size = sizeof stats};
    pace_receipt_t receipt = {.struct_size = sizeof receipt};
    pace_mailbox_t *from, *to;
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_key_t *one, *other;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_subscription_options_init(&options, sizeof options));
    options.overflow = PACE_OVERFLOW_REJECT;
    must(pace_hub_mailbox(hub, "account.one", &options, &from));
    options.capacity = 1;
    must(pace_hub_mailbox(hub, "account.other", &options, &to));
    must(pace_hub_key(hub, "account.one", &one));
    must(pace_hub_key(hub, "account.other", &other));
    messages[0].key = one;
    messages[1].key = other;

    must(pace_hub_publish_all(hub, messages, 2, 0, &receipt));
    printf("mailboxes that have taken theirs: %d\n", (int)receipt.enqueued);
    status = pace_hub_publish_all(hub, messages, 2, 0, &receipt); /* `to` has no room */
    printf("one mailbox is full: %s\n", pace_status_name(status));
    must(pace_mailbox_stats(from, &stats)); /* so this has not got a second one */
    printf("waiting in the other one: %d\n", (int)stats.waiting);
    pace_key_free(one);
    pace_key_free(other);
    pace_mailbox_free(from);
    pace_mailbox_free(to);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
