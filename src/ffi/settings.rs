//! Settings that C has by the path of a file.
#![allow(unsafe_code, reason = "paths are texts of C's")]

use super::boundary::{self, Result};
use crate::admin::Settings;
use core::ffi::c_char;

/// What a file says, if there is one, and the environment over it.
///
/// # Safety
///
/// `path` is NULL, or ends with NUL.
pub(super) unsafe fn layers(path: *const c_char, environment: bool) -> Result<Settings> {
    let mut layers = Settings::layers();
    if !path.is_null() {
        // SAFETY: not NULL, and as the caller promises.
        layers = layers.file(unsafe { boundary::text(path, "path") }?);
    }
    if environment {
        layers = layers.environment();
    }
    Ok(layers.build()?)
}
