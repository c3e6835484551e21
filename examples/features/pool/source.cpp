// A pool that waits at a source in memory, and not at epoll: tasks, timers and rings as ever, but no descriptors.
//
// feature: pool/source

#include "../check.h"
#include <paceline/pool.hpp>

int main() {
    const auto config = paceline::Config().set_threads(2).set_source(paceline::Source::Ring);
    const auto pool = paceline::Pool::create(config).value();
    CHECK(pool.submit([] { return 42; }).value().wait().value() == 42);
    CHECK(!pool.register_fd(0, [](int, paceline::Ready) { return paceline::Flow::Done; }));
    return 0;
}
