/* paceline.h: an embeddable event engine. A fixed pool of threads takes turns at the front, as riders
 * do in a paceline: the thread that sees an event handles it, and whoever is free next waits for more.
 *
 * This file is generated from src/ffi, where each section is a file. Change it there.
 *
 * A whole program, which prints "the task says 42", "hello" and "the books balance":
 *
 *     #include <paceline.h>
 *     #include <stdio.h>
 *     #include <unistd.h>
 *
 *     static void answer(void *user_data, int32_t *outcome) {
 *         (void)user_data;
 *         *outcome = 42;                                  // 0 would be plain success
 *     }
 *
 *     static int32_t echo(void *user_data, pace_handle_t self, int32_t fd, uint32_t ready) {
 *         char bytes[64];
 *         ssize_t size = read(fd, bytes, sizeof bytes);   // on the thread that saw it come
 *         (void)self, (void)ready;
 *         if (size < 0) return PACE_FLOW_WAIT;            // EAGAIN: call me when there is more
 *         if (size == 0) return PACE_FLOW_DONE;           // the end: deregister me
 *         if (write(*(int *)user_data, bytes, (size_t)size) != size) return PACE_FLOW_DONE;
 *         return PACE_FLOW_AGAIN;
 *     }
 *
 *     int main(void) {
 *         pace_pool_t *pool;
 *         pace_task_t task;
 *         pace_handle_t handle;
 *         pace_handle_options_t options;
 *         pace_audit_t audit = {.struct_size = sizeof audit};
 *         int32_t outcome;
 *         int pipes[2], out = STDOUT_FILENO;
 *         if (pace_pool_new(NULL, &pool) != PACE_OK) {    // NULL: a thread per CPU
 *             fprintf(stderr, "%s\n", pace_last_error());
 *             return 1;
 *         }
 *         pace_pool_submit(pool, PACE_LANE_NORMAL, answer, NULL, NULL, &task);
 *         pace_task_wait(pool, task, PACE_FOREVER, &outcome);
 *         printf("the task says %d\n", (int)outcome);
 *         fflush(stdout);
 *
 *         if (pipe(pipes) != 0 || write(pipes[1], "hello\n", 6) != 6) return 1;
 *         close(pipes[1]);
 *         pace_handle_options_init(&options, sizeof options);
 *         options.level = true;                           // a blocking descriptor must be
 *         options.interest = PACE_INTEREST_READABLE;
 *         pace_pool_register(pool, pipes[0], &options, echo, &out, NULL, &handle);
 *         for (bool open = true; open; usleep(1000)) pace_handle_is_open(pool, handle, &open);
 *
 *         pace_pool_shutdown(pool, PACE_FOREVER, NULL);   // runs what was accepted
 *         pace_pool_audit(pool, &audit);
 *         puts(audit.in_flight == 0 && audit.balances ? "the books balance" : "they do not");
 *         pace_pool_free(pool);
 *         return 0;
 *     }
 *
 * THREADS. Every function may be called by any thread unless its line "Threads:" says otherwise, and
 * the same line says whether a handler may. A handler is any callback: of a task, descriptor, timer,
 * ring or hook. Callbacks run on threads of the pool (or that joined it). They must return: not unwind
 * or longjmp out, nor end the thread (pthread_exit, pthread_cancel). One that forks leaves the child by
 * exec or _exit; a child in which it returns is aborted. "It waits outside" means: on a thread that is
 * not in the pool's handler now. Nothing may be called in a signal handler, and no thread cancelled
 * that is in a call.
 *
 * OWNERSHIP. Each callback gets its own user_data. A registration may name a `drop` for it, which runs
 * exactly once, after the last call. If the registering call fails, nothing has moved: user_data is
 * still the caller's, no call comes, and drop does not run. Texts and arrays are copied, or used only
 * during the call. Big things are pointers and have a _free, where NULL is a no-op. Small things are
 * ids, struct values that may be copied and forgotten: one that is out of date, or made up, gives
 * PACE_ESTALE, never a crash. What ends by itself (tasks, timers) need not be kept; what lasts
 * (handles, strands, rings) is deregistered, closed or freed, or ends with the pool. What a callback
 * is given by a pointer is lent to it, and gone when it returns (bytes, pace_conn_t, pace_request_t),
 * unless its comment says that it is given (pace_response_t).
 *
 * ERRORS. Functions answer PACE_OK or a negative status, and pace_last_error() then tells what was
 * wrong. Outputs are written only on success, except where a count says otherwise. Any function may
 * answer PACE_EINVAL (NULL where that is not allowed), PACE_EFORKED (in a child made by fork: nothing
 * has been touched) and PACE_EPANIC (a fault of the library, caught); comments name the others.
 *
 * TIMES are nanoseconds of the monotonic clock. PACE_FOREVER is no limit, 0 is not to wait.
 *
 * VERSIONS. Structs that may grow begin with struct_size: set by an _init function for inputs, by you
 * for results. A library that knows more than your header treats the rest as defaults, one that knows
 * less says PACE_EVERSION if you use what it does not know.
 */
#ifndef PACELINE_H
#define PACELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------- Version, status, errors */

/** Major version of the library that this header belongs to. */
#define PACE_VERSION_MAJOR 0

/** Minor version. */
#define PACE_VERSION_MINOR 1

/** Patch level. */
#define PACE_VERSION_PATCH 0

/** It worked. */
#define PACE_OK 0

/** An argument is NULL or out of its range; pace_last_error() names it. */
#define PACE_EINVAL (-1)

/**
 * Something bounded is full: a lane, a strand, a ring, a queue, the table of handles, the seats for
 * host threads, a connection's output, a server's requests in work.
 */
#define PACE_EFULL (-2)

/** The queue is empty, and no time to wait was given; the message is not whole yet. */
#define PACE_EEMPTY (-3)

/** The time ran out. */
#define PACE_ETIMEDOUT (-4)

/**
 * The pool is shut down, or draining; the ring or queue is closed (and, for a pop, empty); the server
 * drains.
 */
#define PACE_ESHUTDOWN (-5)

/** This process is a child made by fork: what the parent made works only in the parent. */
#define PACE_EFORKED (-6)

/** What this id named is gone, or never was. */
#define PACE_ESTALE (-7)

/** The handler is running, or its event is pulled: the handle closes when that is over. */
#define PACE_ECLOSING (-8)

/** Waiting here could never end: every other thread of the pool waits already. */
#define PACE_EDEADLOCK (-9)

/** The task was cancelled, or the pool stopped, before it began. */
#define PACE_ECANCELLED (-10)

/** Never returned by a function: the outcome of a task that has not reported another one. */
#define PACE_EFAILED (-11)

/** A panic inside the library was caught. The pool is intact. */
#define PACE_EPANIC (-12)

/** A system call failed; pace_last_os_error() says how. */
#define PACE_EOS (-13)

/** The struct_size of a struct is not one that this library knows. */
#define PACE_EVERSION (-14)

/** Another thread waits for this task already. */
#define PACE_EBUSY (-15)

/** Nobody subscribes to the key of a request. */
#define PACE_ENORESPONDERS (-16)

/** The library was built without that. */
#define PACE_EUNSUPPORTED (-17)

/** Messages that the hub's histories took were given up: they are not on disk, and never will be. */
#define PACE_EGIVENUP (-18)

/** What a call answers: PACE_OK, or one of the negative codes. */
typedef int32_t pace_status_t;

/**
 * Version of the library that is loaded: major << 16 | minor << 8 | patch.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
uint32_t pace_version(void);

/**
 * A sentence about a status: static text, never NULL, also for numbers that are no status.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
const char *pace_strerror(pace_status_t status);

/**
 * The name of a status, "PACE_EINVAL" for one: static text, never NULL; "PACE_UNKNOWN" for numbers
 * that are no status.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
const char *pace_status_name(pace_status_t status);

/**
 * What this thread's last call that failed had to say: which argument, its value, and what would be
 * right. "" if none has failed. Calls that succeed leave it alone. Valid until this thread's next
 * call that fails, or its end.
 *
 * Threads: any, each has its own. In handlers: yes, it never waits.
 */
const char *pace_last_error(void);

/**
 * The errno of this thread's last call that failed, if that was PACE_EOS: never 0 then, but the nearest one
 * where the library has refused something itself, a descriptor of the wrong kind say. Else 0.
 *
 * Threads: any, each has its own. In handlers: yes, it never waits.
 */
int32_t pace_last_os_error(void);

/**
 * Whether the library keeps silent about faults that no log and no hook is told of. Default: false.
 *
 * Without this, a fault of a pool that has no log (pace_pool_config_t.log, pace_log_install()) is one line on the
 * standard error stream: a handler that fails, a suspended subscription, a log's file that cannot be written and
 * the like. Of each kind of fault at most one line is written in 10 seconds, with the number of those that were
 * not. With a log, a fault is a record of it and no line; with a hook for the fault (the on_exhausted of a server,
 * say), neither. It holds for the process.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_quiet(bool quiet);

/**
 * Tells of an exception that has left code of the program, which this thread has caught in the library's place: to
 * the log of its pool, or on the standard error stream (pace_quiet()). For languages whose exceptions must not leave
 * a callback; whoever writes C needs it not.
 *
 * `what` is what the exception says; what is not UTF-8 in it is replaced by U+FFFD. NULL: a hook of the program was
 * told, so that the library need not write a line. `fails`: the callback goes on to answer that it has failed, as a
 * handler by a number that is no PACE_FLOW_ number, and the library tells of that with this text.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_unhandled(const char *what,
                    bool fails);

/* --------------------------------------------------------------------------- Ids and callbacks */

/** Names a task that was submitted, until it is waited for or detached. 0 names none. */
typedef struct pace_task_t {
    /** Opaque. */
    uint64_t id;
} pace_task_t;

/** Names a strand, until it is closed. 0 names none. */
typedef struct pace_strand_t {
    /** Opaque. */
    uint64_t id;
} pace_strand_t;

/**
 * Names a registered descriptor or periodic timer, until it is deregistered or its handler answers
 * PACE_FLOW_DONE. 0 names none.
 */
typedef struct pace_handle_t {
    /** Opaque. */
    uint64_t id;
} pace_handle_t;

/** Names a one-shot timer, until it has run or was cancelled. 0 names none. */
typedef struct pace_timer_t {
    /** Opaque. */
    uint64_t id;
} pace_timer_t;

/** Names a connection of a server, until it has ended. 0 names none. */
typedef struct pace_conn_id_t {
    /** Opaque. */
    uint64_t id;
} pace_conn_id_t;

/**
 * Gives user_data back. It runs exactly once, after the last call that gets that user_data has
 * returned, on whatever thread that is; and not at all if the registering call fails, for then
 * user_data is still the caller's. It must not block. NULL: nobody needs to know.
 */
typedef void (*pace_drop_fn)(void *user_data);

/**
 * A task, or what a one-shot timer runs. *outcome is PACE_EFAILED beforehand; set it to 0 for
 * success, or to a number of your own, which pace_task_wait() hands over. Whatever is not 0 counts
 * as failed in the books.
 */
typedef void (*pace_task_fn)(void *user_data, int32_t *outcome);

/**
 * A task with its argument inline: `bytes` is its own copy of what was posted, aligned to 8, and
 * gone when it returns. *outcome is as for pace_task_fn.
 */
typedef void (*pace_bytes_fn)(void *bytes, size_t size, int32_t *outcome);

/**
 * The handler of a descriptor. `ready` are PACE_READY_ bits that have come since the last call. It
 * answers with a PACE_FLOW_ number; any other counts as a panic and closes the handle. It runs on
 * one thread at a time.
 */
typedef int32_t (*pace_ready_fn)(void *user_data,
                                 pace_handle_t handle,
                                 int32_t fd,
                                 uint32_t ready);

/**
 * The handler of a periodic timer. It answers with a PACE_FLOW_ number; any other counts as a panic
 * and closes the handle. It runs on one thread at a time.
 */
typedef int32_t (*pace_tick_fn)(void *user_data, pace_handle_t handle);

/**
 * The handler of a ring. Event i of `count` begins at (const char *)events + i * stride, aligned to
 * 8. They are gone when it returns.
 */
typedef void (*pace_events_fn)(void *user_data, const void *events, size_t stride, size_t count);

/** Called on a thread of the pool when it starts or stops, with its index. */
typedef void (*pace_thread_fn)(void *user_data, uint32_t thread);

/**
 * Called for a handler or task that takes longer than the limit: once while it still runs, or when
 * it returns if that is earlier. It must be quick.
 */
typedef void (*pace_slow_fn)(void *user_data, uint32_t thread, uint64_t elapsed_ns, bool running);

/* ----------------------------------------------------------- The log: what all components tell */

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

/** A structured log: a thread of its own, which is created with it. */
typedef struct pace_log_t pace_log_t;

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
     * How many records may wait for pace_log_pull(), up to 2^20; 0 (default): nobody pulls. What comes while so
     * many wait is not pulled, and counted as dropped.
     */
    uint32_t pull_capacity;
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
    /** Records that found no room, to be told or to be pulled. */
    uint64_t dropped;
    /** Lines that could not be written. */
    uint64_t errors;
    /** The last of these errors, or NULL. Good until this thread asks again, or ends. */
    const char *last_error;
    /** Records that were put where pace_log_pull() takes them from, whether or not it has. */
    uint64_t pullable;
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
 * Changes a configuration to what the section `log` of a file of settings says, as pace_workers_config_load()
 * does. Texts are good until this thread loads another, or ends.
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
 * Takes up to `capacity` records that wait, waiting for the first for up to `timeout_ns`, and says how many.
 * What they point to is good until the next pull, or until the log is freed.
 *
 * PACE_EEMPTY: there is none, and `timeout_ns` is 0; PACE_ETIMEDOUT; PACE_ESHUTDOWN: the log was closed, and
 * nothing is left; PACE_EDEADLOCK inside its own callback, unless `timeout_ns` is 0; PACE_EINVAL for a `capacity`
 * of 0, or if pull_capacity is 0.
 *
 * Threads: one at a time. In handlers: with a `timeout_ns` of 0.
 */
pace_status_t pace_log_pull(pace_log_t *log,
                            pace_log_record_t *records,
                            size_t capacity,
                            uint64_t timeout_ns,
                            size_t *count);

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

/* ------------------------------------------------------------------------------------ The pool */

/** In a configuration: let the library choose. */
#define PACE_DEFAULT UINT32_MAX

/** As a time: no limit. */
#define PACE_FOREVER UINT64_MAX

/** As a count or a size: no limit. */
#define PACE_UNLIMITED UINT64_MAX

/** As a count of 32 bits: no limit. */
#define PACE_UNLIMITED32 UINT32_MAX

/** Wait at Linux epoll: descriptors, timers, tasks, rings. The default. */
#define PACE_SOURCE_EPOLL 0

/** No descriptors: rings, timers and tasks only, without a system call while busy. */
#define PACE_SOURCE_RING 1

/**
 * Leadership is offered, and whoever is free next takes it; nobody is woken in the common case. The
 * default.
 */
#define PACE_PROMOTION_DEFERRED 0

/** A thread is woken to lead before each event is handled. For handlers that always block. */
#define PACE_PROMOTION_EAGER 1

/** A pool: a fixed set of threads and what they serve. */
typedef struct pace_pool_t pace_pool_t;

/** Settings of a pool. Call pace_pool_config_init(), change what you like, call pace_pool_new(). */
typedef struct pace_pool_config_t {
    /** Set by pace_pool_config_init(). */
    uint32_t struct_size;
    /**
     * Pool threads, 0 to 1024. PACE_DEFAULT: one per usable CPU. 0: only host threads drive it, by
     * pace_pool_join() or pace_pool_pull().
     */
    uint32_t threads;
    /** How many host threads may take part at once, 0 to 1024. Default 4. */
    uint32_t max_joined;
    /**
     * Handle sets, each with one leader at a time: 1 to one less than the threads (1 for a pool of
     * one or none). PACE_DEFAULT: 1 for up to 8 threads, then one per 8.
     */
    uint32_t leaders;
    /** PACE_SOURCE_EPOLL (default) or PACE_SOURCE_RING. */
    uint32_t source;
    /** PACE_PROMOTION_DEFERRED (default) or PACE_PROMOTION_EAGER. */
    uint32_t promotion;
    /**
     * How often the watch looks for stuck work while handlers are slow: 10 000 (10 µs) to
     * 1 000 000 000 (1 s). Default 200 000.
     */
    uint64_t watch_period_ns;
    /** How long a leader polls without blocking before it sleeps: 0 (default) to 100 000 000. */
    uint64_t spin_ns;
    /** Room of each task lane, 2 to 2^24, rounded up to a power of two. Default 8192. */
    uint32_t lane_capacity;
    /** Room of each strand, 2 to 2^24, rounded up to a power of two. Default 1024. */
    uint32_t strand_capacity;
    /**
     * How many handles, strands, timers and rings may exist at once, 1 to 2^24. Default 2^22.
     * Memory is taken as they appear. A worker pool takes up to two of them, for as long as the pool
     * is there.
     */
    uint32_t max_handles;
    /** Whether a failure to pin fails pace_pool_new(), or is only told by the statistics (default). */
    bool pin_strict;
    /** Zero. */
    uint8_t reserved[3];
    /**
     * Where threads are pinned: "none", "compact", "spread", or a list of CPUs such as "0,2,4-7".
     * NULL: compact if that leaves a CPU free, else none.
     */
    const char *pin;
    /** Threads are called name-0, name-1 …; the kernel shows 15 bytes. NULL: "paceline". */
    const char *name;
    /** Stack of each thread in bytes, 65536 to 2^32; 0: 2 MiB. */
    uint64_t stack_size;
    /** Called on each thread first of all, with hook_data. NULL: nothing. */
    pace_thread_fn on_start;
    /** Called on each thread last of all, with hook_data. NULL: nothing. */
    pace_thread_fn on_stop;
    /** Called for what takes longer than slow_ns, with hook_data. NULL: nobody measures. */
    pace_slow_fn on_slow;
    /** The limit for on_slow, at least 10 000 (10 µs). */
    uint64_t slow_ns;
    /** What the three hooks are given. */
    void *hook_data;
    /**
     * Runs once, after the last call of a hook: when the pool and all its rings have been freed.
     * NULL: nothing.
     */
    pace_drop_fn hook_drop;
    /**
     * So many threads are added, 0 to 48, that run nothing but tasks of a lane, by PACE_LANE_: with all
     * others inside long tasks these still start at once. Default: none.
     */
    uint32_t reserve[4];
    /**
     * After how long a wait in a lane every fourth pick is of that lane: 1 ms to 1 h; 0 (default): 1 s;
     * PACE_FOREVER: never.
     */
    uint64_t ageing_ns;
    /**
     * What happens in the pool, and in all that stands on it, is told to this log, which it keeps. NULL (default):
     * to the one of pace_log_install(), or to none.
     */
    pace_log_t *log;
} pace_pool_config_t;

/** How a shutdown went. Set struct_size to sizeof the struct before the call. */
typedef struct pace_report_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /**
     * Everything that had been accepted has ended: nothing was cut off, cancelled or left, and no handler still runs.
     * If it is false, the counts say what was.
     */
    bool drained;
    /** It was called inside a handler, so it was only a request. */
    bool requested;
    /** Zero. */
    uint8_t reserved[2];
    /**
     * Tasks that were accepted and will not run, and one-shot timers that were not due. (These do not count against
     * `drained`.) This and what follows is what has come about since the first shutdown of the pool began.
     */
    uint64_t cancelled;
    /**
     * Threads whose handlers have not returned; pace_pool_thread_stats() tells which: their role is
     * not PACE_ROLE_AWAY.
     */
    uint32_t stuck;
    /** Zero. */
    uint32_t reserved2;
    /**
     * Events of rings, and messages of hubs, in mailboxes or with publishers that waited for room there, which will not
     * be handled.
     */
    uint64_t left;
    /**
     * Of worker pools: tasks that were cancelled, those that waited for another attempt among them, and those that a
     * host has pulled and not completed.
     */
    uint64_t worker_tasks;
    /** Of servers: connections that were cut off, as they were not through. */
    uint64_t connections;
} pace_report_t;

/**
 * Fills a configuration with the defaults. `size` is sizeof *config, so that a library that has
 * grown never writes past a caller's struct: pace_pool_config_init(&config, sizeof config).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_config_init(pace_pool_config_t *config, size_t size);

/**
 * Builds a pool and starts its threads. A `config` of NULL means the defaults. Texts in it are
 * copied. If it fails, whatever had been started is stopped again, and hook_drop does not run.
 *
 * PACE_EINVAL names the field, its value and the allowed range; PACE_EVERSION: struct_size was not
 * set, or sets what this library does not have; PACE_EOS: the system refuses a thread or descriptor,
 * or, with pin_strict, to pin.
 *
 * Threads: any. In handlers: yes.
 */
pace_status_t pace_pool_new(const pace_pool_config_t *config,
                            pace_pool_t **pool);

/**
 * Builds a pool as pace_pool_new() does, from a file of settings: JSON if its name ends in .json, YAML if
 * in .yaml or .yml. `path` may be NULL. With `environment`, variables PACELINE_… win over the file.
 *
 * PACE_EINVAL: pace_last_error() tells all that is wrong, each with file or variable, key, value and what
 * is allowed. Otherwise as pace_pool_new().
 *
 * Threads: any. In handlers: yes; it reads a file.
 */
pace_status_t pace_pool_new_configured(const char *path,
                                       bool environment,
                                       pace_pool_t **pool);

/**
 * Lets only the first `threads` of the ordinary threads work; the others finish what they are at, and
 * park until more are wanted. Parked threads cost nothing. 1 to the number of ordinary threads; with more
 * than one handle set, at least one more than there are sets.
 *
 * PACE_EINVAL names the range; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_set_active(pace_pool_t *pool,
                                   uint32_t threads);

/**
 * Shuts the pool down: refuses new work from outside and lets everything that was accepted end, for up to
 * `drain_ns`. Then it cancels what has not begun, closes all handles, and ends the threads. It returns when all
 * handlers have returned, or 100 ms after the drain at the latest; threads that are still inside a handler then are
 * counted as stuck. Calling it again is harmless. `report` may be NULL.
 *
 * Everything: servers stop accepting, answer the requests that they have taken, and close their connections, as by
 * pace_server_drain(); worker pools run their tasks, with the retries; hubs and rings deliver what was published; tasks
 * run. A retry, or a delayed task of a worker pool, that is due only after the drain is not waited for; nor is a one-shot
 * timer that is not due. A connection that is not through after the drain is cut off, and counted. Datagram sockets
 * stay open to the end, so that late answers can be sent.
 *
 * Inside a handler it is only a request: it returns at once, and the pool shuts down when its
 * handlers have returned.
 *
 * PACE_EVERSION: report->struct_size was not set.
 *
 * Threads: any. In handlers: yes, as a request.
 */
pace_status_t pace_pool_shutdown(pace_pool_t *pool,
                                 uint64_t drain_ns,
                                 pace_report_t *report);

/**
 * Shuts the pool down without a drain: what has not begun is cancelled. Otherwise as pace_pool_shutdown().
 *
 * PACE_EVERSION: report->struct_size was not set.
 *
 * Threads: any. In handlers: yes, as a request.
 */
pace_status_t pace_pool_stop_now(pace_pool_t *pool,
                                 pace_report_t *report);

/**
 * Frees a pool. One that is still open is drained first, for up to 30 s, as by pace_pool_shutdown(): what was
 * accepted ends. For an end without a drain call pace_pool_stop_now() before. It waits until all handlers
 * have returned; afterwards no callback runs any more, and every `drop` has run. NULL is a no-op.
 * Ids of its tasks, strands, handles and timers must not be used afterwards; rings, servers and
 * datagram sockets are freed by themselves, before or after.
 *
 * Inside a handler of the pool it is a request: it returns at once, and the rest happens when the
 * last handler has returned. In a forked child it does nothing. Two pools that free each other, each
 * in a handler, wait for each other for ever.
 *
 * Threads: any, as long as no other uses the pool any more; a call that posted the very task that
 * frees the pool may still be using it. In handlers: yes, as a request.
 */
void pace_pool_free(pace_pool_t *pool);

/**
 * Says "I am about to block": another thread of this thread's pool is called to lead and to take
 * over what this one has claimed. Outside of handlers it does nothing.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_promote_new_leader(void);

/* --------------------------------------------------------------------------------------- Tasks */

/**
 * Before all others. So that none starves, the lower lanes have turns: after 8 picks of this lane up to 5 are of
 * HIGH, after 13 picks of these two up to 3 are of NORMAL, and after 15 picks of all others one is of LOW. So where
 * all lanes have tasks, of 64 picks 32 are of CRITICAL, 18 of HIGH, 10 of NORMAL and 4 of LOW. A pick of a thread
 * takes up to 64 tasks of its lane if these take some 20 microseconds together.
 */
#define PACE_LANE_CRITICAL 0

/** Before NORMAL and LOW, but for their turns: see PACE_LANE_CRITICAL. */
#define PACE_LANE_HIGH 1

/** The usual one: before LOW, but for its turns. */
#define PACE_LANE_NORMAL 2

/** After all others, but for its turns: one pick after 15 of the others. */
#define PACE_LANE_LOW 3

/** How many bytes fit in a task itself. */
#define PACE_INLINE_BYTES 32

/** One task of a batch. */
typedef struct pace_work_t {
    /** The task; not NULL. */
    pace_task_fn run;
    /** What it is given. */
    void *user_data;
    /** Runs once after it, or when it is cancelled. NULL: nothing. */
    pace_drop_fn drop;
} pace_work_t;

/**
 * Runs a task on the pool. Allocates nothing. From outside the pool's threads it waits while the
 * lane is full; inside a handler it never waits.
 *
 * PACE_EFULL (inside only), PACE_ESHUTDOWN; PACE_EINVAL for a lane that is none of PACE_LANE_, or no
 * `run`.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_pool_post(pace_pool_t *pool,
                             uint32_t lane,
                             pace_task_fn run,
                             void *user_data,
                             pace_drop_fn drop);

/**
 * As pace_pool_post(), and never waits.
 *
 * PACE_EFULL, PACE_ESHUTDOWN, PACE_EINVAL as there.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_try_post(pace_pool_t *pool,
                                 uint32_t lane,
                                 pace_task_fn run,
                                 void *user_data,
                                 pace_drop_fn drop);

/**
 * As pace_pool_post(), for a task whose argument is a few bytes: `size` of them, 0 to
 * PACE_INLINE_BYTES, are copied, and nothing need be freed. `bytes` may be NULL if `size` is 0.
 *
 * PACE_EFULL (inside only), PACE_ESHUTDOWN, PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_pool_post_bytes(pace_pool_t *pool,
                                   uint32_t lane,
                                   pace_bytes_fn run,
                                   const void *bytes,
                                   size_t size);

/**
 * Posts `count` tasks in order, up to 32 by one atomic step. From outside the pool's threads it waits
 * for room; inside a handler it never waits. *accepted says how many were taken, also for PACE_EFULL
 * and PACE_ESHUTDOWN: of the others user_data is still the caller's.
 *
 * PACE_EFULL (inside only), PACE_ESHUTDOWN; PACE_EINVAL, with none taken and *accepted unchanged, if
 * any of them has no `run`.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_pool_post_batch(pace_pool_t *pool,
                                   uint32_t lane,
                                   const pace_work_t *work,
                                   size_t count,
                                   size_t *accepted);

/**
 * Runs a task on the pool and names it, to be waited for. Once it is waited for, or detached, its id
 * is given back; an id that nobody gives back is kept until the pool is freed. Waits for room as
 * pace_pool_post() does.
 *
 * PACE_EFULL (inside; or all ids are in use), PACE_ESHUTDOWN, PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_pool_submit(pace_pool_t *pool,
                               uint32_t lane,
                               pace_task_fn run,
                               void *user_data,
                               pace_drop_fn drop,
                               pace_task_t *task);

/**
 * As pace_pool_submit(), and never waits.
 *
 * PACE_EFULL, PACE_ESHUTDOWN, PACE_EINVAL as there.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_try_submit(pace_pool_t *pool,
                                   uint32_t lane,
                                   pace_task_fn run,
                                   void *user_data,
                                   pace_drop_fn drop,
                                   pace_task_t *task);

/**
 * Waits for up to `timeout_ns` until a task has ended; its `drop` has run then. PACE_OK: it ran, and
 * *outcome is what it reported. `outcome` may be NULL. One thread at a time may wait for a task, and
 * not the task itself, which would wait until its time is out.
 *
 * PACE_OK, PACE_ECANCELLED (it never ran) and PACE_EPANIC give the id back, and the others do not:
 * PACE_ETIMEDOUT, PACE_EBUSY (another thread waits), PACE_EDEADLOCK (on a thread of the pool, when
 * all others wait already), PACE_ESTALE.
 *
 * Threads: any. In handlers: yes; it hands leadership on before it waits.
 */
pace_status_t pace_task_wait(pace_pool_t *pool,
                             pace_task_t task,
                             uint64_t timeout_ns,
                             int32_t *outcome);

/**
 * Whether a task has ended, in whatever way.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_task_is_done(pace_pool_t *pool, pace_task_t task, bool *done);

/**
 * Asks that a task should not begin. *cancelled: true, it never will, its `drop` runs when a thread
 * comes across it, and waiting for it gives PACE_ECANCELLED; false, it runs or has ended. Its id is
 * still to be given back.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_task_cancel(pace_pool_t *pool, pace_task_t task, bool *cancelled);

/**
 * Gives a task's id back without waiting: it runs on, and nobody learns its outcome.
 *
 * PACE_ESTALE; PACE_EBUSY while another thread waits for it.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_task_detach(pace_pool_t *pool, pace_task_t task);

/* ----------------------------------------------------- Strands: serial execution without locks */

/**
 * Makes a strand: its tasks run one at a time, in the order in which they were posted, on whatever
 * thread of the pool is free.
 *
 * PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_strand_new(pace_pool_t *pool, pace_strand_t *strand);

/**
 * Appends a task. From outside the pool's threads it waits while the strand is full; inside a
 * handler it never waits.
 *
 * PACE_EFULL (inside only), PACE_ESHUTDOWN, PACE_ESTALE, PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_strand_post(pace_pool_t *pool,
                               pace_strand_t strand,
                               pace_task_fn run,
                               void *user_data,
                               pace_drop_fn drop);

/**
 * As pace_strand_post(), and never waits.
 *
 * PACE_EFULL, PACE_ESHUTDOWN, PACE_ESTALE, PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_strand_try_post(pace_pool_t *pool,
                                   pace_strand_t strand,
                                   pace_task_fn run,
                                   void *user_data,
                                   pace_drop_fn drop);

/**
 * As pace_strand_post(), and names the task as pace_pool_submit() does.
 *
 * PACE_EFULL (inside; or all ids are in use), PACE_ESHUTDOWN, PACE_ESTALE, PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_strand_submit(pace_pool_t *pool,
                                 pace_strand_t strand,
                                 pace_task_fn run,
                                 void *user_data,
                                 pace_drop_fn drop,
                                 pace_task_t *task);

/**
 * As pace_strand_submit(), and never waits.
 *
 * PACE_EFULL, PACE_ESHUTDOWN, PACE_ESTALE, PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_strand_try_submit(pace_pool_t *pool,
                                     pace_strand_t strand,
                                     pace_task_fn run,
                                     void *user_data,
                                     pace_drop_fn drop,
                                     pace_task_t *task);

/**
 * Closes a strand and gives its id back. What was accepted still runs.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_strand_close(pace_pool_t *pool, pace_strand_t strand);

/* ---------------------------------------------------- Handles: descriptors and periodic timers */

/**
 * Call me when something happens. For an edge-triggered descriptor this promises that the last
 * operation saw EAGAIN: what is left unread now is not reported again.
 */
#define PACE_FLOW_WAIT 0

/** There is more to do: call me again, after others had their turn. */
#define PACE_FLOW_AGAIN 1

/**
 * Do not call me before pace_handle_resume(). What arrives meanwhile is kept. See pace_handle_pause() for the one
 * exception.
 */
#define PACE_FLOW_PAUSE 2

/** I am through: deregister, and run `drop`. */
#define PACE_FLOW_DONE 3

/** Data, a connection to accept, an expiry or a count can be read. */
#define PACE_READY_READABLE 1

/** Out-of-band data of a TCP socket, or a change of a sysfs or cgroup file. */
#define PACE_READY_PRIORITY 2

/** There is room to write, or a connection attempt has ended. */
#define PACE_READY_WRITABLE 4

/** An error is pending (SO_ERROR), or nobody reads the other end of a pipe. Always reported. */
#define PACE_READY_ERROR 8

/**
 * Both directions are closed, or nobody writes the other end of a pipe. Data may be left to read.
 * Always reported.
 */
#define PACE_READY_HANG_UP 16

/**
 * The peer will send no more; writing to it may still work. Data may be left to read. Reported to
 * whoever is interested in reading.
 */
#define PACE_READY_READ_CLOSED 32

/** Reading, and the end of what the peer sends. */
#define PACE_INTEREST_READABLE 1

/** Urgent data of a TCP socket, or a change of a sysfs or cgroup file. */
#define PACE_INTEREST_PRIORITY 2

/** Writing. */
#define PACE_INTEREST_WRITABLE 4

/** How a descriptor is waited for. Call pace_handle_options_init() first. */
typedef struct pace_handle_options_t {
    /** Set by pace_handle_options_init(). */
    uint32_t struct_size;
    /** PACE_INTEREST_ bits. Default: reading and writing. Errors and hang-ups are always reported. */
    uint32_t interest;
    /**
     * Level-triggered: the handler is called again as long as the descriptor is ready, so it need
     * not read until EAGAIN, and the descriptor may be in blocking mode. Costs a system call per
     * event. Default: edge-triggered.
     */
    bool level;
    /** The handler may block: another thread is called to lead before each run. */
    bool may_block;
    /** Begin paused, as pace_handle_pause() does. Default false. */
    bool paused;
    /** Zero. */
    uint8_t reserved;
} pace_handle_options_t;

/**
 * Fills options with the defaults: pace_handle_options_init(&options, sizeof options).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_handle_options_init(pace_handle_options_t *options, size_t size);

/**
 * Calls `ready` whenever `fd` becomes ready; the first call reports what is ready already. `options`
 * of NULL means edge-triggered, for reading and writing. An edge-triggered `fd` must be non-blocking.
 *
 * The descriptor stays the caller's: close it after `drop` has run, or in `drop`.
 *
 * PACE_EINVAL if `fd` is negative, or in blocking mode; PACE_EOS if it cannot be waited for (regular
 * files cannot) or is registered already; PACE_EFULL when all max_handles are in use;
 * PACE_ESHUTDOWN; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_register(pace_pool_t *pool,
                                 int32_t fd,
                                 const pace_handle_options_t *options,
                                 pace_ready_fn ready,
                                 void *user_data,
                                 pace_drop_fn drop,
                                 pace_handle_t *handle);

/**
 * Calls `tick` every `period_ns`, first after one period: 1000 (1 µs) to 100 years. Runs that were
 * missed are skipped. The handle is deregistered as any other.
 *
 * PACE_EINVAL, PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_every(pace_pool_t *pool,
                              uint64_t period_ns,
                              pace_tick_fn tick,
                              void *user_data,
                              pace_drop_fn drop,
                              pace_handle_t *handle);

/**
 * Holds further calls of the handler back; what arrives meanwhile is kept, and delivered after
 * pace_handle_resume(). The handler of a level-triggered descriptor is not called at all. That of an
 * edge-triggered one is still told of an error or a hang-up, once in each pause. A run that has begun is not
 * interrupted.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_handle_pause(pace_pool_t *pool,
                                pace_handle_t handle);

/**
 * Ends a pause; what was kept is delivered.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_handle_resume(pace_pool_t *pool, pace_handle_t handle);

/**
 * Deregisters. When this returns PACE_OK, the handler does not run and never will, and `drop` has
 * run. From outside the pool's threads it waits for a handler that is running.
 *
 * PACE_ECLOSING: the handler runs, and this was called inside a handler of the same pool (waiting
 * could deadlock), or another thread deregisters the handle already, or its event is pulled. It
 * closes when the handler returns, or the event is completed, and `drop` runs then. PACE_ESTALE: it
 * is closed already.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_handle_deregister(pace_pool_t *pool, pace_handle_t handle);

/**
 * Whether a handle is registered still. An id whose handle is gone gives false.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_handle_is_open(pace_pool_t *pool, pace_handle_t handle, bool *is_open);

/* ------------------------------------------------------------------------ Timers that run once */

/**
 * Runs a task once, `delay_ns` from now (up to 100 years): never early. Allocates nothing. `timer`
 * may be NULL: a timer ends by itself, and nothing need be kept.
 *
 * PACE_EINVAL, PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_after(pace_pool_t *pool,
                              uint64_t delay_ns,
                              pace_task_fn run,
                              void *user_data,
                              pace_drop_fn drop,
                              pace_timer_t *timer);

/**
 * Cancels. *cancelled: true, the task never runs, and its `drop` has; false, it has begun, has run,
 * or was cancelled before, and the id may be forgotten.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_timer_cancel(pace_pool_t *pool, pace_timer_t timer, bool *cancelled);

/**
 * Puts a timer off until `delay_ns` from now, which must not be earlier than it was due (then nothing
 * changes); more than 100 years are taken as 100 years. *postponed: true, it had not begun; a timer that begins at
 * this very moment may still run once.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_timer_postpone(pace_pool_t *pool,
                                  pace_timer_t timer,
                                  uint64_t delay_ns,
                                  bool *postponed);

/**
 * Whether a timer has neither begun nor been cancelled.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_timer_is_pending(pace_pool_t *pool, pace_timer_t timer, bool *pending);

/* ----------------------------------------- Rings: fixed-size events with a handler on the pool */

/** A bounded ring of events of one size, with a handler on a pool. */
typedef struct pace_ring_t pace_ring_t;

/**
 * Makes a ring whose handler gets the events in the order of their publication, on one thread at a
 * time. `event_size` is 1 to 256 bytes; `capacity`, 1 to 2^31 events, is rounded up to a power of
 * two.
 *
 * PACE_EINVAL, PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ring_serial(pace_pool_t *pool,
                               size_t event_size,
                               size_t capacity,
                               pace_events_fn handler,
                               void *user_data,
                               pace_drop_fn drop,
                               pace_ring_t **ring);

/**
 * Makes a ring whose handler gets batches of up to 256 events on as many threads as are free, in no
 * particular order. Otherwise as pace_ring_serial().
 *
 * PACE_EINVAL, PACE_EFULL, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ring_concurrent(pace_pool_t *pool,
                                   size_t event_size,
                                   size_t capacity,
                                   pace_events_fn handler,
                                   void *user_data,
                                   pace_drop_fn drop,
                                   pace_ring_t **ring);

/**
 * Publishes one event: event_size bytes are copied. From outside the pool's threads it waits while
 * the ring is full; inside a handler it never waits.
 *
 * PACE_EFULL (inside only), PACE_ESHUTDOWN (or closed).
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_ring_publish(pace_ring_t *ring, const void *event);

/**
 * As pace_ring_publish(), and never waits.
 *
 * PACE_EFULL, PACE_ESHUTDOWN (or closed).
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ring_try_publish(pace_ring_t *ring, const void *event);

/**
 * Publishes `count` events in order, which lie event_size bytes apart. Waits as pace_ring_publish()
 * does. *published says how many went in, also for PACE_EFULL and PACE_ESHUTDOWN. Copying is least
 * when event_size is 8, 16, 32, 64, 128 or 256 and `events` is aligned to 8.
 *
 * PACE_EFULL (inside only), PACE_ESHUTDOWN (or closed).
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_ring_publish_batch(pace_ring_t *ring,
                                      const void *events,
                                      size_t count,
                                      size_t *published);

/**
 * How many events were published and how many handled since the start; those of a running handler
 * count when it returns. Either argument may be NULL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ring_counts(const pace_ring_t *ring,
                               uint64_t *published,
                               uint64_t *handled);

/**
 * Refuses events from now on. What has been published is still handled, and then `drop` runs.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ring_close(pace_ring_t *ring);

/**
 * Closes a ring and frees it. It waits until what was published has been handled and `drop` has run. NULL is a no-op,
 * and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses the ring any more. In handlers, and on threads of the pool: yes, it never
 * waits there.
 */
void pace_ring_free(pace_ring_t *ring);

/* ---------------------------------------------------------------------- Queues: without a pool */

/** A bounded first-in first-out queue of items of one size. */
typedef struct pace_queue_t pace_queue_t;

/**
 * Makes a queue. `item_size` is 1 to 256 bytes; `capacity`, 1 to 2^31 items, is rounded up to a
 * power of two. All memory is taken now.
 *
 * PACE_EINVAL, PACE_EOS.
 *
 * Threads: any. In handlers: yes.
 */
pace_status_t pace_queue_new(size_t item_size, size_t capacity, pace_queue_t **queue);

/**
 * Appends one item: item_size bytes are copied. Waits for room for up to `timeout_ns`.
 *
 * PACE_EFULL: there is no room, and `timeout_ns` is 0; PACE_ETIMEDOUT; PACE_ESHUTDOWN: closed.
 *
 * Threads: any. In handlers: yes; it hands leadership on before it waits.
 */
pace_status_t pace_queue_push(pace_queue_t *queue, const void *item, uint64_t timeout_ns);

/**
 * Appends items that lie item_size bytes apart, as many of `count` as there is room for, in one step:
 * they follow each other in the queue. Never waits. *pushed says how many, and is 0 for PACE_EFULL
 * and PACE_ESHUTDOWN.
 *
 * PACE_EFULL: no room for any; PACE_ESHUTDOWN: closed.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_queue_push_batch(pace_queue_t *queue,
                                    const void *items,
                                    size_t count,
                                    size_t *pushed);

/**
 * Removes the oldest item into `item`, item_size bytes. Waits for one for up to `timeout_ns`.
 *
 * PACE_EEMPTY: there is none, and `timeout_ns` is 0; PACE_ETIMEDOUT; PACE_ESHUTDOWN: closed, and
 * empty.
 *
 * Threads: any. In handlers: yes; it hands leadership on before it waits.
 */
pace_status_t pace_queue_pop(pace_queue_t *queue, void *item, uint64_t timeout_ns);

/**
 * Removes up to `capacity` of the oldest items in one step into `items`, where they lie item_size
 * bytes apart. Waits for the first for up to `timeout_ns`. *popped says how many.
 *
 * PACE_EEMPTY: there is none, and `timeout_ns` is 0; PACE_ETIMEDOUT; PACE_ESHUTDOWN: closed, and
 * empty; PACE_EINVAL: `capacity` is 0.
 *
 * Threads: any. In handlers: yes; it hands leadership on before it waits.
 */
pace_status_t pace_queue_pop_batch(pace_queue_t *queue,
                                   void *items,
                                   size_t capacity,
                                   uint64_t timeout_ns,
                                   size_t *popped);

/**
 * A descriptor that is readable while the queue may have something, or is closed, for hosts that wait
 * in a loop of their own. When it is, pop until nothing comes: a pop that finds nothing makes it
 * unreadable. It belongs to the queue: never read, write or close it. Made on the first call.
 *
 * PACE_EOS.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_queue_pollable(pace_queue_t *queue,
                                  int32_t *fd);

/**
 * Refuses pushes from now on. What is in the queue can still be popped. Threads that wait in a push,
 * and in a pop of an empty queue, return.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_queue_close(pace_queue_t *queue);

/**
 * How many items are in the queue. While others push or pop this may be out of date at once.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_queue_len(const pace_queue_t *queue, size_t *len);

/**
 * How many items there is room for in all: what was asked for, rounded up.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_queue_capacity(const pace_queue_t *queue, size_t *capacity);

/**
 * Whether pace_queue_close() has been called.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_queue_is_closed(const pace_queue_t *queue, bool *closed);

/**
 * Frees a queue with all that is in it. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses the queue any more. In handlers: yes, it never waits.
 */
void pace_queue_free(pace_queue_t *queue);

/* ---------------------------------------------------------------------- Signals of the process */

/** Watches for signals while it lives. */
typedef struct pace_signals_t pace_signals_t;

/** Called on the pool with the number of a signal. */
typedef void (*pace_signal_fn)(void *user_data, int32_t signal);

/**
 * Blocks `count` signals (numbers as SIGTERM) in the calling thread, and from then on calls `on_signal` on
 * the pool with each that is sent to the process. Signals of one number that come before it is called are
 * one, as ever. Call it in the main thread before others are started, as these inherit what it blocks. A thread that
 * does not block a signal would get it as if this were not here, which ends the process by default. The pool's own
 * threads block all that matter. Two of these should not share a signal: each of them is told to one.
 *
 * PACE_EINVAL for a number that is no signal, cannot be blocked (KILL, STOP) or is a thread's own fault
 * (SEGV and its like), if there is none, and if another thread does not block one of them: its id and name are in
 * pace_last_error(); PACE_ESHUTDOWN; PACE_EFULL when all max_handles of the pool
 * are in use; PACE_EOS.
 *
 * Threads: any. In handlers: yes, but it would block them in a thread of the pool, which does so already.
 */
pace_status_t pace_signals_new(pace_pool_t *pool,
                               const int32_t *numbers,
                               size_t count,
                               pace_signal_fn on_signal,
                               void *user_data,
                               pace_drop_fn drop,
                               pace_signals_t **signals);

/**
 * SIGTERM and SIGINT begin to shut the pool down: from then on it refuses work from outside, and runs what
 * it has accepted for up to `drain_for_ns`. Whoever wants to know how it went calls pace_signals_wait(), and
 * then pace_pool_shutdown() too.
 *
 * As pace_signals_new().
 *
 * Threads: any. In handlers: as there.
 */
pace_status_t pace_signals_shut_down(pace_pool_t *pool,
                                     uint64_t drain_for_ns,
                                     pace_signals_t **signals);

/**
 * Waits for a signal whose handler has run and that nobody has waited for; the lowest, if several have
 * come.
 *
 * PACE_ESHUTDOWN: the pool has ended; PACE_EDEADLOCK on a thread of the pool, which it would hold up.
 *
 * Threads: any but the pool's own. In handlers: no.
 */
pace_status_t pace_signals_wait(pace_signals_t *signals,
                                int32_t *signal);

/**
 * Watches no more. The signals stay blocked, so that one that comes late does not end the process. It waits until no
 * call runs and `drop` has run. NULL: nothing.
 *
 * Threads: any, as long as no other uses it any more. In handlers, and on threads of the pool: yes, it never waits
 * there.
 */
void pace_signals_free(pace_signals_t *signals);

/* ----------------------------------------------------------------------- Host threads: joining */

/**
 * Makes the calling thread a member of the pool for `time_ns`: it leads, follows and runs handlers as
 * the pool's own threads do. With a time of 0 it runs what is ready, and returns; PACE_FOREVER lasts
 * until the pool shuts down. *ran says how many handlers and tasks it has run; `ran` may be NULL.
 *
 * PACE_EFULL when max_joined threads are here already, PACE_EINVAL inside a handler, PACE_ESHUTDOWN.
 *
 * Threads: any but the pool's own. In handlers: no.
 */
pace_status_t pace_pool_join(pace_pool_t *pool,
                             uint64_t time_ns,
                             uint64_t *ran);

/**
 * A descriptor that becomes readable when there is something to do, for hosts that wait in a loop of
 * their own and then call pace_pool_join(pool, 0, NULL) or pace_pool_pull() with a time of 0. For a
 * pool of no threads and one handle set. It belongs to the pool: never read, write or close it.
 *
 * PACE_EINVAL if the pool has threads of its own, or no descriptors; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_pollable(pace_pool_t *pool,
                                 int32_t *fd);

/* -------------------------------------------------------- Host threads: pulling events as data */

/** A descriptor is ready: `ready` says for what. */
#define PACE_EVENT_READY 0

/** A periodic timer is due. */
#define PACE_EVENT_TICK 1

/** A one-shot timer is due. */
#define PACE_EVENT_TIMER 2

/** A token was posted. */
#define PACE_EVENT_TASK 3

/** One event as data. */
typedef struct pace_event_t {
    /** PACE_EVENT_. */
    uint32_t kind;
    /** PACE_READY_ bits, for PACE_EVENT_READY. */
    uint32_t ready;
    /** What was given at the registration. */
    uint64_t token;
    /** The handle that is held until the event is completed; 0 for timers that run once and tasks. */
    pace_handle_t handle;
} pace_event_t;

/**
 * As pace_pool_register(), for a host that pulls: there is no handler, and `token` comes out of
 * pace_pool_pull() whenever `fd` is ready. The handle's next event comes after this one was
 * completed. An edge-triggered descriptor must have been read until EAGAIN before that.
 *
 * PACE_EINVAL, PACE_EOS, PACE_EFULL, PACE_ESHUTDOWN, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pull_register(pace_pool_t *pool,
                                 int32_t fd,
                                 const pace_handle_options_t *options,
                                 uint64_t token,
                                 pace_handle_t *handle);

/**
 * As pace_pool_every(), for a host that pulls. Ticks that come while one is held are skipped.
 *
 * PACE_EINVAL, PACE_EFULL, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pull_every(pace_pool_t *pool,
                              uint64_t period_ns,
                              uint64_t token,
                              pace_handle_t *handle);

/**
 * As pace_pool_after(), for a host that pulls. `timer` may be NULL.
 *
 * PACE_EINVAL, PACE_EFULL, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pull_after(pace_pool_t *pool,
                              uint64_t delay_ns,
                              uint64_t token,
                              pace_timer_t *timer);

/**
 * Hands a token to whoever pulls next. Never waits. As many as a lane has room for may lie there; in
 * the books they count as tasks.
 *
 * PACE_EFULL, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pull_post(pace_pool_t *pool,
                             uint64_t token);

/**
 * Hands `count` tokens over, in order. *accepted says how many, also for PACE_EFULL and
 * PACE_ESHUTDOWN.
 *
 * PACE_EFULL, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pull_post_batch(pace_pool_t *pool,
                                   const uint64_t *tokens,
                                   size_t count,
                                   size_t *accepted);

/**
 * Waits for up to `timeout_ns` for events, and takes up to `capacity` of them. PACE_OK: *count is 1 or
 * more. What this thread pulled before is completed first, as by PACE_FLOW_WAIT. In a pool without
 * threads the caller takes part meanwhile, as in pace_pool_join(): it leads, follows, and runs
 * whatever has a handler.
 *
 * PACE_ETIMEDOUT: nothing came; PACE_ESHUTDOWN: the pool has stopped, and nothing is left; PACE_EFULL
 * when max_joined threads are here already; PACE_EINVAL for a capacity of 0, or inside a handler.
 *
 * Threads: any but the pool's own. In handlers: no.
 */
pace_status_t pace_pool_pull(pace_pool_t *pool,
                             pace_event_t *events,
                             size_t capacity,
                             uint64_t timeout_ns,
                             size_t *count);

/**
 * Completes one event early, from any thread, with an answer as a handler's: PACE_FLOW_AGAIN makes it
 * come again after others, PACE_FLOW_DONE deregisters. The thread that pulled it may go on pulling.
 *
 * PACE_ESTALE: no event of this handle is held; PACE_EINVAL: `flow` is no PACE_FLOW_ number.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pull_complete(pace_pool_t *pool,
                                 pace_handle_t handle,
                                 int32_t flow);

/**
 * Completes what this thread has pulled, as its next pace_pool_pull() would. A drain of the pool does not wait for
 * another pull of this thread from now on, as it does otherwise until the thread ends.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pull_done(pace_pool_t *pool);

/* -------------------------------------------------- Connections: hooks, and what they may call */

/*
 * How to answer later. A hook that cannot answer at once admits the request by pace_conn_admit(), notes the connection's
 * name by pace_conn_id(), and returns. Any thread then writes the answer by pace_server_conn_write(), and ends the
 * request by pace_admission_answered(). While a request is in work its connection is not idle, it is not closed when its
 * peer finishes, and a drain waits for it. Without the admission the connection may be closed before the answer comes:
 * when its idle_timeout_ns is over, its peer has finished, or the server drains; the write then gives PACE_ESTALE. To
 * take a name alone admits nothing: many names are taken to push to a connection at any time, as to a subscriber, and
 * nobody could tell when such a request had ended.
 */

/** The peer had finished, and everything was sent. */
#define PACE_REASON_PEER 0

/** It was closed here, and everything was sent. */
#define PACE_REASON_LOCAL 1

/** It was aborted: what was queued is lost. */
#define PACE_REASON_ABORTED 2

/** The open hook did not want it. */
#define PACE_REASON_REFUSED 3

/** A time was over: the detail is a PACE_TIMEOUT_ number. */
#define PACE_REASON_TIMED_OUT 4

/** The socket failed: the detail is an errno. */
#define PACE_REASON_FAILED 5

/** More than max_unconsumed bytes were not consumed. */
#define PACE_REASON_UNCONSUMED 6

/** A hook failed: by pace_conn_fail(), or by an answer that is none. */
#define PACE_REASON_PANICKED 7

/** The server drained, and everything was sent. */
#define PACE_REASON_DRAINED 8

/** The drain's time was over, or the server was freed: what was queued is lost. */
#define PACE_REASON_CUT_OFF 9

/** The pool has shut down, or had no room for it. */
#define PACE_REASON_POOL_ENDED 10

/** An outgoing connection was not made. */
#define PACE_TIMEOUT_CONNECT 0

/** Nothing was sent or received. */
#define PACE_TIMEOUT_IDLE 1

/** A part of a message waits for its rest. */
#define PACE_TIMEOUT_READ 2

/** The peer takes nothing of what is queued for it. */
#define PACE_TIMEOUT_STALL 3

/** The one that was set by pace_conn_set_deadline(). */
#define PACE_TIMEOUT_DEADLINE 4

/** All of it is with the kernel. */
#define PACE_WRITE_STATUS_SENT 0

/** Some waits in the queue. Inside a hook it always does: it is tried when the hook returns. */
#define PACE_WRITE_STATUS_QUEUED 1

/**
 * The same, and the queue is above its high mark: nothing is read from this connection before it has
 * fallen to the low mark. Whoever can should write no more until the hook `writable`.
 */
#define PACE_WRITE_STATUS_ABOVE_HIGH_MARK 2

/**
 * None of it: an answer of HTTP whose body is not sent (to HEAD, or with the status 204, 205 or 304).
 * All that follows would be dropped, too, so there is nothing more to produce.
 */
#define PACE_WRITE_STATUS_UNWANTED 3

/** From the hook `open`: the connection is wanted. */
#define PACE_ACCEPT_YES 0

/** From the hook `open`: it is not. It is sent what the hook has written, and closed. */
#define PACE_ACCEPT_REFUSE 1

/** From the hook `timeout`: close at once, with PACE_REASON_TIMED_OUT. */
#define PACE_TIMEOUT_ACTION_CLOSE 0

/**
 * From the hook `timeout`: go on; the time begins anew, but a deadline is unset. Also the answer of a
 * hook that has called pace_conn_close() to send a last message.
 */
#define PACE_TIMEOUT_ACTION_KEEP 1

/** As many bytes hold the text of every address, with its NUL. */
#define PACE_ADDRESS_SIZE 512

/** A request in work; see pace_conn_admit(). */
typedef struct pace_admission_t pace_admission_t;

/**
 * A connection inside one of its hooks: good for that call only, and on that thread. What is written
 * by it is gathered, and sent when the hook returns, at 64 KiB, or by pace_conn_flush().
 */
typedef struct pace_conn_t pace_conn_t;

/**
 * The hook `open`: the connection is there. Called once, before all others but `close`. Answers with
 * a PACE_ACCEPT_ number; any other counts as a failure of the hook. Without one all are wanted.
 */
typedef int32_t (*pace_conn_open_fn)(void *user_data, pace_conn_t *conn);

/**
 * The hook `data`: bytes have arrived. Answers how many of them it has consumed, from the front: it
 * should take all that it can. The rest is shown again, followed by more, when more has come (or when
 * reading goes on after a pause or after output has drained). It grows up to max_unconsumed. More
 * than `size` counts as a failure of the hook.
 *
 * Nothing is read, and this is not called, while the output is above its high mark (PACE_WRITE_STATUS_ABOVE_HIGH_MARK),
 * after pace_conn_pause(), and after pace_conn_close().
 */
typedef size_t (*pace_conn_data_fn)(void *user_data,
                                    pace_conn_t *conn,
                                    const void *bytes,
                                    size_t size);

/** Hooks that are told only that something has happened; what, is said at the field. */
typedef void (*pace_conn_fn)(void *user_data, pace_conn_t *conn);

/**
 * The hook `written`: all bytes up to and including a pace_conn_write_tracked() with this token have
 * been given to the kernel. Not called for bytes that were lost with the connection.
 */
typedef void (*pace_conn_written_fn)(void *user_data, pace_conn_t *conn, uint64_t token);

/**
 * The hook `timeout`: a time is over, PACE_TIMEOUT_. Answers with a PACE_TIMEOUT_ACTION_ number; any other
 * counts as a failure of the hook. Without one the connection is closed.
 */
typedef int32_t (*pace_conn_timeout_fn)(void *user_data, pace_conn_t *conn, uint32_t kind);

/**
 * The hook `error`: the socket failed; `close` follows. `os_error` is the errno of that kind of
 * failure, EIO for those that have none of their own.
 */
typedef void (*pace_conn_error_fn)(void *user_data, pace_conn_t *conn, int32_t os_error);

/**
 * The hook `close`: the end, exactly once, and the last call with this user_data: the place to free
 * it. An outgoing connection that could not be made comes here without `open`. `detail` is a
 * PACE_TIMEOUT_ number for PACE_REASON_TIMED_OUT, an errno for PACE_REASON_FAILED, else 0.
 */
typedef void (*pace_conn_close_fn)(void *user_data,
                                   pace_conn_t *conn,
                                   uint32_t reason,
                                   int32_t detail);

/**
 * What a connection does. The hooks of one connection never run on two threads at once; different
 * connections run in parallel. They run on threads of the pool, and should not block (or call
 * pace_promote_new_leader() before). All but `data` may be NULL. Call pace_conn_hooks_init() first.
 */
typedef struct pace_conn_hooks_t {
    /** Set by pace_conn_hooks_init(). */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** The connection is there. NULL: it is wanted. */
    pace_conn_open_fn open;
    /** Bytes have arrived. Not NULL. */
    pace_conn_data_fn data;
    /**
     * The peer sends no more; it may still read. Afterwards the connection is closed by itself, with a hook and
     * without one, when its admitted requests have ended and everything is sent: so a hook that answers later
     * admits the request, by pace_conn_admit(). What was not consumed is dropped. With allow_half_open of
     * pace_listener_options_t nothing is closed by itself, and this or other code of yours closes it.
     */
    pace_conn_fn finished;
    /** The output was above its high mark, and has fallen to the low mark. */
    pace_conn_fn writable;
    /** Tracked bytes are with the kernel. */
    pace_conn_written_fn written;
    /** A time is over. NULL: close at once. */
    pace_conn_timeout_fn timeout;
    /**
     * pace_server_conn_notify() was called, once or more since this was last called. Afterwards what
     * was not consumed is shown again. What was written or published before the call can be seen.
     */
    pace_conn_fn notified;
    /**
     * The server drains: this connection is closed as soon as all that has arrived is consumed, no
     * admitted request is in work, and everything is sent.
     */
    pace_conn_fn draining;
    /** The socket failed. */
    pace_conn_error_fn error;
    /** The end. */
    pace_conn_close_fn close;
    /** What the hooks of a connection are given until pace_conn_set_user_data(). */
    void *user_data;
    /**
     * Runs once with `user_data`, after the last call of these hooks: when the server was freed and
     * its connections have ended, or the connection that was made with them. NULL: nothing.
     */
    pace_drop_fn drop;
} pace_conn_hooks_t;

/** One of several pieces that are written as one. */
typedef struct pace_piece_t {
    /** May be NULL if `size` is 0. */
    const void *bytes;
    /** How many. */
    size_t size;
} pace_piece_t;

/**
 * Fills hooks with NULL: pace_conn_hooks_init(&hooks, sizeof hooks).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_conn_hooks_init(pace_conn_hooks_t *hooks, size_t size);

/**
 * Writes, in order, without waiting. *wrote is PACE_WRITE_STATUS_QUEUED or PACE_WRITE_STATUS_ABOVE_HIGH_MARK;
 * `wrote` may be NULL.
 *
 * PACE_ESTALE after pace_conn_close() or pace_conn_shutdown_write(), and if the peer is gone;
 * PACE_EFULL if the queue would exceed its maximum: none of it was taken.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_write(pace_conn_t *conn,
                              const void *bytes,
                              size_t size,
                              uint32_t *wrote);

/**
 * Writes all `count` pieces as one. Otherwise as pace_conn_write().
 *
 * PACE_ESTALE, PACE_EFULL as there.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_write_vectored(pace_conn_t *conn,
                                       const pace_piece_t *pieces,
                                       size_t count,
                                       uint32_t *wrote);

/**
 * Writes without copying, for large buffers. `drop` is called once with `user_data` when the bytes are
 * not needed any more, since they were sent or never will be: perhaps before this returns, on
 * whatever thread that is. It may call what a handler may. If this fails nothing has moved: `drop` does
 * not run. `drop` may be NULL, for bytes that live for ever. Otherwise as pace_conn_write().
 *
 * PACE_ESTALE, PACE_EFULL as there.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_write_owned(pace_conn_t *conn,
                                    const void *bytes,
                                    size_t size,
                                    void *user_data,
                                    pace_drop_fn drop,
                                    uint32_t *wrote);

/**
 * Writes, and has the hook `written` called with `token` when all of it, and all before it, has been
 * given to the kernel. Otherwise as pace_conn_write().
 *
 * PACE_ESTALE, PACE_EFULL as there.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_write_tracked(pace_conn_t *conn,
                                      const void *bytes,
                                      size_t size,
                                      uint64_t token,
                                      uint32_t *wrote);

/**
 * Sends what was gathered now, before a long computation for example.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_flush(pace_conn_t *conn);

/**
 * After what is queued, tells the peer that no more is sent. Reading goes on.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_shutdown_write(pace_conn_t *conn);

/**
 * Closes after what is queued has been sent. Nothing more is read, and `data` is not called any more.
 * The peer is told the end, and may take `linger` to answer with its own.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_close(pace_conn_t *conn);

/**
 * Closes at once. What is queued is lost; a TCP peer sees a reset.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_abort(pace_conn_t *conn);

/**
 * Reads no more, and calls `data` no more, before a resume. What the peer has sent is not lost meanwhile,
 * and that it has ended, or was reset, is seen behind that, or by a write that fails.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_pause(pace_conn_t *conn);

/**
 * Ends a pause. What was not consumed is shown again.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_resume(pace_conn_t *conn);

/**
 * Has the hook `timeout` called with PACE_TIMEOUT_DEADLINE when this time is over, in place of what was
 * set before; PACE_FOREVER: not at all. A connection has one deadline, which is unset when it comes. To
 * put it off costs no operation of a timer.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_set_deadline(pace_conn_t *conn,
                                     uint64_t time_ns);

/**
 * Says that this hook has failed. When it returns, the connection is closed with
 * PACE_REASON_PANICKED, and the failure counted. For languages whose exceptions must not leave a hook.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_fail(pace_conn_t *conn);

/**
 * What the hooks of this connection are given from the next call on. The one before is still the
 * caller's; `drop` of the hooks runs for the one that they came with. Free it in the hook `close`.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_set_user_data(pace_conn_t *conn, void *user_data);

/**
 * Begins a request that is answered later, by any thread. It counts as in work until it was answered or freed.
 * Meanwhile the idle timeout does not run, and neither a drain nor a peer that has finished closes the connection.
 *
 * PACE_EFULL: as many are in work as max_requests allows; the server's busy message has been written
 * instead.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_admit(pace_conn_t *conn,
                              pace_admission_t **admission);

/**
 * Ends a request, and frees its admission: it was answered, by what has been written before. If the
 * connection has ended meanwhile it counts as aborted.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_admission_answered(pace_admission_t *admission);

/**
 * Ends a request, and frees its admission: it was not answered, and counts as aborted. NULL is a
 * no-op. In a forked child it does nothing.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_admission_free(pace_admission_t *admission);

/**
 * Its name, for other threads and for later.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_id(pace_conn_t *conn, pace_conn_id_t *id);

/**
 * The other end, as text that pace_listener_options_t.address could be: in `size` bytes at `text`,
 * with a NUL. PACE_ADDRESS_SIZE is enough for every address.
 *
 * PACE_EINVAL if `size` is not enough.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_peer(pace_conn_t *conn, char *text, size_t size);

/**
 * This end. Otherwise as pace_conn_peer().
 *
 * PACE_EINVAL as there; PACE_ESTALE in the hook `close`.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_local(pace_conn_t *conn, char *text, size_t size);

/**
 * Whether it was made by pace_server_connect().
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_is_outgoing(pace_conn_t *conn, bool *is_outgoing);

/**
 * Whether its server drains.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_is_draining(pace_conn_t *conn, bool *is_draining);

/**
 * How many bytes wait to be sent.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_queued(pace_conn_t *conn, size_t *queued);

/* ----------------------------------------------------- Filters: between a socket and its hooks */

/** From `received`: plain bytes may still come. */
#define PACE_FILTER_READ_OPEN 0

/** From `received`: the peer has said that it sends no more; the hook `finished` follows. */
#define PACE_FILTER_READ_ENDED 1

/** Where a hook of a filter puts bytes: good for that call only, and on that thread. */
typedef struct pace_sink_t pace_sink_t;

/**
 * Makes the filter of a connection that was accepted. `conn` tells its addresses and its id; nothing
 * may be written, and nothing ended. *filter, NULL beforehand, is what the other hooks are called with.
 * Answers 0; an errno ends the connection with PACE_REASON_FAILED, and nothing of the filter is called.
 */
typedef int32_t (*pace_filter_make_fn)(void *user_data, pace_conn_t *conn, void **filter);

/**
 * These bytes have come. What the hook `data` is to see goes to `plain`, and what the peer is to be
 * answered to `wire` (a handshake, say). It takes all of them, and keeps what it cannot turn yet.
 * Answers with a PACE_FILTER_READ_ number; any other, a negative errno as a rule, ends the connection with
 * PACE_REASON_FAILED, when what is in `plain` was shown and what is in `wire` was tried.
 */
typedef int32_t (*pace_filter_received_fn)(void *filter,
                                           const void *bytes,
                                           size_t size,
                                           pace_sink_t *plain,
                                           pace_sink_t *wire);

/**
 * These bytes were written. What is to leave goes to `wire`; what cannot be turned yet it keeps, and
 * gives out in `received`. What it still keeps when the connection closes is lost. Answers 0; anything
 * else is a failure of the connection.
 */
typedef int32_t (*pace_filter_written_fn)(void *filter,
                                          const void *bytes,
                                          size_t size,
                                          pace_sink_t *wire);

/** Nothing more will be written: its last words to the peer. Called once at most. */
typedef void (*pace_filter_finish_fn)(void *filter, pace_sink_t *wire);

/**
 * The socket has ended though `received` did not say PACE_FILTER_READ_ENDED. Answers 0 if peers may end like
 * that; anything else, a negative errno as a rule, is a failure of the connection, and the hook
 * `finished` is not called.
 */
typedef int32_t (*pace_filter_cut_off_fn)(void *filter);

/** The last call for a filter, exactly once. */
typedef void (*pace_filter_free_fn)(void *filter);

/**
 * What turns the bytes of a listener's connections, both ways: see pace_listener_options_t.filter. Hooks
 * of connections, those of HTTP too, and whoever writes see plain bytes; marks and maxima of the output
 * count what leaves.
 *
 * The hooks of one filter never run on two threads at once. They run under a lock of the connection,
 * on whatever thread writes or reads: they must neither block nor use the connection. All but `make`,
 * `received` and `written` may be NULL. Call pace_filter_hooks_init() first.
 */
typedef struct pace_filter_hooks_t {
    /** Set by pace_filter_hooks_init(). */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Makes one. Not NULL. */
    pace_filter_make_fn make;
    /** Bytes have come. Not NULL. */
    pace_filter_received_fn received;
    /** Bytes were written. Not NULL. */
    pace_filter_written_fn written;
    /** Nothing more will be written. NULL: it has no last words. */
    pace_filter_finish_fn finish;
    /** The socket has ended. NULL: peers may end like that. */
    pace_filter_cut_off_fn cut_off;
    /** The filter is not needed any more. NULL: nothing. */
    pace_filter_free_fn free;
    /** What `make` is given, good until `drop` runs. */
    void *user_data;
    /**
     * Called once with user_data, for each listener with these hooks, when the listener and all filters
     * that it made are gone: no hook is called any more. If the server does not start it is not called,
     * and no hook was. NULL: nothing; the end of the server and its connections tells, too, as the `drop`
     * of their hooks or routes does.
     */
    pace_drop_fn drop;
} pace_filter_hooks_t;

/**
 * Fills hooks with NULL: pace_filter_hooks_init(&hooks, sizeof hooks).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_filter_hooks_init(pace_filter_hooks_t *hooks, size_t size);

/**
 * Puts bytes behind those that are there.
 *
 * Threads: the hook's. In handlers: in the filter's hook that was given the sink; it never waits.
 */
pace_status_t pace_sink_append(pace_sink_t *sink, const void *bytes, size_t size);

/* ------------------------------------- Listeners: where, and the settings of their connections */

/** A place to listen at, and the settings of its connections. Call pace_listener_options_init() first. */
typedef struct pace_listener_options_t {
    /** Set by pace_listener_options_init(). */
    uint32_t struct_size;
    /**
     * A socket that listens already, opened by a parent or a supervisor. It stays the caller's, who
     * may close it at once. What is settled when a socket is opened stays as it is: backlog, v6_only
     * and reuse_port. Default −1: the address is used.
     */
    int32_t fd;
    /**
     * "127.0.0.1:80", "[::1]:80", "*:80" (all of IPv6 and IPv4), "unix:/run/socket", or "unix:@name"
     * in the abstract namespace. Port 0 is a free port, which pace_server_address() tells. The file
     * of a Unix socket is made, replaced if nobody listens there any more (which is not for two
     * servers to try at the same moment), and removed at the end, if it is still this one.
     */
    const char *address;
    /** Connections at once, 1 to 2^24; more are sent the refusal and closed. Default 2^20. */
    uint64_t max_connections;
    /** What connections beyond the maximum are sent. NULL: nothing. */
    const void *refusal;
    /** Its size, up to 65536. */
    size_t refusal_size;
    /**
     * Admitted requests at once over all connections, at least 1; see pace_conn_admit(). Default
     * PACE_UNLIMITED: no limit.
     */
    uint64_t max_requests;
    /** What a request beyond the maximum is answered with. NULL: nothing. */
    const void *busy;
    /** Its size, up to 65536. */
    size_t busy_size;
    /**
     * Bytes that a hook may leave unconsumed, at least 1. With more its connection is closed. Default
     * 2^20. A hook sees up to 65536 beyond it once.
     */
    uint64_t max_unconsumed;
    /**
     * Marks of the output queue, in bytes: low < high <= max. Above high reading of that connection
     * pauses until it has fallen to low. Default 65536.
     */
    uint64_t output_low;
    /** Default 262144. */
    uint64_t output_high;
    /** A write that would exceed this is refused. Default 2^24. */
    uint64_t output_max;
    /**
     * A connection on which nothing was sent or received for so long, at least 1 ms, and with no
     * request in work, has timed out. If only other threads write to it, it may take twice as long.
     * Default PACE_FOREVER: no limit. A hook that answers later has to admit the request, by pace_conn_admit(): otherwise
     * this time runs while the answer is worked on, and the connection may be closed before it is written.
     */
    uint64_t idle_timeout_ns;
    /**
     * The rest of a message of which a part was not consumed must come within this, at least 1 ms,
     * however much of it comes meanwhile. Default PACE_FOREVER: no limit.
     */
    uint64_t read_timeout_ns;
    /**
     * A peer that takes nothing of what is queued for it for so long, at least 1 ms, has stalled.
     * Default 30 s.
     */
    uint64_t stall_timeout_ns;
    /**
     * How long a peer that was told the end may take to end too; what it sends meanwhile is dropped.
     * Without it, closing can destroy what was just sent. Default 2 s; 0: none.
     */
    uint64_t linger_ns;
    /**
     * TCP asks silent peers whether they are there, first after this time: 1 s to 32767 s, in whole
     * seconds, to which it is rounded up. Default 0: it does not.
     */
    uint64_t keep_alive_ns;
    /**
     * Bytes that the kernel buffers for sending, up to 2^30 (it doubles them). Default 0: the
     * system's.
     */
    uint64_t send_buffer;
    /** The same for receiving. */
    uint64_t receive_buffer;
    /**
     * Mode of the file of a Unix socket, up to 0777; who connects needs to be allowed to write.
     * PACE_DEFAULT: 0777 less the process's umask.
     */
    uint32_t socket_mode;
    /**
     * Connections that may wait to be accepted, 1 to 2^20; the kernel has a limit of its own
     * (net.core.somaxconn). Default 4096.
     */
    uint32_t backlog;
    /** TCP sends small writes at once. Default. */
    bool no_delay;
    /** An IPv6 listener takes no IPv4. Default: "[::]" takes both. */
    bool v6_only;
    /** Several processes may listen on the same port; the kernel deals connections out. Default: no. */
    bool reuse_port;
    /**
     * What happens when the peer has finished: it sends no more, and may still read. By default (false) such a
     * connection is closed by itself, when its admitted requests have ended and everything is sent. With true it
     * stays open until its hooks close it: for protocols in which one direction ends before the other, as with a
     * proxy.
     */
    bool allow_half_open;
    /** Zero. */
    uint8_t reserved[4];
    /**
     * What turns the bytes of connections that are accepted here, TLS as a rule. What it points to is
     * copied. NULL: nothing. Outgoing connections have none.
     */
    const pace_filter_hooks_t *filter;
} pace_listener_options_t;

/**
 * Fills options with the defaults: pace_listener_options_init(&listener, sizeof listener). Set
 * `address` or `fd` then.
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_listener_options_init(pace_listener_options_t *options, size_t size);

/* -------------------------------------------------------- Sockets that a supervisor has opened */

/** As many bytes hold the name of every inherited socket, with its NUL. */
#define PACE_INHERITED_NAME_SIZE 256

/** A socket from a supervisor. */
typedef struct pace_inherited_t {
    /**
     * The socket. It is the caller's, who closes it: when the server that listens on it was made
     * (pace_listener_options_t.fd), or the datagram socket that it was made into
     * (pace_udp_options_t.fd), or later.
     */
    int32_t fd;
    /** What the supervisor calls it: the unit, or its FileDescriptorName=; "unknown" if it has no name. */
    char name[PACE_INHERITED_NAME_SIZE];
} pace_inherited_t;

/**
 * Takes up to `capacity` of the sockets that systemd, or whoever speaks its protocol (LISTEN_PID,
 * LISTEN_FDS, LISTEN_FDNAMES; see sd_listen_fds(3)), has passed to this process, in their order. *count
 * is how many; 0 when none are left, if there were none, or if they were meant for another process. A
 * socket is given once. They are set not to be inherited further. `sockets` may be NULL if `capacity`
 * is 0. Call it early, while nobody in this process could have closed them.
 *
 * PACE_EINVAL names the variable that makes no sense; PACE_EOS names a descriptor that is not open, or
 * no socket: then none was taken.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_inherited_take(pace_inherited_t *sockets,
                                  size_t capacity,
                                  size_t *count);

/* ---------------------------------------------------------- Servers: listeners and connections */

/** Listeners and connections on a pool. */
typedef struct pace_server_t pace_server_t;

/**
 * Called once each time that accepting pauses because descriptors or memory have run out, or the socket
 * accepts no more (whoever shares it may have shut it down), with what to log. It is tried again every
 * 50 ms.
 */
typedef void (*pace_exhausted_fn)(void *user_data, const char *message);

/** Settings of a server. Call pace_server_options_init() first. */
typedef struct pace_server_options_t {
    /** Set by pace_server_options_init(). */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Where to listen: an array of structs of one size. */
    const pace_listener_options_t *listeners;
    /** How many. Default 0: such a server only connects. */
    size_t listener_count;
    /**
     * Settings of outgoing connections, and of no listener: max_connections of them at once, and what
     * else is about connections. Its address and fd are not looked at; what is about accepting (refusal,
     * backlog, socket_mode, v6_only, reuse_port, filter) must have its default. NULL: the defaults.
     */
    const pace_listener_options_t *outgoing;
    /** An outgoing connection must be made within this, at least 1 ms. Default 10 s. */
    uint64_t connect_timeout_ns;
    /** Called with the user_data of the server's hooks. NULL: nothing. */
    pace_exhausted_fn on_exhausted;
} pace_server_options_t;

/** How a drain went. Set struct_size to sizeof the struct before the call. */
typedef struct pace_drain_report_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Everything ended within the time; nothing was cut off. */
    bool drained;
    /** It was called inside a handler, so it was only a request. */
    bool requested;
    /** Zero. */
    uint8_t reserved[2];
    /** Connections that have been cut off. */
    uint64_t cut_off;
    /** Connections that are open still. */
    uint64_t open;
} pace_drain_report_t;

/** What a server has done so far. The counts add up exactly while no connection begins or ends. Set struct_size to sizeof the struct before the call. */
typedef struct pace_server_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Whether everything that began has ended or is open. */
    bool balances;
    /** Zero. */
    uint8_t reserved[3];
    /** Connections that came and were let in. */
    uint64_t accepted;
    /** Connections that were begun by pace_server_connect(). */
    uint64_t connected;
    /** Connections beyond the maximum; not counted as accepted. */
    uint64_t turned_away;
    /** Connections whose sockets are open. */
    uint64_t open;
    /** Connections that have ended with PACE_REASON_PEER. */
    uint64_t closed_peer;
    /** PACE_REASON_LOCAL. */
    uint64_t closed_local;
    /** PACE_REASON_ABORTED. */
    uint64_t closed_aborted;
    /** PACE_REASON_REFUSED. */
    uint64_t closed_refused;
    /** PACE_REASON_TIMED_OUT. */
    uint64_t closed_timed_out;
    /** PACE_REASON_FAILED. */
    uint64_t closed_failed;
    /** PACE_REASON_UNCONSUMED. */
    uint64_t closed_unconsumed;
    /** PACE_REASON_PANICKED. */
    uint64_t closed_panicked;
    /** PACE_REASON_DRAINED. */
    uint64_t closed_drained;
    /** PACE_REASON_CUT_OFF. */
    uint64_t closed_cut_off;
    /** PACE_REASON_POOL_ENDED. */
    uint64_t closed_pool_ended;
    /** Hooks `close` that have failed, after whatever reason. */
    uint64_t panics_in_close;
    /** Times that accepting paused for want of descriptors or memory, or since the socket accepted no more. */
    uint64_t exhausted;
    /** Requests admitted. */
    uint64_t requests;
    /** Requests that were answered. */
    uint64_t answered;
    /** Requests that were dropped, or whose connection had ended. */
    uint64_t requests_aborted;
    /** Requests beyond the maximum; not counted as admitted. */
    uint64_t busy;
    /** Requests admitted and not ended. */
    uint64_t in_work;
} pace_server_stats_t;

/**
 * Fills options with the defaults: pace_server_options_init(&options, sizeof options).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_options_init(pace_server_options_t *options, size_t size);

/**
 * Starts a server: its connections get `hooks`. `options` and all that they point to are copied;
 * NULL means a server that only connects. If one listener fails, none is left, and no hook was called.
 *
 * PACE_EINVAL names the setting, its value and its bounds; PACE_EOS names the address that could not
 * be listened on, and the reason; PACE_EFULL when all max_handles are in use; PACE_ESHUTDOWN;
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes.
 */
pace_status_t pace_server_new(pace_pool_t *pool,
                              const pace_server_options_t *options,
                              const pace_conn_hooks_t *hooks,
                              pace_server_t **server);

/**
 * Where it listens, as text: with an `index` in the order of its listeners, and the port that it got.
 * It lies in `size` bytes at `text`, with a NUL. PACE_ADDRESS_SIZE is enough for every address.
 *
 * PACE_EINVAL if `size` is not enough, or there is no such listener.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_address(pace_server_t *server,
                                  size_t index,
                                  char *text,
                                  size_t size);

/**
 * Connects, with hooks of its own, to an address as in pace_listener_options_t. It returns at once;
 * the hook `open` comes when the connection is there, or else `close`. What is written before is sent
 * then. *conn is its name, or 0 if it has ended already.
 *
 * PACE_EINVAL for an address that is none, or no `hooks`; PACE_EOS if the attempt failed at once;
 * PACE_EFULL when as many outgoing connections are open as may be, or the pool has no room;
 * PACE_ESHUTDOWN if the server drains; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_connect(pace_server_t *server,
                                  const char *address,
                                  const pace_conn_hooks_t *hooks,
                                  pace_conn_id_t *conn);

/**
 * Waits until the server has drained, or its pool has shut down.
 *
 * PACE_EDEADLOCK on a thread of its pool.
 *
 * Threads: any but the pool's. In handlers: no.
 */
pace_status_t pace_server_wait(pace_server_t *server);

/**
 * Stops accepting, after those that wait already; lets every connection answer what has arrived, and
 * closes it when its admitted requests have ended and everything is sent. What is not through after
 * `time_ns` is cut off. `report` may be NULL.
 *
 * It returns when all sockets are closed, or 1 s after `time_ns` at the latest. Inside a handler of
 * the pool it is only a request, and returns at once.
 *
 * PACE_EVERSION: report->struct_size was not set.
 *
 * Threads: any. In handlers: yes, as a request.
 */
pace_status_t pace_server_drain(pace_server_t *server,
                                uint64_t time_ns,
                                pace_drain_report_t *report);

/**
 * The books.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_stats(pace_server_t *server, pace_server_stats_t *stats);

/**
 * The books of one listener: `index` as for pace_server_address(). Nothing is connected there.
 *
 * PACE_EINVAL for another `index`; PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_listener_stats(pace_server_t *server,
                                         size_t index,
                                         pace_server_stats_t *stats);

/**
 * Stops at once: listeners end, and connections are cut off. It waits for nothing, and the server is
 * still there. pace_server_drain() first for an orderly end.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_cut_off(pace_server_t *server);

/**
 * Stops as pace_server_free() does: listeners end, connections are cut off, and it waits for their hooks. The server is
 * still there. pace_server_drain() first for an orderly end.
 *
 * Threads: any. In handlers, and on threads of the pool: yes, it never waits there.
 */
pace_status_t pace_server_stop(pace_server_t *server);

/**
 * Frees a server: its listeners end, and its connections are cut off. It waits until each of them has had its hook
 * `close`, from a thread of the pool, and no hook runs; `drop` of the hooks runs after the last. It does not wait if
 * pace_server_cut_off() was called before. Call pace_server_drain() first for an orderly end. A server may be
 * freed before or after its pool. NULL is a no-op. In a forked child it does nothing.
 *
 * Threads: any, as long as no other uses the server any more. In handlers, and on threads of the pool: yes, it never
 * waits there.
 */
void pace_server_free(pace_server_t *server);

/* -------------------------------------------------------- Connections, by name from any thread */

/**
 * Writes, in order, without waiting: what the kernel takes is sent at once, the rest is queued.
 * *wrote is a PACE_WRITE_STATUS_ number; `wrote` may be NULL.
 *
 * PACE_ESTALE if the connection has ended, is to be closed, or its peer is gone; PACE_EFULL if the
 * queue would exceed its maximum: none of it was taken. An answer whose request was not admitted, by
 * pace_conn_admit(), comes too late if meanwhile the connection's idle time is over, its peer has finished, or the
 * server drains.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_write(pace_server_t *server,
                                     pace_conn_id_t conn,
                                     const void *bytes,
                                     size_t size,
                                     uint32_t *wrote);

/**
 * Writes all `count` pieces as one. Otherwise as pace_server_conn_write().
 *
 * PACE_ESTALE, PACE_EFULL as there.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_write_vectored(pace_server_t *server,
                                              pace_conn_id_t conn,
                                              const pace_piece_t *pieces,
                                              size_t count,
                                              uint32_t *wrote);

/**
 * As pace_conn_write_owned().
 *
 * PACE_ESTALE, PACE_EFULL as for pace_server_conn_write().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_write_owned(pace_server_t *server,
                                           pace_conn_id_t conn,
                                           const void *bytes,
                                           size_t size,
                                           void *user_data,
                                           pace_drop_fn drop,
                                           uint32_t *wrote);

/**
 * As pace_conn_write_tracked(); the hook runs where the connection's hooks run.
 *
 * PACE_ESTALE, PACE_EFULL as for pace_server_conn_write().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_write_tracked(pace_server_t *server,
                                             pace_conn_id_t conn,
                                             const void *bytes,
                                             size_t size,
                                             uint64_t token,
                                             uint32_t *wrote);

/**
 * As pace_conn_shutdown_write().
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_shutdown_write(pace_server_t *server, pace_conn_id_t conn);

/**
 * As pace_conn_close().
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_close(pace_server_t *server, pace_conn_id_t conn);

/**
 * As pace_conn_abort(). The hook `close` follows on a thread of the pool.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_abort(pace_server_t *server, pace_conn_id_t conn);

/**
 * As pace_conn_pause(); a hook that runs now may still be given data once.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_pause(pace_server_t *server, pace_conn_id_t conn);

/**
 * Ends a pause. What was not consumed is shown again.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_resume(pace_server_t *server, pace_conn_id_t conn);

/**
 * Has the hook `notified` of a connection called, soon. Several calls may become one; none is lost,
 * unless the connection ends before.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_notify(pace_server_t *server, pace_conn_id_t conn);

/**
 * Whether a connection has not ended. A name of which nothing is known gives false.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_is_open(pace_server_t *server, pace_conn_id_t conn, bool *is_open);

/**
 * How many bytes wait to be sent.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_queued(pace_server_t *server, pace_conn_id_t conn, size_t *queued);

/**
 * As pace_conn_peer().
 *
 * PACE_EINVAL as there, PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_peer(pace_server_t *server,
                                    pace_conn_id_t conn,
                                    char *text,
                                    size_t size);

/**
 * As pace_conn_local().
 *
 * PACE_EINVAL as there, PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_local(pace_server_t *server,
                                     pace_conn_id_t conn,
                                     char *text,
                                     size_t size);

/* ----------------------------------------------------------- Connections: where a message ends */

/** The first message of some bytes. It points into them. */
typedef struct pace_frame_t {
    /** Without its delimiter or its length. */
    const void *body;
    /** How many bytes the body has. */
    size_t size;
    /** How many bytes the message takes up, with its delimiter or its length: what to consume. */
    size_t length;
} pace_frame_t;

/**
 * Finds the first message that ends with a delimiter of one byte or more; bodies have up to `max`
 * bytes. *searched, 0 in the beginning, is how many bytes hold no delimiter, so that what was searched
 * in vain is not searched again: `bytes` must begin with what gave PACE_EEMPTY before.
 *
 * PACE_EEMPTY: a part of a message, or nothing; more must come. PACE_EFULL: the message is longer than
 * `max`. PACE_EINVAL for an empty delimiter.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_frame_delimited(const void *bytes,
                                   size_t size,
                                   const void *delimiter,
                                   size_t delimiter_size,
                                   size_t max,
                                   size_t *searched,
                                   pace_frame_t *frame);

/**
 * Finds the first message with its length in front: an unsigned number of `width` bytes, 1 to 8, in
 * network order, that does not count itself. Bodies have up to `max` bytes.
 *
 * PACE_EEMPTY, PACE_EFULL as for pace_frame_delimited(); PACE_EINVAL for another width.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_frame_prefixed(const void *bytes,
                                  size_t size,
                                  size_t width,
                                  size_t max,
                                  pace_frame_t *frame);

/**
 * Finds the first of messages that are all of `length` bytes, 1 or more.
 *
 * PACE_EEMPTY as for pace_frame_delimited(); PACE_EINVAL for a length of 0.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_frame_fixed(const void *bytes,
                               size_t size,
                               size_t length,
                               pace_frame_t *frame);

/* ----------------------------------------------------- Servers whose events are pulled as data */

/** The connection is there. It may be refused. */
#define PACE_CONN_EVENT_OPENED 0

/** Bytes have arrived. */
#define PACE_CONN_EVENT_DATA 1

/**
 * The peer sends no more. Afterwards the connection is closed by itself, when its admitted requests have ended and
 * everything is sent, unless allow_half_open of its pace_listener_options_t is set.
 */
#define PACE_CONN_EVENT_FINISHED 2

/** The output pressed, and has fallen to the low mark. */
#define PACE_CONN_EVENT_WRITABLE 3

/** All bytes up to and including a tracked write with this token have been given to the kernel. */
#define PACE_CONN_EVENT_WRITTEN 4

/** A time is over. Unwanted, or if it is not kept, the connection is closed at once. */
#define PACE_CONN_EVENT_TIMED_OUT 5

/** The server drains. */
#define PACE_CONN_EVENT_DRAINING 6

/** The end, and the connection's last event. */
#define PACE_CONN_EVENT_CLOSED 7

/** PACE_CONN_EVENT_OPENED is wanted. */
#define PACE_WANTED_OPENED 1

/** PACE_CONN_EVENT_FINISHED is. */
#define PACE_WANTED_FINISHED 2

/** PACE_CONN_EVENT_WRITABLE is. */
#define PACE_WANTED_WRITABLE 4

/** PACE_CONN_EVENT_WRITTEN is. */
#define PACE_WANTED_WRITTEN 8

/** PACE_CONN_EVENT_TIMED_OUT is. */
#define PACE_WANTED_TIMED_OUT 16

/** PACE_CONN_EVENT_DRAINING is. */
#define PACE_WANTED_DRAINING 32

/** PACE_CONN_EVENT_CLOSED is. */
#define PACE_WANTED_CLOSED 64

/** All of them. */
#define PACE_WANTED_ALL 127

/** PACE_CONN_EVENT_TIMED_OUT: the connection goes on; the time begins anew. */
#define PACE_COMPLETE_KEEP 1

/** PACE_CONN_EVENT_OPENED: it is not wanted: it is sent the completion's bytes, and closed. */
#define PACE_COMPLETE_REFUSE 2

/** After what is queued, tell the peer that no more is sent. */
#define PACE_COMPLETE_FINISH 4

/** Close after what is queued. */
#define PACE_COMPLETE_CLOSE 8

/** Close at once. */
#define PACE_COMPLETE_ABORT 16

/**
 * Only write and close: the event stays out, also after the next pull of the thread that has it, and
 * is completed by another completion.
 */
#define PACE_COMPLETE_HOLD 32

/**
 * What handles the event has failed: close at once, with PACE_REASON_PANICKED. With
 * PACE_CONN_EVENT_CLOSED that is counted in pace_server_stats_t.panics_in_close.
 */
#define PACE_COMPLETE_FAIL 64

/** All bytes of an event. */
#define PACE_CONSUMED_ALL UINT64_MAX

/** A server whose connections have no hooks: what happens to them is pulled. */
typedef struct pace_pulled_t pace_pulled_t;

/** One event of a server. Its bytes stay where they are until it is completed. */
typedef struct pace_conn_event_t {
    /** Names the event until it is completed. Not 0. */
    uint64_t event;
    /** The connection. */
    pace_conn_id_t conn;
    /** PACE_CONN_EVENT_. */
    uint32_t kind;
    /** CLOSED: PACE_REASON_. TIMED_OUT: PACE_TIMEOUT_. */
    uint32_t detail;
    /**
     * WRITTEN: the token. CLOSED: a PACE_TIMEOUT_ number for PACE_REASON_TIMED_OUT, an errno for
     * PACE_REASON_FAILED.
     */
    uint64_t token;
    /** DATA: what has arrived. */
    const void *bytes;
    /** How many. */
    size_t size;
} pace_conn_event_t;

/** How an event is completed. */
typedef struct pace_completion_t {
    /** Which. */
    uint64_t event;
    /**
     * How many of its bytes are consumed, from the front, or PACE_CONSUMED_ALL. The rest comes again,
     * followed by more.
     */
    uint64_t consumed;
    /** What is written to the connection before. May be NULL if `size` is 0. */
    const void *bytes;
    /** How many. */
    size_t size;
    /** PACE_COMPLETE_ bits. */
    uint32_t flags;
    /** Out: a PACE_WRITE_STATUS_ number, if something was written. */
    uint32_t wrote;
    /**
     * Out: what has become of it. PACE_ESTALE: no such event is out, or, of bytes, the connection has
     * ended. PACE_EFULL: there was no room for the bytes, none of which was taken. PACE_EINVAL: more
     * bytes are consumed than there are, or there are flags that stand for nothing. With these two the
     * event is still out; otherwise it is completed.
     */
    int32_t outcome;
    /** Zero. */
    uint32_t reserved;
} pace_completion_t;

/**
 * Starts a server, as pace_server_new() does, for a host that pulls what happens. `wanted` says with
 * PACE_WANTED_ bits what of it besides data; for the rest the connection does what it does without
 * hooks. `on_exhausted` must be NULL.
 *
 * One event of a connection is out at a time: what happens meanwhile comes after it was completed. So
 * a connection's events come in order, and go to one thread at a time. While an event is out no more
 * than one read is taken in from the connection, it is not idle, and a drain waits for it.
 *
 * The pool needs threads of its own, or others that join or pull from it.
 *
 * As pace_server_new(); PACE_EINVAL for `wanted`.
 *
 * Threads: any. In handlers: yes.
 */
pace_status_t pace_pulled_new(pace_pool_t *pool,
                              const pace_server_options_t *options,
                              uint32_t wanted,
                              pace_pulled_t **pulled);

/**
 * *server is the server itself, for all that takes one but pace_server_free(): its addresses,
 * connections, drain and statistics. It lives as long as `pulled`.
 *
 * pace_server_drain() waits for events that are out: a thread that has some completes them before.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pulled_server(pace_pulled_t *pulled, pace_server_t **server);

/**
 * As pace_server_connect(); what happens to the connection is pulled like that of others, with `wanted`
 * of its own. `conn` may be NULL.
 *
 * As there; PACE_EINVAL for `wanted`.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pulled_connect(pace_pulled_t *pulled,
                                  const char *address,
                                  uint32_t wanted,
                                  pace_conn_id_t *conn);

/**
 * Waits for up to `timeout_ns` for events, and takes up to `capacity` of them. PACE_OK: *count is 1 or
 * more. What this thread pulled before, and has not completed or held, is completed first, with all
 * bytes consumed; so is what it has when it ends.
 *
 * PACE_ETIMEDOUT: nothing came; PACE_ESHUTDOWN: the server has ended, and so have all its events;
 * PACE_EINVAL for a capacity of 0; PACE_EDEADLOCK on a thread of the pool, unless the time is 0.
 *
 * Threads: any but the pool's own. In handlers: no.
 */
pace_status_t pace_pulled_pull(pace_pulled_t *pulled,
                               pace_conn_event_t *events,
                               size_t capacity,
                               uint64_t timeout_ns,
                               size_t *count);

/**
 * Completes `count` events, in order. Each completion says in `outcome` what has become of it; the
 * status is the first of them that is not PACE_OK.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pulled_complete(pace_pulled_t *pulled,
                                   pace_completion_t *completions,
                                   size_t count);

/**
 * As pace_conn_admit(), while an event is out: begins a request of its connection, which counts as in work
 * until it was answered or freed, be it after the event was completed.
 *
 * PACE_ESTALE: no such event is out. PACE_EFULL: as many are in work as max_requests allows; the
 * server's busy message has been written instead.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pulled_admit(pace_pulled_t *pulled,
                                uint64_t event,
                                pace_admission_t **admission);

/**
 * Completes what this thread has pulled, as its next pace_pulled_pull() would.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pulled_done(pace_pulled_t *pulled);

/**
 * *fd is readable while a pull would not wait. It belongs to the server: never read or close it.
 *
 * PACE_EOS if there are no descriptors left.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pulled_pollable(pace_pulled_t *pulled, int32_t *fd);

/**
 * Stops at once: listeners end, connections are cut off, what is out is of no use any more, and pulls
 * say PACE_ESHUTDOWN. It waits for nothing. pace_server_drain() first for an orderly end.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pulled_close(pace_pulled_t *pulled);

/**
 * Frees it; the server stops, as by pace_server_free(). Events that are out are completed. No thread
 * may be in a call that uses it: pace_server_drain() first makes pulls end. NULL: nothing.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_pulled_free(pace_pulled_t *pulled);

/* ------------------------------------------------------------------------- HTTP: what is asked */

/** A request, for as long as its handler runs: good for that call only, and on that thread. */
typedef struct pace_request_t pace_request_t;

/** Text that is lent, without a NUL behind it: `printf("%.*s", (int)text.size, text.text)`. */
typedef struct pace_text_t {
    /** NULL if there is none. */
    const char *text;
    /** In bytes. */
    size_t size;
} pace_text_t;

/** A header, or a parameter of a request's path. */
typedef struct pace_field_t {
    /** As it was sent, or as the route's pattern has it. */
    pace_text_t name;
    /** Bytes; UTF-8 as a rule. */
    pace_text_t value;
} pace_field_t;

/**
 * As it was sent: GET. Methods distinguish upper and lower case.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_method(const pace_request_t *request, pace_text_t *method);

/**
 * As it was sent: /hello/you?loud=1, or http://host/hello/you.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_target(const pace_request_t *request, pace_text_t *target);

/**
 * The target's path, which routes are matched with, as it was sent: percent-encoded, and with
 * whatever dots it has.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_path(const pace_request_t *request, pace_text_t *path);

/**
 * What follows the first question mark of the target. query->text is NULL if there is none.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_query(const pace_request_t *request, pace_text_t *query);

/**
 * 0 or 1, of HTTP/1. A later minor version is served as 1 (RFC 9110, 2.5), and told as that.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_version(const pace_request_t *request, uint32_t *version);

/**
 * The value of the first header of this name, upper or lower case. value->text is NULL if there is
 * none, or it is not UTF-8.
 *
 * PACE_EINVAL for a name that is not UTF-8.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_header(const pace_request_t *request,
                                  const char *name,
                                  pace_text_t *value);

/**
 * Copies up to `capacity` headers, in order, with the white space around their values removed. *count
 * is how many there are, which may be more. `headers` may be NULL if `capacity` is 0.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_headers(const pace_request_t *request,
                                   pace_field_t *headers,
                                   size_t capacity,
                                   size_t *count);

/**
 * The part of the path that stands for this name in the route's pattern, percent-decoded. A slash that
 * was encoded stays in its part, since routes are matched with the path as it was sent, which is
 * pace_request_path(). A request with a part that cannot be decoded (to UTF-8 without NUL) has no
 * handler: it is answered with 400. value->text is NULL if there is none.
 *
 * PACE_EINVAL for a name that is not UTF-8.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_param(const pace_request_t *request,
                                 const char *name,
                                 pace_text_t *value);

/**
 * All such parts, in order. Otherwise as pace_request_headers().
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_params(const pace_request_t *request,
                                  pace_field_t *params,
                                  size_t capacity,
                                  size_t *count);

/**
 * The pattern of the route that it came by, as pace_http_route() was told: "/hello/{name}". pattern->text is NULL if
 * no route has taken it.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_pattern(const pace_request_t *request,
                                   pace_text_t *pattern);

/**
 * The names and values of a query (pace_request_query()), or of a form's body, decoded as
 * application/x-www-form-urlencoded: "+" is a space, and what is percent-encoded is decoded. A pair without "="
 * has an empty value. Values are bytes; UTF-8 as a rule, and there may be NUL in them.
 *
 * `room` has `size` bytes, as the query has: the decoded texts lie there. Copies up to `capacity` pairs, in order;
 * *count is how many there are, which may be more. `pairs` may be NULL if `capacity` is 0, and then `room`, too.
 *
 * PACE_EINVAL if `query` is NULL and `size` is not 0.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_query_pairs(const char *query,
                               size_t size,
                               char *room,
                               pace_field_t *pairs,
                               size_t capacity,
                               size_t *count);

/**
 * The whole body. Empty where it is streamed.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_body(const pace_request_t *request, pace_piece_t *body);

/**
 * The protocol that it asks to upgrade to. protocol->text is NULL if it asks for none.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_upgrade(const pace_request_t *request,
                                   pace_text_t *protocol);

/**
 * The name of its connection.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_conn(const pace_request_t *request, pace_conn_id_t *conn);

/**
 * The other end, as pace_conn_peer().
 *
 * PACE_EINVAL as there.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_peer(const pace_request_t *request, char *text, size_t size);

/* ---------------------------------------------------------------------- HTTP: what is answered */

/** As the length of a body that is streamed: it is not known. */
#define PACE_LENGTH_UNKNOWN UINT64_MAX

/**
 * The body of an answer, written piece by piece by whoever holds it. It belongs to one thread at a
 * time.
 */
typedef struct pace_body_t pace_body_t;

/**
 * The answer to a request. It belongs to whoever holds it: the handler, or any thread later; until it
 * is completed the connection's next request waits. pace_response_send(), pace_response_send_as(),
 * pace_response_text(), pace_response_error(), pace_next_run(), pace_response_stream(), pace_response_upgrade(), pace_response_fail() and pace_response_free() complete it:
 * it is gone then, whatever they answer, unless that is PACE_EFORKED or PACE_EINVAL for an argument.
 */
typedef struct pace_response_t pace_response_t;

/** Called, in a run of the connection, each time that a body's output has fallen to its low mark. */
typedef void (*pace_body_writable_fn)(void *user_data);

/**
 * Writes the next part of a body. Answers PACE_FLOW_AGAIN to be called again, or PACE_FLOW_DONE when
 * the body is finished; anything else resets the connection. The body is only lent.
 */
typedef int32_t (*pace_body_produce_fn)(void *user_data, pace_body_t *body);

/**
 * The status, 200 to 599; without this it is 200. Another one is an error of what completes the
 * response.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_response_status(pace_response_t *response, uint32_t status);

/**
 * Adds a header. Content-Length, Transfer-Encoding, Connection, Upgrade and Date are the library's
 * own. One that is not allowed is an error of what completes the response.
 *
 * PACE_EINVAL if a text is NULL, or the name is not UTF-8.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_response_header(pace_response_t *response,
                                   const char *name,
                                   const char *value);

/**
 * No more requests follow on this connection.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_response_close(pace_response_t *response);

/**
 * Completes the response with this body.
 *
 * PACE_EINVAL names the status or header that was not allowed, and PACE_EFULL tells of a body that is
 * larger than a connection's output may be (stream it): then the peer gets a 500. PACE_ESTALE: the
 * connection has ended, or the library has answered already, as it does when a body does not come.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_response_send(pace_response_t *response,
                                 const void *bytes,
                                 size_t size);

/**
 * As pace_response_send(), of a text with Content-Type: text/plain; charset=utf-8 unless it has
 * another.
 *
 * PACE_EINVAL (also for what is not UTF-8), PACE_EFULL, PACE_ESTALE as there.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_response_text(pace_response_t *response, const char *text);

/**
 * As pace_response_send(), with this Content-Type unless it has another: a media type, as "application/json".
 *
 * PACE_EINVAL (also if the type is NULL or not UTF-8), PACE_EFULL, PACE_ESTALE as there.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_response_send_as(pace_response_t *response,
                                    const char *content_type,
                                    const void *bytes,
                                    size_t size);

/**
 * Completes the response with a short page about its status, as the server's own errors have it, in the form that
 * the request's Accept wants most: text ("404 Not Found"), JSON ({"title":"Not Found","status":404}, as RFC 9457
 * has it) or HTML. Content-Type is set accordingly.
 *
 * PACE_EINVAL, PACE_EFULL, PACE_ESTALE as for pace_response_send().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_response_error(pace_response_t *response);

/**
 * Sends the head, and gives what the body is written to: exactly `length` bytes, or chunks with
 * PACE_LENGTH_UNKNOWN. (To a peer that speaks HTTP/1.0 the end of the connection is the end of such a
 * body.) A peer that waits for "100 Continue" before it sends its body is told so first; to answer
 * without that body there is pace_response_send().
 *
 * PACE_EINVAL, PACE_ESTALE as for pace_response_send().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_response_stream(pace_response_t *response,
                                   uint64_t length,
                                   pace_body_t **body);

/**
 * Answers with 101, and gives the connection to `hooks`, for a protocol that the request has asked for
 * (pace_request_upgrade()). Its `open` comes next. The server's limits for connections stay in force;
 * the time between requests is now its idle time. If it fails, nothing of `hooks` has moved.
 *
 * PACE_EINVAL (also if the request has asked for no other protocol), PACE_ESTALE as for
 * pace_response_send(); PACE_EVERSION for hooks.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_response_upgrade(pace_response_t *response,
                                    const char *protocol,
                                    const pace_conn_hooks_t *hooks);

/**
 * Frees a response that nobody will complete: the peer gets a 500. NULL is a no-op. In a forked child
 * it does nothing.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_response_free(pace_response_t *response);

/**
 * What was to answer has failed: the peer gets a 500, the connection closes, and the failure is counted in
 * pace_http_stats_t.panics. The response is gone, as by pace_response_free().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_response_fail(pace_response_t *response);

/**
 * Says that the handler, the hook of a body or the producer that runs on this thread has failed. When it
 * returns, the connection is closed, after a 500 if it has not begun to answer, and the failure is
 * counted in pace_http_stats_t.panics. `reason` is for the log; what is not UTF-8 in it is replaced by U+FFFD.
 * For languages whose exceptions must not leave a handler.
 *
 * PACE_EINVAL for a reason that is NULL; PACE_ESTALE elsewhere.
 *
 * Threads: the handler's. In handlers: in a request's own only; it never waits.
 */
pace_status_t pace_request_fail(const char *reason);

/**
 * Writes, in order, without waiting. What the peer does not take is queued; with
 * PACE_WRITE_STATUS_ABOVE_HIGH_MARK whoever can should write no more until the output has fallen
 * (pace_body_on_writable()). PACE_WRITE_STATUS_UNWANTED: the peer gets no body (an answer to HEAD, or with the
 * status 204, 205 or 304), and the bytes were dropped. No mark paces such a body: finish it. To write no
 * bytes tells this before the first ones are produced. *wrote is a PACE_WRITE_STATUS_ number; `wrote` may be
 * NULL.
 *
 * PACE_EINVAL for more bytes than were announced, PACE_EFULL if the queue would exceed its maximum:
 * none of it was taken. PACE_ESTALE if the connection has ended.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_body_write(pace_body_t *body,
                              const void *bytes,
                              size_t size,
                              uint32_t *wrote);

/**
 * Ends a body, and frees it. The connection's next request may come.
 *
 * PACE_EINVAL if fewer bytes were written than were announced: then the connection is reset.
 * Otherwise as pace_body_write().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_body_finish(pace_body_t *body);

/**
 * Frees a body before its end: it can never be whole, and the connection is reset, so that the peer
 * can tell. NULL is a no-op.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_body_free(pace_body_t *body);

/**
 * What writes a body has failed: the connection is reset, as by pace_body_free(), and the failure is counted
 * in pace_http_stats_t.panics. NULL is a no-op.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_body_fail(pace_body_t *body);

/**
 * Whether the output is above its high mark, or has not fallen to the low one yet.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_body_is_pressed(pace_body_t *body, bool *is_pressed);

/**
 * Has `writable` called, in a run of the connection, each time that the output has fallen to its low
 * mark. If the output is not above its high mark now, it is called once without delay. It replaces the one before. `drop` runs when the body
 * is finished or freed, or the connection has ended.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_body_on_writable(pace_body_t *body,
                                    pace_body_writable_fn writable,
                                    void *user_data,
                                    pace_drop_fn drop);

/**
 * Has `produce` write the body, in runs of the connection, as fast as the peer takes it and no faster.
 * It is called again as long as it says PACE_FLOW_AGAIN and there is something left to be sent; with
 * PACE_FLOW_DONE the body is finished. So it is not called at all for a body that is not sent (an answer
 * to HEAD, or with the status 204, 205 or 304), and not again when as many bytes are written as were
 * announced. One that says PACE_FLOW_AGAIN without having written anything is called again at once. The
 * body is gone; `drop` runs after the last call.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_body_pump(pace_body_t *body,
                             pace_body_produce_fn produce,
                             void *user_data,
                             pace_drop_fn drop);

/* ------------------------------------------------------ HTTP: requests that are pulled as data */

/** A request of a route. */
#define PACE_REQUEST_EVENT_REQUEST 0

/**
 * The output of a body that goes on pressed (PACE_WRITE_STATUS_ABOVE_HIGH_MARK), and has fallen to the low
 * mark: its next piece may be written.
 */
#define PACE_REQUEST_EVENT_WRITABLE 1

/** A part of the body of a streamed request, after pace_requests_read(). */
#define PACE_REQUEST_EVENT_PART 2

/** The end of such a body, which is whole. So is that of a request without a body. */
#define PACE_REQUEST_EVENT_END 3

/** The end of such a body, which will never be whole: the peer is gone, or broke the protocol. */
#define PACE_REQUEST_EVENT_BROKEN 4

/** A request of a server has ended: see pace_http_on_end_pulled(). */
#define PACE_REQUEST_EVENT_ENDED 5

/**
 * The body goes on: other answers to the same request write its next pieces, and the last one is
 * without this.
 */
#define PACE_ANSWER_MORE 1

/** No more requests follow on this connection. */
#define PACE_ANSWER_CLOSE 2

/**
 * In an answer's flags: its body is a short page about its status in the form that the request wants most, as
 * pace_response_error() has it. `bytes` do not matter.
 */
#define PACE_ANSWER_ERROR 4

/** The length of a body that is not known: it is sent in chunks. */
#define PACE_LENGTH_UNKNOWN UINT64_MAX

/** Where the requests of routes wait for host threads; see pace_http_route_pulled(). */
typedef struct pace_requests_t pace_requests_t;

/** One event. A request's bytes stay where they are until it is answered. */
typedef struct pace_request_event_t {
    /** Names the request until it is answered. Not 0. */
    uint64_t request;
    /** The connection that it came from; 0 for others than PACE_REQUEST_EVENT_REQUEST. */
    pace_conn_id_t conn;
    /** PACE_REQUEST_EVENT_. */
    uint32_t kind;
    /** The number of its route; 0 for others than PACE_REQUEST_EVENT_REQUEST. */
    uint32_t route;
    /**
     * PACE_REQUEST_EVENT_PART: the part, which stays where it is until the thread that has pulled it
     * pulls requests again, or ends. Otherwise the request as one block, in which `head` numbers of 32 bits come first: the lengths of method,
     * target, path and query (UINT32_MAX: there is none), the minor version of HTTP/1 in its lower 16 bits,
     * with the status of a request that no route has taken in its upper ones, how many parameters and headers there are, and where the body begins, which is the rest. Then the
     * lengths of name and value of each parameter and of each header; then all these texts, in the
     * same order, and the body.
     */
    const void *bytes;
    /** The block's size. */
    size_t size;
} pace_request_event_t;

/** What a request is answered with, or the next piece of an answer's body. */
typedef struct pace_answer_t {
    /** Which. */
    uint64_t request;
    /**
     * With PACE_ANSWER_MORE, the whole body's length, or PACE_LENGTH_UNKNOWN. Otherwise, and for later
     * pieces, it does not matter.
     */
    uint64_t length;
    /**
     * Lines of headers, each ended by CR LF: "Name: value". May be NULL if `headers_size` is 0. Later
     * pieces have none.
     */
    const void *headers;
    /** Their size. */
    size_t headers_size;
    /** The body, or its next piece. May be NULL if `size` is 0. */
    const void *bytes;
    /** Its size. */
    size_t size;
    /** 200 to 599. Later pieces have none. */
    uint32_t status;
    /** PACE_ANSWER_ bits. */
    uint32_t flags;
    /**
     * Out: a PACE_WRITE_STATUS_ number, for pieces with PACE_ANSWER_MORE. PACE_WRITE_STATUS_UNWANTED: the peer gets no
     * body; end it with an answer without PACE_ANSWER_MORE.
     */
    uint32_t wrote;
    /**
     * Out: what has become of it. PACE_ESTALE: no such request is out, or its connection has ended.
     * PACE_EINVAL: the status or a header cannot be; then the peer gets a 500. Or there are flags that
     * stand for nothing; then the request is still out. PACE_EFULL: there was no room for it. The peer
     * gets a 500; of a body that has begun nothing was taken, and it may be tried again.
     */
    int32_t outcome;
} pace_answer_t;

/**
 * Makes a place for requests to wait in. Give it to routes by pace_http_route_pulled().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_requests_new(pace_pool_t *pool, pace_requests_t **requests);

/**
 * Waits for up to `timeout_ns` for events, and takes up to `capacity` of them. PACE_OK: *count is 1 or
 * more. A request is out until it was answered, by any thread: nothing else ends it but
 * pace_requests_free(). What a client sends meanwhile waits.
 *
 * PACE_ETIMEDOUT: nothing came; PACE_ESHUTDOWN: the server has ended, and nothing is left; PACE_EINVAL
 * for a capacity of 0; PACE_EDEADLOCK on a thread of the pool, unless the time is 0.
 *
 * Threads: any but the pool's own. In handlers: no.
 */
pace_status_t pace_requests_pull(pace_requests_t *requests,
                                 pace_request_event_t *events,
                                 size_t capacity,
                                 uint64_t timeout_ns,
                                 size_t *count);

/**
 * Gives `count` answers, in order. Each says in `outcome` what has become of it; the status is the
 * first of them that is not PACE_OK.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_requests_answer(pace_requests_t *requests,
                                   pace_answer_t *answers,
                                   size_t count);

/**
 * A request is not answered: the peer gets a 500, or, if its answer has begun, sees it break off.
 *
 * PACE_ESTALE: no such request is out.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_requests_drop(pace_requests_t *requests, uint64_t request);

/**
 * What was to answer a request has failed: the peer gets a 500, or, if its answer has begun, sees it
 * break off; the connection closes, and the failure is counted in pace_http_stats_t.panics. For one that
 * was answered to the end there is pace_http_fail().
 *
 * PACE_ESTALE: no such request is out.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_requests_fail(pace_requests_t *requests,
                                 uint64_t request);

/**
 * Asks for the next part of a streamed request's body (pace_http_route_pulled_streaming()): a
 * PACE_REQUEST_EVENT_PART, or its end, is pulled when it is there. Nothing is read from the
 * connection beyond what was asked for, so a peer is never faster than its host; one that waits for
 * "100 Continue" is told so by the first call. When
 * the request was answered to the end, or dropped, no part comes any more.
 *
 * PACE_ESTALE: no streamed request of this name is out, its answer is complete, or the end was told.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_requests_read(pace_requests_t *requests,
                                 uint64_t request);

/**
 * Answers with 101, and gives the connection to a pulled server, for a protocol that the request has
 * asked for: what happens to it is pulled there, with `wanted` as for pace_pulled_connect(), beginning
 * with PACE_CONN_EVENT_OPENED. `headers` are lines as those of an answer; NULL if `headers_size` is 0.
 *
 * The connection stays the HTTP server's: pace_http_server() is the server of the functions that take
 * *conn, its limits stay in force, and it is drained with that one. The request is gone, whatever this
 * answers, unless that is PACE_EINVAL for an argument that is NULL or `wanted`. `conn` may be NULL.
 *
 * PACE_EINVAL also if the request has asked for no other protocol, or for a header: then the peer gets
 * a 500. PACE_ESTALE: no such request is out, or its connection has ended.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_requests_upgrade(pace_requests_t *requests,
                                    uint64_t request,
                                    const char *protocol,
                                    const void *headers,
                                    size_t headers_size,
                                    pace_pulled_t *pulled,
                                    uint32_t wanted,
                                    pace_conn_id_t *conn);

/**
 * *fd is readable while a pull would not wait. It belongs to this: never read or close it.
 *
 * PACE_EOS if there are no descriptors left.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_requests_pollable(pace_requests_t *requests, int32_t *fd);

/**
 * Ends it at once: pulls say PACE_ESHUTDOWN, and requests that nobody has pulled, and those that come
 * later, are dropped as by pace_requests_drop(). It waits for nothing.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_requests_close(pace_requests_t *requests);

/**
 * Frees it. Requests that are out, and those that come later, are dropped as by
 * pace_requests_drop(). No thread may be in a call that uses it. NULL: nothing.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_requests_free(pace_requests_t *requests);

/* -------------------------------------------------------------------- HTTP: servers and routes */

/**
 * An HTTP/1.1 server on a pool: its routes, and when it was started, its listeners and connections.
 *
 * One request of a connection is in work at a time; what a client sends ahead waits, so answers come
 * in the order of the requests.
 */
typedef struct pace_http_t pace_http_t;

/** The rest of a request's way, in a middleware: pace_next_run(). Good while the middleware runs, on that thread. */
typedef struct pace_next_t pace_next_t;

/**
 * The head of a request whose body is streamed is there. The request is lent; the response is given.
 * *body, NULL beforehand, is what the other two hooks are called with. If it stays NULL they are not
 * called, and what comes of the body is dropped, up to max_body.
 *
 * A peer that waits for "100 Continue" is told so when this has returned and *body is not NULL, or before
 * the head of an answer that is begun by pace_response_stream(). It is not told if this has answered by
 * pace_response_send(), or *body is NULL: then the answer, whenever it comes, is the final one, and the
 * connection closes behind it.
 */
typedef void (*pace_request_begin_fn)(void *user_data,
                                      const pace_request_t *request,
                                      pace_response_t *response,
                                      void **body);

/**
 * A part of the body has come. Answers how many of its bytes were taken, from the front. The rest is
 * shown again after pace_server_conn_resume(); until then nothing is read from the connection. More
 * than `size` counts as a failure, and closes the connection.
 */
typedef size_t (*pace_request_data_fn)(void *body, const void *bytes, size_t size);

/** The last call for a body, exactly once: it was whole, or it never will be. */
typedef void (*pace_request_end_fn)(void *body, bool is_whole);

/**
 * What takes the body of a request as it comes. Call pace_request_body_hooks_init() first. No hook may be
 * NULL.
 */
typedef struct pace_request_body_hooks_t {
    /** Set by pace_request_body_hooks_init(). */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** The head is there. */
    pace_request_begin_fn begin;
    /** A part of the body has come. */
    pace_request_data_fn data;
    /** The end. */
    pace_request_end_fn end;
} pace_request_body_hooks_t;

/** Settings of an HTTP server. Call pace_http_options_init() first. */
typedef struct pace_http_options_t {
    /** Set by pace_http_options_init(). */
    uint32_t struct_size;
    /** Headers of a request, 1 to 256; beyond: 431. Default 100. */
    uint32_t max_headers;
    /**
     * Where to listen: an array of structs of one size. Where idle_timeout_ns and read_timeout_ns have
     * their defaults, they are keep_alive_timeout_ns and head_timeout_ns; a refusal of NULL is a 503.
     * max_requests bounds requests in work on the listener's connections, beyond the max_requests of
     * all; what other protocols admit on them after an upgrade counts, too. max_unconsumed is max_head +
     * 128 KiB where it has its default, which is also the least that it may be. busy must be NULL, since
     * a request beyond the maximum is answered with 503.
     */
    const pace_listener_options_t *listeners;
    /** How many. */
    size_t listener_count;
    /** Bytes of a request's head, 64 to 2^20; beyond: 431. Default 2^14. */
    uint64_t max_head;
    /** Bytes of a request's target, 1 to 2^20; beyond: 414. Default 2^13. */
    uint64_t max_target;
    /** Bytes of a body that is not streamed, up to 2^40; beyond: 413. Default 2^20. */
    uint64_t max_body;
    /**
     * A body must come at so many bytes per second, taken over each body_timeout_ns, while it is
     * waited for; below: 408. Default 500, 0: any.
     */
    uint64_t body_rate;
    /**
     * Requests in work at once over all connections, at least 1; beyond: 503. Default PACE_UNLIMITED:
     * no limit. A listener may have a lower one for its own.
     */
    uint64_t max_requests;
    /** A head must be whole within this from its first byte, at least 1 ms; beyond: 408. Default 10 s. */
    uint64_t head_timeout_ns;
    /** How often the rate of a body is looked at, at least 1 ms. Default 10 s. */
    uint64_t body_timeout_ns;
    /**
     * A connection with no request in work on which nothing came for so long, at least 1 ms, is
     * closed. Default 60 s.
     */
    uint64_t keep_alive_timeout_ns;
    /**
     * Requests on one connection, at least 1; the last is answered with Connection: close. Default
     * PACE_UNLIMITED32: no limit.
     */
    uint32_t keep_alive_requests;
    /** Zero. */
    uint32_t reserved;
    /** Called when accepting pauses, with exhausted_data. NULL: nothing. */
    pace_exhausted_fn on_exhausted;
    /** What on_exhausted is given, good until the server was freed. */
    void *exhausted_data;
} pace_http_options_t;

/**
 * The handler of a route. It runs on a thread of the pool, for many connections at once. The request
 * is lent, with its whole body; the response is given.
 */
typedef void (*pace_request_fn)(void *user_data,
                                const pace_request_t *request,
                                pace_response_t *response);

/**
 * A middleware: code around the handlers of requests. It runs on a thread of the pool, for many connections at once. The
 * request is lent; the response is given. It goes on by pace_next_run(), with the response, to which it may have added
 * headers: they are sent with every answer, errors of the server included. Or it answers by itself, and the handler
 * is not called; a body that is streamed is dropped then. pace_request_pattern() says which route it is.
 */
typedef void (*pace_around_fn)(void *user_data,
                               const pace_request_t *request,
                               pace_response_t *response,
                               pace_next_t *next);

/** What has become of a request. It is lent for the call. */
typedef struct pace_http_end_t {
    /**
     * The status of the answer. 0: no whole answer has left, as the connection has ended before, or its body
     * broke off.
     */
    uint32_t status;
    /** Zero. */
    uint32_t reserved;
    /** As it was sent: GET. Empty if it is not known, as of a malformed request. */
    pace_text_t method;
    /** As it was sent: /hello/you?loud=1. Empty if it is not known; one that was refused for its length is cut. */
    pace_text_t target;
    /**
     * How long it took, in nanoseconds, from the head, or from the first bytes of a head that came in parts, until the
     * answer was complete. What the peer has not taken yet may still be queued.
     */
    uint64_t duration_ns;
    /** The other end, as pace_conn_peer() tells it. */
    pace_text_t peer;
} pace_http_end_t;

/** Told of the end of a request. It runs on a thread of the pool. */
typedef void (*pace_http_end_fn)(void *user_data, const pace_http_end_t *end);

/**
 * The books of an HTTP server: begun = answered + refused + aborted + in work. The counts add up
 * exactly while no request is being handled. Set struct_size to sizeof the struct before the call.
 */
typedef struct pace_http_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Whether everything that began has ended or is in work, connections included. */
    bool balances;
    /** Zero. */
    uint8_t reserved[3];
    /** Requests whose head was judged, or that were given up. */
    uint64_t begun;
    /** Begun and not ended: their bodies are coming, or their answers. */
    uint64_t in_work;
    /** Answered by handlers, with 101. */
    uint64_t answered_upgraded;
    /** 200 to 299. */
    uint64_t answered_successful;
    /** 300 to 399. */
    uint64_t answered_redirected;
    /** 400 to 499. */
    uint64_t answered_client_errors;
    /** 500 to 599. */
    uint64_t answered_server_errors;
    /** Answered by the library with 400: it was malformed. */
    uint64_t refused_bad_request;
    /** 404: no route has this path. */
    uint64_t refused_not_found;
    /** 405: no route with this path has this method. */
    uint64_t refused_method_not_allowed;
    /** 408: its head or its body did not come in time. */
    uint64_t refused_timed_out;
    /** 413. */
    uint64_t refused_body_too_large;
    /** 414. */
    uint64_t refused_target_too_long;
    /** 417: it expected something else than 100-continue. */
    uint64_t refused_expectation;
    /** 431: too many headers, or too long. */
    uint64_t refused_head_too_large;
    /** 500: its handler failed. */
    uint64_t refused_panicked;
    /** 500: its response was freed, or could not be sent. */
    uint64_t refused_unanswered;
    /** 501: nothing knows its method, or its transfer coding. */
    uint64_t refused_not_implemented;
    /** 503: as many were in work as may be. */
    uint64_t refused_busy;
    /** 505: another major version of HTTP. */
    uint64_t refused_version;
    /** Not answered, or not to the end: the peer went, or the socket failed. */
    uint64_t aborted_disconnected;
    /** The peer took nothing of what was queued for it. */
    uint64_t aborted_timed_out;
    /** The answer's body was freed before its end. */
    uint64_t aborted_unfinished;
    /** The host closed the connection. */
    uint64_t aborted_closed;
    /** The drain's time was over, or the pool ended. */
    uint64_t aborted_cut_off;
    /** Handlers, bodies and hooks that have failed. */
    uint64_t panics;
} pace_http_stats_t;

/**
 * Fills hooks with NULL: pace_request_body_hooks_init(&hooks, sizeof hooks).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_request_body_hooks_init(pace_request_body_hooks_t *hooks, size_t size);

/**
 * Fills options with the defaults: pace_http_options_init(&options, sizeof options).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_options_init(pace_http_options_t *options, size_t size);

/**
 * Makes a server without routes, to be given some and started.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_new(pace_pool_t *pool, pace_http_t **http);

/**
 * Requests of this method whose path matches this pattern go to this handler, with their whole body.
 * A pattern is a path with parameters: "/hello/{name}" for one segment, "/files/{*path}" for all that
 * follows. It is matched with the path as it was sent; pace_request_param() gives parameters decoded.
 *
 * Each method is routed by itself: of the patterns of a method the closest one is taken, whatever other
 * methods have there. GET serves HEAD too, where HEAD has no route of its own. Without a route the
 * answer is 405 if other methods have one for the path, and else 404. OPTIONS without a route is
 * answered with 204 and the methods that the path has routes for (Allow), "OPTIONS *" with all methods,
 * unless the pattern "*" has a route. What is wrong with a route is told by pace_http_start().
 *
 * `drop` runs when the server was freed, and the last connection and the last response are gone.
 *
 * PACE_EINVAL also when the server has been started.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_route(pace_http_t *http,
                              const char *method,
                              const char *pattern,
                              pace_request_fn handler,
                              void *user_data,
                              pace_drop_fn drop);

/**
 * The same for requests whose body is taken as it comes.
 *
 * PACE_EINVAL as there, PACE_EVERSION for hooks.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_route_streaming(pace_http_t *http,
                                        const char *method,
                                        const char *pattern,
                                        const pace_request_body_hooks_t *hooks,
                                        void *user_data,
                                        pace_drop_fn drop);

/**
 * The same for requests that are pulled: they wait in `requests`, as events with the number `route`.
 * Several routes may have the same number, and several servers the same place. When the server has
 * ended, pulls of all its places say so.
 *
 * PACE_EINVAL as for pace_http_route().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_route_pulled(pace_http_t *http,
                                     const char *method,
                                     const char *pattern,
                                     pace_requests_t *requests,
                                     uint32_t route);

/**
 * The same for requests whose body is taken as it comes: the event has none, and each part comes after
 * pace_requests_read().
 *
 * PACE_EINVAL as for pace_http_route().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_route_pulled_streaming(pace_http_t *http,
                                               const char *method,
                                               const char *pattern,
                                               pace_requests_t *requests,
                                               uint32_t route);

/**
 * Calls this function around the handler of every request that has a whole head: of all routes, of requests that no
 * route takes (404, 405), and of what the library answers to OPTIONS. Several are called in the order in which they
 * were told, each around all that follow. See pace_around_fn.
 *
 * A request that is refused for its head, its body's length or for want of room (400, 408, 413, 414, 417, 431, 501,
 * 503, 505) is not seen here, but by pace_http_on_end().
 *
 * PACE_EINVAL also when the server has been started.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_around(pace_http_t *http,
                               pace_around_fn around,
                               void *user_data,
                               pace_drop_fn drop);

/**
 * Goes on with a request in a middleware, on this thread, and returns when the handler has returned. The response is
 * gone then, whatever this answers, unless that is PACE_EINVAL.
 *
 * *status is the status with which the request was answered by then: 500 if the handler has failed without an
 * answer. 0: it will be answered later, or its answer was lost with the connection; pace_http_on_end() tells.
 * `status` may be NULL.
 *
 * PACE_EINVAL also if `next` has been run already.
 *
 * Threads: the middleware's. In handlers: in a middleware only; it takes what the handler takes.
 */
pace_status_t pace_next_run(pace_next_t *next,
                            const pace_request_t *request,
                            pace_response_t *response,
                            uint32_t *status);

/**
 * Requests that no route takes go to this handler, without their body, which is dropped. The response has the status
 * that they would get otherwise: 404, 405 (with Allow), 501, or 400 for a parameter that cannot be decoded.
 * pace_response_error() answers as the server does, and pace_response_status() sets another status. The last
 * fallback that was told is the one.
 *
 * PACE_EINVAL also when the server has been started.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_fallback(pace_http_t *http,
                                 pace_request_fn handler,
                                 void *user_data,
                                 pace_drop_fn drop);

/**
 * The same for requests that are pulled: they wait in `requests`, as events with the number `route`. Their block says
 * which status they would get (pace_request_event_t); PACE_ANSWER_ERROR answers as the server does.
 *
 * PACE_EINVAL as there.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_fallback_pulled(pace_http_t *http,
                                        pace_requests_t *requests,
                                        uint32_t route);

/**
 * Calls this function at the end of each request, once: answered by a handler or refused by the server (400, 404, 408,
 * 413, 431 and others), or lost with its connection. It is what an access log needs. Connections that are turned
 * away without having sent a request are none. With it, all requests are counted as in work from their beginning.
 * The last function that was told is the one. It must not block: the connection waits for it.
 *
 * PACE_EINVAL also when the server has been started.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_on_end(pace_http_t *http,
                               pace_http_end_fn hook,
                               void *user_data,
                               pace_drop_fn drop);

/**
 * The same for ends that are pulled: they wait in `requests`, as events of the kind PACE_REQUEST_EVENT_ENDED. Such an
 * event has a block, which is good until the thread pulls again: two numbers of 64 bits, the time in nanoseconds and
 * how many ends were lost before this one, as 65536 waited already; four numbers of 32 bits, the status (0: no whole
 * answer has left) and the lengths of method, target and peer; then these texts.
 *
 * PACE_EINVAL as there.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_on_end_pulled(pace_http_t *http,
                                      pace_requests_t *requests);

/**
 * Starts. `options` and all that they point to are copied. If it fails, it may be tried again.
 *
 * PACE_EINVAL names the setting, its value and its bounds, or the route that cannot be, also when the
 * server has been started already; PACE_EOS names the address that could not be listened on, and the
 * reason; PACE_EFULL when all max_handles are in use; PACE_ESHUTDOWN; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes.
 */
pace_status_t pace_http_start(pace_http_t *http,
                              const pace_http_options_t *options);

/**
 * The stream server beneath, for what is done with connections and listeners: pace_server_address(),
 * pace_server_drain(), pace_server_wait(), pace_server_stats(), and pace_server_conn_ functions. It
 * belongs to the HTTP server: do not free it.
 *
 * PACE_EINVAL before the start.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_server(pace_http_t *http,
                               pace_server_t **server);

/**
 * The books.
 *
 * PACE_EINVAL before the start; PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_stats(pace_http_t *http, pace_http_stats_t *stats);

/**
 * What has answered a request of this connection has failed after that: the connection closes when all that
 * is queued was sent, and the failure is counted in pace_http_stats_t.panics. Before that it is for
 * pace_response_fail(), pace_body_fail() or pace_requests_fail(); in a handler, for pace_request_fail().
 *
 * PACE_EINVAL before the start. PACE_ESTALE if the connection has ended: then nothing is counted.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_fail(pace_http_t *http,
                             pace_conn_id_t conn);

/**
 * Frees a server: its listeners end, and its connections are cut off, as by pace_server_free(), which says what it
 * waits for; drain it first for an orderly end. NULL is a no-op. In a forked child it does nothing.
 *
 * Threads: any, as long as no other uses the server any more. In handlers, and on threads of the pool: yes, it never
 * waits there.
 */
void pace_http_free(pace_http_t *http);

/* ---------------------------------------------------------------------------- Datagram sockets */

/**
 * A UDP socket on a pool. Nothing is queued on the way out: what the kernel has no room for is
 * PACE_EFULL to whoever sent it.
 */
typedef struct pace_udp_t pace_udp_t;

/** An IP address and a port. */
typedef struct pace_ip_t {
    /** 4 or 6. */
    uint8_t version;
    /** Zero. */
    uint8_t reserved;
    /** As a number. */
    uint16_t port;
    /** The interface's index, for IPv6 addresses of a link; else 0. */
    uint32_t scope;
    /** In network order; 4 bytes of them for IPv4, and zeros. */
    uint8_t bytes[16];
} pace_ip_t;

/** A datagram that has arrived, or is to be sent. */
typedef struct pace_datagram_t {
    /** Its bytes; of one that has arrived, up to max_datagram. */
    const void *bytes;
    /** How many. */
    size_t size;
    /** How long it was; more than `size` if its end is lost. Not used for sending. */
    size_t length;
    /**
     * Who has sent it, or whom it is for. An IPv4 address looks like ::ffff:0:0/96 on a socket that
     * takes both.
     */
    pace_ip_t peer;
} pace_datagram_t;

/**
 * Datagrams have arrived, at least one; they are gone when this returns. `udp` is lent: to answer by
 * it, and not to be freed.
 */
typedef void (*pace_udp_data_fn)(void *user_data,
                                 pace_udp_t *udp,
                                 const pace_datagram_t *datagrams,
                                 size_t count);

/**
 * An error came instead: on a connected socket that nobody listens at its peer, say. The socket goes
 * on. `os_error` is as for pace_conn_error_fn.
 */
typedef void (*pace_udp_error_fn)(void *user_data, pace_udp_t *udp, int32_t os_error);

/** The end, exactly once, and the last call. `reason` is a PACE_REASON_ number. */
typedef void (*pace_udp_close_fn)(void *user_data, pace_udp_t *udp, uint32_t reason);

/**
 * What a datagram socket does. Its hooks never run on two threads at once; they run on threads of the
 * pool, and should not block. To receive on several threads, open several sockets with reuse_port. All
 * but `data` may be NULL. Call pace_udp_hooks_init() first.
 */
typedef struct pace_udp_hooks_t {
    /** Set by pace_udp_hooks_init(). */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Datagrams have arrived. Not NULL. */
    pace_udp_data_fn data;
    /** An error came instead. */
    pace_udp_error_fn error;
    /** The end. */
    pace_udp_close_fn close;
    /** What the hooks are given. */
    void *user_data;
    /** Runs once, after `close`. NULL: nothing. */
    pace_drop_fn drop;
} pace_udp_hooks_t;

/**
 * Settings of a datagram socket. Call pace_udp_options_init() first, and set at least one of fd, bind
 * and connect.
 */
typedef struct pace_udp_options_t {
    /** Set by pace_udp_options_init(). */
    uint32_t struct_size;
    /**
     * A socket for datagrams that is bound already. It stays the caller's, who may close it at once.
     * Default −1: none.
     */
    int32_t fd;
    /**
     * Receives here: "127.0.0.1:80", "[::1]:80" or "*:80". Port 0 is a free port, which
     * pace_udp_address() tells. A socket that sends to a multicast group does so on the interface
     * whose IPv4 address it is bound to. NULL: anywhere.
     */
    const char *bind;
    /** Sends to this peer, and receives from nobody else. NULL: from everybody. */
    const char *connect;
    /** Datagrams received in one system call, 1 to 64. Default 32. */
    uint32_t batch;
    /**
     * Bytes received of a datagram, 1 to 65535; what is longer is truncated, and says so. The socket
     * has room for a batch of such, which costs memory where datagrams have been. Default 65535.
     */
    uint32_t max_datagram;
    /**
     * Bytes that the kernel buffers for sending, up to 2^30 (it doubles them). Default 0: the
     * system's.
     */
    uint64_t send_buffer;
    /** The same for receiving; what does not fit is lost. */
    uint64_t receive_buffer;
    /** Hops that what it sends to a group may take, 0 to 255. Default 1: the own network. */
    uint32_t multicast_ttl;
    /** An IPv6 socket takes no IPv4. Default: "[::]" takes both. */
    bool v6_only;
    /**
     * Several sockets may be bound to the same port; the kernel deals datagrams out by their source.
     * Default: no.
     */
    bool reuse_port;
    /** May send to broadcast addresses. Default: no. */
    bool broadcast;
    /** What it sends to a group comes back to members on this host. Default: yes. */
    bool multicast_loop;
} pace_udp_options_t;

/** What a socket has done so far. The counts add up exactly while no datagram is being handled. Set struct_size to sizeof the struct before the call. */
typedef struct pace_udp_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Datagrams that the hook was given. */
    uint64_t received;
    /** Their bytes, with those that were cut off. */
    uint64_t received_bytes;
    /** Datagrams whose end was cut off. */
    uint64_t truncated;
    /** Errors that came instead of datagrams. */
    uint64_t errors;
    /** Datagrams that the kernel has taken. */
    uint64_t sent;
    /** Their bytes. */
    uint64_t sent_bytes;
    /** Calls of which the kernel took nothing, since it had no room. */
    uint64_t refused;
    /** Calls of which the kernel took nothing, for another reason. */
    uint64_t failed;
    /** Of a socket that is pulled: datagrams that were received and dropped, since too much waited. */
    uint64_t dropped;
} pace_udp_stats_t;

/**
 * Fills hooks with NULL: pace_udp_hooks_init(&hooks, sizeof hooks).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_hooks_init(pace_udp_hooks_t *hooks, size_t size);

/**
 * Fills options with the defaults: pace_udp_options_init(&options, sizeof options).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_options_init(pace_udp_options_t *options, size_t size);

/**
 * Reads an address with a port, "127.0.0.1:80", "[::1]:80" or "*:80".
 *
 * PACE_EINVAL for text that is none.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ip_read(const char *text, pace_ip_t *ip);

/**
 * The opposite: text of an address, in `size` bytes at `text`, with a NUL. PACE_ADDRESS_SIZE is enough.
 *
 * PACE_EINVAL if `size` is not enough, or the version is not 4 or 6.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ip_text(const pace_ip_t *ip,
                           char *text,
                           size_t size);

/**
 * Opens a datagram socket. `options` and all that they point to are copied. If it fails, nothing of
 * `hooks` has moved; unless it fails after the hook `close` was called, because the pool has shut
 * down at this moment: then `drop` has run.
 *
 * PACE_EINVAL names the setting, its value and its bounds; PACE_EOS names the address that could not be
 * bound or connected to, and the reason; PACE_EFULL when all max_handles are in use; PACE_ESHUTDOWN;
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_new(pace_pool_t *pool,
                           const pace_udp_options_t *options,
                           const pace_udp_hooks_t *hooks,
                           pace_udp_t **udp);

/**
 * Where it receives, as text, with the port that it got: in `size` bytes at `text`, with a NUL.
 * PACE_ADDRESS_SIZE is enough.
 *
 * PACE_EINVAL if `size` is not enough.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_address(pace_udp_t *udp, char *text, size_t size);

/**
 * Sends a datagram to the peer that the socket is connected to, without waiting and without a queue.
 *
 * PACE_EFULL: the kernel has no room, and the datagram is not sent. PACE_EOS names the address, and
 * the reason, which on a connected socket may be an earlier datagram's. PACE_EINVAL if it is not
 * connected; PACE_ESTALE if it is closed.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_send(pace_udp_t *udp,
                            const void *bytes,
                            size_t size);

/**
 * Sends a datagram to a peer. Otherwise as pace_udp_send().
 *
 * PACE_EFULL, PACE_EOS, PACE_ESTALE as there; PACE_EINVAL if the address's version is not 4 or 6.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_send_to(pace_udp_t *udp,
                               const void *bytes,
                               size_t size,
                               const pace_ip_t *to);

/**
 * Sends datagrams to their peers in order, up to 64 in one system call. *sent is how many the kernel
 * has taken; for the reason why it did not take the next one, try that.
 *
 * PACE_EFULL, PACE_EOS, PACE_ESTALE as for pace_udp_send(), if it did not take the first; PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_udp_send_batch(pace_udp_t *udp,
                                  const pace_datagram_t *datagrams,
                                  size_t count,
                                  size_t *sent);

/**
 * Receives what is sent to this group, "239.1.2.3" or "ff02::1", on the interface of this index; 0:
 * the system's choice.
 *
 * PACE_EOS names the group, and the reason; PACE_EINVAL for text that is no address; PACE_ESTALE if the
 * socket is closed.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_join_multicast(pace_udp_t *udp,
                                      const char *group,
                                      uint32_t interface);

/**
 * The opposite of pace_udp_join_multicast().
 *
 * PACE_EOS, PACE_EINVAL, PACE_ESTALE as there.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_leave_multicast(pace_udp_t *udp,
                                       const char *group,
                                       uint32_t interface);

/**
 * Closes: from here on nothing is sent, and what has arrived is dropped. The hook `close` follows on a
 * thread of the pool. A hook that is running is not interrupted. The socket is to be freed still.
 *
 * PACE_ESTALE if it is closed already.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_close(pace_udp_t *udp);

/**
 * Whether it is not closed.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_is_open(pace_udp_t *udp, bool *is_open);

/**
 * Waits until it has ended: its hook `close` has returned, and its port is free.
 *
 * PACE_EDEADLOCK on a thread of its pool.
 *
 * Threads: any but the pool's. In handlers: no.
 */
pace_status_t pace_udp_wait(pace_udp_t *udp);

/**
 * Handles what has arrived, and closes. What is not handled after `time_ns` is dropped. *drained says
 * whether everything was handled; `drained` may be NULL.
 *
 * It returns when the socket has ended, or 1 s after `time_ns` at the latest. Inside a handler of the
 * pool it is only a request, and returns at once with false.
 *
 * Threads: any. In handlers: yes, as a request.
 */
pace_status_t pace_udp_drain(pace_udp_t *udp,
                             uint64_t time_ns,
                             bool *drained);

/**
 * The books.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_stats(pace_udp_t *udp, pace_udp_stats_t *stats);

/**
 * Closes a socket if that has not been done, and frees it. It waits until its hook `close` has returned and `drop` has
 * run, unless pace_udp_close() was called before. NULL is a no-op. In a forked child it does nothing.
 *
 * Threads: any, as long as no other uses the socket any more. In handlers, and on threads of the pool: yes, it never
 * waits there.
 */
void pace_udp_free(pace_udp_t *udp);

/* ---------------------------------------------------- Datagram sockets that are pulled as data */

/** A datagram has arrived. */
#define PACE_UDP_EVENT_DATAGRAM 0

/** An error came instead; the socket goes on. */
#define PACE_UDP_EVENT_ERROR 1

/** A datagram socket without hooks: what comes is pulled. */
typedef struct pace_udp_pulled_t pace_udp_pulled_t;

/**
 * What has come to a datagram socket. Its bytes stay where they are until the thread that has pulled it
 * pulls again, from whatever socket, or ends.
 */
typedef struct pace_udp_event_t {
    /** PACE_UDP_EVENT_. */
    uint32_t kind;
    /** ERROR: as for pace_udp_error_fn. DATAGRAM: 0. */
    int32_t os_error;
    /** DATAGRAM: its bytes, up to max_datagram. */
    const void *bytes;
    /** How many. */
    size_t size;
    /** How long it was; more than `size` if its end is lost. */
    size_t length;
    /** Who has sent it. An IPv4 address looks like ::ffff:0:0/96 on a socket that takes both. */
    pace_ip_t peer;
} pace_udp_event_t;

/**
 * Opens a datagram socket, as pace_udp_new() does, for a host that pulls what comes. Of what it has
 * not pulled up to `max_waiting` bytes are kept, 128 for each datagram included: 1024 to 2^40.
 * Datagrams beyond that are dropped, and counted as such (pace_udp_stats_t).
 *
 * As pace_udp_new(); PACE_EINVAL for `max_waiting`.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_pulled_new(pace_pool_t *pool,
                                  const pace_udp_options_t *options,
                                  uint64_t max_waiting,
                                  pace_udp_pulled_t **pulled);

/**
 * *udp is the socket itself, for all that takes one but pace_udp_free(): to send by it, for its address,
 * its end and its books. It lives as long as `pulled`.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_pulled_udp(pace_udp_pulled_t *pulled,
                                  pace_udp_t **udp);

/**
 * Waits for up to `timeout_ns` for events, and takes up to `capacity` of them, in the order in which
 * they came. PACE_OK: *count is 1 or more.
 *
 * PACE_ETIMEDOUT: nothing came; PACE_ESHUTDOWN: the socket is closed, and all that had come before was
 * pulled; PACE_EINVAL for a capacity of 0; PACE_EDEADLOCK on a thread of the pool, unless the time is 0.
 *
 * Threads: any but the pool's own. In handlers: no.
 */
pace_status_t pace_udp_pulled_pull(pace_udp_pulled_t *pulled,
                                   pace_udp_event_t *events,
                                   size_t capacity,
                                   uint64_t timeout_ns,
                                   size_t *count);

/**
 * *fd is readable while a pull would not wait. It belongs to the socket: never read or close it.
 *
 * PACE_EOS if there are no descriptors left.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_pulled_pollable(pace_udp_pulled_t *pulled, int32_t *fd);

/**
 * Closes the socket if that has not been done, and frees it. What nobody has pulled is dropped. NULL is
 * a no-op. In a forked child it does nothing.
 *
 * Threads: any, as long as no other uses the socket any more. In handlers: yes, it never waits.
 */
void pace_udp_pulled_free(pace_udp_pulled_t *pulled);

/* ----------------------------------------------- Worker pools: what a task's function is given */

/** An attempt, for as long as its function runs: good for that call only, and on that thread. */
typedef struct pace_attempt_t pace_attempt_t;

/**
 * A task of a worker pool. It is called for each attempt, by one thread at a time, unless its task type overlaps
 * retries. *outcome is PACE_EFAILED beforehand; set it to 0 for success, or to a number of your own. What it says by
 * pace_attempt_fail(), pace_attempt_permanent() and pace_attempt_retry_after() counts if the outcome is
 * not 0.
 */
typedef void (*pace_attempt_fn)(void *user_data, pace_attempt_t *attempt, int32_t *outcome);

/** One task of a batch. */
typedef struct pace_attempt_work_t {
    /** The task; not NULL. */
    pace_attempt_fn run;
    /** What it is given. */
    void *user_data;
    /** Runs once after its last attempt, or when it ends without one. NULL: nothing. */
    pace_drop_fn drop;
} pace_attempt_work_t;

/**
 * 1 for the first attempt, 2 for the first retry.
 *
 * Threads: the function's. In handlers: in this task's; it never waits.
 */
pace_status_t pace_attempt_number(const pace_attempt_t *attempt, uint32_t *number);

/**
 * The task's number, as in its report.
 *
 * Threads: the function's. In handlers: in this task's; it never waits.
 */
pace_status_t pace_attempt_task(const pace_attempt_t *attempt, uint64_t *id);

/**
 * The name of the task's task type. Static.
 *
 * Threads: the function's. In handlers: in this task's; it never waits.
 */
pace_status_t pace_attempt_name(const pace_attempt_t *attempt, const char **name);

/**
 * Whether the function should give up: the task was cancelled, its time is over, a retry has overtaken it,
 * or the worker pool stops. What it answers after that is not waited for by anybody.
 *
 * Threads: the function's. In handlers: in this task's; it never waits.
 */
pace_status_t pace_attempt_is_cancelled(const pace_attempt_t *attempt,
                                        bool *cancelled);

/**
 * How long until the time of this attempt is over: 0 if it is, PACE_FOREVER if there is no limit.
 *
 * Threads: the function's. In handlers: in this task's; it never waits.
 */
pace_status_t pace_attempt_time_left(const pace_attempt_t *attempt, uint64_t *time_ns);

/**
 * Says that the function still makes progress: the time of this attempt begins anew.
 *
 * Threads: the function's. In handlers: in this task's; it never waits.
 */
pace_status_t pace_attempt_heartbeat(const pace_attempt_t *attempt);

/**
 * Says what went wrong, for the report. The text is copied; what is not UTF-8 in it is replaced by U+FFFD. It
 * does not make the attempt fail: the outcome does.
 *
 * PACE_EINVAL for a text that is NULL.
 *
 * Threads: the function's. In handlers: in this task's; it never waits.
 */
pace_status_t pace_attempt_fail(pace_attempt_t *attempt,
                                const char *message);

/**
 * Says that no other attempt will help: if this one fails, there is none.
 *
 * Threads: the function's. In handlers: in this task's; it never waits.
 */
pace_status_t pace_attempt_permanent(pace_attempt_t *attempt);

/**
 * Says that another attempt may help, not earlier than `delay_ns` from now.
 *
 * Threads: the function's. In handlers: in this task's; it never waits.
 */
pace_status_t pace_attempt_retry_after(pace_attempt_t *attempt, uint64_t delay_ns);

/* ----------------------------------------------------- Worker pools: what runs around attempts */

/**
 * Called before an attempt's function. *outcome is 0 beforehand: then the attempt goes on. Any other
 * refuses it: it fails as if its function had reported that, with what was said by pace_attempt_fail(),
 * pace_attempt_permanent() and pace_attempt_retry_after().
 */
typedef void (*pace_before_fn)(void *user_data, pace_attempt_t *attempt, int32_t *outcome);

/** Called after an attempt's function, if it was not refused before, whatever came of it. */
typedef void (*pace_after_fn)(void *user_data, const pace_attempt_t *attempt);

/**
 * Called before the one after, if the attempt has failed, with what it reported and what went wrong. The
 * text is good during the call.
 */
typedef void (*pace_on_error_fn)(void *user_data,
                                 const pace_attempt_t *attempt,
                                 int32_t outcome,
                                 const char *message);

/**
 * What runs around each attempt of every task of a worker pool, on the attempt's own thread and within
 * its time, by several threads at once. Each function may be NULL.
 */
typedef struct pace_middleware_t {
    /** Before the function. */
    pace_before_fn before;
    /** After it. */
    pace_after_fn after;
    /** Before that, if the attempt has failed. */
    pace_on_error_fn on_error;
    /** What they are given. */
    void *user_data;
    /** Runs once after the last call, when the worker pool and its pool have been freed. NULL: nothing. */
    pace_drop_fn drop;
} pace_middleware_t;

/* ------------------------------------------------------------- Worker pools: how a task stands */

/** It waits for its first attempt. */
#define PACE_TASK_PENDING 0

/** An attempt runs. */
#define PACE_TASK_RUNNING 1

/** An attempt has failed, and the next one is to come. */
#define PACE_TASK_RETRYING 2

/** It has succeeded. A task that has this number or a greater one has ended. */
#define PACE_TASK_COMPLETED 3

/** Its last attempt failed. */
#define PACE_TASK_FAILED 4

/** It was cancelled, or the pool stopped. */
#define PACE_TASK_CANCELLED 5

/** One of its times was over. */
#define PACE_TASK_TIMED_OUT 6

/** It had been taken in, and was dropped for the sake of others. */
#define PACE_TASK_REJECTED 7

/* -------------------------------------------------------------------------------- Worker pools */

/** In a worker pool's shutdown: so many tasks of a name completed since it began. */
#define PACE_ENDED_COMPLETED 0

/** A task was cancelled. */
#define PACE_ENDED_CANCELLED 1

/** A task's function has not returned, or its attempt is out with a host that has not completed it. */
#define PACE_ENDED_STUCK 2

/** A clean-up hook for which there was no time, or that had not returned when the time was over. */
#define PACE_ENDED_HOOK 3

/** A worker pool over a pool, whose threads run its tasks beside everything else. */
typedef struct pace_workers_t pace_workers_t;

/**
 * Settings of a worker pool. Call pace_workers_config_init(), change what you like, call
 * pace_workers_new().
 */
typedef struct pace_workers_config_t {
    /** Set by pace_workers_config_init(). */
    uint32_t struct_size;
    /**
     * How many tasks may wait for their keys, and how many for the rate of each task type, before others are
     * refused: 1 to 2^24. Default 65,536.
     */
    uint32_t max_waiting;
    /** How many tasks may wait to be pulled before others are refused: 1 to 2^24. Default 2^20. */
    uint32_t max_pulled;
    /**
     * How many tasks with ids may exist at once: 1 to 2^24, rounded up to the next multiple of 256. Default
     * 2^22. Memory is taken as they appear.
     */
    uint32_t max_tasks;
    /**
     * From what the jitter of retries is drawn, so that a run can be repeated. 0 (default): another one
     * for each worker pool.
     */
    uint64_t seed;
    /**
     * Adapt the number of active threads to how long tasks wait, between min_active and all. One worker
     * pool of a pool may. Default: all threads are active.
     */
    bool scaling;
    /** Count for pace_workers_metrics(). Default: not, for it costs each task something. */
    bool metrics;
    /** Zero. */
    uint8_t reserved[2];
    /** The least number of active threads, at least 1. Default 1. */
    uint32_t min_active;
    /** More threads when the percentile of the waits is above this. Default 2 ms. */
    uint64_t scaling_high_ns;
    /** Fewer when it is below this, at most half of scaling_high_ns. Default 200 µs. */
    uint64_t scaling_low_ns;
    /** How often it is looked at, 1 ms to 1 h. Default 20 ms. */
    uint64_t scaling_period_ns;
    /** Which percentile, 1 to 100. Default 95. */
    uint32_t scaling_percentile;
    /** How many quiet periods in a row it takes for one thread less, at least 1. Default 10. */
    uint32_t scaling_patience;
    /** What figures of it are labelled with: UTF-8. NULL: "workers". */
    const char *name;
    /** PACE_OVERLOAD_: what is done when a lane is full, unless a task type or a task says otherwise. */
    uint32_t full;
    /**
     * How many tasks with PACE_OVERLOAD_DROP_OLDEST may wait, in all lanes together, before the oldest is
     * dropped: up to 2^24. 0 (default): the pool's lane_capacity.
     */
    uint32_t max_droppable;
    /** For PACE_OVERLOAD_WAIT: for how long. PACE_FOREVER: as long as it takes. */
    uint64_t full_wait_ns;
    /** What runs around each attempt, the first outermost. NULL (default): nothing. */
    const pace_middleware_t *middleware;
    /** How many those are, up to 64. */
    uint32_t middleware_count;
    /** Zero. */
    uint32_t reserved2;
    /**
     * The log of its tasks, which it keeps, in place of the pool's. Each end of a task is a record then, and not only
     * one that failed: task.completed, task.failed, task.timed_out, task.cancelled or task.rejected, at the level debug,
     * with id, name, attempts, queue_ns, run_ns and thread. NULL (default): the pool's log.
     */
    pace_log_t *log;
} pace_workers_config_t;

/** A clean-up hook. */
typedef void (*pace_clean_up_fn)(void *user_data);

/** How the shutdown of a worker pool went. Set struct_size to sizeof the struct before the call. */
typedef struct pace_workers_report_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** It was called inside the pool, so it was only a request: new tasks are refused. */
    bool requested;
    /** Everything ended by itself. */
    bool drained;
    /** Zero. */
    uint8_t reserved[2];
    /** Tasks that completed since it began. */
    uint64_t completed;
    /** Tasks that were cancelled. */
    uint64_t cancelled;
    /** Tasks whose functions have not returned. */
    uint32_t stuck;
    /** Clean-up hooks for which there was no time, or that had not returned when the time was over. */
    uint32_t failed_hooks;
} pace_workers_report_t;

/**
 * Called for each line of a shutdown's report: PACE_ENDED_, the name of the task type or hook, how many, and
 * the thread (PACE_ENDED_STUCK only) or PACE_NONE. The name is good during the call.
 */
typedef void (*pace_ended_fn)(void *user_data,
                              uint32_t what,
                              const char *name,
                              uint64_t count,
                              uint32_t thread);

/**
 * Fills a configuration with the defaults. `size` is sizeof *config.
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_config_init(pace_workers_config_t *config, size_t size);

/**
 * Changes a configuration to what the section `workers` of a file of settings says: JSON if its name ends
 * in .json, YAML if in .yaml or .yml. `path` may be NULL. With `environment`, variables PACELINE_WORKERS_…
 * win over the file. What neither says stays as it is; what is changed after this call wins over both.
 *
 * PACE_EINVAL: pace_last_error() tells all that is wrong, each with file or variable, key, value and what
 * is allowed; the configuration is as it was. PACE_EVERSION: pace_workers_config_init() was not called.
 *
 * Threads: any. In handlers: yes; it reads a file.
 */
pace_status_t pace_workers_config_load(pace_workers_config_t *config,
                                       const char *path,
                                       bool environment);

/**
 * Makes a worker pool over a pool. A `config` of NULL means the defaults. It needs no thread of its own.
 *
 * PACE_EINVAL names the field, its value and the allowed range; PACE_EVERSION, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_new(pace_pool_t *pool,
                               const pace_workers_config_t *config,
                               pace_workers_t **workers);

/**
 * Has `run` called at the end of a shutdown, the hook that was registered last first. It runs on a thread of
 * the pool; if none comes to it within a second (or half of the time that is left), or the pool takes no more
 * work, on the thread that shuts down, which cannot leave it alone then. The name is copied.
 *
 * PACE_EINVAL for a name that is not UTF-8.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_on_shutdown(pace_workers_t *workers,
                                       const char *name,
                                       pace_clean_up_fn run,
                                       void *user_data,
                                       pace_drop_fn drop);

/**
 * Shuts a worker pool down: refuses new tasks, lets what was accepted end for up to `drain_for_ns`, then
 * cancels what has not begun and asks what runs to stop, for up to `stop_for_ns`, then runs the clean-up
 * hooks for up to `clean_up_for_ns` (one that takes longer goes on, on a thread of the pool, and its `drop` runs
 * when it has returned). The pool beneath goes on. Hosts that pull should go on meanwhile. Calling it again is
 * harmless. `report` and `each` may be NULL; `each` is called for each line of the report, on this thread, before
 * this returns.
 *
 * Inside the pool it is a request: new tasks are refused from then on, and it returns.
 *
 * PACE_EVERSION: report->struct_size was not set.
 *
 * Threads: any. In handlers: yes, as a request.
 */
pace_status_t pace_workers_shutdown(pace_workers_t *workers,
                                    uint64_t drain_for_ns,
                                    uint64_t stop_for_ns,
                                    uint64_t clean_up_for_ns,
                                    pace_workers_report_t *report,
                                    pace_ended_fn each,
                                    void *user_data);

/**
 * Frees a worker pool: ids of its tasks name nothing any more. It is not shut down by that: what was
 * accepted goes on until the pool stops, unobserved; with the pool an attempt that was pulled and not completed
 * has failed for good. Free its task types before or after. NULL: nothing.
 *
 * Threads: any, as long as no other uses the worker pool any more. In handlers: yes, it never waits.
 */
void pace_workers_free(pace_workers_t *workers);

/* ---------------------------------------------------------- How what has failed is tried again */

/** For a task type: no retries. For a task: as its task type. */
#define PACE_RETRY_DEFAULT 0

/** No retries. */
#define PACE_RETRY_NONE 1

/** first_ns after each failure. */
#define PACE_RETRY_FIXED 2

/** first_ns after the first failure, twice that after the second, three times after the third. */
#define PACE_RETRY_LINEAR 3

/**
 * first_ns after the first failure, and twice as long after each other. first_ns and cap_ns are 100 ms
 * and 30 s if both are 0.
 */
#define PACE_RETRY_EXPONENTIAL 4

/** Anything from first_ns to cap_ns after each failure. */
#define PACE_RETRY_RANDOM 5

/** What the task type's retry_delay says. */
#define PACE_RETRY_CUSTOM 6

/** As the shape has it: FULL for exponential delays, else NONE. */
#define PACE_JITTER_DEFAULT 0

/** Exactly the delay. */
#define PACE_JITTER_NONE 1

/** Anything from nothing to the delay, evenly. */
#define PACE_JITTER_FULL 2

/** Anything from half of the delay to all of it, evenly. */
#define PACE_JITTER_EQUAL 3

/** How failed attempts are followed by others. All zero: PACE_RETRY_DEFAULT. */
typedef struct pace_retry_t {
    /** PACE_RETRY_. */
    uint32_t shape;
    /** PACE_JITTER_. */
    uint32_t jitter;
    /** How many retries there are at most: one less than attempts. */
    uint32_t retries;
    /** Zero. */
    uint32_t reserved;
    /** See PACE_RETRY_. */
    uint64_t first_ns;
    /** No delay is longer. 0: no cap. For PACE_RETRY_RANDOM the longest delay. */
    uint64_t cap_ns;
    /** No attempt begins later after the submission than this. PACE_FOREVER, or 0: no limit. */
    uint64_t within_ns;
} pace_retry_t;

/* ------------------------------------------------ Worker pools: task types, and their settings */

/**
 * For a task: as its task type; for a task type: as its worker pool; for that: wait for room outside the pool's
 * threads, as long as it takes; inside, PACE_EFULL.
 */
#define PACE_OVERLOAD_DEFAULT 0

/** PACE_EFULL at once. */
#define PACE_OVERLOAD_REJECT 1

/** Wait for full_wait_ns at most. */
#define PACE_OVERLOAD_WAIT 2

/** The first attempt runs in the submitter's thread; inside the pool PACE_EFULL. */
#define PACE_OVERLOAD_RUN_HERE 3

/** The oldest task with this policy in the lowest lane is dropped, and ends as PACE_TASK_REJECTED. */
#define PACE_OVERLOAD_DROP_OLDEST 4

/** A task type of tasks: a name with its settings and its statistics. */
typedef struct pace_task_type_t pace_task_type_t;

/**
 * The delay before a retry, in nanoseconds: `retry` is 1 after the first failure. It is called on the
 * threads of the pool, by several at once, and must be quick.
 */
typedef uint64_t (*pace_delay_fn)(void *user_data, uint32_t retry);

/** Settings of a task type. Call pace_task_type_config_init(), change what you like, call pace_task_type_new(). */
typedef struct pace_task_type_config_t {
    /** Set by pace_task_type_config_init(). */
    uint32_t struct_size;
    /** PACE_LANE_. Default PACE_LANE_NORMAL. */
    uint32_t lane;
    /** Default: no retries. */
    pace_retry_t retry;
    /**
     * How long each attempt may take, up to 100 years. Of one that was pulled this limit and deadline_ns may end
     * 100 ms late while all `max_handles` of the pool are in use. PACE_FOREVER (default), or 0: no limit.
     */
    uint64_t timeout_ns;
    /** How long a task may wait for its first attempt. PACE_FOREVER (default), or 0: no limit. */
    uint64_t queue_timeout_ns;
    /**
     * How long a task may take in all, from its submission to its end. PACE_FOREVER (default), or 0: no
     * limit.
     */
    uint64_t deadline_ns;
    /** For PACE_RETRY_CUSTOM. */
    pace_delay_fn retry_delay;
    /** What it is given. */
    void *retry_data;
    /** Runs once after its last call: when the pool is gone and the ids of its tasks, or later. NULL: nothing. */
    pace_drop_fn retry_drop;
    /** Retries are bounded together by the budget of the next three fields. Default: they are not. */
    bool retry_budget;
    /** Zero. */
    uint8_t reserved[3];
    /** So many retries in each second, 0 to 1,000,000. Default 10. */
    uint32_t budget_per_second;
    /** So many retries for each first attempt besides, 0 to 1000. Default 0.2. */
    double budget_ratio;
    /** At most so many retries are saved up, 1 to 1,000,000. Default 100. */
    uint32_t budget_burst;
    /** So many attempts may start in each rate_per_ns. PACE_UNLIMITED32 (default), or 0: no limit. */
    uint32_t rate_starts;
    /** 1 ns for each start to 100 years. Default one second. */
    uint64_t rate_per_ns;
    /** So many starts at once after a time with fewer, at least 1. Default 1. */
    uint32_t rate_burst;
    /**
     * So many attempts may run at once. One that was pulled counts until its task has ended.
     * PACE_UNLIMITED32 (default), or 0: no limit.
     */
    uint32_t max_running;
    /**
     * How long each attempt may take before it is asked to give up; nothing else follows. PACE_FOREVER (default), or
     * 0: no limit.
     */
    uint64_t soft_timeout_ns;
    /**
     * How long an attempt whose time is over, and that another might follow, may take to return: then the
     * task ends, unless its retries overlap. 0 (default): one second.
     */
    uint64_t grace_ns;
    /** PACE_OVERLOAD_: what is done when the lane is full. Default: as its worker pool. */
    uint32_t full;
    /** Zero. */
    uint32_t reserved2;
    /** For PACE_OVERLOAD_WAIT: for how long. PACE_FOREVER: as long as it takes. */
    uint64_t full_wait_ns;
    /**
     * An attempt whose time is over does not hold up the next one: both may run at once, so the function
     * must bear that. What the one that was overtaken comes to is discarded and counted; it is asked to
     * give up. `drop` runs once, when all have returned. Each attempt on a thread of the pool counts for
     * max_running. Not for periodic tasks. Default: the next one waits.
     */
    bool overlap_retries;
    /** Zero. */
    uint8_t reserved3[7];
    /**
     * For tasks without a function: how long a host may be silent about an attempt that it has pulled, before
     * it counts as gone: 1 ms to 100 years. Then the attempt has failed, and is followed by another as after
     * any failure; a failed end is told by PACE_TASK_EVENT_END. pace_workers_heartbeat() is a sign of life;
     * what the host says later is PACE_ESTALE, and its attempt may have run beside the next. While all
     * `max_handles` of the pool are in use it may end 100 ms late. PACE_FOREVER (default), or 0: no limit, it is
     * waited for.
     */
    uint64_t lease_ns;
} pace_task_type_config_t;

/**
 * Fills a configuration with the defaults. `size` is sizeof *config.
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_task_type_config_init(pace_task_type_config_t *config, size_t size);

/**
 * A task type of this name. Task types are for names that are few ("resize", not "resize image 17"): what is known
 * of one is kept as long as the pool, and the name as long as the process. The name is UTF-8, and is copied.
 * A `config` of NULL means the defaults. The same name with the same settings is the same task type.
 *
 * PACE_EINVAL names the field, its value and the allowed range; or the name has other settings already.
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_task_type_new(pace_workers_t *workers,
                                 const char *name,
                                 const pace_task_type_config_t *config,
                                 pace_task_type_t **task_type);

/**
 * Runs a function once, in the task type's lane: no id, no limits, no retries, and it costs what
 * pace_pool_post() costs. It is counted in the pool's books, not in the task type's. While the lane is full the
 * task type's policy is followed; PACE_OVERLOAD_DROP_OLDEST is PACE_OVERLOAD_REJECT here, for what has no id is not
 * dropped, and drops nobody.
 *
 * PACE_EFULL, PACE_ESHUTDOWN; PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_task_type_post(const pace_task_type_t *task_type,
                                  pace_task_fn run,
                                  void *user_data,
                                  pace_drop_fn drop);

/**
 * Frees what names a task type. Its tasks go on, and what is known of the name is kept. NULL: nothing.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
 */
void pace_task_type_free(pace_task_type_t *task_type);

/* ------------------------------------------------------------------------- Worker pools: tasks */

/**
 * What one task, or all of a batch, have in place of their task type's settings. Call
 * pace_task_options_init(), and change what you like.
 */
typedef struct pace_task_options_t {
    /** Set by pace_task_options_init(). */
    uint32_t struct_size;
    /** PACE_LANE_. PACE_DEFAULT: the task type's. */
    uint32_t lane;
    /** PACE_RETRY_DEFAULT: the task type's. */
    pace_retry_t retry;
    /** How long each attempt may take. 0: as the task type has it; PACE_FOREVER: no limit. So for the next two. */
    uint64_t timeout_ns;
    /** How long it may wait for its first attempt. */
    uint64_t queue_timeout_ns;
    /** How long it may take in all, from now to its end. */
    uint64_t deadline_ns;
    /**
     * Not before so long from now; up to 100 ms later while all `max_handles` of the pool are in use. More than 100
     * years are taken as 100 years. Its limits begin when it is due.
     */
    uint64_t delay_ns;
    /**
     * If `keyed`: of the tasks of a worker pool with equal keys one runs at a time, in the order of their
     * submission.
     */
    uint64_t key;
    /** It has a key. */
    bool keyed;
    /** Zero. */
    uint8_t reserved[7];
    /**
     * How long each attempt may take before it is asked to give up. 0: as the task type has it; PACE_FOREVER:
     * no limit.
     */
    uint64_t soft_timeout_ns;
    /** How long an attempt whose time is over may take to return. 0: as the task type has it. */
    uint64_t grace_ns;
    /** PACE_OVERLOAD_. Not for tasks without a function. */
    uint32_t full;
    /** Zero. */
    uint32_t reserved2;
    /** For PACE_OVERLOAD_WAIT: for how long. PACE_FOREVER: as long as it takes. */
    uint64_t full_wait_ns;
} pace_task_options_t;

/** How a task ended. Set struct_size to sizeof the struct before the call. */
typedef struct pace_task_report_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** PACE_TASK_COMPLETED or above. */
    uint32_t status;
    /** The task's number, which no other task of this process has or had. */
    uint64_t id;
    /** The name of its task type. Static. */
    const char *name;
    /**
     * What went wrong last; NULL if it has completed. Good until this thread gets another report, or
     * ends.
     */
    const char *message;
    /** What the last attempt reported; PACE_EFAILED if none did, 0 if it has completed. */
    int32_t outcome;
    /** How many attempts were begun. */
    uint32_t attempts;
    /** From its submission, or from when it was due, to the first attempt; or to its end without one. */
    uint64_t queue_time_ns;
    /** What its attempts took together. */
    uint64_t run_time_ns;
    /** The thread of the last one, or PACE_NONE. */
    uint32_t worker;
    /** Zero. */
    uint32_t reserved;
} pace_task_report_t;

/** Called when a task has ended, with PACE_TASK_. */
typedef void (*pace_task_ended_fn)(void *user_data, uint32_t status);

/**
 * Fills options with the defaults. `size` is sizeof *options.
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_task_options_init(pace_task_options_t *options, size_t size);

/**
 * Submits a task of a task type. `options` may be NULL. `task` may be NULL: then the task has no id, and
 * nobody learns its outcome but the statistics. An id is given back by pace_workers_wait() or
 * pace_workers_detach(). From outside the pool's threads it waits while the lane is full; inside a handler
 * it never waits.
 *
 * PACE_EFULL (inside; or all ids are in use; or too many wait for their key, their rate or their time),
 * PACE_ESHUTDOWN, PACE_EINVAL, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_workers_submit(pace_workers_t *workers,
                                  const pace_task_type_t *task_type,
                                  pace_attempt_fn run,
                                  void *user_data,
                                  pace_drop_fn drop,
                                  const pace_task_options_t *options,
                                  pace_task_t *task);

/**
 * Submits `count` tasks of a task type, in order, with the same options, up to 32 by one atomic step (one after
 * the other if they have a key or a delay, if the oldest is to be dropped for them, or if the task type overlaps
 * retries). `tasks` is NULL or has room for
 * `count` ids. *accepted says how many were taken, also for PACE_EFULL and PACE_ESHUTDOWN: of the others
 * user_data is still the caller's.
 *
 * As pace_workers_submit(); PACE_EINVAL, with none taken and *accepted unchanged, if any of them has no
 * `run`.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_workers_submit_batch(pace_workers_t *workers,
                                        const pace_task_type_t *task_type,
                                        const pace_attempt_work_t *work,
                                        size_t count,
                                        const pace_task_options_t *options,
                                        pace_task_t *tasks,
                                        size_t *accepted);

/**
 * Waits for up to `timeout_ns` until a task has ended, and says how. `report` may be NULL. One thread at a
 * time may wait for a task. PACE_OK gives the id back; its `drop` may run a little later.
 *
 * The others do not give it back: PACE_ETIMEDOUT, PACE_EBUSY (another thread waits), PACE_EDEADLOCK (on
 * a thread of the pool, when all others wait already), PACE_ESTALE, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes; it hands leadership on before it waits.
 */
pace_status_t pace_workers_wait(pace_workers_t *workers,
                                pace_task_t task,
                                uint64_t timeout_ns,
                                pace_task_report_t *report);

/**
 * How a task stands: PACE_TASK_. The answer may be out of date when it arrives, unless it is an end.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_status(pace_workers_t *workers,
                                  pace_task_t task,
                                  uint32_t *status);

/**
 * Cancels a task. *cancelled: true, it waited, and has ended as PACE_TASK_CANCELLED; false, it runs and
 * is asked to give up, or it has ended. Its id is still to be given back.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_cancel(pace_workers_t *workers,
                                  pace_task_t task,
                                  bool *cancelled);

/**
 * Drops a task for the sake of others, by a policy of the host's own. *dropped: true, it waited, and has
 * ended as PACE_TASK_REJECTED; false, it runs, or has ended. Its id is still to be given back.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_drop(pace_workers_t *workers,
                                pace_task_t task,
                                bool *dropped);

/**
 * Has `ended` called when a task has ended, with PACE_TASK_, on the thread that ends it; at once, here, if
 * it has. It should be short, and cannot give the id back. It may be called for a task several times, with
 * a function each.
 *
 * PACE_ESTALE; PACE_EBUSY while another thread waits for it.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_on_end(pace_workers_t *workers,
                                  pace_task_t task,
                                  pace_task_ended_fn ended,
                                  void *user_data,
                                  pace_drop_fn drop);

/**
 * Gives a task's id back without waiting: it goes on, and nobody learns its outcome.
 *
 * PACE_ESTALE; PACE_EBUSY while another thread waits for it.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_detach(pace_workers_t *workers, pace_task_t task);

/* ----------------------------------------------- Worker pools: a descriptor that tells of ends */

/**
 * A descriptor for a loop of one's own, which becomes readable when a task ends that it was given to. One
 * may serve many tasks.
 */
typedef struct pace_task_fd_t pace_task_fd_t;

/**
 * Makes one that is not readable yet.
 *
 * PACE_EOS when the process or the system is out of descriptors.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_task_fd_new(pace_task_fd_t **task_fd);

/**
 * *fd is readable from the end of a task until pace_task_fd_take(). It belongs to task_fd: never read or
 * close it.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_task_fd_pollable(const pace_task_fd_t *task_fd,
                                    int32_t *fd);

/**
 * *ended says how many ends it has told of since this was last called; it is not readable until the next.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_task_fd_take(const pace_task_fd_t *task_fd,
                                uint64_t *ended);

/**
 * Has `task_fd` tell of a task's end; at once, if it has ended. Each call counts as one. task_fd may be
 * freed before that.
 *
 * PACE_ESTALE; PACE_EBUSY while another thread waits for it.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_tell(pace_workers_t *workers,
                                pace_task_t task,
                                const pace_task_fd_t *task_fd);

/**
 * Frees it; its descriptor is closed when those tasks have ended. NULL: nothing.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
 */
void pace_task_fd_free(pace_task_fd_t *task_fd);

/* ---------------------------------------------- Worker pools: attempts that are pulled as data */

/** An attempt has begun. */
#define PACE_TASK_EVENT_ATTEMPT 0

/**
 * A task has ended as PACE_TASK_CANCELLED, PACE_TASK_TIMED_OUT or PACE_TASK_REJECTED: an attempt of it may
 * be out still, and is to be completed all the same. Or as PACE_TASK_FAILED, when the lease of its last
 * attempt was over.
 */
#define PACE_TASK_EVENT_END 1

/** In a completion: if the attempt failed, another one may help. */
#define PACE_ADVICE_ANY 0

/** None will. */
#define PACE_ADVICE_PERMANENT 1

/** One may, after after_ns. */
#define PACE_ADVICE_AFTER 2

/** What pace_workers_pull() brings. */
typedef struct pace_task_event_t {
    /** PACE_TASK_EVENT_. */
    uint32_t kind;
    /** 1 for a task's first attempt; 0 for an end. */
    uint32_t number;
    /** PACE_TASK_: how the task stands. */
    uint32_t status;
    /** Zero. */
    uint32_t reserved;
    /** What was given when it was submitted. */
    uint64_t token;
    /** Names the attempt until it is completed; 0 for an end. */
    uint64_t attempt;
    /** The task's number, as in its report. */
    uint64_t id;
} pace_task_event_t;

/** How an attempt ended. */
typedef struct pace_attempt_end_t {
    /** Which. */
    uint64_t attempt;
    /** 0 for success; PACE_EFAILED, or a number of your own. */
    int32_t outcome;
    /** PACE_ADVICE_, if the outcome is not 0. */
    uint32_t advice;
    /** For PACE_ADVICE_AFTER. */
    uint64_t after_ns;
    /** What went wrong, for the report: UTF-8, and copied. NULL: nothing is known. */
    const char *message;
    /** Out: how the task stands now: PACE_TASK_RETRYING, or an end. */
    uint32_t status;
    /**
     * Out: PACE_OK; PACE_ESTALE: it was completed already, or its task has ended meanwhile; PACE_EINVAL:
     * the advice is none, and it is still out.
     */
    int32_t result;
} pace_attempt_end_t;

/**
 * Submits a task without a function: each of its attempts comes out of pace_workers_pull(), with
 * `token`, and is completed by pace_workers_complete(). All else is as for pace_workers_submit(), but it
 * never waits. How it ends is the answer to a completion, or a PACE_TASK_EVENT_END.
 *
 * PACE_EFULL, PACE_ESHUTDOWN, PACE_EINVAL, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_submit_pulled(pace_workers_t *workers,
                                         const pace_task_type_t *task_type,
                                         uint64_t token,
                                         const pace_task_options_t *options,
                                         pace_task_t *task);

/**
 * Submits `count` tasks as pace_workers_submit_pulled() does, in order, with the same options. `tasks` is
 * NULL or has room for `count` ids. *accepted says how many were taken, also for PACE_EFULL and
 * PACE_ESHUTDOWN.
 *
 * As there.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_submit_pulled_batch(pace_workers_t *workers,
                                               const pace_task_type_t *task_type,
                                               const uint64_t *tokens,
                                               size_t count,
                                               const pace_task_options_t *options,
                                               pace_task_t *tasks,
                                               size_t *accepted);

/**
 * Waits for up to `timeout_ns` for attempts, begins up to `capacity` of them in the order of lanes, and
 * tells of ends. PACE_OK: *count is 1 or more. An attempt is out until it was completed, by any thread:
 * until then its task runs.
 *
 * PACE_ETIMEDOUT: nothing came; PACE_ESHUTDOWN: the worker pool was shut down, or its pool, and nothing
 * is left to tell (an end that a cancel or a completion brings about after that is told by a pull after
 * it); PACE_EINVAL for a capacity of 0; PACE_EDEADLOCK on a thread of the pool, unless the time is 0.
 *
 * Threads: any but the pool's own. In handlers: no.
 */
pace_status_t pace_workers_pull(pace_workers_t *workers,
                                pace_task_event_t *events,
                                size_t capacity,
                                uint64_t timeout_ns,
                                size_t *count);

/**
 * Completes `count` attempts, in order. Each says in `result` what has become of that, and in `status`
 * how its task stands; the status of the call is the first result that is not PACE_OK.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_complete(pace_workers_t *workers,
                                    pace_attempt_end_t *completions,
                                    size_t count);

/**
 * Whether an attempt that is out should be given up: its task was cancelled, its time is over, or the
 * worker pool stops.
 *
 * PACE_ESTALE: it was completed.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_is_cancelled(pace_workers_t *workers,
                                        uint64_t attempt,
                                        bool *cancelled);

/**
 * Says that an attempt that is out still makes progress: its time and its lease begin anew.
 *
 * PACE_ESTALE: it was completed.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_heartbeat(pace_workers_t *workers, uint64_t attempt);

/**
 * *fd is readable while a pull would not wait. It belongs to the worker pool: never read or close it.
 *
 * PACE_EOS if there are no descriptors left.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_pollable(pace_workers_t *workers,
                                    int32_t *fd);

/* ------------------------------------------------ Worker pools: tasks that run again and again */

/** Ticks that come while a run has not ended are skipped. */
#define PACE_MISSED_TICK_SKIP 0

/** However many there were, one run makes up for them, as soon as the one before has ended. */
#define PACE_MISSED_TICK_COALESCE 1

/** A task that runs again and again. */
typedef struct pace_periodic_t pace_periodic_t;

/**
 * Runs a task every `period_ns` (1 µs to 100 years), first after one period and the options' delay. Each
 * run is a task of its own, with these options: its own attempts and limits. Runs never overlap.
 * `missed` is PACE_MISSED_TICK_. `options` may be NULL. It ends with pace_periodic_free(), or when the worker
 * pool is shut down.
 *
 * PACE_EINVAL, PACE_EVERSION, PACE_ESHUTDOWN; PACE_EFULL when all max_handles of the pool are in use.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_every(pace_workers_t *workers,
                                 const pace_task_type_t *task_type,
                                 uint64_t period_ns,
                                 uint32_t missed,
                                 pace_attempt_fn run,
                                 void *user_data,
                                 pace_drop_fn drop,
                                 const pace_task_options_t *options,
                                 pace_periodic_t **periodic);

/**
 * How many runs were submitted, and how many ticks started none: the run before had not ended, or its
 * lane was full. Both may be NULL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_periodic_counts(const pace_periodic_t *periodic,
                                   uint64_t *runs,
                                   uint64_t *missed);

/**
 * Ends a periodic task, and frees it: no other run begins, one that waits is cancelled, and one that runs is asked to
 * stop (pace_attempt_is_cancelled()). It waits until no run is left and `drop` has run. NULL: nothing.
 *
 * Threads: any, as long as no other uses it any more. In handlers, and on threads of the pool: yes, it never waits
 * there.
 */
void pace_periodic_free(pace_periodic_t *periodic);

/* --------------------------------------------------- Worker pools: statistics, health, figures */

/** Every thread comes back in time. */
#define PACE_HEALTH_READY 0

/** Some threads are inside functions that have outlived their time and do not listen. */
#define PACE_HEALTH_DEGRADED 1

/** All ordinary threads are. */
#define PACE_HEALTH_STUCK 2

/** It takes no more tasks. */
#define PACE_HEALTH_DRAINING 3

/** A JSON object with `families`. */
#define PACE_METRICS_JSON 0

/** Prometheus's text format 0.0.4. Its media type is "text/plain; version=0.0.4; charset=utf-8". */
#define PACE_METRICS_PROMETHEUS 1

/** The text of OpenMetrics 1.0. Its media type is "application/openmetrics-text; version=1.0.0; charset=utf-8". */
#define PACE_METRICS_OPENMETRICS 3

/**
 * What has happened to the tasks of one task type. Counts never fall, but for `running`. Set struct_size to
 * sizeof the struct before the call, here and below.
 */
typedef struct pace_task_type_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Tasks that were handed in. */
    uint64_t submitted;
    /** Those that were taken. */
    uint64_t accepted;
    /** Those that were given back. */
    uint64_t rejected;
    /** Those that have succeeded. */
    uint64_t completed;
    /** Those whose last attempt failed. */
    uint64_t failed;
    /** Those that were cancelled. */
    uint64_t cancelled;
    /** Those whose time was over. */
    uint64_t timed_out;
    /** Those that were taken, and dropped for the sake of others. */
    uint64_t dropped;
    /** Attempts that failed and were followed by another. */
    uint64_t retried;
    /** Retries that their budget did not allow. */
    uint64_t retries_refused;
    /** Attempts whose functions run now, or that are out with a host. */
    uint64_t running;
    /** Outcomes of attempts that had been overtaken by a retry: they changed nothing. */
    uint64_t discarded;
} pace_task_type_stats_t;

/**
 * The books of a worker pool. At rest they balance exactly: submitted = accepted + rejected, and
 * accepted = completed + failed + cancelled + timed_out + dropped + in_flight.
 */
typedef struct pace_workers_audit_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Whether they do. */
    bool balances;
    /** Zero. */
    uint8_t reserved[3];
    /** Tasks that were handed in. */
    uint64_t submitted;
    /** Those that were taken. */
    uint64_t accepted;
    /** Those that were given back. */
    uint64_t rejected;
    /** Those that have succeeded. */
    uint64_t completed;
    /** Those whose last attempt failed. */
    uint64_t failed;
    /** Those that were cancelled. */
    uint64_t cancelled;
    /** Those whose time was over. */
    uint64_t timed_out;
    /** Those that were taken, and dropped for the sake of others. */
    uint64_t dropped;
    /** Those that have not ended: counted, not derived from the others. */
    uint64_t in_flight;
} pace_workers_audit_t;

/** How a worker pool is, with what is left of it. */
typedef struct pace_health_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** PACE_HEALTH_. */
    uint32_t health;
    /** The pool's ordinary threads. */
    uint32_t threads;
    /** Those of them that are stuck. */
    uint32_t stuck;
    /** Those that are active and not stuck: what is left to run tasks now. */
    uint32_t capacity;
    /** Those of them that run nothing now. */
    uint32_t free;
    /** Reserved threads that are not stuck. */
    uint32_t reserved_threads;
    /** Zero. */
    uint32_t reserved;
    /** Tasks that wait in the lanes. */
    uint64_t queued;
} pace_health_t;

/**
 * What has happened to the tasks of a task type.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_task_type_stats(const pace_task_type_t *task_type,
                                   pace_task_type_stats_t *stats);

/**
 * The books.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_workers_audit(pace_workers_t *workers, pace_workers_audit_t *audit);

/**
 * How a worker pool is.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_workers_health(pace_workers_t *workers, pace_health_t *health);

/**
 * The figures of a worker pool that was made with `metrics`, of its pool, and of the process and the
 * system, as text that ends with NUL. *needed says how many bytes it takes, with that, also for
 * PACE_EFULL: `size` is less. `text` may be NULL if `size` is 0. They change from call to call, so ask
 * for some more.
 *
 * PACE_EFULL; PACE_EINVAL if it was made without, or `format` is none of PACE_METRICS_.
 *
 * Threads: any. In handlers: it may read files of /proc; allocates.
 */
pace_status_t pace_workers_metrics(pace_workers_t *workers,
                                   uint32_t format,
                                   char *text,
                                   size_t size,
                                   size_t *needed);

/**
 * The text format of metrics that a request with this `Accept` header wants most: *format is
 * PACE_METRICS_PROMETHEUS or PACE_METRICS_OPENMETRICS, for pace_workers_metrics() and pace_hub_metrics().
 * *media_type is what to send as Content-Type with that text: a collector may take it for another format
 * without. It ends with NUL, and is good for ever. `accept` is NULL if the request has no such header: then
 * *format is PACE_METRICS_PROMETHEUS, as it is where both or neither are wanted.
 *
 * PACE_EINVAL if `accept` is not UTF-8.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_metrics_format(const char *accept,
                                  uint32_t *format,
                                  const char **media_type);

/* ---------------------------------------------------- Worker pools: figures of a program's own */

/** A number that only grows. */
#define PACE_METRIC_COUNTER 0

/** A number that goes up and down. */
#define PACE_METRIC_GAUGE 1

/** How times are distributed: recorded in nanoseconds, and read in seconds. */
#define PACE_METRIC_TIMES 2

/** How amounts of memory or data are, in bytes. */
#define PACE_METRIC_BYTES 3

/** How other numbers are. */
#define PACE_METRIC_NUMBERS 4

/** A figure of a program's own. */
typedef struct pace_metric_t pace_metric_t;

/** A label of a figure: UTF-8, both. */
typedef struct pace_label_t {
    /** Letters, digits and underscores. */
    const char *name;
    /** Anything. */
    const char *value;
} pace_label_t;

/**
 * A figure in the registry of a worker pool that was made with `metrics`: pace_workers_metrics() tells it
 * from then on. `kind` is PACE_METRIC_. A name has letters, digits and underscores, and does not end as
 * text formats end theirs (_total, _sum, ...): the counter "hits" is hits_total there. With the same name and labels it is the same figure. Names,
 * help and labels are UTF-8, and are copied; `labels` are up to 16.
 *
 * PACE_EINVAL if it was made without, a name is not one, or belongs to figures of another kind; PACE_EFULL
 * for more than 16384 figures.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_workers_metric(pace_workers_t *workers,
                                  uint32_t kind,
                                  const char *name,
                                  const char *help,
                                  const pace_label_t *labels,
                                  size_t label_count,
                                  pace_metric_t **metric);

/**
 * Counts so many more.
 *
 * PACE_EINVAL if it is no counter.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_metric_count(const pace_metric_t *metric, uint64_t count);

/**
 * Says what it is now.
 *
 * PACE_EINVAL if it is no gauge.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_metric_set(const pace_metric_t *metric, double value);

/**
 * Says that it is so much more; less, if that is negative.
 *
 * PACE_EINVAL if it is no gauge.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_metric_change(const pace_metric_t *metric, double difference);

/**
 * Records one value of a distribution.
 *
 * PACE_EINVAL if it is none.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_metric_record(const pace_metric_t *metric, uint64_t value);

/**
 * Frees what names a figure, which stays in the registry. NULL: nothing.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
 */
void pace_metric_free(pace_metric_t *metric);

/* --------------------------------------------------------------------------- The hub: messages */

/** After all others. */
#define PACE_PRIORITY_LOW (-1)

/** Unless set. */
#define PACE_PRIORITY_NORMAL 0

/** Before normal ones. */
#define PACE_PRIORITY_HIGH 1

/** Before all others. */
#define PACE_PRIORITY_CRITICAL 2

/** What is published beside a payload. Call pace_publication_init() first. */
typedef struct pace_publication_t {
    /** Set by pace_publication_init(). */
    uint32_t struct_size;
    /** PACE_PRIORITY_. Default normal. */
    int32_t priority;
    /** Up to 64 names and values, of up to 65536 bytes in all, in UTF-8. Default none. */
    const pace_field_t *headers;
    /** How many. */
    size_t header_count;
    /** Zero. */
    uint64_t reserved;
} pace_publication_t;

/** Names a subscription of a hub, until it is unsubscribed or its hub is freed. 0 names none. */
typedef struct pace_subscription_t {
    /** Opaque. */
    uint64_t id;
} pace_subscription_t;

/**
 * A message. What it points to is lent: to a handler until it returns, to the thread that
 * pulled it until that pulls again.
 */
typedef struct pace_message_t {
    /** The number of this message in its hub: 1 for the first. Those of one publisher's messages grow. */
    uint64_t sequence;
    /** When it was published: nanoseconds since 1970, by the clock of the system. */
    uint64_t time_ns;
    /** The lag mark: how many messages this subscription has lost since the one before. */
    uint64_t lost_before;
    /** What it was published with, without a NUL behind it. */
    pace_text_t key;
    /** Its bytes, which lie at any address. NULL if there are none. */
    const void *payload;
    /** How many. */
    size_t size;
    /** Its headers, in order. NULL if it has none. */
    const pace_field_t *headers;
    /** How many. */
    size_t header_count;
    /** PACE_PRIORITY_. */
    int32_t priority;
    /** Which attempt at this message it is: 1 unless the handler has failed at it before. */
    uint32_t attempt;
    /** Whose it is; of no name if it was pulled. */
    pace_subscription_t subscription;
} pace_message_t;

/**
 * The handler of a subscription. *outcome is PACE_EFAILED beforehand; set it to 0 when the message has
 * been dealt with. Whatever is not 0 is a failure, for which pace_message_fail() may give the reason. What becomes
 * of the message then is said by `retry` and `on_exhausted` of the subscription. PACE_EPANIC says that the handler itself
 * is broken, as a panic of a handler in Rust does: the handler is restarted, and suspended when that happens too
 * often. No other failure suspends it.
 */
typedef void (*pace_message_fn)(void *user_data,
                                const pace_message_t *message,
                                int32_t *outcome);

/**
 * Fills in the defaults; `size` is sizeof *publication.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_publication_init(pace_publication_t *publication, size_t size);

/**
 * The reason why the handler that runs on this thread fails at its message, up to 1024 bytes of it; it
 * is copied, and what is not UTF-8 in it is replaced by U+FFFD. Without one the number in *outcome is the
 * reason. Does nothing for a message that is dealt with.
 *
 * PACE_EINVAL for a reason that is NULL; PACE_ESTALE outside a handler of a hub.
 *
 * Threads: the handler's. In handlers: in one of a hub; it never waits.
 */
pace_status_t pace_message_fail(const char *reason);

/* ---------------------------------------------------------------------- The hub: what it keeps */

/**
 * When more waits for the disk than may, the archive goes without what has waited longest. Publishers never wait. The
 * lost messages are counted, told by the notice history.given_up, and make pace_hub_flush() fail.
 */
#define PACE_DISK_GIVE_UP 0

/**
 * When more waits for the disk than may, a publisher writes a batch itself, unless another thread is at it. If there is
 * still no room, because the disk is slow or fails, it waits, for up to disk_wait_ns, and its publication is refused
 * then: PACE_EFULL. On threads of the pool, and in handlers, it does not wait for a disk that fails, and is refused at
 * once. A history of keys under $SYS. gives up nevertheless: notices have no publisher that could wait.
 */
#define PACE_DISK_WAIT 1

/**
 * What a hub keeps of the messages that a pattern matches. Call pace_history_options_init() first. Each limit
 * applies by itself, and what is oldest goes first; PACE_UNLIMITED: no limit.
 */
typedef struct pace_history_options_t {
    /** Set by pace_history_options_init(). */
    uint32_t struct_size;
    /** PACE_DISK_. Default: PACE_DISK_WAIT. */
    uint32_t when_full;
    /** Of which keys. Default NULL: all (">"). */
    const char *pattern;
    /** How many messages are kept in memory. Default 1024. */
    uint64_t keep_count;
    /** How many bytes: payload, headers, and 96 for each message. Default PACE_UNLIMITED: no limit. */
    uint64_t keep_bytes;
    /** For how long, up to 100 years. Default PACE_FOREVER: no limit. */
    uint64_t keep_age_ns;
    /**
     * A file of SQLite that keeps them, too; not ":memory:". The hub's sequences go on where it ends. It is closed when the hub
     * is gone, which is when its last handler has returned: who opens it again ends the pool first. Default
     * NULL: none. PACE_EUNSUPPORTED if the library was built without the feature `archive`.
     */
    const char *archive;
    /** What the archive keeps. Default of all three PACE_UNLIMITED: no limit. */
    uint64_t archive_count;
    /** The size of the file. */
    uint64_t archive_bytes;
    /** Up to 100 years. */
    uint64_t archive_age_ns;
    /**
     * A file that lines of JSON are appended to. The hub does not read them again; those that the disk refuses
     * are lost and counted, and if there is no archive they are given up. Several histories may write one file. It may
     * be a device, as pace_log_config_t.file, and is no pipe. Default NULL: none.
     */
    const char *lines;
    /** How large that becomes before it is renamed to `.1`, 1 KiB to 1 TiB. Default 64 MiB. */
    uint64_t lines_max_size;
    /** How many such files are kept, 1 to 1000. Default 4. */
    uint32_t lines_files;
    /** What waits is written when it is so many messages, 1 to 65536. Default 1024. */
    uint32_t commit_messages;
    /** And after so long in any case, up to an hour. Default 10 ms. */
    uint64_t commit_delay_ns;
    /** How many messages may wait for the disk, commit_messages to 2^32. Default 65536. */
    uint64_t waiting_messages;
    /** How many bytes, 1 MiB to 1 TiB. Default 64 MiB. */
    uint64_t waiting_bytes;
    /** For PACE_DISK_WAIT: up to 100 years. Default 10 s. */
    uint64_t disk_wait_ns;
    /**
     * A commit of the archive counts as durable when the file was written, and not only when the disk has it:
     * it outlives the process, and not a loss of power. Default false.
     */
    bool process_only;
    /** Reads the whole archive when it is opened, and refuses it if it is damaged. Default false. */
    bool check;
    /** Zero. */
    uint8_t reserved[6];
} pace_history_options_t;

/**
 * Fills in the defaults; `size` is sizeof *options.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_history_options_init(pace_history_options_t *options, size_t size);

/* ---------------------------------------------------------------- The hub: keys and publishing */

/**
 * Publishing does not wait for room in mailboxes that let publishers wait: they refuse, and it answers PACE_EFULL. For
 * threads that must not be held up, as those of an event loop.
 */
#define PACE_PUBLISH_NO_WAIT 1

/**
 * There is no receipt: `receipt` is NULL. What mailboxes drop, and what becomes dead letters because subscriptions are
 * suspended, is not seen by this publisher then. A message that is refused is an error still.
 */
#define PACE_PUBLISH_NO_RECEIPT 2

/**
 * If publishing would have to wait for room, it publishes nothing and answers PACE_ETIMEDOUT at once.
 * pace_key_await_room() waits for room. For hosts that hold a lock of their own while they publish, which handlers
 * need.
 */
#define PACE_PUBLISH_TRY 4

/** Keyed publish/subscribe on a pool. */
typedef struct pace_hub_t pace_hub_t;

/** A key of a hub that was looked up once. Publishing with it is faster than with its text. */
typedef struct pace_key_t pace_key_t;

/** Settings of a hub. Call pace_hub_options_init() first. */
typedef struct pace_hub_options_t {
    /** Set by pace_hub_options_init(). */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** The largest payload, 1 byte to 1 GiB. Default 16 MiB. */
    uint64_t max_payload;
    /**
     * How many dead letters are kept, 1 to 10,000,000; then the oldest is forgotten for the newest. 0
     * (default): 10,000.
     */
    uint64_t dead_letters;
    /** What is kept of its messages; queries and replays ask the first that keeps all they want. Default none. */
    const pace_history_options_t *histories;
    /** How many, up to 31. */
    size_t history_count;
    /** The label `hub` of its figures, UTF-8. It is copied. NULL (default): "main". */
    const char *name;
    /**
     * How many errors are kept for pace_hub_errors(), 1 to 1,000,000; then the oldest is forgotten for the
     * newest. 0 (default): 1024.
     */
    uint64_t errors;
    /**
     * How often losses of the same kind are told under $SYS., 1 ms to 1 hour. 0 (default): each second. The
     * first of a burst is told at once.
     */
    uint64_t notice_interval_ns;
    /**
     * Of so many keys, up to 1,000,000, it is counted how often each was published, and of others the sum.
     * 0 (default): of none, which costs nothing.
     */
    uint64_t count_keys;
} pace_hub_options_t;

/**
 * What became of a publication at the moment of publishing. Set struct_size to sizeof the struct before
 * the call. Each subscription that matched is in exactly one of enqueued, dropped, rejected and
 * dead_lettered.
 */
typedef struct pace_receipt_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** The message's number in its hub; of a batch, that of its last message. */
    uint64_t sequence;
    /** Subscriptions whose pattern, and filters, it matched. */
    uint64_t matched;
    /** Of these, those that will get it, or have got it (inline). */
    uint64_t enqueued;
    /** Of these, those that have dropped it because their mailbox was full. */
    uint64_t dropped;
    /** Of these, those that have refused it because their mailbox was full. */
    uint64_t rejected;
    /** Of these, those that are suspended: it has become their dead letter. */
    uint64_t dead_lettered;
} pace_receipt_t;

/**
 * The books of a hub. Set struct_size to sizeof the struct before the call. They balance, exactly,
 * whenever nothing is under way:
 *
 * matched = delivered + failed + dead_lettered + dropped + rejected + discarded + waiting + running
 */
typedef struct pace_hub_audit_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Whether every message that matched is accounted for. */
    bool balances;
    /** Zero. */
    uint8_t reserved[3];
    /** Messages that were published. */
    uint64_t published;
    /** The sum over all messages of the subscriptions that each matched. */
    uint64_t matched;
    /** Of these, those that handlers have dealt with, or pullers have taken. */
    uint64_t delivered;
    /** Those that handlers failed at for good. */
    uint64_t failed;
    /** Those that have become dead letters. */
    uint64_t dead_lettered;
    /** Those that full mailboxes have dropped or conflated. */
    uint64_t dropped;
    /** Those that full mailboxes have refused. */
    uint64_t rejected;
    /** Those that waited when their subscription ended. */
    uint64_t discarded;
    /** Those that wait now. */
    uint64_t waiting;
    /** Those that are being handled now. */
    uint64_t running;
    /** Of those that matched, dead letters that were delivered again. */
    uint64_t redelivered;
} pace_hub_audit_t;

/** Called for each pattern that somebody subscribes to, with the number of its subscriptions. */
typedef void (*pace_pattern_fn)(void *user_data, pace_text_t pattern, size_t subscriptions);

/**
 * Fills in the defaults; `size` is sizeof *options.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_options_init(pace_hub_options_t *options, size_t size);

/**
 * Makes a hub, whose handlers run on the pool. `options` may be NULL. The pool may be freed before the
 * hub.
 *
 * PACE_EINVAL, PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN; PACE_EOS if an archive cannot be
 * opened, PACE_EUNSUPPORTED if the library was built without archives; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes; it may wait for the disk if it has an archive.
 */
pace_status_t pace_hub_new(pace_pool_t *pool,
                           const pace_hub_options_t *options,
                           pace_hub_t **hub);

/**
 * Frees a hub, and unsubscribes all that have a name or were never given one. It waits until no handler of a
 * subscription that has a name runs and `drop` has run; of those without a name `drop` tells. Keys and mailboxes may be
 * freed later. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses the hub any more. In handlers, and on threads of the pool: yes, it never waits
 * there.
 */
void pace_hub_free(pace_hub_t *hub);

/**
 * Looks a key up. Keys are tokens with dots between them, without blanks, `*`, `>` and control
 * characters; those that begin with `$` are the hub's.
 *
 * PACE_EINVAL for a bad key.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_key(pace_hub_t *hub, const char *text, pace_key_t **key);

/**
 * The text of a key. It lives as long as the key.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_key_text(const pace_key_t *key, pace_text_t *text);

/**
 * Frees a key. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses the key any more. In handlers: yes, it never waits.
 */
void pace_key_free(pace_key_t *key);

/**
 * Publishes `size` bytes, which are copied once, however many subscribe. `flags` is 0 or PACE_PUBLISH_. The receipt says
 * what became of the message with each subscription; it may be NULL with PACE_PUBLISH_NO_RECEIPT only.
 *
 * It waits while a mailbox that lets publishers wait (PACE_OVERFLOW_BLOCK) is full, which is the default of handlers'
 * mailboxes; but not beyond the end of the pool, nor on a thread of any pool or in a handler, where it fails instead. If
 * a history on disk has no room it writes there, or waits for that, by default for up to 10 seconds (PACE_DISK_WAIT).
 *
 * PACE_EFULL: a mailbox was full and has refused it, and pace_last_error() names it; all others have got it, which the
 * receipt says. Or, with a receipt in which `matched` is 0, a history on disk had no room, and nobody got it.
 * PACE_EINVAL for a payload beyond max_payload, and NULL for the receipt; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes; it waits there only if a history on disk has no room.
 */
pace_status_t pace_key_publish(const pace_key_t *key,
                               const void *bytes,
                               size_t size,
                               uint32_t flags,
                               pace_receipt_t *receipt);

/**
 * Waits for up to `time_ns` until nobody who gets messages with the key would have a publisher wait for room; see
 * PACE_PUBLISH_TRY. `waited_ns`: for how long the same publication has waited before, 0 at first. On a thread of a pool
 * and in a handler it does not wait.
 *
 * PACE_ETIMEDOUT; PACE_EFULL: with `waited_ns` it has waited for as long as a full mailbox has publishers wait
 * (`block_ns`), so that it is to be published with PACE_PUBLISH_NO_WAIT; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits there. It waits outside.
 */
pace_status_t pace_key_await_room(const pace_key_t *key,
                                  uint64_t time_ns,
                                  uint64_t waited_ns);

/**
 * As pace_key_publish(), with the text of the key, which is looked up.
 *
 * PACE_EINVAL for a bad key, or a payload beyond max_payload; PACE_EFULL, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes. It waits as pace_key_publish() does.
 */
pace_status_t pace_hub_publish(pace_hub_t *hub,
                               const char *key,
                               const void *bytes,
                               size_t size,
                               uint32_t flags,
                               pace_receipt_t *receipt);

/**
 * As pace_key_publish(), with headers and a priority.
 *
 * PACE_EINVAL, PACE_EFULL as pace_key_publish(), PACE_EVERSION, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes. It waits as pace_key_publish() does.
 */
pace_status_t pace_key_publish_with(const pace_key_t *key,
                                    const pace_publication_t *publication,
                                    const void *bytes,
                                    size_t size,
                                    uint32_t flags,
                                    pace_receipt_t *receipt);

/**
 * Publishes several messages of one key, in order. The receipt is the sum of theirs. `flags` is 0, PACE_PUBLISH_NO_WAIT
 * or PACE_PUBLISH_NO_RECEIPT.
 *
 * PACE_EINVAL: nothing was published; PACE_EFULL: mailboxes have refused some, and the receipt says how many; or, with a
 * receipt in which `matched` is 0, a history on disk had no room for all of them, and those before were published;
 * PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes. It waits as pace_key_publish() does.
 */
pace_status_t pace_key_publish_batch(const pace_key_t *key,
                                     const pace_piece_t *pieces,
                                     size_t count,
                                     uint32_t flags,
                                     pace_receipt_t *receipt);

/**
 * Adds up all books. Exact only while nothing is published and no handler runs; takes time with the
 * number of keys and subscriptions.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_audit(pace_hub_t *hub, pace_hub_audit_t *audit);

/**
 * How many subscriptions a key has, those of patterns included.
 *
 * PACE_EINVAL for a bad key.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_subscriber_count(pace_hub_t *hub, const char *key, size_t *count);

/**
 * Calls `each` for every pattern that somebody subscribes to, sorted, in this thread.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_patterns(pace_hub_t *hub, pace_pattern_fn each, void *user_data);

/* ------------------------------------------- The hub: messages that everybody takes, or nobody */

/** One of the messages that are published together. */
typedef struct pace_publish_item_t {
    /** What it is published with. */
    const pace_key_t *key;
    /** Its headers and priority. NULL: none, and normal. */
    const pace_publication_t *publication;
    /** Its payload, which is copied. May be NULL if `size` is 0. */
    const void *bytes;
    /** How many bytes. */
    size_t size;
} pace_publish_item_t;

/**
 * Publishes up to 1024 messages, of one key or several: every mailbox takes its own of them, or nobody gets
 * any. They are in order for each subscription; messages of others may come in between. Who subscribes
 * meanwhile may miss them. The receipt is the sum of theirs. `flags` is 0 or PACE_PUBLISH_NO_RECEIPT.
 *
 * A mailbox that drops or conflates by its own rules has taken a message, a suspended subscription's becomes a
 * dead letter, and one of an inline handler is handled, well or not. A mailbox with a filter must have room
 * also for what the filter keeps away. It takes longer than to publish one by one.
 *
 * PACE_EFULL: a mailbox would refuse, which pace_last_error() names, or a history has no room. PACE_EINVAL: as
 * pace_key_publish_with(), and for a key that a group subscribes to, a key of another hub, and more than 1024.
 * PACE_EVERSION, PACE_ESHUTDOWN. Nobody got anything then.
 *
 * Threads: any. In handlers: yes; it waits only if a history on disk has no room.
 */
pace_status_t pace_hub_publish_all(pace_hub_t *hub,
                                   const pace_publish_item_t *messages,
                                   size_t count,
                                   uint32_t flags,
                                   pace_receipt_t *receipt);

/* ------------------------------------------------------------- The hub: publishers with limits */

/** A publisher with a name. Its limits guard against mistakes: whoever has the hub can publish without one. */
typedef struct pace_publisher_t pace_publisher_t;

/** Settings of a publisher. Call pace_publisher_options_init() first. */
typedef struct pace_publisher_options_t {
    /** Set by pace_publisher_options_init(). */
    uint32_t struct_size;
    /** Does not wait for room in full mailboxes, as PACE_PUBLISH_NO_WAIT. Default: it waits where that is allowed. */
    bool no_wait;
    /** Zero. */
    uint8_t reserved[3];
    /** So many messages in each quota_per_ns, evenly spread. PACE_UNLIMITED32 (default), or 0: no limit. */
    uint32_t quota;
    /** So many at once after a time with fewer, at least 1. Default 1. */
    uint32_t quota_burst;
    /** 1 ns for each message to 100 years. Default one second. */
    uint64_t quota_per_ns;
    /** Patterns of the keys that it may publish with. Default none: all keys. */
    const char *const *allow;
    /** How many. */
    size_t allow_count;
} pace_publisher_options_t;

/** What a publisher has done. Set struct_size to sizeof the struct before the call. */
typedef struct pace_publisher_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Messages that were published. */
    uint64_t published;
    /** Messages that were not: beyond the quota, of a key that is not allowed, or invalid. */
    uint64_t refused;
    /** The sum of what receipts called enqueued. */
    uint64_t enqueued;
    /** The sum of what receipts called dropped and rejected. */
    uint64_t lost;
} pace_publisher_stats_t;

/**
 * Fills in the defaults; `size` is sizeof *options.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_publisher_options_init(pace_publisher_options_t *options, size_t size);

/**
 * Makes a publisher of this name, which is for people to read and is copied. `options` may be NULL. It may
 * outlive the hub's pointer.
 *
 * PACE_EINVAL for a bad pattern or rate; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_publisher_new(pace_hub_t *hub,
                                 const char *name,
                                 const pace_publisher_options_t *options,
                                 pace_publisher_t **publisher);

/**
 * As pace_key_publish_with(). `publication` may be NULL.
 *
 * PACE_EINVAL, also for a key that is not allowed; PACE_EFULL beyond the quota, and as pace_key_publish();
 * PACE_EVERSION, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes. It waits as pace_key_publish() does.
 */
pace_status_t pace_publisher_publish(pace_publisher_t *publisher,
                                     const pace_key_t *key,
                                     const pace_publication_t *publication,
                                     const void *bytes,
                                     size_t size,
                                     uint32_t flags,
                                     pace_receipt_t *receipt);

/**
 * As pace_key_publish_batch(). Each message takes of the quota; those before the first that is beyond it are
 * published.
 *
 * PACE_EINVAL: nothing was published; PACE_EFULL beyond the quota, and as pace_key_publish_batch();
 * PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes. It waits as pace_key_publish() does.
 */
pace_status_t pace_publisher_publish_batch(pace_publisher_t *publisher,
                                           const pace_key_t *key,
                                           const pace_piece_t *pieces,
                                           size_t count,
                                           uint32_t flags,
                                           pace_receipt_t *receipt);

/**
 * The counts of a publisher.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_publisher_stats(pace_publisher_t *publisher,
                                   pace_publisher_stats_t *stats);

/**
 * Frees a publisher. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses the publisher any more. In handlers: yes, it never waits.
 */
void pace_publisher_free(pace_publisher_t *publisher);

/* ---------------------------------------------------------------- The hub: filters of messages */

/**
 * Says which messages come into a mailbox. What does not pass does not match. It never changes, and may be
 * given to any number of subscriptions, which share what it counts.
 */
typedef struct pace_message_filter_t pace_message_filter_t;

/**
 * Whether a message passes: 0 for no, and negative if that cannot be told: then it does not pass either, and
 * filter_failures counts it. It is called by publishers, by several at once, before the message is in any
 * mailbox, and must be quick.
 */
typedef int32_t (*pace_message_test_fn)(void *user_data, const pace_message_t *message);

/**
 * Messages that have a header of this name with this value, compared byte for byte.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_message_filter_header(const char *name,
                                         const char *value,
                                         pace_message_filter_t **filter);

/**
 * Messages whose payload has these `size` bytes, `offset` bytes after its beginning. The bytes are copied.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_message_filter_bytes(size_t offset,
                                        const void *bytes,
                                        size_t size,
                                        pace_message_filter_t **filter);

/**
 * Messages that are published at `from_ns` or later and before `to_ns`: nanoseconds since 1970, by the clock
 * of the system.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_message_filter_time(uint64_t from_ns,
                                       uint64_t to_ns,
                                       pace_message_filter_t **filter);

/**
 * No more than `messages` (at least 1) in each `per_ns` (1 ns for each to 100 years), evenly spread, and up
 * to `burst` (at least 1) at once after a time with fewer. Whichever it is asked about uses one up, so
 * behind others it belongs second in pace_message_filter_and().
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_message_filter_rate(uint32_t messages,
                                       uint64_t per_ns,
                                       uint32_t burst,
                                       pace_message_filter_t **filter);

/**
 * Messages of which `test` says so. `drop` runs when neither a filter nor a subscription has it any more; one
 * that has ended may have it until the next message of its key, or the end of the hub.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_message_filter_test(pace_message_test_fn test,
                                       void *user_data,
                                       pace_drop_fn drop,
                                       pace_message_filter_t **filter);

/**
 * Messages that pass both; the second is not asked about those that do not pass the first. Both can be freed.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_message_filter_and(const pace_message_filter_t *first,
                                      const pace_message_filter_t *second,
                                      pace_message_filter_t **filter);

/**
 * Messages that pass one of both; the second is not asked about those that pass the first. Both can be freed.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_message_filter_or(const pace_message_filter_t *first,
                                     const pace_message_filter_t *second,
                                     pace_message_filter_t **filter);

/**
 * Messages that do not pass `of`, which can be freed.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_message_filter_not(const pace_message_filter_t *of,
                                      pace_message_filter_t **filter);

/**
 * Frees a filter. Subscriptions and filters that were made with it keep what they need. NULL is a no-op.
 *
 * Threads: any, as long as no other uses the filter any more. In handlers: yes, it never waits.
 */
void pace_message_filter_free(pace_message_filter_t *filter);

/* ------------------------------------------------------------------------ The hub: supervision */

/** A message that its handler has failed at for good is kept among the hub's dead letters. */
#define PACE_ON_EXHAUSTED_DEAD_LETTER 0

/** It is dropped, and counted as failed. */
#define PACE_ON_EXHAUSTED_DISCARD 1

/** A failure restarts the handler that failed. */
#define PACE_RESTART_ONE_FOR_ONE 0

/** It restarts all handlers of the supervisor, each before its next message. */
#define PACE_RESTART_ONE_FOR_ALL 1

/** Counts the restarts of several subscriptions, and suspends all of them for a while when there are too many. */
typedef struct pace_supervisor_t pace_supervisor_t;

/**
 * Called when a handler is restarted, with the user_data of the handler, on the thread that runs it, before
 * its next message: after it has answered PACE_EPANIC. `failure` is the reason that it gave; its text is NULL when
 * another of the supervisor has answered so, and after a suspension. `count` is how often it was restarted, this
 * time included.
 */
typedef void (*pace_restart_fn)(void *user_data, pace_text_t failure, uint64_t count);

/**
 * Makes a supervisor. `strategy` is PACE_RESTART_. More than `restarts` (0 to 100,000, or
 * PACE_UNLIMITED32) in a span of `within_ns` (1 ns to 100 years) suspend its subscriptions: what
 * waits for them, and what comes, becomes dead letters until the suspension ends. Its time is as
 * suspension_ns and longest_suspension_ns of pace_subscription_options_t say.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_supervisor_new(uint32_t strategy,
                                  uint32_t restarts,
                                  uint64_t within_ns,
                                  uint64_t suspension_ns,
                                  uint64_t longest_suspension_ns,
                                  pace_supervisor_t **supervisor);

/**
 * Whether its subscriptions are suspended.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_supervisor_is_suspended(const pace_supervisor_t *supervisor,
                                           bool *suspended);

/**
 * Frees what names a supervisor. Its subscriptions keep it. NULL is a no-op.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
 */
void pace_supervisor_free(pace_supervisor_t *supervisor);

/* ---------------------------------------------------------------------- The hub: subscriptions */

/** On the pool, never on two threads at once, in the order of its mailbox. */
#define PACE_EXECUTION_SERIAL 0

/**
 * In the publisher's thread, before publishing returns, with no mailbox. Several publishers may be in
 * it at once.
 */
#define PACE_EXECUTION_INLINE 1

/** On up to `threads` threads of the pool at once. Messages begin in the order of the mailbox. */
#define PACE_EXECUTION_CONCURRENT 2

/**
 * On the pool, one at a time with all others of its hub that have this, whatever their keys, in the one
 * order in which the messages were published.
 */
#define PACE_EXECUTION_STRAND 3

/** A message for a full mailbox is refused: publishing fails with PACE_EFULL. */
#define PACE_OVERFLOW_REJECT 0

/** It is dropped. */
#define PACE_OVERFLOW_DROP_NEWEST 1

/** The one that has waited for longest is dropped for it. */
#define PACE_OVERFLOW_DROP_OLDEST 2

/** At most one message per key waits, full or not: a newer one takes the place of the older. */
#define PACE_OVERFLOW_CONFLATE 3

/**
 * Its publisher waits for up to block_ns, and then it is refused. It is refused at once where publishers do not wait: on
 * threads of any pool, in handlers, and with PACE_PUBLISH_NO_WAIT.
 */
#define PACE_OVERFLOW_BLOCK 4

/**
 * A handler's mailbox is as with PACE_OVERFLOW_BLOCK without a limit, and one that is pulled as with
 * PACE_OVERFLOW_REJECT, because the thread that pulls may be the one that publishes.
 */
#define PACE_OVERFLOW_DEFAULT 5

/** What waits is discarded, and a handler that runs is not waited for. */
#define PACE_UNSUBSCRIBE_ASYNC 0

/** Takes no more messages; those that wait are delivered still. */
#define PACE_UNSUBSCRIBE_DRAIN 1

/** As ASYNC, and waits until no handler runs. Inside a handler it does not wait. */
#define PACE_UNSUBSCRIBE_SYNC 2

/** A message goes to one member of the group after the other. */
#define PACE_BALANCE_ROUND_ROBIN 0

/** To the one for which the fewest messages wait. */
#define PACE_BALANCE_LEAST_LOADED 1

/** To any, evenly. */
#define PACE_BALANCE_RANDOM 2

/**
 * All messages of a key go to one member, in order; when the members change some keys move, and the new
 * member of a key gets nothing of it before the old one has finished. For serial execution.
 */
#define PACE_BALANCE_BY_KEY 3

/** As PACE_BALANCE_BY_KEY, by the value of the first header of a name; messages without it go by their key. */
#define PACE_BALANCE_BY_HEADER 4

/** Settings of a subscription. Call pace_subscription_options_init() first. */
typedef struct pace_subscription_options_t {
    /** Set by pace_subscription_options_init(). */
    uint32_t struct_size;
    /** PACE_EXECUTION_. Default serial. */
    uint32_t execution;
    /** For PACE_EXECUTION_CONCURRENT: 1 to 1024. Otherwise not looked at. */
    uint32_t threads;
    /**
     * PACE_OVERFLOW_: what happens to a message for a full mailbox. Default: PACE_OVERFLOW_DEFAULT, by which nothing is
     * lost unseen.
     */
    uint32_t overflow;
    /** How many messages may wait, 1 to 2^24. Default 1024. */
    uint64_t capacity;
    /** For PACE_OVERFLOW_BLOCK: how long a publisher waits at most. Otherwise not looked at. Default: PACE_FOREVER. */
    uint64_t block_ns;
    /**
     * For mailboxes that are pulled: the subscription ends when nobody has pulled for so long, 1 ms to
     * 100 years. Default 0: never.
     */
    uint64_t lease_ns;
    /** Delivers messages by their priority. Default: in the order of publishing alone. */
    bool by_priority;
    /**
     * Refuses the subscription if its pattern has one with the same handler and user_data. Default: it
     * may have.
     */
    bool unique;
    /** Zero. */
    uint8_t reserved[6];
    /**
     * How a message that the handler fails at is tried again; a serial handler gets no other until then.
     * For serial and concurrent execution. Default: not at all.
     */
    pace_retry_t retry;
    /** What then becomes of it: PACE_ON_EXHAUSTED_. Default: it becomes a dead letter. */
    uint32_t on_exhausted;
    /**
     * With within_ns: more restarts than so many, 0 to 100,000, or PACE_UNLIMITED32, in any such span
     * suspend the subscription: what waits, and what comes, becomes dead letters until the suspension ends. A
     * handler is restarted when it has answered PACE_EPANIC; other failures are no restarts.
     */
    uint32_t restarts;
    /** 1 ns to 100 years. 0 (default): 3 restarts in 5 seconds, whatever `restarts` says. */
    uint64_t within_ns;
    /**
     * Counts restarts together with others, in place of the two above, suspension_ns and longest_suspension_ns.
     * Default NULL: alone.
     */
    const pace_supervisor_t *supervisor;
    /**
     * Called when the handler is restarted, with its user_data: after it has answered PACE_EPANIC, when
     * another of its supervisor has, and after a suspension. Default NULL.
     */
    pace_restart_fn on_restart;
    /** Which messages come into the mailbox; it can be freed then. Default NULL: all. */
    const pace_message_filter_t *filter;
    /**
     * Shares the messages with all subscriptions of this pattern that have the same group, 1 to 255 bytes:
     * each goes to one of them. Not for inline and strand execution, nor with a filter. Default NULL: none.
     */
    const char *group;
    /** For PACE_BALANCE_BY_HEADER: the name of the header. */
    const char *balance_header;
    /** For PACE_BALANCE_RANDOM: the same seed gives the same sequence. */
    uint64_t balance_seed;
    /** Which member gets a message: PACE_BALANCE_; all of a group have the same. Default: round robin. */
    uint32_t balance;
    /** Zero. */
    uint32_t reserved2;
    /**
     * Measures how long messages take from publishing to the handler, or to who pulls them: latencies of
     * pace_subscription_stats_t, and of pace_hub_metrics(). Each thread that serves it takes 43 KB for that.
     * The clock is that of the system; should it be set back, messages that wait then count as 0.
     * PACE_EUNSUPPORTED without the feature `metrics`. Default: not measured, which costs nothing.
     */
    bool measured;
    /** Zero. */
    uint8_t reserved3[7];
    /**
     * How long the first suspension lasts, 1 ms to 100 years; each lasts twice as long as the one before, up to
     * longest_suspension_ns, and is as short as the first again when the handler was sound for as long as the last
     * suspension lasted. PACE_FOREVER: until pace_hub_resume(). 0 (default): 1 second.
     */
    uint64_t suspension_ns;
    /**
     * How long a suspension lasts at most, 1 ms to 100 years. 0 (default): 60 seconds, or suspension_ns if that is
     * longer.
     */
    uint64_t longest_suspension_ns;
} pace_subscription_options_t;

/**
 * The counts of one subscription. Set struct_size to sizeof the struct before the call.
 *
 * matched = delivered + failed + dead_lettered + dropped + rejected + discarded + waiting + running
 */
typedef struct pace_subscription_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Publications that matched since it began. */
    uint64_t matched;
    /** Messages that the handler has dealt with, or a puller has taken. */
    uint64_t delivered;
    /** Messages that the handler failed at for good. */
    uint64_t failed;
    /** Messages that have become dead letters. */
    uint64_t dead_lettered;
    /** Messages that a full mailbox has dropped, or conflated. */
    uint64_t dropped;
    /** Messages that a full mailbox has refused. */
    uint64_t rejected;
    /** Messages that waited when the subscription ended. */
    uint64_t discarded;
    /** Messages that wait now. */
    uint64_t waiting;
    /** Messages that are being handled now, or are about to be. */
    uint64_t running;
    /** Of those that matched, messages that were dead letters before. */
    uint64_t redelivered;
    /** Publications of its pattern that its filters kept away; they do not count as matched. */
    uint64_t filtered;
    /** How often it was restarted. */
    uint64_t restarts;
    /** Its number, which no other subscription of its hub has or had; dead letters tell it. */
    uint64_t number;
    /** Whether it is suspended now, because its handler has answered PACE_EPANIC too often. */
    bool suspended;
    /** Zero. */
    uint8_t reserved2[7];
    /** Of `filtered`, those at which a test has failed. */
    uint64_t filter_failures;
    /**
     * If it is measured: how many messages have come to the handler, each attempt by itself, or to who
     * pulls; otherwise 0, as what follows.
     */
    uint64_t latencies;
    /** Nanoseconds from publishing until then: the mean. */
    uint64_t latency_mean_ns;
    /** The time that half of them did not exceed, to two significant digits. */
    uint64_t latency_p50_ns;
    /** That of 90%. */
    uint64_t latency_p90_ns;
    /** That of 99%. */
    uint64_t latency_p99_ns;
    /** That of 99.9%. */
    uint64_t latency_p999_ns;
    /** The longest. */
    uint64_t latency_max_ns;
} pace_subscription_stats_t;

/**
 * Fills in the defaults; `size` is sizeof *options.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_subscription_options_init(pace_subscription_options_t *options,
                                             size_t size);

/**
 * Subscribes to a key ("orders.eu.created") or a pattern: `*` stands for one token, a final `>` for one
 * or more. `options` may be NULL: serial, 1024 messages. The handler may run before this returns.
 * `subscription` may be NULL: it lasts as long as the hub then. `drop` runs when the subscription has
 * ended and no handler runs.
 *
 * PACE_EINVAL for a bad pattern or option, or a second subscription that is to be unique; PACE_EFULL when
 * 2^20 subscriptions have names; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_subscribe(pace_hub_t *hub,
                                 const char *pattern,
                                 const pace_subscription_options_t *options,
                                 pace_message_fn handler,
                                 void *user_data,
                                 pace_drop_fn drop,
                                 pace_subscription_t *subscription);

/**
 * Ends a subscription, whose name is stale from then on. *ended, which may be NULL, says whether no
 * handler runs or will run, and `drop` has run; otherwise it runs after the last. `how` is
 * PACE_UNSUBSCRIBE_.
 *
 * PACE_ESTALE, PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits there. It waits outside with PACE_UNSUBSCRIBE_SYNC.
 */
pace_status_t pace_hub_unsubscribe(pace_hub_t *hub,
                                   pace_subscription_t subscription,
                                   uint32_t how,
                                   bool *ended);

/**
 * Ends a subscription as PACE_UNSUBSCRIBE_DRAIN does, and waits for up to `within_ns` until all that waits has
 * been handled, what waits for another attempt included. What is left then is discarded, and *discarded, which
 * may be NULL, says how many messages had not begun by then; a handler that still runs is not waited for. The
 * name is stale afterwards; until then it can be asked for its counts, and unsubscribed, which ends the drain.
 *
 * PACE_ESTALE; PACE_EDEADLOCK inside a handler or on a thread of the pool: nothing has changed then.
 *
 * Threads: any but the pool's. In handlers: no. It waits.
 */
pace_status_t pace_subscription_drain(pace_hub_t *hub,
                                      pace_subscription_t subscription,
                                      uint64_t within_ns,
                                      uint64_t *discarded);

/**
 * Ends the suspension of a subscription now, and of all others of its supervisor: messages that come are
 * delivered again, and those that became dead letters stay so. *resumed, which may be NULL, says whether one
 * was suspended.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_resume(pace_hub_t *hub,
                              pace_subscription_t subscription,
                              bool *resumed);

/**
 * The counts of a subscription, as they are now.
 *
 * PACE_ESTALE, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_subscription_stats(pace_hub_t *hub,
                                      pace_subscription_t subscription,
                                      pace_subscription_stats_t *stats);

/* ---------------------------------------------------- The hub: mailboxes that the host empties */

/**
 * Bytes: if no message of a pull has a longer payload, the payloads lie one after the other, in order and
 * without gaps, so that the host may copy all of them at once.
 */
#define PACE_PULLED_TOGETHER 256

/** A subscription of a hub that the host empties itself. */
typedef struct pace_mailbox_t pace_mailbox_t;

/**
 * Subscribes with a mailbox that the caller empties. Of the options the execution and `unique` are not
 * looked at, and those of supervision are refused, because there is no handler; NULL: 1024 messages, of
 * which more are refused.
 *
 * PACE_EINVAL for a bad pattern or option; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_mailbox(pace_hub_t *hub,
                               const char *pattern,
                               const pace_subscription_options_t *options,
                               pace_mailbox_t **mailbox);

/**
 * Waits for up to `timeout_ns` for messages, and takes up to `capacity` of them, in order. PACE_OK:
 * *count is 1 or more. They count as delivered, and stay where they are until the thread that has pulled
 * them pulls again, from whatever mailbox, or ends. Payloads of up to PACE_PULLED_TOGETHER bytes lie one
 * after the other.
 *
 * PACE_ETIMEDOUT: nothing came; PACE_ESTALE: the subscription has ended, and all that waited was pulled;
 * PACE_EINVAL for a capacity of 0; PACE_ESHUTDOWN when the pool ends; PACE_EDEADLOCK on a thread of the
 * pool, if no other is left.
 *
 * Threads: any. In handlers: yes. It waits, unless the time is 0.
 */
pace_status_t pace_mailbox_pull(pace_mailbox_t *mailbox,
                                pace_message_t *messages,
                                size_t capacity,
                                uint64_t timeout_ns,
                                size_t *count);

/**
 * *fd is readable while a message may wait, or the subscription has ended. It belongs to the mailbox:
 * never read or close it. A pull that finds nothing makes it unreadable.
 *
 * PACE_EOS if there are no descriptors left.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_mailbox_pollable(pace_mailbox_t *mailbox,
                                    int32_t *fd);

/**
 * The counts of its subscription, as they are now. What was pulled counts as delivered.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_mailbox_stats(pace_mailbox_t *mailbox, pace_subscription_stats_t *stats);

/**
 * Ends the subscription. With PACE_UNSUBSCRIBE_DRAIN what waits can be pulled still. *ended, which may be
 * NULL, says whether nothing is left.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_mailbox_unsubscribe(pace_mailbox_t *mailbox,
                                       uint32_t how,
                                       bool *ended);

/**
 * Ends the subscription, and frees the mailbox. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses the mailbox any more. In handlers: yes, it never waits.
 */
void pace_mailbox_free(pace_mailbox_t *mailbox);

/* ----------------------------------------------------------------------- The hub: dead letters */

/** The handler has failed at it for good. */
#define PACE_DEAD_FAILED 1

/** The handler has panicked at it for good: one of Rust's. */
#define PACE_DEAD_PANICKED 2

/** The subscription was suspended. */
#define PACE_DEAD_SUSPENDED 3

/**
 * Which dead letters: those that all conditions hold for. Set struct_size to sizeof the struct, and what
 * is not asked about to zero.
 */
typedef struct pace_dead_filter_t {
    /** sizeof the struct. */
    uint32_t struct_size;
    /** PACE_DEAD_. 0: whatever it died of. */
    uint32_t reason;
    /** Whose key this pattern matches. NULL: any. */
    const char *pattern;
    /** That were for the subscription of this number; see pace_subscription_stats_t. 0: any. */
    uint64_t subscription;
    /** With this number or a later one. */
    uint64_t first;
    /** With this number or an earlier one. 0: any. */
    uint64_t last;
    /** That died at this time or later: nanoseconds since 1970. */
    uint64_t since_ns;
    /** At most so many, the oldest. 0: all. */
    uint64_t limit;
} pace_dead_filter_t;

/** A message that a subscription could not deal with. What it points to is lent to the function that gets it. */
typedef struct pace_dead_letter_t {
    /** The message, as it was published; its attempt is the last one. */
    pace_message_t message;
    /** The letter's number in its hub: 1 for the first. */
    uint64_t number;
    /** The number of the subscription that it was for; see pace_subscription_stats_t. */
    uint64_t subscription;
    /** When it died: nanoseconds since 1970, by the clock of the system. */
    uint64_t died_ns;
    /** The pattern of the subscription. */
    pace_text_t pattern;
    /** What the handler said at its last attempt. NULL: nothing. */
    pace_text_t failure;
    /** PACE_DEAD_. */
    uint32_t reason;
    /** How often the handler was called with it: 0 if it came to a suspended subscription. */
    uint32_t attempts;
} pace_dead_letter_t;

/** Called for a dead letter, in the thread that asks. */
typedef void (*pace_dead_letter_fn)(void *user_data, const pace_dead_letter_t *letter);

/**
 * What became of dead letters that were to be delivered again. Set struct_size to sizeof the struct before
 * the call.
 */
typedef struct pace_redelivered_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** They wait in the mailboxes of their subscriptions, or for their replays, again. */
    uint64_t enqueued;
    /**
     * They are dead letters still, with new numbers: the mailbox was full, or the subscription is
     * suspended, or has no mailbox because it is inline. A replay that is suspended, or for which 1024 wait
     * so, takes none either.
     */
    uint64_t refused;
    /** They are dead letters still, with new numbers: their subscription, or their replay, has ended. */
    uint64_t orphaned;
} pace_redelivered_t;

/**
 * How many dead letters there were. Set struct_size to sizeof the struct before the call.
 *
 * buried = held + forgotten + removed
 */
typedef struct pace_dead_letter_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Messages that have become dead letters. */
    uint64_t buried;
    /** Of these, those that are kept now. */
    uint64_t held;
    /** Those that were forgotten for newer ones. */
    uint64_t forgotten;
    /** Those that were taken out, to be delivered again or not. */
    uint64_t removed;
} pace_dead_letter_stats_t;

/**
 * Calls `each` for the dead letters that the filter names, the oldest first, in this thread. They stay what
 * they are. `filter` may be NULL: all; `each` may be NULL: they are only counted. `count` may be NULL.
 *
 * PACE_EINVAL, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_dead_letters(pace_hub_t *hub,
                                    const pace_dead_filter_t *filter,
                                    pace_dead_letter_fn each,
                                    void *user_data,
                                    size_t *count);

/**
 * As pace_hub_dead_letters(), and takes them out.
 *
 * PACE_EINVAL, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_remove_dead_letters(pace_hub_t *hub,
                                           const pace_dead_filter_t *filter,
                                           pace_dead_letter_fn each,
                                           void *user_data,
                                           size_t *count);

/**
 * Delivers dead letters once more, each to the subscription or the replay that it was for and to no other, behind
 * what waits there. `filter` may be NULL: all; `redelivered` may be NULL.
 *
 * PACE_EINVAL, PACE_EVERSION, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_redeliver(pace_hub_t *hub,
                                 const pace_dead_filter_t *filter,
                                 pace_redelivered_t *redelivered);

/**
 * How many dead letters there were, and what became of them.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_dead_letter_stats(pace_hub_t *hub, pace_dead_letter_stats_t *stats);

/**
 * Makes a message that was pulled from this mailbox a dead letter, after so many attempts: it counts as
 * dead-lettered then, and no longer as delivered. With 0 attempts the reason is PACE_DEAD_SUSPENDED, and else
 * PACE_DEAD_FAILED. The message may be a copy of what was pulled; all that it points to is copied. `failure`
 * may be NULL.
 *
 * PACE_EINVAL for what cannot be a message of this mailbox.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_mailbox_bury(pace_mailbox_t *mailbox,
                                const pace_message_t *message,
                                const char *failure,
                                uint32_t attempts);

/* --------------------------------------------------------------------------- The hub: requests */

/**
 * Called once with the reply to a request, which is lent until it returns, and PACE_OK; or with NULL and
 * PACE_ETIMEDOUT. On a thread of the pool.
 */
typedef void (*pace_reply_fn)(void *user_data, pace_status_t status, const pace_message_t *reply);

/** Names a request whose function is still to be called. Numbers are given once in a hub. */
typedef struct pace_asked_t {
    /** Opaque. */
    uint64_t id;
} pace_asked_t;

/**
 * Publishes a request, and waits for up to `timeout_ns` for the reply of whoever is first. The header
 * Reply-To is added to those of `publication`, which may be NULL. *reply stays where it is until this thread
 * asks or pulls again, or ends.
 *
 * PACE_ENORESPONDERS: nobody subscribes to the key; PACE_EFULL: none of those who do has taken it, because
 * they are full or suspended, or as pace_key_publish(); PACE_ETIMEDOUT: a reply that comes later is lost.
 * PACE_EINVAL, PACE_EVERSION, PACE_ESHUTDOWN; PACE_EDEADLOCK on a thread of the pool, if no other is left.
 *
 * Threads: any. In handlers: yes. It waits.
 */
pace_status_t pace_key_request(const pace_key_t *key,
                               const pace_publication_t *publication,
                               const void *bytes,
                               size_t size,
                               uint64_t timeout_ns,
                               pace_message_t *reply);

/**
 * As pace_key_request(), and waits for nothing: a thread of the pool calls `on_reply`, once. It may be called
 * before this returns. `asked` may be NULL. `timeout_ns` counts from now; PACE_FOREVER: without an end.
 * `drop` runs after the call; and without a call if the request is given up by pace_hub_give_up(), or when the
 * hub is freed before a reply came.
 *
 * If this is refused neither is called: PACE_ENORESPONDERS, PACE_EFULL (also when all max_handles of the pool
 * are in use), PACE_EINVAL, PACE_EVERSION, PACE_ESHUTDOWN; PACE_EDEADLOCK if it may block and this is a
 * handler.
 *
 * Threads: any. In handlers: yes, unless it may block. It waits outside if it may.
 */
pace_status_t pace_key_request_async(const pace_key_t *key,
                                     const pace_publication_t *publication,
                                     const void *bytes,
                                     size_t size,
                                     uint64_t timeout_ns,
                                     pace_reply_fn on_reply,
                                     void *user_data,
                                     pace_drop_fn drop,
                                     pace_asked_t *asked);

/**
 * Gives a request up. *given_up, which may be NULL: its function will never be called, and `drop` has run.
 * Otherwise it is being called, or was.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_give_up(pace_hub_t *hub,
                               pace_asked_t asked,
                               bool *given_up);

/**
 * Replies to a request, which may be a copy of the message that came. Any thread may, any number of times:
 * the first reply counts. `receipt` may be NULL; its `enqueued` is 1 also if nobody waits any more.
 *
 * PACE_EINVAL if the message is no request; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_reply(pace_hub_t *hub,
                             const pace_message_t *request,
                             const void *bytes,
                             size_t size,
                             pace_receipt_t *receipt);

/* -------------------------------------------------------- The hub: replies that the host pulls */

/** Where replies wait to be pulled, for any number of requests. */
typedef struct pace_replies_t pace_replies_t;

/** What became of a request. */
typedef struct pace_reply_t {
    /** As it was given with the request. */
    uint64_t token;
    /** PACE_OK; PACE_ETIMEDOUT; PACE_ECANCELLED: it was given up, or its hub was freed. */
    pace_status_t status;
    /** Zero. */
    uint32_t reserved;
    /** With PACE_OK the reply, which is lent until this thread pulls or asks again; else all zero. */
    pace_message_t message;
} pace_reply_t;

/**
 * Makes a place for replies to requests of this hub.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_replies_new(pace_hub_t *hub, pace_replies_t **replies);

/**
 * As pace_key_request_async(), and no function is called: what becomes of the request is pulled, once, with this
 * token. Whoever replies puts it there, so it does not wait for a thread of the pool. `timeout_ns` counts from
 * now, and its end is told by the pool; PACE_FOREVER: without an end. `asked` may be NULL; it is for
 * pace_hub_give_up().
 *
 * If this is refused nothing will be pulled: PACE_ENORESPONDERS, PACE_EFULL (also when all max_handles of the
 * pool are in use), PACE_EINVAL, PACE_EVERSION, PACE_ESHUTDOWN; PACE_EDEADLOCK if it may block and this is a
 * handler.
 *
 * Threads: any. In handlers: yes, unless it may block. It waits outside if it may.
 */
pace_status_t pace_key_request_pulled(const pace_key_t *key,
                                      const pace_publication_t *publication,
                                      const void *bytes,
                                      size_t size,
                                      uint64_t timeout_ns,
                                      const pace_replies_t *replies,
                                      uint64_t token,
                                      pace_asked_t *asked);

/**
 * Takes up to `capacity` of what has become of requests, and waits for up to `timeout_ns` for the first. Each
 * goes to one of those who pull. What the rows point to stays where it is until this thread pulls or asks again,
 * or ends.
 *
 * PACE_ETIMEDOUT: nothing came; PACE_EINVAL for a capacity of 0; PACE_EDEADLOCK on a thread of the pool, unless
 * the time is 0.
 *
 * Threads: any. In handlers: yes, with a time of 0. It waits otherwise.
 */
pace_status_t pace_replies_pull(const pace_replies_t *replies,
                                pace_reply_t *rows,
                                size_t capacity,
                                uint64_t timeout_ns,
                                size_t *count);

/**
 * *fd is readable while a pull would not wait. It belongs to `replies`: never read or close it.
 *
 * PACE_EOS if there are no descriptors left.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_replies_pollable(const pace_replies_t *replies, int32_t *fd);

/**
 * Frees it. Requests that are still open go on; nobody is told of them. NULL is a no-op, and in a forked child
 * nothing is freed.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
 */
void pace_replies_free(pace_replies_t *replies);

/* ---------------------------------------------------------------- The hub: queries and replays */

/** With the oldest message that is kept; `at` is not looked at. */
#define PACE_REPLAY_BEGINNING 0

/** With the message of the number `at`, or the next one that there is. */
#define PACE_REPLAY_SEQUENCE 1

/** With the first that was published at `at` or later: nanoseconds since 1970. */
#define PACE_REPLAY_TIME 2

/** With the last `at` messages that are kept. */
#define PACE_REPLAY_LAST 3

/** With the next message; `at` is not looked at. */
#define PACE_REPLAY_NOW 4

/** A replay to whoever pulls. */
typedef struct pace_replay_mailbox_t pace_replay_mailbox_t;

/** A replay to a handler. */
typedef struct pace_replay_t pace_replay_t;

/**
 * Which messages of a history are asked for. Set struct_size to sizeof the struct, and what is not asked about
 * to zero.
 */
typedef struct pace_query_t {
    /** sizeof the struct. */
    uint32_t struct_size;
    /** With a limit: the newest ones, and not the oldest; they come in their order all the same. */
    bool newest;
    /** Zero. */
    uint8_t reserved[3];
    /** Of keys that this pattern matches. NULL: all (">"). */
    const char *pattern;
    /** With this number or a later one. */
    uint64_t first;
    /** With this number or an earlier one. 0: any. */
    uint64_t last;
    /** Published at this time or later: nanoseconds since 1970. */
    uint64_t since_ns;
    /** Published at this time or before. 0: any. */
    uint64_t until_ns;
    /** At most so many. 0: all. */
    uint64_t limit;
} pace_query_t;

/** Called for a message that was asked for, in the thread that asks. */
typedef void (*pace_record_fn)(void *user_data, const pace_message_t *message);

/** What a history has done since its hub was made. Texts are lent to the function that gets it. */
typedef struct pace_history_stats_t {
    /** Of which keys. */
    pace_text_t pattern;
    /** Messages that it took. */
    uint64_t recorded;
    /** Those that are in memory. */
    uint64_t in_memory;
    /** How many bytes those count for. */
    uint64_t memory_bytes;
    /** Those that wait to be written. */
    uint64_t waiting;
    /** Commits that were made. */
    uint64_t commits;
    /** Messages that are on no disk and never will be: see PACE_DISK_GIVE_UP, and without an archive those of lines_lost. */
    uint64_t given_up;
    /** Commits that failed, to be tried again. */
    uint64_t errors;
    /** How often a replay could not read the archive. */
    uint64_t read_errors;
    /**
     * Every message of this run of the hub with a sequence up to this is in the archive. Messages that were given up
     * are not, so it stays below the first of them. 0: there is none.
     */
    uint64_t durable;
    /** Lines that could not be written. */
    uint64_t lines_lost;
    /** The last of the errors, until a commit has been made. Empty: none. */
    pace_text_t last_error;
    /** The last of the read errors. Empty: none. */
    pace_text_t last_read_error;
    /** Why the last line was lost. Empty: none was. */
    pace_text_t last_lines_error;
} pace_history_stats_t;

/** Called for a history of a hub, in the thread that asks. */
typedef void (*pace_history_fn)(void *user_data, const pace_history_stats_t *stats);

/** Settings of a replay. Call pace_replay_options_init() first. */
typedef struct pace_replay_options_t {
    /** Set by pace_replay_options_init(). */
    uint32_t struct_size;
    /** Where it begins: PACE_REPLAY_. Default: with the oldest message that is kept. */
    uint32_t from;
    /** See PACE_REPLAY_. */
    uint64_t at;
    /** How a message that the handler fails at is tried again; it gets no other until then. Default: not at all. */
    pace_retry_t retry;
    /** What then becomes of it: PACE_ON_EXHAUSTED_. Default: it becomes a dead letter. */
    uint32_t on_exhausted;
    /**
     * With within_ns: more restarts than so many, 0 to 100,000, or PACE_UNLIMITED32, in any such span
     * suspend the replay: what comes stays in the history until the suspension ends. A handler is restarted when it
     * has answered PACE_EPANIC; other failures are no restarts.
     */
    uint32_t restarts;
    /** 1 ns to 100 years. 0 (default): 3 restarts in 5 seconds, whatever `restarts` says. */
    uint64_t within_ns;
    /**
     * Counts restarts together with others, replays or subscriptions, in place of the two above. Default NULL:
     * alone.
     */
    const pace_supervisor_t *supervisor;
    /** As that of pace_subscription_options_t. Default NULL. */
    pace_restart_fn on_restart;
    /**
     * How long the first suspension lasts, as that of pace_subscription_options_t; PACE_FOREVER: until
     * pace_replay_resume(). 0 (default): 1 second.
     */
    uint64_t suspension_ns;
    /** How long a suspension lasts at most. 0 (default): 60 seconds, or suspension_ns if that is longer. */
    uint64_t longest_suspension_ns;
} pace_replay_options_t;

/**
 * What a replay has done. Set struct_size to sizeof the struct before the call.
 *
 * matched = delivered + failed + dead_lettered + discarded + waiting + running
 */
typedef struct pace_replay_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Messages that the handler has dealt with. */
    uint64_t delivered;
    /** Those that it failed at for good, and that are no dead letters. */
    uint64_t failed;
    /** Those that were no longer kept when their turn came. */
    uint64_t lost;
    /** The greatest sequence that the handler was done with; 0 for none. */
    uint64_t last;
    /** Messages that were read for it, and dead letters that were delivered to it again. */
    uint64_t matched;
    /** Those that have become dead letters. */
    uint64_t dead_lettered;
    /** Those that were read and had not begun when it ended. */
    uint64_t discarded;
    /** Those that were read and have not begun, or wait for another attempt. */
    uint64_t waiting;
    /** Those that are being handled now. */
    uint64_t running;
    /** How often the handler was restarted. */
    uint64_t restarts;
    /** Its number, which no subscription and no other replay of its hub has or had; dead letters tell it. */
    uint64_t number;
    /** Whether it is suspended now, because its handler has answered PACE_EPANIC too often. */
    bool suspended;
    /** Zero. */
    uint8_t reserved2[7];
    /** Of `matched`, dead letters that were delivered again. */
    uint64_t redelivered;
} pace_replay_stats_t;

/**
 * Calls `each` for what the history has kept that the query asks for, in order, in this thread. `query` may be
 * NULL: all; `each` may be NULL: they are only counted. `count` may be NULL. It reads the disk if it must.
 *
 * PACE_EINVAL, also if no history keeps all that the pattern matches; PACE_EOS if the archive cannot be read;
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_hub_query(pace_hub_t *hub,
                             const pace_query_t *query,
                             pace_record_fn each,
                             void *user_data,
                             size_t *count);

/**
 * Calls `each` for every history of the hub, in the order in which they were given, in this thread.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_history_stats(pace_hub_t *hub, pace_history_fn each, void *user_data);

/**
 * Writes everything that was published before the call to all archives, in this thread. PACE_OK: every message that the
 * hub's histories have taken before the call is on disk. Whatever the status is, *given_up is how many messages they
 * have given up since the hub was made; `given_up` may be NULL. These stay lost, so each later flush fails, too: if
 * the number has not grown, whatever was published between the two is on disk.
 *
 * PACE_EOS: what could not be written is tried again later. PACE_EGIVENUP: messages were given up, and all others
 * are on disk.
 *
 * Threads: any. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_hub_flush(pace_hub_t *hub,
                             uint64_t *given_up);

/**
 * Replays what a history has kept of the keys that the pattern matches, from where `from` (PACE_REPLAY_) and
 * `at` say, and goes on with what is published: each message once, in the order of their sequences. The handler
 * runs on one thread of the pool at a time; a message that it fails at is counted, and the next one comes. What
 * was no longer kept when its turn came is in the lag mark of the next. `drop` runs when the replay has ended.
 *
 * PACE_EINVAL, also if no history keeps all that the pattern matches; PACE_EOS if the archive cannot be read;
 * PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_hub_replay(pace_hub_t *hub,
                              const char *pattern,
                              uint32_t from,
                              uint64_t at,
                              pace_message_fn handler,
                              void *user_data,
                              pace_drop_fn drop,
                              pace_replay_t **replay);

/**
 * Fills in the defaults; `size` is sizeof *options.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_replay_options_init(pace_replay_options_t *options, size_t size);

/**
 * As pace_hub_replay(), with a handler that is supervised as that of a serial subscription is: what it fails at
 * is tried again, becomes a dead letter or is dropped, and it is restarted, or suspended. `options` may be NULL:
 * from the beginning, dead letters, 3 restarts in 5 seconds. What comes to one that is suspended stays in the
 * history, and is delivered after pace_replay_resume(). A pool that drains waits for messages that are to be
 * tried again.
 *
 * As there; PACE_EINVAL for a bad option too.
 *
 * Threads: any. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_hub_replay_supervised(pace_hub_t *hub,
                                         const char *pattern,
                                         const pace_replay_options_t *options,
                                         pace_message_fn handler,
                                         void *user_data,
                                         pace_drop_fn drop,
                                         pace_replay_t **replay);

/**
 * Ends the suspension of a replay, and of all others of its supervisor: it goes on with the message behind the
 * last that its handler was called with. *resumed, which may be NULL, says whether one was suspended.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_replay_resume(pace_replay_t *replay,
                                 bool *resumed);

/**
 * The counts of a replay.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_replay_stats(pace_replay_t *replay, pace_replay_stats_t *stats);

/**
 * Ends a replay. `how` is PACE_UNSUBSCRIBE_; there is nothing to drain. *ended, which may be NULL, says whether
 * no handler runs or will run, and `drop` has run.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits there. It waits outside with PACE_UNSUBSCRIBE_SYNC.
 */
pace_status_t pace_replay_end(pace_replay_t *replay,
                              uint32_t how,
                              bool *ended);

/**
 * Ends a replay as PACE_UNSUBSCRIBE_SYNC does, and frees it: it waits until the handler does not run and `drop` has
 * run, unless pace_replay_end() was called before. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses the replay any more. In handlers, and on threads of the pool: yes, it never
 * waits there.
 */
void pace_replay_free(pace_replay_t *replay);

/**
 * As pace_hub_replay(), to whoever pulls.
 *
 * As there.
 *
 * Threads: any. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_hub_replay_mailbox(pace_hub_t *hub,
                                      const char *pattern,
                                      uint32_t from,
                                      uint64_t at,
                                      pace_replay_mailbox_t **mailbox);

/**
 * As pace_mailbox_pull(): takes up to `capacity` of the next messages, and waits for up to `timeout_ns` for the
 * first. Each goes to one of those who pull.
 *
 * PACE_ETIMEDOUT: nothing came; PACE_ESTALE: it has ended; PACE_EINVAL for a capacity of 0; PACE_ESHUTDOWN when
 * the pool ends; PACE_EDEADLOCK on a thread of the pool, unless the time is 0.
 *
 * Threads: any. In handlers: yes, with a time of 0. It waits otherwise.
 */
pace_status_t pace_replay_mailbox_pull(pace_replay_mailbox_t *mailbox,
                                       pace_message_t *messages,
                                       size_t capacity,
                                       uint64_t timeout_ns,
                                       size_t *count);

/**
 * As pace_mailbox_pollable().
 *
 * PACE_EOS if there are no descriptors left.
 *
 * Threads: any. In handlers: yes. It may wait for who pulls.
 */
pace_status_t pace_replay_mailbox_pollable(pace_replay_mailbox_t *mailbox, int32_t *fd);

/**
 * As pace_mailbox_bury(). As long as the replay lasts, pace_hub_redeliver() has the message pulled again, before
 * what is read next.
 *
 * PACE_EINVAL for what cannot be a message of this replay.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_replay_mailbox_bury(pace_replay_mailbox_t *mailbox,
                                       const pace_message_t *message,
                                       const char *failure,
                                       uint32_t attempts);

/**
 * The counts of a replay. What was pulled counts as delivered until it is buried; what is in the history and was
 * not pulled is not counted. `failed`, `running` and `restarts` are 0: there is no handler.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_replay_mailbox_stats(pace_replay_mailbox_t *mailbox,
                                        pace_replay_stats_t *stats);

/**
 * Ends a replay: who pulls, or waits for it, gets PACE_ESTALE, and its descriptor is readable.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_replay_mailbox_end(pace_replay_mailbox_t *mailbox);

/**
 * Ends a replay, and frees it. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
 */
void pace_replay_mailbox_free(pace_replay_mailbox_t *mailbox);

/* ------------------------------------------------------------ The hub: what it tells of itself */

/** It is as it should be. */
#define PACE_SEVERITY_INFO 0

/** Something was lost or put right, as was asked for. */
#define PACE_SEVERITY_WARNING 1

/** Something does not work any more. */
#define PACE_SEVERITY_ERROR 2

/**
 * Which errors: those that all conditions hold for. Set struct_size to sizeof the struct, and what is not
 * asked about to zero.
 */
typedef struct pace_error_filter_t {
    /** sizeof the struct. */
    uint32_t struct_size;
    /** That are this bad, or worse: PACE_SEVERITY_. */
    uint32_t severity;
    /** Of events whose names begin so: "subscription.overflow", or "history.". NULL: any. */
    const char *event;
    /** Whose origins begin so: "publisher", or "subscription 7 ". NULL: any. */
    const char *origin;
    /** Of this time or later: nanoseconds since 1970. */
    uint64_t since_ns;
    /** With greater numbers than this. */
    uint64_t after;
    /** At most so many, the latest. 0: all. */
    uint64_t limit;
} pace_error_filter_t;

/** Something that went wrong in a hub. Texts are lent to the function that gets it. */
typedef struct pace_hub_error_t {
    /** Its number: 1 for the hub's first. */
    uint64_t number;
    /** When: nanoseconds since 1970. */
    uint64_t time_ns;
    /** What happened: the key of its notice without "$SYS.". */
    pace_text_t event;
    /** Where: "subscription 7 (orders.>)", say. */
    pace_text_t origin;
    /** What there is to say, for people. */
    pace_text_t message;
    /** PACE_SEVERITY_: a warning or worse. */
    uint32_t severity;
    /** Zero. */
    uint32_t reserved;
} pace_hub_error_t;

/** Called for an error, in the thread that asks. */
typedef void (*pace_hub_error_fn)(void *user_data, const pace_hub_error_t *error);

/**
 * Calls `each` for the warnings and errors that the filter names, the oldest first, in this thread. `filter`
 * may be NULL: all that are kept; `each` may be NULL: they are only counted. `count` may be NULL.
 *
 * A hub tells of itself under keys that begin with "$SYS.": whoever subscribes to "$SYS.>" gets all of it,
 * as any messages, each with an object of JSON: `event`, `time`, `severity`, `origin`, `message`, and fields
 * of its own. Warnings and errors are kept besides, whether anybody subscribes or not.
 *
 * PACE_EINVAL, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_errors(pace_hub_t *hub,
                              const pace_error_filter_t *filter,
                              pace_hub_error_fn each,
                              void *user_data,
                              size_t *count);

/* ------------------------------------------------------------------------ The hub: its figures */

/**
 * Of a hub: an object of JSON with its books, each subscription, each publisher, the keys that are counted,
 * dead letters, notices and histories. Times are in seconds.
 */
#define PACE_METRICS_HUB 2

/** What a hub has and has told, beside its books. Set struct_size to sizeof the struct before the call. */
typedef struct pace_hub_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Keys that are known. */
    uint64_t keys;
    /** Subscriptions that have not ended. */
    uint64_t subscriptions;
    /** Of these, those that are suspended. */
    uint64_t suspended;
    /** Publishers that somebody has. */
    uint64_t publishers;
    /** Dead letters that are kept. */
    uint64_t dead_letters;
    /** Notices that were published under $SYS. */
    uint64_t told;
    /** Notices that were not, because too many waited. */
    uint64_t lost;
    /** Warnings and errors that were recorded. */
    uint64_t errors;
    /** Of these, those that were forgotten for newer ones. */
    uint64_t forgotten;
} pace_hub_stats_t;

/**
 * What a hub has and has told; its books are pace_hub_audit()'s. It takes time with the number of keys and
 * subscriptions.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_hub_stats(pace_hub_t *hub,
                             pace_hub_stats_t *stats);

/**
 * The figures of a hub as text that ends with NUL: PACE_METRICS_HUB, or its metrics with the label `hub`, as
 * PACE_METRICS_JSON, PACE_METRICS_PROMETHEUS or PACE_METRICS_OPENMETRICS (pace_metrics_format()). *needed says how many bytes it takes, with the NUL, also for
 * PACE_EFULL: `size` is less. `text` may be NULL if `size` is 0. They change from call to call, so ask for
 * some more. It takes time with the number of keys and subscriptions.
 *
 * PACE_EFULL; PACE_EINVAL if `format` is none of PACE_METRICS_.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_hub_metrics(pace_hub_t *hub,
                               uint32_t format,
                               char *text,
                               size_t size,
                               size_t *needed);

/**
 * Tells the figures of a hub with those of a worker pool that was made with `metrics`: pace_workers_metrics()
 * has them from then on, for as long as the hub lives.
 *
 * PACE_EINVAL if it was made without.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_hub_share_metrics(pace_hub_t *hub,
                                     pace_workers_t *workers);

/* -------------------------------------------------------------- The hub: thresholds of figures */

/** The number of a counter or gauge; of a distribution, how many values it has. */
#define PACE_THRESHOLD_NUMBER 0

/** How much that grows in a second, from one look to the next. */
#define PACE_THRESHOLD_RATE 1

/** A quantile of a distribution. */
#define PACE_THRESHOLD_QUANTILE 2

/** Thresholds that are watched. */
typedef struct pace_watch_t pace_watch_t;

/** A limit for a figure. Call pace_threshold_init() first. */
typedef struct pace_threshold_t {
    /** Set by pace_threshold_init(). */
    uint32_t struct_size;
    /** What of the figure: PACE_THRESHOLD_. Default: its number. */
    uint32_t part;
    /** How bad it is: PACE_SEVERITY_. Default: a warning. */
    uint32_t severity;
    /** Crossed when the figure is below the limit. Default: above it. */
    bool below;
    /** Zero. */
    uint8_t reserved[3];
    /**
     * The name of the figure, as pace_hub_metrics() with PACE_METRICS_JSON has it: "paceline_hub_waiting",
     * say. It must be set.
     */
    const char *metric;
    /** Of the first that has all of these. Default: of the first. */
    const pace_label_t *labels;
    /** How many, up to 16. */
    size_t label_count;
    /** A number. */
    double limit;
    /** Back when the figure is not beyond this, which lies before the limit. NaN (default): the limit itself. */
    double back_at;
    /** For PACE_THRESHOLD_QUANTILE: 0 to 1. Otherwise not looked at. */
    double quantile;
} pace_threshold_t;

/** A threshold was crossed, or the figure came back. The text is lent to the function that gets it. */
typedef struct pace_crossing_t {
    /** As people read it: "crossed at 1203: paceline_hub_waiting above 1000". */
    pace_text_t message;
    /** The figure. */
    double figure;
    /** Which of the thresholds: 0 for the first. */
    size_t threshold;
    /** As bad as the threshold says; coming back is PACE_SEVERITY_INFO. */
    uint32_t severity;
    /** True: crossed; false: back. */
    bool crossed;
    /** Zero. */
    uint8_t reserved[3];
} pace_crossing_t;

/** Called when a threshold is crossed and when its figure is back, on a thread of the pool, by one at a time. */
typedef void (*pace_crossing_fn)(void *user_data, const pace_crossing_t *crossing);

/** What a watch has done. Set struct_size to sizeof the struct before the call. */
typedef struct pace_watch_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** How many thresholds are crossed now. */
    uint32_t crossed;
    /** How often it has looked. */
    uint64_t looks;
} pace_watch_stats_t;

/**
 * Fills in the defaults; `size` is sizeof *threshold.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_threshold_init(pace_threshold_t *threshold, size_t size);

/**
 * Watches figures from now on, until the watch is freed: looks at them each `every_ns` (1 ms to 1 day), and
 * tells of each of up to 1024 thresholds that is crossed, and when its figure is back: to subscriptions under
 * "$SYS.threshold.", and by `on_crossing`, which may be NULL. They are figures of the hub, or, if `workers` is
 * not NULL, what pace_workers_metrics() tells of that worker pool. A figure that is not there crosses nothing.
 * `drop` runs when the watch was freed, and no call runs any more.
 *
 * PACE_EINVAL, also if the worker pool was made without `metrics`; PACE_EVERSION; PACE_EFULL when all
 * max_handles are in use, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_hub_watch(pace_hub_t *hub,
                             pace_workers_t *workers,
                             uint64_t every_ns,
                             const pace_threshold_t *thresholds,
                             size_t count,
                             pace_crossing_fn on_crossing,
                             void *user_data,
                             pace_drop_fn drop,
                             pace_watch_t **watch);

/**
 * What a watch has done.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_watch_stats(const pace_watch_t *watch, pace_watch_stats_t *stats);

/**
 * Ends a watch, and frees it: it waits until no call runs and `drop` has run. NULL is a no-op, and in a forked child
 * nothing is freed.
 *
 * Threads: any, as long as no other uses the watch any more. In handlers, and on threads of the pool: yes, it never
 * waits there.
 */
void pace_watch_free(pace_watch_t *watch);

/* ------------------------------------------- Webhooks: notices, or anything else, by HTTP POST */

/** Posts JSON to a URL, from a thread of its own. */
typedef struct pace_webhook_t pace_webhook_t;

/** Settings of a webhook. Call pace_webhook_options_init() first. */
typedef struct pace_webhook_options_t {
    /** Set by pace_webhook_options_init(). */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** How many bodies may wait, 1 to 65536; what comes while so many wait is dropped. Default 1024. */
    uint64_t capacity;
    /**
     * How long one attempt may take, from looking the host up to the end of the answer: 1 ms to 5 minutes.
     * Default 10 s.
     */
    uint64_t timeout_ns;
    /**
     * How an attempt that failed is followed by others; others wait behind it meanwhile. Default: 5 of them,
     * after 1 s, and twice as long after each other.
     */
    pace_retry_t retry;
    /** More headers of each request: a token, say. They are copied. Default none. */
    const pace_field_t *headers;
    /** How many. */
    size_t header_count;
    /** Goes by this proxy: "http://proxy.example:3128". NULL (default): none; the environment is not asked. */
    const char *proxy;
} pace_webhook_options_t;

/**
 * What a webhook has done. Set struct_size to sizeof the struct before the call. At rest posted = delivered +
 * failed + dropped.
 */
typedef struct pace_webhook_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Bodies that it was given. */
    uint64_t posted;
    /** Those that were answered with success (2xx). */
    uint64_t delivered;
    /** Attempts that failed and were followed by another. */
    uint64_t retried;
    /** Those that were given up: every attempt failed, or the answer was that no other would help. */
    uint64_t failed;
    /** Those that found no room. */
    uint64_t dropped;
} pace_webhook_stats_t;

/**
 * Fills in the defaults; `size` is sizeof *options.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_webhook_options_init(pace_webhook_options_t *options, size_t size);

/**
 * Makes a webhook that posts to this URL, http:// or https://, and the one thread that does it. Bodies go out
 * one after the other, in order. That nobody listens there is no error: it is tried for each body. `options`
 * may be NULL.
 *
 * PACE_EUNSUPPORTED: the library was built without the feature `webhook`. PACE_EINVAL names the setting;
 * PACE_EOS if the thread cannot be created; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_webhook_new(const char *url,
                               const pace_webhook_options_t *options,
                               pace_webhook_t **webhook);

/**
 * Posts these bytes, which are copied and should be JSON.
 *
 * PACE_EFULL: there was no room, and it was dropped.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_webhook_post(const pace_webhook_t *webhook,
                                const void *json,
                                size_t size);

/**
 * Posts the payloads of all messages of a hub that the pattern matches, "$SYS.>" say, until it is unsubscribed,
 * or the hub is freed. `subscription` may be NULL. The subscription keeps what it needs of the webhook.
 *
 * PACE_EINVAL for a bad pattern; PACE_EFULL when 2^20 subscriptions have names; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_webhook_forward(const pace_webhook_t *webhook,
                                   pace_hub_t *hub,
                                   const char *pattern,
                                   pace_subscription_t *subscription);

/**
 * Waits for up to `timeout_ns` until everything that was posted before has been delivered or given up.
 *
 * PACE_ETIMEDOUT.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_webhook_flush(const pace_webhook_t *webhook,
                                 uint64_t timeout_ns);

/**
 * What a webhook has done so far.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_webhook_stats(const pace_webhook_t *webhook,
                                 pace_webhook_stats_t *stats);

/**
 * What the last attempt that failed has failed of, as text that ends with NUL; without one, nothing but that.
 * *needed says how many bytes it takes, with the NUL, also for PACE_EFULL: `size` is less. `text` may be NULL if
 * `size` is 0.
 *
 * PACE_EFULL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_webhook_last_error(const pace_webhook_t *webhook,
                                      char *text,
                                      size_t size,
                                      size_t *needed);

/**
 * Frees a webhook. When no subscription has it any more, its thread ends after the attempt that is under way,
 * and what waits is dropped: pace_webhook_flush() before. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
 */
void pace_webhook_free(pace_webhook_t *webhook);

/* ------------------------------------------------------------------------- Services of systemd */

/** This process as a service of systemd: ready from its beginning on, stopping when it is freed. */
typedef struct pace_service_t pace_service_t;

/** Whether the process is well: 0 for no. Called on a thread of the pool, by one at a time. */
typedef int32_t (*pace_well_fn)(void *user_data);

/**
 * Tells systemd that the process is ready (READY=1). If its unit has a watchdog (WatchdogSec=), a timer of the
 * pool asks `is_well` twice in its time from then on, and feeds it (WATCHDOG=1) when the answer is not 0; NULL:
 * it is well as long as the pool comes round to that, which a pool that is stuck as a whole does not.
 * pace_workers_health() is a good answer. Where no systemd has started the process nothing is told, and nobody
 * is asked. The unit needs Type=notify; examples/systemd/paceline.service is one.
 *
 * PACE_EUNSUPPORTED: the library was built without the feature `systemd`. PACE_EOS: systemd cannot be told.
 * PACE_EFULL when all max_handles of the pool are in use, PACE_ESHUTDOWN. Nobody is asked then.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_service_start(pace_pool_t *pool,
                                 pace_well_fn is_well,
                                 void *user_data,
                                 pace_drop_fn drop,
                                 pace_service_t **service);

/**
 * What `systemctl status` shows (STATUS=): one line, UTF-8.
 *
 * PACE_EINVAL for several lines; PACE_EOS: systemd cannot be told.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_service_status(const pace_service_t *service, const char *text);

/**
 * Tells systemd that the process stops (STOPPING=1), and frees it; nobody asks any more. It belongs before the
 * drain: a unit has TimeoutStopSec= for that. NULL is a no-op, and in a forked child nothing is told or freed.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes. It waits outside for an `is_well` that
 * runs.
 */
void pace_service_free(pace_service_t *service);

/* ------------------------------------------------------------------------ Statistics and books */

/** In statistics: no thread, no CPU. */
#define PACE_NONE UINT32_MAX

/** A seat that no thread has taken, or a thread that has ended. */
#define PACE_ROLE_AWAY 0

/** Parked until it is woken. */
#define PACE_ROLE_FOLLOWER 1

/** Parked with a timer, looking out for stuck work. */
#define PACE_ROLE_WATCH 2

/** Leads a handle set, or looks for work. */
#define PACE_ROLE_LEADER 3

/** Runs a handler. */
#define PACE_ROLE_PROCESSING 4

/** Runs a task. */
#define PACE_ROLE_TASK 5

/** Set aside by pace_pool_set_active(), or by a worker pool's scaling: it costs nothing. */
#define PACE_ROLE_PARKED 6

/**
 * A snapshot of a pool. Counts are since the start and never fall. Set struct_size to sizeof the
 * struct before the call, here and below.
 */
typedef struct pace_pool_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Rows for pace_pool_thread_stats(): pool threads, then seats for host threads. */
    uint32_t threads;
    /** Rows for pace_pool_set_stats(). */
    uint32_t sets;
    /** Threads that are parked now. */
    uint32_t parked;
    /** Which thread is the watch now, or PACE_NONE. */
    uint32_t watch;
    /** Zero. */
    uint32_t reserved;
    /** Handles, strands, timers and rings that exist now. */
    uint64_t handles;
    /** System calls made to wake threads. */
    uint64_t wakes;
    /** Tasks that wait in each lane. */
    uint64_t queued[4];
} pace_pool_stats_t;

/** What one thread has done. */
typedef struct pace_thread_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** What it is doing now: PACE_ROLE_. */
    uint32_t role;
    /** The CPU it is pinned to, or PACE_NONE. */
    uint32_t cpu;
    /** Pinning was asked for and failed. */
    bool pin_failed;
    /** Zero. */
    uint8_t reserved[3];
    /** Terms of leadership. */
    uint64_t terms;
    /** Terms that it took over from another thread. */
    uint64_t handovers;
    /** Times that it stepped in as the watch because something was stuck. */
    uint64_t rescues;
    /** Events that it harvested as leader. */
    uint64_t events;
    /** Handlers that it ran. */
    uint64_t handled;
    /** Tasks that it ran or found cancelled. */
    uint64_t tasks;
    /** Tasks that did not report success, and handlers whose answer was none. */
    uint64_t panics;
    /** Times that it took over work that another thread had claimed. */
    uint64_t stolen;
    /** Times that it parked. */
    uint64_t parked;
    /** Looks that it took as the watch. */
    uint64_t ticks;
} pace_thread_stats_t;

/** What one handle set is doing. */
typedef struct pace_set_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** The thread that leads it now, or PACE_NONE. */
    uint32_t leader;
    /** Terms that were led so far. */
    uint64_t harvests;
    /** Activations that wait in its surplus ring. */
    uint64_t surplus;
} pace_set_stats_t;

/**
 * The books. At rest they balance exactly: submitted = accepted + rejected, and accepted = completed +
 * failed + cancelled + in_flight. While the pool works they may be apart by what happens meanwhile.
 */
typedef struct pace_audit_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Whether they do. */
    bool balances;
    /** Zero. */
    uint8_t reserved[3];
    /** Tasks and one-shot timers that were handed in. */
    uint64_t submitted;
    /** Those that were taken. */
    uint64_t accepted;
    /** Those that were given back. */
    uint64_t rejected;
    /** Those that ran and reported success. */
    uint64_t completed;
    /** Those that ran and did not. */
    uint64_t failed;
    /** Those that were accepted and never ran. */
    uint64_t cancelled;
    /** Those that wait or run: counted where they are, not derived from the others. */
    uint64_t in_flight;
} pace_audit_t;

/**
 * A snapshot of a pool.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_pool_stats(pace_pool_t *pool, pace_pool_stats_t *stats);

/**
 * What one thread has done: `thread` is 0 to pace_pool_stats_t.threads - 1.
 *
 * PACE_EINVAL for another `thread`; PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_pool_thread_stats(pace_pool_t *pool,
                                     uint32_t thread,
                                     pace_thread_stats_t *stats);

/**
 * What one handle set is doing: `set` is 0 to pace_pool_stats_t.sets - 1.
 *
 * PACE_EINVAL for another `set`; PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_pool_set_stats(pace_pool_t *pool, uint32_t set, pace_set_stats_t *stats);

/**
 * The books.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_audit(pace_pool_t *pool, pace_audit_t *audit);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_H */
