//! What panics, and with what.

use paceline::Pool;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

/// Has the code of one place panic, and waits for the answers of whoever waits.
pub type Driver = fn(&Pool, Bang);

/// What is panicked with.
#[derive(Clone, Copy, Debug)]
pub enum Bang {
    Text,
    Owned,
    Number,
    /// Its destructor panics.
    Bomb,
    /// Its destructor panics with what has such a destructor.
    BombInBomb,
    /// A box in a box.
    Boxed,
}

struct Bomb(Bang);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.go()
    }
}

impl Bang {
    pub const ALL: [Bang; 6] =
        [Bang::Text, Bang::Owned, Bang::Number, Bang::Bomb, Bang::BombInBomb, Bang::Boxed];

    /// Panics.
    pub fn go(self) -> ! {
        match self {
            Bang::Text => panic_any("on purpose"),
            Bang::Owned => panic_any(String::from("on purpose")),
            Bang::Number => panic_any(7_u32),
            Bang::Bomb => panic_any(Bomb(Bang::Text)),
            Bang::BombInBomb => panic_any(Bomb(Bang::Bomb)),
            Bang::Boxed => panic_any(Box::new(Box::new(Bomb(Bang::Text)) as Box<dyn Any + Send>)),
        }
    }

    /// For code that is called any number of times, and so outlives its panic: its destructor panics, wherever it is
    /// run. In a thread that unwinds that ends the process.
    pub fn charge(self) -> Charge {
        Charge { bang: self, always: true }
    }

    /// For code that is called once, and so is dropped by its own panic: its destructor panics unless it unwinds.
    pub fn charge_once(self) -> Charge {
        Charge { bang: self, always: false }
    }
}

/// A part of a closure, or of a handler.
pub struct Charge {
    bang: Bang,
    always: bool,
}

impl Charge {
    pub fn go(&self) -> ! {
        self.bang.go()
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.always || !std::thread::panicking() {
            self.bang.go()
        }
    }
}

/// Runs what may panic on this thread, which is the user's own. Whether it has.
pub fn panics(code: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(()) => false,
        Err(payload) => {
            std::mem::forget(payload);
            true
        }
    }
}
