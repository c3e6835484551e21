//! What a handler of requests may return.

use crate::http::exchange;
use crate::log::faults;
use core::fmt::Display;

/// What the handler of a [route](crate::http::HttpBuilder::route) may return: nothing, or a `Result` whose error can be
/// shown, as that of [`Response::send`](crate::http::Response::send) and of `?`.
///
/// If a handler returns `Err` without having answered, as by `?`, its client gets a 500, the error's text is in the log
/// (`handler.panicked`), and it is counted in [`HttpStats::panics`](crate::http::HttpStats::panics). Once the request is
/// answered, or its answer is lost with the connection, the result is dropped.
#[diagnostic::on_unimplemented(
    message = "a handler of requests returns `()` or a `Result` whose error implements `Display`, not `{Self}`",
    label = "end the handler with `;`, or map the error to one that implements `Display`"
)]
pub trait HandlerResult {
    /// The error, if it is one.
    #[doc(hidden)]
    fn failure(&self) -> Option<&dyn Display>;
}

impl HandlerResult for () {
    fn failure(&self) -> Option<&dyn Display> {
        None
    }
}

/// Names what never returns, as `todo!()`, which has no name that is stable.
pub trait Function {
    type Returns;
}

impl<R> Function for fn() -> R {
    type Returns = R;
}

impl HandlerResult for <fn() -> ! as Function>::Returns {
    fn failure(&self) -> Option<&dyn Display> {
        None
    }
}

impl<T, E: Display> HandlerResult for Result<T, E> {
    fn failure(&self) -> Option<&dyn Display> {
        self.as_ref().err().map(|error| error as &dyn Display)
    }
}

/// A handler has returned this, on this thread.
#[inline]
pub(crate) fn conclude(returned: impl HandlerResult) {
    if let Some(error) = returned.failure() {
        note(error);
    }
}

#[cold]
fn note(error: &dyn Display) {
    if exchange::is_unanswered_here() {
        // It is reported when the run of the handler is concluded.
        faults::note_text(error.to_string());
    }
}
