// An archive on disk: history that outlives the hub; lines of JSON from it, and an archive from lines.
//
// feature: hub/archive
// prints:
//   exported: 3
//   in the archive: orders.eu 1
//   in the archive: orders.eu 2
//   in the archive: orders.eu 3
//   the third line: 3, imported: 3

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <paceline/hub.hpp>
#include <string>

int main() {
    char name[] = "/tmp/archive-XXXXXX";
    if (mkdtemp(name) == nullptr) {
        return 1;
    }
    const std::string folder = name, lines = folder + "/orders.jsonl";
    paceline::HistoryConfig history;
    history.pattern = "orders.>";
    history.archive = folder + "/orders.sqlite";
    {
        const auto pool = paceline::Pool::create().value();
        paceline::HubConfig config;
        config.histories = {history};
        const auto hub = paceline::Hub::create(pool, config).value();
        for (const char *each : {"1", "2", "3"}) {
            (void)hub.publish("orders.eu", each).value();
        }
        hub.flush().value(); // until here it may be lost with the power
        paceline::Query orders;
        orders.pattern = history.pattern;
        std::cout << "exported: " << hub.export_lines(lines.c_str(), orders).value() << '\n';
    }
    const auto archive = paceline::Archive::open(history.archive.c_str()).value(); // without a hub
    for (const auto &message : archive.query().value()) {
        std::cout << "in the archive: " << message.key << ' ' << message.payload << '\n';
    }
    const auto third = paceline::read_lines(lines.c_str()).value()[2];
    history.archive = folder + "/copy.sqlite";
    const auto imported = paceline::Archive::import_lines(history, lines.c_str()).value();
    std::cout << "the third line: " << third.payload << ", imported: " << imported.messages << '\n';
    std::filesystem::remove_all(folder);
    return 0;
}
