/* A periodic task: again and again, beside the others, until it is freed.
 *
 * feature: workers/periodic
 * prints:
 *   beat 1
 *   beat 2
 *   beat 3
 */
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static sem_t third;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void beat(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    int *beats = data;
    (void)attempt;
    if (++*beats <= 3) printf("beat %d\n", *beats);
    if (*beats == 3) sem_post(&third);
    *outcome = 0;
}

int main(void) {
    int beats = 0;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    pace_periodic_t *periodic;
    sem_init(&third, 0, 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "heartbeat", NULL, &type));
    /* A tick that comes while the last one still runs is skipped, or made up for later (_COALESCE). */
    must(pace_workers_every(workers, type, 1000000, PACE_MISSED_TICK_SKIP, beat, &beats, NULL, NULL,
                            &periodic));
    sem_wait(&third);
    pace_periodic_free(periodic);
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
