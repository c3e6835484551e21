/* Completion queues: every kind of source, with and without threads, late, twice, failed, and brought again. */
#include "net.h"

enum { MOST = 64 };

static pace_cq_t *queue_of(pace_pool_t *pool, uint64_t lease_ns) {
    pace_cq_config_t config;
    pace_cq_t *cq = NULL;
    OK(pace_cq_config_init(&config, sizeof config));
    config.lease_ns = lease_ns;
    OK(pace_cq_new(pool, &config, &cq));
    return cq;
}

static size_t take(pace_cq_t *cq, pace_cq_entry_t *entries, size_t max) {
    size_t got = 0;
    OK(pace_cq_wait(cq, entries, max, PACE_FOREVER, &got));
    CHECK(got >= 1 && got <= max);
    return got;
}

static pace_cq_entry_t one(pace_cq_t *cq, uint32_t kind, uint64_t tag) {
    pace_cq_entry_t entry;
    CHECK(take(cq, &entry, 1) == 1);
    if (entry.kind != kind || entry.tag != tag) {
        fprintf(stderr, "an entry of kind %u and tag %llu, not %u and %llu\n", entry.kind,
                (unsigned long long)entry.tag, kind, (unsigned long long)tag);
        CHECK(false);
    }
    return entry;
}

static pace_cq_completion_t completion(uint64_t token, uint32_t flags) {
    pace_cq_completion_t made = {0};
    made.token = token;
    made.flags = flags;
    return made;
}

static pace_cq_stats_t counters(pace_cq_t *cq) {
    pace_cq_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_cq_stats(cq, &stats));
    CHECK(stats.brought == stats.completed + stats.withdrawn + stats.out);
    return stats;
}

static void nothing(pace_cq_t *cq) {
    pace_cq_entry_t entry;
    size_t got;
    SAYS(PACE_ETIMEDOUT, pace_cq_wait(cq, &entry, 1, 0, &got));
}

static void end(pace_cq_t *cq, uint64_t out) {
    CHECK(counters(cq).out == out);
    pace_cq_close(cq);
    pace_cq_entry_t entry;
    size_t got;
    SAYS(PACE_ESHUTDOWN, pace_cq_wait(cq, &entry, 1, PACE_FOREVER, &got));
    pace_cq_free(cq);
}

static void the_pools_own(uint32_t threads) {
    pace_pool_t *pool = pool_of(threads);
    pace_cq_t *cq = queue_of(pool, 0), *other = queue_of(pool, 0);
    pace_cq_entry_t entries[MOST], entry;
    pace_handle_t handle = {0}, ticker = {0};
    pace_timer_t timer = {0};
    uint64_t tags[8];
    size_t got = 0;
    bool flag = false;
    int ends[2];
    char byte;

    nothing(cq);
    SAYS(PACE_EINVAL, pace_cq_wait(cq, entries, 0, 0, &got));
    TELLS("max is 0");
    SAYS(PACE_EINVAL, pace_cq_wait(cq, NULL, 1, 0, &got));

    /* Tags, in order, to the queue that they were posted to. */
    for (size_t i = 0; i < 8; i++) tags[i] = 20 + i;
    OK(pace_cq_post(cq, tags, 8, &got));
    CHECK(got == 8);
    OK(pace_cq_post(cq, NULL, 0, NULL));
    nothing(other);
    OK(pace_cq_wake(other, 40));
    entry = one(other, PACE_CQ_TASK, 40);
    CHECK(entry.token == 0);
    for (size_t seen = 0; seen < 8;) {
        size_t some = take(cq, entries, MOST);
        for (size_t i = 0; i < some; i++, seen++)
            CHECK(entries[i].kind == PACE_CQ_TASK && entries[i].tag == 20 + seen &&
                  entries[i].token == 0);
        OK(pace_cq_done(cq, entries, some));
    }

    /* A descriptor has one entry out at a time. */
    make_pipe(ends);
    OK(pace_cq_register(cq, ends[0], NULL, 77, &handle));
    CHECK(write(ends[1], "a", 1) == 1);
    entry = one(cq, PACE_CQ_READY, 77);
    CHECK(entry.detail.ready.handle.id == handle.id);
    CHECK((entry.detail.ready.ready & PACE_READY_READABLE) != 0);
    /* In a pool with threads who waits is no host. */
    if (threads == 0)
        OK(pace_pool_name_host(pool, 0, "a pipe"));
    else
        SAYS(PACE_ESTALE, pace_pool_name_host(pool, 0, "a pipe"));
    SAYS(PACE_ESTALE, pace_pool_name_host(pool, 1, "no host"));
    CHECK(read(ends[0], &byte, 1) == 1);
    pace_cq_completion_t done = completion(entry.token, 0);
    done.answer = 4;
    SAYS(PACE_EINVAL, pace_cq_complete(cq, &done, 1));
    done.answer = PACE_FLOW_AGAIN;
    OK(pace_cq_complete(cq, &done, 1));
    SAYS(PACE_ESTALE, pace_cq_complete(cq, &done, 1));
    entry = one(cq, PACE_CQ_READY, 77);
    OK(pace_cq_done(cq, &entry, 1));
    SAYS(PACE_ESTALE, pace_cq_done(cq, &entry, 1));
    CHECK(write(ends[1], "b", 1) == 1);
    entry = one(cq, PACE_CQ_READY, 77);
    SAYS(PACE_ECLOSING, pace_handle_deregister(pool, handle));
    OK(pace_cq_done(cq, &entry, 1));
    OK(pace_handle_is_open(pool, handle, &flag));
    CHECK(!flag);

    /* Timers. */
    OK(pace_cq_after(cq, MILLI, 5, NULL));
    CHECK(one(cq, PACE_CQ_TIMER, 5).token == 0);
    OK(pace_cq_after(cq, 3600 * SECOND, 6, &timer));
    OK(pace_timer_cancel(pool, timer, &flag));
    CHECK(flag);
    OK(pace_cq_every(other, MILLI, 9, &ticker));
    for (int i = 0; i < 3; i++) {
        entry = one(other, PACE_CQ_TICK, 9);
        CHECK(entry.detail.ready.handle.id == ticker.id);
        done = completion(entry.token, 0);
        done.answer = i < 2 ? PACE_FLOW_WAIT : PACE_FLOW_DONE;
        OK(pace_cq_complete(other, &done, 1));
    }
    OK(pace_handle_is_open(pool, ticker, &flag));
    CHECK(!flag);

    CHECK(counters(cq).brought == 3 && counters(other).brought == 3);
    end(other, 0);
    OK(pace_pool_shutdown(pool, 0, NULL));
    SAYS(PACE_ESHUTDOWN, pace_cq_post(cq, tags, 8, &got));
    CHECK(got == 0);
    SAYS(PACE_ESHUTDOWN, pace_cq_wake(cq, 1));
    SAYS(PACE_ESHUTDOWN, pace_cq_wait(cq, entries, MOST, PACE_FOREVER, &got));
    SAYS(PACE_ESHUTDOWN, pace_cq_wait(cq, entries, MOST, 0, &got));
    pace_cq_free(cq);
    pace_audit_t audit = {0};
    audit.struct_size = sizeof audit;
    OK(pace_pool_audit(pool, &audit));
    CHECK(audit.balances && audit.in_flight == 0);
    pace_pool_free(pool);
    close(ends[0]);
    close(ends[1]);
}

static size_t all_is_taken(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data, (void)conn, (void)bytes;
    return size;
}

static void connections(uint32_t threads) {
    pace_pool_t *pool = pool_of(threads);
    pace_cq_t *cq = queue_of(pool, 0);
    pace_listener_options_t listener = listener_at(TCP);
    pace_server_options_t options;
    pace_server_t *server, *plain;
    pace_cq_entry_t entry;
    pace_cq_completion_t done;
    char address[PACE_ADDRESS_SIZE], bytes[16];
    OK(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    SAYS(PACE_EINVAL, pace_cq_server(cq, &options, 128, 1, &server));
    OK(pace_cq_server(cq, &options, PACE_WANTED_OPENED | PACE_WANTED_CLOSED, 1, &server));
    OK(pace_server_address(server, 0, address, sizeof address));
    int fd = dial(address);
    entry = one(cq, PACE_CQ_CONN, 1);
    CHECK(entry.detail.conn.event == PACE_CONN_EVENT_OPENED && entry.bytes == NULL);
    pace_admission_t *admission = NULL;
    OK(pace_cq_admit(cq, entry.token, &admission));
    pace_admission_free(admission);
    OK(pace_cq_done(cq, &entry, 1));
    SAYS(PACE_ESTALE, pace_cq_admit(cq, entry.token, &admission));
    send_all(fd, "hello", 5);
    entry = one(cq, PACE_CQ_CONN, 1);
    CHECK(entry.detail.conn.event == PACE_CONN_EVENT_DATA && entry.size == 5);
    CHECK(memcmp(entry.bytes, "hello", 5) == 0);
    /* What is not consumed comes again, followed by more. */
    done = completion(entry.token, 1 << 20);
    SAYS(PACE_EINVAL, pace_cq_complete(cq, &done, 1));
    done = completion(entry.token, 0);
    done.length = 6;
    SAYS(PACE_EINVAL, pace_cq_complete(cq, &done, 1));
    TELLS("6");
    done.length = 2;
    done.bytes = "hel";
    done.size = 3;
    OK(pace_cq_complete(cq, &done, 1));
    CHECK(done.status <= PACE_WRITE_STATUS_ABOVE_HIGH_MARK);
    CHECK(receive(fd, bytes, 3, MSG_WAITALL) == 3);
    CHECK(memcmp(bytes, "hel", 3) == 0);
    send_all(fd, "!", 1);
    entry = one(cq, PACE_CQ_CONN, 1);
    CHECK(entry.size == 3 && memcmp(entry.bytes, "lo!", 3) == 0);
    /* It stays out while it is held. */
    done = completion(entry.token, PACE_CQ_HOLD);
    done.bytes = "x";
    done.size = 1;
    OK(pace_cq_complete(cq, &done, 1));
    CHECK(counters(cq).out == 1);
    done.flags = PACE_CQ_CLOSE;
    OK(pace_cq_complete(cq, &done, 1));
    CHECK(receive(fd, bytes, 2, MSG_WAITALL) == 2);
    entry = one(cq, PACE_CQ_CONN, 1);
    CHECK(entry.detail.conn.event == PACE_CONN_EVENT_CLOSED);
    OK(pace_cq_done(cq, &entry, 1));
    close(fd);
    /* Outgoing ones; and servers that are attached to nothing. */
    pace_conn_id_t conn;
    OK(pace_cq_connect(server, address, PACE_WANTED_ALL, &conn));
    for (int closed = 0; closed < 2;) {
        entry = one(cq, PACE_CQ_CONN, 1);
        closed += entry.detail.conn.event == PACE_CONN_EVENT_CLOSED;
        const bool opened = entry.detail.conn.event == PACE_CONN_EVENT_OPENED;
        done = completion(entry.token, opened ? PACE_CQ_ABORT : 0);
        OK(pace_cq_complete(cq, &done, 1));
    }
    if (threads > 0) {
        pace_drain_report_t report = {0};
        report.struct_size = sizeof report;
        OK(pace_server_drain(server, PACE_FOREVER, &report));
        for (;;) {
            CHECK(take(cq, &entry, 1) == 1);
            if (entry.kind == PACE_CQ_ENDED) break;
            OK(pace_cq_done(cq, &entry, 1));
        }
        CHECK(entry.tag == 1);
    }
    pace_conn_hooks_t hooks;
    OK(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = all_is_taken;
    OK(pace_server_new(pool, NULL, &hooks, &plain));
    SAYS(PACE_EINVAL, pace_cq_connect(plain, address, 0, &conn));
    pace_server_free(plain);
    pace_server_free(server);
    /* It stops without waiting for an entry that the same thread has. */
    pace_cq_t *other = queue_of(pool, 0);
    OK(pace_cq_server(other, &options, 0, 2, &server));
    OK(pace_server_address(server, 0, address, sizeof address));
    fd = dial(address);
    send_all(fd, "?", 1);
    entry = one(other, PACE_CQ_CONN, 2);
    OK(pace_server_stop(server));
    OK(pace_cq_done(other, &entry, 1));
    pace_server_free(server);
    close(fd);
    end(other, 0);
    end(cq, 0);
    finish(pool);
}

static pace_cq_entry_t conn_event(pace_cq_t *cq, uint32_t event) {
    pace_cq_entry_t entry = one(cq, PACE_CQ_CONN, 1);
    CHECK(entry.detail.conn.event == event);
    return entry;
}

static void complete(pace_cq_t *cq, pace_cq_entry_t entry, uint32_t flags, const char *answer) {
    pace_cq_completion_t done = completion(entry.token, flags);
    done.length = entry.size;
    done.bytes = answer;
    done.size = answer == NULL ? 0 : strlen(answer);
    OK(pace_cq_complete(cq, &done, 1));
}

/* Every event of a connection, and every answer to it. */
static void answers_to_connections(void) {
    static char much[(1 << 24) + 1];
    pace_pool_t *pool = pool_of(2);
    pace_cq_t *cq = queue_of(pool, 0);
    pace_listener_options_t listener = listener_at(TCP);
    pace_server_options_t options = options_with(&listener, 1);
    pace_server_t *server;
    pace_cq_entry_t entry;
    char address[PACE_ADDRESS_SIZE];
    listener.max_requests = 1;
    listener.busy = "busy";
    listener.busy_size = 4;
    OK(pace_cq_server(cq, &options, PACE_WANTED_ALL, 1, &server));
    OK(pace_server_address(server, 0, address, sizeof address));
    /* Not wanted. */
    int fd = dial(address);
    complete(cq, conn_event(cq, PACE_CONN_EVENT_OPENED), PACE_CQ_REFUSE, "no");
    expect_text(fd, "no");
    expect_end(fd);
    entry = conn_event(cq, PACE_CONN_EVENT_CLOSED);
    CHECK(entry.detail.conn.detail == PACE_REASON_REFUSED);
    OK(pace_cq_done(cq, &entry, 1));
    /* A tracked write, and who has finished. */
    fd = dial(address);
    entry = conn_event(cq, PACE_CONN_EVENT_OPENED);
    OK(pace_cq_done(cq, &entry, 1));
    OK(pace_server_conn_write_tracked(server, entry.detail.conn.conn, "x", 1, 7, NULL));
    expect_text(fd, "x");
    entry = conn_event(cq, PACE_CONN_EVENT_WRITTEN);
    CHECK(entry.detail.conn.number == 7);
    OK(pace_cq_done(cq, &entry, 1));
    CHECK(shutdown(fd, SHUT_WR) == 0);
    complete(cq, conn_event(cq, PACE_CONN_EVENT_FINISHED), PACE_CQ_CLOSE, "bye");
    expect_text(fd, "bye");
    expect_end(fd);
    entry = conn_event(cq, PACE_CONN_EVENT_CLOSED);
    CHECK(entry.detail.conn.detail == PACE_REASON_PEER && entry.detail.conn.number == 0);
    OK(pace_cq_done(cq, &entry, 1));
    /* Requests beyond the listener's maximum; an answer without room; a failure, and one in the end. */
    fd = dial(address);
    entry = conn_event(cq, PACE_CONN_EVENT_OPENED);
    OK(pace_cq_done(cq, &entry, 1));
    send_text(fd, "x");
    entry = conn_event(cq, PACE_CONN_EVENT_DATA);
    pace_admission_t *first = NULL, *second = NULL;
    SAYS(PACE_EINVAL, pace_cq_admit(cq, entry.token, NULL));
    OK(pace_cq_admit(cq, entry.token, &first));
    SAYS(PACE_EFULL, pace_cq_admit(cq, entry.token, &second));
    CHECK(second == NULL);
    expect_text(fd, "busy");
    OK(pace_admission_answered(first));
    pace_cq_completion_t done = completion(entry.token, 0);
    done.bytes = much;
    done.size = sizeof much;
    SAYS(PACE_EFULL, pace_cq_complete(cq, &done, 1));
    complete(cq, entry, PACE_CQ_FAIL, NULL);
    entry = conn_event(cq, PACE_CONN_EVENT_CLOSED);
    CHECK(entry.detail.conn.detail == PACE_REASON_PANICKED);
    complete(cq, entry, PACE_CQ_FAIL, NULL);
    close(fd);
    UNTIL(stats_of(server).closed_panicked == 1);
    pace_server_stats_t stats = stats_of(server);
    CHECK(stats.requests == 1 && stats.answered == 1 && stats.busy == 1 && stats.in_work == 0);
    CHECK(stats.panics_in_close == 1);
    /* A socket that has failed says why. */
    struct linger abrupt = {1, 0};
    fd = dial(address);
    entry = conn_event(cq, PACE_CONN_EVENT_OPENED);
    OK(pace_cq_done(cq, &entry, 1));
    CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt) == 0);
    close(fd);
    entry = conn_event(cq, PACE_CONN_EVENT_CLOSED);
    CHECK(entry.detail.conn.detail == PACE_REASON_FAILED);
    CHECK(entry.detail.conn.number == ECONNRESET);
    OK(pace_cq_done(cq, &entry, 1));
    SAYS(PACE_EINVAL, pace_cq_connect(server, "nowhere", 0, NULL));
    SAYS(PACE_EINVAL, pace_cq_connect(server, NULL, 0, NULL));
    SAYS(PACE_EINVAL, pace_cq_connect(server, address, 128, NULL));
    TELLS("wanted");
    pace_server_free(server);
    end(cq, 0);
    finish(pool);
}

static void request_of(int fd, const char *head) { send_all(fd, head, strlen(head)); }

static void requests(void) {
    pace_pool_t *pool = pool_of(2);
    pace_cq_t *cq = queue_of(pool, 0), *other = queue_of(pool, 0);
    pace_http_t *http;
    pace_listener_options_t listener = listener_at(TCP);
    pace_http_options_t options;
    pace_server_t *beneath;
    char address[PACE_ADDRESS_SIZE], text[4096];
    pace_cq_entry_t entry, part;
    OK(pace_http_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    OK(pace_http_new(pool, &http));
    OK(pace_cq_route(cq, http, "GET", "/a", false, 7));
    OK(pace_cq_route(cq, http, "PUT", "/b", true, 8));
    OK(pace_cq_fallback(cq, http, 9));
    OK(pace_cq_http_ends(cq, http, 10));
    SAYS(PACE_EINVAL, pace_cq_route(other, http, "GET", "/c", false, 1));
    OK(pace_http_start(http, &options));
    OK(pace_http_server(http, &beneath));
    OK(pace_server_address(beneath, 0, address, sizeof address));
    int fd = dial(address);
    request_of(fd, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    entry = one(cq, PACE_CQ_REQUEST, 7);
    uint32_t numbers[8];
    CHECK(entry.size > sizeof numbers);
    memcpy(numbers, entry.bytes, sizeof numbers);
    CHECK(numbers[0] == 3 && numbers[7] == entry.size);
    pace_cq_completion_t answer = completion(entry.token, 0);
    answer.answer = 200;
    answer.headers = "X-One: 1\r\n";
    answer.headers_size = strlen("X-One: 1\r\n");
    answer.bytes = "fine";
    answer.size = 4;
    OK(pace_cq_complete(cq, &answer, 1));
    SAYS(PACE_ESTALE, pace_cq_complete(cq, &answer, 1));
    entry = one(cq, PACE_CQ_REQUEST_ENDED, 10);
    uint32_t status;
    memcpy(&status, (const char *)entry.bytes + 16, sizeof status);
    CHECK(status == 200);
    OK(pace_cq_done(cq, &entry, 1));

    /* A body that is read in parts, and an answer that goes on. */
    request_of(fd, "PUT /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
    entry = one(cq, PACE_CQ_REQUEST, 8);
    OK(pace_cq_read(cq, entry.token));
    part = one(cq, PACE_CQ_BODY, 8);
    CHECK(part.detail.request.request == entry.token && part.size == 2);
    OK(pace_cq_done(cq, &part, 1));
    OK(pace_cq_read(cq, entry.token));
    request_of(fd, "cde");
    part = one(cq, PACE_CQ_BODY, 8);
    CHECK(part.size == 3 && memcmp(part.bytes, "cde", 3) == 0);
    OK(pace_cq_done(cq, &part, 1));
    OK(pace_cq_read(cq, entry.token));
    part = one(cq, PACE_CQ_BODY_END, 8);
    CHECK(part.token == 0 && part.detail.request.request == entry.token);
    SAYS(PACE_ESTALE, pace_cq_read(cq, entry.token));
    answer = completion(entry.token, PACE_CQ_MORE);
    answer.answer = 201;
    answer.length = PACE_CQ_UNKNOWN;
    answer.bytes = "one";
    answer.size = 3;
    OK(pace_cq_complete(cq, &answer, 1));
    CHECK(counters(cq).out == 1);
    answer.flags = 0;
    answer.bytes = "two";
    OK(pace_cq_complete(cq, &answer, 1));
    entry = one(cq, PACE_CQ_REQUEST_ENDED, 10);
    OK(pace_cq_done(cq, &entry, 1));

    /* A client that goes: told once, now if it has gone. Its request is completed all the same. */
    for (int kind = 0; kind < 2; kind++) {
        bool gone = true;
        int own = dial(address);
        request_of(own, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
        entry = one(cq, PACE_CQ_REQUEST, 7);
        OK(pace_cq_is_client_gone(cq, entry.token, &gone));
        CHECK(!gone);
        OK(pace_cq_watch_client(cq, entry.token));
        struct linger abrupt = {kind, 0};
        CHECK(setsockopt(own, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt) == 0);
        close(own);
        /* The end of a request that was reset is told by another source. */
        for (int left = 1 + kind; left > 0; left--) {
            CHECK(take(cq, &part, 1) == 1);
            if (part.kind == PACE_CQ_REQUEST_ENDED && kind == 1) {
                OK(pace_cq_done(cq, &part, 1));
                continue;
            }
            CHECK(part.kind == PACE_CQ_CLIENT_GONE && part.tag == 7 && part.token == 0);
            CHECK(part.detail.request.request == entry.token);
        }
        OK(pace_cq_is_client_gone(cq, entry.token, &gone));
        CHECK(gone);
        OK(pace_cq_watch_client(cq, entry.token));
        CHECK(one(cq, PACE_CQ_CLIENT_GONE, 7).detail.request.request == entry.token);
        SAYS(PACE_EINVAL, pace_cq_is_client_gone(cq, entry.token, NULL));
        answer = completion(entry.token, kind == 0 ? PACE_CQ_ABORT : 0);
        answer.answer = 200;
        SAYS(kind == 1 ? PACE_ESTALE : PACE_OK, pace_cq_complete(cq, &answer, 1));
        SAYS(PACE_ESTALE, pace_cq_watch_client(cq, entry.token));
        SAYS(PACE_ESTALE, pace_cq_is_client_gone(cq, entry.token, &gone));
        if (kind == 1) continue;
        entry = one(cq, PACE_CQ_REQUEST_ENDED, 10);
        memcpy(&status, (const char *)entry.bytes + 16, sizeof status);
        CHECK(status == 0);
        OK(pace_cq_done(cq, &entry, 1));
    }

    /* What no route takes; one that fails; one that nobody answers. */
    request_of(fd, "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n");
    entry = one(cq, PACE_CQ_REQUEST, 9);
    answer = completion(entry.token, PACE_CQ_ERROR_PAGE);
    answer.answer = 404;
    OK(pace_cq_complete(cq, &answer, 1));
    entry = one(cq, PACE_CQ_REQUEST_ENDED, 10);
    OK(pace_cq_done(cq, &entry, 1));
    for (uint32_t flags = 0; flags <= PACE_CQ_FAIL; flags += PACE_CQ_FAIL) {
        int own = dial(address);
        request_of(own, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
        entry = one(cq, PACE_CQ_REQUEST, 7);
        answer = completion(entry.token, flags);
        OK(pace_cq_complete(cq, &answer, 1));
        CHECK(receive(own, text, 12, MSG_WAITALL) == 12);
        CHECK(memcmp(text, "HTTP/1.1 500", 12) == 0);
        entry = one(cq, PACE_CQ_REQUEST_ENDED, 10);
        OK(pace_cq_done(cq, &entry, 1));
        close(own);
    }
    close(fd);

    /* Another protocol. */
    pace_server_t *upgraded;
    OK(pace_cq_server(other, NULL, PACE_WANTED_OPENED, 70, &upgraded));
    fd = dial(address);
    request_of(fd, "GET /a HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    entry = one(cq, PACE_CQ_REQUEST, 7);
    SAYS(PACE_EINVAL, pace_cq_upgrade(cq, entry.token, "echo", NULL, 0, NULL, 0, NULL));
    SAYS(PACE_EINVAL, pace_cq_upgrade(cq, entry.token, "echo", NULL, 0, upgraded, 128, NULL));
    SAYS(PACE_EINVAL, pace_cq_upgrade(cq, entry.token, "echo", NULL, 0, beneath, 0, NULL));
    pace_conn_id_t conn;
    OK(pace_cq_upgrade(cq, entry.token, "echo", NULL, 0, upgraded, PACE_WANTED_OPENED, &conn));
    SAYS(PACE_ESTALE, pace_cq_upgrade(cq, entry.token, "echo", NULL, 0, upgraded, 0, NULL));
    part = one(other, PACE_CQ_CONN, 70);
    CHECK(part.detail.conn.conn.id == conn.id);
    OK(pace_cq_done(other, &part, 1));
    request_of(fd, "ping");
    part = one(other, PACE_CQ_CONN, 70);
    CHECK(part.size == 4);
    OK(pace_cq_done(other, &part, 1));
    close(fd);
    pace_http_free(http);
    pace_server_free(upgraded);
    do CHECK(take(cq, &entry, 1) == 1);
    while (entry.kind != PACE_CQ_ENDED && (OK(pace_cq_done(cq, &entry, 1)), true));
    CHECK(entry.tag == 7);
    end(cq, 0);
    end(other, 0);
    finish(pool);
}

static void datagrams(void) {
    pace_pool_t *pool = pool_of(1);
    pace_cq_t *cq = queue_of(pool, 0);
    pace_udp_options_t options;
    pace_udp_t *here, *there;
    pace_ip_t to;
    char text[PACE_ADDRESS_SIZE];
    pace_cq_entry_t entry;
    OK(pace_udp_options_init(&options, sizeof options));
    options.bind = TCP;
    options.max_datagram = 100;
    SAYS(PACE_EINVAL, pace_cq_udp(cq, &options, 1, 3, &here));
    OK(pace_cq_udp(cq, &options, 1 << 20, 3, &here));
    OK(pace_cq_udp(cq, &options, 1 << 20, 4, &there));
    OK(pace_udp_address(here, text, sizeof text));
    OK(pace_ip_read(text, &to));
    char large[300];
    memset(large, 'x', sizeof large);
    OK(pace_udp_send_to(there, large, sizeof large, &to));
    entry = one(cq, PACE_CQ_DATAGRAM, 3);
    CHECK(entry.size == 100 && entry.detail.datagram.length == 300);
    OK(pace_udp_send_to(here, entry.bytes, 1, &entry.detail.datagram.peer));
    OK(pace_cq_done(cq, &entry, 1));
    entry = one(cq, PACE_CQ_DATAGRAM, 4);
    CHECK(entry.size == 1 && *(const char *)entry.bytes == 'x');
    OK(pace_cq_done(cq, &entry, 1));
    /* What is out stays where it is while others come. */
    pace_cq_entry_t all[MOST];
    size_t count = 0;
    for (uint32_t i = 0; i < MOST; i++) OK(pace_udp_send_to(there, &i, sizeof i, &to));
    while (count < MOST) count += take(cq, all + count, MOST - count);
    for (uint32_t i = 0; i < MOST; i++) {
        CHECK(all[i].kind == PACE_CQ_DATAGRAM && all[i].size == sizeof i);
        CHECK(memcmp(all[i].bytes, &i, sizeof i) == 0);
    }
    OK(pace_cq_done(cq, all, MOST));
    /* An error, and the end. */
    pace_udp_t *asking;
    OK(pace_udp_close(here));
    OK(pace_udp_wait(here));
    one(cq, PACE_CQ_ENDED, 3);
    options.bind = NULL;
    options.connect = text;
    OK(pace_cq_udp(cq, &options, 1 << 20, 5, &asking));
    OK(pace_udp_send(asking, "?", 1));
    entry = one(cq, PACE_CQ_DATAGRAM_ERROR, 5);
    CHECK(entry.detail.datagram.os_error == ECONNREFUSED && entry.token == 0);
    pace_udp_free(here);
    pace_udp_free(there);
    pace_udp_free(asking);
    end(cq, 0);
    finish(pool);
}

static void attempts(void) {
    pace_pool_t *pool = pool_of(1);
    pace_cq_t *cq = queue_of(pool, 0), *other = queue_of(pool, 0);
    pace_workers_t *workers;
    pace_task_type_t *type;
    pace_task_type_config_t config;
    pace_task_t tasks[4];
    pace_cq_entry_t entries[4];
    pace_cq_completion_t done;
    bool cancelled = true;
    OK(pace_workers_new(pool, NULL, &workers));
    OK(pace_task_type_config_init(&config, sizeof config));
    config.retry.shape = PACE_RETRY_FIXED;
    config.retry.retries = 2;
    config.retry.first_ns = MILLI;
    OK(pace_task_type_new(workers, "kind", &config, &type));
    OK(pace_cq_workers(cq, workers, 99));
    SAYS(PACE_EINVAL, pace_cq_workers(other, workers, 1));
    TELLS("attached");
    OK(pace_workers_submit_tagged(workers, type, 42, NULL, &tasks[0]));
    OK(pace_cq_task(other, workers, tasks[0], 5));
    for (uint32_t attempt = 1; attempt <= 2; attempt++) {
        entries[0] = one(cq, PACE_CQ_ATTEMPT, 42);
        CHECK(entries[0].detail.attempt.number == attempt);
        CHECK(entries[0].detail.attempt.status == PACE_TASK_RUNNING);
        OK(pace_cq_is_cancelled(cq, entries[0].token, &cancelled));
        CHECK(!cancelled);
        OK(pace_cq_renew(cq, entries[0].token));
        done = completion(entries[0].token, attempt == 1 ? PACE_CQ_FAIL | PACE_CQ_AFTER : 0);
        done.error = 7;
        done.message = "not yet";
        OK(pace_cq_complete(cq, &done, 1));
        CHECK(done.status == (attempt == 1 ? PACE_TASK_RETRYING : PACE_TASK_COMPLETED));
        SAYS(PACE_ESTALE, pace_cq_renew(cq, entries[0].token));
        SAYS(PACE_ESTALE, pace_cq_is_cancelled(cq, entries[0].token, &cancelled));
    }
    CHECK(one(other, PACE_CQ_TASK_ENDED, 5).detail.attempt.status == PACE_TASK_COMPLETED);
    OK(pace_workers_detach(workers, tasks[0]));
    /* One that waits is cancelled: its end is told. One that fails for good. */
    OK(pace_workers_submit_tagged(workers, type, 1, NULL, &tasks[1]));
    OK(pace_workers_cancel(workers, tasks[1], &cancelled));
    CHECK(cancelled);
    CHECK(one(cq, PACE_CQ_TASK_ENDED, 1).detail.attempt.status == PACE_TASK_CANCELLED);
    OK(pace_workers_detach(workers, tasks[1]));
    OK(pace_workers_submit_tagged(workers, type, 2, NULL, NULL));
    entries[0] = one(cq, PACE_CQ_ATTEMPT, 2);
    done = completion(entries[0].token, PACE_CQ_FAIL | PACE_CQ_PERMANENT | PACE_CQ_AFTER);
    SAYS(PACE_EINVAL, pace_cq_complete(cq, &done, 1));
    done.flags = PACE_CQ_FAIL | PACE_CQ_PERMANENT;
    OK(pace_cq_complete(cq, &done, 1));
    CHECK(done.status == PACE_TASK_FAILED);
    /* Those that are taken, and wait for another of their type first, leave none behind. */
    pace_task_type_t *alone;
    OK(pace_task_type_config_init(&config, sizeof config));
    config.max_running = 1;
    OK(pace_task_type_new(workers, "alone", &config, &alone));
    for (int i = 0; i < 4; i++) OK(pace_workers_submit_tagged(workers, alone, 50, NULL, NULL));
    for (int i = 0; i < 4; i++) {
        CHECK(take(cq, entries, 2) == 1);
        CHECK(entries[0].kind == PACE_CQ_ATTEMPT && entries[0].tag == 50);
        OK(pace_cq_done(cq, entries, 1));
    }
    pace_task_type_free(alone);
    /* The end of the queue fails what is out. */
    OK(pace_workers_submit_tagged(workers, type, 3, NULL, &tasks[2]));
    entries[0] = one(cq, PACE_CQ_ATTEMPT, 3);
    CHECK(counters(cq).out == 1);
    pace_cq_free(cq);
    pace_task_report_t report = {0};
    report.struct_size = sizeof report;
    OK(pace_workers_cancel(workers, tasks[2], &cancelled));
    OK(pace_workers_wait(workers, tasks[2], PACE_FOREVER, &report));
    CHECK(report.status != PACE_TASK_COMPLETED);
    pace_task_type_free(type);
    pace_workers_free(workers);
    end(other, 0);
    finish(pool);
}

static pace_receipt_t receipt = {.struct_size = sizeof receipt};

static void messages(uint32_t threads) {
    pace_pool_t *pool = pool_of(threads);
    pace_cq_t *cq = queue_of(pool, 0);
    pace_hub_t *hub;
    pace_mailbox_t *mailbox, *answering;
    pace_key_t *key, *question;
    pace_cq_entry_t entries[MOST];
    pace_cq_completion_t done;
    pace_dead_letter_stats_t dead = {0};
    char text[16];
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_mailbox(hub, "a.*", NULL, &mailbox));
    OK(pace_cq_mailbox(cq, mailbox, 11));
    SAYS(PACE_EINVAL, pace_cq_mailbox(cq, mailbox, 12));
    OK(pace_hub_key(hub, "a.b", &key));
    for (int i = 0; i < 200; i++) {
        int size = snprintf(text, sizeof text, "m%d", i);
        OK(pace_key_publish(key, text, (size_t)size, 0, &receipt));
    }
    int seen = 0;
    while (seen < 200) {
        size_t got = take(cq, entries, MOST);
        for (size_t i = 0; i < got; i++, seen++) {
            int size = snprintf(text, sizeof text, "m%d", seen);
            CHECK(entries[i].kind == PACE_CQ_MESSAGE && entries[i].tag == 11 && entries[i].token != 0);
            CHECK(entries[i].size == (size_t)size &&
                  memcmp(entries[i].bytes, text, entries[i].size) == 0);
            CHECK(entries[i].detail.message.attempt == 1 && entries[i].detail.message.key.size == 3);
        }
        /* In any order; what is out stays where it is until its own turn. */
        for (size_t i = got; i-- > 1;) OK(pace_cq_done(cq, &entries[i], 1));
        int size = snprintf(text, sizeof text, "m%d", seen - (int)got);
        CHECK(memcmp(entries[0].bytes, text, (size_t)size) == 0);
        OK(pace_cq_done(cq, entries, 1));
        SAYS(PACE_ESTALE, pace_cq_done(cq, entries, got));
    }
    CHECK(counters(cq).brought == 200);
    /* Once more, and then to the dead letters. */
    OK(pace_key_publish(key, "again", 5, 0, &receipt));
    entries[0] = one(cq, PACE_CQ_MESSAGE, 11);
    done = completion(entries[0].token, PACE_CQ_RETRY);
    OK(pace_cq_complete(cq, &done, 1));
    entries[0] = one(cq, PACE_CQ_MESSAGE, 11);
    CHECK(entries[0].flags == PACE_CQ_AGAIN && entries[0].detail.message.attempt == 2);
    CHECK(memcmp(entries[0].bytes, "again", 5) == 0);
    done = completion(entries[0].token, PACE_CQ_FAIL);
    done.message = "I cannot";
    done.answer = 2;
    OK(pace_cq_complete(cq, &done, 1));
    SAYS(PACE_ESTALE, pace_cq_complete(cq, &done, 1));
    dead.struct_size = sizeof dead;
    OK(pace_hub_dead_letter_stats(hub, &dead));
    CHECK(dead.held == 1);
    /* Requests: one with a reply, one that is too late, one that is given up. */
    pace_asked_t asked;
    OK(pace_hub_mailbox(hub, "q", NULL, &answering));
    OK(pace_cq_mailbox(cq, answering, 13));
    OK(pace_hub_key(hub, "q", &question));
    OK(pace_cq_request(cq, question, NULL, "?", 1, PACE_FOREVER, 21, NULL));
    entries[0] = one(cq, PACE_CQ_MESSAGE, 13);
    OK(pace_hub_reply(hub, &entries[0].detail.message, "!", 1, &receipt));
    OK(pace_cq_done(cq, entries, 1));
    entries[0] = one(cq, PACE_CQ_REPLY, 21);
    CHECK(entries[0].status == PACE_OK && entries[0].size == 1 &&
          *(const char *)entries[0].bytes == '!');
    OK(pace_cq_done(cq, entries, 1));
    OK(pace_cq_request(cq, question, NULL, "?", 1, MILLI, 22, NULL));
    for (int i = 0; i < 2; i++) {
        CHECK(take(cq, entries, 1) == 1);
        if (entries[0].kind == PACE_CQ_REPLY)
            CHECK(entries[0].status == PACE_ETIMEDOUT && entries[0].tag == 22);
        OK(pace_cq_done(cq, entries, 1));
    }
    OK(pace_cq_request(cq, question, NULL, "?", 1, PACE_FOREVER, 23, &asked));
    entries[0] = one(cq, PACE_CQ_MESSAGE, 13);
    OK(pace_cq_done(cq, entries, 1));
    OK(pace_hub_give_up(hub, asked, NULL));
    CHECK(one(cq, PACE_CQ_REPLY, 23).status == PACE_ECANCELLED);
    /* One that drains ends behind its last message. */
    pace_mailbox_t *draining;
    bool ended;
    OK(pace_hub_mailbox(hub, "a.b", NULL, &draining));
    OK(pace_cq_mailbox(cq, draining, 14));
    OK(pace_key_publish(key, "last", 4, 0, &receipt));
    OK(pace_mailbox_unsubscribe(draining, PACE_UNSUBSCRIBE_DRAIN, &ended));
    uint32_t ends = 0;
    for (int i = 0; i < 3; i++) {
        CHECK(take(cq, entries, 1) == 1);
        ends += entries[0].kind == PACE_CQ_ENDED && entries[0].tag == 14;
        OK(pace_cq_done(cq, entries, 1));
    }
    CHECK(ends == 1);
    pace_mailbox_free(draining);
    /* What is out when the queue goes is a dead letter; what waits can be had of the mailbox's subscription no more. */
    OK(pace_key_publish(key, "left", 4, 0, &receipt));
    one(cq, PACE_CQ_MESSAGE, 11);
    CHECK(counters(cq).out == 1);
    pace_cq_free(cq);
    OK(pace_hub_dead_letter_stats(hub, &dead));
    CHECK(dead.held == 2);
    pace_key_free(key);
    pace_key_free(question);
    pace_mailbox_free(mailbox);
    pace_mailbox_free(answering);
    pace_hub_free(hub);
    finish(pool);
}

/* A thread that took something and is gone: the lease finds it out. */
static void leases(void) {
    pace_pool_t *pool = pool_of(1);
    pace_cq_config_t config;
    pace_cq_t *cq;
    OK(pace_cq_config_init(&config, sizeof config));
    config.lease_ns = 1000;
    SAYS(PACE_EINVAL, pace_cq_new(pool, &config, &cq));
    cq = queue_of(pool, 500 * MILLI);
    pace_hub_t *hub;
    pace_mailbox_t *mailbox, *late;
    pace_key_t *key;
    pace_cq_entry_t first[4], again[4];
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_mailbox(hub, "a", NULL, &mailbox));
    OK(pace_cq_mailbox(cq, mailbox, 1));
    OK(pace_hub_key(hub, "a", &key));
    const char letters[] = "abc";
    for (int i = 0; i < 3; i++) OK(pace_key_publish(key, letters + i, 1, 0, &receipt));
    for (size_t got = 0; got < 3;) got += take(cq, first + got, 3 - got);
    OK(pace_cq_done(cq, &first[1], 1));
    /* The others come once more, each by itself, and their tokens name nothing. */
    for (size_t got = 0; got < 2;) got += take(cq, again + got, 2 - got);
    CHECK(again[0].flags == PACE_CQ_AGAIN && again[1].flags == PACE_CQ_AGAIN);
    CHECK(*(const char *)again[0].bytes == 'a' && *(const char *)again[1].bytes == 'c');
    CHECK(again[0].detail.message.attempt == 2);
    SAYS(PACE_ESTALE, pace_cq_done(cq, &first[0], 1));
    SAYS(PACE_ESTALE, pace_cq_done(cq, &first[2], 1));
    CHECK(counters(cq).withdrawn >= 2);
    pace_cq_stats_t stats = counters(cq);
    CHECK(stats.completed == 1);
    pace_cq_free(cq);
    /* Or the lease begins when an entry is renewed: whoever copies first may be held up for as long as that takes. */
    config.lease_ns = MILLI;
    config.leased_when_renewed = true;
    OK(pace_cq_new(pool, &config, &cq));
    OK(pace_hub_mailbox(hub, "b", NULL, &late));
    OK(pace_cq_mailbox(cq, late, 2));
    OK(pace_hub_publish(hub, "b", "slow", 4, 0, &receipt));
    first[0] = one(cq, PACE_CQ_MESSAGE, 2);
    usleep(50000);
    CHECK(counters(cq).out == 1 && memcmp(first[0].bytes, "slow", 4) == 0);
    OK(pace_cq_renew(cq, first[0].token));
    CHECK(one(cq, PACE_CQ_MESSAGE, 2).flags == PACE_CQ_AGAIN);
    SAYS(PACE_ESTALE, pace_cq_done(cq, &first[0], 1));
    pace_cq_free(cq);
    pace_mailbox_free(late);
    pace_key_free(key);
    pace_mailbox_free(mailbox);
    pace_hub_free(hub);
    finish(pool);
}

static void records_and_signals(void) {
    pace_log_config_t config;
    pace_log_t *log, *deaf;
    pace_pool_config_t options;
    pace_pool_t *pool;
    pace_signals_t *signals;
    const int numbers[1] = {SIGUSR1};
    OK(pace_log_config_init(&config, sizeof config));
    OK(pace_log_new(&config, &deaf));
    config.cq_capacity = 100;
    OK(pace_log_new(&config, &log));
    OK(pace_pool_config_init(&options, sizeof options));
    options.threads = 1;
    options.pin = "none";
    options.log = log;
    /* A thread that does not block the signal would get it. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    OK(pace_pool_new(&options, &pool));
    pace_cq_t *cq = queue_of(pool, 0);
    SAYS(PACE_EINVAL, pace_cq_log(cq, deaf, 1));
    OK(pace_cq_log(cq, log, 1));
    SAYS(PACE_EINVAL, pace_cq_log(cq, log, 2));
    pace_cq_entry_t entry = one(cq, PACE_CQ_RECORD, 1);
    CHECK(entry.detail.record.event != NULL && entry.detail.record.message != NULL);
    OK(pace_cq_done(cq, &entry, 1));
    OK(pace_cq_signals(cq, numbers, 1, 8, &signals));
    CHECK(kill(getpid(), SIGUSR1) == 0);
    do {
        CHECK(take(cq, &entry, 1) == 1);
        OK(pace_cq_done(cq, &entry, 1));
    } while (entry.kind != PACE_CQ_SIGNAL);
    CHECK(entry.tag == 8 && entry.detail.signal == SIGUSR1);
    pace_signals_free(signals);
    pace_cq_free(cq);
    finish(pool);
    pace_log_free(log);
    pace_log_free(deaf);
}

/* A log stands on no pool. */
static void records_without_a_pool(void) {
    pace_log_config_t config;
    pace_log_t *log;
    pace_cq_t *cq;
    pace_cq_entry_t entry;
    OK(pace_log_config_init(&config, sizeof config));
    config.cq_capacity = 100;
    OK(pace_log_new(&config, &log));
    OK(pace_cq_new(NULL, NULL, &cq));
    OK(pace_cq_log(cq, log, 3));
    nothing(cq);
    pace_pool_config_t options;
    pace_pool_t *pool;
    OK(pace_pool_config_init(&options, sizeof options));
    options.threads = 0;
    options.log = log;
    OK(pace_pool_new(&options, &pool));
    pace_pool_free(pool);
    entry = one(cq, PACE_CQ_RECORD, 3);
    CHECK(strcmp(entry.detail.record.event, "pool.started") == 0);
    OK(pace_cq_done(cq, &entry, 1));
    OK(pace_log_close(log, PACE_FOREVER));
    do CHECK(take(cq, &entry, 1) == 1);
    while (entry.kind != PACE_CQ_ENDED && (OK(pace_cq_done(cq, &entry, 1)), true));
    end(cq, 0);
    pace_log_free(log);
}

/* A queue that goes leaves nothing behind: tags that nobody took do not hold up a drain, and handles end. */
static void what_is_left(uint32_t threads) {
    pace_pool_t *pool = pool_of(threads);
    pace_cq_t *cq = queue_of(pool, 0), *other = queue_of(pool, 0);
    pace_handle_t idle = {0}, out = {0}, waits = {0};
    pace_handle_options_t options;
    pace_cq_entry_t entry;
    uint64_t tags[4] = {0};
    bool open = true;
    int ends[3][2];
    OK(pace_handle_options_init(&options, sizeof options));
    options.level = true;
    for (int i = 0; i < 3; i++) make_pipe(ends[i]);
    OK(pace_cq_register(cq, ends[0][0], &options, 1, &out));
    CHECK(write(ends[0][1], "x", 1) == 1);
    one(cq, PACE_CQ_READY, 1);
    OK(pace_cq_register(cq, ends[1][0], &options, 2, &waits));
    CHECK(write(ends[1][1], "x", 1) == 1);
    OK(pace_cq_register(cq, ends[2][0], &options, 3, &idle));
    OK(pace_cq_post(cq, tags, 4, NULL));
    OK(pace_cq_after(cq, MILLI, 4, NULL));
    pace_cq_free(cq);
    CHECK(write(ends[2][1], "x", 1) == 1);
    const pace_handle_t handles[3] = {out, waits, idle};
    for (int i = 0; i < 3; i++) {
        do {
            size_t got;
            SAYS(PACE_ETIMEDOUT, pace_cq_wait(other, &entry, 1, MILLI, &got));
            OK(pace_handle_is_open(pool, handles[i], &open));
        } while (open);
        OK(pace_cq_register(other, ends[i][0], &options, 5, &idle));
        entry = one(other, PACE_CQ_READY, 5);
        pace_cq_completion_t done = completion(entry.token, 0);
        done.answer = PACE_FLOW_DONE;
        OK(pace_cq_complete(other, &done, 1));
        for (int end = 0; end < 2; end++) close(ends[i][end]);
    }
    pace_cq_free(other);
    finish(pool);
}

static void *wait_for_the_end(void *data) {
    pace_cq_entry_t entries[8];
    pace_cq_t *cq = (pace_cq_t *)data;
    size_t got, all = 0;
    pace_status_t status;
    while ((status = pace_cq_wait(cq, entries, 8, PACE_FOREVER, &got)) == PACE_OK) {
        OK(pace_cq_done(cq, entries, got));
        all += got;
    }
    CHECK(status == PACE_ESHUTDOWN);
    return (void *)all;
}

/* Several threads, each entry to one of them; they end when it is closed. */
static void several(uint32_t threads) {
    pace_pool_t *pool = pool_of(threads);
    pace_cq_t *cq = queue_of(pool, 0);
    pthread_t waiters[3];
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&waiters[i], NULL, wait_for_the_end, cq) == 0);
    size_t sent = 0, seen = 0;
    while (sent < 10000) {
        uint64_t tags[10] = {0};
        size_t accepted = 0;
        pace_status_t status = pace_cq_post(cq, tags, 10, &accepted);
        CHECK(status == PACE_OK || status == PACE_EFULL);
        sent += accepted;
    }
    pace_audit_t audit = {0};
    audit.struct_size = sizeof audit;
    do {
        check_nap();
        OK(pace_pool_audit(pool, &audit));
    } while (audit.completed < sent);
    OK(pace_cq_close(cq));
    for (int i = 0; i < 3; i++) {
        void *all;
        CHECK(pthread_join(waiters[i], &all) == 0);
        seen += (size_t)all;
    }
    CHECK(seen == sent);
    pace_cq_free(cq);
    finish(pool);
}

/* A loop of the host's own sleeps beside the descriptor. */
static void beside_a_descriptor(uint32_t threads) {
    pace_pool_t *pool = pool_of(threads);
    pace_cq_t *cq = queue_of(pool, 0);
    pace_cq_entry_t entry;
    size_t got, seen = 0;
    int fd = -1;
    OK(pace_cq_fd(cq, &fd));
    for (int i = 0; i < 5; i++) OK(pace_cq_after(cq, MILLI * (uint64_t)(i + 1), 1, NULL));
    while (seen < 5) {
        struct pollfd wait = {fd, POLLIN, 0};
        CHECK(poll(&wait, 1, -1) == 1);
        while (pace_cq_wait(cq, &entry, 1, 0, &got) == PACE_OK) seen++;
    }
    end(cq, 0);
    finish(pool);
}

/* In a pool without threads: others do its work, and those who wait sleep beside the queue, as many as there are. */
static void beside_the_pool(void) {
    pace_pool_t *pool = pool_of(0);
    pace_cq_config_t config;
    pace_cq_t *cq;
    pace_cq_entry_t entry;
    size_t got;
    int fd = -1;
    OK(pace_cq_config_init(&config, sizeof config));
    CHECK(!config.beside);
    config.beside = true;
    OK(pace_cq_new(pool, &config, &cq));
    OK(pace_cq_fd(cq, &fd));
    struct pollfd wait = {fd, POLLIN, 0};
    OK(pace_cq_after(cq, MILLI, 5, NULL));
    SAYS(PACE_ETIMEDOUT, pace_cq_wait(cq, &entry, 1, 5 * MILLI, &got));
    CHECK(poll(&wait, 1, 0) == 0);
    while (poll(&wait, 1, 0) == 0) OK(pace_pool_join(pool, MILLI, NULL));
    one(cq, PACE_CQ_TIMER, 5);
    nothing(cq);
    CHECK(poll(&wait, 1, 0) == 0);
    pthread_t waiters[20];
    for (int i = 0; i < 20; i++) CHECK(pthread_create(&waiters[i], NULL, wait_for_the_end, cq) == 0);
    uint64_t tags[8] = {0};
    OK(pace_cq_post(cq, tags, 8, NULL));
    do check_nap();
    while (poll(&wait, 1, 0) == 1);
    size_t seen = 0;
    pace_cq_close(cq);
    for (int i = 0; i < 20; i++) {
        void *all;
        CHECK(pthread_join(waiters[i], &all) == 0);
        seen += (size_t)all;
    }
    CHECK(seen == 8);
    pace_cq_free(cq);
    finish(pool);
}

int main(void) {
    check_begin();
    beside_the_pool();
    for (uint32_t threads = 0; threads <= 2; threads += 2) {
        the_pools_own(threads);
        connections(threads);
        messages(threads);
        several(threads);
        what_is_left(threads);
        beside_a_descriptor(threads);
    }
    answers_to_connections();
    requests();
    datagrams();
    attempts();
    leases();
    records_and_signals();
    records_without_a_pool();
    return 0;
}
