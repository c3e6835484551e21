/* Sockets from a supervisor. Each case is a process of its own: a socket is given once. */
#include "net.h"

#include <sys/stat.h>

/* Runs `body` in a child that has been given two sockets as a supervisor does, from descriptor 3 on. */
static void as_a_service(const char *pid, const char *count, const char *names, void (*body)(void)) {
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char number[32];
        alarm(60);
        int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
        CHECK(bind(tcp, (struct sockaddr *)&any, sizeof any) == 0 && listen(tcp, 5) == 0);
        CHECK(bind(udp, (struct sockaddr *)&any, sizeof any) == 0);
        int kept[2] = {fcntl(tcp, F_DUPFD, 100), fcntl(udp, F_DUPFD, 100)};
        for (int fd = 3; fd < 100; fd++) close(fd);
        CHECK(dup2(kept[0], 3) == 3 && dup2(kept[1], 4) == 4);
        close(kept[0]), close(kept[1]);
        (void)local;
        snprintf(number, sizeof number, "%d", (int)getpid());
        CHECK(setenv("LISTEN_PID", pid != NULL ? pid : number, 1) == 0);
        CHECK(setenv("LISTEN_FDS", count, 1) == 0);
        if (names != NULL) CHECK(setenv("LISTEN_FDNAMES", names, 1) == 0);
        body();
        _exit(42);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static size_t echo(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    OK(pace_conn_write(conn, bytes, size, NULL));
    return size;
}

/* One by one, with their names; they are not inherited further; a server and a socket are made of them. */
static void they_are_taken_and_used(void) {
    pace_inherited_t first, second, none;
    size_t count = 9;
    SAYS(PACE_EINVAL, pace_inherited_take(&first, 1, NULL));
    SAYS(PACE_EINVAL, pace_inherited_take(NULL, 1, &count));
    OK(pace_inherited_take(NULL, 0, &count));
    CHECK(count == 0);
    OK(pace_inherited_take(&first, 1, &count));
    CHECK(count == 1 && first.fd == 3 && strcmp(first.name, "web") == 0);
    CHECK((fcntl(3, F_GETFD) & FD_CLOEXEC) != 0 && (fcntl(4, F_GETFD) & FD_CLOEXEC) != 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        OK(pace_inherited_take(&none, 1, &count));
        CHECK(count == 0);
        _exit(43);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 43);
    OK(pace_inherited_take(&second, 5, &count));
    CHECK(count == 1 && second.fd == 4 && strcmp(second.name, "names.socket") == 0);
    OK(pace_inherited_take(&none, 1, &count));
    CHECK(count == 0);

    pace_pool_t *pool = pool_of(1);
    pace_listener_options_t listener = listener_at(NULL);
    pace_conn_hooks_t hooks = hooks_with(echo);
    pace_server_t *server = NULL;
    char address[PACE_ADDRESS_SIZE];
    listener.fd = first.fd;
    pace_server_options_t options = options_with(&listener, 1);
    OK(pace_server_new(pool, &options, &hooks, &server));
    close(first.fd);
    OK(pace_server_address(server, 0, address, sizeof address));
    int fd = dial(address);
    send_text(fd, "hello");
    expect_text(fd, "hello");
    close(fd);
    pace_udp_options_t udp;
    pace_cq_t *cq = NULL;
    pace_udp_t *datagrams = NULL;
    OK(pace_udp_options_init(&udp, sizeof udp));
    udp.fd = second.fd;
    OK(pace_cq_new(pool, NULL, &cq));
    OK(pace_cq_udp(cq, &udp, 1024, 1, &datagrams));
    close(second.fd);
    pace_udp_free(datagrams);
    pace_cq_free(cq);
    stop(server);
    finish(pool);
}

static atomic_int taken;

static void *take_one(void *data) {
    pace_inherited_t socket;
    size_t count = 0;
    (void)data;
    OK(pace_inherited_take(&socket, 1, &count));
    atomic_fetch_add(&taken, (int)count);
    return NULL;
}

static void ten_threads_share_them(void) {
    pthread_t threads[10];
    for (int i = 0; i < 10; i++) CHECK(pthread_create(&threads[i], NULL, take_one, NULL) == 0);
    for (int i = 0; i < 10; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(atomic_load(&taken) == 2);
}

static void there_are_none(void) {
    pace_inherited_t socket;
    size_t count = 9;
    OK(pace_inherited_take(&socket, 1, &count));
    CHECK(count == 0);
}

static void the_variable_is_named(void) {
    pace_inherited_t socket;
    size_t count = 9;
    SAYS(PACE_EINVAL, pace_inherited_take(&socket, 1, &count));
    TELLS("LISTEN_FDS");
    CHECK(count == 9);
}

/* More than there are: none is taken, and the number of the missing one is told. */
static void the_descriptor_is_named(void) {
    pace_inherited_t socket;
    size_t count = 9;
    SAYS(PACE_EOS, pace_inherited_take(&socket, 1, &count));
    TELLS("5");
    CHECK(count == 9 && pace_last_os_error() == EBADF);
}

static void a_long_name_is_cut(void) {
    pace_inherited_t sockets[2];
    size_t count = 0;
    OK(pace_inherited_take(sockets, 2, &count));
    CHECK(count == 2 && strlen(sockets[0].name) == 255 && sockets[1].name[0] == 0);
}

int main(void) {
    char names[400];
    check_begin();
    as_a_service(NULL, "2", "web:names.socket", they_are_taken_and_used);
    as_a_service(NULL, "2", NULL, ten_threads_share_them);
    as_a_service("1", "2", NULL, there_are_none);
    as_a_service(NULL, "0", NULL, there_are_none);
    as_a_service(NULL, "many", NULL, the_variable_is_named);
    as_a_service(NULL, "3", NULL, the_descriptor_is_named);
    memset(names, 'n', 300);
    names[300] = ':', names[301] = 0;
    as_a_service(NULL, "2", names, a_long_name_is_cut);
    return 0;
}
