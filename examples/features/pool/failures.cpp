// An exception of a task reaches the thread that waits for it, or one hook if no thread does; nothing else ends with it.
//
// feature: pool/failures
// prints:
//   caught: no answer
//   the hook: nobody waits
//   the next task: 42
//   failed: 2, completed: 1

#include <exception>
#include <future>
#include <iostream>
#include <paceline/pool.hpp>
#include <stdexcept>

int main() {
    std::promise<std::exception_ptr> unhandled;
    const auto pool = paceline::Pool::create().value();
    auto task = pool.submit([]() -> int { throw std::runtime_error("no answer"); }).value();
    try {
        task.wait().value();
    } catch (const std::runtime_error &error) {
        std::cout << "caught: " << error.what() << '\n';
    }

    paceline::on_unhandled([&unhandled](std::exception_ptr thrown) { unhandled.set_value(thrown); });
    pool.post([] { throw std::runtime_error("nobody waits"); }).value();
    try {
        std::rethrow_exception(unhandled.get_future().get());
    } catch (const std::runtime_error &error) {
        std::cout << "the hook: " << error.what() << '\n';
    }
    paceline::on_unhandled(nullptr);
    std::cout << "the next task: " << pool.submit([] { return 42; }).value().wait().value() << '\n';

    pool.shutdown(paceline::forever).value(); // the counters are exact at rest
    const auto audit = pool.audit().value();
    std::cout << "failed: " << audit.failed << ", completed: " << audit.completed << '\n';
    return 0;
}
