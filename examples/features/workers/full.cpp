// Bounded: what a submission does when there is no room, here to drop the oldest, to be refused, to run at once, or to wait.
//
// feature: workers/full
// prints:
//   the oldest task was dropped: true
//   refused: PACE_EFULL
//   this task runs in the thread that has submitted it
//   this task has waited for room

#include <future>
#include <iostream>
#include <paceline/workers.hpp>
#include <utility>
#include <vector>

using paceline::OverloadPolicy;

static paceline::TaskOptions if_full(OverloadPolicy policy) {
    paceline::TaskOptions options;
    options.full = policy;
    return options;
}

int main() {
    std::promise<void> busy, go_on;
    const auto pool =
        paceline::Pool::create(paceline::Config().set_threads(1).set_lane_capacity(4)).value();
    paceline::WorkersConfig config;
    config.max_droppable = 1;
    const auto workers = paceline::WorkerPool::create(pool, config).value();
    const auto type = workers.task_type("say").value();

    type.post([&] {
            busy.set_value();
            go_on.get_future().wait();
        })
        .value();
    busy.get_future().wait(); // the only thread is inside
    auto oldest = type.submit([] {}, if_full(OverloadPolicy::drop_oldest())).value();
    auto newer = type.submit([] {}, if_full(OverloadPolicy::drop_oldest())).value();
    const bool dropped = oldest.wait().value().status == paceline::TaskStatus::Rejected;
    std::cout << std::boolalpha << "the oldest task was dropped: " << dropped << '\n';

    std::vector<paceline::WorkTask<void>> accepted;
    auto task = type.submit([] {}, if_full(OverloadPolicy::reject()));
    for (; task; task = type.submit([] {}, if_full(OverloadPolicy::reject()))) {
        accepted.push_back(*std::move(task));
    }
    std::cout << "refused: " << paceline::name(task.error().code()) << '\n';

    const auto say = [](const char *text) { return [text] { std::cout << text << '\n'; }; };
    const auto here = type.submit(say("this task runs in the thread that has submitted it"),
                                  if_full(OverloadPolicy::run_here()))
                          .value();
    go_on.set_value();
    auto waited =
        type.submit(say("this task has waited for room"), if_full(OverloadPolicy::wait())).value();
    waited.wait().value();
    return 0;
}
