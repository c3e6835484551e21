// What the tests share.

#ifndef PACELINE_TESTS_COMMON_HPP
#define PACELINE_TESTS_COMMON_HPP

#include "paceline.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;
using paceline::Code;
using paceline::Flow;
using paceline::Pool;
using paceline::Ready;

/// After this a test gives up, and fails.
inline constexpr auto PATIENCE = 300s;

/// Something that is to happen.
class Signal {
public:
    void set() {
        std::lock_guard<std::mutex> lock(mutex_);
        ++count_;
        changed_.notify_all();
    }

    /// Whether it has happened `times` times, at last.
    bool wait(int times = 1) {
        std::unique_lock<std::mutex> lock(mutex_);
        return changed_.wait_for(lock, PATIENCE, [&] { return count_ >= times; });
    }

    int count() {
        std::lock_guard<std::mutex> lock(mutex_);
        return count_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int count_ = 0;
};

/// Counts its own kind, to see that nothing is lost or deleted twice.
class Counted {
public:
    explicit Counted(std::atomic<int> &alive) : alive_(&alive) { ++*alive_; }
    Counted(Counted &&other) noexcept : alive_(std::exchange(other.alive_, nullptr)) {}
    Counted &operator=(Counted &&) = delete;
    ~Counted() {
        if (alive_) {
            --*alive_;
        }
    }

    bool is_whole() const { return alive_ != nullptr; }

private:
    std::atomic<int> *alive_;
};

/// A pipe; both ends are non-blocking.
class Pipe {
public:
    Pipe() { REQUIRE(pipe2(ends_, O_NONBLOCK | O_CLOEXEC) == 0); }
    Pipe(const Pipe &) = delete;
    Pipe &operator=(const Pipe &) = delete;
    ~Pipe() {
        close(ends_[0]);
        close_writer();
    }

    int reader() const { return ends_[0]; }
    void write(const std::string &text) const {
        REQUIRE(::write(ends_[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    }
    void close_writer() {
        if (ends_[1] >= 0) {
            close(std::exchange(ends_[1], -1));
        }
    }

private:
    int ends_[2];
};

/// All that can be read now.
inline std::string read_all(int fd) {
    std::string text;
    char bytes[64];
    for (ssize_t size; (size = read(fd, bytes, sizeof bytes)) > 0;) {
        text.append(bytes, static_cast<std::size_t>(size));
    }
    return text;
}

/// The next entry of a queue, which is of this kind and has this tag.
inline paceline::Entry next_entry(const paceline::CompletionQueue &queue, paceline::EntryKind kind,
                                  std::uint64_t tag) {
    std::array<paceline::Entry, 1> room;
    REQUIRE(queue.wait(room, PATIENCE).value().size() == 1);
    INFO(room[0].tag);
    REQUIRE(room[0].what() == kind);
    REQUIRE(room[0].tag == tag);
    return room[0];
}

/// Takes what a mailbox has, by a completion queue of its own.
class Inbox {
public:
    template <class Mailbox>
    Inbox(const Pool &pool, const Mailbox &mailbox)
        : queue_(paceline::CompletionQueue::create(pool).value()) {
        queue_.attach(mailbox, 1).value();
    }

    /// Up to 8 messages, in order. Code::Stale: it has ended, and nothing is left.
    paceline::Result<std::vector<paceline::OwnedMessage>> take(paceline::Duration time) {
        queue_.done(entries_).value();
        entries_ = {};
        if (has_ended_) {
            return paceline::Error(Code::Stale);
        }
        const auto got = queue_.wait(room_, time);
        if (!got) {
            return got.error();
        }
        entries_ = *got;
        std::vector<paceline::OwnedMessage> messages;
        for (const auto &entry : entries_) {
            if (entry.what() == paceline::EntryKind::Ended) {
                has_ended_ = true;
            } else {
                messages.push_back(entry.message().to_owned());
            }
        }
        return messages.empty() ? take(time) : messages;
    }
    /// Completes the first message of the last call as a failed one.
    void bury(const char *why, std::uint32_t attempts) {
        queue_.complete(paceline::Completion::fail(entries_[0], why).attempts(attempts)).value();
        entries_ = entries_.subspan(1);
    }
    const paceline::CompletionQueue &queue() const { return queue_; }

private:
    paceline::CompletionQueue queue_;
    std::array<paceline::Entry, 8> room_;
    paceline::span<paceline::Entry> entries_;
    bool has_ended_ = false;
};

inline Pool make_pool(std::uint32_t threads = 2) {
    return Pool::create(paceline::Config().set_threads(threads).set_pin("none")).value();
}

/// A pool of one thread, which is held until the Hold goes.
class Hold {
public:
    explicit Hold(const Pool &pool) {
        pool.post([this] {
                begun_.set();
                end_.wait();
                ended_.set();
            })
            .value();
        REQUIRE(begun_.wait());
    }
    ~Hold() { release(); }

    void release() {
        end_.set();
        ended_.wait();
    }

private:
    Signal begun_, end_, ended_;
};

/// Ends well: everything has run, and every task is accounted for.
inline void finish(const Pool &pool) {
    const auto report = pool.shutdown(PATIENCE).value();
    CHECK(report.drained);
    CHECK(report.stuck == 0);
    CHECK(pool.audit().value().balances);
}

#endif
