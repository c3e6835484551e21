/* Timers: one that rings once, one that is periodic, and one that is put off and then cancelled.
 *
 * feature: pool/timers
 * prints:
 *   it rang
 *   tick 1
 *   tick 2
 *   tick 3
 *   put off: yes, cancelled: yes
 */
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#define MILLISECOND UINT64_C(1000000)

static sem_t done;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void ring(void *text, int32_t *outcome) {
    puts(text);
    sem_post(&done);
    *outcome = 0;
}

static int32_t tick(void *ticks, pace_handle_t self) {
    (void)self;
    printf("tick %d\n", ++*(int *)ticks);
    if (*(int *)ticks < 3) return PACE_FLOW_WAIT;
    sem_post(&done);
    return PACE_FLOW_DONE;
}

int main(void) {
    int ticks = 0;
    pace_timer_t timer;
    pace_handle_t ticker;
    bool put_off, cancelled;
    pace_pool_t *pool;
    sem_init(&done, 0, 0);
    must(pace_pool_new(NULL, &pool));

    must(pace_pool_after(pool, MILLISECOND, ring, "it rang", NULL, NULL));
    sem_wait(&done);

    must(pace_pool_every(pool, MILLISECOND, tick, &ticks, NULL, &ticker)); /* until the third */
    sem_wait(&done);

    must(pace_pool_after(pool, 3600000 * MILLISECOND, ring, "it never rings", NULL, &timer));
    must(pace_timer_postpone(pool, timer, 7200000 * MILLISECOND, &put_off)); /* from now */
    must(pace_timer_cancel(pool, timer, &cancelled));
    printf("put off: %s, cancelled: %s\n", put_off ? "yes" : "no", cancelled ? "yes" : "no");
    pace_pool_free(pool);
    return 0;
}
