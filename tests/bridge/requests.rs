//! Requests over the broker.

use crate::broker::{broker, connected};
use crate::common::{hang_guard, until};
use crate::topics::hub;
use paceline::bridge::{Bridge, Import};
use paceline::hub::{Message, RequestError};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

/// Goal: a request of one process is answered by another, and its errors are known at once: nobody imports it, or who
/// does has no handler.
#[test]
fn requests_go_over_and_their_lack_of_responders_is_known_at_once() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let _out = connected(Bridge::nats(&here, broker.url()).export("rpc.>"));
    let begun = Instant::now();
    let nobody = here.request("rpc.add", "1", LIMIT);
    assert!(matches!(nobody, Err(RequestError::NoResponders)), "{nobody:?}");
    let (tell, told) = std::sync::mpsc::channel();
    let asked = here.message("rpc.add").request_then(LIMIT, move |end| tell.send(end).unwrap());
    asked.unwrap();
    assert!(matches!(told.recv().unwrap(), Err(RequestError::NoResponders)));
    let server =
        connected(Bridge::nats(&there, broker.url()).import(Import::new("rpc.>").group("servers")));
    until("no handler there", || {
        let end = here.request("rpc.add", "1", LIMIT);
        matches!(end, Err(RequestError::NoResponders)) && server.stats().imports[0].published > 0
    });
    assert!(begun.elapsed() < LIMIT);
    let replier = there.clone();
    let _adds = there
        .subscribe("rpc.add", move |request: &Message<'_>| {
            let number: u64 = String::from_utf8_lossy(request.payload()).parse().unwrap();
            let _ = replier.reply(request, format!("{}", number + 1)).unwrap();
        })
        .unwrap();
    for number in 0..200_u64 {
        let reply = here.request("rpc.add", format!("{number}"), LIMIT).unwrap();
        assert_eq!(reply.payload(), format!("{}", number + 1).as_str());
    }
    until("none are left", || server.stats().requests_in == 0);
}

/// Goal: what is too large for the broker is refused, and the connection stays. Method: a message, a request and a reply
/// that are larger with their headers than the broker allows.
#[test]
fn what_is_too_large_leaves_the_connection_alone() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let out = connected(Bridge::nats(&here, broker.url()).export("rpc.>"));
    let server = connected(Bridge::nats(&there, broker.url()).import("rpc.>"));
    let (large, replier) = (vec![7_u8; (1 << 20) - 8], there.clone());
    let answer = large.clone();
    let _large = there
        .subscribe("rpc.large", move |request: &Message<'_>| {
            let _ = replier.reply(request, answer.clone()).unwrap();
        })
        .unwrap();
    let _ = here.publish("rpc.none", large.clone()).unwrap();
    out.flush(LIMIT).unwrap();
    let end = here.request("rpc.large", large, LIMIT);
    assert!(matches!(end, Err(RequestError::NoResponders)), "{end:?}");
    assert_eq!(out.stats().exports[0].refused, 2);
    until("the import is known to the broker, and the reply refused", || {
        let end = here.request("rpc.large", "1", LIMIT);
        matches!(end, Err(RequestError::NoResponders)) && server.stats().imports[0].published > 0
    });
    assert_eq!((out.stats().connects, server.stats().connects), (1, 1));
    assert_eq!((out.stats().requests_out, server.stats().requests_in), (0, 0));
}

/// Goal: of two processes that import without a group, one that has no handler does not spoil the request.
#[test]
fn who_listens_without_a_handler_does_not_spoil_a_request() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there, listener) = (hub(), hub(), hub());
    let _out = connected(Bridge::nats(&here, broker.url()).export("rpc.>"));
    let _in = connected(Bridge::nats(&there, broker.url()).import("rpc.>"));
    let listens = connected(Bridge::nats(&listener, broker.url()).import(">"));
    let replier = there.clone();
    let _echo = there
        .subscribe("rpc.echo", move |request: &Message<'_>| {
            std::thread::sleep(Duration::from_millis(20));
            let _ = replier.reply(request, request.payload().clone()).unwrap();
        })
        .unwrap();
    until("it replies", || here.request("rpc.echo", "x", Duration::from_millis(500)).is_ok());
    until("it listens", || {
        let _ = here.request("rpc.echo", "x", LIMIT).unwrap();
        listens.stats().imports[0].published > 0
    });
    for _ in 0..10 {
        assert_eq!(here.request("rpc.echo", "x", LIMIT).unwrap().payload(), b"x");
    }
}
