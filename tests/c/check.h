/* What the C tests share. Nothing here asserts how long something took: what must happen is waited
 * for, and an alarm ends a test that hangs. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <paceline.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define MILLI UINT64_C(1000000)

#define CHECK(condition)                                                                                \
    do {                                                                                                \
        if (!(condition)) check_failed(__FILE__, __LINE__, #condition);                                 \
    } while (0)

/* A call and the status that it must answer. */
#define SAYS(expected, call) check_status(__FILE__, __LINE__, #call, (expected), (call))
#define OK(call) SAYS(PACE_OK, call)

static inline void check_failed(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    fflush(stderr);
    abort();
}

static inline void check_status(const char *file, int line, const char *call, pace_status_t expected,
                                pace_status_t status) {
    if (status == expected) return;
    fprintf(stderr, "%s:%d: %s\n  says %s (%s), not %s\n", file, line, call, pace_status_name(status),
            pace_last_error(), pace_status_name(expected));
    fflush(stderr);
    abort();
}

/* Waits until a condition holds. */
#define UNTIL(condition)                                                                                \
    do {                                                                                                \
        while (!(condition)) check_nap();                                                               \
    } while (0)

/* Nanoseconds of the monotonic clock. */
static inline uint64_t check_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static inline void check_nap(void) {
    struct timespec time = {0, 200000};
    nanosleep(&time, NULL);
}

/* The last failure's text must name this. */
#define TELLS(part) CHECK(strstr(pace_last_error(), part) != NULL)

static inline void check_begin(void) {
    alarm(240);
    setvbuf(stdout, NULL, _IONBF, 0);
}

static inline pace_pool_t *pool_of(uint32_t threads) {
    pace_pool_config_t config;
    pace_pool_t *pool = NULL;
    OK(pace_pool_config_init(&config, sizeof config));
    config.threads = threads;
    config.pin = "none";
    OK(pace_pool_new(&config, &pool));
    return pool;
}

/* Shuts down; what was accepted must end, and the books must balance. Frees. */
static inline void finish(pace_pool_t *pool) {
    pace_report_t report = {0};
    pace_audit_t audit = {0};
    report.struct_size = sizeof report;
    audit.struct_size = sizeof audit;
    OK(pace_pool_shutdown(pool, PACE_FOREVER, &report));
    CHECK(report.drained && !report.requested && report.stuck == 0);
    OK(pace_pool_audit(pool, &audit));
    CHECK(audit.balances && audit.in_flight == 0);
    pace_pool_free(pool);
}

/* Counts, to be used as user_data. */
typedef struct counts {
    atomic_int runs, drops;
    atomic_bool gate;
} counts_t;

static inline void count_run(void *user_data, int32_t *outcome) {
    atomic_fetch_add(&((counts_t *)user_data)->runs, 1);
    *outcome = 0;
}

/* Runs until the gate is opened. */
static inline void count_gated(void *user_data, int32_t *outcome) {
    counts_t *counts = (counts_t *)user_data;
    atomic_fetch_add(&counts->runs, 1);
    while (!atomic_load(&counts->gate)) check_nap();
    *outcome = 0;
}

static inline void count_drop(void *user_data) { atomic_fetch_add(&((counts_t *)user_data)->drops, 1); }

static inline bool readable(int fd) {
    struct pollfd waits = {.fd = fd, .events = POLLIN};
    return poll(&waits, 1, 0) == 1;
}

static inline void make_pipe(int ends[2]) { CHECK(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0); }

/* SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). */
static inline uint64_t check_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

#endif
