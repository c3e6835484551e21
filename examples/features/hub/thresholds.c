/* Thresholds: a function is called when a figure of the hub crosses a limit, and when it is back.
 *
 * feature: hub/thresholds
 * prints:
 *   3 messages wait: above the limit
 *   0 messages wait: back
 */
#include <paceline/hub.h>
#include <paceline/ops.h>
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static sem_t called;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void print(void *data, const pace_crossing_t *crossing) {
    (void)data;
    printf("%.0f messages wait: %s\n", crossing->figure, crossing->crossed ? "above the limit" : "back");
    sem_post(&called);
}

int main(void) {
    bool ended;
    const pace_label_t name = {"hub", "shop"};
    pace_hub_options_t options;
    pace_threshold_t full;
    pace_mailbox_t *orders;
    pace_watch_t *watch;
    pace_pool_t *pool;
    pace_hub_t *hub;
    sem_init(&called, 0, 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_options_init(&options, sizeof options));
    options.name = "shop";
    must(pace_hub_new(pool, &options, &hub));
    must(pace_hub_mailbox(hub, "orders", NULL, &orders));
    must(pace_threshold_init(&full, sizeof full));
    full.metric = "paceline_hub_waiting"; /* a number; also its rate, or a quantile */
    full.labels = &name;
    full.label_count = 1;
    full.limit = 2.5;
    full.back_at = 0;
    must(pace_hub_watch(hub, NULL, 5000000, &full, 1, print, NULL, NULL, &watch)); /* every 5 ms */

    for (int n = 0; n < 3; n++)
        must(pace_hub_publish(hub, "orders", "", 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    sem_wait(&called);
    must(pace_mailbox_unsubscribe(orders, PACE_UNSUBSCRIBE_ASYNC, &ended)); /* discards them */
    sem_wait(&called);
    pace_watch_free(watch);
    pace_mailbox_free(orders);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
