/* Servers whose events are pulled: in order, one of a connection at a time, completed in batches. */
#include "net.h"

#include <poll.h>
#include <pthread.h>

#define EVENTS 16

static pace_pulled_t *start(pace_pool_t *pool, uint32_t wanted, char address[PACE_ADDRESS_SIZE]) {
    pace_listener_options_t listener = listener_at(TCP);
    pace_server_options_t options = options_with(&listener, 1);
    pace_pulled_t *pulled = NULL;
    pace_server_t *server = NULL;
    OK(pace_pulled_new(pool, &options, wanted, &pulled));
    OK(pace_pulled_server(pulled, &server));
    OK(pace_server_address(server, 0, address, PACE_ADDRESS_SIZE));
    return pulled;
}

static void end(pace_pulled_t *pulled) {
    pace_server_t *server;
    pace_drain_report_t report = {0};
    report.struct_size = sizeof report;
    OK(pace_pulled_server(pulled, &server));
    OK(pace_server_drain(server, PACE_FOREVER, &report));
    CHECK(report.drained && report.open == 0);
    CHECK(stats_of(server).balances);
    pace_pulled_free(pulled);
}

static pace_conn_event_t next(pace_pulled_t *pulled, uint32_t kind) {
    pace_conn_event_t event;
    size_t count = 0;
    OK(pace_pulled_pull(pulled, &event, 1, PACE_FOREVER, &count));
    CHECK(count == 1 && event.kind == kind && event.event != 0 && event.conn.id != 0);
    return event;
}

static void nothing_comes(pace_pulled_t *pulled) {
    pace_conn_event_t event;
    size_t count;
    SAYS(PACE_ETIMEDOUT, pace_pulled_pull(pulled, &event, 1, 20 * MILLI, &count));
}

static pace_completion_t done(const pace_conn_event_t *event) {
    pace_completion_t completion = {0};
    completion.event = event->event;
    completion.consumed = PACE_CONSUMED_ALL;
    return completion;
}

static void events_in_order(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(2);
    pace_pulled_t *pulled = start(pool, PACE_WANTED_ALL, address);
    int fd = dial(address);
    pace_conn_event_t event = next(pulled, PACE_CONN_EVENT_OPENED);
    const uint64_t conn = event.conn.id;
    send_text(fd, "hello");
    /* The pull completes what this thread has. */
    event = next(pulled, PACE_CONN_EVENT_DATA);
    CHECK(event.conn.id == conn && event.size == 5 && memcmp(event.bytes, "hello", 5) == 0);
    pace_completion_t completion = done(&event);
    completion.bytes = "HELLO";
    completion.size = 5;
    completion.consumed = 3;
    OK(pace_pulled_complete(pulled, &completion, 1));
    CHECK(completion.outcome == PACE_OK);
    expect_text(fd, "HELLO");
    SAYS(PACE_ESTALE, pace_pulled_complete(pulled, &completion, 1));
    CHECK(completion.outcome == PACE_ESTALE);
    nothing_comes(pulled);
    send_text(fd, "!");
    event = next(pulled, PACE_CONN_EVENT_DATA);
    CHECK(event.size == 3 && memcmp(event.bytes, "lo!", 3) == 0);
    /* Tracked, by name. */
    pace_server_t *server;
    OK(pace_pulled_server(pulled, &server));
    OK(pace_server_conn_write_tracked(server, event.conn, "x", 1, 7, NULL));
    event = next(pulled, PACE_CONN_EVENT_WRITTEN);
    CHECK(event.token == 7);
    expect_text(fd, "x");
    CHECK(shutdown(fd, SHUT_WR) == 0);
    event = next(pulled, PACE_CONN_EVENT_FINISHED);
    completion = done(&event);
    completion.bytes = "bye";
    completion.size = 3;
    completion.flags = PACE_COMPLETE_CLOSE;
    OK(pace_pulled_complete(pulled, &completion, 1));
    expect_text(fd, "bye");
    expect_end(fd);
    event = next(pulled, PACE_CONN_EVENT_CLOSED);
    CHECK(event.conn.id == conn && event.detail == PACE_REASON_PEER);
    OK(pace_pulled_done(pulled));
    end(pulled);
    finish(pool);
}

static void refused_kept_and_held(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(2);
    pace_pulled_t *pulled = start(pool, PACE_WANTED_OPENED | PACE_WANTED_CLOSED, address);
    int fd = dial(address);
    pace_conn_event_t event = next(pulled, PACE_CONN_EVENT_OPENED);
    pace_completion_t completion = done(&event);
    completion.flags = PACE_COMPLETE_REFUSE;
    completion.bytes = "no";
    completion.size = 2;
    OK(pace_pulled_complete(pulled, &completion, 1));
    expect_text(fd, "no");
    expect_end(fd);
    event = next(pulled, PACE_CONN_EVENT_CLOSED);
    CHECK(event.detail == PACE_REASON_REFUSED);

    fd = dial(address);
    event = next(pulled, PACE_CONN_EVENT_OPENED);
    send_text(fd, "x");
    event = next(pulled, PACE_CONN_EVENT_DATA);
    completion = done(&event);
    completion.flags = PACE_COMPLETE_HOLD;
    OK(pace_pulled_complete(pulled, &completion, 1));
    send_text(fd, "y");
    nothing_comes(pulled);
    /* What makes no sense changes nothing. */
    completion.flags = 1u << 31;
    SAYS(PACE_EINVAL, pace_pulled_complete(pulled, &completion, 1));
    completion.flags = PACE_COMPLETE_ABORT;
    completion.consumed = 2;
    SAYS(PACE_EINVAL, pace_pulled_complete(pulled, &completion, 1));
    TELLS("consumed");
    completion.consumed = 1;
    OK(pace_pulled_complete(pulled, &completion, 1));
    expect_reset(fd);
    do {
        size_t count;
        OK(pace_pulled_pull(pulled, &event, 1, PACE_FOREVER, &count));
    } while (event.kind == PACE_CONN_EVENT_DATA);
    CHECK(event.kind == PACE_CONN_EVENT_CLOSED && event.detail == PACE_REASON_ABORTED);
    OK(pace_pulled_done(pulled));
    end(pulled);
    finish(pool);
}

/* A hook that failed, and answers that have no room. */
static void failures(void) {
    char address[PACE_ADDRESS_SIZE];
    static char much[(1 << 24) + 1];
    pace_pool_t *pool = pool_of(2);
    pace_pulled_t *pulled = start(pool, PACE_WANTED_CLOSED, address);
    int fd = dial(address);
    send_text(fd, "x");
    pace_conn_event_t event = next(pulled, PACE_CONN_EVENT_DATA);
    pace_completion_t completion = done(&event);
    completion.bytes = much;
    completion.size = sizeof much;
    SAYS(PACE_EFULL, pace_pulled_complete(pulled, &completion, 1));
    CHECK(completion.outcome == PACE_EFULL);
    completion.size = 0;
    completion.flags = PACE_COMPLETE_FAIL;
    OK(pace_pulled_complete(pulled, &completion, 1));
    event = next(pulled, PACE_CONN_EVENT_CLOSED);
    CHECK(event.detail == PACE_REASON_PANICKED);
    close(fd);
    OK(pace_pulled_close(pulled));
    size_t count;
    SAYS(PACE_ESHUTDOWN, pace_pulled_pull(pulled, &event, 1, SECOND, &count));
    end(pulled);
    finish(pool);
}

static void *echo(void *data) {
    pace_pulled_t *pulled = (pace_pulled_t *)data;
    pace_conn_event_t events[EVENTS];
    pace_completion_t completions[EVENTS];
    pace_status_t status;
    size_t count;
    while ((status = pace_pulled_pull(pulled, events, EVENTS, PACE_FOREVER, &count)) == PACE_OK) {
        for (size_t i = 0; i < count; i++) {
            completions[i] = done(&events[i]);
            completions[i].bytes = events[i].bytes;
            completions[i].size = events[i].size;
        }
        OK(pace_pulled_complete(pulled, completions, count));
    }
    CHECK(status == PACE_ESHUTDOWN);
    return NULL;
}

static void batches_on_two_threads(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(2);
    pace_pulled_t *pulled = start(pool, 0, address);
    pthread_t hosts[2];
    int fds[20], round, i;
    for (i = 0; i < 2; i++) CHECK(pthread_create(&hosts[i], NULL, echo, pulled) == 0);
    for (i = 0; i < 20; i++) fds[i] = dial(address);
    for (round = 0; round < 50; round++) {
        for (i = 0; i < 20; i++) send_text(fds[i], "a message");
        for (i = 0; i < 20; i++) expect_text(fds[i], "a message");
    }
    for (i = 0; i < 20; i++) {
        CHECK(shutdown(fds[i], SHUT_WR) == 0);
        expect_end(fds[i]);
    }
    pace_server_t *server;
    OK(pace_pulled_server(pulled, &server));
    UNTIL(stats_of(server).closed_peer == 20);
    pace_drain_report_t report = {0};
    report.struct_size = sizeof report;
    OK(pace_server_drain(server, PACE_FOREVER, &report));
    for (i = 0; i < 2; i++) CHECK(pthread_join(hosts[i], NULL) == 0);
    end(pulled);
    finish(pool);
}

static void *pull_one(void *data) {
    next((pace_pulled_t *)data, PACE_CONN_EVENT_DATA);
    return NULL;
}

static void threads_that_end(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(1);
    pace_pulled_t *pulled = start(pool, 0, address);
    int fd = dial(address), readable = -1;
    OK(pace_pulled_pollable(pulled, &readable));
    for (int i = 0; i < 10; i++) {
        pthread_t puller;
        send_text(fd, "x");
        struct pollfd entry = {readable, POLLIN, 0};
        CHECK(poll(&entry, 1, 60000) == 1);
        CHECK(pthread_create(&puller, NULL, pull_one, pulled) == 0);
        CHECK(pthread_join(puller, NULL) == 0);
    }
    /* It is freed with an event in the outbox, and one in this thread's hands. */
    send_text(fd, "x");
    next(pulled, PACE_CONN_EVENT_DATA);
    pace_pulled_free(pulled);
    char byte;
    CHECK(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
    pace_pulled_free(NULL);
    finish(pool);
}

static void connects(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(2);
    pace_pulled_t *pulled = start(pool, PACE_WANTED_OPENED, address);
    pace_conn_id_t conn = {0};
    OK(pace_pulled_connect(pulled, address, PACE_WANTED_OPENED, &conn));
    pace_server_t *server;
    OK(pace_pulled_server(pulled, &server));
    OK(pace_server_conn_write(server, conn, "to me", 5, NULL));
    next(pulled, PACE_CONN_EVENT_OPENED);
    next(pulled, PACE_CONN_EVENT_OPENED);
    pace_conn_event_t event = next(pulled, PACE_CONN_EVENT_DATA);
    CHECK(event.conn.id != conn.id && event.size == 5);
    OK(pace_pulled_done(pulled));
    SAYS(PACE_EINVAL, pace_pulled_connect(pulled, "nowhere", 0, NULL));
    SAYS(PACE_EINVAL, pace_pulled_connect(pulled, NULL, 0, NULL));
    SAYS(PACE_EINVAL, pace_pulled_connect(pulled, address, 128, NULL));
    TELLS("wanted");
    end(pulled);
    finish(pool);
}

/* Requests that count as in work while they are, be it after their events; and a failure in the end. */
static void requests_in_work(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(2);
    pace_listener_options_t listener = listener_at(TCP);
    listener.max_requests = 1;
    listener.busy = "busy";
    listener.busy_size = 4;
    pace_server_options_t options = options_with(&listener, 1);
    pace_pulled_t *pulled = NULL;
    pace_server_t *server = NULL;
    pace_admission_t *first = NULL, *second = NULL;
    OK(pace_pulled_new(pool, &options, PACE_WANTED_CLOSED, &pulled));
    OK(pace_pulled_server(pulled, &server));
    OK(pace_server_address(server, 0, address, sizeof address));
    int fd = dial(address);
    send_text(fd, "x");
    pace_conn_event_t event = next(pulled, PACE_CONN_EVENT_DATA);
    SAYS(PACE_EINVAL, pace_pulled_admit(NULL, event.event, &first));
    SAYS(PACE_EINVAL, pace_pulled_admit(pulled, event.event, NULL));
    SAYS(PACE_ESTALE, pace_pulled_admit(pulled, event.event + 1, &first));
    OK(pace_pulled_admit(pulled, event.event, &first));
    SAYS(PACE_EFULL, pace_pulled_admit(pulled, event.event, &second));
    CHECK(second == NULL);
    expect_text(fd, "busy");
    OK(pace_pulled_done(pulled));
    SAYS(PACE_ESTALE, pace_pulled_admit(pulled, event.event, &second));
    pace_server_stats_t stats = stats_of(server);
    CHECK(stats.requests == 1 && stats.busy == 1 && stats.in_work == 1 && stats.answered == 0);
    OK(pace_server_conn_write(server, event.conn, "answer", 6, NULL));
    OK(pace_admission_answered(first));
    expect_text(fd, "answer");
    send_text(fd, "y");
    event = next(pulled, PACE_CONN_EVENT_DATA);
    OK(pace_pulled_admit(pulled, event.event, &first));
    pace_admission_free(first);
    close(fd);
    event = next(pulled, PACE_CONN_EVENT_CLOSED);
    CHECK(event.detail == PACE_REASON_PEER && event.token == 0);
    pace_completion_t completion = done(&event);
    completion.flags = PACE_COMPLETE_FAIL;
    OK(pace_pulled_complete(pulled, &completion, 1));
    stats = stats_of(server);
    CHECK(stats.requests == 2 && stats.answered == 1 && stats.requests_aborted == 1);
    CHECK(stats.in_work == 0 && stats.panics_in_close == 1);
    end(pulled);
    finish(pool);
}

/* The last event of a connection whose socket has failed says why. */
static void errors(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(2);
    pace_pulled_t *pulled = start(pool, PACE_WANTED_CLOSED, address);
    struct linger abrupt = {1, 0};
    int fd = dial(address);
    send_text(fd, "x");
    next(pulled, PACE_CONN_EVENT_DATA);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt) == 0);
    close(fd);
    pace_conn_event_t event = next(pulled, PACE_CONN_EVENT_CLOSED);
    CHECK(event.detail == PACE_REASON_FAILED && event.token == ECONNRESET);
    OK(pace_pulled_done(pulled));
    end(pulled);
    finish(pool);
}

static void bad_arguments(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(1);
    pace_pulled_t *pulled = NULL;
    pace_conn_event_t event;
    pace_completion_t completion = {0};
    size_t count;
    SAYS(PACE_EINVAL, pace_pulled_new(NULL, NULL, 0, &pulled));
    SAYS(PACE_EINVAL, pace_pulled_new(pool, NULL, 128, &pulled));
    TELLS("wanted");
    SAYS(PACE_EINVAL, pace_pulled_new(pool, NULL, 0, NULL));
    pulled = start(pool, 0, address);
    SAYS(PACE_EINVAL, pace_pulled_pull(pulled, NULL, 1, 0, &count));
    SAYS(PACE_EINVAL, pace_pulled_pull(pulled, &event, 1, 0, NULL));
    SAYS(PACE_EINVAL, pace_pulled_pull(pulled, &event, 0, 0, &count));
    SAYS(PACE_EINVAL, pace_pulled_pull(NULL, &event, 1, 0, &count));
    SAYS(PACE_EINVAL, pace_pulled_complete(pulled, NULL, 1));
    OK(pace_pulled_complete(pulled, NULL, 0));
    SAYS(PACE_ESTALE, pace_pulled_complete(pulled, &completion, 1));
    SAYS(PACE_EINVAL, pace_pulled_pollable(pulled, NULL));
    SAYS(PACE_EINVAL, pace_pulled_server(pulled, NULL));
    SAYS(PACE_EINVAL, pace_pulled_done(NULL));
    end(pulled);
    finish(pool);
}

int main(void) {
    events_in_order();
    refused_kept_and_held();
    failures();
    batches_on_two_threads();
    threads_that_end();
    connects();
    requests_in_work();
    errors();
    bad_arguments();
    return 0;
}
