// Throwing callables, everywhere: reported, counted, and the pool goes on.

#include "common.hpp"

#include <stdexcept>

using paceline::Events;
using paceline::Ring;

namespace {
struct Oops : std::runtime_error {
    Oops() : std::runtime_error("oops") {}
};

/// Hears of what nobody waits for, while it lives.
class Listener {
public:
    Listener() {
        before_ = paceline::on_unhandled([this](std::exception_ptr thrown) {
            try {
                std::rethrow_exception(thrown);
            } catch (const Oops &) {
                heard.set();
            }
        });
    }
    ~Listener() { (void)paceline::on_unhandled(std::move(before_)); }

    Signal heard;

private:
    paceline::Unhandled before_;
};
} // namespace

TEST_CASE("what tasks throw is reported and counted") {
    Listener listener;
    const Pool pool = make_pool();
    const auto strand = pool.strand().value();
    const auto big = [text = std::string("not trivially copyable")] {
        if (!text.empty()) {
            throw Oops();
        }
    };
    pool.post([] { throw Oops(); }).value();
    pool.try_post([] { throw Oops(); }).value();
    pool.post(big).value();
    strand.post(big).value();
    std::vector<void (*)()> batch(2, [] { throw Oops(); });
    CHECK(pool.post_batch(batch).value() == 2);
    CHECK(listener.heard.wait(6));
    CHECK(pool.submit([] { return 1; }).value().wait().value() == 1);
    finish(pool);
    CHECK(pool.audit().value().failed == 6);
}

TEST_CASE("a handler that throws is closed") {
    Listener listener;
    std::atomic<int> alive{0};
    const Pool pool = make_pool();
    Pipe pipe;
    auto handle = pool.register_fd(pipe.reader(), paceline::HandleOptions().set_level(),
                                   [c = Counted(alive)](int, Ready) -> Flow { throw Oops(); })
                      .value();
    auto ticks = pool.every(1ms, [c = Counted(alive)]() -> Flow { throw Oops(); }).value();
    pipe.write("x");
    CHECK(listener.heard.wait(2));
    while (alive != 0) {
        std::this_thread::yield();
    }
    CHECK(listener.heard.count() == 2);
    CHECK_FALSE(handle.is_open().value());
    CHECK_FALSE(ticks.is_open().value());
    finish(pool);
}

TEST_CASE("timers and rings that throw go on") {
    Listener listener;
    const Pool pool = make_pool();
    pool.after(1ns, [] { throw Oops(); }).value();
    CHECK(listener.heard.wait(1));
    Signal heard;
    const auto ring = Ring<int>::serial(pool, 4, [&](Events<int> events) {
                          if (events[0] == 1) {
                              throw Oops();
                          }
                          heard.set();
                      }).value();
    ring.publish(1).value();
    CHECK(listener.heard.wait(2));
    ring.publish(2).value();
    CHECK(heard.wait());
    finish(pool);
}

TEST_CASE("hooks that throw are reported") {
    Listener listener;
    {
        const Pool pool = Pool::create(paceline::Config()
                                           .set_threads(2)
                                           .set_pin("none")
                                           .set_on_start([](std::uint32_t) { throw Oops(); })
                                           .set_on_stop([](std::uint32_t) { throw Oops(); }))
                              .value();
        CHECK(pool.submit([] { return 1; }).value().wait().value() == 1);
    }
    CHECK(listener.heard.wait(4));
}

TEST_CASE("without a hook an exception is only counted") {
    auto before = paceline::on_unhandled({});
    const Pool pool = make_pool();
    pool.post([] { throw Oops(); }).value();
    finish(pool);
    CHECK(pool.audit().value().failed == 1);
    (void)paceline::on_unhandled(std::move(before));
}

TEST_CASE("a result that throws while it is moved reaches whoever waits") {
    struct Heavy {
        Heavy() = default;
        Heavy(const Heavy &) { throw Oops(); }
    };
    const Pool pool = make_pool();
    auto task = pool.submit([heavy = std::make_unique<Heavy>()]() -> Heavy { return *heavy; });
    CHECK_THROWS_AS(task.value().wait().value(), Oops);
    finish(pool);
}
