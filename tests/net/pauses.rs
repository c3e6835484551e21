//! Pauses and resumes, in whatever order they come.

use crate::common::{Count, hang_guard, until};
use crate::kit::*;
use paceline::net::{
    Accept, Conn, ConnHandler, ConnRef, Filter, FilterRead, Listen, Reason, Server,
};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// What the library reads at once: no more than that may be there unconsumed.
const READ: usize = 64 << 10;

/// Inverts each byte, so what it shows has passed it. A zero ends a direction.
#[derive(Default)]
struct Inverts;

impl Filter for Inverts {
    fn received(
        &mut self,
        bytes: &[u8],
        plain: &mut Vec<u8>,
        _: &mut Vec<u8>,
    ) -> io::Result<FilterRead> {
        let end = bytes.iter().position(|byte| *byte == 0);
        plain.extend(bytes[..end.unwrap_or(bytes.len())].iter().map(|byte| !byte));
        Ok(if end.is_some() { FilterRead::Ended } else { FilterRead::Open })
    }

    fn written(&mut self, bytes: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        wire.extend(bytes.iter().map(|byte| !byte));
        Ok(())
    }

    fn finish(&mut self, wire: &mut Vec<u8>) {
        wire.push(0);
    }

    fn cut_off(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes that pass the filter: none of them is 255.
fn body(size: usize) -> Vec<u8> {
    pattern(size).iter().map(|byte| byte & 127).collect()
}

fn on_the_wire(bytes: &[u8], filtered: bool) -> Vec<u8> {
    bytes.iter().map(|byte| if filtered { !byte } else { *byte }).collect()
}

/// In which order a hook pauses its connection and has it resumed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    PauseFirst,
    ResumeFirst,
    /// It resumes itself, after it has paused.
    Itself,
}

/// Takes parts, which another thread takes over and has reading resumed for each.
struct Parts {
    log: Log,
    order: Order,
    most: Arc<Mutex<usize>>,
    parts: SyncSender<Vec<u8>>,
    finished: Count,
}

impl Parts {
    fn hand_over(&self, part: &[u8]) -> usize {
        match self.parts.try_send(part.to_vec()) {
            Ok(()) => part.len(),
            Err(TrySendError::Full(_)) => 0,
            Err(TrySendError::Disconnected(_)) => panic!("nobody takes them"),
        }
    }
}

impl ConnHandler for Parts {
    fn open(&mut self, conn: &Conn) -> Accept {
        self.log.open(conn);
        Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        let mut most = self.most.lock().unwrap();
        *most = bytes.len().max(*most);
        let part = &bytes[..bytes.len().min(4096)];
        match self.order {
            Order::PauseFirst => {
                conn.pause();
                self.hand_over(part)
            }
            Order::ResumeFirst => {
                let taken = self.hand_over(part);
                let resumes = conn.handle();
                thread::scope(|scope| {
                    scope.spawn(|| resumes.resume().unwrap());
                });
                conn.pause();
                taken
            }
            Order::Itself => {
                let taken = self.hand_over(part);
                conn.pause();
                conn.resume();
                taken
            }
        }
    }

    fn finished(&mut self, _: &Conn) {
        self.finished.up();
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.log.close(reason);
    }
}

/// What comes, until the connection has ended; each part has reading resumed.
fn taker(parts: Receiver<Vec<u8>>, log: Log) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        for part in parts {
            all.extend(part);
            let conn: ConnRef = log.conn(0);
            // It may have ended, with its last part.
            let _stale = conn.resume();
        }
        all
    })
}

fn takes_all(kind: Kind, filtered: bool, order: Order, size: usize) {
    let case = format!("{kind:?}, filtered: {filtered}, {order:?}, {size} bytes");
    let (pool, log, finished) = (pool(2), Log::new(), Count::new());
    let (parts, taken) = sync_channel(2);
    let most = Arc::new(Mutex::new(0));
    let taker = taker(taken, log.clone());
    let handler =
        Parts { log: log.clone(), order, most: most.clone(), parts, finished: finished.clone() };
    let place = Mutex::new(Some(handler));
    let listen = Listen::on(kind.address());
    let listen = if filtered { listen.filter(|_| Inverts) } else { listen };
    let builder = Server::builder(&pool).listen(listen);
    let server = builder.serve(move |_| place.lock().unwrap().take().unwrap()).unwrap();
    let mut client = Client::connect(&server.addresses()[0]);
    let bytes = body(size);
    client.send(on_the_wire(&bytes, filtered));
    if filtered {
        // Its end comes in one read with what is before it.
        client.send([0]);
    }
    client.finish();
    assert!(taker.join().unwrap() == bytes, "{case}");
    assert_eq!(log.reason(0), Reason::Peer, "{case}");
    assert_eq!(finished.get(), 1, "{case}");
    let most = *most.lock().unwrap();
    assert!(most <= READ, "{case}: {most} bytes were there at once");
    drop(client);
    end(&server);
}

/// Goal: a resume that comes while a hook runs ends the pause that the hook makes, whichever comes first; and nothing is
/// read before the hook has taken what is there, so everything comes, in order, and no more than one read is there at
/// once. Method: parts of 4 KiB of up to 20 MB, each with a pause and a resume, in each order.
#[test]
fn a_resume_that_comes_at_once_has_nothing_read_too_early() {
    let _guard = hang_guard();
    for (kind, filtered) in [(Kind::Tcp, false), (Kind::Unix, false), (Kind::Tcp, true)] {
        for order in [Order::PauseFirst, Order::ResumeFirst, Order::Itself] {
            let sizes: &[usize] = match (order, kind) {
                // It starts a thread for each part.
                (Order::ResumeFirst, _) => &[1, 4097, 300_000, 3_000_000],
                (_, Kind::Tcp) => &[1, 4097, 300_000, 20_000_000],
                _ => &[1, 4097, 300_000, 5_000_000],
            };
            sizes.iter().for_each(|size| takes_all(kind, filtered, order, *size));
        }
    }
}

/// Goal: of the calls of other threads the last one counts. Method: a resume and then a pause, many times, while the
/// connection runs for each resume; then bytes, which may be shown once to a run that was on.
#[test]
fn a_pause_after_a_resume_holds() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, log, shown) = (pool(2), Log::new(), Count::new());
        let (inner, count) = (log.clone(), shown.clone());
        let data = move |_: &Conn, bytes: &[u8]| {
            count.add(bytes.len() as u64);
            bytes.len()
        };
        let builder = Server::builder(&pool).listen(kind.address());
        let server = builder.serve(move |_| OnData(inner.clone(), data.clone())).unwrap();
        let mut client = Client::connect(&server.addresses()[0]);
        let conn = log.conn(0);
        for _ in 0..100 {
            for _ in 0..100 {
                conn.resume().unwrap();
                conn.pause().unwrap();
            }
            log.settle(&conn);
            let before = shown.get();
            client.send("x");
            log.settle(&conn);
            assert_eq!(shown.get(), before, "it was read in a pause");
            conn.resume().unwrap();
            shown.until(before + 1);
        }
        drop(client);
        assert_eq!(log.reason(0), Reason::Peer);
        end(&server);
    }
}

/// Goal: a resume without a pause does not end a later one. Method: a hook that resumes, before bytes are shown in the
/// same run; their hook pauses, and is not shown what is left.
#[test]
fn a_resume_without_a_pause_ends_no_later_one() {
    struct Early(Log, Count);

    impl ConnHandler for Early {
        fn open(&mut self, conn: &Conn) -> Accept {
            self.0.open(conn);
            conn.resume();
            Accept::Yes
        }

        fn data(&mut self, conn: &Conn, _: &[u8]) -> usize {
            self.1.up();
            conn.pause();
            0
        }

        fn notified(&mut self, conn: &Conn) {
            self.0.notified.up();
            if self.1.get() == 0 {
                conn.resume();
            }
        }

        fn close(&mut self, _: &Conn, reason: Reason) {
            self.0.close(reason);
        }
    }

    let _guard = hang_guard();
    for kind in KINDS {
        for _ in 0..100 {
            let (pool, log, shown) = (pool(2), Log::new(), Count::new());
            let (inner, count) = (log.clone(), shown.clone());
            let builder = Server::builder(&pool).listen(kind.address());
            let server = builder.serve(move |_| Early(inner.clone(), count.clone())).unwrap();
            let mut client = Client::connect(&server.addresses()[0]);
            let conn = log.conn(0);
            client.send("abc");
            conn.notify().unwrap();
            until("it is shown", || shown.get() > 0);
            log.settle(&conn);
            assert_eq!(shown.get(), 1);
            conn.abort().unwrap();
            log.reason(0);
            end(&server);
        }
    }
}

/// Goal: that the peer has finished is reported behind what was not consumed, also if a filter finds both in one read.
#[test]
fn the_end_waits_for_the_end_of_a_pause() {
    let _guard = hang_guard();
    let (parts, taken) = sync_channel(1);
    let (pool, log, finished) = (pool(2), Log::new(), Count::new());
    let handler = Parts {
        log: log.clone(),
        order: Order::PauseFirst,
        most: Arc::default(),
        parts,
        finished: finished.clone(),
    };
    let place = Mutex::new(Some(handler));
    let listen = Listen::on(Kind::Tcp.address()).filter(|_| Inverts);
    let builder = Server::builder(&pool).listen(listen);
    let server = builder.serve(move |_| place.lock().unwrap().take().unwrap()).unwrap();
    let mut client = Client::connect(&server.addresses()[0]);
    let bytes = body(10_000);
    let mut wire = on_the_wire(&bytes, true);
    wire.push(0);
    client.send(wire);
    let conn = log.conn(0);
    let mut all = Vec::new();
    while all.len() < bytes.len() {
        assert_eq!((finished.get(), log.closed.get()), (0, 0));
        all.extend(taken.recv().unwrap());
        conn.resume().unwrap();
    }
    assert!(all == bytes);
    finished.until(1);
    assert_eq!(log.reason(0), Reason::Peer);
    drop(client);
    end(&server);
}
