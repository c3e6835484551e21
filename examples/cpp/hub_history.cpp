// Publishes, stops, starts again, and replays: what was published before the stop comes first, then what is new.
// Without archives in the library a hub forgets with its end, and the replay is of one that has not ended.
//
//     c++ -std=c++17 examples/cpp/hub_history.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o hub_history
//
// feature: hub/history

#include <paceline/cq.hpp>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

using namespace std::chrono_literals;
using paceline::Hub;
using paceline::Pool;

/// A hub whose orders are kept: in this file too, if there is one.
static paceline::Result<Hub> open_hub(const Pool &pool, const std::string &archive) {
    const auto history = paceline::HistoryConfig().set_pattern("orders.>").set_archive(archive);
    return Hub::create(pool, paceline::HubConfig().add_history(history));
}

static void publish(const Hub &hub, int number) {
    (void)hub.publish("orders.eu", "order " + std::to_string(number)).value();
}

int main() {
    char folder[] = "/tmp/hub_history_XXXXXX";
    if (mkdtemp(folder) == nullptr) {
        return EXIT_FAILURE;
    }
    const std::string archive = std::string(folder) + "/orders.sqlite";

    std::optional<Pool> pool = Pool::create().value();
    auto opened = open_hub(*pool, archive);
    const bool has_archives = opened.has_value() || opened.error() != paceline::Code::Unsupported;
    std::optional<Hub> hub = has_archives ? std::move(opened).value() : open_hub(*pool, "").value();
    std::cout << "archives: " << (has_archives ? "yes" : "not in this library") << '\n';
    for (int number = 1; number <= 3; ++number) {
        publish(*hub, number);
    }
    hub->flush().value(); // until here it may be lost with the power

    if (has_archives) {
        hub.reset();
        (void)pool->shutdown(60s).value();
        pool = Pool::create().value();
        hub = open_hub(*pool, archive).value();
    }

    {
        const auto replay = hub->replay_mailbox("orders.eu", paceline::ReplayFrom::beginning()).value();
        const auto queue = paceline::CompletionQueue::create(*pool).value();
        queue.attach(replay, 1).value();
        publish(*hub, 4);
        std::string came;
        std::array<paceline::Entry, 8> room;
        for (std::size_t count = 0; count < 4;) {
            const auto entries = queue.wait(room, paceline::forever).value();
            for (const auto &entry : entries) {
                came.append(came.empty() ? "" : ", ").append(entry.message().text());
            }
            count += entries.size();
            queue.done(entries).value();
        }
        std::cout << "replayed: " << came << '\n';
    }
    paceline::Query query;
    query.pattern = "orders.*";
    query.limit = 2;
    query.newest = true;
    const auto last = hub->query(query).value();
    std::cout << "the last two: " << last.at(0).payload << ", " << last.at(1).payload << '\n';
    std::cout << std::boolalpha << "recorded: " << (hub->history_stats().value().at(0).recorded > 0)
              << '\n';
    hub.reset();
    (void)pool->shutdown(60s).value();
    std::filesystem::remove_all(folder);
}
