// paceline/cq.hpp: completion queues: what happens as data, for hosts that cannot be called back.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
//
//     auto queue = CompletionQueue::create(pool).value();
//     queue.route(http, "GET", "/hello/{name}", 1).value();
//     std::array<Entry, 64> room;
//     while (auto entries = queue.wait(room, paceline::forever)) {
//         for (const Entry &entry : *entries) {
//             if (entry.what() == EntryKind::Request) {
//                 (void)queue.complete(Completion::answer(entry, 200, "Hello!\n"));
//             }
//         }
//         (void)queue.done(*entries); // whatever is still out
//     }
#ifndef PACELINE_CQ_HPP
#define PACELINE_CQ_HPP

#include "http.hpp"
#include "hub.hpp"
#include "udp.hpp"
#include "workers.hpp"

#include <paceline/cq.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

// ---- what an entry says ----------------------------------------------------------------------------

/// A descriptor that is ready, or a periodic timer that is due.
struct ReadyEntry {
    /// Which handle it is, as Handle::native() gives it.
    pace_handle_t handle;
    /// What the descriptor is ready for. Of a timer: nothing.
    Ready ready;
};

/// What has happened to a connection.
struct ConnEntry {
    /// The number of the connection: Server::conn() finds it.
    std::uint64_t id;
    ConnEventKind event;
    /// Of ConnEventKind::Data: the bytes that have arrived.
    std::string_view text;
    /// The fields of pace_cq_conn_t with these names.
    std::uint32_t detail;
    std::uint64_t number;

    /// Of ConnEventKind::Closed: why the connection has ended.
    Reason reason() const noexcept { return Reason(detail, static_cast<std::int32_t>(number)); }
    /// Of ConnEventKind::TimedOut: which time is over.
    Timeout timeout() const noexcept { return static_cast<Timeout>(detail); }
    /// Of ConnEventKind::Written: the token that ConnRef::write_tracked() was given.
    std::uint64_t written() const noexcept { return number; }
};

/// A request of an HTTP route. Its texts stay where they are until it is completed.
struct RequestEntry {
    /// The number of its connection: Http::conn() finds it.
    std::uint64_t conn;
    /// The block of a pace_cq_request_t, which holds all of it.
    const char *block;
    std::size_t size;

    std::string_view method() const noexcept { return text(0); }
    std::string_view target() const noexcept { return text(1); }
    std::string_view path() const noexcept { return text(2); }
    std::optional<std::string_view> query() const noexcept {
        return number(3) == none ? std::nullopt : std::optional(text(3));
    }
    /// The minor version of HTTP/1 that the peer speaks: 0 or 1.
    std::uint32_t version() const noexcept { return number(4) & 0xffffU; }
    /// The status that a request gets that no route has taken: 404, 405, 501 or 400. 0: a route has taken it.
    std::uint32_t refusal() const noexcept { return number(4) >> 16U; }
    /// The parameters of the path, percent-decoded, in order.
    std::vector<Request::Field> params() const { return fields(0, number(5)); }
    /// The headers of the request, in the order in which they came.
    std::vector<Request::Field> headers() const { return fields(number(5), number(6)); }
    /// The whole body. Empty if it is read in parts.
    std::string_view body() const noexcept { return {block + number(7), size - number(7)}; }

private:
    friend struct Entry;
    static constexpr std::uint32_t none = UINT32_MAX;
    static constexpr std::size_t front = 8;

    RequestEntry(std::uint64_t id, const void *at, std::size_t length) noexcept
        : conn(id), block(static_cast<const char *>(at)), size(length) {}

    std::uint32_t number(std::size_t index) const noexcept {
        std::uint32_t value = 0;
        std::memcpy(&value, block + index * sizeof value, sizeof value);
        return value;
    }
    std::size_t length(std::size_t index) const noexcept {
        const std::uint32_t value = number(index);
        return index == 3 && value == none ? 0 : value;
    }
    std::size_t texts() const noexcept {
        return sizeof(std::uint32_t) * (front + 2 * (number(5) + std::size_t{number(6)}));
    }
    std::string_view text(std::size_t index) const noexcept {
        std::size_t from = texts();
        for (std::size_t before = 0; before < index; ++before) {
            from += length(before);
        }
        return {block + from, length(index)};
    }
    std::vector<Request::Field> fields(std::size_t first, std::size_t count) const {
        const char *place = block + texts() + length(0) + length(1) + length(2) + length(3);
        std::vector<Request::Field> all;
        for (std::size_t n = 0; n < first + count; ++n) {
            const std::size_t name = number(front + 2 * n), value = number(front + 2 * n + 1);
            if (n >= first) {
                all.push_back({{place, name}, {place + name, value}});
            }
            place += name + value;
        }
        return all;
    }
};

/// A part of the body of a request that is read in parts, its end, or news of the body of its answer or of its client.
struct BodyEntry {
    /// The token of the request.
    std::uint64_t request;
    /// Of EntryKind::Body: the part of the body that has come.
    std::string_view text;
};

/// A datagram that has arrived, or an error that came instead.
struct DatagramEntry {
    /// What has arrived of the datagram.
    std::string_view text;
    /// How many bytes were sent: more than `text` has if its end is lost.
    std::size_t length;
    /// The address of the sender of the datagram.
    Ip peer;
    /// Of EntryKind::DatagramError: the errno. Otherwise 0.
    std::int32_t os_error;

    bool is_truncated() const noexcept { return length > text.size(); }
};

/// An attempt at a task of a worker pool, or the end of a task.
struct AttemptEntry {
    /// The number of the task, as in its report.
    std::uint64_t id;
    /// 1 for the first attempt at the task; 0 for its end.
    std::uint32_t number;
    TaskStatus status;
};

/// What CompletionQueue::wait() brings: one thing that happened. It is a pace_cq_entry_t: its `tag` was given with the
/// source, and its `token` names it until it is completed; 0: there is nothing to complete. What it lends stays where it
/// is until then. The function of another kind of entry throws an Exception: Code::Invalid.
struct Entry : pace_cq_entry_t {
    Entry() noexcept : pace_cq_entry_t{} {}

    EntryKind what() const noexcept { return static_cast<EntryKind>(kind); }
    /// Whether it was brought before, to a thread that has not completed it.
    bool is_again() const noexcept { return (flags & PACE_CQ_AGAIN) != 0; }
    /// The bytes that the kind speaks of: of a connection, a body, a datagram or a message.
    std::string_view text() const noexcept { return {static_cast<const char *>(bytes), size}; }

    /// Of EntryKind::Ready and EntryKind::Tick: what is ready or due.
    ReadyEntry ready() const {
        require("ready", EntryKind::Ready, EntryKind::Tick);
        return {detail.ready.handle, Ready(detail.ready.ready)};
    }
    /// Of EntryKind::Conn: what has happened to which connection.
    ConnEntry conn() const {
        require("conn", EntryKind::Conn);
        return {detail.conn.conn.id, static_cast<ConnEventKind>(detail.conn.event), text(),
                detail.conn.detail, detail.conn.number};
    }
    /// Of EntryKind::Request: the request, with its headers and its body.
    RequestEntry request() const {
        require("request", EntryKind::Request);
        return {detail.request.conn.id, bytes, size};
    }
    /// Of the four kinds that begin with EntryKind::Body: whose body it is, and the part that has come.
    BodyEntry body() const {
        require("body", EntryKind::Body, EntryKind::BodyEnd, EntryKind::BodyBroken,
                EntryKind::ClientGone, EntryKind::BodyWritable);
        return {detail.request.request, text()};
    }
    /// Of EntryKind::RequestEnded: how a request of the HTTP server has ended.
    RequestEnd request_end() const {
        require("request_end", EntryKind::RequestEnded);
        std::uint64_t time = 0;
        std::uint32_t numbers[4];
        const char *const block = static_cast<const char *>(bytes);
        std::memcpy(&time, block, sizeof time);
        std::memcpy(numbers, block + 2 * sizeof time, sizeof numbers);
        const char *const texts = block + 2 * sizeof time + sizeof numbers;
        const std::size_t method = numbers[1], target = numbers[2], peer = numbers[3];
        const auto answered = numbers[0] == 0 ? std::nullopt : std::optional(numbers[0]);
        return {{texts, method},
                {texts + method, target},
                answered,
                detail::time_of(time),
                {texts + method + target, peer}};
    }
    /// Of EntryKind::Datagram and EntryKind::DatagramError: what has come, and from whom.
    DatagramEntry datagram() const {
        require("datagram", EntryKind::Datagram, EntryKind::DatagramError);
        return {text(), detail.datagram.length, Ip(detail.datagram.peer), detail.datagram.os_error};
    }
    /// Of EntryKind::Attempt and EntryKind::TaskEnded: which task it is, and how it stands.
    AttemptEntry attempt() const {
        require("attempt", EntryKind::Attempt, EntryKind::TaskEnded);
        return {detail.attempt.id, detail.attempt.number,
                static_cast<TaskStatus>(detail.attempt.status)};
    }
    /// Of EntryKind::Message: the message, which is lent until it is completed.
    Message message() const {
        require("message", EntryKind::Message);
        return Message(detail.message);
    }
    /// Of EntryKind::Reply: a copy of the reply. Code::TimedOut; Code::Cancelled: the request was given up, or its hub is
    /// gone.
    Result<OwnedMessage> reply() const {
        require("reply", EntryKind::Reply);
        return detail::reply_of(static_cast<pace_status_t>(status), detail.message);
    }
    /// Of EntryKind::Record: a copy of the record of the log.
    LogRecord record() const {
        require("record", EntryKind::Record);
        return LogRecord::from_native(detail.record);
    }
    /// Of EntryKind::Signal: the number of the signal, as SIGTERM.
    int signal() const {
        require("signal", EntryKind::Signal);
        return detail.signal;
    }

private:
    template <class... Kinds>
    void require(const char *part, Kinds... kinds) const {
        if (!((what() == kinds) || ...)) {
            detail::raise(Error(Code::Invalid, "an entry of the kind " + detail::number_text(kind) +
                                                   " (PACE_CQ_) has no " + part + "()"));
        }
    }
};
static_assert(sizeof(Entry) == sizeof(pace_cq_entry_t), "a batch of one is a batch of the other");

// ---- how an entry is completed ---------------------------------------------------------------------

/// Names an entry that is out: the entry itself, or its token, which may be kept.
struct Token {
    Token(const Entry &of) noexcept : number(of.token) {}
    Token(std::uint64_t of) noexcept : number(of) {}

    std::uint64_t number;
};

/// How an entry is completed. It is a pace_cq_completion_t; its texts must stay until CompletionQueue::complete() has
/// returned.
class Completion {
public:
    /// It is dealt with: all bytes of a connection are consumed, a descriptor is watched on, an attempt has succeeded. For
    /// a request that is no answer, and its peer gets a 500.
    explicit Completion(Token of) noexcept { raw_.token = of.number; }

    /// Of a descriptor or a tick: what a handler would answer.
    static Completion flow(Token of, Flow next) noexcept {
        return with(of, 0, static_cast<std::uint32_t>(next));
    }
    /// Of a connection: so many of the entry's bytes are consumed, from the front. The rest comes again, followed by
    /// more.
    static Completion consume(const Entry &of, std::size_t count) noexcept {
        Completion made(of);
        made.raw_.length = of.size - count;
        return made;
    }
    /// Of a request: its answer. `headers` are lines, each ended by CR LF.
    static Completion answer(Token of, std::uint32_t status, std::string_view body = {},
                             std::string_view headers = {}) noexcept {
        Completion made = with(of, 0, status);
        made.raw_.headers = headers.data();
        made.raw_.headers_size = headers.size();
        return made.write(body);
    }
    /// The same with a short page about the status as its body, as Response::error() has it.
    static Completion error_page(Token of, std::uint32_t status,
                                 std::string_view headers = {}) noexcept {
        Completion made = answer(of, status, {}, headers);
        made.raw_.flags |= PACE_CQ_ERROR_PAGE;
        return made;
    }
    /// Of a request whose answer's body goes on: the next piece of it. It is the last piece unless more() is called.
    static Completion piece(Token of, std::string_view bytes) noexcept {
        return Completion(of).write(bytes);
    }
    /// What handles the entry has failed: a connection is closed at once, a request gets a 500, an attempt has failed, a
    /// message becomes a dead letter. `why`, which may be null, is for the report of an attempt or a message.
    static Completion fail(Token of, const char *why = nullptr) noexcept {
        Completion made = with(of, PACE_CQ_FAIL, 0);
        made.raw_.message = why;
        return made;
    }
    /// Of a message: it is brought once more, with the next attempt's number.
    static Completion retry(Token of) noexcept { return with(of, PACE_CQ_RETRY, 0); }

    /// Of a connection: what is written to it first. Of a request: the body, or its next piece.
    Completion &write(std::string_view bytes) noexcept {
        raw_.bytes = bytes.data();
        raw_.size = bytes.size();
        return *this;
    }
    /// Of a request: the answer's body goes on, by a piece(). `length`: how long the whole body is, if that is known.
    Completion &more(std::uint64_t length = PACE_CQ_UNKNOWN) noexcept {
        raw_.length = length;
        return set(PACE_CQ_MORE);
    }
    /// Of a connection: closes it after what is queued. Of a request: no more requests follow on its connection.
    Completion &close() noexcept { return set(PACE_CQ_CLOSE); }
    /// Of a connection: after what is queued, tells the peer that no more is sent.
    Completion &finish() noexcept { return set(PACE_CQ_FINISH); }
    /// Of a connection: closes it at once. What is queued is lost.
    Completion &abort() noexcept { return set(PACE_CQ_ABORT); }
    /// Of a connection that was opened: it is not wanted. It is sent what is written, and closed.
    Completion &refuse() noexcept { return set(PACE_CQ_REFUSE); }
    /// Of a connection whose time was over: it goes on, and the time begins anew.
    Completion &keep() noexcept { return set(PACE_CQ_KEEP); }
    /// Of a connection: only writes and closes. The entry stays out, and is completed by another completion.
    Completion &hold() noexcept { return set(PACE_CQ_HOLD); }
    /// Of an attempt that has failed: another attempt may help, but not before this time has passed.
    Completion &after(Duration time) noexcept {
        raw_.after_ns = detail::nanos(time);
        return set(PACE_CQ_AFTER);
    }
    /// Of an attempt that has failed: no other attempt will help.
    Completion &permanent() noexcept { return set(PACE_CQ_PERMANENT); }
    /// Of an attempt that has failed: a number of the host's own, other than 0.
    Completion &error(std::int32_t number) noexcept { return raw_.error = number, *this; }
    /// Of a message that has failed: after how many attempts, of the host's own counting.
    Completion &attempts(std::uint32_t count) noexcept { return raw_.answer = count, *this; }

    /// What has become of it, once CompletionQueue::complete() has returned: see pace_cq_completion_t.
    Code result() const noexcept { return static_cast<Code>(raw_.result); }
    /// What has become of the bytes for a connection or a body.
    WriteStatus write_status() const noexcept { return static_cast<WriteStatus>(raw_.status); }
    /// How the task of an attempt stands now: TaskStatus::Retrying, or an end.
    TaskStatus task_status() const noexcept { return static_cast<TaskStatus>(raw_.status); }

    /// The struct of the C interface that this is.
    pace_cq_completion_t &native() noexcept { return raw_; }

private:
    static Completion with(Token of, std::uint32_t flags, std::uint32_t answer) noexcept {
        Completion made(of);
        made.raw_.flags = flags;
        made.raw_.answer = answer;
        return made;
    }
    Completion &set(std::uint32_t flag) noexcept { return raw_.flags |= flag, *this; }

    pace_cq_completion_t raw_{};
};
static_assert(sizeof(Completion) == sizeof(pace_cq_completion_t),
              "a batch of one is a batch of the other");

/// What a completion queue has counted: brought = completed + withdrawn + out. Fields as in pace_cq_stats_t.
struct CompletionStats : pace_cq_stats_t {
    CompletionStats() noexcept : pace_cq_stats_t{} { struct_size = sizeof(pace_cq_stats_t); }
};

// ---- the queue -------------------------------------------------------------------------------------

/// Where sources put what happens, and hosts take it as data. Whatever can have a callable can be attached to one with a
/// tag instead. A pool may have any number of queues, and several threads may wait at one: each entry goes to one of them.
///
/// What an entry lends stays where it is until it is completed, by whatever thread, and the source brings nothing more of
/// what must not overlap until then: a connection, a descriptor and a request have one entry out at a time.
///
/// When the queue goes it is closed, and what is out is withdrawn, as if its handler had failed: a request gets a 500, an
/// attempt has failed, a message becomes a dead letter; a connection and a descriptor go on.
class [[nodiscard]] CompletionQueue {
public:
    /// `lease`: an entry that is neither completed nor renewed for so long, at least 1 ms, is taken from whoever has it,
    /// and brought to another thread; but not a datagram, and not a request whose answer has begun. From then on nothing
    /// that it lends may be read: renew it in time. 0: never. `beside`: in a pool without threads, threads that wait here
    /// sleep beside the queue, and others do the pool's work.
    static Result<CompletionQueue> create(const Pool &pool, Duration lease = {}, bool beside = false) {
        if (!pool.core_) {
            return Error(Code::Invalid, "the pool was moved from");
        }
        pace_cq_config_t config{};
        (void)pace_cq_config_init(&config, sizeof config);
        config.lease_ns = detail::limit_nanos(lease);
        config.beside = beside;
        pace_cq_t *raw = nullptr;
        const pace_status_t status = pace_cq_new(pool.native(), &config, &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return CompletionQueue(pool.core_, raw);
    }

    CompletionQueue(CompletionQueue &&other) noexcept
        : core_(other.core_), raw_(std::exchange(other.raw_, nullptr)) {}
    CompletionQueue &operator=(CompletionQueue other) noexcept {
        std::swap(core_, other.core_);
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~CompletionQueue() { pace_cq_free(raw_); }

    /// Waits for up to `time` for entries: the part of `room` that was filled. Sources take turns; the entries of one
    /// source come in its order. In a pool without threads the caller is one of its threads meanwhile. Code::TimedOut:
    /// nothing came; Code::ShutDown: it was closed, or its pool has stopped and all sources have ended;
    /// Code::WouldDeadlock in a handler and on a thread of the pool, unless the time is 0.
    Result<span<Entry>> wait(span<Entry> room, Duration time) const {
        std::size_t got = 0;
        const pace_status_t status =
            pace_cq_wait(raw_, room.data(), room.size(), detail::nanos(time), &got);
        return made(status, [&] { return room.first(got); });
    }
    /// A descriptor, readable while wait() would not sleep, for a loop of the host's own. It is not to be read or closed.
    Result<int> fd() const {
        std::int32_t fd = -1;
        const pace_status_t status = pace_cq_fd(raw_, &fd);
        return made(status, [&] { return static_cast<int>(fd); });
    }

    /// Completes entries with nothing to say, as Completion(entry) does. Those that have nothing to complete are passed
    /// over, so that a batch can be given back as it came. Code::Stale: one of them was not out.
    Result<void> done(span<const Entry> entries) const {
        return detail::outcome(pace_cq_done(raw_, entries.data(), entries.size()));
    }
    Result<void> done(const Entry &entry) const { return done(span<const Entry>(&entry, 1)); }
    /// Completes entries, in order. Each says in result() what has become of it; the error is the first of these.
    /// Code::Stale: the entry is not out, or its connection or task has ended; Code::Full: there was no room for the
    /// bytes, none of which was taken; Code::Invalid: it does not fit the entry.
    Result<void> complete(span<Completion> completions) const {
        pace_cq_completion_t *first = completions.empty() ? nullptr : &completions[0].native();
        return detail::outcome(pace_cq_complete(raw_, first, completions.size()));
    }
    /// Completes one entry: the completion with what has become of it.
    Result<Completion> complete(const Completion &completion) const {
        Completion copy = completion;
        const pace_status_t status = pace_cq_complete(raw_, &copy.native(), 1);
        return made(status, [&] { return copy; });
    }
    /// The host still works on this entry: its lease begins anew, and so does the time of an attempt.
    Result<void> renew(Token of) const { return detail::outcome(pace_cq_renew(raw_, of.number)); }

    /// Asks for the next part of the body of a request that is read in parts: EntryKind::Body, or the body's end, comes
    /// when it is there. Code::Stale: there is none, or it was answered.
    Result<void> read(Token of) const { return detail::outcome(pace_cq_read(raw_, of.number)); }
    /// Has EntryKind::ClientGone brought once if the client of a request goes before it has its answer: it has reset or closed
    /// its connection, or sends no more, unless its listener allows peers to be half open. If it has gone, that comes now;
    /// of one that goes before the body of its request is whole EntryKind::BodyBroken tells instead.
    /// Code::Stale: no such request is out.
    Result<void> watch_client(Token of) const {
        return detail::outcome(pace_cq_watch_client(raw_, of.number));
    }
    /// Whether the client of a request has gone: see Response::is_client_gone(). Code::Stale: no such request is out.
    Result<bool> is_client_gone(Token of) const {
        bool gone = false;
        const pace_status_t status = pace_cq_is_client_gone(raw_, of.number, &gone);
        return status == PACE_OK ? Result<bool>(gone) : Result<bool>(Error::last(status));
    }
    /// Answers a request with 101: what happens to its connection comes to the queue of the attached server `to`,
    /// beginning with ConnEventKind::Opened; `wanted` are PACE_WANTED_ bits. It stays the HTTP server's: Http::conn()
    /// finds it, by the number that this gives. `headers` are lines, each ended by CR LF. The request is completed, unless
    /// an argument is Code::Invalid.
    Result<std::uint64_t> upgrade(Token of, const detail::Text &protocol, const Server &to,
                                  std::uint32_t wanted = PACE_WANTED_ALL,
                                  std::string_view headers = {}) const {
        pace_conn_id_t id{};
        const pace_status_t status = pace_cq_upgrade(raw_, of.number, protocol.c_str(), headers.data(),
                                                     headers.size(), to.native(), wanted, &id);
        return made(status, [&] { return id.id; });
    }
    /// As Conn::admit(), while an entry of the connection is out. The Admission may be kept longer.
    Result<Admission> admit(Token of) const {
        pace_admission_t *admission = nullptr;
        const pace_status_t status = pace_cq_admit(raw_, of.number, &admission);
        return made(status, [&] { return Admission(admission); });
    }
    /// Whether an attempt that is out should be given up: its task was cancelled, its time is over, or the worker pool
    /// stops.
    Result<bool> is_cancelled(Token of) const {
        bool cancelled = false;
        const pace_status_t status = pace_cq_is_cancelled(raw_, of.number, &cancelled);
        return made(status, [&] { return cancelled; });
    }

    /// What the queue has counted so far.
    Result<CompletionStats> stats() const {
        CompletionStats stats;
        const pace_status_t status = pace_cq_stats(raw_, &stats);
        return made(status, [&] { return stats; });
    }
    /// Nothing is brought any more, and every thread that waits gets Code::ShutDown. What is out can still be completed.
    Result<void> close() const { return detail::outcome(pace_cq_close(raw_)); }

    // What is attached. Each comes with its tag.

    /// As Pool::register_fd(): comes as EntryKind::Ready. An edge-triggered descriptor must have been read until EAGAIN
    /// before its entry is completed.
    Result<Handle> register_fd(int fd, std::uint64_t tag, const HandleOptions &options = {}) const {
        const pace_handle_options_t raw = options.native();
        pace_handle_t id{};
        const pace_status_t status = pace_cq_register(raw_, fd, &raw, tag, &id);
        return made(status, [&] { return Handle(core_, id); });
    }
    /// As Pool::every(): each tick comes as EntryKind::Tick. Ticks that come while one is out are skipped.
    Result<Handle> every(Duration period, std::uint64_t tag) const {
        if (auto refused = detail::refused_if_negative(period)) {
            return *std::move(refused);
        }
        pace_handle_t id{};
        const pace_status_t status = pace_cq_every(raw_, detail::nanos(period), tag, &id);
        return made(status, [&] { return Handle(core_, id); });
    }
    /// As Pool::after(): comes as EntryKind::Timer.
    Result<Timer> after(Duration delay, std::uint64_t tag) const {
        pace_timer_t id{};
        const pace_status_t status = pace_cq_after(raw_, detail::nanos(delay), tag, &id);
        return made(status, [&] { return Timer(core_, id); });
    }
    /// Posts a tag, which comes as EntryKind::Task. Code::Full: a lane of the pool has room for as many as lie there.
    Result<void> post(std::uint64_t tag) const {
        return detail::outcome(pace_cq_post(raw_, &tag, 1, nullptr));
    }
    /// Posts several tags, in order. The number accepted; an error only if none was.
    Result<std::size_t> post_batch(span<const std::uint64_t> tags) const {
        std::size_t accepted = 0;
        const pace_status_t status = pace_cq_post(raw_, tags.data(), tags.size(), &accepted);
        return made(accepted > 0 ? PACE_OK : status, [&] { return accepted; });
    }
    /// Wakes one thread that waits, or the next that would: `tag` comes as EntryKind::Task. But it is no task: it is in no
    /// counter of the pool, and no drain waits for it. Code::ShutDown.
    Result<void> wake(std::uint64_t tag) const { return detail::outcome(pace_cq_wake(raw_, tag)); }

    /// As Server::create(): what happens to its connections comes as EntryKind::Conn. `wanted` says with PACE_WANTED_ bits
    /// which of their events besides data; for the rest a connection does what it does without hooks. When the server has
    /// ended and all was taken, EntryKind::Ended comes. `on_exhausted` must be empty. A thread that has entries of it out
    /// completes them before it drains the server; the server's destructor does not wait.
    Result<Server> server(const ServerConfig &config, std::uint64_t tag,
                          std::uint32_t wanted = PACE_WANTED_ALL) const {
        if (config.on_exhausted) {
            return Error(Code::Invalid, "on_exhausted is set, but an attached server calls nothing");
        }
        detail::ServerOptions options(config);
        pace_server_t *server = nullptr;
        const pace_status_t status = pace_cq_server(raw_, &options.raw, wanted, tag, &server);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        options.listeners.keep();
        return Server(detail::shared_of<const detail::ServerCore>(core_, server), nullptr);
    }
    /// As Server::connect(), on a server that is attached to a queue: what happens to the connection comes there, with the
    /// server's tag. Code::Invalid: it is attached to none.
    Result<ConnRef> connect(const Server &server, const detail::Text &address,
                            std::uint32_t wanted = PACE_WANTED_ALL) const {
        pace_conn_id_t id{};
        const pace_status_t status = pace_cq_connect(server.native(), address.c_str(), wanted, &id);
        return made(status, [&] { return ConnRef(server.core_, id); });
    }
    /// As Udp::create(): datagrams come as EntryKind::Datagram, and EntryKind::Ended when it is closed and all was taken.
    /// Of what no thread has taken up to `max_waiting` bytes are kept, 128 for each datagram included; what comes beyond
    /// that is dropped, and counted.
    Result<Udp> udp(const UdpConfig &config, std::uint64_t tag,
                    std::uint64_t max_waiting = std::uint64_t{1} << 22) const {
        const pace_udp_options_t options = detail::to_native(config);
        pace_udp_t *udp = nullptr;
        const pace_status_t status = pace_cq_udp(raw_, &options, max_waiting, tag, &udp);
        return made(status, [&] { return Udp(core_, udp); });
    }

    /// As Http::route(): requests come as EntryKind::Request. All that is attached of one HTTP server goes to one queue.
    /// When the server has ended and all was taken, EntryKind::Ended comes once, with the tag that was attached first.
    Result<void> route(const Http &http, const detail::Text &method, const detail::Text &pattern,
                       std::uint64_t tag) const {
        return detail::outcome(
            pace_cq_route(raw_, http.native(), method.c_str(), pattern.c_str(), false, tag));
    }
    /// As route(), and a request comes as soon as its head is there, without its body, which read() asks for.
    Result<void> route_in_parts(const Http &http, const detail::Text &method,
                                const detail::Text &pattern, std::uint64_t tag) const {
        return detail::outcome(
            pace_cq_route(raw_, http.native(), method.c_str(), pattern.c_str(), true, tag));
    }
    /// As Http::fallback(): requests that no route takes come as EntryKind::Request, and RequestEntry::refusal() says
    /// which status they would get. Completion::error_page() with that status answers as the server does.
    Result<void> fallback(const Http &http, std::uint64_t tag) const {
        return detail::outcome(pace_cq_fallback(raw_, http.native(), tag));
    }
    /// As Http::on_end(): the end of each request comes as EntryKind::RequestEnded.
    Result<void> http_ends(const Http &http, std::uint64_t tag) const {
        return detail::outcome(pace_cq_http_ends(raw_, http.native(), tag));
    }

    /// Attempts of tasks that TaskType::submit_tagged() submits come as EntryKind::Attempt with the tags of their tasks, in
    /// the order of lanes. When the worker pool was shut down and all was taken, EntryKind::Ended comes with `tag`.
    Result<void> attach(const WorkerPool &workers, std::uint64_t tag) const {
        return detail::outcome(pace_cq_workers(raw_, workers.native(), tag));
    }
    /// The end of this task comes as EntryKind::TaskEnded, at once if it has ended. The task stays with its WorkTask.
    template <class T>
    Result<void> attach(const WorkTask<T> &task, std::uint64_t tag) const {
        if (!task.valid()) {
            return detail::gone("task");
        }
        return detail::outcome(pace_cq_task(raw_, task.core_->workers, task.id_, tag));
    }
    /// Messages of the mailbox, of a subscription or of a replay, come as EntryKind::Message: delivered when they are brought, dead letters when they are
    /// completed by Completion::fail(). When the subscription has ended and all was taken, EntryKind::Ended comes.
    Result<void> attach(const detail::HostMailbox &mailbox, std::uint64_t tag) const {
        return detail::outcome(pace_cq_mailbox(raw_, mailbox.raw_, tag));
    }
    /// Records of the log come as EntryKind::Record; LogConfig::cq_capacity says how many may wait, and is not to be 0.
    /// When the log was closed and all was taken, EntryKind::Ended comes.
    Result<void> attach(const Log &log, std::uint64_t tag) const {
        return detail::outcome(pace_cq_log(raw_, log.native(), tag));
    }
    /// As Key::request_async(): what becomes of the request comes as EntryKind::Reply, once. Nothing comes if this is
    /// refused. Hub::give_up() gives the request up.
    Result<Asked> request(const Key &key, std::string_view payload, Duration time, std::uint64_t tag,
                          const Publication &with = {}) const {
        const detail::RawPublication terms(with);
        Asked asked;
        const pace_status_t status =
            pace_cq_request(raw_, key.native(), &terms.raw, payload.data(), payload.size(),
                            detail::nanos(time), tag, &asked.raw);
        return made(status, [&] { return asked; });
    }
    /// As Signals::create(): each of these signals comes as EntryKind::Signal.
    Result<Signals> watch_signals(span<const std::int32_t> numbers, std::uint64_t tag) const {
        pace_signals_t *raw = nullptr;
        const pace_status_t status = pace_cq_signals(raw_, numbers.data(), numbers.size(), tag, &raw);
        return made(status, [&] { return Signals(raw, core_); });
    }

    /// For calls to paceline.h. Stays the CompletionQueue's. NULL, which every function refuses, if it was moved from.
    pace_cq_t *native() const noexcept { return raw_; }

private:
    CompletionQueue(detail::SharedCore core, pace_cq_t *raw) noexcept
        : core_(std::move(core)), raw_(raw) {}

    template <class Make>
    static auto made(pace_status_t status, Make make) -> Result<decltype(make())> {
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return make();
    }

    detail::SharedCore core_;
    pace_cq_t *raw_;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_CQ_HPP
