/* A history of what was published: queries, and a replay that goes on with what is new, without gap or duplicate.
 *
 * feature: hub/history
 */
#include "../check.h"
#include <paceline/history.h>
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdatomic.h>
#include <string.h>

/* Appends the payload, and a blank. */
static void append(char *text, const pace_message_t *message) {
    strncat(text, message->payload, message->size);
    strcat(text, " ");
}

static void record(void *text, const pace_message_t *message) { append(text, message); }

static atomic_int replayed_so_far;

static void replayed(void *text, const pace_message_t *message, int32_t *outcome) {
    append(text, message);
    atomic_fetch_add(&replayed_so_far, 1);
    *outcome = 0;
}

int main(void) {
    char found[64] = "", seen[64] = "";
    pace_history_options_t history;
    pace_hub_options_t options;
    pace_query_t query = {
        .struct_size = sizeof query, .pattern = "orders.*", .newest = true, .limit = 2};
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_replay_t *replay;
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

    must(pace_hub_query(hub, &query, record, found, NULL));
    CHECK(strcmp(found, "3 4 ") == 0);

    must(pace_hub_replay(hub, "orders.eu", PACE_REPLAY_BEGINNING, 0, replayed, seen, NULL, &replay));
    must(pace_hub_publish(hub, "orders.eu", "5", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    WAIT_FOR(atomic_load(&replayed_so_far) == 5);
    CHECK(strcmp(seen, "1 2 3 4 5 ") == 0);
    pace_replay_free(replay);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
