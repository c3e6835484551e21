// Publishers with a name, permitted keys and a quota: a guard against mistakes.
//
// feature: hub/publishers
// prints:
//   a key that is not permitted: PACE_EINVAL
//   published: 5
//   then: PACE_EFULL

#include <chrono>
#include <iostream>
#include <paceline/hub.hpp>

using namespace std::chrono_literals;

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    // One message in an hour, and five at once.
    auto config = paceline::PublisherConfig().set_quota({1, 1h, 5});
    config.add_allowed("sensors.roof.>");
    const auto roof = hub.publisher("roof", config).value();
    const auto own = hub.key("sensors.roof.wind").value();
    const auto other = hub.key("sensors.cellar.damp").value();

    std::cout << "a key that is not permitted: "
              << paceline::name(roof.publish(other, "1").error().code()) << '\n';
    auto receipt = roof.publish(own, "1");
    while (receipt) {
        receipt = roof.publish(own, "1");
    }
    std::cout << "published: " << roof.stats().value().published << '\n';
    std::cout << "then: " << paceline::name(receipt.error().code()) << '\n';
    return 0;
}
