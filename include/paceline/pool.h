/* paceline/pool.h: pools of threads: tasks, strands, descriptors, timers, rings, signals.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_POOL_H
#define PACELINE_POOL_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------- The pool */

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

/** Settings of a pool. Call pace_pool_config_init(), change what you like, call pace_pool_new(). */
typedef struct pace_pool_config_t {
    /** The size of the struct in bytes, as pace_pool_config_init() sets it. */
    uint32_t struct_size;
    /**
     * Pool threads, 0 to 1024. PACE_DEFAULT: one per usable CPU. 0: only host threads drive it, by
     * pace_pool_join() or pace_cq_wait().
     */
    uint32_t threads;
    /** How many host threads may take part at once, 0 to 1024. Default 4. */
    uint32_t max_joined;
    /**
     * Handle sets, each with one leader at a time: 1 to one less than the threads (1 for a pool of
     * one or none). PACE_DEFAULT: 1 for up to 8 threads, then one per 8.
     */
    uint32_t leaders;
    /** What the leader waits at: PACE_SOURCE_EPOLL (default) or PACE_SOURCE_RING. */
    uint32_t source;
    /** When leadership is handed on: PACE_PROMOTION_DEFERRED (default) or PACE_PROMOTION_EAGER. */
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
    /** Room for later versions; zero. */
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
    /** Called with hook_data on each thread before anything else runs there. NULL: no call. */
    pace_thread_fn on_start;
    /** Called with hook_data on each thread after everything else has run there. NULL: no call. */
    pace_thread_fn on_stop;
    /** Called with hook_data for what takes longer than slow_ns. NULL: no call. */
    pace_slow_fn on_slow;
    /** The limit for on_slow in nanoseconds, at least 10 000 (10 µs). */
    uint64_t slow_ns;
    /** The first argument of on_start, on_stop and on_slow. */
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
    /**
     * How long a thread works on ready work before it looks at everything that waits (the event source, timers that are due,
     * more urgent lanes): 10 000 (10 µs) to 1 000 000 000 (1 s); 0 (default): 1 ms. A backlog leaves its thread after that
     * time, once the handler that runs has returned.
     */
    uint64_t max_turn_ns;
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
    /** Room for later versions; zero. */
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
    /** Room for later versions; zero. */
    uint32_t reserved2;
    /**
     * Events of rings, and messages of hubs, in mailboxes or with publishers that waited for room there, which will not
     * be handled.
     */
    uint64_t left;
    /**
     * Of worker pools: tasks that were cancelled, those that waited for another attempt among them, and those that a
     * host has taken and not completed.
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
 * Changes a configuration to what the section `pool` of a file of settings says: JSON if its name ends in .json,
 * YAML if in .yaml or .yml. `path` may be NULL. With `environment`, variables PACELINE_POOL_… win over the file. What
 * neither says stays as it is, so later files are loaded by later calls, and what is changed afterwards wins. Sections
 * of other configurations, which have functions like this, are checked too. Texts, here `pin` and `name`, are this
 * thread's, and lent until it loads the same setting again, or ends.
 *
 * PACE_EINVAL: pace_last_error() tells all that is wrong, each with file or variable, key, value and what
 * is allowed; the configuration is as it was. PACE_EVERSION: pace_pool_config_init() was not called.
 *
 * Threads: any. In handlers: yes; it reads a file.
 */
pace_status_t pace_pool_config_load(pace_pool_config_t *config,
                                    const char *path,
                                    bool environment);

/**
 * Lets only the first `threads` of the ordinary threads work; the others finish what they are at, and
 * park until more are wanted. Parked threads cost nothing. 1 to the number of ordinary threads; with more
 * than one handle set, at least one more than there are sets.
 *
 * PACE_EINVAL names the range; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_set_active(const pace_pool_t *pool,
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
 * A pool without threads is drained by the hosts that join it or wait at a completion queue. If none of them is left, the
 * calling thread runs what was accepted, in the time that `drain_ns` gives. It does not wait for what only a host could
 * end: an attempt that no host has taken, or one that was taken and is not completed.
 *
 * Inside a handler it is only a request: it returns at once, and the pool shuts down when its
 * handlers have returned.
 *
 * PACE_EVERSION: report->struct_size was not set.
 *
 * Threads: any. In handlers: yes, as a request.
 */
pace_status_t pace_pool_shutdown(const pace_pool_t *pool,
                                 uint64_t drain_ns,
                                 pace_report_t *report);

/**
 * Shuts the pool down without a drain: what has not begun is cancelled. Otherwise as pace_pool_shutdown().
 *
 * PACE_EVERSION: report->struct_size was not set.
 *
 * Threads: any. In handlers: yes, as a request.
 */
pace_status_t pace_pool_stop_now(const pace_pool_t *pool,
                                 pace_report_t *report);

/**
 * Frees a pool. One that is still open is drained first, for up to 30 s, as by pace_pool_shutdown(): what was
 * accepted ends; of a pool without threads the calling thread runs it. For an end without a drain call
 * pace_pool_stop_now() before. It waits until all handlers
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
 * Until pace_confine(), programs (posix_spawn, system, popen) and threads (pthread_create) that the calling thread starts
 * inherit the signal mask and the CPUs of the thread that built the pool. Started by a thread of a pool without this, a program ignores
 * SIGTERM and Ctrl-C, and a thread may share its CPU. Signals of
 * pace_signals_new() are let through. Each call needs its pace_confine() before the handler returns, or the thread
 * gets signals of the program. Outside the pool it does nothing. A child of fork() needs none.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_unconfine(void);

/**
 * Ends what the last pace_unconfine() of the calling thread has begun. Without one it does nothing.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_confine(void);

/**
 * Says "I am about to block": another thread of this thread's pool is called to lead and to take
 * over what this one has claimed. Outside of handlers it does nothing.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_promote_new_leader(void);

/* ------------------------------------------------------------- Tasks */

/**
 * Before all others. No lane starves: while all four have tasks, of 64 picks 32 are of CRITICAL, 18 of HIGH, 10 of NORMAL
 * and 4 of LOW. A pick of a thread takes up to 64 tasks of its lane if these take some 20 microseconds together.
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
    /** The function of the task. It must not be NULL. */
    pace_task_fn run;
    /** The argument of `run`, and of `drop`. */
    void *user_data;
    /** Called once with user_data after the task has run, or when it is cancelled. NULL: no call. */
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
pace_status_t pace_pool_post(const pace_pool_t *pool,
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
pace_status_t pace_pool_try_post(const pace_pool_t *pool,
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
pace_status_t pace_pool_post_bytes(const pace_pool_t *pool,
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
pace_status_t pace_pool_post_batch(const pace_pool_t *pool,
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
pace_status_t pace_pool_submit(const pace_pool_t *pool,
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
pace_status_t pace_pool_try_submit(const pace_pool_t *pool,
                                   uint32_t lane,
                                   pace_task_fn run,
                                   void *user_data,
                                   pace_drop_fn drop,
                                   pace_task_t *task);

/**
 * Waits for up to `timeout_ns` until a task has ended; its `drop` has run then. PACE_OK: it ran, and
 * *outcome is what it reported. `outcome` may be NULL. One thread at a time may wait for a task, and
 * not the task itself, which would wait until its time is out. In a pool without threads the caller takes part meanwhile,
 * as in pace_pool_join().
 *
 * PACE_OK, PACE_ECANCELLED (it never ran) and PACE_EPANIC give the id back, and the others do not:
 * PACE_ETIMEDOUT, PACE_EBUSY (another thread waits), PACE_EDEADLOCK (on a thread of the pool, when
 * all others wait already), PACE_ESTALE.
 *
 * Threads: any. In handlers: yes; it hands leadership on before it waits.
 */
pace_status_t pace_task_wait(const pace_pool_t *pool,
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
pace_status_t pace_task_is_done(const pace_pool_t *pool, pace_task_t task, bool *done);

/**
 * Asks that a task should not begin. *cancelled: true, it never will, its `drop` runs when a thread
 * comes across it, and waiting for it gives PACE_ECANCELLED; false, it runs or has ended. Its id is
 * still to be given back.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_task_cancel(const pace_pool_t *pool, pace_task_t task, bool *cancelled);

/**
 * Gives a task's id back without waiting: it runs on, and nobody learns its outcome.
 *
 * PACE_ESTALE; PACE_EBUSY while another thread waits for it.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_task_detach(const pace_pool_t *pool, pace_task_t task);

/* --------------------------- Strands: serial execution without locks */

/**
 * Makes a strand: its tasks run one at a time, in the order in which they were posted, on whatever
 * thread of the pool is free.
 *
 * PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_strand_new(const pace_pool_t *pool, pace_strand_t *strand);

/**
 * Appends a task. From outside the pool's threads it waits while the strand is full; inside a
 * handler it never waits.
 *
 * PACE_EFULL (inside only), PACE_ESHUTDOWN, PACE_ESTALE, PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_strand_post(const pace_pool_t *pool,
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
pace_status_t pace_strand_try_post(const pace_pool_t *pool,
                                   pace_strand_t strand,
                                   pace_task_fn run,
                                   void *user_data,
                                   pace_drop_fn drop);

/**
 * As pace_pool_post_batch(), of a strand: one after the other, so that tasks of other threads may come between them.
 *
 * PACE_EFULL (inside only), PACE_ESHUTDOWN, PACE_ESTALE; PACE_EINVAL, with none taken and *accepted
 * unchanged, if any of them has no `run`.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_strand_post_batch(const pace_pool_t *pool,
                                     pace_strand_t strand,
                                     const pace_work_t *work,
                                     size_t count,
                                     size_t *accepted);

/**
 * As pace_strand_post(), and names the task as pace_pool_submit() does.
 *
 * PACE_EFULL (inside; or all ids are in use), PACE_ESHUTDOWN, PACE_ESTALE, PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_strand_submit(const pace_pool_t *pool,
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
pace_status_t pace_strand_try_submit(const pace_pool_t *pool,
                                     pace_strand_t strand,
                                     pace_task_fn run,
                                     void *user_data,
                                     pace_drop_fn drop,
                                     pace_task_t *task);

/**
 * Takes no more tasks, and waits until those that were accepted have run. *drained says whether they have after `time_ns`;
 * `drained` may be NULL. The strand is to be closed still.
 *
 * Inside a handler of the pool it is only a request, and returns at once with false. In a pool without threads this thread
 * runs what no host has begun.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, as a request.
 */
pace_status_t pace_strand_drain(const pace_pool_t *pool,
                                pace_strand_t strand,
                                uint64_t time_ns,
                                bool *drained);

/**
 * Closes a strand and gives its id back. What was accepted still runs.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_strand_close(const pace_pool_t *pool, pace_strand_t strand);

/* -------------------------- Handles: descriptors and periodic timers */

/** The handler is called when there is data to read, and when the peer sends no more. */
#define PACE_INTEREST_READABLE 1

/** The handler is called for urgent data of a TCP socket, and for a change of a sysfs or cgroup file. */
#define PACE_INTEREST_PRIORITY 2

/** The handler is called when there is room to write, and when a connection attempt has ended. */
#define PACE_INTEREST_WRITABLE 4

/** How a descriptor is waited for. Call pace_handle_options_init() first. */
typedef struct pace_handle_options_t {
    /** The size of the struct in bytes, as pace_handle_options_init() sets it. */
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
    /** Room for later versions; zero. */
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
 * The descriptor stays the caller's: close it after `drop` has run, or in `drop`. If it is closed before, this handle is
 * closed as soon as another descriptor of its number is registered: `drop` runs then, and the log has a warning,
 * pool.closed_registered.
 *
 * PACE_EINVAL if `fd` is negative, or in blocking mode; PACE_EOS if it cannot be waited for (regular
 * files cannot) or is registered already; PACE_EFULL when all max_handles are in use;
 * PACE_ESHUTDOWN; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_register(const pace_pool_t *pool,
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
pace_status_t pace_pool_every(const pace_pool_t *pool,
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
pace_status_t pace_handle_pause(const pace_pool_t *pool,
                                pace_handle_t handle);

/**
 * Ends a pause, also one that the callback, which runs now, asks for by PACE_FLOW_PAUSE when it returns. What
 * was kept is delivered. Of this and pace_handle_pause(), by all threads, the last call counts.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_handle_resume(const pace_pool_t *pool,
                                 pace_handle_t handle);

/**
 * Deregisters. When this returns PACE_OK, the handler does not run and never will, and `drop` has
 * run. From outside the pool's threads it waits for a handler that is running.
 *
 * PACE_ECLOSING: the handler runs, and this was called inside a handler of the same pool (waiting
 * could deadlock), or another thread deregisters the handle already, or its event is out. It
 * closes when the handler returns, or the event is completed, and `drop` runs then. PACE_ESTALE: it
 * is closed already.
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_handle_deregister(const pace_pool_t *pool, pace_handle_t handle);

/**
 * Whether a handle is registered still. An id whose handle is gone gives false.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_handle_is_open(const pace_pool_t *pool, pace_handle_t handle, bool *is_open);

/* ---------------------------------------------- Timers that run once */

/**
 * Runs a task once, `delay_ns` from now (up to 100 years): never early. Allocates nothing. `timer`
 * may be NULL: a timer ends by itself, and nothing need be kept.
 *
 * PACE_EINVAL, PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_after(const pace_pool_t *pool,
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
pace_status_t pace_timer_cancel(const pace_pool_t *pool, pace_timer_t timer, bool *cancelled);

/**
 * Puts a timer off until `delay_ns` from now, which must not be earlier than it was due (then nothing
 * changes); more than 100 years are taken as 100 years. *postponed: true, it had not begun; a timer that begins at
 * this very moment may still run once.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_timer_postpone(const pace_pool_t *pool,
                                  pace_timer_t timer,
                                  uint64_t delay_ns,
                                  bool *postponed);

/**
 * Whether a timer has neither begun nor been cancelled.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_timer_is_pending(const pace_pool_t *pool, pace_timer_t timer, bool *pending);

/* --------------- Rings: fixed-size events with a handler on the pool */

/** A bounded ring of events of one size, with a handler on a pool. */
typedef struct pace_ring_t pace_ring_t;

/**
 * Makes a ring whose handler gets the events in the order of their publication, on one thread at a
 * time. `event_size` is 1 to 131072 bytes; `capacity`, 1 to 2^31 events, is rounded up to a power of
 * two. All memory is taken now.
 *
 * PACE_EINVAL, PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ring_serial(const pace_pool_t *pool,
                               size_t event_size,
                               size_t capacity,
                               pace_events_fn handler,
                               void *user_data,
                               pace_drop_fn drop,
                               pace_ring_t **ring);

/**
 * Makes a ring whose handler gets batches of up to 256 events, of no more than 64 KiB if there
 * is more than one event in it, on as many threads as are free, in no
 * particular order. Otherwise as pace_ring_serial().
 *
 * PACE_EINVAL, PACE_EFULL, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ring_concurrent(const pace_pool_t *pool,
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
pace_status_t pace_ring_publish(const pace_ring_t *ring, const void *event);

/**
 * As pace_ring_publish(), and never waits.
 *
 * PACE_EFULL, PACE_ESHUTDOWN (or closed).
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ring_try_publish(const pace_ring_t *ring, const void *event);

/**
 * Publishes `count` events in order, which lie event_size bytes apart. Waits as pace_ring_publish()
 * does. *published says how many went in, also for PACE_EFULL and PACE_ESHUTDOWN. Copying is least
 * when event_size is a multiple of 8 and `events` is aligned to 8.
 *
 * PACE_EFULL (inside only), PACE_ESHUTDOWN (or closed).
 *
 * Threads: any. In handlers: yes, it never waits there.
 */
pace_status_t pace_ring_publish_batch(const pace_ring_t *ring,
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
pace_status_t pace_ring_close(const pace_ring_t *ring);

/**
 * Closes a ring and frees it. It waits until what was published has been handled and `drop` has run. NULL is a no-op,
 * and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses the ring any more. In handlers, and on threads of the pool: yes, it never
 * waits there.
 */
void pace_ring_free(pace_ring_t *ring);

/* -------------------------------------------- Signals of the process */

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
pace_status_t pace_signals_new(const pace_pool_t *pool,
                               const int32_t *numbers,
                               size_t count,
                               pace_signal_fn on_signal,
                               void *user_data,
                               pace_drop_fn drop,
                               pace_signals_t **watch);

/**
 * SIGTERM and SIGINT begin to shut the pool down: from then on it refuses work from outside, and runs what
 * it has accepted for up to `drain_for_ns`. pace_signals_wait() and then pace_pool_shutdown() tell how it
 * went.
 *
 * As pace_signals_new().
 *
 * Threads: any. In handlers: as there.
 */
pace_status_t pace_signals_shut_down(const pace_pool_t *pool,
                                     uint64_t drain_for_ns,
                                     pace_signals_t **watch);

/**
 * Waits for a signal whose handler has run and that nobody has waited for; the lowest, if several have
 * come. `signal` may be NULL.
 *
 * PACE_ESHUTDOWN: the pool has ended; PACE_EDEADLOCK on a thread of the pool, which it would hold up.
 *
 * Threads: any but the pool's own. In handlers: no.
 */
pace_status_t pace_signals_wait(const pace_signals_t *watch,
                                int32_t *signal);

/**
 * Watches no more. The signals stay blocked, so that one that comes late does not end the process. It waits until no
 * call runs and `drop` has run. NULL: nothing.
 *
 * Threads: any, as long as no other uses it any more. In handlers, and on threads of the pool: yes, it never waits
 * there.
 */
void pace_signals_free(pace_signals_t *watch);

/* --------------------------------------------- Host threads: joining */

/**
 * Makes the calling thread a member of the pool for `time_ns`: it leads, follows and runs handlers as
 * the pool's own threads do. It returns when the time is over and the handler that runs then has returned. With a time of
 * 0 it runs what is ready, for up to one turn (max_turn_ns), and returns; PACE_FOREVER lasts until the pool shuts down. *ran says how many handlers and tasks it has run; `ran` may be NULL.
 *
 * PACE_EFULL when max_joined threads are here already, PACE_EINVAL inside a handler, PACE_ESHUTDOWN.
 *
 * Threads: any but the pool's own. In handlers: no.
 */
pace_status_t pace_pool_join(const pace_pool_t *pool,
                             uint64_t time_ns,
                             uint64_t *ran);

/**
 * A descriptor that becomes readable when there is something to do, for hosts that wait in a loop of
 * their own and then call pace_pool_join(pool, 0, NULL) or pace_cq_wait() with a time of 0. For a
 * pool of no threads and one handle set. It belongs to the pool: never read, write or close it.
 *
 * PACE_EINVAL if the pool has threads of its own, or no descriptors; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_pollable(const pace_pool_t *pool,
                                 int32_t *fd);

/**
 * Names what a host thread handles of what pace_cq_wait() has brought it; shown until the thread waits again. `thread` is
 * its number (gettid), 0: the calling one. Up to 200 bytes of `name` are shown; "": no name. The process keeps some
 * 4,000 names.
 *
 * PACE_ESTALE: no host of this pool, or it handles nothing; PACE_EINVAL: `name` is NULL or not UTF-8; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_name_host(const pace_pool_t *pool,
                                  uint32_t thread,
                                  const char *name);

/* ---------------------------------------------- Statistics and books */

/** A place that no host thread has taken, or a thread that has ended. */
#define PACE_ROLE_AWAY 0

/** Parked until another thread wakes it. */
#define PACE_ROLE_FOLLOWER 1

/** Parked with a timer, to look for stuck work. */
#define PACE_ROLE_WATCH 2

/** Leads a handle set, or looks for work. */
#define PACE_ROLE_LEADER 3

/** The thread runs a handler. */
#define PACE_ROLE_PROCESSING 4

/** The thread runs a task. */
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
    /** Rows for pace_pool_thread_stats(): pool threads, then places for host threads. */
    uint32_t threads;
    /** The number of handle sets: rows for pace_pool_set_stats(). */
    uint32_t sets;
    /** Threads that are parked now. */
    uint32_t parked;
    /** Which thread is the watch now, or PACE_NONE. */
    uint32_t watch;
    /** Room for later versions; zero. */
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
    /** Room for later versions; zero. */
    uint8_t reserved[3];
    /** How often the thread has become the leader. */
    uint64_t terms;
    /** How often the thread has taken leadership over from another thread. */
    uint64_t handovers;
    /** Times that it stepped in as the watch because something was stuck. */
    uint64_t rescues;
    /** Events that it harvested as leader. */
    uint64_t events;
    /** The number of handlers that the thread has run. */
    uint64_t handled;
    /** Tasks that it ran or found cancelled. */
    uint64_t tasks;
    /** Tasks that did not report success, and handlers whose answer was none. */
    uint64_t panics;
    /** Times that it took over work that another thread had claimed. */
    uint64_t stolen;
    /** How often the thread has parked. */
    uint64_t parked;
    /** How often the thread, as the watch, has looked for stuck work. */
    uint64_t ticks;
    /**
     * The kernel's number of the thread, as top -H has it. Of a host thread's place: of the thread that has it, or had it
     * last. 0: no thread has run there, or the pool's own has ended.
     */
    uint32_t native_id;
    /** Room for later versions; zero. */
    uint32_t reserved2;
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
 * The counters. At rest they balance exactly: submitted = accepted + rejected, and accepted = completed +
 * failed + cancelled + in_flight. While the pool works they may be apart by what happens meanwhile.
 */
typedef struct pace_audit_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Whether the counters balance: no task is lost. */
    bool balances;
    /** Room for later versions; zero. */
    uint8_t reserved[3];
    /** Tasks and one-shot timers that were handed in. */
    uint64_t submitted;
    /** Of `submitted`: those that the pool has taken. */
    uint64_t accepted;
    /** Of `submitted`: those that were given back. */
    uint64_t rejected;
    /** Of `accepted`: tasks that have run and reported success. */
    uint64_t completed;
    /** Of `accepted`: tasks that have run and reported a failure, or nothing. */
    uint64_t failed;
    /** Of `accepted`: those that will never run. */
    uint64_t cancelled;
    /** Of `accepted`: those that wait or run now; counted, not derived. */
    uint64_t in_flight;
} pace_audit_t;

/**
 * A snapshot of a pool.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_pool_stats(const pace_pool_t *pool, pace_pool_stats_t *stats);

/**
 * What one thread has done: `thread` is 0 to pace_pool_stats_t.threads - 1.
 *
 * PACE_EINVAL for another `thread`; PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_pool_thread_stats(const pace_pool_t *pool,
                                     uint32_t thread,
                                     pace_thread_stats_t *stats);

/**
 * What one handle set is doing: `set` is 0 to pace_pool_stats_t.sets - 1.
 *
 * PACE_EINVAL for another `set`; PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_pool_set_stats(const pace_pool_t *pool,
                                  uint32_t set,
                                  pace_set_stats_t *stats);

/**
 * What it has counted; the counters add up at rest.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pool_audit(const pace_pool_t *pool, pace_audit_t *audit);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_POOL_H */
