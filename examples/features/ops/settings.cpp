// Settings of a whole service from a file of JSON or YAML and from the environment.
//
// feature: ops/settings

#include "../check.h"
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <paceline/hub.hpp>
#include <paceline/workers.hpp>
#include <string>

int main() {
    const std::string path = "/tmp/settings-" + std::to_string(getpid()) + ".yaml";
    std::ofstream(path) << "pool:\n  threads: 3\n  name: shop\n"
                           "tasks:\n  retries: 5\n  timeout: 2s\n"
                           "hub:\n  max_payload: 64 KiB\n";
    CHECK(setenv("PACELINE_POOL_THREADS", "2", 1) == 0); // wins over the file
    const paceline::Settings settings({path}, true);

    const auto pool = paceline::Pool::from_settings(settings).value();
    CHECK(pool.stats().value().threads.size() >= 2); // and places for threads of the program
    const auto tasks = paceline::TaskTypeConfig::load(settings).value();
    CHECK(tasks.retry && tasks.timeout == std::chrono::seconds(2));
    CHECK(paceline::HubConfig::load(settings).value().max_payload == 65536);

    CHECK(setenv("PACELINE_POOL_THREADS", "many", 1) == 0);
    const std::string error = paceline::Pool::from_settings(settings).error().message();
    CHECK(error.find("PACELINE_POOL_THREADS") != std::string::npos);
    unlink(path.c_str());
    return 0;
}
