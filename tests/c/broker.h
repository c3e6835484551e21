/* A broker of the test's own, on a free port of this machine: nats-server, with streams. For C and C++. */
#ifndef BROKER_H
#define BROKER_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct broker {
    pid_t process; /* 0: it does not run */
    char port[8], url[40], folder[32];
    const char *login[4]; /* what it demands, as its command line says it */
} broker_t;

static inline struct sockaddr_in broker_address(const broker_t *broker) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((in_port_t)atoi(broker->port));
    return address;
}

static inline bool broker_answers(const broker_t *broker) {
    const struct sockaddr_in address = broker_address(broker);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answers = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return answers;
}

/* Kills it, as a crash does; what it has stored stays. */
static inline void broker_kill(broker_t *broker) {
    if (broker->process == 0) return;
    (void)kill(broker->process, SIGKILL);
    (void)waitpid(broker->process, NULL, 0);
    broker->process = 0;
}

/* Starts it, or starts it again. False: there is no nats-server. */
static inline bool broker_run(broker_t *broker) {
    broker->process = fork();
    if (broker->process == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        int nowhere = open("/dev/null", O_RDWR);
        (void)dup2(nowhere, 1), (void)dup2(nowhere, 2);
        execlp("nats-server", "nats-server", "-a", "127.0.0.1", "-p", broker->port, "-js", "-sd",
               broker->folder, broker->login[0], broker->login[1], broker->login[2], broker->login[3],
               (char *)NULL);
        _exit(127);
    }
    while (broker->process > 0 && !broker_answers(broker)) {
        struct timespec nap = {0, 2000000};
        nanosleep(&nap, NULL);
        if (waitpid(broker->process, NULL, WNOHANG) != 0) broker->process = 0;
    }
    return broker->process > 0;
}

/* One that demands a user, or with NULL a token, and this secret. False, and a word, where there is none. Call this before
 * there are threads. */
static inline bool broker_start_with(broker_t *broker, const char *user, const char *secret) {
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    memset(broker, 0, sizeof *broker);
    if (user != NULL) {
        broker->login[0] = "--user", broker->login[1] = user;
        broker->login[2] = "--pass", broker->login[3] = secret;
    } else if (secret != NULL) {
        broker->login[0] = "--auth", broker->login[1] = secret;
    }
    strcpy(broker->port, "0");
    strcpy(broker->folder, "/tmp/paceline-nats-XXXXXX");
    /* The kernel's choice, which another process could take in between. */
    address = broker_address(broker);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0) abort();
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) abort();
    close(fd);
    snprintf(broker->port, sizeof broker->port, "%u", ntohs(address.sin_port));
    snprintf(broker->url, sizeof broker->url, "nats://127.0.0.1:%s", broker->port);
    if (mkdtemp(broker->folder) == NULL) abort();
    if (broker_run(broker)) return true;
    (void)rmdir(broker->folder);
    printf("skipped: there is no nats-server\n");
    return false;
}

/* One without a login. */
static inline bool broker_start(broker_t *broker) { return broker_start_with(broker, NULL, NULL); }

static inline void broker_stop(broker_t *broker) {
    char command[64];
    broker_kill(broker);
    snprintf(command, sizeof command, "rm -r %s", broker->folder);
    if (system(command) != 0) abort();
}

#endif
