//! Requests and replies, and topics.

use crate::common::{LONG, forked, hang_guard, in_child, until};
use crate::kit::{Log, at_rest, hub, settle};
use paceline::Error;
use paceline::hub::{
    Codec, DeadFilter, Execution, Failure, Headers, Hub, Message, RequestError, Stored,
    Subscription, Text,
};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Replies with the payload and something behind it.
fn responder(hub: &Hub, key: &str, execution: Execution) -> Subscription {
    let replies = hub.clone();
    let handler = move |request: &Message<'_>| {
        let mut payload = request.payload().to_vec();
        payload.push(b'!');
        replies.reply(request, payload).map(drop)
    };
    hub.subscription(key).execution(execution).serve_shared(handler).unwrap()
}

#[test]
fn a_request_has_the_reply_of_its_own() {
    let _guard = hang_guard();
    let hub = hub(2);
    for (key, execution) in [
        ("serial", Execution::Serial),
        ("inline", Execution::Inline),
        ("concurrent", Execution::Concurrent(2)),
    ] {
        responder(&hub, key, execution).detach();
        thread::scope(|scope| {
            for caller in 0..3 {
                let hub = &hub;
                scope.spawn(move || {
                    for number in 0..50 {
                        let reply = hub.request(key, format!("{caller}.{number}"), LONG).unwrap();
                        assert_eq!(**reply.payload(), *format!("{caller}.{number}!").as_bytes());
                    }
                });
            }
        });
    }
    let pending: Vec<_> = (0..100)
        .map(|number| hub.message("serial").payload(number.to_string()).request(LONG).unwrap())
        .collect();
    for (number, reply) in pending.into_iter().enumerate() {
        assert_eq!(**reply.wait().unwrap().payload(), *format!("{number}!").as_bytes());
    }
    assert_eq!(hub.request_counts(), (0, 0));
    settle(&hub);
}

#[test]
fn who_asks_nobody_hears_of_it_at_once() {
    let _guard = hang_guard();
    let hub = hub(2);
    let none = hub.request("nobody", "x", LONG).unwrap_err();
    assert!(matches!(none, RequestError::NoResponders), "{none:?}");
    assert_eq!(none.to_string(), "nobody subscribes to the key of the request");
    let mute = hub.subscription("mute").serve(|_: &Message<'_>| ()).unwrap();
    let late = hub.request("mute", "x", Duration::from_millis(1)).unwrap_err();
    assert!(matches!(late, RequestError::TimedOut), "{late:?}");
    drop(mute);
    let full = hub.mailbox("full", 1).unwrap();
    let _ = hub.publish("full", "x").unwrap();
    let refused = hub.request("full", "x", LONG).unwrap_err();
    assert_eq!(refused.to_string(), "none of 1 subscriptions has taken the request");
    let mut taken = Vec::new();
    full.recv_batch(&mut taken, 1).unwrap();
    let error = hub.reply(&taken.remove(0).into_stored(), "x").unwrap_err().to_string();
    assert_eq!(error, "the message is not a request, but must be one with a Reply-To header");
    let given_up = hub.message("full").request(LONG).unwrap();
    full.recv_batch(&mut taken, 1).unwrap();
    drop(given_up);
    let _ = hub.reply(&taken.remove(0).into_stored(), "late").unwrap();
    assert_eq!(hub.request_counts(), (0, 1));
    drop(full);
    settle(&hub);
}

/// A handler may ask others, even on the only thread of its pool but one.
#[test]
fn handlers_may_ask_others() {
    let _guard = hang_guard();
    let hub = hub(2);
    responder(&hub, "inner", Execution::Serial).detach();
    let asks = hub.clone();
    let outer = move |request: &Message<'_>| {
        let inner = asks.request("inner", request.payload().to_vec(), LONG);
        let inner = inner.map_err(Failure::new)?;
        asks.reply(request, inner.payload().to_vec()).map(drop).map_err(Failure::from)
    };
    hub.subscription("outer").serve(outer).unwrap().detach();
    assert_eq!(**hub.request("outer", "x", LONG).unwrap().payload(), *b"x!");
    settle(&hub);
}

/// Unparks the thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Arc::new(Unpark(thread::current())).into();
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn replies_may_be_awaited() {
    let _guard = hang_guard();
    let hub = hub(2);
    responder(&hub, "a", Execution::Serial).detach();
    let headers = Headers::new([("kind", "question")]).unwrap();
    let request = hub.message("a").headers(headers).payload("x").request(LONG).unwrap();
    assert_eq!(**block_on(request).unwrap().payload(), *b"x!");
    hub.subscription("mute").serve(|_: &Message<'_>| ()).unwrap().detach();
    let request = hub.message("mute").request(Duration::from_millis(5)).unwrap();
    assert!(matches!(block_on(request), Err(RequestError::TimedOut)));
    at_rest(&hub);
    settle(&hub);
}

/// Goal: what is awaited no more leaves no timer, however long it might have been. Method: with a limit and without
/// one, a request that was polled before it is answered, and one that is given up.
#[test]
fn what_is_awaited_no_more_has_no_timer() {
    let _guard = hang_guard();
    let hub = hub(2);
    let kept = Arc::new(Mutex::new(Vec::new()));
    let inner = Arc::clone(&kept);
    let keep = move |message: &Message<'_>| inner.lock().unwrap().push(message.stored().clone());
    hub.subscription("late").serve(keep).unwrap().detach();
    for limit in [LONG, Duration::MAX] {
        let ask = || {
            let mut request = Box::pin(hub.message("late").request(limit).unwrap());
            let mut context = Context::from_waker(Waker::noop());
            assert!(request.as_mut().poll(&mut context).is_pending());
            request
        };
        let (answered, given_up) = (ask(), ask());
        assert_eq!(hub.pool().audit().in_flight, 2);
        drop(given_up);
        until("both are kept", || kept.lock().unwrap().len() == 2);
        let first: Stored = kept.lock().unwrap().drain(..).next().unwrap();
        let _ = hub.reply(&first, "y").unwrap();
        assert_eq!(**block_on(answered).unwrap().payload(), *b"y");
        until("no timer is left", || hub.pool().audit().in_flight == 0);
    }
    settle(&hub);
}

/// Goal: nobody waits for a reply beyond the end of the pool, however long he would. Method: a handler that never
/// replies is asked by a thread that waits, and by one that awaits it; the pool ends.
#[test]
fn requests_end_with_their_pool() {
    let _guard = hang_guard();
    let hub = hub(2);
    hub.subscription("mute").serve(|_: &Message<'_>| ()).unwrap().detach();
    let shut_down = |end: Result<_, RequestError>| {
        let error = end.unwrap_err();
        assert!(matches!(error, RequestError::Hub(Error::ShutDown)), "{error:?}");
    };
    thread::scope(|scope| {
        scope.spawn(|| shut_down(hub.request("mute", "x", Duration::MAX)));
        // What has been counted may have its message still to publish.
        for time in [Duration::MAX, LONG] {
            let hub = &hub;
            scope.spawn(move || shut_down(hub.message("mute").request(time).and_then(block_on)));
        }
        until("all have asked", || hub.request_counts().0 == 3);
        at_rest(&hub);
        assert!(hub.pool().shutdown(LONG).drained);
    });
    assert_eq!(hub.request_counts(), (0, 0));
}

/// Goal: the function of a request is called once, on the pool: with the reply, or when the time is over; and
/// never if the request is refused, is given up, or nobody is left to reply.
#[test]
fn replies_may_be_told_to_a_function() {
    let _guard = hang_guard();
    let hub = hub(2);
    for execution in [Execution::Inline, Execution::Serial] {
        let (replies, publisher) = (Log::default(), thread::current().id());
        responder(&hub, "a", execution).detach();
        for number in 0..100 {
            let seen = replies.clone();
            let then = move |reply: Result<Stored, RequestError>| {
                assert_ne!(thread::current().id(), publisher, "it is on a thread of the pool");
                seen.add(String::from_utf8(reply.unwrap().payload().to_vec()).unwrap());
            };
            let time = if number % 2 == 0 { LONG } else { Duration::MAX };
            hub.message("a").payload(number.to_string()).request_then(time, then).unwrap();
        }
        until("all replies", || replies.len() == 100);
        let mut all = replies.lines();
        all.sort_by_key(|reply| reply.trim_end_matches('!').parse::<u32>().unwrap());
        assert_eq!(all, (0..100).map(|number| format!("{number}!")).collect::<Vec<_>>());
    }
    let never = |_: Result<Stored, RequestError>| unreachable!("nobody replies");
    let refused = hub.message("nobody").request_then(LONG, never).unwrap_err();
    assert!(matches!(refused, RequestError::NoResponders));
    let mute = hub.mailbox("mute", 3).unwrap();
    let late = Log::default();
    let seen = late.clone();
    let asked = hub.message("mute").request_then(Duration::from_millis(1), move |reply| {
        seen.add(reply.unwrap_err().to_string());
    });
    until("its time is over", || late.len() == 1);
    assert_eq!(late.lines(), ["no reply came in time"]);
    assert!(!asked.unwrap().give_up());
    let asked = hub.message("mute").request_then(LONG, never).unwrap();
    assert!(asked.give_up() && !asked.give_up() && !hub.give_up(asked.number()));
    let _ = hub.publish("mute", "the third").unwrap();
    let full = hub.message("mute").request_then(LONG, never).unwrap_err();
    assert!(matches!(full, RequestError::Refused(_)));
    assert!(mute.try_recv().unwrap().unwrap().reply_to().is_some());
    drop(mute);
    assert_eq!(hub.request_counts().0, 0);
    settle(&hub);
}

#[test]
fn the_function_of_a_request_goes_with_its_hub() {
    let _guard = hang_guard();
    let hub = hub(1);
    let mute = hub.mailbox("mute", 3).unwrap();
    let held = Arc::new(());
    let kept = Arc::clone(&held);
    let then = move |_: Result<Stored, RequestError>| drop(kept);
    hub.message("mute").request_then(Duration::MAX, then).unwrap();
    assert_eq!(hub.request_counts().0, 1);
    drop((mute, hub));
    until("it is dropped", || Arc::strong_count(&held) == 1);
}

#[test]
fn a_forked_child_does_not_wait_for_a_reply() {
    in_child(|| {
        let _guard = hang_guard();
        let hub = hub(1);
        let mute = hub.mailbox("mute", 2).unwrap();
        let ask = || hub.message("mute").request(Duration::MAX).unwrap();
        let kept = ask();
        let mut awaited = pin!(ask());
        let mut context = Context::from_waker(Waker::noop());
        assert!(awaited.as_mut().poll(&mut context).is_pending());
        let status = forked(|| {
            let is_forked = |reply| matches!(reply, Err(RequestError::Hub(Error::Forked)));
            assert!(is_forked(kept.wait()));
            match awaited.as_mut().poll(&mut context) {
                Poll::Ready(reply) => assert!(is_forked(reply)),
                Poll::Pending => panic!("nobody would wake it"),
            }
        });
        assert_eq!(status, 0);
        drop(mute);
    });
}

#[test]
fn a_forked_child_is_refused_and_drops_its_replies_whatever_others_had_locked() {
    in_child(|| {
        let _guard = hang_guard();
        let hub = hub(1);
        hub.subscription("mute")
            .execution(Execution::Inline)
            .serve_shared(|_: &Message<'_>| ())
            .unwrap()
            .detach();
        let ask = || hub.message("mute").request(Duration::MAX).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let held: Vec<_> = (0..1000).map(|_| ask()).collect();
                    while !over.load(Ordering::Relaxed) {
                        drop(ask());
                    }
                    drop(held);
                });
            }
            let never = |_: Result<Stored, RequestError>| unreachable!("nobody replies");
            let fork_once = || {
                let kept = ask();
                let told = hub.message("mute").request_then(Duration::MAX, never).unwrap();
                let status = forked(|| {
                    let is_forked = |error| matches!(error, RequestError::Hub(Error::Forked));
                    assert!(is_forked(hub.message("mute").request(LONG).unwrap_err()));
                    assert!(is_forked(hub.message("mute").request_then(LONG, never).unwrap_err()));
                    assert!(!told.give_up() && !hub.give_up(told.number()));
                    assert_eq!(hub.request_counts().0, 0);
                    drop(kept);
                });
                (status, told.give_up())
            };
            let other = (0..500).map(|_| fork_once()).find(|&end| end != (0, true));
            over.store(true, Ordering::Relaxed);
            assert_eq!(other, None);
        });
    });
}

#[cfg(feature = "config")]
#[test]
fn topics_carry_values() {
    use paceline::hub::Json;

    let _guard = hang_guard();
    let hub = hub(2);
    let log = Log::default();
    let seen = log.clone();
    let numbers = hub.topic::<Vec<u32>, _>("numbers.*", Json).unwrap();
    let subscription = numbers
        .subscribe(move |value: Vec<u32>, message: &Message<'_>| {
            seen.add(format!("{} {}", message.key(), value.iter().sum::<u32>()));
        })
        .unwrap();
    let _ = numbers.publish_to("numbers.a", &vec![1, 2, 3]).unwrap();
    let _ = hub.publish("numbers.b", "no json").unwrap();
    let _ = numbers.publish_to("numbers.b", &(0..100).collect()).unwrap();
    at_rest(&hub);
    assert_eq!(log.lines(), ["numbers.a 6", "numbers.b 4950"]);
    assert_eq!(subscription.stats().dead_lettered, 1);
    let dead = hub.dead_letters(&DeadFilter::all());
    assert!(dead[0].failure().unwrap().starts_with("expected ident"), "{dead:?}");
    let error = numbers.publish(&vec![]).unwrap_err().to_string();
    assert_eq!(
        error,
        "the topic's key is \"numbers.*\", but must be a key that one may publish with; see `publish_to`"
    );
    let error = numbers.publish_to("letters.a", &vec![]).unwrap_err().to_string();
    assert_eq!(
        error,
        "key is \"letters.a\", but must be one that the topic's pattern \"numbers.*\" matches"
    );
    settle(&hub);
}

/// Counts below a hundred, in one byte.
struct Small;

impl Codec<u32> for Small {
    fn encode(&self, value: &u32, into: &mut Vec<u8>) -> Result<(), Failure> {
        into.push(u8::try_from(*value).ok().filter(|&v| v < 100).ok_or("it is not below 100")?);
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<u32, Failure> {
        bytes.first().map(|&byte| byte.into()).ok_or_else(|| "it is empty".into())
    }
}

#[test]
fn codecs_are_the_users_own() {
    let _guard = hang_guard();
    let hub = hub(1);
    let log = Log::default();
    let seen = log.clone();
    let small = hub.topic("small", Small).unwrap();
    let _subscription = small.subscribe(move |value, _: &Message<'_>| seen.add(format!("{value}")));
    let _ = small.publish(&7).unwrap();
    let error = small.clone().publish(&100).unwrap_err().to_string();
    assert_eq!(
        error,
        "the value is refused (it is not below 100), but must be one that the topic's codec encodes"
    );
    let _ = small.publish(&99).unwrap();
    until("both have come", || log.len() == 2);
    assert_eq!(log.lines(), ["7", "99"]);
    let text = hub.topic("text", Text).unwrap();
    let bad = text.subscribe(|_: String, _: &Message<'_>| ()).unwrap();
    let _ = hub.publish("text", [0xff, 0xfe].as_slice()).unwrap();
    at_rest(&hub);
    assert_eq!(bad.stats().dead_lettered, 1);
    settle(&hub);
}
