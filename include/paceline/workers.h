/* paceline/workers.h: worker pools: tasks with priorities, retries, limits in time and results.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_WORKERS_H
#define PACELINE_WORKERS_H

#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------- Worker pools: what a task's function is given */

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
    /** The function of the task, called once for each attempt. It must not be NULL. */
    pace_attempt_fn run;
    /** The first argument of each call of `run`. */
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

/* --------------------------- Worker pools: what runs around attempts */

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
    /** Called before each attempt, on its thread. NULL: no call. */
    pace_before_fn before;
    /** Called after each attempt, on its thread. NULL: no call. */
    pace_after_fn after;
    /** Called before `after`, if the attempt has failed. NULL: no call. */
    pace_on_error_fn on_error;
    /** The first argument of each call of these functions. */
    void *user_data;
    /** Runs once after the last call, when the worker pool and its pool have been freed. NULL: nothing. */
    pace_drop_fn drop;
} pace_middleware_t;

/* ----------------------------------- Worker pools: how a task stands */

/** The task waits for its first attempt. */
#define PACE_TASK_PENDING 0

/** An attempt of the task runs now. */
#define PACE_TASK_RUNNING 1

/** An attempt of the task has failed, and waits for its retry. */
#define PACE_TASK_RETRYING 2

/** The task has succeeded. A task with this number or a greater one has ended. */
#define PACE_TASK_COMPLETED 3

/** The last attempt of the task has failed. */
#define PACE_TASK_FAILED 4

/** The task was cancelled, or the pool was stopped. */
#define PACE_TASK_CANCELLED 5

/** The task was over one of its times: for waiting, for running, or its deadline. */
#define PACE_TASK_TIMED_OUT 6

/** The task was accepted, and dropped later to make room for another one. */
#define PACE_TASK_REJECTED 7

/* ------------------------------------------------------ Worker pools */

/** In the report of a shutdown: how many tasks of a name have completed since it began. */
#define PACE_ENDED_COMPLETED 0

/** In the report of a shutdown: a task that was cancelled. */
#define PACE_ENDED_CANCELLED 1

/**
 * In the report of a shutdown: a task whose function has not returned, or whose attempt a host has not
 * completed.
 */
#define PACE_ENDED_STUCK 2

/**
 * In the report of a shutdown: a clean-up hook for which there was no time, or that has not returned in
 * time.
 */
#define PACE_ENDED_HOOK 3

/**
 * Settings of a worker pool. Call pace_workers_config_init(), change what you like, call
 * pace_workers_new().
 */
typedef struct pace_workers_config_t {
    /** The size of the struct in bytes, as pace_workers_config_init() sets it. */
    uint32_t struct_size;
    /**
     * How many tasks may wait for their keys, and how many for the rate of each task type, before others are
     * refused: 1 to 2^24. Default 65,536.
     */
    uint32_t max_waiting;
    /**
     * How many tasks with a tag (pace_workers_submit_tagged) may wait to be taken from the completion queue before others
     * are refused: 1 to 2^24. Default 2^20.
     */
    uint32_t max_queued;
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
    /** Room for later versions; zero. */
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
    /** Room for later versions; zero. */
    uint32_t reserved2;
    /**
     * The log of its tasks, which it keeps, in place of the pool's. Each end of a task is a record then, and not only
     * one that failed: task.completed, task.failed, task.timed_out, task.cancelled or task.rejected, at the level debug,
     * with id, name, attempts, queue_ns, run_ns and thread. NULL (default): the pool's log.
     */
    pace_log_t *log;
} pace_workers_config_t;

/** A clean-up hook of a worker pool, called once with its user_data during the shutdown. */
typedef void (*pace_clean_up_fn)(void *user_data);

/** How the shutdown of a worker pool went. Set struct_size to sizeof the struct before the call. */
typedef struct pace_workers_report_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** It was called inside the pool, so it was only a request: new tasks are refused. */
    bool requested;
    /** Whether everything has ended by itself, and nothing was cancelled or is stuck. */
    bool drained;
    /** Room for later versions; zero. */
    uint8_t reserved[2];
    /** The number of tasks that have completed since the shutdown began. */
    uint64_t completed;
    /** The number of tasks that were cancelled by the shutdown. */
    uint64_t cancelled;
    /** The number of tasks whose functions have not returned. */
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
pace_status_t pace_workers_new(const pace_pool_t *pool,
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
pace_status_t pace_workers_on_shutdown(const pace_workers_t *workers,
                                       const char *name,
                                       pace_clean_up_fn run,
                                       void *user_data,
                                       pace_drop_fn drop);

/**
 * Shuts a worker pool down: refuses new tasks, lets what was accepted end for up to `drain_for_ns`, then
 * cancels what has not begun and asks what runs to stop, for up to `stop_for_ns`, then runs the clean-up
 * hooks for up to `clean_up_for_ns` (one that takes longer goes on, on a thread of the pool, and its `drop` runs
 * when it has returned). A task has ended when what pace_workers_on_end() was given has returned. The pool beneath goes
 * on. Hosts that take attempts should go on meanwhile. Calling it again is harmless. `report` and `each` may be NULL; `each` is called for each line of the report, on this thread, before
 * this returns.
 *
 * Inside the pool it is a request: new tasks are refused from then on, and it returns.
 *
 * PACE_EVERSION: report->struct_size was not set.
 *
 * Threads: any. In handlers: yes, as a request.
 */
pace_status_t pace_workers_shutdown(const pace_workers_t *workers,
                                    uint64_t drain_for_ns,
                                    uint64_t stop_for_ns,
                                    uint64_t clean_up_for_ns,
                                    pace_workers_report_t *report,
                                    pace_ended_fn each,
                                    void *user_data);

/**
 * Frees a worker pool: ids of its tasks name nothing any more. It is not shut down by that: what was
 * accepted goes on until the pool stops, unobserved; with the pool an attempt that is out of a completion
 * queue and was not completed has failed for good. Free its task types before or after. NULL: nothing.
 *
 * Threads: any, as long as no other uses the worker pool any more. In handlers: yes, it never waits.
 */
void pace_workers_free(pace_workers_t *workers);

/* ---------------------- Worker pools: task types, and their settings */

/**
 * For a task: as its task type; for a task type: as its worker pool; for that: wait for room outside the pool's
 * threads, as long as it takes; inside, PACE_EFULL.
 */
#define PACE_OVERLOAD_DEFAULT 0

/** A task that finds no room is refused with PACE_EFULL at once. */
#define PACE_OVERLOAD_REJECT 1

/** A task that finds no room waits for it for up to full_wait_ns. */
#define PACE_OVERLOAD_WAIT 2

/**
 * The first attempt of a task that finds no room runs in the submitter's thread; inside the pool it is
 * refused with PACE_EFULL.
 */
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
    /** The size of the struct in bytes, as pace_task_type_config_init() sets it. */
    uint32_t struct_size;
    /** The lane of the tasks: PACE_LANE_CRITICAL to PACE_LANE_LOW. Default: PACE_LANE_NORMAL. */
    uint32_t lane;
    /** When a task that has failed is tried again. Default: no retries. */
    pace_retry_t retry;
    /**
     * How long each attempt may take, up to 100 years. Of one that is out of a completion queue this limit and
     * deadline_ns may end 100 ms late while all `max_handles` of the pool are in use. PACE_FOREVER (default), or 0: no limit.
     */
    uint64_t timeout_ns;
    /** How long a task may wait for its first attempt. PACE_FOREVER (default), or 0: no limit. */
    uint64_t queue_timeout_ns;
    /**
     * How long a task may take in all, from its submission to its end. PACE_FOREVER (default), or 0: no
     * limit.
     */
    uint64_t deadline_ns;
    /** Called for the delay before each retry, if the shape is PACE_RETRY_CUSTOM. */
    pace_delay_fn retry_delay;
    /** The first argument of retry_delay and retry_drop. */
    void *retry_data;
    /** Runs once after its last call: when the pool is gone and the ids of its tasks, or later. NULL: nothing. */
    pace_drop_fn retry_drop;
    /** Retries are bounded together by the budget of the next three fields. Default: they are not. */
    bool retry_budget;
    /** Room for later versions; zero. */
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
     * So many attempts may run at once. One that is out of a completion queue counts until its task has
     * ended.
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
    /** Room for later versions; zero. */
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
    /** Room for later versions; zero. */
    uint8_t reserved3[7];
    /**
     * For tasks without a function: how long a host may be silent about an attempt that it has taken from a completion
     * queue, before it counts as gone: 1 ms to 100 years. Then the attempt has failed, and is followed by another as
     * after any failure; if it is the last one, that end comes to the queue, too. Renewing its entry is a sign of life;
     * what the host says later is PACE_ESTALE, and its attempt may have run beside the next. While all `max_handles` of
     * the pool are in use it may end 100 ms late. PACE_FOREVER (default), or 0: no limit, it is waited for.
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
 * Changes a configuration to what the section `tasks` of a file of settings says, as pace_pool_config_load() does for
 * `pool`.
 *
 * As there.
 *
 * Threads: any. In handlers: yes; it reads a file.
 */
pace_status_t pace_task_type_config_load(pace_task_type_config_t *config,
                                         const char *path,
                                         bool environment);

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
pace_status_t pace_task_type_new(const pace_workers_t *workers,
                                 const char *name,
                                 const pace_task_type_config_t *config,
                                 pace_task_type_t **task_type);

/**
 * Runs a function once, in the task type's lane: no id, no limits, no retries, and it costs what
 * pace_pool_post() costs. It is counted in the pool's counters, not in the task type's. While the lane is full the
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

/* ----------------------------------------------- Worker pools: tasks */

/**
 * What one task, or all of a batch, have in place of their task type's settings. Call
 * pace_task_options_init(), and change what you like.
 */
typedef struct pace_task_options_t {
    /** The size of the struct in bytes, as pace_task_options_init() sets it. */
    uint32_t struct_size;
    /** PACE_LANE_. PACE_DEFAULT: the task type's. */
    uint32_t lane;
    /** When the task is tried again after a failure. PACE_RETRY_DEFAULT (default): as its task type says. */
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
    /** Whether the task has a key, in `key`. Default false. */
    bool keyed;
    /** Room for later versions; zero. */
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
    /** Room for later versions; zero. */
    uint32_t reserved2;
    /** For PACE_OVERLOAD_WAIT: for how long. PACE_FOREVER: as long as it takes. */
    uint64_t full_wait_ns;
} pace_task_options_t;

/** How a task ended. Set struct_size to sizeof the struct before the call. */
typedef struct pace_task_report_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** How the task has ended: PACE_TASK_COMPLETED or a greater PACE_TASK_ number. */
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
    /** The thread that ran the last attempt, as `worker` of pace_workers_worker_stats(). PACE_NONE: none of the pool's did. */
    uint32_t worker;
    /** Room for later versions; zero. */
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
pace_status_t pace_workers_submit(const pace_workers_t *workers,
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
pace_status_t pace_workers_submit_batch(const pace_workers_t *workers,
                                        const pace_task_type_t *task_type,
                                        const pace_attempt_work_t *work,
                                        size_t count,
                                        const pace_task_options_t *options,
                                        pace_task_t *tasks,
                                        size_t *accepted);

/**
 * Waits for up to `timeout_ns` until a task has ended, and says how. `report` may be NULL. One thread at a
 * time may wait for a task. PACE_OK gives the id back; its `drop` may run a little later. In a pool without threads
 * the caller takes part meanwhile, as in pace_pool_join().
 *
 * The others do not give it back: PACE_ETIMEDOUT, PACE_EBUSY (another thread waits), PACE_EDEADLOCK (on
 * a thread of the pool, when all others wait already), PACE_ESTALE, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes; it hands leadership on before it waits.
 */
pace_status_t pace_workers_wait(const pace_workers_t *workers,
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
pace_status_t pace_workers_status(const pace_workers_t *workers,
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
pace_status_t pace_workers_cancel(const pace_workers_t *workers,
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
pace_status_t pace_workers_drop(const pace_workers_t *workers,
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
pace_status_t pace_workers_on_end(const pace_workers_t *workers,
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
pace_status_t pace_workers_detach(const pace_workers_t *workers, pace_task_t task);

/* ----- Worker pools: tasks whose attempts come to a completion queue */

/**
 * Submits a task without a function. Each of its attempts comes with `tag` to the completion queue that the worker pool is
 * attached to (see paceline/cq.h), or waits until there is one; at most max_queued may wait. The task ends by a completion
 * of an attempt; if it ends otherwise, that comes to the queue, too. Everything else is as for pace_workers_submit(), but
 * this never waits. `task` may be NULL.
 *
 * PACE_EFULL, PACE_ESHUTDOWN, PACE_EINVAL, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_submit_tagged(pace_workers_t *workers,
                                         const pace_task_type_t *task_type,
                                         uint64_t tag,
                                         const pace_task_options_t *options,
                                         pace_task_t *task);

/**
 * Submits a task for each of `count` tags, in order and with the same options, as pace_workers_submit_tagged() does.
 * `tasks` is NULL or has room for `count` ids. *accepted says how many were taken, also for PACE_EFULL and
 * PACE_ESHUTDOWN.
 *
 * PACE_EFULL, PACE_ESHUTDOWN, PACE_EINVAL, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_workers_submit_tagged_batch(pace_workers_t *workers,
                                               const pace_task_type_t *task_type,
                                               const uint64_t *tags,
                                               size_t count,
                                               const pace_task_options_t *options,
                                               pace_task_t *tasks,
                                               size_t *accepted);

/* ---------------------- Worker pools: tasks that run again and again */

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
pace_status_t pace_workers_every(const pace_workers_t *workers,
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

/* ------------------------- Worker pools: statistics, health, figures */

/** All ordinary threads of the pool return from their tasks in time. */
#define PACE_HEALTH_READY 0

/** Some threads are inside functions that have outlived their time and do not listen. */
#define PACE_HEALTH_DEGRADED 1

/** All ordinary threads are stuck: inside functions that have outlived their time and do not listen. */
#define PACE_HEALTH_STUCK 2

/** The worker pool takes no more tasks. */
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
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** Tasks of this type that were submitted. */
    uint64_t submitted;
    /** Of `submitted`: tasks that the worker pool has taken. */
    uint64_t accepted;
    /** Of `submitted`: tasks that were given back to the caller. */
    uint64_t rejected;
    /** Of `accepted`: tasks that have succeeded. */
    uint64_t completed;
    /** Of `accepted`: tasks whose last attempt has failed. */
    uint64_t failed;
    /** Of `accepted`: tasks that were cancelled. */
    uint64_t cancelled;
    /** Of `accepted`: tasks that were over one of their times. */
    uint64_t timed_out;
    /** Of `accepted`: tasks that were dropped to make room for others. */
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
 * The counters of a worker pool. At rest they balance exactly: submitted = accepted + rejected, and
 * accepted = completed + failed + cancelled + timed_out + dropped + in_flight.
 */
typedef struct pace_workers_audit_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Whether the counters balance: no task is lost. */
    bool balances;
    /** Room for later versions; zero. */
    uint8_t reserved[3];
    /** Tasks that were submitted to the worker pool. */
    uint64_t submitted;
    /** Of `submitted`: tasks that the worker pool has taken. */
    uint64_t accepted;
    /** Of `submitted`: tasks that were given back to the caller. */
    uint64_t rejected;
    /** Of `accepted`: tasks that have succeeded. */
    uint64_t completed;
    /** Of `accepted`: tasks whose last attempt has failed. */
    uint64_t failed;
    /** Of `accepted`: tasks that were cancelled. */
    uint64_t cancelled;
    /** Of `accepted`: tasks that were over one of their times. */
    uint64_t timed_out;
    /** Of `accepted`: tasks that were dropped to make room for others. */
    uint64_t dropped;
    /** Of `accepted`: tasks that have not ended; counted where they are, not derived. */
    uint64_t in_flight;
} pace_workers_audit_t;

/**
 * What one thread of the pool has done for a worker pool. Attempts that a submitter runs in its own thread
 * (PACE_OVERLOAD_RUN_HERE), or that a host takes from a completion queue, are no thread's of the pool.
 */
typedef struct pace_worker_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** What the thread is doing now, for this worker pool or anything else of the pool: PACE_ROLE_. */
    uint32_t role;
    /** The thread runs an attempt of this worker pool that has outlived its time, or its task. */
    bool stuck;
    /** Room for later versions; zero. */
    uint8_t reserved[7];
    /** The name of the task of this worker pool that the thread runs now; NULL if it runs none. Static. */
    const char *task_type;
    /** Attempts that the thread has begun: those that have completed or failed, and the one that runs. */
    uint64_t attempts;
    /** Attempts that have reported success. */
    uint64_t completed;
    /** Attempts that have failed, or were cancelled while they ran. */
    uint64_t failed;
    /** What the attempts of the thread took together, up to now. */
    uint64_t run_time_ns;
    /** The part of the time since the worker pool was made that its attempts took, 0.0 to 1.0. */
    double utilisation;
} pace_worker_stats_t;

/** How a worker pool is, with what is left of it. */
typedef struct pace_health_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** The state as one number: PACE_HEALTH_READY to PACE_HEALTH_DRAINING. */
    uint32_t health;
    /** The number of ordinary threads of the pool. */
    uint32_t threads;
    /** The number of ordinary threads that are stuck. */
    uint32_t stuck;
    /** The number of ordinary threads that are active and not stuck: what is left to run tasks. */
    uint32_t capacity;
    /** The number of ordinary threads that run nothing now. */
    uint32_t free;
    /** The number of reserved threads that are not stuck. */
    uint32_t reserved_threads;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** The number of tasks that wait in the lanes. */
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
 * What it has counted; the counters add up at rest.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_workers_audit(const pace_workers_t *workers, pace_workers_audit_t *audit);

/**
 * What one thread of the pool has done for a worker pool: `worker` is 0 to pace_pool_stats_t.threads - 1, as
 * `worker` of pace_task_report_t.
 *
 * PACE_EINVAL for another `worker`; PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_workers_worker_stats(const pace_workers_t *workers,
                                        uint32_t worker,
                                        pace_worker_stats_t *stats);

/**
 * How a worker pool is.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_workers_health(const pace_workers_t *workers, pace_health_t *health);

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
pace_status_t pace_workers_metrics(const pace_workers_t *workers,
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

/* -------------------------- Worker pools: figures of a program's own */

/** A number that only grows. */
#define PACE_METRIC_COUNTER 0

/** A number that goes up and down. */
#define PACE_METRIC_GAUGE 1

/** A distribution of times, which are recorded in nanoseconds and read in seconds. */
#define PACE_METRIC_TIMES 2

/** A distribution of amounts of memory or data, in bytes. */
#define PACE_METRIC_BYTES 3

/** A distribution of other whole numbers. */
#define PACE_METRIC_NUMBERS 4

/** A figure of a program's own. */
typedef struct pace_metric_t pace_metric_t;

/** A label of a figure: UTF-8, both. */
typedef struct pace_label_t {
    /** The label's name: letters, digits and underscores. */
    const char *name;
    /** The label's value: any text in UTF-8. */
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
pace_status_t pace_workers_metric(const pace_workers_t *workers,
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

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_WORKERS_H */
