//! Settings that C has by the path of a file: what they change in the configurations of C.
#![allow(unsafe_code, reason = "paths are texts of C's")]

use super::boundary::{self, Result};
use super::retry::{
    PACE_RETRY_DEFAULT, PACE_RETRY_EXPONENTIAL, PACE_RETRY_FIXED, PACE_RETRY_LINEAR,
    PACE_RETRY_RANDOM, pace_retry_t,
};
use super::sized;
use crate::admin::{Growth, Settings};
use core::cell::RefCell;
use core::ffi::c_char;
use core::time::Duration;
use std::collections::BTreeMap;
use std::ffi::CString;

/// Changes a configuration to what a file says, if there is one, and the environment over it.
///
/// # Safety
///
/// `path` is NULL, or ends with NUL.
pub(super) unsafe fn load<T: sized::Sized>(
    config: sized::InOut<T>,
    path: *const c_char,
    environment: bool,
    name: &str,
    change: impl FnOnce(&mut T, Settings),
) -> Result {
    let mut layers = Settings::layers();
    if !path.is_null() {
        // SAFETY: not NULL, and as the caller promises.
        layers = layers.file(unsafe { boundary::text(path, "path") }?);
    }
    if environment {
        layers = layers.environment();
    }
    config.check(name)?;
    let said = layers.build();
    config.change(name, |config| {
        change(config, said?);
        Ok(())
    })
}

/// What several files say, later ones over earlier ones, and the environment over them.
///
/// # Safety
///
/// `files` has `count` texts that end with NUL.
pub(super) unsafe fn of_files(
    files: *const *const c_char,
    count: usize,
    environment: bool,
) -> Result<Settings> {
    let mut layers = Settings::layers();
    // SAFETY: as the caller promises.
    for &file in unsafe { boundary::array(files, count, "settings") }? {
        // SAFETY: as the caller promises.
        layers = layers.file(unsafe { boundary::text(file, "settings") }?);
    }
    Ok(if environment { layers.environment() } else { layers }.build()?)
}

/// Settings are in the range of their fields.
pub(super) fn change<T: TryFrom<N>, N>(field: &mut T, setting: Option<N>) {
    if let Some(value) = setting.and_then(|value| T::try_from(value).ok()) {
        *field = value;
    }
}

/// In nanoseconds.
pub(super) fn change_time(field: &mut u64, setting: Option<Duration>) {
    change(field, setting.map(|time| time.as_nanos()));
}

thread_local! {
    /// The texts of settings that were loaded last on this thread, by their keys.
    static TEXTS: RefCell<BTreeMap<&'static str, CString>> = const { RefCell::new(BTreeMap::new()) };
}

/// The text is this thread's, and lent until the thread loads the same setting again.
pub(super) fn change_text(field: &mut *const c_char, key: &'static str, setting: Option<String>) {
    let Some(text) = setting.and_then(|text| CString::new(text).ok()) else { return };
    // A thread that ends lends nothing any more.
    let _ = TEXTS.try_with(|texts| {
        *field = text.as_ptr();
        texts.borrow_mut().insert(key, text);
    });
}

/// What settings say of retries.
pub(super) struct Retries {
    pub(super) retries: Option<u32>,
    pub(super) growth: Option<Growth>,
    pub(super) delay: Option<Duration>,
    pub(super) cap: Option<Duration>,
    pub(super) within: Option<Duration>,
}

/// `usual` is the delay, and the longest one, if nothing is said of them.
pub(super) fn change_retry(retry: &mut pace_retry_t, said: &Retries, usual: [Duration; 2]) {
    let Retries { retries, growth, delay, cap, within } = said;
    change(&mut retry.retries, *retries);
    change_time(&mut retry.first_ns, *delay);
    change_time(&mut retry.cap_ns, *cap);
    change_time(&mut retry.within_ns, *within);
    match growth {
        Some(Growth::Fixed) => retry.shape = PACE_RETRY_FIXED,
        Some(Growth::Linear) => retry.shape = PACE_RETRY_LINEAR,
        Some(Growth::Exponential) => retry.shape = PACE_RETRY_EXPONENTIAL,
        Some(Growth::Random) => retry.shape = PACE_RETRY_RANDOM,
        None if retries.is_some() && retry.shape == PACE_RETRY_DEFAULT => {
            retry.shape = PACE_RETRY_EXPONENTIAL;
        }
        None => {}
    }
    let grows = matches!(retry.shape, PACE_RETRY_EXPONENTIAL | PACE_RETRY_RANDOM);
    if retry.shape != PACE_RETRY_DEFAULT && retry.first_ns == 0 && delay.is_none() {
        change_time(&mut retry.first_ns, Some(usual[0]));
    }
    if grows && retry.cap_ns == 0 {
        change_time(&mut retry.cap_ns, Some(usual[1]));
    }
    if retry.shape == PACE_RETRY_RANDOM {
        retry.cap_ns = retry.cap_ns.max(retry.first_ns);
    }
}
