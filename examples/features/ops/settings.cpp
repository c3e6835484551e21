// Settings of a whole service from a file of JSON or YAML and from the environment.
//
// feature: ops/settings
// prints:
//   pool: 2 threads, and room for 4 threads of the program
//   tasks: a time-out of 2 s
//   hub: payloads of up to 65536 bytes
//   PACELINE_POOL_THREADS: pool.threads is "many", but must be 0 to 1024

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <paceline/hub.hpp>
#include <paceline/workers.hpp>
#include <string>
#include <unistd.h>

int main() {
    const std::string path = "/tmp/settings-" + std::to_string(getpid()) + ".yaml";
    std::ofstream(path) << "pool:\n  threads: 3\n  name: shop\n"
                           "tasks:\n  retries: 5\n  timeout: 2s\n"
                           "hub:\n  max_payload: 64 KiB\n";
    setenv("PACELINE_POOL_THREADS", "2", 1); // wins over the file
    const paceline::Settings settings({path}, true);

    const auto pool = paceline::Pool::from_settings(settings).value();
    const auto places = pool.stats().value().threads.size();
    std::cout << "pool: " << places - 4 << " threads, and room for 4 threads of the program\n";
    const auto tasks = paceline::TaskTypeConfig::load(settings).value();
    const auto timeout = std::chrono::duration_cast<std::chrono::seconds>(tasks.timeout);
    std::cout << "tasks: a time-out of " << timeout.count() << " s\n";
    const auto hub = paceline::HubConfig::load(settings).value();
    std::cout << "hub: payloads of up to " << hub.max_payload << " bytes\n";

    setenv("PACELINE_POOL_THREADS", "many", 1);
    std::cout << paceline::Pool::from_settings(settings).error().message() << '\n';
    unlink(path.c_str());
    return 0;
}
