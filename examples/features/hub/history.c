/* A history of what was published: queries, and a replay that goes on with what is new, without gap or duplicate.
 *
 * feature: hub/history
 * prints:
 *   the newest two: 3 4
 *   replayed, and then new: 1 2 3 4 5
 */
#include <paceline/history.h>
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sem_t handled;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void found(void *text, const pace_message_t *message) {
    strncat(strcat(text, " "), message->payload, message->size);
}

static void replayed(void *text, const pace_message_t *message, int32_t *outcome) {
    found(text, message);
    sem_post(&handled);
    *outcome = 0;
}

int main(void) {
    char newest[64] = "", all[64] = "";
    pace_history_options_t history;
    pace_hub_options_t options;
    pace_query_t query = {
        .struct_size = sizeof query, .pattern = "orders.*", .newest = true, .limit = 2};
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_replay_t *replay;
    sem_init(&handled, 0, 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_history_options_init(&history, sizeof history));
    history.pattern = "orders.>";
    history.keep_count = 100; /* in memory; also by size, by age, and in an archive */
    must(pace_hub_options_init(&options, sizeof options));
    options.histories = &history;
    options.history_count = 1;
    must(pace_hub_new(pool, &options, &hub));
    for (const char *each = "1234"; *each; each++)
        must(pace_hub_publish(hub, "orders.eu", each, 1, PACE_PUBLISH_NO_RECEIPT, NULL));

    must(pace_hub_query(hub, &query, found, newest, NULL));
    printf("the newest two:%s\n", newest);

    must(pace_hub_replay(hub, "orders.eu", PACE_REPLAY_BEGINNING, 0, replayed, all, NULL, &replay));
    must(pace_hub_publish(hub, "orders.eu", "5", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    for (int n = 0; n < 5; n++) sem_wait(&handled);
    printf("replayed, and then new:%s\n", all);
    pace_replay_free(replay);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
