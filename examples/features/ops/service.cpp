// A service of systemd: ready, well and stopping is told to it. Here a socket of the program's own stands for systemd.
//
// feature: ops/service

#include "../check.h"
#include <cstdlib>
#include <cstring>
#include <paceline/ops.hpp>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>

// Waits until this is told.
static void hear(int systemd, const char *what) {
    std::string text;
    while (text.find(what) == std::string::npos) {
        text.assign(256, ' ');
        CHECK(recv(systemd, text.data(), text.size(), 0) > 0);
    }
}

int main() {
    const std::string name = "/tmp/service-cpp-" + std::to_string(getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, name.c_str());
    const int systemd = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK(bind(systemd, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    setenv("WATCHDOG_USEC", "20000", 1);
    setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);

    const auto pool = paceline::Pool::create().value();
    {
        // Whether the program is well, for example by WorkerPool::health().
        const auto service = paceline::Service::start(pool, [] { return true; }).value();
        hear(systemd, "READY=1");
        hear(systemd, "WATCHDOG=1");
        service.status("serving").value();
        hear(systemd, "STATUS=serving");
    }
    hear(systemd, "STOPPING=1");
    close(systemd);
    unlink(name.c_str());
    return 0;
}
