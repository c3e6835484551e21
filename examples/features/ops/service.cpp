// A service of systemd: it reports that it is ready, well and stopping. Here a socket of the program's own stands for systemd.
//
// feature: ops/service
// prints:
//   systemd hears READY=1
//   systemd hears WATCHDOG=1
//   systemd hears STATUS=serving
//   systemd hears STOPPING=1

#include <cstdlib>
#include <iostream>
#include <paceline/ops.hpp>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// Waits until this has come.
static void hear(int systemd, const char *what) {
    std::string text;
    while (text.find(what) == std::string::npos) {
        text.assign(256, ' ');
        recv(systemd, text.data(), text.size(), 0);
    }
    std::cout << "systemd hears " << what << '\n';
}

int main() {
    const std::string name = "/tmp/service-cpp-" + std::to_string(getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    const int systemd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (bind(systemd, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) {
        return 1;
    }
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
