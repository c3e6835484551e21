//! A datagram socket whose datagrams are pulled by threads of the host.

use crate::common::{PATIENCE, finish, forked, hang_guard, in_child, readable, until};
use crate::kit::pool;
use paceline::net::{PulledUdp, UdpEvent, UdpSocket};
use paceline::{Error, Pool};
use std::net::UdpSocket as Client;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

const NOT_AT_ALL: Duration = Duration::ZERO;

fn pulled(pool: &Pool, max_waiting: usize) -> (PulledUdp, Client) {
    let socket = UdpSocket::builder(pool).bind("127.0.0.1:0").max_datagram(1000);
    let socket = socket.serve_pulled(max_waiting).unwrap();
    let client = Client::bind("127.0.0.1:0").unwrap();
    client.connect(socket.socket().address()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    (socket, client)
}

/// So many events.
#[track_caller]
fn take(socket: &PulledUdp, count: usize) -> Vec<UdpEvent> {
    let mut events = Vec::new();
    while events.len() < count {
        let more = socket.pull(&mut events, count, PATIENCE / 2).unwrap();
        assert_ne!(more, 0, "nothing more came after {events:?}");
    }
    assert_eq!(events.len(), count);
    events
}

/// Sends these, one after the other, each when the one before has been handled.
fn send(socket: &PulledUdp, client: &Client, datagrams: &[&[u8]]) {
    for bytes in datagrams {
        let before = socket.socket().stats().received;
        client.send(bytes).unwrap();
        until("a datagram", || socket.socket().stats().received > before);
    }
}

fn bytes_of(event: &UdpEvent) -> &[u8] {
    match event {
        UdpEvent::Datagram { bytes, .. } => bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn datagrams_are_pulled_in_order_with_their_senders() {
    let _guard = hang_guard();
    let pool = pool(2);
    let (socket, client) = pulled(&pool, 1 << 20);
    send(&socket, &client, &[b"one", b"", &[7; 1500], b"four"]);
    // As many as there is place for.
    let mut events = Vec::new();
    assert_eq!(socket.pull(&mut events, 1, PATIENCE / 2).unwrap(), 1);
    events.extend(take(&socket, 3));
    let from = client.local_addr().unwrap();
    let expected = [(&b"one"[..], 3), (b"", 0), (&[7; 1000], 1500), (b"four", 4)];
    for (event, (bytes, length)) in events.iter().zip(expected) {
        let bytes = bytes.to_vec();
        assert_eq!(*event, UdpEvent::Datagram { bytes, from, length });
    }
    socket.socket().send_to(b"back", from).unwrap();
    let mut answer = [0; 8];
    assert_eq!(client.recv(&mut answer).unwrap(), 4);
    drop(socket);
    finish(&pool);
}

/// Goal: what waits for a host weighs up to `max_waiting`, 128 bytes beside each datagram's own; what comes
/// beyond that is lost and counted, and what was pulled makes room.
#[test]
fn what_a_slow_host_has_no_room_for_is_dropped_and_counted() {
    let _guard = hang_guard();
    let pool = pool(2);
    let (socket, client) = pulled(&pool, 1024);
    // Seven of them weigh 1022, and one more of any size does not fit.
    let each = [&[1; 18][..]; 7];
    send(&socket, &client, &each);
    assert_eq!(socket.socket().stats().dropped, 0);
    send(&socket, &client, &[b"", b"too much"]);
    until("both are counted", || socket.socket().stats().dropped == 2);
    assert_eq!(take(&socket, 1).len(), 1);
    // 148 are free again: one of 20 bytes has room, and one of 21 has not.
    send(&socket, &client, &[&[2; 21]]);
    until("one more is counted", || socket.socket().stats().dropped == 3);
    send(&socket, &client, &[&[3; 20]]);
    let events = take(&socket, 7);
    let lengths: Vec<_> = events.iter().map(|event| bytes_of(event).len()).collect();
    assert_eq!(lengths, [18, 18, 18, 18, 18, 18, 20]);
    assert_eq!(socket.socket().stats().dropped, 3);
    socket.socket().close().unwrap();
    finish(&pool);
}

#[test]
fn the_descriptor_is_readable_while_a_pull_would_not_wait() {
    let _guard = hang_guard();
    let pool = pool(2);
    let (socket, client) = pulled(&pool, 1 << 20);
    let fd = socket.pollable().unwrap().as_raw_fd();
    assert!(!readable(fd, 0));
    send(&socket, &client, &[b"a", b"b"]);
    assert!(readable(fd, 10_000));
    take(&socket, 1);
    assert!(readable(fd, 10_000));
    take(&socket, 1);
    assert!(!readable(fd, 0));
    socket.socket().close().unwrap();
    // The end is told too.
    until("the end", || readable(fd, 1000));
    finish(&pool);
}

#[test]
fn the_end_comes_after_what_had_come_before() {
    let _guard = hang_guard();
    let pool = pool(2);
    let (socket, client) = pulled(&pool, 1 << 20);
    let sleeper = {
        let socket = socket.clone();
        thread::spawn(move || {
            let mut events = Vec::new();
            while socket.pull(&mut events, 16, PATIENCE).is_ok() {}
            events
        })
    };
    send(&socket, &client, &[b"a"]);
    socket.socket().close().unwrap();
    assert_eq!(sleeper.join().unwrap().len(), 1);
    assert!(matches!(socket.pull(&mut Vec::new(), 1, PATIENCE), Err(Error::ShutDown)));

    // The end of the pool is the socket's.
    let (socket, client) = pulled(&pool, 1 << 20);
    send(&socket, &client, &[b"kept"]);
    finish(&pool);
    assert_eq!(bytes_of(&take(&socket, 1)[0]), b"kept");
    assert!(matches!(socket.pull(&mut Vec::new(), 1, PATIENCE), Err(Error::ShutDown)));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let _guard = hang_guard();
    let pool = pool(1);
    let error = UdpSocket::builder(&pool).bind("127.0.0.1:0").serve_pulled(1023).unwrap_err();
    assert_eq!(error.to_string(), "max_waiting is 1023, but must be 1024 to 1099511627776");
    let (socket, _client) = pulled(&pool, 1024);
    let none = socket.pull(&mut Vec::new(), 0, NOT_AT_ALL).unwrap_err();
    assert_eq!(none.to_string(), "most is 0, but must be at least 1");
    let inside = {
        let socket = socket.clone();
        move || {
            assert_eq!(socket.pull(&mut Vec::new(), 1, NOT_AT_ALL).unwrap(), 0);
            socket.pull(&mut Vec::new(), 1, PATIENCE).unwrap_err()
        }
    };
    let told = pool.submit(inside).map_err(|_| ()).unwrap().wait().unwrap();
    assert!(matches!(told, Error::WouldDeadlock), "{told:?}");
    socket.socket().close().unwrap();
    finish(&pool);
}

#[test]
fn a_forked_child_is_told_so() {
    in_child(|| {
        let _guard = hang_guard();
        let pool = pool(1);
        let (socket, client) = pulled(&pool, 1024);
        let pollable = socket.pollable().unwrap().as_raw_fd();
        assert!(!readable(pollable, 0));
        let status = forked(|| {
            let pulled = socket.pull(&mut Vec::new(), 1, PATIENCE);
            assert!(matches!(pulled, Err(Error::Forked)), "{pulled:?}");
            assert!(matches!(socket.pollable(), Err(Error::Forked)));
            drop(socket.clone());
        });
        assert_eq!(status, 0);
        send(&socket, &client, &[b"still here"]);
        assert_eq!(bytes_of(&take(&socket, 1)[0]), b"still here");
        socket.socket().close().unwrap();
        finish(&pool);
    });
}
