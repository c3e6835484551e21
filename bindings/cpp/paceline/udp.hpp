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
#include <string>
#include <string_view>
#include <utility>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

// ---- datagrams -----------------------------------------------------------------------------------

/// An IP address and a port.
struct Ip : pace_ip_t {
    Ip() noexcept : pace_ip_t{} {}
    explicit Ip(const pace_ip_t &raw) noexcept : pace_ip_t(raw) {}

    /// "127.0.0.1:80", "[::1]:80" or "*:80". Code::Invalid for text that is none.
    static Result<Ip> read(const std::string &text) {
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

/// A datagram that has arrived, or is to be sent. It is a pace_datagram_t.
struct Datagram : pace_datagram_t {
    Datagram() noexcept : pace_datagram_t{} {}
    /// To be sent: the bytes stay the caller's.
    Datagram(std::string_view payload, const Ip &to) noexcept
        : pace_datagram_t{payload.data(), payload.size(), 0, to} {}

    std::string_view text() const noexcept { return {static_cast<const char *>(bytes), size}; }
    /// Whether its end is lost.
    bool is_truncated() const noexcept { return length > size; }
    /// Who has sent it, or whom it is for.
    Ip peer_ip() const noexcept { return Ip(peer); }
};
static_assert(sizeof(Datagram) == sizeof(pace_datagram_t), "a batch of one is a batch of the other");

/// A socket's books. Fields as in pace_udp_stats_t.
struct UdpStats : pace_udp_stats_t {
    UdpStats() noexcept : pace_udp_stats_t{} { struct_size = sizeof(pace_udp_stats_t); }
};

/// A datagram socket that is somebody's. Any thread.
class UdpRef {
public:
    explicit UdpRef(pace_udp_t *raw) noexcept : raw_(raw) {}

    /// To the peer that the socket is connected to, without waiting and without a queue. Code::Full: the
    /// kernel has no room, and it is not sent. Code::Os names the reason, Code::Stale: it is closed.
    Result<void> send(std::string_view bytes) const {
        return detail::outcome(pace_udp_send(raw_, bytes.data(), bytes.size()));
    }
    /// Sends a datagram to this peer. Errors are those of send().
    Result<void> send_to(std::string_view bytes, const Ip &to) const {
        return detail::outcome(pace_udp_send_to(raw_, bytes.data(), bytes.size(), &to));
    }
    /// Several, in order: how many the kernel has taken; an error only if it has not taken the first.
    Result<std::size_t> send_batch(span<const Datagram> datagrams) const {
        std::size_t sent = 0;
        const pace_status_t status =
            pace_udp_send_batch(raw_, datagrams.data(), datagrams.size(), &sent);
        return status == PACE_OK ? Result<std::size_t>(sent) : Result<std::size_t>(Error::last(status));
    }

    /// Where it receives, with the port that it got.
    Result<std::string> address() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_udp_address(raw_, text, size); });
    }
    /// Receives what is sent to this group, on the interface of this index; 0: the system's choice.
    Result<void> join_multicast(const std::string &group, std::uint32_t interface = 0) const {
        return detail::outcome(pace_udp_join_multicast(raw_, group.c_str(), interface));
    }
    Result<void> leave_multicast(const std::string &group, std::uint32_t interface = 0) const {
        return detail::outcome(pace_udp_leave_multicast(raw_, group.c_str(), interface));
    }
    /// From here on nothing is sent, and what has arrived is dropped.
    Result<void> close() const { return detail::outcome(pace_udp_close(raw_)); }
    Result<bool> is_open() const {
        bool open = false;
        const pace_status_t status = pace_udp_is_open(raw_, &open);
        return status == PACE_OK ? Result<bool>(open) : Result<bool>(Error::last(status));
    }
    /// Waits until `close` of its handler has returned. Code::WouldDeadlock on a pool's thread.
    Result<void> wait() const { return detail::outcome(pace_udp_wait(raw_)); }
    /// Handles what has arrived, and closes: whether everything was handled in this time.
    Result<bool> drain(Duration time) const {
        bool drained = false;
        const pace_status_t status = pace_udp_drain(raw_, detail::nanos(time), &drained);
        return status == PACE_OK ? Result<bool>(drained) : Result<bool>(Error::last(status));
    }
    Result<UdpStats> stats() const {
        UdpStats stats;
        const pace_status_t status = pace_udp_stats(raw_, &stats);
        return status == PACE_OK ? Result<UdpStats>(stats) : Result<UdpStats>(Error::last(status));
    }

    /// The socket as functions of the C interface take it.
    pace_udp_t *native() const noexcept { return raw_; }

protected:
    pace_udp_t *raw_;
};

/// What a datagram socket does. Its hooks never run on two threads at once, and should not block. It is
/// deleted after `close`.
class UdpHandler {
public:
    UdpHandler() = default;
    UdpHandler(const UdpHandler &) = delete;
    UdpHandler &operator=(const UdpHandler &) = delete;
    virtual ~UdpHandler() = default;

    /// Datagrams have arrived, at least one; they are gone when this returns.
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
    raw.bind = config.bind.empty() ? nullptr : config.bind.c_str();
    raw.connect = config.connect.empty() ? nullptr : config.connect.c_str();
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
    /// Whether the library has dropped it.
    std::shared_ptr<std::atomic<bool>> dropped;

    static void data(void *box, pace_udp_t *raw, const pace_datagram_t *datagrams,
                     std::size_t count) noexcept {
        const span<const Datagram> all(static_cast<const Datagram *>(datagrams), count);
        guard([&] { of(box).data(UdpRef(raw), all); });
    }
    static void error(void *box, pace_udp_t *raw, std::int32_t os_error) noexcept {
        guard([&] { of(box).error(UdpRef(raw), os_error); });
    }
    static void close(void *box, pace_udp_t *raw, std::uint32_t reason) noexcept {
        guard([&] { of(box).close(UdpRef(raw), Reason(reason, 0)); });
    }
    static void drop(void *data) noexcept {
        const std::unique_ptr<UdpBox> box(static_cast<UdpBox *>(data));
        *box->dropped = true;
    }

private:
    static UdpHandler &of(void *box) noexcept { return *static_cast<UdpBox *>(box)->handler; }
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
        const auto dropped = std::make_shared<std::atomic<bool>>(false);
        auto *box = new detail::UdpBox{std::move(handler), dropped};
        pace_udp_hooks_t hooks{};
        (void)pace_udp_hooks_init(&hooks, sizeof hooks);
        hooks.data = detail::UdpBox::data;
        hooks.error = detail::UdpBox::error;
        hooks.close = detail::UdpBox::close;
        hooks.user_data = box;
        hooks.drop = detail::UdpBox::drop;
        pace_udp_t *udp = nullptr;
        const pace_status_t status = pace_udp_new(pool.native(), &options, &hooks, &udp);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            if (!*dropped) {
                delete box;
            }
            return error;
        }
        return Udp(pool.core_, udp);
    }

    Udp(Udp &&other) noexcept : UdpRef(std::exchange(other.raw_, nullptr)), core_(other.core_) {}
    Udp &operator=(Udp &&other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(core_, other.core_);
        return *this;
    }
    ~Udp() { pace_udp_free(raw_); }

private:
    friend class CompletionQueue;

    Udp(detail::SharedCore core, pace_udp_t *raw) noexcept : UdpRef(raw), core_(std::move(core)) {}

    detail::SharedCore core_;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_UDP_HPP
