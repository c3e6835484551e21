/* A completion queue: descriptors, ticks, timers and tags of the program's own come out of one wait as data, for programs
 * that cannot be called back, or do not want to be. Each entry is completed, by any thread.
 *
 * feature: cq/pool
 * prints:
 *   a tag of the program's own
 *   the pipe: x
 *   a timer
 *   a tick
 *   a tick
 */
#include <paceline/cq.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)

enum { PIPE, TICKER, ONCE, POSTED };

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* Waits for the next entry, prints it, and completes it. */
static void print_next(pace_cq_t *cq, int fd) {
    pace_cq_entry_t entry; /* or an array: as many as have come are taken at once */
    size_t got;
    char byte;
    must(pace_cq_wait(cq, &entry, 1, PACE_FOREVER, &got));
    switch (entry.tag) {
    case PIPE:
        if (read(fd, &byte, 1) == 1) printf("the pipe: %c\n", byte);
        break;
    case TICKER: puts("a tick"); break;
    case ONCE: puts("a timer"); break;
    case POSTED: puts("a tag of the program's own"); break;
    }
    must(pace_cq_done(cq, &entry, 1)); /* the next of the pipe and the ticker may come */
}

int main(void) {
    int ends[2];
    const uint64_t tag = POSTED;
    pace_handle_options_t level;
    pace_handle_t handle;
    pace_pool_t *pool;
    pace_cq_t *cq;
    if (pipe(ends) != 0) return EXIT_FAILURE;
    must(pace_pool_new(NULL, &pool));
    must(pace_cq_new(pool, NULL, &cq));
    must(pace_cq_post(cq, &tag, 1, NULL));
    print_next(cq, ends[0]);
    must(pace_handle_options_init(&level, sizeof level));
    level.level = true;
    must(pace_cq_register(cq, ends[0], &level, PIPE, &handle));
    if (write(ends[1], "x", 1) != 1) return EXIT_FAILURE;
    print_next(cq, ends[0]);
    must(pace_cq_after(cq, MILLISECOND, ONCE, NULL));
    print_next(cq, ends[0]);
    must(pace_cq_every(cq, MILLISECOND, TICKER, &handle));
    for (int n = 0; n < 2; n++) print_next(cq, ends[0]);
    pace_cq_free(cq);
    pace_pool_free(pool);
    close(ends[0]), close(ends[1]);
    return 0;
}
