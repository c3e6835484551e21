/* An online shop on an event hub, with orders, prices and reports as keys. The packer fails at one order, which becomes a dead
 * letter, and crashes at another, and is restarted. A history keeps all of it, and a notice tells of the crash.
 *
 *     cc examples/c/orders.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -pthread -o orders && ./orders
 */
#include <paceline/history.h>
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pace_hub_t *hub;
static atomic_bool has_pears;
static sem_t noticed, replayed;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s\n", pace_last_error());
    exit(1);
}

static void publish(const char *key, const char *text) {
    must(pace_hub_publish(hub, key, text, strlen(text), PACE_PUBLISH_NO_RECEIPT, NULL));
}

/* Publishes a report: `what`, and the payload of a message. */
static void report(const char *what, const pace_message_t *message) {
    char text[64];
    snprintf(text, sizeof text, "%s%.*s", what, (int)message->size, (const char *)message->payload);
    publish("shop.reports", text);
}

static bool is(const pace_message_t *message, const char *text) {
    return message->size == strlen(text) && memcmp(message->payload, text, message->size) == 0;
}

static void pack(void *data, const pace_message_t *order, int32_t *outcome) {
    (void)data;
    if (is(order, "pears") && !has_pears) {
        must(pace_message_fail("pears are out of stock"));
    } else if (is(order, "melons") && order->attempt == 1) {
        *outcome = PACE_EPANIC; /* a crash */
    } else {
        report("packed ", order);
        *outcome = 0;
    }
}

static void restarted(void *data, pace_text_t failure, uint64_t count) {
    char text[64];
    (void)data, (void)failure;
    snprintf(text, sizeof text, "the packer was restarted: %d", (int)count);
    publish("shop.reports", text);
}

static void watch(void *data, const pace_message_t *price, int32_t *outcome) {
    (void)data;
    report("new price: ", price);
    *outcome = 0;
}

static void print(void *before, const pace_message_t *message, int32_t *outcome) {
    printf("%s%.*s\n", (const char *)before, (int)message->size, (const char *)message->payload);
    *outcome = 0;
}

static void print_again(void *before, const pace_message_t *message, int32_t *outcome) {
    print(before, message, outcome);
    sem_post(&replayed);
}

static void notify(void *event, const pace_message_t *notice, int32_t *outcome) {
    /* Its key is "$SYS.", and what has happened. */
    snprintf(event, 64, "%.*s", (int)notice->key.size - 5, notice->key.text + 5);
    *outcome = sem_post(&noticed);
}

static void print_letter(void *data, const pace_dead_letter_t *letter) {
    (void)data;
    printf("dead letter: %.*s, %u attempts\n", (int)letter->message.size,
           (const char *)letter->message.payload, letter->attempts);
}

static pace_subscription_stats_t stats_of(pace_subscription_t subscription) {
    pace_subscription_stats_t stats = {.struct_size = sizeof stats};
    must(pace_subscription_stats(hub, subscription, &stats));
    return stats;
}

/* Waits until a subscription has dealt with all that was published. */
static void settle(pace_subscription_t subscription) {
    for (pace_subscription_stats_t stats = stats_of(subscription); stats.waiting + stats.running > 0;
         stats = stats_of(subscription))
        usleep(1000);
}

static void print_count(void) {
    size_t count;
    must(pace_hub_subscriber_count(hub, "shop.orders", &count));
    printf("subscribers of shop.orders: %zu\n", count);
}

int main(void) {
    char event[64];
    pace_pool_t *pool;
    pace_history_options_t history;
    pace_hub_options_t options;
    pace_subscription_options_t resilient, filtered;
    pace_message_filter_t *apples, *warnings;
    pace_subscription_t packer, watcher, reporter, notifier;
    pace_redelivered_t redelivered = {.struct_size = sizeof redelivered};
    pace_replay_t *replay;
    if (sem_init(&noticed, 0, 0) != 0 || sem_init(&replayed, 0, 0) != 0) return 1;
    must(pace_pool_new(NULL, &pool));
    /* HistoryLogger: the last 100 messages. */
    must(pace_history_options_init(&history, sizeof history));
    history.pattern = "shop.>";
    history.keep_count = 100;
    must(pace_hub_options_init(&options, sizeof options));
    options.histories = &history, options.history_count = 1;
    must(pace_hub_new(pool, &options, &hub));

    /* ResilientSubscriber: tries a message once more, and is restarted after a crash. */
    must(pace_subscription_options_init(&resilient, sizeof resilient));
    resilient.retry = (pace_retry_t){.shape = PACE_RETRY_FIXED, .retries = 1, .first_ns = PACE_MS(1)};
    resilient.on_restart = restarted;
    resilient.measured = true;
    must(pace_hub_subscribe(hub, "shop.orders", &resilient, pack, NULL, NULL, &packer));
    /* FilteredSubscriber: the prices of apples. */
    must(pace_subscription_options_init(&filtered, sizeof filtered));
    must(pace_message_filter_bytes(0, "apples", 6, &apples));
    filtered.filter = apples;
    must(pace_hub_subscribe(hub, "shop.prices", &filtered, watch, NULL, NULL, &watcher));
    must(pace_hub_subscribe(hub, "shop.reports", NULL, print, "", NULL, &reporter));
    /* NotificationService: what goes wrong in the hub is a message, too. */
    must(pace_message_filter_header("severity", "warning", &warnings));
    filtered.filter = warnings;
    must(pace_hub_subscribe(hub, "$SYS.>", &filtered, notify, event, NULL, &notifier));
    print_count();

    for (const char *const *each = (const char *[]){"apples", "pears", "melons", "plums", NULL}; *each;
         each++)
        publish("shop.orders", *each);
    settle(packer), settle(reporter);
    publish("shop.prices", "apples 3.20");
    publish("shop.prices", "plums 4.10");
    settle(watcher), settle(reporter);
    sem_wait(&noticed);
    printf("notice: %s\n", event);

    must(pace_hub_dead_letters(hub, NULL, print_letter, NULL, NULL));
    has_pears = true;
    must(pace_hub_redeliver(hub, NULL, &redelivered));
    settle(packer), settle(reporter);
    printf("redelivered: %d\n", (int)redelivered.enqueued);

    must(pace_hub_replay(hub, "shop.orders", PACE_REPLAY_BEGINNING, 0, print_again, "replayed: ", NULL,
                         &replay));
    for (int i = 0; i < 4; i++) sem_wait(&replayed);
    const pace_subscription_stats_t stats = stats_of(packer); /* PerformanceMonitor */
    printf("orders: %d matched, %d delivered, %d restarts\n", (int)stats.matched, (int)stats.delivered,
           (int)stats.restarts);
    printf("from publishing to packing, p99: %d us\n", (int)(stats.latency_p99_ns / 1000));
    must(pace_hub_unsubscribe(hub, packer, PACE_UNSUBSCRIBE_SYNC, NULL));
    print_count();
    pace_replay_free(replay);
    pace_message_filter_free(apples);
    pace_message_filter_free(warnings);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
