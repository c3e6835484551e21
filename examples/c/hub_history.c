/* Publishes, stops, starts again, and replays: what was published before the stop comes first, then what is new.
 * Without archives in the library a hub forgets with its end, and the replay is of one that has not ended.
 *
 *     cc examples/c/hub_history.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -o hub_history
 *
 * feature: hub/history
 */
#include <paceline/cq.h>
#include <paceline/history.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

/* Ends the program with the reason unless a call has worked. */
static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* A hub whose orders are kept: in this file too, if there is one. */
static pace_status_t open_hub(pace_pool_t *pool, const char *archive, pace_hub_t **hub) {
    pace_hub_options_t options;
    pace_history_options_t history;
    must(pace_hub_options_init(&options, sizeof options));
    must(pace_history_options_init(&history, sizeof history));
    history.pattern = "orders.>";
    history.archive = archive;
    options.histories = &history;
    options.history_count = 1;
    return pace_hub_new(pool, &options, hub);
}

static void publish(pace_hub_t *hub, int number) {
    char text[32];
    int size = snprintf(text, sizeof text, "order %d", number);
    must(pace_hub_publish(hub, "orders.eu", text, (size_t)size, PACE_PUBLISH_NO_RECEIPT, NULL));
}

static void print_one(void *data, const pace_message_t *message) {
    int *printed = (int *)data;
    printf("%s%.*s", (*printed)++ ? ", " : "", (int)message->size, (const char *)message->payload);
}

static void add_up(void *data, const pace_history_stats_t *stats) {
    *(uint64_t *)data += stats->recorded;
}

int main(void) {
    char folder[] = "/tmp/hub_history_XXXXXX", archive[64], beside[80];
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_mailbox_t *replay;
    pace_cq_t *cq;
    pace_cq_entry_t entries[8];
    pace_query_t query = {0};
    size_t count = 0;
    uint64_t recorded = 0;
    int printed = 0;
    if (mkdtemp(folder) == NULL) return EXIT_FAILURE;
    snprintf(archive, sizeof archive, "%s/orders.sqlite", folder);

    must(pace_pool_new(NULL, &pool));
    pace_status_t opened = open_hub(pool, archive, &hub);
    bool has_archives = opened != PACE_EUNSUPPORTED;
    if (!has_archives) opened = open_hub(pool, NULL, &hub);
    must(opened);
    printf("archives: %s\n", has_archives ? "yes" : "not in this library");
    for (int number = 1; number <= 3; number++) publish(hub, number);
    must(pace_hub_flush(hub, NULL)); /* until here it may be lost with the power */

    if (has_archives) {
        pace_hub_free(hub);
        must(pace_pool_shutdown(pool, 60 * SECOND, NULL));
        pace_pool_free(pool);
        must(pace_pool_new(NULL, &pool));
        must(open_hub(pool, archive, &hub));
    }

    must(pace_hub_replay_mailbox(hub, "orders.eu", NULL, &replay));
    must(pace_cq_new(pool, NULL, &cq));
    must(pace_cq_mailbox(cq, replay, 1));
    publish(hub, 4);
    printf("replayed: ");
    while (printed < 4) {
        must(pace_cq_wait(cq, entries, 8, PACE_FOREVER, &count));
        for (size_t i = 0; i < count; i++) print_one(&printed, &entries[i].detail.message);
        must(pace_cq_done(cq, entries, count));
    }
    printf("\nthe last two: ");
    query.struct_size = sizeof query;
    query.pattern = "orders.*";
    query.limit = 2;
    query.newest = true;
    printed = 0;
    must(pace_hub_query(hub, &query, print_one, &printed, NULL));
    must(pace_hub_history_stats(hub, add_up, &recorded));
    printf("\nrecorded: %s\n", recorded > 0 ? "true" : "false");

    pace_cq_free(cq);
    pace_mailbox_free(replay);
    pace_hub_free(hub);
    must(pace_pool_shutdown(pool, 60 * SECOND, NULL));
    pace_pool_free(pool);
    const char *ends[] = {"", "-wal", "-shm"};
    for (int i = 0; i < 3; i++) {
        snprintf(beside, sizeof beside, "%s%s", archive, ends[i]);
        (void)unlink(beside);
    }
    (void)rmdir(folder);
    return EXIT_SUCCESS;
}
