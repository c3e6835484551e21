/* paceline/cq.h: completion queues: what happens as data, for hosts that cannot be called back.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_CQ_H
#define PACELINE_CQ_H

#include "log.h"
#include "udp.h"
#include "workers.h"
#include "hub.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------- Connections: what a completion queue tells of them */

/**
 * pace_cq_conn_t.event: the connection is there. It may be refused (PACE_CQ_REFUSE). Comes first, and only if
 * PACE_WANTED_OPENED is set.
 */
#define PACE_CONN_EVENT_OPENED 0

/**
 * pace_cq_conn_t.event: bytes have arrived, which are the entry's. What its completion does not consume comes again,
 * followed by more. Comes whatever is wanted.
 */
#define PACE_CONN_EVENT_DATA 1

/**
 * pace_cq_conn_t.event: the peer sends no more. Afterwards the connection is closed by itself, when its admitted
 * requests have ended and everything is sent, unless allow_half_open of its pace_listener_options_t is set. Comes if
 * PACE_WANTED_FINISHED is set.
 */
#define PACE_CONN_EVENT_FINISHED 2

/**
 * pace_cq_conn_t.event: the output was above its high mark, and has fallen to the low mark. Comes if
 * PACE_WANTED_WRITABLE is set.
 */
#define PACE_CONN_EVENT_WRITABLE 3

/**
 * pace_cq_conn_t.event: all bytes up to the end of a tracked write have been given to the kernel; `number` is its
 * token. Comes if PACE_WANTED_WRITTEN is set.
 */
#define PACE_CONN_EVENT_WRITTEN 4

/**
 * pace_cq_conn_t.event: a time-out has passed; `detail` is its PACE_TIMEOUT_ number. Completed without PACE_CQ_KEEP it
 * closes the connection at once, as it does unless PACE_WANTED_TIMED_OUT is set.
 */
#define PACE_CONN_EVENT_TIMED_OUT 5

/**
 * pace_cq_conn_t.event: the server drains. The connection closes when its admitted requests have ended and everything
 * is sent. Comes if PACE_WANTED_DRAINING is set.
 */
#define PACE_CONN_EVENT_DRAINING 6

/**
 * pace_cq_conn_t.event: the connection has ended; `detail` is its PACE_REASON_ number, and `number` may say more. Comes
 * last, once, if PACE_WANTED_CLOSED is set.
 */
#define PACE_CONN_EVENT_CLOSED 7

/** Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_OPENED comes for each connection. Without it none is refused. */
#define PACE_WANTED_OPENED 1

/** Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_FINISHED comes when a peer sends no more. */
#define PACE_WANTED_FINISHED 2

/** Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_WRITABLE comes when output has fallen to the low mark. */
#define PACE_WANTED_WRITABLE 4

/** Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_WRITTEN comes for each tracked write. */
#define PACE_WANTED_WRITTEN 8

/** Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_TIMED_OUT comes before a connection is closed for a time-out. */
#define PACE_WANTED_TIMED_OUT 16

/** Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_DRAINING comes to each connection when the server drains. */
#define PACE_WANTED_DRAINING 32

/** Bit of `wanted` in pace_cq_server(): PACE_CONN_EVENT_CLOSED comes when a connection has ended. */
#define PACE_WANTED_CLOSED 64

/** All bits of `wanted` in pace_cq_server(): every PACE_CONN_EVENT_ comes. */
#define PACE_WANTED_ALL 127

/* -------------------------------- Completion queues: what is brought */

/** A descriptor is ready (pace_cq_register): `detail.ready`. Its next entry comes after this one was completed. */
#define PACE_CQ_READY 1

/**
 * A periodic timer is due (pace_cq_every): `detail.ready` has its handle. Ticks that come before it was completed are
 * skipped.
 */
#define PACE_CQ_TICK 2

/** A timer that runs once is due (pace_cq_after). Nothing to complete. */
#define PACE_CQ_TIMER 3

/** A tag was posted (pace_cq_post). Nothing to complete. */
#define PACE_CQ_TASK 4

/**
 * Something happened to a connection: `detail.conn` says what, and `bytes` is what has arrived. The connection's next
 * entry comes after this one was completed.
 */
#define PACE_CQ_CONN 5

/**
 * A request of an HTTP route: `detail.request`, and `bytes` is the request as one block (pace_cq_request_t). It
 * stays out until its answer is complete.
 */
#define PACE_CQ_REQUEST 6

/**
 * A part of a request's body, which pace_cq_read() asked for: `bytes`; `detail.request.request` is the token of the
 * request.
 */
#define PACE_CQ_BODY 7

/** The end of such a body, which is whole. Nothing to complete. */
#define PACE_CQ_BODY_END 8

/** The end of such a body, which will never be whole: the peer is gone, or broke the protocol. Nothing to complete. */
#define PACE_CQ_BODY_BROKEN 9

/**
 * The output of an answer's body was above its high mark (PACE_WRITE_STATUS_ABOVE_HIGH_MARK), and has fallen to the low
 * mark: its next piece may be written. Nothing to complete.
 */
#define PACE_CQ_BODY_WRITABLE 10

/** A request of an HTTP server has ended (pace_cq_http_ends): `bytes` is a block that says how. */
#define PACE_CQ_REQUEST_ENDED 11

/** A datagram has arrived: `bytes`, and `detail.datagram`. */
#define PACE_CQ_DATAGRAM 12

/** An error came to a datagram socket instead, which goes on: `detail.datagram.os_error`. Nothing to complete. */
#define PACE_CQ_DATAGRAM_ERROR 13

/** An attempt of a worker pool's task has begun: `detail.attempt`. Its task runs until it is completed. */
#define PACE_CQ_ATTEMPT 14

/**
 * A task of a worker pool has ended otherwise than by the completion of an attempt, which may be out still and is to
 * be completed all the same: `detail.attempt.status`. Nothing to complete.
 */
#define PACE_CQ_TASK_ENDED 15

/** A message of a mailbox or a replay: `detail.message`, and `bytes` is its payload. */
#define PACE_CQ_MESSAGE 16

/**
 * What became of a request of the hub: `status` is PACE_OK and `detail.message` the reply, or it is PACE_ETIMEDOUT, or
 * PACE_ECANCELLED if it was given up or its hub was freed; then there is nothing to complete.
 */
#define PACE_CQ_REPLY 17

/** A record of a log: `detail.record`. */
#define PACE_CQ_RECORD 18

/** A signal of the process: `detail.signal`. Nothing to complete. */
#define PACE_CQ_SIGNAL 19

/** The source of this tag brings nothing more: it was closed, freed or drained. Nothing to complete. */
#define PACE_CQ_ENDED 20

/**
 * The client of a request has gone before it has its answer (pace_cq_watch_client): `detail.request.request` is the token
 * of the request, which is to be completed all the same. Nothing to complete.
 */
#define PACE_CQ_CLIENT_GONE 21

/** In an entry's flags: it was brought before, to a thread that neither completed nor renewed it within the lease. */
#define PACE_CQ_AGAIN 1

/**
 * Bytes: if no message of those that were taken together has a longer payload, their payloads lie one after the other,
 * in order and without gaps, so that the host may copy all of them at once. The tokens of messages that were taken
 * together differ in the lowest byte only: each is greater by 1 than the one before it.
 */
#define PACE_CQ_TOGETHER 256

/** A descriptor that is ready, or a periodic timer that is due. */
typedef struct pace_cq_ready_t {
    /** The handle that was registered. */
    pace_handle_t handle;
    /** PACE_READY_ bits of a descriptor; 0 for a timer. */
    uint32_t ready;
    /** Not used: zero for now. */
    uint32_t reserved;
} pace_cq_ready_t;

/** What has happened to a connection. */
typedef struct pace_cq_conn_t {
    /** Which connection, for the functions whose names begin with pace_server_conn_. */
    pace_conn_id_t conn;
    /** What happened: a PACE_CONN_EVENT_ number. */
    uint32_t event;
    /** CLOSED: a PACE_REASON_ number. TIMED_OUT: a PACE_TIMEOUT_ number. Otherwise 0. */
    uint32_t detail;
    /**
     * WRITTEN: the token of the tracked write. CLOSED: a PACE_TIMEOUT_ number for PACE_REASON_TIMED_OUT, an errno for
     * PACE_REASON_FAILED. Otherwise 0.
     */
    uint64_t number;
} pace_cq_conn_t;

/**
 * Whose request, body or answer it is.
 *
 * The block of a PACE_CQ_REQUEST: eight numbers of 32 bits in the machine's order, which are the lengths of method,
 * target, path and query (UINT32_MAX: there is none), the minor version of HTTP/1 in the lower 16 bits with the status
 * of a request that no route has taken in the upper ones, how many parameters and headers there are, and where the body
 * begins, which is the rest. Then the lengths of name and value of each parameter and each header, then all these texts
 * in the same order, and the body.
 *
 * The block of a PACE_CQ_REQUEST_ENDED: two numbers of 64 bits, how many nanoseconds it took and how many ends were lost
 * before this one because 65536 waited; four numbers of 32 bits, the status (0: no whole answer has left) and the
 * lengths of method, target and peer; then these texts.
 */
typedef struct pace_cq_request_t {
    /** PACE_CQ_REQUEST: the connection that it came from. Otherwise 0. */
    pace_conn_id_t conn;
    /** The kinds of bodies: the token of the request. Otherwise 0. */
    uint64_t request;
} pace_cq_request_t;

/** Where a datagram comes from. */
typedef struct pace_cq_datagram_t {
    /** How many bytes were sent: more than `size` if the end did not fit into max_datagram and is lost. */
    size_t length;
    /** Who has sent it. An IPv4 address looks like ::ffff:0:0/96 on a socket that takes both. */
    pace_ip_t peer;
    /** PACE_CQ_DATAGRAM_ERROR: the errno. Otherwise 0. */
    int32_t os_error;
} pace_cq_datagram_t;

/** Which attempt at which task. */
typedef struct pace_cq_attempt_t {
    /** The task's number, as in its report. */
    uint64_t id;
    /** 1 for the first attempt; 0 for an end. */
    uint32_t number;
    /** PACE_TASK_: how the task stands. */
    uint32_t status;
} pace_cq_attempt_t;

/** What an entry has besides its bytes: the member that its kind names. */
typedef union pace_cq_detail_t {
    /** What is ready, for PACE_CQ_READY and PACE_CQ_TICK. */
    pace_cq_ready_t ready;
    /** What happened to which connection, for PACE_CQ_CONN. */
    pace_cq_conn_t conn;
    /** Whose it is, for PACE_CQ_REQUEST and the kinds of bodies. */
    pace_cq_request_t request;
    /** Where it comes from, for PACE_CQ_DATAGRAM and PACE_CQ_DATAGRAM_ERROR. */
    pace_cq_datagram_t datagram;
    /** Which task it is, for PACE_CQ_ATTEMPT and PACE_CQ_TASK_ENDED. */
    pace_cq_attempt_t attempt;
    /** The message or the reply, for PACE_CQ_MESSAGE and PACE_CQ_REPLY. */
    pace_message_t message;
    /** The record of a log, for PACE_CQ_RECORD. */
    pace_log_record_t record;
    /** The number of the signal, as SIGTERM, for PACE_CQ_SIGNAL. */
    int32_t signal;
} pace_cq_detail_t;

/** One thing that happened. What it points to stays where it is until its token is completed. */
typedef struct pace_cq_entry_t {
    /** PACE_CQ_READY to PACE_CQ_ENDED: what happened, and which part of `detail` holds. */
    uint32_t kind;
    /** PACE_CQ_AGAIN if it was brought before; otherwise 0. */
    uint32_t flags;
    /**
     * What names the entry until it is completed by pace_cq_complete() or pace_cq_done(). 0: there is nothing to
     * complete.
     */
    uint64_t token;
    /** What was given with the source. */
    uint64_t tag;
    /** The bytes that the kind speaks of. NULL if there are none. */
    const void *bytes;
    /** How many bytes there are. */
    size_t size;
    /** PACE_CQ_REPLY: what became of the request. Other kinds: PACE_OK. */
    pace_status_t status;
    /** Not used: zero for now. */
    uint32_t reserved;
    /** More, as the kind has it. */
    pace_cq_detail_t detail;
} pace_cq_entry_t;

/* ---------------------------------------- Completion queues: waiting */

/**
 * Where sources put what happens, and hosts take it as data. Whatever can have a callback can be attached to one with a
 * tag instead.
 *
 * **What an entry lends** (the bytes and texts that it points to) stays where it is until its token is completed, by
 * whatever thread, and the source brings nothing more of what must not overlap until then: a connection, a descriptor
 * and a request have one entry out at a time.
 *
 * **Who is gone** without completing is found out by the lease, if there is one: then the token is stale, and the entry
 * is brought to another thread with PACE_CQ_AGAIN. Not datagrams, which may be lost anyhow, and not a request whose
 * answer has begun, which breaks off. From then on nothing that the entry lends may be read any more: renew it in time,
 * or copy first (`leased_when_renewed`).
 *
 * **The counters** (pace_cq_stats) add up: brought = completed + withdrawn + out.
 */
typedef struct pace_cq_t pace_cq_t;

/** Settings of a completion queue. Call pace_cq_config_init(), change what you like, call pace_cq_new(). */
typedef struct pace_cq_config_t {
    /** The size of the struct, set by pace_cq_config_init(). */
    uint32_t struct_size;
    /**
     * In a pool without threads: threads that wait sleep beside the queue, as they do in a pool with threads, and others
     * do the pool's work (pace_pool_join(), or another queue). They are none of its max_joined, a drain does not wait for
     * them, and pace_cq_fd() is the queue's own. Default: false.
     */
    bool beside;
    /**
     * The lease of an entry begins when it is renewed for the first time, and not when it is brought: for hosts that copy
     * what an entry lends before they work on it, and may be held up meanwhile. Default: false.
     */
    bool leased_when_renewed;
    /** Not used: zero for now. */
    uint8_t reserved[2];
    /**
     * Nanoseconds, at least 1 ms: an entry that is neither completed nor renewed (pace_cq_renew) for so long is taken
     * from whoever has it. 0 (default): never.
     */
    uint64_t lease_ns;
} pace_cq_config_t;

/** What a completion queue has counted. At any time brought = completed + withdrawn + out. */
typedef struct pace_cq_stats_t {
    /** Set by the caller: sizeof the struct. */
    uint32_t struct_size;
    /** Not used: zero for now. */
    uint32_t reserved;
    /** Entries with a token that pace_cq_wait() has given, each time that it did. */
    uint64_t brought;
    /** Of these, those that were completed. */
    uint64_t completed;
    /** Of these, those whose lease was over. */
    uint64_t withdrawn;
    /** Of these, those that are out now. */
    uint64_t out;
} pace_cq_stats_t;

/**
 * Fills in the defaults; `size` is sizeof *config.
 *
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_config_init(pace_cq_config_t *config, size_t size);

/**
 * Makes a completion queue for a pool and all that stands on it. `config` may be NULL: the defaults. A pool may have
 * any number of queues.
 *
 * In a pool with threads of its own these do the work, and hosts sleep in pace_cq_wait() until there is something. In
 * one without, the threads that wait are the pool's threads meanwhile: they lead, follow, and run whatever has a
 * handler; unless the queue is `beside`. If `pool` is NULL the queue is `beside`, and for what
 * needs no pool of its own: logs (pace_cq_log) and requests of hubs (pace_cq_request).
 *
 * PACE_EINVAL for a lease below 1 ms; PACE_EVERSION; PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_new(pace_pool_t *pool,
                          const pace_cq_config_t *config,
                          pace_cq_t **cq);

/**
 * *fd is readable while pace_cq_wait() may find something, for a loop of the host's own, which then calls that with a
 * time of 0. In a pool without threads, unless the queue is `beside`, it is readable for what the pool has to do, too. It belongs to the queue: never
 * read or close it.
 *
 * PACE_EOS if there are no descriptors left; PACE_EINVAL for a pool without threads whose source has none.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_fd(pace_cq_t *cq,
                         int32_t *fd);

/**
 * Waits for up to `timeout_ns` for entries, and takes up to `max` of them. PACE_OK: *got is 1 or more. Sources take
 * turns; the entries of one source come in its order. Several threads may wait: each entry goes to one of them. In a
 * pool without threads the caller takes part meanwhile, as in pace_pool_join().
 *
 * A drain of the pool waits for a thread that waits here to come back, until the queue is closed; not for the thread
 * that drains.
 *
 * PACE_ETIMEDOUT: nothing came; PACE_ESHUTDOWN: the queue was closed, or its pool has stopped and all sources have
 * ended; PACE_EINVAL for a `max` of 0; PACE_EDEADLOCK in a handler, and on a thread of the pool, unless the time is 0;
 * PACE_EFULL when max_joined threads are in a pool without threads.
 *
 * Threads: any but the pool's own. In handlers: with a time of 0.
 */
pace_status_t pace_cq_wait(pace_cq_t *cq,
                           pace_cq_entry_t *entries,
                           size_t max,
                           uint64_t timeout_ns,
                           size_t *got);

/**
 * Completes `count` entries with nothing to say, whatever threads have taken them: what a callback does that returns at
 * once. All bytes of a connection are consumed, a descriptor is watched on, an attempt has succeeded, a message is
 * dealt with, and a request that was not answered gets a 500. Only their tokens are looked at: those of 0 are passed
 * over, and so is what is completed already, so a batch can be given back as it came.
 *
 * PACE_ESTALE if one of them was not out.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_done(pace_cq_t *cq,
                           const pace_cq_entry_t *entries,
                           size_t count);

/**
 * Says that the host still works on an entry: its lease begins anew, and so does the time of an attempt.
 *
 * PACE_ESTALE: it is not out.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_renew(pace_cq_t *cq,
                            uint64_t token);

/**
 * What the queue has counted.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_stats(pace_cq_t *cq, pace_cq_stats_t *stats);

/**
 * Closes the queue: nothing is brought any more, and every thread that waits gets PACE_ESHUTDOWN. What is out can be
 * completed still. Sources that are attached stay as they are; what they have, and what comes, nobody takes: a request
 * gets a 500, and a connection goes on as if its events were completed with nothing to say. Handles of pace_cq_register()
 * and pace_cq_every() end with what happens to them next, if they are not deregistered before; tags that nobody has taken
 * are dropped, and counted as cancelled tasks of the pool.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_close(pace_cq_t *cq);

/**
 * Closes the queue, and frees it. What is out is withdrawn, as if its handler had failed: a request gets a 500, an
 * attempt has failed, a message becomes a dead letter of its subscription; a connection goes on. NULL: nothing.
 *
 * Threads: any, as long as no other uses the queue any more. In handlers: yes, it never waits.
 */
void pace_cq_free(pace_cq_t *cq);

/**
 * As pace_pool_register(), and what happens comes as PACE_CQ_READY with `tag`. An edge-triggered descriptor must have
 * been read until EAGAIN before an entry is completed.
 *
 * PACE_EINVAL, PACE_EOS, PACE_EFULL, PACE_ESHUTDOWN, PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_register(pace_cq_t *cq,
                               int32_t fd,
                               const pace_handle_options_t *options,
                               uint64_t tag,
                               pace_handle_t *handle);

/**
 * As pace_pool_every(), and each tick comes as PACE_CQ_TICK with `tag`. Ticks that come while one is out are skipped.
 *
 * PACE_EINVAL, PACE_EFULL, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_every(pace_cq_t *cq,
                            uint64_t period_ns,
                            uint64_t tag,
                            pace_handle_t *handle);

/**
 * As pace_pool_after(), and it comes as PACE_CQ_TIMER with `tag`. `timer` may be NULL.
 *
 * PACE_EINVAL, PACE_EFULL, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_after(pace_cq_t *cq,
                            uint64_t delay_ns,
                            uint64_t tag,
                            pace_timer_t *timer);

/**
 * Posts `count` tags, in order, each of which comes as PACE_CQ_TASK. It never waits. As many as a lane of the pool has
 * room for may lie there; in the pool's counters they are tasks. *accepted, which may be NULL, says how many were
 * taken, also for PACE_EFULL and PACE_ESHUTDOWN.
 *
 * PACE_EFULL, PACE_ESHUTDOWN.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_post(pace_cq_t *cq,
                           const uint64_t *tags,
                           size_t count,
                           size_t *accepted);

/**
 * Wakes one thread that waits, or the next that would: `tag` comes as PACE_CQ_TASK, as one that was posted. But it is no
 * task: it is in no counter of the pool, and a drain does not wait for it. For a host that calls its threads to a list
 * of its own. It is never refused for want of room: wake once for each thread that sleeps, not for each thing to do.
 *
 * PACE_ESHUTDOWN: the queue was closed, or its pool has stopped.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_wake(pace_cq_t *cq,
                           uint64_t tag);

/* ------------------------------------- Completion queues: completing */

/** A connection whose time was over goes on: the time begins anew. */
#define PACE_CQ_KEEP 1

/** A connection that was opened is not wanted: it is sent the completion's bytes, and closed. */
#define PACE_CQ_REFUSE 2

/** A connection: after what is queued, tell the peer that no more is sent. */
#define PACE_CQ_FINISH 4

/** A connection: close it after what is queued. A request: no more requests follow on its connection. */
#define PACE_CQ_CLOSE 8

/** A connection: close it at once. A request: it gets no answer, or no more of one, and its connection is closed at once. */
#define PACE_CQ_ABORT 16

/** A connection: only write and close; the entry stays out, and is completed by another completion. */
#define PACE_CQ_HOLD 32

/**
 * What handles the entry has failed. A connection is closed at once, with PACE_REASON_PANICKED. A request gets a 500,
 * or its answer breaks off; that is counted in pace_http_stats_t.panics. An attempt has failed. A message becomes a dead
 * letter.
 */
#define PACE_CQ_FAIL 64

/**
 * A request: its answer's body goes on; other completions of the same token write its next pieces, and the last one is
 * without this.
 */
#define PACE_CQ_MORE 128

/**
 * A request: the body is a short page about the status in the form that the request wants most, as
 * pace_response_error() has it. `bytes` do not matter.
 */
#define PACE_CQ_ERROR_PAGE 256

/** An attempt that failed: another one may help, but not before after_ns. */
#define PACE_CQ_AFTER 512

/** An attempt that failed: no other one will help. */
#define PACE_CQ_PERMANENT 1024

/** A message: it is brought once more, with the next attempt's number, after what is listed already. */
#define PACE_CQ_RETRY 2048

/** The length of a body that is not known: it is sent in chunks. */
#define PACE_CQ_UNKNOWN UINT64_MAX

/**
 * How an entry is completed. All zero but `token` says: it is dealt with. For a request that is no answer, and its peer
 * gets a 500.
 */
typedef struct pace_cq_completion_t {
    /** Which entry it is for: the token of that. */
    uint64_t token;
    /** What else is to be done: PACE_CQ_KEEP to PACE_CQ_RETRY, added up; 0 for nothing. */
    uint32_t flags;
    /**
     * A request: its status, 200 to 599; later pieces of a body have none. A descriptor or tick: PACE_FLOW_, as a
     * handler's answer. A message that failed: after how many attempts, of the host's own counting; 0: none.
     */
    uint32_t answer;
    /** A connection: what is written to it first. A request: the body, or its next piece. May be NULL if `size` is 0. */
    const void *bytes;
    /** How many bytes there are at `bytes`. */
    size_t size;
    /**
     * A request: lines of headers, each ended by CR LF: "Name: value". May be NULL if `headers_size` is 0. Later pieces
     * have none.
     */
    const void *headers;
    /** How many bytes the lines have. */
    size_t headers_size;
    /**
     * A connection: how many of the last bytes that the entry lent are not consumed; they come again, followed by more.
     * A request with PACE_CQ_MORE: the whole body's length, or PACE_CQ_UNKNOWN. Otherwise 0.
     */
    uint64_t length;
    /** An attempt with PACE_CQ_AFTER: nanoseconds. */
    uint64_t after_ns;
    /** An attempt or a message that failed: what went wrong, for the report: UTF-8, and copied. NULL: nothing is known. */
    const char *message;
    /** An attempt that failed: a number of your own other than 0, or 0 for PACE_EFAILED. Without PACE_CQ_FAIL 0. */
    int32_t error;
    /**
     * Out: what has become of a connection's or a body's bytes, PACE_WRITE_STATUS_. PACE_WRITE_STATUS_UNWANTED: the peer
     * gets no body; end it with a completion without PACE_CQ_MORE. Of an attempt: how its task stands now,
     * PACE_TASK_RETRYING or an end.
     */
    uint32_t status;
    /**
     * Out: what has become of it. PACE_ESTALE: nothing of this token is out, or the connection or task has ended.
     * PACE_EFULL: there was no room for the bytes, none of which was taken. PACE_EINVAL: flags that stand for nothing, or
     * more bytes than there are. After the last two of a connection, and of a body that goes on, the entry is still out;
     * otherwise it is completed. A request whose answer cannot be (PACE_EINVAL) gets a 500.
     */
    int32_t result;
    /** Not used: zero for now. */
    uint32_t reserved;
} pace_cq_completion_t;

/**
 * Completes `count` entries, in order, whatever threads have taken them. Each says in `result` what has become of it; the
 * status of the call is the first of them that is not PACE_OK.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_complete(pace_cq_t *cq,
                               pace_cq_completion_t *completions,
                               size_t count);

/**
 * Asks for the next part of a request's body that is read in parts (pace_cq_route): PACE_CQ_BODY, or its end, comes when it
 * is there. Nothing is read from the connection beyond what was asked for, so a peer is never faster than its host; one
 * that waits for "100 Continue" is told so by the first call. When the request was answered to the end, no part comes
 * any more.
 *
 * PACE_ESTALE: no such request is out, its answer is complete, or the end was told.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_read(pace_cq_t *cq,
                           uint64_t token);

/**
 * Has PACE_CQ_CLIENT_GONE brought once if the client of a request goes before it has its answer: it has reset or closed its
 * connection, or sends no more, unless its listener allows peers to be half open. If it has gone, that comes now. A
 * client that has only finished sending still gets an answer; of one that goes before the body of its request is whole
 * PACE_CQ_BODY_BROKEN tells instead.
 *
 * PACE_ESTALE: no such request is out, or its answer is complete.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_watch_client(pace_cq_t *cq,
                                   uint64_t token);

/**
 * Sets *is_gone to whether the client of a request has gone, as pace_response_is_client_gone().
 *
 * PACE_ESTALE: no such request is out, or its answer is complete.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_is_client_gone(pace_cq_t *cq, uint64_t token, bool *is_gone);

/**
 * Answers a request with 101, and gives its connection to a server that is attached to a completion queue
 * (pace_cq_server), for a protocol that the request has asked for: what happens to it comes there, with `wanted` as for
 * pace_cq_connect(), beginning with PACE_CONN_EVENT_OPENED. `headers` are lines as those of an answer; NULL if
 * `headers_size` is 0.
 *
 * The connection stays the HTTP server's: pace_http_server() is the server of the functions that take *conn, its limits
 * stay in force, and it is drained with that one. The request is completed, whatever this answers, unless that is
 * PACE_EINVAL for an argument that is NULL, `server` or `wanted`. `conn` may be NULL.
 *
 * PACE_EINVAL also if the request has asked for no other protocol, or for a header: then the peer gets a 500.
 * PACE_ESTALE: no such request is out, or its connection has ended.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_upgrade(pace_cq_t *cq,
                              uint64_t token,
                              const char *protocol,
                              const void *headers,
                              size_t headers_size,
                              const pace_server_t *server,
                              uint32_t wanted,
                              pace_conn_id_t *conn);

/**
 * As pace_conn_admit(), while an entry of a connection is out: begins a request of its connection, which counts as in
 * work until it was answered or freed, be it after the entry was completed.
 *
 * PACE_ESTALE: no such entry is out. PACE_EFULL: as many are in work as max_requests allows; the server's busy message
 * has been written instead.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_admit(pace_cq_t *cq,
                            uint64_t token,
                            pace_admission_t **admission);

/**
 * Whether an attempt that is out should be given up: its task was cancelled, its time is over, or the worker pool
 * stops.
 *
 * PACE_ESTALE: no attempt of this token is out.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_is_cancelled(pace_cq_t *cq,
                                   uint64_t token,
                                   bool *cancelled);

/* ------------------------------- Completion queues: what is attached */

/**
 * Starts a server, as pace_server_new() does, whose connections come as PACE_CQ_CONN with `tag`. `wanted` says with
 * PACE_WANTED_ bits which of their events besides PACE_CONN_EVENT_DATA; for the rest a connection does what it does
 * without hooks. `on_exhausted` must be NULL. When the server has ended and all its entries were taken, PACE_CQ_ENDED
 * comes.
 *
 * While an entry is out no more than one read is taken in from its connection, which is not idle, and a drain waits for
 * it.
 *
 * As pace_server_new(); PACE_EINVAL for `wanted`.
 *
 * Threads: any. In handlers: yes.
 */
pace_status_t pace_cq_server(pace_cq_t *cq,
                             const pace_server_options_t *options,
                             uint32_t wanted,
                             uint64_t tag,
                             pace_server_t **server);

/**
 * As pace_server_connect(), on a server that is attached to a completion queue: what happens to the connection comes
 * there, with the server's tag and `wanted` of its own. `conn` may be NULL.
 *
 * As there; PACE_EINVAL for `wanted`, and for a server that is attached to no queue.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_connect(const pace_server_t *server,
                              const char *address,
                              uint32_t wanted,
                              pace_conn_id_t *conn);

/**
 * Opens a datagram socket, as pace_udp_new() does, whose datagrams come as PACE_CQ_DATAGRAM with `tag`. Of what nobody
 * has taken up to `max_waiting` bytes are kept, 128 for each datagram included: 1024 to 2^40. Datagrams beyond that are
 * dropped, and counted (pace_udp_stats_t). When it is closed and all was taken, PACE_CQ_ENDED comes.
 *
 * As pace_udp_new(); PACE_EINVAL for `max_waiting`.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_udp(pace_cq_t *cq,
                          const pace_udp_options_t *options,
                          uint64_t max_waiting,
                          uint64_t tag,
                          pace_udp_t **udp);

/**
 * As pace_http_route(), and requests come as PACE_CQ_REQUEST with `tag`. With `in_parts` a request comes as soon as its
 * head is there, without its body, which pace_cq_read() asks for part by part. All that is attached of one HTTP server
 * goes to one queue. When the server has ended and all was taken, PACE_CQ_ENDED comes once, with the tag that was
 * attached first.
 *
 * PACE_EINVAL as for pace_http_route(), and for a second queue.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_route(pace_cq_t *cq,
                            const pace_http_t *http,
                            const char *method,
                            const char *pattern,
                            bool in_parts,
                            uint64_t tag);

/**
 * As pace_http_fallback(), and requests that no route takes come as PACE_CQ_REQUEST with `tag`. Their block says which
 * status they would get; PACE_CQ_ERROR_PAGE with that status answers as the server does.
 *
 * PACE_EINVAL as there, and as for pace_cq_route().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_fallback(pace_cq_t *cq,
                               const pace_http_t *http,
                               uint64_t tag);

/**
 * As pace_http_on_end(), and each end comes as PACE_CQ_REQUEST_ENDED with `tag`.
 *
 * PACE_EINVAL as there, and as for pace_cq_route().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_http_ends(pace_cq_t *cq, const pace_http_t *http, uint64_t tag);

/**
 * Attempts of tasks that pace_workers_submit_tagged() submits come as PACE_CQ_ATTEMPT with the tags of their tasks, in the
 * order of lanes. When the worker pool was shut down and all was taken, PACE_CQ_ENDED comes with `tag`. An attempt that is out
 * then is completed as ever; other ends that come about later are not brought.
 *
 * PACE_EINVAL if they go to another queue already.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_workers(pace_cq_t *cq,
                              pace_workers_t *workers,
                              uint64_t tag);

/**
 * The end of a task of a worker pool comes as PACE_CQ_TASK_ENDED with `tag`, at once if it has ended.
 *
 * PACE_ESTALE; PACE_EBUSY while another thread waits for it.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_task(pace_cq_t *cq,
                           pace_workers_t *workers,
                           pace_task_t task,
                           uint64_t tag);

/**
 * Messages of a mailbox, also of that of a replay, come as PACE_CQ_MESSAGE with `tag`. They count as delivered when they are brought, and as dead
 * letters when they are completed with PACE_CQ_FAIL. Payloads of up to PACE_CQ_TOGETHER bytes lie one after the other.
 * A lease of the subscription counts whoever waits at the queue as one that takes messages. When the subscription has ended and all was taken, PACE_CQ_ENDED comes.
 *
 * PACE_EINVAL if it is attached already, or its descriptor was asked for.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_mailbox(pace_cq_t *cq,
                              pace_mailbox_t *mailbox,
                              uint64_t tag);

/**
 * As pace_key_request_async(), and what becomes of the request comes as PACE_CQ_REPLY with `tag`, once. Whoever replies
 * puts it there, so it does not wait for a thread of the pool. `timeout_ns` counts from now, and its end is told by the
 * pool; PACE_FOREVER: without an end. `asked` may be NULL; it is for pace_hub_give_up().
 *
 * If this is refused nothing will come: PACE_ENORESPONDERS, PACE_EFULL (also when all max_handles of the pool are in
 * use), PACE_EINVAL, PACE_EVERSION, PACE_ESHUTDOWN; PACE_EDEADLOCK if it may block and this is a handler.
 *
 * Threads: any. In handlers: yes, unless it may block. It waits outside if it may.
 */
pace_status_t pace_cq_request(pace_cq_t *cq,
                              const pace_key_t *key,
                              const pace_publication_t *publication,
                              const void *bytes,
                              size_t size,
                              uint64_t timeout_ns,
                              uint64_t tag,
                              pace_asked_t *asked);

/**
 * Records of a log come as PACE_CQ_RECORD with `tag`. Its cq_capacity says how many may wait. When the log is closed
 * and all was taken, PACE_CQ_ENDED comes.
 *
 * PACE_EINVAL if cq_capacity is 0, or it is attached already.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_cq_log(pace_cq_t *cq,
                          pace_log_t *log,
                          uint64_t tag);

/**
 * As pace_signals_new(), and each signal comes as PACE_CQ_SIGNAL with `tag`.
 *
 * As there.
 *
 * Threads: any. In handlers: as there.
 */
pace_status_t pace_cq_signals(pace_cq_t *cq,
                              const int32_t *numbers,
                              size_t count,
                              uint64_t tag,
                              pace_signals_t **watch);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_CQ_H */
