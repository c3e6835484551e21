/* paceline/net.h: stream servers and their connections.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_NET_H
#define PACELINE_NET_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------ Connections: hooks, and what they may call */

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
    /** The size of the struct in bytes, as pace_conn_hooks_init() sets it. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
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
    /** Called when the socket has failed, before `close`. NULL: only `close` is called. */
    pace_conn_error_fn error;
    /** Called once at the end of a connection, with the reason. NULL: no call. */
    pace_conn_close_fn close;
    /** What the hooks of a connection are given until pace_conn_set_user_data(). */
    void *user_data;
    /**
     * Runs once with `user_data`, after the last call of these hooks: when the server was freed and
     * its connections have ended, or the connection that was made with them. NULL: nothing.
     */
    pace_drop_fn drop;
} pace_conn_hooks_t;

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
pace_status_t pace_conn_write(const pace_conn_t *conn,
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
pace_status_t pace_conn_write_vectored(const pace_conn_t *conn,
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
pace_status_t pace_conn_write_owned(const pace_conn_t *conn,
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
pace_status_t pace_conn_write_tracked(const pace_conn_t *conn,
                                      const void *bytes,
                                      size_t size,
                                      uint64_t token,
                                      uint32_t *wrote);

/**
 * Sends what was gathered now, before a long computation for example.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_flush(const pace_conn_t *conn);

/**
 * After what is queued, tells the peer that no more is sent. Reading goes on.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_shutdown_write(const pace_conn_t *conn);

/**
 * Closes after what is queued has been sent. Nothing more is read, and `data` is not called any more.
 * The peer is told the end, and may take `linger` to answer with its own.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_close(const pace_conn_t *conn);

/**
 * Closes at once. What is queued is lost; a TCP peer sees a reset.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_abort(const pace_conn_t *conn);

/**
 * Reads no more, and calls `data` no more, before a resume. What the peer has sent is not lost meanwhile,
 * and that it has ended, or was reset, is seen behind that, or by a write that fails. A resume that comes
 * while the hook runs ends this pause, whichever of the two comes first.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_pause(const pace_conn_t *conn);

/**
 * Ends a pause, when the hook has returned. What was not consumed is shown again, and nothing is read before
 * that. A resume that comes before `data` is called does not end a pause that `data` makes.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_resume(const pace_conn_t *conn);

/**
 * Has the hook `timeout` called with PACE_TIMEOUT_DEADLINE when this time is over, in place of what was
 * set before; PACE_FOREVER: not at all. A connection has one deadline, which is unset when it comes. To
 * put it off costs no operation of a timer.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_set_deadline(const pace_conn_t *conn,
                                     uint64_t time_ns);

/**
 * Says that this hook has failed. When it returns, the connection is closed with
 * PACE_REASON_PANICKED, and the failure counted. For languages whose exceptions must not leave a hook.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_fail(const pace_conn_t *conn);

/**
 * What the hooks of this connection are given from the next call on. The one before is still the
 * caller's; `drop` of the hooks runs for the one that they came with. Free it in the hook `close`.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_set_user_data(const pace_conn_t *conn, void *user_data);

/**
 * Begins a request that is answered later, by any thread. It counts as in work until it was answered or freed.
 * Meanwhile the idle timeout does not run, and neither a drain nor a peer that has finished closes the connection.
 *
 * PACE_EFULL: as many are in work as max_requests allows; the server's busy message has been written
 * instead.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_admit(const pace_conn_t *conn,
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
pace_status_t pace_conn_id(const pace_conn_t *conn, pace_conn_id_t *id);

/**
 * The other end, as text that pace_listener_options_t.address could be: in `size` bytes at `text`,
 * with a NUL. PACE_ADDRESS_SIZE is enough for every address.
 *
 * PACE_EINVAL if `size` is not enough.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_peer(const pace_conn_t *conn, char *text, size_t size);

/**
 * This end. Otherwise as pace_conn_peer().
 *
 * PACE_EINVAL as there; PACE_ESTALE in the hook `close`.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_local(const pace_conn_t *conn, char *text, size_t size);

/**
 * Whether it was made by pace_server_connect().
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_is_outgoing(const pace_conn_t *conn, bool *is_outgoing);

/**
 * Whether its server drains.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_is_draining(const pace_conn_t *conn, bool *is_draining);

/**
 * How many bytes wait to be sent.
 *
 * Threads: the hook's. In handlers: in hooks of this connection; it never waits.
 */
pace_status_t pace_conn_queued(const pace_conn_t *conn, size_t *queued);

/* --------------------------- Filters: between a socket and its hooks */

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
    /** The size of the struct in bytes, as pace_filter_hooks_init() sets it. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** Makes the filter of a connection, before the hook `open`. It must not be NULL. */
    pace_filter_make_fn make;
    /** Called with bytes that have come from the peer, to be translated. It must not be NULL. */
    pace_filter_received_fn received;
    /** Called with bytes that a hook or another thread has written, to be translated. It must not be NULL. */
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

/* ----------- Listeners: where, and the settings of their connections */

/** A place to listen at, and the settings of its connections. Call pace_listener_options_init() first. */
typedef struct pace_listener_options_t {
    /** The size of the struct in bytes, as pace_listener_options_init() sets it. */
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
    /**
     * The high mark of a connection's output, in bytes, at which its hooks should stop writing. Default
     * 262144.
     */
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
    /**
     * The size of the kernel's buffer for receiving (SO_RCVBUF), in bytes, up to 2^30 (it doubles them). 0
     * (default): the kernel chooses.
     */
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
    /** Room for later versions; zero. */
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

/**
 * Changes options to what the section `server` of a file of settings says, as pace_pool_config_load() does for
 * `pool`. They are those of a
 * listener, of a server of streams or of an HTTP server.
 *
 * As there.
 *
 * Threads: any. In handlers: yes; it reads a file.
 */
pace_status_t pace_listener_options_load(pace_listener_options_t *options,
                                         const char *path,
                                         bool environment);

/* ------------------------------ Sockets that a supervisor has opened */

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

/* -------------------------------- Servers: listeners and connections */

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
    /** The size of the struct in bytes, as pace_server_options_init() sets it. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
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
    /** Room for later versions; zero. */
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
    /** Room for later versions; zero. */
    uint8_t reserved[3];
    /** Connections that came and were let in. */
    uint64_t accepted;
    /** Connections that were begun by pace_server_connect(). */
    uint64_t connected;
    /** Connections beyond the maximum; not counted as accepted. */
    uint64_t turned_away;
    /** Connections whose sockets are open. */
    uint64_t open;
    /** Connections that have ended with PACE_REASON_PEER: the peer had finished, and everything was sent. */
    uint64_t closed_peer;
    /** Connections that have ended with PACE_REASON_LOCAL: closed here, and everything was sent. */
    uint64_t closed_local;
    /** Connections that have ended with PACE_REASON_ABORTED: aborted here, what was queued is lost. */
    uint64_t closed_aborted;
    /** Connections that have ended with PACE_REASON_REFUSED, by the hook `open`. */
    uint64_t closed_refused;
    /** Connections that have ended with PACE_REASON_TIMED_OUT: one of their times was over. */
    uint64_t closed_timed_out;
    /** Connections that have ended with PACE_REASON_FAILED: their socket has failed. */
    uint64_t closed_failed;
    /** Connections that have ended with PACE_REASON_UNCONSUMED: more than max_unconsumed bytes waited. */
    uint64_t closed_unconsumed;
    /** Connections that have ended with PACE_REASON_PANICKED: a hook has failed. */
    uint64_t closed_panicked;
    /** Connections that have ended with PACE_REASON_DRAINED: the server drained, and everything was sent. */
    uint64_t closed_drained;
    /** Connections that have ended with PACE_REASON_CUT_OFF: the time of the drain was over. */
    uint64_t closed_cut_off;
    /** Connections that have ended with PACE_REASON_POOL_ENDED: the pool has shut down, or had no room. */
    uint64_t closed_pool_ended;
    /** Hooks `close` that have failed, after whatever reason. */
    uint64_t panics_in_close;
    /** Times that accepting paused for want of descriptors or memory, or since the socket accepted no more. */
    uint64_t exhausted;
    /** Requests that were admitted, by pace_conn_admit() or as requests of HTTP. */
    uint64_t requests;
    /** Admitted requests that were answered. */
    uint64_t answered;
    /** Admitted requests that were dropped, or whose connection had ended. */
    uint64_t requests_aborted;
    /** Requests beyond the maximum, which were not admitted. */
    uint64_t busy;
    /** Admitted requests that have not ended yet. */
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
pace_status_t pace_server_new(const pace_pool_t *pool,
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
pace_status_t pace_server_address(const pace_server_t *server,
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
pace_status_t pace_server_connect(const pace_server_t *server,
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
pace_status_t pace_server_wait(const pace_server_t *server);

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
pace_status_t pace_server_drain(const pace_server_t *server,
                                uint64_t time_ns,
                                pace_drain_report_t *report);

/**
 * What it has counted; the counters add up at rest.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_stats(const pace_server_t *server,
                                pace_server_stats_t *stats);

/**
 * The counters of one listener: `index` as for pace_server_address(). Nothing is connected there.
 *
 * PACE_EINVAL for another `index`; PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_listener_stats(const pace_server_t *server,
                                         size_t index,
                                         pace_server_stats_t *stats);

/**
 * Stops at once: listeners end, and connections are cut off. It waits for nothing, and the server is
 * still there. pace_server_drain() first for an orderly end.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_cut_off(const pace_server_t *server);

/**
 * Stops as pace_server_free() does: listeners end, connections are cut off, and it waits for their hooks. The server is
 * still there. pace_server_drain() first for an orderly end.
 *
 * Threads: any. In handlers, and on threads of the pool: yes, it never waits there.
 */
pace_status_t pace_server_stop(const pace_server_t *server);

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

/* ------------------------------ Connections, by name from any thread */

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
pace_status_t pace_server_conn_write(const pace_server_t *server,
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
pace_status_t pace_server_conn_write_vectored(const pace_server_t *server,
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
pace_status_t pace_server_conn_write_owned(const pace_server_t *server,
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
pace_status_t pace_server_conn_write_tracked(const pace_server_t *server,
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
pace_status_t pace_server_conn_shutdown_write(const pace_server_t *server, pace_conn_id_t conn);

/**
 * As pace_conn_close().
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_close(const pace_server_t *server, pace_conn_id_t conn);

/**
 * As pace_conn_abort(). The hook `close` follows on a thread of the pool.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_abort(const pace_server_t *server, pace_conn_id_t conn);

/**
 * As pace_conn_pause(), but a run that is on may still give `data` bytes once, and of the calls of this and of
 * pace_server_conn_resume(), by all threads, the last one counts: whoever hands something over to a thread
 * that resumes pauses before.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_pause(const pace_server_t *server,
                                     pace_conn_id_t conn);

/**
 * Ends a pause, also one that a hook, which runs now, is about to make. What was not consumed is shown again,
 * and nothing is read before that.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_resume(const pace_server_t *server,
                                      pace_conn_id_t conn);

/**
 * Has the hook `notified` of a connection called, soon. Several calls may become one; none is lost,
 * unless the connection ends before.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_notify(const pace_server_t *server, pace_conn_id_t conn);

/**
 * Whether a connection has not ended. A name of which nothing is known gives false.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_is_open(const pace_server_t *server,
                                       pace_conn_id_t conn,
                                       bool *is_open);

/**
 * How many bytes wait to be sent.
 *
 * PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_queued(const pace_server_t *server,
                                      pace_conn_id_t conn,
                                      size_t *queued);

/**
 * As pace_conn_peer().
 *
 * PACE_EINVAL as there, PACE_ESTALE.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_server_conn_peer(const pace_server_t *server,
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
pace_status_t pace_server_conn_local(const pace_server_t *server,
                                     pace_conn_id_t conn,
                                     char *text,
                                     size_t size);

/* --------------------------------- Connections: where a message ends */

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

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_NET_H */
