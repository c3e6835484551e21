/* Calls in random order to hubs and worker pools, by several threads, from outside and inside of handlers and
 * attempts, with ids of the past and made-up ones.
 *
 *     random_hub [seed [calls]]
 *
 * Nothing crashes or hangs, every status is one, what was accepted is dropped exactly once, and the books
 * balance. The seed is printed; it makes the same calls again, but not in the same order. */
#include "check.h"

#define KEPT 16
#define THREADS 4

static pace_pool_t *pool;
static pace_hub_t *hub;
static pace_workers_t *workers;
static pace_task_type_t *kinds[2];
static pace_key_t *keys[3];
static pace_publisher_t *publisher;
static pace_supervisor_t *supervisor;
static pace_metric_t *metric;
static pace_cq_t *cq;
static counts_t counts;
static atomic_int accepted;
static atomic_ullong tasks[KEPT], subscriptions[KEPT], attempts[KEPT];
static _Thread_local uint64_t state;

static uint64_t next(void) { return check_random(&state); }

static uint64_t below(uint64_t bound) { return next() % bound; }

static uint64_t pick(atomic_ullong *from) {
    uint64_t id = atomic_load(&from[below(KEPT)]);
    switch (below(20)) {
    case 0: return next();
    case 1: return id + 1;
    case 2: return id ^ (UINT64_C(1) << below(64));
    default: return id;
    }
}

static bool any(pace_status_t status) {
    CHECK(status <= 0 && status >= PACE_EGIVENUP && status != PACE_EPANIC);
    return status == PACE_OK;
}

/* What has a `drop`. */
static bool took(pace_status_t status) {
    if (any(status)) atomic_fetch_add(&accepted, 1);
    return status == PACE_OK;
}

#define C &counts, count_drop
/* NULL now and then. */
#define MAYBE(value) (below(50) == 0 ? NULL : (value))

static void one_call(bool inside);

/* Inside of what the library calls, now and then. */
static void call_back(void) {
    if (below(4) == 0) one_call(true);
}

static void handle(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data;
    call_back();
    if (below(8) == 0) any(pace_hub_reply(hub, message, "yes", 3, NULL));
    *outcome = below(6) ? 0 : below(2) ? 7 : PACE_EPANIC;
}

static int32_t test(void *data, const pace_message_t *message) {
    (void)data, (void)message;
    return below(2) == 0;
}

static void run(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data;
    call_back();
    if (below(16) == 0) any(pace_attempt_retry_after(attempt, below(MILLI)));
    if (below(16) == 0) any(pace_attempt_permanent(attempt));
    if (below(16) == 0) any(pace_attempt_fail(attempt, MAYBE("on purpose")));
    if (below(16) == 0) any(pace_attempt_heartbeat(attempt));
    *outcome = below(4) == 0 ? 3 : 0;
}

static void told(void *data, uint32_t status) {
    (void)data, (void)status;
    call_back();
}

static void read_one(void *data, const pace_message_t *message) {
    (void)message;
    ++*(int *)data;
}

static void read_letter(void *data, const pace_dead_letter_t *letter) {
    (void)letter;
    ++*(int *)data;
}

static void read_pattern(void *data, pace_text_t pattern, size_t count) {
    (void)pattern, (void)count;
    ++*(int *)data;
}

static const char *any_key(void) {
    static const char *const texts[] = {"a.b", "a.c", "q", "a..b", "", "$SYS.x", "a.*", "b"};
    return MAYBE(texts[below(8)]);
}

static const char *any_pattern(void) {
    static const char *const texts[] = {"a.*", ">", "a.b", "q", "*", "a.>", "a b", "$SYS.>"};
    return MAYBE(texts[below(8)]);
}

static void any_filter(pace_message_filter_t **filter) {
    pace_message_filter_t *one = NULL, *two = NULL;
    OK(pace_message_filter_bytes(below(4), "x", 1, &one));
    if (took(pace_message_filter_test(MAYBE(test), C, &two)) && below(2) == 0)
        any((below(2) ? pace_message_filter_and : pace_message_filter_or)(one, two, filter));
    else if (below(2) == 0)
        any(pace_message_filter_not(two, filter));
    pace_message_filter_free(one);
    pace_message_filter_free(two);
}

static void any_settings(pace_subscription_options_t *options) {
    OK(pace_subscription_options_init(options, sizeof *options));
    options->execution = (uint32_t)below(5);
    options->overflow = (uint32_t)below(7);
    options->capacity = (uint32_t)below(9);
    options->by_priority = below(4) == 0;
    options->block_ns = below(2) ? 0 : below(MILLI);
    options->retry.shape = (uint32_t)below(5);
    options->retry.retries = (uint32_t)below(3);
    options->retry.first_ns = below(MILLI);
    options->restarts = (uint32_t)below(4);
    if (below(4) == 0) options->supervisor = supervisor;
    if (below(3) == 0) options->group = "members";
    options->balance = (uint32_t)below(5);
    if (below(8) == 0) options->lease_ns = below(4 * MILLI);
}

/* Makes a mailbox, uses it, and lets it go. */
static void a_mailbox(void) {
    pace_subscription_options_t options;
    pace_message_filter_t *filter = NULL;
    pace_mailbox_t *mailbox = NULL;
    pace_cq_t *cq = NULL;
    pace_cq_entry_t entries[4] = {0};
    pace_subscription_stats_t stats = {.struct_size = sizeof stats};
    size_t count = 0;
    bool ended;
    any_settings(&options);
    if (below(3) == 0) any_filter(&filter);
    options.filter = filter;
    bool made = any(pace_hub_mailbox(hub, any_pattern(), MAYBE(&options), &mailbox));
    pace_message_filter_free(filter);
    if (made) any(pace_cq_new(pool, NULL, &cq));
    if (made) any(pace_cq_mailbox(cq, mailbox, 1));
    for (uint64_t calls = made ? below(6) : 0; calls > 0; calls--) {
        any(pace_hub_publish(hub, "a.b", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
        if (any(pace_cq_wait(cq, entries, below(5), below(20000), &count))) {
            const pace_message_t *one = &entries[below(count)].detail.message;
            any(pace_mailbox_bury(mailbox, one, MAYBE("gone"), (uint32_t)below(3)));
            any(pace_hub_reply(hub, &entries[0].detail.message, MAYBE("x"), below(2), NULL));
            any(pace_cq_done(cq, entries, below(2) * count));
        }
        any(pace_mailbox_stats(mailbox, MAYBE(&stats)));
        if (below(4) == 0) any(pace_mailbox_unsubscribe(mailbox, (uint32_t)below(4), MAYBE(&ended)));
    }
    pace_mailbox_free(mailbox);
    pace_cq_free(cq);
}

/* Replays, by a handler or by a completion queue. */
static void a_replay(void) {
    pace_mailbox_t *mailbox = NULL;
    pace_replay_t *replay = NULL;
    pace_replay_stats_t stats = {.struct_size = sizeof stats};
    pace_cq_t *cq = NULL;
    pace_cq_entry_t entries[4];
    size_t count;
    bool ended;
    uint32_t from = (uint32_t)below(6);
    pace_replay_options_t options;
    OK(pace_replay_options_init(&options, sizeof options));
    options.from = from;
    options.at = below(100);
    options.acknowledged = below(2) == 0;
    if (any(pace_hub_replay_mailbox(hub, any_pattern(), &options, &mailbox)) &&
        any(pace_cq_new(pool, NULL, &cq)) && any(pace_cq_mailbox(cq, mailbox, 1)))
        any(pace_cq_wait(cq, entries, below(5), below(20000), &count));
    if (mailbox != NULL && below(2) == 0) {
        any(pace_mailbox_acknowledge(mailbox, below(2), below(2), below(2)));
        any(pace_mailbox_suspend(mailbox, below(2) == 0 ? PACE_FOREVER : below(20000), MAYBE(&ended)));
        any(pace_mailbox_resume(mailbox, MAYBE(&ended)));
        any(pace_replay_mailbox_stats(mailbox, &stats));
    }
    pace_cq_free(cq);
    pace_mailbox_free(mailbox);
    if (took(pace_hub_replay(hub, any_pattern(), from, below(100), MAYBE(handle), C, &replay))) {
        any(pace_replay_stats(replay, &stats));
        any(pace_replay_end(replay, (uint32_t)below(4), MAYBE(&ended)));
    }
    pace_replay_free(replay);
}

static void any_options(pace_task_options_t *options) {
    OK(pace_task_options_init(options, sizeof *options));
    if (below(2)) options->lane = (uint32_t)below(5);
    if (below(3) == 0) options->timeout_ns = below(MILLI);
    if (below(3) == 0) options->deadline_ns = below(4 * MILLI);
    if (below(3) == 0) options->delay_ns = below(MILLI);
    options->keyed = below(3) == 0;
    options->key = below(3);
    options->full = (uint32_t)below(6);
    options->full_wait_ns = below(MILLI);
}

/* Takes attempts, and completes some of them, and some of others. */
static void take_some(bool inside) {
    pace_cq_entry_t entries[4];
    pace_cq_completion_t ends[4] = {0};
    size_t count = 0;
    bool flag;
    if (!any(pace_cq_wait(cq, entries, below(5), inside ? 0 : below(20000), &count))) return;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind == PACE_CQ_ENDED) any(pace_cq_close(cq));
        atomic_store(&attempts[below(KEPT)], entries[i].token);
        ends[i].token = below(8) ? entries[i].token : pick(attempts);
        ends[i].flags = below(3) ? 0 : PACE_CQ_FAIL | (uint32_t)below(4) * PACE_CQ_AFTER;
        ends[i].error = (int32_t)below(3);
        ends[i].after_ns = below(MILLI);
        any(pace_cq_is_cancelled(cq, ends[i].token, MAYBE(&flag)));
        any(pace_cq_renew(cq, pick(attempts)));
    }
    any(pace_cq_complete(cq, MAYBE(ends), count));
    /* One that nobody completes is out for ever, and so is what waits for its place. */
    any(pace_cq_done(cq, entries, count));
}

static void hub_call(bool inside) {
    pace_subscription_t subscription = {pick(subscriptions)};
    pace_subscription_options_t options;
    pace_subscription_stats_t stats = {.struct_size = sizeof stats};
    pace_redelivered_t redelivered = {.struct_size = sizeof redelivered};
    pace_dead_filter_t filter = {.struct_size = sizeof filter};
    pace_query_t query = {.struct_size = sizeof query, .pattern = any_pattern(), .limit = below(4)};
    pace_hub_stats_t figures = {.struct_size = sizeof figures};
    pace_piece_t pieces[2] = {{"one", 3}, {MAYBE("two"), below(4)}};
    pace_publication_t terms;
    pace_message_t reply;
    pace_key_t *key = NULL;
    const pace_key_t *known = MAYBE(keys[below(3)]);
    size_t count;
    bool flag;
    int seen = 0;
    OK(pace_publication_init(&terms, sizeof terms));
    terms.priority = (int32_t)below(6);
    filter.limit = below(4);
    switch (below(22)) {
    case 0:
    case 1:
    case 2: any(pace_hub_publish(hub, any_key(), "xyz", below(4), PACE_PUBLISH_NO_RECEIPT, NULL)); break;
    case 3:
    case 4:
        any(pace_key_publish_with(known, MAYBE(&terms), MAYBE("xyz"), below(4), PACE_PUBLISH_NO_RECEIPT,
                                  NULL));
        break;
    case 5:
        any(pace_key_publish_batch(known, MAYBE(pieces), below(3), PACE_PUBLISH_NO_RECEIPT, NULL));
        break;
    case 6:
        any(pace_publisher_publish(publisher, known, NULL, "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
        break;
    case 7:
        any(pace_publisher_publish_batch(publisher, known, pieces, below(3), PACE_PUBLISH_NO_RECEIPT,
                                         NULL));
        break;
    case 8:
    case 9:
        any_settings(&options);
        if (took(pace_hub_subscribe(hub, any_pattern(), MAYBE(&options), MAYBE(handle), C,
                                    &subscription)))
            atomic_store(&subscriptions[below(KEPT)], subscription.id);
        break;
    case 10:
    case 11: any(pace_hub_unsubscribe(hub, subscription, (uint32_t)below(4), MAYBE(&flag))); break;
    case 12: any(pace_hub_resume(hub, subscription, MAYBE(&flag))); break;
    case 13: any(pace_subscription_stats(hub, subscription, MAYBE(&stats))); break;
    case 14:
        if (!inside) a_mailbox();
        break;
    case 15:
        if (!inside) a_replay();
        break;
    case 16: any(pace_key_request(known, NULL, "x", 1, inside ? 0 : below(20000), MAYBE(&reply))); break;
    case 17: any(pace_hub_query(hub, MAYBE(&query), read_one, &seen, MAYBE(&count))); break;
    case 18:
        any((below(2) ? pace_hub_dead_letters : pace_hub_remove_dead_letters)(
            hub, MAYBE(&filter), read_letter, &seen, MAYBE(&count)));
        break;
    case 19: any(pace_hub_redeliver(hub, MAYBE(&filter), MAYBE(&redelivered))); break;
    case 20:
        any(pace_hub_patterns(hub, MAYBE(read_pattern), &seen));
        any(pace_hub_stats(hub, MAYBE(&figures)));
        break;
    default:
        if (any(pace_hub_key(hub, any_key(), &key)))
            any(pace_key_publish(key, "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
        pace_key_free(key);
        break;
    }
}

static void work_call(bool inside) {
    pace_task_t task = {pick(tasks)}, some[3];
    pace_task_options_t options;
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_attempt_work_t work[3];
    pace_health_t health = {.struct_size = sizeof health};
    const pace_task_type_t *kind = MAYBE(kinds[below(2)]);
    uint64_t tags[3] = {1, 2, 3};
    uint32_t status;
    size_t count = 0;
    bool flag;
    any_options(&options);
    const pace_task_options_t *own = below(2) ? &options : NULL;
    switch (below(17)) {
    case 0:
    case 1:
    case 2:
        if (took(pace_workers_submit(workers, kind, MAYBE(run), C, own, &task)))
            atomic_store(&tasks[below(KEPT)], task.id);
        break;
    case 3: took(pace_workers_submit(workers, kind, run, C, own, NULL)); break;
    case 4:
        for (int i = 0; i < 3; i++) work[i] = (pace_attempt_work_t){run, C};
        any(pace_workers_submit_batch(workers, kind, work, below(4), own, some, &count));
        atomic_fetch_add(&accepted, (int)count);
        for (size_t i = 0; i < count; i++) atomic_store(&tasks[below(KEPT)], some[i].id);
        break;
    case 5: took(pace_task_type_post(kind, MAYBE(count_run), C)); break;
    case 6:
        any(pace_workers_submit_tagged_batch(workers, kind, tags, below(4), own, some, &count));
        for (size_t i = 0; i < count; i++) atomic_store(&tasks[below(KEPT)], some[i].id);
        break;
    case 7:
    case 8: take_some(inside); break;
    case 9: any(pace_workers_wait(workers, task, inside ? 0 : below(20000), MAYBE(&report))); break;
    case 10: any(pace_workers_status(workers, task, MAYBE(&status))); break;
    case 11: any(pace_workers_cancel(workers, task, MAYBE(&flag))); break;
    case 12: any(pace_workers_drop(workers, task, MAYBE(&flag))); break;
    case 13: took(pace_workers_on_end(workers, task, MAYBE(told), C)); break;
    case 14: any(pace_workers_detach(workers, task)); break;
    case 15: any(pace_workers_health(workers, MAYBE(&health))); break;
    default: any(pace_metric_count(metric, below(3))); break;
    }
}

static void one_call(bool inside) { (below(2) ? hub_call : work_call)(inside); }

typedef struct part {
    pthread_t thread;
    uint64_t seed, calls;
} part_t;

static void *call_often(void *data) {
    part_t *part = (part_t *)data;
    state = part->seed;
    for (uint64_t call = 0; call < part->calls; call++) one_call(false);
    return NULL;
}

static void make_all(void) {
    pace_hub_options_t options;
    pace_history_options_t history;
    pace_task_type_config_t config;
    pace_workers_config_t shared;
    pace_publisher_options_t limits;
    const char *texts[] = {"a.b", "a.c", "q"};
    OK(pace_history_options_init(&history, sizeof history));
    history.keep_count = 64;
    OK(pace_hub_options_init(&options, sizeof options));
    options.histories = &history;
    options.history_count = 1;
    options.dead_letters = 32;
    OK(pace_hub_new(pool, &options, &hub));
    OK(pace_workers_config_init(&shared, sizeof shared));
    shared.metrics = true;
    shared.max_queued = 64;
    OK(pace_workers_new(pool, &shared, &workers));
    OK(pace_cq_new(pool, NULL, &cq));
    OK(pace_cq_workers(cq, workers, 1));
    OK(pace_task_type_config_init(&config, sizeof config));
    OK(pace_task_type_new(workers, "plain", NULL, &kinds[0]));
    config.retry.shape = PACE_RETRY_FIXED;
    config.retry.retries = 2;
    config.retry.first_ns = MILLI / 10;
    config.max_running = 2;
    config.grace_ns = MILLI;
    OK(pace_task_type_new(workers, "retried", &config, &kinds[1]));
    for (int i = 0; i < 3; i++) OK(pace_hub_key(hub, texts[i], &keys[i]));
    OK(pace_publisher_options_init(&limits, sizeof limits));
    limits.quota = 1000;
    limits.quota_per_ns = MILLI;
    limits.quota_burst = 10;
    OK(pace_publisher_new(hub, "limited", &limits, &publisher));
    OK(pace_supervisor_new(PACE_RESTART_ONE_FOR_ALL, 5, MILLI, 0, 0, &supervisor));
    OK(pace_workers_metric(workers, PACE_METRIC_COUNTER, "calls", "", NULL, 0, &metric));
    for (int i = 0; i < KEPT; i++) tasks[i] = subscriptions[i] = attempts[i] = 0;
}

/* Completes what comes, as long as the worker pool ends. */
static void *take_the_rest(void *data) {
    pace_cq_entry_t entry;
    size_t count;
    (void)data;
    for (;;) {
        pace_status_t status = pace_cq_wait(cq, &entry, 1, 10 * MILLI, &count);
        if (status == PACE_ESHUTDOWN) return NULL;
        CHECK(status == PACE_OK || status == PACE_ETIMEDOUT);
        if (status != PACE_OK) continue;
        if (entry.kind == PACE_CQ_ENDED) any(pace_cq_close(cq));
        any(pace_cq_done(cq, &entry, 1));
    }
}

static void one_life(uint64_t calls) {
    part_t parts[THREADS];
    pthread_t host;
    pace_workers_audit_t work = {.struct_size = sizeof work};
    pace_hub_audit_t sent = {.struct_size = sizeof sent};
    pool = pool_of(1 + (uint32_t)below(3));
    atomic_store(&accepted, 0);
    atomic_store(&counts.drops, 0);
    make_all();
    for (int i = 0; i < THREADS; i++) {
        parts[i].seed = next();
        parts[i].calls = calls / THREADS;
        CHECK(pthread_create(&parts[i].thread, NULL, call_often, &parts[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(parts[i].thread, NULL) == 0);
    CHECK(pthread_create(&host, NULL, take_the_rest, NULL) == 0);
    OK(pace_workers_shutdown(workers, below(2) ? 0 : 10 * MILLI, PACE_FOREVER, 0, NULL, NULL, NULL));
    CHECK(pthread_join(host, NULL) == 0);
    for (int call = 0; call < 50; call++) one_call(false);
    OK(pace_pool_shutdown(pool, below(2) ? 0 : PACE_FOREVER, NULL));
    for (int call = 0; call < 50; call++) one_call(false);
    OK(pace_workers_audit(workers, &work));
    CHECK(work.balances);
    OK(pace_hub_audit(hub, &sent));
    CHECK(sent.balances);
    for (int i = 0; i < 3; i++) pace_key_free(keys[i]);
    for (int i = 0; i < 2; i++) pace_task_type_free(kinds[i]);
    pace_metric_free(metric);
    pace_publisher_free(publisher);
    pace_supervisor_free(supervisor);
    pace_cq_free(cq);
    pace_workers_free(workers);
    pace_hub_free(hub);
    pace_pool_free(pool);
    UNTIL(atomic_load(&counts.drops) >= atomic_load(&accepted));
    CHECK(atomic_load(&counts.drops) == atomic_load(&accepted));
}

int main(int argc, char **argv) {
    check_begin();
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    uint64_t calls = argc > 2 ? strtoull(argv[2], NULL, 0) : 40000;
    printf("seed %llu\n", (unsigned long long)seed);
    state = seed;
    const uint64_t life = 4000;
    for (uint64_t done = 0; done < calls; done += life) one_life(life);
    return 0;
}
