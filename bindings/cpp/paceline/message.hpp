// paceline/message.hpp: messages of the hub.
// The head of paceline.hpp says what holds for all of it: who owns what, errors, exceptions, durations.
#ifndef PACELINE_MESSAGE_HPP
#define PACELINE_MESSAGE_HPP

#include "task.hpp"

#include <paceline/hub.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace paceline {
inline namespace PACELINE_DETAIL_ABI {

// ---- the event hub -------------------------------------------------------------------------------

/// What a publisher is told. Fields as in pace_receipt_t.
struct [[nodiscard]] Receipt : pace_receipt_t {
    Receipt() noexcept : pace_receipt_t{} { struct_size = sizeof(pace_receipt_t); }
    /// Whether everybody who matched will get it.
    bool is_complete() const noexcept { return enqueued == matched; }
};

/// A message that whoever has it owns: the reply to a request, a record of a history, a copy of a Message.
struct OwnedMessage {
    std::string key{}, payload{};
    std::vector<std::pair<std::string, std::string>> headers{};
    /// As the fields of pace_message_t with these names.
    std::uint64_t sequence{}, time_ns{}, lost_before{};
    Priority priority{};
    std::uint32_t attempt{};

    const std::string &key_text() const &noexcept { return key; }
    std::string key_text() && { return std::move(key); }
    /// The payload of the message, which this object owns.
    const std::string &text() const &noexcept { return payload; }
    std::string text() && { return std::move(payload); }
    /// The value of the first header of this name.
    std::optional<std::string> header(std::string_view name) const {
        for (const auto &[its_name, value] : headers) {
            if (its_name == name) {
                return value;
            }
        }
        return std::nullopt;
    }
};

/// A message, lent: to a handler until it returns, as an entry of a completion queue until that is completed. It cannot
/// be copied: to_owned() gives a copy that may be kept, and may be replied to later. Fields as in pace_message_t.
struct Message : pace_message_t {
    explicit Message(const pace_message_t &raw) noexcept : pace_message_t(raw) {}
    Message(const Message &) = delete;
    Message &operator=(const Message &) = delete;

    std::string_view key_text() const noexcept { return view(key); }
    /// The payload of the message, which is lent as long as the message is.
    std::string_view text() const noexcept { return {static_cast<const char *>(payload), size}; }
    /// The value of the first header of this name.
    std::optional<std::string_view> header(std::string_view name) const noexcept {
        for (std::size_t i = 0; i < header_count; ++i) {
            if (view(headers[i].name) == name) {
                return view(headers[i].value);
            }
        }
        return std::nullopt;
    }
    /// A copy with bytes of its own.
    OwnedMessage to_owned() const {
        OwnedMessage owned{std::string(key_text()),
                           std::string(text()),
                           {},
                           sequence,
                           time_ns,
                           lost_before,
                           static_cast<Priority>(priority),
                           attempt};
        for (std::size_t i = 0; i < header_count; ++i) {
            owned.headers.emplace_back(view(headers[i].name), view(headers[i].value));
        }
        return owned;
    }

    /// In a handler that fails at it: no other attempt helps, so there is none.
    void permanent() const noexcept { (void)pace_message_permanent(); }
    /// In a handler that fails at it: another attempt, if there is one, does not come before `delay` from now.
    void retry_after(Duration delay) const noexcept {
        (void)pace_message_retry_after(detail::nanos(delay));
    }

    static std::string_view view(pace_text_t text) noexcept {
        return text.size == 0 ? std::string_view() : std::string_view(text.text, text.size);
    }
};

/// What is published beside a payload.
struct Publication {
    Priority priority = Priority::Normal;
    std::vector<std::pair<std::string, std::string>> headers{};
    /// Does not wait for room in mailboxes that let publishers wait: they refuse. For threads that must not be held up,
    /// as those of an event loop.
    bool no_wait = false;

    Publication &set_priority(Priority value) { return priority = value, *this; }
    Publication &add_header(std::string_view name, std::string_view value) {
        return headers.emplace_back(name, value), *this;
    }
    Publication &set_no_wait(bool value = true) { return no_wait = value, *this; }
};

namespace detail {

struct HubCore {
    SharedCore pool;
    pace_hub_t *hub;

    HubCore(SharedCore the_pool, pace_hub_t *the_hub) noexcept
        : pool(std::move(the_pool)), hub(the_hub) {}
    HubCore(const HubCore &) = delete;
    HubCore &operator=(const HubCore &) = delete;
    ~HubCore() {
        const Waits waits;
        pace_hub_free(hub);
    }
};

/// What is published beside a payload, as C has it. It points into the Publication.
struct RawPublication {
    explicit RawPublication(const Publication &with) {
        hands_over();
        (void)pace_publication_init(&raw, sizeof raw);
        for (const auto &[name, value] : with.headers) {
            headers.push_back({{name.data(), name.size()}, {value.data(), value.size()}});
        }
        raw.priority = static_cast<std::int32_t>(with.priority);
        raw.headers = headers.data();
        raw.header_count = headers.size();
        flags = with.no_wait ? PACE_PUBLISH_NO_WAIT : 0;
    }
    RawPublication(const RawPublication &) = delete;
    RawPublication &operator=(const RawPublication &) = delete;

    std::vector<pace_field_t> headers{};
    pace_publication_t raw{};
    std::uint32_t flags{};
};

/// A handler with a function that is told of restarts.
template <class F, class R>
struct Supervised {
    F handler;
    R on_restart;

    decltype(auto) operator()(const Message &message) { return handler(message); }
};

template <class F, class R>
void restarted(void *data, pace_text_t failure, std::uint64_t count) noexcept {
    (void)guard([&] {
        return static_cast<Supervised<F, R> *>(data)->on_restart(Message::view(failure), count);
    });
}

/// Makes what a handler has, by a factory of the user's. What it throws is why there is none.
template <class F>
pace_status_t make_handler(void *data, void **made) noexcept {
    using Handler = std::decay_t<std::invoke_result_t<F &>>;
    const bool is_made = contained(
        [&]() -> Result<void> {
            auto handler = (*static_cast<F *>(data))();
            if (is_empty(handler)) {
                return Error(Code::Invalid, "the factory has returned an empty function");
            }
            *made = new Handler(std::move(handler));
            return {};
        },
        [&](const Failure &failure) { (void)failure.tell(pace_message_fail); });
    return is_made ? PACE_OK : PACE_EFAILED;
}

/// A handler of messages, of (const Message &). What it throws is a failure of its message if it is a std::exception, and
/// else a crash of the handler. An error that it returns is a failure, too.
template <class F>
void handle_message(void *data, const pace_message_t *raw, std::int32_t *outcome) noexcept {
    using R = std::invoke_result_t<F &, const Message &>;
    static_assert(std::is_void_v<R> || is_outcome<std::decay_t<R>>,
                  "a handler of messages returns nothing, a Result or an Error: "
                  "anything else would count as success, whatever it says");
    const bool succeeded =
        contained([&]() -> decltype(auto) { return (*static_cast<F *>(data))(Message(*raw)); },
                  [&](const Failure &failure) {
                      // What is no std::exception is no way to fail at a message.
                      if (!failure.tell(pace_message_fail)) {
                          *outcome = PACE_EPANIC;
                      }
                  });
    if (succeeded) {
        *outcome = PACE_OK;
    }
}

} // namespace detail

} // inline namespace
} // namespace paceline

#endif // PACELINE_MESSAGE_HPP
