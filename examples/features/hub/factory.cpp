// A factory makes a handler anew when it was restarted, so nothing that was half changed is used again.
//
// feature: hub/factory

#include "../check.h"
#include <atomic>
#include <paceline/hub.hpp>

using paceline::Message;

int main() {
    paceline::quiet(); // no line on the standard error stream
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    std::atomic<int> made{0}, handled{0};
    const auto jobs =
        hub.subscribe_factory("jobs",
                              [&] {
                                  ++made;
                                  return [&handled, is_whole = true](const Message &message) mutable {
                                      CHECK(is_whole);
                                      if (message.text() == "crash") {
                                          is_whole = false; // never seen again
                                          throw 42;         // what is no std::exception is a crash
                                      }
                                      ++handled;
                                  };
                              })
            .value();
    for (const char *each : {"work", "crash", "work", "work"}) {
        (void)hub.publish("jobs", each).value();
    }
    WAIT_FOR(handled == 3);
    CHECK(made == 2);
    return 0;
}
