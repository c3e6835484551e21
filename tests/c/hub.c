/* The hub: keys, publishing, subscriptions of every execution, overflow, failures, ends. */
#include "inbox.h"

typedef struct seen {
    counts_t counts;
    pace_hub_t *hub;
    atomic_ullong sum, lost, last;
    atomic_bool hold, leave;
    char text[64];
} seen_t;

static void drop_seen(void *data) { count_drop(&((seen_t *)data)->counts); }

static bool is(pace_text_t text, const char *what) {
    return text.size == strlen(what) && memcmp(text.text, what, text.size) == 0;
}

static void take(void *data, const pace_message_t *message, int32_t *outcome) {
    seen_t *seen = (seen_t *)data;
    unsigned value = 0;
    CHECK(*outcome == PACE_EFAILED && message->attempt >= 1 && message->subscription.id != 0);
    CHECK(message->sequence > atomic_exchange(&seen->last, message->sequence));
    if (message->size == sizeof value) memcpy(&value, message->payload, sizeof value);
    atomic_fetch_add(&seen->sum, value);
    atomic_fetch_add(&seen->lost, message->lost_before);
    atomic_fetch_add(&seen->counts.runs, 1);
    while (atomic_load(&seen->hold)) check_nap();
    if (atomic_load(&seen->leave)) {
        bool ended = true;
        OK(pace_hub_unsubscribe(seen->hub, message->subscription, PACE_UNSUBSCRIBE_SYNC, &ended));
        CHECK(!ended);
    }
    *outcome = 0;
}

/* Several threads at once: sequences may come in any order. */
static void take_any(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)message;
    atomic_fetch_add(&((seen_t *)data)->counts.runs, 1);
    *outcome = 0;
}

static void fail(void *data, const pace_message_t *message, int32_t *outcome) {
    atomic_fetch_add(&((seen_t *)data)->counts.runs, 1);
    OK(pace_message_fail("the backend is away"));
    if (message->size > 0) *outcome = -77;
}

static void look(void *data, const pace_message_t *message, int32_t *outcome) {
    seen_t *seen = (seen_t *)data;
    CHECK(is(message->key, "orders.eu.created") && message->priority == PACE_PRIORITY_HIGH);
    CHECK(message->header_count == 2 && is(message->headers[0].name, "trace"));
    CHECK(is(message->headers[0].value, "17") && is(message->headers[1].name, "empty"));
    CHECK(message->headers[1].value.size == 0 && message->time_ns > UINT64_C(1600000000) * SECOND);
    CHECK(message->size < sizeof seen->text);
    if (message->size > 0) memcpy(seen->text, message->payload, message->size);
    atomic_fetch_add(&seen->counts.runs, 1);
    *outcome = 0;
}

/* As take(), of a replay, which has no name. */
static void take_replayed(void *data, const pace_message_t *message, int32_t *outcome) {
    seen_t *seen = (seen_t *)data;
    unsigned value = 0;
    CHECK(message->subscription.id == 0 && message->lost_before == 0);
    CHECK(message->sequence > atomic_exchange(&seen->last, message->sequence));
    if (message->size == sizeof value) memcpy(&value, message->payload, sizeof value);
    atomic_fetch_add(&seen->sum, value);
    atomic_fetch_add(&seen->counts.runs, 1);
    *outcome = 0;
}

static pace_receipt_t receipt(void) {
    pace_receipt_t receipt = {0};
    receipt.struct_size = sizeof receipt;
    return receipt;
}

static pace_subscription_options_t options(uint32_t execution, uint32_t overflow, uint64_t capacity) {
    pace_subscription_options_t options;
    OK(pace_subscription_options_init(&options, sizeof options));
    options.execution = execution;
    options.overflow = overflow;
    options.capacity = capacity;
    options.threads = 2;
    return options;
}

static pace_subscription_stats_t stats_of(pace_hub_t *hub, pace_subscription_t subscription) {
    pace_subscription_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_subscription_stats(hub, subscription, &stats));
    CHECK(stats.matched == stats.delivered + stats.failed + stats.dead_lettered + stats.dropped +
                               stats.rejected + stats.discarded + stats.waiting + stats.running);
    return stats;
}

static void balances(pace_hub_t *hub) {
    pace_hub_audit_t audit = {0};
    audit.struct_size = sizeof audit;
    do {
        check_nap();
        OK(pace_hub_audit(hub, &audit));
    } while (audit.waiting + audit.running > 0);
    CHECK(audit.balances);
}

static void every_execution(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_key_t *key;
    pace_text_t text;
    pace_subscription_t subscriptions[4];
    seen_t seen[4] = {0};
    pace_receipt_t told = receipt();
    OK(pace_hub_new(pool, NULL, &hub));
    for (uint32_t i = 0; i < 4; i++) {
        pace_subscription_options_t how = options(i, PACE_OVERFLOW_REJECT, 10000);
        bool several = i == PACE_EXECUTION_CONCURRENT;
        OK(pace_hub_subscribe(hub, i % 2 ? "numbers.*" : "numbers.one", &how, several ? take_any : take,
                              &seen[i], drop_seen, &subscriptions[i]));
    }
    OK(pace_hub_key(hub, "numbers.one", &key));
    OK(pace_key_text(key, &text));
    CHECK(is(text, "numbers.one"));
    for (unsigned i = 1; i <= 1000; i++) {
        if (i % 3 == 0) {
            OK(pace_hub_publish(hub, "numbers.one", &i, sizeof i, 0, &told));
        } else if (i % 3 == 1) {
            OK(pace_key_publish(key, &i, sizeof i, 0, &told));
        } else {
            pace_piece_t piece = {&i, sizeof i};
            OK(pace_key_publish_batch(key, &piece, 1, 0, &told));
        }
        CHECK(told.sequence == i && told.matched == 4 && told.enqueued == 4);
        CHECK(told.dropped == 0 && told.rejected == 0);
        CHECK((unsigned)atomic_load(&seen[PACE_EXECUTION_INLINE].counts.runs) == i);
    }
    for (int i = 0; i < 4; i++) {
        bool ended = false;
        UNTIL(atomic_load(&seen[i].counts.runs) == 1000);
        CHECK(i == PACE_EXECUTION_CONCURRENT || atomic_load(&seen[i].sum) == 500500);
        OK(pace_hub_unsubscribe(hub, subscriptions[i], PACE_UNSUBSCRIBE_SYNC, &ended));
        CHECK(ended && atomic_load(&seen[i].counts.drops) == 1);
        SAYS(PACE_ESTALE, pace_hub_unsubscribe(hub, subscriptions[i], PACE_UNSUBSCRIBE_SYNC, NULL));
    }
    OK(pace_key_publish(key, NULL, 0, 0, &told));
    CHECK(told.matched == 0);
    balances(hub);
    pace_hub_free(hub);
    SAYS(PACE_OK, pace_key_publish(key, NULL, 0, PACE_PUBLISH_NO_RECEIPT,
                                   NULL)); /* keys may outlive the hub's pointer */
    pace_key_free(key);
}

static void what_is_full_and_what_was_lost(pace_pool_t *pool) {
    static const uint32_t ways[] = {PACE_OVERFLOW_REJECT, PACE_OVERFLOW_DROP_NEWEST,
                                    PACE_OVERFLOW_DROP_OLDEST, PACE_OVERFLOW_CONFLATE};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        pace_hub_t *hub;
        pace_subscription_t subscription;
        pace_subscription_options_t how = options(PACE_EXECUTION_SERIAL, ways[i], 3);
        seen_t seen = {0};
        pace_subscription_stats_t stats;
        unsigned kept = ways[i] == PACE_OVERFLOW_CONFLATE ? 1 : 3;
        atomic_store(&seen.hold, true);
        OK(pace_hub_new(pool, NULL, &hub));
        OK(pace_hub_subscribe(hub, "a.>", &how, take, &seen, drop_seen, &subscription));
        OK(pace_hub_publish(hub, "a.b", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
        UNTIL(atomic_load(&seen.counts.runs) == 1);
        pace_receipt_t sum = receipt();
        for (unsigned n = 1; n <= 10; n++) {
            pace_receipt_t told = receipt();
            bool refused = ways[i] == PACE_OVERFLOW_REJECT && n > 3;
            SAYS(refused ? PACE_EFULL : PACE_OK, pace_hub_publish(hub, "a.b", &n, sizeof n, 0, &told));
            CHECK(told.matched == 1 && told.enqueued + told.dropped + told.rejected == 1);
            sum.dropped += told.dropped;
            sum.rejected += told.rejected;
        }
        CHECK(sum.rejected == (ways[i] == PACE_OVERFLOW_REJECT ? 7u : 0u));
        CHECK(sum.dropped == (ways[i] == PACE_OVERFLOW_DROP_NEWEST ? 7u : 0u));
        stats = stats_of(hub, subscription);
        CHECK(stats.waiting == kept && stats.running == 1 &&
              stats.dropped + stats.rejected == 10 - kept);
        atomic_store(&seen.hold, false);
        UNTIL(atomic_load(&seen.counts.runs) == 1 + (int)kept);
        if (i < 2) CHECK(atomic_load(&seen.sum) == 1 + 2 + 3);
        if (i == 2) CHECK(atomic_load(&seen.sum) == 8 + 9 + 10 && atomic_load(&seen.lost) == 7);
        if (i == 3) CHECK(atomic_load(&seen.sum) == 10 && atomic_load(&seen.lost) == 9);
        if (i < 2) { /* what came last was lost: the next message says so */
            OK(pace_hub_publish(hub, "a.b", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
            UNTIL(atomic_load(&seen.counts.runs) == 5);
            UNTIL(atomic_load(&seen.lost) == 7);
        }
        balances(hub);
        pace_hub_free(hub);
        UNTIL(atomic_load(&seen.counts.drops) == 1);
    }
}

static void blocked(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_key_t *key;
    pace_subscription_options_t how = options(PACE_EXECUTION_SERIAL, PACE_OVERFLOW_BLOCK, 1);
    seen_t seen = {0};
    pace_receipt_t told = receipt();
    how.block_ns = 240 * SECOND;
    atomic_store(&seen.hold, true);
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_subscribe(hub, "a", &how, take, &seen, drop_seen, NULL));
    OK(pace_hub_key(hub, "a", &key));
    OK(pace_key_publish(key, NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(atomic_load(&seen.counts.runs) == 1);
    OK(pace_key_publish(key, NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EFULL, pace_key_publish(key, NULL, 0, PACE_PUBLISH_NO_WAIT, &told));
    CHECK(told.rejected == 1 && strstr(pace_last_error(), "(a) is full (1 messages)") != NULL);
    SAYS(PACE_EFULL,
         pace_hub_publish(hub, "a", NULL, 0, PACE_PUBLISH_NO_WAIT | PACE_PUBLISH_NO_RECEIPT, NULL));
    told.matched = 7;
    SAYS(PACE_ETIMEDOUT,
         pace_key_publish(key, NULL, 0, PACE_PUBLISH_TRY, &told)); /* nobody has got it */
    SAYS(PACE_ETIMEDOUT, pace_key_await_room(key, MILLI, 0));
    SAYS(PACE_EFULL, pace_key_await_room(key, PACE_FOREVER, 240 * SECOND)); /* as long as it may */
    SAYS(PACE_EINVAL, pace_key_publish(key, NULL, 0, 0, NULL)); /* a receipt is left out by name only */
    SAYS(PACE_EINVAL, pace_key_publish(key, NULL, 0, 8, &told));
    SAYS(PACE_EINVAL, pace_key_publish_batch(key, NULL, 0, PACE_PUBLISH_TRY, &told));
    atomic_store(&seen.hold, false);
    OK(pace_key_await_room(key, PACE_FOREVER, 0));
    OK(pace_key_publish(key, NULL, 0, PACE_PUBLISH_TRY, &told));
    for (int i = 0; i < 99; i++) {
        OK(pace_key_publish(key, NULL, 0, 0, &told));
        CHECK(told.enqueued == 1);
    }
    UNTIL(atomic_load(&seen.counts.runs) == 102);
    balances(hub);
    pace_key_free(key);
    pace_hub_free(hub);
    UNTIL(atomic_load(&seen.counts.drops) == 1);
}

/* By default a loop loses nothing. */
static int loops = 100000; /* fewer under valgrind */

static void a_loop(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_key_t *key;
    seen_t seen = {0};
    pace_receipt_t told = receipt();
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_subscribe(hub, "a", NULL, take_any, &seen, drop_seen, NULL));
    OK(pace_hub_key(hub, "a", &key));
    for (int i = 0; i < loops; i++) {
        OK(pace_key_publish(key, &i, sizeof i, 0, &told));
        CHECK(told.matched == 1 && told.enqueued == 1);
    }
    UNTIL(atomic_load(&seen.counts.runs) == loops);
    balances(hub);
    pace_key_free(key);
    pace_hub_free(hub);
    UNTIL(atomic_load(&seen.counts.drops) == 1);
}

static void headers_and_failures(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_key_t *key;
    pace_subscription_t failing;
    pace_publication_t with;
    pace_field_t fields[2] = {{{"trace", 5}, {"17", 2}}, {{"empty", 5}, {NULL, 0}}};
    seen_t seen = {0}, failed = {0};
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_subscribe(hub, "orders.*.created", NULL, look, &seen, drop_seen, NULL));
    OK(pace_hub_subscribe(hub, "orders.>", NULL, fail, &failed, drop_seen, &failing));
    OK(pace_hub_key(hub, "orders.eu.created", &key));
    OK(pace_publication_init(&with, sizeof with));
    with.headers = fields;
    with.header_count = 2;
    with.priority = PACE_PRIORITY_HIGH;
    OK(pace_key_publish_with(key, &with, "hello", 6, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_key_publish_with(key, &with, NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(atomic_load(&seen.counts.runs) == 2);
    CHECK(strcmp(seen.text, "hello") == 0);
    UNTIL(stats_of(hub, failing).failed + stats_of(hub, failing).dead_lettered == 2);
    SAYS(PACE_ESTALE, pace_message_fail("nobody fails here"));
    balances(hub);
    pace_key_free(key);
    pace_hub_free(hub);
    UNTIL(atomic_load(&seen.counts.drops) == 1 && atomic_load(&failed.counts.drops) == 1);
}

/* A handler that unsubscribes itself may run before its subscribing has returned. */
static void those_who_leave(pace_pool_t *pool) {
    pace_hub_t *hub;
    OK(pace_hub_new(pool, NULL, &hub));
    for (int i = 0; i < 200; i++) {
        pace_subscription_t subscription;
        seen_t seen = {0};
        seen.hub = hub;
        atomic_store(&seen.leave, true);
        OK(pace_hub_subscribe(hub, "a", NULL, take, &seen, drop_seen, &subscription));
        OK(pace_hub_publish(hub, "a", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
        UNTIL(atomic_load(&seen.counts.drops) == 1);
        SAYS(PACE_ESTALE, pace_hub_unsubscribe(hub, subscription, PACE_UNSUBSCRIBE_ASYNC, NULL));
    }
    balances(hub);
    pace_hub_free(hub);
}

static void drained(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_subscription_t subscription;
    seen_t seen = {0};
    bool ended = true;
    atomic_store(&seen.hold, true);
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_subscribe(hub, "a", NULL, take, &seen, drop_seen, &subscription));
    for (unsigned n = 1; n <= 100; n++)
        OK(pace_hub_publish(hub, "a", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_hub_unsubscribe(hub, subscription, PACE_UNSUBSCRIBE_DRAIN, &ended));
    CHECK(!ended);
    atomic_store(&seen.hold, false);
    UNTIL(atomic_load(&seen.counts.drops) == 1);
    CHECK(atomic_load(&seen.sum) == 5050);
    balances(hub);
    pace_hub_free(hub);
}

static void pulled(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_key_t *key;
    pace_mailbox_t *mailbox;
    pace_message_t messages[8];
    pace_publication_t with;
    pace_field_t fields[2] = {{{"a", 1}, {"1", 1}}, {{"b", 1}, {"2", 1}}};
    pace_subscription_options_t how = options(0, PACE_OVERFLOW_DROP_OLDEST, 4);
    pace_subscription_stats_t stats = {0};
    size_t count = 0;
    int32_t fd = -1;
    bool ended = true;
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_mailbox(hub, "a.*", &how, &mailbox));
    inbox_t inbox = inbox_of(pool, mailbox);
    OK(pace_hub_key(hub, "a.b", &key));
    SAYS(PACE_ETIMEDOUT, inbox_take(&inbox, messages, 8, 0, &count));
    OK(pace_cq_fd(inbox.cq, &fd));
    CHECK(!readable(fd));
    OK(pace_publication_init(&with, sizeof with));
    with.headers = fields;
    for (unsigned n = 1; n <= 6; n++) {
        with.header_count = n % 3;
        OK(pace_key_publish_with(key, &with, &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    }
    CHECK(readable(fd));
    OK(inbox_take(&inbox, messages, 8, PACE_FOREVER, &count));
    CHECK(count == 4 && messages[0].lost_before == 2 && messages[1].lost_before == 0);
    for (unsigned i = 0; i < 4; i++) {
        unsigned n = 0;
        memcpy(&n, messages[i].payload, sizeof n);
        CHECK((const char *)messages[i].payload == (const char *)messages[0].payload + i * sizeof n);
        CHECK(n == i + 3 && messages[i].sequence == n && is(messages[i].key, "a.b"));
        CHECK(messages[i].header_count == n % 3 && messages[i].subscription.id == 0);
        if (n % 3 == 2)
            CHECK(is(messages[i].headers[1].name, "b") && is(messages[i].headers[1].value, "2"));
    }
    stats.struct_size = sizeof stats;
    OK(pace_mailbox_stats(mailbox, &stats));
    CHECK(stats.delivered == 4 && stats.dropped == 2 && stats.waiting == 0);
    OK(pace_hub_publish(hub, "a.c", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_mailbox_unsubscribe(mailbox, PACE_UNSUBSCRIBE_DRAIN, &ended));
    CHECK(!ended);
    OK(inbox_take(&inbox, messages, 1, 0, &count));
    CHECK(count == 1 && messages[0].payload == NULL && messages[0].size == 0);
    SAYS(PACE_ESTALE, inbox_take(&inbox, messages, 1, PACE_FOREVER, &count));
    balances(hub);
    pace_hub_free(hub);
    pace_key_free(key);
    inbox_free(&inbox);
    pace_mailbox_free(mailbox);
    pace_mailbox_free(NULL);
    how.lease_ns = 1;
    OK(pace_hub_new(pool, NULL, &hub));
    SAYS(PACE_EINVAL, pace_hub_mailbox(hub, "a", &how, &mailbox));
    TELLS("lease");
    how.lease_ns = MILLI; /* nobody pulls: it goes by itself */
    OK(pace_hub_mailbox(hub, "a", &how, &mailbox));
    inbox = inbox_of(pool, mailbox);
    do {
        check_nap();
        OK(pace_hub_subscriber_count(hub, "a", &count));
    } while (count > 0);
    SAYS(PACE_ESTALE, inbox_take(&inbox, messages, 1, 0, &count));
    inbox_free(&inbox);
    pace_mailbox_free(mailbox);
    pace_hub_free(hub);
}

typedef struct listed {
    size_t count, of_a, of_b;
} listed_t;

static void list(void *data, pace_text_t pattern, size_t subscriptions) {
    listed_t *listed = (listed_t *)data;
    listed->count++;
    if (is(pattern, "a.b")) listed->of_a = subscriptions;
    if (is(pattern, "a.*")) listed->of_b = subscriptions;
}

static void counted_and_unique(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_subscription_options_t how = options(PACE_EXECUTION_SERIAL, PACE_OVERFLOW_REJECT, 8);
    listed_t listed = {0};
    pace_mailbox_t *mailbox;
    size_t count = 0;
    seen_t seen[2] = {0};
    OK(pace_hub_new(pool, NULL, &hub));
    how.unique = "one";
    OK(pace_hub_subscribe(hub, "a.b", &how, take, &seen[0], NULL, NULL));
    SAYS(PACE_EINVAL, pace_hub_subscribe(hub, "a.b", &how, take, &seen[1], NULL, NULL));
    TELLS("\"one\"");
    SAYS(PACE_EINVAL, pace_hub_mailbox(hub, "a.b", &how, &mailbox));
    how.unique = "\xff";
    SAYS(PACE_EINVAL, pace_hub_mailbox(hub, "a.b", &how, &mailbox));
    TELLS("unique");
    how.unique = "two";
    OK(pace_hub_subscribe(hub, "a.b", &how, take, &seen[0], NULL, NULL));
    OK(pace_hub_mailbox(hub, "a.*", &how, &mailbox));
    OK(pace_hub_subscriber_count(hub, "a.b", &count));
    CHECK(count == 3);
    OK(pace_hub_patterns(hub, list, &listed));
    CHECK(listed.count == 2 && listed.of_a == 2 && listed.of_b == 1);
    pace_mailbox_free(mailbox);
    pace_hub_free(hub);
}

static void what_is_bad(pace_pool_t *pool) {
    static const char *const bad[] = {"orders*", "",    ".",   "a..b",   "a b", ".a",
                                      "a.",      "a.*", "a.>", "$SYS.a", "a\n"};
    static const char *const bad_patterns[] = {"orders*", "a.>>", "", "a..b", "a.>.b", "a. b", "a.\n"};
    pace_hub_t *hub;
    pace_key_t *key = NULL;
    pace_hub_options_t small;
    pace_publication_t with;
    pace_field_t field = {{"a b", 3}, {"1", 1}};
    seen_t seen = {0};
    OK(pace_hub_options_init(&small, sizeof small));
    small.max_payload = 0;
    SAYS(PACE_EINVAL, pace_hub_new(pool, &small, &hub));
    TELLS("max_payload is 0");
    small.max_payload = 10;
    OK(pace_hub_new(pool, &small, &hub));
    SAYS(PACE_EINVAL, pace_hub_publish(hub, "a", "01234567890", 11, PACE_PUBLISH_NO_RECEIPT, NULL));
    TELLS("the size of the payload is 11, but must be up to 10 bytes");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        SAYS(PACE_EINVAL, pace_hub_key(hub, bad[i], &key));
        SAYS(PACE_EINVAL, pace_hub_publish(hub, bad[i], NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    }
    for (size_t i = 0; i < sizeof bad_patterns / sizeof *bad_patterns; i++)
        SAYS(PACE_EINVAL, pace_hub_subscribe(hub, bad_patterns[i], NULL, take, &seen, drop_seen, NULL));
    pace_subscription_options_t how = options(4, 0, 1);
    SAYS(PACE_EINVAL, pace_hub_subscribe(hub, "a", &how, take, &seen, drop_seen, NULL));
    TELLS("execution is 4");
    how = options(0, 6, 1);
    SAYS(PACE_EINVAL, pace_hub_subscribe(hub, "a", &how, take, &seen, drop_seen, NULL));
    TELLS("overflow is 6");
    how = options(0, 0, 0);
    SAYS(PACE_EINVAL, pace_hub_subscribe(hub, "a", &how, take, &seen, drop_seen, NULL));
    TELLS("capacity is 0");
    OK(pace_hub_key(hub, "a", &key));
    OK(pace_publication_init(&with, sizeof with));
    with.priority = 3;
    SAYS(PACE_EINVAL, pace_key_publish_with(key, &with, NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    TELLS("priority is 3");
    with.priority = 0;
    with.headers = &field;
    with.header_count = 1;
    SAYS(PACE_EINVAL, pace_key_publish_with(key, &with, NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    TELLS("the name of a header is \"a b\"");
    pace_piece_t pieces[2] = {{"a", 1}, {"01234567890", 11}};
    pace_receipt_t told = receipt();
    SAYS(PACE_EINVAL, pace_key_publish_batch(key, pieces, 2, 0, &told));
    OK(pace_key_publish_batch(key, pieces, 1, 0, &told));
    CHECK(told.sequence == 1); /* none of the refused batch was published */
    SAYS(PACE_EINVAL, pace_hub_unsubscribe(hub, (pace_subscription_t){1}, 3, NULL));
    SAYS(PACE_ESTALE, pace_hub_unsubscribe(hub, (pace_subscription_t){0}, 0, NULL));
    CHECK(atomic_load(&seen.counts.runs) == 0 && atomic_load(&seen.counts.drops) == 0);
    pace_key_free(key);
    pace_key_free(NULL);
    pace_hub_free(hub);
    pace_hub_free(NULL);
}

/* --- what a hub does beyond delivering --------------------------------------------------------- */

static void publishers_have_limits(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_key_t *allowed, *other;
    pace_publisher_t *publisher;
    pace_publisher_options_t limits;
    const char *patterns[2] = {"a.*", "b"};
    pace_receipt_t told = receipt();
    pace_publisher_stats_t stats = {0};
    seen_t seen = {0};
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_subscribe(hub, ">", NULL, take, &seen, drop_seen, NULL));
    OK(pace_hub_key(hub, "a.x", &allowed));
    OK(pace_hub_key(hub, "c", &other));
    OK(pace_publisher_options_init(&limits, sizeof limits));
    limits.allow = patterns;
    limits.allow_count = 2;
    limits.quota = 1; /* in 10 years */
    limits.quota_per_ns = UINT64_C(10) * 365 * 24 * 3600 * SECOND;
    limits.quota_burst = 4;
    OK(pace_publisher_new(hub, "clock", &limits, &publisher));
    SAYS(PACE_EINVAL,
         pace_publisher_publish(publisher, other, NULL, NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    TELLS("\"c\"");
    unsigned n = 1;
    OK(pace_publisher_publish(publisher, allowed, NULL, &n, sizeof n, 0, &told));
    CHECK(told.enqueued == 1 && told.sequence == 1);
    pace_piece_t pieces[4] = {{&n, sizeof n}, {&n, sizeof n}, {&n, sizeof n}, {&n, sizeof n}};
    SAYS(PACE_EFULL, pace_publisher_publish_batch(publisher, allowed, pieces, 4, 0, &told));
    SAYS(PACE_EFULL,
         pace_publisher_publish(publisher, allowed, NULL, NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    stats.struct_size = sizeof stats;
    OK(pace_publisher_stats(publisher, &stats));
    CHECK(stats.published == 4 && stats.enqueued == 4 && stats.lost == 0 && stats.refused == 3);
    UNTIL(atomic_load(&seen.sum) == 4);
    pace_publisher_free(publisher);
    pace_publisher_free(NULL);
    patterns[1] = "b..c";
    SAYS(PACE_EINVAL, pace_publisher_new(hub, "clock", &limits, &publisher));
    patterns[1] = NULL;
    SAYS(PACE_EINVAL, pace_publisher_new(hub, "clock", &limits, &publisher));
    limits.allow_count = 1;
    limits.quota_burst = 0;
    SAYS(PACE_EINVAL, pace_publisher_new(hub, "clock", &limits, &publisher));
    TELLS("burst");
    OK(pace_publisher_new(hub, "", NULL, &publisher));
    pace_hub_free(hub);
    SAYS(PACE_OK,
         pace_publisher_publish(publisher, allowed, NULL, NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    pace_publisher_free(publisher);
    pace_key_free(allowed);
    pace_key_free(other);
    UNTIL(atomic_load(&seen.counts.drops) == 1);
}

typedef struct patient {
    seen_t seen;
    atomic_int restarts, failing, told;
} patient_t;

static void drop_patient(void *data) { count_drop(&((patient_t *)data)->seen.counts); }

/* Fails while it is told to, and crashes at this attempt. */
static void try_to(void *data, const pace_message_t *message, int32_t *outcome) {
    patient_t *patient = (patient_t *)data;
    uint32_t failing = (uint32_t)atomic_load(&patient->failing);
    atomic_fetch_add(&patient->seen.counts.runs, 1);
    if (failing) {
        OK(pace_message_fail("not yet"));
        if (message->attempt == failing) *outcome = PACE_EPANIC;
        return;
    }
    *outcome = 0;
}

static void restarted(void *data, pace_text_t failure, uint64_t count) {
    patient_t *patient = (patient_t *)data;
    if (is(failure, "not yet")) atomic_fetch_add(&patient->told, 1);
    CHECK(count == (uint64_t)atomic_fetch_add(&patient->restarts, 1) + 1);
}

typedef struct letters {
    int count;
    uint64_t subscription, last;
    uint32_t reason, attempts;
    bool failure, pattern;
} letters_t;

static void read_letter(void *data, const pace_dead_letter_t *letter) {
    letters_t *letters = (letters_t *)data;
    CHECK(letter->number > letters->last && is(letter->message.key, "a.b"));
    CHECK(letter->died_ns >= UINT64_C(1600000000) * SECOND && letter->message.sequence > 0);
    letters->count++;
    letters->last = letter->number;
    letters->subscription = letter->subscription;
    letters->reason = letter->reason;
    letters->attempts = letter->attempts;
    letters->failure = is(letter->failure, "not yet");
    letters->pattern = is(letter->pattern, "a.*");
}

static void supervised(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_subscription_t subscription;
    pace_subscription_options_t how = options(PACE_EXECUTION_SERIAL, PACE_OVERFLOW_REJECT, 100);
    pace_dead_filter_t filter = {0};
    pace_redelivered_t again = {0};
    pace_dead_letter_stats_t dead = {0};
    letters_t letters = {0};
    patient_t patient = {0};
    size_t count = 0;
    bool resumed = true;
    OK(pace_hub_new(pool, NULL, &hub));
    how.retry.shape = PACE_RETRY_FIXED;
    how.retry.retries = 2;
    how.retry.first_ns = 1000;
    how.restarts = 1;
    how.within_ns = 3600 * SECOND;
    how.suspension_ns = PACE_FOREVER;
    how.on_restart = restarted;
    OK(pace_hub_subscribe(hub, "a.*", &how, try_to, &patient, drop_patient, &subscription));
    OK(pace_hub_resume(hub, subscription, &resumed));
    CHECK(!resumed);
    atomic_store(&patient.failing, 3);
    OK(pace_hub_publish(hub, "a.b", "1", 1, PACE_PUBLISH_NO_RECEIPT,
                        NULL)); /* three attempts, a dead letter, a restart */
    UNTIL(stats_of(hub, subscription).dead_lettered == 1);
    CHECK(atomic_load(&patient.seen.counts.runs) == 3);
    CHECK(atomic_load(&patient.restarts) == 1 && atomic_load(&patient.told) == 1);
    OK(pace_hub_publish(hub, "a.b", "2", 1, PACE_PUBLISH_NO_RECEIPT, NULL)); /* one restart too many */
    UNTIL(stats_of(hub, subscription).suspended);
    pace_receipt_t told = receipt();
    OK(pace_hub_publish(hub, "a.b", "3", 1, 0, &told));
    CHECK(told.matched == 1 && told.dead_lettered == 1 && told.enqueued == 0);
    UNTIL(stats_of(hub, subscription).dead_lettered == 3);
    CHECK(atomic_load(&patient.seen.counts.runs) == 6);
    OK(pace_hub_dead_letters(hub, NULL, read_letter, &letters, &count));
    CHECK(count == 3 && letters.count == 3 && letters.pattern);
    CHECK(letters.reason == PACE_DEAD_SUSPENDED && letters.attempts == 0 && !letters.failure);
    CHECK(letters.subscription == stats_of(hub, subscription).number);
    filter.struct_size = sizeof filter;
    filter.reason = PACE_DEAD_PANICKED;
    filter.pattern = "*.b";
    filter.limit = 1;
    memset(&letters, 0, sizeof letters);
    OK(pace_hub_dead_letters(hub, &filter, read_letter, &letters, NULL));
    CHECK(letters.count == 1 && letters.last == 1 && letters.attempts == 3 && letters.failure);
    filter.subscription = letters.subscription + 1;
    OK(pace_hub_dead_letters(hub, &filter, NULL, NULL, &count));
    CHECK(count == 0);
    again.struct_size = sizeof again;
    OK(pace_hub_redeliver(hub, NULL, &again)); /* it is suspended still */
    CHECK(again.refused == 3 && again.enqueued == 0 && again.orphaned == 0);
    atomic_store(&patient.failing, 0);
    OK(pace_hub_resume(hub, subscription, &resumed));
    CHECK(resumed && !stats_of(hub, subscription).suspended);
    filter.subscription = 0;
    filter.reason = 0;
    filter.limit = 0;
    filter.first = filter.last = 4; /* the first of those with new numbers */
    OK(pace_hub_remove_dead_letters(hub, &filter, NULL, NULL, &count));
    CHECK(count == 1);
    OK(pace_hub_redeliver(hub, NULL, &again));
    CHECK(again.enqueued == 2);
    UNTIL(stats_of(hub, subscription).delivered == 2);
    CHECK(atomic_load(&patient.restarts) == 2); /* after the suspension */
    dead.struct_size = sizeof dead;
    OK(pace_hub_dead_letter_stats(hub, &dead));
    CHECK(dead.held == 0 && dead.buried == 6 && dead.removed == 6 && dead.forgotten == 0);
    balances(hub);
    OK(pace_hub_unsubscribe(hub, subscription, PACE_UNSUBSCRIBE_SYNC, NULL));
    CHECK(atomic_load(&patient.seen.counts.drops) == 1);
    SAYS(PACE_ESTALE, pace_hub_resume(hub, subscription, NULL));
    filter.reason = 4;
    SAYS(PACE_EINVAL, pace_hub_dead_letters(hub, &filter, NULL, NULL, NULL));
    filter.reason = 0;
    filter.pattern = "a b";
    SAYS(PACE_EINVAL, pace_hub_remove_dead_letters(hub, &filter, NULL, NULL, NULL));
    filter.struct_size = 4;
    SAYS(PACE_EVERSION, pace_hub_redeliver(hub, &filter, NULL));
    pace_hub_free(hub);
}

/* What a factory makes, and the factory. */
typedef struct maker {
    counts_t counts;
    atomic_int made, dropped, failing, crashes;
} maker_t;

typedef struct made {
    maker_t *maker;
    int number, messages;
} made_t;

static pace_status_t make(void *data, void **made) {
    maker_t *maker = (maker_t *)data;
    if (atomic_load(&maker->failing)) {
        OK(pace_message_fail("no parts"));
        return -77;
    }
    made_t *one = (made_t *)calloc(1, sizeof *one);
    CHECK(one != NULL);
    one->maker = maker;
    one->number = atomic_fetch_add(&maker->made, 1) + 1;
    *made = one;
    return PACE_OK;
}

static void drop_made(void *data) {
    made_t *one = (made_t *)data;
    atomic_fetch_add(&one->maker->dropped, 1);
    free(one);
}

static void drop_maker(void *data) {
    maker_t *maker = (maker_t *)data;
    CHECK(atomic_load(&maker->dropped) == atomic_load(&maker->made));
    count_drop(&maker->counts);
}

/* Crashes at "crash", and is then never called again. */
static void handle_made(void *data, const pace_message_t *message, int32_t *outcome) {
    made_t *one = (made_t *)data;
    CHECK(one->messages >= 0 && one->number == atomic_load(&one->maker->made));
    one->messages++;
    if (message->size == 5) {
        one->messages = -1;
        *outcome = PACE_EPANIC;
        return;
    }
    *outcome = PACE_OK;
}

static void made_anew(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_subscription_t subscription;
    pace_subscription_options_t how = options(PACE_EXECUTION_SERIAL, PACE_OVERFLOW_DEFAULT, 100);
    maker_t maker = {0};
    size_t count = 0;
    OK(pace_hub_new(pool, NULL, &hub));
    how.restarts = 100;
    how.within_ns = 3600 * SECOND;
    how.factory = make;
    how.drop_handler = drop_made;
    atomic_store(&maker.failing, 1);
    SAYS(PACE_EFAILED,
         pace_hub_subscribe(hub, "a", &how, handle_made, &maker, drop_maker, &subscription));
    CHECK(strstr(pace_last_error(), "no parts") != NULL);
    how.execution = PACE_EXECUTION_INLINE;
    SAYS(PACE_EINVAL,
         pace_hub_subscribe(hub, "a", &how, handle_made, &maker, drop_maker, &subscription));
    how.execution = PACE_EXECUTION_SERIAL;
    atomic_store(&maker.failing, 0);
    SAYS(PACE_EINVAL,
         pace_hub_subscribe(hub, "a b", &how, handle_made, &maker, drop_maker, &subscription));
    CHECK(atomic_load(&maker.made) == atomic_load(&maker.dropped));
    CHECK(atomic_load(&maker.counts.drops) == 0);
    atomic_store(&maker.made, 0);
    atomic_store(&maker.dropped, 0);

    OK(pace_hub_subscribe(hub, "a", &how, handle_made, &maker, drop_maker, &subscription));
    CHECK(atomic_load(&maker.made) == 1);
    OK(pace_hub_publish(hub, "a", "good", 4, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_hub_publish(hub, "a", "crash", 5, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_hub_publish(hub, "a", "good", 4, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(stats_of(hub, subscription).delivered == 2);
    CHECK(atomic_load(&maker.made) == 2 && atomic_load(&maker.dropped) == 1);
    CHECK(stats_of(hub, subscription).restarts == 1);
    /* A factory that fails is a restart that has failed: the message is dead, and the next one asks it again. */
    OK(pace_hub_publish(hub, "a", "crash", 5, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(stats_of(hub, subscription).dead_lettered == 2);
    atomic_store(&maker.failing, 1);
    OK(pace_hub_publish(hub, "a", "good", 4, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(stats_of(hub, subscription).dead_lettered == 3);
    CHECK(atomic_load(&maker.made) == 2 && atomic_load(&maker.dropped) == 2);
    CHECK(stats_of(hub, subscription).restarts == 3);
    atomic_store(&maker.failing, 0);
    OK(pace_hub_publish(hub, "a", "good", 4, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(stats_of(hub, subscription).delivered == 3);
    CHECK(atomic_load(&maker.made) == 3);
    OK(pace_hub_dead_letters(hub, NULL, NULL, NULL, &count));
    CHECK(count == 3);
    OK(pace_hub_unsubscribe(hub, subscription, PACE_UNSUBSCRIBE_SYNC, NULL));
    CHECK(atomic_load(&maker.dropped) == 3 && atomic_load(&maker.counts.drops) == 1);
    balances(hub);
    pace_hub_free(hub);
}

/* Bad messages do not suspend a sound handler; one that crashes gets messages again when it is sound. */
static void comes_back(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_subscription_t subscription;
    pace_subscription_options_t how = options(PACE_EXECUTION_SERIAL, PACE_OVERFLOW_DEFAULT, 100);
    pace_receipt_t told = receipt();
    patient_t patient = {0};
    OK(pace_hub_new(pool, NULL, &hub));
    how.restarts = 0;
    how.within_ns = 3600 * SECOND;
    how.suspension_ns = 20 * MILLI;
    how.longest_suspension_ns = 40 * MILLI;
    OK(pace_hub_subscribe(hub, "a", &how, try_to, &patient, drop_patient, &subscription));
    atomic_store(&patient.failing, 2);
    for (int i = 0; i < 50; i++) OK(pace_hub_publish(hub, "a", "bad", 3, 0, &told));
    UNTIL(stats_of(hub, subscription).dead_lettered == 50);
    CHECK(!stats_of(hub, subscription).suspended && stats_of(hub, subscription).restarts == 0);
    atomic_store(&patient.failing, 1);
    OK(pace_hub_publish(hub, "a", "crash", 5, 0, &told));
    UNTIL(stats_of(hub, subscription).dead_lettered == 51);
    atomic_store(&patient.failing, 0);
    while (stats_of(hub, subscription).delivered == 0) {
        OK(pace_hub_publish(hub, "a", "good", 4, 0, &told));
        CHECK(told.enqueued + told.dead_lettered == 1);
    }
    CHECK(!stats_of(hub, subscription).suspended);
    how.longest_suspension_ns = MILLI;
    SAYS(PACE_EINVAL, pace_hub_subscribe(hub, "a", &how, try_to, NULL, NULL, NULL));
    OK(pace_hub_unsubscribe(hub, subscription, PACE_UNSUBSCRIBE_SYNC, NULL));
    balances(hub);
    pace_hub_free(hub);
}

/* One fails, and all of its supervisor are restarted, and suspended. */
static void supervised_together(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_supervisor_t *supervisor;
    pace_subscription_t subscriptions[2];
    pace_subscription_options_t how = options(PACE_EXECUTION_SERIAL, PACE_OVERFLOW_REJECT, 100);
    patient_t patients[2] = {0};
    bool suspended = true;
    SAYS(PACE_EINVAL, pace_supervisor_new(2, 1, SECOND, 0, 0, &supervisor));
    SAYS(PACE_EINVAL, pace_supervisor_new(0, 1, 0, 0, 0, &supervisor));
    SAYS(PACE_EINVAL, pace_supervisor_new(0, 100001, SECOND, 0, 0, &supervisor));
    SAYS(PACE_EINVAL, pace_supervisor_new(0, 1, SECOND, SECOND, MILLI, &supervisor));
    SAYS(PACE_EINVAL, pace_supervisor_new(0, 1, SECOND, 1, 0, &supervisor));
    OK(pace_supervisor_new(PACE_RESTART_ONE_FOR_ALL, 1, 3600 * SECOND, PACE_FOREVER, 0, &supervisor));
    OK(pace_hub_new(pool, NULL, &hub));
    how.supervisor = supervisor;
    how.on_restart = restarted;
    how.on_exhausted = PACE_ON_EXHAUSTED_DISCARD;
    how.within_ns = SECOND;
    SAYS(PACE_EINVAL, pace_hub_subscribe(hub, "a", &how, try_to, NULL, NULL, NULL));
    how.within_ns = 0;
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "b" : "a";
        OK(pace_hub_subscribe(hub, key, &how, try_to, &patients[i], drop_patient, &subscriptions[i]));
    }
    atomic_store(&patients[0].failing, 1);
    OK(pace_hub_publish(hub, "a", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(stats_of(hub, subscriptions[0]).failed == 1);
    OK(pace_supervisor_is_suspended(supervisor, &suspended));
    CHECK(!suspended);
    OK(pace_hub_publish(hub, "b", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(stats_of(hub, subscriptions[1]).delivered == 1);
    CHECK(atomic_load(&patients[1].restarts) == 1 && atomic_load(&patients[1].told) == 0);
    OK(pace_hub_publish(hub, "a", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(stats_of(hub, subscriptions[1]).suspended);
    OK(pace_supervisor_is_suspended(supervisor, &suspended));
    CHECK(suspended);
    pace_supervisor_free(supervisor);
    pace_supervisor_free(NULL);
    OK(pace_hub_resume(hub, subscriptions[0], &suspended));
    CHECK(suspended);
    OK(pace_hub_publish(hub, "b", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(stats_of(hub, subscriptions[1]).delivered == 2);
    balances(hub);
    pace_hub_free(hub);
    for (int i = 0; i < 2; i++) UNTIL(atomic_load(&patients[i].seen.counts.drops) == 1);
}

static int32_t is_even(void *data, const pace_message_t *message) {
    unsigned n = 0;
    atomic_fetch_add(&((counts_t *)data)->runs, 1);
    CHECK(message->size == sizeof n && is(message->key, "a") && message->subscription.id == 0);
    memcpy(&n, message->payload, sizeof n);
    return n % 2 == 0;
}

static void filtered(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_key_t *key;
    pace_message_filter_t *even, *kind, *bytes, *time, *rate, *both, *either, *none;
    pace_subscription_options_t how = options(PACE_EXECUTION_SERIAL, PACE_OVERFLOW_REJECT, 100);
    pace_publication_t with;
    pace_field_t field = {{"kind", 4}, {"x", 1}};
    counts_t asked = {0};
    seen_t seen[5] = {0};
    unsigned two = 2;
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_message_filter_test(is_even, &asked, count_drop, &even));
    OK(pace_message_filter_header("kind", "x", &kind));
    OK(pace_message_filter_bytes(0, &two, sizeof two, &bytes));
    OK(pace_message_filter_time(0, 1, &time));
    OK(pace_message_filter_rate(1, UINT64_C(10) * 365 * 24 * 3600 * SECOND, 2, &rate));
    SAYS(PACE_EINVAL, pace_message_filter_rate(0, SECOND, 1, &rate));
    OK(pace_message_filter_and(kind, even, &both));
    OK(pace_message_filter_or(bytes, time, &either));
    OK(pace_message_filter_not(even, &none));
    pace_message_filter_t *filters[5] = {even, both, either, none, rate};
    for (int i = 0; i < 5; i++) {
        how.filter = filters[i];
        OK(pace_hub_subscribe(hub, "a", &how, take, &seen[i], drop_seen, NULL));
        pace_message_filter_free(filters[i]);
    }
    pace_message_filter_free(kind);
    pace_message_filter_free(bytes);
    pace_message_filter_free(time);
    pace_message_filter_free(NULL);
    OK(pace_hub_key(hub, "a", &key));
    OK(pace_publication_init(&with, sizeof with));
    with.headers = &field;
    for (unsigned n = 1; n <= 4; n++) {
        with.header_count = n > 2;
        OK(pace_key_publish_with(key, &with, &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    }
    UNTIL(atomic_load(&seen[0].sum) == 2 + 4 && atomic_load(&seen[1].sum) == 4);
    UNTIL(atomic_load(&seen[2].sum) == 2 && atomic_load(&seen[3].sum) == 1 + 3);
    UNTIL(atomic_load(&seen[4].sum) == 1 + 2);
    CHECK(atomic_load(&asked.runs) == 4 + 2 + 4 && atomic_load(&asked.drops) == 0);
    balances(hub);
    pace_key_free(key);
    pace_hub_free(hub);
    for (int i = 0; i < 5; i++) UNTIL(atomic_load(&seen[i].counts.drops) == 1);
    UNTIL(atomic_load(&asked.drops) == 1);
}

static void grouped(pace_pool_t *pool) {
    pace_subscription_options_t how = options(PACE_EXECUTION_SERIAL, PACE_OVERFLOW_REJECT, 1000);
    for (uint32_t balance = 0; balance <= PACE_BALANCE_BY_HEADER; balance++) {
        pace_hub_t *hub;
        pace_key_t *key;
        pace_publication_t with;
        pace_field_t field = {{"user", 4}, {"17", 2}};
        pace_receipt_t told = receipt();
        seen_t seen[3] = {0};
        int most = 0, sum = 0;
        OK(pace_hub_new(pool, NULL, &hub));
        how.group = "workers";
        how.balance = balance;
        how.balance_header = "user";
        for (int i = 0; i < 3; i++)
            OK(pace_hub_subscribe(hub, "a.*", &how, take, &seen[i], drop_seen, NULL));
        OK(pace_hub_key(hub, "a.b", &key));
        OK(pace_publication_init(&with, sizeof with));
        with.headers = &field;
        with.header_count = 1;
        for (int i = 0; i < 300; i++) {
            OK(pace_key_publish_with(key, &with, NULL, 0, 0, &told));
            CHECK(told.enqueued == 1);
        }
        balances(hub);
        for (int i = 0; i < 3; i++) {
            int runs = atomic_load(&seen[i].counts.runs);
            sum += runs;
            if (runs > most) most = runs;
        }
        CHECK(sum == 300);
        if (balance == PACE_BALANCE_ROUND_ROBIN) CHECK(most == 100);
        if (balance >= PACE_BALANCE_BY_KEY) CHECK(most == 300);
        pace_key_free(key);
        pace_hub_free(hub);
        for (int i = 0; i < 3; i++) UNTIL(atomic_load(&seen[i].counts.drops) == 1);
    }
    pace_hub_t *hub;
    OK(pace_hub_new(pool, NULL, &hub));
    how.balance = 5;
    SAYS(PACE_EINVAL, pace_hub_subscribe(hub, "a", &how, take, NULL, NULL, NULL));
    TELLS("balance is 5");
    how.balance = PACE_BALANCE_BY_HEADER;
    how.balance_header = NULL;
    SAYS(PACE_EINVAL, pace_hub_subscribe(hub, "a", &how, take, NULL, NULL, NULL));
    TELLS("balance_header is NULL");
    how.group = "";
    how.balance = 0;
    SAYS(PACE_EINVAL, pace_hub_subscribe(hub, "a", &how, take, NULL, NULL, NULL));
    how.group = NULL;
    how.on_exhausted = 2;
    SAYS(PACE_EINVAL, pace_hub_subscribe(hub, "a", &how, take, NULL, NULL, NULL));
    TELLS("on_exhausted is 2");
    pace_hub_free(hub);
}

/* Answers with the request's number; the second reply is nobody's. */
static void answer(void *data, const pace_message_t *message, int32_t *outcome) {
    seen_t *seen = (seen_t *)data;
    if (!atomic_load(&seen->leave)) {
        OK(pace_hub_reply(seen->hub, message, message->payload, message->size, NULL));
        OK(pace_hub_reply(seen->hub, message, "again", 5, NULL));
    }
    *outcome = 0;
}

static void requests(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_key_t *key;
    pace_publication_t with;
    pace_field_t field = {{"user", 4}, {"17", 2}};
    pace_message_t reply, plain = {0};
    seen_t seen = {0};
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_key(hub, "a.b", &key));
    SAYS(PACE_ENORESPONDERS, pace_key_request(key, NULL, "x", 1, PACE_FOREVER, &reply));
    seen.hub = hub;
    OK(pace_hub_subscribe(hub, "a.*", NULL, answer, &seen, drop_seen, NULL));
    OK(pace_publication_init(&with, sizeof with));
    with.headers = &field;
    with.header_count = 1;
    for (unsigned n = 0; n < 100; n++) {
        unsigned got = 0;
        OK(pace_key_request(key, n % 2 ? &with : NULL, &n, sizeof n, PACE_FOREVER, &reply));
        CHECK(reply.size == sizeof got);
        memcpy(&got, reply.payload, sizeof got);
        CHECK(got == n && reply.sequence > 0);
    }
    atomic_store(&seen.leave, true);
    SAYS(PACE_ETIMEDOUT, pace_key_request(key, NULL, "x", 1, MILLI, &reply));
    SAYS(PACE_EINVAL, pace_hub_reply(hub, &plain, "x", 1, NULL));
    TELLS("not a request");
    balances(hub);
    pace_key_free(key);
    pace_hub_free(hub);
    UNTIL(atomic_load(&seen.counts.drops) == 1);
}

typedef struct replies {
    counts_t counts;
    atomic_uint sum, late;
} replies_t;

static void drop_replies(void *data) { count_drop(&((replies_t *)data)->counts); }

static void replied(void *data, pace_status_t status, const pace_message_t *reply) {
    replies_t *replies = (replies_t *)data;
    unsigned value = 0;
    if (status == PACE_OK) {
        CHECK(reply->size == sizeof value && reply->sequence > 0);
        memcpy(&value, reply->payload, sizeof value);
        atomic_fetch_add(&replies->sum, value);
    } else {
        CHECK(status == PACE_ETIMEDOUT && reply == NULL);
        atomic_fetch_add(&replies->late, 1);
    }
    atomic_fetch_add(&replies->counts.runs, 1);
}

/* Each request's function is called once, and its `drop` runs once: with a call or without. */
static void asked_without_waiting(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_key_t *key;
    pace_mailbox_t *mute;
    pace_asked_t asked = {0};
    pace_message_t requests[4];
    pace_publication_t with;
    pace_field_t field = {{"user", 4}, {"17", 2}};
    replies_t replies = {0};
    seen_t seen = {0};
    size_t count = 0;
    bool given_up = false;
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_key(hub, "a", &key));
    SAYS(PACE_ENORESPONDERS, pace_key_request_async(key, NULL, "x", 1, PACE_FOREVER, replied, &replies,
                                                    drop_replies, &asked));
    CHECK(asked.id == 0 && atomic_load(&replies.counts.drops) == 0);
    seen.hub = hub;
    OK(pace_hub_subscribe(hub, "a", NULL, answer, &seen, drop_seen, NULL));
    OK(pace_publication_init(&with, sizeof with));
    with.headers = &field;
    with.header_count = 1;
    for (unsigned n = 1; n <= 1000; n++)
        OK(pace_key_request_async(key, n % 2 ? &with : NULL, &n, sizeof n,
                                  n % 3 ? PACE_FOREVER : 3600 * SECOND, replied, &replies, drop_replies,
                                  NULL));
    UNTIL(atomic_load(&replies.counts.drops) == 1000);
    CHECK(atomic_load(&replies.counts.runs) == 1000 && atomic_load(&replies.sum) == 500500);
    with.priority = 17;
    SAYS(PACE_EINVAL,
         pace_key_request_async(key, &with, "x", 1, 0, replied, &replies, drop_replies, NULL));
    pace_key_free(key);

    OK(pace_hub_key(hub, "mute", &key));
    OK(pace_hub_mailbox(hub, "mute", NULL, &mute));
    inbox_t inbox = inbox_of(pool, mute);
    OK(pace_key_request_async(key, NULL, NULL, 0, MILLI, replied, &replies, drop_replies, NULL));
    UNTIL(atomic_load(&replies.counts.drops) == 1001);
    CHECK(atomic_load(&replies.late) == 1);
    OK(pace_key_request_async(key, NULL, NULL, 0, PACE_FOREVER, replied, &replies, drop_replies,
                              &asked));
    OK(pace_hub_give_up(hub, asked, &given_up));
    CHECK(given_up && atomic_load(&replies.counts.drops) == 1002);
    OK(pace_hub_give_up(hub, asked, &given_up));
    CHECK(!given_up);
    OK(inbox_take(&inbox, requests, 4, PACE_FOREVER, &count));
    CHECK(count == 2); /* whoever replies now is too late, and harms nobody */
    for (size_t i = 0; i < count; i++) OK(pace_hub_reply(hub, &requests[i], "none", 4, NULL));
    OK(pace_key_request_async(key, NULL, NULL, 0, PACE_FOREVER, replied, &replies, drop_replies, NULL));
    inbox_free(&inbox);
    pace_mailbox_free(mute);
    pace_key_free(key);
    pace_hub_free(hub); /* nobody will reply */
    UNTIL(atomic_load(&replies.counts.drops) == 1003);
    CHECK(atomic_load(&replies.counts.runs) == 1001);
    UNTIL(atomic_load(&seen.counts.drops) == 1);
}

static void together(pace_pool_t *pool) {
    pace_hub_t *hub, *other;
    pace_key_t *debit, *credit, *foreign;
    pace_mailbox_t *debits, *credits;
    pace_message_t messages[4];
    pace_receipt_t told = receipt();
    pace_publication_t with;
    pace_field_t field = {{"trace", 5}, {"17", 2}};
    pace_subscription_options_t how = options(0, PACE_OVERFLOW_REJECT, 2);
    pace_subscription_t grouped;
    seen_t seen = {0};
    size_t count = 0;
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_new(pool, NULL, &other));
    OK(pace_hub_mailbox(hub, "debit", NULL, &debits));
    inbox_t debits_inbox = inbox_of(pool, debits);
    OK(pace_hub_mailbox(hub, "credit.*", &how, &credits));
    inbox_t credits_inbox = inbox_of(pool, credits);
    OK(pace_hub_key(hub, "debit", &debit));
    OK(pace_hub_key(hub, "credit.eu", &credit));
    OK(pace_hub_key(other, "debit", &foreign));
    OK(pace_publication_init(&with, sizeof with));
    with.headers = &field;
    with.header_count = 1;
    pace_publish_item_t both[3] = {
        {debit, &with, "17", 2}, {credit, NULL, "17", 2}, {credit, NULL, NULL, 0}};
    OK(pace_hub_publish_all(hub, both, 2, 0, &told));
    CHECK(told.matched == 2 && told.enqueued == 2 && told.sequence == 2);
    SAYS(PACE_EFULL, pace_hub_publish_all(hub, both, 3, 0, &told)); /* one place, and two for it */
    TELLS("the mailbox of subscription");
    OK(pace_hub_publish_all(hub, both, 2, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EFULL, pace_hub_publish_all(hub, both, 2, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(inbox_take(&debits_inbox, messages, 4, 0, &count));
    CHECK(count == 2 && is(messages[0].headers[0].value, "17") && messages[1].lost_before == 0);
    OK(inbox_take(&credits_inbox, messages, 4, 0, &count));
    CHECK(count == 2 && messages[1].size == 2 && is(messages[1].key, "credit.eu"));
    OK(pace_hub_publish_all(hub, NULL, 0, 0, &told));
    CHECK(told.matched == 0);
    both[0].key = foreign;
    SAYS(PACE_EINVAL, pace_hub_publish_all(hub, both, 2, PACE_PUBLISH_NO_RECEIPT, NULL));
    TELLS("another hub");
    both[0].key = NULL;
    SAYS(PACE_EINVAL, pace_hub_publish_all(hub, both, 2, PACE_PUBLISH_NO_RECEIPT, NULL));
    TELLS("key is NULL");
    both[0].key = debit;
    /* A count that is wrong is not followed. */
    SAYS(PACE_EINVAL, pace_hub_publish_all(hub, both, SIZE_MAX, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EINVAL, pace_hub_publish_all(hub, both, 1025, PACE_PUBLISH_NO_RECEIPT, NULL));
    TELLS("count is 1025");
    how.group = "tellers";
    OK(pace_hub_subscribe(hub, "debit", &how, take, &seen, drop_seen, &grouped));
    SAYS(PACE_EINVAL, pace_hub_publish_all(hub, both, 2, PACE_PUBLISH_NO_RECEIPT, NULL));
    TELLS("a group");
    OK(pace_mailbox_unsubscribe(debits, PACE_UNSUBSCRIBE_ASYNC, NULL));
    SAYS(PACE_ETIMEDOUT, inbox_take(&credits_inbox, messages, 4, 0, &count));
    OK(pace_mailbox_unsubscribe(credits, PACE_UNSUBSCRIBE_ASYNC, NULL));
    balances(hub);
    inbox_free(&debits_inbox);
    pace_mailbox_free(debits);
    inbox_free(&credits_inbox);
    pace_mailbox_free(credits);
    pace_key_free(debit);
    pace_key_free(credit);
    pace_key_free(foreign);
    pace_hub_free(hub);
    pace_hub_free(other);
    UNTIL(atomic_load(&seen.counts.drops) == 1);
}

/* From publishing to the handler, or to who pulls: only if it was asked for. */
static void measured(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_mailbox_t *mailbox;
    pace_subscription_t plain, subscription;
    pace_subscription_options_t how = options(PACE_EXECUTION_SERIAL, PACE_OVERFLOW_REJECT, 1000);
    pace_subscription_stats_t stats = {0};
    pace_message_t messages[10];
    seen_t seen[2] = {0};
    size_t count = 0;
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_subscribe(hub, "a", &how, take, &seen[0], drop_seen, &plain));
    how.measured = true;
    OK(pace_hub_subscribe(hub, "a", &how, take, &seen[1], drop_seen, &subscription));
    OK(pace_hub_mailbox(hub, "a", &how, &mailbox));
    inbox_t inbox = inbox_of(pool, mailbox);
    CHECK(stats_of(hub, subscription).latencies == 0);
    for (int i = 0; i < 100; i++) OK(pace_hub_publish(hub, "a", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(stats_of(hub, plain).delivered == 100 && stats_of(hub, subscription).delivered == 100);
    CHECK(stats_of(hub, plain).latencies == 0 && stats_of(hub, plain).latency_max_ns == 0);
    for (int pulled = 0; pulled < 100; pulled += (int)count)
        OK(inbox_take(&inbox, messages, 10, PACE_FOREVER, &count));
    for (int i = 0; i < 2; i++) {
        stats.struct_size = sizeof stats;
        if (i == 0) OK(pace_mailbox_stats(mailbox, &stats));
        if (i == 1) stats = stats_of(hub, subscription);
        CHECK(stats.latencies == 100);
        CHECK(stats.latency_mean_ns <= stats.latency_max_ns &&
              stats.latency_p50_ns <= stats.latency_p90_ns);
        CHECK(stats.latency_p90_ns <= stats.latency_p99_ns &&
              stats.latency_p99_ns <= stats.latency_p999_ns);
        CHECK(stats.latency_p999_ns <= stats.latency_max_ns);
    }
    how.reserved3[6] = 1;
    SAYS(PACE_EINVAL, pace_hub_subscribe(hub, "a", &how, take, &seen[1], drop_seen, NULL));
    TELLS("reserved");
    inbox_free(&inbox);
    pace_mailbox_free(mailbox);
    balances(hub);
    pace_hub_free(hub);
    for (int i = 0; i < 2; i++) UNTIL(atomic_load(&seen[i].counts.drops) == 1);
}

static int32_t cannot_tell(void *data, const pace_message_t *message) {
    atomic_fetch_add(&((counts_t *)data)->runs, 1);
    return message->size > 0 ? -1 : 1;
}

static void tests_that_fail(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_mailbox_t *mailboxes[2];
    pace_message_filter_t *filter, *other;
    pace_subscription_options_t how = options(0, PACE_OVERFLOW_REJECT, 10);
    counts_t asked = {0};
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_message_filter_test(cannot_tell, &asked, count_drop, &filter));
    OK(pace_message_filter_not(filter, &other));
    how.filter = filter;
    OK(pace_hub_mailbox(hub, "a", &how, &mailboxes[0]));
    how.filter = other; /* what cannot be told is neither */
    OK(pace_hub_mailbox(hub, "a", &how, &mailboxes[1]));
    OK(pace_hub_publish(hub, "a", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_hub_publish(hub, "a", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_hub_publish(hub, "a", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    CHECK(atomic_load(&asked.runs) == 6);
    for (uint64_t i = 0; i < 2; i++) {
        pace_subscription_stats_t stats = {0};
        stats.struct_size = sizeof stats;
        OK(pace_mailbox_stats(mailboxes[i], &stats));
        CHECK(stats.waiting == 1 - i && stats.filtered == 2 + i && stats.filter_failures == 2);
        pace_mailbox_free(mailboxes[i]);
    }
    pace_message_filter_free(filter);
    pace_message_filter_free(other);
    balances(hub);
    pace_hub_free(hub);
    UNTIL(atomic_load(&asked.drops) == 1);
}

static void buried(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_mailbox_t *mailbox;
    pace_message_t messages[2];
    pace_subscription_stats_t stats = {0};
    pace_redelivered_t again = {0};
    letters_t letters = {0};
    size_t count = 0;
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_mailbox(hub, "a.*", NULL, &mailbox));
    inbox_t inbox = inbox_of(pool, mailbox);
    OK(pace_hub_publish(hub, "a.b", "one", 3, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(inbox_take(&inbox, messages, 2, PACE_FOREVER, &count));
    CHECK(count == 1);
    OK(pace_mailbox_bury(mailbox, messages, "not yet", 3));
    SAYS(PACE_EINVAL, pace_mailbox_bury(mailbox, messages, NULL, 3)); /* it was the only one */
    messages[0].key.text = "b.a";
    SAYS(PACE_EINVAL, pace_mailbox_bury(mailbox, messages, NULL, 3));
    TELLS("\"b.a\"");
    OK(pace_hub_dead_letters(hub, NULL, read_letter, &letters, &count));
    CHECK(count == 1 && letters.attempts == 3 && letters.failure && letters.pattern);
    CHECK(letters.reason == PACE_DEAD_FAILED);
    stats.struct_size = sizeof stats;
    OK(pace_mailbox_stats(mailbox, &stats));
    CHECK(stats.delivered == 0 && stats.dead_lettered == 1 && stats.number == letters.subscription);
    again.struct_size = sizeof again;
    OK(pace_hub_redeliver(hub, NULL, &again));
    CHECK(again.enqueued == 1);
    OK(inbox_take(&inbox, messages, 2, PACE_FOREVER, &count));
    CHECK(count == 1 && messages[0].size == 3 && memcmp(messages[0].payload, "one", 3) == 0);
    OK(pace_mailbox_unsubscribe(mailbox, PACE_UNSUBSCRIBE_ASYNC, NULL));
    OK(pace_mailbox_bury(mailbox, messages, NULL, 0)); /* also after its end */
    OK(pace_hub_dead_letters(hub, NULL, read_letter, &letters, &count));
    CHECK(count == 1 && letters.reason == PACE_DEAD_SUSPENDED && !letters.failure);
    balances(hub);
    inbox_free(&inbox);
    pace_mailbox_free(mailbox);
    OK(pace_hub_redeliver(hub, NULL, &again));
    CHECK(again.orphaned == 1);
    pace_hub_free(hub);
}

static void advise(void *data, const pace_message_t *message, int32_t *outcome) {
    patient_t *patient = (patient_t *)data;
    if (message->size == 0) {
        OK(pace_message_permanent());
    } else if (message->size == 5) {
        OK(pace_message_retry_after(3600 * SECOND));
    } else {
        *outcome = 0;
    }
    atomic_fetch_add(&patient->seen.counts.runs, 1);
}

/* A handler says whether another attempt helps, and when. */
static void advised(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_subscription_t subscription;
    pace_subscription_options_t how = options(PACE_EXECUTION_CONCURRENT, PACE_OVERFLOW_REJECT, 8);
    pace_subscription_stats_t stats = {0};
    patient_t patient = {0};
    SAYS(PACE_ESTALE, pace_message_permanent());
    SAYS(PACE_ESTALE, pace_message_retry_after(1));
    OK(pace_hub_new(pool, NULL, &hub));
    how.retry.shape = PACE_RETRY_FIXED;
    how.retry.retries = 3;
    OK(pace_hub_subscribe(hub, "a", &how, advise, &patient, NULL, &subscription));
    OK(pace_hub_publish(hub, "a", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_hub_publish(hub, "a", "later", 5, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_hub_publish(hub, "a", "now", 3, PACE_PUBLISH_NO_RECEIPT, NULL));
    stats.struct_size = sizeof stats;
    do {
        OK(pace_subscription_stats(hub, subscription, &stats));
    } while (stats.delivered + stats.dead_lettered < 2 || stats.running > 0);
    CHECK(stats.delivered == 1 && stats.dead_lettered == 1 && stats.waiting == 1);
    CHECK(atomic_load(&patient.seen.counts.runs) == 3);
    pace_hub_free(hub);
}

typedef struct errors {
    size_t overflows, others;
    pace_hub_error_t last;
} errors_t;

static void note(void *data, const pace_hub_error_t *error) {
    errors_t *errors = (errors_t *)data;
    *(is(error->event, "subscription.overflow") ? &errors->overflows : &errors->others) += 1;
    CHECK(error->number > errors->last.number && error->time_ns > UINT64_C(1600000000) * SECOND);
    CHECK(error->severity >= PACE_SEVERITY_WARNING && error->message.size > 0);
    errors->last = *error;
}

/* What the host says of its own handler is in the hub's counts, errors and notices, and its suspension is the hub's. */
static void reported(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_mailbox_t *mailbox, *notices;
    pace_subscription_options_t how = options(PACE_EXECUTION_SERIAL, PACE_OVERFLOW_REJECT, 8);
    pace_message_t messages[8];
    pace_subscription_stats_t stats = {0};
    pace_hub_options_t settings;
    pace_receipt_t told = receipt();
    errors_t errors = {0};
    size_t count = 0;
    uint64_t lasts = 1;
    bool changed = false;
    OK(pace_hub_options_init(&settings, sizeof settings));
    settings.stats_interval_ns = 10 * MILLI;
    OK(pace_hub_new(pool, &settings, &hub));
    OK(pace_hub_mailbox(hub, "$SYS.hub.statistics", NULL, &notices));
    inbox_t notices_inbox = inbox_of(pool, notices);
    OK(inbox_take(&notices_inbox, messages, 1, PACE_FOREVER, &count));
    inbox_free(&notices_inbox);
    pace_mailbox_free(notices);
    how.acknowledged = true;
    how.group = "g";
    how.balance = PACE_BALANCE_BY_KEY;
    OK(pace_hub_mailbox(hub, "a", &how, &mailbox));
    inbox_t mailbox_inbox = inbox_of(pool, mailbox);
    stats.struct_size = sizeof stats;
    for (int i = 0; i < 4; i++) OK(pace_hub_publish(hub, "a", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_EINVAL, pace_mailbox_acknowledge(mailbox, 1, 0, 0));
    TELLS("acknowledged messages is 1");
    OK(inbox_take(&mailbox_inbox, messages, 8, PACE_FOREVER, &count));
    CHECK(count == 4);
    OK(pace_mailbox_stats(mailbox, &stats));
    CHECK(stats.running == 4 && stats.delivered == 0 && stats.waiting == 0);
    OK(pace_mailbox_acknowledge(mailbox, 1, 1, 0));
    OK(pace_mailbox_bury(mailbox, &messages[2], "no", 1));
    SAYS(PACE_EINVAL, pace_mailbox_acknowledge(mailbox, UINT64_MAX, 2, 0));
    OK(pace_mailbox_stats(mailbox, &stats));
    CHECK(stats.running == 1 && stats.delivered == 1 && stats.failed == 1 && stats.dead_lettered == 1);
    OK(pace_mailbox_crashed(mailbox, "broken", &lasts));
    CHECK(lasts == 0);
    SAYS(PACE_EINVAL, pace_mailbox_crashed(mailbox, "\xff", NULL));
    OK(pace_mailbox_catch_up(mailbox, &changed, NULL));
    CHECK(!changed);
    SAYS(PACE_EINVAL, pace_mailbox_suspend(mailbox, PACE_FOREVER - 1, NULL));
    OK(pace_hub_publish(hub, "a", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_mailbox_suspend(mailbox, PACE_FOREVER, &changed));
    CHECK(changed);
    OK(pace_mailbox_suspend(mailbox, 1, &changed));
    CHECK(!changed);
    OK(pace_hub_publish(hub, "a", "x", 1, 0, &told));
    CHECK(told.matched == 1 && told.dead_lettered == 1);
    OK(pace_mailbox_stats(mailbox, &stats));
    CHECK(stats.suspended && stats.restarts == 1 && stats.dead_lettered == 3 && stats.running == 1);
    SAYS(PACE_ETIMEDOUT, inbox_take(&mailbox_inbox, messages, 8, 0, &count));
    OK(pace_mailbox_resume(mailbox, &changed));
    CHECK(changed);
    OK(pace_mailbox_resume(mailbox, &changed));
    CHECK(!changed);
    OK(pace_mailbox_suspend(mailbox, MILLI, NULL));
    do {
        OK(pace_mailbox_stats(mailbox, &stats));
    } while (stats.suspended);
    OK(pace_hub_errors(hub, NULL, note, &errors, &count));
    CHECK(count == 3 && errors.others == 3 && errors.last.severity == PACE_SEVERITY_ERROR);
    OK(pace_mailbox_unsubscribe(mailbox, PACE_UNSUBSCRIBE_DRAIN, &changed));
    CHECK(!changed); /* one is in hand */
    OK(pace_mailbox_acknowledge(mailbox, 0, 0, 1));
    OK(pace_mailbox_unsubscribe(mailbox, PACE_UNSUBSCRIBE_DRAIN, &changed));
    CHECK(changed);
    balances(hub);
    inbox_free(&mailbox_inbox);
    pace_mailbox_free(mailbox);
    pace_hub_free(hub);
}

typedef struct records {
    uint64_t count, first, last, sum;
} records_t;

static void read_record(void *data, const pace_message_t *message) {
    records_t *records = (records_t *)data;
    unsigned n = 0;
    CHECK(message->size == sizeof n && message->sequence > records->last);
    memcpy(&n, message->payload, sizeof n);
    if (records->count++ == 0) records->first = message->sequence;
    records->last = message->sequence;
    records->sum += n;
}

static void read_history(void *data, const pace_history_stats_t *stats) {
    CHECK(is(stats->pattern, "a.*") && stats->recorded == 100 && stats->in_memory == 50);
    CHECK(stats->last_error.size == 0 && stats->lines_lost == 0 && stats->memory_bytes > 0);
    ++*(int *)data;
}

static void kept_and_replayed(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_hub_options_t how;
    pace_history_options_t history;
    pace_replay_t *replay;
    pace_mailbox_t *mailbox;
    pace_message_t messages[64];
    pace_replay_stats_t done = {0};
    pace_query_t query = {0};
    records_t records = {0};
    seen_t seen = {0};
    size_t count = 0;
    int histories = 0;
    bool ended = false;
    char lines[] = "/tmp/paceline-hub-XXXXXX";
    int fd = mkstemp(lines);
    CHECK(fd >= 0);
    OK(pace_hub_options_init(&how, sizeof how));
    OK(pace_history_options_init(&history, sizeof history));
    history.pattern = "a.*";
    history.keep_count = 50;
    history.lines = lines;
    how.histories = &history;
    how.history_count = 1;
    OK(pace_hub_new(pool, &how, &hub));
    for (unsigned n = 1; n <= 100; n++)
        OK(pace_hub_publish(hub, "a.b", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_hub_publish(hub, "c", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_hub_flush(hub, NULL));
    OK(pace_hub_history_stats(hub, read_history, &histories));
    CHECK(histories == 1 && lseek(fd, 0, SEEK_END) > 100 * 20);
    SAYS(PACE_EINVAL, pace_hub_query(hub, NULL, NULL, NULL, NULL)); /* not all keys are kept */
    query.struct_size = sizeof query;
    query.pattern = "a.b";
    OK(pace_hub_query(hub, &query, read_record, &records, &count));
    CHECK(count == 50 && records.count == 50 && records.first == 51 && records.last == 100);
    query.first = 60;
    query.last = 90;
    query.limit = 5;
    query.newest = true;
    memset(&records, 0, sizeof records);
    OK(pace_hub_query(hub, &query, read_record, &records, NULL));
    CHECK(records.count == 5 && records.first == 86 && records.last == 90);
    query.until_ns = 1;
    OK(pace_hub_query(hub, &query, NULL, NULL, &count));
    CHECK(count == 0);
    query.since_ns = 2; /* after its end */
    OK(pace_hub_query(hub, &query, NULL, NULL, &count));
    CHECK(count == 0);

    /* From the last ten on into what is published meanwhile, each once. */
    mailbox = replay_to(hub, "a.b", PACE_REPLAY_LAST, 10);
    inbox_t inbox = inbox_of(pool, mailbox);
    OK(pace_hub_replay(hub, "a.*", PACE_REPLAY_SEQUENCE, 91, take_replayed, &seen, drop_seen, &replay));
    for (unsigned n = 101; n <= 120; n++)
        OK(pace_hub_publish(hub, "a.b", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(atomic_load(&seen.counts.runs) == 30);
    CHECK(atomic_load(&seen.sum) == 91 * 30 + 29 * 30 / 2);
    done.struct_size = sizeof done;
    do {
        check_nap();
        OK(pace_replay_stats(replay, &done));
    } while (done.delivered < 30);
    CHECK(done.failed == 0 && done.lost == 0 && done.last == 121);
    OK(pace_replay_end(replay, PACE_UNSUBSCRIBE_SYNC, &ended));
    CHECK(ended && atomic_load(&seen.counts.drops) == 1);
    pace_replay_free(replay);
    memset(&records, 0, sizeof records);
    while (records.count < 30) {
        OK(inbox_take(&inbox, messages, 7, PACE_FOREVER, &count));
        CHECK(count >= 1 && count <= 7);
        for (size_t i = 0; i < count; i++) read_record(&records, &messages[i]);
    }
    CHECK(records.sum == 91 * 30 + 29 * 30 / 2);
    SAYS(PACE_ETIMEDOUT, inbox_take(&inbox, messages, 7, MILLI, &count));
    SAYS(PACE_EINVAL, pace_hub_replay(hub, ">", 0, 0, take_replayed, &seen, drop_seen, &replay));
    pace_hub_free(hub);
    inbox_free(&inbox);
    pace_mailbox_free(mailbox);
    pace_mailbox_free(NULL);
    pace_replay_free(NULL);
    CHECK(close(fd) == 0 && unlink(lines) == 0);

    history.keep_age_ns = UINT64_MAX - 1;
    SAYS(PACE_EINVAL, pace_hub_new(pool, &how, &hub));
    history.keep_age_ns = PACE_UNLIMITED;
    history.when_full = 2;
    SAYS(PACE_EINVAL, pace_hub_new(pool, &how, &hub));
    TELLS("when_full is 2");
    history.when_full = PACE_DISK_GIVE_UP;
    history.lines = NULL;
    history.archive = "/nowhere/at/all.sqlite";
    pace_status_t status = pace_hub_new(pool, &how, &hub);
    CHECK(status == PACE_EUNSUPPORTED || status == PACE_EOS);
    how.history_count = 32;
    SAYS(PACE_EINVAL, pace_hub_new(pool, &how, &hub));
    TELLS("history_count is 32");
    how.histories = NULL;
    SAYS(PACE_EINVAL, pace_hub_new(pool, &how, &hub));
}

/* Holds the only thread of a pool until the number is 1. */
static void hold(void *data, int32_t *status) {
    (void)status;
    UNTIL(atomic_load((atomic_uint *)data) == 1);
}

static void read_given_up(void *data, const pace_history_stats_t *stats) {
    *(uint64_t *)data = stats->given_up;
}

/* A flush does not say that it has written what was given up; and by default nothing is: who finds
 * no room makes some, though no thread of the pool is free for that. */
static void given_up(void) {
    char lines[] = "/tmp/paceline-hub-XXXXXX";
    int fd = mkstemp(lines);
    CHECK(fd >= 0 && close(fd) == 0);
    for (unsigned gives_up = 0; gives_up < 2; gives_up++) {
        pace_hub_t *hub;
        pace_hub_options_t how;
        pace_history_options_t history;
        uint64_t count = 99, told = 0;
        atomic_uint go = 0;
        pace_pool_t *pool = pool_of(1);
        OK(pace_hub_options_init(&how, sizeof how));
        OK(pace_history_options_init(&history, sizeof history));
        CHECK(history.when_full == PACE_DISK_WAIT && history.disk_wait_ns == UINT64_C(10000000000));
        history.lines = lines;
        history.commit_messages = 1;
        history.waiting_messages = 4;
        history.disk_wait_ns = MILLI;
        if (gives_up) history.when_full = PACE_DISK_GIVE_UP;
        how.histories = &history;
        how.history_count = 1;
        OK(pace_hub_new(pool, &how, &hub));
        OK(pace_pool_post(pool, PACE_LANE_NORMAL, hold, &go, NULL));
        for (unsigned n = 0; n < 4; n++)
            OK(pace_hub_publish(hub, "a", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
        for (unsigned n = 0; n < 6; n++)
            OK(pace_hub_publish(hub, "a", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
        if (gives_up) {
            SAYS(PACE_EGIVENUP, pace_hub_flush(hub, &count));
            TELLS("6 messages");
            SAYS(PACE_EGIVENUP, pace_hub_flush(hub, NULL)); /* they stay lost */
        } else {
            OK(pace_hub_flush(hub, &count));
        }
        OK(pace_hub_history_stats(hub, read_given_up, &told));
        CHECK(count == 6 * gives_up && told == count);
        atomic_store(&go, 1);
        pace_hub_free(hub);
        finish(pool);
    }
    (void)unlink(lines);
}

static void remove_archive(const char *path) {
    char beside[80];
    (void)unlink(path);
    (void)snprintf(beside, sizeof beside, "%s-wal", path);
    (void)unlink(beside);
    (void)snprintf(beside, sizeof beside, "%s-shm", path);
    (void)unlink(beside);
}

/* What a hub has in memory is exported, becomes an archive, and is what the next hub goes on with. */
static void exported(void) {
    char lines[] = "/tmp/paceline-hub-XXXXXX", again[] = "/tmp/paceline-hub-XXXXXX";
    char path[] = "/tmp/paceline-hub-XXXXXX";
    int fds[] = {mkstemp(lines), mkstemp(again), mkstemp(path)};
    for (int i = 0; i < 3; i++) CHECK(fds[i] >= 0 && close(fds[i]) == 0);
    CHECK(unlink(path) == 0);
    pace_hub_t *hub;
    pace_hub_options_t how;
    pace_history_options_t history;
    pace_query_t query = {0};
    records_t records = {0};
    uint64_t written = 0, read = 0, torn = 9;
    size_t count = 0;
    pace_pool_t *pool = pool_of(1);
    OK(pace_hub_options_init(&how, sizeof how));
    OK(pace_history_options_init(&history, sizeof history));
    how.histories = &history;
    how.history_count = 1;
    OK(pace_hub_new(pool, &how, &hub));
    for (unsigned n = 1; n <= 100; n++)
        OK(pace_hub_publish(hub, n % 2 ? "a" : "b", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    query.struct_size = sizeof query;
    query.pattern = "a";
    query.first = 11;
    query.limit = 20;
    OK(pace_hub_export(hub, &query, lines, &written));
    CHECK(written == 20);
    SAYS(PACE_EOS, pace_hub_export(hub, &query, "/nowhere/at/all", NULL));
    TELLS("/nowhere/at/all");
    SAYS(PACE_EINVAL, pace_hub_export(hub, NULL, NULL, NULL));
    OK(pace_lines_read(lines, NULL, read_record, &records, &read, &torn));
    CHECK(read == 20 && torn == 0 && records.count == 20 && records.first == 11 && records.last == 49);
    query.last = 1; /* before its first */
    OK(pace_hub_export(hub, &query, again, &written));
    OK(pace_lines_read(again, &query, NULL, NULL, &read, NULL));
    CHECK(written == 0 && read == 0);
    OK(pace_hub_export(hub, NULL, lines, NULL));
    pace_hub_free(hub);
    finish(pool);

    pace_archive_t *archive = NULL;
    SAYS(PACE_EINVAL, pace_archive_import(NULL, lines, NULL, NULL, NULL));
    history.archive = path;
    pace_status_t status = pace_archive_import(&history, lines, NULL, &read, &torn);
    if (status == PACE_EUNSUPPORTED) {
        TELLS("without the feature `archive`");
        SAYS(PACE_EUNSUPPORTED, pace_archive_open(path, &archive));
        CHECK(unlink(lines) == 0 && unlink(again) == 0);
        return;
    }
    CHECK(status == PACE_OK && read == 100 && torn == 0);
    SAYS(PACE_EINVAL, pace_archive_import(&history, lines, NULL, NULL, NULL));
    TELLS("a new one");
    SAYS(PACE_EOS, pace_archive_open("/nowhere/at/all", &archive));
    SAYS(PACE_EINVAL, pace_archive_open(path, NULL));
    OK(pace_archive_open(path, &archive));
    memset(&query, 0, sizeof query);
    query.struct_size = sizeof query;
    query.pattern = "b";
    query.limit = 7;
    query.newest = true;
    memset(&records, 0, sizeof records);
    OK(pace_archive_query(archive, &query, read_record, &records, &count));
    CHECK(count == 7 && records.first == 88 && records.last == 100 && records.sum == 7 * 94);
    OK(pace_archive_query(archive, NULL, NULL, NULL, &count));
    CHECK(count == 100);
    query.newest = false;
    OK(pace_archive_export(archive, &query, again, &written));
    memset(&records, 0, sizeof records);
    OK(pace_lines_read(again, NULL, read_record, &records, NULL, NULL));
    CHECK(written == 7 && records.count == 7 && records.first == 2 && records.last == 14);
    SAYS(PACE_EINVAL, pace_archive_query(NULL, NULL, NULL, NULL, NULL));
    SAYS(PACE_EINVAL, pace_archive_export(NULL, NULL, again, NULL));
    pace_archive_free(archive);
    pace_archive_free(NULL);

    pool = pool_of(1);
    OK(pace_hub_new(pool, &how, &hub));
    unsigned n = 101;
    OK(pace_hub_publish(hub, "a", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    memset(&records, 0, sizeof records);
    OK(pace_hub_query(hub, NULL, read_record, &records, &count));
    CHECK(count == 101 && records.last == 101);
    pace_hub_free(hub);
    finish(pool);
    remove_archive(path);
    CHECK(unlink(lines) == 0 && unlink(again) == 0);
}

/* What was published before a hub's end is there for the next, if this library has archives. */
static void archived(void) {
    char path[] = "/tmp/paceline-hub-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    for (unsigned round = 0; round < 2; round++) {
        pace_hub_t *hub;
        pace_hub_options_t how;
        pace_history_options_t history;
        size_t count = 0;
        pace_pool_t *pool = pool_of(1);
        OK(pace_hub_options_init(&how, sizeof how));
        OK(pace_history_options_init(&history, sizeof history));
        history.archive = path;
        history.process_only = true;
        how.histories = &history;
        how.history_count = 1;
        pace_status_t status = pace_hub_new(pool, &how, &hub);
        if (status == PACE_EUNSUPPORTED) TELLS("without `archive`");
        if (status == PACE_OK) {
            OK(pace_hub_query(hub, NULL, NULL, NULL, &count));
            CHECK(count == round * 100);
            for (unsigned n = 0; n < 100; n++)
                OK(pace_hub_publish(hub, "a", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
            OK(pace_hub_flush(hub, NULL));
            OK(pace_hub_close_histories(hub));
            SAYS(PACE_ESHUTDOWN, pace_hub_publish(hub, "a", "", 0, PACE_PUBLISH_NO_RECEIPT, NULL));
            pace_hub_free(hub);
        } else {
            CHECK(status == PACE_EUNSUPPORTED);
        }
        finish(pool);
    }
    remove_archive(path);
}

/* What a hub tells of itself comes as messages, and what is bad stays to be asked for. */
static void told_of_itself(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_hub_options_t how;
    pace_mailbox_t *notices, *full;
    pace_subscription_options_t one = options(PACE_EXECUTION_SERIAL, PACE_OVERFLOW_REJECT, 1);
    pace_message_t message;
    pace_error_filter_t filter = {0};
    errors_t errors = {0};
    char origin[64], text[256] = "";
    pace_subscription_stats_t stats = {0};
    size_t count = 0;
    OK(pace_hub_options_init(&how, sizeof how));
    how.errors = 2;
    how.notice_interval_ns = MILLI;
    OK(pace_hub_new(pool, &how, &hub));
    OK(pace_hub_mailbox(hub, "$SYS.>", NULL, &notices));
    inbox_t inbox = inbox_of(pool, notices);
    OK(pace_hub_mailbox(hub, "a", &one, &full));
    OK(inbox_take(&inbox, &message, 1, PACE_FOREVER, &count));
    CHECK(is(message.key, "$SYS.subscription.started"));
    for (int i = 0; i < 2; i++)
        SAYS(i ? PACE_EFULL : PACE_OK,
             pace_hub_publish(hub, "a", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(inbox_take(&inbox, &message, 1, PACE_FOREVER, &count));
    CHECK(is(message.key, "$SYS.subscription.overflow") && message.size < sizeof text);
    memcpy(text, message.payload, message.size);
    CHECK(strstr(text, "\"severity\":\"warning\"") != NULL && strstr(text, "\"count\":1") != NULL);
    OK(pace_hub_errors(hub, NULL, note, &errors, &count));
    CHECK(count == 1 && errors.overflows == 1 && errors.others == 0);
    CHECK(errors.last.number == 1 && errors.last.severity == PACE_SEVERITY_WARNING);
    stats.struct_size = sizeof stats;
    OK(pace_mailbox_stats(full, &stats));
    (void)snprintf(origin, sizeof origin, "subscription %llu ", (unsigned long long)stats.number);
    filter.struct_size = sizeof filter;
    filter.event = "subscription.";
    filter.origin = origin;
    filter.severity = PACE_SEVERITY_WARNING;
    OK(pace_hub_errors(hub, &filter, NULL, NULL, &count));
    CHECK(count == 1);
    filter.after = 1;
    OK(pace_hub_errors(hub, &filter, NULL, NULL, &count));
    CHECK(count == 0);
    filter.after = 0;
    filter.severity = PACE_SEVERITY_ERROR;
    OK(pace_hub_errors(hub, &filter, NULL, NULL, &count));
    CHECK(count == 0);
    filter.severity = 3;
    SAYS(PACE_EINVAL, pace_hub_errors(hub, &filter, NULL, NULL, &count));
    TELLS("severity is 3");
    pace_mailbox_free(full);
    inbox_free(&inbox);
    pace_mailbox_free(notices);
    pace_hub_free(hub);
    how.errors = 1000001;
    SAYS(PACE_EINVAL, pace_hub_new(pool, &how, &hub));
    TELLS("errors is 1000001");
    how.errors = 0;
    how.notice_interval_ns = 1;
    SAYS(PACE_EINVAL, pace_hub_new(pool, &how, &hub));
    TELLS("notice_interval is 1ns");
}

static void figures(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_hub_options_t how;
    pace_workers_config_t config;
    pace_workers_t *workers;
    pace_mailbox_t *mailbox;
    pace_hub_stats_t stats = {0};
    char text[65536];
    size_t needed = 0;
    OK(pace_hub_options_init(&how, sizeof how));
    how.name = "figures";
    how.count_keys = 1;
    OK(pace_hub_new(pool, &how, &hub));
    OK(pace_hub_mailbox(hub, "a.*", NULL, &mailbox));
    for (int i = 0; i < 3; i++) OK(pace_hub_publish(hub, "a.b", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_hub_publish(hub, "a.c", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    stats.struct_size = sizeof stats;
    OK(pace_hub_stats(hub, &stats));
    CHECK(stats.keys == 2 && stats.subscriptions == 1 && stats.suspended == 0);
    CHECK(stats.publishers == 0 && stats.dead_letters == 0 && stats.errors == 0);
    SAYS(PACE_EFULL, pace_hub_metrics(hub, PACE_METRICS_HUB, NULL, 0, &needed));
    CHECK(needed > 100 && needed < sizeof text);
    OK(pace_hub_metrics(hub, PACE_METRICS_HUB, text, sizeof text, &needed));
    CHECK(needed == strlen(text) + 1 && strstr(text, "\"published\":4") != NULL);
    /* Exactly as much as it needs, and one byte less. */
    size_t size = needed;
    text[size - 1] = text[size] = 'x';
    SAYS(PACE_EFULL, pace_hub_metrics(hub, PACE_METRICS_HUB, text, size - 1, &needed));
    CHECK(needed == size && text[size - 1] == 'x');
    OK(pace_hub_metrics(hub, PACE_METRICS_HUB, text, size, &needed));
    CHECK(text[size - 1] == 0 && text[size] == 'x');
    CHECK(strstr(text, "\"pattern\":\"a.*\"") != NULL);
    CHECK(strstr(text, "{\"key\":\"a.b\",\"published\":3}") != NULL);
    OK(pace_hub_metrics(hub, PACE_METRICS_PROMETHEUS, text, sizeof text, &needed));
    CHECK(strstr(text, "\npaceline_hub_published_total{hub=\"figures\"} 4") != NULL);
    CHECK(strstr(text, "\npaceline_hub_waiting{hub=\"figures\"} 4") != NULL);
    OK(pace_hub_metrics(hub, PACE_METRICS_JSON, text, sizeof text, &needed));
    CHECK(strstr(text, "paceline_hub_key_published") != NULL);
    SAYS(PACE_EINVAL, pace_hub_metrics(hub, 4, text, sizeof text, &needed));
    TELLS("format is 4");
    OK(pace_workers_config_init(&config, sizeof config));
    OK(pace_workers_new(pool, &config, &workers));
    SAYS(PACE_EINVAL, pace_hub_share_metrics(hub, workers));
    TELLS("metrics is false");
    pace_workers_free(workers);
    config.metrics = true;
    OK(pace_workers_new(pool, &config, &workers));
    OK(pace_hub_share_metrics(hub, workers));
    OK(pace_workers_metrics(workers, PACE_METRICS_PROMETHEUS, text, sizeof text, &needed));
    CHECK(strstr(text, "\npaceline_hub_published_total{hub=\"figures\"} 4") != NULL);
    pace_mailbox_free(mailbox);
    pace_hub_free(hub);
    OK(pace_workers_metrics(workers, PACE_METRICS_PROMETHEUS, text, sizeof text, &needed));
    CHECK(strstr(text, "paceline_hub_published") == NULL);
    pace_workers_free(workers);
}

typedef struct crossings {
    counts_t counts;
    atomic_int crossed[2], back[2];
} crossings_t;

static void crossed(void *data, const pace_crossing_t *crossing) {
    crossings_t *seen = (crossings_t *)data;
    CHECK(crossing->threshold < 2 && crossing->message.size > 0);
    CHECK(crossing->severity == (crossing->crossed ? PACE_SEVERITY_ERROR : PACE_SEVERITY_INFO));
    CHECK((crossing->figure > 9) == (crossing->crossed == (crossing->threshold == 0)));
    atomic_int *which = crossing->crossed ? seen->crossed : seen->back;
    atomic_fetch_add(&which[crossing->threshold], 1);
}

static void drop_crossings(void *data) { count_drop(&((crossings_t *)data)->counts); }

static void thresholds(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_watch_t *watch;
    pace_mailbox_t *mailbox, *notices;
    pace_threshold_t two[2];
    pace_label_t label = {"hub", "main"};
    pace_watch_stats_t stats = {0};
    pace_message_t messages[20];
    crossings_t seen = {0};
    size_t count = 0;
    for (int i = 0; i < 2; i++) {
        OK(pace_threshold_init(&two[i], sizeof two[i]));
        two[i].metric = "paceline_hub_waiting";
        two[i].severity = PACE_SEVERITY_ERROR;
    }
    two[0].limit = 9.5;
    two[0].labels = &label;
    two[0].label_count = 1;
    two[1].below = true;
    two[1].limit = 5;
    two[1].back_at = 9.5;
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_hub_mailbox(hub, "$SYS.threshold.*", NULL, &notices));
    inbox_t notices_inbox = inbox_of(pool, notices);
    OK(pace_hub_mailbox(hub, "a", NULL, &mailbox));
    inbox_t mailbox_inbox = inbox_of(pool, mailbox);
    OK(pace_hub_watch(hub, NULL, MILLI, two, 2, crossed, &seen, drop_crossings, &watch));
    UNTIL(atomic_load(&seen.crossed[1]) == 1);
    for (int i = 0; i < 20; i++) OK(pace_hub_publish(hub, "a", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(atomic_load(&seen.back[1]) == 1 && atomic_load(&seen.crossed[0]) == 1);
    stats.struct_size = sizeof stats;
    OK(pace_watch_stats(watch, &stats));
    CHECK(stats.looks >= 1 && stats.crossed == 1);
    OK(inbox_take(&notices_inbox, messages, 20, PACE_FOREVER, &count));
    CHECK(is(messages[0].key, "$SYS.threshold.crossed"));
    for (size_t left = 20; left > 0; left -= count)
        OK(inbox_take(&mailbox_inbox, messages, left, PACE_FOREVER, &count));
    inbox_free(&notices_inbox);
    pace_mailbox_free(notices);
    UNTIL(atomic_load(&seen.back[0]) == 1 && atomic_load(&seen.crossed[1]) == 2);
    CHECK(atomic_load(&seen.counts.drops) == 0);
    pace_watch_free(watch);
    UNTIL(atomic_load(&seen.counts.drops) == 1);
    two[1].part = 3;
    SAYS(PACE_EINVAL, pace_hub_watch(hub, NULL, MILLI, two, 2, crossed, &seen, drop_crossings, &watch));
    TELLS("part is 3");
    two[1].part = PACE_THRESHOLD_QUANTILE;
    two[1].quantile = 1.5;
    SAYS(PACE_EINVAL, pace_hub_watch(hub, NULL, MILLI, two, 2, crossed, &seen, drop_crossings, &watch));
    TELLS("quantile of a threshold is 1.5");
    SAYS(PACE_EINVAL, pace_hub_watch(hub, NULL, MILLI, two, 0, crossed, &seen, drop_crossings, &watch));
    TELLS("count is 0");
    SAYS(PACE_EINVAL, pace_hub_watch(hub, NULL, 0, two, 1, crossed, &seen, drop_crossings, &watch));
    TELLS("period of a watch");
    two[0].metric = NULL;
    SAYS(PACE_EINVAL, pace_hub_watch(hub, NULL, MILLI, two, 1, NULL, NULL, NULL, &watch));
    TELLS("metric is NULL");
    CHECK(atomic_load(&seen.counts.drops) == 1);
    inbox_free(&mailbox_inbox);
    pace_mailbox_free(mailbox);
    pace_hub_free(hub);
}

typedef struct asker {
    pace_key_t *key;
    pace_cq_t *cq;
    atomic_uint answered;
} asker_t;

static void *ask_and_wait(void *data) {
    asker_t *asker = (asker_t *)data;
    pace_cq_entry_t entries[5];
    size_t count = 0;
    for (uint64_t n = 0; n < 200; n++)
        OK(pace_cq_request(asker->cq, asker->key, NULL, &n, sizeof n, PACE_FOREVER, n, NULL));
    while (atomic_load(&asker->answered) < 800) {
        pace_status_t status = pace_cq_wait(asker->cq, entries, 5, MILLI, &count);
        CHECK(status == PACE_OK || status == PACE_ETIMEDOUT);
        for (size_t i = 0; status == PACE_OK && i < count; i++) {
            uint64_t n = 0;
            CHECK(entries[i].status == PACE_OK && entries[i].size == sizeof n);
            memcpy(&n, entries[i].bytes, sizeof n);
            CHECK(n == entries[i].tag && entries[i].detail.message.sequence > 0);
            atomic_fetch_add(&asker->answered, 1);
        }
        if (status == PACE_OK) OK(pace_cq_done(asker->cq, entries, count));
    }
    return NULL;
}

static void echo_back(void *data, const pace_message_t *message, int32_t *outcome) {
    OK(pace_hub_reply((pace_hub_t *)data, message, message->payload, message->size, NULL));
    *outcome = 0;
}

static void replies_are_brought(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_cq_t *cq, *others;
    pace_key_t *key, *nobody, *silent;
    pace_subscription_t subscription;
    pace_mailbox_t *mailbox;
    pace_asked_t asked;
    pace_cq_entry_t entries[8];
    pthread_t threads[4];
    size_t count = 0;
    bool given_up = false;
    int32_t fd = -1;
    OK(pace_hub_new(pool, NULL, &hub));
    OK(pace_cq_new(pool, NULL, &cq));
    OK(pace_hub_key(hub, "q", &key));
    OK(pace_hub_key(hub, "none", &nobody));
    OK(pace_hub_key(hub, "s", &silent));
    OK(pace_hub_subscribe(hub, "q", NULL, echo_back, hub, NULL, &subscription));
    OK(pace_hub_mailbox(hub, "s", NULL, &mailbox));
    SAYS(PACE_ETIMEDOUT, pace_cq_wait(cq, entries, 8, 0, &count));
    SAYS(PACE_EINVAL, pace_cq_wait(cq, entries, 0, 0, &count));
    SAYS(PACE_ENORESPONDERS, pace_cq_request(cq, nobody, NULL, NULL, 0, SECOND, 1, NULL));
    OK(pace_cq_fd(cq, &fd));
    CHECK(poll(&(struct pollfd){fd, POLLIN, 0}, 1, 0) == 0);

    /* Answered, too late, and given up: an entry each; a refused one has none. */
    OK(pace_cq_request(cq, key, NULL, "a", 1, PACE_FOREVER, 2, NULL));
    CHECK(poll(&(struct pollfd){fd, POLLIN, 0}, 1, -1) == 1);
    OK(pace_cq_wait(cq, entries, 8, 0, &count));
    CHECK(count == 1 && entries[0].tag == 2 && entries[0].status == PACE_OK && entries[0].size == 1);
    OK(pace_cq_done(cq, entries, count));
    CHECK(poll(&(struct pollfd){fd, POLLIN, 0}, 1, 0) == 0);
    OK(pace_cq_request(cq, silent, NULL, "a", 1, 1, 3, &asked));
    OK(pace_cq_wait(cq, entries, 8, PACE_FOREVER, &count));
    CHECK(count == 1 && entries[0].tag == 3 && entries[0].status == PACE_ETIMEDOUT &&
          entries[0].size == 0);
    OK(pace_hub_give_up(hub, asked, &given_up));
    CHECK(!given_up);
    OK(pace_cq_request(cq, silent, NULL, "a", 1, PACE_FOREVER, 4, &asked));
    OK(pace_hub_give_up(hub, asked, &given_up));
    CHECK(given_up);
    OK(pace_cq_wait(cq, entries, 8, PACE_FOREVER, &count));
    CHECK(count == 1 && entries[0].tag == 4 && entries[0].status == PACE_ECANCELLED);
    SAYS(PACE_ETIMEDOUT, pace_cq_wait(cq, entries, 8, 0, &count));

    /* Entries of those that have a reply and of those that have none, in the order of their ends. */
    for (uint64_t n = 10; n < 14; n++) {
        pace_key_t *at = n % 2 == 0 ? key : silent;
        OK(pace_cq_request(cq, at, NULL, &n, sizeof n, n % 2 == 0 ? PACE_FOREVER : 1, n, NULL));
    }
    check_nap();
    for (size_t got = 0; got < 4; got += count) {
        OK(pace_cq_wait(cq, entries, 8, PACE_FOREVER, &count));
        for (size_t i = 0; i < count; i++) {
            CHECK((entries[i].status == PACE_OK) == (entries[i].tag % 2 == 0));
            CHECK(entries[i].tag % 2 == 1 || memcmp(entries[i].bytes, &entries[i].tag, 8) == 0);
        }
        OK(pace_cq_done(cq, entries, count));
    }

    /* Many at once. */
    asker_t asker = {key, cq, 0};
    for (size_t i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, ask_and_wait, &asker) == 0);
    for (size_t i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);

    /* What is open when nobody can pull any more, or when the hub goes. */
    OK(pace_cq_new(pool, NULL, &others));
    OK(pace_cq_request(others, silent, NULL, "a", 1, PACE_FOREVER, 5, NULL));
    pace_cq_free(others);
    OK(pace_cq_request(cq, silent, NULL, "a", 1, PACE_FOREVER, 6, NULL));
    pace_mailbox_free(mailbox);
    pace_key_free(key);
    pace_key_free(nobody);
    pace_key_free(silent);
    pace_hub_free(hub);
    OK(pace_cq_wait(cq, entries, 8, PACE_FOREVER, &count));
    CHECK(count == 1 && entries[0].tag == 6 && entries[0].status == PACE_ECANCELLED);
    pace_cq_free(cq);
}

/* It fails at what is less than `last`, and as long as it is held. */
static void fail_at_first(void *data, const pace_message_t *message, int32_t *outcome) {
    seen_t *seen = (seen_t *)data;
    unsigned value = 0;
    CHECK(message->subscription.id == 0 && message->size == sizeof value);
    memcpy(&value, message->payload, sizeof value);
    atomic_fetch_add(&seen->counts.runs, 1);
    if (value >= atomic_load(&seen->last) && !atomic_load(&seen->hold)) {
        atomic_fetch_add(&seen->sum, value);
        *outcome = 0;
    } else if (message->attempt == 2) {
        *outcome = PACE_EPANIC;
    }
}

static void told_of_restart(void *data, pace_text_t failure, uint64_t count) {
    (void)failure;
    atomic_store(&((seen_t *)data)->lost, count);
}

static pace_replay_stats_t mailbox_stats_of(pace_mailbox_t *mailbox) {
    pace_replay_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_replay_mailbox_stats(mailbox, &stats));
    const uint64_t ended = stats.delivered + stats.failed + stats.dead_lettered + stats.discarded;
    CHECK(stats.matched == ended + stats.waiting + stats.running);
    return stats;
}

static void expect_letter(void *data, const pace_dead_letter_t *letter) {
    const pace_replay_stats_t *stats = (const pace_replay_stats_t *)data;
    CHECK(letter->subscription == stats->number && letter->pattern.size == 1);
    CHECK(letter->reason == PACE_DEAD_FAILED && letter->attempts == 3);
    CHECK(letter->message.sequence == 2 && *(const unsigned *)letter->message.payload == 2);
    CHECK(letter->failure.size == 2 && memcmp(letter->failure.text, "no", 2) == 0);
}

static void *take_until_it_ends(void *data) {
    pace_message_t message;
    size_t count = 0;
    SAYS(PACE_ESTALE, inbox_take((inbox_t *)data, &message, 1, PACE_FOREVER, &count));
    return NULL;
}

/* A replay that is pulled is waited for with poll(), and what was pulled is buried, and pulled again. */
static void pulled_replays(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_hub_options_t how;
    pace_history_options_t history;
    pace_mailbox_t *mailbox;
    pace_replay_stats_t stats;
    pace_redelivered_t again = {0};
    pace_message_t messages[4], copy;
    pthread_t thread;
    size_t count = 0;
    unsigned n;
    int32_t fd = -1;
    OK(pace_hub_options_init(&how, sizeof how));
    OK(pace_history_options_init(&history, sizeof history));
    how.histories = &history;
    how.history_count = 1;
    OK(pace_hub_new(pool, &how, &hub));
    for (n = 1; n <= 3; n++) OK(pace_hub_publish(hub, "a", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    mailbox = replay_to(hub, "a", PACE_REPLAY_BEGINNING, 0);
    inbox_t inbox = inbox_of(pool, mailbox);
    OK(pace_cq_fd(inbox.cq, &fd));
    CHECK(readable(fd));
    SAYS(PACE_EINVAL, pace_mailbox_bury(mailbox, NULL, NULL, 1));
    OK(inbox_take(&inbox, messages, 2, 0, &count));
    CHECK(count == 2 && readable(fd));
    /* Of another key, or more than were pulled: they cannot have come from here. */
    copy = messages[1];
    copy.key.text = "b";
    SAYS(PACE_EINVAL, pace_mailbox_bury(mailbox, &copy, NULL, 1));
    copy = messages[1];
    OK(pace_mailbox_bury(mailbox, &copy, "no", 3));
    stats = mailbox_stats_of(mailbox);
    CHECK(stats.matched == 2 && stats.delivered == 1 && stats.dead_lettered == 1 && stats.last == 2);
    OK(pace_hub_dead_letters(hub, NULL, expect_letter, &stats, &count));
    CHECK(count == 1);
    OK(pace_mailbox_bury(mailbox, &messages[0], NULL, 0));
    SAYS(PACE_EINVAL, pace_mailbox_bury(mailbox, &messages[0], NULL, 0));
    OK(inbox_take(&inbox, messages, 4, 0, &count));
    CHECK(count == 1 && messages[0].sequence == 3 && !readable(fd));
    /* What comes makes it readable, and a pull that finds nothing unreadable. */
    OK(pace_hub_publish(hub, "b", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_hub_publish(hub, "a", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    CHECK(readable(fd));
    OK(inbox_take(&inbox, messages, 1, PACE_FOREVER, &count));
    CHECK(messages[0].sequence == 5 && mailbox_stats_of(mailbox).last == 5);
    SAYS(PACE_ETIMEDOUT, inbox_take(&inbox, messages, 1, 0, &count));
    CHECK(!readable(fd));
    again.struct_size = sizeof again;
    OK(pace_hub_redeliver(hub, NULL, &again));
    CHECK(again.enqueued == 2 && readable(fd) && mailbox_stats_of(mailbox).waiting == 2);
    OK(inbox_take(&inbox, messages, 1, 0, &count));
    CHECK(messages[0].sequence == 2 && readable(fd));
    OK(pace_mailbox_bury(mailbox, &messages[0], "no", 3));
    OK(inbox_take(&inbox, messages, 4, PACE_FOREVER, &count));
    CHECK(count == 1 && messages[0].sequence == 1 && !readable(fd));
    stats = mailbox_stats_of(mailbox);
    CHECK(stats.redelivered == 2 && stats.delivered == 3 && stats.dead_lettered == 3 && stats.last == 5);
    /* Its end is heard of by who waits; what died is nobody's then. */
    CHECK(pthread_create(&thread, NULL, take_until_it_ends, &inbox) == 0);
    OK(pace_mailbox_unsubscribe(mailbox, PACE_UNSUBSCRIBE_ASYNC, NULL));
    CHECK(pthread_join(thread, NULL) == 0);
    SAYS(PACE_ESTALE, inbox_take(&inbox, messages, 1, 0, &count));
    OK(pace_hub_redeliver(hub, NULL, &again));
    CHECK(again.enqueued == 0 && again.orphaned == 1);
    inbox_free(&inbox);
    pace_mailbox_free(mailbox);
    /* A descriptor that is asked for late tells of what came again before, and of the end. */
    mailbox = replay_to(hub, "a", PACE_REPLAY_LAST, 1);
    inbox = inbox_of(pool, mailbox);
    OK(inbox_take(&inbox, messages, 1, PACE_FOREVER, &count));
    OK(pace_mailbox_bury(mailbox, &messages[0], NULL, 1));
    OK(pace_hub_redeliver(hub, NULL, &again));
    CHECK(again.enqueued == 1);
    OK(pace_cq_fd(inbox.cq, &fd));
    CHECK(readable(fd));
    inbox_free(&inbox);
    pace_mailbox_free(mailbox);
    mailbox = replay_to(hub, "a", PACE_REPLAY_NOW, 0);
    inbox = inbox_of(pool, mailbox);
    OK(pace_mailbox_unsubscribe(mailbox, PACE_UNSUBSCRIBE_ASYNC, NULL));
    OK(pace_cq_fd(inbox.cq, &fd));
    CHECK(readable(fd));
    inbox_free(&inbox);
    pace_mailbox_free(mailbox);
    pace_hub_free(hub);
}

/* Goal: the hub knows what a host's own handler does with what is replayed to it. Method: messages are acknowledged,
 * buried and given up; restarts and suspensions are told; while it is suspended nothing comes, and nothing is lost. */
static void acknowledged_replays(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_hub_options_t how;
    pace_history_options_t history;
    pace_replay_options_t options;
    pace_mailbox_t *mailbox;
    pace_replay_stats_t stats;
    pace_subscription_stats_t others = {0};
    uint64_t lasts = 1;
    pace_message_t messages[8];
    errors_t errors = {0};
    size_t count = 0;
    bool changed = false;
    OK(pace_hub_options_init(&how, sizeof how));
    OK(pace_history_options_init(&history, sizeof history));
    OK(pace_replay_options_init(&options, sizeof options));
    how.histories = &history;
    how.history_count = 1;
    OK(pace_hub_new(pool, &how, &hub));
    for (int i = 0; i < 4; i++) OK(pace_hub_publish(hub, "a", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    options.acknowledged = true;
    options.on_exhausted = PACE_ON_EXHAUSTED_DISCARD;
    SAYS(PACE_EINVAL, pace_hub_replay_mailbox(hub, "a", &options, &mailbox));
    options.on_exhausted = PACE_ON_EXHAUSTED_DEAD_LETTER;
    options.restarts = 1;
    options.within_ns = 3600 * SECOND;
    options.suspension_ns = PACE_FOREVER;
    options.acknowledged = false;
    SAYS(PACE_EINVAL, pace_hub_replay_mailbox(hub, "a", &options, &mailbox));
    options.acknowledged = true;
    OK(pace_hub_replay_mailbox(hub, "a", &options, &mailbox));
    others.struct_size = sizeof others;
    SAYS(PACE_EINVAL, pace_mailbox_stats(mailbox, &others));
    inbox_t inbox = inbox_of(pool, mailbox);
    OK(inbox_take(&inbox, messages, 8, PACE_FOREVER, &count));
    CHECK(count == 4);
    stats = mailbox_stats_of(mailbox);
    CHECK(stats.running == 4 && stats.delivered == 0 && stats.last == 0);
    SAYS(PACE_EINVAL, pace_mailbox_acknowledge(mailbox, 3, 1, 1));
    OK(pace_mailbox_acknowledge(mailbox, 1, 1, 0));
    OK(pace_mailbox_bury(mailbox, &messages[3], "no", 1));
    SAYS(PACE_EINVAL, pace_mailbox_bury(mailbox, &messages[0], "no", 1));
    stats = mailbox_stats_of(mailbox);
    CHECK(stats.delivered == 1 && stats.failed == 1 && stats.dead_lettered == 1 && stats.running == 1);
    CHECK(stats.last == 4);
    OK(pace_mailbox_crashed(mailbox, "broken", &lasts));
    CHECK(lasts == 0);
    /* Another crash is too much: what it has taken stays with the host, and nothing comes. */
    OK(pace_mailbox_crashed(mailbox, "broken", &lasts));
    CHECK(lasts == PACE_FOREVER);
    OK(pace_mailbox_suspend(mailbox, PACE_FOREVER, &changed));
    CHECK(!changed);
    OK(pace_mailbox_catch_up(mailbox, NULL, &changed));
    CHECK(changed);
    OK(pace_hub_publish(hub, "a", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    SAYS(PACE_ETIMEDOUT, inbox_take(&inbox, messages, 8, 0, &count));
    stats = mailbox_stats_of(mailbox);
    CHECK(stats.suspended && stats.restarts == 1 && stats.matched == 4);
    OK(pace_mailbox_resume(mailbox, &changed));
    CHECK(changed);
    OK(pace_mailbox_catch_up(mailbox, &changed, NULL));
    CHECK(changed);
    OK(inbox_take(&inbox, messages, 8, PACE_FOREVER, &count));
    CHECK(count == 1 && messages[0].sequence > 4);
    OK(pace_mailbox_suspend(mailbox, MILLI, NULL));
    while (mailbox_stats_of(mailbox).suspended) OK(pace_hub_errors(hub, NULL, NULL, NULL, &count));
    OK(pace_hub_errors(hub, NULL, note, &errors, &count));
    CHECK(count == 3 && errors.others == 3 && errors.last.severity == PACE_SEVERITY_ERROR);
    OK(pace_mailbox_unsubscribe(mailbox, PACE_UNSUBSCRIBE_DRAIN, &changed));
    CHECK(!changed); /* two are in hand */
    OK(pace_mailbox_acknowledge(mailbox, 1, 0, 0));
    inbox_free(&inbox);
    pace_mailbox_free(mailbox);
    balances(hub);
    pace_hub_free(hub);
}

static pace_replay_stats_t replay_stats_of(pace_replay_t *replay) {
    pace_replay_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_replay_stats(replay, &stats));
    CHECK(stats.matched == stats.delivered + stats.failed + stats.dead_lettered + stats.discarded +
                               stats.waiting + stats.running);
    return stats;
}

static void replays_are_supervised(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_hub_options_t how;
    pace_history_options_t history;
    pace_replay_options_t options;
    pace_supervisor_t *supervisor;
    pace_replay_t *replay, *other;
    pace_dead_filter_t letters;
    pace_redelivered_t again = {0};
    seen_t seen = {0}, others = {0};
    size_t count = 0;
    bool is = true;
    OK(pace_hub_options_init(&how, sizeof how));
    OK(pace_history_options_init(&history, sizeof history));
    how.histories = &history;
    how.history_count = 1;
    OK(pace_hub_new(pool, &how, &hub));
    OK(pace_supervisor_new(PACE_RESTART_ONE_FOR_ONE, 2, 3600 * SECOND, PACE_FOREVER, 0, &supervisor));
    for (unsigned n = 1; n <= 10; n++)
        OK(pace_hub_publish(hub, "a", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));

    /* Messages 2 and 3 are tried twice and die; at 4 it is suspended, and another with it. */
    OK(pace_replay_options_init(&options, sizeof options));
    CHECK(options.from == PACE_REPLAY_BEGINNING && options.on_restart == NULL);
    options.from = PACE_REPLAY_SEQUENCE;
    options.at = 2;
    options.retry.shape = PACE_RETRY_FIXED;
    options.retry.retries = 1;
    options.retry.first_ns = MILLI;
    options.supervisor = supervisor;
    options.on_restart = told_of_restart;
    atomic_store(&seen.last, 5);
    atomic_store(&seen.hold, true);
    OK(pace_hub_replay_supervised(hub, "a", &options, fail_at_first, &seen, drop_seen, &replay));
    UNTIL(replay_stats_of(replay).suspended);
    CHECK(atomic_load(&seen.counts.runs) == 6 && atomic_load(&seen.lost) == 2);
    options.on_restart = NULL;
    options.from = PACE_REPLAY_NOW;
    OK(pace_hub_replay_supervised(hub, "a", &options, fail_at_first, &others, drop_seen, &other));
    CHECK(replay_stats_of(other).suspended);
    CHECK(replay_stats_of(other).number != replay_stats_of(replay).number);
    OK(pace_supervisor_is_suspended(supervisor, &is));
    CHECK(is && replay_stats_of(replay).dead_lettered == 3);
    atomic_store(&seen.hold, false);
    OK(pace_replay_resume(other, &is));
    CHECK(is);
    OK(pace_replay_resume(replay, &is));
    CHECK(!is);
    UNTIL(replay_stats_of(replay).last == 10);
    CHECK(replay_stats_of(replay).delivered == 6 && atomic_load(&seen.sum) == 45);
    /* What it has failed at is delivered to it again, and to no other. */
    memset(&letters, 0, sizeof letters);
    letters.struct_size = sizeof letters;
    letters.subscription = replay_stats_of(replay).number;
    OK(pace_hub_dead_letters(hub, &letters, NULL, NULL, &count));
    CHECK(count == 3);
    atomic_store(&seen.last, 0);
    again.struct_size = sizeof again;
    OK(pace_hub_redeliver(hub, &letters, &again));
    CHECK(again.enqueued == 3 && again.refused == 0 && again.orphaned == 0);
    UNTIL(replay_stats_of(replay).delivered == 9);
    CHECK(replay_stats_of(replay).redelivered == 3 && replay_stats_of(replay).last == 10);
    CHECK(atomic_load(&seen.sum) == 45 + 9 && replay_stats_of(other).matched == 0);
    pace_replay_free(other);
    OK(pace_replay_end(replay, PACE_UNSUBSCRIBE_SYNC, &is));
    CHECK(is && atomic_load(&seen.counts.drops) == 1);
    pace_replay_free(replay);

    /* A factory makes its handlers, too. */
    maker_t maker = {0};
    OK(pace_replay_options_init(&options, sizeof options));
    options.from = PACE_REPLAY_NOW;
    options.factory = make;
    options.drop_handler = drop_made;
    OK(pace_hub_replay_supervised(hub, "b", &options, handle_made, &maker, drop_maker, &replay));
    OK(pace_hub_publish(hub, "b", "crash", 5, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_hub_publish(hub, "b", "good", 4, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(replay_stats_of(replay).delivered == 1);
    CHECK(atomic_load(&maker.made) == 2 && atomic_load(&maker.dropped) == 1);
    CHECK(replay_stats_of(replay).dead_lettered == 1 && replay_stats_of(replay).restarts == 1);
    OK(pace_replay_end(replay, PACE_UNSUBSCRIBE_SYNC, &is));
    CHECK(atomic_load(&maker.dropped) == 2 && atomic_load(&maker.counts.drops) == 1);
    pace_replay_free(replay);

    /* Messages that it fails at do not suspend it. NULL is dead letters; a message that is discarded is no letter. */
    atomic_store(&seen.last, 4);
    OK(pace_hub_replay_supervised(hub, "a", NULL, fail_at_first, &seen, drop_seen, &replay));
    UNTIL(replay_stats_of(replay).last == 10);
    CHECK(replay_stats_of(replay).dead_lettered == 3 && !replay_stats_of(replay).suspended);
    pace_replay_free(replay);
    OK(pace_replay_options_init(&options, sizeof options));
    options.on_exhausted = PACE_ON_EXHAUSTED_DISCARD;
    options.restarts = 1;
    options.within_ns = 3600 * SECOND;
    options.suspension_ns = PACE_FOREVER;
    options.retry.shape = PACE_RETRY_FIXED;
    options.retry.retries = 1;
    options.retry.first_ns = MILLI;
    OK(pace_hub_replay_supervised(hub, "a", &options, fail_at_first, &seen, drop_seen, &replay));
    UNTIL(replay_stats_of(replay).suspended);
    CHECK(replay_stats_of(replay).failed == 1 && replay_stats_of(replay).dead_lettered == 1);
    pace_replay_free(replay);
    UNTIL(atomic_load(&seen.counts.drops) == 3);

    options.restarts = 100001;
    SAYS(PACE_EINVAL,
         pace_hub_replay_supervised(hub, "a", &options, fail_at_first, &seen, drop_seen, &replay));
    options.restarts = 1;
    options.on_exhausted = 2;
    SAYS(PACE_EINVAL,
         pace_hub_replay_supervised(hub, "a", &options, fail_at_first, &seen, drop_seen, &replay));
    options.on_exhausted = PACE_ON_EXHAUSTED_DISCARD;
    options.from = 5;
    SAYS(PACE_EINVAL,
         pace_hub_replay_supervised(hub, "a", &options, fail_at_first, &seen, drop_seen, &replay));
    CHECK(atomic_load(&seen.counts.drops) == 3);
    balances(hub);
    pace_supervisor_free(supervisor);
    pace_hub_free(hub);
}

typedef struct drainer {
    pace_hub_t *hub;
    atomic_int says;
} drainer_t;

/* Inside a handler it is refused, and nothing has changed. */
static void drain_inside(void *data, const pace_message_t *message, int32_t *outcome) {
    drainer_t *drainer = (drainer_t *)data;
    uint64_t left = 77;
    pace_status_t status = pace_subscription_drain(drainer->hub, message->subscription, 0, &left);
    CHECK(left == 77);
    atomic_store(&drainer->says, status);
    *outcome = 0;
}

static void drained_until(pace_pool_t *pool) {
    pace_hub_t *hub;
    pace_subscription_t slow, quick, inside;
    pace_mailbox_t *mailbox;
    pace_report_t report = {0};
    seen_t seen = {0}, handled = {0};
    drainer_t drainer = {0};
    uint64_t left = 77;
    OK(pace_hub_new(pool, NULL, &hub));
    drainer.hub = hub;
    atomic_store(&seen.hold, true);
    OK(pace_hub_subscribe(hub, "a", NULL, take, &seen, drop_seen, &slow));
    OK(pace_hub_subscribe(hub, "b", NULL, take, &handled, drop_seen, &quick));
    for (unsigned n = 0; n < 5; n++)
        OK(pace_hub_publish(hub, "a", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(atomic_load(&seen.counts.runs) == 1);
    OK(pace_subscription_drain(hub, slow, MILLI, &left));
    CHECK(left == 4);
    SAYS(PACE_ESTALE, pace_subscription_drain(hub, slow, MILLI, &left));
    atomic_store(&seen.hold, false);
    UNTIL(atomic_load(&seen.counts.drops) == 1);
    CHECK(atomic_load(&seen.counts.runs) == 1);
    for (unsigned n = 0; n < 100; n++)
        OK(pace_hub_publish(hub, "b", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    OK(pace_subscription_drain(hub, quick, PACE_FOREVER, &left));
    CHECK(left == 0 && atomic_load(&handled.counts.runs) == 100);
    CHECK(atomic_load(&handled.counts.drops) == 1);
    OK(pace_hub_subscribe(hub, "c", NULL, drain_inside, &drainer, NULL, &inside));
    OK(pace_hub_publish(hub, "c", NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(atomic_load(&drainer.says) == PACE_EDEADLOCK);
    OK(pace_subscription_drain(hub, inside, PACE_FOREVER, NULL));
    balances(hub);

    /* What a shutdown leaves. */
    OK(pace_hub_mailbox(hub, "d", NULL, &mailbox));
    for (unsigned n = 0; n < 3; n++)
        OK(pace_hub_publish(hub, "d", &n, sizeof n, PACE_PUBLISH_NO_RECEIPT, NULL));
    report.struct_size = sizeof report;
    OK(pace_pool_shutdown(pool, PACE_FOREVER, &report));
    CHECK(report.left == 3);
    report.struct_size = offsetof(pace_report_t, left);
    report.left = 77;
    OK(pace_pool_shutdown(pool, 0, &report));
    CHECK(report.left == 77 && report.struct_size == offsetof(pace_report_t, left));
    pace_mailbox_free(mailbox);
    pace_hub_free(hub);
    pace_pool_free(pool);
}

int main(int argc, char **argv) {
    pace_pool_t *pool;
    (void)argv;
    if (argc > 1) loops = 2000;
    check_begin();
    pool = pool_of(2);
    every_execution(pool);
    what_is_full_and_what_was_lost(pool);
    blocked(pool);
    a_loop(pool);
    headers_and_failures(pool);
    those_who_leave(pool);
    drained(pool);
    pulled(pool);
    counted_and_unique(pool);
    publishers_have_limits(pool);
    supervised(pool);
    comes_back(pool);
    made_anew(pool);
    supervised_together(pool);
    filtered(pool);
    grouped(pool);
    requests(pool);
    asked_without_waiting(pool);
    together(pool);
    measured(pool);
    tests_that_fail(pool);
    buried(pool);
    reported(pool);
    advised(pool);
    kept_and_replayed(pool);
    pulled_replays(pool);
    acknowledged_replays(pool);
    replays_are_supervised(pool);
    replies_are_brought(pool);
    drained_until(pool_of(2));
    told_of_itself(pool);
    /* What reads the system's figures looks for the auxiliary vector where valgrind has put another. */
    if (argc == 1) figures(pool);
    thresholds(pool);
    what_is_bad(pool);
    finish(pool);
    given_up();
    archived();
    exported();
    return 0;
}
