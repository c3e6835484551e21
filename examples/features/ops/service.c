/* A service of systemd: ready, well and stopping is told to it. Here a socket of the program's own stands for systemd.
 *
 * feature: ops/service
 */
#define _GNU_SOURCE
#include "../check.h"
#include <paceline/ops.h>
#include <paceline/pool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static int32_t is_well(void *data) {
    (void)data;
    return 1; /* for example by pace_workers_health() */
}

/* Waits until this is told. */
static void hear(int systemd, const char *what) {
    char text[256] = "";
    while (strstr(text, what) == NULL) {
        memset(text, 0, sizeof text);
        CHECK(recv(systemd, text, sizeof text - 1, 0) > 0);
    }
}

int main(void) {
    char name[64], pid[16];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    pace_pool_t *pool;
    pace_service_t *service;
    int systemd = socket(AF_UNIX, SOCK_DGRAM, 0);
    snprintf(name, sizeof name, "/tmp/service-%d", getpid());
    snprintf(pid, sizeof pid, "%d", getpid());
    strcpy(address.sun_path, name);
    CHECK(bind(systemd, (struct sockaddr *)&address, sizeof address) == 0);
    setenv("NOTIFY_SOCKET", name, 1);
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
    unlink(name);
    return 0;
}
