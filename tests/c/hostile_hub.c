/* The hub's newer functions in the hands of programs that are wrong: counts without end, structs of another size,
 * calls inside handlers and in forked children, threads that come and go. Nothing crashes, hangs or leaks; what was
 * refused has changed nothing, every `drop` runs once, and the books balance. */
#include "check.h"

#include <sys/wait.h>

#define MANY ((size_t)1 << 40)

typedef struct things {
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_key_t *key;
    pace_cq_t *cq;
    counts_t counts;
    atomic_bool stop;
} things_t;

static void quick(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)message;
    atomic_fetch_add(&((things_t *)data)->counts.runs, 1);
    *outcome = 0;
}

/* It fails at every third message. */
static void picky(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)message;
    if (atomic_fetch_add(&((things_t *)data)->counts.runs, 1) % 3 != 0) *outcome = 0;
}

static void drop_it(void *data) { count_drop(&((things_t *)data)->counts); }

static void on_reply(void *data, pace_status_t status, const pace_message_t *reply) {
    (void)data, (void)status, (void)reply;
}

static void told_restart(void *data, pace_text_t failure, uint64_t count) {
    (void)data, (void)failure, (void)count;
}

static void make(things_t *t) {
    pace_hub_options_t options;
    pace_history_options_t history;
    memset(t, 0, sizeof *t);
    t->pool = pool_of(2);
    OK(pace_hub_options_init(&options, sizeof options));
    OK(pace_history_options_init(&history, sizeof history));
    options.histories = &history;
    options.history_count = 1;
    OK(pace_hub_new(t->pool, &options, &t->hub));
    OK(pace_hub_key(t->hub, "a", &t->key));
    OK(pace_cq_new(t->pool, NULL, &t->cq));
}

static void unmake(things_t *t) {
    pace_hub_audit_t audit = {0};
    audit.struct_size = sizeof audit;
    do {
        check_nap();
        OK(pace_hub_audit(t->hub, &audit));
    } while (audit.waiting + audit.running > 0);
    CHECK(audit.balances);
    pace_cq_free(t->cq);
    pace_key_free(t->key);
    pace_hub_free(t->hub);
    finish(t->pool);
}

/* A count that is wrong is refused before anything is looked at, and is named. */
static void counts_without_end(void) {
    things_t t;
    pace_publication_t publication;
    pace_field_t field = {{"n", 1}, {"v", 1}};
    pace_message_t message = {0};
    pace_publish_item_t together = {0};
    pace_mailbox_t *mailbox;
    pace_cq_entry_t entry;
    size_t count;
    make(&t);
    OK(pace_hub_mailbox(t.hub, "a", NULL, &mailbox));
    OK(pace_publication_init(&publication, sizeof publication));
    publication.headers = &field;
    together.key = t.key;
    together.publication = &publication;
    const size_t counts[] = {65, MANY, SIZE_MAX / sizeof field, SIZE_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        publication.header_count = counts[i];
        SAYS(PACE_EINVAL,
             pace_key_publish_with(t.key, &publication, "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
        CHECK(strstr(pace_last_error(), "header_count") != NULL);
        SAYS(PACE_EINVAL, pace_key_request(t.key, &publication, "x", 1, 0, &message));
        SAYS(PACE_EINVAL,
             pace_key_request_async(t.key, &publication, "x", 1, 0, on_reply, &t, drop_it, NULL));
        SAYS(PACE_EINVAL, pace_cq_request(t.cq, t.key, &publication, "x", 1, 0, 1, NULL));
        SAYS(PACE_EINVAL, pace_hub_publish_all(t.hub, &together, 1, PACE_PUBLISH_NO_RECEIPT, NULL));
        message.key.text = "a";
        message.key.size = 1;
        message.headers = &field;
        message.header_count = counts[i];
        SAYS(PACE_EINVAL, pace_mailbox_bury(mailbox, &message, NULL, 1));
    }
    publication.header_count = 1;
    for (size_t i = 1; i < sizeof counts / sizeof *counts; i++) {
        size_t size = counts[i] < MANY * 2 ? SIZE_MAX / 2 + 1 : counts[i];
        SAYS(PACE_EINVAL,
             pace_key_request_async(t.key, NULL, "x", size, 0, on_reply, &t, drop_it, NULL));
        SAYS(PACE_EINVAL, pace_cq_request(t.cq, t.key, NULL, "x", size, 0, 1, NULL));
        together.bytes = "x";
        together.size = size;
        SAYS(PACE_EINVAL, pace_hub_publish_all(t.hub, &together, 1, PACE_PUBLISH_NO_RECEIPT, NULL));
        SAYS(PACE_EINVAL,
             pace_hub_publish_all(t.hub, &together, counts[i], PACE_PUBLISH_NO_RECEIPT, NULL));
    }
    together.size = 0;
    together.key = NULL;
    SAYS(PACE_EINVAL, pace_hub_publish_all(t.hub, &together, 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    /* No more is written than there is. */
    OK(pace_cq_request(t.cq, t.key, NULL, NULL, 0, 1, 1, NULL));
    OK(pace_cq_wait(t.cq, &entry, SIZE_MAX, PACE_FOREVER, &count));
    CHECK(count == 1 && entry.kind == PACE_CQ_REPLY && entry.tag == 1);
    CHECK(atomic_load(&t.counts.drops) == 0);
    pace_mailbox_free(mailbox);
    unmake(&t);
}

static void structs_of_another_size(void) {
    things_t t;
    pace_replay_options_t options;
    pace_publication_t publication;
    pace_publish_item_t together = {0};
    pace_replay_stats_t stats = {0};
    pace_replay_t *replay = NULL;
    const uint32_t sizes[] = {0, 1, 4, 8};
    make(&t);
    OK(pace_replay_options_init(&options, sizeof options));
    OK(pace_publication_init(&publication, sizeof publication));
    together.key = t.key;
    together.publication = &publication;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        options.struct_size = publication.struct_size = stats.struct_size = sizes[i];
        SAYS(PACE_EVERSION,
             pace_hub_replay_supervised(t.hub, "a", &options, quick, &t, drop_it, &replay));
        SAYS(PACE_EVERSION, pace_hub_publish_all(t.hub, &together, 1, PACE_PUBLISH_NO_RECEIPT, NULL));
        SAYS(PACE_EVERSION, pace_cq_request(t.cq, t.key, &publication, "x", 1, 0, 1, NULL));
    }
    CHECK(replay == NULL && atomic_load(&t.counts.drops) == 0);
    OK(pace_replay_options_init(&options, sizeof options));
    options.retry.shape = 77;
    SAYS(PACE_EINVAL, pace_hub_replay_supervised(t.hub, "a", &options, quick, &t, drop_it, &replay));
    options.retry.shape = PACE_RETRY_RANDOM;
    options.retry.retries = UINT32_MAX;
    options.retry.first_ns = UINT64_MAX;
    SAYS(PACE_EINVAL, pace_hub_replay_supervised(t.hub, "a", &options, quick, &t, drop_it, &replay));
    OK(pace_replay_options_init(&options, sizeof options));
    options.at = UINT64_MAX;
    for (options.from = 0; options.from < 5; options.from++) {
        OK(pace_hub_replay_supervised(t.hub, "a", &options, quick, &t, drop_it, &replay));
        stats.struct_size = 4;
        SAYS(PACE_EVERSION, pace_replay_stats(replay, &stats));
        pace_replay_free(replay);
    }
    UNTIL(atomic_load(&t.counts.drops) == 5);
    unmake(&t);
}

/* Whatever a handler does to its own hub. */
static void meddle(void *data, const pace_message_t *message, int32_t *outcome) {
    things_t *t = (things_t *)data;
    pace_replay_t *replay = NULL;
    pace_cq_entry_t entry;
    size_t count;
    bool is;
    SAYS(PACE_EDEADLOCK, pace_subscription_drain(t->hub, message->subscription, PACE_FOREVER, NULL));
    SAYS(PACE_EDEADLOCK, pace_cq_wait(t->cq, &entry, 1, PACE_FOREVER, &count));
    OK(pace_hub_replay_supervised(t->hub, "a", NULL, quick, t, drop_it, &replay));
    OK(pace_replay_resume(replay, &is));
    OK(pace_replay_end(replay, PACE_UNSUBSCRIBE_SYNC, NULL));
    OK(pace_hub_redeliver(t->hub, NULL, NULL));
    pace_replay_free(replay);
    atomic_fetch_add(&t->counts.runs, 1);
    *outcome = 0;
}

static void inside_handlers(void) {
    static const uint32_t executions[] = {PACE_EXECUTION_SERIAL, PACE_EXECUTION_INLINE,
                                          PACE_EXECUTION_CONCURRENT, PACE_EXECUTION_STRAND};
    things_t t;
    make(&t);
    for (size_t i = 0; i < 4; i++) {
        pace_subscription_options_t options;
        pace_subscription_t subscription;
        OK(pace_subscription_options_init(&options, sizeof options));
        options.execution = executions[i];
        options.threads = 2;
        OK(pace_hub_subscribe(t.hub, "b", &options, meddle, &t, NULL, &subscription));
        if (executions[i] != PACE_EXECUTION_INLINE)
            OK(pace_hub_publish(t.hub, "b", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
        OK(pace_subscription_drain(t.hub, subscription, PACE_FOREVER, NULL));
    }
    UNTIL(atomic_load(&t.counts.drops) == 3);
    unmake(&t);
}

/* Everything of the parent's says so, and nothing of it is freed or waited for. */
static void in_a_child(void) {
    things_t t;
    pace_replay_t *replay;
    pace_mailbox_t *pulled;
    pace_webhook_t *webhook = NULL;
    pace_service_t *service = NULL;
    pace_subscription_t subscription;
    make(&t);
    OK(pace_hub_replay_supervised(t.hub, "a", NULL, quick, &t, drop_it, &replay));
    OK(pace_hub_replay_mailbox(t.hub, "a", NULL, &pulled));
    OK(pace_hub_subscribe(t.hub, "a", NULL, quick, &t, drop_it, &subscription));
    pace_status_t made = pace_webhook_new("http://127.0.0.1:9", NULL, &webhook);
    CHECK(made == PACE_OK || made == PACE_EUNSUPPORTED);
    pace_status_t started = pace_service_start(t.pool, NULL, NULL, NULL, &service);
    CHECK(started == PACE_OK || started == PACE_EUNSUPPORTED);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pace_cq_entry_t entry;
        pace_webhook_stats_t stats = {0};
        size_t count;
        int32_t fd;
        alarm(60);
        SAYS(PACE_EFORKED, pace_subscription_drain(t.hub, subscription, PACE_FOREVER, NULL));
        SAYS(PACE_EFORKED, pace_replay_resume(replay, NULL));
        SAYS(PACE_EFORKED, pace_mailbox_bury(pulled, NULL, NULL, 0));
        SAYS(PACE_EFORKED, pace_replay_mailbox_stats(pulled, NULL));
        SAYS(PACE_EFORKED, pace_mailbox_unsubscribe(pulled, 0, NULL));
        SAYS(PACE_EFORKED, pace_cq_wait(t.cq, &entry, 1, PACE_FOREVER, &count));
        SAYS(PACE_EFORKED, pace_cq_fd(t.cq, &fd));
        SAYS(PACE_EFORKED, pace_cq_request(t.cq, t.key, NULL, "x", 1, 0, 1, NULL));
        if (webhook != NULL) {
            char text[8];
            stats.struct_size = sizeof stats;
            SAYS(PACE_EFORKED, pace_webhook_post(webhook, "{}", 2));
            SAYS(PACE_EFORKED, pace_webhook_forward(webhook, t.hub, "a", NULL));
            SAYS(PACE_EFORKED, pace_webhook_flush(webhook, PACE_FOREVER));
            SAYS(PACE_EFORKED, pace_webhook_stats(webhook, &stats));
            SAYS(PACE_EFORKED, pace_webhook_last_error(webhook, text, sizeof text, &count));
            pace_webhook_free(webhook);
        }
        if (service != NULL) {
            SAYS(PACE_EFORKED, pace_service_status(service, "fine"));
            pace_service_free(service);
        }
        pace_replay_free(replay);
        pace_mailbox_free(pulled);
        pace_cq_free(t.cq);
        _exit(42);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
    if (webhook != NULL) {
        /* Names are given back though the pattern is bad. */
        for (int i = 0; i < 2000; i++)
            SAYS(PACE_EINVAL, pace_webhook_forward(webhook, t.hub, "a..b", NULL));
    }
    pace_webhook_free(webhook);
    pace_service_free(service);
    OK(pace_subscription_drain(t.hub, subscription, PACE_FOREVER, NULL));
    pace_replay_free(replay);
    pace_mailbox_free(pulled);
    UNTIL(atomic_load(&t.counts.drops) == 2);
    unmake(&t);
}

/* Replays, requests, letters and subscriptions that come and go beside each other. */
static void *churn(void *data) {
    things_t *t = (things_t *)data;
    pace_cq_entry_t entries[4];
    size_t count;
    for (int i = 0; i < 60; i++) {
        pace_replay_t *replay = NULL;
        pace_replay_options_t options;
        pace_subscription_t subscription;
        pace_asked_t asked;
        pace_replay_stats_t stats = {0};
        pace_cq_t *cq = NULL;
        pace_key_t *key = t->key;
        stats.struct_size = sizeof stats;
        OK(pace_replay_options_init(&options, sizeof options));
        options.from = i % 2 == 0 ? PACE_REPLAY_NOW : PACE_REPLAY_LAST;
        options.at = 3;
        options.restarts = 2;
        options.within_ns = SECOND;
        options.on_restart = told_restart;
        OK(pace_hub_replay_supervised(t->hub, "a", &options, picky, t, drop_it, &replay));
        OK(pace_hub_subscribe(t->hub, "a", NULL, quick, t, drop_it, &subscription));
        OK(pace_cq_new(t->pool, NULL, &cq));
        pace_status_t status = pace_cq_request(i % 2 == 0 ? cq : t->cq, key, NULL, "x", 1,
                                               i % 3 == 0 ? 1 : PACE_FOREVER, 1, &asked);
        CHECK(status == PACE_OK || status == PACE_EFULL);
        OK(pace_hub_redeliver(t->hub, NULL, NULL));
        OK(pace_replay_resume(replay, NULL));
        OK(pace_replay_stats(replay, &stats));
        if (status == PACE_OK && i % 3 != 0) OK(pace_hub_give_up(t->hub, asked, NULL));
        status = pace_cq_wait(cq, entries, 4, MILLI, &count);
        CHECK(status == PACE_OK || status == PACE_ETIMEDOUT);
        if (status == PACE_OK) OK(pace_cq_done(cq, entries, count));
        pace_cq_free(cq);
        if (i % 4 == 0) OK(pace_replay_end(replay, PACE_UNSUBSCRIBE_SYNC, NULL));
        pace_replay_free(replay);
        OK(pace_subscription_drain(t->hub, subscription, i % 5 == 0 ? 0 : PACE_FOREVER, NULL));
        SAYS(PACE_ESTALE, pace_subscription_drain(t->hub, subscription, 0, NULL));
    }
    return NULL;
}

static void ten_threads(void) {
    things_t t;
    pthread_t threads[10];
    pace_mailbox_t *mailbox;
    make(&t);
    /* So that requests are taken, and never answered. */
    OK(pace_hub_mailbox(t.hub, "a", NULL, &mailbox));
    for (size_t i = 0; i < 10; i++) CHECK(pthread_create(&threads[i], NULL, churn, &t) == 0);
    for (size_t i = 0; i < 10; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    UNTIL(atomic_load(&t.counts.drops) == 10 * 60 * 2);
    pace_mailbox_free(mailbox);
    unmake(&t);
}

typedef struct two {
    things_t *t;
    pace_subscription_t subscription;
} two_t;

static void hold(void *data, const pace_message_t *message, int32_t *outcome) {
    things_t *t = (things_t *)data;
    (void)message;
    atomic_fetch_add(&t->counts.runs, 1);
    while (!atomic_load(&t->stop)) check_nap();
    *outcome = 0;
}

static void *drain_it(void *data) {
    two_t *two = (two_t *)data;
    pace_status_t status = pace_subscription_drain(two->t->hub, two->subscription, PACE_FOREVER, NULL);
    CHECK(status == PACE_OK || status == PACE_ESTALE);
    return NULL;
}

/* It is asked for its counts, drained by several, and unsubscribed, while it is drained. */
static void drained_by_several(void) {
    things_t t;
    two_t two = {&t, {0}};
    pthread_t threads[3];
    pace_subscription_stats_t stats = {0};
    make(&t);
    OK(pace_hub_subscribe(t.hub, "a", NULL, hold, &t, drop_it, &two.subscription));
    for (int i = 0; i < 3; i++) OK(pace_hub_publish(t.hub, "a", "x", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    UNTIL(atomic_load(&t.counts.runs) == 1);
    for (size_t i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, drain_it, &two) == 0);
    stats.struct_size = sizeof stats;
    OK(pace_subscription_stats(t.hub, two.subscription, &stats));
    CHECK(stats.matched == 3 && stats.running == 1);
    OK(pace_hub_unsubscribe(t.hub, two.subscription, PACE_UNSUBSCRIBE_ASYNC, NULL));
    atomic_store(&t.stop, true);
    for (size_t i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    UNTIL(atomic_load(&t.counts.drops) == 1);
    CHECK(atomic_load(&t.counts.runs) == 1);
    unmake(&t);
}

int main(void) {
    check_begin();
    counts_without_end();
    structs_of_another_size();
    inside_handlers();
    in_a_child();
    ten_threads();
    drained_by_several();
    return 0;
}
