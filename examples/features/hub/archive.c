/* An archive on disk: history that outlives the hub; lines of JSON from it, and an archive from lines.
 *
 * feature: hub/archive
 * prints:
 *   exported: 3
 *   in the archive: orders.eu 1
 *   in the archive: orders.eu 2
 *   in the archive: orders.eu 3
 *   imported: 3
 */
#define _GNU_SOURCE
#include <paceline/history.h>
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void print(void *data, const pace_message_t *message) {
    (void)data;
    printf("in the archive: %.*s %.*s\n", (int)message->key.size, message->key.text, (int)message->size,
           (const char *)message->payload);
}

int main(void) {
    char folder[] = "/tmp/archive-XXXXXX", archive[64], lines[64], copy[64], command[64];
    uint64_t exported = 0, imported = 0, torn = 0, given_up = 0;
    pace_history_options_t history;
    pace_hub_options_t options;
    pace_query_t query = {.struct_size = sizeof query, .pattern = "orders.>"};
    pace_archive_t *opened;
    pace_pool_t *pool;
    pace_hub_t *hub;
    if (mkdtemp(folder) == NULL) return EXIT_FAILURE;
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
    for (const char *each = "123"; *each; each++)
        must(pace_hub_publish(hub, "orders.eu", each, 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_hub_flush(hub, &given_up)); /* until here it may be lost with the power */
    must(pace_hub_export(hub, &query, lines, &exported));
    pace_hub_free(hub);
    pace_pool_free(pool);
    printf("exported: %d\n", (int)exported);

    must(pace_archive_open(archive, &opened)); /* without a hub */
    must(pace_archive_query(opened, NULL, print, NULL, NULL));
    pace_archive_free(opened);
    history.archive = copy;
    must(pace_archive_import(&history, lines, NULL, &imported, &torn));
    printf("imported: %d\n", (int)imported);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}
