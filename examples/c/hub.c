/* Two thermometers publish to four subscribers: one adds up, one raises alarms, one refuses what
 * cannot be, and one is too slow and loses by its policy. At the end, what became of every reading.
 *
 *     cc examples/c/hub.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -pthread -o hub
 *
 * feature: hub/subscribe
 */
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READINGS 1000
/* What a broken thermometer says. */
#define BROKEN (-300)

/* Ends the program with the reason unless a call has worked. */
static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static int64_t reading(const pace_message_t *message) {
    int64_t degrees = BROKEN;
    if (message->size == sizeof degrees) memcpy(&degrees, message->payload, sizeof degrees);
    return degrees;
}

static void add(void *data, const pace_message_t *message, int32_t *outcome) {
    int64_t degrees = reading(message);
    atomic_fetch_add((atomic_llong *)data, degrees < -273 ? -273 : degrees);
    *outcome = 0;
}

static int32_t is_hot(void *data, const pace_message_t *message) {
    (void)data;
    return reading(message) >= 30;
}

static void count(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)message;
    atomic_fetch_add((atomic_llong *)data, 1);
    *outcome = 0;
}

/* Fails at what cannot be. */
static void check(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data;
    if (reading(message) < -273)
        (void)pace_message_fail("colder than cold can be");
    else
        *outcome = 0;
}

/* Too slow for all of them: it shows the newest, and knows how many it has not shown. */
static void display(void *data, const pace_message_t *message, int32_t *outcome) {
    atomic_fetch_add((atomic_llong *)data, (long long)message->lost_before);
    usleep(1000);
    *outcome = 0;
}

typedef struct thermometer {
    pace_publisher_t *publisher;
    pace_key_t *key;
    int broken_at;
} thermometer_t;

/* Publishes degrees between -10 and 30, and a reading that cannot be. */
static void *measure(void *data) {
    thermometer_t *own = (thermometer_t *)data;
    for (int number = 0; number < READINGS; number++) {
        int64_t degrees = number == own->broken_at ? BROKEN : number % 41 - 10;
        must(pace_publisher_publish(own->publisher, own->key, NULL, &degrees, sizeof degrees,
                                    PACE_PUBLISH_NO_RECEIPT, NULL));
    }
    return NULL;
}

static thermometer_t thermometer(pace_hub_t *hub, const char *key, int broken_at) {
    thermometer_t made = {NULL, NULL, broken_at};
    pace_publisher_options_t options;
    must(pace_publisher_options_init(&options, sizeof options));
    options.allow = &key;
    options.allow_count = 1;
    must(pace_publisher_new(hub, key, &options, &made.publisher));
    must(pace_hub_key(hub, key, &made.key));
    return made;
}

static pace_subscription_stats_t stats_of(pace_hub_t *hub, pace_subscription_t subscription) {
    pace_subscription_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    must(pace_subscription_stats(hub, subscription, &stats));
    return stats;
}

static void show(const char *name, pace_subscription_stats_t stats) {
    printf("%-10s%8llu%11llu%7llu%10llu\n", name, (unsigned long long)stats.matched,
           (unsigned long long)stats.delivered, (unsigned long long)stats.dead_lettered,
           (unsigned long long)stats.restarts);
}

static void show_letter(void *data, const pace_dead_letter_t *letter) {
    (void)data;
    printf("dead letter of %.*s after %u attempts: %.*s\n", (int)letter->message.key.size,
           letter->message.key.text, letter->attempts, (int)letter->failure.size, letter->failure.text);
}

int main(void) {
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_subscription_options_t options;
    pace_subscription_t adds, alarm, checks, shows;
    pace_message_filter_t *hot;
    pace_report_t report = {0};
    pace_hub_audit_t audit = {0};
    atomic_llong sum = 0, alarms = 0, unseen = 0;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));

    /* Serial, by default: one thread at a time, in order. */
    must(pace_subscription_options_init(&options, sizeof options));
    options.capacity = 4096;
    must(pace_hub_subscribe(hub, "temperature.*", &options, add, &sum, NULL, &adds));

    /* Fails at what cannot be; after two attempts the reading is a dead letter. That restarts no handler. */
    options.retry.shape = PACE_RETRY_FIXED;
    options.retry.retries = 1;
    options.retry.first_ns = 1000000;
    must(pace_hub_subscribe(hub, "temperature.*", &options, check, NULL, NULL, &checks));

    /* In the publisher's own thread, and only what passes the filter. */
    must(pace_message_filter_test(is_hot, NULL, NULL, &hot));
    must(pace_subscription_options_init(&options, sizeof options));
    options.execution = PACE_EXECUTION_INLINE;
    options.filter = hot;
    must(pace_hub_subscribe(hub, "temperature.roof", &options, count, &alarms, NULL, &alarm));
    pace_message_filter_free(hot);

    must(pace_subscription_options_init(&options, sizeof options));
    options.capacity = 8;
    options.overflow = PACE_OVERFLOW_DROP_OLDEST;
    must(pace_hub_subscribe(hub, "temperature.room", &options, display, &unseen, NULL, &shows));

    thermometer_t roof = thermometer(hub, "temperature.roof", 100);
    thermometer_t room = thermometer(hub, "temperature.room", 500);
    pthread_t up, down;
    if (pthread_create(&up, NULL, measure, &roof) || pthread_create(&down, NULL, measure, &room))
        return EXIT_FAILURE;
    pthread_join(up, NULL);
    pthread_join(down, NULL);
    pace_status_t refused =
        pace_publisher_publish(roof.publisher, room.key, NULL, NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL);
    printf("the roof may not publish for the room: %s\n", refused == PACE_EINVAL ? "true" : "false");

    /* Everything that waits is delivered before the pool has drained. */
    report.struct_size = sizeof report;
    must(pace_pool_shutdown(pool, UINT64_C(60000000000), &report));
    printf("drained: %s\n", report.drained ? "true" : "false");

    printf("%-10s%8s%11s%7s%10s\n", "", "matched", "delivered", "dead", "restarts");
    show("adds", stats_of(hub, adds));
    show("alarm", stats_of(hub, alarm));
    show("checks", stats_of(hub, checks));
    pace_subscription_stats_t shown = stats_of(hub, shows);
    bool accounted = shown.delivered + shown.dropped == shown.matched;
    printf("the display has lost some: %s\n", shown.dropped > 0 ? "true" : "false");
    printf("it was told of each: %s\n",
           accounted && (uint64_t)atomic_load(&unseen) == shown.dropped ? "true" : "false");
    printf("the sum is %lld, and there were %lld alarms\n", (long long)sum, (long long)alarms);
    const char *keys[] = {"temperature.roof", "temperature.room"};
    for (int i = 0; i < 2; i++) {
        pace_dead_filter_t filter = {0};
        filter.struct_size = sizeof filter;
        filter.pattern = keys[i];
        must(pace_hub_dead_letters(hub, &filter, show_letter, NULL, NULL));
    }
    audit.struct_size = sizeof audit;
    must(pace_hub_audit(hub, &audit));
    printf("the books balance: %s\n", audit.balances ? "true" : "false");

    pace_publisher_free(roof.publisher);
    pace_publisher_free(room.publisher);
    pace_key_free(roof.key);
    pace_key_free(room.key);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return EXIT_SUCCESS;
}
