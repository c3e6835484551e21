/* Any descriptor that can be polled has a handler: here a pipe. What the handler returns says how it goes on.
 *
 * feature: pool/descriptors
 * prints:
 *   read: hello
 *   paused
 *   read: world
 *   the other end is closed
 */
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sem_t called;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static int32_t read_some(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)data, (void)self, (void)ready;
    char bytes[64];
    const ssize_t size = read(fd, bytes, sizeof bytes);
    if (size > 0)
        printf("read: %.*s\n", (int)size, bytes);
    else
        puts("the other end is closed");
    sem_post(&called);
    return size > 0 ? PACE_FLOW_WAIT : PACE_FLOW_DONE;
}

int main(void) {
    int ends[2];
    pace_handle_options_t options;
    pace_handle_t handle;
    pace_pool_t *pool;
    sem_init(&called, 0, 0);
    if (pipe(ends) != 0) return EXIT_FAILURE;
    must(pace_pool_new(NULL, &pool));
    must(pace_handle_options_init(&options, sizeof options));
    options.level = true; /* called as long as there is something to read, so it may read a part */
    must(pace_pool_register(pool, ends[0], &options, read_some, NULL, NULL, &handle));

    if (write(ends[1], "hello", 5) != 5) return EXIT_FAILURE;
    sem_wait(&called);
    must(pace_handle_pause(pool, handle)); /* no calls for a while */
    if (write(ends[1], "world", 5) != 5) return EXIT_FAILURE;
    puts("paused");
    must(pace_handle_resume(pool, handle));
    sem_wait(&called);
    close(ends[1]);
    sem_wait(&called);
    pace_pool_free(pool);
    close(ends[0]);
    return 0;
}
