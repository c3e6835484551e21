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
 * (handles, strands, rings) is deregistered, closed or freed, or ends with the pool.
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
 * host threads.
 */
#define PACE_EFULL (-2)

/** The queue is empty, and no time to wait was given. */
#define PACE_EEMPTY (-3)

/** The time ran out. */
#define PACE_ETIMEDOUT (-4)

/** The pool is shut down, or draining; the ring or queue is closed (and, for a pop, empty). */
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
 * The errno of this thread's last call that failed, if that was PACE_EOS; else 0.
 *
 * Threads: any, each has its own. In handlers: yes, it never waits.
 */
int32_t pace_last_os_error(void);

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

/* ------------------------------------------------------------------------------------ The pool */

/** In a configuration: let the library choose. */
#define PACE_DEFAULT UINT32_MAX

/** As a time-out: for ever. */
#define PACE_FOREVER UINT64_MAX

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
     * Memory is taken as they appear.
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
} pace_pool_config_t;

/** How a shutdown went. Set struct_size to sizeof the struct before the call. */
typedef struct pace_report_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Everything that had been accepted ended within the drain's time. */
    bool drained;
    /** It was called inside a handler, so it was only a request. */
    bool requested;
    /** Zero. */
    uint8_t reserved[2];
    /** Tasks and one-shot timers that were accepted and will not run. */
    uint64_t cancelled;
    /**
     * Threads whose handlers have not returned; pace_pool_thread_stats() tells which: their role is
     * not PACE_ROLE_AWAY.
     */
    uint32_t stuck;
    /** Zero. */
    uint32_t reserved2;
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
 * Shuts the pool down: refuses new work from outside, runs what was accepted for up to `drain_ns`,
 * then cancels what has not begun, closes all handles, and ends the threads. It returns when all
 * handlers have returned, or 100 ms after the drain at the latest; threads that are still inside a
 * handler then are counted as stuck. Calling it again is harmless. `report` may be NULL.
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
 * Frees a pool. One that is still open is shut down without draining. It waits until all handlers
 * have returned; afterwards no callback runs any more, and every `drop` has run. NULL is a no-op.
 * Ids of its tasks, strands, handles and timers must not be used afterwards; rings are freed by
 * themselves, before or after.
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

/** Before all others. */
#define PACE_LANE_CRITICAL 0

/** Before normal and low ones. */
#define PACE_LANE_HIGH 1

/** The usual one. */
#define PACE_LANE_NORMAL 2

/** After all others, but at least one of 64. */
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

/** Do not call me before pace_handle_resume(). What arrives meanwhile is kept. */
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
    /** Nothing is delivered before pace_handle_resume(). */
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
 * Holds further calls of the handler back; what arrives meanwhile is kept. Errors and hang-ups of
 * edge-triggered descriptors are delivered all the same. A run that has begun is not interrupted.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_handle_pause(pace_pool_t *pool, pace_handle_t handle);

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
 * changes). *postponed: true, it had not begun; a timer that begins at this very moment may still run
 * once.
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
 * Closes a ring and frees it. It does not wait for the handler: `drop` tells when that is through.
 * NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses the ring any more. In handlers: yes, it never waits.
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
 * Completes what this thread has pulled, as its next pace_pool_pull() would.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pull_done(pace_pool_t *pool);

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
