/* Several messages that all mailboxes take, or none.
 *
 * feature: hub/together
 */
#include "../check.h"
#include <paceline/hub.h>
#include <paceline/pool.h>

int main(void) {
    pace_subscription_options_t options;
    pace_publish_item_t messages[2] = {{.bytes = "-10", .size = 3}, {.bytes = "+10", .size = 3}};
    pace_subscription_stats_t stats = {.struct_size = sizeof stats};
    pace_receipt_t receipt = {.struct_size = sizeof receipt};
    pace_mailbox_t *from, *to;
    pace_key_t *one, *other;
    pace_pool_t *pool;
    pace_hub_t *hub;
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
    CHECK(receipt.enqueued == 2);
    receipt.struct_size = sizeof receipt;
    CHECK(pace_hub_publish_all(hub, messages, 2, 0, &receipt) == PACE_EFULL); /* `to` has no room */
    must(pace_mailbox_stats(from, &stats));
    CHECK(stats.waiting == 1); /* so this has not got a second one */
    pace_key_free(one);
    pace_key_free(other);
    pace_mailbox_free(from);
    pace_mailbox_free(to);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
