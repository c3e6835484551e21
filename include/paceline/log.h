/* paceline/log.h: the structured log.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_LOG_H
#define PACELINE_LOG_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------- The log: what all components tell */

/** As a level: nothing is told. */
#define PACE_LOG_OFF 0

/** Something does not work. */
#define PACE_LOG_ERROR 1

/** Something was lost, refused or late, or will be. */
#define PACE_LOG_WARN 2

/** Something began, ended or changed, as it was asked to. */
#define PACE_LOG_INFO 3

/** One request, connection or task did not get what it wanted. */
#define PACE_LOG_DEBUG 4

/** Steps of the library's own. */
#define PACE_LOG_TRACE 5

/** The pool: its threads, its handlers, its end. */
#define PACE_LOG_POOL 0

/** Listeners, connections and datagram sockets. */
#define PACE_LOG_NET 1

/** The HTTP server. */
#define PACE_LOG_HTTP 2

/** Worker pools. */
#define PACE_LOG_TASK 3

/** Hubs: subscriptions, publishers, thresholds. */
#define PACE_LOG_HUB 4

/** Histories of hubs, and their archives. */
#define PACE_LOG_HISTORY 5

/** Webhooks. */
#define PACE_LOG_WEBHOOK 6

/** What systemd is told. */
#define PACE_LOG_SERVICE 7

/** The log itself. */
#define PACE_LOG_LOG 8

/** A field has its value in u64: a count, an identifier, a time in nanoseconds. */
#define PACE_LOG_U64 0

/** In i64: a number that may be negative. */
#define PACE_LOG_I64 1

/** In f64: a figure. */
#define PACE_LOG_F64 2

/** In text. */
#define PACE_LOG_TEXT 3

/** A field of a record. */
typedef struct pace_log_field_t {
    /** Its name. Times end in _ns, and are in nanoseconds. */
    const char *name;
    /** Where its value is: PACE_LOG_U64 … */
    uint32_t kind;
    /** Zero. */
    uint32_t reserved;
    /** The value, or zero. */
    uint64_t u64;
    /** The value, or zero. */
    int64_t i64;
    /** The value, or zero. */
    double f64;
    /** The value, or NULL. */
    const char *text;
} pace_log_field_t;

/** Something that a component tells. Texts are UTF-8; what was NUL in them is gone. */
typedef struct pace_log_record_t {
    /** When, since 1970 (UTC). */
    uint64_t time_ns;
    /** How much it matters: PACE_LOG_ERROR … */
    uint32_t level;
    /** Who tells it: PACE_LOG_POOL … */
    uint32_t component;
    /** What happened: a name that stays, as "accept.paused". */
    const char *event;
    /** The name of the pool that it happened in. */
    const char *pool;
    /** For people: a sentence without the fields. */
    const char *message;
    /** What belongs to it. */
    const pace_log_field_t *fields;
    /** How many fields. */
    size_t field_count;
} pace_log_record_t;

/**
 * Called for each record, on the log's own thread. What it points to is good during the call. What it causes
 * itself is not logged, or it might never end.
 */
typedef void (*pace_log_fn)(void *user_data, const pace_log_record_t *record);

/** Settings of a log. Call pace_log_config_init(), change what you like, call pace_log_new(). */
typedef struct pace_log_config_t {
    /** Set by pace_log_config_init(). */
    uint32_t struct_size;
    /**
     * How many records may wait to be told, 1 to 2^20, rounded up to a power of two. Default 8192. What comes
     * while so many wait is dropped, counted, and told by a record "log.dropped".
     */
    uint32_t capacity;
    /**
     * Which records are made: "info,net=debug,hub=off". A level for all, then those of components that differ;
     * what comes later wins. NULL: "info".
     */
    const char *levels;
    /**
     * The file that lines of JSON are appended to: UTF-8, and copied. NULL (default): none. Several logs may write
     * one file, in one process or in several. A character device, a pipe and what a link in /proc leads to, as
     * /dev/stdout, are written and never rotated; a directory, a block device and a socket are refused.
     */
    const char *file;
    /**
     * How large the file may become, 1 KiB to 1 TiB; then it is renamed to file.1, that to file.2, and so
     * on. Default 64 MiB.
     */
    uint64_t max_size;
    /** How many files are kept, the one that is written included: 1 to 1000. Default 4. */
    uint32_t files;
    /**
     * How many records may wait for a completion queue (pace_cq_log), up to 2^20; 0 (default): none can be attached.
     * What comes while so many wait is lost to it, and counted as dropped.
     */
    uint32_t cq_capacity;
    /** Told of each record. NULL (default): nobody is. */
    pace_log_fn on_record;
    /** What it is given. */
    void *user_data;
    /** Runs once after the last call. NULL: nothing. */
    pace_drop_fn drop;
} pace_log_config_t;

/** What a log has done. Set struct_size to sizeof the struct before the call. */
typedef struct pace_log_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Records that its thread has taken. */
    uint64_t told;
    /** Records that found no room, to be told or among those for a completion queue. */
    uint64_t dropped;
    /** Lines that could not be written. */
    uint64_t errors;
    /** The last of these errors, or NULL. Good until this thread asks again, or ends. */
    const char *last_error;
    /** Records that were put where a completion queue takes them from (pace_cq_log), whether or not it has. */
    uint64_t queued;
} pace_log_stats_t;

/**
 * Fills a configuration with the defaults. `size` is sizeof *config.
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_log_config_init(pace_log_config_t *config, size_t size);

/**
 * Changes a configuration to what the section `log` of a file of settings says, as pace_pool_config_load() does for
 * `pool`.
 *
 * As there.
 *
 * Threads: any. In handlers: yes; it reads a file.
 */
pace_status_t pace_log_config_load(pace_log_config_t *config,
                                   const char *path,
                                   bool environment);

/**
 * Starts a log. A `config` of NULL means the defaults. Give it to pools as pace_pool_config_t.log, which keep
 * it: servers, worker pools and hubs tell what happens by the log of their pool. That its file cannot be opened
 * is no error: it is tried again for each line, and counted.
 *
 * PACE_EINVAL names the field, its value and what is allowed; PACE_EVERSION; PACE_EOS if the thread cannot be
 * created.
 *
 * Threads: any. In handlers: yes; it creates a thread.
 */
pace_status_t pace_log_new(const pace_log_config_t *config,
                           pace_log_t **log);

/**
 * Makes it the log of all pools that are made from now on without one of their own, for as long as the process
 * lives, which keeps it: whoever writes the program may, libraries should not.
 *
 * PACE_EFULL: there is one already.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_log_install(pace_log_t *log);

/**
 * Changes which records are made from now on: a text as in pace_log_config_t.levels.
 *
 * PACE_EINVAL: it is none; nothing was changed.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_log_set_levels(pace_log_t *log, const char *levels);

/**
 * The level of a component, PACE_LOG_POOL …: PACE_LOG_OFF, or up to which level it tells.
 *
 * PACE_EINVAL: there is no such component.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_log_level(pace_log_t *log, uint32_t component, uint32_t *level);

/**
 * Waits for up to `timeout_ns` until everything that happened before was told and written.
 *
 * PACE_ETIMEDOUT; PACE_EDEADLOCK inside its own callback.
 *
 * Threads: any but the log's. In handlers: it holds one up.
 */
pace_status_t pace_log_flush(pace_log_t *log, uint64_t timeout_ns);

/**
 * Turns all levels off and waits for up to `timeout_ns` until everything that was told is written, the callback
 * has been called for the last time, its `drop` has run, and the thread ends. Closing again only waits.
 *
 * PACE_ETIMEDOUT: it goes on until it is through; PACE_EDEADLOCK inside its own callback.
 *
 * Threads: any but the log's. In handlers: it holds one up.
 */
pace_status_t pace_log_close(pace_log_t *log,
                             uint64_t timeout_ns);

/**
 * What a log has done so far.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_log_stats(pace_log_t *log, pace_log_stats_t *stats);

/**
 * Frees a log. When the last pool that uses it is gone too, its thread tells what waits, and ends. With on_record
 * whoever frees the last of these waits until `drop` has run; without it a process that ends does not wait for what is
 * to be written: pace_log_close() before. NULL: nothing.
 *
 * Threads: any, as long as no other uses it any more. In handlers, and on threads of a pool or of the log: yes, it never
 * waits there.
 */
void pace_log_free(pace_log_t *log);

/**
 * The name of a level, "warn"; of PACE_LOG_OFF "off"; of another number "?".
 *
 * Threads: any. In handlers: yes, it never waits.
 */
const char *pace_log_level_name(uint32_t level);

/**
 * The name of a component, "net"; of another number "?".
 *
 * Threads: any. In handlers: yes, it never waits.
 */
const char *pace_log_component_name(uint32_t component);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_LOG_H */
