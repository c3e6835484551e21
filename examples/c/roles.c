/* Who leads, and who handles: ten events, three workers. One worker leads, which means that it waits for events. It sees
 * one, hands the lead on, and handles the event itself.
 *
 *     cc examples/c/roles.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -pthread -o roles && ./roles
 */
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pace_pool_t *pool;
static sem_t done;
static _Thread_local unsigned worker;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s\n", pace_last_error());
    exit(1);
}

static void started(void *user_data, uint32_t thread) {
    (void)user_data;
    worker = thread + 1;
}

/* The worker that leads now. */
static unsigned leader(void) {
    pace_set_stats_t set = {.struct_size = sizeof set};
    for (;; usleep(100)) { /* between two leaders */
        must(pace_pool_set_stats(pool, 0, &set));
        if (set.leader != PACE_NONE) return set.leader + 1;
    }
}

static void handle(void *event, int32_t *outcome) {
    /* By itself the lead is handed on when a handler takes long. A handler that knows that it will says so. */
    must(pace_promote_new_leader());
    printf("worker %u handles event %d, worker %u leads\n", worker, *(int *)event, leader());
    usleep(30000); /* what the event takes */
    *outcome = sem_post(&done);
}

int main(void) {
    pace_pool_config_t config;
    int events[10];
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 3;
    config.leaders = 1;
    config.on_start = started;
    must(pace_pool_new(&config, &pool));
    if (sem_init(&done, 0, 0) != 0) return 1;
    for (int i = 0; i < 10; i++) {
        events[i] = i + 1;
        /* A timer is an event, as is a descriptor that becomes readable. */
        must(pace_pool_after(pool, PACE_MS(20 * (i + 1)), handle, &events[i], NULL, NULL));
    }
    for (int i = 0; i < 10; i++) sem_wait(&done);
    pace_pool_free(pool);
    return 0;
}
