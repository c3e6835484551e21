// Middleware runs around each attempt of every task.
//
// feature: workers/middleware

#include "../check.h"
#include <chrono>
#include <memory>
#include <paceline/workers.hpp>
#include <stdexcept>
#include <string>

using paceline::Attempt;

struct Tell : paceline::Middleware {
    std::string log; // of one task: nothing here runs at the same time

    bool before(Attempt &attempt) override {
        log += std::string(attempt.name()) + " begins; ";
        return true; // else the attempt fails, and is not run
    }
    void after(const Attempt &) override { log += "ends; "; }
    void on_error(const Attempt &, const char *message) override {
        log += std::string("fails: ") + message;
    }
};

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto tell = std::make_shared<Tell>();
    paceline::WorkersConfig config;
    config.middleware = {tell};
    const auto workers = paceline::WorkerPool::create(pool, config).value();
    const auto type = workers.task_type("fetch").value();
    paceline::TaskOptions options;
    options.retry = paceline::Retry::fixed(1, std::chrono::milliseconds(1));
    const auto fail_once = [](Attempt &attempt) {
        if (attempt.number() == 1) {
            throw std::runtime_error("busy; ");
        }
    };
    CHECK(type.submit(fail_once, options).value().wait().value().completed());
    CHECK(workers.shutdown().value().drained);
    CHECK(tell->log == "fetch begins; fails: std::runtime_error: busy; ends; fetch begins; ends; ");
    return 0;
}
