// Records of the log, and signals, as data.
//
// feature: cq/records
// prints:
//   a record of the log: pool.started
//   a signal: SIGHUP

#include <csignal>
#include <cstdint>
#include <iostream>
#include <paceline/cq.hpp>
#include <unistd.h>

using paceline::EntryKind;

int main() {
    enum Tag : std::uint64_t { Records, Signals };
    paceline::LogConfig config;
    config.levels = "info";
    config.cq_capacity = 1024; // how many records may wait
    const auto log = paceline::Log::create(config).value();
    const auto pool = paceline::Pool::create(paceline::Config().set_log(log)).value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    queue.attach(log, Records).value();
    const std::int32_t wanted[] = {SIGHUP};
    const auto signals = queue.watch_signals(wanted, Signals).value(); // in the main thread

    for (bool is_signalled = false; !is_signalled;) {
        paceline::Entry room[1];
        (void)queue.wait(room, paceline::forever).value();
        const paceline::Entry &entry = room[0];
        if (entry.what() == EntryKind::Signal) {
            std::cout << (entry.signal() == SIGHUP ? "a signal: SIGHUP\n" : "another signal\n");
            is_signalled = true;
        } else if (entry.record().event == "pool.started") {
            std::cout << "a record of the log: " << entry.record().event << '\n';
            kill(getpid(), SIGHUP);
        }
        queue.done(entry).value();
    }
    return 0;
}
