/* A server with one listener, as the programs in C of this directory need it. */
#ifndef SERVE_H
#define SERVE_H

#include "check.h"
#include <paceline/net.h>
#include <paceline/pool.h>

/* The settings of a listener at a free port. */
static inline pace_listener_options_t free_port(void) {
    pace_listener_options_t listener;
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0";
    return listener;
}

/* Starts a server, and tells where it listens. */
static inline pace_server_t *serve(pace_pool_t *pool, const pace_listener_options_t *listener,
                                   const pace_conn_hooks_t *hooks, char address[PACE_ADDRESS_SIZE]) {
    pace_server_options_t options;
    pace_server_t *server;
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = listener;
    options.listener_count = 1;
    must(pace_server_new(pool, &options, hooks, &server));
    must(pace_server_address(server, 0, address, PACE_ADDRESS_SIZE));
    return server;
}

/* Hooks of which only `data` is there. */
static inline pace_conn_hooks_t hooks_with(pace_conn_data_fn data) {
    pace_conn_hooks_t hooks;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = data;
    return hooks;
}

#endif
