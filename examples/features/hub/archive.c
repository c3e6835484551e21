/* An archive on disk: history that outlives the hub; lines of JSON from it, and an archive from lines.
 *
 * feature: hub/archive
 */
#define _GNU_SOURCE
#include "../check.h"
#include <paceline/history.h>
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void count(void *messages, const pace_message_t *message) {
    CHECK(message->key.size == 9);
    ++*(int *)messages;
}

int main(void) {
    char folder[] = "/tmp/archive-XXXXXX", archive[64], lines[64], copy[64], command[64];
    int messages = 0;
    uint64_t exported = 0, imported = 0, torn = 0, given_up = 0;
    pace_history_options_t history;
    pace_hub_options_t options;
    pace_query_t query = {.struct_size = sizeof query, .pattern = "orders.>"};
    pace_archive_t *opened;
    pace_pool_t *pool;
    pace_hub_t *hub;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(archive, sizeof archive, "%s/orders.sqlite", folder);
    snprintf(copy, sizeof copy, "%s/copy.sqlite", folder);
    snprintf(lines, sizeof lines, "%s/orders.jsonl", folder);
    must(pace_pool_new(NULL, &pool));
    must(pace_history_options_init(&history, sizeof history));
    history.pattern = "orders.>";
    history.archive = archive;
    must(pace_hub_options_init(&options, sizeof options));
    options.histories = &history;
    options.history_count = 1;
    must(pace_hub_new(pool, &options, &hub));
    for (int n = 0; n < 3; n++)
        must(pace_hub_publish(hub, "orders.eu", "order", 5, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_hub_flush(hub, &given_up)); /* until here it may be lost with the power */
    must(pace_hub_export(hub, &query, lines, &exported));
    pace_hub_free(hub);
    pace_pool_free(pool);
    CHECK(exported == 3 && given_up == 0);

    must(pace_archive_open(archive, &opened)); /* without a hub */
    must(pace_archive_query(opened, NULL, count, &messages, NULL));
    CHECK(messages == 3);
    pace_archive_free(opened);
    history.archive = copy;
    must(pace_archive_import(&history, lines, NULL, &imported, &torn));
    CHECK(imported == 3 && torn == 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    return 0;
}
