/* Eager promotion: before each handler another thread begins to lead. It is for handlers that block as a rule; by default
 * a thread that watches takes over the lead from a handler that is slow.
 *
 * feature: pool/promotion
 * prints:
 *   this handler waits until the other one runs, too
 *   this handler waits until the other one runs, too
 *   both have run at the same time
 */
#include <paceline/pool.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

static pthread_barrier_t both, end;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* Neither handler says that it blocks. */
static int32_t meet(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)data, (void)self, (void)fd, (void)ready;
    puts("this handler waits until the other one runs, too");
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&end);
    return PACE_FLOW_DONE;
}

int main(void) {
    pace_pool_config_t config;
    pace_handle_t handle;
    pace_pool_t *pool;
    pthread_barrier_init(&both, NULL, 2);
    pthread_barrier_init(&end, NULL, 3); /* the handlers and this thread */
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 3;
    config.promotion = PACE_PROMOTION_EAGER;
    must(pace_pool_new(&config, &pool));
    for (int n = 0; n < 2; n++)
        must(pace_pool_register(pool, eventfd(1, EFD_NONBLOCK), NULL, meet, NULL, NULL, &handle));
    pthread_barrier_wait(&end);
    puts("both have run at the same time");
    pace_pool_free(pool);
    return 0;
}
