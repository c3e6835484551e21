/* Starts an HTTP server at a free port, for the programs in C of this directory. */
#ifndef HTTP_SERVE_H
#define HTTP_SERVE_H

#include "../check.h"
#include <paceline/http.h>
#include <paceline/pool.h>

/* With these limits, whose listeners are not looked at. */
static inline void start_with(pace_http_t *http, pace_http_options_t options,
                              char address[PACE_ADDRESS_SIZE]) {
    pace_listener_options_t listener;
    pace_server_t *server; /* the HTTP server's */
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0";
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_http_start(http, &options));
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, PACE_ADDRESS_SIZE));
}

static inline void start(pace_http_t *http, char address[PACE_ADDRESS_SIZE]) {
    pace_http_options_t options;
    must(pace_http_options_init(&options, sizeof options));
    start_with(http, options, address);
}

#endif
