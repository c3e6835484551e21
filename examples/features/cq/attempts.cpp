// Attempts of a worker pool's tasks as data, and the ends of tasks.
//
// feature: cq/attempts
// prints:
//   attempt 1: fails
//   attempt 2: works
//   the task has ended
//   completed, attempts: 2

#include <chrono>
#include <cstdint>
#include <iostream>
#include <paceline/cq.hpp>

using paceline::Completion;
using paceline::EntryKind;

int main() {
    enum Tag : std::uint64_t { Attempts, Fetch, Ends };
    const auto pool = paceline::Pool::create().value();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    queue.attach(workers, Attempts).value();
    const auto type = workers.task_type("fetch").value();
    paceline::TaskOptions options;
    options.retry = paceline::Retry::fixed(3, std::chrono::milliseconds(1));
    auto task = type.submit_tagged(Fetch, options).value();
    queue.attach(task, Ends).value();

    for (bool ended = false; !ended;) {
        paceline::Entry room[1];
        (void)queue.wait(room, paceline::forever).value();
        const paceline::Entry &entry = room[0];
        if (entry.what() == EntryKind::TaskEnded) {
            ended = entry.tag == Ends;
            continue;
        }
        const auto number = entry.attempt().number;
        const bool fails = number == 1; // then it is tried again
        std::cout << "attempt " << number << (fails ? ": fails\n" : ": works\n");
        (void)queue.complete(fails ? Completion::fail(entry, "busy") : Completion(entry)).value();
    }
    std::cout << "the task has ended\n";
    const auto report = task.wait().value();
    std::cout << (report.completed() ? "completed" : "failed") << ", attempts: " << report.attempts
              << '\n';
    return 0;
}
