// Stands for HTTP in C programs that have an event loop already: libevent's evhttp, one loop and one
// listening socket per thread on the same port, between which the kernel deals connections out.

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include <thread>
#include <vector>

#include "serve.hpp"

static const std::string kBody(64, 'x');

static void answer(evhttp_request *request, void *) {
    evbuffer *body = evhttp_request_get_output_buffer(request);
    evbuffer_add_reference(body, kBody.data(), kBody.size(), nullptr, nullptr);
    evhttp_send_reply(request, HTTP_OK, "OK", nullptr);
}

// evhttp names a type of its own unless it is told not to: the answers are to be equal.
static event_base *new_loop(int listener) {
    event_base *base = event_base_new();
    evhttp *http = evhttp_new(base);
    evhttp_set_default_content_type(http, nullptr);
    evhttp_set_gencb(http, answer, nullptr);
    evhttp_accept_socket(http, listener);
    return base;
}

int main(int argc, char **argv) {
    std::string listen = "127.0.0.1:0";
    int threads = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i], value = argv[i + 1];
        if (flag == "--listen")
            listen = value;
        else if (flag == "--threads")
            threads = std::atoi(value.c_str());
    }
    serve::raise_open_files();
    sockaddr_in address = serve::parse_address(listen);
    std::vector<event_base *> loops;
    for (int i = 0; i < threads; i++) {
        loops.push_back(new_loop(serve::listen_on(address, SOCK_NONBLOCK, true)));
    }
    serve::announce(address);
    std::vector<std::thread> others;
    for (int i = 1; i < threads; i++) others.emplace_back(event_base_dispatch, loops[i]);
    event_base_dispatch(loops[0]);
}
