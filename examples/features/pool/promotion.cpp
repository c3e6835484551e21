// Eager promotion: before each handler another thread begins to lead. It is for handlers that block as a rule; by default
// a thread that watches takes over the lead from a handler that is slow.
//
// feature: pool/promotion
// prints:
//   one handler has seen that the other runs
//   the other handler has seen that the first runs

#include <future>
#include <iostream>
#include <paceline/pool.hpp>
#include <sys/eventfd.h>

using paceline::Flow;
using paceline::Ready;

int main() {
    std::promise<void> one_runs, other_runs, one_saw, other_saw;
    const auto config = paceline::Config().set_threads(3).set_promotion(paceline::Promotion::Eager);
    const auto pool = paceline::Pool::create(config).value();
    // Each waits for the other, though neither says that it blocks.
    const auto one = [&](int, Ready) {
        one_runs.set_value();
        other_runs.get_future().wait();
        std::cout << "one handler has seen that the other runs\n";
        one_saw.set_value();
        return Flow::Done;
    };
    const auto other = [&](int, Ready) {
        other_runs.set_value();
        one_runs.get_future().wait();
        one_saw.get_future().wait();
        std::cout << "the other handler has seen that the first runs\n";
        other_saw.set_value();
        return Flow::Done;
    };
    const auto first = pool.register_fd(eventfd(1, EFD_NONBLOCK), one).value();
    const auto second = pool.register_fd(eventfd(1, EFD_NONBLOCK), other).value();
    other_saw.get_future().wait();
    return 0;
}
