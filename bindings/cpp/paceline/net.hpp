// paceline/net.hpp: stream servers.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_NET_HPP
#define PACELINE_NET_HPP

#include "conn.hpp"
#include "pool.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

/// A place to listen at, and the settings of its connections. What is not set is the library's choice;
/// ranges and defaults are those of pace_listener_options_t. In C++20:
/// `Listen{.address = "*:80", .max_connections = 1000}`; in C++17:
/// `Listen{"*:80"}.set_max_connections(1000)`.
struct Listen {
    /// "127.0.0.1:80", "[::1]:80", "*:80", "unix:/run/socket", "unix:@name". Port 0 is a free port,
    /// which Server::address() tells.
    std::string address{};
    /// Instead of an address: a socket that listens already. It stays the caller's.
    std::optional<int> fd{};
    std::optional<std::uint64_t> max_connections{};
    /// What connections beyond the maximum are sent.
    std::string refusal{};
    std::optional<std::uint64_t> max_requests{};
    /// What a request beyond the maximum is answered with.
    std::string busy{};
    std::optional<std::uint64_t> max_unconsumed{};
    /// The marks of a connection's output in bytes: low < high <= max.
    std::optional<std::uint64_t> output_low{}, output_high{}, output_max{};
    /// A hook that answers later has to admit the request (Conn::admit): otherwise the idle time runs while the answer
    /// is worked on, and the connection may be closed before it is written.
    std::optional<Duration> idle_timeout{};
    std::optional<Duration> read_timeout{}, stall_timeout{}, linger{};
    /// TCP asks silent peers whether they are there, first after this time: 1 s to 32767 s, in whole
    /// seconds, to which it is rounded up; 0: it does not, as without.
    std::optional<Duration> keep_alive{};
    std::optional<std::uint64_t> send_buffer{}, receive_buffer{};
    std::optional<std::uint32_t> backlog{};
    std::optional<bool> no_delay{};
    bool v6_only{};
    bool reuse_port{};
    /// Mode of the file of a Unix socket.
    std::optional<std::uint32_t> socket_mode{};
    /// What happens when the peer has finished: it sends no more, and may still read. By default such a connection is
    /// closed by itself, when its admitted requests have ended and everything is sent. With `true` it stays open until
    /// its handler closes it: for protocols in which one direction ends before the other, as with a proxy.
    bool allow_half_open{};
    /// Makes what turns the bytes of connections that are accepted here: TLS, as a rule.
    FilterFactory filter{};

    /// As the section `server` of settings says, for a Server or an Http.
    static Result<Listen> load(const Settings &settings) {
        using Raw = pace_listener_options_t;
        return detail::loaded<Listen, Raw>(
            settings, pace_listener_options_init, pace_listener_options_load, [](const Raw &raw) {
                Listen listen;
                Raw usual{};
                (void)pace_listener_options_init(&usual, sizeof usual);
                const auto change = [](auto &field, auto said, auto usually) {
                    if (said != usually) {
                        field = said;
                    }
                };
                const auto change_time = [](std::optional<Duration> &field, std::uint64_t said,
                                            std::uint64_t usually) {
                    if (said != usually) {
                        field = detail::time_of(said);
                    }
                };
                listen.address = detail::text_of(raw.address);
                change(listen.max_connections, raw.max_connections, usual.max_connections);
                change(listen.max_requests, raw.max_requests, usual.max_requests);
                change(listen.max_unconsumed, raw.max_unconsumed, usual.max_unconsumed);
                change(listen.output_low, raw.output_low, usual.output_low);
                change(listen.output_high, raw.output_high, usual.output_high);
                change(listen.output_max, raw.output_max, usual.output_max);
                change_time(listen.idle_timeout, raw.idle_timeout_ns, usual.idle_timeout_ns);
                change_time(listen.read_timeout, raw.read_timeout_ns, usual.read_timeout_ns);
                change_time(listen.stall_timeout, raw.stall_timeout_ns, usual.stall_timeout_ns);
                change_time(listen.linger, raw.linger_ns, usual.linger_ns);
                change_time(listen.keep_alive, raw.keep_alive_ns, usual.keep_alive_ns);
                change(listen.send_buffer, raw.send_buffer, usual.send_buffer);
                change(listen.receive_buffer, raw.receive_buffer, usual.receive_buffer);
                change(listen.backlog, raw.backlog, usual.backlog);
                change(listen.no_delay, raw.no_delay, usual.no_delay);
                listen.v6_only = raw.v6_only;
                listen.reuse_port = raw.reuse_port;
                return listen;
            });
    }

    Listen &set_address(std::string_view value) { return address = value, *this; }
    Listen &set_fd(int value) { return fd = value, *this; }
    Listen &set_max_connections(std::uint64_t value) { return max_connections = value, *this; }
    Listen &set_refusal(std::string_view value) { return refusal = value, *this; }
    Listen &set_max_requests(std::uint64_t value) { return max_requests = value, *this; }
    Listen &set_busy(std::string_view value) { return busy = value, *this; }
    Listen &set_max_unconsumed(std::uint64_t value) { return max_unconsumed = value, *this; }
    Listen &set_output_marks(std::uint64_t low, std::uint64_t high, std::uint64_t max) {
        return output_low = low, output_high = high, output_max = max, *this;
    }
    Listen &set_idle_timeout(Duration value) { return idle_timeout = value, *this; }
    Listen &set_read_timeout(Duration value) { return read_timeout = value, *this; }
    Listen &set_stall_timeout(Duration value) { return stall_timeout = value, *this; }
    Listen &set_linger(Duration value) { return linger = value, *this; }
    Listen &set_keep_alive(Duration value) { return keep_alive = value, *this; }
    Listen &set_send_buffer(std::uint64_t value) { return send_buffer = value, *this; }
    Listen &set_receive_buffer(std::uint64_t value) { return receive_buffer = value, *this; }
    Listen &set_backlog(std::uint32_t value) { return backlog = value, *this; }
    Listen &set_no_delay(bool value = true) { return no_delay = value, *this; }
    Listen &set_v6_only(bool value = true) { return v6_only = value, *this; }
    Listen &set_reuse_port(bool value = true) { return reuse_port = value, *this; }
    Listen &set_socket_mode(std::uint32_t value) { return socket_mode = value, *this; }
    Listen &set_allow_half_open(bool value = true) { return allow_half_open = value, *this; }
    Listen &set_filter(FilterFactory value) { return filter = std::move(value), *this; }

    /// As a struct of paceline.h, without the filter. The texts stay this one's.
    pace_listener_options_t native() const noexcept {
        pace_listener_options_t raw{};
        (void)pace_listener_options_init(&raw, sizeof raw);
        const auto set = [](auto &field, const auto &value) {
            if (value) {
                field = *value;
            }
        };
        const auto set_time = [](std::uint64_t &field, const std::optional<Duration> &value) {
            if (value) {
                field = detail::nanos(*value);
            }
        };
        set(raw.fd, fd);
        raw.address = detail::c_text_if_any(address);
        set(raw.max_connections, max_connections);
        raw.refusal = refusal.data();
        raw.refusal_size = refusal.size();
        set(raw.max_requests, max_requests);
        raw.busy = busy.data();
        raw.busy_size = busy.size();
        set(raw.max_unconsumed, max_unconsumed);
        set(raw.output_low, output_low);
        set(raw.output_high, output_high);
        set(raw.output_max, output_max);
        set_time(raw.idle_timeout_ns, idle_timeout);
        set_time(raw.read_timeout_ns, read_timeout);
        set_time(raw.stall_timeout_ns, stall_timeout);
        set_time(raw.linger_ns, linger);
        set_time(raw.keep_alive_ns, keep_alive);
        set(raw.send_buffer, send_buffer);
        set(raw.receive_buffer, receive_buffer);
        set(raw.backlog, backlog);
        set(raw.no_delay, no_delay);
        raw.v6_only = v6_only;
        raw.reuse_port = reuse_port;
        set(raw.socket_mode, socket_mode);
        raw.allow_half_open = allow_half_open;
        return raw;
    }
};

namespace detail {

/// Listeners as C has them, until the server is made.
struct Listeners {
    std::vector<pace_listener_options_t> raw;
    std::vector<pace_filter_hooks_t> hooks;
    /// Factories of filters, which go with their listeners once the server is made.
    std::vector<std::unique_ptr<FilterFactory>> filters;

    explicit Listeners(const std::vector<Listen> &listeners) {
        raw.reserve(listeners.size());
        hooks.reserve(listeners.size());
        for (const Listen &listener : listeners) {
            raw.push_back(listener.native());
            if (listener.filter) {
                filters.push_back(std::make_unique<FilterFactory>(listener.filter));
                hooks.push_back(FilterBox::hooks(filters.back().get()));
                raw.back().filter = &hooks.back();
            }
        }
    }

    /// Leaves all to the server, which was made.
    void keep() noexcept {
        for (auto &filter : filters) {
            (void)filter.release();
        }
    }
};

} // namespace detail

/// A socket that a supervisor has opened. It is closed when it goes; servers have their own duplicate
/// by then.
class [[nodiscard]] Inherited {
public:
    Inherited(int fd, std::string_view name) : fd_(fd), name_(name) {}
    Inherited(Inherited &&other) noexcept
        : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)) {}
    Inherited &operator=(Inherited other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(name_, other.name_);
        return *this;
    }
    ~Inherited() {
        if (fd_ >= 0) {
            (void)::close(fd_);
        }
    }

    /// What the supervisor calls it: "unknown" if it has no name.
    const std::string &name() const noexcept { return name_; }
    /// For Listen::fd or UdpConfig::fd. It stays this one's.
    int fd() const noexcept { return fd_; }
    /// It is the caller's from here on.
    int release() noexcept { return std::exchange(fd_, -1); }

private:
    int fd_;
    std::string name_;
};

/// The sockets that systemd, or whoever speaks its protocol (sd_listen_fds(3)), has passed to this
/// process, in their order. A socket is given once. Call it early. Code::Invalid names the variable that
/// makes no sense, Code::Os a descriptor that is not open, or no socket.
inline Result<std::vector<Inherited>> inherited() {
    constexpr std::size_t some = 16;
    std::vector<Inherited> sockets;
    std::size_t count = some;
    while (count == some) {
        pace_inherited_t raw[some];
        const pace_status_t status = pace_inherited_take(raw, some, &count);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        for (std::size_t n = 0; n < count; ++n) {
            sockets.emplace_back(raw[n].fd, raw[n].name);
        }
    }
    return sockets;
}

/// The settings of a server: its listeners, and those of connections that it makes.
struct ServerConfig {
    /// Where to listen. None: such a server only connects.
    std::vector<Listen> listeners{};
    /// Settings of outgoing connections, and of no listener. Its address and fd are not looked at; what
    /// is about accepting (refusal, backlog, socket_mode, v6_only, reuse_port, filter) must not be set.
    std::optional<Listen> outgoing{};
    std::optional<Duration> connect_timeout{};
    /// Called once each time that accepting pauses for want of descriptors or memory, or since the socket
    /// accepts no more, with what to log. It is tried again every 50 ms.
    Function<void(const char *)> on_exhausted{};

    ServerConfig &add_listener(Listen value) { return listeners.push_back(std::move(value)), *this; }
    ServerConfig &set_outgoing(Listen value) { return outgoing = std::move(value), *this; }
    ServerConfig &set_connect_timeout(Duration value) { return connect_timeout = value, *this; }
    ServerConfig &set_on_exhausted(Function<void(const char *)> hook) {
        return on_exhausted = std::move(hook), *this;
    }
};

namespace detail {

/// The settings of a server as C has them, until it is made. They point into the config.
struct ServerOptions {
    Listeners listeners;
    pace_listener_options_t outgoing{};
    pace_server_options_t raw{};

    explicit ServerOptions(const ServerConfig &config) : listeners(config.listeners) {
        (void)pace_server_options_init(&raw, sizeof raw);
        raw.listeners = listeners.raw.data();
        raw.listener_count = listeners.raw.size();
        if (config.outgoing) {
            outgoing = config.outgoing->native();
            raw.outgoing = &outgoing;
        }
        if (config.connect_timeout) {
            raw.connect_timeout_ns = nanos(*config.connect_timeout);
        }
    }
    ServerOptions(const ServerOptions &) = delete;
    ServerOptions &operator=(const ServerOptions &) = delete;
};

} // namespace detail

/// What a server, or a listener, has done so far. The counts add up exactly while no connection begins or ends. Fields as in pace_server_stats_t.
struct ServerStats : pace_server_stats_t {
    ServerStats() noexcept : pace_server_stats_t{} { struct_size = sizeof(pace_server_stats_t); }
};

/// How a drain went. Fields as in pace_drain_report_t.
struct DrainReport : pace_drain_report_t {
    DrainReport() noexcept : pace_drain_report_t{} { struct_size = sizeof(pace_drain_report_t); }
};

/// Listeners and connections on a pool. When it goes it stops: connections are cut off, and their handlers are gone
/// when the destructor returns. Inside a handler, and on a thread of the pool, it does not wait. drain() first for an
/// orderly end.
class [[nodiscard]] Server {
public:
    /// Starts a server whose connections get handlers from `factory`, which is called on the pool's
    /// threads; if it gives none, the connection is refused. Code::Invalid names the setting, its
    /// value and its bounds, Code::Os the address that could not be listened on.
    static Result<Server> create(const Pool &pool, const ServerConfig &config, ConnFactory factory) {
        if (auto refused = detail::refused_if_empty(factory, "factory")) {
            return *std::move(refused);
        }
        auto state = std::make_unique<detail::ServerState>(std::move(factory), config.on_exhausted);
        detail::ServerOptions options(config);
        options.raw.on_exhausted = config.on_exhausted ? detail::ServerState::exhausted : nullptr;
        pace_conn_hooks_t hooks = detail::ConnBox::hooks();
        hooks.open = detail::ConnBox::open_new;
        hooks.close = detail::ConnBox::close_new;
        hooks.user_data = state.get();
        hooks.drop = detail::drop_box<detail::ServerState>;
        return start(pool, options, hooks, std::move(state));
    }

    /// As above, with `H(args...)` for each connection; the arguments are copied.
    template <class H, class... Args>
    static Result<Server> create_for(const Pool &pool, const ServerConfig &config, Args... args) {
        static_assert(std::is_base_of_v<ConnHandler, H>, "a handler is a ConnHandler");
        return create(pool, config, [args...](Conn &) { return std::make_unique<H>(args...); });
    }

    Server(Server &&) noexcept = default;
    Server &operator=(Server other) noexcept {
        std::swap(core_, other.core_);
        std::swap(state_, other.state_);
        return *this;
    }
    ~Server() {
        if (core_) {
            const detail::Waits waits;
            (void)pace_server_stop(core_->server);
        }
    }

    /// Where listener `index` listens, with the port that it got.
    Result<std::string> address(std::size_t index = 0) const {
        return detail::text_of([this, index](char *text, std::size_t size) {
            return pace_server_address(native(), index, text, size);
        });
    }

    /// Connects, with a handler of its own. It returns at once; `open` comes when the connection is
    /// there, or else `close`. A handler that is refused stays the caller's.
    Result<ConnRef> connect(const detail::Text &address, std::unique_ptr<ConnHandler> &&handler) {
        if (!core_ || handler == nullptr) {
            return core_ ? Error(Code::Invalid, "handler is nullptr") : detail::gone("server");
        }
        if (state_ == nullptr) {
            return Error(Code::Invalid,
                         "the server is attached to a completion queue: use CompletionQueue::connect()");
        }
        auto box = std::unique_ptr<detail::ConnBox>(new detail::ConnBox{std::move(handler), *state_});
        pace_conn_hooks_t hooks = detail::ConnBox::hooks();
        hooks.user_data = box.get();
        hooks.drop = detail::drop_box<detail::ConnBox>;
        pace_conn_id_t id{};
        const pace_status_t status = pace_server_connect(core_->server, address.c_str(), &hooks, &id);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            handler = std::move(box->own);
            return error;
        }
        (void)box.release();
        return ConnRef(core_, id);
    }

    /// The connection of this number: see ConnRef::id().
    ConnRef conn(std::uint64_t id) const noexcept { return ConnRef(core_, pace_conn_id_t{id}); }

    /// Waits until it has drained or its pool has shut down. Code::WouldDeadlock on a pool's thread.
    Result<void> wait() const { return detail::outcome(pace_server_wait(native())); }

    /// Stops accepting, lets connections answer what has arrived, and cuts off what is not through
    /// after `time`. Inside a handler it is only a request.
    Result<DrainReport> drain(Duration time) const {
        DrainReport report;
        const detail::Waits waits;
        const pace_status_t status = pace_server_drain(native(), detail::nanos(time), &report);
        return status == PACE_OK ? Result<DrainReport>(report)
                                 : Result<DrainReport>(Error::last(status));
    }

    Result<ServerStats> stats() const {
        ServerStats stats;
        const pace_status_t status = pace_server_stats(native(), &stats);
        return status == PACE_OK ? Result<ServerStats>(stats) : Result<ServerStats>(Error::last(status));
    }
    Result<ServerStats> listener_stats(std::size_t index) const {
        ServerStats stats;
        const pace_status_t status = pace_server_listener_stats(native(), index, &stats);
        return status == PACE_OK ? Result<ServerStats>(stats) : Result<ServerStats>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the Server's.
    pace_server_t *native() const noexcept { return core_ ? core_->server : nullptr; }

private:
    friend class CompletionQueue;

    Server(detail::SharedServer core, const detail::ServerState *state) noexcept
        : core_(std::move(core)), state_(state) {}

    static Result<Server> start(const Pool &pool, detail::ServerOptions &options,
                                const pace_conn_hooks_t &hooks,
                                std::unique_ptr<detail::ServerState> state) {
        // See ServerState::core().
        std::lock_guard<std::mutex> lock(state->mutex);
        pace_server_t *server = nullptr;
        detail::hands_over();
        const pace_status_t status = pace_server_new(pool.native(), &options.raw, &hooks, &server);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        options.listeners.keep();
        auto *known = state.release();
        auto core = detail::shared_of<const detail::ServerCore>(pool.core_, server);
        known->known = core;
        return Server(std::move(core), known);
    }

    detail::SharedServer core_;
    /// Lives as long as the library's server, which `core_` keeps. None if it is attached to a completion queue.
    const detail::ServerState *state_;
};

// ---- where a message ends --------------------------------------------------------------------------

/// The first message of some bytes. It points into them.
struct Frame {
    /// Without its delimiter or its length.
    std::string_view body;
    /// How many bytes the message takes up, with these: what to consume.
    std::size_t length;
};

/// Messages that end with a delimiter. One object per connection: it remembers what was searched in vain.
class Delimited {
public:
    /// The delimiter has at least one byte; bodies have up to `max`.
    Delimited(std::string_view delimiter, std::size_t max) : delimiter_(delimiter), max_(max) {}

    /// The first message. nullopt: a part of one, or nothing; `bytes` must begin with it when more has
    /// come. Code::Full: it is longer than the maximum.
    Result<std::optional<Frame>> next(std::string_view bytes) noexcept {
        pace_frame_t frame{};
        const auto status = pace_frame_delimited(bytes.data(), bytes.size(), delimiter_.data(),
                                                 delimiter_.size(), max_, &searched_, &frame);
        return made(status, frame);
    }

private:
    friend class LengthPrefixed;
    friend class FixedLength;

    static Result<std::optional<Frame>> made(pace_status_t status, const pace_frame_t &frame) {
        if (status == PACE_EEMPTY) {
            return std::optional<Frame>();
        }
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return std::optional<Frame>({{static_cast<const char *>(frame.body), frame.size}, frame.length});
    }

    std::string delimiter_;
    std::size_t max_;
    std::size_t searched_ = 0;
};

/// Messages with their length in front: an unsigned number of 1 to 8 bytes, in network order, that does not
/// count itself.
class LengthPrefixed {
public:
    /// Bodies have up to `max` bytes.
    LengthPrefixed(std::size_t width, std::size_t max) noexcept : width_(width), max_(max) {}

    /// The first message. nullopt: a part of one, or nothing. Code::Full: it is longer than the maximum;
    /// Code::Invalid: the width is none.
    Result<std::optional<Frame>> next(std::string_view bytes) const {
        pace_frame_t frame{};
        const auto status = pace_frame_prefixed(bytes.data(), bytes.size(), width_, max_, &frame);
        return Delimited::made(status, frame);
    }

private:
    std::size_t width_, max_;
};

/// Messages that are all of one length, at least 1.
class FixedLength {
public:
    explicit FixedLength(std::size_t length) noexcept : length_(length) {}

    /// The first message. nullopt: a part of one, or nothing. Code::Invalid: the length is 0.
    Result<std::optional<Frame>> next(std::string_view bytes) const {
        pace_frame_t frame{};
        const auto status = pace_frame_fixed(bytes.data(), bytes.size(), length_, &frame);
        return Delimited::made(status, frame);
    }

private:
    std::size_t length_;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_NET_HPP
