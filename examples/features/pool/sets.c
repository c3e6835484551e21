/* Several handle sets, each with a leader of its own. A set whose leader is inside a slow handler is served by other
 * threads.
 *
 * feature: pool/sets
 * prints:
 *   2 sets
 *   one handler blocks until the 7 others have run
 */
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#define HANDLES 8

static atomic_int begun;
static sem_t others, end;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* The first of them waits for all others, in whichever set they are. */
static int32_t run(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)data, (void)self, (void)fd, (void)ready;
    if (atomic_fetch_add(&begun, 1) > 0) {
        sem_post(&others);
        return PACE_FLOW_DONE;
    }
    for (int n = 1; n < HANDLES; n++) sem_wait(&others);
    printf("one handler blocks until the %d others have run\n", HANDLES - 1);
    sem_post(&end);
    return PACE_FLOW_DONE;
}

int main(void) {
    pace_pool_config_t config;
    pace_pool_stats_t stats = {.struct_size = sizeof stats};
    pace_handle_t handle;
    pace_pool_t *pool;
    sem_init(&others, 0, 0), sem_init(&end, 0, 0);
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 3;
    config.leaders = 2;
    must(pace_pool_new(&config, &pool));
    must(pace_pool_stats(pool, &stats));
    printf("%d sets\n", (int)stats.sets);
    for (int n = 0; n < HANDLES; n++)
        must(pace_pool_register(pool, eventfd(1, EFD_NONBLOCK), NULL, run, NULL, NULL, &handle));
    sem_wait(&end);
    pace_pool_free(pool);
    return 0;
}
