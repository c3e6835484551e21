/* A completion queue: descriptors, ticks, timers and tags of the program's own come out of one wait as data, for programs
 * that cannot be called back, or do not want to be. Each entry is completed, by any thread.
 *
 * feature: cq/pool
 */
#include "../check.h"
#include <paceline/cq.h>
#include <paceline/pool.h>
#include <unistd.h>

enum { PIPE, TICKER, ONCE, POSTED };

int main(void) {
    int ends[2], ticks = 0, seen = 0;
    const uint64_t tag = POSTED;
    pace_cq_stats_t stats = {.struct_size = sizeof stats};
    pace_handle_options_t level;
    pace_handle_t handle;
    pace_pool_t *pool;
    pace_cq_t *cq;
    CHECK(pipe(ends) == 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_cq_new(pool, NULL, &cq));
    must(pace_handle_options_init(&level, sizeof level));
    level.level = true;
    must(pace_cq_register(cq, ends[0], &level, PIPE, &handle));
    must(pace_cq_every(cq, 1000000, TICKER, &handle));
    must(pace_cq_after(cq, 1000000, ONCE, NULL));
    must(pace_cq_post(cq, &tag, 1, NULL));
    CHECK(write(ends[1], "x", 1) == 1);

    while (ticks < 3 || seen != (1 << PIPE | 1 << ONCE | 1 << POSTED)) {
        pace_cq_entry_t entries[8];
        size_t got = 0;
        must(pace_cq_wait(cq, entries, 8, PACE_FOREVER, &got));
        for (size_t n = 0; n < got; n++) {
            char byte;
            if (entries[n].tag == PIPE) CHECK(read(ends[0], &byte, 1) == 1);
            if (entries[n].tag == TICKER)
                ticks++;
            else
                seen |= 1 << entries[n].tag;
        }
        must(pace_cq_done(cq, entries, got)); /* the next of the pipe and the ticker may come */
    }
    must(pace_cq_stats(cq, &stats));
    CHECK(stats.brought == stats.completed + stats.withdrawn + stats.out);
    pace_cq_free(cq);
    pace_pool_free(pool);
    close(ends[0]), close(ends[1]);
    return 0;
}
