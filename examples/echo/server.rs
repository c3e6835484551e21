//! The server: a handler that writes what it is given.
//!
//! All else is the library's: accepting, reading, the bytes that a peer does not take at once, and
//! holding back a peer that does not read what it asked for.

use cpu_time::ThreadTime;
use paceline::net::{Conn, ConnHandler};
use std::time::Duration;

/// One connection.
pub struct Echo(pub Slow);

impl ConnHandler for Echo {
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        self.0.hold(bytes[0]);
        // It fails if the peer is gone, and then `close` comes next.
        let _ = conn.write(bytes);
        bytes.len()
    }
}

/// What a slow request does before it is echoed.
#[derive(Clone, Copy, Debug)]
pub enum Slow {
    /// Keeps its CPU busy.
    Burn,
    /// Sleeps, as code does that waits for a disk or a lock.
    Sleep,
    /// Sleeps for 50 ms, as code does that asks a database.
    Database,
}

impl Slow {
    /// The first byte of a request that is slow.
    pub const MARK: u8 = 0xBB;
    const TIME: Duration = Duration::from_millis(1);

    #[inline]
    fn hold(self, first: u8) {
        if first == Self::MARK {
            self.work();
        }
    }

    #[cold]
    fn work(self) {
        match self {
            Self::Burn => {
                let begin = ThreadTime::now();
                while begin.elapsed() < Self::TIME {
                    std::hint::spin_loop();
                }
            }
            Self::Sleep => std::thread::sleep(Self::TIME),
            Self::Database => std::thread::sleep(50 * Self::TIME),
        }
    }
}
