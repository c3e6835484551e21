/* paceline/http.h: HTTP/1.1 servers.
 *
 * Generated from src/ffi, where each section is a file; change it there. paceline.h says what holds for all
 * functions.
 */
#ifndef PACELINE_HTTP_H
#define PACELINE_HTTP_H

#include "net.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------- HTTP: what is asked */

/** A request, for as long as its handler runs: good for that call only, and on that thread. */
typedef struct pace_request_t pace_request_t;

/**
 * As it was sent: GET. Methods distinguish upper and lower case.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_method(const pace_request_t *request, pace_text_t *method);

/**
 * As it was sent: /hello/you?loud=1, or http://host/hello/you.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_target(const pace_request_t *request, pace_text_t *target);

/**
 * The target's path, which routes are matched with, as it was sent: percent-encoded, and with
 * whatever dots it has.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_path(const pace_request_t *request, pace_text_t *path);

/**
 * What follows the first question mark of the target. query->text is NULL if there is none.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_query(const pace_request_t *request, pace_text_t *query);

/**
 * 0 or 1, of HTTP/1. A later minor version is served as 1 (RFC 9110, 2.5), and told as that.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_version(const pace_request_t *request, uint32_t *version);

/**
 * The value of the first header of this name, upper or lower case. value->text is NULL if there is
 * none, or it is not UTF-8.
 *
 * PACE_EINVAL for a name that is not UTF-8.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_header(const pace_request_t *request,
                                  const char *name,
                                  pace_text_t *value);

/**
 * Copies up to `capacity` headers, in order, with the white space around their values removed. *count
 * is how many there are, which may be more. `headers` may be NULL if `capacity` is 0.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_headers(const pace_request_t *request,
                                   pace_field_t *headers,
                                   size_t capacity,
                                   size_t *count);

/**
 * The part of the path that stands for this name in the route's pattern, percent-decoded. A slash that
 * was encoded stays in its part, since routes are matched with the path as it was sent, which is
 * pace_request_path(). A request with a part that cannot be decoded (to UTF-8 without NUL) has no
 * handler: it is answered with 400. value->text is NULL if there is none.
 *
 * PACE_EINVAL for a name that is not UTF-8.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_param(const pace_request_t *request,
                                 const char *name,
                                 pace_text_t *value);

/**
 * All such parts, in order. Otherwise as pace_request_headers().
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_params(const pace_request_t *request,
                                  pace_field_t *params,
                                  size_t capacity,
                                  size_t *count);

/**
 * The pattern of the route that it came by, as pace_http_route() was told: "/hello/{name}". pattern->text is NULL if
 * no route has taken it.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_pattern(const pace_request_t *request,
                                   pace_text_t *pattern);

/**
 * The names and values of a query (pace_request_query()), or of a form's body, decoded as
 * application/x-www-form-urlencoded: "+" is a space, and what is percent-encoded is decoded. A pair without "="
 * has an empty value. Values are bytes; UTF-8 as a rule, and there may be NUL in them.
 *
 * `room` has `size` bytes, as the query has: the decoded texts lie there. Copies up to `capacity` pairs, in order;
 * *count is how many there are, which may be more. `pairs` may be NULL if `capacity` is 0, and then `room`, too.
 *
 * PACE_EINVAL if `query` is NULL and `size` is not 0.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_query_pairs(const char *query,
                               size_t size,
                               char *room,
                               pace_field_t *pairs,
                               size_t capacity,
                               size_t *count);

/**
 * The whole body. Empty where it is streamed.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_body(const pace_request_t *request, pace_piece_t *body);

/**
 * The protocol that it asks to upgrade to. protocol->text is NULL if it asks for none.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_upgrade(const pace_request_t *request, pace_text_t *protocol);

/**
 * The name of its connection.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_conn(const pace_request_t *request, pace_conn_id_t *conn);

/**
 * The other end, as pace_conn_peer().
 *
 * PACE_EINVAL as there.
 *
 * Threads: the handler's. In handlers: in this request's; it never waits.
 */
pace_status_t pace_request_peer(const pace_request_t *request, char *text, size_t size);

/* -------------------------------------------- HTTP: what is answered */

/** As the length of a body that is streamed: it is not known. */
#define PACE_LENGTH_UNKNOWN UINT64_MAX

/**
 * The body of an answer, written piece by piece by whoever holds it. It belongs to one thread at a
 * time.
 */
typedef struct pace_body_t pace_body_t;

/**
 * The answer to a request. It belongs to whoever holds it: the handler, or any thread later; until it
 * is completed the connection's next request waits. pace_response_send(), pace_response_send_as(),
 * pace_response_text(), pace_response_error(), pace_next_run(), pace_response_stream(), pace_response_upgrade(), pace_response_fail() and pace_response_free() complete it:
 * it is gone then, whatever they answer, unless that is PACE_EFORKED or PACE_EINVAL for an argument.
 */
typedef struct pace_response_t pace_response_t;

/** Called, in a run of the connection, each time that a body's output has fallen to its low mark. */
typedef void (*pace_body_writable_fn)(void *user_data);

/**
 * Writes the next part of a body. Answers PACE_FLOW_AGAIN to be called again, or PACE_FLOW_DONE when
 * the body is finished; anything else resets the connection. The body is only lent.
 */
typedef int32_t (*pace_body_produce_fn)(void *user_data, pace_body_t *body);

/**
 * The status, 200 to 599; without this it is 200. Another one is an error of what completes the
 * response.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_response_status(pace_response_t *response, uint32_t status);

/**
 * Adds a header. Content-Length, Transfer-Encoding, Connection and Date are the library's
 * own. One that is not allowed is an error of what completes the response.
 *
 * PACE_EINVAL if a text is NULL, or the name is not UTF-8.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_response_header(pace_response_t *response, const char *name, const char *value);

/**
 * No more requests follow on this connection.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_response_close(pace_response_t *response);

/**
 * Completes the response with this body.
 *
 * PACE_EINVAL names the status or header that was not allowed, and PACE_EFULL tells of a body that is
 * larger than a connection's output may be (stream it): then the peer gets a 500. PACE_ESTALE: the
 * connection has ended, or the library has answered already, as it does when a body does not come.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_response_send(pace_response_t *response,
                                 const void *bytes,
                                 size_t size);

/**
 * As pace_response_send(), of a text with Content-Type: text/plain; charset=utf-8 unless it has
 * another.
 *
 * PACE_EINVAL (also for what is not UTF-8), PACE_EFULL, PACE_ESTALE as there.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_response_text(pace_response_t *response, const char *text);

/**
 * As pace_response_send(), with this Content-Type unless it has another: a media type, as "application/json".
 *
 * PACE_EINVAL (also if the type is NULL or not UTF-8), PACE_EFULL, PACE_ESTALE as there.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_response_send_as(pace_response_t *response,
                                    const char *content_type,
                                    const void *bytes,
                                    size_t size);

/**
 * Completes the response with a short page about its status, as the server's own errors have it, in the form that
 * the request's Accept wants most: text ("404 Not Found"), JSON ({"title":"Not Found","status":404}, as RFC 9457
 * has it) or HTML. Content-Type is set accordingly.
 *
 * PACE_EINVAL, PACE_EFULL, PACE_ESTALE as for pace_response_send().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_response_error(pace_response_t *response);

/**
 * Sends the head, and gives what the body is written to: exactly `length` bytes, or chunks with
 * PACE_LENGTH_UNKNOWN. (To a peer that speaks HTTP/1.0 the end of the connection is the end of such a
 * body.) A peer that waits for "100 Continue" before it sends its body is told so first; to answer
 * without that body there is pace_response_send().
 *
 * PACE_EINVAL, PACE_ESTALE as for pace_response_send().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_response_stream(pace_response_t *response,
                                   uint64_t length,
                                   pace_body_t **body);

/**
 * Answers with 101, and gives the connection to `hooks`, for a protocol that the request offers
 * (pace_request_upgrade()), in upper or lower case. Its `open` comes next. The server's limits for connections stay in force;
 * the time between requests is now its idle time. If it fails, nothing of `hooks` has moved.
 *
 * PACE_EINVAL (also if the request does not offer the protocol: its client has got a 426 with Upgrade then), PACE_ESTALE as for
 * pace_response_send(); PACE_EVERSION for hooks.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_response_upgrade(pace_response_t *response,
                                    const char *protocol,
                                    const pace_conn_hooks_t *hooks);

/**
 * Frees a response that nobody will complete: the peer gets a 500. NULL is a no-op. In a forked child
 * it does nothing.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_response_free(pace_response_t *response);

/**
 * Sets *is_gone to whether the client of the request has gone: it has reset or closed its connection, or sends no more and
 * its listener does not allow peers to be half open. Whoever works for long asks from time to time; it is one call of
 * the kernel. A client that has only finished sending still gets an answer.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_response_is_client_gone(pace_response_t *response,
                                           bool *is_gone);

/**
 * What was to answer has failed: the peer gets a 500, the connection closes, and the failure is counted in
 * pace_http_stats_t.panics. The response is gone, as by pace_response_free().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_response_fail(pace_response_t *response);

/**
 * Says that the handler, the hook of a body or the producer that runs on this thread has failed. When it
 * returns, the connection is closed, after a 500 if it has not begun to answer, and the failure is
 * counted in pace_http_stats_t.panics. `reason` is for the log; what is not UTF-8 in it is replaced by U+FFFD.
 * For languages whose exceptions must not leave a handler.
 *
 * PACE_EINVAL for a reason that is NULL; PACE_ESTALE elsewhere.
 *
 * Threads: the handler's. In handlers: in a request's own only; it never waits.
 */
pace_status_t pace_request_fail(const char *reason);

/**
 * Writes, in order, without waiting. What the peer does not take is queued; with
 * PACE_WRITE_STATUS_ABOVE_HIGH_MARK whoever can should write no more until the output has fallen
 * (pace_body_on_writable()). PACE_WRITE_STATUS_UNWANTED: the peer gets no body (an answer to HEAD, or with the
 * status 204, 205 or 304), and the bytes were dropped. No mark paces such a body: finish it. To write no
 * bytes tells this before the first ones are produced. *wrote is a PACE_WRITE_STATUS_ number; `wrote` may be
 * NULL.
 *
 * PACE_EINVAL for more bytes than were announced, PACE_EFULL if the queue would exceed its maximum:
 * none of it was taken. PACE_ESTALE if the connection has ended.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_body_write(pace_body_t *body,
                              const void *bytes,
                              size_t size,
                              uint32_t *wrote);

/**
 * Ends a body, and frees it. The connection's next request may come.
 *
 * PACE_EINVAL if fewer bytes were written than were announced: then the connection is reset.
 * Otherwise as pace_body_write().
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_body_finish(pace_body_t *body);

/**
 * Frees a body before its end: it can never be whole, and the connection is reset, so that the peer
 * can tell. NULL is a no-op.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_body_free(pace_body_t *body);

/**
 * What writes a body has failed: the connection is reset, as by pace_body_free(), and the failure is counted
 * in pace_http_stats_t.panics. NULL is a no-op.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
void pace_body_fail(pace_body_t *body);

/**
 * Whether the output is above its high mark, or has not fallen to the low one yet.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_body_is_pressed(pace_body_t *body, bool *is_pressed);

/**
 * As pace_response_is_client_gone(), for the answer whose body this is.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_body_is_client_gone(pace_body_t *body, bool *is_gone);

/**
 * Has `writable` called, in a run of the connection, each time that the output has fallen to its low
 * mark. If the output is not above its high mark now, it is called once without delay. It replaces the one before. `drop` runs when the body
 * is finished or freed, or the connection has ended.
 *
 * Threads: any, one at a time. In handlers: yes, it never waits.
 */
pace_status_t pace_body_on_writable(pace_body_t *body,
                                    pace_body_writable_fn writable,
                                    void *user_data,
                                    pace_drop_fn drop);

/**
 * Has `produce` write the body, in runs of the connection, as fast as the peer takes it and no faster.
 * It is called again as long as it says PACE_FLOW_AGAIN and there is something left to be sent; with
 * PACE_FLOW_DONE the body is finished. So it is not called at all for a body that is not sent (an answer
 * to HEAD, or with the status 204, 205 or 304), and not again when as many bytes are written as were
 * announced. One that says PACE_FLOW_AGAIN without having written anything is called again at once. The
 * body is gone; `drop` runs after the last call.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_body_pump(pace_body_t *body,
                             pace_body_produce_fn produce,
                             void *user_data,
                             pace_drop_fn drop);

/* ----------------------------------------- HTTP: settings of servers */

/** Settings of an HTTP server. Call pace_http_options_init() first. */
typedef struct pace_http_options_t {
    /** The size of the struct in bytes, as pace_http_options_init() sets it. */
    uint32_t struct_size;
    /** Headers of a request, 1 to 256; beyond: 431. Default 100. */
    uint32_t max_headers;
    /**
     * Where to listen: an array of structs of one size. Where idle_timeout_ns and read_timeout_ns have
     * their defaults, they are keep_alive_timeout_ns and head_timeout_ns; a refusal of NULL is a 503.
     * max_requests bounds requests in work on the listener's connections, beyond the max_requests of
     * all; what other protocols admit on them after an upgrade counts, too. max_unconsumed is max_head +
     * 128 KiB where it has its default, which is also the least that it may be. busy must be NULL, since
     * a request beyond the maximum is answered with 503.
     */
    const pace_listener_options_t *listeners;
    /** The number of elements of `listeners`. */
    size_t listener_count;
    /** Bytes of a request's head, 64 to 2^20; beyond: 431. Default 2^14. */
    uint64_t max_head;
    /** Bytes of a request's target, 1 to 2^20; beyond: 414. Default 2^13. */
    uint64_t max_target;
    /** Bytes of a body that is not streamed, up to 2^40; beyond: 413. Default 2^20. */
    uint64_t max_body;
    /**
     * A body must come at so many bytes per second, taken over each body_timeout_ns, while it is
     * waited for; below: 408. Default 500, 0: any.
     */
    uint64_t body_rate;
    /**
     * Requests in work at once over all connections, at least 1; beyond: 503. Default PACE_UNLIMITED:
     * no limit. A listener may have a lower one for its own.
     */
    uint64_t max_requests;
    /** A head must be whole within this from its first byte, at least 1 ms; beyond: 408. Default 10 s. */
    uint64_t head_timeout_ns;
    /** How often the rate of a body is looked at, at least 1 ms. Default 10 s. */
    uint64_t body_timeout_ns;
    /**
     * A connection with no request in work on which nothing came for so long, at least 1 ms, is
     * closed. Default 60 s.
     */
    uint64_t keep_alive_timeout_ns;
    /**
     * Requests on one connection, at least 1; the last is answered with Connection: close. Default
     * PACE_UNLIMITED32: no limit.
     */
    uint32_t keep_alive_requests;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** Called when accepting pauses, with exhausted_data. NULL: nothing. */
    pace_exhausted_fn on_exhausted;
    /** What on_exhausted is given, good until the server was freed. */
    void *exhausted_data;
} pace_http_options_t;

/**
 * Fills options with the defaults: pace_http_options_init(&options, sizeof options).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_options_init(pace_http_options_t *options, size_t size);

/**
 * Changes options to what the section `http` of a file of settings says, as pace_pool_config_load() does for
 * `pool`. Its listeners are loaded by
 * pace_listener_options_load().
 *
 * As there.
 *
 * Threads: any. In handlers: yes; it reads a file.
 */
pace_status_t pace_http_options_load(pace_http_options_t *options,
                                     const char *path,
                                     bool environment);

/* ------------------------------------------ HTTP: servers and routes */

/** The rest of a request's way, in a middleware: pace_next_run(). Good while the middleware runs, on that thread. */
typedef struct pace_next_t pace_next_t;

/**
 * The head of a request whose body is streamed is there. The request is lent; the response is given.
 * *body, NULL beforehand, is what the other two hooks are called with. If it stays NULL they are not
 * called, and what comes of the body is dropped, up to max_body.
 *
 * A peer that waits for "100 Continue" is told so when this has returned and *body is not NULL, or before
 * the head of an answer that is begun by pace_response_stream(). It is not told if this has answered by
 * pace_response_send(), or *body is NULL: then the answer, whenever it comes, is the final one, and the
 * connection closes behind it.
 */
typedef void (*pace_request_begin_fn)(void *user_data,
                                      const pace_request_t *request,
                                      pace_response_t *response,
                                      void **body);

/**
 * A part of the body has come. Answers how many of its bytes were taken, from the front. The rest is
 * shown again after pace_server_conn_resume(), which may come before this has returned; until the rest was
 * taken, nothing is read from the connection. More than `size` counts as a failure, and closes the connection.
 */
typedef size_t (*pace_request_data_fn)(void *body, const void *bytes, size_t size);

/** The last call for a body, exactly once: it was whole, or it never will be. */
typedef void (*pace_request_end_fn)(void *body, bool is_whole);

/**
 * What takes the body of a request as it comes. Call pace_request_body_hooks_init() first. No hook may be
 * NULL.
 */
typedef struct pace_request_body_hooks_t {
    /** The size of the struct in bytes, as pace_request_body_hooks_init() sets it. */
    uint32_t struct_size;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** Called once when the head of a request is complete, before its body. It must not be NULL. */
    pace_request_begin_fn begin;
    /** Called with each part of the body, as it comes. It must not be NULL. */
    pace_request_data_fn data;
    /** Called once when the body is complete, or will never be. It must not be NULL. */
    pace_request_end_fn end;
} pace_request_body_hooks_t;

/**
 * The handler of a route. It runs on a thread of the pool, for many connections at once. The request
 * is lent, with its whole body; the response is given.
 */
typedef void (*pace_request_fn)(void *user_data,
                                const pace_request_t *request,
                                pace_response_t *response);

/**
 * A middleware: code around the handlers of requests. It runs on a thread of the pool, for many connections at once. The
 * request is lent; the response is given. It goes on by pace_next_run(), with the response, to which it may have added
 * headers: they are sent with every answer, errors of the server included. Or it answers by itself, and the handler
 * is not called; a body that is streamed is dropped then. pace_request_pattern() says which route it is.
 */
typedef void (*pace_around_fn)(void *user_data,
                               const pace_request_t *request,
                               pace_response_t *response,
                               pace_next_t *next);

/** What has become of a request. It is lent for the call. */
typedef struct pace_http_end_t {
    /**
     * The status of the answer. 0: no whole answer has left, as the connection has ended before, or its body
     * broke off.
     */
    uint32_t status;
    /** Room for later versions; zero. */
    uint32_t reserved;
    /** As it was sent: GET. Empty if it is not known, as of a malformed request. */
    pace_text_t method;
    /** As it was sent: /hello/you?loud=1. Empty if it is not known; one that was refused for its length is cut. */
    pace_text_t target;
    /**
     * How long it took, in nanoseconds, from the head, or from the first bytes of a head that came in parts, until the
     * answer was complete. What the peer has not taken yet may still be queued.
     */
    uint64_t duration_ns;
    /** The other end, as pace_conn_peer() tells it. */
    pace_text_t peer;
} pace_http_end_t;

/** Told of the end of a request. It runs on a thread of the pool. */
typedef void (*pace_http_end_fn)(void *user_data, const pace_http_end_t *end);

/**
 * The counters of an HTTP server: begun = answered + refused + aborted + in work. The counts add up
 * exactly while no request is being handled. Set struct_size to sizeof the struct before the call.
 */
typedef struct pace_http_stats_t {
    /** In: sizeof the struct. Out: how many bytes were written. */
    uint32_t struct_size;
    /** Whether everything that began has ended or is in work, connections included. */
    bool balances;
    /** Room for later versions; zero. */
    uint8_t reserved[3];
    /** Requests whose head was judged, or that were given up. */
    uint64_t begun;
    /** Begun and not ended: their bodies are coming, or their answers. */
    uint64_t in_work;
    /** Requests that were answered by handlers with the status 101. */
    uint64_t answered_upgraded;
    /** Requests that were answered by handlers with a status from 200 to 299. */
    uint64_t answered_successful;
    /** Requests that were answered by handlers with a status from 300 to 399. */
    uint64_t answered_redirected;
    /** Requests that were answered by handlers with a status from 400 to 499. */
    uint64_t answered_client_errors;
    /** Requests that were answered by handlers with a status from 500 to 599. */
    uint64_t answered_server_errors;
    /** Requests that the library has answered with 400, because they were malformed. */
    uint64_t refused_bad_request;
    /** Requests that the library has answered with 404: no route has their path. */
    uint64_t refused_not_found;
    /** Requests that the library has answered with 405: no route with their path has their method. */
    uint64_t refused_method_not_allowed;
    /** Requests that the library has answered with 408: the head or the body did not come in time. */
    uint64_t refused_timed_out;
    /** Requests that the library has answered with 413: the body is larger than max_body. */
    uint64_t refused_body_too_large;
    /** Requests that the library has answered with 414: the target is longer than max_target. */
    uint64_t refused_target_too_long;
    /** Requests that the library has answered with 417: they expect something else than 100-continue. */
    uint64_t refused_expectation;
    /** Requests that the library has answered with 431: too many headers, or too long ones. */
    uint64_t refused_head_too_large;
    /** Requests that the library has answered with 500, because their handler has failed. */
    uint64_t refused_panicked;
    /**
     * Requests that the library has answered with 500, because their response was freed or could not be
     * sent.
     */
    uint64_t refused_unanswered;
    /** Requests that the library has answered with 501: their method or transfer coding is unknown. */
    uint64_t refused_not_implemented;
    /** Requests that the library has answered with 503: as many as may be were in work. */
    uint64_t refused_busy;
    /** Requests that the library has answered with 505: they are of another major version of HTTP. */
    uint64_t refused_version;
    /** Requests without a whole answer, because the peer has gone or the socket has failed. */
    uint64_t aborted_disconnected;
    /** Requests without a whole answer, because the peer took nothing of what was queued for it. */
    uint64_t aborted_timed_out;
    /** Requests without a whole answer, because its body was freed before the end. */
    uint64_t aborted_unfinished;
    /** Requests without a whole answer, because the program has closed the connection. */
    uint64_t aborted_closed;
    /** Requests without a whole answer, because the time of the drain was over or the pool has ended. */
    uint64_t aborted_cut_off;
    /** Handlers, bodies and hooks that have failed. */
    uint64_t panics;
} pace_http_stats_t;

/**
 * Fills hooks with NULL: pace_request_body_hooks_init(&hooks, sizeof hooks).
 *
 * PACE_EVERSION if `size` is no size of this struct.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_request_body_hooks_init(pace_request_body_hooks_t *hooks, size_t size);

/**
 * Makes a server without routes, to be given some and started.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_new(const pace_pool_t *pool, pace_http_t **http);

/**
 * Requests of this method whose path matches this pattern go to this handler, with their whole body.
 * A pattern is a path with parameters: "/hello/{name}" for one segment, "/files/{*path}" for all that
 * follows. It is matched with the path as it was sent; pace_request_param() gives parameters decoded.
 *
 * Each method is routed by itself: of the patterns of a method the closest one is taken, whatever other
 * methods have there. GET serves HEAD too, where HEAD has no route of its own. Without a route the
 * answer is 405 if other methods have one for the path, and else 404. OPTIONS without a route is
 * answered with 204 and the methods that the path has routes for (Allow), "OPTIONS *" with all methods,
 * unless the pattern "*" has a route.
 *
 * `drop` runs when the server was freed, and the last connection and the last response are gone.
 *
 * PACE_EINVAL if there cannot be such a route, or there is one already, and also when the server has been started.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_route(const pace_http_t *http,
                              const char *method,
                              const char *pattern,
                              pace_request_fn handler,
                              void *user_data,
                              pace_drop_fn drop);

/**
 * The same for requests whose body is taken as it comes.
 *
 * PACE_EINVAL as there, PACE_EVERSION for hooks.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_route_streaming(const pace_http_t *http,
                                        const char *method,
                                        const char *pattern,
                                        const pace_request_body_hooks_t *hooks,
                                        void *user_data,
                                        pace_drop_fn drop);

/**
 * Calls this function around the handler of every request that has a whole head: of all routes, of requests that no
 * route takes (404, 405), and of what the library answers to OPTIONS. Several are called in the order in which they
 * were told, each around all that follow. See pace_around_fn.
 *
 * A request that is refused for its head, its body's length or for want of room (400, 408, 413, 414, 417, 431, 501,
 * 503, 505) is not seen here, but by pace_http_on_end().
 *
 * PACE_EINVAL also when the server has been started.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_around(const pace_http_t *http,
                               pace_around_fn around,
                               void *user_data,
                               pace_drop_fn drop);

/**
 * Goes on with a request in a middleware, on this thread, and returns when the handler has returned. The response is
 * gone then, whatever this answers, unless that is PACE_EINVAL.
 *
 * *status is the status with which the request was answered by then: 500 if the handler has failed without an
 * answer. 0: it will be answered later, or its answer was lost with the connection; pace_http_on_end() tells.
 * `status` may be NULL.
 *
 * PACE_EINVAL also if `next` has been run already.
 *
 * Threads: the middleware's. In handlers: in a middleware only; it takes what the handler takes.
 */
pace_status_t pace_next_run(pace_next_t *next,
                            const pace_request_t *request,
                            pace_response_t *response,
                            uint32_t *status);

/**
 * Requests that no route takes go to this handler, without their body, which is dropped. The response has the status
 * that they would get otherwise: 404, 405 (with Allow), 501, or 400 for a parameter that cannot be decoded.
 * pace_response_error() answers as the server does, and pace_response_status() sets another status. The last
 * fallback that was told is the one.
 *
 * PACE_EINVAL also when the server has been started.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_fallback(const pace_http_t *http,
                                 pace_request_fn handler,
                                 void *user_data,
                                 pace_drop_fn drop);

/**
 * Calls this function at the end of each request, once: answered by a handler or refused by the server (400, 404, 408,
 * 413, 431 and others), or lost with its connection. An access log is pace_http_access_log(). Connections that are turned
 * away without having sent a request are none. With it, all requests are counted as in work from their beginning.
 * The last function that was told is the one. It must not block: the connection waits for it.
 *
 * PACE_EINVAL also when the server has been started.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_on_end(const pace_http_t *http,
                               pace_http_end_fn hook,
                               void *user_data,
                               pace_drop_fn drop);

/**
 * Starts. `options` and all that they point to are copied. If it fails, it may be tried again.
 *
 * PACE_EINVAL names the setting, its value and its bounds, or the route that cannot be, also when the
 * server has been started already; PACE_EOS names the address that could not be listened on, and the
 * reason; PACE_EFULL when all max_handles are in use; PACE_ESHUTDOWN; PACE_EVERSION.
 *
 * Threads: any. In handlers: yes.
 */
pace_status_t pace_http_start(const pace_http_t *http,
                              const pace_http_options_t *options);

/**
 * Starts with the defaults at one address, as "127.0.0.1:8080", "[::1]:0" or "unix:/run/shop.sock". "127.0.0.1:0" has a free
 * port, which pace_server_address() of pace_http_server() says.
 *
 * As pace_http_start().
 *
 * Threads: any. In handlers: yes.
 */
pace_status_t pace_http_serve(const pace_http_t *http,
                              const char *address);

/**
 * The stream server beneath, for what is done with connections and listeners: pace_server_address(),
 * pace_server_drain(), pace_server_wait(), pace_server_stats(), and pace_server_conn_ functions. It
 * belongs to the HTTP server: do not free it.
 *
 * PACE_EINVAL before the start.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_server(const pace_http_t *http,
                               pace_server_t **server);

/**
 * What it has counted; the counters add up at rest.
 *
 * PACE_EINVAL before the start; PACE_EVERSION: struct_size was not set.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_stats(const pace_http_t *http, pace_http_stats_t *stats);

/**
 * What has answered a request of this connection has failed after that: the connection closes when all that
 * is queued was sent, and the failure is counted in pace_http_stats_t.panics. Before that it is for
 * pace_response_fail() or pace_body_fail(), and for a completion that fails (pace_cq_complete); in a handler, for pace_request_fail().
 *
 * PACE_EINVAL before the start. PACE_ESTALE if the connection has ended: then nothing is counted.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_fail(const pace_http_t *http,
                             pace_conn_id_t conn);

/**
 * Frees a server: its listeners end, and its connections are cut off, as by pace_server_free(), which says what it
 * waits for; drain it first for an orderly end. NULL is a no-op. In a forked child it does nothing.
 *
 * Threads: any, as long as no other uses the server any more. In handlers, and on threads of the pool: yes, it never
 * waits there.
 */
void pace_http_free(pace_http_t *http);

/* ------------------------------------------------- HTTP: access logs */

/**
 * Apache's combined format: 127.0.0.1 - - [28/Nov/2026:02:44:19 +0000] "GET /a HTTP/1.1" 200 12 "referer" "agent". The
 * time is that of the request's beginning, in UTC; the size is that of the body, - for none; the status is - if no whole
 * answer has left. Quotes and backslashes are escaped by a backslash, what is not printable ASCII as \xhh. The default.
 */
#define PACE_ACCESS_COMBINED 0

/**
 * JSON: fields of the record, peer, method, target, version, status, bytes (of the answer's body), duration_ns, referer
 * and user_agent, as far as they are known.
 */
#define PACE_ACCESS_JSON 1

/**
 * Tells a log of each request at its end, as pace_http_on_end() does: a record "request.ended" of the component http, at
 * level info. With PACE_ACCESS_COMBINED its message is the line, with PACE_ACCESS_JSON it has fields. What a client has sent
 * is escaped, so that it can forge no line. NULL: the pool's log, and without one pace_http_start() fails. The log may be freed
 * before the server. The last access log that was set is the one.
 *
 * PACE_EINVAL also when the server has been started; PACE_EFORKED for a log of the parent process.
 *
 * Threads: any. In handlers: yes, it never waits.
 */
pace_status_t pace_http_access_log(const pace_http_t *http,
                                   uint32_t format,
                                   const pace_log_t *log);

/* --------------------------------------------- HTTP: JSON in and out */

/** There is nothing at this place. */
#define PACE_JSON_NONE 0

/** There is the value null at this place. */
#define PACE_JSON_NULL 1

/** There is the value true or false at this place. */
#define PACE_JSON_BOOL 2

/** There is a number at this place. */
#define PACE_JSON_NUMBER 3

/** There is a text at this place. */
#define PACE_JSON_TEXT 4

/** There is an array at this place. */
#define PACE_JSON_ARRAY 5

/** There is an object at this place. */
#define PACE_JSON_OBJECT 6

/**
 * What stands at this place of a JSON text, as the body of a request: PACE_JSON_. The place is a JSON pointer (RFC 6901):
 * "" for the whole, "/item" for a member, "/lines/0/price" for one in an array. If several members have the same name,
 * the last one counts. Each call reads the JSON from its beginning, so this is for small ones.
 *
 * PACE_EINVAL if `json` is not JSON: pace_last_error() says what is wrong, and where.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_json_kind(const void *json,
                             size_t size,
                             const char *pointer,
                             uint32_t *kind);

/**
 * The text at this place of a JSON text, as pace_json_kind() has it: decoded, in UTF-8, with a NUL behind it. *needed
 * says how many bytes it takes, with the NUL, also for PACE_EFULL: `room` is less; no text takes more than `size` + 1. There
 * may be NUL in it, too. `text` may be NULL if `room` is 0.
 *
 * PACE_EINVAL if `json` is not JSON, or there is no text at this place; PACE_EFULL.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_json_text(const void *json,
                             size_t size,
                             const char *pointer,
                             char *text,
                             size_t room,
                             size_t *needed);

/**
 * The number at this place of a JSON text, as pace_json_kind() has it. Whole numbers up to 2^53 are exact.
 *
 * PACE_EINVAL if `json` is not JSON, or there is no number at this place.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_json_number(const void *json,
                               size_t size,
                               const char *pointer,
                               double *number);

/**
 * A text of `size` bytes as JSON: with quotes around it, and what JSON does not allow in them escaped, and with a NUL
 * behind it. *needed says how many bytes it takes, with the NUL, also for PACE_EFULL: `room` is less; no text takes more
 * than 6 * `size` + 3. `json` may be NULL if `room` is 0.
 *
 * PACE_EINVAL if the text is not UTF-8; PACE_EFULL.
 *
 * Threads: any. In handlers: yes, it never waits; allocates.
 */
pace_status_t pace_json_quote(const char *text,
                              size_t size,
                              char *json,
                              size_t room,
                              size_t *needed);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PACELINE_HTTP_H */
