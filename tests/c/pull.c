/* Events as data: descriptors, timers and tokens, with threads and without, completed early and late. */
#include "check.h"

static size_t pull(pace_pool_t *pool, pace_event_t *events, size_t capacity) {
    size_t count = 0;
    pace_status_t status;
    do status = pace_pool_pull(pool, events, capacity, SECOND, &count);
    while (status == PACE_ETIMEDOUT);
    OK(status);
    CHECK(count >= 1 && count <= capacity);
    return count;
}

static void with(uint32_t threads) {
    pace_pool_t *pool = pool_of(threads);
    pace_handle_t handle = {0}, ticker = {0};
    pace_timer_t timer = {0};
    pace_event_t event, events[16];
    uint64_t tokens[8];
    size_t count = 0;
    bool flag = false;
    int ends[2];
    char byte;

    SAYS(PACE_ETIMEDOUT, pace_pool_pull(pool, events, 16, 0, &count));
    SAYS(PACE_EINVAL, pace_pool_pull(pool, events, 0, 0, &count));
    SAYS(PACE_EINVAL, pace_pool_pull(pool, NULL, 1, 0, &count));

    /* Tokens, in order. */
    OK(pace_pull_post(pool, 11));
    for (size_t i = 0; i < 8; i++) tokens[i] = 20 + i;
    OK(pace_pull_post_batch(pool, tokens, 8, &count));
    CHECK(count == 8);
    OK(pace_pull_post_batch(pool, NULL, 0, &count));
    for (size_t got = 0; got < 9;) {
        size_t some = pull(pool, events, 16);
        for (size_t i = 0; i < some; i++, got++) {
            CHECK(events[i].kind == PACE_EVENT_TASK && events[i].handle.id == 0);
            CHECK(events[i].token == (got == 0 ? 11 : 19 + got));
        }
    }

    /* A descriptor is held until it is completed. */
    make_pipe(ends);
    OK(pace_pull_register(pool, ends[0], NULL, 77, &handle));
    CHECK(write(ends[1], "a", 1) == 1);
    CHECK(pull(pool, &event, 1) == 1 && event.kind == PACE_EVENT_READY && event.token == 77);
    CHECK(event.handle.id == handle.id && (event.ready & PACE_READY_READABLE) != 0);
    CHECK(read(ends[0], &byte, 1) == 1);
    OK(pace_pull_complete(pool, handle, PACE_FLOW_AGAIN));
    CHECK(pull(pool, &event, 1) == 1 && event.handle.id == handle.id);
    SAYS(PACE_EINVAL, pace_pull_complete(pool, handle, 4));
    OK(pace_pull_done(pool));
    SAYS(PACE_ESTALE, pace_pull_complete(pool, handle, PACE_FLOW_WAIT));
    CHECK(write(ends[1], "b", 1) == 1);
    CHECK(pull(pool, &event, 1) == 1);
    SAYS(PACE_ECLOSING, pace_handle_deregister(pool, handle));
    OK(pace_pull_done(pool));
    OK(pace_handle_is_open(pool, handle, &flag));
    CHECK(!flag);
    SAYS(PACE_ESTALE, pace_handle_deregister(pool, handle));

    /* Timers. */
    OK(pace_pull_after(pool, MILLI, 5, NULL));
    CHECK(pull(pool, &event, 1) == 1 && event.kind == PACE_EVENT_TIMER && event.token == 5);
    OK(pace_pull_after(pool, 3600 * SECOND, 6, &timer));
    OK(pace_timer_cancel(pool, timer, &flag));
    CHECK(flag);
    OK(pace_pull_every(pool, MILLI, 9, &ticker));
    for (int i = 0; i < 3; i++) {
        CHECK(pull(pool, &event, 1) == 1 && event.kind == PACE_EVENT_TICK && event.token == 9);
        CHECK(event.handle.id == ticker.id);
    }
    OK(pace_pull_complete(pool, ticker, PACE_FLOW_DONE));
    OK(pace_handle_is_open(pool, ticker, &flag));
    CHECK(!flag);

    OK(pace_pool_shutdown(pool, 0, NULL));
    SAYS(PACE_ESHUTDOWN, pace_pull_post(pool, 1));
    SAYS(PACE_ESHUTDOWN, pace_pull_post_batch(pool, tokens, 8, &count));
    CHECK(count == 0);
    SAYS(PACE_ESHUTDOWN, pace_pool_pull(pool, events, 16, 0, &count));
    pace_audit_t audit = {0};
    audit.struct_size = sizeof audit;
    OK(pace_pool_audit(pool, &audit));
    CHECK(audit.balances && audit.in_flight == 0);
    pace_pool_free(pool);
    close(ends[0]);
    close(ends[1]);
}

int main(void) {
    check_begin();
    with(0);
    with(2);
    return 0;
}
