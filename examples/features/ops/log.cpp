// A structured log: to a function, or to a file of JSON lines that is rotated.
//
// feature: ops/log
// prints:
//   info pool.started: 3 threads
//   servers are logged from debug on
//   servers are logged from warn on

#include <chrono>
#include <cstdint>
#include <iostream>
#include <paceline/pool.hpp>

using namespace std::chrono_literals;

static void print_level(const paceline::Log &log) {
    const auto level = log.level(paceline::LogComponent::Net).value();
    std::cout << "servers are logged from " << paceline::name_of(level) << " on\n";
}

int main() {
    paceline::LogConfig config;
    config.levels = "info,net=debug"; // and `file`, `max_size`, `files`
    config.on_record = [](const paceline::LogRecord &record) {
        if (record.event == "pool.started") {
            std::cout << paceline::name_of(record.level) << ' ' << record.event << ": "
                      << record.field<std::uint64_t>("threads").value() << " threads\n";
        }
    };
    const auto log = paceline::Log::create(config).value();
    {
        const auto pool = paceline::Pool::create(paceline::Config().set_threads(3).set_log(log)).value();
        log.flush(1min).value(); // what was logged has been printed
        print_level(log);
        log.set_levels("warn").value(); // at any time
        print_level(log);
    }
    log.close(1min).value();
    return 0;
}
