// A broker of a test's own, as in C.
#ifndef BROKER_HPP
#define BROKER_HPP

#include "common.hpp"

// It is C.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#include "../../../tests/c/broker.h"
#pragma GCC diagnostic pop

class Broker {
public:
    Broker() : runs_(broker_start(&broker_)) {}
    /// One that demands a user, or with nullptr a token, and this secret.
    Broker(const char *user, const char *secret) : runs_(broker_start_with(&broker_, user, secret)) {}
    Broker(const Broker &) = delete;
    Broker &operator=(const Broker &) = delete;
    ~Broker() {
        if (runs_) {
            broker_stop(&broker_);
        }
    }

    bool runs() const { return runs_; }
    void kill() { broker_kill(&broker_); }
    paceline::NatsSettings nats() const {
        return paceline::NatsSettings(broker_.url).set_reconnect_first(1ms).set_reconnect_cap(10ms);
    }
    paceline::BridgeConfig config() const { return paceline::BridgeConfig(nats()); }

private:
    broker_t broker_{};
    bool runs_;
};

#endif // BROKER_HPP
