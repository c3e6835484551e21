//! A forked child: every call says so at once, touches nothing that it shares, and the parent's server
//! does not notice.
#![allow(unsafe_code, reason = "forks")]

use crate::common::{Count, LONG, PATIENCE, finish, hang_guard, in_child};
use crate::kit::*;
use paceline::net::{
    Accept, Admission, Conn, ConnHandler, ConnRef, DatagramHandler, Datagrams, Reason, Server,
    UdpSocket,
};
use paceline::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

/// Runs `body` in a forked child, which ends by leaving it.
#[track_caller]
fn forked(body: impl FnOnce()) {
    // SAFETY: the child runs only code that this test means to test there.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", std::io::Error::last_os_error());
    if pid == 0 {
        // SAFETY: a child that hangs is ended by this signal, which the parent sees.
        unsafe { libc::alarm(PATIENCE.as_secs() as u32 / 2) };
        let panicked = catch_unwind(AssertUnwindSafe(body)).is_err();
        // SAFETY: nothing of the parent's is to be run here.
        unsafe { libc::_exit(i32::from(panicked)) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's own.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "the child's status");
}

fn is_forked<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Forked))
}

fn conn_says_forked(conn: &ConnRef) {
    assert!(is_forked(conn.write(b"x")) && is_forked(conn.write_owned(vec![1])));
    assert!(is_forked(conn.write_vectored(&[])) && is_forked(conn.write_tracked(b"x", 1)));
    assert!(is_forked(conn.close()) && is_forked(conn.shutdown_write()) && is_forked(conn.abort()));
    assert!(is_forked(conn.pause()) && is_forked(conn.resume()) && is_forked(conn.notify()));
    assert!(!conn.is_open() && conn.queued() == 0 && conn.local().is_none());
    let _looks = (conn.id(), conn.peer().clone(), format!("{conn:?}"));
}

fn server_says_forked(server: &Server, conn: &ConnRef) {
    assert!(is_forked(server.conn(conn.id())) && is_forked(server.wait()));
    assert!(is_forked(server.connect(&server.addresses()[0], Echo(Log::new()))));
    let report = server.drain(LONG);
    assert!(!report.drained && !report.requested);
    assert!(!server.addresses().is_empty() && format!("{server:?}").contains("Server"));
}

fn socket_says_forked(socket: &UdpSocket) {
    let to = socket.address();
    assert!(is_forked(socket.send_to(b"x", to)) && is_forked(socket.send_batch(&[(b"x", to)])));
    assert!(is_forked(socket.join_multicast(to.ip(), 0)) && is_forked(socket.close()));
    assert!(is_forked(socket.wait()) && !socket.is_open());
    let report = socket.drain(LONG);
    assert!(!report.drained && !report.requested);
}

struct Ignore;

impl DatagramHandler for Ignore {
    fn data(&mut self, _: &UdpSocket, _: Datagrams<'_>) {}
}

/// Keeps its first request, and echoes the rest.
struct Keeping(Log, Arc<Mutex<Option<Admission>>>);

impl ConnHandler for Keeping {
    fn open(&mut self, conn: &Conn) -> Accept {
        self.0.open(conn);
        Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        if bytes == b"keep" {
            *self.1.lock().unwrap() = conn.admit();
        }
        conn.write(bytes).unwrap();
        bytes.len()
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        self.0.close(reason);
    }
}

#[test]
fn a_forked_child_is_told_so_and_the_parents_server_goes_on() {
    in_child(|| {
        let _guard = hang_guard();
        for kind in KINDS {
            let (pool, log, kept) = (pool(2), Log::new(), Arc::new(Mutex::new(None)));
            let (inner, request) = (log.clone(), Arc::clone(&kept));
            let builder = Server::builder(&pool).listen(kind.address());
            let server = builder.serve(move |_| Keeping(inner.clone(), Arc::clone(&request)));
            let server = server.unwrap();
            let datagrams = UdpSocket::builder(&pool).bind("127.0.0.1:0").serve(Ignore).unwrap();
            let mut client = Client::connect(&server.addresses()[0]);
            client.send("keep");
            client.expect("keep");
            let conn = log.conn(0);
            forked(|| {
                conn_says_forked(&conn);
                server_says_forked(&server, &conn);
                socket_says_forked(&datagrams);
                kept.lock().unwrap().take().unwrap().answered();
                let late = Server::builder(&pool).listen(&server.addresses()[0]);
                assert!(is_forked(late.serve(|_| Echo(Log::new()))));
                assert!(is_forked(UdpSocket::builder(&pool).bind("127.0.0.1:0").serve(Ignore)));
                // As a child does that unwinds: all of it goes.
                // SAFETY: the child leaves without using them again.
                unsafe {
                    drop((std::ptr::read(&conn), std::ptr::read(&server)));
                    drop((std::ptr::read(&datagrams), std::ptr::read(&pool)));
                }
            });
            client.send("on it goes");
            client.expect("on it goes");
            assert_eq!((server.stats().in_work, log.closed.get()), (1, 0));
            assert!(datagrams.is_open());
            // The child has not removed the file of the parent's socket.
            drop((client, Client::connect(&server.addresses()[0])));
            kept.lock().unwrap().take().unwrap().answered();
            end(&server);
            drop((server, datagrams));
            finish(&pool);
        }
    });
}

/// Goal: a child does not hang at a lock that was held when it was forked. Method: threads that write,
/// look and send without pause hold the locks nearly always; many forks.
#[test]
fn locks_that_were_held_at_a_fork_hang_nobody() {
    in_child(|| {
        let _guard = hang_guard();
        let (pool, running) = (pool(2), Arc::new(AtomicBool::new(true)));
        let (server, log) =
            echo(&pool, Kind::Unix, |builder| builder.output_marks(1 << 16, 1 << 18, 1 << 20));
        let client = Client::with_buffers(&server.addresses()[0], Some(1)).unwrap();
        let datagrams = UdpSocket::builder(&pool).bind("127.0.0.1:0").serve(Ignore).unwrap();
        let (conn, to) = (log.conn(0), datagrams.address());
        let busy: Vec<_> = (0..3)
            .map(|_| {
                let (conn, server) = (conn.clone(), server.clone());
                let (datagrams, running) = (datagrams.clone(), Arc::clone(&running));
                thread::spawn(move || {
                    while running.load(SeqCst) {
                        // The peer does not read: most of them only find the queue full.
                        let _ = conn.write(&[0; 10_000]);
                        let _ = server.conn(conn.id()).unwrap().queued();
                        let _ = datagrams.send_to(&[0; 100], to);
                    }
                })
            })
            .collect();
        for _ in 0..100 {
            forked(|| {
                conn_says_forked(&conn);
                server_says_forked(&server, &conn);
                socket_says_forked(&datagrams);
            });
        }
        running.store(false, SeqCst);
        busy.into_iter().for_each(|thread| thread.join().unwrap());
        conn.abort().unwrap();
        drop((client, datagrams));
        end(&server);
    });
}

/// A hook that forks: its child must not return, and what it calls meanwhile must not hang.
#[test]
fn a_child_that_a_hook_forks_is_told_so() {
    in_child(|| {
        let _guard = hang_guard();
        for kind in KINDS {
            let (pool, log, told) = (pool(2), Log::new(), Count::new());
            let (inner, count) = (log.clone(), told.clone());
            let data = move |conn: &Conn, bytes: &[u8]| {
                forked(|| {
                    assert!(is_forked(conn.write(b"x")) && is_forked(conn.write_owned(vec![1])));
                    assert!(
                        is_forked(conn.write_vectored(&[]))
                            && is_forked(conn.write_tracked(b"x", 1))
                    );
                    conn.flush();
                    conn.close();
                    conn.shutdown_write();
                    conn.abort();
                    conn.pause();
                    conn.resume();
                    assert!(conn.queued() == 0 && conn.local().is_none());
                    conn_says_forked(&conn.handle());
                });
                count.up();
                conn.write(bytes).unwrap();
                bytes.len()
            };
            let builder = Server::builder(&pool).listen(kind.address());
            let server = builder.serve(move |_| OnData(inner.clone(), data.clone())).unwrap();
            let mut client = Client::connect(&server.addresses()[0]);
            for _ in 0..5 {
                client.send("still here");
                client.expect("still here");
            }
            assert_eq!(told.get(), 5);
            drop(client);
            assert_eq!(log.reason(0), Reason::Peer);
            end(&server);
        }
    });
}
