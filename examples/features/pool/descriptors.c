/* Any descriptor that can be polled has a handler: here a pipe. What the handler answers says how it goes on.
 *
 * feature: pool/descriptors
 */
#include "../check.h"
#include <paceline/pool.h>
#include <stdatomic.h>
#include <unistd.h>

static int32_t read_some(void *total, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)self, (void)ready;
    char bytes[64];
    ssize_t size = read(fd, bytes, sizeof bytes);
    if (size <= 0) return PACE_FLOW_DONE; /* the other end is closed */
    atomic_fetch_add((atomic_int *)total, (int)size);
    return PACE_FLOW_WAIT;
}

int main(void) {
    atomic_int total = 0;
    int ends[2];
    bool is_open = true;
    pace_handle_options_t options;
    pace_handle_t handle;
    pace_pool_t *pool;
    CHECK(pipe(ends) == 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_handle_options_init(&options, sizeof options));
    options.level = true; /* called as long as there is something to read, so it may read a part */
    must(pace_pool_register(pool, ends[0], &options, read_some, &total, NULL, &handle));

    CHECK(write(ends[1], "hello", 5) == 5);
    WAIT_FOR(atomic_load(&total) == 5);
    must(pace_handle_pause(pool, handle)); /* no calls for a while */
    CHECK(write(ends[1], " world", 6) == 6);
    must(pace_handle_resume(pool, handle));
    WAIT_FOR(atomic_load(&total) == 11);
    close(ends[1]);
    while (is_open) must(pace_handle_is_open(pool, handle, &is_open));
    pace_pool_free(pool);
    close(ends[0]);
    return 0;
}
