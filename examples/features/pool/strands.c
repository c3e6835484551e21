/* A strand: its tasks run one at a time and in order, on any thread, so what they share needs no lock.
 *
 * feature: pool/strands
 * prints:
 *   counted to 1000 without a lock
 */
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void count(void *counter, int32_t *outcome) {
    ++*(int *)counter;
    *outcome = 0;
}

int main(void) {
    int counter = 0;
    pace_strand_t strand;
    pace_task_t last;
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    must(pace_strand_new(pool, &strand));
    for (int n = 0; n < 999; n++) must(pace_strand_post(pool, strand, count, &counter, NULL));
    must(pace_strand_submit(pool, strand, count, &counter, NULL, &last));
    must(pace_task_wait(pool, last, PACE_FOREVER, NULL));
    printf("counted to %d without a lock\n", counter);
    must(pace_strand_close(pool, strand));
    pace_pool_free(pool);
    return 0;
}
