/* Every function in every situation answers a documented status: it never crashes, and never hangs.
 *
 * A function is called through a row of the table below, which takes the things that the situation
 * has made. What a row may answer is its usual set; a situation adds its own (everything answers
 * PACE_EFORKED in a child). The second half of the table are calls with one NULL too many. */
#include "net.h"

typedef struct things {
    pace_pool_t *pool;
    pace_ring_t *ring;
    pace_queue_t *queue;
    pace_task_t task;
    pace_strand_t strand;
    pace_handle_t handle;
    pace_timer_t timer;
    pace_server_t *server;
    pace_http_t *http;
    pace_udp_t *udp;
    pace_cq_t *cq;
    pace_workers_t *workers;
    pace_task_type_t *kind;
    pace_task_t work; /* of the worker pool */
    pace_log_t *records;
    pace_signals_t *signals;
    pace_metric_t *count, *level, *times;
    pace_http_t *asked; /* has the request that these answer */
    pace_response_t *response;
    pace_body_t *body;
    pace_conn_id_t conn;
    pace_hub_t *hub;
    pace_key_t *key;
    pace_mailbox_t *mailbox;
    pace_publisher_t *publisher;
    pace_replay_t *replay;
    pace_mailbox_t *replayed;
    pace_supervisor_t *supervisor;
    pace_message_filter_t *filter;
    pace_watch_t *watch;
    pace_subscription_t subscription;
    int fd, clients[2];
} things_t;

static counts_t counts;
static int32_t quick_ready(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)data, (void)self, (void)fd, (void)ready;
    return PACE_FLOW_WAIT;
}
static int32_t quick_tick(void *data, pace_handle_t self) {
    (void)data, (void)self;
    return PACE_FLOW_WAIT;
}
static void quick_bytes(void *bytes, size_t size, int32_t *outcome) {
    (void)bytes, (void)size;
    *outcome = 0;
}
static void quick_events(void *data, const void *events, size_t stride, size_t count) {
    (void)data, (void)events, (void)stride, (void)count;
}

#define C &counts, count_drop

/* --- one function for each of the header's ------------------------------------------------------ */

static pace_status_t do_post(things_t *t) { return pace_pool_post(t->pool, 2, count_run, C); }
static pace_status_t do_try_post(things_t *t) { return pace_pool_try_post(t->pool, 2, count_run, C); }
static pace_status_t do_post_bytes(things_t *t) {
    return pace_pool_post_bytes(t->pool, 2, quick_bytes, "abc", 3);
}
static pace_status_t do_post_batch(things_t *t) {
    pace_work_t work[2] = {{count_run, C}, {count_run, C}};
    size_t accepted;
    return pace_pool_post_batch(t->pool, 2, work, 2, &accepted);
}
static pace_status_t keep_task(things_t *t, pace_status_t status, pace_task_t task) {
    if (status == PACE_OK) OK(pace_task_detach(t->pool, task));
    return status;
}
static pace_status_t do_submit(things_t *t) {
    pace_task_t task;
    pace_status_t status = pace_pool_submit(t->pool, 2, count_run, C, &task);
    return keep_task(t, status, task);
}
static pace_status_t do_try_submit(things_t *t) {
    pace_task_t task;
    pace_status_t status = pace_pool_try_submit(t->pool, 2, count_run, C, &task);
    return keep_task(t, status, task);
}
static pace_status_t do_wait(things_t *t) {
    int32_t outcome;
    return pace_task_wait(t->pool, t->task, MILLI, &outcome);
}
static pace_status_t do_is_done(things_t *t) {
    bool flag;
    return pace_task_is_done(t->pool, t->task, &flag);
}
static pace_status_t do_cancel(things_t *t) {
    bool flag;
    return pace_task_cancel(t->pool, t->task, &flag);
}
static pace_status_t do_detach(things_t *t) { return pace_task_detach(t->pool, t->task); }
static pace_status_t do_strand_new(things_t *t) {
    pace_strand_t strand;
    pace_status_t status = pace_strand_new(t->pool, &strand);
    if (status == PACE_OK) OK(pace_strand_close(t->pool, strand));
    return status;
}
static pace_status_t do_strand_post(things_t *t) {
    return pace_strand_post(t->pool, t->strand, count_run, C);
}
static pace_status_t do_strand_try_post(things_t *t) {
    return pace_strand_try_post(t->pool, t->strand, count_run, C);
}
static pace_status_t do_pool_metrics(things_t *t) {
    char text[1 << 15];
    size_t needed;
    return pace_pool_metrics(t->pool, PACE_METRICS_PROMETHEUS, text, sizeof text, &needed);
}
static pace_status_t do_pool_trace(things_t *t) {
    pace_trace_t *trace;
    pace_status_t status = pace_pool_trace(t->pool, MILLI, 64, &trace);
    if (status == PACE_OK) {
        pace_text_t json;
        OK(pace_trace_json(trace, &json));
        CHECK(json.size > 2 && json.text[0] == '{' && json.text[json.size - 1] == '}');
        pace_trace_free(trace);
    }
    return status;
}
static pace_status_t do_pool_disk(things_t *t) { return pace_pool_disk(t->pool, "/"); }
static pace_status_t do_strand_post_batch(things_t *t) {
    pace_work_t work[2] = {{count_run, C}, {count_run, C}};
    size_t accepted;
    return pace_strand_post_batch(t->pool, t->strand, work, 2, &accepted);
}
static pace_status_t do_strand_submit(things_t *t) {
    pace_task_t task;
    pace_status_t status = pace_strand_submit(t->pool, t->strand, count_run, C, &task);
    return keep_task(t, status, task);
}
static pace_status_t do_strand_try_submit(things_t *t) {
    pace_task_t task;
    pace_status_t status = pace_strand_try_submit(t->pool, t->strand, count_run, C, &task);
    return keep_task(t, status, task);
}
static pace_status_t do_strand_close(things_t *t) { return pace_strand_close(t->pool, t->strand); }
static pace_status_t do_strand_drain(things_t *t) {
    bool flag;
    return pace_strand_drain(t->pool, t->strand, 0, &flag);
}
static pace_status_t keep_handle(things_t *t, pace_status_t status, pace_handle_t handle) {
    if (status == PACE_OK) {
        pace_status_t end = pace_handle_deregister(t->pool, handle);
        CHECK(end == PACE_OK || end == PACE_ECLOSING || end == PACE_ESTALE);
    }
    return status;
}
static pace_status_t do_register(things_t *t) {
    pace_handle_t handle;
    pace_status_t status = pace_pool_register(t->pool, t->fd, NULL, quick_ready, C, &handle);
    return keep_handle(t, status, handle);
}
static pace_status_t do_every(things_t *t) {
    pace_handle_t handle;
    pace_status_t status = pace_pool_every(t->pool, SECOND, quick_tick, C, &handle);
    return keep_handle(t, status, handle);
}
static pace_status_t do_pause(things_t *t) { return pace_handle_pause(t->pool, t->handle); }
static pace_status_t do_resume(things_t *t) { return pace_handle_resume(t->pool, t->handle); }
static pace_status_t do_deregister(things_t *t) { return pace_handle_deregister(t->pool, t->handle); }
static pace_status_t do_is_open(things_t *t) {
    bool flag;
    return pace_handle_is_open(t->pool, t->handle, &flag);
}
static pace_status_t do_after(things_t *t) { return pace_pool_after(t->pool, 0, count_run, C, NULL); }
static pace_status_t do_timer_cancel(things_t *t) {
    bool flag;
    return pace_timer_cancel(t->pool, t->timer, &flag);
}
static pace_status_t do_timer_postpone(things_t *t) {
    bool flag;
    return pace_timer_postpone(t->pool, t->timer, SECOND, &flag);
}
static pace_status_t do_timer_pending(things_t *t) {
    bool flag;
    return pace_timer_is_pending(t->pool, t->timer, &flag);
}
static pace_status_t do_ring_serial(things_t *t) {
    pace_ring_t *ring;
    pace_status_t status = pace_ring_serial(t->pool, 8, 8, quick_events, C, &ring);
    if (status == PACE_OK) pace_ring_free(ring);
    return status;
}
static pace_status_t do_ring_concurrent(things_t *t) {
    pace_ring_t *ring;
    pace_status_t status = pace_ring_concurrent(t->pool, 8, 8, quick_events, C, &ring);
    if (status == PACE_OK) pace_ring_free(ring);
    return status;
}
static pace_status_t do_publish(things_t *t) { return pace_ring_publish(t->ring, "12345678"); }
static pace_status_t do_try_publish(things_t *t) { return pace_ring_try_publish(t->ring, "12345678"); }
static pace_status_t do_publish_batch(things_t *t) {
    size_t published;
    return pace_ring_publish_batch(t->ring, "1234567812345678", 2, &published);
}
static pace_status_t do_ring_counts(things_t *t) { return pace_ring_counts(t->ring, NULL, NULL); }
static pace_status_t do_ring_close(things_t *t) { return pace_ring_close(t->ring); }
static pace_status_t do_push(things_t *t) { return pace_queue_push(t->queue, "12345678", MILLI); }
static pace_status_t do_push_batch(things_t *t) {
    size_t pushed;
    return pace_queue_push_batch(t->queue, "1234567812345678", 2, &pushed);
}
static pace_status_t do_pop(things_t *t) {
    uint64_t item;
    return pace_queue_pop(t->queue, &item, MILLI);
}
static pace_status_t do_pop_batch(things_t *t) {
    uint64_t items[3];
    size_t popped;
    return pace_queue_pop_batch(t->queue, items, 3, 0, &popped);
}
static pace_status_t do_pollable(things_t *t) {
    int fd;
    return pace_queue_pollable(t->queue, &fd);
}
static pace_status_t do_queue_len(things_t *t) {
    size_t len;
    return pace_queue_len(t->queue, &len);
}
static pace_status_t do_queue_capacity(things_t *t) {
    size_t capacity;
    return pace_queue_capacity(t->queue, &capacity);
}
static pace_status_t do_queue_is_closed(things_t *t) {
    bool flag;
    return pace_queue_is_closed(t->queue, &flag);
}
static pace_status_t do_queue_close(things_t *t) { return pace_queue_close(t->queue); }
static pace_status_t do_join(things_t *t) { return pace_pool_join(t->pool, 0, NULL); }
static pace_status_t do_pool_pollable(things_t *t) {
    int fd;
    return pace_pool_pollable(t->pool, &fd);
}
static pace_status_t do_name_host(things_t *t) { return pace_pool_name_host(t->pool, 0, "host"); }
static pace_status_t do_stats(things_t *t) {
    pace_pool_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_pool_stats(t->pool, &stats);
}
static pace_status_t do_thread_stats(things_t *t) {
    pace_thread_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_pool_thread_stats(t->pool, 0, &stats);
}
static pace_status_t do_set_stats(things_t *t) {
    pace_set_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_pool_set_stats(t->pool, 0, &stats);
}
static pace_status_t do_audit(things_t *t) {
    pace_audit_t audit = {0};
    audit.struct_size = sizeof audit;
    return pace_pool_audit(t->pool, &audit);
}
static pace_status_t do_promote(things_t *t) {
    (void)t;
    return pace_promote_new_leader();
}
static pace_status_t do_shutdown(things_t *t) { return pace_pool_shutdown(t->pool, 0, NULL); }
static pace_status_t do_stop_now(things_t *t) { return pace_pool_stop_now(t->pool, NULL); }

static size_t quick_data(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data, (void)conn, (void)bytes;
    return size;
}
static void quick_request(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    pace_response_free(response);
}
static pace_conn_hooks_t quick_hooks(void) {
    pace_conn_hooks_t hooks = hooks_with(quick_data);
    hooks.user_data = &counts;
    hooks.drop = count_drop;
    return hooks;
}
static pace_status_t do_server_new(things_t *t) {
    pace_conn_hooks_t hooks = quick_hooks();
    pace_server_t *server;
    pace_status_t status = pace_server_new(t->pool, NULL, &hooks, &server);
    if (status == PACE_OK) pace_server_free(server);
    return status;
}
static pace_status_t do_server_address(things_t *t) {
    char text[PACE_ADDRESS_SIZE];
    return pace_server_address(t->server, 0, text, sizeof text);
}
static pace_status_t do_server_connect(things_t *t) {
    pace_conn_hooks_t hooks = quick_hooks();
    pace_conn_id_t conn;
    return pace_server_connect(t->server, "unix:@nobody listens here", &hooks, &conn);
}
static pace_status_t do_server_stats(things_t *t) {
    pace_server_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_server_stats(t->server, &stats);
}
static pace_status_t do_listener_stats(things_t *t) {
    pace_server_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_server_listener_stats(t->server, 0, &stats);
}
static pace_status_t do_conn_write(things_t *t) {
    return pace_server_conn_write(t->server, t->conn, "x", 1, NULL);
}
static pace_status_t do_conn_write_vectored(things_t *t) {
    pace_piece_t piece = {"x", 1};
    return pace_server_conn_write_vectored(t->server, t->conn, &piece, 1, NULL);
}
static pace_status_t do_conn_write_tracked(things_t *t) {
    return pace_server_conn_write_tracked(t->server, t->conn, "x", 1, 1, NULL);
}
static pace_status_t do_conn_write_owned(things_t *t) {
    return pace_server_conn_write_owned(t->server, t->conn, "x", 1, NULL, NULL, NULL);
}
static pace_status_t do_conn_pause(things_t *t) { return pace_server_conn_pause(t->server, t->conn); }
static pace_status_t do_conn_resume(things_t *t) { return pace_server_conn_resume(t->server, t->conn); }
static pace_status_t do_conn_notify(things_t *t) { return pace_server_conn_notify(t->server, t->conn); }
static pace_status_t do_conn_is_open(things_t *t) {
    bool flag;
    return pace_server_conn_is_open(t->server, t->conn, &flag);
}
static pace_status_t do_conn_queued(things_t *t) {
    size_t queued;
    return pace_server_conn_queued(t->server, t->conn, &queued);
}
static pace_status_t do_conn_peer(things_t *t) {
    char text[PACE_ADDRESS_SIZE];
    return pace_server_conn_peer(t->server, t->conn, text, sizeof text);
}
static pace_status_t do_conn_local(things_t *t) {
    char text[PACE_ADDRESS_SIZE];
    return pace_server_conn_local(t->server, t->conn, text, sizeof text);
}
static pace_status_t do_conn_shutdown_write(things_t *t) {
    return pace_server_conn_shutdown_write(t->server, t->conn);
}
static pace_status_t do_conn_close(things_t *t) { return pace_server_conn_close(t->server, t->conn); }
static pace_status_t do_conn_abort(things_t *t) { return pace_server_conn_abort(t->server, t->conn); }
static pace_status_t do_http_new(things_t *t) {
    pace_http_t *http;
    pace_status_t status = pace_http_new(t->pool, &http);
    if (status == PACE_OK) pace_http_free(http);
    return status;
}
/* A route may be there once. */
static const char *new_pattern(void) {
    static _Thread_local char pattern[32];
    static atomic_int count;
    snprintf(pattern, sizeof pattern, "/own/%d", atomic_fetch_add(&count, 1));
    return pattern;
}

static pace_status_t do_http_route(things_t *t) {
    return pace_http_route(t->http, "GET", new_pattern(), quick_request, C);
}
static pace_status_t do_http_server(things_t *t) {
    pace_server_t *server;
    return pace_http_server(t->http, &server);
}
static pace_status_t do_http_fail(things_t *t) { return pace_http_fail(t->http, (pace_conn_id_t){77}); }
static pace_status_t do_http_stats(things_t *t) {
    pace_http_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_http_stats(t->http, &stats);
}
static void quick_begin(void *data, const pace_request_t *request, pace_response_t *response,
                        void **body) {
    (void)data, (void)request, (void)body;
    pace_response_free(response);
}
static size_t quick_body(void *body, const void *bytes, size_t size) {
    (void)body, (void)bytes;
    return size;
}
static void quick_end(void *body, bool is_whole) { (void)body, (void)is_whole; }
static pace_status_t do_http_route_streaming(things_t *t) {
    pace_request_body_hooks_t hooks;
    OK(pace_request_body_hooks_init(&hooks, sizeof hooks));
    hooks.begin = quick_begin;
    hooks.data = quick_body;
    hooks.end = quick_end;
    return pace_http_route_streaming(t->http, "PUT", new_pattern(), &hooks, C);
}
static void quick_around(void *data, const pace_request_t *request, pace_response_t *response,
                         pace_next_t *next) {
    (void)data;
    OK(pace_next_run(next, request, response, NULL));
}
static void quick_http_end(void *data, const pace_http_end_t *end) { (void)data, (void)end; }
static void quick_fallback(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    OK(pace_response_error(response));
}
static pace_status_t do_http_around(things_t *t) { return pace_http_around(t->http, quick_around, C); }
static pace_status_t do_http_fallback(things_t *t) {
    return pace_http_fallback(t->http, quick_fallback, C);
}
static pace_status_t do_http_on_end(things_t *t) { return pace_http_on_end(t->http, quick_http_end, C); }
static pace_status_t do_http_access_log(things_t *t) {
    return pace_http_access_log(t->http, PACE_ACCESS_COMBINED, NULL);
}
static pace_status_t do_query_pairs(things_t *t) {
    size_t count;
    (void)t;
    return pace_query_pairs("a=b", 3, NULL, NULL, 0, &count);
}
static pace_status_t do_json_kind(things_t *t) {
    uint32_t kind;
    (void)t;
    return pace_json_kind("{}", 2, "/a", &kind);
}
static pace_status_t do_json_text(things_t *t) {
    size_t needed;
    char text[4];
    (void)t;
    return pace_json_text("\"a\"", 3, "", text, sizeof text, &needed);
}
static pace_status_t do_json_number(things_t *t) {
    double number;
    (void)t;
    return pace_json_number("7", 1, "", &number);
}
static pace_status_t do_json_quote(things_t *t) {
    size_t needed;
    char json[8];
    (void)t;
    return pace_json_quote("a", 1, json, sizeof json, &needed);
}
static pace_status_t do_http_options_init(things_t *t) {
    pace_http_options_t options;
    (void)t;
    return pace_http_options_init(&options, sizeof options);
}
static pace_status_t do_frame_delimited(things_t *t) {
    pace_frame_t frame;
    size_t searched = 0;
    (void)t;
    return pace_frame_delimited("a\nb", 3, "\n", 1, 10, &searched, &frame);
}
static pace_status_t do_frame_prefixed(things_t *t) {
    pace_frame_t frame;
    (void)t;
    return pace_frame_prefixed("\0\1a", 3, 2, 10, &frame);
}
static pace_status_t do_frame_fixed(things_t *t) {
    pace_frame_t frame;
    (void)t;
    return pace_frame_fixed("abc", 3, 2, &frame);
}
static pace_status_t do_ip_read(things_t *t) {
    pace_ip_t ip;
    (void)t;
    return pace_ip_read("127.0.0.1:9", &ip);
}
static pace_status_t do_ip_text(things_t *t) {
    pace_ip_t ip = {4, 0, 9, 0, {127, 0, 0, 1}};
    char text[PACE_ADDRESS_SIZE];
    (void)t;
    return pace_ip_text(&ip, text, sizeof text);
}
static void quick_datagrams(void *data, pace_udp_t *udp, const pace_datagram_t *datagrams,
                            size_t count) {
    (void)data, (void)udp, (void)datagrams, (void)count;
}
static pace_status_t udp_new(pace_pool_t *pool, pace_udp_t **udp) {
    pace_udp_options_t options;
    pace_udp_hooks_t hooks;
    OK(pace_udp_options_init(&options, sizeof options));
    OK(pace_udp_hooks_init(&hooks, sizeof hooks));
    options.bind = "127.0.0.1:0";
    options.batch = 1;
    options.max_datagram = 100;
    hooks.data = quick_datagrams;
    hooks.user_data = &counts;
    hooks.drop = count_drop;
    return pace_udp_new(pool, &options, &hooks, udp);
}
static pace_status_t do_udp_new(things_t *t) {
    pace_udp_t *udp;
    pace_status_t status = udp_new(t->pool, &udp);
    if (status == PACE_OK) pace_udp_free(udp);
    return status;
}
static pace_status_t do_udp_address(things_t *t) {
    char text[PACE_ADDRESS_SIZE];
    return pace_udp_address(t->udp, text, sizeof text);
}
static pace_status_t do_udp_send(things_t *t) { return pace_udp_send(t->udp, "x", 1); }
static pace_status_t do_udp_send_to(things_t *t) {
    return pace_udp_send_to(t->udp, "x", 1, &(pace_ip_t){4, 0, 9, 0, {127, 0, 0, 1}});
}
static pace_status_t do_udp_send_batch(things_t *t) {
    pace_datagram_t datagram = {.bytes = "x", .size = 1, .peer = {4, 0, 9, 0, {127, 0, 0, 1}}};
    size_t sent;
    return pace_udp_send_batch(t->udp, &datagram, 1, &sent);
}
static pace_status_t do_udp_join(things_t *t) { return pace_udp_join_multicast(t->udp, "127.0.0.1", 0); }
static pace_status_t do_udp_leave(things_t *t) {
    return pace_udp_leave_multicast(t->udp, "127.0.0.1", 0);
}
static pace_status_t do_udp_is_open(things_t *t) {
    bool flag;
    return pace_udp_is_open(t->udp, &flag);
}
static pace_status_t do_udp_stats(things_t *t) {
    pace_udp_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_udp_stats(t->udp, &stats);
}
static pace_status_t do_udp_close(things_t *t) { return pace_udp_close(t->udp); }
static pace_status_t do_udp_drain(things_t *t) {
    bool flag;
    return pace_udp_drain(t->udp, 0, &flag);
}
static pace_status_t do_request_fail(things_t *t) {
    (void)t;
    return pace_request_fail("not in a handler of a request");
}
static void quick_message(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data, (void)message;
    *outcome = 0;
}
static void quick_pattern(void *data, pace_text_t pattern, size_t subscriptions) {
    (void)data, (void)pattern, (void)subscriptions;
}
static pace_status_t do_hub_new(things_t *t) {
    pace_hub_t *hub;
    pace_status_t status = pace_hub_new(t->pool, NULL, &hub);
    if (status == PACE_OK) pace_hub_free(hub);
    return status;
}
static pace_status_t do_hub_key(things_t *t) {
    pace_key_t *key;
    pace_status_t status = pace_hub_key(t->hub, "a", &key);
    if (status == PACE_OK) pace_key_free(key);
    return status;
}
static pace_status_t do_key_text(things_t *t) {
    pace_text_t text;
    return pace_key_text(t->key, &text);
}
static pace_status_t do_key_await_room(things_t *t) { return pace_key_await_room(t->key, 1, 0); }
static pace_status_t do_key_publish(things_t *t) {
    return pace_key_publish(t->key, "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL);
}
static pace_status_t do_key_publish_with(things_t *t) {
    pace_publication_t with;
    OK(pace_publication_init(&with, sizeof with));
    return pace_key_publish_with(t->key, &with, "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL);
}
static pace_status_t do_key_publish_batch(things_t *t) {
    pace_piece_t pieces[2] = {{"x", 1}, {NULL, 0}};
    return pace_key_publish_batch(t->key, pieces, 2, PACE_PUBLISH_NO_RECEIPT, NULL);
}
static pace_status_t do_hub_publish(things_t *t) {
    return pace_hub_publish(t->hub, "a", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL);
}
static pace_status_t do_hub_audit(things_t *t) {
    pace_hub_audit_t audit = {0};
    audit.struct_size = sizeof audit;
    return pace_hub_audit(t->hub, &audit);
}
static pace_status_t do_hub_subscriber_count(things_t *t) {
    size_t count;
    return pace_hub_subscriber_count(t->hub, "a", &count);
}
static pace_status_t do_hub_patterns(things_t *t) {
    return pace_hub_patterns(t->hub, quick_pattern, NULL);
}
static pace_status_t do_hub_subscribe(things_t *t) {
    return pace_hub_subscribe(t->hub, "a.>", NULL, quick_message, C, NULL);
}
static pace_status_t do_subscription_stats(things_t *t) {
    pace_subscription_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_subscription_stats(t->hub, t->subscription, &stats);
}
static pace_status_t do_hub_unsubscribe(things_t *t) {
    return pace_hub_unsubscribe(t->hub, t->subscription, PACE_UNSUBSCRIBE_ASYNC, NULL);
}
static pace_status_t do_hub_mailbox(things_t *t) {
    pace_mailbox_t *mailbox;
    pace_status_t status = pace_hub_mailbox(t->hub, "a", NULL, &mailbox);
    if (status == PACE_OK) pace_mailbox_free(mailbox);
    return status;
}
static pace_status_t do_mailbox_stats(things_t *t) {
    pace_subscription_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_mailbox_stats(t->mailbox, &stats);
}
static pace_status_t do_mailbox_unsubscribe(things_t *t) {
    return pace_mailbox_unsubscribe(t->mailbox, PACE_UNSUBSCRIBE_ASYNC, NULL);
}
static pace_message_t request_of(const char *key, const pace_field_t *fields, size_t count) {
    pace_message_t message = {0};
    message.key = (pace_text_t){key, strlen(key)};
    message.headers = fields;
    message.header_count = count;
    return message;
}
static pace_status_t do_mailbox_bury(things_t *t) {
    /* Nothing was brought. */
    pace_message_t message = request_of("a.b", NULL, 0);
    return pace_mailbox_bury(t->mailbox, &message, NULL, 1);
}
static pace_status_t do_replay_mailbox_bury(things_t *t) {
    /* Nothing was brought. */
    pace_message_t message = request_of("a.b", NULL, 0);
    return pace_mailbox_bury(t->replayed, &message, NULL, 1);
}
static pace_status_t do_replay_mailbox_stats(things_t *t) {
    pace_replay_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_replay_mailbox_stats(t->replayed, &stats);
}
static pace_status_t do_mailbox_acknowledge(things_t *t) {
    return pace_mailbox_acknowledge(t->mailbox, 1, 0, 0);
}
static pace_status_t do_mailbox_catch_up(things_t *t) {
    return pace_mailbox_catch_up(t->mailbox, NULL, NULL);
}
static pace_status_t do_mailbox_crashed(things_t *t) {
    return pace_mailbox_crashed(t->mailbox, "broken", NULL);
}
static pace_status_t do_mailbox_suspend(things_t *t) {
    return pace_mailbox_suspend(t->mailbox, 1, NULL);
}
static pace_status_t do_mailbox_resume(things_t *t) { return pace_mailbox_resume(t->mailbox, NULL); }
static void quick_letter(void *data, const pace_dead_letter_t *letter) { (void)data, (void)letter; }
static pace_status_t do_dead_letters(things_t *t) {
    return pace_hub_dead_letters(t->hub, NULL, quick_letter, NULL, NULL);
}
static pace_status_t do_remove_dead_letters(things_t *t) {
    return pace_hub_remove_dead_letters(t->hub, NULL, NULL, NULL, NULL);
}
static pace_status_t do_redeliver(things_t *t) { return pace_hub_redeliver(t->hub, NULL, NULL); }
static pace_status_t do_dead_letter_stats(things_t *t) {
    pace_dead_letter_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_hub_dead_letter_stats(t->hub, &stats);
}
static pace_status_t do_hub_errors(things_t *t) {
    return pace_hub_errors(t->hub, NULL, NULL, NULL, NULL);
}
static pace_status_t do_hub_stats(things_t *t) {
    pace_hub_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_hub_stats(t->hub, &stats);
}
static pace_status_t do_hub_metrics(things_t *t) {
    size_t needed;
    return pace_hub_metrics(t->hub, PACE_METRICS_HUB, NULL, 0, &needed);
}
static pace_status_t do_hub_share_metrics(things_t *t) {
    return pace_hub_share_metrics(t->hub, t->workers);
}
static pace_status_t do_threshold_init(things_t *t) {
    pace_threshold_t threshold;
    (void)t;
    return pace_threshold_init(&threshold, sizeof threshold);
}
static pace_status_t do_hub_watch(things_t *t) {
    pace_threshold_t threshold;
    pace_watch_t *watch;
    OK(pace_threshold_init(&threshold, sizeof threshold));
    threshold.metric = "none";
    pace_status_t status = pace_hub_watch(t->hub, t->workers, SECOND, &threshold, 1, NULL, C, &watch);
    if (status == PACE_OK) pace_watch_free(watch);
    return status;
}
static pace_status_t do_watch_stats(things_t *t) {
    pace_watch_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_watch_stats(t->watch, &stats);
}
static pace_status_t do_webhook_options_init(things_t *t) {
    pace_webhook_options_t options;
    (void)t;
    return pace_webhook_options_init(&options, sizeof options);
}
static pace_status_t do_webhook_new(things_t *t) {
    pace_webhook_t *webhook;
    pace_status_t status = pace_webhook_new("http://127.0.0.1:9", NULL, &webhook);
    (void)t;
    if (status == PACE_OK) pace_webhook_free(webhook);
    return status;
}
static pace_status_t do_service_start(things_t *t) {
    pace_service_t *service;
    pace_status_t status = pace_service_start(t->pool, NULL, NULL, NULL, &service);
    if (status == PACE_OK) pace_service_free(service);
    return status;
}
static pace_status_t do_subscription_drain(things_t *t) {
    return pace_subscription_drain(t->hub, t->subscription, MILLI, NULL);
}
static pace_status_t do_hub_resume(things_t *t) {
    return pace_hub_resume(t->hub, t->subscription, NULL);
}
static pace_status_t do_key_request(things_t *t) {
    pace_message_t reply;
    return pace_key_request(t->key, NULL, "x", 1, 1, &reply);
}
static void quick_reply(void *data, pace_status_t status, const pace_message_t *reply) {
    (void)data, (void)status, (void)reply;
}
static pace_status_t do_key_request_async(things_t *t) {
    pace_asked_t asked;
    pace_status_t status =
        pace_key_request_async(t->key, NULL, "x", 1, PACE_FOREVER, quick_reply, NULL, NULL, &asked);
    if (status == PACE_OK) OK(pace_hub_give_up(t->hub, asked, NULL));
    return status;
}
static pace_status_t do_hub_give_up(things_t *t) {
    pace_asked_t asked = {7};
    return pace_hub_give_up(t->hub, asked, &(bool){false});
}
static pace_status_t do_publish_all(things_t *t) {
    pace_publish_item_t messages[2] = {{t->key, NULL, "x", 1}, {t->key, NULL, NULL, 0}};
    return pace_hub_publish_all(t->hub, messages, 2, PACE_PUBLISH_NO_RECEIPT, NULL);
}
static pace_status_t do_hub_reply(things_t *t) {
    pace_field_t to = {{"Reply-To", 8}, {"_INBOX.0", 8}};
    pace_message_t request = request_of("a.b", &to, 1);
    return pace_hub_reply(t->hub, &request, "x", 1, NULL);
}
static pace_status_t do_publisher_options_init(things_t *t) {
    pace_publisher_options_t options;
    (void)t;
    return pace_publisher_options_init(&options, sizeof options);
}
static pace_status_t do_publisher_new(things_t *t) {
    pace_publisher_t *publisher;
    pace_status_t status = pace_publisher_new(t->hub, "a", NULL, &publisher);
    if (status == PACE_OK) pace_publisher_free(publisher);
    return status;
}
static pace_status_t do_publisher_publish(things_t *t) {
    return pace_publisher_publish(t->publisher, t->key, NULL, "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL);
}
static pace_status_t do_publisher_publish_batch(things_t *t) {
    pace_piece_t pieces[2] = {{"x", 1}, {NULL, 0}};
    return pace_publisher_publish_batch(t->publisher, t->key, pieces, 2, PACE_PUBLISH_NO_RECEIPT, NULL);
}
static pace_status_t do_publisher_stats(things_t *t) {
    pace_publisher_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_publisher_stats(t->publisher, &stats);
}
static pace_status_t do_supervisor_new(things_t *t) {
    pace_supervisor_t *supervisor;
    pace_status_t status = pace_supervisor_new(0, 3, SECOND, 0, 0, &supervisor);
    (void)t;
    if (status == PACE_OK) pace_supervisor_free(supervisor);
    return status;
}
static pace_status_t do_supervisor_is_suspended(things_t *t) {
    bool suspended;
    return pace_supervisor_is_suspended(t->supervisor, &suspended);
}
static int32_t quick_test(void *data, const pace_message_t *message) {
    (void)data;
    return message->size < 100;
}
/* By its place: an argument beside the call that makes it may be looked at before. */
static pace_status_t freed(pace_status_t status, pace_message_filter_t **filter) {
    if (status == PACE_OK) pace_message_filter_free(*filter);
    return status;
}
static pace_status_t do_filter_header(things_t *t) {
    pace_message_filter_t *filter = NULL;
    (void)t;
    return freed(pace_message_filter_header("a", "b", &filter), &filter);
}
static pace_status_t do_filter_bytes(things_t *t) {
    pace_message_filter_t *filter = NULL;
    (void)t;
    return freed(pace_message_filter_bytes(SIZE_MAX, "b", 1, &filter), &filter);
}
static pace_status_t do_filter_time(things_t *t) {
    pace_message_filter_t *filter = NULL;
    (void)t;
    return freed(pace_message_filter_time(0, UINT64_MAX, &filter), &filter);
}
static pace_status_t do_filter_rate(things_t *t) {
    pace_message_filter_t *filter = NULL;
    (void)t;
    return freed(pace_message_filter_rate(1, SECOND, 1, &filter), &filter);
}
static pace_status_t do_filter_test(things_t *t) {
    pace_message_filter_t *filter = NULL;
    (void)t;
    return freed(pace_message_filter_test(quick_test, C, &filter), &filter);
}
static pace_status_t do_filter_and(things_t *t) {
    pace_message_filter_t *filter = NULL;
    return freed(pace_message_filter_and(t->filter, t->filter, &filter), &filter);
}
static pace_status_t do_filter_or(things_t *t) {
    pace_message_filter_t *filter = NULL;
    return freed(pace_message_filter_or(t->filter, t->filter, &filter), &filter);
}
static pace_status_t do_filter_not(things_t *t) {
    pace_message_filter_t *filter = NULL;
    return freed(pace_message_filter_not(t->filter, &filter), &filter);
}
static void quick_record(void *data, const pace_message_t *message) { (void)data, (void)message; }
static void quick_history(void *data, const pace_history_stats_t *stats) { (void)data, (void)stats; }
static pace_status_t do_history_options_init(things_t *t) {
    pace_history_options_t options;
    (void)t;
    return pace_history_options_init(&options, sizeof options);
}
static pace_status_t do_hub_query(things_t *t) {
    return pace_hub_query(t->hub, NULL, quick_record, NULL, NULL);
}
static pace_status_t do_history_stats(things_t *t) {
    return pace_hub_history_stats(t->hub, quick_history, NULL);
}
static pace_status_t do_hub_flush(things_t *t) { return pace_hub_flush(t->hub, NULL); }
static pace_status_t do_close_histories(things_t *t) { return pace_hub_close_histories(t->hub); }
static pace_status_t do_hub_export(things_t *t) {
    return pace_hub_export(t->hub, NULL, "/nowhere/at/all", NULL);
}
static pace_status_t do_lines_read(things_t *t) {
    (void)t;
    return pace_lines_read("/dev/null", NULL, quick_record, NULL, NULL, NULL);
}
static pace_status_t do_archive_open(things_t *t) {
    pace_archive_t *archive;
    (void)t;
    return pace_archive_open("/nowhere/at/all", &archive);
}
static pace_status_t do_hub_replay(things_t *t) {
    pace_replay_t *replay;
    pace_status_t status = pace_hub_replay(t->hub, "a.>", PACE_REPLAY_NOW, 0, quick_message, C, &replay);
    if (status == PACE_OK) pace_replay_free(replay);
    return status;
}
static pace_status_t do_replay_supervised(things_t *t) {
    pace_replay_t *replay;
    pace_replay_options_t options;
    pace_status_t status;
    OK(pace_replay_options_init(&options, sizeof options));
    options.from = PACE_REPLAY_NOW;
    status = pace_hub_replay_supervised(t->hub, "a.>", &options, quick_message, C, &replay);
    if (status == PACE_OK) pace_replay_free(replay);
    return status;
}
static pace_status_t do_replay_resume(things_t *t) { return pace_replay_resume(t->replay, NULL); }
static pace_status_t do_replay_stats(things_t *t) {
    pace_replay_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_replay_stats(t->replay, &stats);
}
static pace_status_t do_replay_end(things_t *t) {
    return pace_replay_end(t->replay, PACE_UNSUBSCRIBE_ASYNC, NULL);
}
static pace_status_t do_replay_mailbox(things_t *t) {
    pace_mailbox_t *mailbox;
    pace_status_t status = pace_hub_replay_mailbox(t->hub, "a.b", NULL, &mailbox);
    if (status == PACE_OK) pace_mailbox_free(mailbox);
    return status;
}
static pace_status_t do_message_fail(things_t *t) {
    (void)t;
    return pace_message_fail("not in a handler of a hub");
}
static pace_status_t do_message_permanent(things_t *t) {
    (void)t;
    return pace_message_permanent();
}
static pace_status_t do_message_retry_after(things_t *t) {
    (void)t;
    return pace_message_retry_after(1);
}
static pace_status_t do_publication_init(things_t *t) {
    pace_publication_t with;
    (void)t;
    return pace_publication_init(&with, sizeof with);
}
static pace_status_t do_response_status(things_t *t) { return pace_response_status(t->response, 404); }
static pace_status_t do_response_header(things_t *t) {
    return pace_response_header(t->response, "X", "y");
}
static pace_status_t do_response_close(things_t *t) { return pace_response_close(t->response); }
static pace_status_t do_body_write(things_t *t) { return pace_body_write(t->body, "x", 1, NULL); }
static pace_status_t do_body_is_pressed(things_t *t) {
    bool flag;
    return pace_body_is_pressed(t->body, &flag);
}
static void quick_writable(void *data) { (void)data; }
static pace_status_t do_body_on_writable(things_t *t) {
    return pace_body_on_writable(t->body, quick_writable, C);
}
static pace_status_t do_cut_off(things_t *t) { return pace_server_cut_off(t->server); }
static pace_status_t do_stop(things_t *t) { return pace_server_stop(t->server); }
static pace_status_t do_drain(things_t *t) { return pace_server_drain(t->server, 0, NULL); }

static void quick_attempt(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    *outcome = 0;
}
static void quick_ended(void *data, uint32_t status) { (void)data, (void)status; }
static void quick_hook(void *data) { (void)data; }
static pace_status_t do_workers_new(things_t *t) {
    pace_workers_t *workers;
    pace_status_t status = pace_workers_new(t->pool, NULL, &workers);
    if (status == PACE_OK) pace_workers_free(workers);
    return status;
}
static pace_status_t do_task_type_new(things_t *t) {
    pace_task_type_t *kind;
    pace_status_t status = pace_task_type_new(t->workers, "kind", NULL, &kind);
    if (status == PACE_OK) pace_task_type_free(kind);
    return status;
}
static pace_status_t do_task_type_post(things_t *t) {
    return pace_task_type_post(t->kind, count_run, C);
}
static pace_status_t do_log_new(things_t *t) {
    pace_log_t *log;
    pace_status_t status = pace_log_new(NULL, &log);
    (void)t;
    if (status == PACE_OK) pace_log_free(log);
    return status;
}
static pace_status_t do_pool_config_load(things_t *t) {
    pace_pool_config_t config;
    (void)t;
    OK(pace_pool_config_init(&config, sizeof config));
    return pace_pool_config_load(&config, NULL, true);
}
static pace_status_t do_log_config_load(things_t *t) {
    pace_log_config_t config;
    (void)t;
    OK(pace_log_config_init(&config, sizeof config));
    return pace_log_config_load(&config, NULL, true);
}
static pace_status_t do_log_flush(things_t *t) { return pace_log_flush(t->records, 3600 * SECOND); }
static pace_status_t do_log_set_levels(things_t *t) { return pace_log_set_levels(t->records, "info"); }
static pace_status_t do_log_level(things_t *t) {
    uint32_t level;
    return pace_log_level(t->records, PACE_LOG_NET, &level);
}
static pace_status_t do_log_stats(things_t *t) {
    pace_log_stats_t stats;
    stats.struct_size = sizeof stats;
    return pace_log_stats(t->records, &stats);
}
static pace_status_t do_workers_metric(things_t *t) {
    pace_label_t label = {"port", "north"};
    pace_metric_t *metric;
    pace_status_t status = pace_workers_metric(t->workers, 0, "parcels", "All", &label, 1, &metric);
    if (status == PACE_OK) pace_metric_free(metric);
    return status;
}
static pace_status_t do_metric_count(things_t *t) { return pace_metric_count(t->count, UINT64_MAX); }
static pace_status_t do_metric_set(things_t *t) { return pace_metric_set(t->level, 1e308); }
static pace_status_t do_metric_change(things_t *t) { return pace_metric_change(t->level, -1e308); }
static pace_status_t do_metric_record(things_t *t) { return pace_metric_record(t->times, UINT64_MAX); }
static void quick_signal(void *data, int32_t signal) { (void)data, (void)signal; }
static const int32_t quick_number = SIGURG;
static pace_status_t do_signals_new(things_t *t) {
    pace_signals_t *signals;
    pace_status_t status = pace_signals_new(t->pool, &quick_number, 1, quick_signal, C, &signals);
    if (status == PACE_OK) pace_signals_free(signals);
    return status;
}
static pace_status_t do_signals_shut_down(things_t *t) {
    pace_signals_t *signals;
    pace_status_t status = pace_signals_shut_down(t->pool, 0, &signals);
    if (status == PACE_OK) pace_signals_free(signals);
    return status;
}
static pace_status_t do_task_type_config_load(things_t *t) {
    pace_task_type_config_t options;
    (void)t;
    OK(pace_task_type_config_init(&options, sizeof options));
    return pace_task_type_config_load(&options, NULL, true);
}
static pace_status_t do_hub_options_load(things_t *t) {
    pace_hub_options_t options;
    (void)t;
    OK(pace_hub_options_init(&options, sizeof options));
    return pace_hub_options_load(&options, NULL, true);
}
static pace_status_t do_history_options_load(things_t *t) {
    pace_history_options_t options;
    (void)t;
    OK(pace_history_options_init(&options, sizeof options));
    return pace_history_options_load(&options, NULL, true);
}
static pace_status_t do_listener_options_load(things_t *t) {
    pace_listener_options_t options;
    (void)t;
    OK(pace_listener_options_init(&options, sizeof options));
    return pace_listener_options_load(&options, NULL, true);
}
static pace_status_t do_http_options_load(things_t *t) {
    pace_http_options_t options;
    (void)t;
    OK(pace_http_options_init(&options, sizeof options));
    return pace_http_options_load(&options, NULL, true);
}
static pace_status_t do_webhook_options_load(things_t *t) {
    pace_webhook_options_t options;
    (void)t;
    OK(pace_webhook_options_init(&options, sizeof options));
    return pace_webhook_options_load(&options, NULL, true);
}
static pace_status_t do_workers_config_load(things_t *t) {
    pace_workers_config_t config;
    (void)t;
    OK(pace_workers_config_init(&config, sizeof config));
    return pace_workers_config_load(&config, NULL, true);
}
static pace_status_t do_task_type_stats(things_t *t) {
    pace_task_type_stats_t stats;
    stats.struct_size = sizeof stats;
    return pace_task_type_stats(t->kind, &stats);
}
static pace_status_t do_workers_submit(things_t *t) {
    pace_task_t task;
    pace_status_t status = pace_workers_submit(t->workers, t->kind, quick_attempt, C, NULL, &task);
    if (status == PACE_OK) OK(pace_workers_detach(t->workers, task));
    return status;
}
static pace_status_t do_workers_submit_batch(things_t *t) {
    pace_attempt_work_t work[2] = {{quick_attempt, C}, {quick_attempt, C}};
    size_t accepted;
    return pace_workers_submit_batch(t->workers, t->kind, work, 2, NULL, NULL, &accepted);
}
static pace_status_t do_workers_wait(things_t *t) {
    return pace_workers_wait(t->workers, t->work, MILLI, NULL);
}
static pace_status_t do_workers_status(things_t *t) {
    uint32_t status;
    return pace_workers_status(t->workers, t->work, &status);
}
static pace_status_t do_workers_cancel(things_t *t) {
    bool flag;
    return pace_workers_cancel(t->workers, t->work, &flag);
}
static pace_status_t do_workers_drop(things_t *t) {
    bool flag;
    return pace_workers_drop(t->workers, t->work, &flag);
}
static pace_status_t do_workers_on_end(things_t *t) {
    return pace_workers_on_end(t->workers, t->work, quick_ended, C);
}
static pace_status_t do_workers_detach(things_t *t) { return pace_workers_detach(t->workers, t->work); }
static pace_status_t do_workers_submit_tagged(things_t *t) {
    return pace_workers_submit_tagged(t->workers, t->kind, 1, NULL, NULL);
}
static pace_status_t do_workers_submit_tagged_batch(things_t *t) {
    const uint64_t tags[2] = {1, 2};
    size_t accepted;
    return pace_workers_submit_tagged_batch(t->workers, t->kind, tags, 2, NULL, NULL, &accepted);
}
static pace_status_t do_workers_every(things_t *t) {
    pace_periodic_t *periodic;
    pace_status_t status =
        pace_workers_every(t->workers, t->kind, SECOND, 0, quick_attempt, C, NULL, &periodic);
    if (status == PACE_OK) {
        OK(pace_periodic_counts(periodic, NULL, NULL));
        pace_periodic_free(periodic);
    }
    return status;
}
static pace_status_t do_workers_audit(things_t *t) {
    pace_workers_audit_t audit;
    audit.struct_size = sizeof audit;
    return pace_workers_audit(t->workers, &audit);
}
static pace_status_t do_workers_worker_stats(things_t *t) {
    pace_worker_stats_t stats;
    stats.struct_size = sizeof stats;
    return pace_workers_worker_stats(t->workers, 0, &stats);
}
static pace_status_t do_workers_health(things_t *t) {
    pace_health_t health;
    health.struct_size = sizeof health;
    return pace_workers_health(t->workers, &health);
}
static pace_status_t do_metrics_format(things_t *t) {
    uint32_t format;
    const char *media_type;
    (void)t;
    return pace_metrics_format("*/*", &format, &media_type);
}
static pace_status_t do_workers_metrics(things_t *t) {
    size_t needed;
    return pace_workers_metrics(t->workers, 0, NULL, 0, &needed);
}
static pace_status_t do_workers_on_shutdown(things_t *t) {
    return pace_workers_on_shutdown(t->workers, "hook", quick_hook, C);
}
static pace_status_t do_workers_shutdown(things_t *t) {
    return pace_workers_shutdown(t->workers, 0, 0, 0, NULL, NULL, NULL);
}
static pace_status_t do_set_active(things_t *t) { return pace_pool_set_active(t->pool, 2); }

/* Each is there for any number, and for a thread that has met no failure. */
static pace_status_t do_texts(things_t *t) {
    (void)t;
    CHECK(pace_version() >> 16 < 256 && pace_strerror(-1000)[0] != 0 && pace_strerror(PACE_OK)[0] != 0);
    CHECK(pace_log_level_name(1000)[0] != 0 && pace_log_component_name(1000)[0] != 0);
    CHECK(pace_status_name(1000)[0] != 0 && pace_last_error() != NULL && pace_last_os_error() >= 0);
    return PACE_OK;
}
static pace_status_t do_conn_hooks_init(things_t *t) {
    pace_conn_hooks_t hooks;
    (void)t;
    return pace_conn_hooks_init(&hooks, sizeof hooks);
}
static pace_status_t do_filter_hooks_init(things_t *t) {
    pace_filter_hooks_t hooks;
    (void)t;
    return pace_filter_hooks_init(&hooks, sizeof hooks);
}
static pace_status_t do_listener_options_init(things_t *t) {
    pace_listener_options_t options;
    (void)t;
    return pace_listener_options_init(&options, sizeof options);
}
static pace_status_t do_server_options_init(things_t *t) {
    pace_server_options_t options;
    (void)t;
    return pace_server_options_init(&options, sizeof options);
}
static pace_status_t do_inherited_take(things_t *t) {
    pace_inherited_t sockets[2];
    size_t count = 2;
    (void)t;
    pace_status_t status = pace_inherited_take(sockets, 2, &count);
    CHECK(status != PACE_OK || count == 0);
    return status;
}

static pace_status_t do_free_null(things_t *t) {
    (void)t;
    pace_server_free(NULL);
    pace_http_free(NULL);
    pace_admission_free(NULL);
    pace_response_free(NULL);
    pace_response_fail(NULL);
    pace_body_free(NULL);
    pace_body_fail(NULL);
    pace_udp_free(NULL);
    pace_cq_free(NULL);
    pace_workers_free(NULL);
    pace_task_type_free(NULL);
    pace_metric_free(NULL);
    pace_signals_free(NULL);
    pace_periodic_free(NULL);
    pace_pool_free(NULL);
    pace_ring_free(NULL);
    pace_queue_free(NULL);
    pace_webhook_free(NULL);
    pace_service_free(NULL);
    pace_archive_free(NULL);
    return PACE_OK;
}

/* Completion queues. What they give is completed at once. */
static pace_status_t do_cq_new(things_t *t) {
    pace_cq_config_t config;
    pace_cq_t *cq;
    OK(pace_cq_config_init(&config, sizeof config));
    if (t->pool == NULL) return pace_cq_config_init(NULL, sizeof config);
    pace_status_t status = pace_cq_new(t->pool, &config, &cq);
    if (status == PACE_OK) pace_cq_free(cq);
    return status;
}
static pace_status_t do_cq_fd(things_t *t) {
    int fd;
    return pace_cq_fd(t->cq, &fd);
}
static pace_status_t do_cq_wait(things_t *t) {
    pace_cq_entry_t entries[4];
    size_t got;
    pace_status_t status = pace_cq_wait(t->cq, entries, 4, 0, &got);
    if (status == PACE_OK) OK(pace_cq_done(t->cq, entries, got));
    return status;
}
static pace_status_t do_cq_done(things_t *t) {
    pace_cq_entry_t entry;
    memset(&entry, 0, sizeof entry);
    entry.token = 77;
    return pace_cq_done(t->cq, &entry, 1);
}
static pace_status_t do_cq_complete(things_t *t) {
    pace_cq_completion_t completion = {0};
    completion.token = 77;
    return pace_cq_complete(t->cq, &completion, 1);
}
static pace_status_t do_cq_renew(things_t *t) { return pace_cq_renew(t->cq, UINT64_MAX); }
static pace_status_t do_cq_stats(things_t *t) {
    pace_cq_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    return pace_cq_stats(t->cq, &stats);
}
static pace_status_t end_handle(things_t *t, pace_status_t status, pace_handle_t handle) {
    if (status != PACE_OK) return status;
    status = pace_handle_deregister(t->pool, handle);
    return status == PACE_ECLOSING || status == PACE_ESTALE ? PACE_OK : status;
}
static pace_status_t do_cq_register(things_t *t) {
    pace_handle_t handle;
    pace_status_t status = pace_cq_register(t->cq, t->fd, NULL, 1, &handle);
    return end_handle(t, status, handle);
}
static pace_status_t do_cq_every(things_t *t) {
    pace_handle_t handle;
    pace_status_t status = pace_cq_every(t->cq, SECOND, 2, &handle);
    return end_handle(t, status, handle);
}
static pace_status_t do_cq_after(things_t *t) {
    pace_timer_t timer;
    bool cancelled;
    pace_status_t status = pace_cq_after(t->cq, 3600 * SECOND, 3, &timer);
    if (status == PACE_OK) OK(pace_timer_cancel(t->pool, timer, &cancelled));
    return status;
}
static pace_status_t do_cq_post(things_t *t) {
    const uint64_t tags[2] = {4, 5};
    return pace_cq_post(t->cq, tags, 2, NULL);
}
static pace_status_t do_cq_wake(things_t *t) { return pace_cq_wake(t->cq, 6); }
static pace_status_t do_cq_read(things_t *t) { return pace_cq_read(t->cq, 77); }
static pace_status_t do_cq_upgrade(things_t *t) {
    return pace_cq_upgrade(t->cq, 77, "echo", NULL, 0, t->server, 0, NULL);
}
static pace_status_t do_cq_admit(things_t *t) {
    pace_admission_t *admission;
    return pace_cq_admit(t->cq, 77, &admission);
}
static pace_status_t do_cq_is_cancelled(things_t *t) {
    bool cancelled;
    return pace_cq_is_cancelled(t->cq, 77, &cancelled);
}
static pace_status_t do_cq_server(things_t *t) {
    pace_server_t *server;
    pace_status_t status = pace_cq_server(t->cq, NULL, PACE_WANTED_ALL, 6, &server);
    if (status == PACE_OK) pace_server_free(server);
    return status;
}
static pace_status_t do_cq_connect(things_t *t) {
    return pace_cq_connect(t->server, "unix:@nobody listens here", 0, NULL);
}
static pace_status_t do_cq_udp(things_t *t) {
    pace_udp_options_t options;
    pace_udp_t *udp;
    OK(pace_udp_options_init(&options, sizeof options));
    options.bind = TCP;
    pace_status_t status = pace_cq_udp(t->cq, &options, 1024, 7, &udp);
    if (status == PACE_OK) pace_udp_free(udp);
    return status;
}
static pace_status_t do_cq_route(things_t *t) {
    return pace_cq_route(t->cq, t->http, "PUT", new_pattern(), true, 8);
}
static pace_status_t do_cq_fallback(things_t *t) { return pace_cq_fallback(t->cq, t->http, 9); }
static pace_status_t do_cq_http_ends(things_t *t) { return pace_cq_http_ends(t->cq, t->http, 10); }
static pace_status_t do_cq_workers(things_t *t) { return pace_cq_workers(t->cq, t->workers, 11); }
static pace_status_t do_cq_task(things_t *t) { return pace_cq_task(t->cq, t->workers, t->work, 12); }
static pace_status_t do_cq_mailbox(things_t *t) {
    pace_mailbox_t *mailbox;
    pace_status_t status = pace_hub_mailbox(t->hub, "cq", NULL, &mailbox);
    if (status != PACE_OK) return status;
    status = pace_cq_mailbox(t->cq, mailbox, 13);
    pace_mailbox_free(mailbox);
    return status;
}
static pace_status_t do_cq_replay(things_t *t) {
    pace_mailbox_t *replay;
    pace_status_t status = pace_hub_replay_mailbox(t->hub, "cq", NULL, &replay);
    if (status != PACE_OK) return status;
    status = pace_cq_mailbox(t->cq, replay, 14);
    pace_mailbox_free(replay);
    return status;
}
static pace_status_t do_cq_request(things_t *t) {
    return pace_cq_request(t->cq, t->key, NULL, "abc", 3, MILLI, 15, NULL);
}
static pace_status_t do_cq_log(things_t *t) {
    pace_log_config_t config;
    pace_log_t *log;
    OK(pace_log_config_init(&config, sizeof config));
    config.cq_capacity = 8;
    OK(pace_log_new(&config, &log));
    pace_status_t status = pace_cq_log(t->cq, log, 16);
    pace_log_free(log);
    return status;
}
static pace_status_t do_cq_signals(things_t *t) {
    const int numbers[1] = {SIGKILL};
    pace_signals_t *signals;
    return pace_cq_signals(t->cq, numbers, 1, 17, &signals);
}
static pace_status_t do_cq_close(things_t *t) { return pace_cq_close(t->cq); }

/* --- the table ------------------------------------------------------------------------------------ */

#define B(status) (UINT32_C(1) << -(status))
#define IS_OK B(PACE_OK)
#define GONE B(PACE_ESTALE)
#define DOWN B(PACE_ESHUTDOWN)
#define FULL B(PACE_EFULL)
#define LATE B(PACE_ETIMEDOUT)
#define NONE B(PACE_EUNSUPPORTED)

/* What it may answer while its things are there, in whatever state others leave them. */
typedef struct row {
    const char *name;
    pace_status_t (*call)(things_t *);
    uint32_t open; /* pool open, things there */
    uint32_t gone; /* pool open, ids made up */
    uint32_t down; /* pool shut down */
    /* p pool, r ring, q queue, s server, h HTTP, u datagrams, c completion queue, a answer, b body, w worker pool, k kind, x figures, - nothing */
    char needs;
} row_t;

#define INV B(PACE_EINVAL)
#define TASKS (IS_OK | GONE | B(PACE_EBUSY))

static const row_t table[] = {
    {"post", do_post, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"try_post", do_try_post, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"post_bytes", do_post_bytes, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"post_batch", do_post_batch, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"submit", do_submit, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"try_submit", do_try_submit, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"task_wait", do_wait, TASKS | LATE | B(PACE_ECANCELLED) | B(PACE_EDEADLOCK), GONE,
     IS_OK | GONE | B(PACE_ECANCELLED), 'p'},
    {"task_is_done", do_is_done, IS_OK | GONE, GONE, IS_OK | GONE, 'p'},
    {"task_cancel", do_cancel, IS_OK | GONE, GONE, IS_OK | GONE, 'p'},
    {"task_detach", do_detach, TASKS, GONE, IS_OK | GONE, 'p'},
    {"strand_new", do_strand_new, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"strand_post", do_strand_post, IS_OK | FULL | GONE, GONE, DOWN | GONE, 'p'},
    {"strand_try_post", do_strand_try_post, IS_OK | FULL | GONE, GONE, DOWN | GONE, 'p'},
    {"pool_metrics", do_pool_metrics, IS_OK | FULL, IS_OK | FULL, IS_OK | FULL, 'p'},
    {"pool_trace", do_pool_trace, IS_OK | INV, IS_OK, DOWN, 'p'},
    {"pool_disk", do_pool_disk, IS_OK, IS_OK, IS_OK, 'p'},
    {"strand_post_batch", do_strand_post_batch, IS_OK | FULL | GONE, GONE, DOWN | GONE, 'p'},
    {"strand_submit", do_strand_submit, IS_OK | FULL | GONE, GONE, DOWN | GONE, 'p'},
    {"strand_try_submit", do_strand_try_submit, IS_OK | FULL | GONE, GONE, DOWN | GONE, 'p'},
    {"strand_close", do_strand_close, IS_OK | GONE, GONE, IS_OK | GONE, 'p'},
    {"register", do_register, IS_OK | FULL | B(PACE_EOS), IS_OK, DOWN, 'p'},
    {"every", do_every, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"pause", do_pause, IS_OK | GONE, GONE, GONE, 'p'},
    {"resume", do_resume, IS_OK | GONE, GONE, GONE, 'p'},
    {"deregister", do_deregister, IS_OK | GONE | B(PACE_ECLOSING), GONE, GONE, 'p'},
    {"is_open", do_is_open, IS_OK, IS_OK, IS_OK, 'p'},
    {"after", do_after, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"timer_cancel", do_timer_cancel, IS_OK, IS_OK, IS_OK, 'p'},
    {"timer_postpone", do_timer_postpone, IS_OK, IS_OK, IS_OK, 'p'},
    {"timer_is_pending", do_timer_pending, IS_OK, IS_OK, IS_OK, 'p'},
    {"ring_serial", do_ring_serial, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"ring_concurrent", do_ring_concurrent, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"publish", do_publish, IS_OK | FULL | DOWN, IS_OK, DOWN, 'r'},
    {"try_publish", do_try_publish, IS_OK | FULL | DOWN, IS_OK | FULL, DOWN, 'r'},
    {"publish_batch", do_publish_batch, IS_OK | FULL | DOWN, IS_OK, DOWN, 'r'},
    {"ring_counts", do_ring_counts, IS_OK, IS_OK, IS_OK, 'r'},
    {"push", do_push, IS_OK | LATE | DOWN, IS_OK | LATE, IS_OK | LATE, 'q'},
    {"push_batch", do_push_batch, IS_OK | FULL | DOWN, IS_OK | FULL, IS_OK | FULL, 'q'},
    {"pop", do_pop, IS_OK | LATE | DOWN, IS_OK | LATE, IS_OK | LATE, 'q'},
    {"pop_batch", do_pop_batch, IS_OK | B(PACE_EEMPTY) | DOWN, IS_OK | B(PACE_EEMPTY),
     IS_OK | B(PACE_EEMPTY), 'q'},
    {"queue_pollable", do_pollable, IS_OK, IS_OK, IS_OK, 'q'},
    {"queue_len", do_queue_len, IS_OK, IS_OK, IS_OK, 'q'},
    {"queue_capacity", do_queue_capacity, IS_OK, IS_OK, IS_OK, 'q'},
    {"queue_is_closed", do_queue_is_closed, IS_OK, IS_OK, IS_OK, 'q'},
    {"join", do_join, IS_OK | FULL | INV, IS_OK, DOWN, 'p'},
    {"pool_pollable", do_pool_pollable, INV, INV, DOWN, 'p'},
    {"pool_name_host", do_name_host, IS_OK | GONE, GONE, DOWN, 'p'},
    {"stats", do_stats, IS_OK, IS_OK, IS_OK, 'p'},
    {"thread_stats", do_thread_stats, IS_OK, IS_OK, IS_OK, 'p'},
    {"set_stats", do_set_stats, IS_OK, IS_OK, IS_OK, 'p'},
    {"audit", do_audit, IS_OK, IS_OK, IS_OK, 'p'},
    {"promote", do_promote, IS_OK, IS_OK, IS_OK, '-'},
    {"free(NULL)", do_free_null, IS_OK, IS_OK, IS_OK, '-'},
    {"server_new", do_server_new, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"server_address", do_server_address, IS_OK, IS_OK, IS_OK, 's'},
    {"server_connect", do_server_connect, B(PACE_EOS) | FULL, B(PACE_EOS), DOWN, 's'},
    {"server_stats", do_server_stats, IS_OK, IS_OK, IS_OK, 's'},
    {"listener_stats", do_listener_stats, IS_OK, IS_OK, IS_OK, 's'},
    {"conn_write", do_conn_write, IS_OK | GONE | FULL, GONE, GONE, 's'},
    {"conn_write_vectored", do_conn_write_vectored, IS_OK | GONE | FULL, GONE, GONE, 's'},
    {"conn_write_tracked", do_conn_write_tracked, IS_OK | GONE | FULL, GONE, GONE, 's'},
    {"conn_write_owned", do_conn_write_owned, IS_OK | GONE | FULL, GONE, GONE, 's'},
    {"conn_pause", do_conn_pause, IS_OK | GONE, GONE, GONE, 's'},
    {"conn_resume", do_conn_resume, IS_OK | GONE, GONE, GONE, 's'},
    {"conn_notify", do_conn_notify, IS_OK | GONE, GONE, GONE, 's'},
    {"conn_is_open", do_conn_is_open, IS_OK, IS_OK, IS_OK, 's'},
    {"conn_queued", do_conn_queued, IS_OK | GONE, GONE, GONE, 's'},
    {"conn_peer", do_conn_peer, IS_OK | GONE, GONE, GONE, 's'},
    {"conn_local", do_conn_local, IS_OK | GONE, GONE, GONE, 's'},
    {"conn_shutdown_write", do_conn_shutdown_write, IS_OK | GONE, GONE, GONE, 's'},
    {"conn_close", do_conn_close, IS_OK | GONE, GONE, GONE, 's'},
    {"conn_abort", do_conn_abort, IS_OK | GONE, GONE, GONE, 's'},
    {"http_new", do_http_new, IS_OK, IS_OK, IS_OK, 'p'},
    {"http_route", do_http_route, IS_OK, IS_OK, IS_OK, 'h'},
    {"http_route_streaming", do_http_route_streaming, IS_OK, IS_OK, IS_OK, 'h'},
    {"http_around", do_http_around, IS_OK, IS_OK, IS_OK, 'h'},
    {"http_fallback", do_http_fallback, IS_OK, IS_OK, IS_OK, 'h'},
    {"http_on_end", do_http_on_end, IS_OK, IS_OK, IS_OK, 'h'},
    {"http_access_log", do_http_access_log, IS_OK, IS_OK, IS_OK, 'h'},
    {"query_pairs", do_query_pairs, IS_OK, IS_OK, IS_OK, '-'},
    {"json_kind", do_json_kind, IS_OK, IS_OK, IS_OK, '-'},
    {"json_text", do_json_text, IS_OK, IS_OK, IS_OK, '-'},
    {"json_number", do_json_number, IS_OK, IS_OK, IS_OK, '-'},
    {"json_quote", do_json_quote, IS_OK, IS_OK, IS_OK, '-'},
    {"http_options_init", do_http_options_init, IS_OK, IS_OK, IS_OK, '-'},
    {"frame_delimited", do_frame_delimited, IS_OK, IS_OK, IS_OK, '-'},
    {"frame_prefixed", do_frame_prefixed, IS_OK, IS_OK, IS_OK, '-'},
    {"frame_fixed", do_frame_fixed, IS_OK, IS_OK, IS_OK, '-'},
    {"ip_read", do_ip_read, IS_OK, IS_OK, IS_OK, '-'},
    {"texts", do_texts, IS_OK, IS_OK, IS_OK, '-'},
    {"conn_hooks_init", do_conn_hooks_init, IS_OK, IS_OK, IS_OK, '-'},
    {"filter_hooks_init", do_filter_hooks_init, IS_OK, IS_OK, IS_OK, '-'},
    {"listener_options_init", do_listener_options_init, IS_OK, IS_OK, IS_OK, '-'},
    {"server_options_init", do_server_options_init, IS_OK, IS_OK, IS_OK, '-'},
    {"inherited_take", do_inherited_take, IS_OK, IS_OK, IS_OK, '-'},
    {"ip_text", do_ip_text, IS_OK, IS_OK, IS_OK, '-'},
    {"udp_new", do_udp_new, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"udp_address", do_udp_address, IS_OK, IS_OK, IS_OK, 'u'},
    {"udp_send", do_udp_send, INV, INV, INV, 'u'},
    {"udp_send_to", do_udp_send_to, IS_OK | FULL, IS_OK | FULL, GONE, 'u'},
    {"udp_send_batch", do_udp_send_batch, IS_OK | FULL, IS_OK | FULL, GONE, 'u'},
    {"udp_join", do_udp_join, B(PACE_EOS), B(PACE_EOS), GONE, 'u'},
    {"udp_leave", do_udp_leave, B(PACE_EOS), B(PACE_EOS), GONE, 'u'},
    {"udp_is_open", do_udp_is_open, IS_OK, IS_OK, IS_OK, 'u'},
    {"udp_stats", do_udp_stats, IS_OK, IS_OK, IS_OK, 'u'},
    {"request_fail", do_request_fail, GONE, GONE, GONE, '-'},
    {"response_status", do_response_status, IS_OK, IS_OK, IS_OK, 'a'},
    {"response_header", do_response_header, IS_OK, IS_OK, IS_OK, 'a'},
    {"response_close", do_response_close, IS_OK, IS_OK, IS_OK, 'a'},
    {"body_write", do_body_write, IS_OK | FULL | GONE, IS_OK | FULL, GONE, 'b'},
    {"body_is_pressed", do_body_is_pressed, IS_OK, IS_OK, IS_OK, 'b'},
    {"body_on_writable", do_body_on_writable, IS_OK, IS_OK, IS_OK, 'b'},
    {"hub_new", do_hub_new, IS_OK | FULL, IS_OK, DOWN, 'p'},
    {"hub_key", do_hub_key, IS_OK, IS_OK, IS_OK, 'y'},
    {"key_text", do_key_text, IS_OK, IS_OK, IS_OK, 'k'},
    {"key_await_room", do_key_await_room, IS_OK | B(PACE_ETIMEDOUT), IS_OK | B(PACE_ETIMEDOUT), DOWN,
     'k'},
    {"key_publish", do_key_publish, IS_OK | FULL, IS_OK | FULL, DOWN, 'k'},
    {"key_publish_with", do_key_publish_with, IS_OK | FULL, IS_OK | FULL, DOWN, 'k'},
    {"key_publish_batch", do_key_publish_batch, IS_OK | FULL, IS_OK | FULL, DOWN, 'k'},
    {"hub_publish", do_hub_publish, IS_OK | FULL, IS_OK | FULL, DOWN, 'y'},
    {"hub_audit", do_hub_audit, IS_OK, IS_OK, IS_OK, 'y'},
    {"hub_subscriber_count", do_hub_subscriber_count, IS_OK, IS_OK, IS_OK, 'y'},
    {"hub_patterns", do_hub_patterns, IS_OK, IS_OK, IS_OK, 'y'},
    {"hub_subscribe", do_hub_subscribe, IS_OK, IS_OK, DOWN, 'y'},
    {"subscription_stats", do_subscription_stats, IS_OK | GONE, GONE, IS_OK | GONE, 'y'},
    {"hub_mailbox", do_hub_mailbox, IS_OK, IS_OK, DOWN, 'y'},
    {"mailbox_stats", do_mailbox_stats, IS_OK, IS_OK, IS_OK, 'm'},
    {"mailbox_bury", do_mailbox_bury, IS_OK | INV, IS_OK | INV, IS_OK | INV, 'm'},
    {"mailbox_acknowledge", do_mailbox_acknowledge, INV, INV, INV, 'm'},
    {"mailbox_crashed", do_mailbox_crashed, IS_OK, IS_OK, IS_OK, 'm'},
    {"mailbox_catch_up", do_mailbox_catch_up, IS_OK, IS_OK, IS_OK, 'm'},
    {"mailbox_suspend", do_mailbox_suspend, IS_OK, IS_OK, IS_OK, 'm'},
    {"mailbox_resume", do_mailbox_resume, IS_OK, IS_OK, IS_OK, 'm'},
    {"dead_letters", do_dead_letters, IS_OK, IS_OK, IS_OK, 'y'},
    {"remove_dead_letters", do_remove_dead_letters, IS_OK, IS_OK, IS_OK, 'y'},
    {"redeliver", do_redeliver, IS_OK, IS_OK, DOWN, 'y'},
    {"dead_letter_stats", do_dead_letter_stats, IS_OK, IS_OK, IS_OK, 'y'},
    {"hub_errors", do_hub_errors, IS_OK, IS_OK, IS_OK, 'y'},
    {"hub_stats", do_hub_stats, IS_OK, IS_OK, IS_OK, 'y'},
    {"hub_metrics", do_hub_metrics, FULL, FULL, FULL, 'y'},
    {"hub_share_metrics", do_hub_share_metrics, IS_OK, IS_OK, IS_OK, 'y'},
    {"threshold_init", do_threshold_init, IS_OK, IS_OK, IS_OK, '-'},
    {"hub_watch", do_hub_watch, IS_OK | FULL, IS_OK, DOWN, 'y'},
    {"watch_stats", do_watch_stats, IS_OK, IS_OK, IS_OK, 't'},
    {"webhook_options_init", do_webhook_options_init, IS_OK, IS_OK, IS_OK, '-'},
    {"webhook_new", do_webhook_new, IS_OK | NONE, IS_OK | NONE, IS_OK | NONE, '-'},
    {"service_start", do_service_start, IS_OK | NONE, IS_OK | NONE, IS_OK | NONE | DOWN, 'p'},
    {"hub_resume", do_hub_resume, IS_OK | GONE, GONE, IS_OK | GONE, 'y'},
    {"key_request", do_key_request, LATE | B(PACE_EDEADLOCK), LATE | B(PACE_EDEADLOCK), DOWN, 'k'},
    {"key_request_async", do_key_request_async, IS_OK | FULL, IS_OK | FULL, DOWN, 'k'},
    {"hub_give_up", do_hub_give_up, IS_OK, IS_OK, IS_OK, 'y'},
    {"hub_publish_all", do_publish_all, IS_OK | FULL, IS_OK | FULL, DOWN, 'y'},
    {"hub_reply", do_hub_reply, IS_OK, IS_OK, DOWN, 'y'},
    {"history_options_init", do_history_options_init, IS_OK, IS_OK, IS_OK, '-'},
    {"hub_query", do_hub_query, IS_OK, IS_OK, IS_OK, 'y'},
    {"history_stats", do_history_stats, IS_OK, IS_OK, IS_OK, 'y'},
    {"hub_flush", do_hub_flush, IS_OK, IS_OK, IS_OK, 'y'},
    {"hub_close_histories", do_close_histories, IS_OK, IS_OK, IS_OK, 'y'},
    {"hub_export", do_hub_export, B(PACE_EOS), B(PACE_EOS), B(PACE_EOS), 'y'},
    {"lines_read", do_lines_read, IS_OK, IS_OK, IS_OK, '-'},
    {"archive_open", do_archive_open, B(PACE_EOS) | NONE, B(PACE_EOS) | NONE, B(PACE_EOS) | NONE, '-'},
    {"hub_replay", do_hub_replay, IS_OK, IS_OK, DOWN, 'y'},
    {"hub_replay_supervised", do_replay_supervised, IS_OK, IS_OK, DOWN, 'y'},
    {"replay_resume", do_replay_resume, IS_OK, IS_OK, IS_OK, 'g'},
    {"replay_stats", do_replay_stats, IS_OK, IS_OK, IS_OK, 'g'},
    {"replay_end", do_replay_end, IS_OK, IS_OK, IS_OK, 'g'},
    {"replay_mailbox", do_replay_mailbox, IS_OK, IS_OK, DOWN, 'y'},
    {"replay_mailbox_bury", do_replay_mailbox_bury, IS_OK | INV, IS_OK | INV, IS_OK | INV, 'o'},
    {"replay_mailbox_stats", do_replay_mailbox_stats, IS_OK, IS_OK, IS_OK, 'o'},
    {"publisher_options_init", do_publisher_options_init, IS_OK, IS_OK, IS_OK, '-'},
    {"publisher_new", do_publisher_new, IS_OK, IS_OK, IS_OK, 'y'},
    {"publisher_publish", do_publisher_publish, IS_OK | FULL, IS_OK | FULL, DOWN, 'i'},
    {"publisher_publish_batch", do_publisher_publish_batch, IS_OK | FULL, IS_OK | FULL, DOWN, 'i'},
    {"publisher_stats", do_publisher_stats, IS_OK, IS_OK, IS_OK, 'i'},
    {"supervisor_new", do_supervisor_new, IS_OK, IS_OK, IS_OK, '-'},
    {"supervisor_is_suspended", do_supervisor_is_suspended, IS_OK, IS_OK, IS_OK, 'j'},
    {"filter_header", do_filter_header, IS_OK, IS_OK, IS_OK, '-'},
    {"filter_bytes", do_filter_bytes, IS_OK, IS_OK, IS_OK, '-'},
    {"filter_time", do_filter_time, IS_OK, IS_OK, IS_OK, '-'},
    {"filter_rate", do_filter_rate, IS_OK, IS_OK, IS_OK, '-'},
    {"filter_test", do_filter_test, IS_OK, IS_OK, IS_OK, '-'},
    {"filter_and", do_filter_and, IS_OK, IS_OK, IS_OK, 'n'},
    {"filter_or", do_filter_or, IS_OK, IS_OK, IS_OK, 'n'},
    {"filter_not", do_filter_not, IS_OK, IS_OK, IS_OK, 'n'},
    {"message_fail", do_message_fail, GONE, GONE, GONE, '-'},
    {"message_permanent", do_message_permanent, GONE, GONE, GONE, '-'},
    {"message_retry_after", do_message_retry_after, GONE, GONE, GONE, '-'},
    {"publication_init", do_publication_init, IS_OK, IS_OK, IS_OK, '-'},
    {"http_server", do_http_server, INV, INV, INV, 'h'},
    {"http_fail", do_http_fail, INV, INV, INV, 'h'},
    {"http_stats", do_http_stats, INV, INV, INV, 'h'},
    {"workers_new", do_workers_new, IS_OK, IS_OK, DOWN, 'p'},
    {"task_type_new", do_task_type_new, IS_OK, IS_OK, IS_OK, 'w'},
    {"task_type_stats", do_task_type_stats, IS_OK, IS_OK, IS_OK, 'k'},
    {"task_type_post", do_task_type_post, IS_OK | FULL, IS_OK, DOWN, 'k'},
    {"log_new", do_log_new, IS_OK | B(PACE_EOS), IS_OK, IS_OK, '-'},
    {"pool_config_load", do_pool_config_load, IS_OK, IS_OK, IS_OK, '-'},
    {"log_config_load", do_log_config_load, IS_OK, IS_OK, IS_OK, '-'},
    {"log_flush", do_log_flush, IS_OK, IS_OK, IS_OK, 'L'},
    {"log_set_levels", do_log_set_levels, IS_OK, IS_OK, IS_OK, 'L'},
    {"log_level", do_log_level, IS_OK, IS_OK, IS_OK, 'L'},
    {"log_stats", do_log_stats, IS_OK, IS_OK, IS_OK, 'L'},
    {"signals_new", do_signals_new, IS_OK | FULL | B(PACE_EOS), IS_OK, DOWN, 'p'},
    {"signals_shut_down", do_signals_shut_down, IS_OK | FULL | B(PACE_EOS), IS_OK, DOWN, 'p'},
    {"workers_config_load", do_workers_config_load, IS_OK, IS_OK, IS_OK, '-'},
    {"task_type_config_load", do_task_type_config_load, IS_OK, IS_OK, IS_OK, '-'},
    {"hub_options_load", do_hub_options_load, IS_OK, IS_OK, IS_OK, '-'},
    {"history_options_load", do_history_options_load, IS_OK, IS_OK, IS_OK, '-'},
    {"listener_options_load", do_listener_options_load, IS_OK, IS_OK, IS_OK, '-'},
    {"http_options_load", do_http_options_load, IS_OK, IS_OK, IS_OK, '-'},
    {"webhook_options_load", do_webhook_options_load, IS_OK, IS_OK, IS_OK, '-'},
    {"workers_metric", do_workers_metric, IS_OK, IS_OK, IS_OK, 'w'},
    {"metric_count", do_metric_count, IS_OK, IS_OK, IS_OK, 'x'},
    {"metric_set", do_metric_set, IS_OK, IS_OK, IS_OK, 'x'},
    {"metric_change", do_metric_change, IS_OK, IS_OK, IS_OK, 'x'},
    {"metric_record", do_metric_record, IS_OK, IS_OK, IS_OK, 'x'},
    {"workers_submit", do_workers_submit, IS_OK | FULL | DOWN, IS_OK, DOWN, 'w'},
    {"workers_submit_batch", do_workers_submit_batch, IS_OK | FULL | DOWN, IS_OK, DOWN, 'w'},
    {"workers_wait", do_workers_wait, TASKS | LATE | B(PACE_EDEADLOCK), GONE, IS_OK | GONE, 'w'},
    {"workers_status", do_workers_status, IS_OK | GONE, GONE, IS_OK | GONE, 'w'},
    {"workers_cancel", do_workers_cancel, IS_OK | GONE, GONE, IS_OK | GONE, 'w'},
    {"workers_drop", do_workers_drop, IS_OK | GONE, GONE, IS_OK | GONE, 'w'},
    {"workers_on_end", do_workers_on_end, TASKS, GONE, IS_OK | GONE, 'w'},
    {"workers_detach", do_workers_detach, TASKS, GONE, IS_OK | GONE, 'w'},
    {"workers_submit_tagged", do_workers_submit_tagged, IS_OK | FULL | DOWN, IS_OK, DOWN, 'w'},
    {"workers_submit_tagged_batch", do_workers_submit_tagged_batch, IS_OK | FULL | DOWN, IS_OK, DOWN,
     'w'},
    {"workers_every", do_workers_every, IS_OK | FULL | DOWN, IS_OK, DOWN, 'w'},
    {"workers_audit", do_workers_audit, IS_OK, IS_OK, IS_OK, 'w'},
    {"workers_worker_stats", do_workers_worker_stats, IS_OK, IS_OK, IS_OK, 'w'},
    {"workers_health", do_workers_health, IS_OK, IS_OK, IS_OK, 'w'},
    {"metrics_format", do_metrics_format, IS_OK, IS_OK, IS_OK, '-'},
    {"workers_metrics", do_workers_metrics, FULL, FULL, FULL, 'w'},
    {"workers_on_shutdown", do_workers_on_shutdown, IS_OK, IS_OK, IS_OK, 'w'},
    {"set_active", do_set_active, IS_OK, IS_OK, DOWN, 'p'},
    {"cq_new", do_cq_new, IS_OK, IS_OK, DOWN, 'p'},
    {"cq_fd", do_cq_fd, IS_OK, IS_OK, IS_OK, 'c'},
    {"cq_wait", do_cq_wait, IS_OK | LATE, IS_OK | LATE, IS_OK | LATE | DOWN, 'c'},
    {"cq_done", do_cq_done, GONE, GONE, GONE, 'c'},
    {"cq_complete", do_cq_complete, GONE, GONE, GONE, 'c'},
    {"cq_renew", do_cq_renew, GONE, GONE, GONE, 'c'},
    {"cq_stats", do_cq_stats, IS_OK, IS_OK, IS_OK, 'c'},
    {"cq_register", do_cq_register, IS_OK | FULL | B(PACE_EOS), IS_OK, DOWN, 'c'},
    {"cq_every", do_cq_every, IS_OK | FULL, IS_OK, DOWN, 'c'},
    {"cq_after", do_cq_after, IS_OK | FULL, IS_OK, DOWN, 'c'},
    {"cq_post", do_cq_post, IS_OK | FULL, IS_OK | FULL, DOWN, 'c'},
    {"cq_wake", do_cq_wake, IS_OK, IS_OK, DOWN, 'c'},
    {"cq_read", do_cq_read, GONE, GONE, GONE, 'c'},
    {"cq_upgrade", do_cq_upgrade, INV, INV, INV, 'c'},
    {"cq_admit", do_cq_admit, GONE, GONE, GONE, 'c'},
    {"cq_is_cancelled", do_cq_is_cancelled, GONE, GONE, GONE, 'c'},
    {"cq_server", do_cq_server, IS_OK | FULL, IS_OK, DOWN, 'c'},
    {"cq_connect", do_cq_connect, INV, INV, INV, 's'},
    {"cq_udp", do_cq_udp, IS_OK | FULL, IS_OK | FULL, DOWN, 'c'},
    {"cq_route", do_cq_route, IS_OK, IS_OK, IS_OK, 'c'},
    {"cq_fallback", do_cq_fallback, IS_OK, IS_OK, IS_OK, 'c'},
    {"cq_http_ends", do_cq_http_ends, IS_OK, IS_OK, IS_OK, 'c'},
    {"cq_workers", do_cq_workers, IS_OK | INV, IS_OK | INV, IS_OK | INV, 'c'},
    {"cq_task", do_cq_task, TASKS, GONE, IS_OK | GONE, 'c'},
    {"cq_mailbox", do_cq_mailbox, IS_OK, IS_OK, DOWN, 'c'},
    {"cq_replay", do_cq_replay, IS_OK, IS_OK, IS_OK | DOWN, 'c'},
    {"cq_request", do_cq_request, IS_OK | FULL, IS_OK | FULL, DOWN, 'c'},
    {"cq_log", do_cq_log, IS_OK, IS_OK, IS_OK, 'c'},
    {"cq_signals", do_cq_signals, INV, INV, INV | DOWN, 'c'},
    /* What ends things comes last. */
    {"workers_shutdown", do_workers_shutdown, IS_OK, IS_OK, IS_OK, 'w'},
    {"subscription_drain", do_subscription_drain, IS_OK | GONE | B(PACE_EDEADLOCK), GONE, IS_OK | GONE,
     'y'},
    {"hub_unsubscribe", do_hub_unsubscribe, IS_OK | GONE, GONE, IS_OK | GONE, 'y'},
    {"mailbox_unsubscribe", do_mailbox_unsubscribe, IS_OK, IS_OK, IS_OK, 'm'},
    {"strand_drain", do_strand_drain, IS_OK | GONE, GONE, IS_OK | GONE, 'p'},
    {"udp_drain", do_udp_drain, IS_OK, IS_OK, IS_OK, 'u'},
    {"udp_close", do_udp_close, IS_OK | GONE, IS_OK, GONE, 'u'},
    {"cq_close", do_cq_close, IS_OK, IS_OK, IS_OK, 'c'},
    {"cut_off", do_cut_off, IS_OK, IS_OK, IS_OK, 's'},
    {"stop", do_stop, IS_OK, IS_OK, IS_OK, 's'},
    {"drain", do_drain, IS_OK, IS_OK, IS_OK, 's'},
    {"ring_close", do_ring_close, IS_OK, IS_OK, IS_OK, 'r'},
    {"queue_close", do_queue_close, IS_OK, IS_OK, IS_OK, 'q'},
    {"shutdown", do_shutdown, IS_OK, IS_OK, IS_OK, 'p'},
    {"stop_now", do_stop_now, IS_OK, IS_OK, IS_OK, 'p'},
};
#define ROWS (sizeof table / sizeof *table)
/* How many of them end nothing that others need. */
#define HARMLESS (ROWS - 17)

static void expect(const char *situation, const row_t *row, uint32_t allowed, pace_status_t status) {
    if (status <= 0 && status > -32 && (allowed & B(status)) != 0) return;
    fprintf(stderr, "%s, %s: %s (%s)\n", row->name, situation, pace_status_name(status),
            pace_last_error());
    abort();
}

/* A response, and the body of one, that their handlers have given away. */
static _Atomic(pace_response_t *) kept_response;
static _Atomic(pace_body_t *) kept_body;
static void keep_response(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    atomic_store(&kept_response, response);
}
static void keep_body(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_body_t *body;
    (void)data, (void)request;
    OK(pace_response_stream(response, PACE_LENGTH_UNKNOWN, &body));
    atomic_store(&kept_body, body);
}
static void make_answers(things_t *t) {
    static const char *const requests[2] = {"GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
                                            "GET /b HTTP/1.1\r\nHost: a\r\n\r\n"};
    char address[PACE_ADDRESS_SIZE];
    pace_listener_options_t listener = listener_at(TCP);
    pace_http_options_t options;
    pace_server_t *server;
    OK(pace_http_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    OK(pace_http_new(t->pool, &t->asked));
    OK(pace_http_route(t->asked, "GET", "/a", keep_response, C));
    OK(pace_http_route(t->asked, "GET", "/b", keep_body, C));
    OK(pace_http_start(t->asked, &options));
    OK(pace_http_server(t->asked, &server));
    OK(pace_server_address(server, 0, address, sizeof address));
    for (int i = 0; i < 2; i++) {
        t->clients[i] = dial(address);
        send_text(t->clients[i], requests[i]);
    }
    UNTIL((t->response = atomic_exchange(&kept_response, NULL)) != NULL);
    UNTIL((t->body = atomic_exchange(&kept_body, NULL)) != NULL);
}

static void make_things(things_t *t) {
    int ends[2];
    memset(t, 0, sizeof *t);
    t->pool = pool_of(2);
    make_pipe(ends);
    t->fd = ends[0];
    OK(pace_ring_serial(t->pool, 8, 1024, quick_events, C, &t->ring));
    OK(pace_queue_new(8, 1024, &t->queue));
    OK(pace_pool_submit(t->pool, 2, count_run, C, &t->task));
    OK(pace_strand_new(t->pool, &t->strand));
    OK(pace_pool_every(t->pool, SECOND, quick_tick, C, &t->handle));
    OK(pace_pool_after(t->pool, 3600 * SECOND, count_run, C, &t->timer));
    char address[PACE_ADDRESS_SIZE];
    pace_conn_hooks_t hooks = quick_hooks();
    t->server = serve(t->pool, TCP, &hooks, address);
    OK(pace_server_connect(t->server, address, &hooks, &t->conn));
    OK(pace_http_new(t->pool, &t->http));
    OK(udp_new(t->pool, &t->udp));
    OK(pace_cq_new(t->pool, NULL, &t->cq));
    pace_workers_config_t workers;
    OK(pace_workers_config_init(&workers, sizeof workers));
    workers.metrics = true;
    pace_log_config_t records;
    OK(pace_log_config_init(&records, sizeof records));
    records.cq_capacity = 4;
    OK(pace_log_new(&records, &t->records));
    workers.log = t->records;
    OK(pace_signals_new(t->pool, &quick_number, 1, quick_signal, C, &t->signals));
    OK(pace_workers_new(t->pool, &workers, &t->workers));
    OK(pace_workers_metric(t->workers, PACE_METRIC_COUNTER, "count", "", NULL, 0, &t->count));
    OK(pace_workers_metric(t->workers, PACE_METRIC_GAUGE, "level", "", NULL, 0, &t->level));
    OK(pace_workers_metric(t->workers, PACE_METRIC_TIMES, "times", "", NULL, 0, &t->times));
    OK(pace_task_type_new(t->workers, "kind", NULL, &t->kind));
    OK(pace_workers_submit(t->workers, t->kind, quick_attempt, C, NULL, &t->work));
    pace_hub_options_t kept;
    pace_history_options_t history;
    OK(pace_hub_options_init(&kept, sizeof kept));
    OK(pace_history_options_init(&history, sizeof history));
    kept.histories = &history;
    kept.history_count = 1;
    OK(pace_hub_new(t->pool, &kept, &t->hub));
    OK(pace_hub_replay(t->hub, "a.b", PACE_REPLAY_BEGINNING, 0, quick_message, C, &t->replay));
    OK(pace_hub_replay_mailbox(t->hub, "a.b", NULL, &t->replayed));
    OK(pace_hub_key(t->hub, "a.b", &t->key));
    OK(pace_hub_mailbox(t->hub, "a.*", NULL, &t->mailbox));
    OK(pace_hub_subscribe(t->hub, "a.b", NULL, quick_message, C, &t->subscription));
    OK(pace_publisher_new(t->hub, "publisher", NULL, &t->publisher));
    OK(pace_supervisor_new(PACE_RESTART_ONE_FOR_ALL, 3, SECOND, 0, 0, &t->supervisor));
    OK(pace_message_filter_bytes(0, NULL, 0, &t->filter));
    pace_threshold_t threshold;
    OK(pace_threshold_init(&threshold, sizeof threshold));
    threshold.metric = "none";
    OK(pace_hub_watch(t->hub, NULL, SECOND, &threshold, 1, NULL, C, &t->watch));
    make_answers(t);
}

static void free_things(things_t *t) {
    /* Its requests are never answered, and a drain would wait for that. */
    (void)pace_pool_stop_now(t->pool, NULL);
    pace_pool_free(t->pool);
    pace_ring_free(t->ring);
    pace_queue_free(t->queue);
    pace_server_free(t->server);
    pace_http_free(t->http);
    pace_udp_free(t->udp);
    pace_cq_free(t->cq);
    pace_task_type_free(t->kind);
    pace_workers_free(t->workers);
    pace_log_free(t->records);
    pace_signals_free(t->signals);
    pace_metric_free(t->count);
    pace_metric_free(t->level);
    pace_metric_free(t->times);
    pace_mailbox_free(t->mailbox);
    pace_hub_free(t->hub);
    pace_key_free(t->key);
    pace_publisher_free(t->publisher);
    pace_replay_free(t->replay);
    pace_mailbox_free(t->replayed);
    pace_supervisor_free(t->supervisor);
    pace_message_filter_free(t->filter);
    pace_watch_free(t->watch);
    pace_response_free(t->response);
    pace_body_free(t->body);
    pace_http_free(t->asked);
    close(t->fd);
    for (int i = 0; i < 2; i++) close(t->clients[i]);
}

static void in_a_plain_situation(void) {
    for (size_t i = 0; i < ROWS; i++) {
        things_t t;
        make_things(&t);
        for (int again = 0; again < 2; again++)
            expect(again ? "again" : "plain", &table[i], table[i].open, table[i].call(&t));
        free_things(&t);
    }
}

static void with_null(void) {
    things_t t;
    make_things(&t);
    for (size_t i = 0; i < ROWS; i++) {
        things_t less = t;
        if (table[i].needs == 'p') less.pool = NULL;
        if (table[i].needs == 'r') less.ring = NULL;
        if (table[i].needs == 'q') less.queue = NULL;
        if (table[i].needs == 's') less.server = NULL;
        if (table[i].needs == 'h') less.http = NULL;
        if (table[i].needs == 'u') less.udp = NULL;
        if (table[i].needs == 'c') less.cq = NULL;
        if (table[i].needs == 'y') less.hub = NULL;
        if (table[i].needs == 'k') less.key = NULL;
        if (table[i].needs == 'm') less.mailbox = NULL;
        if (table[i].needs == 'i') less.publisher = NULL;
        if (table[i].needs == 'g') less.replay = NULL;
        if (table[i].needs == 'o') less.replayed = NULL;
        if (table[i].needs == 'j') less.supervisor = NULL;
        if (table[i].needs == 'n') less.filter = NULL;
        if (table[i].needs == 't') less.watch = NULL;
        if (table[i].needs == 'a') less.response = NULL;
        if (table[i].needs == 'b') less.body = NULL;
        if (table[i].needs == 'w') less.workers = NULL;
        if (table[i].needs == 'x') less.count = less.level = less.times = NULL;
        if (table[i].needs == 'L') less.records = NULL;
        if (table[i].needs == 'k') less.kind = NULL;
        if (table[i].needs != '-') expect("NULL", &table[i], INV, table[i].call(&less));
    }
    pace_pool_t *p = t.pool;
    pace_ring_t *r = t.ring;
    pace_queue_t *q = t.queue;
    SAYS(PACE_EINVAL, pace_pool_config_init(NULL, sizeof(pace_pool_config_t)));
    SAYS(PACE_EINVAL, pace_handle_options_init(NULL, sizeof(pace_handle_options_t)));
    SAYS(PACE_EINVAL, pace_pool_new(NULL, NULL));
    SAYS(PACE_EINVAL, pace_pool_post(p, 2, NULL, C));
    SAYS(PACE_EINVAL, pace_pool_try_post(p, 2, NULL, C));
    SAYS(PACE_EINVAL, pace_pool_post_bytes(p, 2, NULL, "a", 1));
    SAYS(PACE_EINVAL, pace_pool_post_bytes(p, 2, quick_bytes, NULL, 1));
    SAYS(PACE_EINVAL, pace_pool_post_batch(p, 2, NULL, 1, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_pool_post_batch(p, 2, NULL, 0, NULL));
    SAYS(PACE_EINVAL, pace_pool_submit(p, 2, count_run, C, NULL));
    SAYS(PACE_EINVAL, pace_pool_submit(p, 2, NULL, C, &t.task));
    SAYS(PACE_EINVAL, pace_pool_try_submit(p, 2, count_run, C, NULL));
    SAYS(PACE_EINVAL, pace_pool_try_submit(p, 2, NULL, C, &t.task));
    SAYS(PACE_EINVAL, pace_task_is_done(p, t.task, NULL));
    SAYS(PACE_EINVAL, pace_task_cancel(p, t.task, NULL));
    SAYS(PACE_EINVAL, pace_strand_new(p, NULL));
    SAYS(PACE_EINVAL, pace_strand_post(p, t.strand, NULL, C));
    SAYS(PACE_EINVAL, pace_strand_try_post(p, t.strand, NULL, C));
    SAYS(PACE_EINVAL, pace_pool_metrics(p, 0, NULL, 0, NULL));
    SAYS(PACE_EINVAL, pace_pool_metrics(NULL, 0, NULL, 0, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_pool_trace(p, 1, 63, &(pace_trace_t *){NULL}));
    SAYS(PACE_EINVAL, pace_pool_trace(p, 1, 0, NULL));
    SAYS(PACE_EINVAL, pace_trace_json(NULL, &(pace_text_t){0}));
    pace_trace_free(NULL);
    SAYS(PACE_EINVAL, pace_pool_disk(p, NULL));
    SAYS(PACE_EINVAL, pace_strand_post_batch(p, t.strand, NULL, 1, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_strand_post_batch(p, t.strand, NULL, 0, NULL));
    SAYS(PACE_EINVAL, pace_strand_submit(p, t.strand, NULL, C, &t.task));
    SAYS(PACE_EINVAL, pace_strand_submit(p, t.strand, count_run, C, NULL));
    SAYS(PACE_EINVAL, pace_strand_try_submit(p, t.strand, NULL, C, &t.task));
    SAYS(PACE_EINVAL, pace_strand_try_submit(p, t.strand, count_run, C, NULL));
    SAYS(PACE_EINVAL, pace_pool_register(p, t.fd, NULL, NULL, C, &t.handle));
    SAYS(PACE_EINVAL, pace_pool_register(p, t.fd, NULL, quick_ready, C, NULL));
    SAYS(PACE_EINVAL, pace_pool_every(p, SECOND, NULL, C, &t.handle));
    SAYS(PACE_EINVAL, pace_pool_every(p, SECOND, quick_tick, C, NULL));
    SAYS(PACE_EINVAL, pace_handle_is_open(p, t.handle, NULL));
    SAYS(PACE_EINVAL, pace_pool_after(p, 0, NULL, C, NULL));
    SAYS(PACE_EINVAL, pace_timer_cancel(p, t.timer, NULL));
    SAYS(PACE_EINVAL, pace_timer_postpone(p, t.timer, 1, NULL));
    SAYS(PACE_EINVAL, pace_timer_is_pending(p, t.timer, NULL));
    SAYS(PACE_EINVAL, pace_ring_serial(p, 8, 8, NULL, C, &r));
    SAYS(PACE_EINVAL, pace_ring_serial(p, 8, 8, quick_events, C, NULL));
    SAYS(PACE_EINVAL, pace_ring_concurrent(p, 8, 8, NULL, C, &r));
    SAYS(PACE_EINVAL, pace_ring_concurrent(p, 8, 8, quick_events, C, NULL));
    SAYS(PACE_EINVAL, pace_ring_publish(r, NULL));
    SAYS(PACE_EINVAL, pace_ring_try_publish(r, NULL));
    SAYS(PACE_EINVAL, pace_ring_publish_batch(r, NULL, 1, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_ring_publish_batch(r, "12345678", 1, NULL));
    SAYS(PACE_EINVAL, pace_queue_new(8, 8, NULL));
    SAYS(PACE_EINVAL, pace_queue_push(q, NULL, 0));
    SAYS(PACE_EINVAL, pace_queue_push_batch(q, NULL, 1, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_queue_push_batch(q, "12345678", 1, NULL));
    SAYS(PACE_EINVAL, pace_queue_pop(q, NULL, 0));
    SAYS(PACE_EINVAL, pace_queue_pop_batch(q, NULL, 1, 0, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_queue_pop_batch(q, &(uint64_t){0}, 1, 0, NULL));
    SAYS(PACE_EINVAL, pace_queue_pollable(q, NULL));
    SAYS(PACE_EINVAL, pace_queue_len(q, NULL));
    SAYS(PACE_EINVAL, pace_queue_capacity(q, NULL));
    SAYS(PACE_EINVAL, pace_queue_is_closed(q, NULL));
    SAYS(PACE_EINVAL, pace_pool_pollable(p, NULL));
    SAYS(PACE_EINVAL, pace_pool_name_host(p, 0, NULL));
    SAYS(PACE_EINVAL, pace_pool_stats(p, NULL));
    SAYS(PACE_EINVAL, pace_pool_thread_stats(p, 0, NULL));
    SAYS(PACE_EINVAL, pace_pool_set_stats(p, 0, NULL));
    SAYS(PACE_EINVAL, pace_pool_audit(p, NULL));
    SAYS(PACE_EINVAL, pace_udp_new(p, NULL, NULL, NULL));
    SAYS(PACE_EINVAL, pace_udp_send(t.udp, NULL, 1));
    SAYS(PACE_EINVAL, pace_udp_send_to(t.udp, "x", 1, NULL));
    SAYS(PACE_EINVAL, pace_udp_send_batch(t.udp, NULL, 1, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_udp_join_multicast(t.udp, NULL, 0));
    SAYS(PACE_EINVAL, pace_udp_leave_multicast(t.udp, NULL, 0));
    SAYS(PACE_EINVAL, pace_udp_is_open(t.udp, NULL));
    SAYS(PACE_EINVAL, pace_udp_stats(t.udp, NULL));
    SAYS(PACE_EINVAL, pace_udp_wait(NULL));
    /* There is a connection inside its hooks only: conn.c calls these there. */
    char address[PACE_ADDRESS_SIZE];
    pace_admission_t *admission;
    uint32_t wrote;
    SAYS(PACE_EINVAL, pace_conn_abort(NULL));
    SAYS(PACE_EINVAL, pace_conn_admit(NULL, &admission));
    SAYS(PACE_EINVAL, pace_conn_close(NULL));
    SAYS(PACE_EINVAL, pace_conn_fail(NULL));
    SAYS(PACE_EINVAL, pace_conn_flush(NULL));
    SAYS(PACE_EINVAL, pace_conn_id(NULL, &(pace_conn_id_t){0}));
    SAYS(PACE_EINVAL, pace_conn_is_draining(NULL, &(bool){false}));
    SAYS(PACE_EINVAL, pace_conn_is_outgoing(NULL, &(bool){false}));
    SAYS(PACE_EINVAL, pace_conn_local(NULL, address, sizeof address));
    SAYS(PACE_EINVAL, pace_conn_pause(NULL));
    SAYS(PACE_EINVAL, pace_conn_peer(NULL, address, sizeof address));
    SAYS(PACE_EINVAL, pace_conn_queued(NULL, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_conn_resume(NULL));
    SAYS(PACE_EINVAL, pace_conn_set_deadline(NULL, SECOND));
    SAYS(PACE_EINVAL, pace_conn_set_user_data(NULL, NULL));
    SAYS(PACE_EINVAL, pace_conn_shutdown_write(NULL));
    SAYS(PACE_EINVAL, pace_conn_write(NULL, "x", 1, &wrote));
    SAYS(PACE_EINVAL, pace_conn_write_owned(NULL, "x", 1, NULL, NULL, &wrote));
    SAYS(PACE_EINVAL, pace_conn_write_tracked(NULL, "x", 1, 7, &wrote));
    SAYS(PACE_EINVAL, pace_conn_write_vectored(NULL, &(pace_piece_t){"x", 1}, 1, &wrote));
    SAYS(PACE_EINVAL, pace_sink_append(NULL, "x", 1));
    SAYS(PACE_EINVAL, pace_conn_hooks_init(NULL, sizeof(pace_conn_hooks_t)));
    SAYS(PACE_EINVAL, pace_filter_hooks_init(NULL, sizeof(pace_filter_hooks_t)));
    SAYS(PACE_EINVAL, pace_listener_options_init(NULL, sizeof(pace_listener_options_t)));
    SAYS(PACE_EINVAL, pace_server_options_init(NULL, sizeof(pace_server_options_t)));
    SAYS(PACE_EINVAL, pace_inherited_take(NULL, 1, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_ip_read(NULL, &(pace_ip_t){0}));
    SAYS(PACE_EINVAL, pace_ip_read("127.0.0.1:9", NULL));
    SAYS(PACE_EINVAL, pace_ip_text(NULL, NULL, 0));
    SAYS(PACE_EINVAL, pace_frame_delimited(NULL, 1, "x", 1, 1, &(size_t){0}, &(pace_frame_t){0}));
    SAYS(PACE_EINVAL, pace_frame_delimited("x", 1, NULL, 1, 1, &(size_t){0}, &(pace_frame_t){0}));
    SAYS(PACE_EINVAL, pace_frame_delimited("x", 1, "x", 1, 1, &(size_t){0}, NULL));
    SAYS(PACE_EINVAL, pace_frame_prefixed(NULL, 1, 1, 1, &(pace_frame_t){0}));
    SAYS(PACE_EINVAL, pace_frame_prefixed("x", 1, 1, 1, NULL));
    SAYS(PACE_EINVAL, pace_frame_fixed(NULL, 1, 1, &(pace_frame_t){0}));
    SAYS(PACE_EINVAL, pace_frame_fixed("x", 1, 1, NULL));
    SAYS(PACE_EINVAL, pace_http_options_init(NULL, sizeof(pace_http_options_t)));
    SAYS(PACE_EINVAL, pace_http_start(NULL, NULL));
    SAYS(PACE_EINVAL, pace_http_serve(NULL, "127.0.0.1:0"));
    SAYS(PACE_EINVAL, pace_http_serve(t.http, NULL));
    SAYS(PACE_EINVAL, pace_http_serve(t.http, "nowhere"));
    SAYS(PACE_EINVAL, pace_http_route_streaming(t.http, "PUT", "/", NULL, C));
    pace_workers_t *w = t.workers;
    SAYS(PACE_EINVAL, pace_workers_config_init(NULL, sizeof(pace_workers_config_t)));
    SAYS(PACE_EINVAL, pace_task_type_config_init(NULL, sizeof(pace_task_type_config_t)));
    SAYS(PACE_EINVAL, pace_task_options_init(NULL, sizeof(pace_task_options_t)));
    SAYS(PACE_EINVAL, pace_workers_new(p, NULL, NULL));
    SAYS(PACE_EINVAL, pace_task_type_new(w, "kind", NULL, NULL));
    SAYS(PACE_EINVAL, pace_task_type_stats(t.kind, NULL));
    SAYS(PACE_EINVAL, pace_task_type_post(t.kind, NULL, C));
    SAYS(PACE_EINVAL, pace_workers_metric(w, 0, NULL, "", NULL, 0, &t.count));
    SAYS(PACE_EINVAL, pace_workers_metric(w, 0, "a", NULL, NULL, 0, &t.count));
    SAYS(PACE_EINVAL, pace_workers_metric(w, 0, "a", "", NULL, 1, &t.count));
    SAYS(PACE_EINVAL, pace_workers_metric(w, 0, "a", "", &(pace_label_t){NULL, "x"}, 1, &t.count));
    SAYS(PACE_EINVAL, pace_workers_metric(w, 0, "a", "", &(pace_label_t){"x", NULL}, 1, &t.count));
    SAYS(PACE_EINVAL, pace_workers_metric(w, 0, "a", "", NULL, SIZE_MAX, &t.count));
    SAYS(PACE_EINVAL, pace_workers_metric(w, 0, "a", "", NULL, 0, NULL));
    SAYS(PACE_EINVAL, pace_workers_metric(w, 5, "a", "", NULL, 0, &t.count));
    SAYS(PACE_EINVAL, pace_metric_count(t.level, 1));
    SAYS(PACE_EINVAL, pace_metric_set(t.count, 1));
    SAYS(PACE_EINVAL, pace_metric_change(t.times, 1));
    SAYS(PACE_EINVAL, pace_metric_record(t.count, 1));
    SAYS(PACE_EINVAL, pace_workers_config_load(NULL, NULL, false));
    SAYS(PACE_EINVAL, pace_task_type_config_load(NULL, NULL, false));
    SAYS(PACE_EINVAL, pace_hub_options_load(NULL, NULL, false));
    SAYS(PACE_EINVAL, pace_history_options_load(NULL, NULL, false));
    SAYS(PACE_EINVAL, pace_listener_options_load(NULL, NULL, false));
    SAYS(PACE_EINVAL, pace_http_options_load(NULL, NULL, false));
    SAYS(PACE_EINVAL, pace_webhook_options_load(NULL, NULL, false));
    SAYS(PACE_EINVAL, pace_log_config_init(NULL, sizeof(pace_log_config_t)));
    SAYS(PACE_EINVAL, pace_log_config_load(NULL, NULL, false));
    SAYS(PACE_EINVAL, pace_log_stats(t.records, NULL));
    SAYS(PACE_EINVAL, pace_log_level(t.records, 0, NULL));
    SAYS(PACE_EINVAL, pace_log_install(NULL));
    pace_quiet(false);
    pace_unhandled(NULL, true);
    pace_note_fault(NULL, true);
    SAYS(PACE_EINVAL, pace_log_close(NULL, 0));
    SAYS(PACE_EINVAL, pace_signals_new(p, &quick_number, 1, NULL, C, &t.signals));
    SAYS(PACE_EINVAL, pace_signals_new(p, NULL, 1, quick_signal, C, &t.signals));
    SAYS(PACE_EINVAL, pace_signals_new(p, &quick_number, 1, quick_signal, C, NULL));
    SAYS(PACE_EINVAL, pace_signals_shut_down(p, 0, NULL));
    SAYS(PACE_EINVAL, pace_signals_wait(NULL, &(int32_t){0}));
    SAYS(PACE_EINVAL, pace_attempt_name(NULL, &(const char *){NULL}));
    SAYS(PACE_EINVAL, pace_workers_submit(w, NULL, quick_attempt, C, NULL, NULL));
    SAYS(PACE_EINVAL, pace_workers_submit(w, t.kind, NULL, C, NULL, NULL));
    SAYS(PACE_EINVAL, pace_workers_submit_batch(w, t.kind, NULL, 1, NULL, NULL, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_workers_submit_batch(w, t.kind, NULL, 0, NULL, NULL, NULL));
    SAYS(PACE_EINVAL, pace_workers_status(w, t.work, NULL));
    SAYS(PACE_EINVAL, pace_workers_cancel(w, t.work, NULL));
    SAYS(PACE_EINVAL, pace_workers_drop(w, t.work, NULL));
    SAYS(PACE_EINVAL, pace_workers_on_end(w, t.work, NULL, C));
    SAYS(PACE_EINVAL, pace_workers_submit_tagged(w, NULL, 1, NULL, NULL));
    SAYS(PACE_EINVAL, pace_workers_submit_tagged_batch(w, t.kind, NULL, 1, NULL, NULL, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_workers_submit_tagged_batch(w, t.kind, NULL, 0, NULL, NULL, NULL));
    SAYS(PACE_EINVAL, pace_workers_every(w, t.kind, SECOND, 0, quick_attempt, C, NULL, NULL));
    SAYS(PACE_EINVAL, pace_workers_audit(w, NULL));
    SAYS(PACE_EINVAL, pace_workers_worker_stats(w, 0, NULL));
    SAYS(PACE_EINVAL, pace_workers_health(w, NULL));
    SAYS(PACE_EINVAL, pace_workers_metrics(w, 0, NULL, 0, NULL));
    SAYS(PACE_EINVAL, pace_metrics_format("", NULL, &(const char *){0}));
    SAYS(PACE_EINVAL, pace_metrics_format("", &(uint32_t){0}, NULL));
    SAYS(PACE_EINVAL, pace_workers_on_shutdown(w, NULL, quick_hook, C));
    SAYS(PACE_EINVAL, pace_periodic_counts(NULL, NULL, NULL));
    SAYS(PACE_EINVAL, pace_attempt_number(NULL, &(uint32_t){0}));
    SAYS(PACE_EINVAL, pace_attempt_task(NULL, &(uint64_t){0}));
    SAYS(PACE_EINVAL, pace_attempt_is_cancelled(NULL, &(bool){0}));
    SAYS(PACE_EINVAL, pace_attempt_time_left(NULL, &(uint64_t){0}));
    SAYS(PACE_EINVAL, pace_attempt_heartbeat(NULL));
    SAYS(PACE_EINVAL, pace_attempt_fail(NULL, "x"));
    SAYS(PACE_EINVAL, pace_attempt_permanent(NULL));
    SAYS(PACE_EINVAL, pace_attempt_retry_after(NULL, 1));
    SAYS(PACE_EINVAL, pace_pool_config_load(NULL, NULL, false));
    pace_text_t text;
    SAYS(PACE_EINVAL, pace_request_method(NULL, &text));
    SAYS(PACE_EINVAL, pace_request_target(NULL, &text));
    SAYS(PACE_EINVAL, pace_request_path(NULL, &text));
    SAYS(PACE_EINVAL, pace_request_query(NULL, &text));
    SAYS(PACE_EINVAL, pace_request_version(NULL, &(uint32_t){0}));
    SAYS(PACE_EINVAL, pace_request_header(NULL, "Host", &text));
    SAYS(PACE_EINVAL, pace_request_headers(NULL, NULL, 0, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_request_param(NULL, "a", &text));
    SAYS(PACE_EINVAL, pace_request_params(NULL, NULL, 0, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_request_body(NULL, &(pace_piece_t){0}));
    SAYS(PACE_EINVAL, pace_request_upgrade(NULL, &text));
    SAYS(PACE_EINVAL, pace_request_conn(NULL, &t.conn));
    SAYS(PACE_EINVAL, pace_request_peer(NULL, NULL, 0));
    SAYS(PACE_EINVAL, pace_response_header(t.response, NULL, "x"));
    SAYS(PACE_EINVAL, pace_response_header(t.response, "x", NULL));
    SAYS(PACE_EINVAL, pace_response_send(NULL, "x", 1));
    SAYS(PACE_EINVAL, pace_response_text(NULL, "x"));
    SAYS(PACE_EINVAL, pace_response_send_as(NULL, "a/b", "x", 1));
    SAYS(PACE_EINVAL, pace_response_error(NULL));
    SAYS(PACE_EINVAL, pace_request_pattern(NULL, &(pace_text_t){0}));
    SAYS(PACE_EINVAL, pace_next_run(NULL, NULL, NULL, NULL));
    SAYS(PACE_EINVAL, pace_http_around(NULL, quick_around, NULL, NULL));
    SAYS(PACE_EINVAL, pace_http_fallback(NULL, quick_fallback, NULL, NULL));
    SAYS(PACE_EINVAL, pace_http_on_end(NULL, quick_http_end, NULL, NULL));
    SAYS(PACE_EINVAL, pace_http_access_log(NULL, PACE_ACCESS_JSON, NULL));
    SAYS(PACE_EINVAL, pace_query_pairs(NULL, 1, NULL, NULL, 0, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_json_kind(NULL, 1, "", &(uint32_t){0}));
    SAYS(PACE_EINVAL, pace_json_text(NULL, 1, "", NULL, 0, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_json_number(NULL, 1, "", &(double){0}));
    SAYS(PACE_EINVAL, pace_json_quote(NULL, 1, NULL, 0, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_response_stream(NULL, 1, &t.body));
    SAYS(PACE_EINVAL, pace_response_upgrade(NULL, "x", NULL));
    SAYS(PACE_EINVAL, pace_body_write(t.body, NULL, 1, NULL));
    SAYS(PACE_EINVAL, pace_body_is_pressed(t.body, NULL));
    SAYS(PACE_EINVAL, pace_body_on_writable(t.body, NULL, C));
    SAYS(PACE_EINVAL, pace_body_pump(NULL, NULL, C));
    SAYS(PACE_EINVAL, pace_body_finish(NULL));
    SAYS(PACE_EINVAL, pace_hub_new(p, NULL, NULL));
    SAYS(PACE_EINVAL, pace_hub_key(t.hub, NULL, &t.key));
    SAYS(PACE_EINVAL, pace_hub_key(t.hub, "a", NULL));
    SAYS(PACE_EINVAL, pace_key_text(t.key, NULL));
    SAYS(PACE_EINVAL, pace_key_publish(t.key, NULL, 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EINVAL, pace_key_publish_with(t.key, NULL, "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EINVAL, pace_key_publish_batch(t.key, NULL, 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EINVAL,
         pace_key_publish_batch(t.key, &(pace_piece_t){NULL, 1}, 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EINVAL, pace_hub_publish(t.hub, NULL, "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EINVAL, pace_hub_audit(t.hub, NULL));
    SAYS(PACE_EINVAL, pace_hub_subscriber_count(t.hub, NULL, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_hub_subscriber_count(t.hub, "a", NULL));
    SAYS(PACE_EINVAL, pace_hub_patterns(t.hub, NULL, NULL));
    SAYS(PACE_EINVAL, pace_hub_subscribe(t.hub, NULL, NULL, quick_message, C, NULL));
    SAYS(PACE_EINVAL, pace_hub_subscribe(t.hub, "a", NULL, NULL, C, NULL));
    SAYS(PACE_EINVAL, pace_subscription_stats(t.hub, t.subscription, NULL));
    SAYS(PACE_EINVAL, pace_hub_mailbox(t.hub, NULL, NULL, &t.mailbox));
    SAYS(PACE_EINVAL, pace_hub_mailbox(t.hub, "a", NULL, NULL));
    SAYS(PACE_EINVAL, pace_mailbox_stats(t.mailbox, NULL));
    SAYS(PACE_EINVAL, pace_message_fail(NULL));
    SAYS(PACE_EINVAL, pace_request_fail(NULL));
    SAYS(PACE_EINVAL, pace_http_fail(NULL, t.conn));
    SAYS(PACE_EINVAL, pace_mailbox_bury(t.mailbox, NULL, NULL, 1));
    SAYS(PACE_EINVAL, pace_mailbox_bury(t.replayed, NULL, NULL, 1));
    SAYS(PACE_EINVAL, pace_replay_mailbox_stats(t.replayed, NULL));
    SAYS(PACE_EINVAL, pace_hub_dead_letter_stats(t.hub, NULL));
    SAYS(PACE_EINVAL, pace_key_request(t.key, NULL, NULL, 1, 1, &(pace_message_t){0}));
    SAYS(PACE_EINVAL, pace_key_request(t.key, NULL, "x", 1, 1, NULL));
    SAYS(PACE_EINVAL, pace_hub_reply(t.hub, NULL, "x", 1, NULL));
    SAYS(PACE_EINVAL, pace_hub_publish_all(t.hub, NULL, 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EINVAL, pace_webhook_new(NULL, NULL, &(pace_webhook_t *){NULL}));
    SAYS(PACE_EINVAL, pace_webhook_new("http://localhost", NULL, NULL));
    SAYS(PACE_EINVAL, pace_hub_export(NULL, NULL, "/tmp/a", NULL));
    SAYS(PACE_EINVAL, pace_hub_export(t.hub, NULL, NULL, NULL));
    SAYS(PACE_EINVAL, pace_lines_read(NULL, NULL, quick_record, NULL, NULL, NULL));
    SAYS(PACE_EINVAL, pace_archive_open(NULL, &(pace_archive_t *){NULL}));
    SAYS(PACE_EINVAL, pace_archive_open("/tmp/a", NULL));
    SAYS(PACE_EINVAL, pace_archive_query(NULL, NULL, NULL, NULL, NULL));
    SAYS(PACE_EINVAL, pace_archive_export(NULL, NULL, "/tmp/a", NULL));
    SAYS(PACE_EINVAL, pace_archive_import(NULL, NULL, NULL, NULL, NULL));
    SAYS(PACE_EINVAL, pace_webhook_post(NULL, "{}", 2));
    SAYS(PACE_EINVAL, pace_webhook_forward(NULL, t.hub, "a", NULL));
    SAYS(PACE_EINVAL, pace_webhook_flush(NULL, 0));
    SAYS(PACE_EINVAL, pace_webhook_stats(NULL, NULL));
    SAYS(PACE_EINVAL, pace_webhook_last_error(NULL, NULL, 0, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_service_start(t.pool, NULL, NULL, NULL, NULL));
    SAYS(PACE_EINVAL, pace_service_status(NULL, "fine"));
    SAYS(PACE_EINVAL, pace_key_request_async(t.key, NULL, "x", 1, 0, NULL, NULL, NULL, NULL));
    SAYS(PACE_EINVAL, pace_key_request_async(t.key, NULL, NULL, 1, 0, quick_reply, NULL, NULL, NULL));
    pace_threshold_t nothing;
    OK(pace_threshold_init(&nothing, sizeof nothing));
    nothing.metric = "none";
    SAYS(PACE_EINVAL, pace_threshold_init(NULL, sizeof nothing));
    SAYS(PACE_EINVAL, pace_hub_stats(t.hub, NULL));
    SAYS(PACE_EINVAL, pace_hub_metrics(t.hub, 0, NULL, 1, &(size_t){0}));
    SAYS(PACE_EINVAL, pace_hub_metrics(t.hub, 0, NULL, 0, NULL));
    SAYS(PACE_EINVAL, pace_hub_share_metrics(t.hub, NULL));
    SAYS(PACE_EINVAL, pace_hub_watch(t.hub, NULL, SECOND, NULL, 1, NULL, C, &t.watch));
    SAYS(PACE_EINVAL, pace_hub_watch(t.hub, NULL, SECOND, &nothing, 1, NULL, C, NULL));
    SAYS(PACE_EINVAL, pace_watch_stats(t.watch, NULL));
    SAYS(PACE_EINVAL, pace_hub_reply(t.hub, &(pace_message_t){0}, "x", 1, NULL));
    SAYS(PACE_EINVAL, pace_history_options_init(NULL, sizeof(pace_history_options_t)));
    SAYS(PACE_EINVAL, pace_hub_history_stats(t.hub, NULL, NULL));
    SAYS(PACE_EINVAL, pace_hub_replay(t.hub, NULL, 0, 0, quick_message, C, &t.replay));
    SAYS(PACE_EINVAL, pace_hub_replay(t.hub, "a", 0, 0, NULL, C, &t.replay));
    SAYS(PACE_EINVAL, pace_hub_replay(t.hub, "a", 0, 0, quick_message, C, NULL));
    SAYS(PACE_EINVAL, pace_hub_replay(t.hub, "a", 5, 0, quick_message, C, &t.replay));
    SAYS(PACE_EINVAL, pace_hub_replay_supervised(t.hub, NULL, NULL, quick_message, C, &t.replay));
    SAYS(PACE_EINVAL, pace_hub_replay_supervised(t.hub, "a", NULL, NULL, C, &t.replay));
    SAYS(PACE_EINVAL, pace_hub_replay_supervised(t.hub, "a", NULL, quick_message, C, NULL));
    SAYS(PACE_EVERSION, pace_hub_replay_supervised(t.hub, "a", &(pace_replay_options_t){0},
                                                   quick_message, C, &t.replay));
    SAYS(PACE_EINVAL, pace_replay_options_init(NULL, sizeof(pace_replay_options_t)));
    SAYS(PACE_EVERSION, pace_replay_options_init(&(pace_replay_options_t){0}, 4));
    SAYS(PACE_EINVAL, pace_replay_stats(t.replay, NULL));
    SAYS(PACE_EINVAL, pace_replay_end(t.replay, 3, NULL));
    SAYS(PACE_EINVAL, pace_hub_replay_mailbox(t.hub, NULL, NULL, &t.replayed));
    SAYS(PACE_EINVAL, pace_hub_replay_mailbox(t.hub, "a", NULL, NULL));
    SAYS(PACE_EINVAL, pace_publisher_options_init(NULL, sizeof(pace_publisher_options_t)));
    SAYS(PACE_EINVAL, pace_publisher_new(t.hub, NULL, NULL, &t.publisher));
    SAYS(PACE_EINVAL, pace_publisher_new(t.hub, "a", NULL, NULL));
    SAYS(PACE_EINVAL,
         pace_publisher_publish(t.publisher, NULL, NULL, "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EINVAL,
         pace_publisher_publish(t.publisher, t.key, NULL, NULL, 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EINVAL,
         pace_publisher_publish_batch(t.publisher, t.key, NULL, 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EINVAL, pace_publisher_stats(t.publisher, NULL));
    SAYS(PACE_EINVAL, pace_supervisor_new(0, 3, SECOND, 0, 0, NULL));
    SAYS(PACE_EINVAL, pace_supervisor_is_suspended(t.supervisor, NULL));
    SAYS(PACE_EINVAL, pace_message_filter_header(NULL, "a", &t.filter));
    SAYS(PACE_EINVAL, pace_message_filter_header("a", NULL, &t.filter));
    SAYS(PACE_EINVAL, pace_message_filter_header("a", "b", NULL));
    SAYS(PACE_EINVAL, pace_message_filter_bytes(0, NULL, 1, &t.filter));
    SAYS(PACE_EINVAL, pace_message_filter_bytes(0, "a", 1, NULL));
    SAYS(PACE_EINVAL, pace_message_filter_time(0, 1, NULL));
    SAYS(PACE_EINVAL, pace_message_filter_rate(1, SECOND, 1, NULL));
    SAYS(PACE_EINVAL, pace_message_filter_test(NULL, C, &t.filter));
    SAYS(PACE_EINVAL, pace_message_filter_test(quick_test, C, NULL));
    SAYS(PACE_EINVAL, pace_message_filter_and(t.filter, NULL, &t.filter));
    SAYS(PACE_EINVAL, pace_message_filter_and(t.filter, t.filter, NULL));
    SAYS(PACE_EINVAL, pace_message_filter_or(t.filter, NULL, &t.filter));
    SAYS(PACE_EINVAL, pace_message_filter_or(t.filter, t.filter, NULL));
    SAYS(PACE_EINVAL, pace_message_filter_not(t.filter, NULL));
    SAYS(PACE_EINVAL, pace_publication_init(NULL, sizeof(pace_publication_t)));
    SAYS(PACE_EINVAL, pace_subscription_options_init(NULL, sizeof(pace_subscription_options_t)));
    SAYS(PACE_EINVAL, pace_hub_options_init(NULL, sizeof(pace_hub_options_t)));
    SAYS(PACE_EINVAL, pace_admission_answered(NULL));
    SAYS(PACE_EINVAL, pace_server_wait(NULL));
    free_things(&t);
}

static void with_stale_ids(void) {
    static const uint64_t made_up[] = {0,          1ULL << 32,     0xffffffff,  1ULL << 63,
                                       UINT64_MAX, UINT64_MAX - 1, 0x700000007, 0x1000001};
    things_t t;
    make_things(&t);
    for (size_t id = 0; id < sizeof made_up / sizeof *made_up; id++) {
        things_t stale = t;
        stale.task.id = stale.work.id = stale.strand.id = stale.handle.id = stale.timer.id =
            stale.conn.id = stale.subscription.id = made_up[id];
        for (size_t i = 0; i < HARMLESS; i++)
            expect("made up", &table[i], table[i].gone, table[i].call(&stale));
    }
    free_things(&t);
}

static void call_all(void *data, int32_t *outcome) {
    for (size_t i = 0; i < HARMLESS; i++)
        expect("inside", &table[i], table[i].open, table[i].call((things_t *)data));
    *outcome = 0;
}

static void inside_a_handler(void) {
    things_t t;
    pace_task_t outer;
    int32_t outcome = 99;
    make_things(&t);
    OK(pace_pool_submit(t.pool, 2, call_all, &t, NULL, &outer));
    OK(pace_task_wait(t.pool, outer, PACE_FOREVER, &outcome));
    CHECK(outcome == 0);
    free_things(&t);
}

static void after_shutdown(void) {
    things_t t;
    make_things(&t);
    /* Its requests are never answered, and a drain would wait for that. */
    OK(pace_pool_stop_now(t.pool, NULL));
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < ROWS; i++) {
            uint32_t allowed = table[i].down;
            if (again && table[i].needs == 'q') allowed |= DOWN; /* closed in the first round */
            expect("shut down", &table[i], allowed, table[i].call(&t));
        }
    free_things(&t);
}

static void in_a_forked_child(void) {
    things_t t;
    make_things(&t);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(240);
        for (size_t i = 0; i < ROWS; i++) /* Filters and supervisors are of no pool. */
            if (strchr("-nj", table[i].needs) == NULL)
                expect("forked", &table[i], B(PACE_EFORKED), table[i].call(&t));
        free_things(&t);               /* nothing, in a child */
        pace_pool_t *own = pool_of(1); /* its own works */
        finish(own);
        _exit(42);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    free_things(&t);
}

static void *all_calls(void *data) {
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < HARMLESS; i++) /* An answer and its body are for one thread at a time. */
            if (table[i].needs != 'a' && table[i].needs != 'b')
                expect("ten threads", &table[i], table[i].open, table[i].call((things_t *)data));
    return NULL;
}

static void by_ten_threads(void) {
    things_t t;
    pthread_t threads[10];
    make_things(&t);
    for (int i = 0; i < 10; i++) CHECK(pthread_create(&threads[i], NULL, all_calls, &t) == 0);
    for (int i = 0; i < 10; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    free_things(&t);
}

int main(void) {
    check_begin();
    in_a_plain_situation();
    with_null();
    with_stale_ids();
    inside_a_handler();
    after_shutdown();
    in_a_forked_child();
    by_ten_threads();
    return 0;
}
