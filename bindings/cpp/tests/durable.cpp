// Durable tasks: submitted, run, taken, cancelled and dead, over a broker.

#include "broker.hpp"

#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

// Its names are its own: all tests are one translation unit.
namespace of_durable_tasks {

using paceline::DurableConfig;
using paceline::DurableJob;
using paceline::DurableQueue;
using paceline::DurableReport;
using paceline::DurableStatus;
using paceline::NatsSettings;
using paceline::OpenJob;
using paceline::Result;
using paceline::Retry;
using paceline::Submission;
using paceline::WorkerPool;

namespace {

DurableQueue queue_of(const WorkerPool &workers, const NatsSettings &nats) {
    return DurableQueue::create(workers, "q", nats).value();
}

bool has_durable(const WorkerPool &workers) {
    const auto made = DurableQueue::create(workers, "q", "nats://127.0.0.1:1");
    return made || made.error() != Code::Unsupported;
}

bool says(const paceline::Error &error, const char *part) {
    return error == Code::Invalid && std::string(error.message()).find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a queue of durable tasks says why it has no broker") {
    const Pool pool = make_pool();
    const auto workers = WorkerPool::create(pool).value();
    if (!has_durable(workers)) {
        return;
    }
    const auto queue = queue_of(workers, "nats://127.0.0.1:1");
    queue.open().value();
    while (queue.reason().value().find("refused") == std::string::npos) {
    }
    const auto late = queue.submit("t", {}, Submission().set_timeout(1ms));
    CHECK(late.error() == Code::TimedOut);
    CHECK(std::string(late.error().message()).find("refused") != std::string::npos);
}

TEST_CASE("settings of a queue of durable tasks that are wrong are told") {
    const Pool pool = make_pool();
    const auto workers = WorkerPool::create(pool).value();
    if (!has_durable(workers)) {
        return;
    }
    const NatsSettings nowhere("nats://127.0.0.1:1");
    const auto secret = DurableQueue::create(workers, "q", NatsSettings(nowhere).set_user("", "secret"));
    CHECK(says(secret.error(), "without user"));
    CHECK_FALSE(says(secret.error(), "secret"));
    const auto opened = [&](const DurableConfig &config, const char *name) {
        const auto queue = DurableQueue::create(workers, name, nowhere, config).value();
        queue.task("t", [](const DurableJob &) {}).value();
        return queue.open();
    };
    CHECK(says(opened(DurableConfig().set_results_last(1ms), "q").error(), "results_last"));
    CHECK(says(opened(DurableConfig().set_ack_wait(1ms), "q").error(), "ack_wait"));
    CHECK(says(opened(DurableConfig().set_in_flight(100000), "q").error(), "in_flight"));
    CHECK(says(opened({}, "a name").error(), "a name"));

    const auto queue = queue_of(workers, nowhere);
    CHECK(says(queue.stats().error(), "not open"));
    CHECK(says(queue.reason().error(), "not open"));
    CHECK(says(queue.submit("t").error(), "not open"));
    CHECK(says(queue.take(0s).error(), "not open"));
    CHECK(says(queue.dead().error(), "not open"));
    // A handler that is refused is given back.
    auto handler = [is = std::make_unique<int>(1)](const DurableJob &) {};
    const auto again_and_again = Retry::fixed(1, 1ms).jitter(99);
    CHECK(queue.task("t", std::move(handler), again_and_again).error() == Code::Invalid);
    queue.task("t", std::move(handler)).value();
    queue.open().value();
    CHECK(says(queue.open().error(), "open already"));
    CHECK(says(queue.task("u", [](const DurableJob &) {}).error(), "open already"));
    CHECK(says(queue.task_pulled("u").error(), "open already"));
    CHECK(says(queue.schedule("nightly", "* * * * *", "t").error(), "open already"));
    CHECK(queue.find("no id").wait(0s).error() == Code::Invalid);
    CHECK(queue.find("no id").cancel().error() == Code::Invalid);
    CHECK(says(queue.submit("a name").error(), "a name"));
    CHECK(queue.submit("t", "x", Submission().set_timeout(1ms)).error() == Code::TimedOut);
    CHECK_FALSE(queue.stats().value().connected);
    CHECK(queue.close(0s).value() == 1);
    CHECK(queue.take(PATIENCE).error() == Code::ShutDown);
}

TEST_CASE("durable tasks run, and their results come back") {
    const Broker broker;
    const Pool pool = make_pool();
    const auto workers = WorkerPool::create(pool).value();
    if (!broker.runs() || !has_durable(workers)) {
        return;
    }
    const auto soon = Retry::fixed(3, 10ms);
    const auto queue = queue_of(workers, broker.nats());
    auto echo = [only = std::make_unique<int>(1)](const DurableJob &job) {
        return std::string(job.arguments()) + " of " + std::string(job.name());
    };
    queue.task("echo", std::move(echo)).value();
    queue.task("nothing", [](const DurableJob &) {}).value();
    const auto second = [](const DurableJob &job) -> Result<std::string> {
        return job.number() == 2 ? Result<std::string>(std::string("second"))
                                 : Result<std::string>(paceline::Error(Code::Failed, "not yet"));
    };
    queue.task("result", second, soon).value();
    const auto refuses = [](const DurableJob &job) -> Result<void> {
        CHECK(job.time_left() < 1h);
        return paceline::Error(Code::Failed, "as it likes");
    };
    queue.task("refuses", refuses, Retry::none()).value();
    const auto throws = [](const DurableJob &job) {
        if (job.number() == 1) {
            throw std::runtime_error("on purpose");
        }
        job.permanent("for good").value();
        CHECK(job.complete("late").error() == Code::Stale);
        throw std::runtime_error("it has ended before");
    };
    queue.task("throws", throws, soon).value();
    const auto obeys = [](const DurableJob &job) -> Result<void> {
        CHECK_FALSE(job.is_cancelled());
        CHECK(job.time_left() <= 2s);
        while (!job.is_cancelled()) {
            std::this_thread::sleep_for(1ms);
        }
        CHECK(job.time_left() == 0ns);
        return paceline::Error(Code::Failed, "told to end");
    };
    queue.task("obeys", obeys).value();
    queue.schedule("yearly", "0 0 1 1 *", "echo", "x").value();
    queue.open().value();
    queue.wait_connected(PATIENCE).value();
    const auto ran = [&](const char *name, const Submission &with = {}) {
        return queue.submit(name, "x", with).value().wait(PATIENCE).value();
    };

    const auto task = queue.submit("echo", "words").value();
    const DurableReport echoed = task.wait(PATIENCE).value();
    CHECK(echoed.completed());
    CHECK(echoed.value == "words of echo");
    CHECK(echoed.id == task.id());
    CHECK(echoed.failure.empty());
    CHECK(queue.find(task.id()).wait(PATIENCE).value().value == "words of echo");
    CHECK(ran("nothing").completed());
    CHECK(ran("nothing").value.empty());
    CHECK(ran("result").value == "second");
    CHECK(ran("result").attempts == 2);
    CHECK(ran("result", Submission().set_attempts(1)).failure == "not yet");
    CHECK(ran("refuses", Submission().set_deadline(30min)).failure == "as it likes");
    const auto late = ran("echo", Submission().set_delay(50ms).set_deadline(1ms));
    CHECK(late.status == DurableStatus::TimedOut);
    CHECK(ran("obeys", Submission().set_deadline(2s)).status == DurableStatus::TimedOut);
    const auto once = Submission().set_unique("once").set_lane(paceline::Lane::High);
    const auto first = queue.submit("echo", "1", once).value();
    CHECK_FALSE(first.is_duplicate());
    CHECK(queue.submit("echo", "2", once).value().is_duplicate());
    const auto unheard = queue.submit("echo", "x", Submission().set_ignore_result()).value();
    CHECK(unheard.wait(1ms).error() == Code::TimedOut);

    // Its first end counts, and what has failed for good may be submitted again.
    const auto failed = ran("throws");
    CHECK(failed.status == DurableStatus::Failed);
    CHECK(failed.failure == "for good");
    CHECK(failed.attempts == 2);
    const auto dead_of = [&](const std::string &id) {
        for (;;) {
            const auto list = queue.dead().value();
            for (const paceline::DeadTask &dead : list) {
                if (dead.id == id) {
                    return dead;
                }
            }
        }
    };
    const auto dead = dead_of(failed.id);
    CHECK(dead.name == "throws");
    CHECK(dead.arguments == "x");
    CHECK(dead.failure == "for good");
    CHECK(dead.attempts == 2);
    CHECK(queue.dead(dead.number, 1).value().size() == 1);
    CHECK(queue.dead(dead.number + 1).value().empty());
    const auto again = queue.resubmit(dead.number).value();
    CHECK(again.id() != failed.id);
    CHECK(again.wait(PATIENCE).value().failure == "for good");
    CHECK(queue.resubmit(dead.number).error() == Code::Stale);
    queue.forget(dead_of(again.id()).number).value();
    CHECK(queue.forget(dead.number).error() == Code::Stale);

    const auto waits = queue.submit("nobody").value();
    CHECK(waits.cancel().value());
    CHECK(waits.wait(PATIENCE).value().status == DurableStatus::Cancelled);
    CHECK_FALSE(waits.cancel().value());
    CHECK(queue.stats().value().connected);
    CHECK(queue.close(PATIENCE).value() == 0);
}

TEST_CASE("that there is no such durable task is not told by a broker that is away") {
    const Pool pool = make_pool();
    const auto workers = WorkerPool::create(pool).value();
    if (!has_durable(workers)) {
        return;
    }
    const auto queue = queue_of(workers, "nats://127.0.0.1:1");
    queue.open().value();
    const auto late = [](auto ask) {
        return std::async(std::launch::async, [ask] { CHECK(ask().error() == Code::TimedOut); });
    };
    const auto dead = late([&] { return queue.dead(); });
    const auto forgotten = late([&] { return queue.forget(1); });
    const auto again = late([&] { return queue.resubmit(1); });
    const auto cancelled = late([&] { return queue.find("n" + std::string(32, '0')).cancel(); });
}

TEST_CASE("a host takes durable tasks, and what it gives back comes again and has had no attempt") {
    const Broker broker;
    const Pool pool = make_pool();
    const auto workers = WorkerPool::create(pool).value();
    if (!broker.runs() || !has_durable(workers)) {
        return;
    }
    const auto queue = queue_of(workers, broker.nats());
    queue.task_pulled("t", Retry::fixed(5, 10ms)).value();
    queue.open().value();
    CHECK(queue.take(1ms).error() == Code::TimedOut);
    const auto task = queue.submit("t", "by hand").value();
    {
        const auto given_back = queue.take(PATIENCE).value();
        CHECK(given_back.id() == task.id());
        CHECK(given_back.arguments() == "by hand");
        CHECK(given_back.time_left() == paceline::forever);
        CHECK_FALSE(given_back.is_cancelled());
    }
    auto job = queue.take(PATIENCE).value();
    CHECK(job.number() == 1);
    OpenJob moved(std::move(job));
    CHECK(job.complete().error() == Code::Invalid); // NOLINT: it was moved from
    CHECK(job.id().empty());
    CHECK(job.is_cancelled());
    moved.fail("not yet").value();
    job = queue.take(PATIENCE).value();
    CHECK(job.number() == 2);
    CHECK_FALSE(task.cancel().value());
    job.retry_after("later", 1ms).value();
    CHECK(job.fail("again").error() == Code::Stale);
    job = queue.take(PATIENCE).value();
    CHECK(job.number() == 3);
    job.complete("done").value();
    CHECK(task.wait(PATIENCE).value().value == "done");
}

TEST_CASE("a queue of durable tasks that goes waits for the handler that runs") {
    const Broker broker;
    const Pool pool = make_pool();
    const auto workers = WorkerPool::create(pool).value();
    if (!broker.runs() || !has_durable(workers)) {
        return;
    }
    std::atomic<int> alive{0};
    std::atomic<bool> is_over{false};
    Signal entered;
    {
        const auto queue = queue_of(workers, broker.nats());
        auto handler = [&, counted = Counted(alive)](const DurableJob &) {
            entered.set();
            std::this_thread::sleep_for(20ms);
            is_over = true;
        };
        queue.task("t", std::move(handler)).value();
        queue.open().value();
        (void)queue.submit("t", "", Submission().set_ignore_result()).value();
        CHECK(entered.wait());
        CHECK(alive > 0);
    }
    CHECK(is_over);
    while (alive != 0) {
        std::this_thread::yield();
    }
}

} // namespace of_durable_tasks
