/* Hooks and handlers that fork: whatever the child calls says so, and the parent goes on. */
#include "net.h"

static pace_pool_t *pool;
static pace_server_t *server;
static pace_http_t *http;
static char address[PACE_ADDRESS_SIZE];
static pid_t _Atomic child;

static void child_has_ended_with(int code) {
    int status = 0;
    UNTIL(atomic_load(&child) != 0);
    CHECK(waitpid(atomic_load(&child), &status, 0) == atomic_load(&child));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
    atomic_store(&child, 0);
}

static size_t fork_in_hook(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    pace_conn_id_t id;
    pace_admission_t *request;
    (void)data, (void)bytes;
    OK(pace_conn_id(conn, &id));
    OK(pace_conn_admit(conn, &request));
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        SAYS(PACE_EFORKED, pace_conn_write(conn, "child", 5, NULL));
        SAYS(PACE_EFORKED, pace_conn_close(conn));
        SAYS(PACE_EFORKED, pace_conn_id(conn, &id));
        SAYS(PACE_EFORKED, pace_conn_fail(conn));
        SAYS(PACE_EFORKED, pace_conn_admit(conn, &request));
        SAYS(PACE_EFORKED, pace_admission_answered(request));
        SAYS(PACE_EFORKED, pace_server_conn_write(server, id, "child", 5, NULL));
        SAYS(PACE_EFORKED, pace_server_conn_abort(server, id));
        SAYS(PACE_EFORKED, pace_server_drain(server, 0, NULL));
        SAYS(PACE_EFORKED, pace_server_wait(server));
        pace_admission_free(request);
        pace_server_free(server);
        _exit(43);
    }
    OK(pace_admission_answered(request));
    OK(pace_conn_write(conn, "parent", 6, NULL));
    atomic_store(&child, pid);
    return size;
}

static void forks_in_a_hook(void) {
    pace_conn_hooks_t hooks = hooks_with(fork_in_hook);
    pool = pool_of(2);
    server = serve(pool, TCP, &hooks, address);
    int client = dial(address);
    send_text(client, "fork");
    child_has_ended_with(43);
    expect_text(client, "parent");
    close(client);
    UNTIL(stats_of(server).open == 0);
    stop(server);
    finish(pool);
}

static void fork_in_handler(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        SAYS(PACE_EFORKED, pace_response_status(response, 200));
        SAYS(PACE_EFORKED, pace_response_text(response, "child"));
        SAYS(PACE_EFORKED, pace_http_start(http, &(pace_http_options_t){0}));
        SAYS(PACE_EFORKED, pace_http_serve(http, "127.0.0.1:0"));
        pace_response_free(response);
        pace_http_free(http);
        _exit(44);
    }
    atomic_store(&child, pid);
    OK(pace_response_text(response, "parent"));
}

static void forks_in_a_handler(void) {
    char answer[4096] = {0};
    pace_listener_options_t listener = listener_at(TCP);
    pace_http_options_t options;
    pool = pool_of(2);
    OK(pace_http_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    OK(pace_http_new(pool, &http));
    OK(pace_http_route(http, "GET", "/", fork_in_handler, NULL, NULL));
    OK(pace_http_start(http, &options));
    OK(pace_http_server(http, &server));
    OK(pace_server_address(server, 0, address, sizeof address));
    int client = dial(address);
    send_text(client, "GET / HTTP/1.0\r\n\r\n");
    CHECK(receive(client, answer, sizeof answer, MSG_WAITALL) > 0);
    CHECK(strncmp(answer, "HTTP/1.1 200 ", 13) == 0 && strstr(answer, "\r\n\r\nparent") != NULL);
    child_has_ended_with(44);
    close(client);
    pace_http_free(http);
    finish(pool);
}

static void ignore(void *data, pace_udp_t *udp, const pace_datagram_t *datagrams, size_t count) {
    (void)data, (void)udp, (void)datagrams, (void)count;
}

static void forks_beside_a_socket(void) {
    pace_udp_options_t options;
    pace_udp_hooks_t hooks;
    pace_udp_t *udp;
    pool = pool_of(1);
    OK(pace_udp_options_init(&options, sizeof options));
    OK(pace_udp_hooks_init(&hooks, sizeof hooks));
    options.bind = TCP;
    hooks.data = ignore;
    OK(pace_udp_new(pool, &options, &hooks, &udp));
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        SAYS(PACE_EFORKED, pace_udp_send(udp, "x", 1));
        SAYS(PACE_EFORKED, pace_udp_close(udp));
        SAYS(PACE_EFORKED, pace_udp_drain(udp, 0, NULL));
        SAYS(PACE_EFORKED, pace_udp_wait(udp));
        pace_udp_free(udp);
        _exit(45);
    }
    atomic_store(&child, pid);
    child_has_ended_with(45);
    pace_udp_free(udp);
    finish(pool);
}

int main(void) {
    check_begin();
    forks_in_a_hook();
    forks_in_a_handler();
    forks_beside_a_socket();
    return 0;
}
