/* Leader and followers: a handler that is about to block hands the lead on, and another thread sees the next event.
 *
 * feature: pool/leader
 * prints:
 *   the first handler hands the lead on, and blocks
 *   the second handler runs
 *   the first handler returns
 *   one thread leads: yes
 */
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

static sem_t blocked, unblocked, returns;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static int32_t first_runs(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)data, (void)self, (void)fd, (void)ready;
    puts("the first handler hands the lead on, and blocks");
    must(pace_promote_new_leader()); /* from here on another thread waits for events */
    sem_post(&blocked);
    sem_wait(&unblocked);
    puts("the first handler returns");
    sem_post(&returns);
    return PACE_FLOW_DONE;
}

static int32_t second_runs(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)data, (void)self, (void)fd;
    if (ready & PACE_INTEREST_READABLE) {
        puts("the second handler runs");
        sem_post(&unblocked);
    }
    return PACE_FLOW_WAIT;
}

int main(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    pace_handle_t handle;
    pace_set_stats_t set = {.struct_size = sizeof set};
    const int first = eventfd(1, EFD_NONBLOCK), second = eventfd(0, EFD_NONBLOCK);
    sem_init(&blocked, 0, 0), sem_init(&unblocked, 0, 0), sem_init(&returns, 0, 0);
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    config.leaders = 1; /* one handle set: one leader at a time */
    must(pace_pool_new(&config, &pool));

    must(pace_pool_register(pool, second, NULL, second_runs, NULL, NULL, &handle));
    must(pace_pool_register(pool, first, NULL, first_runs, NULL, NULL, &handle));
    sem_wait(&blocked);
    eventfd_write(second, 1);
    sem_wait(&returns);

    /* The statistics report which thread leads; there is none while the lead is handed on. */
    do must(pace_pool_set_stats(pool, 0, &set));
    while (set.leader == PACE_NONE);
    printf("one thread leads: %s\n", set.leader < 2 ? "yes" : "no");
    pace_pool_free(pool);
    return 0;
}
