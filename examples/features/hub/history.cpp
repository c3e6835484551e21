// A history of what was published: queries, and a replay that goes on with what is new, without gap or duplicate.
//
// feature: hub/history

#include "../check.h"
#include <atomic>
#include <paceline/hub.hpp>
#include <string>

using paceline::Message;

int main() {
    const auto pool = paceline::Pool::create().value();
    paceline::HistoryConfig history;
    history.pattern = "orders.>";
    history.keep_count = 100; // in memory; also by size, by age, and in an archive
    paceline::HubConfig config;
    config.histories = {history};
    const auto hub = paceline::Hub::create(pool, config).value();
    for (const char *each : {"1", "2", "3", "4"}) {
        (void)hub.publish("orders.eu", each).value();
    }

    paceline::Query last_two;
    last_two.pattern = "orders.*";
    last_two.newest = true;
    last_two.limit = 2;
    const auto found = hub.query(last_two).value();
    CHECK(found.size() == 2 && found[0].payload == "3" && found[1].payload == "4");

    std::string seen;
    std::atomic<int> replayed{0};
    const auto replay = hub.replay("orders.eu", paceline::ReplayFrom::beginning(),
                                   [&](const Message &m) {
                                       seen += m.text();
                                       ++replayed;
                                   })
                            .value();
    (void)hub.publish("orders.eu", "5").value();
    WAIT_FOR(replayed == 5);
    CHECK(seen == "12345");
    return 0;
}
