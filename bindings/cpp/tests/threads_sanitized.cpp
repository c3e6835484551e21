// A program of its own, for ThreadSanitizer, which does not see how the library orders threads: what the headers tell it
// must leave no report about a program that is right.

#include "paceline.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using paceline::Flow;
using paceline::Message;

namespace {

/// Runs what is plain, written by one thread and read by another, through everything that calls back.
int run() {
    auto pool = paceline::Pool::create(paceline::Config().set_threads(3).set_pin("none")).value();
    std::vector<int> numbers{1, 2, 3};
    std::string text = "a text that has memory of its own";
    int count = 0;

    auto task = pool.submit([&] { return numbers.push_back(4), numbers; }).value();
    numbers = task.wait().value();
    pool.post([owned = std::make_unique<std::string>(text)] { owned->push_back('!'); }).value();
    text = pool.submit([&] { return text + "."; }).value().to_future().get();
    {
        const auto strand = pool.strand().value();
        for (int n = 0; n < 200; ++n) {
            strand.post([&] { ++count; }).value();
            strand.post([&, more = 1L, even = 2L, most = 3L] { count += int(more + even + most); })
                .value();
        }
    }
    ++count;
    {
        int ticks = 0;
        const auto handle = pool.every(1ms,
                                       [&, kept = std::vector<int>()]() mutable {
                                           kept.push_back(++ticks);
                                           return ticks < 5 ? Flow::Wait : Flow::Done;
                                       })
                                .value();
        while (handle.is_open().value()) {
            std::this_thread::sleep_for(1ms);
        }
    }
    pool.after(1ms, [&] { ++count; }).value().wait().value();
    ++count;
    {
        const auto ring = paceline::Ring<int *>::serial(pool, 64, [&](paceline::Events<int *> events) {
                              for (int *event : events) {
                                  count += *event;
                                  delete event;
                              }
                          }).value();
        for (int n = 0; n < 500; ++n) {
            ring.publish(new int(n)).value();
        }
    }
    ++count;

    const auto hub = paceline::Hub::create(pool).value();
    {
        auto plain = hub.subscribe("a",
                                   [&](const Message &message) {
                                       count += static_cast<int>(message.text().size() + text.size());
                                   })
                         .value();
        text += "!";
        for (int n = 0; n < 100; ++n) {
            (void)hub.publish("a", "x").value();
        }
        (void)plain.drain(60s).value();
        ++count;
        const auto echo = hub.subscribe("ask",
                                        [&](const Message &message) {
                                            ++count;
                                            (void)hub.reply(message, "reply").value();
                                        })
                              .value();
        (void)hub.key("ask").value().request("x", 60s).value();
    }
    ++count;

    const auto workers = paceline::WorkerPool::create(pool).value();
    const auto kind = workers.task_type("plain").value();
    auto attempt = kind.submit([&] { return text += "?"; }).value();
    text = attempt.wait().value().value.value() + "?";
    {
        std::atomic<int> runs{0};
        const auto periodic = kind.every(1ms, [&] { text += "+", ++runs; }).value();
        while (runs < 3) {
            std::this_thread::sleep_for(1ms);
        }
    }
    text += "-";
    int each[8] = {};
    std::vector<std::function<void()>> batch;
    for (int &one : each) {
        batch.push_back([&one] { ++one; });
    }
    (void)pool.post_batch(batch).value();
    (void)pool.shutdown(60s).value();
    for (const int one : each) {
        count += one;
    }
    return count;
}

} // namespace

int main() { return run() > 0 && std::puts("42") >= 0 ? 0 : 1; }
