/* A shop as a service: an HTTP API with JSON, an upload and server-sent events; jobs that are retried until a deadline; a
 * hub with a history between them; settings from a file, a log, an operations page with health, and an orderly end.
 *
 *     cc examples/c/service.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -pthread -o service
 *     ./service
 *     curl -i http://127.0.0.1:8080/orders -d '{"item": "tea", "quantity": 2}'
 *     curl -i http://127.0.0.1:8080/orders/1
 *     curl -i http://127.0.0.1:8080/orders/1/receipt -T README.md
 *     curl -N http://127.0.0.1:8080/events
 *
 * The bank is busy twice for an order of "flaky", refuses "stolen", and never answers about "stuck". The operations page is
 * at http://127.0.0.1:9090/. SIGTERM or Ctrl-C ends the service: it completes the orders that it has accepted, sends the
 * readers of events the last ones, and exits with 0. An argument names another file of settings than service.yaml. */
#define _GNU_SOURCE
#include <paceline.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define DRAIN (30 * SECOND)  /* how long each part of the end may take */
#define THE_END "orders.end" /* the key of the empty message that ends the streams of events */
enum { MAX_ORDERS = 10000, MAX_READERS = 100, MAX_RECEIPT = 65536, ITEM_SIZE = 1000, JSON_SIZE = 1200 };

typedef struct order {
    char item[ITEM_SIZE]; /* as JSON, with its quotes */
    unsigned quantity, attempts;
    const char *state;
} order_t;

static order_t orders[MAX_ORDERS]; /* order 1 is the first */
static size_t order_count;
static struct reader {
    pace_body_t **body; /* of a stream of events; *body is NULL when that has ended */
    pace_replay_t *replay;
} readers[MAX_READERS];
static size_t reader_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all of these */
static pace_hub_t *hub;
static pace_workers_t *workers;
static pace_task_type_t *charges;

/* Ends the program with the reason unless a call has worked. */
static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "service: %s\n", pace_last_error());
    exit(EXIT_FAILURE);
}

/* Writes an order as JSON; the lock is held. */
static void write_order(size_t id, char *json) {
    const order_t *order = &orders[id - 1];
    snprintf(json, JSON_SIZE,
             "{\"id\":%zu,\"item\":%s,\"quantity\":%u,\"state\":\"%s\",\"attempts\":%u}", id,
             order->item, order->quantity, order->state, order->attempts);
}

/* Changes the state of an order, and publishes the order. */
static void change(size_t id, const char *state, unsigned attempts) {
    char key[32], json[JSON_SIZE];
    pthread_mutex_lock(&lock);
    orders[id - 1].state = state;
    if (attempts > 0) orders[id - 1].attempts = attempts;
    write_order(id, json);
    pthread_mutex_unlock(&lock);
    snprintf(key, sizeof key, "orders.%zu", id);
    /* It fails only when the pool has ended. */
    pace_hub_publish(hub, key, json, strlen(json), PACE_PUBLISH_NO_RECEIPT, NULL);
}

/* An attempt to charge for an order. It may block its thread as long as it likes: no request waits for it. */
static void charge(void *id, pace_attempt_t *attempt, int32_t *outcome) {
    const char *item = orders[(size_t)id - 1].item;
    uint32_t number = 0;
    bool is_cancelled = false;
    pace_attempt_number(attempt, &number);
    change((size_t)id, "charging", number);
    while (strcmp(item, "\"stuck\"") == 0 && !is_cancelled) {
        usleep(5000);
        pace_attempt_is_cancelled(attempt, &is_cancelled);
    }
    if (strcmp(item, "\"stolen\"") == 0) {
        pace_attempt_fail(attempt, "the card is stolen");
        pace_attempt_permanent(attempt);
    } else if (strcmp(item, "\"flaky\"") == 0 && number < 3) {
        pace_attempt_fail(attempt, "the bank is busy");
    } else {
        *outcome = 0;
    }
}

static void charged(void *id, uint32_t status) {
    const char *others = status == PACE_TASK_TIMED_OUT ? "late" : "cancelled";
    const char *unpaid = status == PACE_TASK_FAILED ? "declined" : others;
    change((size_t)id, status == PACE_TASK_COMPLETED ? "paid" : unpaid, 0);
}

/* Answers with JSON. It fails only if the client has gone. */
static void answer(pace_response_t *response, uint32_t status, const char *json) {
    pace_response_status(response, status);
    pace_response_send_as(response, "application/json", json, strlen(json));
}

/* Answers with an error that names the field and says what would be right. */
static void refuse(pace_response_t *response, uint32_t status, const char *field, const char *error) {
    char json[JSON_SIZE];
    snprintf(json, sizeof json, "{\"field\":\"%s\",\"error\":\"%s\"}", field, error);
    answer(response, status, json);
}

static void create(void *data, const pace_request_t *request, pace_response_t *response) {
    char item[ITEM_SIZE], quoted[ITEM_SIZE], json[JSON_SIZE], location[32];
    pace_piece_t body;
    pace_task_t task;
    uint32_t kind;
    size_t size = 0;
    double quantity = 0;
    (void)data;
    must(pace_request_body(request, &body));
    if (pace_json_kind(body.bytes, body.size, "", &kind) != PACE_OK || kind != PACE_JSON_OBJECT)
        return refuse(response, 400, "body", "must be a JSON object");
    if (pace_json_text(body.bytes, body.size, "/item", item, sizeof item, &size) != PACE_OK ||
        size < 2 || pace_json_quote(item, size - 1, quoted, sizeof quoted, &size) != PACE_OK)
        return refuse(response, 422, "item", "must be a text that is not empty");
    pace_json_number(body.bytes, body.size, "/quantity", &quantity);
    if (!(quantity >= 1 && quantity <= 1000) || quantity != (unsigned)quantity)
        return refuse(response, 422, "quantity", "must be a whole number from 1 to 1000");
    pthread_mutex_lock(&lock);
    const size_t id = order_count < MAX_ORDERS ? ++order_count : 0;
    if (id > 0) {
        order_t *order = &orders[id - 1];
        *order = (order_t){.quantity = (unsigned)quantity, .state = "accepted"};
        memcpy(order->item, quoted, size);
        write_order(id, json);
    }
    pthread_mutex_unlock(&lock);
    if (id == 0) return refuse(response, 503, "order", "cannot be taken now");
    change(id, "accepted", 0);
    if (pace_workers_submit(workers, charges, charge, (void *)id, NULL, NULL, &task) != PACE_OK) {
        change(id, "cancelled", 0);
        return refuse(response, 503, "order", "cannot be taken now");
    }
    must(pace_workers_on_end(workers, task, charged, (void *)id, NULL));
    must(pace_workers_detach(workers, task));
    snprintf(location, sizeof location, "/orders/%zu", id);
    pace_response_header(response, "Location", location);
    answer(response, 201, json);
}

static void list(void *data, const pace_request_t *request, pace_response_t *response) {
    char *all, json[JSON_SIZE];
    size_t size;
    FILE *to = open_memstream(&all, &size);
    (void)data, (void)request;
    fputs("{\"orders\":[", to);
    pthread_mutex_lock(&lock);
    for (size_t id = 1; id <= order_count; id++) {
        write_order(id, json);
        fprintf(to, "%s%s", id == 1 ? "" : ",", json);
    }
    pthread_mutex_unlock(&lock);
    fputs("]}", to);
    fclose(to);
    answer(response, 200, all);
    free(all);
}

/* 0 if the text is no number. */
static uint64_t number_in(pace_text_t text) {
    uint64_t number = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.text[i] < '0' || text.text[i] > '9' || number > UINT64_MAX / 100) return 0;
        number = number * 10 + (uint64_t)(text.text[i] - '0');
    }
    return number;
}

/* Writes the order that the path names as JSON. False: there is none, and the answer was 404. */
static bool find(const pace_request_t *request, pace_response_t *response, char *json) {
    pace_text_t text;
    must(pace_request_param(request, "id", &text));
    const uint64_t id = number_in(text);
    pthread_mutex_lock(&lock);
    const bool is_there = id >= 1 && id <= order_count;
    if (is_there) write_order(id, json);
    pthread_mutex_unlock(&lock);
    if (!is_there) refuse(response, 404, "id", "names no order");
    return is_there;
}

static void show(void *data, const pace_request_t *request, pace_response_t *response) {
    char json[JSON_SIZE];
    (void)data;
    if (find(request, response, json)) answer(response, 200, json);
}

/* An upload, counted and summed up (Adler-32) as it comes. It is never in memory as a whole. */
typedef struct upload {
    pace_response_t *response; /* NULL: it was answered */
    size_t size;
    uint32_t low, high;
} upload_t;

static void begin(void *data, const pace_request_t *request, pace_response_t *response, void **body) {
    char json[JSON_SIZE];
    (void)data;
    if (!find(request, response, json)) return;
    *body = malloc(sizeof(upload_t));
    *(upload_t *)*body = (upload_t){response, 0, 1, 0};
}

static size_t take(void *body, const void *bytes, size_t size) {
    upload_t *upload = body;
    upload->size += size;
    for (size_t i = 0; i < size; i++) {
        upload->low = (upload->low + ((const unsigned char *)bytes)[i]) % 65521;
        upload->high = (upload->high + upload->low) % 65521;
    }
    if (upload->size > MAX_RECEIPT && upload->response != NULL) {
        refuse(upload->response, 413, "receipt", "must have up to 65536 bytes");
        upload->response = NULL;
    }
    return size;
}

static void end(void *body, bool is_whole) {
    upload_t *upload = body;
    char json[JSON_SIZE];
    snprintf(json, sizeof json, "{\"size\":%zu,\"adler32\":\"%08x\"}", upload->size,
             upload->high << 16 | upload->low);
    if (is_whole && upload->response != NULL)
        answer(upload->response, 200, json);
    else
        pace_response_free(upload->response);
    free(upload);
}

/* Writes to a stream of events. False if it has ended, as when its client has gone. */
static bool write_to(pace_body_t **body, const char *text) {
    if (*body != NULL && pace_body_write(*body, text, strlen(text), NULL) != PACE_OK) {
        pace_body_free(*body);
        *body = NULL;
    }
    return *body != NULL;
}

static void tell(void *data, const pace_message_t *message, int32_t *outcome) {
    pace_body_t **body = data;
    char event[JSON_SIZE + 100];
    snprintf(event, sizeof event, "id: %llu\nevent: order\ndata: %.*s\n\n",
             (unsigned long long)message->sequence, (int)message->size, (const char *)message->payload);
    pthread_mutex_lock(&lock);
    if (message->size > 0) {
        write_to(body, event);
    } else if (*body != NULL) { /* the message of THE_END, which is empty */
        pace_body_finish(*body);
        *body = NULL;
    }
    pthread_mutex_unlock(&lock);
    *outcome = 0;
}

/* Its handler does not run any more. */
static void drop_stream(void *data) {
    pace_body_free(*(pace_body_t **)data);
    free(data);
}

/* Server-sent events: what has happened since the event that the client has seen last, and what happens from now on. */
static void events(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_body_t **body = calloc(1, sizeof *body);
    pace_text_t seen;
    pace_replay_t *replay;
    uint32_t status;
    (void)data;
    must(pace_request_header(request, "Last-Event-ID", &seen));
    pace_response_header(response, "Content-Type", "text/event-stream");
    pace_response_header(response, "Cache-Control", "no-store");
    static const char first[] = ": the orders of the shop\n\n";
    if (pace_response_stream(response, PACE_LENGTH_UNKNOWN, body) != PACE_OK) return free(body);
    if (pace_body_write(*body, first, sizeof first - 1, &status) == PACE_OK &&
        status == PACE_WRITE_STATUS_UNWANTED) {
        pace_body_finish(*body); /* the answer to HEAD has no body */
        return free(body);
    }
    /* An id that no event has had yet is of another time: then all events are new. */
    const pace_query_t query = {
        .struct_size = sizeof query, .pattern = "orders.*", .first = number_in(seen), .limit = 1};
    size_t known = 0;
    pace_hub_query(hub, &query, NULL, NULL, &known);
    const uint64_t from = known > 0 ? query.first + 1 : 1;
    if (pace_hub_replay(hub, "orders.*", PACE_REPLAY_SEQUENCE, from, tell, body, drop_stream, &replay) !=
        PACE_OK)
        return drop_stream(body);
    pthread_mutex_lock(&lock);
    const bool has_room = reader_count < MAX_READERS;
    if (has_room) readers[reader_count++] = (struct reader){body, replay};
    pthread_mutex_unlock(&lock);
    if (!has_room) pace_replay_free(replay);
}

/* Readers that have gone are noticed when they are written to. */
static int32_t beat(void *data, pace_handle_t handle) {
    (void)data, (void)handle;
    pthread_mutex_lock(&lock);
    for (size_t i = reader_count; i-- > 0;) {
        if (write_to(readers[i].body, ": still here\n\n")) continue;
        pace_replay_free(readers[i].replay);
        readers[i] = readers[--reader_count];
    }
    pthread_mutex_unlock(&lock);
    return PACE_FLOW_WAIT;
}

static void ignore(void *data, int32_t number) { (void)data, (void)number; }

/* Options with the defaults, and what the file and the environment say over them. */
#define LOAD(kind, name)                                                                                \
    pace_##kind##_t name;                                                                               \
    must(pace_##kind##_init(&name, sizeof name));                                                       \
    must(pace_##kind##_load(&name, file, true))

int main(int argc, char **argv) {
    const char *file = argc > 1 ? argv[1] : "examples/service/service.yaml";
    LOAD(log_config, log_config);
    LOAD(pool_config, pool_config);
    LOAD(workers_config, workers_config);
    LOAD(task_type_config, charge_config);
    LOAD(history_options, history);
    LOAD(hub_options, hub_options);
    LOAD(listener_options, listener);
    LOAD(http_options, http_options);
    LOAD(ops_options, ops_options);
    pace_log_t *log;
    pace_pool_t *pool;
    pace_signals_t *signals;
    pace_http_t *http;
    pace_server_t *server;
    pace_ops_t *ops;
    pace_service_t *systemd = NULL;
    pace_handle_t heartbeat;
    char address[PACE_ADDRESS_SIZE], page[PACE_ADDRESS_SIZE];

    must(pace_log_new(&log_config, &log));
    pool_config.log = log;
    must(pace_pool_new(&pool_config, &pool));
    must(pace_signals_new(pool, (const int32_t[]){SIGTERM, SIGINT}, 2, ignore, NULL, NULL, &signals));
    must(pace_workers_new(pool, &workers_config, &workers));
    must(pace_task_type_new(workers, "charge", &charge_config, &charges));
    hub_options.histories = &history;
    hub_options.history_count = 1;
    must(pace_hub_new(pool, &hub_options, &hub));

    pace_request_body_hooks_t receipt;
    must(pace_request_body_hooks_init(&receipt, sizeof receipt));
    receipt.begin = begin, receipt.data = take, receipt.end = end;
    must(pace_http_new(pool, &http));
    must(pace_http_access_log(http, PACE_ACCESS_JSON, NULL));
    must(pace_http_route(http, "POST", "/orders", create, NULL, NULL));
    must(pace_http_route(http, "GET", "/orders", list, NULL, NULL));
    must(pace_http_route(http, "GET", "/orders/{id}", show, NULL, NULL));
    must(pace_http_route(http, "GET", "/events", events, NULL, NULL));
    must(pace_http_route_streaming(http, "PUT", "/orders/{id}/receipt", &receipt, NULL, NULL));
    http_options.listeners = &listener;
    http_options.listener_count = 1;
    must(pace_http_start(http, &http_options));
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, sizeof address));
    must(pace_ops_serve(pool, NULL, &ops_options, &ops));
    must(pace_ops_address(ops, page, sizeof page));
    must(pace_pool_every(pool, 15 * SECOND, beat, NULL, NULL, &heartbeat));
    const pace_status_t told = pace_service_start(pool, NULL, NULL, NULL, &systemd);
    if (told != PACE_EUNSUPPORTED) must(told); /* it is for a library with the feature systemd */
    printf("the shop: http://%s/orders\nthe live page: http://%s/\n", address, page);
    fflush(stdout);

    must(pace_signals_wait(signals, NULL));
    pace_service_free(systemd);
    /* Orders are refused from here on, and those that were accepted are completed. */
    pace_workers_report_t jobs = {.struct_size = sizeof jobs};
    must(pace_workers_shutdown(workers, DRAIN, 5 * SECOND, 5 * SECOND, &jobs, NULL, NULL));
    /* Their last states are published. Behind them comes what ends the streams of events, which the server waits for. */
    must(pace_hub_publish(hub, THE_END, NULL, 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    pace_drain_report_t answered = {.struct_size = sizeof answered};
    must(pace_server_drain(server, DRAIN, &answered));
    pace_report_t report = {.struct_size = sizeof report};
    must(pace_pool_shutdown(pool, DRAIN, &report));
    const bool is_drained = jobs.drained && answered.drained && report.drained;
    printf("drained: %s, orders: %zu\n", is_drained ? "true" : "false", order_count);
    must(pace_log_close(log, 5 * SECOND));
    return is_drained ? EXIT_SUCCESS : EXIT_FAILURE; /* The system takes back the rest. */
}
