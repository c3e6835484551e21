// A structured log: to a function, or to a file of JSON lines that is rotated.
//
// feature: ops/log

#include "../check.h"
#include <atomic>
#include <chrono>
#include <cstdint>
#include <paceline/pool.hpp>

using namespace std::chrono_literals;
using paceline::LogLevel;

int main() {
    std::atomic<std::uint64_t> started{0};
    paceline::LogConfig config;
    config.levels = "info,net=debug"; // and `file`, `max_size`, `files`
    config.on_record = [&started](const paceline::LogRecord &record) {
        if (record.event == "pool.started") {
            CHECK(record.level == LogLevel::Info);
            started = record.field<std::uint64_t>("threads").value();
        }
    };
    const auto log = paceline::Log::create(config).value();
    {
        const auto pool = paceline::Pool::create(paceline::Config().set_threads(3).set_log(log)).value();
        log.flush(1min).value();
        CHECK(started == 3);
        log.set_levels("warn").value(); // at any time
        CHECK(log.level(paceline::LogComponent::Net).value() == LogLevel::Warn);
    }
    log.close(1min).value();
    return 0;
}
