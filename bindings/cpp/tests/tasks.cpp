// Tasks, lanes, strands: what runs, what is refused, and where callables are kept.

#include "common.hpp"

#include <fcntl.h>
#include <functional>
#include <numeric>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>

using paceline::Lane;

TEST_CASE("a task says what it returns") {
    const Pool pool = make_pool();
    CHECK(pool.submit([] { return 6 * 7; }).value().wait().value() == 42);
    CHECK(pool.try_submit([] { return std::string("text"); }).value().wait().value() == "text");
    CHECK(pool.submit([] {}).value().wait().has_value());
    auto moved = pool.submit([p = std::make_unique<int>(3)]() mutable { return std::move(p); });
    CHECK(*moved.value().wait().value() == 3);
    CHECK(pool.lane(Lane::Critical).submit([] { return 1; }).value().wait().value() == 1);
    finish(pool);
}

TEST_CASE("what a task throws reaches whoever waits") {
    const Pool pool = make_pool();
    auto task = pool.submit([]() -> int { throw std::out_of_range("too far"); }).value();
    const auto result = task.wait();
    REQUIRE_FALSE(result);
    CHECK(result.error() == Code::Failed);
    CHECK(result.error().thrown());
    CHECK_THROWS_WITH_AS(result.value(), "too far", std::out_of_range);
    finish(pool);
    CHECK(pool.audit().value().failed == 1);
}

TEST_CASE("callables of every size are carried") {
    const Pool pool = make_pool();
    std::atomic<int> alive{0};
    std::atomic<int> sum{0};
    Signal ran;
    const auto post_all = [&](auto post) {
        post([&ran] { ran.set(); });                        // a word
        post([&ran, &sum, n = 2] { sum += n, ran.set(); }); // 24 bytes
        post([&ran, &sum, n = std::array<int, 99>{{1}}] {   // boxed
            sum += n[0];
            ran.set();
        });
        post([&ran, c = Counted(alive)] { ran.set(); }); // must be destroyed
        struct alignas(64) Wide {
            int n = 1;
        };
        post([&ran, &sum, w = Wide()] { // over-aligned
            sum += reinterpret_cast<std::uintptr_t>(&w) % 64 == 0 ? w.n : 1000;
            ran.set();
        });
    };
    post_all([&](auto &&f) { pool.post(std::forward<decltype(f)>(f)).value(); });
    post_all([&](auto &&f) { pool.try_post(std::forward<decltype(f)>(f)).value(); });
    const auto strand = pool.strand().value();
    post_all([&](auto &&f) { strand.post(std::forward<decltype(f)>(f)).value(); });
    post_all([&](auto &&f) { strand.try_post(std::forward<decltype(f)>(f)).value(); });
    post_all([&](auto &&f) { (void)pool.after(1ns, std::forward<decltype(f)>(f)).value(); });
    CHECK(ran.wait(25));
    CHECK(sum.load() == 5 * (2 + 1 + 1));
    finish(pool);
    CHECK(alive.load() == 0);
}

namespace {
int plain_calls = 0;
void plain_function() { ++plain_calls; }
} // namespace

TEST_CASE("functions and lvalues are callables too") {
    const Pool pool = make_pool(1);
    std::function<void()> kept = [] { ++plain_calls; };
    pool.post(plain_function).value();
    pool.post(kept).value();
    pool.post(std::as_const(kept)).value();
    CHECK(kept);
    finish(pool);
    CHECK(plain_calls == 3);
}

TEST_CASE("a callable that is refused is given back") {
    std::atomic<int> alive{0};
    const Pool pool = make_pool(1);
    const auto strand = pool.strand().value();
    finish(pool);

    auto task = [c = Counted(alive)] { CHECK(c.is_whole()); };
    CHECK(pool.post(std::move(task)).error() == Code::ShutDown);
    CHECK(pool.try_post(std::move(task)).error() == Code::ShutDown);
    CHECK(pool.submit(std::move(task)).error() == Code::ShutDown);
    CHECK(pool.try_submit(std::move(task)).error() == Code::ShutDown);
    CHECK(pool.after(1s, std::move(task)).error() == Code::ShutDown);
    CHECK_FALSE(strand.post(std::move(task)));
    CHECK_FALSE(strand.submit(std::move(task)));
    task();
    CHECK(alive.load() == 1);

    std::function<void()> assigned = [] { ++plain_calls; };
    CHECK_FALSE(pool.post(std::move(assigned)));
    CHECK(static_cast<bool>(assigned));
}

TEST_CASE("a full lane says so, and keeps nothing") {
    const Pool pool =
        Pool::create(paceline::Config().set_threads(1).set_pin("none").set_lane_capacity(2)).value();
    std::atomic<int> alive{0};
    {
        Hold hold(pool);
        for (int accepted = 0;; ++accepted) {
            auto task = [c = Counted(alive)] {};
            const auto result = pool.try_post(std::move(task));
            if (!result) {
                CHECK(result.error() == Code::Full);
                const std::string_view said = result.error().message();
                CHECK(said.find("the normal lane of the pool is full (") == 0);
                CHECK(said.find("a larger lane_capacity") != said.npos);
                CHECK(accepted >= 2);
                CHECK(alive.load() == accepted + 1);
                break;
            }
            REQUIRE(accepted < 100);
        }
    }
    finish(pool);
    CHECK(alive.load() == 0);
}

TEST_CASE("batches arrive whole, and are given back where they are not") {
    const Pool pool = make_pool(1);
    std::atomic<int> alive{0};
    std::atomic<int> ran{0};
    std::vector<std::function<void()>> many;
    for (int n = 0; n < 1000; ++n) {
        auto counted = std::make_shared<Counted>(alive);
        many.emplace_back([counted, &ran] { ++ran; });
    }
    CHECK(pool.post_batch(many).value() == many.size());
    // They were moved from.
    CHECK(pool.lane(Lane::Low).post_batch(many).error() == Code::Invalid);
    std::array<void (*)(), 3> functions{plain_function, plain_function, plain_function};
    CHECK(pool.post_batch(functions).value() == 3);
    finish(pool);
    CHECK(ran.load() == 1000);
    CHECK(alive.load() == 0);

    many.assign(2, [] { ++plain_calls; });
    CHECK(pool.post_batch(many).error() == Code::ShutDown);
    CHECK((many[0] && many[1]));
    many.clear();
    CHECK(pool.post_batch(many).value() == 0);
}

TEST_CASE("a batch of a strand runs in order, and is given back where it is refused") {
    Pool pool = make_pool(2);
    auto strand = pool.strand().value();
    std::atomic<int> alive{0};
    std::vector<int> order;
    std::vector<std::function<void()>> many;
    for (int n = 0; n < 1000; ++n) {
        auto counted = std::make_shared<Counted>(alive);
        many.emplace_back([counted, &order, n] { order.push_back(n); });
    }
    CHECK(strand.post_batch(many).value() == many.size());
    CHECK(strand.post_batch(paceline::span(many.data(), 0)).value() == 0);
    finish(pool);
    CHECK(order.size() == 1000);
    CHECK(std::is_sorted(order.begin(), order.end()));
    CHECK(alive.load() == 0);

    std::array<std::function<void()>, 2> refused{[] {}, [] {}};
    CHECK(strand.post_batch(refused).error() == Code::ShutDown);
    CHECK((refused[0] && refused[1]));
    CHECK(strand.close().has_value());
    CHECK(strand.post_batch(refused).error() == Code::Stale);
    CHECK((refused[0] && refused[1]));
}

TEST_CASE("a full strand takes a part of a batch inside a handler") {
    Pool pool = Pool::create(paceline::Config().set_threads(1).set_strand_capacity(2)).value();
    const auto strand = pool.strand().value();
    std::atomic<int> ran{0};
    std::vector<std::function<void()>> many(5, [&ran] { ++ran; });
    auto accepted = pool.submit([&] { return strand.post_batch(many).value(); }).value();
    CHECK(accepted.wait().value() == 2);
    finish(pool);
    CHECK(ran.load() == 2);
    CHECK((!many[1] && many[2] && many[4]));
}

TEST_CASE("a wait may be tried, and a task cancelled") {
    const Pool pool = make_pool(1);
    std::atomic<int> alive{0};
    paceline::Task<int> task;
    CHECK_FALSE(task.valid());
    CHECK(task.wait().error() == Code::Stale);
    {
        Hold hold(pool);
        task = pool.submit([c = Counted(alive)] { return 1; }).value();
        CHECK(task.wait_timeout(1ms).error() == Code::TimedOut);
        CHECK(task.wait_timeout(-1ms).error() == Code::TimedOut);
        CHECK_FALSE(task.is_done().value());
        CHECK(task.cancel().value());
    }
    CHECK(task.wait().error() == Code::Cancelled);
    CHECK_FALSE(task.valid());
    CHECK(task.wait().error() == Code::Stale);
    finish(pool);
    CHECK(alive.load() == 0);
}

TEST_CASE("a task that is let go runs all the same") {
    const Pool pool = make_pool(1);
    Signal ran;
    (void)pool.submit([&] { ran.set(); }).value();
    auto task = pool.submit([&] { ran.set(); }).value();
    task.detach();
    task.detach();
    auto other = pool.submit([&] { ran.set(); }).value();
    other = pool.submit([&] { ran.set(); }).value();
    CHECK(ran.wait(4));
    CHECK(other.wait().has_value());
    finish(pool);
}

TEST_CASE("tasks outlive their pool, and know it") {
    std::atomic<int> alive{0};
    auto pool = std::make_optional(make_pool(1));
    auto done = pool->submit([] { return 5; }).value();
    while (!done.is_done().value()) {
        std::this_thread::yield();
    }
    auto strand = pool->strand().value();
    auto timer = pool->after(1h, [c = Counted(alive)] {}).value();
    auto handle = pool->every(1h, [c = Counted(alive)] { return Flow::Wait; }).value();
    pool.reset();
    CHECK(alive.load() == 0);
    CHECK(done.wait().value() == 5);
    CHECK_FALSE(strand.post([] {}));
    CHECK_FALSE(timer.cancel().value_or(false));
    CHECK_FALSE(handle.is_open().value_or(false));
}

TEST_CASE("a strand runs one at a time, in order") {
    const Pool pool = make_pool(2);
    std::vector<int> order;
    {
        const auto strand = pool.strand().value();
        for (int n = 0; n < 500; ++n) {
            strand.post([&order, n] { order.push_back(n); }).value();
        }
        CHECK(strand.submit([&] { return order.size(); }).value().wait().value() == 500);
        CHECK(strand.try_submit([] {}).value().wait().has_value());
    }
    std::vector<int> expected(500);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(order == expected);

    auto strand = pool.strand().value();
    CHECK(strand.close().has_value());
    CHECK(strand.close().error() == Code::Stale);
    CHECK(strand.post([] {}).error() == Code::Stale);
    finish(pool);
}

TEST_CASE("promotion may be asked for anywhere") {
    const Pool pool = make_pool(2);
    CHECK(paceline::promote_new_leader().has_value());
    auto inside = pool.submit([] { return paceline::promote_new_leader().has_value(); }).value();
    CHECK(inside.wait().value());
    finish(pool);
}

TEST_CASE("a program that a task starts may have what the host has") {
    // Not by a shell, as some of these let all signals through.
    const auto blocked = [] {
        std::array<char *, 4> arguments{const_cast<char *>("grep"), const_cast<char *>("SigBlk"),
                                        const_cast<char *>("/proc/self/status"), nullptr};
        std::array<int, 2> ends{};
        CHECK(pipe2(ends.data(), O_CLOEXEC) == 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        pid_t child = 0;
        CHECK(posix_spawnp(&child, "grep", &actions, nullptr, arguments.data(), environ) == 0);
        posix_spawn_file_actions_destroy(&actions);
        CHECK(waitpid(child, nullptr, 0) == child);
        std::array<char, 64> line{};
        CHECK(read(ends[0], line.data(), line.size()) > 0);
        close(ends[0]);
        close(ends[1]);
        return std::stoull(std::string(line.data(), line.size()).substr(7), nullptr, 16);
    };
    const auto host = blocked();
    const auto pool = Pool::create().value();
    const auto own = pool.submit([&blocked] { return blocked(); }).value().wait().value();
    const auto unconfined = pool.submit([&blocked] {
                                    const paceline::Unconfined meanwhile;
                                    return blocked();
                                })
                                .value()
                                .wait()
                                .value();
    CHECK(own != host);
    // What other tests have watched for is let through.
    CHECK((unconfined & ~host) == 0);
}

TEST_CASE("a forked child is told so") {
    const Pool pool = make_pool(1);
    auto task = pool.submit([] { return 1; }).value();
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const bool told = pool.post([] {}).error() == Code::Forked &&
                          pool.submit([] { return 1; }).error() == Code::Forked &&
                          task.wait().error() == Code::Forked;
        _exit(told ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(task.wait().value() == 1);
    finish(pool);
}

TEST_CASE("a pool that was moved from refuses, and does not crash") {
    Pool pool = make_pool(1);
    const Pool other = std::move(pool);
    CHECK(pool.post([] {}).error() == Code::Invalid);
    CHECK(pool.submit([] { return 1; }).error() == Code::Invalid);
    CHECK(pool.try_post([] {}).error() == Code::Invalid);
    CHECK(pool.try_submit([] { return 1; }).error() == Code::Invalid);
    std::vector<void (*)()> batch{[] {}};
    CHECK(pool.post_batch(batch).error() == Code::Invalid);
    CHECK(pool.lane(paceline::Lane::High).post([] {}).error() == Code::Invalid);
    CHECK(pool.strand().error() == Code::Invalid);
    CHECK(pool.register_fd(0, [](int, Ready) { return Flow::Done; }).error() == Code::Invalid);
    CHECK(pool.every(1ms, [] { return Flow::Done; }).error() == Code::Invalid);
    CHECK(pool.after(1ms, [] {}).error() == Code::Invalid);
    CHECK(pool.join(0ns).error() == Code::Invalid);
    CHECK(pool.pollable().error() == Code::Invalid);
    CHECK(paceline::CompletionQueue::create(pool).error() == Code::Invalid);
    CHECK(pool.stats().error() == Code::Invalid);
    CHECK(pool.audit().error() == Code::Invalid);
    CHECK(pool.set_active(1).error() == Code::Invalid);
    CHECK(pool.shutdown(0ns).error() == Code::Invalid);
    CHECK(pool.stop_now().error() == Code::Invalid);
    CHECK(pool.native() == nullptr);
    auto http = paceline::Http::create(other).value();
    auto server = std::move(http);
    const auto handler = [](const paceline::Request &, paceline::Response) {};
    CHECK(http.route("GET", "/", handler).error() == Code::Invalid);
    CHECK(http.fallback(handler).error() == Code::Invalid);
    CHECK(http.start(paceline::HttpConfig()).error() == Code::Stale);
    CHECK(http.address().error() == Code::Invalid);
    CHECK(http.wait().error() == Code::Invalid);
    CHECK(http.drain(0ns).error() == Code::Invalid);
    CHECK(http.conn(1).close().error() == Code::Stale);
    CHECK(http.fail(1).error() == Code::Invalid);
    CHECK(http.stats().error() == Code::Invalid);
    finish(other);
}

TEST_CASE("a pool that goes inside its own handler ends all the same") {
    Signal gone;
    auto pool = std::make_shared<Pool>(make_pool(2));
    auto &shared = *pool;
    shared
        .post([pool = std::move(pool), &gone]() mutable {
            pool.reset();
            gone.set();
        })
        .value();
    CHECK(gone.wait());
}

TEST_CASE("the books tell what has happened") {
    const Pool pool = make_pool(2);
    for (int n = 0; n < 10; ++n) {
        pool.submit([] {}).value().wait().value();
    }
    finish(pool);
    const auto audit = pool.audit().value();
    CHECK(audit.balances);
    CHECK(audit.submitted == 10);
    CHECK(audit.accepted == 10);
    CHECK(audit.completed == 10);
    CHECK(audit.rejected + audit.failed + audit.cancelled + audit.in_flight == 0);
    const auto stats = pool.stats().value();
    std::uint64_t tasks = 0;
    for (const auto &thread : stats.threads) {
        CHECK(thread.role == paceline::Role::Away);
        tasks += thread.tasks;
    }
    CHECK(tasks == 10);
    CHECK(stats.sets.size() == 1);
    CHECK(stats.queued == std::array<std::uint64_t, 4>{});
}
