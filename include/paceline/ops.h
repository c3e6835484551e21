/* paceline/ops.h: operation: endpoints, figures, timelines, thresholds, webhooks, systemd.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_OPS_H
#define PACELINE_OPS_H

#include "workers.h"
#include "hub.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----- Operations endpoints: a live page, figures and health by HTTP */

/** An operations endpoint: it watches a pool from a thread of its own. */
typedef struct pace_ops_t pace_ops_t;

/** Settings of an operations endpoint. Call pace_ops_options_init() first. */
typedef struct pace_ops_options_t {
    /** The size of the struct in bytes, as pace_ops_options_init() sets it. */
    uint32_t struct_size;
    /** Whether /config shows variables of the environment, too. Default false. */
    bool environment;
    /** Room for later versions; zero. */
    uint8_t reserved[3];
    /** Where it listens, if pace_ops_serve() is given no address: "127.0.0.1:9090". Default NULL. */
    const char *address;
    /**
     * What requests must show as `Authorization: Bearer` and this, of at least 16 visible ASCII characters; only the page
     * itself, which has no data, is sent without, and whether the pool is well, without reasons. Default NULL: only this
     * machine is answered, without a proxy between, and nothing can be changed.
     */
    const char *token;
    /**
     * How long a handler or task may hold its thread before the thread is shown as blocked, in nanoseconds: 1 ms to one
     * hour. Default 500 ms. What health says does not depend on it.
     */
    uint64_t blocked_after_ns;
    /**
     * A worker pool that was made with `metrics`: its registry is shown, with the program's own figures. Default NULL:
     * the figures of the pool, of what stands on it, and of the process.
     */
    const pace_workers_t *workers;
    /** Files of settings that /config shows, with where each value came from. Secrets are masked. Default NULL. */
    const char *const *settings;
    /** The number of elements of `settings`. */
    size_t settings_count;
    /**
     * How long the oldest thing that waits in the pool (a task, an event, a timer that is due, an entry of a completion
     * queue) may wait before the pool is not ready, so that a load balancer sends its requests elsewhere, in nanoseconds:
     * 1 ms to one hour. Default 5 s, which 0 stands for, too.
     */
    uint64_t ready_after_ns;
    /**
     * For how long something must have waited, and nothing have begun or ended on any thread, before the pool is dead, so
     * that the process is started anew, in nanoseconds: 1 ms to one hour. Choose it longer than all threads may compute at
     * a time. Default 30 s, which 0 stands for, too. The watchdog of systemd (pace_service_start()) judges by that of the
     * pool's endpoint that was made last.
     */
    uint64_t dead_after_ns;
} pace_ops_options_t;

/**
 * Fills in the defaults; `size` is sizeof *options.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ops_options_init(pace_ops_options_t *options, size_t size);

/**
 * Changes options to what the section `ops` of a file of settings says, as pace_pool_config_load() does for `pool`.
 *
 * As there.
 *
 * Threads: any. In handlers: yes; it reads a file.
 */
pace_status_t pace_ops_options_load(pace_ops_options_t *options,
                                    const char *path,
                                    bool environment);

/**
 * Starts an operations endpoint for a pool, at this address or that of the options if `address` is NULL:
 * "127.0.0.1:9090", "unix:/run/ops.sock". Its routes: / is a live page; /metrics, /stats.json, /errors.json, /config,
 * /health/live and /health/ready are for programs: 503 if the pool starves (`dead_after_ns`), or something waits for too
 * long (`ready_after_ns`), else 200, with reasons; /curves.json has the last 15 minutes; /events is what feeds the page,
 * for up to 8 viewers: a ninth takes the place of the oldest; /trace?seconds=3 records a timeline of the next seconds,
 * 1 to 30, which https://ui.perfetto.dev opens; /log-level shows, and by PUT and with a token sets, the levels of the
 * pool's log. It has a thread of its own, so that it answers
 * while all threads of the pool are blocked. `options` may be NULL. Without an address at all it is only to be mounted:
 * pace_http_mount_ops().
 *
 * PACE_EINVAL names the setting: an address that other machines can reach needs a token; PACE_EOS if the address cannot
 * be listened on, or the thread cannot be created; PACE_ESHUTDOWN; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes.
 */
pace_status_t pace_ops_serve(const pace_pool_t *pool,
                             const char *address,
                             const pace_ops_options_t *options,
                             pace_ops_t **ops);

/**
 * Adds the routes of an operations endpoint to an HTTP server that has not been started, behind a prefix: "/ops". Its
 * threads only hand requests over. Without a token, requests of other machines, and those that a proxy has passed on, are
 * answered with 403. While they are all blocked, or the server is full or has no descriptors, the routes do not answer; an
 * endpoint with an address of its own does. The server keeps what it needs of the endpoint; when that is freed, the routes
 * answer with 500.
 *
 * PACE_EINVAL if the server was started, or for a prefix that does not begin with `/`, or ends in it.
 *
 * Threads: any. In handlers: yes.
 */
pace_status_t pace_http_mount_ops(const pace_http_t *http,
                                  const pace_ops_t *ops,
                                  const char *prefix);

/**
 * Where it listens, as text, with the port that it got. It lies in `size` bytes at `text`, with a NUL. PACE_ADDRESS_SIZE
 * is enough for every address.
 *
 * PACE_EINVAL if `size` is not enough, or it is only mounted.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ops_address(const pace_ops_t *ops,
                               char *text,
                               size_t size);

/**
 * Ends an operations endpoint: its viewers are sent away, and its thread ends. NULL is a no-op, and in a forked child
 * nothing is freed.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes.
 */
void pace_ops_free(pace_ops_t *ops);

/* ------------------- Pools: their figures, and those of file systems */

/**
 * The figures of a pool and of all that stands on it (servers, HTTP by route, datagram sockets, worker pools, hubs,
 * completion queues), of the process and the system, and of the file systems of pace_pool_disk(), as text that ends
 * with NUL: PACE_METRICS_JSON, PACE_METRICS_PROMETHEUS or PACE_METRICS_OPENMETRICS (pace_metrics_format()). They have the
 * label `pool`, which is the pool's name. *needed says how many bytes it takes, with the NUL, also for PACE_EFULL: `size`
 * is less. `text` may be NULL if `size` is 0. They change from call to call, so ask for some more. Of a worker pool that
 * was made with `metrics`, pace_workers_metrics() has these and its own.
 *
 * PACE_EFULL; PACE_EINVAL if `format` is none of these.
 *
 * Threads: any. In handlers: it may read files of /proc; allocates.
 */
pace_status_t pace_pool_metrics(pace_pool_t *pool,
                                uint32_t format,
                                char *text,
                                size_t size,
                                size_t *needed);

/**
 * From now on pace_pool_metrics() of the pool, and pace_workers_metrics() of worker pools on it, tell the free space and
 * the size of the file system that `path` is on: system_disk_free_bytes and system_disk_total_bytes, with the label
 * `path`.
 *
 * PACE_EINVAL; PACE_EOS if there is no such path.
 *
 * Threads: any. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_pool_disk(pace_pool_t *pool,
                             const char *path);

/* ----------------------- Pools: what each thread does, as a timeline */

/** What the threads of a pool did for a while, as text. */
typedef struct pace_trace_t pace_trace_t;

/**
 * Records for time_ns, up to one hour, what each thread of the pool does: terms of leadership, waits, handlers and tasks by name with how
 * long they took, parking, and who woke, relieved or rescued whom. The calling thread sleeps meanwhile; on a thread of the
 * pool, another one leads. A thread keeps its last `records` records, 64 to 2^24, of 32 bytes each; 0: 65,536. Older ones
 * are counted. Free the trace with pace_trace_free().
 *
 * PACE_EINVAL for other numbers and times, and if the pool is recorded already; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes; it blocks.
 */
pace_status_t pace_pool_trace(const pace_pool_t *pool,
                              uint64_t time_ns,
                              uint32_t records,
                              pace_trace_t **trace);

/**
 * The trace as JSON of the Trace Event format, which https://ui.perfetto.dev and chrome://tracing open. It is the trace's,
 * and lives as long.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_trace_json(const pace_trace_t *trace,
                              pace_text_t *json);

/**
 * Frees a trace. NULL is a no-op.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes.
 */
void pace_trace_free(pace_trace_t *trace);

/* ---------------------------------------------- The hub: its figures */

/**
 * Of a hub: an object of JSON with its counters, each subscription, each publisher, the keys that are counted,
 * dead letters, notices and histories. Times are in seconds.
 */
#define PACE_METRICS_HUB 2

/** What a hub has and has told, beside its counters. Set struct_size to sizeof the struct before the call. */
typedef struct pace_hub_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** The number of keys that the hub knows now. */
    uint64_t keys;
    /** Subscriptions that have not ended. */
    uint64_t subscriptions;
    /** Of these, those that are suspended. */
    uint64_t suspended;
    /** The number of publishers that were made and not freed. */
    uint64_t publishers;
    /** The number of dead letters that the hub keeps now. */
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
 * What a hub has and has told; its counters are pace_hub_audit()'s. It takes time with the number of keys and
 * subscriptions.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_hub_stats(const pace_hub_t *hub,
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
pace_status_t pace_hub_metrics(const pace_hub_t *hub,
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
pace_status_t pace_hub_share_metrics(const pace_hub_t *hub,
                                     const pace_workers_t *workers);

/* ------------------------------------ The hub: thresholds of figures */

/** The number of a counter or gauge; of a distribution, how many values it has. */
#define PACE_THRESHOLD_NUMBER 0

/** How much that grows in a second, from one look to the next. */
#define PACE_THRESHOLD_RATE 1

/** A quantile of a distribution. */
#define PACE_THRESHOLD_QUANTILE 2

/** A thread that compares metrics with thresholds, from time to time. */
typedef struct pace_watch_t pace_watch_t;

/** A limit for a figure. Call pace_threshold_init() first. */
typedef struct pace_threshold_t {
    /** The size of the struct in bytes, as pace_threshold_init() sets it. */
    uint32_t struct_size;
    /** What of the figure: PACE_THRESHOLD_. Default: its number. */
    uint32_t part;
    /** How bad it is: PACE_SEVERITY_. Default: a warning. */
    uint32_t severity;
    /** Crossed when the figure is below the limit. Default: above it. */
    bool below;
    /** Room for later versions; zero. */
    uint8_t reserved[3];
    /**
     * The name of the figure, as pace_hub_metrics() with PACE_METRICS_JSON has it: "paceline_hub_waiting",
     * say. It must be set.
     */
    const char *metric;
    /** Of the first that has all of these. Default: of the first. */
    const pace_label_t *labels;
    /** The number of elements of `labels`, up to 16. */
    size_t label_count;
    /** The limit: a finite number, in the unit of the metric. */
    double limit;
    /** Back when the figure is not beyond this, which lies before the limit. NaN (default): the limit itself. */
    double back_at;
    /** Which quantile is compared, 0 to 1, if `part` is PACE_THRESHOLD_QUANTILE; otherwise not used. */
    double quantile;
} pace_threshold_t;

/** A threshold was crossed, or the figure came back. The text is lent to the function that gets it. */
typedef struct pace_crossing_t {
    /** As people read it: "crossed at 1203: paceline_hub_waiting above 1000". */
    pace_text_t message;
    /** The value of the metric that was compared with the limit. */
    double figure;
    /** Which of the thresholds: 0 for the first. */
    size_t threshold;
    /** As bad as the threshold says; coming back is PACE_SEVERITY_INFO. */
    uint32_t severity;
    /** True if the limit was crossed, false if the value has come back. */
    bool crossed;
    /** Room for later versions; zero. */
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
pace_status_t pace_hub_watch(const pace_hub_t *hub,
                             const pace_workers_t *workers,
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

/* ----------------- Webhooks: notices, or anything else, by HTTP POST */

/** Posts JSON to a URL, from a thread of its own. */
typedef struct pace_webhook_t pace_webhook_t;

/** Settings of a webhook. Call pace_webhook_options_init() first. */
typedef struct pace_webhook_options_t {
    /** The size of the struct in bytes, as pace_webhook_options_init() sets it. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
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
    /** The number of elements of `headers`. */
    size_t header_count;
    /** Goes by this proxy: "http://proxy.example:3128". NULL (default): none; the environment is not asked. */
    const char *proxy;
    /** What is posted to, if pace_webhook_new() is given no URL: http:// or https://. Default NULL. */
    const char *url;
} pace_webhook_options_t;

/**
 * What a webhook has done. Set struct_size to sizeof the struct before the call. At rest posted = delivered +
 * failed + dropped.
 */
typedef struct pace_webhook_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
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
 * Changes options to what the section `webhook` of a file of settings says, as pace_pool_config_load() does for
 * `pool`.
 *
 * As there.
 *
 * Threads: any. In handlers: yes; it reads a file.
 */
pace_status_t pace_webhook_options_load(pace_webhook_options_t *options,
                                        const char *path,
                                        bool environment);

/**
 * Makes a webhook that posts to this URL, http:// or https://, or that of the options if `url` is NULL, and the one
 * thread that does it. Bodies go out
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
                                   const pace_hub_t *hub,
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

/* ----------------------------------------------- Services of systemd */

/** This process as a service of systemd: ready from its beginning on, stopping when it is freed. */
typedef struct pace_service_t pace_service_t;

/** Whether the process is well: 0 for no. Called on a thread of the pool, by one at a time. */
typedef int32_t (*pace_well_fn)(void *user_data);

/**
 * Tells systemd that the process is ready (READY=1). If its unit has a watchdog (WatchdogSec=), a thread of the
 * pool asks `is_well` twice in its time from then on, or as soon as one is free. The watchdog is fed (WATCHDOG=1) while
 * the last answer was not 0 and the pool does not starve: while not something has waited, and nothing has begun or ended on
 * any thread, for 30 s, or for `dead_after_ns` of the pool's operations endpoint if it has one. A thread of the service's
 * own looks at that. NULL: nobody is asked. pace_workers_health() is a good answer. Where no systemd has started the process nothing is told, and nobody
 * is asked. The unit needs Type=notify; examples/systemd/paceline.service is one.
 *
 * PACE_EUNSUPPORTED: the library was built without the feature `systemd`. PACE_EOS: systemd cannot be told.
 * or the thread cannot be created; PACE_EFULL when all max_handles of the pool are in use, PACE_ESHUTDOWN. Nobody is asked
 * then.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_service_start(const pace_pool_t *pool,
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

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_OPS_H */
