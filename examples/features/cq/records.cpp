// Records of the log, and signals, as data.
//
// feature: cq/records

#include "../check.h"
#include <csignal>
#include <cstdint>
#include <paceline/cq.hpp>
#include <unistd.h>

using paceline::EntryKind;

int main() {
    enum Tag : std::uint64_t { Records, Signals };
    paceline::LogConfig config;
    config.levels = "info";
    config.cq_capacity = 1024; // so many records may wait
    const auto log = paceline::Log::create(config).value();
    const auto pool = paceline::Pool::create(paceline::Config().set_log(log)).value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    queue.attach(log, Records).value();
    const std::int32_t wanted[] = {SIGHUP};
    const auto signals = queue.watch_signals(wanted, Signals).value(); // in the main thread
    CHECK(kill(getpid(), SIGHUP) == 0);

    for (bool has_started = false, is_signalled = false; !has_started || !is_signalled;) {
        paceline::Entry room[1];
        (void)queue.wait(room, paceline::forever).value();
        const paceline::Entry &entry = room[0];
        if (entry.what() == EntryKind::Record) {
            has_started = has_started || entry.record().event == "pool.started";
        } else if (entry.what() == EntryKind::Signal) {
            is_signalled = entry.signal() == SIGHUP;
        }
        queue.done(entry).value();
    }
    return 0;
}
