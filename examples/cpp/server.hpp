// What every server among the examples needs around it: flags, signals, and how it ends.

#ifndef EXAMPLES_SERVER_HPP
#define EXAMPLES_SERVER_HPP

#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <optional>
#include <paceline/net.hpp>
#include <stdexcept>
#include <string>
#include <sys/resource.h>

// A command line that makes no sense.
struct UsageError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// Flags, each with a value.
class Flags {
public:
    Flags(int count, char **arguments, std::initializer_list<const char *> known) {
        for (const char *flag : known) {
            values_[flag];
        }
        for (int n = 1; n < count; n += 2) {
            const std::string flag = arguments[n];
            const auto place = values_.find(flag);
            if (place == values_.end()) {
                throw UsageError("invalid option '" + flag + "'");
            }
            if (n + 1 == count) {
                throw UsageError("missing argument for option '" + flag + "'");
            }
            if (!place->second.empty()) {
                throw UsageError(flag + " is given twice");
            }
            place->second = arguments[n + 1];
        }
    }

    const std::string &required(const std::string &flag) const {
        const std::string &value = values_.at(flag);
        if (value.empty()) {
            throw UsageError(flag + " is missing");
        }
        return value;
    }

    std::optional<std::string> optional(const std::string &flag) const {
        const std::string &value = values_.at(flag);
        return value.empty() ? std::nullopt : std::optional(value);
    }

    // A pool that only its own threads drive, as many as --threads says.
    paceline::Pool pool() const {
        paceline::Config config;
        config.set_max_joined(0);
        const std::string &threads = values_.at("--threads");
        try {
            if (!threads.empty()) {
                config.set_threads(static_cast<std::uint32_t>(std::stoul(threads)));
            }
        } catch (const std::exception &) {
            throw UsageError("--threads is \"" + threads + "\", but must be a number");
        }
        return paceline::Pool::create(std::move(config)).value();
    }

private:
    std::map<std::string, std::string> values_;
};

// Signals that end the server, blocked in every thread so that wait() gets them.
class Interrupts {
public:
    Interrupts() {
        sigemptyset(&signals_);
        sigaddset(&signals_, SIGINT);
        sigaddset(&signals_, SIGTERM);
        sigprocmask(SIG_BLOCK, &signals_, nullptr);
        // Each connection is a descriptor: as many as the hard limit allows.
        rlimit limit{};
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }

    void wait() const {
        int caught = 0;
        sigwait(&signals_, &caught);
    }

private:
    sigset_t signals_;
};

// Runs `body` and turns what it throws into what the shell sees.
template <class Body>
int exit_code(const char *name, Body body) {
    try {
        body();
        return 0;
    } catch (const UsageError &error) {
        std::cerr << name << ": " << error.what() << '\n';
        return 2;
    } catch (const std::exception &error) {
        std::cerr << name << ": " << error.what() << '\n';
        return 1;
    }
}

#endif
