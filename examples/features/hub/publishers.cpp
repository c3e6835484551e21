// Publishers with a name, permitted keys and a quota: a guard against mistakes.
//
// feature: hub/publishers

#include "../check.h"
#include <chrono>
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

    CHECK(roof.publish(other, "1").error() == paceline::Code::Invalid);
    int accepted = 0;
    while (roof.publish(own, "1")) {
        CHECK(++accepted < 100);
    }
    const auto stats = roof.stats().value();
    CHECK(accepted == 5 && stats.published == 5 && stats.refused >= 1);
    return 0;
}
