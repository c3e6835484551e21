// Typed topics: a codec makes bytes of values, and values of bytes.
//
// feature: hub/topics

#include "../check.h"
#include <charconv>
#include <chrono>
#include <paceline/hub.hpp>
#include <string>
#include <string_view>

using paceline::Result;

struct Degrees {
    Result<std::string> encode(const int &degrees) const { return std::to_string(degrees); }
    Result<int> decode(std::string_view text) const {
        int degrees = 0;
        const auto end = text.data() + text.size();
        if (std::from_chars(text.data(), end, degrees).ptr != end) {
            return paceline::Error(paceline::Code::Invalid, "no number");
        }
        return degrees;
    }
};

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto room = hub.topic<int>("temperature.room", Degrees{});
    int sum = 0;
    auto adds = room.subscribe([&sum](const int &degrees) { sum += degrees; }).value();
    (void)room.publish(20).value();
    (void)room.publish(22).value();
    (void)hub.publish("temperature.room", "warm").value(); // is a dead letter: the handler is not called
    CHECK(adds.drain(std::chrono::minutes(1)).value() == 0);
    CHECK(sum == 42);
    CHECK(hub.dead_letters().value().size() == 1);
    return 0;
}
