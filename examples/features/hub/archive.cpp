// An archive on disk: history that outlives the hub; lines of JSON from it, and an archive from lines.
//
// feature: hub/archive

#include "../check.h"
#include <filesystem>
#include <paceline/hub.hpp>
#include <string>

int main() {
    char name[] = "/tmp/archive-XXXXXX";
    CHECK(mkdtemp(name) != nullptr);
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
        CHECK(hub.export_lines(lines.c_str(), orders).value() == 3);
    }

    const auto archive = paceline::Archive::open(history.archive.c_str()).value(); // without a hub
    CHECK(archive.query().value().size() == 3);
    CHECK(paceline::read_lines(lines.c_str()).value()[2].payload == "3");
    history.archive = folder + "/copy.sqlite";
    CHECK(paceline::Archive::import_lines(history, lines.c_str()).value().messages == 3);
    std::filesystem::remove_all(folder);
    return 0;
}
