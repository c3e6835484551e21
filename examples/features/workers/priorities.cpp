// Priorities: what is more urgent begins first, and what is critical can have a thread of its own.
//
// feature: workers/priorities
// prints:
//   critical, while the other thread is busy
//   high
//   normal
//   low

#include <future>
#include <iostream>
#include <paceline/workers.hpp>

using paceline::Lane;

static paceline::TaskOptions in(Lane lane) {
    paceline::TaskOptions options;
    options.lane = lane;
    return options;
}

int main() {
    std::promise<void> busy, go_on;
    // One thread, and one more for critical tasks alone. By default a task that has waited for a second gets a turn, too.
    auto config = paceline::Config().set_threads(1).set_reserve(Lane::Critical, 1);
    config.set_ageing(paceline::forever);
    const auto pool = paceline::Pool::create(config).value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto type = workers.task_type("say").value();
    const auto say = [](const char *text) { return [text] { std::cout << text << '\n'; }; };

    const auto keep_busy = [&] {
        busy.set_value();
        go_on.get_future().wait();
    };
    const auto first = type.submit(keep_busy).value();
    busy.get_future().wait(); // from here on all tasks wait, but for critical ones
    const auto low = type.submit(say("low"), in(Lane::Low)).value();
    const auto normal = type.submit(say("normal"), in(Lane::Normal)).value();
    const auto high = type.submit(say("high"), in(Lane::High)).value();
    auto critical =
        type.submit(say("critical, while the other thread is busy"), in(Lane::Critical)).value();
    critical.wait().value();
    go_on.set_value();
    workers.shutdown().value();
    return 0;
}
