// Durations of every type, in every function that takes one, and at the ends of what they can say.

#include "client.hpp"

#include <cstdint>
#include <limits>
#include <ratio>
#include <string>
#include <utility>

// Its names are its own: all tests are one translation unit.
namespace of_durations {

using paceline::Duration;
using paceline::forever;
using paceline::nanoseconds;

namespace {

template <class Rep, class Period = std::ratio<1>>
using Of = std::chrono::duration<Rep, Period>;

constexpr double infinite = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

constexpr bool is(Duration time, std::int64_t nanos) { return time.count() == nanos; }
constexpr bool is_least(Duration time) { return time == nanoseconds::min(); }

// What fits is exact.
static_assert(is(Duration(), 0));
static_assert(is(std::chrono::hours(2'562'047), 2'562'047LL * 3600 * 1'000'000'000));
static_assert(is(std::chrono::hours(-2'562'047), -2'562'047LL * 3600 * 1'000'000'000));
static_assert(is(Of<std::int8_t, std::milli>(-128), -128'000'000));
static_assert(is(Of<std::uint8_t, std::micro>(255), 255'000));
static_assert(is(Of<std::uint64_t, std::nano>(INT64_MAX - 1), INT64_MAX - 1));
static_assert(is(nanoseconds(INT64_MAX - 1), INT64_MAX - 1));
static_assert(is(Of<double>(1.5), 1'500'000'000));
static_assert(is(Of<float, std::milli>(-0.5F), -500'000));
static_assert(is(Of<int, std::ratio<1, 2>>(3), 1'500'000'000));
// A part of a nanosecond counts as a whole one.
static_assert(is(Of<int, std::pico>(1), 1) && is(Of<int, std::pico>(1000), 1));
static_assert(is(Of<double, std::nano>(1e-30), 1) && is(Of<double, std::nano>(-1e-30), -1));
static_assert(is(Of<double, std::nano>(-1.5), -2) && is(Of<double, std::nano>(-2), -2));
static_assert(is(Of<int, std::ratio<1, 3>>(1), 333'333'334));
static_assert(is(Of<std::int64_t, std::atto>(INT64_MAX), 9'223'372'037));
// What does not fit is as long as can be said.
static_assert(std::chrono::hours(2'562'048) > std::chrono::hours(0) &&
              Duration(std::chrono::hours(2'562'048)) == forever);
static_assert(Duration(std::chrono::hours::max()) == forever && is_least(std::chrono::hours::min()));
static_assert(Duration(std::chrono::seconds::max()) == forever && is_least(std::chrono::seconds::min()));
static_assert(Duration(nanoseconds::max()) == forever && is_least(nanoseconds::min()));
static_assert(Duration(Of<std::uint64_t, std::nano>(UINT64_MAX)) == forever);
static_assert(Duration(Of<std::int8_t, std::exa>(1)) == forever &&
              is_least(Of<std::int8_t, std::exa>(-1)));
static_assert(Duration(Of<int, std::ratio<INTMAX_MAX>>(1)) == forever);
static_assert(Duration(Of<double>(1e300)) == forever && is_least(Of<double>(-1e300)));
static_assert(Duration(Of<double>(infinite)) == forever && is_least(Of<double>(-infinite)));
static_assert(Duration(Of<long double, std::nano>(9223372036854775807.0L)) == forever);

/// Whether a call does this with times that are longer than 64 bits of nanoseconds.
template <class F>
bool long_times(F does) {
    return does(std::chrono::hours::max()) && does(Of<double>(infinite)) &&
           does(Of<std::uint64_t, std::milli>(UINT64_MAX));
}

/// The same with times that are none.
template <class F>
bool no_times(F does) {
    return does(std::chrono::hours::min()) && does(Of<double>(not_a_number)) && does(-1s);
}

template <class T>
Code code_of(const paceline::Result<T> &result) {
    return result ? Code::Ok : result.error().code();
}

/// Whether a call waits: for a long time until `happens` was called, and for none not at all. `begins` is called
/// before each. What is held is let go by `happens` after each.
template <class Begins, class Wait, class Happens>
bool waits(Begins begins, Wait wait, Happens happens, bool is_held = false) {
    return no_times([&](auto time) {
               begins();
               const Code code = code_of(wait(time));
               if (is_held) {
                   happens();
               }
               return code == Code::TimedOut || code == Code::Empty || code == Code::Full;
           }) &&
           long_times([&](auto time) {
               begins();
               std::thread other([&] {
                   std::this_thread::sleep_for(2ms);
                   happens();
               });
               const Code code = code_of(wait(time));
               other.join();
               return code == Code::Ok;
           });
}

/// Whether a call names the range of times that are longer than the library can be late.
template <class Call>
bool refuses(Call call, const char *range = "100 years") {
    return long_times([&](auto time) {
        const auto refused = call(time);
        return code_of(refused) == Code::Invalid &&
               std::string(refused.error().message()).find(range) != std::string::npos;
    });
}

/// Whether a setting keeps what it is given: `set` gives the field that a time was put to.
template <class Set>
bool keeps(Set set) {
    return long_times([&](auto time) { return set(time) == forever; }) &&
           no_times([&](auto time) { return set(time) < nanoseconds(0); });
}

/// Checks what a function that takes a duration, or a field that is one, does with it. The names are those of
/// all in the header, as a scan of it finds them.
#define TAKES(name, does)                                                                               \
    do {                                                                                                \
        INFO(name);                                                                                     \
        CHECK(does);                                                                                    \
    } while (false)
#define KEEPS(type, field)                                                                              \
    TAKES(#type "::" #field, keeps([](auto time) {                                                      \
              paceline::type settings{};                                                                \
              settings.field = time;                                                                    \
              return Duration(value_of(settings.field));                                                \
          }))
#define SETS(type, set, field)                                                                          \
    TAKES(#type "::" #set,                                                                              \
          keeps([](auto time) { return Duration(value_of(paceline::type{}.set(time).field)); }))

Duration value_of(Duration time) { return time; }
Duration value_of(const std::optional<Duration> &time) { return time.value(); }

/// Waits until it is so.
template <class F>
bool until(F is_so) {
    const auto end = std::chrono::steady_clock::now() + PATIENCE;
    while (!is_so()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

} // namespace

TEST_CASE("settings keep durations of any type") {
    // What is no number is no time.
    CHECK(is_least(Of<double>(not_a_number)));
    KEEPS(Config, watch_period);
    KEEPS(Config, spin);
    KEEPS(Config, max_turn);
    KEEPS(Config, ageing);
    KEEPS(Config, slow);
    SETS(Config, set_watch_period, watch_period);
    SETS(Config, set_spin, spin);
    SETS(Config, set_max_turn, max_turn);
    SETS(Config, set_ageing, ageing);
    TAKES("Config::set_on_slow",
          keeps([](auto time) { return paceline::Config().set_on_slow(time, {}).slow; }));
    KEEPS(Listen, idle_timeout);
    KEEPS(Listen, read_timeout);
    KEEPS(Listen, stall_timeout);
    KEEPS(Listen, linger);
    KEEPS(Listen, keep_alive);
    SETS(Listen, set_idle_timeout, idle_timeout);
    SETS(Listen, set_read_timeout, read_timeout);
    SETS(Listen, set_stall_timeout, stall_timeout);
    SETS(Listen, set_linger, linger);
    SETS(Listen, set_keep_alive, keep_alive);
    KEEPS(ServerConfig, connect_timeout);
    SETS(ServerConfig, set_connect_timeout, connect_timeout);
    KEEPS(HttpConfig, head_timeout);
    KEEPS(HttpConfig, body_timeout);
    KEEPS(HttpConfig, keep_alive_timeout);
    SETS(HttpConfig, set_head_timeout, head_timeout);
    SETS(HttpConfig, set_body_timeout, body_timeout);
    SETS(HttpConfig, set_keep_alive_timeout, keep_alive_timeout);
    KEEPS(Rate, per);
    KEEPS(TaskTypeConfig, timeout);
    KEEPS(TaskTypeConfig, queue_timeout);
    KEEPS(TaskTypeConfig, deadline);
    KEEPS(TaskTypeConfig, soft_timeout);
    KEEPS(TaskTypeConfig, grace);
    KEEPS(TaskTypeConfig, lease);
    KEEPS(TaskOptions, timeout);
    KEEPS(TaskOptions, queue_timeout);
    KEEPS(TaskOptions, deadline);
    KEEPS(TaskOptions, delay);
    KEEPS(TaskOptions, soft_timeout);
    KEEPS(TaskOptions, grace);
    KEEPS(Scaling, high);
    KEEPS(Scaling, low);
    KEEPS(Scaling, period);
    KEEPS(Phases, drain);
    KEEPS(Phases, stop);
    KEEPS(Phases, clean_up);
    KEEPS(Intensity, within);
    KEEPS(Intensity, suspension);
    KEEPS(Intensity, longest_suspension);
    TAKES("Intensity::set_suspension",
          keeps([](auto time) { return paceline::Intensity().set_suspension(time, 1s).suspension; }));
    KEEPS(SubscriptionConfig, block);
    KEEPS(SubscriptionConfig, lease);
    SETS(SubscriptionConfig, set_lease, lease);
    TAKES("SubscriptionConfig::set_overflow", keeps([](auto time) {
              return paceline::SubscriptionConfig().set_overflow(paceline::Overflow::Block, time).block;
          }));
    KEEPS(HistoryConfig, keep_age);
    KEEPS(HistoryConfig, archive_age);
    KEEPS(HistoryConfig, commit_delay);
    KEEPS(HistoryConfig, disk_wait);
    SETS(HistoryConfig, set_keep_age, keep_age);
    KEEPS(HubConfig, notice_interval);
    SETS(HubConfig, set_notice_interval, notice_interval);
    KEEPS(HubConfig, stats_interval);
    SETS(HubConfig, set_stats_interval, stats_interval);
    KEEPS(WebhookConfig, timeout);
    SETS(WebhookConfig, set_timeout, timeout);
    KEEPS(OpsConfig, blocked_after);
    KEEPS(OpsConfig, ready_after);
    KEEPS(OpsConfig, dead_after);
    SETS(OpsConfig, set_blocked_after, blocked_after);
    SETS(OpsConfig, set_ready_after, ready_after);
    SETS(OpsConfig, set_dead_after, dead_after);
    KEEPS(NatsSettings, connect_timeout);
    KEEPS(NatsSettings, ping_interval);
    KEEPS(NatsSettings, reconnect_first);
    KEEPS(NatsSettings, reconnect_cap);
    SETS(NatsSettings, set_connect_timeout, connect_timeout);
    SETS(NatsSettings, set_ping_interval, ping_interval);
    SETS(NatsSettings, set_reconnect_first, reconnect_first);
    SETS(NatsSettings, set_reconnect_cap, reconnect_cap);
    KEEPS(Export, block);
    TAKES("Export::set_overflow", keeps([](auto time) {
              return paceline::Export().set_overflow(paceline::Overflow::Block, time).block;
          }));
    KEEPS(Import, request_timeout);
    KEEPS(Import, ack_wait);
    KEEPS(Import, handle_timeout);
    SETS(Import, set_request_timeout, request_timeout);
    SETS(Import, set_ack_wait, ack_wait);
    SETS(Import, set_handle_timeout, handle_timeout);
    KEEPS(BridgeConfig, window);
    TAKES("BridgeConfig::set_window",
          keeps([](auto time) { return paceline::BridgeConfig().set_window(time, 1).window; }));
    KEEPS(DurableConfig, results_last);
    KEEPS(DurableConfig, ack_wait);
    KEEPS(DurableConfig, window);
    SETS(DurableConfig, set_results_last, results_last);
    SETS(DurableConfig, set_ack_wait, ack_wait);
    SETS(DurableConfig, set_window, window);
    KEEPS(Submission, delay);
    KEEPS(Submission, deadline);
    KEEPS(Submission, timeout);
    SETS(Submission, set_delay, delay);
    SETS(Submission, set_deadline, deadline);
    SETS(Submission, set_timeout, timeout);

    using paceline::Retry;
    const auto is = [](const Retry &retry, auto field, std::uint64_t nanos) {
        return retry.native().*field == nanos;
    };
    const auto first = &pace_retry_t::first_ns, cap = &pace_retry_t::cap_ns,
               within = &pace_retry_t::within_ns;
    TAKES("Retry::fixed",
          long_times([&](auto time) { return is(Retry::fixed(1, time), first, PACE_FOREVER); }));
    TAKES("Retry::linear",
          long_times([&](auto time) { return is(Retry::linear(1, time), first, PACE_FOREVER); }));
    TAKES("Retry::exponential",
          long_times([&](auto time) { return is(Retry::exponential(1, 1s, time), cap, PACE_FOREVER); }));
    TAKES("Retry::random",
          long_times([&](auto time) { return is(Retry::random(1, 1s, time), cap, PACE_FOREVER); }));
    TAKES("Retry::within", long_times([&](auto time) {
              return is(Retry::fixed(1, 1s).within(time), within, PACE_FOREVER);
          }));
    // None is over at once, and is not taken for no limit.
    CHECK(no_times([&](auto time) { return is(Retry::fixed(1, 1s).within(time), within, 1); }));
    TAKES("OverloadPolicy::wait", long_times([](auto time) {
              pace_task_type_config_t raw{};
              paceline::OverloadPolicy::wait(time).fill(raw);
              return raw.full_wait_ns == PACE_FOREVER;
          }));
}

TEST_CASE("pools wait as long as a duration of any type says") {
    const Pool pool = make_pool();
    paceline::Task<void> task;
    std::unique_ptr<Signal> go;
    const auto hold = [&] {
        go = std::make_unique<Signal>();
        task = pool.submit([end = go.get()] { end->wait(); }).value();
    };
    const auto release = [&] {
        go->set();
        (void)task.wait();
    };
    TAKES("Task::wait_timeout", no_times([&](auto time) {
              hold();
              const bool waited = code_of(task.wait_timeout(time)) == Code::TimedOut;
              release();
              return waited;
          }));
    TAKES("Task::wait_timeout", long_times([&](auto time) {
              hold();
              std::thread other([&] {
                  std::this_thread::sleep_for(2ms);
                  go->set();
              });
              const bool waited = code_of(task.wait_timeout(time)) == Code::Ok;
              other.join();
              return waited;
          }));

    // What is to be later is later, and does not come at once.
    std::atomic<int> calls{0};
    const auto call = [&calls] { ++calls; };
    const auto tick = [&calls] {
        ++calls;
        return Flow::Wait;
    };
    const auto round = [&] { return pool.after(1ns, [] {}).value(); };
    const auto quiet = [&] {
        const auto timer = round();
        return until([&] { return !timer.is_pending().value(); }) && calls == 0;
    };
    TAKES("Pool::after", refuses([&](auto time) { return pool.after(time, call); }));
    TAKES("Timer::postpone", long_times([&](auto time) {
              const auto timer = pool.after(1h, call).value();
              return timer.postpone(time).value() && quiet() && timer.cancel().value();
          }));
    TAKES("Pool::every", refuses([&](auto time) { return pool.every(time, tick); }));
    TAKES("Pool::trace", refuses([&](auto time) { return pool.trace(time); }, "1 hour"));
    CHECK(quiet());
    TAKES("Pool::after", no_times([&](auto time) {
              const int before = calls;
              const auto timer = pool.after(time, call).value();
              return until([&] { return calls > before; });
          }));
    TAKES("Timer::postpone", no_times([&](auto time) {
              const auto timer = pool.after(1h, call).value();
              return timer.postpone(time).value() && timer.cancel().value();
          }));
    TAKES("Timer::wait", no_times([&](auto time) {
              const auto timer = pool.after(1h, [] {}).value();
              return code_of(timer.wait(time)) == Code::TimedOut && timer.cancel().value();
          }));
    TAKES("Timer::wait", long_times([&](auto time) {
              return code_of(pool.after(1ms, [] {}).value().wait(time)) == Code::Ok;
          }));
    TAKES("Strand::drain",
          no_times([&](auto time) { return pool.strand().value().drain(time).has_value(); }));
    TAKES("Strand::drain", long_times([&](auto time) {
              const auto strand = pool.strand().value();
              strand.post([] {}).value();
              return strand.drain(time).value();
          }));
    finish(pool);

    const Pool hosted = Pool::create(paceline::Config().set_threads(0).set_max_joined(2)).value();
    TAKES("Pool::join", no_times([&](auto time) { return hosted.join(time).has_value(); }));
    // It ends with the pool, and no earlier.
    std::atomic<bool> joined{false};
    std::thread host([&] {
        (void)hosted.join(std::chrono::hours::max());
        joined = true;
    });
    CHECK(hosted.submit([] { return 1; }).value().wait().value() == 1);
    TAKES("Pool::join", !joined);
    TAKES("Pool::shutdown", hosted.shutdown(std::chrono::hours::max()).value().drained);
    host.join();
}

TEST_CASE("queues and logs wait as long as a duration of any type says") {
    using paceline::Queue;
    const auto queue = Queue<int>::create(1).value();
    const std::size_t room = queue.capacity().value();
    std::array<int, 4> items;
    const auto empty = [&] {
        while (queue.pop()) {
        }
    };
    const auto fill = [&] {
        while (queue.size().value() < room) {
            queue.push(1).value();
        }
    };
    TAKES("Queue::push_timeout", waits(
                                     fill, [&](auto time) { return queue.push_timeout(2, time); },
                                     [&] { queue.pop().value(); }));
    TAKES("Queue::pop_timeout", waits(
                                    empty, [&](auto time) { return queue.pop_timeout(time); },
                                    [&] { queue.push(1).value(); }));
    TAKES("Queue::pop_batch", waits(
                                  empty, [&](auto time) { return queue.pop_batch(items, time); },
                                  [&] { queue.push(1).value(); }));

    using paceline::Log;
    paceline::LogConfig config;
    std::shared_ptr<Signal> go;
    Signal held;
    config.levels = "debug";
    config.cq_capacity = 64;
    config.on_record = [&](const paceline::LogRecord &record) {
        if (record.event == "pool.active") {
            const auto end = go;
            held.set();
            end->wait();
        }
    };
    const Log log = Log::create(config).value();
    const Pool pool = Pool::create(paceline::Config().set_threads(2).set_log(log)).value();
    bool is_one = false;
    // The log's own thread is held.
    const auto hold = [&] {
        go = std::make_shared<Signal>();
        const int before = held.count();
        is_one = !is_one;
        pool.set_active(is_one ? 1 : 2).value();
        held.wait(before + 1);
    };
    const auto release = [&] { go->set(); };
    TAKES("Log::flush", waits(
                            hold, [&](auto time) { return log.flush(time); }, release, true));
    hold();
    TAKES("Log::close", no_times([&](auto time) { return code_of(log.close(time)) == Code::TimedOut; }));
    std::thread other(release);
    TAKES("Log::close", code_of(log.close(std::chrono::hours::max())) == Code::Ok);
    other.join();
}

TEST_CASE("completion queues wait as long as a duration of any type says") {
    using paceline::Completion;
    using paceline::CompletionQueue;
    using paceline::EntryKind;
    const Pool pool = make_pool();
    const auto queue = CompletionQueue::create(pool).value();
    TAKES("CompletionQueue::create", no_times([&](auto time) {
              return code_of(CompletionQueue::create(pool, time)) == Code::Invalid;
          }));
    TAKES("CompletionQueue::create", long_times([&](auto time) {
              const auto leased = CompletionQueue::create(pool, time).value();
              leased.post(1).value();
              return leased.done(next_entry(leased, EntryKind::Task, 1)).has_value();
          }));
    std::array<paceline::Entry, 4> room;
    TAKES("CompletionQueue::wait",
          waits(
              [&] {
                  while (const auto entries = queue.wait(room, 0ns)) {
                      queue.done(*entries).value();
                  }
              },
              [&](auto time) { return queue.wait(room, time); }, [&] { queue.post(1).value(); }));
    TAKES("CompletionQueue::after", refuses([&](auto time) { return queue.after(time, 2); }));
    TAKES("CompletionQueue::every", refuses([&](auto time) { return queue.every(time, 3); }));

    const auto hub = paceline::Hub::create(pool).value();
    const auto key = hub.key("ask").value();
    const auto answers = hub.subscribe("ask",
                                       [&](const paceline::Message &message) {
                                           if (message.text() != "no") {
                                               (void)hub.reply(message, "yes").value();
                                           }
                                       })
                             .value();
    const auto asks = [&](const char *text, auto time) {
        queue.request(key, text, time, 1).value();
        const auto entry = next_entry(queue, EntryKind::Reply, 1);
        const Code code = code_of(entry.reply());
        queue.done(entry).value();
        return code;
    };
    TAKES("CompletionQueue::request",
          no_times([&](auto time) { return asks("no", time) == Code::TimedOut; }));
    TAKES("CompletionQueue::request", long_times([&](auto time) { return asks("", time) == Code::Ok; }));

    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto kind = workers.task_type("waits").value();
    queue.attach(workers, 2).value();
    paceline::TaskOptions options;
    options.retry = paceline::Retry::fixed(1, 0ns);
    const auto fails = [&](paceline::WorkTask<void> &task, auto time) {
        const auto entry = next_entry(queue, EntryKind::Attempt, 4);
        const auto completed = queue.complete(Completion::fail(entry).after(time)).value();
        return task.valid() && completed.task_status() == paceline::TaskStatus::Retrying;
    };
    TAKES("Completion::after", long_times([&](auto time) {
              auto task = kind.submit_tagged(4, options).value();
              return fails(task, time) && task.wait(5ms).error() == Code::TimedOut &&
                     task.cancel().value() && next_entry(queue, EntryKind::TaskEnded, 4).token == 0;
          }));
    TAKES("Completion::after", no_times([&](auto time) {
              auto task = kind.submit_tagged(4, options).value();
              return fails(task, time) &&
                     queue.done(next_entry(queue, EntryKind::Attempt, 4)).has_value();
          }));
}

TEST_CASE("servers wait as long as a duration of any type says") {
    using paceline::Conn;
    using paceline::Listen;
    using paceline::ServerConfig;
    const Pool pool = make_pool();
    const auto local = ServerConfig().add_listener(Listen{"127.0.0.1:0"});

    /// A byte sets a deadline.
    struct Deadline : paceline::ConnHandler {
        explicit Deadline(Signal *o) : over(o) {}
        std::size_t data(Conn &conn, std::string_view bytes) override {
            for (const char how : bytes) {
                if (how == 'l') {
                    conn.set_deadline(std::chrono::hours::max());
                } else if (how == 'f') {
                    conn.set_deadline(Of<double>(infinite));
                } else {
                    conn.set_deadline(std::chrono::hours::min());
                }
            }
            conn.write(bytes).value();
            return bytes.size();
        }
        paceline::TimeoutAction timeout(Conn &, paceline::Timeout) override {
            over->set();
            return paceline::TimeoutAction::Keep;
        }
        Signal *over;
    };
    Signal over;
    auto server = paceline::Server::create_for<Deadline>(pool, local, &over).value();
    auto client = std::make_unique<Client>(server);
    client->send("lf");
    CHECK(client->receive(2) == "lf");
    CHECK(pool.submit([] {}).value().wait().has_value());
    TAKES("Conn::set_deadline", over.count() == 0);
    client->send("n");
    TAKES("Conn::set_deadline", over.wait());

    // A drain waits for a request that was admitted.
    struct Admits : paceline::ConnHandler {
        explicit Admits(std::optional<paceline::Admission> *a) : admission(a) {}
        std::size_t data(Conn &conn, std::string_view bytes) override {
            *admission = conn.admit().value();
            conn.write(bytes).value();
            return bytes.size();
        }
        std::optional<paceline::Admission> *admission;
    };
    const auto drains = [&](auto time, bool is_long) {
        std::optional<paceline::Admission> admission;
        auto drained = paceline::Server::create_for<Admits>(pool, local, &admission).value();
        Client asks(drained);
        asks.send("x");
        CHECK(asks.receive(1) == "x");
        std::thread other([&] {
            std::this_thread::sleep_for(2ms);
            if (is_long) {
                admission->answered();
            }
        });
        const auto report = drained.drain(time).value();
        other.join();
        return report.drained == is_long;
    };
    TAKES("Server::drain", long_times([&](auto time) { return drains(time, true); }));
    TAKES("Server::drain", no_times([&](auto time) { return drains(time, false); }));

    auto http = paceline::Http::create(pool).value();
    http.start(paceline::HttpConfig().add_listener(Listen{"127.0.0.1:0"})).value();
    TAKES("Http::drain", no_times([&](auto time) { return http.drain(time).has_value(); }));
    TAKES("Http::drain", long_times([&](auto time) { return http.drain(time).has_value(); }));

    paceline::UdpConfig at;
    at.bind = "127.0.0.1:0";
    const auto queue = paceline::CompletionQueue::create(pool).value();
    TAKES("UdpRef::drain",
          long_times([&](auto time) { return queue.udp(at, 1).value().drain(time).value(); }));
    TAKES("UdpRef::drain",
          no_times([&](auto time) { return queue.udp(at, 1).value().drain(time).has_value(); }));
}

TEST_CASE("a negative time is none of those that stand for a default, and forever is no limit") {
    const Pool pool = make_pool(1);
    const auto is_refused = [](const auto &made) { return code_of(made) == Code::Invalid; };
    CHECK(is_refused(Pool::create(paceline::Config().set_threads(1).set_ageing(-1s))));
    CHECK(is_refused(paceline::Hub::create(pool, paceline::HubConfig().set_notice_interval(-1s))));
    const auto workers = paceline::WorkerPool::create(pool).value();
    paceline::TaskTypeConfig unlimited;
    unlimited.timeout = unlimited.queue_timeout = unlimited.deadline = forever;
    unlimited.soft_timeout = unlimited.lease = forever;
    const auto kind = workers.task_type("unlimited", unlimited).value();
    CHECK(kind.submit([] {}).value().wait().value().completed());
    paceline::TaskOptions over;
    over.deadline = Of<double>(-1e-12);
    CHECK_FALSE(kind.submit([] {}, over).value().wait().value().completed());
    const auto raw = paceline::Retry::exponential(1, -1s, -1s).native();
    CHECK((raw.first_ns != 0 && raw.cap_ns != 0));
    paceline::SubscriptionConfig subscription;
    subscription.set_intensity({1, -1s});
    CHECK(subscription.native().within_ns != 0);
}

TEST_CASE("worker pools wait as long as a duration of any type says") {
    using paceline::Attempt;
    using paceline::TaskOptions;
    const Pool pool = make_pool();
    std::shared_ptr<Signal> go;
    paceline::WorkersConfig settings;
    settings.metrics = true;
    const auto workers = paceline::WorkerPool::create(pool, settings).value();
    const auto kind = workers.task_type("waits").value();

    std::optional<paceline::WorkTask<void>> task;
    TAKES("WorkTask::wait", waits(
                                [&] {
                                    go = std::make_shared<Signal>();
                                    task = kind.submit([end = go] { end->wait(); }).value();
                                },
                                [&](auto time) { return task->wait(time); }, [&] { go->set(); }, true));
    TAKES("TaskType::every", long_times([&](auto time) {
              const auto refused = kind.every(time, [] {});
              return code_of(refused) == Code::Invalid &&
                     std::string(refused.error().message()).find("period") != std::string::npos;
          }));
    TAKES("Attempt::retry_after", long_times([&](auto time) {
              TaskOptions options;
              options.retry = paceline::Retry::fixed(1, 0ns);
              auto retried = kind.submit(
                                     [time](Attempt &attempt) {
                                         if (attempt.number() == 1) {
                                             attempt.retry_after(time);
                                             throw 1;
                                         }
                                     },
                                     options)
                                 .value();
              return until([&] { return retried.status().value() == paceline::TaskStatus::Retrying; }) &&
                     retried.wait(5ms).error() == Code::TimedOut && retried.cancel().value();
          }));
    // A limit that is none is over before the task begins, and is not taken for no limit.
    CHECK(no_times([&](auto time) {
        TaskOptions options;
        options.deadline = time;
        return kind.submit([] {}, options).value().wait().value().status ==
               paceline::TaskStatus::TimedOut;
    }));
    const auto metric = workers.metric(paceline::Metric::Kind::Times, "taken", "Times.").value();
    TAKES("Metric::record", long_times([&](auto time) { return metric.record(time).has_value(); }));

    TAKES("Signals::shut_down",
          long_times([&](auto time) { return paceline::Signals::shut_down(pool, time).has_value(); }));
    CHECK(workers.shutdown({std::chrono::hours(0), std::chrono::hours::max(), Of<double>(infinite)})
              .has_value());
}

TEST_CASE("a hub waits as long as a duration of any type says") {
    using paceline::Hub;
    using paceline::Message;
    const Pool pool = make_pool();
    const Hub hub = Hub::create(pool).value();
    const auto one =
        paceline::SubscriptionConfig().set_capacity(1).set_overflow(paceline::Overflow::Block);
    const auto full = hub.mailbox("full", one).value();
    const auto full_key = hub.key("full").value();
    Inbox inbox(pool, full);
    TAKES("Key::await_room",
          waits([&] { (void)full_key.publish("x", paceline::Publication().set_no_wait()); },
                [&](auto time) { return full_key.await_room(time); },
                [&] { (void)inbox.take(0ns).value(); }));

    // Who is asked "no" does not answer.
    const auto answers = hub.subscribe("ask",
                                       [&](const Message &message) {
                                           if (message.text() != "no") {
                                               (void)hub.reply(message, "yes").value();
                                           }
                                       })
                             .value();
    const auto key = hub.key("ask").value();
    const auto no = [](Code code) { return code == Code::TimedOut; };
    const auto yes = [](Code code) { return code == Code::Ok; };
    TAKES("Key::request", no_times([&](auto time) { return no(code_of(key.request("no", time))); }));
    TAKES("Key::request", long_times([&](auto time) { return yes(code_of(key.request("", time))); }));
    const auto async = [&](const char *text, auto time) {
        Signal told;
        Code code{};
        key.request_async(text, time,
                          [&](paceline::Result<paceline::OwnedMessage> reply) {
                              code = code_of(reply);
                              told.set();
                          })
            .value();
        told.wait();
        return code;
    };
    TAKES("Key::request_async", no_times([&](auto time) { return no(async("no", time)); }));
    TAKES("Key::request_async", long_times([&](auto time) { return yes(async("", time)); }));
    std::shared_ptr<Signal> go;
    const auto drains = [&](auto time, bool is_long) {
        go = std::make_shared<Signal>();
        Signal begun;
        auto held = hub.subscribe("held",
                                  [&begun, end = go](const Message &) {
                                      begun.set();
                                      end->wait();
                                  })
                        .value();
        (void)hub.publish("held", "1").value();
        (void)hub.publish("held", "2").value();
        begun.wait();
        std::thread other([&] {
            std::this_thread::sleep_for(2ms);
            if (is_long) {
                go->set();
            }
        });
        const auto discarded = held.drain(time).value();
        go->set();
        other.join();
        return (discarded == 0) == is_long;
    };
    TAKES("Subscription::drain", long_times([&](auto time) { return drains(time, true); }));
    TAKES("Subscription::drain", no_times([&](auto time) { return drains(time, false); }));
    const auto suspends = [&](auto time) {
        const auto mailbox = hub.mailbox("suspended").value();
        const auto suspended = mailbox.suspend(time);
        return suspended.has_value() ? mailbox.resume().has_value() : suspended.error() == Code::Invalid;
    };
    TAKES("Mailbox::suspend", long_times(suspends));
    TAKES("Mailbox::suspend", no_times(suspends));
    TAKES("MessageFilter::at_most", long_times([&](auto time) {
              const auto made = paceline::MessageFilter::at_most(1, time);
              return made.has_value() || made.error() == Code::Invalid;
          }));
    TAKES("Hub::watch", long_times([&](auto time) {
              return hub.watch(time, {}, [](const paceline::Crossing &) {}).error() == Code::Invalid;
          }));

    paceline::HubConfig with;
    with.histories.emplace_back();
    const Hub kept = Hub::create(pool, with).value();
    // Points in time are of any type, too: none is later than the last of this one.
    using Hours = std::chrono::time_point<std::chrono::system_clock, std::chrono::hours>;
    const auto past = paceline::MessageFilter::published({}, Hours::max()).value();
    const auto all = hub.mailbox("p", paceline::SubscriptionConfig().set_filter(past)).value();
    (void)hub.publish("p", "x").value();
    CHECK(Inbox(pool, all).take(0ns).has_value());
    const auto late = kept.replay_mailbox(">", paceline::ReplayFrom::time(Hours::max())).value();
    CHECK(Inbox(pool, late).take(0ns).error() == Code::TimedOut);

    const auto webhook = paceline::Webhook::create("http://127.0.0.1:1/none");
    TAKES("Webhook::flush", long_times([&](auto time) {
              return webhook ? webhook->flush(time).has_value() : webhook.error() == Code::Unsupported;
          }));
}

TEST_CASE("bridges wait as long as a duration of any type says") {
    const Pool pool = make_pool();
    const auto hub = paceline::Hub::create(pool).value();
    const auto config = paceline::BridgeConfig("nats://127.0.0.1:1")
                            .add_export(paceline::Export("a").set_at_least_once("A"));
    const auto bridge = paceline::Bridge::open(hub, config);
    if (!bridge) {
        CHECK(bridge.error() == Code::Unsupported);
        return;
    }
    const auto pending = bridge->publish("a", "x").value();
    TAKES("Bridge::wait_connected",
          no_times([&](auto time) { return bridge->wait_connected(time).error() == Code::TimedOut; }));
    TAKES("Bridge::flush",
          no_times([&](auto time) { return bridge->flush(time).error() == Code::TimedOut; }));
    TAKES("PendingStore::wait",
          no_times([&](auto time) { return pending.wait(time).error() == Code::TimedOut; }));
    TAKES("Bridge::close", no_times([&](auto time) { return bridge->close(time).value() == 1; }));
    TAKES("Bridge::close", long_times([&](auto time) { return bridge->close(time).value() == 1; }));
    const auto ended = [](const auto &result) { return result.error() == Code::ShutDown; };
    TAKES("Bridge::wait_connected",
          long_times([&](auto time) { return ended(bridge->wait_connected(time)); }));
    TAKES("Bridge::flush", long_times([&](auto time) { return ended(bridge->flush(time)); }));
    TAKES("PendingStore::wait", long_times([&](auto time) { return ended(pending.wait(time)); }));
}

TEST_CASE("queues of durable tasks wait as long as a duration of any type says") {
    const Pool pool = make_pool();
    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto queue = paceline::DurableQueue::create(workers, "q", "nats://127.0.0.1:1");
    if (!queue) {
        CHECK(queue.error() == Code::Unsupported);
        return;
    }
    queue->task_pulled("t").value();
    queue->open().value();
    const auto no_time = [](const auto &result) { return result.error() == Code::TimedOut; };
    TAKES("DurableQueue::wait_connected",
          no_times([&](auto time) { return no_time(queue->wait_connected(time)); }));
    TAKES("DurableQueue::take", no_times([&](auto time) { return no_time(queue->take(time)); }));
    TAKES("DurableQueue::take_waiting",
          no_times([&](auto time) { return no_time(queue->take_waiting(time)); }));
    const auto task = queue->find("n" + std::string(32, '0'));
    TAKES("DurableTask::wait", no_times([&](auto time) { return no_time(task.wait(time)); }));
    TAKES("DurableQueue::close", no_times([&](auto time) { return queue->close(time).value() == 0; }));
    TAKES("DurableQueue::close", long_times([&](auto time) { return queue->close(time).value() == 0; }));
    const auto ended = [](const auto &result) { return result.error() == Code::ShutDown; };
    TAKES("DurableQueue::wait_connected",
          long_times([&](auto time) { return ended(queue->wait_connected(time)); }));
    TAKES("DurableQueue::take", long_times([&](auto time) { return ended(queue->take(time)); }));
    TAKES("DurableQueue::take_waiting",
          long_times([&](auto time) { return ended(queue->take_waiting(time)); }));
    // It takes what it is given, and finds that there is no job.
    const paceline::DurableJob none(nullptr);
    TAKES("DurableJob::retry_after", long_times([&](auto time) {
              return none.retry_after("later", time).error() == Code::Invalid;
          }));
}

TEST_CASE("a message waits for another attempt as long as a duration of any type says") {
    const Pool pool = make_pool();
    TAKES("Message::retry_after", long_times([&](auto time) {
              const auto hub = paceline::Hub::create(pool).value();
              const auto config = paceline::SubscriptionConfig().set_on_failure(
                  paceline::OnExhausted::DeadLetter, paceline::Retry::fixed(1, 0ms));
              std::atomic<int> runs{0};
              const auto fails = [&](const paceline::Message &message) -> paceline::Result<void> {
                  ++runs;
                  message.retry_after(time);
                  return paceline::Error(Code::Failed);
              };
              const auto subscription = hub.subscribe("a", fails, config).value();
              (void)hub.publish("a", "x").value();
              while (runs == 0) {
                  std::this_thread::yield();
              }
              std::this_thread::sleep_for(2ms);
              return runs == 1 && subscription.stats().value().dead_lettered == 0;
          }));
}

} // namespace of_durations
