// Durable tasks: a NATS server keeps them until they have ended, so that they outlive the process, and any process with a
// handler for a task's name runs it. The address of a server with streams (nats-server -js) is in NATS_URL; without one there
// is nothing to show.
//
// feature: workers/durable
#include "../check.h"
#include <chrono>
#include <cstdlib>
#include <paceline/durable.hpp>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;
using paceline::DurableStatus;

// The first attempt fails, and another follows.
static std::string greet(const paceline::DurableJob &job) {
    if (job.arguments().empty()) {
        job.permanent("nobody is there").value();
    } else if (job.number() == 1) {
        throw std::runtime_error("not yet");
    }
    return "hello, " + std::string(job.arguments());
}

int main() {
    const char *url = std::getenv("NATS_URL");
    if (url == nullptr) {
        std::puts("There is no NATS_URL, the address of a NATS server.");
        return 0;
    }
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto queue = paceline::DurableQueue::create(workers, "greetings_cpp", url).value();
    queue.task("greet", greet, paceline::Retry::fixed(3, 10ms)).value();
    queue.open().value();

    const auto task = queue.submit("greet", "Ada").value();      // it is stored now
    const auto report = queue.find(task.id()).wait(60s).value(); // as another process may
    CHECK(report.completed() && report.value == "hello, Ada" && report.attempts == 2);
    CHECK(queue.submit("greet").value().wait(60s).value().status == DurableStatus::Failed);
    CHECK(queue.dead().value().back().failure == "nobody is there"); // it may be submitted again
    CHECK(queue.close(60s).value() == 0);
    return 0;
}
