//! Middleware: functions of the user around every handler.
//!
//! They are put around the handlers when the server is started, so a server without any pays nothing for them.
//! What no route takes has a handler then, too, so that middleware sees it.

use crate::http::exchange::request::Request;
use crate::http::exchange::response::Response;
use crate::pool::discard;
use core::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

pub(crate) type Middleware = dyn Fn(&Request<'_>, Response, Next<'_>) + Send + Sync;

/// The rest of the way of a request: other middleware, and then the handler; see
/// [`HttpBuilder::around`](crate::http::HttpBuilder::around).
#[must_use = "without `run` the handler is not called"]
pub struct Next<'a> {
    rest: &'a [Box<Middleware>],
    end: &'a mut dyn FnMut(&Request<'_>, Response),
    /// The first panic on the way, for the connection to see.
    panic: &'a mut Option<Box<dyn Any + Send>>,
}

impl Next<'_> {
    /// Goes on with the request, on this thread, and returns when the handler has returned or panicked.
    ///
    /// Says with which status it was answered by then: 500 if the handler has panicked without an answer. None: it
    /// will be answered later, or its answer was lost with the connection;
    /// [`on_end`](crate::http::HttpBuilder::on_end) tells.
    pub fn run(self, request: &Request<'_>, mut response: Response) -> Option<u16> {
        let Self { rest, end, panic } = self;
        let exchange = Arc::clone(response.exchange());
        let ran = catch_unwind(AssertUnwindSafe(|| match rest.split_first() {
            Some((first, rest)) => first(request, response, Next { rest, end, panic }),
            None => {
                response.keep_for_errors();
                end(request, response);
            }
        }));
        if let Err(caught) = ran {
            match panic {
                None => *panic = Some(caught),
                // One is enough to end the connection.
                Some(_) => discard(caught),
            }
        }
        exchange.outcome()?.status()
    }
}

/// Runs a handler with all of these around it. It panics if one of them, or the handler, has.
pub(crate) fn run(
    all: &[Box<Middleware>],
    request: &Request<'_>,
    response: Response,
    end: &mut dyn FnMut(&Request<'_>, Response),
) {
    let mut panic = None;
    Next { rest: all, end, panic: &mut panic }.run(request, response);
    if let Some(caught) = panic {
        resume_unwind(caught);
    }
}
