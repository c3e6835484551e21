//! A datagram socket whose datagrams a completion queue brings.

use crate::common::{PATIENCE, finish, forked, hang_guard, in_child, readable, until};
use crate::kit::pool;
use paceline::cq::{CompletionQueue, EntryKind};
use paceline::net::{UdpEvent, UdpSocket};
use paceline::{Error, Pool};
use std::net::UdpSocket as Client;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

const TAG: u64 = 3;

/// A socket, the queue that brings what comes to it, and a client.
struct Bound {
    queue: CompletionQueue,
    socket: UdpSocket,
    client: Client,
}

impl Bound {
    fn new(pool: &Pool, max_waiting: usize) -> Self {
        let queue = CompletionQueue::new(pool).unwrap();
        let socket = UdpSocket::builder(pool).bind("127.0.0.1:0").max_datagram(1000);
        let socket = queue.bind(socket, max_waiting, TAG).unwrap();
        let client = Client::bind("127.0.0.1:0").unwrap();
        client.connect(socket.address()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { queue, socket, client }
    }

    /// Sends these, one after the other, each when the one before has been handled.
    fn send(&self, datagrams: &[&[u8]]) {
        for bytes in datagrams {
            let before = self.socket.stats().received;
            self.client.send(bytes).unwrap();
            until("a datagram", || self.socket.stats().received > before);
        }
    }

    /// So many events.
    #[track_caller]
    fn take(&self, count: usize) -> Vec<UdpEvent> {
        let (mut events, mut entries) = (Vec::new(), Vec::new());
        while events.len() < count {
            let more = count - events.len();
            let more = self.queue.wait(&mut entries, more, PATIENCE / 2).unwrap();
            assert_ne!(more, 0, "nothing more came after {events:?}");
            for entry in entries.drain(..) {
                assert_eq!(entry.tag, TAG);
                match entry.kind {
                    EntryKind::Datagram(event) => events.push(event),
                    other => panic!("{other:?}"),
                }
            }
        }
        events
    }

    /// The end, behind which nothing comes.
    #[track_caller]
    fn expect_end(&self) {
        let mut entries = Vec::new();
        assert_eq!(self.queue.wait(&mut entries, 16, PATIENCE / 2).unwrap(), 1);
        assert!(matches!(entries[0].kind, EntryKind::Ended), "{entries:?}");
    }
}

fn bytes_of(event: &UdpEvent) -> &[u8] {
    match event {
        UdpEvent::Datagram { bytes, .. } => bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn datagrams_come_in_order_with_their_senders() {
    let _guard = hang_guard();
    let pool = pool(2);
    let bound = Bound::new(&pool, 1 << 20);
    bound.send(&[b"one", b"", &[7; 1500], b"four"]);
    let mut events = bound.take(1);
    events.extend(bound.take(3));
    let from = bound.client.local_addr().unwrap();
    let expected = [(&b"one"[..], 3), (b"", 0), (&[7; 1000], 1500), (b"four", 4)];
    for (event, (bytes, length)) in events.iter().zip(expected) {
        let bytes = bytes.to_vec();
        assert_eq!(*event, UdpEvent::Datagram { bytes, from, length });
    }
    bound.socket.send_to(b"back", from).unwrap();
    let mut answer = [0; 8];
    assert_eq!(bound.client.recv(&mut answer).unwrap(), 4);
    drop(bound);
    finish(&pool);
}

/// Goal: what waits for a queue weighs up to `max_waiting`, 128 bytes beside each datagram's own; what comes
/// beyond that is lost and counted, and what was taken makes room.
#[test]
fn what_has_no_room_is_dropped_and_counted() {
    let _guard = hang_guard();
    let pool = pool(2);
    let bound = Bound::new(&pool, 1024);
    let dropped = || bound.socket.stats().dropped;
    // Seven of them weigh 1022, and one more of any size does not fit.
    bound.send(&[&[1; 18][..]; 7]);
    assert_eq!(dropped(), 0);
    bound.send(&[b"", b"too much"]);
    until("both are counted", || dropped() == 2);
    assert_eq!(bound.take(1).len(), 1);
    // 148 are free again: one of 20 bytes has room, and one of 21 has not.
    bound.send(&[&[2; 21]]);
    until("one more is counted", || dropped() == 3);
    bound.send(&[&[3; 20]]);
    let lengths: Vec<_> = bound.take(7).iter().map(|event| bytes_of(event).len()).collect();
    assert_eq!(lengths, [18, 18, 18, 18, 18, 18, 20]);
    assert_eq!(dropped(), 3);
    bound.socket.close().unwrap();
    finish(&pool);
}

#[test]
fn the_descriptor_is_readable_while_a_wait_would_not_sleep() {
    let _guard = hang_guard();
    let pool = pool(2);
    let bound = Bound::new(&pool, 1 << 20);
    let fd = bound.queue.descriptor().unwrap().as_raw_fd();
    assert!(!readable(fd, 0));
    bound.send(&[b"a", b"b"]);
    for _ in 0..2 {
        assert!(readable(fd, 10_000));
        bound.take(1);
    }
    // A source may be listed in vain once more.
    assert_eq!(bound.queue.wait(&mut Vec::new(), 1, Duration::ZERO).unwrap(), 0);
    assert!(!readable(fd, 0));
    bound.socket.close().unwrap();
    // The end is told too.
    until("the end", || readable(fd, 1000));
    bound.expect_end();
    finish(&pool);
}

/// Goal: the end comes once, behind all that had come before, whether the socket drains, closes, or ends with its pool.
/// Method: many threads wait while a socket drains; others are closed with something that nobody has taken.
#[test]
fn the_end_comes_after_what_had_come_before() {
    let _guard = hang_guard();
    let pool = pool(2);
    let bound = Bound::new(&pool, 1 << 20);
    let waiters: Vec<_> = (0..10)
        .map(|_| {
            let queue = bound.queue.clone();
            thread::spawn(move || {
                let (mut entries, mut counts) = (Vec::new(), [0; 2]);
                while queue.wait(&mut entries, 4, PATIENCE).is_ok() {
                    for entry in entries.drain(..) {
                        let ended = matches!(entry.kind, EntryKind::Ended);
                        counts[usize::from(ended)] += 1;
                        if ended {
                            queue.close();
                        }
                    }
                }
                counts
            })
        })
        .collect();
    for _ in 0..300 {
        bound.client.send(b"x").unwrap();
    }
    assert!(bound.socket.drain(PATIENCE).drained);
    let [mut datagrams, mut ends] = [0; 2];
    for waiter in waiters {
        let [some, ended] = waiter.join().unwrap();
        (datagrams, ends) = (datagrams + some, ends + ended);
    }
    let stats = bound.socket.stats();
    assert_eq!((datagrams, ends, stats.dropped), (stats.received, 1, 0));

    let bound = Bound::new(&pool, 1 << 20);
    bound.send(&[b"kept"]);
    bound.socket.close().unwrap();
    assert_eq!(bytes_of(&bound.take(1)[0]), b"kept");
    bound.expect_end();

    let bound = Bound::new(&pool, 1 << 20);
    bound.send(&[b"kept"]);
    finish(&pool);
    assert_eq!(bytes_of(&bound.take(1)[0]), b"kept");
    bound.expect_end();
    let told = bound.queue.wait(&mut Vec::new(), 1, PATIENCE);
    assert!(matches!(told, Err(Error::ShutDown)), "{told:?}");
}

#[test]
fn senseless_bounds_are_refused() {
    let _guard = hang_guard();
    let pool = pool(1);
    let queue = CompletionQueue::new(&pool).unwrap();
    let socket = UdpSocket::builder(&pool).bind("127.0.0.1:0");
    let error = queue.bind(socket, 1023, TAG).unwrap_err();
    assert_eq!(error.to_string(), "max_waiting is 1023, but must be 1024 to 1099511627776");
    finish(&pool);
}

#[test]
fn a_forked_child_is_told_so() {
    in_child(|| {
        let _guard = hang_guard();
        let pool = pool(1);
        let bound = Bound::new(&pool, 1024);
        let status = forked(|| {
            let brought = bound.queue.wait(&mut Vec::new(), 1, PATIENCE);
            assert!(matches!(brought, Err(Error::Forked)), "{brought:?}");
            assert!(matches!(bound.queue.descriptor(), Err(Error::Forked)));
            drop((bound.queue.clone(), bound.socket.clone()));
        });
        assert_eq!(status, 0);
        bound.send(&[b"still here"]);
        assert_eq!(bytes_of(&bound.take(1)[0]), b"still here");
        bound.socket.close().unwrap();
        finish(&pool);
    });
}
