/* Requests as data: blocks, answers in batches, bodies that go on, what goes wrong. */
#include "net.h"

#include <poll.h>

static pace_pool_t *pool;
static pace_http_t *http;
static pace_requests_t *requests;
static char address[PACE_ADDRESS_SIZE];

static void start(void) {
    pace_listener_options_t listener = listener_at(TCP);
    pace_http_options_t options;
    pace_server_t *beneath;
    pool = pool_of(2);
    OK(pace_http_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    OK(pace_http_new(pool, &http));
    OK(pace_requests_new(pool, &requests));
    OK(pace_http_route_pulled(http, "GET", "/a/{name}", requests, 7));
    OK(pace_http_route_pulled(http, "POST", "/b", requests, 8));
    OK(pace_http_route_pulled_streaming(http, "PUT", "/c", requests, 9));
    OK(pace_http_fallback_pulled(http, requests, 10));
    OK(pace_http_start(http, &options));
    OK(pace_http_server(http, &beneath));
    OK(pace_server_address(beneath, 0, address, sizeof address));
    SAYS(PACE_EINVAL, pace_http_route_pulled(http, "GET", "/late", requests, 0));
}

static void end(void) {
    pace_server_t *beneath;
    pace_drain_report_t report = {0};
    pace_request_event_t event;
    size_t count;
    report.struct_size = sizeof report;
    OK(pace_http_server(http, &beneath));
    OK(pace_server_drain(beneath, PACE_FOREVER, &report));
    CHECK(report.drained);
    pace_http_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_http_stats(http, &stats));
    CHECK(stats.balances && stats.in_work == 0);
    SAYS(PACE_ESHUTDOWN, pace_requests_pull(requests, &event, 1, PACE_FOREVER, &count));
    pace_http_free(http);
    pace_requests_free(requests);
    finish(pool);
}

static pace_request_event_t next(uint32_t route) {
    pace_request_event_t event;
    size_t count = 0;
    OK(pace_requests_pull(requests, &event, 1, PACE_FOREVER, &count));
    CHECK(count == 1 && event.kind == PACE_REQUEST_EVENT_REQUEST && event.route == route);
    return event;
}

static pace_answer_t answer_to(const pace_request_event_t *event, const char *text) {
    pace_answer_t answer = {0};
    answer.request = event->request;
    answer.bytes = text;
    answer.size = strlen(text);
    answer.status = 200;
    return answer;
}

/* Reads up to the end of the head, and says what its first line is. */
static void expect_head(int fd, const char *line) {
    char head[4096];
    size_t size = 0;
    while (size < 4 || memcmp(head + size - 4, "\r\n\r\n", 4) != 0) {
        CHECK(size < sizeof head && recv(fd, head + size, 1, 0) == 1);
        size++;
    }
    CHECK(memcmp(head, line, strlen(line)) == 0);
}

static void what_is_asked_and_answered(void) {
    start();
    int fd = dial(address);
    send_text(fd, "POST /b?q=1 HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc");
    pace_request_event_t event = next(8);
    uint32_t front[8], lengths[4];
    const char *block = (const char *)event.bytes;
    memcpy(front, block, sizeof front);
    CHECK(front[0] == 4 && front[1] == 6 && front[2] == 2 && front[3] == 3);
    CHECK(front[4] == 1 && front[5] == 0 && front[6] == 2);
    memcpy(lengths, block + sizeof front, sizeof lengths);
    CHECK(lengths[0] == 4 && lengths[1] == 4 && lengths[2] == 14 && lengths[3] == 1);
    const char *text = "POST/b?q=1/bq=1Hosthere";
    CHECK(memcmp(block + sizeof front + sizeof lengths, text, strlen(text)) == 0);
    CHECK(event.size == front[7] + 3 && memcmp(block + front[7], "abc", 3) == 0);
    pace_answer_t answer = answer_to(&event, "answer");
    answer.headers = "X-A: 1\r\n";
    answer.headers_size = 8;
    OK(pace_requests_answer(requests, &answer, 1));
    expect_head(fd, "HTTP/1.1 200 OK\r\n");
    expect_text(fd, "answer");
    SAYS(PACE_ESTALE, pace_requests_answer(requests, &answer, 1));
    CHECK(answer.outcome == PACE_ESTALE);

    /* What no route takes says which status it has, and can be answered as the server does. */
    send_text(fd, "GET /b HTTP/1.1\r\nHost: here\r\nAccept: application/json\r\n\r\n");
    event = next(10);
    memcpy(front, event.bytes, sizeof front);
    CHECK(front[4] == (405u << 16 | 1u));
    answer = answer_to(&event, "");
    answer.status = 405;
    answer.flags = PACE_ANSWER_ERROR;
    OK(pace_requests_answer(requests, &answer, 1));
    expect_head(fd, "HTTP/1.1 405 Method Not Allowed\r\n");
    expect_text(fd, "{\"title\":\"Method Not Allowed\",\"status\":405}\n");

    /* What cannot be sent becomes a 500, and so does what is dropped. */
    send_text(fd, "GET /a/x HTTP/1.1\r\nHost: here\r\n\r\n");
    event = next(7);
    answer = answer_to(&event, "");
    answer.flags = 8;
    SAYS(PACE_EINVAL, pace_requests_answer(requests, &answer, 1));
    answer.flags = 0;
    answer.headers = "no colon\r\n";
    answer.headers_size = 10;
    SAYS(PACE_EINVAL, pace_requests_answer(requests, &answer, 1));
    expect_head(fd, "HTTP/1.1 500 ");
    expect_text(fd, "500 Internal Server Error\n");
    send_text(fd, "GET /a/x HTTP/1.1\r\nHost: here\r\n\r\n");
    event = next(7);
    OK(pace_requests_drop(requests, event.request));
    SAYS(PACE_ESTALE, pace_requests_drop(requests, event.request));
    expect_head(fd, "HTTP/1.1 500 ");
    close(fd);
    end();
}

/* What fails ends its connection, after a 500 if nothing was sent, and is counted. */
static void what_fails(void) {
    pace_server_t *beneath;
    pace_http_stats_t stats = {0};
    char byte;
    start();
    OK(pace_http_server(http, &beneath));
    for (int kind = 0; kind < 3; kind++) {
        int fd = dial(address);
        send_text(fd, "GET /a/x HTTP/1.1\r\nHost: here\r\n\r\n");
        pace_request_event_t event = next(7);
        pace_answer_t answer = answer_to(&event, "all is well");
        if (kind == 1) {
            answer.flags = PACE_ANSWER_MORE;
            answer.length = PACE_LENGTH_UNKNOWN;
        }
        if (kind > 0) OK(pace_requests_answer(requests, &answer, 1));
        if (kind == 2) {
            /* There is no request any more, but its connection. */
            SAYS(PACE_ESTALE, pace_requests_fail(requests, event.request));
            OK(pace_http_fail(http, event.conn));
            expect_head(fd, "HTTP/1.1 200 ");
            expect_text(fd, "all is well");
            expect_end(fd);
            UNTIL(stats_of(beneath).open == 0);
            SAYS(PACE_ESTALE, pace_http_fail(http, event.conn));
        } else {
            OK(pace_requests_fail(requests, event.request));
            SAYS(PACE_ESTALE, pace_requests_fail(requests, event.request));
        }
        if (kind == 0) {
            expect_head(fd, "HTTP/1.1 500 ");
            expect_text(fd, "500 Internal Server Error\n");
            expect_end(fd);
        } else {
            while (recv(fd, &byte, 1, 0) > 0) {
            }
        }
        close(fd);
    }
    UNTIL(stats_of(beneath).open == 0);
    stats.struct_size = sizeof stats;
    OK(pace_http_stats(http, &stats));
    CHECK(stats.panics == 3 && stats.refused_panicked == 1 && stats.aborted_unfinished == 1);
    end();
}

static void bodies_that_go_on(void) {
    static char much[1 << 20];
    start();
    int fd = dial(address), readable = -1;
    OK(pace_requests_pollable(requests, &readable));
    send_text(fd, "GET /a/x HTTP/1.1\r\nHost: here\r\n\r\n");
    struct pollfd entry = {readable, POLLIN, 0};
    CHECK(poll(&entry, 1, 60000) == 1);
    pace_request_event_t event = next(7);
    pace_answer_t answer = answer_to(&event, "");
    answer.flags = PACE_ANSWER_MORE | PACE_ANSWER_CLOSE;
    answer.length = PACE_LENGTH_UNKNOWN;
    OK(pace_requests_answer(requests, &answer, 1));
    size_t sent = 0;
    answer.bytes = much;
    answer.size = sizeof much;
    do {
        OK(pace_requests_answer(requests, &answer, 1));
        sent += sizeof much;
    } while (answer.wrote != PACE_WRITE_STATUS_ABOVE_HIGH_MARK);
    expect_head(fd, "HTTP/1.1 200 OK\r\n");
    for (size_t got = 0; got < sent; got += sizeof much) {
        expect_text(fd, "100000\r\n");
        for (size_t part = 0; part < sizeof much;) {
            char bytes[65536];
            size_t left = sizeof much - part;
            ssize_t some = recv(fd, bytes, left < sizeof bytes ? left : sizeof bytes, 0);
            CHECK(some > 0);
            part += (size_t)some;
        }
        expect_text(fd, "\r\n");
    }
    size_t count;
    OK(pace_requests_pull(requests, &event, 1, PACE_FOREVER, &count));
    CHECK(event.kind == PACE_REQUEST_EVENT_WRITABLE && event.request == answer.request);
    answer.size = 0;
    answer.flags = 0;
    OK(pace_requests_answer(requests, &answer, 1));
    expect_text(fd, "0\r\n\r\n");
    expect_end(fd);
    /* Its watch has one more word to say. */
    OK(pace_requests_pull(requests, &event, 1, PACE_FOREVER, &count));
    CHECK(event.kind == PACE_REQUEST_EVENT_WRITABLE);
    end();
}

static pace_request_event_t next_of(uint64_t request) {
    pace_request_event_t event;
    size_t count = 0;
    OK(pace_requests_pull(requests, &event, 1, 60 * SECOND, &count));
    CHECK(count == 1 && event.request == request && event.conn.id == 0 && event.route == 0);
    return event;
}

static void nothing_comes(void) {
    pace_request_event_t event;
    size_t count;
    SAYS(PACE_ETIMEDOUT, pace_requests_pull(requests, &event, 1, 20 * MILLI, &count));
}

/* Parts come when they were asked for, and no sooner; the end too; then there is nothing to ask for. */
static void bodies_that_are_streamed(void) {
    start();
    int fd = dial(address);
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    pace_request_event_t event = next(9);
    uint32_t front[8];
    memcpy(front, event.bytes, sizeof front);
    CHECK(event.size == front[7]); /* no body */
    nothing_comes();
    OK(pace_requests_read(requests, event.request));
    pace_request_event_t part = next_of(event.request);
    CHECK(part.kind == PACE_REQUEST_EVENT_PART && part.size == 3 && memcmp(part.bytes, "abc", 3) == 0);
    OK(pace_requests_read(requests, event.request));
    OK(pace_requests_read(requests, event.request)); /* to ask twice is to ask once */
    nothing_comes();
    send_text(fd, "2\r\nde\r\n0\r\n\r\n");
    part = next_of(event.request);
    CHECK(part.kind == PACE_REQUEST_EVENT_PART && part.size == 2 && memcmp(part.bytes, "de", 2) == 0);
    nothing_comes();
    OK(pace_requests_read(requests, event.request));
    part = next_of(event.request);
    CHECK(part.kind == PACE_REQUEST_EVENT_END && part.size == 0 && part.bytes == NULL);
    SAYS(PACE_ESTALE, pace_requests_read(requests, event.request));
    pace_answer_t answer = answer_to(&event, "got it");
    OK(pace_requests_answer(requests, &answer, 1));
    expect_head(fd, "HTTP/1.1 200 ");
    expect_text(fd, "got it");
    SAYS(PACE_ESTALE, pace_requests_read(requests, event.request));

    /* One without a body has an end at once. */
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n");
    event = next(9);
    OK(pace_requests_read(requests, event.request));
    part = next_of(event.request);
    CHECK(part.kind == PACE_REQUEST_EVENT_END);
    OK(pace_requests_drop(requests, event.request));
    expect_head(fd, "HTTP/1.1 500 ");
    expect_text(fd, "500 Internal Server Error\n");

    /* Answered without having been read: the rest is dropped, and the connection goes on. */
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\n");
    event = next(9);
    OK(pace_requests_read(requests, event.request));
    answer = answer_to(&event, "enough");
    OK(pace_requests_answer(requests, &answer, 1));
    SAYS(PACE_ESTALE, pace_requests_read(requests, event.request));
    expect_head(fd, "HTTP/1.1 200 ");
    expect_text(fd, "enough");
    for (int i = 0; i < 10; i++) send_text(fd, "0123456789");
    send_text(fd, "GET /a/x HTTP/1.1\r\nHost: here\r\n\r\n");
    event = next(7);
    answer = answer_to(&event, "on");
    OK(pace_requests_answer(requests, &answer, 1));
    expect_head(fd, "HTTP/1.1 200 ");
    expect_text(fd, "on");

    /* An answer that goes on while the body is read. */
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\n");
    event = next(9);
    answer = answer_to(&event, "<");
    answer.flags = PACE_ANSWER_MORE;
    answer.length = 5;
    OK(pace_requests_answer(requests, &answer, 1));
    OK(pace_requests_read(requests, event.request));
    send_text(fd, "xyz");
    part = next_of(event.request);
    answer.bytes = part.bytes;
    answer.size = part.size;
    OK(pace_requests_answer(requests, &answer, 1));
    OK(pace_requests_read(requests, event.request));
    CHECK(next_of(event.request).kind == PACE_REQUEST_EVENT_END);
    answer.bytes = ">";
    answer.size = 1;
    answer.flags = 0;
    OK(pace_requests_answer(requests, &answer, 1));
    expect_head(fd, "HTTP/1.1 200 ");
    expect_text(fd, "<xyz>");

    /* A peer that goes in the middle. */
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\n");
    event = next(9);
    OK(pace_requests_read(requests, event.request));
    close(fd);
    CHECK(next_of(event.request).kind == PACE_REQUEST_EVENT_BROKEN);
    SAYS(PACE_ESTALE, pace_requests_read(requests, event.request));
    answer = answer_to(&event, "anybody?");
    SAYS(PACE_ESTALE, pace_requests_answer(requests, &answer, 1));
    end();
}

/* What the host does not ask for stays with the peer: memory is bounded by what was asked for. */
static void a_peer_is_never_faster_than_its_host(void) {
    static char much[1 << 16];
    start();
    int fd = dial(address), size = 1 << 14;
    CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 67108864\r\n\r\n");
    pace_request_event_t event = next(9);
    size_t sent = 0, got = 0;
    for (;;) {
        ssize_t some = send(fd, much, sizeof much, MSG_DONTWAIT | MSG_NOSIGNAL);
        struct pollfd entry = {fd, POLLOUT, 0};
        if (some < 0 && poll(&entry, 1, 200) == 0) break; /* it is stuck */
        if (some > 0) sent += (size_t)some;
        CHECK(sent < 67108864);
    }
    while (got < sent) {
        OK(pace_requests_read(requests, event.request));
        pace_request_event_t part = next_of(event.request);
        CHECK(part.kind == PACE_REQUEST_EVENT_PART && part.size > 0);
        got += part.size;
    }
    CHECK(got == sent);
    close(fd);
    OK(pace_requests_drop(requests, event.request));
    end();
}

static void forks(void) {
    start();
    int fd = dial(address);
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc");
    pace_request_event_t event = next(9);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
        SAYS(PACE_EFORKED, pace_requests_read(requests, event.request));
        SAYS(PACE_EFORKED, pace_http_route_pulled_streaming(http, "GET", "/", requests, 0));
        pace_requests_free(requests);
        _exit(42);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    OK(pace_requests_read(requests, event.request));
    pace_request_event_t part = next_of(event.request);
    CHECK(part.kind == PACE_REQUEST_EVENT_PART && part.size == 3);
    pace_answer_t answer = answer_to(&event, "parent");
    OK(pace_requests_answer(requests, &answer, 1));
    expect_head(fd, "HTTP/1.1 200 ");
    close(fd);
    end();
}

static void bad_arguments(void) {
    pace_request_event_t event;
    pace_answer_t answer = {0};
    size_t count;
    start();
    SAYS(PACE_EINVAL, pace_requests_new(pool, NULL));
    SAYS(PACE_EINVAL, pace_requests_pull(requests, &event, 0, 0, &count));
    SAYS(PACE_EINVAL, pace_requests_pull(requests, NULL, 1, 0, &count));
    SAYS(PACE_ETIMEDOUT, pace_requests_pull(requests, &event, 1, 0, &count));
    SAYS(PACE_EINVAL, pace_requests_answer(requests, NULL, 1));
    OK(pace_requests_answer(requests, NULL, 0));
    SAYS(PACE_ESTALE, pace_requests_answer(requests, &answer, 1));
    SAYS(PACE_EINVAL, pace_requests_pollable(requests, NULL));
    SAYS(PACE_EINVAL, pace_http_route_pulled(http, "GET", "/x", NULL, 0));
    SAYS(PACE_EINVAL, pace_http_route_pulled_streaming(http, "GET", "/x", NULL, 0));
    SAYS(PACE_EINVAL, pace_http_route_pulled_streaming(http, "GET", "/x", requests, 0)); /* started */
    SAYS(PACE_EINVAL, pace_requests_read(NULL, 1));
    SAYS(PACE_ESTALE, pace_requests_read(requests, 0));
    SAYS(PACE_ESTALE, pace_requests_read(requests, UINT64_MAX));
    pace_requests_free(NULL);
    pace_server_t *beneath;
    OK(pace_http_server(http, &beneath));
    OK(pace_server_cut_off(beneath));
    OK(pace_requests_close(requests));
    end();
}

int main(int argc, char **argv) {
    what_is_asked_and_answered();
    what_fails();
    bodies_that_go_on();
    bodies_that_are_streamed();
    a_peer_is_never_faster_than_its_host();
    /* In the child its parent's threads are gone, and valgrind calls what they had lost. */
    if (argc < 2 || strcmp(argv[1], "valgrind") != 0) forks();
    bad_arguments();
    return 0;
}
