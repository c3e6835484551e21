// Attempts of a worker pool's tasks as data, and the ends of tasks.
//
// feature: cq/attempts

#include "../check.h"
#include <chrono>
#include <cstdint>
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
        CHECK(entry.what() == EntryKind::Attempt && entry.tag == Fetch);
        const bool fails = entry.attempt().number == 1; // then it is tried again
        (void)queue.complete(fails ? Completion::fail(entry, "busy") : Completion(entry)).value();
    }
    const auto report = task.wait().value();
    CHECK(report.completed() && report.attempts == 2);
    return 0;
}
