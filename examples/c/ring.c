/* Several producers, one table, no lock.
 *
 * Weather stations measure, each in a thread of its own. The pool keeps one table of what all of them
 * have seen. A serial ring calls its handler on one thread at a time, with everything that has come
 * since the last call, so the table simply belongs to the handler.
 *
 *     cc examples/c/ring.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -lm -o ring
 *
 * feature: pool/rings
 */
#include <math.h>
#include <paceline/pool.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define STATIONS 3
#define PER_STATION 100000
#define BATCH 100

static const char *const names[STATIONS] = {"harbour", "airport", "summit"};

/* What a ring carries: plain data of a fixed size. */
typedef struct reading {
    uint64_t station;
    double celsius;
} reading_t;

/* What one station has seen. */
typedef struct row {
    uint64_t readings;
    double lowest, highest, sum;
} row_t;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* The handler owns the table: nobody else touches it while the ring is open. */
static void add(void *user_data, const void *events, size_t stride, size_t count) {
    row_t *table = user_data;
    for (size_t i = 0; i < count; i++) {
        const reading_t *reading = (const void *)((const char *)events + i * stride);
        row_t *row = &table[reading->station];
        if (row->readings == 0 || reading->celsius < row->lowest) row->lowest = reading->celsius;
        if (row->readings == 0 || reading->celsius > row->highest) row->highest = reading->celsius;
        row->sum += reading->celsius;
        row->readings++;
    }
}

/* A day and a night go by in a thousand readings. */
static reading_t measure(uint64_t station, int number) {
    static const double warmth[STATIONS] = {14.0, 11.0, -3.0};
    double hour = number % 1000 / 1000.0 * 24.0;
    double sun = sin((hour - 9.0) / 24.0 * 6.28318530717958648);
    return (reading_t){station, warmth[station] + 6.0 * sun};
}

typedef struct station {
    pace_ring_t *ring;
    uint64_t number;
} station_t;

/* A full ring makes its producers wait. A batch is published by one compare-and-swap. */
static void *produce(void *argument) {
    const station_t *station = argument;
    for (int first = 0; first < PER_STATION; first += BATCH) {
        reading_t readings[BATCH];
        size_t published;
        for (int i = 0; i < BATCH; i++) readings[i] = measure(station->number, first + i);
        must(pace_ring_publish_batch(station->ring, readings, BATCH, &published));
    }
    return NULL;
}

int main(void) {
    pace_pool_t *pool;
    pace_ring_t *ring;
    row_t table[STATIONS] = {{0, 0, 0, 0}};
    must(pace_pool_new(NULL, &pool));
    must(pace_ring_serial(pool, sizeof(reading_t), 4096, add, table, NULL, &ring));

    pthread_t threads[STATIONS];
    station_t stations[STATIONS];
    for (uint64_t i = 0; i < STATIONS; i++) {
        stations[i] = (station_t){ring, i};
        if (pthread_create(&threads[i], NULL, produce, &stations[i]) != 0) return EXIT_FAILURE;
    }
    for (int i = 0; i < STATIONS; i++) pthread_join(threads[i], NULL);

    /* All is published; the table is whole when all is handled. */
    uint64_t handled = 0;
    while (handled < STATIONS * PER_STATION) must(pace_ring_counts(ring, NULL, &handled));
    pace_ring_free(ring);
    must(pace_pool_shutdown(pool, UINT64_C(1000000000), NULL));
    pace_pool_free(pool);

    printf("%-8s %8s %7s %7s %7s\n", "station", "readings", "lowest", "mean", "highest");
    for (int i = 0; i < STATIONS; i++) {
        const row_t *row = &table[i];
        printf("%-8s %8llu %7.1f %7.1f %7.1f\n", names[i], (unsigned long long)row->readings,
               row->lowest, row->sum / (double)row->readings, row->highest);
    }
    return 0;
}
