// Worker pools: tasks with retries, limits and reports, attempts as data, a graceful stop.

#include "common.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <unistd.h>

using paceline::Attempt;
using paceline::Completion;
using paceline::Lane;
using paceline::Retry;
using paceline::TaskOptions;
using paceline::TaskStatus;
using paceline::TaskTypeConfig;
using paceline::WorkerPool;

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TaskTypeConfig three_attempts() {
    TaskTypeConfig config;
    config.retry = Retry::fixed(2, milliseconds(0));
    return config;
}

void settle(const WorkerPool &workers) {
    const auto report = workers.shutdown({hours(1), hours(1), hours(1)}).value();
    CHECK(report.drained);
    CHECK(workers.audit().value().balances);
}

} // namespace

TEST_CASE("a retry overtakes a late attempt, whose value is not the task's") {
    const Pool pool = make_pool();
    const WorkerPool workers = WorkerPool::create(pool).value();
    TaskTypeConfig settings;
    settings.retry = Retry::fixed(50, milliseconds(0));
    settings.timeout = milliseconds(100);
    settings.overlap_retries = true;
    const auto kind = workers.task_type("overtaken", settings).value();
    std::atomic<bool> open{false};
    auto task = kind.submit([&](Attempt &attempt) {
                        while (attempt.number() == 1 && !open) {
                            std::this_thread::yield();
                        }
                        return std::to_string(attempt.number());
                    })
                    .value();
    while (task.status().value() != TaskStatus::Completed) {
        std::this_thread::yield();
    }
    CHECK(kind.stats().value().completed == 1);
    open = true;
    while (kind.stats().value().running > 0) {
        std::this_thread::yield();
    }
    const auto report = task.wait().value();
    CHECK(report.attempts >= 2);
    CHECK(report.value.value() == std::to_string(report.attempts));
    while (kind.stats().value().discarded < report.attempts - 1) {
        std::this_thread::yield();
    }
    settle(workers);
}

TEST_CASE("a task of a worker pool says what it returns, and what was thrown") {
    const Pool pool = make_pool();
    const WorkerPool workers = WorkerPool::create(pool).value();
    const auto kind = workers.task_type("values", three_attempts()).value();

    auto third = kind.submit([](Attempt &attempt) {
        CHECK_FALSE(attempt.is_cancelled());
        CHECK(attempt.time_left() == paceline::forever);
        attempt.heartbeat();
        if (attempt.number() < 3) {
            throw std::runtime_error("not yet");
        }
        return std::string("at last");
    });
    auto report = third.value().wait().value();
    CHECK(report.completed());
    CHECK(report.attempts == 3);
    CHECK(report.value.value() == "at last");
    CHECK(report.message.empty());
    CHECK(std::string(report.name) == "values");
    CHECK(report.worker.has_value());
    CHECK_FALSE(third.value().valid());
    CHECK(third.value().wait().error() == Code::Stale);

    const auto failed =
        kind.submit([]() -> int { throw std::out_of_range("too far"); }).value().wait().value();
    CHECK(failed.status == TaskStatus::Failed);
    CHECK(failed.message == "std::out_of_range: too far");
    CHECK(failed.attempts == 3);
    CHECK_FALSE(failed.value.has_value());

    const auto permanent = kind.submit([](Attempt &attempt) {
                                   attempt.permanent();
                                   throw 7;
                               })
                               .value()
                               .wait()
                               .value();
    CHECK(permanent.attempts == 1);
    CHECK(permanent.message == "int: what was thrown is no std::exception");

    const auto moved =
        kind.submit([p = std::make_unique<int>(3)]() mutable { return std::move(p); }).value().wait();
    CHECK(*moved.value().value.value() == 3);
    CHECK(kind.submit([] {}).value().wait().value().completed());
    CHECK(kind.stats().value().completed == 3);
    settle(workers);
    finish(pool);
}

TEST_CASE("a task's options win over its task type's") {
    const Pool pool = make_pool(1);
    const WorkerPool workers = WorkerPool::create(pool).value();
    const auto kind = workers.task_type("options", three_attempts()).value();
    TaskOptions once;
    once.retry = Retry::none();
    once.lane = Lane::Low;
    once.key = 7;
    once.delay = milliseconds(1);
    const auto report = kind.submit([] { throw std::runtime_error("no"); }, once).value().wait();
    CHECK(report.value().attempts == 1);

    Signal begun;
    std::atomic<int> ends{0};
    auto asked = kind.submit([&](Attempt &attempt) {
                         begun.set();
                         while (!attempt.is_cancelled()) {
                             std::this_thread::yield();
                         }
                         throw std::runtime_error("gave up");
                     })
                     .value();
    begun.wait();
    CHECK(asked.on_end([&](TaskStatus status) { ends += static_cast<int>(status); }));
    auto waits = kind.submit([] { return 1; }).value();
    CHECK(waits.status().value() == TaskStatus::Pending);
    CHECK(waits.wait(milliseconds(0)).error() == Code::TimedOut);
    CHECK(waits.cancel().value());
    CHECK(waits.wait().value().status == TaskStatus::Cancelled);
    auto other = kind.submit([] { return 1; }).value();
    CHECK(other.drop().value());
    CHECK_FALSE(other.drop().value());
    CHECK(other.wait().value().status == TaskStatus::Rejected);
    CHECK_FALSE(asked.drop().value());
    CHECK_FALSE(asked.cancel().value());
    CHECK(asked.wait().value().message == "std::runtime_error: gave up");
    while (ends == 0) {
        std::this_thread::yield(); // the waiter may be the faster one
    }
    CHECK(ends == static_cast<int>(TaskStatus::Cancelled));

    const auto bad = workers.task_type("options", TaskTypeConfig{});
    CHECK(bad.error() == Code::Invalid);
    settle(workers);
    auto refused = kind.submit([p = std::make_unique<int>(1)] { return *p; });
    CHECK(refused.error() == Code::ShutDown);
    finish(pool);
}

TEST_CASE("callables of worker pools go when they are through") {
    const Pool pool = make_pool();
    const WorkerPool workers = WorkerPool::create(pool).value();
    const auto kind = workers.task_type("gone", three_attempts()).value();
    const auto shared = std::make_shared<int>(0);
    std::vector<std::function<void()>> work(100, [shared] {});
    using Work = std::function<void()>;
    CHECK(kind.post_batch(paceline::span<Work>(work.data(), work.size())).value() == 100);
    work.clear();
    {
        std::atomic<int> runs{0};
        const auto periodic = kind.every(
            milliseconds(1), [shared, &runs] { ++runs; }, paceline::MissedTick::Coalesce);
        while (runs < 3) {
            std::this_thread::yield();
        }
        CHECK(periodic.value().counts().value().runs >= 3);
        CHECK(kind.every(milliseconds(0), [shared] {}).error() == Code::Invalid);
        // The last run ends while `runs` is still there.
        settle(workers);
    }
    while (shared.use_count() > 1) {
        std::this_thread::yield();
    }
    finish(pool);
}

TEST_CASE("a batch gives a task for each callable that was taken") {
    Pool pool = Pool::create(paceline::Config().set_threads(1).set_lane_capacity(4)).value();
    const WorkerPool workers = WorkerPool::create(pool).value();
    const auto kind = workers.task_type("batch", three_attempts()).value();
    const auto shared = std::make_shared<int>(0);
    std::vector<std::function<int()>> squares;
    for (int n = 0; n < 100; ++n) {
        squares.emplace_back([shared, n] { return n * n; });
    }
    auto tasks = kind.submit_batch(squares).value();
    REQUIRE(tasks.size() == 100);
    CHECK_FALSE(squares[99]);
    for (int n = 0; n < 100; n += 2) {
        const auto report = tasks[static_cast<std::size_t>(n)].wait().value();
        CHECK(report.completed());
        CHECK(report.value == n * n);
    }
    // The other half goes unwaited for.
    tasks.clear();

    TaskOptions low;
    low.lane = Lane::Low;
    low.full = paceline::OverloadPolicy::reject();
    std::array<std::function<int()>, 9> many;
    many.fill([shared] { return 7; });
    {
        Hold hold(pool);
        tasks = kind.submit_batch(many, low).value();
        CHECK(tasks.size() == 4);
        CHECK((!many[3] && many[4] && many[8]));
        CHECK(kind.submit_batch(paceline::span(many.data() + 4, many.size() - 4), low).error() ==
              Code::Full);
        CHECK((many[4] && many[8]));
    }
    CHECK(tasks[3].wait().value().value == 7);
    CHECK(kind.submit_batch(paceline::span(many.data(), 0)).value().empty());
    many.fill({});
    tasks.clear();
    settle(workers);
    while (shared.use_count() > 1) {
        std::this_thread::yield();
    }
    finish(pool);
    many.fill([shared] { return 7; });
    CHECK(kind.submit_batch(many).error() == Code::ShutDown);
    CHECK((many[0] && many[8]));
}

TEST_CASE("a pool tells its figures and those of file systems without a worker pool") {
    const Pool pool = Pool::create(paceline::Config().set_threads(1).set_name("figured")).value();
    CHECK(pool.add_disk("/nowhere/at/all").error() == Code::Os);
    CHECK(pool.add_disk("/tmp").has_value());
    const std::string text = pool.metrics(PACE_METRICS_PROMETHEUS).value();
    CHECK(text.find("pool=\"figured\"") != std::string::npos);
    CHECK(text.find("system_disk_free_bytes{path=\"/tmp\"}") != std::string::npos);
    CHECK(pool.metrics(99).error() == Code::Invalid);
    finish(pool);
}

TEST_CASE("a service comes from two files and the environment") {
    const std::string base = "/tmp/paceline-cpp-base-" + std::to_string(::getpid()) + ".yaml";
    const std::string own = "/tmp/paceline-cpp-own-" + std::to_string(::getpid()) + ".json";
    std::ofstream(base) << R"(
pool: {threads: 3}
workers: {max_waiting: 16}
tasks: {lane: high, timeout: 2s, retries: 3, retry_growth: fixed, full: reject}
hub: {max_payload: 8 B, notice_interval: 2s}
history: {pattern: 'a.>', keep_count: 2, keep_age: 1h, lines_files: 7}
server: {address: '127.0.0.1:0', max_connections: 7, idle_timeout: 3s, reuse_port: true}
http: {max_body: 3, head_timeout: 1s}
webhook: {url: 'http://127.0.0.1:9/', capacity: 4, retries: 0}
log: {facade: 3}
)";
    paceline::Settings settings({base, own}, true);
    std::ofstream(own) << R"({"pool": {"threads": 2}, "tasks": {"retries": 1, "retry_delay": "1ms"}})";
    CHECK(paceline::HubConfig::load(settings).error() == Code::Invalid);
    std::ofstream(base, std::ios::app) << "\n";
    {
        std::ifstream in(base);
        std::string text((std::istreambuf_iterator<char>(in)), {});
        text.erase(text.find("log:"));
        std::ofstream(base) << text;
    }
    ::setenv("PACELINE_HUB_ERRORS", "77", 1);
    const auto hub_config = paceline::HubConfig::load(settings).value();
    ::unsetenv("PACELINE_HUB_ERRORS");
    CHECK(hub_config.errors == 77);
    CHECK(hub_config.max_payload == 8);
    CHECK(hub_config.dead_letters == 10000);
    CHECK(hub_config.notice_interval == std::chrono::seconds(2));

    const Pool pool = Pool::from_settings(settings).value();
    CHECK(pool.stats().value().threads.size() == 2 + 4);
    paceline::WorkersConfig workers_config;
    workers_config.settings = settings;
    const WorkerPool workers = WorkerPool::create(pool, workers_config).value();
    const auto tasks = TaskTypeConfig::load(settings).value();
    CHECK(tasks.lane == Lane::High);
    CHECK(tasks.timeout == std::chrono::seconds(2));
    CHECK(tasks.full.has_value());
    const auto kind = workers.task_type("set", tasks).value();
    auto failing = kind.submit([] { throw std::runtime_error("no"); }).value();
    CHECK(failing.wait().value().attempts == 2);

    const auto history = paceline::HistoryConfig::load(settings).value();
    CHECK(history.pattern == "a.>");
    CHECK(history.keep_count == 2);
    CHECK(history.keep_age == hours(1));
    CHECK(history.lines_files == 7);
    CHECK(history.archive.empty());
    {
        const auto hub =
            paceline::Hub::create(pool, paceline::HubConfig(hub_config).add_history(history)).value();
        CHECK(hub.publish("a.b", "123456789").error() == Code::Invalid);
        for (int n = 0; n < 5; ++n) {
            CHECK(hub.publish("a.b", "x").has_value());
        }
        paceline::Query query;
        query.pattern = "a.b";
        CHECK(hub.query(query).value().size() == 2);
    }
    const auto listen = paceline::Listen::load(settings).value();
    CHECK(listen.address == "127.0.0.1:0");
    CHECK(listen.max_connections == 7);
    CHECK(listen.idle_timeout == std::chrono::seconds(3));
    CHECK_FALSE(listen.read_timeout);
    CHECK(listen.reuse_port);
    const auto http = paceline::HttpConfig::load(settings).value();
    CHECK(http.max_body == 3);
    CHECK(http.head_timeout == std::chrono::seconds(1));
    const auto webhook = paceline::WebhookConfig::load(settings).value();
    CHECK(webhook.url == "http://127.0.0.1:9/");
    CHECK(webhook.capacity == 4);
    const auto posts = paceline::Webhook::create(webhook);
    CHECK((posts.has_value() || posts.error() == Code::Unsupported));
    settle(workers);
    finish(pool);
    ::unlink(base.c_str());
    ::unlink(own.c_str());
}

TEST_CASE("attempts that a host makes, and those that are cancelled") {
    const Pool pool = make_pool(1);
    const WorkerPool workers = WorkerPool::create(pool).value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    queue.attach(workers, 1).value();
    const auto kind = workers.task_type("host", three_attempts()).value();
    auto task = kind.submit_tagged(42).value();
    for (std::uint32_t number = 1; number <= 3; ++number) {
        const auto entry = next_entry(queue, paceline::EntryKind::Attempt, 42);
        CHECK(entry.attempt().number == number);
        const auto end = number < 3 ? Completion::fail(entry) : Completion(entry);
        CHECK(queue.complete(end));
        CHECK(queue.complete(end).error() == Code::Stale);
    }
    CHECK(task.wait().value().attempts == 3);
    const std::array<std::uint64_t, 3> tags{1, 2, 3};
    CHECK(kind.post_tagged_batch(tags).value() == 3);
    const auto report = workers.shutdown({milliseconds(0), milliseconds(0), hours(1)}).value();
    CHECK(report.cancelled == 3);
    REQUIRE(report.lines.size() == 3);
    CHECK(report.lines[0].what == PACE_ENDED_CANCELLED);
    CHECK(report.lines[2].name == "host");
    finish(pool);
}

TEST_CASE("a host that is silent for its lease has failed") {
    const Pool pool = make_pool(1);
    const WorkerPool workers = WorkerPool::create(pool).value();
    const auto queue = paceline::CompletionQueue::create(pool).value();
    queue.attach(workers, 1).value();
    TaskTypeConfig settings = three_attempts();
    settings.lease = milliseconds(1);
    const auto kind = workers.task_type("leased", settings).value();
    auto task = kind.submit_tagged(42).value();
    std::vector<paceline::Entry> silent;
    for (std::uint32_t number = 1; number <= 3; ++number) {
        silent.push_back(next_entry(queue, paceline::EntryKind::Attempt, 42));
        CHECK(silent.back().attempt().number == number);
    }
    const auto end = next_entry(queue, paceline::EntryKind::TaskEnded, 42);
    CHECK(end.attempt().status == TaskStatus::Failed);
    CHECK(queue.renew(silent[0]).error() == Code::Stale);
    CHECK(task.wait().value().attempts == 3);
    settle(workers);
    finish(pool);
}

TEST_CASE("a worker pool says how it is") {
    auto config = paceline::Config();
    config.set_threads(2).set_pin("none").set_reserve(Lane::Critical, 1).set_ageing(paceline::forever);
    const Pool pool = Pool::create(config).value();
    const WorkerPool workers =
        WorkerPool::create(pool, [](pace_workers_config_t &c) { c.metrics = true; }).value();
    std::string order;
    CHECK(workers.on_shutdown("first", [&] { order += '1'; }));
    CHECK(workers.on_shutdown("last", [&] { order += '2'; }));
    const auto kind = workers.task_type("figured").value();
    const auto report = kind.submit([] {}).value().wait().value();
    CHECK(report.completed());
    const auto rows = workers.worker_stats().value();
    REQUIRE(report.worker.has_value());
    CHECK(rows.size() == pool.stats().value().threads.size());
    CHECK(rows[*report.worker].attempts == 1);
    CHECK(rows[*report.worker].completed == 1);
    CHECK(rows[*report.worker].failed == 0);
    CHECK(static_cast<paceline::Role>(rows.back().role) == paceline::Role::Away);
    const auto health = workers.health().value();
    CHECK(health.health == PACE_HEALTH_READY);
    CHECK(health.reserved_threads == 1);
    CHECK(pool.set_active(1));
    CHECK(pool.set_active(2));
    CHECK(workers.metrics(PACE_METRICS_PROMETHEUS).value().find("figured") != std::string::npos);
    CHECK(workers.metrics(PACE_METRICS_JSON).value().front() == '{');
    const auto plain = paceline::MetricsFormat::negotiate("");
    CHECK(plain.media_type == std::string("text/plain; version=0.0.4; charset=utf-8"));
    CHECK(workers.metrics(plain.format).value().find("# EOF") == std::string::npos);
    const auto exact = paceline::MetricsFormat::negotiate("application/openmetrics-text, */*;q=0.1");
    CHECK(exact.media_type == std::string("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    CHECK(workers.metrics(exact.format).value().find("\n# EOF\n") != std::string::npos);
    using Kind = paceline::Metric::Kind;
    const auto parcels =
        workers.metric(Kind::Counter, "parcels", "All of them", {{"port", "north"}}).value();
    const auto level = workers.metric(Kind::Gauge, "level", "Of the water").value();
    const auto ways = workers.metric(Kind::Times, "ways", "How long they take").value();
    CHECK(parcels.count());
    CHECK(parcels.count(41));
    CHECK(level.set(2.5));
    CHECK(level.change(-1));
    CHECK(ways.record(milliseconds(2)));
    CHECK(level.count().error() == Code::Invalid);
    CHECK(workers.metric(Kind::Gauge, "parcels", "Another").error() == Code::Invalid);
    const auto text = workers.metrics(PACE_METRICS_PROMETHEUS).value();
    CHECK(text.find("parcels_total{port=\"north\"} 42") != std::string::npos);
    CHECK(text.find("level 1.5") != std::string::npos);
    CHECK(text.find("ways") != std::string::npos);
    settle(workers);
    CHECK(order == "21");
    finish(pool);
    CHECK(Pool::from_settings(paceline::Settings({"/nowhere/at/all.json"})).error() == Code::Invalid);
}

namespace {

/// Counts what runs around, and refuses what it is told to.
struct Around : paceline::Middleware {
    std::atomic<int> befores{0}, afters{0}, errors{0};
    std::atomic<int> refusals{0};

    bool before(Attempt &attempt) override {
        CHECK(std::string(attempt.name()) == "extended");
        ++befores;
        if (refusals == 1) {
            attempt.permanent();
            throw std::runtime_error("not today");
        }
        return refusals == 0;
    }
    void after(const Attempt &attempt) override {
        ++afters;
        if (attempt.number() == 77) {
            throw 1;
        }
    }
    void on_error(const Attempt &, const char *message) override {
        ++errors;
        throw std::runtime_error(message);
    }
};

} // namespace

TEST_CASE("a worker pool is extended by middleware and has a log of its own") {
    const Pool pool = make_pool();
    std::atomic<int> told{0};
    paceline::LogConfig log_config;
    log_config.levels = "off,task=debug";
    log_config.on_record = [&](const paceline::LogRecord &record) {
        // Others tell of the worker pool.
        told += record.event.rfind("task.", 0) == 0 ? 1 : 0;
        if (record.event == "task.failed") {
            throw std::runtime_error(record.message);
        }
    };
    const auto log = paceline::Log::create(std::move(log_config)).value();
    const auto around = std::make_shared<Around>();
    {
        paceline::WorkersConfig config;
        config.name = "extended";
        config.metrics = true;
        config.seed = 7;
        config.full = paceline::OverloadPolicy::wait();
        config.max_droppable = 8;
        config.scaling = paceline::Scaling{};
        config.middleware = {around, std::make_shared<paceline::Middleware>()};
        config.log = log;
        const WorkerPool workers = WorkerPool::create(pool, config).value();
        TaskTypeConfig settings = three_attempts();
        settings.max_running = 1;
        settings.soft_timeout = hours(1);
        settings.grace = hours(1);
        settings.full = paceline::OverloadPolicy::run_here();
        settings.overlap_retries = true;
        const auto kind = workers.task_type("extended", settings).value();
        CHECK(kind.stats().value().discarded == 0);
        const auto failing = [](Attempt &attempt) {
            if (attempt.number() < 3) {
                throw std::runtime_error("not yet");
            }
        };
        CHECK(kind.submit(failing).value().wait().value().completed());
        CHECK(around->befores == 3);
        CHECK(around->afters == 3);
        CHECK(around->errors == 2);
        around->refusals = 1;
        auto refused = kind.submit([] {}).value().wait().value();
        CHECK(refused.message == "std::runtime_error: not today");
        CHECK(refused.attempts == 1);
        around->refusals = 2;
        refused = kind.submit([] {}).value().wait().value();
        CHECK(refused.message == "it ended without reporting success");
        CHECK(refused.attempts == 3);
        around->refusals = 0;

        std::atomic<int> posted{0};
        CHECK(kind.post([&] { ++posted; }));
        CHECK(kind.post([&posted, p = std::make_unique<int>(2)] { posted += *p; }));
        TaskOptions options;
        options.full = paceline::OverloadPolicy::reject();
        options.soft_timeout = milliseconds(1);
        options.grace = milliseconds(1);
        options.retry = Retry::none();
        auto asked = kind.submit(
                             [](Attempt &attempt) {
                                 while (!attempt.is_cancelled()) {
                                     std::this_thread::yield();
                                 }
                             },
                             options)
                         .value();
        const auto queue = paceline::CompletionQueue::create(pool).value();
        queue.attach(asked, 7).value();
        CHECK(next_entry(queue, paceline::EntryKind::TaskEnded, 7).attempt().status ==
              TaskStatus::Completed);
        CHECK(asked.wait().value().completed());
        while (posted < 3) {
            std::this_thread::yield();
        }
        settle(workers);
        // Ends are told by the threads that bring them about.
        while (told < 2 + 1 + 1 + 2 + 1 + 1) {
            std::this_thread::yield();
        }
        CHECK(log.flush(hours(1)));
        CHECK(told == 8);
        paceline::WorkersConfig wrong;
        wrong.settings.files = {"/nowhere/at/all.yaml"};
        CHECK(WorkerPool::create(pool, wrong).error() == Code::Invalid);
        wrong.settings = {};
        wrong.middleware = {around};
        wrong.max_waiting = 0;
        CHECK(WorkerPool::create(pool, wrong).error() == Code::Invalid);
    }
    finish(pool);
}

TEST_CASE("signals of the process are told on the pool") {
    const Pool pool = make_pool();
    std::atomic<int> seen{0};
    const std::array<std::int32_t, 1> user{SIGUSR2}, never{SIGKILL};
    const auto note = [&](int signal) {
        seen = signal;
        throw signal;
    };
    CHECK(paceline::Signals::create(pool, never, note).error() == Code::Invalid);
    const auto signals = paceline::Signals::create(pool, user, note).value();
    const auto ends = paceline::Signals::shut_down(pool, hours(1)).value();
    CHECK(::kill(::getpid(), SIGUSR2) == 0);
    CHECK(signals.wait().value() == SIGUSR2);
    CHECK(seen == SIGUSR2);
    CHECK(::kill(::getpid(), SIGINT) == 0);
    CHECK(ends.wait().value() == SIGINT);
    CHECK(pool.post([] {}).error() == Code::ShutDown);
    finish(pool);
    CHECK(signals.wait().error() == Code::ShutDown);
}
