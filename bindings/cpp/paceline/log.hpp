// paceline/log.hpp: the structured log.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_LOG_HPP
#define PACELINE_LOG_HPP

#include "core.hpp"

#include <paceline/log.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

// ---- the log -------------------------------------------------------------------------------------

/// The name of a level, as "warn", or of a component, as "net".
inline const char *name_of(LogLevel level) noexcept {
    return pace_log_level_name(static_cast<std::uint32_t>(level));
}
inline const char *name_of(LogComponent component) noexcept {
    return pace_log_component_name(static_cast<std::uint32_t>(component));
}

/// Something that a component tells.
struct LogRecord {
    using Value = std::variant<std::uint64_t, std::int64_t, double, std::string>;

    std::chrono::system_clock::time_point time{};
    LogLevel level{};
    LogComponent component{};
    /// What happened: a name that stays, as "accept.paused".
    std::string event{};
    /// The name of the pool that it happened in.
    std::string pool{};
    /// For people: a sentence without the fields.
    std::string message{};
    /// In order. Times end in _ns.
    std::vector<std::pair<std::string, Value>> fields{};

    /// A copy of a record of the C interface.
    static LogRecord from_native(const pace_log_record_t &raw);

    /// The value of a field; none if there is no such field, or it is of another type.
    template <class T>
    std::optional<T> field(std::string_view name) const {
        for (const auto &one : fields) {
            if (one.first == name && std::holds_alternative<T>(one.second)) {
                return std::get<T>(one.second);
            }
        }
        return std::nullopt;
    }
};

inline LogRecord LogRecord::from_native(const pace_log_record_t &raw) {
    LogRecord record;
    record.time +=
        std::chrono::duration_cast<std::chrono::system_clock::duration>(detail::time_of(raw.time_ns));
    record.level = static_cast<LogLevel>(raw.level);
    record.component = static_cast<LogComponent>(raw.component);
    record.event = raw.event;
    record.pool = raw.pool;
    record.message = raw.message;
    for (std::size_t index = 0; index < raw.field_count; ++index) {
        const pace_log_field_t &field = raw.fields[index];
        LogRecord::Value value = field.u64;
        if (field.kind == PACE_LOG_I64) {
            value = field.i64;
        } else if (field.kind == PACE_LOG_F64) {
            value = field.f64;
        } else if (field.kind == PACE_LOG_TEXT) {
            value = std::string(field.text);
        }
        record.fields.emplace_back(field.name, std::move(value));
    }
    return record;
}

/// Settings of a Log. What is not set is as the section `log` of `settings` has it; and then as paceline.h has it.
struct LogConfig {
    Settings settings{};
    /// Which lines are kept, as "info,net=debug,hub=off". Empty (default): "info".
    std::string levels{};
    /// The file that lines of JSON are appended to. Several logs may write one. A character device, a pipe and what a
    /// link in /proc leads to, as /dev/stdout, are written and never rotated; a directory, a block device and a socket
    /// are refused.
    std::string file{};
    std::optional<std::uint64_t> max_size{};
    std::optional<std::uint32_t> files{};
    std::optional<std::uint32_t> capacity{};
    /// How many records may wait for the completion queue that the log is attached to.
    std::uint32_t cq_capacity{};
    /// Called on the log's own thread. What it causes itself is not logged.
    Function<void(const LogRecord &)> on_record{};
};

/// What happens in pools and in all that stands on them, to a callable, to a file that is rotated, or to a
/// completion queue. Copies are the same log, and so are those of pools. When the last goes, what waits is told; if there is a
/// callable the destructor returns when it has been deleted, unless on a thread of a pool or of the log. See Config::log.
class Log {
public:
    /// No log at all: nothing is written.
    Log() noexcept = default;

    /// Code::Invalid names the setting, its value and what is allowed; Code::Os: there is no thread to be had.
    static Result<Log> create(LogConfig config) {
        pace_log_config_t raw{};
        (void)pace_log_config_init(&raw, sizeof raw);
        const pace_status_t loaded = detail::load(config.settings, raw, pace_log_config_load);
        if (loaded != PACE_OK) {
            return Error::last(loaded);
        }
        raw.levels = config.levels.empty() ? raw.levels : detail::c_text(config.levels);
        raw.file = config.file.empty() ? raw.file : detail::c_text(config.file);
        raw.max_size = config.max_size.value_or(raw.max_size);
        raw.files = config.files.value_or(raw.files);
        raw.capacity = config.capacity.value_or(raw.capacity);
        raw.cq_capacity = config.cq_capacity;
        using Function = Function<void(const LogRecord &)>;
        std::unique_ptr<Function> box;
        if (config.on_record) {
            box = std::make_unique<Function>(std::move(config.on_record));
            raw.on_record = told;
            raw.user_data = box.get();
            raw.drop = detail::drop_box<Function>;
        }
        pace_log_t *log = nullptr;
        const pace_status_t status = pace_log_new(&raw, &log);
        if (status != PACE_OK) {
            return Error::last(status);
        }
        (void)box.release();
        Log made;
        made.raw_.reset(log, pace_log_free);
        return made;
    }

    /// Makes it the log of all pools that are made from now on without one of their own. Code::Full: there is
    /// one already.
    Result<void> install() const { return detail::outcome(pace_log_install(native())); }
    /// Which records are made from now on: a text as LogConfig::levels. Code::Invalid: it is none.
    Result<void> set_levels(const detail::Text &levels) const {
        return detail::outcome(pace_log_set_levels(native(), levels.c_str()));
    }
    /// Up to which level a component tells.
    Result<LogLevel> level(LogComponent component) const {
        std::uint32_t level = PACE_LOG_OFF;
        const pace_status_t status =
            pace_log_level(native(), static_cast<std::uint32_t>(component), &level);
        return status == PACE_OK ? Result<LogLevel>(static_cast<LogLevel>(level))
                                 : Result<LogLevel>(Error::last(status));
    }
    /// Waits until everything that happened before was told and written. Code::TimedOut; Code::WouldDeadlock
    /// in its own callable.
    Result<void> flush(Duration time) const {
        return detail::outcome(pace_log_flush(native(), detail::nanos(time)));
    }
    /// Turns all levels off, and waits until everything is told and written, and the callable is deleted. As
    /// flush().
    Result<void> close(Duration time) const {
        return detail::outcome(pace_log_close(native(), detail::nanos(time)));
    }
    /// What it has done so far. Fields as in paceline.h.
    Result<pace_log_stats_t> stats() const {
        pace_log_stats_t stats{};
        stats.struct_size = sizeof stats;
        const pace_status_t status = pace_log_stats(native(), &stats);
        return status == PACE_OK ? Result<pace_log_stats_t>(stats)
                                 : Result<pace_log_stats_t>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the Log's.
    pace_log_t *native() const noexcept { return raw_.get(); }

private:
    static void told(void *data, const pace_log_record_t *raw) noexcept {
        (void)detail::guard([&] {
            (*static_cast<Function<void(const LogRecord &)> *>(data))(LogRecord::from_native(*raw));
        });
    }

    std::shared_ptr<pace_log_t> raw_;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_LOG_HPP
