/* A lease: an entry that is not completed in time is brought again, and the first token for it is stale.
 *
 * feature: cq/leases
 * prints:
 *   first: 42
 *   again: 42
 *   the first token: PACE_ESTALE
 *   completed: 1
 */
#include <paceline/cq.h>
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void print(const pace_cq_entry_t *entry) {
    printf("%s: %.*s\n", (entry->flags & PACE_CQ_AGAIN) != 0 ? "again" : "first",
           (int)entry->detail.message.size, (const char *)entry->detail.message.payload);
}

int main(void) {
    pace_cq_config_t config;
    pace_cq_stats_t stats = {.struct_size = sizeof stats};
    pace_cq_entry_t first, again;
    size_t got;
    pace_mailbox_t *mailbox;
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_cq_t *cq;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_cq_config_init(&config, sizeof config));
    config.lease_ns = 200000000; /* 0.2 s */
    must(pace_cq_new(pool, &config, &cq));
    must(pace_hub_mailbox(hub, "orders", NULL, &mailbox));
    must(pace_cq_mailbox(cq, mailbox, 7));
    must(pace_hub_publish(hub, "orders", "42", 2, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_cq_wait(cq, &first, 1, PACE_FOREVER, &got));
    print(&first);
    /* The thread that has it is gone; another one waits. */
    must(pace_cq_wait(cq, &again, 1, PACE_FOREVER, &got));
    print(&again);
    printf("the first token: %s\n", pace_status_name(pace_cq_done(cq, &first, 1)));
    while (pace_cq_done(cq, &again, 1) == PACE_ESTALE) /* this thread was too slow itself */
        must(pace_cq_wait(cq, &again, 1, PACE_FOREVER, &got));
    must(pace_cq_stats(cq, &stats));
    printf("completed: %d\n", (int)stats.completed);
    pace_cq_free(cq);
    pace_mailbox_free(mailbox);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
