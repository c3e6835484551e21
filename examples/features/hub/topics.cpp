// Typed topics: a codec makes bytes of values, and values of bytes.
//
// feature: hub/topics
// prints:
//   -20 degrees
//   62 degrees
//   dead letters: 1

#include <charconv>
#include <chrono>
#include <iostream>
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
    const auto print = [](const int &degrees) { std::cout << degrees << " degrees\n"; };
    auto prints = room.subscribe(print).value();
    (void)room.publish(-20).value();
    (void)room.publish(62).value();
    (void)hub.publish("temperature.room", "warm").value(); // is a dead letter: the handler is not called
    prints.drain(std::chrono::minutes(1)).value();
    std::cout << "dead letters: " << hub.dead_letters().value().size() << '\n';
    return 0;
}
