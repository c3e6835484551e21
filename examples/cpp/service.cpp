// A shop as a service: an HTTP API with JSON, an upload and server-sent events; jobs that are retried until a deadline; a
// hub with a history between them; settings from a file, a log, an operations page with health, and an orderly end.
//
//     c++ -std=c++17 examples/cpp/service.cpp -I include -I bindings/cpp -L target/release -lpaceline -Wl,-rpath,target/release -o service
//     ./service
//     curl -i http://127.0.0.1:8080/orders -d '{"item": "tea", "quantity": 2}'
//     curl -i http://127.0.0.1:8080/orders/1
//     curl -i http://127.0.0.1:8080/orders/1/receipt -T README.md
//     curl -N http://127.0.0.1:8080/events
//
// The bank is busy twice for an order of "flaky", refuses "stolen", and never answers about "stuck". The operations page is
// at http://127.0.0.1:9090/. SIGTERM or Ctrl-C ends the service: it completes the orders that it has accepted, sends the
// readers of events the last ones, and exits with 0. An argument names another file of settings than service.yaml.

#include <paceline.hpp>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <iostream>

using namespace std::chrono_literals;
using namespace paceline;
using Lock = std::unique_lock<std::mutex>;
constexpr std::size_t max_receipt = 65536;
constexpr auto drain = 30s; // How long each part of the end may take.
// The key of the message that ends the streams of events.
constexpr auto the_end = "orders.end";

struct Order {
    std::string item;
    unsigned quantity = 0, attempts = 0;
    std::string state = "accepted";

    std::string json(std::size_t id) const {
        return "{\"id\":" + std::to_string(id) + ",\"item\":" + json_quote(item).value() +
               ",\"quantity\":" + std::to_string(quantity) + ",\"state\":\"" + state +
               "\",\"attempts\":" + std::to_string(attempts) + "}";
    }
};

// Answers with an error that names the field and says what would be right. It fails only if the client has gone.
static void refuse(Response response, unsigned status, std::string field, std::string error) {
    (void)response.status(status).json("{\"field\":\"" + field + "\",\"error\":\"" + error + "\"}");
}

// 0 if the text is no number.
static std::uint64_t number_in(std::string_view text) {
    std::uint64_t number = 0;
    const char *end = text.data() + text.size();
    return std::from_chars(text.data(), end, number).ptr == end ? number : 0;
}

// An upload, counted and summed up (Adler-32) as it comes. It is never in memory as a whole.
struct Upload : RequestBody {
    explicit Upload(Response to) : response(std::move(to)) {}
    std::size_t data(std::string_view bytes) override {
        size += bytes.size();
        for (const unsigned char byte : bytes) {
            low = (low + byte) % 65521;
            high = (high + low) % 65521;
        }
        if (size > max_receipt)
            refuse(std::move(response), 413, "receipt", "must have up to 65536 bytes");
        return bytes.size();
    }
    void end(bool is_whole) override {
        char json[64];
        std::snprintf(json, sizeof json, "{\"size\":%zu,\"adler32\":\"%08x\"}", size, high << 16 | low);
        if (is_whole) (void)response.json(json); // It fails if the response was given away.
    }
    Response response;
    std::size_t size = 0;
    std::uint32_t low = 1, high = 0;
};

struct Shop {
    const Hub &hub;
    const TaskType &charges;
    std::mutex mutex{};
    std::vector<Order> orders{};                                     // Order 1 is the first.
    std::vector<std::pair<std::shared_ptr<Body>, Replay>> readers{}; // Of events.

    // Changes the state of an order, and publishes the order.
    void change(std::size_t id, const char *state, unsigned attempts = 0) {
        Lock lock(mutex);
        Order &order = orders[id - 1];
        order.state = state;
        order.attempts = std::max(order.attempts, attempts);
        const std::string payload = order.json(id);
        lock.unlock();
        // It fails only when the pool has ended.
        (void)hub.publish("orders." + std::to_string(id), payload);
    }

    // An attempt to charge for an order. It may block its thread as long as it likes: no request waits for it.
    void charge(std::size_t id, const std::string &item, Attempt &attempt) {
        change(id, "charging", attempt.number());
        if (item == "flaky" && attempt.number() < 3) throw std::runtime_error("the bank is busy");
        if (item == "stolen") {
            attempt.permanent();
            throw std::runtime_error("the card is stolen");
        }
        while (item == "stuck" && !attempt.is_cancelled()) std::this_thread::sleep_for(5ms);
    }

    void create(const Request &request, Response response) {
        const std::string_view body = request.body();
        const std::string item = json_text(body, "/item").value_or("");
        const double quantity = json_number(body, "/quantity").value_or(0);
        if (json_kind(body).value_or(JsonKind::None) != JsonKind::Object)
            return refuse(std::move(response), 400, "body", "must be a JSON object");
        if (item.empty())
            return refuse(std::move(response), 422, "item", "must be a text that is not empty");
        if (!(quantity >= 1 && quantity <= 1000) || quantity != static_cast<unsigned>(quantity))
            return refuse(std::move(response), 422, "quantity", "must be a whole number from 1 to 1000");
        const Order order{item, static_cast<unsigned>(quantity)};
        Lock lock(mutex);
        orders.push_back(order);
        const std::size_t id = orders.size();
        lock.unlock();
        change(id, "accepted");
        const auto task = charges.submit([=](Attempt &attempt) { charge(id, item, attempt); });
        if (!task) {
            change(id, "cancelled");
            return refuse(std::move(response), 503, "order", "cannot be taken now");
        }
        const auto ended = [=](TaskStatus status) {
            change(id, status == TaskStatus::Completed  ? "paid"
                       : status == TaskStatus::Failed   ? "declined"
                       : status == TaskStatus::TimedOut ? "late"
                                                        : "cancelled");
        };
        task->on_end(ended).value();
        response.status(201).header("Location", "/orders/" + std::to_string(id));
        (void)response.json(order.json(id));
    }

    void list(const Request &, Response response) {
        const Lock lock(mutex);
        std::string all;
        for (std::size_t id = 1; id <= orders.size(); ++id)
            all += (id == 1 ? "" : ",") + orders[id - 1].json(id);
        (void)response.json("{\"orders\":[" + all + "]}");
    }

    // The order that the path names, as JSON. Empty: there is none.
    std::string find(const Request &request) {
        const std::uint64_t id = number_in(request.param("id").value_or(""));
        const Lock lock(mutex);
        return id >= 1 && id <= orders.size() ? orders[id - 1].json(id) : "";
    }

    void show(const Request &request, Response response) {
        const std::string order = find(request);
        if (order.empty()) return refuse(std::move(response), 404, "id", "names no order");
        (void)response.json(order);
    }

    std::unique_ptr<Upload> receipt(const Request &request, Response response) {
        if (!find(request).empty()) return std::make_unique<Upload>(std::move(response));
        refuse(std::move(response), 404, "id", "names no order");
        return nullptr;
    }

    // Server-sent events: what has happened since the event that the client has seen last, and what happens from now on.
    void events(const Request &request, Response response) {
        const std::uint64_t seen = number_in(request.header("Last-Event-ID").value_or(""));
        response.header("Content-Type", "text/event-stream").header("Cache-Control", "no-store");
        const auto body = std::make_shared<Body>(response.stream().value());
        if (body->write(": the orders of the shop\n\n").value() == WriteStatus::Unwanted)
            return (void)body->finish(); // The answer to HEAD has no body.
        const auto handler = [this, body](const Message &message) {
            const Lock lock(mutex);
            if (message.key_text() == the_end) return (void)body->finish();
            (void)body->write("id: " + std::to_string(message.sequence) +
                              "\nevent: order\ndata: " + std::string(message.text()) + "\n\n");
        };
        // An id that no event has had yet is of another time: then all events are new.
        const bool is_known = !hub.query({"orders.*", seen, 0, 0, 0, 1}).value().empty();
        const auto from = ReplayFrom::sequence(is_known ? seen + 1 : 1);
        auto replay = hub.replay("orders.*", from, handler).value();
        const Lock lock(mutex);
        readers.emplace_back(body, std::move(replay));
    }

    // Readers that have gone are noticed when they are written to.
    Flow beat() {
        const Lock lock(mutex);
        const auto has_gone = [](auto &reader) { return !reader.first->write(": still here\n\n"); };
        readers.erase(std::remove_if(readers.begin(), readers.end(), has_gone), readers.end());
        return Flow::Wait;
    }
};

int main(int argc, char **argv) try {
    const Settings settings({argc > 1 ? argv[1] : "examples/service/service.yaml"}, true);
    const auto log = Log::create({settings}).value();
    log.install().value();
    const auto pool = Pool::from_settings(settings).value();
    const std::vector<std::int32_t> numbers{SIGTERM, SIGINT};
    const auto signals = Signals::create(pool, numbers, [](int) {}).value();
    const auto workers = WorkerPool::create(pool, {settings}).value();
    const auto charges = workers.task_type("charge", TaskTypeConfig::load(settings).value()).value();
    auto hub_config = HubConfig::load(settings).value();
    hub_config.add_history(HistoryConfig::load(settings).value());
    const auto hub = Hub::create(pool, hub_config).value();
    Shop shop{hub, charges};
    auto http = Http::create(pool).value();
    http.access_log(AccessFormat::Json, log).value();
    const auto route = [&](const char *method, const char *pattern, auto handler) {
        const auto call = [&shop, handler](const Request &request, Response response) {
            (shop.*handler)(request, std::move(response));
        };
        http.route(method, pattern, call).value();
    };
    route("POST", "/orders", &Shop::create);
    route("GET", "/orders", &Shop::list);
    route("GET", "/orders/{id}", &Shop::show);
    route("GET", "/events", &Shop::events);
    const auto upload = [&](const Request &request, Response response) {
        return shop.receipt(request, std::move(response));
    };
    http.route_streaming("PUT", "/orders/{id}/receipt", upload).value();
    auto config = HttpConfig::load(settings).value();
    http.start(config.add_listener(Listen::load(settings).value())).value();
    const auto ops = Ops::serve(pool, OpsConfig::load(settings).value()).value();
    const auto heartbeat = pool.every(15s, [&shop] { return shop.beat(); }).value();
    std::optional<Service> systemd; // It is for a library with the feature `systemd`.
    if (auto started = Service::start(pool)) systemd = std::move(started).value();
    std::cout << "the shop: http://" << http.address().value() << "/orders\n"
              << "the live page: http://" << ops.address().value() << "/" << std::endl;

    (void)signals.wait();
    systemd.reset();
    // Orders are refused from here on, and those that were accepted are completed.
    const auto jobs = workers.shutdown({drain}).value();
    // Their last states are published. Behind them comes what ends the streams of events, which the server waits for.
    (void)hub.publish(the_end, "").value();
    const bool is_answered = http.drain(drain).value().drained;
    const auto report = pool.shutdown(drain).value();
    const bool is_drained = jobs.drained && is_answered && report.drained;
    std::cout << "drained: " << std::boolalpha << is_drained << ", orders: " << shop.orders.size()
              << '\n';
    log.close(5s).value();
    return is_drained ? 0 : 1;
} catch (const std::exception &error) {
    std::cerr << "service: " << error.what() << '\n';
    return 1;
}
