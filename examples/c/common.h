/* What the servers among the examples need around them: flags, signals, and how they end. */
#ifndef COMMON_H
#define COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <paceline/net.h>
#include <paceline/pool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SECOND UINT64_C(1000000000)

static const char *program;

/* Ends with one line, and 2 for a command line that makes no sense. What the library refuses as
 * invalid came from a flag. */
#define FAIL(code, ...)                                                                                 \
    do {                                                                                                \
        fprintf(stderr, "%s: ", program);                                                               \
        fprintf(stderr, __VA_ARGS__);                                                                   \
        fputc('\n', stderr);                                                                            \
        exit(code);                                                                                     \
    } while (0)

static inline void must(pace_status_t status) {
    if (status != PACE_OK) FAIL(status == PACE_EINVAL ? 2 : 1, "%s", pace_last_error());
}

/* A flag and where its value goes. */
typedef struct common_flag {
    const char *name;
    const char **value;
} common_flag_t;

/* Reads "--name value" pairs. */
static inline void common_flags(int argc, char **argv, const char *help, const common_flag_t *flags,
                                size_t count) {
    for (int i = 1; i < argc; i++) {
        size_t at = 0;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            puts(help);
            exit(0);
        }
        while (at < count &&
               (strncmp(argv[i], "--", 2) != 0 || strcmp(argv[i] + 2, flags[at].name) != 0))
            at++;
        if (at == count) FAIL(2, "invalid option '%s'", argv[i]);
        if (i + 1 == argc) FAIL(2, "missing argument for option '%s'", argv[i]);
        if (*flags[at].value != NULL) FAIL(2, "%s is given twice", argv[i]);
        *flags[at].value = argv[++i];
    }
}

static inline const char *common_needed(const char *name, const char *value) {
    if (value == NULL) FAIL(2, "--%s is missing", name);
    return value;
}

/* A pool that only its own threads drive, so many if that was said. From here on an interrupt is
 * something to wait for, and there are as many descriptors as the hard limit allows. */
static inline pace_pool_t *common_pool(const char *threads) {
    struct rlimit files;
    sigset_t signals;
    pace_pool_config_t config;
    pace_pool_t *pool;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    must(pace_pool_config_init(&config, sizeof config));
    config.max_joined = 0;
    if (threads != NULL) {
        char *end;
        config.threads = (uint32_t)strtoul(threads, &end, 10);
        if (*threads < '0' || *threads > '9' || *end != 0)
            FAIL(2, "--threads is \"%s\", but must be a number", threads);
    }
    must(pace_pool_new(&config, &pool));
    return pool;
}

/* Says where the server listens, and waits until it is interrupted. */
static inline void common_serve(pace_server_t *server) {
    char address[PACE_ADDRESS_SIZE];
    sigset_t signals;
    int caught;
    must(pace_server_address(server, 0, address, sizeof address));
    printf("listening on %s\n", address);
    fflush(stdout);
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigwait(&signals, &caught);
}

static inline pace_listener_options_t common_listener(const char *address) {
    pace_listener_options_t listener;
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = address;
    return listener;
}

#endif
