// paceline for C++17 and newer: header only, over paceline.h. Each header that is included below compiles alone, and
// includes what it needs itself: paceline/pool.hpp is enough for a program of pools.
//
//     auto pool = paceline::Pool::create().value();
//     auto answer = pool.submit([] { return 6 * 7; }).value();
//     std::cout << answer.wait().value();
//
// Who owns what
//
//     Pool ──shared──► Core ──owns──► pace_pool_t        Task, Handle, Timer, Strand and Ring share the
//       │                ▲                               Core, so none of them can outlive its pool: once
//       └─ shuts down    └── Task, Handle, Timer …       the Pool is gone they answer Code::ShutDown.
//
//     a callable ──► at most a pointer's size, trivially copyable: carried as user_data
//                ──► at most 32 trivially copyable bytes: copied into the task's slot (post only)
//                ──► anything else: a Box of its own, which the C `drop` hook deletes
//
// What ends by itself detaches when its object goes: a Task, a Timer, what was posted. What lasts ends with its object
// (Handle, Strand, Ring, Subscription, Server, …): the destructor returns when no callable of it runs, and it has been deleted, so
// that a lambda may refer to what was declared before the object. Inside a handler or a task, on a thread of the pool, it
// does not wait: the callable goes when it has returned. docs/GUIDE.md has a table of all types.
//
// Callables may be such that can only be moved, everywhere. All types are move-only, all methods that are
// const may be called from any thread at once.
//
// Texts are detail::Text: whatever converts to a std::string_view. One that is NULL, or has a NUL, which would cut it, is
// Code::Invalid with the parameter's name.
//
// Errors are values: Result<T>, with one throwing accessor, value(). Apart from it, only the memory
// for a callable's Box can throw (std::bad_alloc), before anything has happened. A callable that is
// refused is given back: an rvalue that was handed in is as it was before.
//
// Exceptions never cross into the library. Every trampoline is noexcept and catches: what submit's
// callable throws is rethrown by value(), what any other throws goes to on_unhandled(), and so does what
// the destructor of a callable throws. The destructors of results, and of what lies in a Function or
// a std::exception_ptr, must not throw: the standard library ends the program. Under -fno-exceptions
// value() writes the error's text to the standard error stream, and aborts.
//
// Durations are std::chrono, of any type: see Duration. `forever` means no limit; what must have one refuses it, and
// names the range. A negative one is no time at all: a wait returns at once, and a limit is over as soon as it
// begins, where zero would be none or the default.

#ifndef PACELINE_HPP
#define PACELINE_HPP

#include "paceline/enums.hpp"        // the enumerations of all headers
#include "paceline/core.hpp"         // what all headers share: errors, results, durations, callables
#include "paceline/log.hpp"          // the structured log
#include "paceline/task.hpp"         // tasks and strands, and what callables are carried in
#include "paceline/pool.hpp"         // pools of threads: tasks, descriptors, timers, rings, signals
#include "paceline/scope.hpp"        // tasks that end before what they refer to
#include "paceline/queue.hpp"        // queues between threads, without a pool
#include "paceline/conn.hpp"         // connections, their handlers and their filters
#include "paceline/net.hpp"          // stream servers
#include "paceline/http.hpp"         // HTTP/1.1 servers
#include "paceline/udp.hpp"          // datagram sockets
#include "paceline/work_task.hpp"    // tasks of worker pools, and what their functions are given
#include "paceline/workers.hpp"      // worker pools: priorities, retries, limits in time, results
#include "paceline/message.hpp"      // messages of the hub
#include "paceline/subscription.hpp" // subscriptions of the hub, their supervision, and mailboxes
#include "paceline/history.hpp"      // the hub's history: queries and replays
#include "paceline/hub.hpp"          // the event hub: keyed publish/subscribe, requests, dead letters
#include "paceline/bridge.hpp"       // bridges: keys of a hub, between processes, over a broker
#include "paceline/durable.hpp"      // durable tasks: a broker has them, and worker pools run them
#include "paceline/cq.hpp"           // completion queues: what happens as data
#include "paceline/ops.hpp"          // operation: figures, thresholds, webhooks, systemd

#endif // PACELINE_HPP
