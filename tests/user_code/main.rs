//! Code of the user, wherever it is called, may panic with anything, and its destructors may panic too: nothing of the
//! library ends by it, and whoever waits gets an answer.
//!
//! The places are found by reading the sources ([`places`]), so that a new one without a driver fails, and so does a
//! driver without a place.
#![cfg(all(feature = "http", feature = "metrics", not(loom)))]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/places.rs"]
mod places;

#[cfg(feature = "nats")]
mod bridges;
#[cfg(feature = "nats")]
#[allow(dead_code, reason = "each test binary uses its own part of this")]
#[path = "../bridge/broker.rs"]
mod broker;
mod charge;
mod hubs;
mod nets;
mod others;
mod pools;
mod tasks;

use charge::{Bang, Driver};
use common::{LONG, hang_guard, in_child_blocking};
use paceline::Pool;
use std::collections::BTreeSet;

/// Whoever uses this pool is served, and its end comes, with books that balance.
fn is_sound(pool: &Pool) {
    assert_eq!(pool.submit(|| 7).unwrap().wait().unwrap(), 7, "the next task");
    assert!(pool.shutdown(LONG).drained, "it is drained");
    let audit = pool.audit();
    assert!(audit.balances(), "{audit:?}");
}

fn drivers() -> Vec<(&'static str, Driver)> {
    [
        pools::DRIVERS,
        tasks::DRIVERS,
        hubs::DRIVERS,
        nets::DRIVERS,
        others::DRIVERS,
        #[cfg(feature = "nats")]
        bridges::DRIVERS,
    ]
    .concat()
}

#[test]
fn every_place_that_takes_user_code_has_a_driver() {
    let takes = |signature: &str| {
        ["Fn(", "FnMut(", "FnOnce("].iter().any(|bound| signature.contains(bound))
    };
    let functions = places::functions();
    let found = functions.iter().filter(|place| place.is_of_trait || takes(&place.signature));
    let found: BTreeSet<&str> = found.map(|place| &*place.name).collect();
    let driven: BTreeSet<&str> = drivers().iter().map(|(place, _)| *place).collect();
    assert!(found.len() > 80, "the sources were not understood: {found:?}");
    let forgotten: Vec<_> = found.difference(&driven).collect();
    assert!(forgotten.is_empty(), "places without a driver: {forgotten:?}");
    let gone: Vec<_> = driven.difference(&found).collect();
    assert!(gone.is_empty(), "drivers without a place: {gone:?}");
}

/// Goal: as in the head. Method: each place, with each kind of panic, in a process of its own, which a panic out of
/// place would end.
#[test]
fn nothing_that_user_code_panics_with_ends_what_is_ours() {
    in_child_blocking(&[libc::SIGUSR1], || {
        #[cfg(feature = "systemd")]
        #[allow(unsafe_code, reason = "the environment is the process's")]
        // SAFETY: no other thread of this process reads it yet.
        unsafe {
            std::env::set_var("WATCHDOG_USEC", "4000");
        }
        let _guard = hang_guard();
        std::panic::set_hook(Box::new(|info| {
            // What the test itself says, and nothing of what is thrown on purpose.
            if info.location().is_none_or(|at| !at.file().ends_with("charge.rs")) {
                eprintln!("{info}");
            }
        }));
        let only = std::env::var("PLACE").ok();
        for (place, drive) in drivers() {
            if only.as_ref().is_some_and(|only| !place.contains(&**only)) {
                continue;
            }
            for bang in Bang::ALL {
                eprintln!("{place}, panicking with {bang:?}");
                let pool = Pool::builder().threads(2).build().unwrap();
                drive(&pool, bang);
                is_sound(&pool);
            }
        }
    });
}
