//! Publications beside the end of the pool: each that was accepted is handled or left, and each that is not is
//! refused.

use crate::common::{Count, LONG, hang_guard};
use crate::kit::pool;
use paceline::hub::history::{History, Query};
use paceline::hub::{
    Balance, Execution, Hub, Mailbox, Message, Receipt, Subscription, SubscriptionBuilder,
};
use paceline::{Error, PoolReport};
use std::thread;
use std::time::Duration;

/// The ways in which a message comes to a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Ring,
    Mailbox,
    Concurrent,
    Strand,
    Inline,
    Group,
    Pulled,
    PulledMailbox,
}

const WAYS: [Way; 8] = [
    Way::Ring,
    Way::Mailbox,
    Way::Concurrent,
    Way::Strand,
    Way::Inline,
    Way::Group,
    Way::Pulled,
    Way::PulledMailbox,
];

impl Way {
    fn is_pulled(self) -> bool {
        matches!(self, Self::Pulled | Self::PulledMailbox)
    }
}

/// Who subscribes, and how many messages its handler has had.
struct Place {
    _subscription: Option<Subscription>,
    mailbox: Option<Mailbox>,
    handled: Count,
}

impl Place {
    fn new(hub: &Hub, pattern: &str, way: Way) -> Self {
        let handled = Count::new();
        let builder = hub.subscription(pattern).capacity(1 << 20);
        let serve = |builder: SubscriptionBuilder<'_>| {
            let count = handled.clone();
            Some(builder.serve_shared(move |_: &Message<'_>| count.up()).unwrap())
        };
        let (mut subscription, mut mailbox) = (None, None);
        match way {
            Way::Ring => subscription = serve(builder),
            Way::Mailbox => subscription = serve(builder.by_priority()),
            Way::Concurrent => subscription = serve(builder.execution(Execution::Concurrent(2))),
            Way::Strand => subscription = serve(builder.execution(Execution::Strand)),
            Way::Inline => subscription = serve(builder.execution(Execution::Inline)),
            Way::Group => subscription = serve(builder.group("all", Balance::ByKey)),
            Way::Pulled => mailbox = Some(builder.pull().unwrap()),
            Way::PulledMailbox => mailbox = Some(builder.by_priority().pull().unwrap()),
        }
        Self { _subscription: subscription, mailbox, handled }
    }

    /// How many messages can be pulled still.
    fn pulled(&self) -> u64 {
        let mailbox = self.mailbox.as_ref();
        mailbox.map_or(0, |mailbox| mailbox.recv_batch(&mut Vec::new(), usize::MAX).unwrap_or(0))
            as u64
    }
}

/// A payload that is made when the pool has ended, and one before it: what comes out of a publication that began
/// before the end.
fn beside_the_end(hub: &Hub) -> impl Iterator<Item = &'static str> + '_ {
    ["before", "behind"].into_iter().inspect(|payload| {
        if *payload == "behind" {
            assert!(hub.pool().shutdown(LONG).drained);
        }
    })
}

/// Goal: what is offered behind the end of the pool is refused, though the publication began before it. Method: a batch
/// whose payloads are made by a function that ends the pool.
#[test]
fn a_batch_that_the_pool_ends_beside_is_refused() {
    let _guard = hang_guard();
    for way in WAYS {
        let hub = Hub::new(&pool(2)).unwrap();
        let place = Place::new(&hub, "a", way);
        let published = hub.publish_batch("a", beside_the_end(&hub));
        assert!(matches!(published, Err(Error::ShutDown)), "{way:?}: {published:?}");
        let audit = hub.audit();
        assert!(audit.is_balanced(), "{way:?}: {audit:?}");
        assert_eq!((audit.matched, audit.waiting), (0, 0), "{way:?}: {audit:?}");
        assert_eq!((place.handled.get(), place.pulled()), (0, 0), "{way:?}");
    }
}

/// Goal: with a history the whole batch is published, as the history has it: subscribers have got what was made before the
/// end.
#[test]
fn a_recorded_batch_is_published_though_the_pool_ends() {
    let _guard = hang_guard();
    for way in WAYS.into_iter().filter(|way| !way.is_pulled()) {
        let hub = Hub::builder(&pool(2)).history(History::of("a")).build().unwrap();
        let place = Place::new(&hub, "a", way);
        let publisher = hub.publisher("p").build().unwrap();
        let published = publisher.publish_batch("a", beside_the_end(&hub));
        assert!(
            matches!(&published, Ok(receipt) if receipt.matched == 1),
            "{way:?}: {published:?}"
        );
        assert_eq!(publisher.stats().published, 2, "{way:?}");
        assert_eq!((hub.audit().matched, place.handled.get()), (1, 1), "{way:?}");
        assert_eq!(hub.query(&Query::of("a")).unwrap().len(), 2, "{way:?}");
    }
}

/// Goal: messages together come to nobody behind the end. Method: as above.
#[test]
fn messages_together_that_the_pool_ends_beside_come_to_nobody() {
    let _guard = hang_guard();
    for way in WAYS.into_iter().filter(|way| *way != Way::Group) {
        let hub = Hub::new(&pool(2)).unwrap();
        let place = Place::new(&hub, "a", way);
        let all = beside_the_end(&hub).map(|payload| hub.message("a").payload(payload));
        let published = hub.publish_all(all);
        assert!(matches!(published, Err(Error::ShutDown)), "{way:?}: {published:?}");
        assert_eq!((hub.audit().matched, place.handled.get(), place.pulled()), (0, 0, 0));
    }
}

/// Goal: who has not got a message before the end does not get it, and its receipt counts who has. Method: the first to
/// get it is a handler in the publisher's thread, which ends the pool.
#[test]
fn a_receipt_counts_those_who_have_got_it_before_the_end() {
    let _guard = hang_guard();
    for way in WAYS {
        let hub = Hub::new(&pool(2)).unwrap();
        let ended = hub.pool().clone();
        // The message that it is called with is left still.
        let end = move |_: &Message<'_>| assert_eq!(ended.shutdown(LONG).left, 1);
        let builder = hub.subscription("a").execution(Execution::Inline);
        let _first = builder.serve_shared(end).unwrap();
        let place = Place::new(&hub, "*", way);
        let receipt = hub.publish("a", "").unwrap();
        assert_eq!((receipt.matched, receipt.enqueued), (1, 1), "{way:?}");
        let audit = hub.audit();
        assert_eq!((audit.matched, audit.delivered, audit.waiting), (1, 1, 0), "{way:?}");
        assert_eq!((place.handled.get(), place.pulled()), (0, 0), "{way:?}");
    }
}

/// How many deliveries were accepted of what is published until the pool refuses.
fn publish_to_the_end(hub: &Hub) -> u64 {
    let mut accepted = 0;
    for number in 0_u64.. {
        let published = match number % 4 {
            0 => hub.publish_batch("a", ["x"; 3]),
            _ => hub.publish("a", "x"),
        };
        match published {
            Ok(Receipt { enqueued, .. }) => accepted += enqueued,
            Err(Error::ShutDown) => break,
            Err(error) => panic!("{error}"),
        }
    }
    accepted
}

/// Publishes on some threads while the pool ends, and checks the books: what was accepted, handled and left.
fn end_beside_publishers(
    hub: &Hub,
    places: &[Place],
    drain: Duration,
    after: Duration,
) -> PoolReport {
    let (accepted, report) = thread::scope(|scope| {
        let publishers: Vec<_> = (0..3).map(|_| scope.spawn(|| publish_to_the_end(hub))).collect();
        thread::sleep(after);
        let report = hub.pool().shutdown(drain);
        let accepted: u64 = publishers.into_iter().map(|one| one.join().unwrap()).sum();
        (accepted, report)
    });
    let handled: u64 = places.iter().map(|place| place.handled.get()).sum();
    let audit = hub.audit();
    let told = format!("{accepted} accepted, {handled} handled, {report:?}, {audit:?}");
    assert!(audit.is_balanced(), "{told}");
    // A batch that was cut off is not among the accepted, and what came of it before is.
    assert_eq!(audit.delivered, handled, "{told}");
    assert_eq!(audit.matched, handled + report.left, "{told}");
    assert!(audit.matched >= accepted, "{told}");
    assert_eq!(audit.waiting, report.left, "{told}");
    assert!(!report.drained || report.left == 0, "{told}");
    report
}

/// Goal: each message that was accepted beside the end is handled, or left. Method: rounds with publishers outside of the
/// pool, each way by itself, and a drain that has the time.
#[test]
fn what_is_accepted_beside_the_end_is_handled_or_left() {
    let _guard = hang_guard();
    // An inline one that runs when the pool has ended is left, and handled later.
    let is_served = |way: &Way| !way.is_pulled() && *way != Way::Inline;
    for way in WAYS.into_iter().filter(is_served) {
        for round in 0..40 {
            let hub = Hub::new(&pool(2)).unwrap();
            let place = Place::new(&hub, "a", way);
            let after = Duration::from_micros(100 + round * 40);
            let report = end_beside_publishers(&hub, &[place], LONG, after);
            assert_eq!(report.drained, report.left == 0, "{way:?}, round {round}: {report:?}");
        }
    }
}

/// Goal: what lies in a mailbox that nobody pulls is left, all of it.
#[test]
fn what_is_not_pulled_is_left() {
    let _guard = hang_guard();
    for way in WAYS.into_iter().filter(|way| way.is_pulled()) {
        for round in 0..40 {
            let hub = Hub::new(&pool(2)).unwrap();
            let places = [Place::new(&hub, "a", way)];
            let after = Duration::from_micros(100 + round * 40);
            let report = end_beside_publishers(&hub, &places, LONG, after);
            assert_eq!(places[0].pulled(), report.left, "{way:?}, round {round}");
        }
    }
}

/// Goal: the books of an end that cuts things off, and of all ways at once. Method: as above, with drains of little or
/// no time.
#[test]
fn an_end_that_cuts_off_counts_what_is_left() {
    let _guard = hang_guard();
    for round in 0..60 {
        let hub = Hub::new(&pool(2)).unwrap();
        let served = WAYS.into_iter().filter(|way| *way != Way::Inline);
        let places: Vec<_> = served.map(|way| Place::new(&hub, "a", way)).collect();
        let drain = Duration::from_micros([0, 50, 500][round % 3]);
        let after = Duration::from_micros(100 + round as u64 * 20);
        let report = end_beside_publishers(&hub, &places, drain, after);
        assert!(report.stuck.is_empty(), "{report:?}");
    }
}
