/* Requests as data: blocks, answers in batches, bodies that go on, what goes wrong. */
#include "net.h"

#include <poll.h>

static pace_pool_t *pool;
static pace_http_t *http;
static pace_cq_t *cq;
static char address[PACE_ADDRESS_SIZE];
/* The part of a body that was taken last. It is completed before the next entry is taken. */
static pace_cq_entry_t part;

static void start(void) {
    pace_listener_options_t listener = listener_at(TCP);
    pace_http_options_t options;
    pace_server_t *beneath;
    pool = pool_of(2);
    OK(pace_http_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    OK(pace_http_new(pool, &http));
    OK(pace_cq_new(pool, NULL, &cq));
    OK(pace_cq_route(cq, http, "GET", "/a/{name}", false, 7));
    OK(pace_cq_route(cq, http, "POST", "/b", false, 8));
    OK(pace_cq_route(cq, http, "PUT", "/c", true, 9));
    OK(pace_cq_fallback(cq, http, 10));
    OK(pace_http_start(http, &options));
    OK(pace_http_server(http, &beneath));
    OK(pace_server_address(beneath, 0, address, sizeof address));
    SAYS(PACE_EINVAL, pace_cq_route(cq, http, "GET", "/late", false, 0));
}

static pace_cq_entry_t take(uint64_t timeout_ns) {
    size_t count = 0;
    OK(pace_cq_done(cq, &part, 1));
    part.token = 0;
    OK(pace_cq_wait(cq, &part, 1, timeout_ns, &count));
    CHECK(count == 1);
    pace_cq_entry_t entry = part;
    if (entry.kind != PACE_CQ_BODY) part.token = 0;
    return entry;
}

/* `server` and `protocols` go before the pool does; they may be NULL. */
static void end_beside(pace_server_t *server, pace_cq_t *protocols) {
    pace_server_t *beneath;
    pace_drain_report_t report = {0};
    report.struct_size = sizeof report;
    OK(pace_http_server(http, &beneath));
    OK(pace_server_drain(beneath, PACE_FOREVER, &report));
    CHECK(report.drained);
    pace_http_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_http_stats(http, &stats));
    CHECK(stats.balances && stats.in_work == 0);
    CHECK(take(PACE_FOREVER).kind == PACE_CQ_ENDED);
    pace_http_free(http);
    pace_server_free(server);
    pace_cq_free(protocols);
    pace_cq_free(cq);
    finish(pool);
}

static void end(void) { end_beside(NULL, NULL); }

static pace_cq_entry_t next(uint64_t tag) {
    pace_cq_entry_t entry = take(PACE_FOREVER);
    CHECK(entry.kind == PACE_CQ_REQUEST && entry.tag == tag);
    return entry;
}

static pace_cq_completion_t answer_to(const pace_cq_entry_t *entry, const char *text) {
    pace_cq_completion_t answer = {0};
    answer.token = entry->token;
    answer.bytes = text;
    answer.size = strlen(text);
    answer.answer = 200;
    return answer;
}

/* Completes a request without an answer. */
static pace_status_t complete(uint64_t token, uint32_t flags) {
    pace_cq_completion_t completion = {0};
    completion.token = token;
    completion.flags = flags;
    return pace_cq_complete(cq, &completion, 1);
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
    pace_cq_entry_t event = next(8);
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
    pace_cq_completion_t answer = answer_to(&event, "answer");
    answer.headers = "X-A: 1\r\n";
    answer.headers_size = 8;
    OK(pace_cq_complete(cq, &answer, 1));
    expect_head(fd, "HTTP/1.1 200 OK\r\n");
    expect_text(fd, "answer");
    SAYS(PACE_ESTALE, pace_cq_complete(cq, &answer, 1));
    CHECK(answer.result == PACE_ESTALE);

    /* What no route takes says which status it has, and can be answered as the server does. */
    send_text(fd, "GET /b HTTP/1.1\r\nHost: here\r\nAccept: application/json\r\n\r\n");
    event = next(10);
    memcpy(front, event.bytes, sizeof front);
    CHECK(front[4] == (405u << 16 | 1u));
    answer = answer_to(&event, "");
    answer.answer = 405;
    answer.flags = PACE_CQ_ERROR_PAGE;
    OK(pace_cq_complete(cq, &answer, 1));
    expect_head(fd, "HTTP/1.1 405 Method Not Allowed\r\n");
    expect_text(fd, "{\"title\":\"Method Not Allowed\",\"status\":405}\n");

    /* What cannot be sent becomes a 500, and so does what is dropped. */
    send_text(fd, "GET /a/x HTTP/1.1\r\nHost: here\r\n\r\n");
    event = next(7);
    answer = answer_to(&event, "");
    answer.flags = 1u << 20;
    SAYS(PACE_EINVAL, pace_cq_complete(cq, &answer, 1));
    answer.flags = 0;
    answer.headers = "no colon\r\n";
    answer.headers_size = 10;
    SAYS(PACE_EINVAL, pace_cq_complete(cq, &answer, 1));
    expect_head(fd, "HTTP/1.1 500 ");
    expect_text(fd, "500 Internal Server Error\n");
    send_text(fd, "GET /a/x HTTP/1.1\r\nHost: here\r\n\r\n");
    event = next(7);
    OK(complete(event.token, 0));
    SAYS(PACE_ESTALE, complete(event.token, 0));
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
        pace_cq_entry_t event = next(7);
        pace_cq_completion_t answer = answer_to(&event, "all is well");
        if (kind == 1) {
            answer.flags = PACE_CQ_MORE;
            answer.length = PACE_CQ_UNKNOWN;
        }
        if (kind > 0) OK(pace_cq_complete(cq, &answer, 1));
        if (kind == 2) {
            /* There is no request any more, but its connection. */
            SAYS(PACE_ESTALE, complete(event.token, PACE_CQ_FAIL));
            OK(pace_http_fail(http, event.detail.request.conn));
            expect_head(fd, "HTTP/1.1 200 ");
            expect_text(fd, "all is well");
            expect_end(fd);
            UNTIL(stats_of(beneath).open == 0);
            SAYS(PACE_ESTALE, pace_http_fail(http, event.detail.request.conn));
        } else {
            OK(complete(event.token, PACE_CQ_FAIL));
            SAYS(PACE_ESTALE, complete(event.token, PACE_CQ_FAIL));
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
    OK(pace_cq_fd(cq, &readable));
    send_text(fd, "GET /a/x HTTP/1.1\r\nHost: here\r\n\r\n");
    struct pollfd entry = {readable, POLLIN, 0};
    CHECK(poll(&entry, 1, 60000) == 1);
    pace_cq_entry_t event = next(7);
    pace_cq_completion_t answer = answer_to(&event, "");
    answer.flags = PACE_CQ_MORE | PACE_CQ_CLOSE;
    answer.length = PACE_CQ_UNKNOWN;
    OK(pace_cq_complete(cq, &answer, 1));
    size_t sent = 0;
    answer.bytes = much;
    answer.size = sizeof much;
    do {
        OK(pace_cq_complete(cq, &answer, 1));
        sent += sizeof much;
    } while (answer.status != PACE_WRITE_STATUS_ABOVE_HIGH_MARK);
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
    event = take(PACE_FOREVER);
    CHECK(event.kind == PACE_CQ_BODY_WRITABLE && event.detail.request.request == answer.token);
    answer.size = 0;
    answer.flags = 0;
    OK(pace_cq_complete(cq, &answer, 1));
    expect_text(fd, "0\r\n\r\n");
    expect_end(fd);
    /* Its watch has one more word to say. */
    CHECK(take(PACE_FOREVER).kind == PACE_CQ_BODY_WRITABLE);
    end();
}

static pace_cq_entry_t next_of(uint64_t request) {
    pace_cq_entry_t entry = take(60 * SECOND);
    CHECK(entry.detail.request.request == request && entry.tag == 9);
    return entry;
}

static void nothing_comes(void) {
    pace_cq_entry_t entry;
    size_t count;
    SAYS(PACE_ETIMEDOUT, pace_cq_wait(cq, &entry, 1, 20 * MILLI, &count));
}

/* Parts come when they were asked for, and no sooner; the end too; then there is nothing to ask for. */
static void bodies_that_are_streamed(void) {
    start();
    int fd = dial(address);
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    pace_cq_entry_t event = next(9);
    uint32_t front[8];
    memcpy(front, event.bytes, sizeof front);
    CHECK(event.size == front[7]); /* without its body */
    nothing_comes();
    OK(pace_cq_read(cq, event.token));
    pace_cq_entry_t body = next_of(event.token);
    CHECK(body.kind == PACE_CQ_BODY && body.size == 3 && memcmp(body.bytes, "abc", 3) == 0);
    OK(pace_cq_read(cq, event.token));
    OK(pace_cq_read(cq, event.token)); /* to ask twice is to ask once */
    nothing_comes();
    send_text(fd, "2\r\nde\r\n0\r\n\r\n");
    body = next_of(event.token);
    CHECK(body.kind == PACE_CQ_BODY && body.size == 2 && memcmp(body.bytes, "de", 2) == 0);
    nothing_comes();
    OK(pace_cq_read(cq, event.token));
    body = next_of(event.token);
    CHECK(body.kind == PACE_CQ_BODY_END && body.size == 0 && body.bytes == NULL);
    SAYS(PACE_ESTALE, pace_cq_read(cq, event.token));
    pace_cq_completion_t answer = answer_to(&event, "got it");
    OK(pace_cq_complete(cq, &answer, 1));
    expect_head(fd, "HTTP/1.1 200 ");
    expect_text(fd, "got it");
    SAYS(PACE_ESTALE, pace_cq_read(cq, event.token));

    /* One without a body has an end at once. */
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n");
    event = next(9);
    OK(pace_cq_read(cq, event.token));
    body = next_of(event.token);
    CHECK(body.kind == PACE_CQ_BODY_END);
    OK(complete(event.token, 0));
    expect_head(fd, "HTTP/1.1 500 ");
    expect_text(fd, "500 Internal Server Error\n");

    /* Answered without having been read: the rest is dropped, and the connection goes on. */
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\n");
    event = next(9);
    OK(pace_cq_read(cq, event.token));
    answer = answer_to(&event, "enough");
    OK(pace_cq_complete(cq, &answer, 1));
    SAYS(PACE_ESTALE, pace_cq_read(cq, event.token));
    expect_head(fd, "HTTP/1.1 200 ");
    expect_text(fd, "enough");
    for (int i = 0; i < 10; i++) send_text(fd, "0123456789");
    send_text(fd, "GET /a/x HTTP/1.1\r\nHost: here\r\n\r\n");
    event = next(7);
    answer = answer_to(&event, "on");
    OK(pace_cq_complete(cq, &answer, 1));
    expect_head(fd, "HTTP/1.1 200 ");
    expect_text(fd, "on");

    /* An answer that goes on while the body is read. */
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\n");
    event = next(9);
    answer = answer_to(&event, "<");
    answer.flags = PACE_CQ_MORE;
    answer.length = 5;
    OK(pace_cq_complete(cq, &answer, 1));
    OK(pace_cq_read(cq, event.token));
    send_text(fd, "xyz");
    body = next_of(event.token);
    answer.bytes = body.bytes;
    answer.size = body.size;
    OK(pace_cq_complete(cq, &answer, 1));
    OK(pace_cq_read(cq, event.token));
    CHECK(next_of(event.token).kind == PACE_CQ_BODY_END);
    answer.bytes = ">";
    answer.size = 1;
    answer.flags = 0;
    OK(pace_cq_complete(cq, &answer, 1));
    expect_head(fd, "HTTP/1.1 200 ");
    expect_text(fd, "<xyz>");

    /* A peer that goes in the middle. */
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\n");
    event = next(9);
    OK(pace_cq_read(cq, event.token));
    close(fd);
    CHECK(next_of(event.token).kind == PACE_CQ_BODY_BROKEN);
    SAYS(PACE_ESTALE, pace_cq_read(cq, event.token));
    answer = answer_to(&event, "anybody?");
    SAYS(PACE_ESTALE, pace_cq_complete(cq, &answer, 1));
    end();
}

static void *goes_on(void *data) {
    for (int i = 0; i < 2000; i++) OK(pace_cq_complete(cq, (pace_cq_completion_t *)data, 1));
    return NULL;
}

/* One thread reads the body while another one writes the answer. */
static void both_at_once(void) {
    pthread_t writer;
    start();
    int fd = dial(address);
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 500\r\n\r\n");
    pace_cq_entry_t event = next(9);
    pace_cq_completion_t answer = answer_to(&event, "<");
    answer.flags = PACE_CQ_MORE;
    answer.length = PACE_CQ_UNKNOWN;
    OK(pace_cq_complete(cq, &answer, 1));
    CHECK(pthread_create(&writer, NULL, goes_on, &answer) == 0);
    for (size_t got = 0; got < 500;) {
        send_text(fd, "x");
        OK(pace_cq_read(cq, event.token));
        pace_cq_entry_t body = next_of(event.token);
        CHECK(body.kind == PACE_CQ_BODY);
        got += body.size;
    }
    CHECK(pthread_join(writer, NULL) == 0);
    OK(pace_cq_read(cq, event.token));
    CHECK(next_of(event.token).kind == PACE_CQ_BODY_END);
    answer.flags = 0;
    OK(pace_cq_complete(cq, &answer, 1));
    expect_head(fd, "HTTP/1.1 200 ");
    close(fd);
    end();
}

/* What the host does not ask for stays with the peer: memory is bounded by what was asked for. */
static void a_peer_is_never_faster_than_its_host(void) {
    static char much[1 << 16];
    start();
    int fd = dial(address), size = 1 << 14;
    CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 67108864\r\n\r\n");
    pace_cq_entry_t event = next(9);
    size_t sent = 0, got = 0;
    for (;;) {
        ssize_t some = send(fd, much, sizeof much, MSG_DONTWAIT | MSG_NOSIGNAL);
        struct pollfd entry = {fd, POLLOUT, 0};
        if (some < 0 && poll(&entry, 1, 200) == 0) break; /* it is stuck */
        if (some > 0) sent += (size_t)some;
        CHECK(sent < 67108864);
    }
    while (got < sent) {
        OK(pace_cq_read(cq, event.token));
        pace_cq_entry_t body = next_of(event.token);
        CHECK(body.kind == PACE_CQ_BODY && body.size > 0);
        got += body.size;
    }
    CHECK(got == sent);
    close(fd);
    OK(complete(event.token, 0));
    end();
}

static const char UPGRADE[] = "GET /a/x HTTP/1.1\r\nHost: here\r\nConnection: upgrade\r\n"
                              "Upgrade: echo\r\n\r\n";

static pace_cq_entry_t next_event(pace_cq_t *protocols, uint32_t event) {
    pace_cq_entry_t entry;
    size_t count = 0;
    OK(pace_cq_wait(protocols, &entry, 1, 60 * SECOND, &count));
    CHECK(count == 1 && entry.kind == PACE_CQ_CONN && entry.detail.conn.event == event);
    return entry;
}

static void another_protocol(void) {
    pace_cq_t *protocols;
    pace_server_t *server, *beneath;
    pace_conn_id_t conn = {0};
    start();
    OK(pace_cq_new(pool, NULL, &protocols));
    OK(pace_cq_server(protocols, NULL, PACE_WANTED_ALL, 1, &server));
    OK(pace_http_server(http, &beneath));
    int fd = dial(address);
    send_text(fd, UPGRADE);
    send_text(fd, "early");
    pace_cq_entry_t event = next(7);
    const uint64_t number = event.token;
    /* What is refused leaves the request as it is. */
    SAYS(PACE_EINVAL, pace_cq_upgrade(cq, number, NULL, NULL, 0, server, 0, &conn));
    SAYS(PACE_EINVAL, pace_cq_upgrade(cq, number, "echo", NULL, 1, server, 0, &conn));
    SAYS(PACE_EINVAL, pace_cq_upgrade(cq, number, "echo", NULL, 0, NULL, 0, &conn));
    SAYS(PACE_EINVAL, pace_cq_upgrade(cq, number, "echo", NULL, 0, server, 1 << 9, &conn));
    SAYS(PACE_EINVAL, pace_cq_upgrade(NULL, number, "echo", NULL, 0, server, 0, &conn));
    SAYS(PACE_ESTALE, pace_cq_upgrade(cq, number + 9, "echo", NULL, 0, server, 0, &conn));
    CHECK(conn.id == 0);
    OK(pace_cq_upgrade(cq, number, "echo", "X-A: 1\r\n", 8, server, PACE_WANTED_ALL, &conn));
    SAYS(PACE_ESTALE, pace_cq_upgrade(cq, number, "echo", NULL, 0, server, 0, &conn));
    expect_head(fd, "HTTP/1.1 101 ");
    pace_cq_entry_t is = next_event(protocols, PACE_CONN_EVENT_OPENED);
    CHECK(is.detail.conn.conn.id == conn.id);
    OK(pace_cq_done(protocols, &is, 1));
    is = next_event(protocols, PACE_CONN_EVENT_DATA);
    CHECK(is.size == 5 && memcmp(is.bytes, "early", 5) == 0);
    OK(pace_server_conn_write(beneath, conn, "by name", 7, NULL));
    expect_text(fd, "by name");
    pace_cq_completion_t completion = {0};
    completion.token = is.token;
    completion.length = 2;
    completion.bytes = "done";
    completion.size = 4;
    OK(pace_cq_complete(protocols, &completion, 1));
    expect_text(fd, "done");
    send_text(fd, "!");
    is = next_event(protocols, PACE_CONN_EVENT_DATA);
    if (is.size == 2) { /* what was left may be shown before more has come */
        completion.token = is.token;
        completion.size = 0;
        OK(pace_cq_complete(protocols, &completion, 1));
        is = next_event(protocols, PACE_CONN_EVENT_DATA);
    }
    CHECK(is.size == 3 && memcmp(is.bytes, "ly!", 3) == 0);
    OK(pace_cq_done(protocols, &is, 1));
    close(fd);
    is = next_event(protocols, PACE_CONN_EVENT_FINISHED);
    OK(pace_server_conn_close(beneath, conn));
    OK(pace_cq_done(protocols, &is, 1));
    is = next_event(protocols, PACE_CONN_EVENT_CLOSED);
    CHECK(is.detail.conn.conn.id == conn.id);
    OK(pace_cq_done(protocols, &is, 1));

    /* One that asks for nothing is told what there is. */
    fd = dial(address);
    send_text(fd, "GET /a/x HTTP/1.1\r\nHost: here\r\n\r\n");
    event = next(7);
    SAYS(PACE_EINVAL, pace_cq_upgrade(cq, event.token, "echo", NULL, 0, server, 0, NULL));
    expect_head(fd, "HTTP/1.1 426 ");
    close(fd);
    /* A drain ends one that nobody hears of. */
    fd = dial(address);
    send_text(fd, UPGRADE);
    event = next(7);
    OK(pace_cq_upgrade(cq, event.token, "echo", NULL, 0, server, 0, &conn));
    expect_head(fd, "HTTP/1.1 101 ");
    end_beside(server, protocols);
    close(fd);
}

static void forks(void) {
    start();
    int fd = dial(address);
    send_text(fd, "PUT /c HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc");
    pace_cq_entry_t event = next(9);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
        SAYS(PACE_EFORKED, pace_cq_read(cq, event.token));
        SAYS(PACE_EFORKED, pace_cq_upgrade(cq, event.token, "a", NULL, 0, NULL, 0, NULL));
        SAYS(PACE_EFORKED, pace_cq_route(cq, http, "GET", "/", true, 0));
        pace_cq_free(cq);
        _exit(42);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    OK(pace_cq_read(cq, event.token));
    pace_cq_entry_t body = next_of(event.token);
    CHECK(body.kind == PACE_CQ_BODY && body.size == 3);
    pace_cq_completion_t answer = answer_to(&event, "parent");
    OK(pace_cq_complete(cq, &answer, 1));
    expect_head(fd, "HTTP/1.1 200 ");
    close(fd);
    end();
}

int main(int argc, char **argv) {
    what_is_asked_and_answered();
    what_fails();
    bodies_that_go_on();
    bodies_that_are_streamed();
    both_at_once();
    a_peer_is_never_faster_than_its_host();
    another_protocol();
    /* In the child its parent's threads are gone, and valgrind calls what they had lost. */
    if (argc < 2 || strcmp(argv[1], "valgrind") != 0) forks();
    return 0;
}
