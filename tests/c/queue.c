/* Queues: sizes, time-outs, batches, closing, and the descriptor that hosts poll. */
#include "check.h"

static void one_size(size_t size) {
    pace_queue_t *queue = NULL;
    const size_t bytes = 16 * size;
    unsigned char *items = (unsigned char *)malloc(bytes), *back = (unsigned char *)malloc(bytes);
    size_t count = 0;
    CHECK(items && back);
    OK(pace_queue_new(size, 5, &queue));
    OK(pace_queue_capacity(queue, &count));
    CHECK(count == 8);
    for (size_t i = 0; i < bytes; i++) items[i] = (unsigned char)(i * 7 + i / 256);
    OK(pace_queue_push_batch(queue, items, 16, &count));
    CHECK(count == 8);
    SAYS(PACE_EFULL, pace_queue_push(queue, items, 0));
    SAYS(PACE_ETIMEDOUT, pace_queue_push(queue, items, MILLI));
    SAYS(PACE_EFULL, pace_queue_push_batch(queue, items, 2, &count));
    CHECK(count == 0);
    OK(pace_queue_push_batch(queue, NULL, 0, &count));
    OK(pace_queue_len(queue, &count));
    CHECK(count == 8);
    memset(back, 0, bytes);
    OK(pace_queue_pop(queue, back, 0));
    OK(pace_queue_pop_batch(queue, back + size, 3, 0, &count));
    CHECK(count == 3);
    OK(pace_queue_pop_batch(queue, back + 4 * size, 12, SECOND, &count));
    CHECK(count == 4 && memcmp(items, back, 8 * size) == 0);
    for (size_t i = 8 * size; i < bytes; i++) CHECK(back[i] == 0);
    SAYS(PACE_EEMPTY, pace_queue_pop(queue, back, 0));
    SAYS(PACE_ETIMEDOUT, pace_queue_pop(queue, back, MILLI));
    SAYS(PACE_EINVAL, pace_queue_pop_batch(queue, back, 0, 0, &count));

    bool closed = true;
    OK(pace_queue_push(queue, items, 0));
    OK(pace_queue_is_closed(queue, &closed));
    CHECK(!closed);
    OK(pace_queue_close(queue));
    OK(pace_queue_is_closed(queue, &closed));
    CHECK(closed);
    SAYS(PACE_ESHUTDOWN, pace_queue_push(queue, items, PACE_FOREVER));
    SAYS(PACE_ESHUTDOWN, pace_queue_push_batch(queue, items, 2, &count));
    OK(pace_queue_pop(queue, back, PACE_FOREVER));
    SAYS(PACE_ESHUTDOWN, pace_queue_pop(queue, back, PACE_FOREVER));
    SAYS(PACE_ESHUTDOWN, pace_queue_pop_batch(queue, back, 3, PACE_FOREVER, &count));
    pace_queue_free(queue);

    /* What is left in it is freed with it. */
    OK(pace_queue_new(size, 4, &queue));
    OK(pace_queue_push_batch(queue, items, 3, &count));
    pace_queue_free(queue);
    free(items);
    free(back);
}

static uint64_t per_thread = 50000; /* fewer under valgrind */

static void *produce(void *data) {
    pace_queue_t *queue = (pace_queue_t *)data;
    for (uint64_t i = 1; i <= per_thread; i++) OK(pace_queue_push(queue, &i, PACE_FOREVER));
    return NULL;
}

/* A host with a loop of its own misses nothing, and does not spin beside an empty queue. */
static void polling(void) {
    pace_queue_t *queue = NULL;
    pthread_t threads[3];
    uint64_t items[32], sum = 0, looks = 0;
    size_t count = 0, total = 0;
    int fd = -1, again = -1;
    OK(pace_queue_new(sizeof *items, 64, &queue));
    OK(pace_queue_pollable(queue, &fd));
    OK(pace_queue_pollable(queue, &again));
    CHECK(fd >= 0 && fd == again && !readable(fd));
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, produce, queue) == 0);
    while (total < 3 * per_thread) {
        struct pollfd waits = {.fd = fd, .events = POLLIN};
        CHECK(poll(&waits, 1, 60000) == 1); /* nothing is missed */
        looks++;
        while (pace_queue_pop_batch(queue, items, 32, 0, &count) == PACE_OK) {
            for (size_t i = 0; i < count; i++) sum += items[i];
            total += count;
        }
    }
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(sum == 3 * per_thread * (per_thread + 1) / 2 && looks > 0);
    SAYS(PACE_EEMPTY, pace_queue_pop(queue, items, 0));
    CHECK(!readable(fd));
    OK(pace_queue_push(queue, items, 0));
    CHECK(readable(fd));
    OK(pace_queue_pop(queue, items, 0));
    SAYS(PACE_EEMPTY, pace_queue_pop(queue, items, 0));
    CHECK(!readable(fd));
    OK(pace_queue_close(queue));
    CHECK(readable(fd));
    SAYS(PACE_ESHUTDOWN, pace_queue_pop(queue, items, 0));
    CHECK(readable(fd));
    pace_queue_free(queue);

    /* Asked for late: what is there already counts. */
    OK(pace_queue_new(8, 4, &queue));
    OK(pace_queue_push(queue, items, 0));
    OK(pace_queue_pollable(queue, &fd));
    CHECK(readable(fd));
    pace_queue_free(queue);
}

static void *close_later(void *data) {
    for (int i = 0; i < 20; i++) check_nap();
    OK(pace_queue_close((pace_queue_t *)data));
    return NULL;
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) per_thread = 1000;
    check_begin();
    const size_t sizes[] = {1, 8, 13, 16, 32, 50, 64, 128, 255, 256, 257, 4000, 65536, 131072};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) one_size(sizes[i]);
    polling();

    pace_queue_t *queue = NULL;
    uint64_t item;
    pthread_t thread;
    SAYS(PACE_EINVAL, pace_queue_new(131073, 8, &queue));
    SAYS(PACE_EINVAL, pace_queue_new(8, 0, &queue));
    CHECK(queue == NULL);
    OK(pace_queue_new(8, 8, &queue));
    CHECK(pthread_create(&thread, NULL, close_later, queue) == 0);
    SAYS(PACE_ESHUTDOWN, pace_queue_pop(queue, &item, PACE_FOREVER));
    CHECK(pthread_join(thread, NULL) == 0);
    pace_queue_free(queue);
    pace_queue_free(NULL);
    return 0;
}
