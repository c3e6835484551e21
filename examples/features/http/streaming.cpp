// Bodies in pieces: an answer that is produced as it leaves, and an upload that is taken as it comes.
//
// feature: http/streaming

#include "../peer.h"
#include <cstddef>
#include <memory>
#include <paceline/http.hpp>
#include <string>
#include <string_view>
#include <utility>

using paceline::Body;
using paceline::Flow;
using paceline::Request;
using paceline::Response;

class Upload : public paceline::RequestBody {
public:
    explicit Upload(Response response) : response_(std::move(response)) {}
    std::size_t data(std::string_view bytes) override {
        size_ += bytes.size();
        return bytes.size();
    }
    void end(bool is_whole) override {
        CHECK(is_whole);
        response_.text(std::to_string(size_) + " bytes").value();
    }

private:
    Response response_;
    std::size_t size_ = 0;
};

int main() {
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/",
               [](const Request &, Response response) {
                   auto body = response.stream().value(); // chunked
                   // Called whenever there is room.
                   body.pump([pieces = 0](Body &to) mutable {
                           to.write("piece ").value();
                           return ++pieces < 3 ? Flow::Again : Flow::Done;
                       })
                       .value();
               })
        .value();
    http.route_streaming("POST", "/",
                         [](const Request &, Response response) {
                             return std::make_unique<Upload>(std::move(response));
                         })
        .value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    http.start(paceline::HttpConfig().add_listener(listen)).value();
    const auto address = http.address().value();
    std::string_view answer = peer_ask(address.c_str(), "GET /", "");
    CHECK(answer.find("6\r\npiece \r\n6\r\npiece \r\n6\r\npiece \r\n0\r\n") != std::string_view::npos);
    answer = peer_ask(address.c_str(), "POST /", "hello");
    CHECK(answer.find("5 bytes") != std::string_view::npos);
    return 0;
}
