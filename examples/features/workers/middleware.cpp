// Middleware runs around each attempt of every task.
//
// feature: workers/middleware
// prints:
//   fetch begins
//   fetch fails: std::runtime_error: busy
//   fetch ends
//   fetch begins
//   fetch ends

#include <chrono>
#include <iostream>
#include <memory>
#include <paceline/workers.hpp>
#include <stdexcept>

using paceline::Attempt;

struct Print : paceline::Middleware {
    bool before(Attempt &attempt) override {
        std::cout << attempt.name() << " begins\n";
        return true; // else the attempt fails, and is not run
    }
    void after(const Attempt &attempt) override { std::cout << attempt.name() << " ends\n"; }
    void on_error(const Attempt &attempt, const char *message) override {
        std::cout << attempt.name() << " fails: " << message << '\n';
    }
};

int main() {
    const auto pool = paceline::Pool::create().value();
    paceline::WorkersConfig config;
    config.middleware = {std::make_shared<Print>()};
    const auto workers = paceline::WorkerPool::create(pool, config).value();
    const auto type = workers.task_type("fetch").value();
    paceline::TaskOptions options;
    options.retry = paceline::Retry::fixed(1, std::chrono::milliseconds(1));
    const auto fail_once = [](Attempt &attempt) {
        if (attempt.number() == 1) {
            throw std::runtime_error("busy");
        }
    };
    type.submit(fail_once, options).value().wait().value();
    workers.shutdown().value();
    return 0;
}
