// The structured log: records to a callable, a file, and pulled; levels; its end.

#include "common.hpp"

#include <fstream>
#include <iterator>
#include <mutex>
#include <stdexcept>

using paceline::Config;
using paceline::Log;
using paceline::LogComponent;
using paceline::LogConfig;
using paceline::LogLevel;
using paceline::LogRecord;

namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

Pool logged(const Log &log) {
    return Pool::create(Config().set_threads(2).set_name("logged").set_log(log)).value();
}

} // namespace

TEST_CASE("a log tells what happens in a pool") {
    std::mutex mutex;
    std::vector<LogRecord> records;
    LogConfig config;
    config.levels = "warn,pool=debug";
    config.pull_capacity = 16;
    config.capacity = 64;
    config.on_record = [&](const LogRecord &record) {
        const std::lock_guard<std::mutex> lock(mutex);
        records.push_back(record);
        if (record.event == "pool.active") {
            throw std::runtime_error("on purpose");
        }
    };
    const Log log = Log::create(config).value();
    CHECK(log.level(LogComponent::Pool).value() == LogLevel::Debug);
    CHECK(log.level(LogComponent::Net).value() == LogLevel::Warn);
    CHECK(log.pull(4, nanoseconds(0)).error() == Code::Empty);
    CHECK(log.pull(4, nanoseconds(1)).error() == Code::TimedOut);
    {
        const Pool pool = logged(log);
        pool.set_active(1).value();
        log.set_levels("off,pool=info").value();
        CHECK(log.set_levels("loud").error() == Code::Invalid);
        pool.set_active(2).value();
        log.flush(hours(1)).value();
        {
            const std::lock_guard<std::mutex> lock(mutex);
            CHECK(records.size() == 2);
        }
        finish(pool);
    }
    log.close(hours(1)).value();
    const auto stats = log.stats().value();
    CHECK(stats.told == 4);
    CHECK(stats.dropped == 0);
    const auto pulled = log.pull(16, hours(1)).value();
    CHECK(log.pull(16, hours(1)).error() == Code::ShutDown);
    REQUIRE(pulled.size() == 4);
    REQUIRE(records.size() == 4);
    const char *expected[] = {"pool.started", "pool.active", "pool.draining", "pool.stopped"};
    for (std::size_t index = 0; index < 4; ++index) {
        CHECK(pulled[index].event == expected[index]);
        CHECK(records[index].event == expected[index]);
        CHECK(records[index].pool == "logged");
        CHECK(records[index].component == LogComponent::Pool);
        CHECK(records[index].time.time_since_epoch() > hours(24 * 365 * 50));
        CHECK_FALSE(records[index].message.empty());
    }
    CHECK(records[0].level == LogLevel::Info);
    CHECK(records[1].level == LogLevel::Debug);
    CHECK(records[0].field<std::uint64_t>("threads") == 2);
    CHECK(records[1].field<std::uint64_t>("before") == 2);
    CHECK_FALSE(records[0].field<std::string>("threads").has_value());
    CHECK_FALSE(records[0].field<std::uint64_t>("nothing").has_value());
    CHECK(std::string(paceline::name_of(LogLevel::Warn)) == "warn");
    CHECK(std::string(paceline::name_of(LogComponent::History)) == "history");
}

TEST_CASE("a log's file is written when it is flushed") {
    const std::string path = "/tmp/paceline-cpp-log-" + std::to_string(::getpid());
    LogConfig config;
    config.file = path;
    config.levels = "off,pool=info";
    std::atomic<bool> held{true};
    config.on_record = [&](const LogRecord &) {
        while (held) {
            std::this_thread::yield();
        }
    };
    const Log log = Log::create(config).value();
    const auto written = [&] {
        std::ifstream file(path);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    {
        const Pool pool = logged(log);
        CHECK(log.flush(nanoseconds(1000)).error() == Code::TimedOut);
        held = false;
        log.flush(hours(1)).value();
        CHECK(written().find("\"event\":\"pool.started\"") != std::string::npos);
        finish(pool);
    }
    log.close(hours(1)).value();
    CHECK(written().find("\"event\":\"pool.stopped\"") != std::string::npos);
    ::unlink(path.c_str());
}

TEST_CASE("wrong settings of a log are named") {
    LogConfig config;
    config.levels = "pol=info";
    CHECK(Log::create(config).error() == Code::Invalid);
    config.levels.clear();
    config.files = 0;
    CHECK(Log::create(config).error() == Code::Invalid);
    config.files = 1;
    config.max_size = 1;
    CHECK(Log::create(config).error() == Code::Invalid);
    config = LogConfig();
    config.settings = "/nowhere/at/all.yaml";
    CHECK(Log::create(config).error() == Code::Invalid);
    CHECK(Log().install().error() == Code::Invalid);
}
