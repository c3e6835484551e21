// Notices by HTTP POST: what matches a pattern of the hub is sent to a URL, here of this program's own server.
//
// feature: ops/webhook
// prints:
//   posted: {"alarm":"fire"}
//   posted: {"by":"hand"}
//   delivered: 2

#include <chrono>
#include <iostream>
#include <paceline/http.hpp>
#include <paceline/ops.hpp>
#include <semaphore.h>

using paceline::Request;
using paceline::Response;

int main() {
    sem_t posted;
    sem_init(&posted, 0, 0);
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    const auto take = [&posted](const Request &request, Response response) {
        std::cout << "posted: " << request.body() << '\n';
        response.send("").value();
        sem_post(&posted);
    };
    http.route("POST", "/notices", take).value();
    http.serve("127.0.0.1:0").value(); // a free port

    const auto hub = paceline::Hub::create(pool).value();
    // With retries, a time-out, headers.
    const auto webhook =
        paceline::Webhook::create("http://" + http.address().value() + "/notices").value();
    const auto forwards = webhook.forward(hub, "alarms.>").value();
    (void)hub.publish("alarms.roof", "{\"alarm\":\"fire\"}").value();
    sem_wait(&posted);
    webhook.post("{\"by\":\"hand\"}").value();
    sem_wait(&posted);
    webhook.flush(std::chrono::minutes(1)).value();
    std::cout << "delivered: " << webhook.stats().value().delivered << '\n';
    return 0;
}
