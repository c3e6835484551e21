// Result, Error, span, Config: what needs no pool.

#include "common.hpp"

#include <array>
#include <stdexcept>

#if defined(__cpp_lib_span)
#include <span>
#endif
#if defined(__cpp_lib_ranges)
#include <iterator>
#endif

using paceline::Error;
using paceline::Result;

namespace {
template <class T>
constexpr bool is_move_only =
    std::is_nothrow_move_constructible_v<T> &&std::is_nothrow_move_assignable_v<T> &&
    !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>;

static_assert(is_move_only<Pool> && is_move_only<paceline::Task<int>> &&
              is_move_only<paceline::Task<void>> && is_move_only<paceline::Handle> &&
              is_move_only<paceline::Strand> && is_move_only<paceline::Ring<int>> &&
              is_move_only<paceline::Queue<int>> && is_move_only<paceline::Timer>);

Result<int> half(int number) {
    if (number % 2 != 0) {
        return Error(Code::Invalid, "it is odd");
    }
    return number / 2;
}
} // namespace

TEST_CASE("a result has a value or an error") {
    CHECK(half(4).has_value());
    CHECK(*half(4) == 2);
    CHECK(half(4).value() == 2);
    CHECK(half(3).value_or(7) == 7);
    CHECK(half(3).error() == Code::Invalid);
    CHECK(half(3).error() != Code::Full);
    CHECK_FALSE(half(3));
    CHECK(Result<void>().has_value());
    CHECK_FALSE(Result<void>(Error(Code::Full)).has_value());

    auto text = Result<std::string>(std::string("long enough to live on the heap"));
    CHECK(text->size() == 31);
    const std::string moved = std::move(text).value();
    CHECK(moved == "long enough to live on the heap");
}

TEST_CASE("value throws an Exception that says what is wrong") {
    CHECK_THROWS_WITH_AS(half(3).value(), "it is odd", paceline::Exception);
    try {
        Result<void>(Error(Code::Full)).value();
        FAIL("it did not throw");
    } catch (const paceline::Exception &exception) {
        CHECK(exception.code() == Code::Full);
        CHECK(std::string(exception.what()) == pace_strerror(PACE_EFULL));
    }
}

TEST_CASE("value throws again what was thrown") {
    auto thrown = std::make_exception_ptr(std::out_of_range("too far"));
    CHECK_THROWS_WITH_AS(Result<int>(Error(thrown)).value(), "too far", std::out_of_range);
}

#if defined(__cpp_lib_expected)
TEST_CASE("a result converts to a std::expected") {
    using Expected = std::expected<int, Error>;
    const Expected expected = half(4);
    CHECK(expected.value() == 2);
    const Expected failed = half(3);
    CHECK(failed.error() == Code::Invalid);
    const std::expected<void, Error> nothing = Result<void>();
    CHECK(nothing.has_value());
    std::expected<std::unique_ptr<int>, Error> moved = Result(std::make_unique<int>(1));
    CHECK(*moved.value() == 1);
}
#endif

TEST_CASE("statuses have names and texts") {
    CHECK(std::string(paceline::name(Code::WouldDeadlock)) == "PACE_EDEADLOCK");
    CHECK(std::string(Error(Code::TimedOut).message()) == pace_strerror(PACE_ETIMEDOUT));
    CHECK(paceline::version() ==
          (PACE_VERSION_MAJOR << 16 | PACE_VERSION_MINOR << 8 | PACE_VERSION_PATCH));
}

TEST_CASE("a span is made of whatever lies side by side") {
    const auto sum = [](paceline::span<const int> numbers) {
        int total = 0;
        for (int number : numbers) {
            total += number;
        }
        return total;
    };
    int raw[] = {1, 2, 3};
    CHECK(sum(raw) == 6);
    CHECK(sum(std::vector<int>{4, 5}) == 9);
    CHECK(sum(std::array<const int, 2>{6, 7}) == 13);
    CHECK(sum({}) == 0);
    CHECK(sum(paceline::span<int>(raw).subspan(1)) == 5);
#if defined(__cpp_lib_span)
    CHECK(sum(std::span<int>(raw)) == 6);
    std::span<const int> standard = paceline::span<int>(raw);
    CHECK(standard.size() == 3);
#endif
    static_assert(!std::is_convertible_v<std::vector<const char *>, paceline::span<const int>>);
    static_assert(!std::is_convertible_v<const std::vector<int> &, paceline::span<int>>);
    static_assert(!std::is_convertible_v<int, paceline::span<const int>>);
}

TEST_CASE("what is wrong with a setting is said") {
    const auto pool = Pool::create(paceline::Config().set_threads(100'000));
    REQUIRE_FALSE(pool);
    CHECK(pool.error() == Code::Invalid);
    CHECK(std::string(pool.error().message()).find("threads") != std::string::npos);
    CHECK(std::string(pool.error().message()).find("100000") != std::string::npos);
}

TEST_CASE("every setting arrives") {
    std::atomic<int> started{0}, stopped{0};
    {
        auto made = Pool::create(paceline::Config()
                                     .set_threads(3)
                                     .set_max_joined(1)
                                     .set_leaders(2)
                                     .set_source(paceline::Source::Epoll)
                                     .set_promotion(paceline::Promotion::Eager)
                                     .set_watch_period(1ms)
                                     .set_spin(0ns)
                                     .set_max_turn(2ms)
                                     .set_lane_capacity(64)
                                     .set_strand_capacity(8)
                                     .set_max_handles(5)
                                     .set_pin("none")
                                     .set_pin_strict()
                                     .set_name("wheel")
                                     .set_stack_size(1 << 20)
                                     .set_on_start([&](std::uint32_t) { ++started; })
                                     .set_on_stop([&](std::uint32_t) { ++stopped; }));
        const Pool pool = std::move(made).value();
        const auto stats = pool.stats().value();
        CHECK(stats.threads.size() >= 3);
        CHECK(stats.sets.size() == 2);
        auto name = pool.submit([] {
                            char text[16] = "";
                            (void)pthread_getname_np(pthread_self(), text, sizeof text);
                            return std::string(text);
                        })
                        .value();
        CHECK(name.wait().value().rfind("wheel-", 0) == 0);
        std::vector<paceline::Handle> handles;
        for (auto made_one = pool.every(1h, [] { return Flow::Wait; }); made_one;
             made_one = pool.every(1h, [] { return Flow::Wait; })) {
            handles.push_back(std::move(made_one).value());
        }
        CHECK(handles.size() < 2000); // five, rounded up
        finish(pool);
    }
    CHECK(started.load() == 3);
    CHECK(stopped.load() == 3);
}

#if __cplusplus >= 202002L
TEST_CASE("settings may be named") {
    auto pool = Pool::create({.threads = 1, .pin = "none", .name = "named"});
    CHECK(pool.has_value());
    const paceline::HandleOptions options{.interest = paceline::Interest::readable(), .paused = true};
    CHECK(options.native().interest == PACE_INTEREST_READABLE);
    CHECK(options.native().paused);
}
#endif

TEST_CASE("options have the library's defaults") {
    pace_handle_options_t raw{};
    REQUIRE(pace_handle_options_init(&raw, sizeof raw) == PACE_OK);
    const auto options = paceline::HandleOptions().native();
    CHECK(options.interest == raw.interest);
    CHECK_FALSE(options.level);
    const auto other = paceline::HandleOptions()
                           .set_interest(paceline::Interest::readable() | paceline::Interest::priority())
                           .set_level()
                           .set_may_block()
                           .native();
    CHECK(other.interest == (PACE_INTEREST_READABLE | PACE_INTEREST_PRIORITY));
    CHECK(other.level);
    CHECK(other.may_block);
}
