/* paceline inside a host that has a poll loop of its own.
 *
 * The pool has no threads: everything runs on the host's, when the host says so. One descriptor of the
 * pool stands in the host's poll beside the host's own, and tells when there is something to do.
 *
 *     cc examples/c/embed.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -o embed
 *
 * feature: pool/join
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <paceline/pool.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* What the callbacks know. They run in the host's loop, on its thread: nothing needs a lock. */
typedef struct game {
    pace_pool_t *pool;
    int ticks, messages;
    bool over;
} game_t;

static int32_t tick(void *user_data, pace_handle_t self) {
    game_t *game = user_data;
    (void)self;
    printf("tick %d\n", ++game->ticks);
    return game->ticks == 3 ? PACE_FLOW_DONE : PACE_FLOW_WAIT;
}

static int32_t read_message(void *user_data, pace_handle_t self, int32_t fd, uint32_t ready) {
    game_t *game = user_data;
    char text[64];
    ssize_t size;
    (void)self, (void)ready;
    while ((size = read(fd, text, sizeof text)) > 0) {
        printf("a message: %.*s\n", (int)size, text);
        game->messages++;
    }
    return size == 0 ? PACE_FLOW_DONE : PACE_FLOW_WAIT;
}

static void game_over(void *user_data, int32_t *outcome) {
    game_t *game = user_data;
    printf("game over after %d ticks and %d message\n", game->ticks, game->messages);
    game->over = true;
    *outcome = 0;
}

int main(void) {
    game_t game = {0};
    pace_pool_config_t config;
    pace_handle_t ticker, reader;
    int messages[2], pool_fd;
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 0; /* the host's thread is the only one */
    must(pace_pool_new(&config, &game.pool));
    must(pace_pool_pollable(game.pool, &pool_fd));

    if (pipe2(messages, O_NONBLOCK | O_CLOEXEC) != 0) return EXIT_FAILURE;
    must(pace_pool_register(game.pool, messages[0], NULL, read_message, &game, NULL, &reader));
    must(pace_pool_every(game.pool, 10 * MILLISECOND, tick, &game, NULL, &ticker));
    must(pace_pool_after(game.pool, 100 * MILLISECOND, game_over, &game, NULL, NULL));
    if (write(messages[1], "hello", 5) != 5) return EXIT_FAILURE;

    /* The host's loop, with whatever else it waits for. */
    while (!game.over) {
        struct pollfd waits[] = {{.fd = pool_fd, .events = POLLIN}};
        if (poll(waits, 1, -1) > 0) must(pace_pool_join(game.pool, 0, NULL));
    }
    pace_pool_free(game.pool);
    close(messages[0]);
    close(messages[1]);
    return 0;
}
