// A history of what was published: queries, and a replay that goes on with what is new, without gap or duplicate.
//
// feature: hub/history
// prints:
//   the newest two: 3 4
//   replayed, and then new: 1 2 3 4 5

#include <future>
#include <iostream>
#include <paceline/hub.hpp>
#include <string>

using paceline::Message;

int main() {
    std::promise<void> end;
    std::string all;
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
    std::cout << "the newest two: " << found[0].payload << ' ' << found[1].payload << '\n';

    const auto handle = [&](const Message &message) {
        all += ' ' + std::string(message.text());
        if (message.text() == "5") {
            end.set_value();
        }
    };
    const auto replay = hub.replay("orders.eu", paceline::ReplayFrom::beginning(), handle).value();
    (void)hub.publish("orders.eu", "5").value();
    end.get_future().wait();
    std::cout << "replayed, and then new:" << all << '\n';
    return 0;
}
