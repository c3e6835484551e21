/* Datagram sockets that are pulled: order, room, errors, the end, senseless calls. */
#include "net.h"

#define WAITING (UINT64_C(1) << 20)

static pace_udp_pulled_t *open_one(pace_pool_t *pool, const char *bind, const char *connect,
                                   uint64_t max_waiting, pace_udp_t **udp) {
    pace_udp_options_t options;
    pace_udp_pulled_t *pulled = NULL;
    OK(pace_udp_options_init(&options, sizeof options));
    options.bind = bind;
    options.connect = connect;
    options.max_datagram = 100;
    OK(pace_udp_pulled_new(pool, &options, max_waiting, &pulled));
    OK(pace_udp_pulled_udp(pulled, udp));
    return pulled;
}

static pace_ip_t address_of(pace_udp_t *udp) {
    char text[PACE_ADDRESS_SIZE];
    pace_ip_t ip;
    OK(pace_udp_address(udp, text, sizeof text));
    OK(pace_ip_read(text, &ip));
    return ip;
}

static pace_udp_stats_t books(pace_udp_t *udp) {
    pace_udp_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_udp_stats(udp, &stats));
    return stats;
}

static void datagrams_come_in_order(void) {
    pace_pool_t *pool = pool_of(2);
    pace_udp_t *udp, *other;
    pace_udp_pulled_t *here = open_one(pool, TCP, NULL, WAITING, &udp);
    pace_udp_pulled_t *there = open_one(pool, TCP, NULL, WAITING, &other);
    const pace_ip_t to = address_of(udp);
    pace_udp_event_t events[16];
    size_t count = 0;
    int fd = -1;
    OK(pace_udp_pulled_pollable(here, &fd));
    CHECK(!readable(fd));
    SAYS(PACE_ETIMEDOUT, pace_udp_pulled_pull(here, events, 16, 0, &count));
    SAYS(PACE_ETIMEDOUT, pace_udp_pulled_pull(here, events, 16, MILLI, &count));
    for (uint32_t i = 0; i < 500; i++) {
        OK(pace_udp_send_to(other, &i, sizeof i, &to));
        /* The kernel's buffer is small: what is not received yet may be lost. */
        UNTIL(books(udp).received == i + 1);
        if (i % 50 == 0) {
            /* What was pulled stays while others come. */
            OK(pace_udp_pulled_pull(here, events, 1, 60 * SECOND, &count));
            uint32_t number;
            CHECK(count == 1 && events[0].size == sizeof number);
            memcpy(&number, events[0].bytes, sizeof number);
            CHECK(number == i / 50);
        }
    }
    CHECK(readable(fd));
    for (uint32_t next = 10; next < 500;) {
        OK(pace_udp_pulled_pull(here, events, 16, 60 * SECOND, &count));
        CHECK(count >= 1 && count <= 16);
        for (size_t i = 0; i < count; i++, next++) {
            CHECK(events[i].kind == PACE_UDP_EVENT_DATAGRAM && events[i].size == sizeof next);
            CHECK(events[i].length == sizeof next && events[i].peer.port == address_of(other).port);
            CHECK(memcmp(events[i].bytes, &next, sizeof next) == 0);
        }
    }
    CHECK(!readable(fd));
    /* Empty ones, and those that are too long. */
    char large[300];
    memset(large, 'x', sizeof large);
    OK(pace_udp_send_to(other, NULL, 0, &to));
    OK(pace_udp_send_to(other, large, sizeof large, &to));
    OK(pace_udp_pulled_pull(here, events, 1, 60 * SECOND, &count));
    CHECK(count == 1 && events[0].size == 0 && events[0].length == 0);
    OK(pace_udp_pulled_pull(here, events, 1, 60 * SECOND, &count));
    CHECK(count == 1 && events[0].size == 100 && events[0].length == 300);
    /* An answer by the socket that it came to. */
    OK(pace_udp_send_to(udp, events[0].bytes, 1, &events[0].peer));
    OK(pace_udp_pulled_pull(there, events, 1, 60 * SECOND, &count));
    CHECK(events[0].size == 1 && *(const char *)events[0].bytes == 'x');
    CHECK(events[0].peer.port == to.port && books(udp).dropped == 0);
    pace_udp_pulled_free(here);
    pace_udp_pulled_free(there);
    finish(pool);
}

/* A host that does not pull: what is kept is bounded, what is lost is counted, and what was kept comes
 * still, first come first. */
static void what_waits_is_bounded(void) {
    pace_pool_t *pool = pool_of(1);
    pace_udp_t *udp, *other;
    pace_udp_pulled_t *here = open_one(pool, TCP, NULL, 1024, &udp);
    pace_udp_pulled_t *there = open_one(pool, TCP, NULL, WAITING, &other);
    const pace_ip_t to = address_of(udp);
    pace_udp_event_t events[64];
    size_t count = 0;
    for (uint32_t i = 0; i < 100; i++) {
        OK(pace_udp_send_to(other, &i, sizeof i, &to));
        UNTIL(books(udp).received == i + 1);
    }
    /* 132 bytes each. */
    UNTIL(books(udp).dropped == 93);
    OK(pace_udp_pulled_pull(here, events, 64, 60 * SECOND, &count));
    CHECK(count == 7);
    for (uint32_t i = 0; i < 7; i++) CHECK(memcmp(events[i].bytes, &i, sizeof i) == 0);
    /* There is room again. */
    OK(pace_udp_send_to(other, "more", 4, &to));
    OK(pace_udp_pulled_pull(here, events, 64, 60 * SECOND, &count));
    CHECK(count == 1 && memcmp(events[0].bytes, "more", 4) == 0);
    CHECK(books(udp).dropped == 93);
    pace_udp_pulled_free(here);
    pace_udp_pulled_free(there);
    finish(pool);
}

static void errors_come_as_events(void) {
    pace_pool_t *pool = pool_of(1);
    pace_udp_t *udp, *other;
    pace_udp_event_t event;
    size_t count = 0;
    char nobody[PACE_ADDRESS_SIZE];
    pace_udp_pulled_t *gone = open_one(pool, TCP, NULL, WAITING, &other);
    OK(pace_udp_address(other, nobody, sizeof nobody));
    OK(pace_udp_close(other));
    OK(pace_udp_wait(other));
    pace_udp_pulled_t *here = open_one(pool, NULL, nobody, WAITING, &udp);
    OK(pace_udp_send(udp, "?", 1));
    OK(pace_udp_pulled_pull(here, &event, 1, 60 * SECOND, &count));
    CHECK(event.kind == PACE_UDP_EVENT_ERROR && event.os_error == ECONNREFUSED);
    CHECK(event.bytes == NULL && event.size == 0 && event.peer.version == 0);
    pace_udp_pulled_free(here);
    pace_udp_pulled_free(gone);
    finish(pool);
}

static void *pull_until_it_is_over(void *data) {
    pace_udp_event_t events[4];
    size_t count, total = 0;
    for (;;) {
        pace_status_t status =
            pace_udp_pulled_pull((pace_udp_pulled_t *)data, events, 4, PACE_FOREVER, &count);
        if (status == PACE_ESHUTDOWN) return (void *)(uintptr_t)total;
        CHECK(status == PACE_OK);
        total += count;
    }
}

/* Ten threads pull; a drain has everything handled, and tells all of them the end. */
static void the_end_comes_after_what_was_there(void) {
    pace_pool_t *pool = pool_of(2);
    pace_udp_t *udp, *other;
    pace_udp_pulled_t *here = open_one(pool, TCP, NULL, WAITING, &udp);
    pace_udp_pulled_t *there = open_one(pool, TCP, NULL, WAITING, &other);
    const pace_ip_t to = address_of(udp);
    pthread_t threads[10];
    uintptr_t total = 0;
    bool drained = false, is_open = true;
    for (int i = 0; i < 10; i++)
        CHECK(pthread_create(&threads[i], NULL, pull_until_it_is_over, here) == 0);
    for (int i = 0; i < 300; i++) OK(pace_udp_send_to(other, "x", 1, &to));
    OK(pace_udp_drain(udp, 60 * SECOND, &drained));
    CHECK(drained);
    for (int i = 0; i < 10; i++) {
        void *got = NULL;
        CHECK(pthread_join(threads[i], &got) == 0);
        total += (uintptr_t)got;
    }
    CHECK(total == books(udp).received && total <= 300 && books(udp).dropped == 0);
    OK(pace_udp_is_open(udp, &is_open));
    CHECK(!is_open);
    SAYS(PACE_ESTALE, pace_udp_send_to(udp, "x", 1, &to));
    /* The pool ends: so does the other one, whose descriptor says so. */
    int fd = -1;
    pace_udp_event_t event;
    size_t count;
    OK(pace_udp_pulled_pollable(there, &fd));
    OK(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    SAYS(PACE_ESHUTDOWN, pace_udp_pulled_pull(there, &event, 1, 60 * SECOND, &count));
    CHECK(readable(fd));
    pace_udp_pulled_free(here);
    pace_udp_pulled_free(there);
    pace_pool_free(pool);
}

static pace_udp_pulled_t *inside;

static void pull_inside(void *data, int32_t *outcome) {
    pace_udp_event_t event;
    size_t count;
    (void)data;
    SAYS(PACE_EDEADLOCK, pace_udp_pulled_pull(inside, &event, 1, SECOND, &count));
    SAYS(PACE_ETIMEDOUT, pace_udp_pulled_pull(inside, &event, 1, 0, &count));
    *outcome = 0;
}

static void senseless_calls(void) {
    pace_pool_t *pool = pool_of(1);
    pace_udp_t *udp = NULL;
    pace_udp_options_t options;
    pace_udp_pulled_t *pulled = NULL;
    pace_udp_event_t event;
    size_t count;
    int fd;
    OK(pace_udp_options_init(&options, sizeof options));
    SAYS(PACE_EINVAL, pace_udp_pulled_new(pool, &options, WAITING, &pulled));
    options.bind = TCP;
    SAYS(PACE_EINVAL, pace_udp_pulled_new(NULL, &options, WAITING, &pulled));
    SAYS(PACE_EINVAL, pace_udp_pulled_new(pool, NULL, WAITING, &pulled));
    SAYS(PACE_EINVAL, pace_udp_pulled_new(pool, &options, WAITING, NULL));
    SAYS(PACE_EINVAL, pace_udp_pulled_new(pool, &options, 0, &pulled));
    TELLS("max_waiting is 0");
    SAYS(PACE_EINVAL, pace_udp_pulled_new(pool, &options, UINT64_MAX, &pulled));
    TELLS("max_waiting");
    CHECK(pulled == NULL);
    pulled = inside = open_one(pool, TCP, NULL, WAITING, &udp);
    SAYS(PACE_EINVAL, pace_udp_pulled_udp(NULL, &udp));
    SAYS(PACE_EINVAL, pace_udp_pulled_udp(pulled, NULL));
    SAYS(PACE_EINVAL, pace_udp_pulled_pollable(NULL, &fd));
    SAYS(PACE_EINVAL, pace_udp_pulled_pollable(pulled, NULL));
    SAYS(PACE_EINVAL, pace_udp_pulled_pull(NULL, &event, 1, 0, &count));
    SAYS(PACE_EINVAL, pace_udp_pulled_pull(pulled, NULL, 1, 0, &count));
    SAYS(PACE_EINVAL, pace_udp_pulled_pull(pulled, &event, 1, 0, NULL));
    SAYS(PACE_EINVAL, pace_udp_pulled_pull(pulled, &event, 0, 0, &count));
    SAYS(PACE_ETIMEDOUT, pace_udp_pulled_pull(pulled, &event, SIZE_MAX, 0, &count));
    pace_task_t task;
    OK(pace_pool_submit(pool, 2, pull_inside, NULL, NULL, &task));
    int32_t outcome = 1;
    OK(pace_task_wait(pool, task, PACE_FOREVER, &outcome));
    CHECK(outcome == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
        SAYS(PACE_EFORKED, pace_udp_pulled_pull(pulled, &event, 1, 0, &count));
        SAYS(PACE_EFORKED, pace_udp_pulled_pollable(pulled, &fd));
        SAYS(PACE_EFORKED, pace_udp_pulled_udp(pulled, &udp));
        SAYS(PACE_EFORKED, pace_udp_pulled_new(pool, &options, WAITING, &pulled));
        pace_udp_pulled_free(pulled);
        _exit(42);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    pace_udp_pulled_free(pulled);
    pace_udp_pulled_free(NULL);
    finish(pool);
}

int main(void) {
    check_begin();
    datagrams_come_in_order();
    what_waits_is_bounded();
    errors_come_as_events();
    the_end_comes_after_what_was_there();
    senseless_calls();
    return 0;
}
