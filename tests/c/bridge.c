/* Bridges: two hubs of one process, over a broker. */
#include "check.h"

#include "broker.h"

typedef struct told {
    atomic_int calls, drops;
    atomic_int status;
    atomic_bool has_reason;
} told_t;

static void tell(void *data, pace_status_t status) {
    told_t *told = (told_t *)data;
    atomic_store(&told->status, status);
    atomic_store(&told->has_reason, status != PACE_OK && pace_last_error()[0] != '\0');
    atomic_fetch_add(&told->calls, 1);
}
static void tell_drop(void *data) { atomic_fetch_add(&((told_t *)data)->drops, 1); }

static pace_bridge_options_t options_of(const char *servers) {
    pace_bridge_options_t options;
    OK(pace_bridge_options_init(&options, sizeof options));
    options.servers = servers;
    options.reconnect_first_ns = MILLI;
    options.reconnect_cap_ns = 10 * MILLI;
    return options;
}

static pace_bridge_t *bridge_to(pace_hub_t *hub, const char *servers) {
    pace_bridge_options_t options = options_of(servers);
    pace_bridge_t *bridge = NULL;
    OK(pace_bridge_new(hub, &options, &bridge));
    return bridge;
}

static void export_stored(pace_bridge_t *bridge, const char *pattern, const char *stream) {
    pace_bridge_export_options_t options;
    OK(pace_bridge_export_options_init(&options, sizeof options));
    options.stream = stream;
    OK(pace_bridge_export(bridge, pattern, &options));
}

static pace_bridge_stats_t stats_of(const pace_bridge_t *bridge) {
    pace_bridge_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_bridge_stats(bridge, &stats));
    return stats;
}

static pace_bridge_export_stats_t exported(const pace_bridge_t *bridge, size_t index) {
    pace_bridge_export_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_bridge_export_stats(bridge, index, &stats));
    return stats;
}

static pace_bridge_import_stats_t imported(const pace_bridge_t *bridge, size_t index) {
    pace_bridge_import_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_bridge_import_stats(bridge, index, &stats));
    return stats;
}

static bool is_text(pace_text_t text, const char *expected) {
    return text.size == strlen(expected) && memcmp(text.text, expected, text.size) == 0;
}

static void opened(pace_bridge_t *bridge) {
    OK(pace_bridge_open(bridge));
    OK(pace_bridge_wait_connected(bridge, PACE_FOREVER));
}

/* What is found out without a broker. False: the library has no bridges. */
static bool settings(pace_hub_t *hub) {
    pace_bridge_options_t options, good;
    pace_bridge_export_options_t out;
    pace_bridge_import_options_t in;
    pace_bridge_t *bridge = NULL;
    pace_pending_store_t *pending = NULL;
    pace_bridge_stats_t stats = {0};
    char text[64];
    size_t needed;
    SAYS(PACE_EVERSION, pace_bridge_options_init(&options, 8));
    OK(pace_bridge_options_init(&good, sizeof good));
    CHECK(good.connect_timeout_ns == 5 * SECOND && good.window_count == 100000);
    OK(pace_bridge_export_options_init(&out, sizeof out));
    CHECK(out.overflow == PACE_OVERFLOW_DEFAULT && out.buffer == 65536 && out.in_flight == 256);
    OK(pace_bridge_import_options_init(&in, sizeof in));
    CHECK(in.start == PACE_START_AT_FIRST && in.retry.shape == PACE_RETRY_DEFAULT);
    good.servers = "nats://127.0.0.1:1";
    if (pace_bridge_new(hub, &good, &bridge) == PACE_EUNSUPPORTED) {
        TELLS("without the feature `nats`");
        return false;
    }
    pace_bridge_free(bridge);
    SAYS(PACE_EINVAL, pace_bridge_new(hub, NULL, &bridge));

    options = good;
    options.servers = NULL;
    SAYS(PACE_EINVAL, pace_bridge_new(hub, &options, &bridge));
    TELLS("servers");
    options = good;
    options.token = "t", options.user = "u";
    SAYS(PACE_EINVAL, pace_bridge_new(hub, &options, &bridge));
    TELLS("one of user, token");
    options = good;
    options.password = "secret";
    SAYS(PACE_EINVAL, pace_bridge_new(hub, &options, &bridge));
    TELLS("without user");
    options = good;
    options.password_file = "/tmp/file";
    SAYS(PACE_EINVAL, pace_bridge_new(hub, &options, &bridge));
    TELLS("password_file is set without user");
    options.user = "joe", options.password = "secret";
    SAYS(PACE_EINVAL, pace_bridge_new(hub, &options, &bridge));
    TELLS("in place of password");
    CHECK(strstr(pace_last_error(), "secret") == NULL);
    options = good;
    options.token_file = "/tmp/file", options.token = "secret";
    SAYS(PACE_EINVAL, pace_bridge_new(hub, &options, &bridge));
    TELLS("token_file");
    CHECK(strstr(pace_last_error(), "secret") == NULL);
    options = good;
    options.token = "secret\xff";
    SAYS(PACE_EINVAL, pace_bridge_new(hub, &options, &bridge));
    CHECK(strstr(pace_last_error(), "secret") == NULL);
    options = good;
    options.client_key = "key.pem";
    SAYS(PACE_EINVAL, pace_bridge_new(hub, &options, &bridge));
    TELLS("client_certificate");

    options = good;
    options.servers = "nats://joe:secret@:x:y";
    OK(pace_bridge_new(hub, &options, &bridge));
    SAYS(PACE_EINVAL, pace_bridge_open(bridge));
    TELLS("nats://host:port");
    CHECK(strstr(pace_last_error(), "secret") == NULL);
    pace_bridge_free(bridge);

    OK(pace_bridge_new(hub, &good, &bridge));
    SAYS(PACE_EINVAL, pace_bridge_export(NULL, "a", NULL));
    SAYS(PACE_EINVAL, pace_bridge_export(bridge, NULL, NULL));
    SAYS(PACE_EINVAL, pace_bridge_import(bridge, NULL, NULL));
    SAYS(PACE_EINVAL, pace_bridge_permit(bridge, NULL));
    out.overflow = 99;
    SAYS(PACE_EINVAL, pace_bridge_export(bridge, "a", &out));
    TELLS("99");
    in.stream = "S";
    SAYS(PACE_EINVAL, pace_bridge_import(bridge, "a", &in));
    TELLS("durable is NULL");
    in.stream = NULL, in.durable = "d";
    SAYS(PACE_EINVAL, pace_bridge_import(bridge, "a", &in));
    TELLS("stream is NULL");
    in.durable = NULL, in.start = 4;
    SAYS(PACE_EINVAL, pace_bridge_import(bridge, "a", &in));
    TELLS("PACE_START_AT_");

    /* A spool needs a stream, and the archive of its hub. */
    pace_bridge_t *spooled = NULL;
    for (int has_stream = 0; has_stream < 2; has_stream++) {
        OK(pace_bridge_new(hub, &good, &spooled));
        OK(pace_bridge_export_options_init(&out, sizeof out));
        out.spool = "spool", out.stream = has_stream ? "A" : NULL;
        OK(pace_bridge_export(spooled, "a", &out));
        SAYS(PACE_EINVAL, pace_bridge_open(spooled));
        TELLS(has_stream ? "histor" : "spool");
        pace_bridge_free(spooled);
    }

    /* Before it is open. */
    SAYS(PACE_EINVAL, pace_bridge_open(bridge));
    TELLS("an export or an import");
    SAYS(PACE_EINVAL, pace_bridge_wait_connected(bridge, 0));
    TELLS("not open");
    SAYS(PACE_EINVAL, pace_bridge_flush(bridge, 0));
    SAYS(PACE_EINVAL, pace_bridge_close(bridge, 0, NULL));
    SAYS(PACE_EINVAL, pace_bridge_publish(bridge, "a", NULL, "x", 1, 0, &pending));
    stats.struct_size = sizeof stats;
    SAYS(PACE_EINVAL, pace_bridge_stats(bridge, &stats));
    SAYS(PACE_EINVAL, pace_bridge_reason(bridge, NULL, 0, &needed));

    /* It may be tried again. */
    OK(pace_bridge_import(bridge, "orders.>", NULL));
    OK(pace_bridge_permit(bridge, "prices.>"));
    SAYS(PACE_EINVAL, pace_bridge_open(bridge));
    TELLS("orders.>");
    OK(pace_bridge_permit(bridge, "orders.>"));
    OK(pace_bridge_open(bridge));
    SAYS(PACE_EINVAL, pace_bridge_open(bridge));
    SAYS(PACE_EINVAL, pace_bridge_export(bridge, "a", NULL));
    TELLS("open already");

    /* Nobody is there. */
    SAYS(PACE_ETIMEDOUT, pace_bridge_wait_connected(bridge, MILLI));
    stats = stats_of(bridge);
    CHECK(!stats.connected && stats.connects == 0 && stats.exports == 0 && stats.imports == 1);
    do {
        SAYS(PACE_EFULL, pace_bridge_reason(bridge, text, 0, &needed));
    } while (needed == 1 && (check_nap(), true));
    pace_bridge_import_stats_t of_import = imported(bridge, 0);
    CHECK(is_text(of_import.pattern, "orders.>") && of_import.stream.text == NULL);
    of_import.struct_size = sizeof of_import;
    SAYS(PACE_EINVAL, pace_bridge_import_stats(bridge, 1, &of_import));
    TELLS("number of imports, 1");
    SAYS(PACE_EINVAL, pace_bridge_publish(bridge, "a", NULL, "x", 1, 0, &pending));
    TELLS("at least once");
    SAYS(PACE_EINVAL, pace_bridge_publish(bridge, "a", NULL, "x", 1, PACE_PUBLISH_NO_RECEIPT, &pending));
    SAYS(PACE_EINVAL, pace_bridge_publish(bridge, "a", NULL, "x", 1, 0, NULL));
    OK(pace_bridge_close(bridge, SECOND, NULL));
    SAYS(PACE_ESHUTDOWN, pace_bridge_wait_connected(bridge, MILLI));
    pace_bridge_free(bridge);
    pace_bridge_free(NULL);

    SAYS(PACE_EINVAL, pace_pending_store_wait(NULL, 0));
    SAYS(PACE_EINVAL, pace_pending_store_then(NULL, tell, NULL, NULL));
    pace_pending_store_free(NULL);
    return true;
}

static void count_message(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)message;
    atomic_fetch_add((atomic_int *)data, 1);
    *outcome = 0;
}

/* At most once: from one hub to the other, and not back. */
static void at_most_once(pace_hub_t *here, pace_hub_t *there, const broker_t *broker) {
    pace_bridge_t *out = bridge_to(here, broker->url), *in = bridge_to(there, broker->url);
    atomic_int got = 0;
    pace_subscription_t subscription;
    char text[80];
    size_t needed;
    OK(pace_bridge_export(out, "orders.>", NULL));
    OK(pace_bridge_import(in, "orders.>", NULL));
    OK(pace_bridge_export(in, "orders.>", NULL));
    OK(pace_hub_subscribe(there, "orders.*", NULL, count_message, &got, NULL, &subscription));
    opened(out), opened(in);
    /* What is published before the broker knows of the import is lost. */
    UNTIL(pace_hub_publish(here, "orders.eu", "42", 2, PACE_PUBLISH_NO_RECEIPT, NULL) == PACE_OK &&
          atomic_load(&got) > 0);
    OK(pace_bridge_flush(out, PACE_FOREVER));
    CHECK(exported(out, 0).sent > 0 && exported(out, 0).stored == 0);
    UNTIL(exported(in, 0).turned_back > 0);
    CHECK(stats_of(out).connected && stats_of(out).connects == 1);
    OK(pace_bridge_server(out, text, sizeof text, &needed));
    CHECK(needed == strlen(text) + 1 && needed > 1);
    OK(pace_bridge_reason(out, text, sizeof text, &needed));
    CHECK(needed == 1);
    OK(pace_hub_unsubscribe(there, subscription, PACE_UNSUBSCRIBE_SYNC, NULL));
    pace_bridge_free(in);
    pace_bridge_free(out);
}

static void fail_first(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)message;
    *outcome = atomic_fetch_add((atomic_int *)data, 1) == 0 ? PACE_EFAILED : 0;
}

/* At least once: stored, and tried again when a handler has failed. */
static void at_least_once(pace_hub_t *here, pace_hub_t *there, const broker_t *broker) {
    pace_bridge_t *out = bridge_to(here, broker->url), *in = bridge_to(there, broker->url);
    pace_pending_store_t *pending = NULL;
    pace_publication_t with;
    pace_field_t header = {{"trace", 5}, {"7", 1}};
    pace_bridge_import_options_t options;
    pace_subscription_t subscription;
    told_t told = {0};
    atomic_int runs = 0;
    export_stored(out, "audit.>", "AUDIT");
    opened(out);
    OK(pace_publication_init(&with, sizeof with));
    with.priority = PACE_PRIORITY_HIGH;
    with.headers = &header, with.header_count = 1;
    OK(pace_bridge_publish(out, "audit.login", &with, "joe", 3, 0, &pending));
    OK(pace_pending_store_wait(pending, PACE_FOREVER));
    /* What is known is told at once, and only to one. */
    SAYS(PACE_EINVAL, pace_pending_store_then(pending, NULL, &told, tell_drop));
    OK(pace_pending_store_then(pending, tell, &told, tell_drop));
    CHECK(told.calls == 1 && told.drops == 1 && told.status == PACE_OK);
    SAYS(PACE_EBUSY, pace_pending_store_then(pending, tell, &told, tell_drop));
    SAYS(PACE_EBUSY, pace_pending_store_wait(pending, 0));
    pace_pending_store_free(pending);
    pace_bridge_export_stats_t stats = exported(out, 0);
    CHECK(is_text(stats.pattern, "audit.>") && is_text(stats.stream, "AUDIT") && stats.stored == 1);

    /* It is called, though the handle is freed. */
    OK(pace_bridge_publish(out, "audit.login", NULL, "ann", 3, PACE_PUBLISH_NO_WAIT, &pending));
    OK(pace_pending_store_then(pending, tell, &told, tell_drop));
    pace_pending_store_free(pending);
    UNTIL(atomic_load(&told.drops) == 2);
    CHECK(told.calls == 2 && told.status == PACE_OK);

    /* The stream does not take it. */
    size_t size = 2 << 20;
    void *large = calloc(1, size);
    OK(pace_bridge_publish(out, "audit.login", NULL, large, size, 0, &pending));
    SAYS(PACE_EINVAL, pace_pending_store_wait(pending, PACE_FOREVER));
    OK(pace_pending_store_then(pending, tell, &told, tell_drop));
    CHECK(told.calls == 3 && told.status == PACE_EINVAL && told.has_reason);
    pace_pending_store_free(pending);
    free(large);

    OK(pace_hub_subscribe(there, "audit.>", NULL, fail_first, &runs, NULL, &subscription));
    OK(pace_bridge_import_options_init(&options, sizeof options));
    options.stream = "AUDIT", options.durable = "reader";
    options.start = PACE_START_AT_SEQUENCE, options.start_sequence = 2;
    options.retry.shape = PACE_RETRY_FIXED, options.retry.retries = 2;
    options.retry.first_ns = 10 * MILLI;
    OK(pace_bridge_import(in, "audit.>", &options));
    opened(in);
    UNTIL(imported(in, 0).acknowledged == 1);
    CHECK(runs == 2 && imported(in, 0).again == 1 && imported(in, 0).dead == 0);
    OK(pace_hub_unsubscribe(there, subscription, PACE_UNSUBSCRIBE_SYNC, NULL));
    pace_bridge_free(in);
    pace_bridge_free(out);
}

static void reply(void *data, const pace_message_t *message, int32_t *outcome) {
    *outcome = pace_hub_reply((pace_hub_t *)data, message, "pong", 4, NULL);
}

static void requests(pace_hub_t *here, pace_hub_t *there, const broker_t *broker) {
    pace_bridge_t *out = bridge_to(here, broker->url), *in = bridge_to(there, broker->url);
    pace_subscription_t subscription;
    pace_message_t answer;
    pace_key_t *key;
    OK(pace_bridge_export(out, "ask.>", NULL));
    OK(pace_bridge_import(in, "ask.>", NULL));
    OK(pace_hub_subscribe(there, "ask.*", NULL, reply, there, NULL, &subscription));
    opened(out), opened(in);
    OK(pace_hub_key(here, "ask.ping", &key));
    UNTIL(pace_key_request(key, NULL, "ping", 4, 10 * SECOND, &answer) == PACE_OK);
    CHECK(answer.size == 4 && memcmp(answer.payload, "pong", 4) == 0);
    UNTIL(stats_of(out).requests_out == 0 && stats_of(in).requests_in == 0);
    pace_key_free(key);
    OK(pace_hub_unsubscribe(there, subscription, PACE_UNSUBSCRIBE_SYNC, NULL));
    pace_bridge_free(in);
    pace_bridge_free(out);
}

typedef struct waiter {
    pace_pending_store_t *pending;
    pace_status_t status;
} waiter_t;

static void *wait_long(void *data) {
    waiter_t *waiter = (waiter_t *)data;
    waiter->status = pace_pending_store_wait(waiter->pending, PACE_FOREVER);
    return NULL;
}

/* The broker goes: what waits is told of at the end, and how much is lost. */
static void the_broker_goes(pace_hub_t *here, broker_t *broker) {
    pace_bridge_t *bridge = bridge_to(here, broker->url);
    pace_pending_store_t *pending = NULL, *other = NULL;
    pthread_t thread;
    told_t told = {0};
    uint64_t left = 0;
    export_stored(bridge, "audit.>", "AUDIT");
    opened(bridge);
    broker_kill(broker);
    UNTIL(!stats_of(bridge).connected);
    OK(pace_bridge_publish(bridge, "audit.a", NULL, "a", 1, 0, &pending));
    OK(pace_bridge_publish(bridge, "audit.b", NULL, "b", 1, 0, &other));
    SAYS(PACE_ETIMEDOUT, pace_pending_store_wait(pending, MILLI));
    SAYS(PACE_ETIMEDOUT, pace_bridge_flush(bridge, MILLI));
    OK(pace_pending_store_then(other, tell, &told, tell_drop));
    CHECK(broker_run(broker));
    OK(pace_pending_store_wait(pending, PACE_FOREVER));
    UNTIL(atomic_load(&told.drops) == 1);
    CHECK(told.status == PACE_OK && stats_of(bridge).connects == 2);
    pace_pending_store_free(pending);
    pace_pending_store_free(other);

    broker_kill(broker);
    UNTIL(!stats_of(bridge).connected);
    OK(pace_bridge_publish(bridge, "audit.a", NULL, "a", 1, 0, &pending));
    OK(pace_bridge_publish(bridge, "audit.b", NULL, "b", 1, 0, &other));
    OK(pace_pending_store_then(other, tell, &told, tell_drop));
    waiter_t waiter = {pending, PACE_OK};
    CHECK(pthread_create(&thread, NULL, wait_long, &waiter) == 0);
    OK(pace_bridge_close(bridge, 20 * MILLI, &left));
    CHECK(left == 2);
    CHECK(pthread_join(thread, NULL) == 0 && waiter.status == PACE_ESHUTDOWN);
    CHECK(told.calls == 2 && told.drops == 2 && told.status == PACE_ESHUTDOWN);
    pace_pending_store_free(pending);
    SAYS(PACE_ESHUTDOWN, pace_bridge_publish(bridge, "audit.a", NULL, "a", 1, 0, &pending));
    pace_bridge_free(bridge);
    pace_pending_store_free(other);
}

/* Goal: a bridge is what files say, later ones over earlier ones, and secrets are in no error. */
static void from_settings(pace_hub_t *hub) {
    char first[] = "/tmp/paceline-c-XXXXXX.yaml", second[] = "/tmp/paceline-c-XXXXXX.yaml";
    const char *files[] = {first, second};
    const char *texts[] = {
        "bridge: {servers: 'nats://127.0.0.1:1', exports: [plain], imports: ['more.>']}",
        "bridge: {exports: [{pattern: a, stream: A}, b]}",
    };
    pace_bridge_t *bridge = NULL;
    for (int at = 0; at < 2; at++) {
        int fd = mkstemps(at == 0 ? first : second, 5);
        CHECK(fd >= 0 && write(fd, texts[at], strlen(texts[at])) == (ssize_t)strlen(texts[at]));
        close(fd);
    }
    SAYS(PACE_EINVAL, pace_bridge_load(NULL, files, 2, false, &bridge));
    SAYS(PACE_EINVAL, pace_bridge_load(hub, files, 2, false, NULL));
    SAYS(PACE_EINVAL, pace_bridge_load(hub, NULL, 2, false, &bridge));
    SAYS(PACE_EINVAL, pace_bridge_load(hub, files + 1, 1, false, &bridge));
    TELLS("bridge.servers is unset");
    OK(pace_bridge_load(hub, files, 2, false, &bridge));
    OK(pace_bridge_export(bridge, "c", NULL));
    OK(pace_bridge_open(bridge));
    CHECK(stats_of(bridge).exports == 3 && stats_of(bridge).imports == 1);
    CHECK(is_text(exported(bridge, 0).pattern, "a") && is_text(exported(bridge, 0).stream, "A"));
    pace_bridge_free(bridge);

    CHECK(setenv("PACELINE_BRIDGE_PASSWORD", "secret", 1) == 0);
    SAYS(PACE_EINVAL, pace_bridge_load(hub, files, 2, true, &bridge));
    TELLS("bridge.user is unset");
    CHECK(strstr(pace_last_error(), "secret") == NULL);
    CHECK(unsetenv("PACELINE_BRIDGE_PASSWORD") == 0);
    unlink(first), unlink(second);
}

#define SECRET "0pen.Sesame"

static void no_secret(void *data, const pace_message_t *notice, int32_t *outcome) {
    CHECK(memmem(notice->payload, notice->size, SECRET, strlen(SECRET)) == NULL);
    atomic_fetch_add((atomic_int *)data, 1);
    *outcome = 0;
}

/* Goal: a secret is read from its file at each connection, and is told by nobody. */
static void logs_in(pace_hub_t *hub, broker_t *broker, bool by_token) {
    char file[] = "/tmp/paceline-c-XXXXXX", reason[256];
    pace_bridge_options_t options = options_of(broker->url);
    pace_subscription_t notices;
    pace_bridge_t *bridge;
    atomic_int seen = 0;
    size_t needed;
    int fd = mkstemp(file);
    CHECK(fd >= 0 && write(fd, "wrong" SECRET, 5 + sizeof SECRET - 1) > 0);
    if (by_token) options.token_file = file;
    if (!by_token) options.user = "joe", options.password_file = file;
    OK(pace_hub_subscribe(hub, "$SYS.>", NULL, no_secret, &seen, NULL, &notices));
    OK(pace_bridge_new(hub, &options, &bridge));
    OK(pace_bridge_export(bridge, "a", NULL));
    OK(pace_bridge_open(bridge));
    do {
        check_nap();
        OK(pace_bridge_reason(bridge, reason, sizeof reason, &needed));
    } while (strstr(reason, "uthorization") == NULL);
    CHECK(strstr(reason, SECRET) == NULL && !stats_of(bridge).connected);
    CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, SECRET "\n", sizeof SECRET, 0) > 0);
    OK(pace_bridge_wait_connected(bridge, PACE_FOREVER));
    UNTIL(atomic_load(&seen) >= 2); /* refused, and connected */
    OK(pace_hub_unsubscribe(hub, notices, PACE_UNSUBSCRIBE_SYNC, NULL));
    close(fd), unlink(file);
    pace_bridge_free(bridge);
}

int main(void) {
    broker_t broker, locked[2];
    check_begin();
    bool has_broker = broker_start(&broker) && broker_start_with(&locked[0], "joe", SECRET) &&
                      broker_start_with(&locked[1], NULL, SECRET);
    pace_pool_t *pool = pool_of(2);
    pace_hub_t *here, *there;
    OK(pace_hub_new(pool, NULL, &here));
    OK(pace_hub_new(pool, NULL, &there));
    bool has_bridges = settings(here);
    if (has_bridges) from_settings(there);
    if (has_bridges && has_broker) {
        at_most_once(here, there, &broker);
        at_least_once(here, there, &broker);
        requests(here, there, &broker);
        the_broker_goes(here, &broker);
        logs_in(here, &locked[0], false);
        logs_in(here, &locked[1], true);
    }
    pace_hub_free(there);
    pace_hub_free(here);
    finish(pool);
    if (has_broker) broker_stop(&broker), broker_stop(&locked[0]), broker_stop(&locked[1]);
    return 0;
}
