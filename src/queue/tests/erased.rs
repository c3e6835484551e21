#![allow(unsafe_code, reason = "takes back what it put in")]

use super::counted::Drops;
use crate::queue::Erased;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[repr(align(32))]
struct OverAligned(u8);

#[test]
fn a_task_and_a_state_fill_one_line() {
    assert_eq!(size_of::<Erased>(), 56);
    assert_eq!(align_of::<Erased>(), 8);
    assert_eq!(size_of::<Option<Erased>>(), 56);
}

#[test]
fn what_fits_is_decided_by_size_and_alignment() {
    assert!(Erased::fits::<[u64; 6]>());
    assert!(Erased::fits::<()>());
    assert!(!Erased::fits::<[u8; 49]>());
    assert!(!Erased::fits::<OverAligned>());
}

#[test]
fn runs_once_and_drops_what_it_captured_once() {
    let (drops, runs) = (Drops::default(), Arc::new(AtomicUsize::new(0)));
    let small = (drops.value(), runs.clone());
    Erased::new(move || {
        let small = small;
        small.1.fetch_add(1, Relaxed);
    })
    .run();
    let large = (drops.value(), runs.clone(), [7u64; 20]);
    Erased::new(move || {
        let large = large;
        large.1.fetch_add(large.2[19] as usize, Relaxed);
    })
    .run();
    assert_eq!(runs.load(Relaxed), 8);
    assert_eq!(drops.count(), 2);
}

#[test]
fn an_over_aligned_closure_is_boxed_and_stays_aligned() {
    let value = OverAligned(3);
    let seen = Arc::new(AtomicUsize::new(0));
    let out = seen.clone();
    Erased::new(move || {
        let value = &value;
        assert!(std::ptr::from_ref(value).is_aligned());
        out.store(value.0 as usize, Relaxed);
    })
    .run();
    assert_eq!(seen.load(Relaxed), 3);
}

#[test]
#[should_panic(expected = "too large")]
fn inline_refuses_what_does_not_fit() {
    let large = [0u8; 100];
    drop(Erased::inline(move || assert_eq!(large.len(), 100)));
}

#[test]
fn dropped_unrun_it_drops_what_it_captured() {
    let drops = Drops::default();
    let (small, large) = (drops.value(), (drops.value(), [0u64; 9]));
    drop(Erased::inline(move || drop(small)));
    drop(Erased::boxed(move || drop(large)));
    assert_eq!(drops.count(), 2);
}

#[test]
fn a_panicking_closure_is_dropped_once() {
    let drops = Drops::default();
    let (small, large) = (drops.value(), (drops.value(), [0u64; 9]));
    let tasks = [
        Erased::new(move || {
            let _kept = &small;
            panic!("small");
        }),
        Erased::new(move || {
            let _kept = &large;
            panic!("large");
        }),
    ];
    for task in tasks {
        assert!(catch_unwind(AssertUnwindSafe(|| task.run())).is_err());
    }
    assert_eq!(drops.count(), 2);
}

fn returned<F: FnOnce() + Send + 'static>(work: F) -> F {
    let task = Erased::new(work);
    // SAFETY: made by `new` from an `F` the line before.
    unsafe { task.into_inner::<F>() }
}

#[test]
fn the_closure_comes_back_whole() {
    let drops = Drops::default();
    let (small, large) = (drops.value(), (drops.value(), [5u64; 9]));
    let small = returned(move || drop(small));
    let large = returned(move || drop(large));
    assert_eq!(drops.count(), 0);
    small();
    large();
    assert_eq!(drops.count(), 2);
}
