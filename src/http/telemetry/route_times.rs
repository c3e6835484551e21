//! How long requests took, by route and by the class of their status: measured once that is asked for.
//!
//! What times a request that ends in the hook that it began in is in the hook ([`Timing`]); what outlives it is in the
//! request's trace. So a connection has no room for it.

use crate::http::service::routes::Routes;
use crate::metrics::{Collector, Histogram, Unit};
use crate::sys::clock;

/// No whole answer, and then 1xx to 5xx.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// By the number of the route, and by [`CLASSES`]; the last is of what no route takes.
pub(crate) struct RouteTimes(Box<[[Histogram; CLASSES.len()]]>);

impl RouteTimes {
    pub(crate) fn new(routes: &Routes) -> Self {
        let times = || core::array::from_fn(|_| Histogram::coarse(Unit::Time));
        Self((0..=routes.names().count()).map(|_| times()).collect())
    }

    #[cold]
    pub(crate) fn record(&self, route: u32, began: u64, status: Option<u16>) {
        let route = (route as usize).min(self.0.len() - 1);
        let class = status.map_or(0, |status| usize::from(status / 100).clamp(1, 5));
        self.0[route][class].record(clock::now().saturating_sub(began));
    }

    pub(crate) fn collect(&self, to: &mut Collector, pool: &str, server: &str, routes: &Routes) {
        let names = routes.names().chain([("", "")]);
        for ((method, route), times) in names.zip(&self.0) {
            for (status, times) in CLASSES.iter().zip(times).filter(|(_, times)| times.is_used()) {
                let labels = [
                    ("pool", pool),
                    ("server", server),
                    ("method", method),
                    ("route", route),
                    ("status", *status),
                ];
                let help = "From a request's head until its answer was handed over whole, which may still be on its way";
                to.histogram("paceline_http_request_seconds", help, &labels, times.snapshot());
            }
        }
    }
}
