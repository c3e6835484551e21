/* Rings of every size class: order, batches, counts, closing, drops. */
#include "check.h"

typedef struct seen {
    counts_t counts;
    size_t size;
    bool serial;
    atomic_ullong next, sum;
} seen_t;

static void look(void *data, const void *events, size_t stride, size_t count) {
    seen_t *seen = (seen_t *)data;
    CHECK(count > 0 && stride >= seen->size && stride % 8 == 0 && (uintptr_t)events % 8 == 0);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *event = (const unsigned char *)events + i * stride;
        for (size_t b = 1; b < seen->size; b++) CHECK(event[b] == event[0]);
        for (size_t b = seen->size; b < stride; b++) CHECK(event[b] == 0);
        unsigned long long number = atomic_fetch_add(&seen->next, 1);
        if (seen->serial) CHECK(event[0] == (unsigned char)number);
        atomic_fetch_add(&seen->sum, event[0]);
    }
}

static void drop_seen(void *data) { count_drop(&((seen_t *)data)->counts); }

static void one_size(pace_pool_t *pool, size_t size, bool serial) {
    seen_t seen = {0};
    pace_ring_t *ring = NULL;
    unsigned char *events = (unsigned char *)malloc(size * 8 + 1), *first = events + (size % 3 == 0);
    size_t published = 0, total = 0;
    uint64_t in = 0, out = 0, sum = 0;
    seen.size = size;
    seen.serial = serial;
    OK((serial ? pace_ring_serial : pace_ring_concurrent)(pool, size, 64, look, &seen, drop_seen,
                                                          &ring));
    CHECK(events);
    while (total < (size > 256 ? 100 : 3000)) {
        size_t count = total % 9;
        for (size_t i = 0; i < count; i++) {
            memset(first + i * size, (unsigned char)(total + i), size);
            sum += (unsigned char)(total + i);
        }
        if (count == 1)
            OK(pace_ring_publish(ring, first));
        else
            OK(pace_ring_publish_batch(ring, first, count, &published));
        if (count != 1) CHECK(published == count);
        if (count == 0) {
            memset(first, (unsigned char)total, size);
            sum += (unsigned char)total;
            UNTIL(pace_ring_try_publish(ring, first) == PACE_OK);
            count = 1;
        }
        total += count;
    }
    OK(pace_ring_counts(ring, &in, NULL));
    CHECK(in == total);
    do {
        check_nap();
        OK(pace_ring_counts(ring, NULL, &out));
    } while (out != total);
    CHECK(atomic_load(&seen.sum) == sum);
    OK(pace_ring_close(ring));
    SAYS(PACE_ESHUTDOWN, pace_ring_publish(ring, first));
    SAYS(PACE_ESHUTDOWN, pace_ring_try_publish(ring, first));
    SAYS(PACE_ESHUTDOWN, pace_ring_publish_batch(ring, first, 1, &published));
    CHECK(published == 0);
    UNTIL(atomic_load(&seen.counts.drops) == 1);
    pace_ring_free(ring);
    free(events);
}

static void hold(void *data, const void *events, size_t stride, size_t count) {
    counts_t *counts = (counts_t *)data;
    (void)events, (void)stride;
    atomic_fetch_add(&counts->runs, (int)count);
    while (!atomic_load(&counts->gate)) check_nap();
}

/* An event counts as handled when its handler has returned, and not before. */
static void handled_is_not_taken(pace_pool_t *pool, bool serial) {
    counts_t counts = {0};
    pace_ring_t *ring;
    uint64_t event = 1, handled = 99;
    OK((serial ? pace_ring_serial : pace_ring_concurrent)(pool, 8, 8, hold, &counts, count_drop, &ring));
    OK(pace_ring_publish(ring, &event));
    UNTIL(atomic_load(&counts.runs) == 1);
    OK(pace_ring_counts(ring, NULL, &handled));
    CHECK(handled == 0);
    atomic_store(&counts.gate, true);
    do {
        check_nap();
        OK(pace_ring_counts(ring, NULL, &handled));
    } while (handled != 1);
    pace_ring_free(ring);
    UNTIL(atomic_load(&counts.drops) == 1);
}

int main(void) {
    check_begin();
    pace_pool_t *pool = pool_of(2);
    handled_is_not_taken(pool, true);
    handled_is_not_taken(pool, false);
    const size_t sizes[] = {1,   7,   8,   9,   16,  24,   32,   33,    64,    100,
                            128, 129, 200, 256, 257, 1000, 5000, 65536, 131072};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        one_size(pool, sizes[i], true);
        one_size(pool, sizes[i], false);
    }
    seen_t seen = {0};
    pace_ring_t *ring = NULL;
    SAYS(PACE_EINVAL, pace_ring_serial(pool, 0, 8, look, &seen, drop_seen, &ring));
    TELLS("event_size");
    SAYS(PACE_EINVAL, pace_ring_serial(pool, 131073, 8, look, &seen, drop_seen, &ring));
    SAYS(PACE_EINVAL, pace_ring_serial(pool, 8, 0, look, &seen, drop_seen, &ring));
    TELLS("capacity");
    SAYS(PACE_EINVAL, pace_ring_concurrent(pool, 8, 8, NULL, &seen, drop_seen, &ring));
    CHECK(ring == NULL && atomic_load(&seen.counts.drops) == 0);
    pace_ring_free(NULL);

    /* A ring may outlive its pool. */
    seen.size = 8;
    OK(pace_ring_serial(pool, 8, 8, look, &seen, drop_seen, &ring));
    finish(pool);
    CHECK(atomic_load(&seen.counts.drops) == 1);
    SAYS(PACE_ESHUTDOWN, pace_ring_publish(ring, &seen));
    OK(pace_ring_close(ring));
    pace_ring_free(ring);
    return 0;
}
