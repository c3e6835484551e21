// paceline/udp.hpp: datagram sockets.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_UDP_HPP
#define PACELINE_UDP_HPP

#include "conn.hpp"
#include "pool.hpp"

#include <paceline/udp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

// ---- datagrams -----------------------------------------------------------------------------------

/// An IP address and a port.
struct Ip : pace_ip_t {
    Ip() noexcept : pace_ip_t{} {}
    explicit Ip(const pace_ip_t &raw) noexcept : pace_ip_t(raw) {}

    /// "127.0.0.1:80", "[::1]:80" or "*:80". Code::Invalid for text that is none.
    static Result<Ip> read(const detail::Text &text) {
        Ip ip;
        const pace_status_t status = pace_ip_read(text.c_str(), &ip);
        return status == PACE_OK ? Result<Ip>(ip) : Result<Ip>(Error::last(status));
    }
    /// The address as text, as read() takes it.
    Result<std::string> text() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_ip_text(this, text, size); });
    }
};

/// A datagram that was copied: see Datagram::to_owned().
struct OwnedDatagram {
    std::string bytes{};
    /// How long it was: more than `bytes` has if its end is lost.
    std::size_t length{};
    /// The address of the sender of the datagram.
    Ip peer{};
};

/// A datagram that has arrived, or is to be sent. It is a pace_datagram_t. One that has arrived is lent to the handler
/// until that returns, and cannot be copied: to_owned() gives a copy that may be kept.
struct Datagram : pace_datagram_t {
    Datagram() noexcept : pace_datagram_t{} {}
    /// To be sent: the bytes stay the caller's.
    Datagram(std::string_view payload, const Ip &to) noexcept
        : pace_datagram_t{payload.data(), payload.size(), 0, to} {}
    Datagram(Datagram &&) noexcept = default;
    Datagram &operator=(Datagram &&) noexcept = default;

    std::string_view text() const noexcept { return {static_cast<const char *>(bytes), size}; }
    /// Whether its end is lost.
    bool is_truncated() const noexcept { return length > size; }
    /// Who has sent it, or whom it is for.
    Ip peer_ip() const noexcept { return Ip(peer); }
    /// A copy with bytes of its own.
    OwnedDatagram to_owned() const { return {std::string(text()), length, peer_ip()}; }
};
static_assert(sizeof(Datagram) == sizeof(pace_datagram_t), "a batch of one is a batch of the other");

/// A socket's books. Fields as in pace_udp_stats_t.
struct UdpStats : pace_udp_stats_t {
    UdpStats() noexcept : pace_udp_stats_t{} { struct_size = sizeof(pace_udp_stats_t); }
};

namespace detail {

/// A socket of C. It is the Udp's, and UdpRefs may outlive it.
class UdpCore {
public:
    /// It is there, or could not be made: NULL.
    void open(pace_udp_t *raw) {
        const std::unique_lock<std::shared_mutex> lock(mutex_);
        raw_ = raw;
        is_known_ = true;
    }
    /// The Udp goes, which frees what it had. Calls that others are in have returned, and there will be no more.
    pace_udp_t *take() {
        const std::unique_lock<std::shared_mutex> lock(mutex_);
        return std::exchange(raw_, nullptr);
    }
    pace_udp_t *raw() const {
        const std::shared_lock<std::shared_mutex> lock(mutex_);
        return raw_;
    }
    /// Calls `f` with the socket, which is not freed meanwhile.
    template <class F>
    auto with(F f) const -> decltype(f(nullptr)) {
        // A hook may run before pace_udp_new() has returned; and on its thread, if it fails.
        while (!is_known_ && std::this_thread::get_id() != opener_) {
            std::this_thread::yield();
        }
        const std::shared_lock<std::shared_mutex> lock(mutex_);
        return raw_ == nullptr ? decltype(f(nullptr))(gone("datagram socket")) : f(raw_);
    }

private:
    const std::thread::id opener_ = std::this_thread::get_id();
    std::atomic<bool> is_known_{false};
    mutable std::shared_mutex mutex_;
    pace_udp_t *raw_ = nullptr;
};

using SharedUdp = std::shared_ptr<UdpCore>;

struct UdpBox;

} // namespace detail

/// A datagram socket that is somebody's. Any thread, and for later: when the Udp is gone it answers Code::Stale.
class UdpRef {
public:
    /// To the peer that the socket is connected to, without waiting and without a queue. Code::Full: the
    /// kernel has no room, and it is not sent. Code::Os names the reason, Code::Stale: it is closed.
    Result<void> send(std::string_view bytes) const {
        return with([=](pace_udp_t *udp) {
            return detail::outcome(pace_udp_send(udp, bytes.data(), bytes.size()));
        });
    }
    /// Sends a datagram to this peer. Errors are those of send().
    Result<void> send_to(std::string_view bytes, const Ip &to) const {
        return with([&](pace_udp_t *udp) {
            return detail::outcome(pace_udp_send_to(udp, bytes.data(), bytes.size(), &to));
        });
    }
    /// Several, in order: how many the kernel has taken; an error only if it has not taken the first.
    Result<std::size_t> send_batch(span<const Datagram> datagrams) const {
        return ask<std::size_t>([=](pace_udp_t *udp, std::size_t *sent) {
            return pace_udp_send_batch(udp, datagrams.data(), datagrams.size(), sent);
        });
    }

    /// Where it receives, with the port that it got.
    Result<std::string> address() const {
        return with([](pace_udp_t *udp) {
            return detail::text_of(
                [udp](char *text, std::size_t size) { return pace_udp_address(udp, text, size); });
        });
    }
    /// Receives what is sent to this group, on the interface of this index; 0: the system's choice.
    Result<void> join_multicast(const detail::Text &group, std::uint32_t interface = 0) const {
        return with([&](pace_udp_t *udp) {
            return detail::outcome(pace_udp_join_multicast(udp, group.c_str(), interface));
        });
    }
    Result<void> leave_multicast(const detail::Text &group, std::uint32_t interface = 0) const {
        return with([&](pace_udp_t *udp) {
            return detail::outcome(pace_udp_leave_multicast(udp, group.c_str(), interface));
        });
    }
    /// From here on nothing is sent, and what has arrived is dropped.
    Result<void> close() const {
        return with([](pace_udp_t *udp) { return detail::outcome(pace_udp_close(udp)); });
    }
    Result<bool> is_open() const { return ask<bool>(pace_udp_is_open); }
    /// Handles what has arrived, and closes: whether everything was handled in this time.
    Result<bool> drain(Duration time) const {
        return ask<bool>([time](pace_udp_t *udp, bool *drained) {
            return pace_udp_drain(udp, detail::nanos(time), drained);
        });
    }
    Result<UdpStats> stats() const { return ask<UdpStats>(pace_udp_stats); }

    /// The socket as functions of the C interface take it. NULL if the Udp is gone.
    pace_udp_t *native() const noexcept { return core_ ? core_->raw() : nullptr; }

protected:
    friend struct detail::UdpBox;
    explicit UdpRef(detail::SharedUdp core) noexcept : core_(std::move(core)) {}

    template <class F>
    auto with(F f) const -> decltype(f(nullptr)) {
        return core_ ? core_->with(f) : decltype(f(nullptr))(detail::gone("datagram socket"));
    }
    template <class T, class F>
    Result<T> ask(F f) const {
        return with([f](pace_udp_t *udp) {
            T answer{};
            const pace_status_t status = f(udp, &answer);
            return status == PACE_OK ? Result<T>(answer) : Result<T>(Error::last(status));
        });
    }

    detail::SharedUdp core_;
};

/// What a datagram socket does. Its hooks never run on two threads at once, and should not block. It is
/// deleted after `close`.
class UdpHandler {
public:
    UdpHandler() = default;
    UdpHandler(const UdpHandler &) = delete;
    UdpHandler &operator=(const UdpHandler &) = delete;
    virtual ~UdpHandler() = default;

    /// Datagrams have arrived, at least one; they are gone when this returns. To answer later, by a task, keep a copy of
    /// `udp` and Datagram::to_owned().
    virtual void data(UdpRef udp, span<const Datagram> datagrams) = 0;
    /// An error came instead. The socket goes on.
    virtual void error(UdpRef, std::int32_t) {}
    /// Called exactly once, when the socket has been closed, with the reason.
    virtual void close(UdpRef, Reason) {}
};

/// Settings of a datagram socket: at least one of fd, bind and connect. What is not set is the library's
/// choice; ranges and defaults are those of pace_udp_options_t.
struct UdpConfig {
    /// Receives here. Port 0 is a free port, which Udp::address() tells.
    std::string bind{};
    /// Sends to this peer, and receives from nobody else.
    std::string connect{};
    /// A socket that is bound already. It stays the caller's.
    std::optional<int> fd{};
    std::optional<std::uint32_t> batch{}, max_datagram{}, multicast_ttl{};
    std::optional<std::uint64_t> send_buffer{}, receive_buffer{};
    bool v6_only{}, reuse_port{}, broadcast{};
    std::optional<bool> multicast_loop{};
};

namespace detail {

/// The texts stay the config's.
inline pace_udp_options_t to_native(const UdpConfig &config) noexcept {
    pace_udp_options_t raw{};
    (void)pace_udp_options_init(&raw, sizeof raw);
    const auto set = [](auto &field, const auto &value) {
        if (value) {
            field = *value;
        }
    };
    raw.bind = c_text_if_any(config.bind);
    raw.connect = c_text_if_any(config.connect);
    set(raw.fd, config.fd);
    set(raw.batch, config.batch);
    set(raw.max_datagram, config.max_datagram);
    set(raw.multicast_ttl, config.multicast_ttl);
    set(raw.send_buffer, config.send_buffer);
    set(raw.receive_buffer, config.receive_buffer);
    raw.v6_only = config.v6_only;
    raw.reuse_port = config.reuse_port;
    raw.broadcast = config.broadcast;
    set(raw.multicast_loop, config.multicast_loop);
    return raw;
}

struct UdpBox {
    std::unique_ptr<UdpHandler> handler;
    SharedUdp core;
    /// Whether the library has dropped it.
    std::shared_ptr<std::atomic<bool>> dropped;

    static void data(void *box, pace_udp_t *, const pace_datagram_t *datagrams,
                     std::size_t count) noexcept {
        const span<const Datagram> all(static_cast<const Datagram *>(datagrams), count);
        guard([&] { of(box).handler->data(UdpRef(of(box).core), all); });
    }
    static void error(void *box, pace_udp_t *, std::int32_t os_error) noexcept {
        guard([&] { of(box).handler->error(UdpRef(of(box).core), os_error); });
    }
    static void close(void *box, pace_udp_t *, std::uint32_t reason) noexcept {
        guard([&] { of(box).handler->close(UdpRef(of(box).core), Reason(reason, 0)); });
    }
    static void drop(void *data) noexcept {
        const std::unique_ptr<UdpBox> box(static_cast<UdpBox *>(data));
        *box->dropped = true;
    }

private:
    static UdpBox &of(void *box) noexcept { return *static_cast<UdpBox *>(box); }
};

} // namespace detail

/// A UDP socket on a pool. Nothing is queued on the way out. When it goes it is closed; the destructor returns when
/// `close` of its handler has returned, on a thread of the pool, and the handler has been deleted. Inside a handler, on
/// a thread of the pool, and after close(), it does not wait.
class [[nodiscard]] Udp : public UdpRef {
public:
    /// Code::Invalid names the setting, its value and its bounds, Code::Os the address that could not be
    /// bound or connected to.
    static Result<Udp> create(const Pool &pool, const UdpConfig &config,
                              std::unique_ptr<UdpHandler> handler) {
        if (handler == nullptr) {
            return Error(Code::Invalid, "handler is nullptr");
        }
        const pace_udp_options_t options = detail::to_native(config);
        const auto dropped = detail::shared_of<std::atomic<bool>>(false);
        auto core = detail::shared_of<detail::UdpCore>();
        auto *box = new detail::UdpBox{std::move(handler), core, dropped};
        pace_udp_hooks_t hooks{};
        (void)pace_udp_hooks_init(&hooks, sizeof hooks);
        hooks.data = detail::UdpBox::data;
        hooks.error = detail::UdpBox::error;
        hooks.close = detail::UdpBox::close;
        hooks.user_data = box;
        hooks.drop = detail::UdpBox::drop;
        pace_udp_t *udp = nullptr;
        detail::hands_over();
        const pace_status_t status = pace_udp_new(pool.native(), &options, &hooks, &udp);
        core->open(udp);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            if (!*dropped) {
                delete box;
            }
            return error;
        }
        return Udp(pool.core_, std::move(core));
    }

    Udp(Udp &&other) noexcept : UdpRef(std::move(other.core_)), pool_(std::move(other.pool_)) {}
    Udp &operator=(Udp other) noexcept {
        std::swap(core_, other.core_);
        std::swap(pool_, other.pool_);
        return *this;
    }
    ~Udp() {
        const detail::Waits waits;
        pace_udp_free(core_ ? core_->take() : nullptr);
    }

    /// Waits until `close` of its handler has returned. Code::WouldDeadlock on a pool's thread.
    Result<void> wait() const {
        const detail::Waits waits;
        return detail::outcome(pace_udp_wait(native()));
    }

private:
    friend class CompletionQueue;

    Udp(detail::SharedCore pool, detail::SharedUdp core) noexcept
        : UdpRef(std::move(core)), pool_(std::move(pool)) {}
    /// One whose datagrams a completion queue brings.
    Udp(detail::SharedCore pool, pace_udp_t *raw)
        : UdpRef(detail::shared_of<detail::UdpCore>()), pool_(std::move(pool)) {
        core_->open(raw);
    }

    detail::SharedCore pool_;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_UDP_HPP
