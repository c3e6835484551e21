/* What goes out of the process: webhooks, and what systemd is told. */
#include "check.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Answers one request of each connection: 200, or 400 if its body is "bad". */
typedef struct site {
    int fd;
    char url[64];
    pthread_mutex_t lock;
    char all[8192]; /* heads and bodies, in order */
    int requests;
    atomic_bool held; /* nothing is answered */
} site_t;

static bool answer_one(site_t *site, int fd) {
    char head[4096] = {0};
    size_t have = 0, wanted = 0;
    const char *end = NULL, *size;
    ssize_t got;
    while (end == NULL || have < wanted) {
        got = read(fd, head + have, sizeof head - 1 - have);
        if (got <= 0) return false;
        have += (size_t)got;
        end = strstr(head, "\r\n\r\n");
        if (end == NULL) continue;
        size = strcasestr(head, "content-length: ");
        CHECK(size != NULL);
        wanted = (size_t)(end + 4 - head) + strtoul(size + 16, NULL, 10);
    }
    pthread_mutex_lock(&site->lock);
    strncat(site->all, head, sizeof site->all - strlen(site->all) - 1);
    strncat(site->all, "\n", sizeof site->all - strlen(site->all) - 1);
    site->requests++;
    pthread_mutex_unlock(&site->lock);
    while (atomic_load(&site->held)) check_nap();
    const char *says = strcmp(end + 4, "bad") == 0 ? "HTTP/1.1 400 Bad\r\n" : "HTTP/1.1 200 OK\r\n";
    const char *rest = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    return write(fd, says, strlen(says)) > 0 && write(fd, rest, strlen(rest)) > 0;
}

static void *serve(void *data) {
    site_t *site = (site_t *)data;
    int fd;
    while ((fd = accept(site->fd, NULL, NULL)) >= 0) {
        (void)answer_one(site, fd);
        close(fd);
    }
    return NULL;
}

static void open_site(site_t *site, pthread_t *thread) {
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;
    memset(site, 0, sizeof *site);
    pthread_mutex_init(&site->lock, NULL);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    site->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(site->fd >= 0 && bind(site->fd, (struct sockaddr *)&address, size) == 0);
    CHECK(listen(site->fd, 16) == 0);
    CHECK(getsockname(site->fd, (struct sockaddr *)&address, &size) == 0);
    snprintf(site->url, sizeof site->url, "http://127.0.0.1:%u/hook", ntohs(address.sin_port));
    CHECK(pthread_create(thread, NULL, serve, site) == 0);
}

static bool has(site_t *site, const char *what) {
    pthread_mutex_lock(&site->lock);
    bool found = strcasestr(site->all, what) != NULL;
    pthread_mutex_unlock(&site->lock);
    return found;
}

static pace_webhook_stats_t webhook_stats(pace_webhook_t *webhook) {
    pace_webhook_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_webhook_stats(webhook, &stats));
    return stats;
}

static void webhooks(pace_pool_t *pool) {
    site_t site;
    pthread_t thread;
    pace_webhook_t *webhook = NULL;
    pace_webhook_options_t options;
    pace_webhook_stats_t stats;
    pace_field_t field = {{"Authorization", 13}, {"Bearer 17", 9}};
    pace_hub_t *hub;
    pace_subscription_t forwarded;
    pace_mailbox_t *mailbox;
    char text[256] = "x";
    size_t needed = 0;
    SAYS(PACE_EINVAL, pace_webhook_options_init(NULL, sizeof options));
    OK(pace_webhook_options_init(&options, sizeof options));
    options.headers = &field;
    options.header_count = 1;
    options.timeout_ns = 300 * SECOND;
    SAYS(PACE_EINVAL, pace_webhook_new(NULL, &options, &webhook));
    SAYS(PACE_EINVAL, pace_webhook_new("http://localhost", &options, NULL));
    SAYS(PACE_EINVAL, pace_webhook_post(NULL, "x", 1));
    SAYS(PACE_EINVAL, pace_webhook_flush(NULL, 0));
    SAYS(PACE_EINVAL, pace_webhook_stats(NULL, &stats));
    SAYS(PACE_EINVAL, pace_webhook_last_error(NULL, text, sizeof text, &needed));
    pace_webhook_free(NULL);
    open_site(&site, &thread);
    if (pace_webhook_new(site.url, &options, &webhook) == PACE_EUNSUPPORTED) {
        TELLS("without the feature `webhook`");
    } else {
        pace_webhook_free(webhook);
        SAYS(PACE_EINVAL, pace_webhook_new("localhost", &options, &webhook));
        TELLS("http:// or https://");
        options.capacity = 0;
        SAYS(PACE_EINVAL, pace_webhook_new(site.url, &options, &webhook));
        TELLS("capacity is 0");
        options.capacity = 1024;
        OK(pace_webhook_new(site.url, &options, &webhook));
        SAYS(PACE_EINVAL, pace_webhook_post(webhook, NULL, 1));
        OK(pace_webhook_post(webhook, "{\"n\":1}", 7));
        OK(pace_webhook_flush(webhook, PACE_FOREVER));
        CHECK(has(&site, "{\"n\":1}") && has(&site, "Authorization: Bearer 17"));
        OK(pace_webhook_last_error(webhook, text, sizeof text, &needed));
        CHECK(text[0] == 0 && needed == 1);
        OK(pace_webhook_post(webhook, "bad", 3));
        OK(pace_webhook_flush(webhook, PACE_FOREVER));
        SAYS(PACE_EFULL, pace_webhook_last_error(webhook, NULL, 0, &needed));
        OK(pace_webhook_last_error(webhook, text, sizeof text, &needed));
        CHECK(strstr(text, "400") != NULL && needed == strlen(text) + 1);
        stats = webhook_stats(webhook);
        CHECK(stats.posted == 2 && stats.delivered == 1 && stats.failed == 1);
        CHECK(stats.retried == 0 && stats.dropped == 0);

        /* One is under way, one waits, and there is no room for more; what is refused is tried once more. */
        pace_webhook_t *small = NULL;
        options.capacity = 1;
        options.retry.shape = PACE_RETRY_FIXED;
        options.retry.retries = 1;
        options.retry.first_ns = MILLI;
        OK(pace_webhook_new(site.url, &options, &small));
        atomic_store(&site.held, true);
        OK(pace_webhook_post(small, "held", 4));
        UNTIL(has(&site, "held"));
        OK(pace_webhook_post(small, "waits", 5));
        SAYS(PACE_EFULL, pace_webhook_post(small, "dropped", 7));
        SAYS(PACE_ETIMEDOUT, pace_webhook_flush(small, MILLI));
        atomic_store(&site.held, false);
        OK(pace_webhook_flush(small, PACE_FOREVER));
        stats = webhook_stats(small);
        CHECK(stats.posted == 3 && stats.delivered == 2 && stats.dropped == 1 && !has(&site, "dropped"));
        pace_webhook_free(small);
        OK(pace_webhook_new("http://127.0.0.1:1/", &options, &small));
        OK(pace_webhook_post(small, "nobody", 6));
        OK(pace_webhook_flush(small, PACE_FOREVER));
        stats = webhook_stats(small);
        CHECK(stats.failed == 1 && stats.retried == 1);
        pace_webhook_free(small);
        options.proxy = "::";
        SAYS(PACE_EINVAL, pace_webhook_new(site.url, &options, &small));
        options.proxy = NULL;

        OK(pace_hub_new(pool, NULL, &hub));
        SAYS(PACE_EINVAL, pace_webhook_forward(webhook, hub, "a..b", NULL));
        OK(pace_webhook_forward(webhook, hub, "$SYS.subscription.>", &forwarded));
        OK(pace_hub_mailbox(hub, "seen.outside", NULL, &mailbox));
        UNTIL(has(&site, "subscription.started") && has(&site, "seen.outside"));
        OK(pace_hub_unsubscribe(hub, forwarded, PACE_UNSUBSCRIBE_SYNC, NULL));
        SAYS(PACE_ESTALE, pace_hub_unsubscribe(hub, forwarded, PACE_UNSUBSCRIBE_SYNC, NULL));
        pace_mailbox_free(mailbox);
        pace_hub_free(hub);
        OK(pace_webhook_flush(webhook, PACE_FOREVER));
        stats = webhook_stats(webhook);
        CHECK(stats.delivered + stats.failed == stats.posted);
        pace_webhook_free(webhook);
    }
    shutdown(site.fd, SHUT_RDWR);
    CHECK(pthread_join(thread, NULL) == 0);
    close(site.fd);
}

typedef struct health {
    counts_t counts;
    atomic_int ill;
} health_t;

/* Three times well, three times not, and then well again. */
static int32_t is_well(void *data) {
    int asked = atomic_fetch_add(&((health_t *)data)->counts.runs, 1);
    return asked < 3 || asked >= 6 ? -2 : 0;
}

static void drop_health(void *data) { count_drop(&((health_t *)data)->counts); }

static void hear(int fd, char *text, size_t size) {
    ssize_t got = recv(fd, text, size - 1, 0);
    CHECK(got >= 0);
    text[got] = 0;
    while (got > 0 && text[got - 1] == '\n') text[--got] = 0;
}

static void services(pace_pool_t *pool) {
    struct sockaddr_un address = {0};
    pace_service_t *service = NULL;
    health_t health = {0};
    char text[512];
    int ready = 0, fed = 0, ill = 0, again = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/paceline-outside-%d", (int)getpid());
    unlink(address.sun_path);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    setenv("WATCHDOG_USEC", "4000", 1);
    unsetenv("WATCHDOG_PID");
    SAYS(PACE_EINVAL, pace_service_start(NULL, is_well, &health, drop_health, &service));
    SAYS(PACE_EINVAL, pace_service_start(pool, is_well, &health, drop_health, NULL));
    SAYS(PACE_EINVAL, pace_service_status(NULL, "fine"));
    pace_service_free(NULL);
    if (pace_service_start(pool, is_well, &health, drop_health, &service) == PACE_EUNSUPPORTED) {
        TELLS("without the feature `systemd`");
        CHECK(atomic_load(&health.counts.drops) == 0);
    } else {
        SAYS(PACE_EINVAL, pace_service_status(service, "two\nlines"));
        SAYS(PACE_EINVAL, pace_service_status(service, NULL));
        OK(pace_service_status(service, "serving"));
        bool serving = false;
        while (!(ready && again && serving && fed >= 6)) {
            hear(fd, text, sizeof text);
            ready += strcmp(text, "READY=1") == 0;
            fed += strncmp(text, "WATCHDOG=1", 10) == 0;
            ill += strncmp(text, "STATUS=not well", 15) == 0;
            again += strstr(text, "STATUS=well again") != NULL;
            serving = serving || strcmp(text, "STATUS=serving") == 0;
        }
        CHECK(ready == 1 && ill == 1 && again == 1);
        pace_service_free(service);
        UNTIL(atomic_load(&health.counts.drops) == 1);
        do hear(fd, text, sizeof text);
        while (strcmp(text, "STOPPING=1") != 0);
        /* Of a pool that has ended none is made, and what was given is the caller's still. */
        pace_pool_t *ended = pool_of(1);
        OK(pace_pool_shutdown(ended, PACE_FOREVER, NULL));
        service = NULL;
        SAYS(PACE_ESHUTDOWN, pace_service_start(ended, is_well, &health, drop_health, &service));
        CHECK(service == NULL);
        pace_pool_free(ended);
        CHECK(atomic_load(&health.counts.drops) == 1);
        /* Without a function it is well while the pool is. */
        OK(pace_service_start(pool, NULL, NULL, NULL, &service));
        do hear(fd, text, sizeof text);
        while (strcmp(text, "WATCHDOG=1") != 0);
        /* A child is told that it is none of its own, and tells nothing. */
        pid_t child = fork();
        if (child == 0) {
            if (pace_service_status(service, "from a child") != PACE_EFORKED) _exit(1);
            pace_service_free(service);
            _exit(0);
        }
        int status = -1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        OK(pace_service_status(service, "after a child"));
        do {
            hear(fd, text, sizeof text);
            CHECK(strcmp(text, "STOPPING=1") != 0 && strcmp(text, "STATUS=from a child") != 0);
        } while (strcmp(text, "STATUS=after a child") != 0);
        pace_service_free(service);
    }
    close(fd);
    unlink(address.sun_path);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
}

int main(void) {
    pace_pool_t *pool;
    check_begin();
    pool = pool_of(2);
    webhooks(pool);
    services(pool);
    finish(pool);
    return 0;
}
