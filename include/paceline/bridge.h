/* paceline/bridge.h: bridges: keys of a hub, between processes, over a NATS broker.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_BRIDGE_H
#define PACELINE_BRIDGE_H

#include "pool.h"
#include "hub.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------- Bridges: how the broker is reached, and rules */

/** An import begins with the first message that the stream has. */
#define PACE_START_AT_FIRST 0

/** An import begins with what is stored from now on. */
#define PACE_START_AT_NEW 1

/** An import begins with the message of the number start_sequence in the stream, or the next that there is. */
#define PACE_START_AT_SEQUENCE 2

/** An import begins with the first message that was stored at start_time_ns or later. */
#define PACE_START_AT_TIME 3

/**
 * How a bridge reaches its broker, and what it is called. Call pace_bridge_options_init() first. Of user, token, token_file,
 * nkey_file and credentials_file one at the most is set. Secrets are neither told by errors nor by statistics and logs.
 */
typedef struct pace_bridge_options_t {
    /** The size of the struct in bytes, as pace_bridge_options_init() sets it. */
    uint32_t struct_size;
    /** Refuses a connection without TLS. Default: TLS where the address is tls:// or the broker asks for it. */
    bool require_tls;
    /** Room for later versions; zero. */
    uint8_t reserved[3];
    /**
     * Addresses, separated by commas: "nats://host:port" or "tls://host:port", each maybe with user:password@ or token@
     * before the host. Of several servers, one cluster, any one is used. Default NULL, which is refused.
     */
    const char *servers;
    /** What health, figures, notices and the live page call the bridge. Default NULL: "nats". */
    const char *name;
    /** What the broker's own tools call the connection. Default NULL: "paceline". */
    const char *connection_name;
    /** Logs in by this name and `password` or `password_file`. Default NULL: as the address says, or not at all. */
    const char *user;
    /** The password of `user`. Default NULL: an empty one. */
    const char *password;
    /** Logs in by a token. Default NULL. */
    const char *token;
    /** Logs in by the nkey whose seed is the text of this file, which is read at each connection. Default NULL. */
    const char *nkey_file;
    /**
     * Logs in by the JWT and nkey in this file of the broker's tools (.creds), which is read at each connection.
     * Default NULL.
     */
    const char *credentials_file;
    /** Trusts the certificates in this PEM file. Default NULL: those that the system trusts. */
    const char *root_certificates;
    /** Shows the broker this certificate, a PEM file of its chain; with client_key. Default NULL. */
    const char *client_certificate;
    /** The PEM file of the key of client_certificate. Default NULL. */
    const char *client_key;
    /** How long an attempt to connect may take, in nanoseconds: 10 ms to 1 day. Default 5 s. */
    uint64_t connect_timeout_ns;
    /**
     * How often the broker is asked for a sign of life, in nanoseconds: 10 ms to 1 day. A connection without one for
     * twice as long is given up. Default 10 s.
     */
    uint64_t ping_interval_ns;
    /**
     * How long it waits before the first attempt to connect again, in nanoseconds; twice as long each time, half of it by
     * chance, so that not all who lost a broker come back at once. Default 50 ms.
     */
    uint64_t reconnect_first_ns;
    /** How long it waits at most before an attempt to connect again, in nanoseconds. Default 10 s. */
    uint64_t reconnect_cap_ns;
    /**
     * How long ids of messages are kept, in nanoseconds: a message from the broker whose id is among them is dropped. The
     * broker's streams that the bridge makes drop what comes twice within the same time. Default 2 minutes.
     */
    uint64_t window_ns;
    /** How many ids of messages are kept at most. Default 100,000. */
    uint64_t window_count;
    /**
     * The password of `user` is the text of this file, which is read at each connection; in place of `password`. Default
     * NULL.
     */
    const char *password_file;
    /** Logs in by the token that is the text of this file, which is read at each connection. Default NULL. */
    const char *token_file;
} pace_bridge_options_t;

/** How keys go from the hub to the broker. Call pace_bridge_export_options_init() first. */
typedef struct pace_bridge_export_options_t {
    /** The size of the struct in bytes, as pace_bridge_export_options_init() sets it. */
    uint32_t struct_size;
    /**
     * PACE_OVERFLOW_: what becomes of a message for a full buffer. Local subscribers get it in any case. Default:
     * PACE_OVERFLOW_DEFAULT, by which the oldest one is dropped, and counted; with a stream the publisher waits for room
     * for up to 10 seconds, where it may wait, and publishing fails then with PACE_EFULL.
     */
    uint32_t overflow;
    /**
     * What is put before the key, to make the broker's subject of it: whole tokens with a dot behind each, "eu.shop.".
     * Default NULL: nothing.
     */
    const char *prefix;
    /**
     * At least once: the stream of the broker's JetStream that stores each message, made if there is none of this name. A
     * message is sent again until the broker says that it is stored. Requests are not stored. Default NULL: at most once.
     */
    const char *stream;
    /** How many messages wait for the broker, 1 to 2^24. Default 65536. */
    uint64_t buffer;
    /** For PACE_OVERFLOW_BLOCK: how long a publisher waits at most. Otherwise not looked at. Default: PACE_FOREVER. */
    uint64_t block_ns;
    /**
     * At least once: how many messages may be under way to the broker at the same time, 1 to 65536. With 1 each is stored
     * before the next is sent. Default 256.
     */
    uint64_t in_flight;
    /**
     * At least once: messages wait for the broker in the archive of the hub's history instead of memory, and are sent though
     * the process ends or dies meanwhile. The hub needs a history with an archive of all keys of the pattern. This file,
     * made if it is not there, is where the bridge keeps how far the broker has stored them; it belongs to that archive, and
     * to one bridge at a time. `buffer` and `overflow` mean nothing then; requests are not carried. Default NULL: they wait
     * in memory.
     */
    const char *spool;
} pace_bridge_export_options_t;

/** How keys come from the broker to the hub. Call pace_bridge_import_options_init() first. */
typedef struct pace_bridge_import_options_t {
    /** The size of the struct in bytes, as pace_bridge_import_options_init() sets it. */
    uint32_t struct_size;
    /**
     * At least once: where it begins if the broker does not know `durable` yet, PACE_START_AT_. Default:
     * PACE_START_AT_FIRST.
     */
    uint32_t start;
    /**
     * What is taken off the front of the broker's subject to make the hub's key of it: that which the exporter puts
     * there. The pattern is that of the keys. Default NULL: nothing.
     */
    const char *prefix;
    /**
     * At most once: shares the messages with all processes that import the same with this group, so that one of them gets
     * each. Default NULL: each process gets all.
     */
    const char *group;
    /**
     * At least once: the stream of the broker's JetStream that messages are taken from, made if there is none of this
     * name. A message is acknowledged when all the hub's subscriptions that got it have dealt with it. If a handler fails
     * at it, or no subscription matches, it comes again. With `durable`. Default NULL: at most once.
     */
    const char *stream;
    /**
     * At least once: the name under which the broker knows how far the messages have come; all processes share it that
     * take turns at the same messages. Default NULL.
     */
    const char *durable;
    /**
     * How many messages from the broker wait for the hub, 1 to 2^24; what comes while so many wait is lost, and counted.
     * Default 65536.
     */
    uint64_t buffer;
    /** How long a request from elsewhere waits for the reply of this hub, in nanoseconds. Default 30 s. */
    uint64_t request_timeout_ns;
    /** For PACE_START_AT_SEQUENCE: the number of the message in the stream. Otherwise not looked at. */
    uint64_t start_sequence;
    /** For PACE_START_AT_TIME: nanoseconds since 1970, by the clock of the system. Otherwise not looked at. */
    uint64_t start_time_ns;
    /**
     * At least once: how often, and after which delays, the broker is to send a message again that a handler has failed
     * at; past the last attempt it becomes a dead letter of the hub, and one that the broker keeps in the stream
     * `paceline_dead`, and comes no more; so does one that has ended its process in its last attempt. Retries of the
     * subscription come before that, and count as one attempt. Default: 9 times, after half a second and then twice as
     * long each time, up to 30 s.
     */
    pace_retry_t retry;
    /** At least once: how many messages may be in the hub and not acknowledged, 1 to 65536. Default 256. */
    uint64_t in_flight;
    /**
     * At least once: after how long the broker sends a message again of which it has not heard, in nanoseconds: 100 ms to
     * 1 day. While a handler works the bridge tells the broker so three times as often. Default 30 s.
     */
    uint64_t ack_wait_ns;
    /**
     * At least once: for how long it tells that at most, in nanoseconds. Then the broker sends the message again, though a
     * handler may be at it still. Default: one hour.
     */
    uint64_t handle_timeout_ns;
} pace_bridge_import_options_t;

/**
 * Fills in the defaults; `size` is sizeof *options.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_options_init(pace_bridge_options_t *options, size_t size);

/**
 * Fills in the defaults of an export; `size` is sizeof *options.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_export_options_init(pace_bridge_export_options_t *options,
                                              size_t size);

/**
 * Fills in the defaults of an import; `size` is sizeof *options.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_import_options_init(pace_bridge_import_options_t *options,
                                              size_t size);

/* -------------------- Bridges: keys between processes, over a broker */

/** Carries keys between the hubs of several processes and hosts, over a NATS broker that people run already. */
typedef struct pace_bridge_t pace_bridge_t;

/** A message that was published, and that the broker is to store. */
typedef struct pace_pending_store_t pace_pending_store_t;

/**
 * Called once when the broker has stored a message, or never will: with what pace_pending_store_wait() answers, for which
 * pace_last_error() has the reason. On the thread of the bridge, which carries nothing meanwhile.
 */
typedef void (*pace_stored_fn)(void *user_data, pace_status_t status);

/** How a bridge is, and what it has carried. Set struct_size to sizeof the struct before the call. */
typedef struct pace_bridge_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Whether the bridge is connected to a broker now. */
    bool connected;
    /** Room for later versions; zero. */
    uint8_t reserved[3];
    /** How often the bridge has connected to a broker. */
    uint64_t connects;
    /** Requests that wait for a reply from elsewhere. */
    uint64_t requests_out;
    /** Requests from elsewhere that wait for a reply of this hub. */
    uint64_t requests_in;
    /** Messages from the broker that came while the buffer of their import was full. */
    uint64_t lost;
    /** The number of its exports, for pace_bridge_export_stats(). */
    uint64_t exports;
    /** The number of its imports, for pace_bridge_import_stats(). */
    uint64_t imports;
} pace_bridge_stats_t;

/**
 * What became of the messages of one export. Set struct_size to sizeof the struct before the call. Its texts live as long
 * as the bridge.
 */
typedef struct pace_bridge_export_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** The pattern of its keys. */
    pace_text_t pattern;
    /** The stream that stores its messages; stream.text is NULL with at most once. */
    pace_text_t stream;
    /**
     * Messages that wait for the broker; with a spool, records of its history that it has not looked at, those of other keys
     * included.
     */
    uint64_t waiting;
    /** Messages that were handed to the connection. */
    uint64_t sent;
    /** At least once: those that the broker has stored. */
    uint64_t stored;
    /** At least once: those that were sent and of which the broker has not said that they are stored. */
    uint64_t in_flight;
    /** At least once: how often one was sent again. */
    uint64_t sent_again;
    /** Messages that a full buffer has dropped or refused. */
    uint64_t dropped;
    /** Messages that the broker does not take: they are larger than it allows, or the stream has refused them for good. */
    uint64_t refused;
    /** Requests that nobody waited for any more when their turn came. */
    uint64_t late;
    /** Messages that another process has published: they do not go out again. */
    uint64_t turned_back;
} pace_bridge_export_stats_t;

/**
 * What became of the messages of one import. Set struct_size to sizeof the struct before the call. Its texts live as long
 * as the bridge.
 */
typedef struct pace_bridge_import_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** The pattern of its keys. */
    pace_text_t pattern;
    /** The stream that its messages are taken from; stream.text is NULL with at most once. */
    pace_text_t stream;
    /** Messages that were published in the hub. */
    uint64_t published;
    /** At least once: those that were acknowledged. */
    uint64_t acknowledged;
    /** At least once: those that the hub has, and that are not acknowledged. */
    uint64_t in_flight;
    /** At least once: how often the broker was asked to send one again. */
    uint64_t again;
    /** At least once: those that have become dead letters past the last attempt. */
    uint64_t dead;
    /** At least once: those that the stream has for it still, when last heard of. */
    uint64_t lag;
    /** Messages that came before within the window. */
    uint64_t duplicates;
    /** Messages that this hub has published itself. */
    uint64_t turned_back;
    /** Messages that the hub does not take: too large, too many headers, a subject that is no key. */
    uint64_t refused;
} pace_bridge_import_stats_t;

/**
 * Makes a bridge between a hub and a broker, which carries nothing before it has rules, pace_bridge_export() and
 * pace_bridge_import(), and is open: pace_bridge_open(). It may outlive the hub's pointer.
 *
 * PACE_EUNSUPPORTED: the library was built without the feature `nats`. PACE_EINVAL names the setting; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_new(const pace_hub_t *hub,
                              const pace_bridge_options_t *options,
                              pace_bridge_t **bridge);

/**
 * Makes a bridge as the section `bridge` of files of settings says, with its rules: JSON or YAML files by their names, of
 * which later ones win. With `environment` the variables of this process win over them. The program may add rules, and
 * opens the bridge: pace_bridge_open(). The texts are copied.
 *
 * PACE_EINVAL tells all that is wrong in the settings, each with its file, key and value, and that bridge.servers is not
 * set; PACE_EUNSUPPORTED: the library was built without the feature `nats`.
 *
 * Threads: any. In handlers: yes; it reads files.
 */
pace_status_t pace_bridge_load(const pace_hub_t *hub,
                               const char *const *settings,
                               size_t count,
                               bool environment,
                               pace_bridge_t **bridge);

/**
 * Carries the keys that the pattern matches from the hub to the broker: each message goes to every other process that
 * imports its key. A key that several exports match goes out by each. `options` may be NULL: at most once.
 *
 * PACE_EINVAL if the bridge is open already; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_export(const pace_bridge_t *bridge,
                                 const char *pattern,
                                 const pace_bridge_export_options_t *options);

/**
 * Carries the keys that the pattern matches from the broker to the hub, as if a local publisher published them. `options`
 * may be NULL: at most once, to each process that imports them.
 *
 * PACE_EINVAL if the bridge is open already; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_import(const pace_bridge_t *bridge,
                                 const char *pattern,
                                 const pace_bridge_import_options_t *options);

/**
 * Refuses rules whose keys are not all matched by a pattern that is permitted: for rules that come from elsewhere than the
 * program. Without this all keys are permitted, but for the hub's own and inboxes, which never cross.
 *
 * PACE_EINVAL if the bridge is open already.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_permit(const pace_bridge_t *bridge,
                                 const char *pattern);

/**
 * Opens a bridge: subscribes in the hub, and begins to connect, on a thread of its own. It does not wait for the broker,
 * which may come later. If it fails, it may be tried again.
 *
 * PACE_EINVAL names the address, pattern or setting, its value and what would be right, also without a rule, and if the
 * bridge is open already; PACE_EOS if the thread cannot be created; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_open(const pace_bridge_t *bridge);

/**
 * Waits until a bridge is connected, for up to `timeout_ns`. Nothing needs that: what is published before waits.
 *
 * PACE_ETIMEDOUT; PACE_ESHUTDOWN if the bridge has ended; PACE_EINVAL before it is open.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_bridge_wait_connected(const pace_bridge_t *bridge,
                                         uint64_t timeout_ns);

/**
 * Publishes a message in the hub, and says when the broker has stored it: *pending, which is to be freed. Local subscribers
 * do not wait for that. The key needs an export at least once that drops nothing. `publication` may be NULL. `flags` is 0,
 * PACE_PUBLISH_NO_WAIT or PACE_PUBLISH_TRY.
 *
 * PACE_EINVAL for a bad key or payload, a key without such an export, and before the bridge is open; PACE_EFULL: the buffer
 * of an export, or a mailbox of the hub, was full and has refused it; PACE_ETIMEDOUT with PACE_PUBLISH_TRY; PACE_EVERSION,
 * PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes. It waits as pace_key_publish() does.
 */
pace_status_t pace_bridge_publish(const pace_bridge_t *bridge,
                                  const char *key,
                                  const pace_publication_t *publication,
                                  const void *bytes,
                                  size_t size,
                                  uint32_t flags,
                                  pace_pending_store_t **pending);

/**
 * Waits for up to `timeout_ns` until the broker has stored a message. Several threads may.
 *
 * PACE_ETIMEDOUT: it is not stored yet, and will be; pace_last_error() says why, if that is known. PACE_EINVAL: the stream does not take it, for the reason that
 * pace_last_error() says. PACE_ESHUTDOWN: the bridge has ended before. PACE_EBUSY: a function is called for it,
 * pace_pending_store_then().
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_pending_store_wait(const pace_pending_store_t *pending,
                                      uint64_t timeout_ns);

/**
 * Has a function called when the broker has stored a message, or never will; at once, in this thread, if that is known.
 * `drop` runs after it. The handle is to be freed in any case, also before the function is called.
 *
 * PACE_EBUSY: another thread waits for it, or a function is called for it already.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_pending_store_then(const pace_pending_store_t *pending,
                                      pace_stored_fn stored,
                                      void *user_data,
                                      pace_drop_fn drop);

/**
 * Frees what pace_bridge_publish() gave. The message is not called back: it is stored all the same. NULL is a no-op, and in
 * a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
 */
void pace_pending_store_free(pace_pending_store_t *pending);

/**
 * Waits until all that was published before is handed to the connection, and, at least once, stored by the broker: for up
 * to `timeout_ns`.
 *
 * PACE_ETIMEDOUT; PACE_ESHUTDOWN if the bridge has ended; PACE_EINVAL before it is open.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_bridge_flush(const pace_bridge_t *bridge,
                                uint64_t timeout_ns);

/**
 * How a bridge is, and what it has carried. Exact while nothing is under way.
 *
 * PACE_EINVAL before it is open; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_stats(const pace_bridge_t *bridge,
                                pace_bridge_stats_t *stats);

/**
 * The name of the server that a bridge is connected to, or was last, as text that ends with NUL; before it has connected,
 * nothing but that. *needed says how many bytes it takes, with the NUL, also for PACE_EFULL: `size` is less. `text` may be
 * NULL if `size` is 0.
 *
 * PACE_EFULL; PACE_EINVAL before it is open.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_server(const pace_bridge_t *bridge,
                                 char *text,
                                 size_t size,
                                 size_t *needed);

/**
 * Why a bridge is not connected, or what the broker has refused last; nothing if all is well. Otherwise as
 * pace_bridge_server().
 *
 * PACE_EFULL; PACE_EINVAL before it is open.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_reason(const pace_bridge_t *bridge,
                                 char *text,
                                 size_t size,
                                 size_t *needed);

/**
 * What became of the messages of an export: 0 is the first that pace_bridge_export() was given.
 *
 * PACE_EINVAL for an index that is too large, and before the bridge is open; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_export_stats(const pace_bridge_t *bridge,
                                       size_t index,
                                       pace_bridge_export_stats_t *stats);

/**
 * What became of the messages of an import: 0 is the first that pace_bridge_import() was given.
 *
 * PACE_EINVAL for an index that is too large, and before the bridge is open; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_bridge_import_stats(const pace_bridge_t *bridge,
                                       size_t index,
                                       pace_bridge_import_stats_t *stats);

/**
 * Ends a bridge: it takes nothing more from the broker, sends what waits, waits until the hub has dealt with what it has
 * taken, and acknowledges that; for up to `timeout_ns`. What is not acknowledged then comes again, to any process of the
 * same durable name; what waits to be sent is lost, and *left, which may be NULL, says how many that are: 0 as a rule.
 *
 * PACE_EINVAL before it is open.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_bridge_close(const pace_bridge_t *bridge,
                                uint64_t timeout_ns,
                                uint64_t *left);

/**
 * Frees a bridge. One that is open and was not closed ends as by pace_bridge_close() with 2 seconds. NULL is a no-op, and in
 * a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses it any more. In handlers: no. It blocks while messages wait.
 */
void pace_bridge_free(pace_bridge_t *bridge);

/* ------------------------------------- Durable tasks: their attempts */

/** One attempt of a durable task, which a handler is lent or a host has taken. */
typedef struct pace_job_t pace_job_t;

/** An attempt of a durable task. Set struct_size to sizeof the struct before the call. Its texts live as long as the job. */
typedef struct pace_job_info_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /**
     * Which attempt it is, in all processes together: 1 for the first. An attempt counts if its process ended in it; a task
     * that was given back before it began has had none.
     */
    uint32_t number;
    /** The task's id, the same for each attempt in any process. */
    pace_text_t id;
    /** The name of the task, which has chosen its handler. */
    pace_text_t name;
    /** What the task was submitted with; NULL if there are none. */
    const void *arguments;
    /** The number of bytes at arguments. */
    size_t size;
    /**
     * How long the attempt may take still, in nanoseconds: 0 if its time is over, and when it was ended;
     * PACE_FOREVER without a limit.
     */
    uint64_t time_left_ns;
} pace_job_info_t;

/**
 * Runs an attempt of a durable task. It says how that has ended by pace_job_complete() or pace_job_fail(); if it says
 * nothing, PACE_OK completes the task with no bytes, and any other status fails the attempt. The job is lent until it
 * returns.
 */
typedef pace_status_t (*pace_durable_fn)(void *user_data, pace_job_t *job);

/**
 * What an attempt is of.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_job_info(const pace_job_t *job, pace_job_info_t *info);

/**
 * Begins the attempt of a job that pace_durable_take_waiting() gave, once. *begun is false if it is not to be run, because the
 * task was cancelled, its time is over, or it was given back: free the job then. It waits for the broker, up to five seconds,
 * unless this is the first attempt of several. A job that has begun already: *begun is true.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_job_begin(const pace_job_t *job,
                             bool *begun);

/**
 * Whether an attempt is to end, because its time is over or the pool ends: what comes of it then is waited for no longer.
 * Also if it was ended.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_job_is_cancelled(const pace_job_t *job,
                                    bool *cancelled);

/**
 * An attempt has succeeded, with these bytes. The first end that is said counts.
 *
 * PACE_ESTALE: it was ended before.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_job_complete(const pace_job_t *job, const void *bytes, size_t size);

/**
 * An attempt has failed. With `permanent` no other attempt follows; otherwise, if `retry_after_ns` is not 0, it follows
 * after that time, and not after the delay of the retry. `message` may be NULL; what is not UTF-8 in it is replaced by
 * U+FFFD. The first end that is said counts.
 *
 * PACE_ESTALE: it was ended before.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_job_fail(const pace_job_t *job,
                            const char *message,
                            bool permanent,
                            uint64_t retry_after_ns);

/**
 * Frees a job that pace_durable_take() or pace_durable_take_waiting() gave. One that was not ended is given back: it is
 * run again, by this process or another, and this attempt does not count. Not for a job that a handler is lent. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
 */
void pace_job_free(pace_job_t *job);

/* ------------------ Durable tasks: a queue that outlives the process */

/** A durable task has completed: its handler has succeeded. */
#define PACE_DURABLE_COMPLETED 0

/** The last attempt of a durable task has failed; it is a dead task. */
#define PACE_DURABLE_FAILED 1

/** A durable task was cancelled before it began. */
#define PACE_DURABLE_CANCELLED 2

/** The deadline of a durable task was over before an attempt succeeded. */
#define PACE_DURABLE_TIMED_OUT 3

/** How a durable task has ended, and with what; or a dead task. */
typedef struct pace_durable_report_t pace_durable_report_t;

/** A queue of tasks that outlive the process: a broker has them, and any process with a handler for a task's name runs it. */
typedef struct pace_durable_t pace_durable_t;

/** Settings of a queue of durable tasks. Call pace_durable_options_init() first. */
typedef struct pace_durable_options_t {
    /** The size of the struct in bytes, as pace_durable_options_init() sets it. */
    uint32_t struct_size;
    /**
     * How many tasks of each name and lane this process may have taken and not ended, up to 65536. More keep threads busy;
     * fewer leave more to other processes. Default 0: twice the pool's threads.
     */
    uint32_t in_flight;
    /** How long results are kept, in nanoseconds: 1 second to 100 years. Default 1 hour. */
    uint64_t results_ns;
    /**
     * After how long without a sign of life the broker gives a task to another process, in nanoseconds: 100 ms to 1 day.
     * Default 30 s.
     */
    uint64_t ack_wait_ns;
    /** How long a unique id is known, in nanoseconds, where this process makes the broker's streams. Default 2 minutes. */
    uint64_t window_ns;
} pace_durable_options_t;

/** What a durable task is submitted with beside its name and arguments. Call pace_submission_init() first. */
typedef struct pace_submission_t {
    /** The size of the struct in bytes, as pace_submission_init() sets it. */
    uint32_t struct_size;
    /**
     * PACE_LANE_CRITICAL to PACE_LANE_LOW. Each lane is a stream of the broker, and workers run what they have taken in the
     * order of lanes. Default PACE_LANE_NORMAL.
     */
    uint32_t lane;
    /** How long it waits before its first attempt, in nanoseconds, by the clocks of submitter and worker. Default 0. */
    uint64_t delay_ns;
    /**
     * How long it may take from now on, in nanoseconds, by the clocks of submitter and worker. After that no attempt begins,
     * and one that runs is told to end and has failed. Default PACE_FOREVER.
     */
    uint64_t deadline_ns;
    /** How many attempts there may be, if those are fewer than the handler's retries allow. Default 0: as many as those. */
    uint32_t attempts;
    /** Stores no result: nobody waits for its end. Default false. */
    bool ignore_result;
    /** Room for later versions; zero. */
    uint8_t reserved[3];
    /**
     * Submits it once: while the broker has one of this id in the same lane that was stored within the queue's window, it is
     * that one. 1 to 200 bytes. Default NULL: each submission is a task of its own.
     */
    const char *unique;
} pace_submission_t;

/** The id of a durable task in its queue, for any process: text that ends with NUL. */
typedef struct pace_durable_id_t {
    /** A letter for the lane, and 32 hexadecimal digits that nobody can guess. */
    char text[40];
} pace_durable_id_t;

/**
 * How a durable task has ended, or a dead task. Set struct_size to sizeof the struct before the call. Its texts live as long
 * as the report.
 */
typedef struct pace_durable_info_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** PACE_DURABLE_COMPLETED, PACE_DURABLE_FAILED, PACE_DURABLE_CANCELLED or PACE_DURABLE_TIMED_OUT. */
    uint32_t status;
    /** How many attempts were begun, in all processes together. */
    uint32_t attempts;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** Of a dead task: its number among the dead of its queue. Otherwise 0. */
    uint64_t number;
    /** The id of the task, as pace_durable_submit() gave it. */
    pace_text_t id;
    /** Of a dead task: its name. Otherwise name.text is NULL. */
    pace_text_t name;
    /**
     * What the handler has returned, if the task has completed; of a dead task, what it was submitted with. NULL if there
     * are no bytes.
     */
    const void *bytes;
    /** The number of bytes at bytes. */
    size_t size;
    /** What went wrong last; failure.text is NULL if the task has completed. */
    pace_text_t failure;
} pace_durable_info_t;

/**
 * Fills in the defaults; `size` is sizeof *options.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_durable_options_init(pace_durable_options_t *options, size_t size);

/**
 * Fills in the defaults; `size` is sizeof *submission.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_submission_init(pace_submission_t *submission, size_t size);

/**
 * Makes a queue of durable tasks, whose tasks a worker pool runs. Give it handlers by pace_durable_task() and
 * pace_durable_task_pulled(), and open it: pace_durable_open(). A process that only submits needs none. `broker` says how
 * the broker is reached; its name and its window are not regarded. `options` may be NULL. `name` has 1 to 182 bytes, that of a
 * task 1 to 200, both together up to 205, without blanks, control characters, and any of . * > / \ %.
 *
 * PACE_EINVAL names the setting, its value and what would be right; PACE_EVERSION; PACE_EUNSUPPORTED in a library without
 * the feature `nats`.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_durable_new(const pace_workers_t *workers,
                               const char *name,
                               const pace_bridge_options_t *broker,
                               const pace_durable_options_t *options,
                               pace_durable_t **queue);

/**
 * Has the tasks of a name run by a function, on threads of the pool, several at once. `retry` may be NULL: ten attempts in
 * all, after half a second and then twice as long each time. `drop` runs when the queue is gone. A function that does not
 * return keeps its thread.
 *
 * PACE_EINVAL if the queue is open already, and for a retry that makes no sense; a bad name is found by
 * pace_durable_open().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_durable_task(const pace_durable_t *queue,
                                const char *name,
                                const pace_retry_t *retry,
                                pace_durable_fn handler,
                                void *user_data,
                                pace_drop_fn drop);

/**
 * Has the tasks of a name taken by the host, on threads of its own: pace_durable_take(). `retry` as with
 * pace_durable_task().
 *
 * PACE_EINVAL if the queue is open already, and for a retry that makes no sense.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_durable_task_pulled(const pace_durable_t *queue,
                                       const char *name,
                                       const pace_retry_t *retry);

/**
 * Submits a task at times of the calendar, in the manner of cron, by UTC: "30 3 * * 1-5" is half past three from Monday to
 * Friday. All processes with a schedule of this label submit one task together for each time. What comes due while none of
 * them runs is not submitted later.
 *
 * PACE_EINVAL if the queue is open already; a bad time or name is found by pace_durable_open().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_durable_schedule(const pace_durable_t *queue,
                                    const char *label,
                                    const char *when,
                                    const char *task,
                                    const void *arguments,
                                    size_t size);

/**
 * Opens a queue, and begins to connect, on a thread of its own. It does not wait for the broker, which may come later. If it
 * fails, the queue is of no use any more but to be freed.
 *
 * PACE_EINVAL names the name, setting or schedule, its value and what would be right, also if the queue is open already;
 * PACE_EOS if a thread cannot be created; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_durable_open(const pace_durable_t *queue);

/**
 * Waits until a queue is connected to its broker, for up to `timeout_ns`. Nothing needs that.
 *
 * PACE_ETIMEDOUT: pace_last_error() says why, if that is known. PACE_ESHUTDOWN if the queue has ended; PACE_EINVAL before it
 * is open.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_durable_wait_connected(const pace_durable_t *queue,
                                          uint64_t timeout_ns);

/**
 * Submits a task of this name, and waits for up to `timeout_ns` until the broker has stored it: then it is accepted, and *id
 * is its id. `submission` may be NULL. *duplicate, if not NULL, says whether the broker had it already, by its unique id.
 *
 * PACE_ETIMEDOUT: it is not stored yet, and will be when the broker takes it: pace_last_error() says what stands in the way,
 * if that is known. PACE_EINVAL for a bad name or setting, or if the stream refuses it; PACE_EFULL: too many wait to be
 * stored; PACE_EVERSION, PACE_ESHUTDOWN; PACE_EINVAL before it is open.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_durable_submit(const pace_durable_t *queue,
                                  const char *name,
                                  const pace_submission_t *submission,
                                  const void *arguments,
                                  size_t size,
                                  uint64_t timeout_ns,
                                  pace_durable_id_t *id,
                                  bool *duplicate);

/**
 * Waits until the task of this id has ended, for up to `timeout_ns`, also if another process has submitted it: *report,
 * which is to be freed. With 0 it answers what has come to this process, and does not ask the broker.
 *
 * PACE_ETIMEDOUT, with what is known of the reason, also if it was submitted without a result, if the result is older than results are kept, and if there is
 * no such task; PACE_EINVAL for what is no id, and before the queue is open.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_durable_wait(const pace_durable_t *queue,
                                const char *id,
                                uint64_t timeout_ns,
                                pace_durable_report_t **report);

/**
 * Has a task not begin. *cancelled: true: it has not begun, and will not, and its result is PACE_DURABLE_CANCELLED; false:
 * an attempt of it has begun, or it has ended, or there is none of this id. Workers are asked first, then it is deleted at
 * the broker, so it takes up to a second.
 *
 * PACE_ETIMEDOUT: neither a worker nor the broker has answered, so that it may run. PACE_ESHUTDOWN; PACE_EINVAL for what is
 * no id, and before the queue is open.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_durable_cancel(const pace_durable_t *queue,
                                  const char *id,
                                  bool *cancelled);

/**
 * Takes the next task of the names that the host runs itself, that of the most urgent lane, and begins it; waits for it for
 * up to `timeout_ns`. End *job by pace_job_complete(), pace_job_fail() or pace_job_free(). Several threads may take.
 *
 * PACE_ETIMEDOUT; PACE_ESHUTDOWN when the queue has ended; PACE_EINVAL before it is open.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_durable_take(const pace_durable_t *queue,
                                uint64_t timeout_ns,
                                pace_job_t **job);

/**
 * As pace_durable_take(), for a host whose tasks wait before they are run: pace_job_begin() begins *job. Until then the task
 * can be cancelled, pace_durable_close() gives it back, and if the process ends it has had no attempt.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_durable_take_waiting(const pace_durable_t *queue,
                                        uint64_t timeout_ns,
                                        pace_job_t **job);

/**
 * The first task that has failed for good whose number is `from` or more: *report, which is to be freed.
 *
 * PACE_ESTALE: there is none. PACE_ETIMEDOUT: the broker does not answer. PACE_ESHUTDOWN; PACE_EINVAL before the queue is
 * open.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_durable_dead(const pace_durable_t *queue,
                                uint64_t from,
                                pace_durable_report_t **report);

/**
 * Submits a task that has failed for good once more, as a new one, and forgets the dead one, unless the broker is away by
 * then. *id is that of the new one.
 *
 * PACE_ESTALE: there is none of this number; as pace_durable_dead() and pace_durable_submit().
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_durable_resubmit(const pace_durable_t *queue,
                                    uint64_t number,
                                    pace_durable_id_t *id);

/**
 * Forgets a task that has failed for good.
 *
 * PACE_ESTALE: there is none of this number; as pace_durable_dead().
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_durable_forget(const pace_durable_t *queue, uint64_t number);

/**
 * What a report says.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_durable_report_info(const pace_durable_report_t *report,
                                       pace_durable_info_t *info);

/**
 * Frees a report. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
 */
void pace_durable_report_free(pace_durable_report_t *report);

/**
 * How the connection of a queue is, and what it has carried: tasks out are exports, tasks in are imports.
 *
 * PACE_EINVAL before it is open; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_durable_stats(const pace_durable_t *queue,
                                 pace_bridge_stats_t *stats);

/**
 * Why nothing of a queue is stored or comes: it is not connected, or what the broker has refused last; nothing if all is well.
 * Otherwise as pace_bridge_server().
 *
 * PACE_EFULL; PACE_EINVAL before it is open.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_durable_reason(const pace_durable_t *queue,
                                  char *text,
                                  size_t size,
                                  size_t *needed);

/**
 * Ends a queue: it takes no more tasks, gives back those that have not begun, and waits until the others have ended, for up
 * to `timeout_ns`. What has not ended then is run again elsewhere, or later. *left, if not NULL, says how many submissions,
 * results and dead tasks were not stored.
 *
 * PACE_EINVAL before it is open.
 *
 * Threads: any. In handlers: no. It blocks.
 */
pace_status_t pace_durable_close(const pace_durable_t *queue,
                                 uint64_t timeout_ns,
                                 uint64_t *left);

/**
 * Frees a queue, and ends it if it is open, which takes up to 2 seconds if something waits. NULL is a no-op, and in a forked
 * child nothing is freed.
 *
 * Threads: any, as long as no other uses it any more. In handlers: no. It blocks.
 */
void pace_durable_free(pace_durable_t *queue);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_BRIDGE_H */
