/* Datagram sockets: receiving, sending, groups, settings, the end, the books. */
#include "net.h"

static atomic_int drops, got, errors, closes, last_reason;

static void count_drops(void *data) {
    CHECK(data == &drops);
    atomic_fetch_add(&drops, 1);
}

static void count(void *data, pace_udp_t *udp, const pace_datagram_t *datagrams, size_t number) {
    CHECK(data == &drops && udp != NULL && datagrams != NULL && number > 0);
    atomic_fetch_add(&got, (int)number);
}

static void answer(void *data, pace_udp_t *udp, const pace_datagram_t *datagrams, size_t number) {
    char text[PACE_ADDRESS_SIZE];
    size_t sent = 0;
    count(data, udp, datagrams, number);
    for (size_t i = 0; i < number; i++) {
        CHECK(datagrams[i].length >= datagrams[i].size && datagrams[i].peer.version == 4);
        OK(pace_ip_text(&datagrams[i].peer, text, sizeof text));
        CHECK(strncmp(text, "127.0.0.1:", 10) == 0);
    }
    OK(pace_udp_send_batch(udp, datagrams, number, &sent));
    CHECK(sent == number);
    SAYS(PACE_EDEADLOCK, pace_udp_wait(udp));
}

static void count_error(void *data, pace_udp_t *udp, int32_t os_error) {
    CHECK(data == &drops && udp != NULL && os_error == ECONNREFUSED);
    atomic_fetch_add(&errors, 1);
}

static void count_close(void *data, pace_udp_t *udp, uint32_t reason) {
    CHECK(data == &drops);
    CHECK(pace_udp_send(udp, "x", 1) != PACE_OK);
    atomic_store(&last_reason, (int)reason);
    atomic_fetch_add(&closes, 1);
}

static pace_udp_hooks_t hooks_of(pace_udp_data_fn data) {
    pace_udp_hooks_t hooks;
    OK(pace_udp_hooks_init(&hooks, sizeof hooks));
    hooks.data = data;
    hooks.error = count_error;
    hooks.close = count_close;
    hooks.user_data = &drops;
    hooks.drop = count_drops;
    return hooks;
}

static pace_udp_options_t bound_to(const char *address) {
    pace_udp_options_t options;
    OK(pace_udp_options_init(&options, sizeof options));
    options.bind = address;
    return options;
}

static pace_udp_t *open_one(pace_pool_t *pool, const pace_udp_options_t *options,
                            pace_udp_data_fn data) {
    pace_udp_hooks_t hooks = hooks_of(data);
    pace_udp_t *udp = NULL;
    OK(pace_udp_new(pool, options, &hooks, &udp));
    return udp;
}

static void forget(void) {
    atomic_store(&drops, 0), atomic_store(&got, 0), atomic_store(&errors, 0), atomic_store(&closes, 0);
}

static pace_udp_stats_t stats_of_udp(pace_udp_t *udp) {
    pace_udp_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_udp_stats(udp, &stats));
    return stats;
}

static void datagrams_come_and_go(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_ip_t to;
    bool drained = false;
    pace_pool_t *pool = pool_of(2);
    pace_udp_options_t options = bound_to(TCP);
    forget();
    options.max_datagram = 100;
    pace_udp_t *server = open_one(pool, &options, answer);
    OK(pace_udp_address(server, address, sizeof address));
    SAYS(PACE_EINVAL, pace_udp_address(server, address, 3));
    OK(pace_udp_address(server, address, sizeof address));
    OK(pace_ip_read(address, &to));

    options = bound_to(TCP);
    pace_udp_t *client = open_one(pool, &options, count);
    pace_datagram_t three[] = {{"a", 1, 0, to}, {NULL, 0, 0, to}, {"ccc", 3, 0, to}};
    size_t sent = 0;
    OK(pace_udp_send_batch(client, three, 3, &sent));
    CHECK(sent == 3);
    UNTIL(atomic_load(&got) == 6);
    static char large[1000];
    OK(pace_udp_send_to(client, large, sizeof large, &to));
    UNTIL(atomic_load(&got) == 8);
    CHECK(stats_of_udp(server).truncated == 1 && stats_of_udp(client).received_bytes == 4 + 100);
    SAYS(PACE_EINVAL, pace_udp_send(client, "x", 1)); /* has no peer */
    SAYS(PACE_EOS, pace_udp_send_to(client, large, 1, &(pace_ip_t){4, 0, 9, 0, {255, 255, 255, 255}}));
    CHECK(pace_last_os_error() == EACCES && stats_of_udp(client).failed == 1);
    SAYS(PACE_EINVAL, pace_udp_send_to(client, large, 1, &(pace_ip_t){5, 0, 9, 0, {0}}));
    SAYS(PACE_EINVAL, pace_udp_send_to(client, large, 1, NULL));
    SAYS(PACE_EINVAL, pace_udp_send_to(client, NULL, 1, &to));
    SAYS(PACE_EINVAL, pace_udp_send_batch(client, NULL, 1, &sent));
    SAYS(PACE_EINVAL, pace_udp_send_batch(client, three, 3, NULL));
    OK(pace_udp_send_batch(client, NULL, 0, &sent));

    OK(pace_udp_drain(server, PACE_FOREVER, &drained));
    CHECK(drained && atomic_load(&closes) == 1 && atomic_load(&last_reason) == PACE_REASON_DRAINED);
    OK(pace_udp_close(client));
    SAYS(PACE_ESTALE, pace_udp_close(client));
    OK(pace_udp_wait(client));
    CHECK(atomic_load(&last_reason) == PACE_REASON_LOCAL);
    OK(pace_udp_is_open(client, &drained));
    CHECK(!drained);
    SAYS(PACE_ESTALE, pace_udp_send_to(client, "x", 1, &to));
    pace_udp_free(server);
    pace_udp_free(client);
    pace_udp_free(NULL);
    UNTIL(atomic_load(&drops) == 2);
    finish(pool);
}

static void connected_sockets(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(1);
    pace_udp_options_t options = bound_to(TCP);
    forget();
    pace_udp_t *server = open_one(pool, &options, answer);
    OK(pace_udp_address(server, address, sizeof address));
    options = bound_to(NULL);
    options.connect = address;
    pace_udp_t *client = open_one(pool, &options, count);
    OK(pace_udp_send(client, "x", 1));
    UNTIL(atomic_load(&got) == 2);
    OK(pace_udp_close(server));
    OK(pace_udp_wait(server));
    while (atomic_load(&errors) == 0) { /* nobody is there any more */
        pace_status_t status = pace_udp_send(client, "x", 1);
        CHECK(status == PACE_OK || (status == PACE_EOS && pace_last_os_error() == ECONNREFUSED));
        if (status == PACE_EOS) break;
        check_nap();
    }
    pace_udp_free(client);
    UNTIL(atomic_load(&closes) == 2 && atomic_load(&last_reason) == PACE_REASON_CUT_OFF);
    pace_udp_free(server);
    UNTIL(atomic_load(&drops) == 2);
    finish(pool);
}

static void groups(void) {
    pace_pool_t *pool = pool_of(1);
    pace_udp_options_t options = bound_to("0.0.0.0:0");
    forget();
    pace_udp_t *udp = open_one(pool, &options, count);
    SAYS(PACE_EINVAL, pace_udp_join_multicast(udp, "group", 0));
    SAYS(PACE_EINVAL, pace_udp_join_multicast(udp, NULL, 0));
    SAYS(PACE_EOS, pace_udp_join_multicast(udp, "10.0.0.1", 0));
    SAYS(PACE_EOS, pace_udp_leave_multicast(udp, "239.1.2.3", 1));
    OK(pace_udp_join_multicast(udp, "239.1.2.3", 1));
    OK(pace_udp_leave_multicast(udp, "239.1.2.3", 1));
    pace_udp_free(udp);
    finish(pool);
}

static void addresses(void) {
    static const char *const texts[] = {"127.0.0.1:80", "[::1]:65535", "[fe80::1%7]:1", "[::]:0"};
    char text[PACE_ADDRESS_SIZE];
    pace_ip_t ip;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        OK(pace_ip_read(texts[i], &ip));
        OK(pace_ip_text(&ip, text, sizeof text));
        CHECK(strcmp(text, texts[i]) == 0 && ip.version == (i == 0 ? 4 : 6));
    }
    SAYS(PACE_EINVAL, pace_ip_read("unix:/x", &ip));
    SAYS(PACE_EINVAL, pace_ip_read("nowhere", &ip));
    SAYS(PACE_EINVAL, pace_ip_read(NULL, &ip));
    SAYS(PACE_EINVAL, pace_ip_read("127.0.0.1:80", NULL));
    SAYS(PACE_EINVAL, pace_ip_text(NULL, text, sizeof text));
    SAYS(PACE_EINVAL, pace_ip_text(&ip, text, 2));
    ip.version = 0;
    SAYS(PACE_EINVAL, pace_ip_text(&ip, text, sizeof text));
}

#define REFUSES(field, value, name)                                                                     \
    do {                                                                                                \
        pace_udp_options_t changed = bound_to(TCP);                                                     \
        changed.field = (value);                                                                        \
        SAYS(PACE_EINVAL, pace_udp_new(pool, &changed, &hooks, &udp));                                  \
        TELLS(name);                                                                                    \
    } while (0)

static void settings(void) {
    char taken[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(1);
    pace_udp_hooks_t hooks = hooks_of(count);
    pace_udp_t *udp = NULL;
    forget();
    REFUSES(batch, 65, "batch is 65, but must be 1 to 64");
    REFUSES(max_datagram, 0, "max_datagram");
    REFUSES(multicast_ttl, 256, "multicast_ttl");
    REFUSES(send_buffer, UINT64_MAX, "send_buffer");
    REFUSES(receive_buffer, UINT64_MAX, "receive_buffer");
    REFUSES(bind, NULL, "address is missing");
    REFUSES(bind, "unix:@x", "address");
    REFUSES(connect, "here", "address");
    pace_udp_options_t options = bound_to(TCP);
    SAYS(PACE_EINVAL, pace_udp_new(pool, NULL, &hooks, &udp));
    SAYS(PACE_EINVAL, pace_udp_new(pool, &options, NULL, &udp));
    SAYS(PACE_EINVAL, pace_udp_new(pool, &options, &hooks, NULL));
    SAYS(PACE_EINVAL, pace_udp_new(NULL, &options, &hooks, &udp));
    hooks.data = NULL;
    SAYS(PACE_EINVAL, pace_udp_new(pool, &options, &hooks, &udp));
    hooks = hooks_of(count);
    hooks.struct_size = 7;
    SAYS(PACE_EVERSION, pace_udp_new(pool, &options, &hooks, &udp));
    hooks = hooks_of(count);
    options.struct_size = 7;
    SAYS(PACE_EVERSION, pace_udp_new(pool, &options, &hooks, &udp));
    SAYS(PACE_EVERSION, pace_udp_hooks_init(&hooks, 7));
    SAYS(PACE_EVERSION, pace_udp_options_init(&options, 7));

    options = bound_to(TCP);
    pace_udp_t *first = open_one(pool, &options, count);
    OK(pace_udp_address(first, taken, sizeof taken));
    options = bound_to(taken);
    SAYS(PACE_EOS, pace_udp_new(pool, &options, &hooks, &udp));
    CHECK(pace_last_os_error() == EADDRINUSE);
    TELLS(taken);
    pace_udp_free(first);
    UNTIL(atomic_load(&drops) == 1);

    /* A socket of somebody else's, which stays theirs. */
    struct sockaddr_in at = {.sin_family = AF_INET};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    options = bound_to(NULL);
    options.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(options.fd >= 0 && bind(options.fd, (struct sockaddr *)&at, sizeof at) == 0);
    udp = open_one(pool, &options, count);
    close(options.fd);
    OK(pace_udp_address(udp, taken, sizeof taken));
    pace_udp_free(udp);
    SAYS(PACE_EOS, pace_udp_new(pool, &options, &hooks, &udp));
    UNTIL(atomic_load(&drops) == 2);

    OK(pace_pool_shutdown(pool, 0, NULL));
    options = bound_to(TCP);
    SAYS(PACE_ESHUTDOWN, pace_udp_new(pool, &options, &hooks, &udp));
    pace_pool_free(pool);
    CHECK(atomic_load(&drops) == 2);
}

/* A pool without room: nothing has moved, and no hook was called. */
static void no_room(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    pace_udp_t *open[2000];
    size_t opened = 0;
    pace_udp_options_t options = bound_to(TCP);
    pace_udp_hooks_t hooks = hooks_of(count);
    forget();
    OK(pace_pool_config_init(&config, sizeof config));
    config.threads = 1;
    config.max_handles = 1;
    options.batch = 1;
    options.max_datagram = 100;
    OK(pace_pool_new(&config, &pool));
    pace_status_t status = PACE_OK;
    while (status == PACE_OK && opened < 2000)
        if ((status = pace_udp_new(pool, &options, &hooks, &open[opened])) == PACE_OK) opened++;
    CHECK(status == PACE_EFULL || (status == PACE_EOS && pace_last_os_error() == EMFILE));
    CHECK(atomic_load(&drops) == 0 && atomic_load(&closes) == 0);
    for (size_t i = 0; i < opened; i++) pace_udp_free(open[i]);
    UNTIL(atomic_load(&drops) == (int)opened);
    finish(pool);
}

static pace_udp_t *_Atomic lent;
static pace_pool_t *beneath;
static int how_to_end;

/* What cannot be, first; then the socket that another thread has lent ends, and is freed. */
static void end_everything(void *data, pace_udp_t *udp, const pace_datagram_t *datagrams,
                           size_t number) {
    pace_datagram_t wrong = datagrams[0];
    size_t sent = 0;
    bool drained = true;
    count(data, udp, datagrams, number);
    SAYS(PACE_EINVAL, pace_udp_send_batch(udp, datagrams, SIZE_MAX, &sent));
    SAYS(PACE_EINVAL, pace_udp_send_batch(udp, NULL, 1, &sent));
    wrong.bytes = NULL;
    SAYS(PACE_EINVAL, pace_udp_send_batch(udp, &wrong, 1, &sent));
    wrong = datagrams[0];
    wrong.size = SIZE_MAX;
    SAYS(PACE_EINVAL, pace_udp_send_batch(udp, &wrong, 1, &sent));
    wrong = datagrams[0];
    wrong.peer.version = 9;
    SAYS(PACE_EINVAL, pace_udp_send_batch(udp, &wrong, 1, &sent));
    pace_udp_t *own = atomic_exchange(&lent, NULL);
    if (own == NULL) return;
    switch (how_to_end) {
    case 0: break;
    case 1:
        OK(pace_udp_close(own));
        SAYS(PACE_ESTALE, pace_udp_close(own));
        break;
    case 2:
        OK(pace_udp_drain(own, PACE_FOREVER, &drained));
        CHECK(!drained);
        break;
    default: pace_pool_free(beneath);
    }
    pace_udp_free(own);
}

static void ends_inside_hooks(void) {
    for (how_to_end = 0; how_to_end < 4; how_to_end++) {
        char address[PACE_ADDRESS_SIZE];
        pace_ip_t to;
        forget();
        beneath = pool_of(2);
        pace_udp_options_t options = bound_to(TCP);
        pace_udp_t *udp = open_one(beneath, &options, end_everything);
        OK(pace_udp_address(udp, address, sizeof address));
        OK(pace_ip_read(address, &to));
        pace_pool_t *other = pool_of(1);
        pace_udp_t *client = open_one(other, &options, count);
        atomic_store(&lent, udp);
        for (int i = 0; i < 5; i++) OK(pace_udp_send_to(client, "x", 1, &to));
        UNTIL(atomic_load(&drops) == 1);
        CHECK(atomic_load(&closes) == 1);
        pace_udp_free(client);
        UNTIL(atomic_load(&drops) == 2);
        finish(other);
        if (how_to_end < 3) finish(beneath);
    }
}

int main(void) {
    check_begin();
    datagrams_come_and_go();
    connected_sockets();
    groups();
    addresses();
    settings();
    no_room();
    ends_inside_hooks();
    return 0;
}
