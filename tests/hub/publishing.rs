//! What is published, to whom it goes, and what the publisher is told.

use crate::common::{Count, hang_guard};
use crate::kit::{Log, hub, pool, settle, text, told};
use paceline::Error;
use paceline::hub::{Execution, Headers, Hub, Message, Priority, Rate};
use std::sync::Arc;

#[test]
fn a_message_comes_to_everybody_whose_pattern_matches() {
    let _guard = hang_guard();
    let hub = hub(2);
    let log = Log::default();
    let patterns = ["a.b", "a.*", "a.>", ">", "*.b", "a.c", "a.b.>", "b.>"];
    let _subscriptions: Vec<_> = patterns
        .into_iter()
        .map(|pattern| {
            let log = log.clone();
            hub.subscribe(pattern, move |_: &Message<'_>| log.add(pattern)).unwrap()
        })
        .collect();
    let receipt = hub.publish("a.b", "x").unwrap();
    assert_eq!((receipt.matched, receipt.enqueued), (5, 5));
    assert_eq!((receipt.sequence, receipt.dropped, receipt.rejected), (1, 0, 0));
    assert_eq!(hub.subscriber_count("a.b").unwrap(), 5);
    assert_eq!(hub.subscriber_count("$SYS.x").unwrap(), 0);
    settle(&hub);
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, ["*.b", ">", "a.*", "a.>", "a.b"]);
    let mut listed: Vec<_> = patterns.iter().map(|pattern| ((*pattern).to_owned(), 1)).collect();
    listed.sort();
    assert_eq!(hub.patterns(), listed);
}

#[test]
fn a_message_carries_what_it_was_published_with() {
    let _guard = hang_guard();
    let hub = hub(1);
    let (tell, told) = std::sync::mpsc::channel();
    let tell = move |message: &Message<'_>| tell.send(message.stored().clone()).unwrap();
    let _all = hub.subscribe(">", tell).unwrap();
    let headers = Headers::new([("kind", "test")]).unwrap();
    let large: Arc<[u8]> = vec![7; 1000].into();
    let key = hub.key("a.b").unwrap();
    let receipt = hub
        .message(&key)
        .headers(headers.clone())
        .priority(Priority::High)
        .payload(Arc::clone(&large))
        .publish()
        .unwrap();
    let stored = told.recv().unwrap();
    assert_eq!(stored.sequence(), receipt.sequence);
    assert_eq!(stored.key(), &key);
    assert_eq!(stored.headers(), &headers);
    assert_eq!(stored.priority(), Priority::High);
    assert_eq!(stored.payload().as_ptr(), large.as_ptr(), "it was copied");
    assert!(stored.time() <= std::time::SystemTime::now());
    settle(&hub);
}

#[test]
fn a_batch_is_in_order_and_its_receipt_the_sum() {
    let _guard = hang_guard();
    let hub = hub(2);
    let log = Log::default();
    let into = log.clone();
    let _one = hub.subscribe("a", move |message: &Message<'_>| into.note(message)).unwrap();
    let _two = hub.subscribe("*", |_: &Message<'_>| ()).unwrap();
    let texts: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let receipt = hub.publish_batch("a", texts.iter().map(String::as_str)).unwrap();
    assert_eq!((receipt.sequence, receipt.matched, receipt.enqueued), (100, 200, 200));
    settle(&hub);
    assert_eq!(log.lines(), texts);
}

#[test]
fn bad_input_is_refused_with_reasons_and_nobody_gets_it() {
    let _guard = hang_guard();
    let pool = pool(1);
    let hub = Hub::builder(&pool).max_payload(100).build().unwrap();
    let other = Hub::new(&pool).unwrap();
    let came = Count::new();
    let count = came.clone();
    let _all = hub.subscribe(">", move |_: &Message<'_>| count.up()).unwrap();
    let table = [
        (
            hub.publish("a..b", ""),
            "key is \"a..b\", but must be without empty tokens: no dot at an end, no two in a row",
        ),
        (
            hub.publish("a.*", ""),
            "key is \"a.*\", but must be without * and >, which are of patterns",
        ),
        (
            hub.publish("$SYS.a", ""),
            "key is \"$SYS.a\", but must be without $ at its start: such keys are the hub's own",
        ),
        (
            hub.publish(other.key("a").unwrap(), ""),
            "key is Key(\"a\"), but must be a key of this hub",
        ),
        (
            hub.publish("a", vec![0; 101]),
            "the size of the payload is 101, but must be up to 100 bytes",
        ),
    ];
    for (result, message) in table {
        assert_eq!(result.unwrap_err().to_string(), message);
    }
    let subscribe = |pattern| hub.subscribe(pattern, |_: &Message<'_>| ()).unwrap_err().to_string();
    assert_eq!(
        subscribe("a.>.b"),
        "pattern is \"a.>.b\", but must be without > before its last token"
    );
    let capacity = |capacity| {
        let result = hub.subscription("a").capacity(capacity).serve(|_: &Message<'_>| ());
        result.unwrap_err().to_string()
    };
    assert_eq!(capacity(0), "capacity is 0, but must be 1 to 16777216");
    assert_eq!(capacity((1 << 24) + 1), "capacity is 16777217, but must be 1 to 16777216");
    for bytes in [0, (1 << 30) + 1] {
        let result = Hub::builder(&pool).max_payload(bytes).build();
        let message = format!("max_payload is {bytes}, but must be 1 to 1073741824 bytes");
        assert_eq!(result.unwrap_err().to_string(), message);
    }
    settle(&hub);
    assert_eq!(came.get(), 0);
    assert_eq!(hub.audit().published, 0);
}

#[test]
fn a_hub_ends_with_its_pool() {
    let _guard = hang_guard();
    let hub = hub(2);
    let came = Count::new();
    let count = came.clone();
    let _all = hub.subscribe(">", move |_: &Message<'_>| count.up()).unwrap();
    for _ in 0..1000 {
        assert_eq!(hub.publish("a", "").unwrap().enqueued, 1);
    }
    settle(&hub);
    assert_eq!(came.get(), 1000, "what was accepted is delivered before the pool ends");
    assert!(matches!(hub.publish("a", ""), Err(Error::ShutDown)));
    assert!(matches!(hub.subscribe("a", |_: &Message<'_>| ()), Err(Error::ShutDown)));
    assert!(matches!(Hub::new(hub.pool()), Err(Error::ShutDown)));
}

#[test]
fn handlers_publish() {
    let _guard = hang_guard();
    let hub = hub(2);
    let log = Log::default();
    let (into, from) = (log.clone(), hub.clone());
    let first = hub
        .subscribe("first", move |message: &Message<'_>| {
            let _ = from.publish("second", text(message)).unwrap();
        })
        .unwrap();
    let _second = hub.subscribe("second", move |message: &Message<'_>| into.note(message)).unwrap();
    for number in 0..500 {
        let _ = hub.publish("first", number.to_string()).unwrap();
    }
    crate::kit::at_rest(&hub);
    assert_eq!(log.lines(), (0..500).map(|number| number.to_string()).collect::<Vec<_>>());
    // Its handler has the hub.
    drop(first);
    settle(&hub);
}

/// Goal: a publisher counts what its receipts say. Method: messages for nobody, for one and for two, alone and in
/// batches, and some that are refused.
#[test]
fn a_publisher_counts_what_its_receipts_say() {
    let _guard = hang_guard();
    let hub = hub(1);
    let publisher = hub.publisher("feed").build().unwrap();
    let mut sum = (0, 0, 0);
    let mut publish = |count: usize, enqueued: u64, rejected: u64| {
        let receipt = match count {
            1 => told(publisher.publish("a", "")),
            _ => told(publisher.publish_batch("a", vec![""; count])),
        };
        sum = (sum.0 + count as u64, sum.1 + enqueued, sum.2 + rejected);
        assert_eq!((receipt.enqueued, receipt.rejected), (enqueued, rejected));
        assert_eq!((receipt.matched, receipt.sequence), (enqueued + rejected, sum.0));
        let stats = publisher.stats();
        assert_eq!((stats.published, stats.enqueued, stats.lost), sum);
    };
    publish(1, 0, 0);
    publish(3, 0, 0);
    let one = hub.subscription("a").capacity(40).pull().unwrap();
    publish(1, 1, 0);
    publish(36, 36, 0);
    let two = hub.subscription("a").capacity(40).pull().unwrap();
    publish(1, 2, 0);
    publish(4, 6, 2);
    publish(1, 1, 1);
    drop(one);
    publish(1, 1, 0);
    drop(two);
    assert_eq!(hub.audit().published, sum.0);
    settle(&hub);
}

/// Goal: what several threads publish by one publisher is counted to the last message, though one of them counts
/// for itself. Method: threads at once, among them the first, and threads one after the other, which sit where others
/// sat.
#[test]
fn a_publisher_counts_what_several_threads_publish() {
    const EACH: u64 = 20_000;
    let _guard = hang_guard();
    let hub = hub(1);
    let settings = hub.subscription("a").execution(Execution::Inline);
    let _subscription = settings.serve_shared(|_: &Message<'_>| {}).unwrap();
    let publisher = hub.publisher("feed").build().unwrap();
    let key = hub.key("a").unwrap();
    let publish = || (0..EACH).for_each(|_| assert!(publisher.publish(&key, "").is_ok()));
    publish();
    std::thread::scope(|scope| {
        (0..3).for_each(|_| drop(scope.spawn(publish)));
        publish();
    });
    for _ in 0..3 {
        std::thread::scope(|scope| drop(scope.spawn(publish)));
    }
    let stats = publisher.stats();
    assert_eq!((stats.published, stats.enqueued), (8 * EACH, 8 * EACH));
}

#[test]
fn a_publisher_keeps_to_its_patterns_and_its_quota() {
    let _guard = hang_guard();
    let hub = hub(1);
    let came = Count::new();
    let count = came.clone();
    let inline = hub.subscription(">").execution(Execution::Inline);
    let _all = inline.serve_shared(move |_: &Message<'_>| count.up()).unwrap();
    let hour = std::time::Duration::from_secs(3600);
    let settings = hub.publisher("feed").allow("a.*").allow("b.>");
    let publisher = settings.quota(Rate::new(1, hour).burst(3)).build().unwrap();
    assert_eq!(
        publisher.publish("c", "").unwrap_err().to_string(),
        "key is \"c\", but must be one that \"feed\" may publish: a.*, b.>"
    );
    assert_eq!(publisher.publish("a.x", "").unwrap().enqueued, 1);
    let refused = publisher.publish_batch("b.x.y", ["1", "2", "3", "4"]).unwrap_err();
    assert_eq!(refused.to_string(), "all 3 tokens of the publisher's quota are in use");
    assert!(publisher.clone().publish("a.x", "").is_err());
    let stats = publisher.stats();
    assert_eq!((stats.published, stats.refused, stats.enqueued, stats.lost), (3, 3, 3, 0));
    assert_eq!((came.get(), hub.audit().published), (3, 3));
    assert_eq!(
        hub.publisher("x").allow("a..b").build().unwrap_err().to_string(),
        "pattern is \"a..b\", but must be without empty tokens: no dot at an end, no two in a row"
    );
    assert!(hub.publisher("x").quota(Rate::per_second(0)).build().is_err());
    settle(&hub);
}
