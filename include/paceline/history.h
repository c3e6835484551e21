/* paceline/history.h: the hub's history: queries, replays, export and import, archives.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_HISTORY_H
#define PACELINE_HISTORY_H

#include "hub.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------- The hub: queries and replays */

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
    /**
     * Makes what the handler gets as its user_data, anew after each restart, as that of pace_subscription_options_t.
     * Default NULL.
     */
    pace_factory_fn factory;
    /** Takes back what the factory has made, as that of pace_subscription_options_t. Default NULL. */
    pace_drop_fn drop_handler;
    /**
     * For mailboxes of a host that runs a handler of its own, as that of pace_subscription_options_t; the replay is among
     * the figures of its hub then. Default: what was brought counts as delivered.
     */
    bool acknowledged;
    /** Room for later versions; zero. */
    uint8_t reserved[7];
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
 * Writes everything that was published to all archives, and closes the files of all histories: a copy of an archive has
 * everything then, and another hub can open it at once. What a history with files would record is refused from now on,
 * and so is who asks for what is only on disk: PACE_ESHUTDOWN. pace_hub_free() does it, too. Calling it again is allowed.
 *
 * PACE_EOS: what could not be written stays, its file is open, and all goes on as before.
 *
 * Threads: any. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_hub_close_histories(pace_hub_t *hub);

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
 * As pace_hub_replay_supervised(), with a mailbox that a completion queue empties (pace_cq_mailbox). Of the options
 * those of supervision are refused, because there is no handler; with `acknowledged` the host's own may have a supervisor, or
 * restarts and suspensions.
 *
 * As there.
 *
 * Threads: any. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_hub_replay_mailbox(pace_hub_t *hub,
                                      const char *pattern,
                                      const pace_replay_options_t *options,
                                      pace_mailbox_t **mailbox);

/**
 * The counts of a replay to a mailbox. What was brought counts as delivered until it is buried, or with `acknowledged` as
 * running until the host has said what became of it; what is in the history and was not brought is not counted.
 *
 * PACE_EINVAL for the mailbox of a subscription; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_replay_mailbox_stats(pace_mailbox_t *mailbox,
                                        pace_replay_stats_t *stats);

/* ---------- Histories: export and import, and archives without a hub */

/** An archive that is read without a hub, or beside one. */
typedef struct pace_archive_t pace_archive_t;

/**
 * Writes what a history has kept that the query asks for to a new file of lines of JSON, which is there when all of it
 * is; a file that was there is replaced. `query` may be NULL: all; `newest` is not looked at. *count, which may be
 * NULL, says how many. pace_archive_import() makes an archive of such a file, which another hub can go on with.
 *
 * PACE_EINVAL, also if no history keeps all that the pattern matches; PACE_EOS if the archive cannot be read, or the
 * file not written; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_hub_export(const pace_hub_t *hub,
                              const pace_query_t *query,
                              const char *path,
                              uint64_t *count);

/**
 * Calls `each` for the messages of a file of lines that the query asks for, in their order, in this thread. `query` may
 * be NULL: all, and its `newest` is not looked at; `each` may be NULL: they are only counted. *messages says how many
 * there were, *torn how many lines are no JSON and were skipped, as a process that was killed leaves them; both may be
 * NULL. It reads one file: those that were rotated away are files of their own.
 *
 * PACE_EINVAL; PACE_EOS if it cannot be read, or a line of JSON is no message: what was before it has been given to
 * `each`; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_lines_read(const char *path,
                              const pace_query_t *query,
                              pace_record_fn each,
                              void *user_data,
                              uint64_t *messages,
                              uint64_t *torn);

/**
 * Opens a file that a hub has made as pace_history_options_t.archive, to be read without a hub, or beside one. It is
 * brought up to date if it is older.
 *
 * PACE_EINVAL if it is none; PACE_EOS; PACE_EUNSUPPORTED if the library was built without the feature `archive`.
 *
 * Threads: any. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_archive_open(const char *path,
                                pace_archive_t **archive);

/**
 * As pace_hub_query(), of an archive.
 *
 * PACE_EINVAL; PACE_EOS if it cannot be read; PACE_EVERSION.
 *
 * Threads: any, which take turns. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_archive_query(const pace_archive_t *archive,
                                 const pace_query_t *query,
                                 pace_record_fn each,
                                 void *user_data,
                                 size_t *count);

/**
 * As pace_hub_export(), of an archive.
 *
 * PACE_EINVAL; PACE_EOS; PACE_EVERSION.
 *
 * Threads: any, which take turns. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_archive_export(const pace_archive_t *archive,
                                  const pace_query_t *query,
                                  const char *path,
                                  uint64_t *count);

/**
 * Makes a new archive of the messages of a file of lines that the query asks for. Of `options`, what is said of the
 * archive counts: `archive`, which must not be NULL, its limits, `process_only` and `check`. `query` may be NULL: all.
 * The sequences of the lines have to grow, as those of an export do. *messages and *torn are as in pace_lines_read().
 *
 * PACE_EINVAL, also if the archive has something in it; PACE_EOS; PACE_EVERSION; PACE_EUNSUPPORTED if the library was
 * built without the feature `archive`. What was put in before a failure stays.
 *
 * Threads: any. In handlers: yes. It may wait for the disk.
 */
pace_status_t pace_archive_import(const pace_history_options_t *options,
                                  const char *lines,
                                  const pace_query_t *query,
                                  uint64_t *messages,
                                  uint64_t *torn);

/**
 * Closes an archive. NULL is a no-op.
 *
 * Threads: any, as long as no other uses the archive any more. In handlers: yes. It may wait for the disk.
 */
void pace_archive_free(pace_archive_t *archive);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_HISTORY_H */
