// Bodies in pieces: an answer that is produced as it leaves, and an upload that is taken as it comes.
//
// feature: http/streaming
// prints:
//   download: [piece][piece][piece]
//   upload: 5 bytes

#include <arpa/inet.h>
#include <cstdint>
#include <iostream>
#include <memory>
#include <paceline/http.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>
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
        response_.text(std::to_string(size_) + (is_whole ? " bytes" : " bytes, and no end")).value();
    }

private:
    Response response_;
    std::size_t size_ = 0;
};

static void download(const Request &, Response response) {
    auto body = response.stream().value(); // chunked, in HTTP/1.1
    // Called whenever there is room.
    body.pump([pieces = 0](Body &to) mutable {
            to.write("[piece]").value();
            return ++pieces < 3 ? Flow::Again : Flow::Done;
        })
        .value();
}

// The other side: sends a request, and waits for the whole answer.
static std::string ask(const std::string &address, const std::string &what, const std::string &body) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr *>(&to), sizeof to) != 0) {
        throw std::runtime_error("no connection to " + address);
    }
    const auto request =
        what + " HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    send(fd, request.data(), request.size(), 0);
    std::string answer(4096, '\0');
    const auto size = recv(fd, answer.data(), answer.size(), MSG_WAITALL);
    close(fd);
    answer.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return answer;
}

int main() {
    const auto pool = paceline::Pool::create().value();
    auto http = paceline::Http::create(pool).value();
    http.route("GET", "/", download).value();
    http.route_streaming("POST", "/",
                         [](const Request &, Response response) {
                             return std::make_unique<Upload>(std::move(response));
                         })
        .value();
    http.serve("127.0.0.1:0").value(); // a free port
    const auto print_body = [&http](const char *what, const char *request, const char *body) {
        const auto answer = ask(http.address().value(), request, body);
        std::cout << what << ": " << answer.substr(answer.find("\r\n\r\n") + 4) << '\n';
    };
    print_body("download", "GET /", "");
    print_body("upload", "POST /", "hello");
    return 0;
}
