/* Records of the log, and signals, as data.
 *
 * feature: cq/records
 * prints:
 *   a record of the log: pool.started
 *   a signal: SIGHUP
 */
#include <paceline/cq.h>
#include <paceline/pool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS, SIGNALS };

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

int main(void) {
    bool is_signalled = false;
    const int32_t wanted = SIGHUP;
    pace_log_config_t config;
    pace_pool_config_t threads;
    pace_signals_t *signals;
    pace_log_t *log;
    pace_pool_t *pool;
    pace_cq_t *cq;
    must(pace_log_config_init(&config, sizeof config));
    config.levels = "info";
    config.cq_capacity = 1024; /* how many records may wait */
    must(pace_log_new(&config, &log));
    must(pace_pool_config_init(&threads, sizeof threads));
    threads.log = log;
    must(pace_pool_new(&threads, &pool));
    must(pace_cq_new(pool, NULL, &cq));
    must(pace_cq_log(cq, log, RECORDS));
    must(pace_cq_signals(cq, &wanted, 1, SIGNALS, &signals)); /* in the main thread */

    while (!is_signalled) {
        pace_cq_entry_t entry;
        size_t got = 0;
        must(pace_cq_wait(cq, &entry, 1, PACE_FOREVER, &got));
        if (entry.kind == PACE_CQ_SIGNAL) {
            puts(entry.detail.signal == SIGHUP ? "a signal: SIGHUP" : "another signal");
            is_signalled = true;
        } else if (strcmp(entry.detail.record.event, "pool.started") == 0) {
            printf("a record of the log: %s\n", entry.detail.record.event);
            kill(getpid(), SIGHUP);
        }
        must(pace_cq_done(cq, &entry, 1));
    }
    pace_signals_free(signals);
    pace_cq_free(cq);
    pace_pool_free(pool);
    pace_log_free(log);
    return 0;
}
