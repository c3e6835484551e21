/* Starts an HTTP server at a free port, for the programs in C of this directory. */
#ifndef HTTP_SERVE_H
#define HTTP_SERVE_H

#include "../check.h"
#include <paceline/http.h>
#include <paceline/pool.h>

static inline void address_of(const pace_http_t *http, char address[PACE_ADDRESS_SIZE]) {
    pace_server_t *server; /* the HTTP server's */
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, PACE_ADDRESS_SIZE));
}

/* With these limits, whose listeners are not looked at. */
static inline void start_with(pace_http_t *http, pace_http_options_t options,
                              char address[PACE_ADDRESS_SIZE]) {
    pace_listener_options_t listener;
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0";
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_http_start(http, &options));
    address_of(http, address);
}

static inline void start(pace_http_t *http, char address[PACE_ADDRESS_SIZE]) {
    must(pace_http_serve(http, "127.0.0.1:0"));
    address_of(http, address);
}

#endif
