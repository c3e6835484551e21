// An operations endpoint: a live page, figures and health of a pool, by itself and in a server of the program's own.
//
// feature: ops/endpoint

#include "../peer.h"
#include <atomic>
#include <chrono>
#include <paceline/ops.hpp>
#include <string>
#include <thread>

using paceline::Request;
using paceline::Response;

namespace {

bool answers(const std::string &address, const std::string &path, const char *part) {
    const int fd = peer_connect(address.c_str());
    peer_send(fd, ("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").c_str());
    const bool found = std::strstr(peer_read_all(fd), part) != nullptr;
    close(fd);
    return found;
}

/// A pool whose threads are all busy is alive and ready, for however long. But if something waits meanwhile, it starves.
void health_is_told() {
    using namespace std::chrono_literals;
    std::atomic<bool> open_now{false}, inside{false};
    const auto pool = paceline::Pool::create(paceline::Config().set_threads(1)).value();
    const auto config = paceline::OpsConfig().set_address("127.0.0.1:0").set_blocked_after(10ms);
    const auto limits = paceline::OpsConfig(config).set_ready_after(20ms).set_dead_after(50ms);
    const auto ops = paceline::Ops::serve(pool, limits).value();
    const std::string address = ops.address().value();
    pool.post([&] {
            for (inside = true; !open_now;) {
                std::this_thread::sleep_for(1ms);
            }
        })
        .value();
    WAIT_FOR(inside);
    for (int busy = 0; busy < 10 || !answers(address, "/health/live", "thread 0 is blocked"); busy++) {
        CHECK(answers(address, "/health/live", "200 OK"));
        CHECK(answers(address, "/health/ready", "200 OK"));
        std::this_thread::sleep_for(20ms);
    }
    CHECK(answers(address, "/health/live", "200 OK"));
    pool.post([] {}).value();
    WAIT_FOR(answers(address, "/health/ready", "a task has waited"));
    WAIT_FOR(answers(address, "/health/live", "the pool starves"));
    open_now = true;
    WAIT_FOR(answers(address, "/health/live", "200 OK"));
    WAIT_FOR(answers(address, "/health/ready", "200 OK"));
}

} // namespace

int main() {
    health_is_told();
    const auto pool = paceline::Pool::create().value();
    const auto ops = paceline::Ops::serve(pool, "127.0.0.1:0").value(); // then open it in a browser
    const std::string address = ops.address().value();
    CHECK(answers(address, "/", "<title>paceline</title>"));
    CHECK(answers(address, "/metrics", "paceline_thread_led_total"));
    CHECK(answers(address, "/health/ready", "200 OK"));

    // Other machines are answered with a token only.
    const auto open = paceline::OpsConfig().set_address("0.0.0.0:0");
    CHECK(paceline::Ops::serve(pool, open).error() == paceline::Code::Invalid);
    const auto closed = paceline::OpsConfig(open).set_token("correct-horse-battery");
    const auto other = paceline::Ops::serve(pool, closed).value();

    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/", [](const Request &, Response response) { response.send("mine").value(); })
        .value();
    ops.mount(http, "/ops").value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    http.start(paceline::HttpConfig().add_listener(listen)).value();
    CHECK(answers(http.address().value(), "/ops/stats.json", "\"threads\""));
    CHECK(answers(http.address().value(), "/", "mine"));
    return 0;
}
