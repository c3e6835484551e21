// paceline/conn.hpp: connections, their handlers and their filters.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_CONN_HPP
#define PACELINE_CONN_HPP

#include "task.hpp"

#include <paceline/net.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

// ---- servers -------------------------------------------------------------------------------------

/// Why a connection has ended.
class Reason : public ReasonKind {
public:
    constexpr Reason(std::uint32_t kind, std::int32_t detail) noexcept
        : kind_(static_cast<Kind>(kind)), detail_(detail) {}

    constexpr Kind kind() const noexcept { return kind_; }
    /// Which time is over, if the kind is TimedOut.
    constexpr Timeout timeout() const noexcept { return static_cast<Timeout>(detail_); }
    /// errno, if the kind is Failed; else 0.
    constexpr std::int32_t os_error() const noexcept { return kind_ == Failed ? detail_ : 0; }

    friend constexpr bool operator==(Reason reason, Kind kind) noexcept { return reason.kind_ == kind; }
    friend constexpr bool operator!=(Reason reason, Kind kind) noexcept { return reason.kind_ != kind; }

private:
    Kind kind_;
    std::int32_t detail_;
};

namespace detail {

/// A server's C object, and its pool's, which it must not outlive. It may be another's: an HTTP
/// server's, which is kept as long.
struct ServerCore {
    ServerCore(SharedCore core, pace_server_t *raw, std::shared_ptr<const void> other = nullptr)
        : pool(std::move(core)), server(raw), owner(std::move(other)) {}
    ServerCore(const ServerCore &) = delete;
    ServerCore &operator=(const ServerCore &) = delete;
    ~ServerCore() {
        if (owner == nullptr) {
            pace_server_free(server);
        }
    }

    const SharedCore pool;
    pace_server_t *const server;
    const std::shared_ptr<const void> owner;
};

using SharedServer = std::shared_ptr<const ServerCore>;

inline Result<WriteStatus> wrote(pace_status_t status, std::uint32_t what) {
    return status == PACE_OK ? Result<WriteStatus>(static_cast<WriteStatus>(what))
                             : Result<WriteStatus>(Error::last(status));
}

/// Asks C for a text.
template <class Ask>
Result<std::string> text_of(Ask ask) {
    char text[PACE_ADDRESS_SIZE];
    const pace_status_t status = ask(text, sizeof text);
    return status == PACE_OK ? Result<std::string>(std::string(text))
                             : Result<std::string>(Error::last(status));
}

/// Pieces as C has them.
template <class Bytes>
std::string_view view_of(const Bytes &bytes) noexcept {
    static_assert(sizeof(*std::data(bytes)) == 1, "only bytes are written");
    return {reinterpret_cast<const char *>(std::data(bytes)), std::size(bytes)};
}

template <class Bytes>
std::string_view view_of(const std::shared_ptr<Bytes> &bytes) noexcept {
    return bytes ? view_of(*bytes) : std::string_view();
}

template <class Bytes, class Write>
Result<WriteStatus> write_owned(Bytes &&bytes, Write write) {
    static_assert(!std::is_lvalue_reference_v<Bytes>, "a buffer is given away: std::move() it");
    auto box = std::make_unique<Bytes>(std::move(bytes));
    const std::string_view view = view_of(*box);
    std::uint32_t what = 0;
    const pace_status_t status = write(view.data(), view.size(), box.get(), drop_box<Bytes>, &what);
    if (status == PACE_OK) {
        (void)box.release();
    } else {
        give_back<Bytes>(bytes, *box);
    }
    return wrote(status, what);
}

} // namespace detail

/// A connection by its name, for any thread and for later: it may have ended, and then says
/// Code::Stale. Copies are the same connection. It keeps the server's memory, but neither the
/// connection nor the server running.
class ConnRef {
public:
    ConnRef() noexcept = default;

    /// Writes, in order, without waiting: what the kernel takes is sent at once, the rest is queued.
    /// Code::Stale: the connection has ended, is to be closed, or its peer is gone. Code::Full: the
    /// queue would exceed its maximum, and none of it was taken. An answer whose request was not admitted
    /// (Conn::admit) comes too late if meanwhile the connection's idle time is over, its peer has finished, or the
    /// server drains.
    Result<WriteStatus> write(std::string_view bytes) const {
        std::uint32_t what = 0;
        const auto status = pace_server_conn_write(server(), id_, bytes.data(), bytes.size(), &what);
        return detail::wrote(status, what);
    }
    /// Writes all pieces as one.
    Result<WriteStatus> write_vectored(span<const std::string_view> pieces) const {
        const auto raw = detail::pieces_of(pieces);
        std::uint32_t what = 0;
        const auto status =
            pace_server_conn_write_vectored(server(), id_, raw.data(), raw.size(), &what);
        return detail::wrote(status, what);
    }
    /// Writes without copying, for large buffers: what has data() and size() of bytes, as a std::string
    /// or a std::vector, or a std::shared_ptr to one. It goes when it was sent or never will be, on
    /// whatever thread that is. One that is refused stays the caller's.
    template <class Bytes>
    Result<WriteStatus> write_owned(Bytes &&bytes) const {
        return detail::write_owned(std::forward<Bytes>(bytes), [this](auto... lent) {
            return pace_server_conn_write_owned(server(), id_, lent...);
        });
    }
    /// Writes, and has `written` called with the token when the kernel has all of it.
    Result<WriteStatus> write_tracked(std::string_view bytes, std::uint64_t token) const {
        std::uint32_t what = 0;
        const auto status =
            pace_server_conn_write_tracked(server(), id_, bytes.data(), bytes.size(), token, &what);
        return detail::wrote(status, what);
    }

    /// As Conn's methods of these names.
    Result<void> shutdown_write() const { return call(pace_server_conn_shutdown_write); }
    Result<void> close() const { return call(pace_server_conn_close); }
    Result<void> abort() const { return call(pace_server_conn_abort); }
    /// Of pause() and resume(), by all threads, the last call counts: whoever hands something over to a
    /// thread that resumes pauses before. A run that is on may still give `data` bytes once.
    Result<void> pause() const { return call(pace_server_conn_pause); }
    /// Ends a pause, also one that a hook, which runs now, is about to make. What was not consumed is shown
    /// again, and nothing is read before that.
    Result<void> resume() const { return call(pace_server_conn_resume); }
    /// Has `notified` called, soon. Several calls may become one.
    Result<void> notify() const { return call(pace_server_conn_notify); }

    Result<bool> is_open() const {
        bool open = false;
        const pace_status_t status = pace_server_conn_is_open(server(), id_, &open);
        return status == PACE_OK ? Result<bool>(open) : Result<bool>(Error::last(status));
    }
    /// Bytes that wait to be sent.
    Result<std::size_t> queued() const {
        std::size_t queued = 0;
        const pace_status_t status = pace_server_conn_queued(server(), id_, &queued);
        return status == PACE_OK ? Result<std::size_t>(queued)
                                 : Result<std::size_t>(Error::last(status));
    }
    /// The address of the peer as text, such as "192.0.2.1:49152".
    Result<std::string> peer() const {
        return detail::text_of([this](char *text, std::size_t size) {
            return pace_server_conn_peer(server(), id_, text, size);
        });
    }
    /// The address of this end as text.
    Result<std::string> local() const {
        return detail::text_of([this](char *text, std::size_t size) {
            return pace_server_conn_local(server(), id_, text, size);
        });
    }

    /// As a number, for tables. 0: an empty ConnRef.
    std::uint64_t id() const noexcept { return id_.id; }

    friend bool operator==(const ConnRef &one, const ConnRef &other) noexcept {
        return one.id_.id == other.id_.id && one.server_ == other.server_;
    }
    friend bool operator!=(const ConnRef &one, const ConnRef &other) noexcept { return !(one == other); }

private:
    friend class Conn;
    friend class Server;
    friend class Http;
    friend class CompletionQueue;

    ConnRef(detail::SharedServer server, pace_conn_id_t id) noexcept
        : server_(std::move(server)), id_(id) {}

    pace_server_t *server() const noexcept { return server_ ? server_->server : nullptr; }

    Result<void> call(pace_status_t (*f)(const pace_server_t *, pace_conn_id_t)) const {
        return server_ ? detail::outcome(f(server(), id_)) : detail::gone("connection");
    }

    detail::SharedServer server_;
    pace_conn_id_t id_{};
};

/// Where a filter puts bytes: good for that call only.
class FilterSink {
public:
    explicit FilterSink(pace_sink_t *raw) noexcept : raw_(raw) {}
    FilterSink(const FilterSink &) = delete;
    FilterSink &operator=(const FilterSink &) = delete;

    /// Puts bytes behind those that are there.
    void append(std::string_view bytes) const {
        (void)pace_sink_append(raw_, bytes.data(), bytes.size());
    }

private:
    pace_sink_t *raw_;
};

/// Whether plain bytes may still come.
enum class FilterRead : std::int32_t {
    /// Plain bytes may still come: the connection goes on.
    Open = PACE_FILTER_READ_OPEN,
    /// The peer has said that it sends no more; `finished` of the handler follows.
    Ended = PACE_FILTER_READ_ENDED,
    /// The bytes are not good: the connection ends.
    Failed = -1,
};

/// Turns the bytes of a connection, both ways, as TLS does: handlers, those of HTTP too, and whoever
/// writes see plain bytes. Its methods never run on two threads at once. They run under a lock of the
/// connection: they must neither block nor use the connection. One that throws ends it.
class Filter {
public:
    Filter() = default;
    Filter(const Filter &) = delete;
    Filter &operator=(const Filter &) = delete;
    virtual ~Filter() = default;

    /// These bytes have come: what the handler is to see goes to `plain`, and what the peer is to be
    /// answered to `wire`. It takes all of them, and keeps what it cannot turn yet.
    virtual FilterRead received(std::string_view bytes, FilterSink plain, FilterSink wire) = 0;
    /// These bytes were written: what is to leave goes to `wire`; what cannot be turned yet it keeps, and
    /// gives out in `received`. False: the connection fails.
    virtual bool written(std::string_view bytes, FilterSink wire) = 0;
    /// Nothing more will be written: its last words. Called once at most.
    virtual void finish(FilterSink) {}
    /// The socket has ended without FilterRead::Ended. False: peers do not end like that.
    virtual bool cut_off() { return true; }
};

/// A connection that was just accepted, for whoever makes its filter: good for that call only.
class AcceptedConn {
public:
    explicit AcceptedConn(pace_conn_t *raw) noexcept : raw_(raw) {}
    AcceptedConn(const AcceptedConn &) = delete;
    AcceptedConn &operator=(const AcceptedConn &) = delete;

    /// The other end, and this one.
    Result<std::string> peer() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_conn_peer(raw_, text, size); });
    }
    Result<std::string> local() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_conn_local(raw_, text, size); });
    }

private:
    pace_conn_t *raw_;
};

/// Makes the filter of a connection. nullptr ends it.
using FilterFactory = Function<std::unique_ptr<Filter>(const AcceptedConn &)>;

namespace detail {

struct FilterBox {
    static constexpr std::int32_t failed = -1;

    static Filter &of(void *filter) noexcept { return *static_cast<Filter *>(filter); }

    static std::int32_t make(void *data, pace_conn_t *raw, void **filter) noexcept {
        const auto &factory = *static_cast<const FilterFactory *>(data);
        guard([&] { *filter = factory(AcceptedConn(raw)).release(); });
        return *filter == nullptr ? failed : 0;
    }
    static std::int32_t received(void *filter, const void *bytes, std::size_t size, pace_sink_t *plain,
                                 pace_sink_t *wire) noexcept {
        FilterRead inflow = FilterRead::Failed;
        guard([&] {
            inflow = of(filter).received({static_cast<const char *>(bytes), size}, FilterSink(plain),
                                         FilterSink(wire));
        });
        return static_cast<std::int32_t>(inflow);
    }
    static std::int32_t written(void *filter, const void *bytes, std::size_t size,
                                pace_sink_t *wire) noexcept {
        bool good = false;
        guard([&] {
            good = of(filter).written({static_cast<const char *>(bytes), size}, FilterSink(wire));
        });
        return good ? 0 : failed;
    }
    static void finish(void *filter, pace_sink_t *wire) noexcept {
        guard([&] { of(filter).finish(FilterSink(wire)); });
    }
    static std::int32_t cut_off(void *filter) noexcept {
        bool good = false;
        guard([&] { good = of(filter).cut_off(); });
        return good ? 0 : failed;
    }
    static void free(void *filter) noexcept { delete static_cast<Filter *>(filter); }

    /// The factory is C's when the server has started.
    static pace_filter_hooks_t hooks(FilterFactory *factory) noexcept {
        pace_filter_hooks_t hooks{};
        (void)pace_filter_hooks_init(&hooks, sizeof hooks);
        hooks.make = make;
        hooks.received = received;
        hooks.written = written;
        hooks.finish = finish;
        hooks.cut_off = cut_off;
        hooks.free = free;
        hooks.user_data = factory;
        hooks.drop = drop_box<FilterFactory>;
        return hooks;
    }
};

} // namespace detail

/// A request in work. When it goes unanswered the request counts as aborted.
class [[nodiscard]] Admission {
public:
    Admission(Admission &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Admission &operator=(Admission other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~Admission() { pace_admission_free(raw_); }

    /// The request was answered, by what has been written before.
    void answered() noexcept {
        if (raw_ != nullptr) {
            (void)pace_admission_answered(std::exchange(raw_, nullptr));
        }
    }

private:
    friend class Conn;
    friend class CompletionQueue;

    explicit Admission(pace_admission_t *raw) noexcept : raw_(raw) {}

    pace_admission_t *raw_;
};

namespace detail {
struct ServerState;
struct ConnBox;
} // namespace detail

/// A connection inside one of its hooks: good for that call only. What is written by it is gathered,
/// and sent when the hook returns, at 64 KiB, or by flush().
class Conn {
public:
    Conn(const Conn &) = delete;
    Conn &operator=(const Conn &) = delete;

    /// Writes bytes to the connection. Errors are those of ConnRef::write().
    Result<WriteStatus> write(std::string_view bytes) {
        std::uint32_t what = 0;
        const auto status = pace_conn_write(raw_, bytes.data(), bytes.size(), &what);
        return detail::wrote(status, what);
    }
    Result<WriteStatus> write_vectored(span<const std::string_view> pieces) {
        const auto raw = detail::pieces_of(pieces);
        std::uint32_t what = 0;
        const auto status = pace_conn_write_vectored(raw_, raw.data(), raw.size(), &what);
        return detail::wrote(status, what);
    }
    template <class Bytes>
    Result<WriteStatus> write_owned(Bytes &&bytes) {
        return detail::write_owned(std::forward<Bytes>(bytes), [this](auto... lent) {
            return pace_conn_write_owned(raw_, lent...);
        });
    }
    Result<WriteStatus> write_tracked(std::string_view bytes, std::uint64_t token) {
        std::uint32_t what = 0;
        const auto status = pace_conn_write_tracked(raw_, bytes.data(), bytes.size(), token, &what);
        return detail::wrote(status, what);
    }
    /// Sends what was gathered now.
    void flush() { (void)pace_conn_flush(raw_); }

    /// After what is queued, tells the peer that no more is sent. Reading goes on.
    void shutdown_write() { (void)pace_conn_shutdown_write(raw_); }
    /// Closes after what is queued has been sent. Nothing more is read.
    void close() { (void)pace_conn_close(raw_); }
    /// Closes at once. What is queued is lost.
    void abort() { (void)pace_conn_abort(raw_); }
    /// Reads no more before resume(). What the peer has sent is not lost meanwhile, and that it has ended
    /// is seen behind that, or by a write that fails. A resume that comes while the hook runs ends this
    /// pause, whichever of the two comes first.
    void pause() { (void)pace_conn_pause(raw_); }
    /// Ends a pause, when the hook has returned. What was not consumed is shown again, and nothing is read
    /// before that. A resume that comes before `data` is called does not end a pause that `data` makes.
    void resume() { (void)pace_conn_resume(raw_); }
    /// Has `timeout` called with Timeout::Deadline after `time`, in place of what was set before;
    /// `forever`: not at all.
    void set_deadline(Duration time) { (void)pace_conn_set_deadline(raw_, detail::nanos(time)); }

    /// Begins a request that is answered later, by any thread. It counts as in work until its Admission is answered
    /// or gone: meanwhile its connection is not idle, and neither a drain nor a peer that has finished closes it.
    /// Code::Full: there are as many as may be, and the busy message was written instead.
    Result<Admission> admit() {
        pace_admission_t *admission = nullptr;
        const pace_status_t status = pace_conn_admit(raw_, &admission);
        return status == PACE_OK ? Result<Admission>(Admission(admission))
                                 : Result<Admission>(Error::last(status));
    }

    /// For other threads, and for later.
    ConnRef ref() const;

    /// The address of the peer as text, such as "192.0.2.1:49152".
    Result<std::string> peer() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_conn_peer(raw_, text, size); });
    }
    /// This end. Code::Stale in `close`.
    Result<std::string> local() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_conn_local(raw_, text, size); });
    }
    /// Whether the connection was made by Server::connect(), and not accepted.
    bool is_outgoing() const noexcept { return ask(pace_conn_is_outgoing); }
    bool is_draining() const noexcept { return ask(pace_conn_is_draining); }
    /// Bytes that wait to be sent.
    std::size_t queued() const noexcept {
        std::size_t queued = 0;
        (void)pace_conn_queued(raw_, &queued);
        return queued;
    }

    /// The connection as functions of the C interface take it.
    pace_conn_t *native() const noexcept { return raw_; }

private:
    friend struct detail::ConnBox;

    Conn(pace_conn_t *raw, const detail::ServerState &state) noexcept : raw_(raw), state_(state) {}

    bool ask(pace_status_t (*question)(const pace_conn_t *, bool *)) const noexcept {
        bool answer = false;
        (void)question(raw_, &answer);
        return answer;
    }

    pace_conn_t *raw_;
    const detail::ServerState &state_;
};

/// What a connection does. Hooks of one connection never run on two threads at once; connections run
/// in parallel. They run on the pool's threads and should not block (or call promote_new_leader()
/// before). One that throws ends its connection, with Reason::Panicked. It is deleted after `close`.
///
/// How to answer later: a hook that cannot answer at once admits the request (Conn::admit), keeps the Admission and a
/// ConnRef (Conn::ref), and returns. Any thread then writes the answer by the ConnRef, and calls
/// Admission::answered(). While a request is in work its connection is not idle, it is not closed when its peer
/// finishes, and a drain waits for it. Without the Admission the connection may be closed before the answer comes:
/// when its idle_timeout is over, its peer has finished, or the server drains; the write then gives Code::Stale. To take
/// a ConnRef alone admits nothing: it may be kept to push to the connection at any time, and nobody could tell when
/// such a request had ended.
class ConnHandler {
public:
    ConnHandler() = default;
    ConnHandler(const ConnHandler &) = delete;
    ConnHandler &operator=(const ConnHandler &) = delete;
    virtual ~ConnHandler() = default;

    /// Called first, when the connection is made: returns whether it is wanted.
    virtual Accept open(Conn &) { return Accept::Yes; }
    /// Bytes have arrived: how many of them were consumed, from the front. The rest is shown again,
    /// followed by more.
    virtual std::size_t data(Conn &conn, std::string_view bytes) = 0;
    /// The peer sends no more; it may still read. Afterwards the connection is closed by itself, when its admitted
    /// requests have ended and everything is sent, unless Listen::allow_half_open is set.
    virtual void finished(Conn &) {}
    /// The output was above its high mark, and has fallen to the low mark.
    virtual void writable(Conn &) {}
    /// Tracked bytes are with the kernel.
    virtual void written(Conn &, std::uint64_t) {}
    virtual TimeoutAction timeout(Conn &, Timeout) { return TimeoutAction::Close; }
    /// ConnRef::notify() was called, once or more.
    virtual void notified(Conn &) {}
    /// The server drains: this connection is closed when nothing is left to do for it.
    virtual void draining(Conn &) {}
    /// The socket failed; `close` follows.
    virtual void error(Conn &, std::int32_t) {}
    /// Called exactly once, when the connection has ended, with the reason.
    virtual void close(Conn &, Reason) {}
};

/// Makes the handler of a connection that has come.
using ConnFactory = Function<std::unique_ptr<ConnHandler>(Conn &)>;

namespace detail {

/// What all connections of a server share. The library deletes it after the last of them.
struct ServerState {
    ServerState() = default;
    ServerState(ConnFactory f, Function<void(const char *)> hook)
        : factory(std::move(f)), on_exhausted(std::move(hook)) {}

    SharedServer core() const {
        // Hooks may run before pace_server_new() has returned: create() holds the lock until the
        // server is known.
        std::lock_guard<std::mutex> lock(mutex);
        return known.lock();
    }

    const ConnFactory factory{};
    const Function<void(const char *)> on_exhausted{};
    mutable std::mutex mutex;
    std::weak_ptr<const ServerCore> known;

    static void exhausted(void *data, const char *message) noexcept {
        guard([&] { static_cast<ServerState *>(data)->on_exhausted(message); });
    }
};

/// One connection's handler: what its hooks get as user_data.
struct ConnBox {
    std::unique_ptr<ConnHandler> own;
    const ServerState &state;

    static ConnBox &of(void *data) noexcept { return *static_cast<ConnBox *>(data); }

    /// The first hook of a connection that has come, with the server's state.
    static std::int32_t open_new(void *data, pace_conn_t *raw) noexcept {
        const auto &state = *static_cast<ServerState *>(data);
        // Should this fail, `close` finds nothing to delete.
        (void)pace_conn_set_user_data(raw, nullptr);
        std::int32_t verdict = -1;
        guard_or_fail([&] {
            Conn conn(raw, state);
            auto handler = state.factory(conn);
            if (handler == nullptr) {
                verdict = PACE_ACCEPT_REFUSE;
                return;
            }
            auto *box = new ConnBox{std::move(handler), state};
            (void)pace_conn_set_user_data(raw, box);
            verdict = static_cast<std::int32_t>(box->own->open(conn));
        });
        return verdict;
    }

    /// The same of one that was made.
    static std::int32_t open(void *data, pace_conn_t *raw) noexcept {
        std::int32_t verdict = -1;
        run(data, raw, [&](ConnHandler &handler, Conn &conn) {
            verdict = static_cast<std::int32_t>(handler.open(conn));
        });
        return verdict;
    }

    static std::size_t data(void *data, pace_conn_t *raw, const void *bytes, std::size_t size) noexcept {
        // More than there was: a failure.
        std::size_t consumed = SIZE_MAX;
        run(data, raw, [&](ConnHandler &handler, Conn &conn) {
            consumed = handler.data(conn, {static_cast<const char *>(bytes), size});
        });
        return consumed;
    }

    template <void (ConnHandler::*hook)(Conn &)>
    static void tell(void *data, pace_conn_t *raw) noexcept {
        run_or_fail(data, raw, [](ConnHandler &handler, Conn &conn) { (handler.*hook)(conn); });
    }

    static void written(void *data, pace_conn_t *raw, std::uint64_t token) noexcept {
        run_or_fail(data, raw, [=](ConnHandler &handler, Conn &conn) { handler.written(conn, token); });
    }

    static std::int32_t timeout(void *data, pace_conn_t *raw, std::uint32_t kind) noexcept {
        std::int32_t patience = -1;
        run(data, raw, [&](ConnHandler &handler, Conn &conn) {
            patience = static_cast<std::int32_t>(handler.timeout(conn, static_cast<Timeout>(kind)));
        });
        return patience;
    }

    static void error(void *data, pace_conn_t *raw, std::int32_t os_error) noexcept {
        run_or_fail(data, raw, [=](ConnHandler &handler, Conn &conn) { handler.error(conn, os_error); });
    }

    static void close(void *data, pace_conn_t *raw, std::uint32_t reason, std::int32_t detail) noexcept {
        if (data != nullptr) {
            // Nothing of the library's tells of its failure.
            ConnBox &box = of(data);
            const bool closed = guard([&] {
                Conn conn(raw, box.state);
                box.own->close(conn, Reason(reason, detail));
            });
            if (!closed) {
                (void)pace_conn_fail(raw);
            }
        }
    }

    static void close_new(void *data, pace_conn_t *raw, std::uint32_t reason,
                          std::int32_t detail) noexcept {
        close(data, raw, reason, detail);
        delete static_cast<ConnBox *>(data);
    }

    static pace_conn_hooks_t hooks() noexcept {
        pace_conn_hooks_t hooks{};
        (void)pace_conn_hooks_init(&hooks, sizeof hooks);
        hooks.open = open;
        hooks.data = data;
        hooks.finished = tell<&ConnHandler::finished>;
        hooks.writable = tell<&ConnHandler::writable>;
        hooks.written = written;
        hooks.timeout = timeout;
        hooks.notified = tell<&ConnHandler::notified>;
        hooks.draining = tell<&ConnHandler::draining>;
        hooks.error = error;
        hooks.close = close;
        return hooks;
    }

private:
    template <class Hook>
    static bool run(void *data, pace_conn_t *raw, Hook hook) noexcept {
        ConnBox &box = of(data);
        return guard_or_fail([&] {
            Conn conn(raw, box.state);
            hook(*box.own, conn);
        });
    }

    template <class Hook>
    static void run_or_fail(void *data, pace_conn_t *raw, Hook hook) noexcept {
        if (!run(data, raw, hook)) {
            (void)pace_conn_fail(raw);
        }
    }
};

} // namespace detail

inline ConnRef Conn::ref() const {
    pace_conn_id_t id{};
    (void)pace_conn_id(raw_, &id);
    return ConnRef(state_.core(), id);
}

} // inline namespace
} // namespace paceline

#endif // PACELINE_CONN_HPP
