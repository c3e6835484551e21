// A task, ten tasks, a timer.
//
//     c++ -std=c++17 examples/cpp/hello.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o hello
//
// feature: pool/tasks

#include <chrono>
#include <future>
#include <iostream>
#include <paceline/pool.hpp>
#include <vector>

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

int main() {
    std::cout << std::boolalpha;

    // A thread per CPU that this process may use.
    const auto pool = paceline::Pool::create().value();

    // A task, and its value.
    auto answer = pool.submit([] { return 6 * 7; }).value();
    std::cout << "a task says " << answer.wait().value() << '\n';

    // Ten tasks. They run on any thread in any order; the values are taken in this one.
    std::vector<paceline::Task<int>> squares;
    for (int n = 1; n <= 10; ++n) {
        squares.push_back(pool.submit([n] { return n * n; }).value());
    }
    const char *before = "ten tasks say [";
    for (auto &square : squares) {
        std::cout << before << square.wait().value();
        before = ", ";
    }
    std::cout << "]\n";

    // A timer, which ends by itself: nothing need be kept. It runs late if at all, never early.
    std::promise<Clock::time_point> rings;
    auto rang = rings.get_future();
    const auto began = Clock::now();
    pool.after(20ms, [&rings] { rings.set_value(Clock::now()); }).value();
    std::cout << "a timer says that 20 ms have passed: " << (rang.get() - began >= 20ms) << '\n';

    // What was accepted has ended, and every task is accounted for.
    const auto report = pool.shutdown(1s).value();
    std::cout << "drained: " << report.drained
              << ", the books balance: " << pool.audit().value().balances << '\n';
}
