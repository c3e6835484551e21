//! Which messages of a stream this process has, and what the broker is told of each: the protocol of `consume.rs` without
//! the broker.

use super::sink::{End, Entry};
use super::window::Window;
use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// Messages that were taken and have not ended, and the ids of those that have ended for good. `A` is what a message is
/// answered by.
pub(super) struct Flights<A> {
    open: HashMap<Entry, Flight<A>>,
    /// Of those in flight, if no two with one id are to be.
    ids: Option<HashSet<String>>,
    ended: Window,
}

struct Flight<A> {
    /// None: there is nobody to be told, unless it comes again.
    acker: Option<A>,
    id: String,
    began: Instant,
}

/// What a message is that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Came {
    /// It is to be offered, and is in flight.
    New,
    /// It is in flight already: its end is answered where it has come last.
    Again,
    /// It has ended for good, of which the broker has not heard: it is to be acknowledged.
    Ended,
    /// One of its id is in flight: it is to come again when that may have ended.
    Twin,
}

/// What the broker is told of a message that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Settlement {
    Acknowledge,
    /// It is to come again after so long.
    Refuse(Duration),
    /// It is to come no more, though it was not dealt with.
    Terminate,
}

impl<A> Flights<A> {
    /// For how long, and how many, ids are kept; and whether no two with one id are in flight.
    pub(super) fn new((lasts, most): (Duration, usize), is_exclusive: bool) -> Self {
        let ids = is_exclusive.then(HashSet::new);
        Self { open: HashMap::new(), ids, ended: Window::new(lasts, most) }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// A message has come. `acker` comes back unless it is kept for the answer.
    pub(super) fn come(
        &mut self,
        entry: Entry,
        id: String,
        acker: A,
        now: Instant,
    ) -> (Came, Option<A>) {
        if let Some(flight) = self.open.get_mut(&entry) {
            flight.acker = Some(acker);
            return (Came::Again, None);
        }
        if self.ended.has(&id) {
            return (Came::Ended, Some(acker));
        }
        if self.ids.as_mut().is_some_and(|ids| !ids.insert(id.clone())) {
            return (Came::Twin, Some(acker));
        }
        self.open.insert(entry, Flight { acker: Some(acker), id, began: now });
        (Came::New, None)
    }

    /// What is in flight has other numbers at the broker now, if it has them at all: nobody is told of its end, unless it
    /// comes again. It ends all the same.
    pub(super) fn cut(&mut self) {
        self.open.values_mut().for_each(|flight| flight.acker = None);
    }

    /// A message in flight has ended, and who is to be told of it, if anybody is. None: it was not in flight.
    pub(super) fn end(
        &mut self,
        entry: Entry,
        how: End,
        now: Instant,
    ) -> Option<(Option<A>, Settlement)> {
        let flight = self.open.remove(&entry)?;
        if let Some(ids) = &mut self.ids {
            ids.remove(&flight.id);
        }
        let settlement = match how {
            End::Done => Settlement::Acknowledge,
            End::Never | End::Dead(_) => Settlement::Terminate,
            End::Again(delay) | End::Away(delay) => Settlement::Refuse(delay),
        };
        if !matches!(settlement, Settlement::Refuse(_)) {
            self.ended.note(&flight.id, now);
        }
        Some((flight.acker, settlement))
    }

    /// Those of which the broker is to be told that they are at work, for up to `limit`.
    pub(super) fn at_work(&self, now: Instant, limit: Duration) -> impl Iterator<Item = &A> {
        let in_time = move |flight: &&Flight<A>| now.duration_since(flight.began) < limit;
        self.open.values().filter(in_time).filter_map(|flight| flight.acker.as_ref())
    }
}

/// The protocol against a scripted broker, with a clock that the test moves.
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ACK_WAIT: Duration = Duration::from_millis(300);
    const LIMIT: Duration = Duration::from_secs(5);
    const STEP: Duration = Duration::from_millis(100);

    /// A broker that gives each number again, as one that was killed may.
    fn entry(number: u64) -> Entry {
        Entry { number: number % 3, stored: number.into() }
    }

    /// What happens next.
    #[derive(Clone, Debug)]
    enum Event {
        /// The broker stores one more.
        Store,
        /// The handler of one of those in flight is done with it: which, and how.
        Handled(usize, End),
        /// Time passes: a third of `ack_wait`. The bridge tells what is at work, if it is connected.
        Tick,
        Disconnect,
        Connect,
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let end = prop_oneof![
            4 => Just(End::Done),
            2 => Just(End::Again(Duration::from_millis(200))),
            1 => Just(End::Away(Duration::from_millis(200))),
            1 => Just(End::Never),
        ];
        let event = prop_oneof![
            3 => Just(Event::Store),
            4 => (0_usize..8, end).prop_map(|(which, end)| Event::Handled(which, end)),
            5 => Just(Event::Tick),
            1 => Just(Event::Disconnect),
            2 => Just(Event::Connect),
        ];
        proptest::collection::vec(event, 0..200)
    }

    /// What the broker knows of a message.
    struct Stored {
        /// When it is delivered, if nothing is heard of it.
        due: Instant,
        deliveries: u32,
        is_settled: bool,
    }

    /// A broker, and the bridge's side of one durable name.
    struct Script {
        now: Instant,
        stream: Vec<Stored>,
        /// The connection; none: there is none. What is answered over an older one is lost.
        connection: Option<u32>,
        connections: u32,
        flights: Flights<(u64, u32)>,
        /// Messages that a handler has, in the order in which they were offered.
        offered: Vec<u64>,
        /// Those that ended for good.
        dealt_with: HashSet<u64>,
        /// Whether the connection has held since the delivery.
        unbroken: HashSet<u64>,
    }

    impl Script {
        fn deliver(&mut self) {
            let Some(connection) = self.connection else { return };
            for number in 0..self.stream.len() as u64 {
                let stored = &mut self.stream[number as usize];
                if stored.is_settled || stored.due > self.now {
                    continue;
                }
                stored.due = self.now + ACK_WAIT;
                stored.deliveries += 1;
                let (id, acker) = (format!("{number}"), (number, connection));
                let came = self.flights.come(entry(number), id, acker, self.now);
                match came {
                    (Came::New, None) => {
                        assert!(!self.offered.contains(&number), "{number} is with a handler");
                        assert!(!self.dealt_with.contains(&number), "{number} was dealt with");
                        self.offered.push(number);
                        self.unbroken.insert(number);
                    }
                    (Came::Again, None) => {
                        assert!(self.offered.contains(&number));
                        assert!(
                            !self.unbroken.contains(&number),
                            "{number} comes again while it is at work"
                        );
                    }
                    (Came::Ended, Some(acker)) => {
                        assert!(self.dealt_with.contains(&number));
                        self.answer(acker, Settlement::Acknowledge);
                    }
                    (came, _) => panic!("{came:?}"),
                }
            }
        }

        fn answer(&mut self, (number, connection): (u64, u32), settlement: Settlement) {
            if self.connection != Some(connection) {
                return;
            }
            let stored = &mut self.stream[number as usize];
            match settlement {
                Settlement::Acknowledge | Settlement::Terminate => {
                    assert!(
                        self.dealt_with.contains(&number),
                        "{number} is settled before its end"
                    );
                    stored.is_settled = true;
                }
                Settlement::Refuse(delay) => stored.due = self.now + delay,
            }
        }

        fn handled(&mut self, which: usize, end: End) {
            if self.offered.is_empty() {
                return;
            }
            let number = self.offered.remove(which % self.offered.len());
            if matches!(end, End::Done | End::Never) {
                self.dealt_with.insert(number);
            }
            self.unbroken.remove(&number);
            let (acker, settlement) = self.flights.end(entry(number), end, self.now).unwrap();
            self.answer(acker.expect("nothing is cut off here"), settlement);
        }

        fn tick(&mut self) {
            self.now += STEP;
            let Some(connection) = self.connection else { return };
            let at_work: Vec<_> = self.flights.at_work(self.now, LIMIT).copied().collect();
            for (number, heard_over) in at_work {
                if heard_over == connection {
                    self.stream[number as usize].due = self.now + ACK_WAIT;
                }
            }
            // What is beyond the limit may come again though nothing broke.
            let told: HashSet<u64> =
                self.flights.at_work(self.now, LIMIT).map(|(number, _)| *number).collect();
            self.unbroken.retain(|number| told.contains(number));
        }

        fn event(&mut self, event: Event) {
            match event {
                Event::Store => {
                    self.stream.push(Stored { due: self.now, deliveries: 0, is_settled: false })
                }
                Event::Handled(which, end) => self.handled(which, end),
                Event::Tick => self.tick(),
                Event::Disconnect => {
                    self.connection = None;
                    self.unbroken.clear();
                }
                Event::Connect if self.connection.is_none() => {
                    self.connections += 1;
                    self.connection = Some(self.connections);
                }
                Event::Connect => {}
            }
            self.deliver();
            assert_eq!(self.flights.len(), self.offered.len());
        }
    }

    proptest! {
        /// Goal: whatever happens, a message is with one handler at a time, what was dealt with is not offered again, the
        /// broker settles nothing before, and in the end everything.
        #[test]
        fn every_message_is_dealt_with_and_then_settled(events in events()) {
            let mut script = Script {
                now: Instant::now(),
                stream: Vec::new(),
                connection: Some(0),
                connections: 0,
                flights: Flights::new((Duration::from_secs(3600), 1000), true),
                offered: Vec::new(),
                dealt_with: HashSet::new(),
                unbroken: HashSet::new(),
            };
            events.into_iter().for_each(|event| script.event(event));
            // From here on the connection holds and handlers succeed.
            script.event(Event::Connect);
            for _ in 0..20 {
                while !script.offered.is_empty() {
                    script.event(Event::Handled(0, End::Done));
                }
                script.event(Event::Tick);
            }
            for (number, stored) in script.stream.iter().enumerate() {
                prop_assert!(stored.is_settled, "{number}, after {} deliveries", stored.deliveries);
            }
        }
    }

    fn done<A>(acker: Option<A>) -> Option<(Option<A>, Settlement)> {
        Some((acker, Settlement::Acknowledge))
    }

    /// Its number may be another message's by now. It is counted all the same.
    #[test]
    fn what_is_cut_off_is_answered_only_if_it_comes_again() {
        let now = Instant::now();
        let mut flights = Flights::new((LIMIT, 10), true);
        for (number, id) in [(1, "a"), (2, "b")] {
            assert_eq!(flights.come(entry(number), id.into(), id, now), (Came::New, None));
        }
        flights.cut();
        assert_eq!(flights.at_work(now, LIMIT).count(), 0);
        assert_eq!(flights.come(entry(1), "a".into(), "again", now), (Came::Again, None));
        assert_eq!(flights.end(entry(1), End::Done, now), done(Some("again")));
        assert_eq!(flights.end(entry(2), End::Done, now), done(None));
        assert_eq!(flights.come(entry(5), "b".into(), "c", now), (Came::Ended, Some("c")));
    }

    #[test]
    fn what_takes_too_long_is_not_told_to_be_at_work() {
        let now = Instant::now();
        let mut flights = Flights::new((LIMIT, 10), true);
        assert_eq!(flights.come(entry(1), "a".into(), 'x', now), (Came::New, None));
        assert_eq!(flights.at_work(now + LIMIT / 2, LIMIT).count(), 1);
        assert_eq!(flights.at_work(now + LIMIT, LIMIT).count(), 0);
        assert_eq!(flights.come(entry(1), "a".into(), 'y', now), (Came::Again, None));
        assert_eq!(flights.come(entry(2), "a".into(), 't', now), (Came::Twin, Some('t')));
        assert_eq!(flights.end(entry(1), End::Done, now), done(Some('y')));
        assert_eq!(flights.come(entry(1), "a".into(), 'z', now), (Came::Ended, Some('z')));
        assert_eq!(flights.end(entry(1), End::Done, now), None);
    }
}
