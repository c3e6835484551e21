/* Servers: listeners, settings, the end, the books. */
#include "net.h"

#include <sys/resource.h>

static atomic_int drops;

static void count_drops(void *data) {
    (void)data;
    atomic_fetch_add(&drops, 1);
}

static size_t echo(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    pace_status_t status = pace_conn_write(conn, bytes, size, NULL);
    CHECK(status == PACE_OK || status == PACE_ESTALE);
    return size;
}

static pace_conn_hooks_t echo_hooks(void) {
    pace_conn_hooks_t hooks = hooks_with(echo);
    hooks.drop = count_drops;
    return hooks;
}

static void expect_echo(const char *address) {
    int fd = dial(address);
    send_text(fd, "hello");
    expect_text(fd, "hello");
    CHECK(shutdown(fd, SHUT_WR) == 0);
    expect_end(fd);
}

static void listens_at_many_places(void) {
    char path[64], name[64], address[PACE_ADDRESS_SIZE];
    snprintf(path, sizeof path, "unix:/tmp/paceline-c-%d", (int)getpid());
    snprintf(name, sizeof name, "unix:@paceline-c-%d", (int)getpid());
    pace_pool_t *pool = pool_of(2);
    pace_listener_options_t at[] = {listener_at(TCP), listener_at(path), listener_at(name)};
    pace_server_options_t options = options_with(at, 3);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_server_t *server;
    OK(pace_server_new(pool, &options, &hooks, &server));
    for (size_t i = 0; i < 3; i++) {
        OK(pace_server_address(server, i, address, sizeof address));
        CHECK(i == 0 || strcmp(address, at[i].address) == 0);
        for (int client = 0; client < 3; client++) expect_echo(address);
        pace_server_stats_t stats = {0};
        stats.struct_size = sizeof stats;
        UNTIL((OK(pace_server_listener_stats(server, i, &stats)),
               stats.closed_peer == 3 && stats.open == 0));
        CHECK(stats.accepted == 3 && stats.balances);
    }
    CHECK(stats_of(server).accepted == 9);
    stop(server);
    UNTIL(atomic_load(&drops) == 1);
    CHECK(access(path + 5, F_OK) != 0 && try_dial(name) < 0);
    finish(pool);
}

static void texts_that_do_not_fit(void) {
    char text[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(1);
    pace_conn_hooks_t hooks = hooks_with(echo);
    pace_server_t *server = serve(pool, TCP, &hooks, text);
    const size_t length = strlen(text);
    OK(pace_server_address(server, 0, text, length + 1));
    SAYS(PACE_EINVAL, pace_server_address(server, 0, text, length));
    TELLS("size is");
    TELLS(text);
    SAYS(PACE_EINVAL, pace_server_address(server, 0, text, 0));
    SAYS(PACE_EINVAL, pace_server_address(server, 1, text, sizeof text));
    TELLS("index is 1, but must be less than 1");
    stop(server);
    finish(pool);
}

/* A listener with a changed setting must be refused, by the setting's name. */
static void refuses(pace_pool_t *pool, pace_listener_options_t listener, const char *name) {
    pace_server_options_t options = options_with(&listener, 1);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_server_t *server = NULL;
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
    TELLS(name);
    CHECK(server == NULL);
    options = options_with(NULL, 0);
    options.outgoing = &listener;
    if (listener.address == NULL || strchr(listener.address, '0') == NULL) return;
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
    TELLS(name);
}

#define REFUSES(field, value, name)                                                                     \
    do {                                                                                                \
        pace_listener_options_t listener = listener_at(TCP);                                            \
        listener.field = (value);                                                                       \
        refuses(pool, listener, name);                                                                  \
    } while (0)

static void settings_out_of_range(void) {
    pace_pool_t *pool = pool_of(1);
    atomic_store(&drops, 0);
    REFUSES(address, NULL, "address is NULL");
    REFUSES(address, "nowhere", "an IP address with a port");
    REFUSES(address, "\xff\xfe", "UTF-8");
    REFUSES(max_connections, 0, "max_connections is 0, but must be 1 to 16777216");
    REFUSES(max_connections, UINT64_MAX, "max_connections");
    REFUSES(max_requests, 0, "max_requests");
    REFUSES(refusal_size, 5, "refusal is NULL");
    REFUSES(busy_size, 5, "busy is NULL");
    REFUSES(max_unconsumed, 0, "max_unconsumed");
    REFUSES(output_low, 262144, "output_marks");
    REFUSES(output_max, 5, "output_marks");
    REFUSES(idle_timeout_ns, 0, "idle_timeout");
    REFUSES(read_timeout_ns, 999999, "read_timeout");
    REFUSES(stall_timeout_ns, 1, "stall_timeout");
    REFUSES(keep_alive_ns, 1, "keep_alive is 1ns, but must be 1 s to 32767 s");
    REFUSES(keep_alive_ns, SECOND - 1, "keep_alive");
    REFUSES(keep_alive_ns, 32767 * SECOND + 1, "keep_alive");
    REFUSES(keep_alive_ns, PACE_FOREVER, "keep_alive");
    REFUSES(backlog, 0, "backlog");
    REFUSES(backlog, UINT32_MAX, "backlog");
    REFUSES(send_buffer, UINT64_MAX, "send_buffer");
    REFUSES(receive_buffer, UINT64_MAX, "receive_buffer");
    REFUSES(socket_mode, 01000, "socket_mode is 0o1000");
    REFUSES(reserved[3], 1, "reserved");
    char big[65537] = {0};
    pace_listener_options_t talkative = listener_at(TCP);
    talkative.refusal = big;
    talkative.refusal_size = sizeof big;
    refuses(pool, talkative, "refusal is 65537");
    pace_server_options_t options = options_with(NULL, 1);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_server_t *server = NULL;
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
    TELLS("listeners is NULL");
    options = options_with(NULL, 0);
    options.connect_timeout_ns = 5;
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
    TELLS("connect_timeout");
    /* Nothing has moved. */
    finish(pool);
    CHECK(atomic_load(&drops) == 0 && server == NULL);
}

/* Goal: settings of outgoing connections are theirs alone, and a listener's are the listener's. Method: both in
   one server, with a listener that says nothing: it has the defaults, and so lets several in and waits. */
static void outgoing_settings_are_of_outgoing_connections_alone(void) {
    char address[2][PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(2);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_conn_id_t id;
    pace_listener_options_t at[] = {listener_at(TCP), listener_at(TCP)}, outgoing = listener_at(NULL);
    pace_server_options_t options = options_with(at, 2);
    at[1].max_connections = 3;
    outgoing.max_connections = 2;
    options.outgoing = &outgoing;
    pace_server_t *server;
    OK(pace_server_new(pool, &options, &hooks, &server));
    int inside[2][3];
    for (size_t i = 0; i < 2; i++) {
        OK(pace_server_address(server, i, address[i], sizeof address[i]));
        for (size_t n = 0; n < 3; n++) {
            inside[i][n] = dial(address[i]);
            send_text(inside[i][n], "x");
            expect_text(inside[i][n], "x");
        }
    }
    expect_end(dial(address[1]));
    /* To the one that has room. */
    OK(pace_server_connect(server, address[0], &hooks, &id));
    OK(pace_server_connect(server, address[0], &hooks, &id));
    SAYS(PACE_EFULL, pace_server_connect(server, address[0], &hooks, &id));
    TELLS("all 2 outgoing connections");
    for (size_t i = 0; i < 6; i++) close(inside[i / 3][i % 3]);
    stop(server);

    /* A time: of two ends that are silent only the outgoing one may not be. */
    outgoing.idle_timeout_ns = SECOND / 50;
    OK(pace_server_new(pool, &options, &hooks, &server));
    OK(pace_server_address(server, 0, address[0], sizeof address[0]));
    OK(pace_server_connect(server, address[0], &hooks, &id));
    UNTIL(stats_of(server).closed_peer == 1);
    CHECK(stats_of(server).closed_timed_out == 1);
    stop(server);
    finish(pool);
}

/* What would have no effect on outgoing connections is not swallowed. */
static void settings_about_accepting_in_outgoing(void) {
    pace_pool_t *pool = pool_of(1);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_server_t *server = NULL;
    const char *why = "in outgoing: it is for connections that are accepted";
#define REFUSES_IN_OUTGOING(field, value, told)                                                         \
    do {                                                                                                \
        pace_listener_options_t outgoing = listener_at(NULL);                                           \
        pace_server_options_t options = options_with(NULL, 0);                                          \
        options.outgoing = &outgoing;                                                                   \
        outgoing.refusal = "no";                                                                        \
        outgoing.field = (value);                                                                       \
        SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));                            \
        TELLS(told);                                                                                    \
        TELLS(why);                                                                                     \
    } while (0)
    REFUSES_IN_OUTGOING(refusal_size, 2, "refusal is 2 bytes, but must be NULL");
    REFUSES_IN_OUTGOING(backlog, 5, "backlog is 5, but must be 4096");
    REFUSES_IN_OUTGOING(socket_mode, 0600, "socket_mode is 0o600, but must be PACE_DEFAULT");
    REFUSES_IN_OUTGOING(v6_only, true, "v6_only is true, but must be false");
    REFUSES_IN_OUTGOING(reuse_port, true, "reuse_port is true, but must be false");
    CHECK(server == NULL);
    finish(pool);
}

static void structs_of_other_sizes(void) {
    pace_pool_t *pool = pool_of(1);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_server_t *server = NULL;
    pace_listener_options_t at[2] = {listener_at(TCP), listener_at(TCP)};
    pace_server_options_t options = options_with(at, 2);
    at[0].struct_size = 0;
    SAYS(PACE_EVERSION, pace_server_new(pool, &options, &hooks, &server));
    at[0] = listener_at(TCP);
    options.struct_size = 7;
    SAYS(PACE_EVERSION, pace_server_new(pool, &options, &hooks, &server));
    options = options_with(at, 2);
    hooks.struct_size = UINT32_MAX;
    SAYS(PACE_EVERSION, pace_server_new(pool, &options, &hooks, &server));
    hooks = echo_hooks();
    hooks.data = NULL;
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
    TELLS("hooks.data is NULL");
    hooks = echo_hooks();
    hooks.reserved = 1;
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
    SAYS(PACE_EVERSION, pace_server_options_init(&options, 3));
    SAYS(PACE_EVERSION, pace_listener_options_init(at, 3));
    SAYS(PACE_EVERSION, pace_conn_hooks_init(&hooks, 3));

    /* What a program of tomorrow has: larger structs, in an array. */
    char name[64];
    snprintf(name, sizeof name, "unix:@paceline-later-%d", (int)getpid());
    struct {
        pace_listener_options_t known;
        uint64_t future;
    } later[2] = {{listener_at(TCP), 0}, {listener_at(name), 0}};
    later[0].known.struct_size = later[1].known.struct_size = sizeof later[0];
    options = options_with(&later[0].known, 2);
    hooks = echo_hooks();
    char address[PACE_ADDRESS_SIZE];
    OK(pace_server_new(pool, &options, &hooks, &server));
    OK(pace_server_address(server, 1, address, sizeof address));
    CHECK(strcmp(address, name) == 0);
    expect_echo(address);
    stop(server);
    later[1].known.struct_size = sizeof(pace_listener_options_t);
    SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
    TELLS("struct_size");
    later[1].known.struct_size = sizeof later[0];
    later[1].future = 1;
    SAYS(PACE_EVERSION, pace_server_new(pool, &options, &hooks, &server));
    finish(pool);
}

/* The second listener cannot be had: the first is gone again, and nothing has moved. */
static void a_listener_that_cannot_bind(void) {
    char taken[PACE_ADDRESS_SIZE], name[64];
    pace_pool_t *pool = pool_of(1);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_server_t *other = serve(pool, TCP, &hooks, taken), *server = NULL;
    snprintf(name, sizeof name, "unix:@paceline-c-bind-%d", (int)getpid());
    pace_listener_options_t at[] = {listener_at(name), listener_at(taken)};
    pace_server_options_t options = options_with(at, 2);
    atomic_store(&drops, 0);
    SAYS(PACE_EOS, pace_server_new(pool, &options, &hooks, &server));
    TELLS(taken);
    CHECK(pace_last_os_error() == EADDRINUSE && server == NULL && try_dial(name) < 0);
    CHECK(atomic_load(&drops) == 0);
    stop(other);
    UNTIL(atomic_load(&drops) == 1);
    finish(pool);
}

/* The paths and names that a sockaddr_un has room for, and those that are one byte longer. */
static void unix_paths_up_to_their_limit(void) {
    char bound[PACE_ADDRESS_SIZE], text[128];
    pace_pool_t *pool = pool_of(1);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_server_t *server = NULL, *good = NULL;
    pace_conn_id_t id;
    int begun = snprintf(text, sizeof text, "unix:@paceline-c-long-%d-", (int)getpid());
    const int longest = 6 + 107;
    memset(text + begun, 'x', sizeof text - (size_t)begun);
    text[longest] = 0;
    good = serve(pool, text, &hooks, bound);
    CHECK(strcmp(bound, text) == 0);
    for (const char *prefix = "unix:@"; prefix != NULL; prefix = prefix[5] == '@' ? "unix:/" : NULL) {
        memset(text, 'x', sizeof text);
        memcpy(text, prefix, 6);
        /* 108 bytes without "unix:", and without the @. */
        text[(prefix[5] == '@' ? 6 : 5) + 108] = 0;
        pace_listener_options_t at = listener_at(text);
        pace_server_options_t options = options_with(&at, 1);
        SAYS(PACE_EINVAL, pace_server_new(pool, &options, &hooks, &server));
        TELLS("(108 bytes), but must be a ");
        TELLS("107 bytes");
        SAYS(PACE_EINVAL, pace_server_connect(good, text, &hooks, &id));
        TELLS("107 bytes");
    }
    stop(good);
    finish(pool);
}

/* No room in the pool for the second: nobody who has connected to the first is served. */
static void a_pool_without_room(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    OK(pace_pool_config_init(&config, sizeof config));
    config.threads = 1;
    config.max_handles = 1;
    OK(pace_pool_new(&config, &pool));
    pace_listener_options_t at[1200];
    char names[1200][48];
    for (int i = 0; i < 1200; i++) {
        snprintf(names[i], sizeof names[i], "unix:@paceline-c-%d-%d", (int)getpid(), i);
        at[i] = listener_at(names[i]);
    }
    pace_server_options_t options = options_with(at, 1200);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_server_t *server = NULL;
    atomic_store(&drops, 0);
    pace_status_t status = pace_server_new(pool, &options, &hooks, &server);
    CHECK(status == PACE_EFULL || (status == PACE_EOS && pace_last_os_error() == EMFILE));
    CHECK(server == NULL && atomic_load(&drops) == 0);
    UNTIL(try_dial(names[0]) < 0);
    finish(pool);
}

static void inherited_sockets(void) {
    char address[PACE_ADDRESS_SIZE], same[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(1);
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, size) == 0);
    pace_listener_options_t listener = listener_at(NULL);
    pace_server_options_t options = options_with(&listener, 1);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_server_t *server = NULL;
    listener.fd = fd;
    SAYS(PACE_EOS, pace_server_new(pool, &options, &hooks, &server));
    TELLS("does not listen");
    CHECK(pace_last_os_error() == EINVAL);
    CHECK(listen(fd, 10) == 0 && getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    OK(pace_server_new(pool, &options, &hooks, &server));
    close(fd); /* the server has its own */
    snprintf(same, sizeof same, "127.0.0.1:%u", ntohs(at.sin_port));
    OK(pace_server_address(server, 0, address, sizeof address));
    CHECK(strcmp(address, same) == 0);
    expect_echo(address);
    stop(server);
    listener.fd = fd; /* closed */
    SAYS(PACE_EOS, pace_server_new(pool, &options, &hooks, &server));
    CHECK(pace_last_os_error() == EBADF);
    finish(pool);
}

static void too_many_connections(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(1);
    pace_listener_options_t listener = listener_at(TCP);
    listener.max_connections = 2;
    listener.refusal = "full\n";
    listener.refusal_size = 5;
    pace_server_options_t options = options_with(&listener, 1);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_server_t *server;
    OK(pace_server_new(pool, &options, &hooks, &server));
    OK(pace_server_address(server, 0, address, sizeof address));
    int one = dial(address), two = dial(address);
    send_text(one, "1"), expect_text(one, "1");
    send_text(two, "2"), expect_text(two, "2");
    int three = dial(address);
    expect_text(three, "full\n");
    expect_end(three);
    CHECK(stats_of(server).turned_away == 1 && stats_of(server).open == 2);
    close(one);
    close(two);
    UNTIL(stats_of(server).open == 0);
    stop(server);
    finish(pool);
}

/* exhausted: told once, and what waits is served when there is room again. */
static atomic_int complaints;

static void complain(void *data, const char *message) {
    CHECK(data == &complaints && strstr(message, "accept on 127.0.0.1:") != NULL);
    atomic_fetch_add(&complaints, 1);
}

static void descriptors_run_out(void) {
    char address[PACE_ADDRESS_SIZE];
    int plugs[256], count = 0;
    struct rlimit few = {256, 256}, many;
    CHECK(getrlimit(RLIMIT_NOFILE, &many) == 0);
    few.rlim_max = many.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    pace_pool_t *pool = pool_of(1);
    pace_listener_options_t listener = listener_at(TCP);
    pace_server_options_t options = options_with(&listener, 1);
    pace_conn_hooks_t hooks = echo_hooks();
    hooks.user_data = &complaints;
    options.on_exhausted = complain;
    pace_server_t *server;
    OK(pace_server_new(pool, &options, &hooks, &server));
    OK(pace_server_address(server, 0, address, sizeof address));
    expect_echo(address); /* the pool's thread runs, and opens nothing any more */
    UNTIL(stats_of(server).open == 0);
    int client = socket_for(address);
    while (count < 256 && (plugs[count] = dup(0)) >= 0) count++;
    CHECK(errno == EMFILE);
    CHECK(connects_to(client, address));
    UNTIL(atomic_load(&complaints) == 1);
    while (count > 0) close(plugs[--count]);
    send_text(client, "still");
    expect_text(client, "still");
    CHECK(stats_of(server).exhausted >= 1);
    CHECK(setrlimit(RLIMIT_NOFILE, &many) == 0);
    close(client);
    UNTIL(stats_of(server).open == 0);
    stop(server);
    finish(pool);
}

static void *wait_for(void *server) {
    OK(pace_server_wait((pace_server_t *)server));
    return NULL;
}

static void waiting(void) {
    char address[PACE_ADDRESS_SIZE];
    pthread_t waiter;
    pace_pool_t *pool = pool_of(1);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_server_t *server = serve(pool, TCP, &hooks, address);
    CHECK(pthread_create(&waiter, NULL, wait_for, server) == 0);
    expect_echo(address);
    OK(pace_server_drain(server, SECOND, NULL));
    CHECK(pthread_join(waiter, NULL) == 0);
    OK(pace_server_drain(server, 0, NULL)); /* again: nothing */
    pace_server_free(server);
    server = serve(pool, TCP, &hooks, address);
    CHECK(pthread_create(&waiter, NULL, wait_for, server) == 0);
    OK(pace_pool_shutdown(pool, 0, NULL));
    CHECK(pthread_join(waiter, NULL) == 0);
    pace_server_free(server);
    pace_pool_free(pool);
}

/* One that does not end in time is cut off. */
static size_t keep(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data, (void)conn, (void)bytes, (void)size;
    return 0;
}

static void a_drain_that_cuts_off(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(1);
    pace_conn_hooks_t hooks = hooks_with(keep);
    pace_server_t *server = serve(pool, TCP, &hooks, address);
    pace_drain_report_t report = {0};
    int client = dial(address);
    send_text(client, "part");
    UNTIL(stats_of(server).open == 1);
    SAYS(PACE_EVERSION, pace_server_drain(server, 0, &report));
    report.struct_size = sizeof report;
    OK(pace_server_drain(server, 20 * MILLI, &report));
    CHECK(!report.drained);
    expect_reset(client);
    /* It may have ended after the report. */
    OK(pace_server_drain(server, PACE_FOREVER, &report));
    CHECK(report.cut_off == 1 && report.open == 0);
    CHECK(stats_of(server).closed_cut_off == 1 && stats_of(server).balances);
    CHECK(try_dial(address) < 0);
    pace_server_free(server);
    finish(pool);
}

/* Freed with connections, before and after its pool: hooks end, and `drop` runs once. */
static atomic_int closes;

static void count_close(void *data, pace_conn_t *conn, uint32_t reason, int32_t detail) {
    (void)data, (void)conn;
    CHECK(reason == PACE_REASON_CUT_OFF || reason == PACE_REASON_POOL_ENDED);
    CHECK(detail == 0 && atomic_load(&drops) == 0);
    atomic_fetch_add(&closes, 1);
}

static void freed_with_connections(void) {
    for (int how = 0; how < 3; how++) {
        char address[PACE_ADDRESS_SIZE];
        int clients[5];
        pace_pool_t *pool = pool_of(2);
        pace_conn_hooks_t hooks = echo_hooks();
        hooks.close = count_close;
        atomic_store(&drops, 0);
        atomic_store(&closes, 0);
        pace_server_t *server = serve(pool, TCP, &hooks, address);
        for (int i = 0; i < 5; i++) {
            clients[i] = dial(address);
            send_text(clients[i], "x");
            expect_text(clients[i], "x");
        }
        if (how == 0) pace_server_free(server);
        if (how == 0) UNTIL(atomic_load(&drops) == 1);
        if (how != 0) OK(pace_pool_stop_now(pool, NULL)); /* a drain would close them in order */
        pace_pool_free(pool);
        if (how == 1) pace_server_free(server);
        if (how == 2) {
            pace_server_stats_t stats = stats_of(server);
            CHECK(stats.closed_pool_ended == 5 && stats.open == 0);
            SAYS(PACE_ESHUTDOWN, pace_server_connect(server, address, &hooks, &(pace_conn_id_t){0}));
            pace_server_free(server);
        }
        CHECK(atomic_load(&closes) == 5 && atomic_load(&drops) == 1);
        for (int i = 0; i < 5; i++) close(clients[i]);
    }
}

static void on_a_pool_that_is_shut_down(void) {
    pace_pool_t *pool = pool_of(1);
    pace_listener_options_t listener = listener_at(TCP);
    pace_server_options_t options = options_with(&listener, 1);
    pace_conn_hooks_t hooks = echo_hooks();
    pace_server_t *server = NULL;
    atomic_store(&drops, 0);
    OK(pace_pool_shutdown(pool, 0, NULL));
    SAYS(PACE_ESHUTDOWN, pace_server_new(pool, &options, &hooks, &server));
    CHECK(server == NULL);
    pace_pool_free(pool);
    CHECK(atomic_load(&drops) == 0);
}

/* A pool whose threads are the caller's: nothing waits for others. */
static void on_a_host_thread(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool = pool_of(0);
    pace_conn_hooks_t hooks = echo_hooks();
    atomic_store(&drops, 0);
    pace_server_t *server = serve(pool, TCP, &hooks, address);
    int client = dial(address);
    send_text(client, "frame");
    while (!readable(client)) OK(pace_pool_join(pool, MILLI, NULL));
    expect_text(client, "frame");
    pace_server_free(server);
    while (atomic_load(&drops) == 0) OK(pace_pool_join(pool, MILLI, NULL));
    expect_reset(client);
    pace_pool_free(pool);
}

int main(int argc, char **argv) {
    check_begin();
    listens_at_many_places();
    texts_that_do_not_fit();
    settings_out_of_range();
    outgoing_settings_are_of_outgoing_connections_alone();
    settings_about_accepting_in_outgoing();
    structs_of_other_sizes();
    a_listener_that_cannot_bind();
    unix_paths_up_to_their_limit();
    a_pool_without_room();
    inherited_sockets();
    too_many_connections();
    /* valgrind closes what was accepted beyond the limit, and says that it was not. */
    if (argc < 2 || strcmp(argv[1], "valgrind") != 0) descriptors_run_out();
    waiting();
    a_drain_that_cuts_off();
    freed_with_connections();
    on_a_pool_that_is_shut_down();
    on_a_host_thread();
    return 0;
}
