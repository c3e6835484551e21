// paceline/http.hpp: HTTP/1.1 servers.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_HTTP_HPP
#define PACELINE_HTTP_HPP

#include "net.hpp"

#include <paceline/http.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

// ---- HTTP ----------------------------------------------------------------------------------------

/// A request, for as long as its handler runs. What it gives belongs to it.
class Request {
public:
    /// A header, or a parameter of the path.
    struct Field {
        std::string_view name, value;
    };

    explicit Request(const pace_request_t *raw) noexcept : raw_(raw) {}
    Request(const Request &) = delete;
    Request &operator=(const Request &) = delete;

    /// As it was sent: GET.
    std::string_view method() const noexcept { return text(pace_request_method); }
    /// As it was sent: /hello/you?loud=1.
    std::string_view target() const noexcept { return text(pace_request_target); }
    /// The target's path, as it was sent: percent-encoded.
    std::string_view path() const noexcept { return text(pace_request_path); }
    /// What follows the target's first question mark.
    std::optional<std::string_view> query() const noexcept { return optional(pace_request_query); }
    /// 0 or 1, of HTTP/1.
    std::uint32_t version() const noexcept {
        std::uint32_t version = 0;
        (void)pace_request_version(raw_, &version);
        return version;
    }
    /// The value of the first header of this name, upper or lower case.
    std::optional<std::string_view> header(const detail::Text &name) const noexcept {
        return named(pace_request_header, name.c_str());
    }
    /// All headers of the request, in the order in which they came.
    std::vector<Field> headers() const { return fields(pace_request_headers); }
    /// The part of the path that stands for this name in the route's pattern, percent-decoded. A slash that
    /// was encoded stays in its part, since routes are matched with the path as it was sent: path(). A
    /// request with a part that cannot be decoded (to UTF-8 without NUL) gets a 400, and has no handler.
    std::optional<std::string_view> param(const detail::Text &name) const noexcept {
        return named(pace_request_param, name.c_str());
    }
    std::vector<Field> params() const { return fields(pace_request_params); }
    /// The names and values of the query, decoded as a browser's form encodes them: "+" is a space, and what is
    /// percent-encoded is decoded. A pair without "=" has an empty value. Values are bytes; UTF-8 as a rule.
    std::vector<std::pair<std::string, std::string>> query_pairs() const {
        const std::string_view query = text(pace_request_query);
        std::size_t count = 0;
        (void)pace_query_pairs(query.data(), query.size(), nullptr, nullptr, 0, &count);
        std::vector<pace_field_t> raw(count);
        std::string room(query.size(), ' ');
        (void)pace_query_pairs(query.data(), query.size(), room.data(), raw.data(), count, &count);
        std::vector<std::pair<std::string, std::string>> pairs;
        pairs.reserve(count);
        for (const pace_field_t &pair : raw) {
            pairs.emplace_back(view(pair.name), view(pair.value));
        }
        return pairs;
    }
    /// The pattern of the route that it came by: "/hello/{name}". std::nullopt: no route has taken it.
    std::optional<std::string_view> pattern() const noexcept { return optional(pace_request_pattern); }
    /// The whole body. Empty where it is streamed.
    std::string_view body() const noexcept {
        pace_piece_t body{};
        (void)pace_request_body(raw_, &body);
        return {static_cast<const char *>(body.bytes), body.size};
    }
    /// The protocol that it asks to upgrade to.
    std::optional<std::string_view> upgrade() const noexcept { return optional(pace_request_upgrade); }
    /// The address of the peer as text, such as "192.0.2.1:49152".
    Result<std::string> peer() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_request_peer(raw_, text, size); });
    }
    /// Its connection, as a number: see Http::conn().
    std::uint64_t conn() const noexcept {
        pace_conn_id_t id{};
        (void)pace_request_conn(raw_, &id);
        return id.id;
    }

    /// The request as functions of the C interface take it.
    const pace_request_t *native() const noexcept { return raw_; }

private:
    static std::string_view view(pace_text_t text) noexcept {
        return text.text == nullptr ? std::string_view() : std::string_view(text.text, text.size);
    }
    template <class Ask>
    std::string_view text(Ask ask) const noexcept {
        pace_text_t text{};
        (void)ask(raw_, &text);
        return view(text);
    }
    template <class Ask>
    std::optional<std::string_view> optional(Ask ask) const noexcept {
        pace_text_t text{};
        (void)ask(raw_, &text);
        return text.text == nullptr ? std::nullopt : std::optional(view(text));
    }
    template <class Ask>
    std::optional<std::string_view> named(Ask ask, const char *name) const noexcept {
        return optional(
            [ask, name](const pace_request_t *raw, pace_text_t *text) { return ask(raw, name, text); });
    }
    template <class Ask>
    std::vector<Field> fields(Ask ask) const {
        std::size_t count = 0;
        (void)ask(raw_, nullptr, 0, &count);
        std::vector<pace_field_t> raw(count);
        (void)ask(raw_, raw.data(), raw.size(), &count);
        std::vector<Field> fields;
        fields.reserve(count);
        for (const pace_field_t &field : raw) {
            fields.push_back({view(field.name), view(field.value)});
        }
        return fields;
    }

    const pace_request_t *raw_;
};

namespace detail {

/// Calls `f`, code of a request, which fails if that throws; whether it has returned.
template <class F>
bool guard_request(F &&f) noexcept {
    return contained(std::forward<F>(f), [](const Failure &failure) {
        failure.tell(pace_request_fail);
        report_unhandled(failure, true);
    });
}

} // namespace detail

/// The body of an answer, written piece by piece by whoever holds it. When it goes unfinished the
/// connection is reset, so that the peer can tell; while an exception unwinds, that is a failure (fail()).
class [[nodiscard]] Body {
public:
    Body(Body &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Body &operator=(Body other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~Body() { std::uncaught_exceptions() > 0 ? fail() : pace_body_free(raw_); }

    /// As ConnRef::write(). Code::Invalid: more than was announced. WriteStatus::Unwanted: the peer gets no body,
    /// and the bytes were dropped. No mark paces such a body: finish() it.
    Result<WriteStatus> write(std::string_view bytes) {
        std::uint32_t what = 0;
        const auto status = pace_body_write(raw_, bytes.data(), bytes.size(), &what);
        return detail::wrote(status, what);
    }
    /// Ends the body. The connection's next request may come.
    Result<void> finish() {
        return raw_ == nullptr ? detail::gone("body")
                               : detail::outcome(pace_body_finish(std::exchange(raw_, nullptr)));
    }
    /// What writes it has failed: the connection is reset, and the failure counted.
    void fail() noexcept { pace_body_fail(std::exchange(raw_, nullptr)); }
    bool is_pressed() const noexcept {
        bool pressed = false;
        (void)pace_body_is_pressed(raw_, &pressed);
        return pressed;
    }
    /// Whether the client has gone, as Response::is_client_gone(): for a body that has nothing to write for long.
    bool is_client_gone() const noexcept {
        bool gone = true;
        (void)pace_body_is_client_gone(raw_, &gone);
        return gone;
    }
    /// Has `f()` called, in a run of the connection, each time that the output has fallen to its low
    /// mark. If the output is not above its high mark now, it is called once without delay.
    template <class F>
    Result<void> on_writable(F &&f) {
        using D = std::decay_t<F>;
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        auto box = detail::boxed(std::forward<F>(f));
        const pace_status_t status =
            pace_body_on_writable(raw_, writable<D>, box.get(), detail::drop_box<D>);
        if (status == PACE_OK) {
            (void)box.release();
        }
        return detail::outcome(status);
    }
    /// Has `f(Body &)` write the body, as fast as the peer takes it and no faster: as long as it
    /// answers Flow::Again and there is something left to be sent; with Flow::Done the body is finished.
    /// It is not called for a body that is not sent (an answer to HEAD, or with the status 204, 205 or
    /// 304). This one is empty afterwards.
    template <class F>
    Result<void> pump(F &&f) {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_r_v<Flow, D &, Body &>, "a producer is Flow(Body &)");
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        auto box = detail::boxed(std::forward<F>(f));
        const pace_status_t status = pace_body_pump(raw_, produce<D>, box.get(), detail::drop_box<D>);
        if (status == PACE_OK) {
            (void)box.release();
            raw_ = nullptr;
        }
        return detail::outcome(status);
    }

private:
    friend class Response;

    explicit Body(pace_body_t *raw) noexcept : raw_(raw) {}

    template <class F>
    static void writable(void *data) noexcept {
        detail::guard_request([&] { return (*static_cast<F *>(data))(); });
    }
    template <class F>
    static std::int32_t produce(void *data, pace_body_t *raw) noexcept {
        Body lent(raw);
        auto flow = Flow::Done;
        detail::guard_request([&] { flow = (*static_cast<F *>(data))(lent); });
        lent.raw_ = nullptr;
        return static_cast<std::int32_t>(flow);
    }

    pace_body_t *raw_;
};

namespace detail {
template <class F>
struct Route;
} // namespace detail

class Next;

/// The answer to a request, to be completed by its handler, or by any thread later. When it goes
/// uncompleted, the peer gets a 500; while an exception unwinds, that is a failure (fail()).
class [[nodiscard]] Response {
public:
    Response(Response &&other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), typed_(other.typed_), state_(other.state_) {}
    Response &operator=(Response other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(typed_, other.typed_);
        std::swap(state_, other.state_);
        return *this;
    }
    ~Response() { std::uncaught_exceptions() > 0 ? fail() : pace_response_free(raw_); }

    /// 200 to 599; without this it is 200. Another one is an error of what completes the response.
    Response &status(std::uint32_t status) & {
        (void)pace_response_status(raw_, status);
        return *this;
    }
    Response &&status(std::uint32_t value) && { return std::move(status(value)); }
    /// Adds a header. Content-Length, Transfer-Encoding, Connection and Date are the
    /// library's own. One that is not allowed is an error of what completes the response.
    Response &header(const detail::Text &name, const detail::Text &value) & {
        if (pace_response_header(raw_, name.c_str(), value.c_str()) != PACE_OK) {
            // NULL or not UTF-8: C keeps no such name. This one is no name either.
            (void)pace_response_header(raw_, "", "");
            return *this;
        }
        typed_ = typed_ || is_content_type(name.c_str());
        return *this;
    }
    Response &&header(const detail::Text &name, const detail::Text &value) && {
        return std::move(header(name, value));
    }
    /// No more requests follow on this connection.
    Response &close() & {
        (void)pace_response_close(raw_);
        return *this;
    }
    Response &&close() && { return std::move(close()); }

    /// Completes it. Code::Invalid names the status or header that was not allowed, and Code::Full
    /// tells of a body larger than a connection's output may be (stream it): then the peer gets a 500.
    /// Code::Stale: the connection has ended, or the library has answered already.
    Result<void> send(std::string_view body) {
        if (raw_ == nullptr) {
            return detail::gone("response");
        }
        return detail::outcome(pace_response_send(take(), body.data(), body.size()));
    }
    /// As send(), with Content-Type: text/plain; charset=utf-8 unless it has another.
    Result<void> text(std::string_view text) {
        if (!typed_) {
            header("Content-Type", "text/plain; charset=utf-8");
        }
        return send(text);
    }
    /// As send(), with this Content-Type unless it has another: a media type, as "application/json".
    Result<void> send_as(const detail::Text &content_type, std::string_view body) {
        if (!typed_) {
            header("Content-Type", content_type);
        }
        return send(body);
    }
    /// As send(), of a text that is JSON, with Content-Type: application/json unless it has another.
    Result<void> json(std::string_view text) { return send_as("application/json", text); }
    /// Completes it with a short page about its status, as the server's own errors have it, in the form that the
    /// request's Accept wants most: text ("404 Not Found"), JSON ({"title":"Not Found","status":404}, as
    /// RFC 9457 has it) or HTML.
    Result<void> error() {
        return raw_ == nullptr ? detail::gone("response") : detail::outcome(pace_response_error(take()));
    }
    /// Sends the head, and gives what the body is written to: exactly `length` bytes, or chunks if
    /// that is not known. A peer that waits for "100 Continue" is told so first.
    Result<Body> stream(std::optional<std::uint64_t> length = std::nullopt) {
        if (raw_ == nullptr) {
            return detail::gone("response");
        }
        pace_body_t *body = nullptr;
        const pace_status_t status =
            pace_response_stream(take(), length.value_or(PACE_LENGTH_UNKNOWN), &body);
        return status == PACE_OK ? Result<Body>(Body(body)) : Result<Body>(Error::last(status));
    }

    /// Whether the client has gone: it has reset or closed its connection, or sends no more and its listener does not allow
    /// peers to be half open. Whoever works for long asks from time to time; it is one call of the kernel. A client that
    /// has only finished sending still gets an answer.
    bool is_client_gone() const noexcept {
        bool gone = true;
        (void)pace_response_is_client_gone(raw_, &gone);
        return gone;
    }

    /// What was to answer has failed: the peer gets a 500, the connection closes, and the failure is counted
    /// (HttpStats::panics).
    void fail() noexcept { pace_response_fail(take()); }

    /// Answers with 101, and gives the connection to `handler`, for a protocol that the request offers, in upper or lower
    /// case. Its `open` comes next. If the request does not offer the protocol, the error is Code::Invalid, and the client has
    /// got a 426 with Upgrade. A handler that is refused stays the caller's.
    Result<void> upgrade(const detail::Text &protocol, std::unique_ptr<ConnHandler> &&handler);

private:
    template <class F>
    friend struct detail::Route;
    friend class Next;

    Response(pace_response_t *raw, const detail::ServerState &state) noexcept
        : raw_(raw), state_(&state) {}

    pace_response_t *take() noexcept { return std::exchange(raw_, nullptr); }

    static bool is_content_type(const char *name) noexcept {
        const char *known = "content-type";
        for (; *known != '\0' && (*name | 0x20) == *known; ++known, ++name) {
        }
        return *known == *name;
    }

    pace_response_t *raw_;
    bool typed_ = false;
    /// Of its server. It lives as long as any response.
    const detail::ServerState *state_;
};

inline Result<void> Response::upgrade(const detail::Text &protocol,
                                      std::unique_ptr<ConnHandler> &&handler) {
    if (raw_ == nullptr) {
        return detail::gone("response");
    }
    if (handler == nullptr) {
        return Error(Code::Invalid, "handler is nullptr");
    }
    if (protocol.is_cut()) {
        pace_response_free(take());
        return Error(Code::Invalid, "protocol is a text with a NUL");
    }
    auto box = std::unique_ptr<detail::ConnBox>(new detail::ConnBox{std::move(handler), *state_});
    pace_conn_hooks_t hooks = detail::ConnBox::hooks();
    hooks.user_data = box.get();
    hooks.drop = detail::drop_box<detail::ConnBox>;
    const pace_status_t status = pace_response_upgrade(take(), protocol.c_str(), &hooks);
    if (status != PACE_OK) {
        Error error = Error::last(status);
        handler = std::move(box->own);
        return error;
    }
    (void)box.release();
    return {};
}

/// The rest of a request's way, in a middleware: see Http::around().
class [[nodiscard]] Next {
public:
    explicit Next(pace_next_t *raw) noexcept : raw_(raw) {}
    Next(Next &&) noexcept = default;
    Next(const Next &) = delete;
    Next &operator=(const Next &) = delete;

    /// Goes on with the request, on this thread, and returns when the handler has returned or thrown. The status is
    /// the one with which it was answered by then: 500 if the handler has thrown without an answer.
    /// std::nullopt: it will be answered later, or its answer was lost; Http::on_end() tells. So is a second call.
    std::optional<std::uint32_t> run(const Request &request, Response response) {
        std::uint32_t status = 0;
        if (pace_next_run(raw_, request.native(), response.raw_, &status) == PACE_OK) {
            (void)response.take();
        }
        return status == 0 ? std::nullopt : std::optional(status);
    }

private:
    pace_next_t *raw_;
};

/// What has become of a request: see Http::on_end(). Its texts are good while that runs.
struct RequestEnd {
    /// As they were sent. Empty if they are not known, as of a malformed request.
    std::string_view method, target;
    /// Of the answer. std::nullopt: no whole answer has left.
    std::optional<std::uint32_t> status;
    /// From the head until the answer was complete. What the peer has not taken yet may still be queued.
    std::chrono::nanoseconds duration;
    /// The address of the peer as text; lent during the call.
    std::string_view peer;
};

/// The handler of a route, for many requests at once. The request is lent, the response is given.
using RequestHandler = Function<void(const Request &, Response)>;

/// What takes the body of a request as it comes. It is called by one thread at a time.
class RequestBody {
public:
    RequestBody() = default;
    RequestBody(const RequestBody &) = delete;
    RequestBody &operator=(const RequestBody &) = delete;
    virtual ~RequestBody() = default;

    /// A part has come: how many of its bytes were taken, from the front. The rest is shown again
    /// after ConnRef::resume(), which may come before this has returned; until the rest was taken, nothing is
    /// read.
    virtual std::size_t data(std::string_view bytes) = 0;
    /// The last call, exactly once: it was whole, or it never will be.
    virtual void end(bool is_whole) = 0;
};

/// Makes what takes a body, when the head of the request is there. nullptr: what comes is dropped.
using BodyFactory = Function<std::unique_ptr<RequestBody>(const Request &, Response)>;

/// Settings of an HTTP server. What is not set is the library's choice; ranges and defaults are those of
/// pace_http_options_t.
struct HttpConfig {
    std::vector<Listen> listeners{};
    std::optional<std::uint64_t> max_head{}, max_target{}, max_body{}, body_rate{}, max_requests{};
    std::optional<std::uint32_t> max_headers{}, keep_alive_requests{};
    std::optional<Duration> head_timeout{}, body_timeout{}, keep_alive_timeout{};

    /// As the section `http` of settings says; its listener is Listen::load()'s.
    static Result<HttpConfig> load(const Settings &settings) {
        using Raw = pace_http_options_t;
        return detail::loaded<HttpConfig, Raw>(
            settings, pace_http_options_init, pace_http_options_load, [](const Raw &raw) {
                HttpConfig config;
                config.max_head = raw.max_head;
                config.max_target = raw.max_target;
                config.max_body = raw.max_body;
                config.body_rate = raw.body_rate;
                config.max_requests = raw.max_requests;
                config.max_headers = raw.max_headers;
                config.keep_alive_requests = raw.keep_alive_requests;
                config.head_timeout = detail::time_of(raw.head_timeout_ns);
                config.body_timeout = detail::time_of(raw.body_timeout_ns);
                config.keep_alive_timeout = detail::time_of(raw.keep_alive_timeout_ns);
                return config;
            });
    }

    HttpConfig &add_listener(Listen value) { return listeners.push_back(std::move(value)), *this; }
    HttpConfig &set_max_head(std::uint64_t value) { return max_head = value, *this; }
    HttpConfig &set_max_target(std::uint64_t value) { return max_target = value, *this; }
    HttpConfig &set_max_headers(std::uint32_t value) { return max_headers = value, *this; }
    HttpConfig &set_max_body(std::uint64_t value) { return max_body = value, *this; }
    HttpConfig &set_body_rate(std::uint64_t value) { return body_rate = value, *this; }
    HttpConfig &set_max_requests(std::uint64_t value) { return max_requests = value, *this; }
    HttpConfig &set_keep_alive_requests(std::uint32_t value) {
        return keep_alive_requests = value, *this;
    }
    HttpConfig &set_head_timeout(Duration value) { return head_timeout = value, *this; }
    HttpConfig &set_body_timeout(Duration value) { return body_timeout = value, *this; }
    HttpConfig &set_keep_alive_timeout(Duration value) { return keep_alive_timeout = value, *this; }
};

/// The books of an HTTP server. Fields as in pace_http_stats_t.
struct HttpStats : pace_http_stats_t {
    HttpStats() noexcept : pace_http_stats_t{} { struct_size = sizeof(pace_http_stats_t); }

    /// By handlers, whatever the status.
    std::uint64_t answered() const noexcept {
        return answered_upgraded + answered_successful + answered_redirected + answered_client_errors +
               answered_server_errors;
    }
    /// Answered by the library in a handler's place.
    std::uint64_t refused() const noexcept {
        return refused_bad_request + refused_not_found + refused_method_not_allowed + refused_timed_out +
               refused_body_too_large + refused_target_too_long + refused_expectation +
               refused_head_too_large + refused_panicked + refused_unanswered + refused_not_implemented +
               refused_busy + refused_version;
    }
    /// Not answered, or not to the end.
    std::uint64_t aborted() const noexcept {
        return aborted_disconnected + aborted_timed_out + aborted_unfinished + aborted_closed +
               aborted_cut_off;
    }
};

namespace detail {

struct HttpCore {
    HttpCore(SharedCore core, pace_http_t *raw) noexcept : pool(std::move(core)), http(raw) {}
    HttpCore(const HttpCore &) = delete;
    HttpCore &operator=(const HttpCore &) = delete;
    ~HttpCore() { pace_http_free(http); }

    const SharedCore pool;
    pace_http_t *const http;
};

/// A handler, or what makes bodies. The library deletes it after the last connection and response.
template <class F>
struct Route {
    F f;
    std::shared_ptr<const ServerState> state;

    static void handle(void *data, const pace_request_t *raw, pace_response_t *response) noexcept {
        auto &route = *static_cast<Route *>(data);
        Response given(response, *route.state);
        guard_request([&] { return route.f(Request(raw), std::move(given)); });
    }

    static void around(void *data, const pace_request_t *raw, pace_response_t *response,
                       pace_next_t *next) noexcept {
        auto &route = *static_cast<Route *>(data);
        Response given(response, *route.state);
        guard_request([&] { return route.f(Request(raw), std::move(given), Next(next)); });
    }

    static void ended(void *data, const pace_http_end_t *raw) noexcept {
        const auto view = [](pace_text_t text) { return std::string_view(text.text, text.size); };
        const auto status = raw->status == 0 ? std::nullopt : std::optional(raw->status);
        const auto time = std::chrono::nanoseconds(static_cast<std::int64_t>(raw->duration_ns));
        const RequestEnd end{view(raw->method), view(raw->target), status, time, view(raw->peer)};
        guard_request([&] { return static_cast<Route *>(data)->f(end); });
    }

    static void begin(void *data, const pace_request_t *raw, pace_response_t *response,
                      void **body) noexcept {
        auto &route = *static_cast<Route *>(data);
        Response given(response, *route.state);
        guard_request([&] { *body = route.f(Request(raw), std::move(given)).release(); });
    }
};

inline std::size_t body_data(void *body, const void *bytes, std::size_t size) noexcept {
    std::size_t taken = size;
    guard_request([&] {
        taken = static_cast<RequestBody *>(body)->data({static_cast<const char *>(bytes), size});
    });
    return taken;
}

inline void body_end(void *body, bool is_whole) noexcept {
    const std::unique_ptr<RequestBody> owned(static_cast<RequestBody *>(body));
    guard_request([&] { owned->end(is_whole); });
}

} // namespace detail

/// An HTTP/1.1 server on a pool. When it goes it stops: connections are cut off, and their handlers
/// are done when the destructor returns, as ~Server() says. drain() first for an orderly end.
///
///     auto http = Http::create(pool).value();
///     http.route("GET", "/hello/{name}", [](const Request &request, Response response) {
///         response.text("Hello, " + std::string(*request.param("name")) + "!\n").value();
///     }).value();
///     http.start(HttpConfig().add_listener({"127.0.0.1:8080"})).value();
class [[nodiscard]] Http {
public:
    /// A server without routes, to be given some and started.
    static Result<Http> create(const Pool &pool) {
        pace_http_t *http = nullptr;
        const pace_status_t status = pace_http_new(pool.native(), &http);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Http(detail::shared_of<const detail::HttpCore>(pool.core_, http));
    }

    Http(Http &&) noexcept = default;
    Http &operator=(Http other) noexcept {
        std::swap(core_, other.core_);
        std::swap(state_, other.state_);
        std::swap(server_, other.server_);
        return *this;
    }
    ~Http() {
        if (server_) {
            const detail::Waits waits;
            (void)pace_server_stop(server());
        }
    }

    /// Requests of this method whose path matches this pattern go to this handler, with their whole
    /// body. "/hello/{name}" stands for one segment, "/files/{*path}" for all that follows. GET serves
    /// HEAD too. Each method is routed by itself; OPTIONS without a route of its own is answered with 204
    /// and the methods of the path (Allow). Code::Invalid if there cannot be such a route, or there is one already.
    Result<void> route(const detail::Text &method, const detail::Text &pattern, RequestHandler handler) {
        if (auto refused = detail::refused_if_empty(handler, "handler")) {
            return *std::move(refused);
        }
        using Route = detail::Route<RequestHandler>;
        auto box = std::unique_ptr<Route>(new Route{std::move(handler), state_});
        const pace_status_t status = pace_http_route(native(), method.c_str(), pattern.c_str(),
                                                     Route::handle, box.get(), detail::drop_box<Route>);
        if (status == PACE_OK) {
            (void)box.release();
        }
        return detail::outcome(status);
    }

    /// The same for requests whose body is taken as it comes. A peer that waits for "100 Continue" is told so
    /// when the factory has returned what takes the body, or before the head of an answer that it has begun
    /// by Response::stream(). It is not told if the factory has answered by Response::send(), or has
    /// returned nullptr: then the answer is the final one, and the connection closes behind it.
    Result<void> route_streaming(const detail::Text &method, const detail::Text &pattern,
                                 BodyFactory factory) {
        if (auto refused = detail::refused_if_empty(factory, "factory")) {
            return *std::move(refused);
        }
        using Route = detail::Route<BodyFactory>;
        auto box = std::unique_ptr<Route>(new Route{std::move(factory), state_});
        pace_request_body_hooks_t hooks{};
        (void)pace_request_body_hooks_init(&hooks, sizeof hooks);
        hooks.begin = Route::begin;
        hooks.data = detail::body_data;
        hooks.end = detail::body_end;
        const pace_status_t status = pace_http_route_streaming(
            native(), method.c_str(), pattern.c_str(), &hooks, box.get(), detail::drop_box<Route>);
        if (status == PACE_OK) {
            (void)box.release();
        }
        return detail::outcome(status);
    }

    /// Calls `f(const Request &, Response, Next)` around the handler of every request that has a whole head: of all
    /// routes, of requests that no route takes (404, 405), and of what the library answers to OPTIONS. Several are
    /// called in the order in which they were told, each around all that follow.
    ///
    /// It goes on by Next::run(), with the response, to which it may have added headers: they are sent with every
    /// answer, errors of the server included. Or it answers by itself, and the handler is not called.
    /// Request::pattern() says which route it is. A request that is refused for its head, its body's length or for want
    /// of room is not seen here, but by on_end().
    ///
    ///     http.around([](const Request &request, Response response, Next next) {
    ///         if (!request.header("authorization")) {
    ///             response.status(401).header("WWW-Authenticate", "Basic").error();
    ///             return;
    ///         }
    ///         next.run(request, std::move(response.header("Access-Control-Allow-Origin", "*")));
    ///     });
    template <class F>
    Result<void> around(F &&f) {
        using Route = detail::Route<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F> &, const Request &, Response, Next>,
                      "a middleware is void(const Request &, Response, Next)");
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        auto box = std::unique_ptr<Route>(new Route{std::forward<F>(f), state_});
        return registered(pace_http_around, Route::around, std::move(box));
    }

    /// Requests that no route takes go to `f(const Request &, Response)`, without their body, which is dropped. The
    /// response has the status that they would get otherwise: 404, 405 (with Allow), 501, or 400 for a parameter that
    /// cannot be decoded. Response::error() answers as the server does, and Response::status() sets another status. The
    /// last fallback that was told is the one, attached to a completion queue or not.
    template <class F>
    Result<void> fallback(F &&f) {
        using Route = detail::Route<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F> &, const Request &, Response>,
                      "a fallback is void(const Request &, Response)");
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        auto box = std::unique_ptr<Route>(new Route{std::forward<F>(f), state_});
        return registered(pace_http_fallback, Route::handle, std::move(box));
    }

    /// Calls `f(const RequestEnd &)` at the end of each request, once: answered by a handler or refused by the server
    /// (400, 404, 408, 413, 431 and others), or lost with its connection. An access log is access_log(). It must not
    /// block: the connection waits for it. The last function that was told is the one, attached to a completion queue or not.
    template <class F>
    Result<void> on_end(F &&f) {
        using Route = detail::Route<std::decay_t<F>>;
        static_assert(std::is_invocable_v<std::decay_t<F> &, const RequestEnd &>,
                      "a hook of ends is void(const RequestEnd &)");
        if (auto refused = detail::refused_if_empty(f, "f")) {
            return *std::move(refused);
        }
        auto box = std::unique_ptr<Route>(new Route{std::forward<F>(f), state_});
        return registered(pace_http_on_end, Route::ended, std::move(box));
    }

    /// Tells a log of each request at its end, as on_end() does: a record "request.ended" of the component http, at level
    /// info. With AccessFormat::Combined its message is a line in Apache's format, with AccessFormat::Json it has fields. What a
    /// client has sent is escaped, so that it can forge no line. No log: the pool's, and without one start() fails. The last
    /// access log that was set is the one.
    Result<void> access_log(AccessFormat format, const Log &log = Log()) {
        return detail::outcome(
            pace_http_access_log(native(), static_cast<std::uint32_t>(format), log.native()));
    }

    /// Starts. Code::Invalid names the setting, its value and its bounds, or the route that cannot be;
    /// Code::Os the address that could not be listened on. If it fails, it may be tried again.
    Result<void> start(const HttpConfig &config) {
        detail::Listeners listeners(config.listeners);
        pace_http_options_t options{};
        (void)pace_http_options_init(&options, sizeof options);
        options.listeners = listeners.raw.data();
        options.listener_count = listeners.raw.size();
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
        set(options.max_head, config.max_head);
        set(options.max_target, config.max_target);
        set(options.max_headers, config.max_headers);
        set(options.max_body, config.max_body);
        set(options.body_rate, config.body_rate);
        set(options.max_requests, config.max_requests);
        set(options.keep_alive_requests, config.keep_alive_requests);
        set_time(options.head_timeout_ns, config.head_timeout);
        set_time(options.body_timeout_ns, config.body_timeout);
        set_time(options.keep_alive_timeout_ns, config.keep_alive_timeout);
        return started([&] {
            const pace_status_t status = pace_http_start(native(), &options);
            if (status == PACE_OK) {
                listeners.keep();
            }
            return status;
        });
    }

    /// Starts with the defaults at one address: "127.0.0.1:8080", "[::1]:0", "unix:/run/shop.sock". With the port 0 it has a free
    /// one, which address() says. As start().
    Result<void> serve(const detail::Text &address) {
        return started([&] { return pace_http_serve(native(), address.c_str()); });
    }

    /// As Server's methods of these names. Code::Invalid before start().
    Result<std::string> address(std::size_t index = 0) const {
        if (!server_) {
            return not_started();
        }
        return detail::text_of([this, index](char *text, std::size_t size) {
            return pace_server_address(server(), index, text, size);
        });
    }
    Result<void> wait() const {
        return server_ ? detail::outcome(pace_server_wait(server())) : not_started();
    }
    Result<DrainReport> drain(Duration time) const {
        if (!server_) {
            return not_started();
        }
        DrainReport report;
        const detail::Waits waits;
        const pace_status_t status = pace_server_drain(server(), detail::nanos(time), &report);
        return status == PACE_OK ? Result<DrainReport>(report)
                                 : Result<DrainReport>(Error::last(status));
    }

    /// The connection of this number: see Request::conn(). Its resume() reads on after a RequestBody has
    /// not taken everything.
    ConnRef conn(std::uint64_t id) const noexcept { return ConnRef(server_, pace_conn_id_t{id}); }

    /// What has answered a request of this connection has failed after that: the connection closes when all
    /// that is queued was sent, and the failure is counted. A handler throws, before that.
    Result<void> fail(std::uint64_t conn) const {
        return detail::outcome(pace_http_fail(native(), pace_conn_id_t{conn}));
    }

    Result<HttpStats> stats() const {
        HttpStats stats;
        const pace_status_t status = pace_http_stats(native(), &stats);
        return status == PACE_OK ? Result<HttpStats>(stats) : Result<HttpStats>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the Http's.
    pace_http_t *native() const noexcept { return core_ ? core_->http : nullptr; }

private:
    explicit Http(std::shared_ptr<const detail::HttpCore> core)
        : core_(std::move(core)), state_(detail::shared_of<detail::ServerState>()) {}

    template <class Route, class Register, class Hook>
    Result<void> registered(Register add, Hook hook, std::unique_ptr<Route> box) {
        const pace_status_t status = add(native(), hook, box.get(), detail::drop_box<Route>);
        if (status == PACE_OK) {
            (void)box.release();
        }
        return detail::outcome(status);
    }

    /// Takes over the stream server of what this starts.
    template <typename Start>
    Result<void> started(const Start &start) {
        if (!core_) {
            return detail::gone("HTTP server");
        }
        // See ServerState::core().
        std::lock_guard<std::mutex> lock(state_->mutex);
        detail::hands_over();
        pace_status_t status = start();
        pace_server_t *under = nullptr;
        if (status == PACE_OK) {
            status = pace_http_server(native(), &under);
        }
        if (status != PACE_OK) {
            return Error::last(status);
        }
        server_ = detail::shared_of<const detail::ServerCore>(core_->pool, under, core_);
        state_->known = server_;
        return {};
    }

    static Error not_started() {
        return Error(Code::Invalid, "the HTTP server was not started: call start() before");
    }

    /// The stream server beneath, once it was started.
    pace_server_t *server() const noexcept { return server_ ? server_->server : nullptr; }

    std::shared_ptr<const detail::HttpCore> core_;
    std::shared_ptr<detail::ServerState> state_;
    detail::SharedServer server_;
};

// ---- JSON in and out -----------------------------------------------------------------------------

/// What stands at this place of a JSON text, as the body of a request. The place is a JSON pointer (RFC 6901): "" for the
/// whole, "/item" for a member, "/lines/0/price" for one in an array. Each call reads the JSON from its beginning, so
/// this is for small ones. Code::Invalid if it is not JSON.
inline Result<JsonKind> json_kind(std::string_view json, const detail::Text &pointer = "") {
    std::uint32_t kind = PACE_JSON_NONE;
    const pace_status_t status = pace_json_kind(json.data(), json.size(), pointer.c_str(), &kind);
    return status == PACE_OK ? Result<JsonKind>(static_cast<JsonKind>(kind))
                             : Result<JsonKind>(Error::last(status));
}

/// The text at a place of a JSON text, decoded; see json_kind(). Code::Invalid if it is not JSON, or there is no text at
/// this place.
inline Result<std::string> json_text(std::string_view json, const detail::Text &pointer = "") {
    std::string text(json.size() + 1, '\0');
    std::size_t needed = 0;
    const pace_status_t status =
        pace_json_text(json.data(), json.size(), pointer.c_str(), text.data(), text.size(), &needed);
    text.resize(status == PACE_OK ? needed - 1 : 0);
    return status == PACE_OK ? Result<std::string>(std::move(text))
                             : Result<std::string>(Error::last(status));
}

/// The number at a place of a JSON text; see json_kind(). Whole numbers up to 2^53 are exact. Code::Invalid if it is not
/// JSON, or there is no number at this place.
inline Result<double> json_number(std::string_view json, const detail::Text &pointer = "") {
    double number = 0;
    const pace_status_t status = pace_json_number(json.data(), json.size(), pointer.c_str(), &number);
    return status == PACE_OK ? Result<double>(number) : Result<double>(Error::last(status));
}

/// A text as JSON: with quotes around it, and what JSON does not allow in them escaped. Code::Invalid if it is not UTF-8.
inline Result<std::string> json_quote(std::string_view text) {
    std::string json(6 * text.size() + 3, '\0');
    std::size_t needed = 0;
    const pace_status_t status =
        pace_json_quote(text.data(), text.size(), json.data(), json.size(), &needed);
    json.resize(status == PACE_OK ? needed - 1 : 0);
    return status == PACE_OK ? Result<std::string>(std::move(json))
                             : Result<std::string>(Error::last(status));
}

} // inline namespace
} // namespace paceline

#endif // PACELINE_HTTP_HPP
