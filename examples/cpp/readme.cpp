#include <iostream>
#include <paceline.hpp>
#include <thread>
using namespace std::chrono_literals;

int main() {
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    const auto order = [&pool](const paceline::Request &, paceline::Response response) {
        std::this_thread::sleep_for(1s); // a slow database: no other request waits for it
        pool.post([] { std::cout << "a job: send a mail" << std::endl; }).value();
        return response.json("\"ordered\"");
    };
    http.route("GET", "/order", order).value();
    http.serve("127.0.0.1:8080").value();
    std::cout << "http://127.0.0.1:8080/order is served" << std::endl;
    paceline::Signals::shut_down(pool, 30s).value().wait(); // on SIGTERM, when all is done
}
