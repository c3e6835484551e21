// paceline/ops.hpp: operation: endpoints, figures, timelines, thresholds, webhooks, systemd.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_OPS_HPP
#define PACELINE_OPS_HPP

#include "http.hpp"
#include "hub.hpp"
#include "workers.hpp"

#include <paceline/ops.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

/// What a hub has and has told. Fields as in pace_hub_stats_t.
struct HubStats : pace_hub_stats_t {
    HubStats() noexcept : pace_hub_stats_t{} { struct_size = sizeof(pace_hub_stats_t); }
};

/// A limit for a figure. Its name and labels are those of Hub::metrics().
class Threshold {
public:
    /// Crossed when the figure is above the limit.
    static Threshold above(std::string_view metric, double limit) {
        return Threshold(std::string(metric), limit, false);
    }
    /// Crossed when it is below.
    static Threshold below(std::string_view metric, double limit) {
        return Threshold(std::string(metric), limit, true);
    }

    /// Of the first figure that has this label, and the others that were given.
    Threshold &label(std::string_view name, std::string_view value) {
        return labels_.emplace_back(name, value), *this;
    }
    /// Back when the figure is not beyond this, which lies before the limit.
    Threshold &back_at(double value) noexcept { return back_at_ = value, *this; }
    /// Looks at how much the figure grows in a second.
    Threshold &rate() noexcept { return part_ = PACE_THRESHOLD_RATE, *this; }
    /// Looks at this quantile of a distribution, 0 to 1.
    Threshold &quantile(double value) noexcept {
        return part_ = PACE_THRESHOLD_QUANTILE, quantile_ = value, *this;
    }
    Threshold &severity(Severity value) noexcept { return severity_ = value, *this; }

private:
    friend class Hub;
    Threshold(std::string metric, double limit, bool below)
        : metric_(std::move(metric)), limit_(limit), below_(below) {}

    pace_threshold_t native(std::vector<pace_label_t> &labels) const {
        pace_threshold_t raw{};
        (void)pace_threshold_init(&raw, sizeof raw);
        for (const auto &[name, value] : labels_) {
            labels.push_back({detail::c_text(name), detail::c_text(value)});
        }
        raw.part = part_;
        raw.severity = static_cast<std::uint32_t>(severity_);
        raw.below = below_;
        raw.metric = detail::c_text(metric_);
        raw.labels = labels.data();
        raw.label_count = labels.size();
        raw.limit = limit_;
        raw.back_at = back_at_.value_or(limit_);
        raw.quantile = quantile_;
        return raw;
    }

    std::string metric_;
    std::vector<std::pair<std::string, std::string>> labels_{};
    double limit_;
    std::optional<double> back_at_{};
    double quantile_ = 0;
    std::uint32_t part_ = PACE_THRESHOLD_NUMBER;
    Severity severity_ = Severity::Warning;
    bool below_;
};

/// A threshold was crossed, or its figure is back.
struct Crossing {
    /// As people read it. It lives as long as the call.
    std::string_view message{};
    double figure{};
    /// Which of the thresholds: 0 for the first.
    std::size_t threshold{};
    Severity severity{};
    /// True if the limit was crossed, false if the value has come back.
    bool crossed{};
};

namespace detail {
inline void end_watch(pace_watch_t *raw) noexcept {
    const Waits waits;
    pace_watch_free(raw);
}
} // namespace detail

/// Thresholds that are watched, until this goes: the destructor returns when its callable does not run and has been
/// deleted. Inside a handler, and on a thread of the pool, it does not wait.
class [[nodiscard]] Watch {
public:
    /// How often it has looked, and how many thresholds are crossed now.
    Result<pace_watch_stats_t> stats() const {
        pace_watch_stats_t stats{};
        stats.struct_size = sizeof stats;
        const pace_status_t status = pace_watch_stats(raw_.get(), &stats);
        return status == PACE_OK ? Result<pace_watch_stats_t>(stats)
                                 : Result<pace_watch_stats_t>(Error::last(status));
    }

private:
    friend class Hub;
    explicit Watch(pace_watch_t *raw) : raw_(raw, &detail::end_watch) {}

    std::unique_ptr<pace_watch_t, void (*)(pace_watch_t *)> raw_;
};

namespace detail {

/// Tells of a crossing: void(const Crossing &).
template <class F>
void tell_crossing(void *data, const pace_crossing_t *raw) noexcept {
    (void)guard([&] {
        Crossing crossing;
        crossing.message = Message::view(raw->message);
        crossing.figure = raw->figure;
        crossing.threshold = raw->threshold;
        crossing.severity = static_cast<Severity>(raw->severity);
        crossing.crossed = raw->crossed;
        return (*static_cast<F *>(data))(static_cast<const Crossing &>(crossing));
    });
}

} // namespace detail

/// The settings of an operations endpoint: address, token, what it shows.
struct OpsConfig {
    /// Where it listens, for Ops::serve(pool, config): "127.0.0.1:9090". Empty (default): it is only to be mounted.
    std::string address{};
    /// What requests must show as `Authorization: Bearer` and this, of at least 16 visible ASCII characters; only the page
    /// itself, which has no data, is sent without, and whether the pool is well, without reasons. Empty (default): only this
    /// machine is answered, without a proxy between, and nothing can be changed.
    std::string token{};
    /// How long a handler or task may hold its thread before the thread is shown as blocked: 1 ms to one hour. What health
    /// says does not depend on it.
    Duration blocked_after = std::chrono::milliseconds(500);
    /// How long the oldest thing that waits in the pool (a task, an event, a timer that is due, an entry of a completion
    /// queue) may wait before the pool is not ready, so that a load balancer sends its requests elsewhere: 1 ms to one hour.
    Duration ready_after = std::chrono::seconds(5);
    /// For how long something must have waited, and nothing have begun or ended on any thread, before the pool is dead, so
    /// that the process is started anew: 1 ms to one hour. Choose it longer than all threads may compute at a time. The
    /// watchdog of systemd (Service) judges by that of the pool's endpoint that was made last.
    Duration dead_after = std::chrono::seconds(30);
    /// A worker pool that was made with `metrics`, whose registry is shown, with the program's own figures. Default nullptr:
    /// the figures of the pool, of what stands on it, and of the process. It must live until Ops::serve() has returned.
    const WorkerPool *workers = nullptr;
    /// Settings that /config shows, with where each value came from. Secrets are masked.
    Settings shown{};

    /// As the section `ops` of settings says, all of which it shows.
    static Result<OpsConfig> load(const Settings &settings) {
        using Raw = pace_ops_options_t;
        return detail::loaded<OpsConfig, Raw>(
            settings, pace_ops_options_init, pace_ops_options_load, [&settings](const Raw &raw) {
                OpsConfig config;
                config.address = detail::text_of(raw.address);
                config.token = detail::text_of(raw.token);
                config.blocked_after = detail::time_of(raw.blocked_after_ns);
                config.ready_after = detail::time_of(raw.ready_after_ns);
                config.dead_after = detail::time_of(raw.dead_after_ns);
                config.shown = settings;
                return config;
            });
    }

    OpsConfig &set_address(std::string_view value) { return address = value, *this; }
    OpsConfig &set_token(std::string_view value) { return token = value, *this; }
    OpsConfig &set_blocked_after(Duration value) { return blocked_after = value, *this; }
    OpsConfig &set_ready_after(Duration value) { return ready_after = value, *this; }
    OpsConfig &set_dead_after(Duration value) { return dead_after = value, *this; }
    OpsConfig &set_workers(const WorkerPool &value) { return workers = &value, *this; }
    OpsConfig &set_shown(Settings value) { return shown = std::move(value), *this; }
};

/// An operations endpoint: a live page, figures and health of a pool and all that stands on it, by HTTP, from a thread of
/// its own, so that it answers while all threads of the pool are blocked. It ends when it is destroyed.
///
///     auto ops = paceline::Ops::serve(pool, "127.0.0.1:9090").value();
class [[nodiscard]] Ops {
public:
    /// Starts at this address. Code::Invalid names the setting: an address that other machines can reach needs a token;
    /// Code::Os if it cannot be listened on.
    static Result<Ops> serve(const Pool &pool, std::string_view address) {
        return serve(pool, OpsConfig().set_address(address));
    }
    /// As above, with these settings. Without an address it is only to be mounted.
    static Result<Ops> serve(const Pool &pool, const OpsConfig &config) {
        pace_ops_options_t options{};
        (void)pace_ops_options_init(&options, sizeof options);
        options.address = detail::c_text_if_any(config.address);
        options.token = detail::c_text_if_any(config.token);
        options.blocked_after_ns = detail::nanos(config.blocked_after);
        options.ready_after_ns = detail::nanos(config.ready_after);
        options.dead_after_ns = detail::nanos(config.dead_after);
        options.workers = config.workers == nullptr ? nullptr : config.workers->native();
        const std::vector<const char *> files = detail::c_texts(config.shown.files);
        options.settings = files.data();
        options.settings_count = files.size();
        options.environment = config.shown.environment;
        pace_ops_t *raw = nullptr;
        const pace_status_t status = pace_ops_serve(pool.native(), nullptr, &options, &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Ops(raw);
    }

    /// Adds its routes to a server that was not started, behind a prefix: "/ops". Without a token, requests of other
    /// machines, and those that a proxy has passed on, are answered with 403. While the server's threads are all blocked, it is
    /// full or has no descriptors, they do not answer; an endpoint with an address of its own does. When this is destroyed,
    /// the routes answer with 500. Code::Invalid if the server was started, or for a prefix that does not begin with `/`, or
    /// ends in it.
    Result<void> mount(const Http &http, const detail::Text &prefix) const {
        return detail::outcome(pace_http_mount_ops(http.native(), raw_.get(), prefix.c_str()));
    }

    /// Where it listens, with the port that it got. Code::Invalid if it is only mounted.
    Result<std::string> address() const {
        return detail::text_of(
            [this](char *text, std::size_t size) { return pace_ops_address(raw_.get(), text, size); });
    }

    /// For calls to paceline.h. Stays the Ops'.
    pace_ops_t *native() const noexcept { return raw_.get(); }

private:
    struct Free {
        void operator()(pace_ops_t *ops) const noexcept { pace_ops_free(ops); }
    };

    explicit Ops(pace_ops_t *raw) : raw_(raw) {}

    std::unique_ptr<pace_ops_t, Free> raw_;
};

/// The settings of a webhook: capacity, time-out, retries, headers, proxy.
struct WebhookConfig {
    /// How many bodies may wait, 1 to 65536; what comes while so many wait is dropped.
    std::uint64_t capacity = 1024;
    /// How long one attempt may take: 1 ms to 5 minutes.
    Duration timeout = std::chrono::seconds(10);
    /// How an attempt that failed is followed by others. Without one: 5 of them, after 1 s, and twice as long
    /// after each other.
    std::optional<Retry> retry{};
    /// More headers of each request.
    std::vector<std::pair<std::string, std::string>> headers{};
    /// The proxy's address, as "http://proxy.example:3128". Empty (default): no proxy.
    std::string proxy{};
    /// What is posted to, for Webhook::create(config).
    std::string url{};

    /// As the section `webhook` of settings says.
    static Result<WebhookConfig> load(const Settings &settings) {
        using Raw = pace_webhook_options_t;
        return detail::loaded<WebhookConfig, Raw>(settings, pace_webhook_options_init,
                                                  pace_webhook_options_load, [](const Raw &raw) {
                                                      WebhookConfig config;
                                                      config.capacity = raw.capacity;
                                                      config.timeout = detail::time_of(raw.timeout_ns);
                                                      config.retry = Retry::of(raw.retry);
                                                      config.proxy = detail::text_of(raw.proxy);
                                                      config.url = detail::text_of(raw.url);
                                                      return config;
                                                  });
    }

    WebhookConfig &set_capacity(std::uint64_t value) { return capacity = value, *this; }
    WebhookConfig &set_timeout(Duration value) { return timeout = value, *this; }
    WebhookConfig &set_retry(Retry value) { return retry = std::move(value), *this; }
    WebhookConfig &add_header(std::string_view name, std::string_view value) {
        return headers.emplace_back(name, value), *this;
    }
    WebhookConfig &set_proxy(std::string_view value) { return proxy = value, *this; }
};

/// What a webhook has done. Fields as in pace_webhook_stats_t.
struct WebhookStats : pace_webhook_stats_t {
    WebhookStats() noexcept : pace_webhook_stats_t{} { struct_size = sizeof(pace_webhook_stats_t); }
};

/// Posts JSON to a URL, from a thread of its own, in order. Copies are the same one; when the last is gone, and
/// no subscription has it, its thread ends, and what waits is dropped: flush() before.
class Webhook {
public:
    /// Code::Unsupported: the library was built without the feature `webhook`; Code::Invalid names the
    /// setting. That nobody listens there is no error.
    static Result<Webhook> create(const WebhookConfig &config) { return create(config.url, config); }
    /// As above, to this URL.
    static Result<Webhook> create(const detail::Text &url, const WebhookConfig &config = {}) {
        pace_webhook_options_t options{};
        (void)pace_webhook_options_init(&options, sizeof options);
        options.capacity = config.capacity;
        options.timeout_ns = detail::nanos(config.timeout);
        if (config.retry) {
            options.retry = config.retry->native();
        }
        std::vector<pace_field_t> headers;
        for (const auto &[name, value] : config.headers) {
            headers.push_back({{name.data(), name.size()}, {value.data(), value.size()}});
        }
        options.headers = headers.data();
        options.header_count = headers.size();
        options.proxy = detail::c_text_if_any(config.proxy);
        pace_webhook_t *raw = nullptr;
        const pace_status_t status = pace_webhook_new(url.c_str(), &options, &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Webhook(raw);
    }

    /// Posts this, which should be JSON. Code::Full: there was no room, and it was dropped. It never waits.
    Result<void> post(std::string_view json) const {
        return detail::outcome(pace_webhook_post(raw_.get(), json.data(), json.size()));
    }
    /// Posts the payloads of all messages of a hub that the pattern matches, "$SYS.>" say.
    Result<Subscription> forward(const Hub &hub, const detail::Text &pattern) const {
        pace_subscription_t id{};
        const pace_status_t status =
            pace_webhook_forward(raw_.get(), hub.native(), pattern.c_str(), &id);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Subscription(hub.core_, id);
    }
    /// Waits until everything that was posted before has been delivered or given up. Code::TimedOut.
    Result<void> flush(Duration time) const {
        return detail::outcome(pace_webhook_flush(raw_.get(), detail::nanos(time)));
    }
    /// What it has done so far.
    Result<WebhookStats> stats() const {
        WebhookStats stats;
        const pace_status_t status = pace_webhook_stats(raw_.get(), &stats);
        return status == PACE_OK ? Result<WebhookStats>(stats)
                                 : Result<WebhookStats>(Error::last(status));
    }
    /// What the last attempt that failed has failed of; empty: none has.
    Result<std::string> last_error() const {
        return detail::figures_of([this](char *text, std::size_t size, std::size_t *needed) {
            return pace_webhook_last_error(raw_.get(), text, size, needed);
        });
    }

private:
    explicit Webhook(pace_webhook_t *raw) : raw_(raw, pace_webhook_free) {}

    std::shared_ptr<pace_webhook_t> raw_;
};

/// This process as a service of systemd, which counts as ready from its start on and as stopping when this is
/// gone: let it go before the drain.
class [[nodiscard]] Service {
public:
    /// Tells systemd that the process is ready. If its unit has a watchdog, a thread of the pool asks the bool() twice in
    /// its time, or as soon as one is free; what it throws is a no. The watchdog is fed while the last answer was true and
    /// the pool does not starve: while not something has waited, and nothing has begun or ended on any thread, for 30 s, or
    /// for OpsConfig::dead_after of the pool's Ops if it has one. Where no systemd has started the process, nothing is told
    /// and nobody asks. Code::Unsupported: the library was built without the feature `systemd`; Code::Os: systemd cannot be
    /// told, or there are no more threads.
    template <class F>
    static Result<Service> start(const Pool &pool, F &&is_well) {
        using D = std::decay_t<F>;
        static_assert(std::is_invocable_r_v<bool, D &>, "whether it is well is told by a bool()");
        if (auto refused = detail::refused_if_empty(is_well, "is_well")) {
            return *std::move(refused);
        }
        auto box = detail::boxed(std::forward<F>(is_well));
        const auto ask = [](void *data) noexcept -> std::int32_t {
            bool well = false;
            (void)detail::guard([&] { well = (*static_cast<D *>(data))(); });
            return well;
        };
        pace_service_t *raw = nullptr;
        const pace_status_t status =
            pace_service_start(pool.native(), ask, box.get(), detail::drop_box<D>, &raw);
        if (status != PACE_OK) {
            Error error = Error::last(status);
            detail::give_back<F>(is_well, *box);
            return error;
        }
        (void)box.release();
        return Service(raw);
    }
    /// It is well as long as the pool does not starve.
    static Result<Service> start(const Pool &pool) {
        pace_service_t *raw = nullptr;
        const pace_status_t status = pace_service_start(pool.native(), nullptr, nullptr, nullptr, &raw);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        return Service(raw);
    }

    /// What `systemctl status` shows: one line.
    Result<void> status(const detail::Text &text) const {
        return detail::outcome(pace_service_status(raw_.get(), text.c_str()));
    }

private:
    struct Free {
        void operator()(pace_service_t *raw) const noexcept { pace_service_free(raw); }
    };
    explicit Service(pace_service_t *raw) : raw_(raw) {}

    std::unique_ptr<pace_service_t, Free> raw_;
};

inline Result<HubStats> Hub::stats() const {
    HubStats stats;
    const pace_status_t status = pace_hub_stats(native(), &stats);
    return status == PACE_OK ? Result<HubStats>(stats) : Result<HubStats>(Error::last(status));
}

inline Result<std::string> Pool::metrics(std::uint32_t format) const {
    return detail::figures_of([&](char *text, std::size_t size, std::size_t *needed) {
        return pace_pool_metrics(native(), format, text, size, needed);
    });
}

inline Result<std::string> Pool::trace(Duration time, std::uint32_t records) const {
    pace_trace_t *trace = nullptr;
    const pace_status_t status = pace_pool_trace(native(), detail::nanos(time), records, &trace);
    if (status != PACE_OK) {
        return Error::last(status);
    }
    const std::unique_ptr<pace_trace_t, void (*)(pace_trace_t *)> owner(trace, pace_trace_free);
    pace_text_t json{};
    (void)pace_trace_json(trace, &json);
    return std::string(json.text, json.size);
}

inline Result<void> Pool::add_disk(const detail::Text &path) const {
    return detail::outcome(pace_pool_disk(native(), path.c_str()));
}

inline Result<std::string> Hub::metrics(std::uint32_t format) const {
    return detail::figures_of([&](char *text, std::size_t size, std::size_t *needed) {
        return pace_hub_metrics(native(), format, text, size, needed);
    });
}

inline Result<void> Hub::share_metrics(const WorkerPool &workers) const {
    return detail::outcome(pace_hub_share_metrics(native(), workers.native()));
}

template <class F>
Result<Watch> Hub::watch(Duration every, const std::vector<Threshold> &thresholds, F &&on_crossing,
                         const WorkerPool *workers) const {
    using D = std::decay_t<F>;
    static_assert(std::is_invocable_v<D &, const Crossing &>, "it is void(const Crossing &)");
    if (auto refused = detail::refused_if_empty(on_crossing, "on_crossing")) {
        return *std::move(refused);
    }
    std::vector<std::vector<pace_label_t>> labels(thresholds.size());
    std::vector<pace_threshold_t> raw;
    for (std::size_t i = 0; i < thresholds.size(); ++i) {
        raw.push_back(thresholds[i].native(labels[i]));
    }
    auto box = detail::boxed(std::forward<F>(on_crossing));
    pace_watch_t *made = nullptr;
    const pace_status_t status = pace_hub_watch(
        native(), workers != nullptr ? workers->native() : nullptr, detail::nanos(every), raw.data(),
        raw.size(), detail::tell_crossing<D>, box.get(), detail::drop_box<D>, &made);
    if (status != PACE_OK) {
        Error error = Error::last(status);
        detail::give_back<F>(on_crossing, *box);
        return error;
    }
    (void)box.release();
    return Watch(made);
}

} // inline namespace
} // namespace paceline

#endif // PACELINE_OPS_HPP
