/* A compiler of C has each struct as the library has it: layout.h says where each field lies, and Rust's compiler checks
 * the same numbers. The library takes structs of programs that were compiled with version 0.1. */
#include "check.h"
#include "layout.h"

int main(void) {
    /* The library agrees: it accepts the sizes of the first version, and none below. */
    union {
        pace_pool_config_t config;
        pace_handle_options_t options;
        pace_conn_hooks_t hooks;
        pace_listener_options_t listener;
        pace_server_options_t server;
        pace_request_body_hooks_t body;
        pace_http_options_t http;
        pace_udp_hooks_t datagrams;
        pace_udp_options_t udp;
        pace_filter_hooks_t filter;
        pace_hub_options_t hub;
        pace_publication_t publication;
        pace_subscription_options_t subscription;
        pace_publisher_options_t publisher;
        pace_history_options_t history;
        pace_threshold_t threshold;
    } first;
    check_begin();
    OK(pace_pool_config_init(&first.config, 128));
    SAYS(PACE_EVERSION, pace_pool_config_init(&first.config, 127));
    OK(pace_handle_options_init(&first.options, 12));
    SAYS(PACE_EVERSION, pace_handle_options_init(&first.options, 11));
    OK(pace_conn_hooks_init(&first.hooks, 104));
    SAYS(PACE_EVERSION, pace_conn_hooks_init(&first.hooks, 103));
    OK(pace_listener_options_init(&first.listener, 168));
    SAYS(PACE_EVERSION, pace_listener_options_init(&first.listener, 167));
    OK(pace_server_options_init(&first.server, 48));
    SAYS(PACE_EVERSION, pace_server_options_init(&first.server, 47));
    OK(pace_request_body_hooks_init(&first.body, 32));
    SAYS(PACE_EVERSION, pace_request_body_hooks_init(&first.body, 31));
    OK(pace_http_options_init(&first.http, 112));
    SAYS(PACE_EVERSION, pace_http_options_init(&first.http, 111));
    OK(pace_udp_hooks_init(&first.datagrams, 48));
    SAYS(PACE_EVERSION, pace_udp_hooks_init(&first.datagrams, 47));
    OK(pace_udp_options_init(&first.udp, 56));
    SAYS(PACE_EVERSION, pace_udp_options_init(&first.udp, 55));
    OK(pace_filter_hooks_init(&first.filter, 64));
    SAYS(PACE_EVERSION, pace_filter_hooks_init(&first.filter, 63));
    OK(pace_hub_options_init(&first.hub, 16));
    SAYS(PACE_EVERSION, pace_hub_options_init(&first.hub, 15));
    OK(pace_publication_init(&first.publication, 32));
    SAYS(PACE_EVERSION, pace_publication_init(&first.publication, 31));
    OK(pace_subscription_options_init(&first.subscription, 48));
    SAYS(PACE_EVERSION, pace_subscription_options_init(&first.subscription, 47));
    OK(pace_history_options_init(&first.history, 136));
    SAYS(PACE_EVERSION, pace_history_options_init(&first.history, 135));
    OK(pace_threshold_init(&first.threshold, 64));
    SAYS(PACE_EVERSION, pace_threshold_init(&first.threshold, 63));
    OK(pace_publisher_options_init(&first.publisher, 40));
    SAYS(PACE_EVERSION, pace_publisher_options_init(&first.publisher, 39));
    return 0;
}
