/* paceline/hub.h: the event hub: keyed publish/subscribe, requests, supervision.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_HUB_H
#define PACELINE_HUB_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------- The hub: messages */

/** A message's priority: delivered after all others that wait in the mailbox. */
#define PACE_PRIORITY_LOW (-1)

/** A message's priority, unless it is set. */
#define PACE_PRIORITY_NORMAL 0

/** A message's priority: delivered before normal ones that wait in the mailbox. */
#define PACE_PRIORITY_HIGH 1

/** A message's priority: delivered before all others that wait in the mailbox. */
#define PACE_PRIORITY_CRITICAL 2

/** What is published beside a payload. Call pace_publication_init() first. */
typedef struct pace_publication_t {
    /** The size of the struct in bytes, as pace_publication_init() sets it. */
    uint32_t struct_size;
    /** The message's priority, PACE_PRIORITY_LOW to PACE_PRIORITY_CRITICAL. Default: PACE_PRIORITY_NORMAL. */
    int32_t priority;
    /** Up to 64 names and values, of up to 65536 bytes in all, in UTF-8. Default none. */
    const pace_field_t *headers;
    /** The number of elements of `headers`, 0 to 64. */
    size_t header_count;
    /** Room for later versions; zero. */
    uint64_t reserved;
} pace_publication_t;

/** Names a subscription of a hub, until it is unsubscribed or its hub is freed. 0 names none. */
typedef struct pace_subscription_t {
    /** An opaque number, to be copied and compared. */
    uint64_t id;
} pace_subscription_t;

/**
 * A message. What it points to is lent: to a handler until it returns, of a completion queue's entry until that is
 * completed.
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
    /** The bytes of the message, which are not aligned. NULL if there are none. */
    const void *payload;
    /** The size of the payload, in bytes. */
    size_t size;
    /** Its headers, in order. NULL if it has none. */
    const pace_field_t *headers;
    /** The number of elements of `headers`. */
    size_t header_count;
    /** The message's priority, PACE_PRIORITY_LOW to PACE_PRIORITY_CRITICAL. */
    int32_t priority;
    /** Which attempt at this message it is: 1 unless the handler has failed at it before. */
    uint32_t attempt;
    /** Whose it is; of no name if a completion queue has brought it. */
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

/**
 * No other attempt helps with the message that the handler of this thread fails at: there is none. Does nothing for a
 * message that is dealt with.
 *
 * PACE_ESTALE outside a handler of a hub.
 *
 * Threads: the handler's. In handlers: in one of a hub; it never waits.
 */
pace_status_t pace_message_permanent(void);

/**
 * The message that the handler of this thread fails at is not tried again before `delay_ns` from now, whatever `retry` of
 * the subscription says. Does nothing for a message that is dealt with.
 *
 * PACE_ESTALE outside a handler of a hub.
 *
 * Threads: the handler's. In handlers: in one of a hub; it never waits.
 */
pace_status_t pace_message_retry_after(uint64_t delay_ns);

/* -------------------------------------------- The hub: what it keeps */

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
    /** The size of the struct in bytes, as pace_history_options_init() sets it. */
    uint32_t struct_size;
    /** What happens when more waits for the disk than may: PACE_DISK_GIVE_UP or PACE_DISK_WAIT (default). */
    uint32_t when_full;
    /** The pattern of the keys whose messages are kept. NULL (default): all keys, as ">". */
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
    /** How many messages the archive keeps. PACE_UNLIMITED (default): no limit. */
    uint64_t archive_count;
    /** How large the file of the archive may become, in bytes. PACE_UNLIMITED (default): no limit. */
    uint64_t archive_bytes;
    /**
     * How long the archive keeps a message, in nanoseconds: up to 100 years, or PACE_FOREVER (default)
     * without a limit.
     */
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
    /** Room for later versions; zero. */
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

/**
 * Changes options to what the section `history` of a file of settings says, as pace_pool_config_load() does for
 * `pool`.
 *
 * As there.
 *
 * Threads: any. In handlers: yes; it reads a file.
 */
pace_status_t pace_history_options_load(pace_history_options_t *options,
                                        const char *path,
                                        bool environment);

/* -------------------------------------- The hub: keys and publishing */

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
    /** The size of the struct in bytes, as pace_hub_options_init() sets it. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
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
    /**
     * How often its statistics are published under $SYS.hub.statistics, and written to the log of the pool: 10 ms to
     * 1 day. 0 (default): never.
     */
    uint64_t stats_interval_ns;
} pace_hub_options_t;

/**
 * What became of a publication at the moment of publishing. Set struct_size to sizeof the struct before
 * the call. Each subscription that matched is in exactly one of enqueued, dropped, rejected and
 * dead_lettered.
 */
typedef struct pace_receipt_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
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
 * The counters of a hub. Set struct_size to sizeof the struct before the call. They balance, exactly,
 * whenever nothing is under way:
 *
 * matched = delivered + failed + dead_lettered + dropped + rejected + discarded + waiting + running
 */
typedef struct pace_hub_audit_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Whether every message that matched is accounted for. */
    bool balances;
    /** Room for later versions; zero. */
    uint8_t reserved[3];
    /** Messages that were published with any key. */
    uint64_t published;
    /** The sum over all messages of the subscriptions that each matched. */
    uint64_t matched;
    /** Of `matched`: messages that handlers have finished, or pullers have taken. */
    uint64_t delivered;
    /** Of `matched`: messages that handlers have failed at, in the last attempt. */
    uint64_t failed;
    /** Of `matched`: messages that have become dead letters. */
    uint64_t dead_lettered;
    /** Of `matched`: messages that full mailboxes have dropped or conflated. */
    uint64_t dropped;
    /** Of `matched`: messages that full mailboxes have refused. */
    uint64_t rejected;
    /** Of `matched`: messages that waited when their subscription ended. */
    uint64_t discarded;
    /** Of `matched`: messages that wait in mailboxes now. */
    uint64_t waiting;
    /** Of `matched`: messages that are being handled now. */
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
 * Changes options to what the section `hub` of a file of settings says, as pace_pool_config_load() does for
 * `pool`. Its histories are loaded by
 * pace_history_options_load().
 *
 * As there.
 *
 * Threads: any. In handlers: yes; it reads a file.
 */
pace_status_t pace_hub_options_load(pace_hub_options_t *options,
                                    const char *path,
                                    bool environment);

/**
 * Makes a hub, whose handlers run on the pool. `options` may be NULL. The pool may be freed before the
 * hub.
 *
 * PACE_EINVAL, PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN; PACE_EOS if an archive cannot be
 * opened, PACE_EUNSUPPORTED if the library was built without archives; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes; it may wait for the disk if it has an archive.
 */
pace_status_t pace_hub_new(const pace_pool_t *pool,
                           const pace_hub_options_t *options,
                           pace_hub_t **hub);

/**
 * Frees a hub, and unsubscribes all that have a name or were never given one. It waits until no handler of a
 * subscription that has a name runs and `drop` has run; of those without a name `drop` tells. Keys and mailboxes may be
 * freed later. Its histories are closed as by pace_hub_close_histories(). NULL is a no-op, and in a forked child nothing is
 * freed.
 *
 * Threads: any, as long as no other uses the hub any more. In handlers, and on threads of the pool: yes, it never waits
 * there but for the disk.
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
pace_status_t pace_hub_key(const pace_hub_t *hub, const char *text, pace_key_t **key);

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
pace_status_t pace_hub_publish(const pace_hub_t *hub,
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
 * Adds up all counters. Exact only while nothing is published and no handler runs; takes time with the
 * number of keys and subscriptions.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_audit(const pace_hub_t *hub,
                             pace_hub_audit_t *audit);

/**
 * How many subscriptions a key has, those of patterns included.
 *
 * PACE_EINVAL for a bad key.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_subscriber_count(const pace_hub_t *hub, const char *key, size_t *count);

/**
 * Calls `each` for every pattern that somebody subscribes to, sorted, in this thread.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_patterns(const pace_hub_t *hub,
                                pace_pattern_fn each,
                                void *user_data);

/* -------------------------- The hub: messages that all take, or none */

/** One of the messages that are published together. */
typedef struct pace_publish_item_t {
    /** The key that the message is published with. */
    const pace_key_t *key;
    /** Its headers and priority. NULL: none, and normal. */
    const pace_publication_t *publication;
    /** Its payload, which is copied. May be NULL if `size` is 0. */
    const void *bytes;
    /** The size of the payload in bytes. */
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
pace_status_t pace_hub_publish_all(const pace_hub_t *hub,
                                   const pace_publish_item_t *messages,
                                   size_t count,
                                   uint32_t flags,
                                   pace_receipt_t *receipt);

/* ----------------------------------- The hub: publishers with limits */

/** A publisher with a name. Its limits guard against mistakes: whoever has the hub can publish without one. */
typedef struct pace_publisher_t pace_publisher_t;

/** Settings of a publisher. Call pace_publisher_options_init() first. */
typedef struct pace_publisher_options_t {
    /** The size of the struct in bytes, as pace_publisher_options_init() sets it. */
    uint32_t struct_size;
    /** Does not wait for room in full mailboxes, as PACE_PUBLISH_NO_WAIT. Default: it waits where that is allowed. */
    bool no_wait;
    /** Room for later versions; zero. */
    uint8_t reserved[3];
    /**
     * How many messages may be published in quota_per_ns, evenly spread. PACE_UNLIMITED32 (default) or 0: no
     * limit.
     */
    uint32_t quota;
    /** How many messages may be published at once after a time with fewer, at least 1. Default 1. */
    uint32_t quota_burst;
    /** The period of the quota in nanoseconds: 1 ns for each message, up to 100 years. Default one second. */
    uint64_t quota_per_ns;
    /** Patterns of the keys that it may publish with. Default none: all keys. */
    const char *const *allow;
    /** The number of elements of `allow`. */
    size_t allow_count;
} pace_publisher_options_t;

/** What a publisher has done. Set struct_size to sizeof the struct before the call. */
typedef struct pace_publisher_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** Messages that were published by this publisher. */
    uint64_t published;
    /** Messages that were refused: beyond the quota, of a key that is not allowed, or invalid. */
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
pace_status_t pace_publisher_new(const pace_hub_t *hub,
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
pace_status_t pace_publisher_publish(const pace_publisher_t *publisher,
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
pace_status_t pace_publisher_publish_batch(const pace_publisher_t *publisher,
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
pace_status_t pace_publisher_stats(const pace_publisher_t *publisher,
                                   pace_publisher_stats_t *stats);

/**
 * Frees a publisher. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses the publisher any more. In handlers: yes, it never waits.
 */
void pace_publisher_free(pace_publisher_t *publisher);

/* -------------------------------------- The hub: filters of messages */

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

/* ---------------------------------------------- The hub: supervision */

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
 * Makes what a handler gets as its user_data: anew for the first message after each restart. Its own user_data is the
 * one that the handler was registered with. It answers PACE_OK with *handler_data, or anything else and no data; it may
 * say why with pace_message_fail(). If it fails, the message that waits for the handler has failed as if its handler had
 * answered PACE_EPANIC, and the next message has it called again.
 */
typedef pace_status_t (*pace_factory_fn)(void *user_data, void **handler_data);

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

/* -------------------------------------------- The hub: subscriptions */

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

/** A message for a full mailbox is dropped, and counted. */
#define PACE_OVERFLOW_DROP_NEWEST 1

/** When the mailbox is full, the message that has waited longest in it is dropped for the new one. */
#define PACE_OVERFLOW_DROP_OLDEST 2

/**
 * At most one message per key waits, in a full mailbox and in any other: a newer message replaces the older
 * one.
 */
#define PACE_OVERFLOW_CONFLATE 3

/**
 * A publisher waits for room in a full mailbox for up to block_ns; then its message is refused. It is
 * refused at once where publishers do not wait: on threads of any pool, in handlers, and with
 * PACE_PUBLISH_NO_WAIT.
 */
#define PACE_OVERFLOW_BLOCK 4

/**
 * A handler's mailbox is as with PACE_OVERFLOW_BLOCK without a limit, and one without a handler as with
 * PACE_OVERFLOW_REJECT, because the thread that empties it may be the one that publishes.
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

/** A message goes to the member of the group for which the fewest messages wait. */
#define PACE_BALANCE_LEAST_LOADED 1

/** A message goes to any member of the group, evenly distributed. */
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
    /** The size of the struct in bytes, as pace_subscription_options_init() sets it. */
    uint32_t struct_size;
    /** Where the handler runs: PACE_EXECUTION_SERIAL (default) to PACE_EXECUTION_STRAND. */
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
     * For a mailbox: the subscription ends when no thread has waited at its completion queue for so long, 1 ms to
     * 100 years. Default 0: never.
     */
    uint64_t lease_ns;
    /** Delivers messages by their priority. Default: in the order of publishing alone. */
    bool by_priority;
    /**
     * For mailboxes of a host that runs a handler of its own: what was taken counts as running until the host says what
     * became of it, by pace_mailbox_acknowledge() or pace_mailbox_bury(), and the subscription ends after the last.
     * Default: what was taken counts as delivered.
     */
    bool acknowledged;
    /** Room for later versions; zero. */
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
    /** Room for later versions; zero. */
    uint32_t reserved2;
    /**
     * Measures how long messages take from publishing to the handler, or until they are brought: latencies of
     * pace_subscription_stats_t, and of pace_hub_metrics(). Each thread that serves it takes 43 KB for that.
     * The clock is that of the system; should it be set back, messages that wait then count as 0.
     * PACE_EUNSUPPORTED without the feature `metrics`. Default: not measured, which costs nothing.
     */
    bool measured;
    /** Room for later versions; zero. */
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
    /**
     * Refuses the subscription if its pattern has one of the same name, UTF-8, whatever language it was made in. It is
     * copied. Default NULL: none.
     */
    const char *unique;
    /**
     * Makes what the handler gets as its user_data: once before the call that subscribes returns, which is
     * PACE_EFAILED if it fails then, and anew after each restart. So no handler is called again with what it had when
     * it crashed. The user_data of that call is the factory's and on_restart's. For serial and strand execution.
     * Default NULL: the handler gets the user_data of that call.
     */
    pace_factory_fn factory;
    /**
     * Takes back what the factory has made: before another one is made, and when the subscription has ended, or could not
     * be made. Default NULL.
     */
    pace_drop_fn drop_handler;
} pace_subscription_options_t;

/**
 * The counts of one subscription. Set struct_size to sizeof the struct before the call.
 *
 * matched = delivered + failed + dead_lettered + dropped + rejected + discarded + waiting + running
 */
typedef struct pace_subscription_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** Publications that matched since it began. */
    uint64_t matched;
    /** Messages that the handler has dealt with, or a completion queue has brought. */
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
    /** Messages that wait in the mailbox now. */
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
    /** Room for later versions; zero. */
    uint8_t reserved2[7];
    /** Of `filtered`, those at which a test has failed. */
    uint64_t filter_failures;
    /**
     * If it is measured: how many messages have come to the handler, each attempt by itself, or were
     * brought by a completion queue; otherwise 0, as what follows.
     */
    uint64_t latencies;
    /** The mean latency: nanoseconds from publishing to the handler. */
    uint64_t latency_mean_ns;
    /** The latency in nanoseconds that half of the messages did not exceed, to two significant digits. */
    uint64_t latency_p50_ns;
    /** The latency in nanoseconds that 90 % of the messages did not exceed, to two significant digits. */
    uint64_t latency_p90_ns;
    /** The latency in nanoseconds that 99 % of the messages did not exceed, to two significant digits. */
    uint64_t latency_p99_ns;
    /** The latency in nanoseconds that 99.9 % of the messages did not exceed, to two significant digits. */
    uint64_t latency_p999_ns;
    /** The longest latency of a message, in nanoseconds. */
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
 * or more, and neither stands beside other characters of its token. `options` may be NULL: serial, 1024 messages. The handler may run before this returns.
 * `subscription` may be NULL: it lasts as long as the hub then. `drop` runs when the subscription has
 * ended and no handler runs.
 *
 * PACE_EINVAL for a bad pattern or option, or a second subscription of the same `unique`; PACE_EFULL when
 * 2^20 subscriptions have names; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_subscribe(const pace_hub_t *hub,
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
pace_status_t pace_hub_unsubscribe(const pace_hub_t *hub,
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
pace_status_t pace_subscription_drain(const pace_hub_t *hub,
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
pace_status_t pace_hub_resume(const pace_hub_t *hub,
                              pace_subscription_t subscription,
                              bool *resumed);

/**
 * The counts of a subscription, as they are now.
 *
 * PACE_ESTALE, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_subscription_stats(const pace_hub_t *hub,
                                      pace_subscription_t subscription,
                                      pace_subscription_stats_t *stats);

/* -------------------------- The hub: mailboxes that the host empties */

/** A subscription or a replay of a hub that the host empties itself. */
typedef struct pace_mailbox_t pace_mailbox_t;

/**
 * Subscribes with a mailbox that a completion queue empties (pace_cq_mailbox). Of the options the execution is not looked at, and
 * those of supervision are refused, because there is no handler; with `acknowledged` the host's own may have a
 * supervisor, or restarts and suspensions. NULL: 1024 messages, of which more are refused.
 *
 * PACE_EINVAL for a bad pattern or option, or a second subscription of the same `unique`; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_mailbox(pace_hub_t *hub,
                               const char *pattern,
                               const pace_subscription_options_t *options,
                               pace_mailbox_t **mailbox);

/**
 * The counts of its subscription, as they are now. What was brought counts as delivered, or with `acknowledged` as
 * running until the host has said what became of it.
 *
 * PACE_EINVAL for the mailbox of a replay; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_mailbox_stats(pace_mailbox_t *mailbox,
                                 pace_subscription_stats_t *stats);

/**
 * Of a mailbox that was made with `acknowledged`: says what became of the messages that were taken first, in the order
 * in which they were taken: so many were dealt with, so many have failed for good, and so many were thrown away.
 *
 * PACE_EINVAL for more messages than were taken and are not acknowledged.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_mailbox_acknowledge(pace_mailbox_t *mailbox,
                                       uint64_t delivered,
                                       uint64_t failed,
                                       uint64_t discarded);

/**
 * Of a mailbox that was made with `acknowledged`: the host's handler has crashed at a message, as `failure` says, UTF-8, which
 * is copied. That counts as a restart by `restarts` or `supervisor` of the mailbox's options, and is told under
 * $SYS.subscription.restarted and by pace_hub_errors(). *suspended_ns, which may be NULL, is 0 if the host restarts the handler
 * and goes on. Otherwise that was once too often, so it and all others of its supervisor are suspended as other handlers would
 * be, for so long; PACE_FOREVER: until they are resumed. What was taken is the host's still.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_mailbox_crashed(pace_mailbox_t *mailbox,
                                   const char *failure,
                                   uint64_t *suspended_ns);

/**
 * To be asked before the host's handler gets a message. *suspended, which may be NULL: it is suspended, and gets none.
 * *restarts: the handler is to be restarted first, because another of its supervisor has crashed and all are restarted, or
 * because a suspension has ended; that counts as a restart. NULL: only *suspended is asked for.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_mailbox_catch_up(pace_mailbox_t *mailbox,
                                    bool *restarts,
                                    bool *suspended);

/**
 * Suspends the subscription as a supervisor would, because the host's handler fails too often: what waits, and what
 * comes, becomes dead letters for so long, up to 100 years, or until pace_mailbox_resume(); PACE_FOREVER: until that
 * alone. A replay brings nothing until then, and what comes stays in the history. What was taken is the host's still. *suspended, which may be NULL, says whether it was open before.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_mailbox_suspend(pace_mailbox_t *mailbox,
                                   uint64_t suspension_ns,
                                   bool *suspended);

/**
 * Ends a suspension of pace_mailbox_suspend() now. *resumed, which may be NULL, says whether there was one.
 *
 * PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_mailbox_resume(pace_mailbox_t *mailbox,
                                  bool *resumed);

/**
 * Ends the subscription or the replay. With PACE_UNSUBSCRIBE_DRAIN what waits for a subscription is brought still. *ended, which may be
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
 * Ends the subscription or the replay, and frees the mailbox. NULL is a no-op, and in a forked child nothing is freed.
 *
 * Threads: any, as long as no other uses the mailbox any more. In handlers: yes, it never waits.
 */
void pace_mailbox_free(pace_mailbox_t *mailbox);

/* --------------------------------------------- The hub: dead letters */

/** A dead letter's reason: its handler has failed at the last attempt. */
#define PACE_DEAD_FAILED 1

/** A dead letter's reason: its handler, which is written in Rust, has panicked at the last attempt. */
#define PACE_DEAD_PANICKED 2

/** A dead letter's reason: the subscription was suspended. */
#define PACE_DEAD_SUSPENDED 3

/**
 * Which dead letters: those that all conditions hold for. Set struct_size to sizeof the struct, and what
 * is not asked about to zero.
 */
typedef struct pace_dead_filter_t {
    /** The size of the struct in bytes: sizeof, set by the caller. */
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
    /** Why the message is a dead letter: one of PACE_DEAD_FAILED, PACE_DEAD_PANICKED and PACE_DEAD_SUSPENDED. */
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
    /** Room for later versions; zero. */
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
    /** Room for later versions; zero. */
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
pace_status_t pace_hub_dead_letters(const pace_hub_t *hub,
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
pace_status_t pace_hub_remove_dead_letters(const pace_hub_t *hub,
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
pace_status_t pace_hub_redeliver(const pace_hub_t *hub,
                                 const pace_dead_filter_t *filter,
                                 pace_redelivered_t *redelivered);

/**
 * How many dead letters there were, and what became of them.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_dead_letter_stats(const pace_hub_t *hub,
                                         pace_dead_letter_stats_t *stats);

/**
 * Makes a message that was brought from this mailbox a dead letter, after so many attempts: it counts as
 * dead-lettered then, and no longer as delivered. With 0 attempts the reason is PACE_DEAD_SUSPENDED, and else
 * PACE_DEAD_FAILED. The message may be a copy of what was brought; all that it points to is copied. `failure`
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

/* ------------------------------------------------- The hub: requests */

/**
 * Called once with the reply to a request, which is lent until it returns, and PACE_OK; or with NULL and
 * PACE_ETIMEDOUT. On a thread of the pool.
 */
typedef void (*pace_reply_fn)(void *user_data, pace_status_t status, const pace_message_t *reply);

/** Names a request whose function is still to be called. Numbers are given once in a hub. */
typedef struct pace_asked_t {
    /** An opaque number, to be copied and compared. */
    uint64_t id;
} pace_asked_t;

/**
 * Publishes a request, and waits for up to `timeout_ns` for the reply of whoever is first. The header
 * Reply-To is added to those of `publication`, which may be NULL. *reply stays where it is until this thread
 * asks again, or ends.
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
pace_status_t pace_hub_give_up(const pace_hub_t *hub,
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
pace_status_t pace_hub_reply(const pace_hub_t *hub,
                             const pace_message_t *request,
                             const void *bytes,
                             size_t size,
                             pace_receipt_t *receipt);

/* ---------------------------------- The hub: what it tells of itself */

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
    /** The size of the struct in bytes: sizeof, set by the caller. */
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
    /** When it was recorded: nanoseconds since 1970, by the clock of the system. */
    uint64_t time_ns;
    /** What happened: the key of its notice without "$SYS.". */
    pace_text_t event;
    /** Where: "subscription 7 (orders.>)", say. */
    pace_text_t origin;
    /** What there is to say, for people. */
    pace_text_t message;
    /** PACE_SEVERITY_: a warning or worse. */
    uint32_t severity;
    /** Room for later versions; zero. */
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
 * of its own. The headers "event" and "severity" say these, too, for pace_message_filter_header(). Warnings and errors are kept besides, whether anybody subscribes or not.
 *
 * PACE_EINVAL, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_hub_errors(const pace_hub_t *hub,
                              const pace_error_filter_t *filter,
                              pace_hub_error_fn each,
                              void *user_data,
                              size_t *count);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_HUB_H */
