/* What the programs of this directory share: a program that does not see what it shows ends with an error. For C and C++. */
#ifndef CHECK_H
#define CHECK_H

#include <paceline/core.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Ends the program unless a condition holds. */
#define CHECK(condition) check_that((condition), #condition, __FILE__, __LINE__)

/* Waits until a condition holds that other threads make true; ends the program after a minute. */
#define WAIT_FOR(condition)                                                                             \
    do {                                                                                                \
        int waited = 0;                                                                                 \
        while (!(condition) && waited++ < 60000) usleep(1000);                                          \
        CHECK(condition);                                                                               \
    } while (0)

static inline void check_that(bool holds, const char *condition, const char *file, int line) {
    if (holds) return;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    _Exit(EXIT_FAILURE);
}

/* Ends the program with the reason unless a call of the library has worked. */
static inline void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    _Exit(EXIT_FAILURE);
}

#endif
