// Request and reply.
//
// feature: hub/requests
// prints:
//   the reply: pong
//   the reply, without waiting for it: pong
//   a key without a subscription: PACE_ENORESPONDERS

#include <chrono>
#include <future>
#include <iostream>
#include <paceline/hub.hpp>
#include <string>

using namespace std::chrono_literals;
using paceline::Message;
using paceline::OwnedMessage;
using paceline::Result;

int main() {
    std::promise<std::string> came;
    const auto pool = paceline::Pool::create().value();
    const auto hub = paceline::Hub::create(pool).value();
    const auto answer = [&hub](const Message &request) { (void)hub.reply(request, "pong").value(); };
    const auto answers = hub.subscribe("ping", answer).value();
    const auto ping = hub.key("ping").value(), nobody = hub.key("nobody").value();

    std::cout << "the reply: " << ping.request("?", 1min).value().text() << '\n'; // waits
    const auto replied = [&came](Result<OwnedMessage> reply) {
        came.set_value(std::string(reply.value().text()));
    };
    (void)ping.request_async("?", 1min, replied).value(); // with what this gives hub.give_up() ends it
    std::cout << "the reply, without waiting for it: " << came.get_future().get() << '\n';
    const auto none = nobody.request("?", 1min);
    std::cout << "a key without a subscription: " << paceline::name(none.error().code()) << '\n';
    return 0;
}
