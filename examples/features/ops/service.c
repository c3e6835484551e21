/* A service of systemd: it reports that it is ready, well and stopping. Here a socket of the program's own stands for systemd.
 *
 * feature: ops/service
 * prints:
 *   systemd hears READY=1
 *   systemd hears WATCHDOG=1
 *   systemd hears STATUS=serving
 *   systemd hears STOPPING=1
 */
#define _GNU_SOURCE
#include <paceline/ops.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static int32_t is_well(void *data) {
    (void)data;
    return 1; /* for example by pace_workers_health() */
}

/* Waits until this has come. */
static void hear(int systemd, const char *what) {
    char text[256] = "";
    while (strstr(text, what) == NULL) {
        const ssize_t size = recv(systemd, text, sizeof text - 1, 0);
        text[size < 0 ? 0 : size] = '\0';
    }
    printf("systemd hears %s\n", what);
}

int main(void) {
    char pid[16];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    pace_pool_t *pool;
    pace_service_t *service;
    const int systemd = socket(AF_UNIX, SOCK_DGRAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/service-%d", getpid());
    if (bind(systemd, (struct sockaddr *)&address, sizeof address) != 0) return EXIT_FAILURE;
    snprintf(pid, sizeof pid, "%d", getpid());
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    setenv("WATCHDOG_USEC", "20000", 1);
    setenv("WATCHDOG_PID", pid, 1);

    must(pace_pool_new(NULL, &pool));
    must(pace_service_start(pool, is_well, NULL, NULL, &service));
    hear(systemd, "READY=1");
    hear(systemd, "WATCHDOG=1");
    must(pace_service_status(service, "serving"));
    hear(systemd, "STATUS=serving");
    pace_service_free(service);
    hear(systemd, "STOPPING=1");
    pace_pool_free(pool);
    close(systemd);
    unlink(address.sun_path);
    return 0;
}
