// A pool that waits at a source in memory, and not at epoll: tasks, timers and rings as ever, but no descriptors.
//
// feature: pool/source
// prints:
//   a task: 42
//   a descriptor: PACE_EINVAL

#include <iostream>
#include <paceline/pool.hpp>

int main() {
    const auto config = paceline::Config().set_threads(2).set_source(paceline::Source::Ring);
    const auto pool = paceline::Pool::create(config).value();
    std::cout << "a task: " << pool.submit([] { return 42; }).value().wait().value() << '\n';
    const auto handle = pool.register_fd(0, [](int, paceline::Ready) { return paceline::Flow::Done; });
    std::cout << "a descriptor: " << paceline::name(handle.error().code()) << '\n';
    return 0;
}
