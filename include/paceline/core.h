/* paceline/core.h: what all headers share.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_CORE_H
#define PACELINE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Milliseconds as nanoseconds: PACE_MS(20). */
#define PACE_MS(n) ((uint64_t)(n) * 1000000)

/** Seconds as nanoseconds: PACE_SEC(30). */
#define PACE_SEC(n) ((uint64_t)(n) * 1000000000)

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------- Version, status, errors */

/** The major version of this header's library. */
#define PACE_VERSION_MAJOR 0

/** The minor version of this header's library. */
#define PACE_VERSION_MINOR 1

/** The patch level of this header's library. */
#define PACE_VERSION_PATCH 0

/** Success: the function has done what it says. */
#define PACE_OK 0

/** An argument is NULL or out of its range; pace_last_error() names it. */
#define PACE_EINVAL (-1)

/**
 * Something bounded is full: a lane, a strand, a ring, a queue, the table of handles, the places for
 * host threads, a connection's output, a server's requests in work.
 */
#define PACE_EFULL (-2)

/** The queue is empty, and no time to wait was given; the message is not whole yet. */
#define PACE_EEMPTY (-3)

/** The operation timed out: the time that it was given is over. */
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

/** A factory has failed. Also the outcome of a task that has not reported another one. */
#define PACE_EFAILED (-11)

/** A panic inside the library was caught. The pool is intact. */
#define PACE_EPANIC (-12)

/** A system call failed; pace_last_os_error() says how. */
#define PACE_EOS (-13)

/** The struct_size of a struct is not one that this library knows. */
#define PACE_EVERSION (-14)

/** Another thread waits for this task already. */
#define PACE_EBUSY (-15)

/** No subscription matches the key of a request. */
#define PACE_ENORESPONDERS (-16)

/** The library was built without the feature that the function needs. */
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
 * a callback.
 *
 * `what` is what the exception says; what is not UTF-8 in it is replaced by U+FFFD. NULL: a hook of the program was
 * told, so that the library need not write a line. `fails`: the callback goes on to answer that it has failed, as a
 * handler by a number that is no PACE_FLOW_ number, and the library tells of that with this text.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_unhandled(const char *what,
                    bool fails);

/**
 * Keeps a failure of which the program has told already among the last faults that operations endpoints show, and counts
 * it in their figures. Nothing is logged. For languages with a log of their own.
 *
 * `what` is what the failure says; what is not UTF-8 in it is replaced by U+FFFD. Does nothing if NULL. `is_error`: it is
 * an error, and no warning.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_note_fault(const char *what,
                     bool is_error);

/* ------------------------------------------ Limits, texts and pieces */

/** In a configuration: let the library choose. */
#define PACE_DEFAULT UINT32_MAX

/** As a time: no limit. */
#define PACE_FOREVER UINT64_MAX

/** As a count or a size: no limit. */
#define PACE_UNLIMITED UINT64_MAX

/** As a count of 32 bits: no limit. */
#define PACE_UNLIMITED32 UINT32_MAX

/** In statistics: no thread, no CPU. */
#define PACE_NONE UINT32_MAX

/** As many bytes hold the text of every address, with its NUL. */
#define PACE_ADDRESS_SIZE 512

/** Text that is lent, without a NUL behind it: `printf("%.*s", (int)text.size, text.text)`. */
typedef struct pace_text_t {
    /** NULL if there is none. */
    const char *text;
    /** The length of the text in bytes. */
    size_t size;
} pace_text_t;

/** A header, or a parameter of a request's path. */
typedef struct pace_field_t {
    /** As it was sent, or as the route's pattern has it. */
    pace_text_t name;
    /** Bytes; UTF-8 as a rule. */
    pace_text_t value;
} pace_field_t;

/** One of several pieces that are written as one. */
typedef struct pace_piece_t {
    /** May be NULL if `size` is 0. */
    const void *bytes;
    /** The number of bytes at `bytes`. */
    size_t size;
} pace_piece_t;

/* ------------------------------------------------- Ids and callbacks */

/**
 * Call me when something happens. For an edge-triggered descriptor this promises that the last
 * operation saw EAGAIN: what is left unread now is not reported again.
 */
#define PACE_FLOW_WAIT 0

/** There is more to do: call me again, after others had their turn. */
#define PACE_FLOW_AGAIN 1

/**
 * Do not call me before pace_handle_resume(), which counts from the start of the call that is answered
 * here. What arrives meanwhile is kept. See pace_handle_pause() for the one
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

/** Names a task that was submitted, until it is waited for or detached. 0 names none. */
typedef struct pace_task_t {
    /** An opaque number, to be copied and compared. */
    uint64_t id;
} pace_task_t;

/** Names a strand, until it is closed. 0 names none. */
typedef struct pace_strand_t {
    /** An opaque number, to be copied and compared. */
    uint64_t id;
} pace_strand_t;

/**
 * Names a registered descriptor or periodic timer, until it is deregistered or its handler answers
 * PACE_FLOW_DONE. 0 names none.
 */
typedef struct pace_handle_t {
    /** An opaque number, to be copied and compared. */
    uint64_t id;
} pace_handle_t;

/** Names a one-shot timer, until it has run or was cancelled. 0 names none. */
typedef struct pace_timer_t {
    /** An opaque number, to be copied and compared. */
    uint64_t id;
} pace_timer_t;

/** Names a connection of a server, until it has ended. 0 names none. */
typedef struct pace_conn_id_t {
    /** An opaque number, to be copied and compared. */
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
 * as failed in the counters.
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

/* -------------------------------- How what has failed is tried again */

/** Retry as usual: for a task as its task type says, for a task type not at all. */
#define PACE_RETRY_DEFAULT 0

/** Never retry: the first failure is the last. */
#define PACE_RETRY_NONE 1

/** Retry first_ns after each failure. */
#define PACE_RETRY_FIXED 2

/** Retry after first_ns, then after twice that, then after three times that. */
#define PACE_RETRY_LINEAR 3

/** Retry after first_ns, then after twice as long each time. Both times 0: first_ns is 100 ms, cap_ns 30 s. */
#define PACE_RETRY_EXPONENTIAL 4

/** Retry at a random time from first_ns to cap_ns after each failure. */
#define PACE_RETRY_RANDOM 5

/** Retry after the time that retry_delay of the task type returns. */
#define PACE_RETRY_CUSTOM 6

/** The jitter that fits the shape: PACE_JITTER_FULL for exponential delays, else PACE_JITTER_NONE. */
#define PACE_JITTER_DEFAULT 0

/** No jitter: each retry waits exactly the delay. */
#define PACE_JITTER_NONE 1

/** Full jitter: between nothing and the delay, evenly. */
#define PACE_JITTER_FULL 2

/** Equal jitter: between half of the delay and all of it, evenly. */
#define PACE_JITTER_EQUAL 3

/** How failed attempts are followed by others. All zero: PACE_RETRY_DEFAULT. */
typedef struct pace_retry_t {
    /** How delays grow: one of PACE_RETRY_DEFAULT to PACE_RETRY_CUSTOM. */
    uint32_t shape;
    /** How delays are spread: one of PACE_JITTER_DEFAULT to PACE_JITTER_EQUAL. */
    uint32_t jitter;
    /** How many retries there are at most: one less than attempts. */
    uint32_t retries;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** The first delay in nanoseconds; later ones depend on the shape. */
    uint64_t first_ns;
    /** The longest delay in nanoseconds. 0: no limit. */
    uint64_t cap_ns;
    /** How long after the submission the last attempt may begin, in nanoseconds. PACE_FOREVER or 0: no limit. */
    uint64_t within_ns;
} pace_retry_t;

/* --------------------------------- Handles that several headers name */

/**
 * An HTTP/1.1 server on a pool: its routes, and when it was started, its listeners and connections.
 *
 * One request of a connection is in work at a time; what a client sends ahead waits, so answers come
 * in the order of the requests.
 */
typedef struct pace_http_t pace_http_t;

/** A structured log: a thread of its own, which is created with it. */
typedef struct pace_log_t pace_log_t;

/** A pool: a fixed set of threads and what they serve. */
typedef struct pace_pool_t pace_pool_t;

/** A worker pool over a pool, whose threads run its tasks beside everything else. */
typedef struct pace_workers_t pace_workers_t;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_CORE_H */
