// Durable tasks: a NATS server keeps them until they have ended, so that they outlive the process, and any process with a
// handler for a task's name runs it. The address of a server with streams (nats-server -js) is in NATS_URL; without one there
// is nothing to show.
//
// feature: workers/durable
// prints:
//   hello, Ada (attempt 2)
//   failed for good: nobody is there
//   tasks that were left: 0

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <paceline/durable.hpp>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

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
        std::cout << "There is no NATS_URL, the address of a NATS server.\n";
        return 0;
    }
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto queue = paceline::DurableQueue::create(workers, "greetings_cpp", url).value();
    queue.task("greet", greet, paceline::Retry::fixed(3, 10ms)).value();
    queue.open().value();

    const auto task = queue.submit("greet", "Ada").value();      // it is stored now
    const auto report = queue.find(task.id()).wait(60s).value(); // as another process may
    std::cout << report.value << " (attempt " << report.attempts << ")\n";

    queue.submit("greet").value().wait(60s).value();
    // It is kept, and may be submitted again.
    std::cout << "failed for good: " << queue.dead().value().back().failure << '\n';
    std::cout << "tasks that were left: " << queue.close(60s).value() << '\n';
    return 0;
}
