// An exception of a task goes to whoever waits for it, or to one hook if nobody does; nothing else ends with it.
//
// feature: pool/failures

#include "../check.h"
#include <atomic>
#include <exception>
#include <paceline/pool.hpp>
#include <stdexcept>
#include <string>

int main() {
    const auto pool = paceline::Pool::create().value();
    auto task = pool.submit([]() -> int { throw std::runtime_error("no answer"); }).value();
    std::string caught;
    try {
        task.wait().value();
    } catch (const std::runtime_error &error) {
        caught = error.what();
    }
    CHECK(caught == "no answer");

    std::atomic<int> unhandled{0};
    paceline::on_unhandled([&unhandled](std::exception_ptr) { ++unhandled; });
    pool.post([] { throw std::runtime_error("nobody waits"); }).value();
    WAIT_FOR(unhandled == 1);
    paceline::on_unhandled(nullptr);
    CHECK(pool.submit([] { return 42; }).value().wait().value() == 42);
    CHECK(pool.shutdown(paceline::forever).value().drained); // the counters are exact at rest
    CHECK(pool.audit().value().failed == 2);
    return 0;
}
