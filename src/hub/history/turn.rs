//! Whose turn it is at a replay to a handler: the states that the head of [replay.rs](replay.rs) tells.

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::hub) enum State {
    Listed,
    Runs,
    Sleeps,
    Held,
    Suspended,
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(in crate::hub) enum Next {
    Reads,
    /// Somebody else goes on.
    Rests,
    /// The caller has a timer go on.
    IsHeld,
    IsListed,
    Ends,
}

/// See the head of the file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::hub) struct Turn {
    pub(in crate::hub) state: State,
    /// Something was recorded since the log was read to its end.
    pub(in crate::hub) woken: bool,
    pub(in crate::hub) closing: bool,
    pub(in crate::hub) suspended: bool,
}

impl Turn {
    pub(in crate::hub) fn new() -> Self {
        Self { state: State::Listed, woken: false, closing: false, suspended: false }
    }

    /// Somebody begins to run it. False: it is not to be run.
    pub(in crate::hub) fn run(&mut self) -> bool {
        if self.state != State::Listed {
            return false;
        }
        self.state = if self.suspended { State::Suspended } else { State::Runs };
        !self.suspended
    }

    /// Whether no message is to begin.
    pub(in crate::hub) fn halts(&self) -> bool {
        self.closing || self.suspended
    }

    /// True: the caller puts it on the list.
    pub(in crate::hub) fn wake(&mut self) -> bool {
        let sleeps = self.state == State::Sleeps;
        match sleeps {
            true => self.state = State::Listed,
            false => self.woken = true,
        }
        sleeps
    }

    /// What whoever runs it and is at the end of the log does next.
    pub(in crate::hub) fn sleep(&mut self) -> Next {
        if core::mem::take(&mut self.woken) && !self.halts() {
            return Next::Reads;
        }
        self.leave(State::Sleeps, Next::Rests)
    }

    /// What whoever runs it does when it has had its share.
    pub(in crate::hub) fn list(&mut self) -> Next {
        self.leave(State::Listed, Next::IsListed)
    }

    /// What whoever runs it does when a message is to be tried again later.
    pub(in crate::hub) fn hold(&mut self) -> Next {
        self.leave(State::Held, Next::IsHeld)
    }

    pub(in crate::hub) fn leave(&mut self, state: State, next: Next) -> Next {
        let (state, next) = match (self.closing, self.suspended) {
            (true, _) => (State::Ended, Next::Ends),
            (false, true) => (State::Suspended, Next::Rests),
            (false, false) => (state, next),
        };
        self.state = state;
        next
    }

    /// The time of what is held has come. True: the caller puts it on the list.
    pub(in crate::hub) fn due(&mut self) -> bool {
        let is_held = self.state == State::Held;
        if is_held {
            self.state = State::Listed;
        }
        is_held
    }

    /// False: it was suspended before, or has ended.
    pub(in crate::hub) fn suspend(&mut self) -> bool {
        let is_new = !self.suspended && !self.closing;
        self.suspended |= is_new;
        if is_new && self.state == State::Sleeps {
            self.state = State::Suspended;
        }
        is_new
    }

    /// Whether it was suspended, and whether the caller puts it on the list.
    pub(in crate::hub) fn resume(&mut self) -> (bool, bool) {
        let was_suspended = core::mem::take(&mut self.suspended);
        let is_listed = self.state == State::Suspended;
        if is_listed {
            self.state = State::Listed;
        }
        (was_suspended, is_listed)
    }

    /// If nobody runs it, the caller ends it. Says in what state it was then.
    pub(in crate::hub) fn close(&mut self) -> Option<State> {
        self.closing = true;
        let was = self.state;
        if matches!(was, State::Runs | State::Ended) {
            return None;
        }
        self.state = State::Ended;
        Some(was)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// All that a turn has to do with.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct World {
        turn: Turn,
        listed: u32,
        runs: bool,
        /// Whoever runs it has read to the end of the log.
        at_end: bool,
        /// The log has it among its sleepers.
        sleeper: bool,
        timer: bool,
        /// Something is recorded and was not read.
        unread: bool,
        /// A dead letter is to be delivered again.
        again: bool,
        ends: u32,
    }

    impl World {
        fn leave(&mut self, next: Next) {
            self.runs = next == Next::Reads;
            self.at_end = false;
            match next {
                Next::Reads | Next::Rests => {}
                Next::IsHeld => self.timer = true,
                Next::IsListed => self.listed += 1,
                Next::Ends => self.ends += 1,
            }
        }

        /// What may happen next. All that a turn does is under its lock, so that these are all interleavings.
        fn steps(&self) -> Vec<World> {
            let mut all = Vec::new();
            let mut step = |may: bool, take: &dyn Fn(&mut World)| {
                if may {
                    let mut world = self.clone();
                    take(&mut world);
                    all.push(world);
                }
            };
            step(self.listed > 0, &|world| {
                world.listed -= 1;
                if world.turn.run() {
                    assert!(!world.runs, "it runs twice");
                    world.runs = true;
                }
            });
            step(self.runs && !self.at_end && !self.again, &|world| {
                world.at_end = !world.unread;
                world.sleeper |= world.at_end;
                world.unread = false;
            });
            step(self.runs && !self.at_end && self.again, &|world| world.again = false);
            step(!self.turn.halts(), &|world| {
                world.again = true;
                world.listed += u32::from(world.turn.wake());
            });
            step(self.runs && self.at_end, &|world| {
                let next = world.turn.sleep();
                world.leave(next);
            });
            step(self.runs, &|world| {
                let next = world.turn.list();
                world.leave(next);
            });
            step(self.runs, &|world| {
                let next = world.turn.hold();
                world.leave(next);
            });
            step(true, &|world| {
                world.unread = true;
                if core::mem::take(&mut world.sleeper) && world.turn.wake() {
                    world.listed += 1;
                }
            });
            step(self.timer, &|world| {
                world.timer = false;
                world.listed += u32::from(world.turn.due());
            });
            step(true, &|world| {
                world.turn.suspend();
            });
            step(true, &|world| world.listed += u32::from(world.turn.resume().1));
            step(true, &|world| world.ends += u32::from(world.turn.close().is_some()));
            all
        }

        fn check(&self) {
            let Turn { closing, suspended, state, .. } = self.turn;
            assert!(self.listed <= 1, "listed twice: {self:?}");
            assert_eq!(self.ends, u32::from(closing && !self.runs), "the end: {self:?}");
            let goes_on = self.runs || self.listed > 0 || self.timer;
            assert!(state != State::Held || self.timer, "nobody goes on: {self:?}");
            let is_idle = !closing && !suspended && (self.unread || self.again);
            assert!(!is_idle || goes_on, "a message lies beside it: {self:?}");
        }
    }

    /// Goal: whatever comes in between, at most one thread runs it, it ends once, and nothing that is recorded is
    /// left lying. Method: all states that can be reached.
    #[test]
    fn a_turn_is_never_lost() {
        let first = World {
            turn: Turn::new(),
            listed: 1,
            runs: false,
            at_end: false,
            sleeper: false,
            timer: false,
            unread: true,
            again: false,
            ends: 0,
        };
        let (mut seen, mut next) = (HashSet::new(), vec![first]);
        while let Some(world) = next.pop() {
            if seen.insert(world.clone()) {
                world.check();
                next.extend(world.steps());
            }
        }
        assert!(seen.len() > 100, "{} states", seen.len());
    }
}
