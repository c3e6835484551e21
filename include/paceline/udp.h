/* paceline/udp.h: datagram sockets.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_UDP_H
#define PACELINE_UDP_H

#include "net.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------- Datagram sockets */

/**
 * A UDP socket on a pool. Nothing is queued on the way out: what the kernel has no room for is
 * PACE_EFULL to whoever sent it.
 */
typedef struct pace_udp_t pace_udp_t;

/** An IP address and a port. */
typedef struct pace_ip_t {
    /** The version of the protocol: 4 or 6. */
    uint8_t version;
    /** Room for later versions; zero. */
    uint8_t reserved;
    /** The number of the port, in the byte order of the host. */
    uint16_t port;
    /** The interface's index, for IPv6 addresses of a link; else 0. */
    uint32_t scope;
    /** In network order; 4 bytes of them for IPv4, and zeros. */
    uint8_t bytes[16];
} pace_ip_t;

/** A datagram that has arrived, or is to be sent. */
typedef struct pace_datagram_t {
    /** The bytes of the datagram; of one that has arrived, up to max_datagram. */
    const void *bytes;
    /** The number of bytes at `bytes`. */
    size_t size;
    /** The length of the datagram as it was sent; more than `size` if its end is lost. Not used for sending. */
    size_t length;
    /**
     * Who has sent it, or whom it is for. An IPv4 address looks like ::ffff:0:0/96 on a socket that
     * takes both.
     */
    pace_ip_t peer;
} pace_datagram_t;

/**
 * Datagrams have arrived, at least one; they are gone when this returns. `udp` is lent: to answer by
 * it, and not to be freed.
 */
typedef void (*pace_udp_data_fn)(void *user_data,
                                 pace_udp_t *udp,
                                 const pace_datagram_t *datagrams,
                                 size_t count);

/**
 * An error came instead: on a connected socket that nobody listens at its peer, say. The socket goes
 * on. `os_error` is as for pace_conn_error_fn.
 */
typedef void (*pace_udp_error_fn)(void *user_data, pace_udp_t *udp, int32_t os_error);

/** The end, exactly once, and the last call. `reason` is a PACE_REASON_ number. */
typedef void (*pace_udp_close_fn)(void *user_data, pace_udp_t *udp, uint32_t reason);

/**
 * What a datagram socket does. Its hooks never run on two threads at once; they run on threads of the
 * pool, and should not block. To receive on several threads, open several sockets with reuse_port. All
 * but `data` may be NULL. Call pace_udp_hooks_init() first.
 */
typedef struct pace_udp_hooks_t {
    /** The size of the struct in bytes, as pace_udp_hooks_init() sets it. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** Called with datagrams that have arrived. It must not be NULL. */
    pace_udp_data_fn data;
    /** Called when an error has come instead of a datagram. NULL: no call. */
    pace_udp_error_fn error;
    /** Called once when the socket is closed, with the reason. NULL: no call. */
    pace_udp_close_fn close;
    /** The first argument of each call of the hooks. */
    void *user_data;
    /** Runs once, after `close`. NULL: nothing. */
    pace_drop_fn drop;
} pace_udp_hooks_t;

/**
 * Settings of a datagram socket. Call pace_udp_options_init() first, and set at least one of fd, bind
 * and connect.
 */
typedef struct pace_udp_options_t {
    /** The size of the struct in bytes, as pace_udp_options_init() sets it. */
    uint32_t struct_size;
    /**
     * A socket for datagrams that is bound already. It stays the caller's, who may close it at once.
     * Default −1: none.
     */
    int32_t fd;
    /**
     * Receives here: "127.0.0.1:80", "[::1]:80" or "*:80". Port 0 is a free port, which
     * pace_udp_address() tells. A socket that sends to a multicast group does so on the interface
     * whose IPv4 address it is bound to. NULL: anywhere.
     */
    const char *bind;
    /** Sends to this peer, and receives from nobody else. NULL: from everybody. */
    const char *connect;
    /** Datagrams received in one system call, 1 to 64. Default 32. */
    uint32_t batch;
    /**
     * Bytes received of a datagram, 1 to 65535; what is longer is truncated, and says so. The socket
     * has room for a batch of such, which costs memory where datagrams have been. Default 65535.
     */
    uint32_t max_datagram;
    /**
     * Bytes that the kernel buffers for sending, up to 2^30 (it doubles them). Default 0: the
     * system's.
     */
    uint64_t send_buffer;
    /** The same for receiving; what does not fit is lost. */
    uint64_t receive_buffer;
    /** Hops that what it sends to a group may take, 0 to 255. Default 1: the own network. */
    uint32_t multicast_ttl;
    /** An IPv6 socket takes no IPv4. Default: "[::]" takes both. */
    bool v6_only;
    /**
     * Several sockets may be bound to the same port; the kernel deals datagrams out by their source.
     * Default: no.
     */
    bool reuse_port;
    /** May send to broadcast addresses. Default: no. */
    bool broadcast;
    /** What it sends to a group comes back to members on this host. Default: yes. */
    bool multicast_loop;
} pace_udp_options_t;

/** What a socket has done so far. The counts add up exactly while no datagram is being handled. Set struct_size to sizeof the struct before the call. */
typedef struct pace_udp_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** Datagrams that the hook `data` was given. */
    uint64_t received;
    /** The bytes of `received`, with those that were cut off. */
    uint64_t received_bytes;
    /** Datagrams whose end was cut off. */
    uint64_t truncated;
    /** Errors that came instead of datagrams. */
    uint64_t errors;
    /** Datagrams that the kernel has taken. */
    uint64_t sent;
    /** The bytes of the datagrams that the kernel has taken. */
    uint64_t sent_bytes;
    /** Calls of which the kernel took nothing, since it had no room. */
    uint64_t refused;
    /** Calls of which the kernel took nothing, for another reason. */
    uint64_t failed;
    /**
     * Datagrams that were received and dropped, since more than `max_waiting` bytes of them waited for a completion
     * queue (pace_cq_udp()). 0 for a socket with hooks.
     */
    uint64_t dropped;
} pace_udp_stats_t;

/**
 * Fills hooks with NULL: pace_udp_hooks_init(&hooks, sizeof hooks).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_hooks_init(pace_udp_hooks_t *hooks, size_t size);

/**
 * Fills options with the defaults: pace_udp_options_init(&options, sizeof options).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_options_init(pace_udp_options_t *options, size_t size);

/**
 * Reads an address with a port, "127.0.0.1:80", "[::1]:80" or "*:80".
 *
 * PACE_EINVAL for text that is none.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ip_read(const char *text, pace_ip_t *ip);

/**
 * The opposite: text of an address, in `size` bytes at `text`, with a NUL. PACE_ADDRESS_SIZE is enough.
 *
 * PACE_EINVAL if `size` is not enough, or the version is not 4 or 6.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_ip_text(const pace_ip_t *ip,
                           char *text,
                           size_t size);

/**
 * Opens a datagram socket. `options` and all that they point to are copied. If it fails, nothing of
 * `hooks` has moved; unless it fails after the hook `close` was called, because the pool has shut
 * down at this moment: then `drop` has run.
 *
 * PACE_EINVAL names the setting, its value and its bounds; PACE_EOS names the address that could not be
 * bound or connected to, and the reason; PACE_EFULL when all max_handles are in use; PACE_ESHUTDOWN;
 * PACE_EVERSION.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_new(const pace_pool_t *pool,
                           const pace_udp_options_t *options,
                           const pace_udp_hooks_t *hooks,
                           pace_udp_t **udp);

/**
 * Where it receives, as text, with the port that it got: in `size` bytes at `text`, with a NUL.
 * PACE_ADDRESS_SIZE is enough.
 *
 * PACE_EINVAL if `size` is not enough.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_address(const pace_udp_t *udp, char *text, size_t size);

/**
 * Sends a datagram to the peer that the socket is connected to, without waiting and without a queue.
 *
 * PACE_EFULL: the kernel has no room, and the datagram is not sent. PACE_EOS names the address, and
 * the reason, which on a connected socket may be an earlier datagram's. PACE_EINVAL if it is not
 * connected; PACE_ESTALE if it is closed.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_send(const pace_udp_t *udp,
                            const void *bytes,
                            size_t size);

/**
 * Sends a datagram to a peer. Otherwise as pace_udp_send().
 *
 * PACE_EFULL, PACE_EOS, PACE_ESTALE as there; PACE_EINVAL if the address's version is not 4 or 6.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_send_to(const pace_udp_t *udp,
                               const void *bytes,
                               size_t size,
                               const pace_ip_t *to);

/**
 * Sends datagrams to their peers in order, up to 64 in one system call. *sent is how many the kernel
 * has taken; for the reason why it did not take the next one, try that.
 *
 * PACE_EFULL, PACE_EOS, PACE_ESTALE as for pace_udp_send(), if it did not take the first; PACE_EINVAL.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_udp_send_batch(const pace_udp_t *udp,
                                  const pace_datagram_t *datagrams,
                                  size_t count,
                                  size_t *sent);

/**
 * Receives what is sent to this group, "239.1.2.3" or "ff02::1", on the interface of this index; 0:
 * the system's choice.
 *
 * PACE_EOS names the group, and the reason; PACE_EINVAL for text that is no address; PACE_ESTALE if the
 * socket is closed.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_join_multicast(const pace_udp_t *udp,
                                      const char *group,
                                      uint32_t interface);

/**
 * The opposite of pace_udp_join_multicast().
 *
 * PACE_EOS, PACE_EINVAL, PACE_ESTALE as there.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_leave_multicast(const pace_udp_t *udp,
                                       const char *group,
                                       uint32_t interface);

/**
 * Closes: from here on nothing is sent, and what has arrived is dropped. The hook `close` follows on a
 * thread of the pool. A hook that is running is not interrupted. The socket is to be freed still.
 *
 * PACE_ESTALE if it is closed already.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_close(const pace_udp_t *udp);

/**
 * Whether it is not closed.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_is_open(const pace_udp_t *udp, bool *is_open);

/**
 * Waits until it has ended: its hook `close` has returned, and its port is free.
 *
 * PACE_EDEADLOCK on a thread of its pool.
 *
 * Threads: any but the pool's. In handlers: no.
 */
pace_status_t pace_udp_wait(const pace_udp_t *udp);

/**
 * Handles what has arrived, and closes. What is not handled after `time_ns` is dropped. *drained says
 * whether everything was handled; `drained` may be NULL.
 *
 * It returns when the socket has ended, or 1 s after `time_ns` at the latest. Inside a handler of the
 * pool it is only a request, and returns at once with false.
 *
 * Threads: any. In handlers: yes, as a request.
 */
pace_status_t pace_udp_drain(const pace_udp_t *udp,
                             uint64_t time_ns,
                             bool *drained);

/**
 * What it has counted; the counters add up at rest.
 *
 * PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_udp_stats(const pace_udp_t *udp, pace_udp_stats_t *stats);

/**
 * Closes a socket if that has not been done, and frees it. It waits until its hook `close` has returned and `drop` has
 * run, unless pace_udp_close() was called before. NULL is a no-op. In a forked child it does nothing.
 *
 * Threads: any, as long as no other uses the socket any more. In handlers, and on threads of the pool: yes, it never
 * waits there.
 */
void pace_udp_free(pace_udp_t *udp);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_UDP_H */
