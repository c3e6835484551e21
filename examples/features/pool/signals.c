/* Signals of the process as events of the pool.
 *
 * feature: pool/signals
 */
#include "../check.h"
#include <paceline/pool.h>
#include <signal.h>

static void hang_up(void *number, int32_t signal) {
    __atomic_store_n((int *)number, signal, __ATOMIC_RELEASE);
}

int main(void) {
    int number = 0;
    const int32_t wanted = SIGHUP;
    int32_t ended_by = 0;
    pace_signals_t *hang_ups, *ends;
    pace_report_t report = {.struct_size = sizeof report};
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    /* In the main thread, before it starts others: they inherit what this blocks. */
    must(pace_signals_new(pool, &wanted, 1, hang_up, &number, NULL, &hang_ups));
    must(pace_signals_shut_down(pool, PACE_FOREVER, &ends)); /* at SIGTERM and SIGINT */

    CHECK(kill(getpid(), SIGHUP) == 0);
    WAIT_FOR(__atomic_load_n(&number, __ATOMIC_ACQUIRE) == SIGHUP);

    CHECK(kill(getpid(), SIGTERM) == 0);
    must(pace_signals_wait(ends, &ended_by));
    must(pace_pool_shutdown(pool, PACE_FOREVER, &report));
    CHECK(ended_by == SIGTERM && report.drained);
    pace_signals_free(hang_ups);
    pace_signals_free(ends);
    pace_pool_free(pool);
    return 0;
}
