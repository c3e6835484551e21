// The enumerations of paceline.hpp, generated from the headers in include; not to be edited.
// PACELINE_BLESS=1 cargo test --test header renews it.
#ifndef PACELINE_ENUMS_HPP
#define PACELINE_ENUMS_HPP

#include <cstdint>

namespace paceline {

/// What went wrong. The numbers are those of the C interface.
enum class Code : std::int32_t {
    /// Success: the function has done what it says.
    Ok = 0,
    /// An argument is NULL or out of its range; pace_last_error() names it.
    Invalid = -1,
    /// Something bounded is full: a lane, a strand, a ring, a queue, the table of handles, the
    /// places for host threads, a connection's output, a server's requests in work.
    Full = -2,
    /// The queue is empty, and no time to wait was given; the message is not whole yet.
    Empty = -3,
    /// The operation timed out: the time that it was given is over.
    TimedOut = -4,
    /// The pool is shut down, or draining; the ring or queue is closed (and, for a pop, empty); the
    /// server drains.
    ShutDown = -5,
    /// This process is a child made by fork: what the parent made works only in the parent.
    Forked = -6,
    /// What this id named is gone, or never was.
    Stale = -7,
    /// The handler is running, or its event is pulled: the handle closes when that is over.
    Closing = -8,
    /// Waiting here could never end: every other thread of the pool waits already.
    WouldDeadlock = -9,
    /// The task was cancelled, or the pool stopped, before it began.
    Cancelled = -10,
    /// A factory has failed. Also the outcome of a task that has not reported another one.
    Failed = -11,
    /// A panic inside the library was caught. The pool is intact.
    Panicked = -12,
    /// A system call failed; pace_last_os_error() says how.
    Os = -13,
    /// The struct_size of a struct is not one that this library knows.
    Version = -14,
    /// Another thread waits for this task already.
    Busy = -15,
    /// No subscription matches the key of a request.
    NoResponders = -16,
    /// The library was built without the feature that the function needs.
    Unsupported = -17,
    /// Messages that the hub's histories took were given up: they are not on disk, and never will
    /// be.
    GivenUp = -18,
};

/// What a handler returns: what happens next with its descriptor, timer or ring.
enum class Flow : std::int32_t {
    /// Call me when something happens. For an edge-triggered descriptor this promises that the last
    /// operation saw EAGAIN: what is left unread now is not reported again.
    Wait = 0,
    /// There is more to do: call me again, after others had their turn.
    Again = 1,
    /// Do not call me before pace_handle_resume(), which counts from the start of the call that is
    /// answered here. What arrives meanwhile is kept. See pace_handle_pause() for the one
    /// exception.
    Pause = 2,
    /// I am through: deregister, and run `drop`.
    Done = 3,
};

/// How important a line of the log is.
enum class LogLevel : std::uint32_t {
    /// As a level: nothing is told.
    Off = 0,
    /// Something does not work.
    Error = 1,
    /// Something was lost, refused or late, or will be.
    Warn = 2,
    /// Something began, ended or changed, as it was asked to.
    Info = 3,
    /// One request, connection or task did not get what it wanted.
    Debug = 4,
    /// Steps of the library's own.
    Trace = 5,
};

/// Which part of the library writes a line of the log.
enum class LogComponent : std::uint32_t {
    /// The pool: its threads, its handlers, its end.
    Pool = 0,
    /// Listeners, connections and datagram sockets.
    Net = 1,
    /// The HTTP server.
    Http = 2,
    /// Worker pools.
    Task = 3,
    /// Hubs: subscriptions, publishers, thresholds.
    Hub = 4,
    /// Histories of hubs, and their archives.
    History = 5,
    /// Webhooks.
    Webhook = 6,
    /// What systemd is told.
    Service = 7,
    /// The log itself.
    Log = 8,
};

/// The four queues of a pool's tasks, by priority. The default is Normal.
enum class Lane : std::uint32_t {
    /// Before all others. No lane starves: while all four have tasks, of 64 picks 32 are of
    /// CRITICAL, 18 of HIGH, 10 of NORMAL and 4 of LOW. A pick of a thread takes up to 64 tasks of
    /// its lane if these take some 20 microseconds together.
    Critical = 0,
    /// Before NORMAL and LOW, but for their turns: see Lane::Critical.
    High = 1,
    /// The usual one: before LOW, but for its turns.
    Normal = 2,
    /// After all others, but for its turns: one pick after 15 of the others.
    Low = 3,
};

/// What the leader of a pool waits at.
enum class Source : std::uint32_t {
    /// Wait at Linux epoll: descriptors, timers, tasks, rings. The default.
    Epoll = 0,
    /// No descriptors: rings, timers and tasks only, without a system call while busy.
    Ring = 1,
};

/// When a leader hands leadership on.
enum class Promotion : std::uint32_t {
    /// Leadership is offered, and whoever is free next takes it; nobody is woken in the common
    /// case. The default.
    Deferred = 0,
    /// A thread is woken to lead before each event is handled. For handlers that always block.
    Eager = 1,
};

/// What a thread of a pool is doing, in its statistics.
enum class Role : std::uint32_t {
    /// A place that no host thread has taken, or a thread that has ended.
    Away = 0,
    /// Parked until another thread wakes it.
    Follower = 1,
    /// Parked with a timer, to look for stuck work.
    Watch = 2,
    /// Leads a handle set, or looks for work.
    Leader = 3,
    /// The thread runs a handler.
    Processing = 4,
    /// The thread runs a task.
    Task = 5,
    /// Set aside by pace_pool_set_active(), or by a worker pool's scaling: it costs nothing.
    Parked = 6,
};

/// What became of the bytes of a write.
enum class WriteStatus : std::uint32_t {
    /// All of it is with the kernel.
    Sent = 0,
    /// Some waits in the queue. Inside a hook it always does: it is tried when the hook returns.
    Queued = 1,
    /// The same, and the queue is above its high mark: nothing is read from this connection before
    /// it has fallen to the low mark. Whoever can should write no more until the hook `writable`.
    AboveHighMark = 2,
    /// None of it: an answer of HTTP whose body is not sent (to HEAD, or with the status 204, 205
    /// or 304). All that follows would be dropped, too, so there is nothing more to produce.
    Unwanted = 3,
};

/// What the hook `open` answers: whether the connection is wanted.
enum class Accept : std::int32_t {
    /// From the hook `open`: the connection is wanted.
    Yes = 0,
    /// From the hook `open`: it is not. It is sent what the hook has written, and closed.
    Refuse = 1,
};

/// Which time of a connection is over.
enum class Timeout : std::uint32_t {
    /// An outgoing connection was not made.
    Connect = 0,
    /// Nothing was sent or received.
    Idle = 1,
    /// A part of a message waits for its rest.
    Read = 2,
    /// The peer takes nothing of what is queued for it.
    Stall = 3,
    /// The one that was set by pace_conn_set_deadline().
    Deadline = 4,
};

/// What the hook `timeout` answers.
enum class TimeoutAction : std::int32_t {
    /// From the hook `timeout`: close at once, with ReasonKind::TimedOut.
    Close = 0,
    /// From the hook `timeout`: go on; the time begins anew, but a deadline is unset. Also the
    /// answer of a hook that has called pace_conn_close() to send a last message.
    Keep = 1,
};

/// Why a connection has ended: the kinds of a Reason.
struct ReasonKind {
    enum Kind : std::uint32_t {
        /// The peer had finished, and everything was sent.
        Peer = 0,
        /// It was closed here, and everything was sent.
        Local = 1,
        /// It was aborted: what was queued is lost.
        Aborted = 2,
        /// The open hook did not want it.
        Refused = 3,
        /// A time was over: the detail is a PACE_TIMEOUT_ number.
        TimedOut = 4,
        /// The socket failed: the detail is an errno.
        Failed = 5,
        /// More than max_unconsumed bytes were not consumed.
        Unconsumed = 6,
        /// A hook failed: by pace_conn_fail(), or by an answer that is none.
        Panicked = 7,
        /// The server drained, and everything was sent.
        Drained = 8,
        /// The drain's time was over, or the server was freed: what was queued is lost.
        CutOff = 9,
        /// The pool has shut down, or had no room for it.
        PoolEnded = 10,
    };
};

/// The state of a task of a worker pool. Completed and all below it are ends.
enum class TaskStatus : std::uint32_t {
    /// The task waits for its first attempt.
    Pending = 0,
    /// An attempt of the task runs now.
    Running = 1,
    /// An attempt of the task has failed, and waits for its retry.
    Retrying = 2,
    /// The task has succeeded. A task with this number or a greater one has ended.
    Completed = 3,
    /// The last attempt of the task has failed.
    Failed = 4,
    /// The task was cancelled, or the pool was stopped.
    Cancelled = 5,
    /// The task was over one of its times: for waiting, for running, or its deadline.
    TimedOut = 6,
    /// The task was accepted, and dropped later to make room for another one.
    Rejected = 7,
};

/// How a durable task has ended.
enum class DurableStatus : std::uint32_t {
    /// A durable task has completed: its handler has succeeded.
    Completed = 0,
    /// The last attempt of a durable task has failed; it is a dead task.
    Failed = 1,
    /// A durable task was cancelled before it began.
    Cancelled = 2,
    /// The deadline of a durable task was over before an attempt succeeded.
    TimedOut = 3,
};

/// What happens to the ticks of a Periodic that come while a run has not ended.
enum class MissedTick : std::uint32_t {
    /// Ticks that come while a run has not ended are skipped.
    Skip = 0,
    /// However many there were, one run makes up for them, as soon as the one before has ended.
    Coalesce = 1,
};

/// What an access log tells of a request.
enum class AccessFormat : std::uint32_t {
    /// Apache's combined format: 127.0.0.1 - - [28/Nov/2026:02:44:19 +0000] "GET /a HTTP/1.1" 200
    /// 12 "referer" "agent". The time is that of the request's beginning, in UTC; the size is that
    /// of the body, - for none; the status is - if no whole answer has left. Quotes and backslashes
    /// are escaped by a backslash, what is not printable ASCII as \xhh. The default.
    Combined = 0,
    /// JSON: fields of the record, peer, method, target, version, status, bytes (of the answer's
    /// body), duration_ns, referer and user_agent, as far as they are known.
    Json = 1,
};

/// What stands at a place of a JSON text: json_kind().
enum class JsonKind : std::uint32_t {
    /// There is nothing at this place.
    None = 0,
    /// There is the value null at this place.
    Null = 1,
    /// There is the value true or false at this place.
    Bool = 2,
    /// There is a number at this place.
    Number = 3,
    /// There is a text at this place.
    Text = 4,
    /// There is an array at this place.
    Array = 5,
    /// There is an object at this place.
    Object = 6,
};

/// What a metric measures, and how its values are summed up.
enum class MetricKind : std::uint32_t {
    /// A number that only grows.
    Counter = 0,
    /// A number that goes up and down.
    Gauge = 1,
    /// A distribution of times, which are recorded in nanoseconds and read in seconds.
    Times = 2,
    /// A distribution of amounts of memory or data, in bytes.
    Bytes = 3,
    /// A distribution of other whole numbers.
    Numbers = 4,
};

/// Which messages a mailbox with priorities delivers first. The default is Normal.
enum class Priority : std::int32_t {
    /// A message's priority: delivered after all others that wait in the mailbox.
    Low = -1,
    /// A message's priority, unless it is set.
    Normal = 0,
    /// A message's priority: delivered before normal ones that wait in the mailbox.
    High = 1,
    /// A message's priority: delivered before all others that wait in the mailbox.
    Critical = 2,
};

/// Where a subscription's handler runs.
enum class Execution : std::uint32_t {
    /// On the pool, never on two threads at once, in the order of its mailbox.
    Serial = 0,
    /// In the publisher's thread, before publishing returns, with no mailbox. Several publishers
    /// may be in it at once.
    Inline = 1,
    /// On up to `threads` threads of the pool at once. Messages begin in the order of the mailbox.
    Concurrent = 2,
    /// On the pool, one at a time with all others of its hub that have this, whatever their keys,
    /// in the one order in which the messages were published.
    Strand = 3,
};

/// What happens to a message for a mailbox that is full.
enum class Overflow : std::uint32_t {
    /// A message for a full mailbox is refused: publishing fails with Code::Full.
    Reject = 0,
    /// A message for a full mailbox is dropped, and counted.
    DropNewest = 1,
    /// When the mailbox is full, the message that has waited longest in it is dropped for the new
    /// one.
    DropOldest = 2,
    /// At most one message per key waits, in a full mailbox and in any other: a newer message
    /// replaces the older one.
    Conflate = 3,
    /// A publisher waits for room in a full mailbox for up to block_ns; then its message is
    /// refused. It is refused at once where publishers do not wait: on threads of any pool, in
    /// handlers, and with PACE_PUBLISH_NO_WAIT.
    Block = 4,
    /// A handler's mailbox is as with Overflow::Block without a limit, and one without a handler as
    /// with Overflow::Reject, because the thread that empties it may be the one that publishes.
    Default = 5,
};

/// How a subscription ends.
enum class Unsubscribe : std::uint32_t {
    /// What waits is discarded, and a handler that runs is not waited for.
    Async = 0,
    /// Takes no more messages; those that wait are delivered still.
    Drain = 1,
    /// As ASYNC, and waits until no handler runs. Inside a handler it does not wait.
    Sync = 2,
};

/// What happens to a message when its handler has failed at the last attempt.
enum class OnExhausted : std::uint32_t {
    /// A message that its handler has failed at for good is kept among the hub's dead letters.
    DeadLetter = 0,
    /// It is dropped, and counted as failed.
    Discard = 1,
};

/// Which handlers of a supervisor a failure restarts.
enum class RestartStrategy : std::uint32_t {
    /// A failure restarts the handler that failed.
    OneForOne = 0,
    /// It restarts all handlers of the supervisor, each before its next message.
    OneForAll = 1,
};

/// Where an import from a stream begins, if the broker does not know how far it has come.
enum class StartAt : std::uint32_t {
    /// An import begins with the first message that the stream has.
    First = 0,
    /// An import begins with what is stored from now on.
    New = 1,
    /// An import begins with the message of the number start_sequence in the stream, or the next
    /// that there is.
    Sequence = 2,
    /// An import begins with the first message that was stored at start_time_ns or later.
    Time = 3,
};

/// How serious an error or a notice of a hub is.
enum class Severity : std::uint32_t {
    /// It is as it should be.
    Info = 0,
    /// Something was lost or put right, as was asked for.
    Warning = 1,
    /// Something does not work any more.
    Error = 2,
};

/// What has happened to a connection that is attached to a completion queue.
enum class ConnEventKind : std::uint32_t {
    /// pace_cq_conn_t.event: the connection is there. It may be refused (PACE_CQ_REFUSE). Comes
    /// first, and only if PACE_WANTED_OPENED is set.
    Opened = 0,
    /// pace_cq_conn_t.event: bytes have arrived, which are the entry's. What its completion does
    /// not consume comes again, followed by more. Comes whatever is wanted.
    Data = 1,
    /// pace_cq_conn_t.event: the peer sends no more. Afterwards the connection is closed by itself,
    /// when its admitted requests have ended and everything is sent, unless allow_half_open of its
    /// pace_listener_options_t is set. Comes if PACE_WANTED_FINISHED is set.
    Finished = 2,
    /// pace_cq_conn_t.event: the output was above its high mark, and has fallen to the low mark.
    /// Comes if PACE_WANTED_WRITABLE is set.
    Writable = 3,
    /// pace_cq_conn_t.event: all bytes up to the end of a tracked write have been given to the
    /// kernel; `number` is its token. Comes if PACE_WANTED_WRITTEN is set.
    Written = 4,
    /// pace_cq_conn_t.event: a time-out has passed; `detail` is its PACE_TIMEOUT_ number. Completed
    /// without PACE_CQ_KEEP it closes the connection at once, as it does unless
    /// PACE_WANTED_TIMED_OUT is set.
    TimedOut = 5,
    /// pace_cq_conn_t.event: the server drains. The connection closes when its admitted requests
    /// have ended and everything is sent. Comes if PACE_WANTED_DRAINING is set.
    Draining = 6,
    /// pace_cq_conn_t.event: the connection has ended; `detail` is its PACE_REASON_ number, and
    /// `number` may say more. Comes last, once, if PACE_WANTED_CLOSED is set.
    Closed = 7,
};

/// What an entry of a completion queue tells of.
enum class EntryKind : std::uint32_t {
    /// A descriptor is ready (pace_cq_register): `detail.ready`. Its next entry comes after this
    /// one was completed.
    Ready = 1,
    /// A periodic timer is due (pace_cq_every): `detail.ready` has its handle. Ticks that come
    /// before it was completed are skipped.
    Tick = 2,
    /// A timer that runs once is due (pace_cq_after). Nothing to complete.
    Timer = 3,
    /// A tag was posted (pace_cq_post). Nothing to complete.
    Task = 4,
    /// Something happened to a connection: `detail.conn` says what, and `bytes` is what has
    /// arrived. The connection's next entry comes after this one was completed.
    Conn = 5,
    /// A request of an HTTP route: `detail.request`, and `bytes` is the request as one block
    /// (pace_cq_request_t). It stays out until its answer is complete.
    Request = 6,
    /// A part of a request's body, which pace_cq_read() asked for: `bytes`;
    /// `detail.request.request` is the token of the request.
    Body = 7,
    /// The end of such a body, which is whole. Nothing to complete.
    BodyEnd = 8,
    /// The end of such a body, which will never be whole: the peer is gone, or broke the protocol.
    /// Nothing to complete.
    BodyBroken = 9,
    /// The output of an answer's body was above its high mark (WriteStatus::AboveHighMark), and has
    /// fallen to the low mark: its next piece may be written. Nothing to complete.
    BodyWritable = 10,
    /// A request of an HTTP server has ended (pace_cq_http_ends): `bytes` is a block that says how.
    RequestEnded = 11,
    /// A datagram has arrived: `bytes`, and `detail.datagram`.
    Datagram = 12,
    /// An error came to a datagram socket instead, which goes on: `detail.datagram.os_error`.
    /// Nothing to complete.
    DatagramError = 13,
    /// An attempt of a worker pool's task has begun: `detail.attempt`. Its task runs until it is
    /// completed.
    Attempt = 14,
    /// A task of a worker pool has ended otherwise than by the completion of an attempt, which may
    /// be out still and is to be completed all the same: `detail.attempt.status`. Nothing to
    /// complete.
    TaskEnded = 15,
    /// A message of a mailbox or a replay: `detail.message`, and `bytes` is its payload.
    Message = 16,
    /// What became of a request of the hub: `status` is Code::Ok and `detail.message` the reply, or
    /// it is Code::TimedOut, or Code::Cancelled if it was given up or its hub was freed; then there
    /// is nothing to complete.
    Reply = 17,
    /// A record of a log: `detail.record`.
    Record = 18,
    /// A signal of the process: `detail.signal`. Nothing to complete.
    Signal = 19,
    /// The source of this tag brings nothing more: it was closed, freed or drained. Nothing to
    /// complete.
    Ended = 20,
    /// The client of a request has gone before it has its answer (pace_cq_watch_client):
    /// `detail.request.request` is the token of the request, which is to be completed all the same.
    /// Nothing to complete.
    ClientGone = 21,
};

} // namespace paceline

#endif // PACELINE_ENUMS_HPP
