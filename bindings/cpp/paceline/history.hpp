// paceline/history.hpp: the hub's history: queries, replays, export and import, archives.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_HISTORY_HPP
#define PACELINE_HISTORY_HPP

#include "subscription.hpp"

#include <paceline/history.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

/// A message that a history has kept: a copy.
using Record = OwnedMessage;

/// Which messages of a history are asked for; what is zero is not asked about.
struct Query {
    std::string pattern{">"};
    /// Sequences and times (Duration since 1970), the ends included.
    std::uint64_t first{}, last{}, since_ns{}, until_ns{};
    /// At most so many, the oldest, or the newest.
    std::uint64_t limit{};
    bool newest{};

    pace_query_t native() const noexcept {
        pace_query_t raw{};
        raw.struct_size = sizeof raw;
        raw.newest = newest;
        raw.pattern = detail::c_text(pattern);
        raw.first = first;
        raw.last = last;
        raw.since_ns = since_ns;
        raw.until_ns = until_ns;
        raw.limit = limit;
        return raw;
    }
};

/// What a history has done. Fields as in pace_history_stats_t, copied.
struct HistoryStats {
    std::string pattern{}, last_error{}, last_read_error{}, last_lines_error{};
    std::uint64_t recorded{}, in_memory{}, memory_bytes{}, waiting{}, commits{}, given_up{}, errors{},
        read_errors{}, durable{}, lines_lost{};
};

/// What a hub keeps of the messages that a pattern matches. Without a limit it has none.
struct HistoryConfig {
    std::string pattern{">"};
    std::optional<std::uint64_t> keep_count{1024}, keep_bytes{};
    std::optional<Duration> keep_age{};
    /// A file of SQLite, and not ":memory:". Code::Unsupported if the library was built without the feature `archive`.
    std::string archive{};
    std::optional<std::uint64_t> archive_count{}, archive_bytes{};
    std::optional<Duration> archive_age{};
    /// A commit counts when the file was written, and not only when the disk has it.
    bool process_only = false;
    /// Reads the whole archive when it is opened.
    bool check = false;
    /// A file of lines of JSON. Several histories may write one. It may be a device, as that of a Log, and is no pipe.
    std::string lines{};
    /// Where there is no room publishers write to the disk themselves, or wait for so long, and their publication is
    /// refused then: Code::Full. On threads of the pool it is refused at once if the disk fails. Without it
    /// (std::nullopt) they never wait, and the archive goes without the oldest: flush() fails then, and says how many.
    std::optional<Duration> disk_wait{std::chrono::seconds(10)};

    /// How large the file of lines becomes before it is renamed to `.1`, 1 KiB to 1 TiB.
    std::uint64_t lines_max_size = std::uint64_t{64} << 20;
    /// How many such files are kept, 1 to 1000.
    std::uint32_t lines_files = 4;
    /// What waits for the disk is written when it is so many messages, 1 to 65536.
    std::uint32_t commit_messages = 1024;
    /// What waits for the disk is written after so long in any case, up to an hour.
    Duration commit_delay = std::chrono::milliseconds(10);

    /// As the section `history` of settings says.
    static Result<HistoryConfig> load(const Settings &settings) {
        using Raw = pace_history_options_t;
        return detail::loaded<HistoryConfig, Raw>(
            settings, pace_history_options_init, pace_history_options_load, [](const Raw &raw) {
                HistoryConfig config;
                const auto age = [](std::uint64_t limit) {
                    return limit == PACE_UNLIMITED ? std::nullopt
                                                   : std::optional<Duration>(detail::time_of(limit));
                };
                config.pattern = raw.pattern == nullptr ? ">" : raw.pattern;
                config.keep_count = detail::unless_unlimited(raw.keep_count);
                config.keep_bytes = detail::unless_unlimited(raw.keep_bytes);
                config.keep_age = age(raw.keep_age_ns);
                config.archive = detail::text_of(raw.archive);
                config.archive_count = detail::unless_unlimited(raw.archive_count);
                config.archive_bytes = detail::unless_unlimited(raw.archive_bytes);
                config.archive_age = age(raw.archive_age_ns);
                config.process_only = raw.process_only;
                config.lines = detail::text_of(raw.lines);
                config.lines_max_size = raw.lines_max_size;
                config.lines_files = raw.lines_files;
                config.commit_messages = raw.commit_messages;
                config.commit_delay = detail::time_of(raw.commit_delay_ns);
                config.disk_wait = detail::time_of(raw.disk_wait_ns);
                return config;
            });
    }

    HistoryConfig &set_pattern(std::string_view value) { return pattern = value, *this; }
    HistoryConfig &set_keep_count(std::uint64_t value) { return keep_count = value, *this; }
    HistoryConfig &set_keep_bytes(std::uint64_t value) { return keep_bytes = value, *this; }
    HistoryConfig &set_keep_age(Duration value) { return keep_age = value, *this; }
    HistoryConfig &set_archive(std::string_view path) { return archive = path, *this; }
    HistoryConfig &set_lines(std::string_view path) { return lines = path, *this; }

    pace_history_options_t native() const noexcept {
        pace_history_options_t raw{};
        (void)pace_history_options_init(&raw, sizeof raw);
        const auto age = [](const std::optional<Duration> &value) {
            return value ? detail::nanos(*value) : PACE_UNLIMITED;
        };
        raw.pattern = detail::c_text(pattern);
        raw.keep_count = keep_count.value_or(PACE_UNLIMITED);
        raw.keep_bytes = keep_bytes.value_or(PACE_UNLIMITED);
        raw.keep_age_ns = age(keep_age);
        raw.archive = detail::c_text_if_any(archive);
        raw.archive_count = archive_count.value_or(PACE_UNLIMITED);
        raw.archive_bytes = archive_bytes.value_or(PACE_UNLIMITED);
        raw.archive_age_ns = age(archive_age);
        raw.lines = detail::c_text_if_any(lines);
        raw.lines_max_size = lines_max_size;
        raw.lines_files = lines_files;
        raw.commit_messages = commit_messages;
        raw.commit_delay_ns = detail::nanos(commit_delay);
        raw.process_only = process_only;
        raw.check = check;
        raw.when_full = disk_wait ? PACE_DISK_WAIT : PACE_DISK_GIVE_UP;
        raw.disk_wait_ns = disk_wait ? detail::nanos(*disk_wait) : 0;
        return raw;
    }
};

/// The message that a replay of a history begins with.
class ReplayFrom {
public:
    static ReplayFrom beginning() noexcept { return {PACE_REPLAY_BEGINNING, 0}; }
    static ReplayFrom sequence(std::uint64_t number) noexcept { return {PACE_REPLAY_SEQUENCE, number}; }
    static ReplayFrom time(detail::SystemTime time) noexcept {
        return {PACE_REPLAY_TIME, time.nanos_since_1970};
    }
    /// With the last so many messages that are kept.
    static ReplayFrom last(std::uint64_t messages) noexcept { return {PACE_REPLAY_LAST, messages}; }
    static ReplayFrom now() noexcept { return {PACE_REPLAY_NOW, 0}; }

private:
    friend class Hub;
    ReplayFrom(std::uint32_t from, std::uint64_t at) noexcept : from_(from), at_(at) {}

    std::uint32_t from_;
    std::uint64_t at_;
};

/// How a replay is supervised: what becomes of messages that its handler fails at, and of the handler.
struct ReplayConfig {
    /// How a message that the handler fails at is tried again, and what then becomes of it.
    std::optional<Retry> retry{};
    OnExhausted on_exhausted = OnExhausted::DeadLetter;
    /// More restarts suspend it for a while. Without one: 3 in 5 seconds.
    std::optional<Intensity> intensity{};
    /// Restarts it together with others, in place of an intensity of its own.
    std::optional<Supervisor> supervisor{};
    /// For mailboxes of a host that runs a handler of its own, as that of SubscriptionConfig; the replay is among the
    /// figures of its hub then.
    bool acknowledged = false;

    ReplayConfig &set_on_failure(OnExhausted value, std::optional<Retry> before = {}) {
        return on_exhausted = value, retry = before, *this;
    }
    ReplayConfig &set_intensity(Intensity value) { return intensity = value, *this; }
    ReplayConfig &set_supervisor(Supervisor value) { return supervisor = std::move(value), *this; }
    ReplayConfig &set_acknowledged(bool value) { return acknowledged = value, *this; }

    pace_replay_options_t native() const noexcept {
        pace_replay_options_t raw{};
        (void)pace_replay_options_init(&raw, sizeof raw);
        if (retry) {
            raw.retry = retry->native();
        }
        raw.on_exhausted = static_cast<std::uint32_t>(on_exhausted);
        if (intensity) {
            raw.restarts = intensity->restarts;
            raw.within_ns = detail::limit_nanos(intensity->within);
            raw.suspension_ns = detail::limit_nanos(intensity->suspension);
            raw.longest_suspension_ns = detail::limit_nanos(intensity->longest_suspension);
        }
        raw.supervisor = supervisor ? supervisor->native() : nullptr;
        raw.acknowledged = acknowledged;
        return raw;
    }
};

namespace detail {
inline void end_replay(pace_replay_t *raw) noexcept {
    const Waits waits;
    pace_replay_free(raw);
}
} // namespace detail

/// The counts of a replay. Fields as in pace_replay_stats_t.
struct ReplayStats : pace_replay_stats_t {
    ReplayStats() noexcept : pace_replay_stats_t{} { struct_size = sizeof(pace_replay_stats_t); }
};

namespace detail {

inline void collect_record(void *data, const pace_message_t *raw) noexcept {
    Rows<Record>::add(data, [&] { return Message(*raw).to_owned(); });
}

inline void collect_history(void *data, const pace_history_stats_t *raw) noexcept {
    Rows<HistoryStats>::add(data, [&] {
        HistoryStats stats;
        stats.pattern = Message::view(raw->pattern);
        stats.last_error = Message::view(raw->last_error);
        stats.last_read_error = Message::view(raw->last_read_error);
        stats.last_lines_error = Message::view(raw->last_lines_error);
        stats.recorded = raw->recorded;
        stats.in_memory = raw->in_memory;
        stats.memory_bytes = raw->memory_bytes;
        stats.waiting = raw->waiting;
        stats.commits = raw->commits;
        stats.given_up = raw->given_up;
        stats.errors = raw->errors;
        stats.read_errors = raw->read_errors;
        stats.durable = raw->durable;
        stats.lines_lost = raw->lines_lost;
        return stats;
    });
}

} // namespace detail

/// A replay to a handler. When it goes it ends, and the destructor returns when the handler does not run and has been
/// deleted. Inside a handler, on a thread of the pool, and after end(), it does not wait.
class [[nodiscard]] Replay {
public:
    /// The counters of the replay, until now.
    Result<ReplayStats> stats() const {
        ReplayStats stats;
        const pace_status_t status = pace_replay_stats(raw_.get(), &stats);
        return status == PACE_OK ? Result<ReplayStats>(stats) : Result<ReplayStats>(Error::last(status));
    }
    /// Ends its suspension, and that of all others of its supervisor: it goes on with the message behind the
    /// last that its handler was called with. False: none was suspended.
    Result<bool> resume() const {
        bool resumed = false;
        const pace_status_t status = pace_replay_resume(raw_.get(), &resumed);
        return status == PACE_OK ? Result<bool>(resumed) : Result<bool>(Error::last(status));
    }
    /// Ends it. True: no handler runs or will run, and it has been deleted.
    Result<bool> end(Unsubscribe how = Unsubscribe::Async) const {
        bool ended = false;
        const pace_status_t status =
            pace_replay_end(raw_.get(), static_cast<std::uint32_t>(how), &ended);
        return status == PACE_OK ? Result<bool>(ended) : Result<bool>(Error::last(status));
    }

private:
    friend class Hub;
    Replay(std::shared_ptr<const detail::HubCore> core, pace_replay_t *raw)
        : core_(std::move(core)), raw_(raw, &detail::end_replay) {}

    std::shared_ptr<const detail::HubCore> core_;
    std::unique_ptr<pace_replay_t, void (*)(pace_replay_t *)> raw_;
};

/// A replay whose messages wait for the host's own threads, which take them by CompletionQueue::attach().
class [[nodiscard]] ReplayMailbox : public detail::HostMailbox {
public:
    /// Its counts; what a completion queue has brought counts as delivered, or if it is `acknowledged` as running.
    Result<ReplayStats> stats() const {
        ReplayStats stats;
        const pace_status_t status = pace_replay_mailbox_stats(raw_, &stats);
        return status == PACE_OK ? Result<ReplayStats>(stats) : Result<ReplayStats>(Error::last(status));
    }

private:
    friend class Hub;
    using HostMailbox::HostMailbox;
};

/// What was read of a file of lines.
struct LinesRead {
    /// Messages that were asked for.
    std::uint64_t messages{};
    /// Lines that are no JSON, and were skipped.
    std::uint64_t torn{};
};

/// Copies of the messages of a file of lines of JSON that the query asks for, in their order; its `newest` is not looked
/// at. Lines that are no JSON are skipped. Reads one file: those that were rotated away are files of their own.
inline Result<std::vector<Record>> read_lines(const detail::Text &path, const Query &query = {}) {
    detail::Rows<Record> rows;
    const pace_query_t raw = query.native();
    return rows.taken(
        pace_lines_read(path.c_str(), &raw, detail::collect_record, &rows, nullptr, nullptr));
}

/// An archive that is read without a hub, or beside one. Code::Unsupported if the library was built without the feature
/// `archive`.
class [[nodiscard]] Archive {
public:
    /// Opens a file that a hub has made (HistoryConfig::archive). It is brought up to date if it is older.
    static Result<Archive> open(const detail::Text &path) {
        pace_archive_t *raw = nullptr;
        const pace_status_t status = pace_archive_open(path.c_str(), &raw);
        return status == PACE_OK ? Result<Archive>(Archive(raw)) : Result<Archive>(Error::last(status));
    }

    /// Makes a new archive of the messages of a file of lines that the query asks for. Of the settings, what is said of
    /// the archive counts. Sequences have to grow, as those of an export do. Code::Invalid if the archive has something
    /// in it. What was put in before a failure stays.
    static Result<LinesRead> import_lines(const HistoryConfig &config, const detail::Text &lines,
                                          const Query &query = {}) {
        LinesRead read;
        const pace_history_options_t options = config.native();
        const pace_query_t raw = query.native();
        const pace_status_t status =
            pace_archive_import(&options, lines.c_str(), &raw, &read.messages, &read.torn);
        return status == PACE_OK ? Result<LinesRead>(read) : Result<LinesRead>(Error::last(status));
    }

    Archive(Archive &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Archive &operator=(Archive other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~Archive() { pace_archive_free(raw_); }

    /// Copies of what the query asks for, in order. Any thread; they take turns.
    Result<std::vector<Record>> query(const Query &query = {}) const {
        detail::Rows<Record> rows;
        const pace_query_t raw = query.native();
        return rows.taken(pace_archive_query(raw_, &raw, detail::collect_record, &rows, nullptr));
    }

    /// Writes what the query asks for to a new file of lines of JSON, which is there when all of it is; its `newest` is not
    /// looked at. Says how many messages there were.
    Result<std::uint64_t> export_lines(const detail::Text &path, const Query &query = {}) const {
        std::uint64_t count = 0;
        const pace_query_t raw = query.native();
        const pace_status_t status = pace_archive_export(raw_, &raw, path.c_str(), &count);
        return status == PACE_OK ? Result<std::uint64_t>(count)
                                 : Result<std::uint64_t>(Error::last(status));
    }

    /// For calls to paceline.h. Stays the Archive's.
    pace_archive_t *native() const noexcept { return raw_; }

private:
    explicit Archive(pace_archive_t *raw) noexcept : raw_(raw) {}

    pace_archive_t *raw_;
};

} // inline namespace
} // namespace paceline

#endif // PACELINE_HISTORY_HPP
