//! Settings that cannot be met are refused by name, value and range, before anything is started.

mod common;

use common::{Count, all_threads, hang_guard, in_child, open_descriptors};
use paceline::{Builder, Error, Pin, Pool, ScriptedSource, SourceKind};
use std::time::Duration;

/// Each with its field, its value as written in the message, and a part of the allowed range.
fn bad() -> Vec<(Builder, &'static str, &'static str, &'static str)> {
    let pool = Pool::builder;
    let (long, short) = (Duration::from_secs(3600), Duration::from_nanos(1));
    vec![
        (pool().threads(0).max_joined(0), "threads", "0", "1 to 1024, or 0 with max_joined"),
        (pool().threads(1025), "threads", "1025", "0 to 1024"),
        (pool().threads(usize::MAX), "threads", "18446744073709551615", "0 to 1024"),
        (pool().threads(1).max_joined(1025), "max_joined", "1025", "0 to 1024"),
        (pool().threads(1).leaders(0), "leaders", "0", "1 for 1 threads"),
        (pool().threads(1).leaders(2), "leaders", "2", "1 for 1 threads"),
        (pool().threads(0).leaders(2), "leaders", "2", "1 for 0 threads"),
        (pool().threads(4).leaders(4), "leaders", "4", "1 to 3"),
        (pool().threads(4).leaders(usize::MAX), "leaders", "18446744073709551615", "1 to 3"),
        (pool().lane_capacity(0), "lane_capacity", "0", "2 to 16777216"),
        (pool().lane_capacity(1 << 25), "lane_capacity", "33554432", "2 to 16777216"),
        (pool().lane_capacity(usize::MAX), "lane_capacity", "18446744073709551615", "2 to"),
        (pool().strand_capacity(1), "strand_capacity", "1", "2 to 16777216"),
        (pool().strand_capacity(usize::MAX), "strand_capacity", "18446744073709551615", "2 to"),
        (pool().max_handles(0), "max_handles", "0", "1 to 16777216"),
        (pool().max_handles(usize::MAX), "max_handles", "18446744073709551615", "1 to"),
        (pool().stack_size(1), "stack_size", "1", "65536 to 4294967296"),
        (pool().stack_size(usize::MAX), "stack_size", "18446744073709551615", "65536 to"),
        (pool().watch_period(short), "watch_period", "1ns", "10µs to 1s"),
        (pool().watch_period(long), "watch_period", "3600s", "10µs to 1s"),
        (pool().spin(long), "spin", "3600s", "0ns to 100ms"),
        (pool().max_turn(short), "max_turn", "1ns", "10µs to 1s"),
        (pool().max_turn(long), "max_turn", "3600s", "10µs to 1s"),
        (pool().on_slow(short, |_| ()), "on_slow", "1ns", "10µs to 86400s"),
        (pool().name(""), "name", "\"\"", "at least one byte"),
        (pool().name("a\0b"), "name", "\"a\\0b\"", "without NUL"),
        (pool().pin(Pin::List(vec![0, 99_999])), "pin", "99999", "CPUs of 0"),
        (pool().pin(Pin::List(vec![])), "pin", "an empty list", "CPUs of 0"),
        (
            pool().threads(4).leaders(2).source(SourceKind::Scripted(ScriptedSource::new())),
            "leaders",
            "2",
            "1 with a scripted source",
        ),
    ]
}

#[test]
fn every_bad_setting_is_named_with_its_value_and_range_and_nothing_is_started() {
    in_child(|| {
        let _guard = hang_guard();
        let started = Count::new();
        let (threads, descriptors) = (all_threads().len(), open_descriptors());
        for (builder, field, given, range) in bad() {
            let starts = started.clone();
            let refused = builder.on_start(move |_| starts.up()).build();
            let Err(Error::Invalid { name, value, allowed }) = &refused else {
                panic!("{field}: {refused:?}");
            };
            assert_eq!((*name, value.as_str()), (field, given));
            assert!(allowed.contains(range), "{field}: {allowed}");
            let message = refused.unwrap_err().to_string();
            assert_eq!(
                message,
                format!("{field} is {given}, but must be {}", message_range(&message))
            );
        }
        assert_eq!(started.get(), 0);
        assert_eq!((all_threads().len(), open_descriptors()), (threads, descriptors));
    });
}

fn message_range(message: &str) -> &str {
    message.split_once(", but must be ").expect("the form of the message").1
}

#[test]
fn the_ends_of_each_range_are_good() {
    let _guard = hang_guard();
    let pool = Pool::builder;
    let second = Duration::from_secs(1);
    let good = [
        pool().threads(0).max_joined(1),
        pool().threads(1).leaders(1).max_joined(0),
        pool().threads(2).leaders(1),
        pool().threads(4).leaders(3),
        pool().threads(1).lane_capacity(2).strand_capacity(2).max_handles(1),
        pool().threads(1).max_handles(1 << 24),
        pool().threads(1).watch_period(Duration::from_micros(10)),
        pool().threads(1).watch_period(second).spin(Duration::from_millis(100)),
        pool().threads(1).stack_size(64 << 10),
        pool().threads(2).name("a name that is longer than the kernel keeps"),
        pool().threads(1).source(SourceKind::Scripted(ScriptedSource::new())),
    ];
    for builder in good {
        let pool = builder.build().unwrap();
        let task = pool.submit(|| 7).unwrap();
        if pool.stats().threads.len() > 4 || !format!("{pool:?}").contains("threads: 0") {
            assert_eq!(task.wait().unwrap(), 7);
        }
    }
}

#[test]
fn the_largest_pool_runs() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1024).stack_size(64 << 10).build().unwrap();
    assert_eq!(pool.stats().sets.len(), 128);
    let tasks: Vec<_> = (0..10_000).map(|number| pool.submit(move || number).unwrap()).collect();
    let sum: u64 = tasks.into_iter().map(|task| task.wait().unwrap()).sum();
    assert_eq!(sum, 9999 * 10_000 / 2);
    common::finish(&pool);
}

#[test]
fn pins_are_read_and_written_as_text() {
    for text in ["none", "compact", "spread", "0", "0,2,4-7"] {
        assert_eq!(text.parse::<Pin>().unwrap().to_string(), text);
    }
    for text in ["", "all", "1-", "3-1", "0,,1"] {
        let error = text.parse::<Pin>().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("pin is {text}, but must be none, compact,")),
            "{error}"
        );
    }
}
