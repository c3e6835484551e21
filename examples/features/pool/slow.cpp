// A hook is called for each handler or task that takes too long: once for each.
//
// feature: pool/slow
// prints:
//   the hook: a task has taken more than 10 ms, and still runs
//   the task ends

#include <chrono>
#include <future>
#include <iostream>
#include <paceline/pool.hpp>

using namespace std::chrono_literals;

int main() {
    std::promise<void> reported;
    const auto hook = [&reported](const paceline::SlowReport &report) {
        std::cout << "the hook: a task has taken " << (report.elapsed >= 10ms ? "more" : "less")
                  << " than 10 ms, and " << (report.running ? "still runs" : "has returned meanwhile")
                  << '\n';
        reported.set_value();
    };
    const auto config = paceline::Config().set_threads(2).set_on_slow(10ms, hook);
    const auto pool = paceline::Pool::create(config).value();
    auto slow = pool.submit([&reported] { reported.get_future().wait(); }).value();
    slow.wait().value();
    std::cout << "the task ends\n";
    return 0;
}
