// Descriptors, periodic and one-shot timers.

#include "common.hpp"

using paceline::HandleOptions;
using paceline::HandleRef;
using paceline::Interest;

TEST_CASE("a handler reads what comes") {
    const Pool pool = make_pool();
    Pipe pipe;
    Signal heard;
    std::string text;
    auto handle = pool.register_fd(pipe.reader(),
                                   [&, calls = 0](int fd, Ready ready) mutable {
                                       ++calls; // it may have state: it runs on one thread at a time
                                       if (ready.readable()) {
                                           text += read_all(fd);
                                           heard.set();
                                       }
                                       return Flow::Wait;
                                   })
                      .value();
    CHECK(handle.is_open().value());
    pipe.write("hello");
    CHECK(heard.wait());
    CHECK(handle.deregister().has_value());
    CHECK(text == "hello");
    CHECK(handle.deregister().error() == Code::Stale);
    CHECK(handle.pause().error() == Code::Stale);
    finish(pool);
}

TEST_CASE("a descriptor that is closed before its handle does not silence the next of its number") {
    const Pool pool = make_pool();
    std::atomic<int> alive{0};
    std::array<int, 2> ends{};
    REQUIRE(pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) == 0);
    const auto options = HandleOptions().set_interest(Interest::readable());
    auto old =
        pool.register_fd(ends[0], options, [c = Counted(alive)](int, Ready) { return Flow::Wait; })
            .value();
    close(ends[0]);
    close(ends[1]);
    Pipe pipe;
    REQUIRE(pipe.reader() == ends[0]);
    Signal heard;
    auto handle = pool.register_fd(pipe.reader(), options,
                                   [&](int fd, Ready) {
                                       read_all(fd);
                                       heard.set();
                                       return Flow::Wait;
                                   })
                      .value();
    CHECK(alive.load() == 0);
    CHECK(old.deregister().error() == Code::Stale);
    pipe.write("x");
    CHECK(heard.wait());
    CHECK(handle.deregister().has_value());
    finish(pool);
}

TEST_CASE("a handler goes with its handle, and with Done") {
    const Pool pool = make_pool();
    std::atomic<int> alive{0};
    Pipe pipe;
    {
        auto handle =
            pool.register_fd(pipe.reader(), [c = Counted(alive)](int, Ready) { return Flow::Wait; })
                .value();
        CHECK(alive.load() == 1);
    }
    CHECK(alive.load() == 0);

    Signal through;
    auto handle = pool.register_fd(pipe.reader(), HandleOptions().set_interest(Interest::readable()),
                                   [&, c = Counted(alive)](int fd, Ready) {
                                       through.set();
                                       return read_all(fd).empty() ? Flow::Wait : Flow::Done;
                                   })
                      .value();
    pipe.write("x");
    while (handle.is_open().value()) {
        std::this_thread::yield();
    }
    CHECK(through.count() >= 1);
    while (alive != 0) {
        std::this_thread::yield();
    }
    finish(pool);
}

TEST_CASE("a handler may steer its own handle") {
    const Pool pool = make_pool();
    Pipe pipe;
    Signal calls, asked;
    Code answer = Code::Ok;
    auto handle = pool.register_fd(pipe.reader(), HandleOptions().set_level(),
                                   [&](HandleRef self, int, Ready) {
                                       const auto closing = self.deregister();
                                       answer = closing ? Code::Ok : closing.error().code();
                                       calls.set();
                                       return Flow::Wait;
                                   })
                      .value();
    pipe.write("stays unread");
    CHECK(calls.wait());
    while (handle.is_open().value()) {
        std::this_thread::yield();
    }
    CHECK(answer == Code::Closing);
    CHECK(calls.count() == 1);
    CHECK(handle.deregister().error() == Code::Stale);
    finish(pool);
}

TEST_CASE("what comes during a pause is kept") {
    const Pool pool = make_pool();
    Pipe pipe;
    Signal heard;
    auto handle =
        pool.register_fd(pipe.reader(), HandleOptions().set_paused().set_interest(Interest::readable()),
                         [&](int fd, Ready) {
                             if (!read_all(fd).empty()) {
                                 heard.set();
                             }
                             return Flow::Wait;
                         })
            .value();
    pipe.write("early");
    pool.submit([] {}).value().wait().value();
    CHECK(heard.count() == 0);
    CHECK(handle.resume().has_value());
    CHECK(heard.wait());
    CHECK(handle.pause().has_value());
    const HandleRef ref = handle.detach();
    pipe.write("more");
    CHECK(ref.is_open().value());
    CHECK(ref.resume().has_value());
    CHECK(heard.wait(2));
    CHECK(ref.deregister().has_value());
    CHECK(ref.deregister().error() == Code::Stale);
    finish(pool);
}

TEST_CASE("a descriptor that cannot be waited for is refused, and the handler given back") {
    const Pool pool = make_pool();
    std::atomic<int> alive{0};
    auto handler = [c = Counted(alive)](int, Ready) {
        CHECK(c.is_whole());
        return Flow::Wait;
    };
    CHECK(pool.register_fd(-1, std::move(handler)).error() == Code::Invalid);
    const int file = open("/proc/self/stat", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const auto result = pool.register_fd(file, std::move(handler));
    REQUIRE_FALSE(result);
    CHECK(result.error() == Code::Os);
    CHECK(result.error().os_error() == EPERM);
    close(file);
    CHECK(handler(0, Ready()) == Flow::Wait);
    CHECK(alive.load() == 1);
    finish(pool);
}

TEST_CASE("a periodic timer runs until it is done") {
    const Pool pool = make_pool();
    std::atomic<int> alive{0};
    Signal ticks;
    auto handle = pool.every(1ms,
                             [&, n = 0, c = Counted(alive)]() mutable {
                                 ticks.set();
                                 return ++n == 3 ? Flow::Done : Flow::Wait;
                             })
                      .value();
    CHECK(ticks.wait(3));
    while (alive != 0) {
        std::this_thread::yield();
    }
    CHECK(ticks.count() == 3);

    auto other = pool.every(1ms,
                            [&](HandleRef self) {
                                CHECK(self.is_open().value());
                                ticks.set();
                                return Flow::Wait;
                            })
                     .value();
    CHECK(ticks.wait(5));
    other = paceline::Handle();
    finish(pool);
}

TEST_CASE("a timer runs once, never early") {
    const Pool pool = make_pool();
    Signal ran;
    const auto began = std::chrono::steady_clock::now();
    pool.after(20ms, [&] { ran.set(); }).value();
    CHECK(ran.wait());
    CHECK(std::chrono::steady_clock::now() - began >= 20ms);

    std::atomic<int> alive{0};
    const auto timer = pool.after(1h, [c = Counted(alive)] {}).value();
    CHECK(timer.is_pending().value());
    CHECK(timer.postpone(2h).value());
    CHECK(timer.cancel().value());
    CHECK_FALSE(timer.cancel().value());
    CHECK_FALSE(timer.is_pending().value());
    CHECK(alive.load() == 0);
    CHECK(paceline::Timer().cancel().error() == Code::Stale);
    finish(pool);
}

TEST_CASE("a slow handler is reported") {
    Signal reported;
    std::atomic<bool> was_slow{false};
    const Pool pool = Pool::create(paceline::Config().set_threads(2).set_pin("none").set_on_slow(
                                       1ms,
                                       [&](const paceline::SlowReport &report) {
                                           was_slow = report.elapsed >= 1ms;
                                           reported.set();
                                       }))
                          .value();
    pool.post([] { std::this_thread::sleep_for(20ms); }).value();
    CHECK(reported.wait());
    CHECK(was_slow.load());
    finish(pool);
}
