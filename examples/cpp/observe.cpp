// A service to look at: an HTTP server, a worker pool and a hub on one pool, a handler that sometimes blocks its thread, a
// subscription that lags, and the live page that shows all of it.
//
//     c++ -std=c++17 examples/cpp/observe.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o observe
//
// Then open the page in a browser. SIGINT and SIGTERM end it.

#include <paceline/http.hpp>
#include <paceline/ops.hpp>

#include <csignal>
#include <iostream>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using paceline::Flow;
using paceline::Message;
using paceline::Request;
using paceline::Response;

int main(int argc, char **argv) {
    const std::string page = argc > 1 ? argv[1] : "127.0.0.1:9090";
    const std::string address = argc > 2 ? argv[2] : "127.0.0.1:8080";

    // Before the first thread is made, which inherits it.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, nullptr);

    const auto pool =
        paceline::Pool::create(paceline::Config().set_name("observe").set_threads(4)).value();
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/hello",
               [](const Request &, Response response) { response.send("hello\n").value(); })
        .value();
    http.route("GET", "/slow",
               [](const Request &, Response response) {
                   // What a handler should not do: others of its thread wait meanwhile, until the watch steps in.
                   std::this_thread::sleep_for(3s);
                   (void)response.send("at last\n");
               })
        .value();
    const auto listen = paceline::Listen().set_address(address);
    http.start(paceline::HttpConfig().add_listener(listen)).value();

    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto resize = workers.task_type("resize").value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto quick = hub.subscribe("orders.>", [](const Message &) {}).value();
    // 66 orders a second, of the 100 that come: it lags, until the oldest are dropped.
    const auto lagging = paceline::SubscriptionConfig()
                             .set_capacity(500)
                             .set_overflow(paceline::Overflow::DropOldest)
                             .set_measured(true);
    const auto slow =
        hub.subscribe(
               "orders.*", [](const Message &) { std::this_thread::sleep_for(15ms); }, lagging)
            .value();

    const auto work = pool.every(10ms,
                                 [&] {
                                     (void)resize.submit([] { std::this_thread::sleep_for(2ms); });
                                     (void)hub.publish("orders.new", "one more");
                                     return Flow::Wait;
                                 })
                          .value();
    // The handler that sometimes blocks: 2 s of 12.
    const auto report = pool.every(12s,
                                   [] {
                                       std::this_thread::sleep_for(2s);
                                       return Flow::Wait;
                                   })
                            .value();

    const auto ops = paceline::Ops::serve(pool, page).value();
    std::cout << "the live page: http://" << ops.address().value() << "/\n"
              << "the server: http://" << http.address().value() << "/hello, and /slow" << std::endl;
    int caught = 0;
    sigwait(&signals, &caught);
    return 0;
}
