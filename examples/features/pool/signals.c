/* Signals of the process as events of the pool.
 *
 * feature: pool/signals
 * prints:
 *   SIGHUP
 *   SIGTERM has ended the pool: drained
 */
#include <paceline/pool.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sem_t handled;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* Runs on a thread of the pool, so it may do whatever other functions may. */
static void hang_up(void *data, int32_t signal) {
    (void)data;
    puts(signal == SIGHUP ? "SIGHUP" : "another signal");
    sem_post(&handled);
}

int main(void) {
    const int32_t wanted = SIGHUP;
    int32_t ended_by = 0;
    pace_signals_t *hang_ups, *ends;
    pace_report_t report = {.struct_size = sizeof report};
    pace_pool_t *pool;
    sem_init(&handled, 0, 0);
    must(pace_pool_new(NULL, &pool));
    /* In the main thread, before it starts others: they inherit what this blocks. */
    must(pace_signals_new(pool, &wanted, 1, hang_up, NULL, NULL, &hang_ups));
    must(pace_signals_shut_down(pool, PACE_FOREVER, &ends)); /* at SIGTERM and SIGINT */

    kill(getpid(), SIGHUP);
    sem_wait(&handled);

    kill(getpid(), SIGTERM);
    must(pace_signals_wait(ends, &ended_by));
    must(pace_pool_shutdown(pool, PACE_FOREVER, &report));
    printf("%s has ended the pool: %s\n", ended_by == SIGTERM ? "SIGTERM" : "SIGINT",
           report.drained ? "drained" : "not drained");
    pace_signals_free(hang_ups);
    pace_signals_free(ends);
    pace_pool_free(pool);
    return 0;
}
