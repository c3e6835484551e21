// The structured log: records to a callable, a file, and to a completion queue; levels; its end.

#include "client.hpp"

#include <fstream>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <sys/wait.h>

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
    config.cq_capacity = 16;
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
    // What has waited is there for a queue of another pool.
    const Pool other = make_pool();
    const auto queue = paceline::CompletionQueue::create(other).value();
    queue.attach(log, 1).value();
    REQUIRE(records.size() == 4);
    const char *expected[] = {"pool.started", "pool.active", "pool.draining", "pool.stopped"};
    for (std::size_t index = 0; index < 4; ++index) {
        const auto entry = next_entry(queue, paceline::EntryKind::Record, 1);
        CHECK(entry.record().event == expected[index]);
        queue.done(entry).value();
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
    config.settings.files = {"/nowhere/at/all.yaml"};
    CHECK(Log::create(config).error() == Code::Invalid);
    CHECK(Log().install().error() == Code::Invalid);
}

// Without a log.

namespace {

/// A timer, a thousand tasks, and a route throw.
void faults() {
    const Pool pool = Pool::create(Config().set_threads(2).set_name("loud")).value();
    Signal ticked;
    auto timer = pool.every(1ms,
                            [&]() -> Flow {
                                ticked.set();
                                throw std::runtime_error("a timer's fault");
                            })
                     .value();
    ticked.wait();
    for (int count = 0; count < 1000; ++count) {
        pool.post([]() { throw std::runtime_error("a task's fault"); }).value();
    }
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/bad",
               [](const paceline::Request &, paceline::Response) {
                   throw std::runtime_error("a route's fault");
               })
        .value();
    http.start(paceline::HttpConfig().add_listener(paceline::Listen{"127.0.0.1:0"})).value();
    Client client(http);
    client.send("GET /bad HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    (void)client.receive();
    (void)pool.shutdown(PATIENCE);
}

/// What the library says on the standard error stream of a child that does this, in lines.
std::vector<std::string> said_by(void (*body)()) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        ::close(ends[0]);
        paceline::quiet(false);
        body();
        _exit(0);
    }
    ::close(ends[1]);
    std::string said;
    char bytes[4096];
    for (ssize_t got; (got = read(ends[0], bytes, sizeof bytes)) > 0;) {
        said.append(bytes, static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_MESSAGE(status == 0, said);
    std::vector<std::string> lines;
    for (std::size_t at = 0, end; (end = said.find('\n', at)) != std::string::npos; at = end + 1) {
        lines.push_back(said.substr(at, end - at));
    }
    return lines;
}

} // namespace

TEST_CASE("what is thrown, and nobody hears of, is one line for each kind") {
    const auto said = said_by(faults);
    const auto about = [&](const char *what) {
        int found = 0;
        for (const std::string &line : said) {
            found += line.find(what) != std::string::npos;
        }
        return found;
    };
    std::string all;
    for (const std::string &line : said) {
        all += line + "\n";
    }
    CHECK_MESSAGE(said.size() == 3, all);
    CHECK_MESSAGE(about("pool.panicked: a timer's fault what=timer thread=") == 1, all);
    CHECK_MESSAGE(about("pool.unhandled: a task's fault thread=") == 1, all);
    CHECK_MESSAGE(about("handler.panicked: a route's fault peer=127.0.0.1:") == 1, all);
    CHECK_MESSAGE(about("quiet()") == 3, all);
}

TEST_CASE("who has a hook, a log, or wants it quiet hears nothing on the standard error stream") {
    CHECK(said_by([] {
              paceline::on_unhandled([](std::exception_ptr) {});
              faults();
          }).empty());
    CHECK(said_by([] {
              paceline::quiet();
              faults();
          }).empty());
    CHECK(said_by([] {
              LogConfig config;
              config.levels = "off";
              const Log log = Log::create(config).value();
              log.install().value();
              faults();
          }).empty());
}
