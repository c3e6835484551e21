//! Thresholds: whether a figure of a registry has risen above a limit or fallen below one, and who is told.
//!
//! # The states of a threshold
//!
//! ```text
//!            beyond the limit                          back beyond the way back
//!   BELOW ─────────────────────► CROSSED: told once ────────────────────────────► BELOW: told once
//!     └── not beyond it: nothing     └── between the two: nothing
//! ```
//!
//! The way back lies before the limit, so that a figure that trembles about the limit is told once
//! (hysteresis). A figure that is not there, or is no number, changes nothing.
//!
//! All thresholds of a [`Watch`] are looked at by one timer of the pool, against one snapshot of the
//! registry: so figures of collectors are asked for on a thread of the pool, which first gives up leading.
//! Looks do not overlap: each sets the timer for the next. No lock is held while hooks run.

use crate::error::{Error, Result};
use crate::hub::core::Core;
use crate::hub::handle::Hub;
use crate::hub::run::depth::is_in_handler;
use crate::hub::system::figures::HUB_LOG_TARGET;
use crate::hub::system::notice::{Notice, Severity};
use crate::hub::system::tell::tell;
use crate::log::{Component, Level};
use crate::metrics::{Registry, Snapshot, Value};
use crate::pool::{Timer, contain, promote_new_leader};
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sys::clock;
use core::fmt;
use core::time::Duration;
use serde_json::json;
use std::sync::{Arc, PoisonError, Weak};

/// Which figure of a sample.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Part {
    /// The number of a counter or gauge; of a histogram, how many values it has.
    Number,
    /// How much that grows in a second.
    Rate,
    /// A quantile of a histogram.
    Quantile(f64),
}

/// A limit for a figure of a registry.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub struct Threshold {
    metric: String,
    labels: Vec<(String, String)>,
    part: Part,
    rises: bool,
    limit: f64,
    back: f64,
    severity: Severity,
}

impl Threshold {
    /// Crossed when the metric of this name is above the limit.
    pub fn above(metric: &str, limit: f64) -> Self {
        Self {
            metric: metric.into(),
            labels: Vec::new(),
            part: Part::Number,
            rises: true,
            limit,
            back: limit,
            severity: Severity::Warning,
        }
    }

    /// Crossed when the metric of this name is below the limit.
    pub fn below(metric: &str, limit: f64) -> Self {
        Self { rises: false, ..Self::above(metric, limit) }
    }

    /// Of the first sample that has all of these labels; default: of the first.
    pub fn labels(mut self, labels: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).into(), (*value).into());
        self.labels = labels.iter().map(owned).collect();
        self
    }

    /// Back when the figure is not beyond this: not above the limit of [`above`](Self::above), nor below that
    /// of [`below`](Self::below). Default: the limit itself.
    pub fn back_at(mut self, back: f64) -> Self {
        self.back = back;
        self
    }

    /// Looks at this quantile of a histogram, 0 to 1.
    pub fn quantile(mut self, quantile: f64) -> Self {
        self.part = Part::Quantile(quantile);
        self
    }

    /// Looks at how much the figure grows in a second, from one look to the next.
    pub fn rate(mut self) -> Self {
        self.part = Part::Rate;
        self
    }

    /// How bad it is; default: a warning.
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    fn check(&self) -> Result<()> {
        if let Part::Quantile(quantile) = self.part
            && !(0.0..=1.0).contains(&quantile)
        {
            return Err(Error::invalid("the quantile of a threshold", quantile, "0 to 1"));
        }
        if !self.limit.is_finite() {
            return Err(Error::invalid("the limit of a threshold", self.limit, "a finite number"));
        }
        let (side, is_before) = match self.rises {
            true => ("up to", self.back <= self.limit),
            false => ("at least", self.back >= self.limit),
        };
        if !is_before {
            let allowed = format!("{side} the limit, {}", self.limit);
            return Err(Error::invalid("back_at", self.back, allowed));
        }
        Ok(())
    }

    /// The figure, if it is there.
    fn figure(&self, snapshot: &Snapshot) -> Option<f64> {
        let labels: Vec<_> = self.labels.iter().map(|(name, value)| (&**name, &**value)).collect();
        match (self.part, snapshot.sample(&self.metric, &labels)?) {
            (Part::Quantile(quantile), Value::Histogram(spread)) => Some(spread.quantile(quantile)),
            (Part::Quantile(_), _) => None,
            (_, Value::Histogram(spread)) => Some(spread.count() as f64),
            (_, value) => value.number(),
        }
    }

    fn is_beyond(&self, figure: f64, limit: f64) -> bool {
        if self.rises { figure > limit } else { figure < limit }
    }
}

/// As people read it: `paceline_hub_waiting{hub="main"} above 1000`.
impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.metric)?;
        let labels: Vec<_> =
            self.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        if !labels.is_empty() {
            write!(f, "{{{}}}", labels.join(","))?;
        }
        match self.part {
            Part::Number => {}
            Part::Rate => f.write_str(" per second")?,
            Part::Quantile(quantile) => write!(f, " quantile {quantile}")?,
        }
        let side = if self.rises { "above" } else { "below" };
        write!(f, " {side} {}", self.limit)
    }
}

/// A threshold was crossed, or the figure came back.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Crossing {
    /// The threshold.
    pub threshold: Threshold,
    /// Its place among those of its watch: 0 for the first.
    pub place: usize,
    /// True: crossed; false: back.
    pub crossed: bool,
    /// The figure.
    pub figure: f64,
}

impl Crossing {
    /// `threshold.crossed` or `threshold.cleared`.
    pub fn event(&self) -> &'static str {
        if self.crossed { "threshold.crossed" } else { "threshold.cleared" }
    }

    /// As bad as its threshold says; coming back is [`Severity::Info`].
    pub fn severity(&self) -> Severity {
        if self.crossed { self.threshold.severity } else { Severity::Info }
    }

    /// As an object of JSON: `event`, `threshold`, `metric`, `labels`, `limit`, `figure`, `severity`, and
    /// `message`, which is for people.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut object = self.fields();
        object["event"] = self.event().into();
        object["severity"] = self.severity().name().into();
        object["message"] = self.to_string().into();
        object.to_string()
    }

    fn fields(&self) -> serde_json::Value {
        let labels = self.threshold.labels.iter();
        let labels: serde_json::Map<_, _> =
            labels.map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        json!({
            "threshold": self.threshold.to_string(), "metric": self.threshold.metric,
            "labels": labels, "limit": self.threshold.limit, "figure": self.figure,
        })
    }

    fn notice(&self) -> Notice {
        Notice {
            event: self.event(),
            severity: self.severity(),
            origin: format!("threshold {}", self.threshold),
            message: self.to_string(),
            fields: self.fields(),
        }
    }
}

/// As people read it: `crossed at 1203: paceline_hub_waiting above 1000`.
impl fmt::Display for Crossing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.crossed { "crossed" } else { "back" };
        write!(f, "{what} at {}: {}", self.figure, self.threshold)
    }
}

/// One threshold, and what was seen of its figure.
struct Rule {
    threshold: Threshold,
    place: usize,
    is_crossed: bool,
    /// For rates: the last figure, and when it was seen.
    last: Option<(f64, u64)>,
}

impl Rule {
    fn new(place: usize, threshold: Threshold) -> Self {
        Self { threshold, place, is_crossed: false, last: None }
    }

    /// A figure was seen at `now`.
    fn see(&mut self, seen: f64, now: u64) -> Option<Crossing> {
        let figure = match self.threshold.part {
            Part::Rate => {
                let (last, at) = self.last.replace((seen, now))?;
                (seen - last) / (now.saturating_sub(at).max(1) as f64 / 1e9)
            }
            _ => seen,
        };
        if figure.is_nan() {
            return None;
        }
        let limit = if self.is_crossed { self.threshold.back } else { self.threshold.limit };
        let is_beyond = self.threshold.is_beyond(figure, limit);
        if is_beyond == self.is_crossed {
            return None;
        }
        self.is_crossed = is_beyond;
        let threshold = self.threshold.clone();
        Some(Crossing { threshold, place: self.place, crossed: is_beyond, figure })
    }
}

type Hook = Box<dyn Fn(&Crossing) + Send + Sync>;

/// Settings of a [`Watch`].
#[must_use = "nothing is watched before `start`"]
pub struct WatchBuilder<'a> {
    hub: &'a Hub,
    registry: Registry,
    every: Duration,
    thresholds: Vec<Threshold>,
    hooks: Vec<Hook>,
}

impl WatchBuilder<'_> {
    /// Watches this one, too.
    pub fn threshold(mut self, threshold: Threshold) -> Self {
        self.thresholds.push(threshold);
        self
    }

    /// Called whenever one is crossed and when its figure is back, on a thread of the pool. A panic is
    /// contained, and counted. Several are called in order.
    pub fn on_crossing(mut self, hook: impl Fn(&Crossing) + Send + Sync + 'static) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    /// Writes a line to the `log` facade for each: target `paceline::hub`, with the level of its severity.
    pub fn log(self) -> Self {
        let logger = self.hub.core.shared.log.clone();
        self.on_crossing(move |crossing| {
            let (level, its) = match crossing.severity() {
                Severity::Info => (log::Level::Info, Level::Info),
                Severity::Warning => (log::Level::Warn, Level::Warn),
                Severity::Error => (log::Level::Error, Level::Error),
            };
            // The notice of it is there already, if the log tells the facade.
            if !(logger.uses_facade() && logger.is_on(Component::Hub, its)) {
                log::log!(target: HUB_LOG_TARGET, level, "{crossing}");
            }
        })
    }

    /// Begins. The first look is after the first period.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a threshold whose way back is beyond its limit, a quantile that is none, a limit
    /// that is no number, and a period out of its range; [`Error::Full`] when all `max_handles` of the pool
    /// are in use, [`Error::ShutDown`], [`Error::Forked`].
    pub fn start(self) -> Result<Watch> {
        self.thresholds.iter().try_for_each(Threshold::check)?;
        if !(Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&self.every) {
            let every = format!("{:?}", self.every);
            return Err(Error::invalid("the period of a watch", every, "1 ms to 1 day"));
        }
        let rules = self.thresholds.into_iter().enumerate();
        let watching = Arc::new(Watching {
            core: Weak::clone(&self.hub.core.me),
            registry: self.registry,
            every: self.every,
            rules: Mutex::new(
                rules.map(|(place, threshold)| Rule::new(place, threshold)).collect(),
            ),
            hooks: Mutex::new(self.hooks),
            looks: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        });
        watching.look_later(&self.hub.core)?;
        Ok(Watch { watching })
    }
}

struct Watching {
    core: Weak<Core>,
    registry: Registry,
    every: Duration,
    rules: Mutex<Vec<Rule>>,
    /// Locked while they are called. None are left once the watch was dropped.
    hooks: Mutex<Vec<Hook>>,
    looks: AtomicU64,
    panics: AtomicU64,
    ended: AtomicBool,
}

impl Watching {
    fn look_later(self: &Arc<Self>, core: &Core) -> Result<()> {
        let watching = Arc::downgrade(self);
        let look = move || {
            if let Some(watching) = watching.upgrade() {
                watching.look();
            }
        };
        Timer::after(&core.shared, self.every, look, |_| ()).map(drop).map_err(|(error, _)| error)
    }

    fn look(self: &Arc<Self>) {
        let Some(core) = self.core.upgrade() else { return };
        // Acquire: pairs with the Release in `Watch::drop`.
        if self.ended.load(Acquire) {
            return;
        }
        promote_new_leader();
        let snapshot = self.registry.snapshot();
        let now = clock::now();
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let see = |rule: &mut Rule| {
            rule.threshold.figure(&snapshot).and_then(|figure| rule.see(figure, now))
        };
        let crossings: Vec<_> = rules.iter_mut().filter_map(see).collect();
        drop(rules);
        for crossing in &crossings {
            tell(&core, crossing.severity(), None, || crossing.notice());
            let hooks = self.hooks.lock().unwrap_or_else(PoisonError::into_inner);
            for hook in hooks.iter().take_while(|_| !self.ended.load(Acquire)) {
                if contain(|| hook(crossing)).is_none() {
                    self.panics.fetch_add(1, Relaxed);
                }
            }
        }
        self.looks.fetch_add(1, Relaxed);
        if let Err(error @ Error::Full { .. }) = self.look_later(&core) {
            tell(&core, Severity::Error, None, || Notice {
                event: "threshold.stopped",
                severity: Severity::Error,
                origin: "thresholds".into(),
                message: format!("no threshold is watched any more: {error}"),
                fields: json!({}),
            });
        }
    }
}

/// Thresholds that are watched, until this is dropped. On a thread outside the pool the drop returns when no hook runs
/// and the hooks have been dropped. Inside a handler, and on a thread of the pool, it does not wait.
#[must_use = "dropping it ends the watch"]
pub struct Watch {
    watching: Arc<Watching>,
}

impl Watch {
    /// How often it has looked.
    pub fn looks(&self) -> u64 {
        self.watching.looks.load(Relaxed)
    }

    /// How often a hook has panicked.
    pub fn panics(&self) -> u64 {
        self.watching.panics.load(Relaxed)
    }

    /// The thresholds that are crossed now.
    pub fn crossed(&self) -> Vec<Threshold> {
        let rules = self.watching.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let crossed = rules.iter().filter(|rule| rule.is_crossed);
        crossed.map(|rule| rule.threshold.clone()).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `look`.
        self.watching.ended.store(true, Release);
        // Without a hub no look is under way.
        let waits =
            self.watching.core.upgrade().is_some_and(|core| {
                !core.shared.is_forked() && !core.is_inside() && !is_in_handler()
            });
        if waits {
            let hooks = self.watching.hooks.lock().map(|mut hooks| core::mem::take(&mut *hooks));
            let _panicked = contain(|| drop(hooks));
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("crossed", &self.crossed()).finish_non_exhaustive()
    }
}

impl Hub {
    /// Watches figures of a registry, whosever they are: looks at them so often, 1 ms to 1 day, and tells of
    /// each threshold that is crossed, and when its figure is back, under `$SYS.threshold.` and to hooks.
    ///
    /// ```
    /// use paceline::Pool;
    /// use paceline::hub::{Hub, Threshold};
    /// use paceline::metrics::Registry;
    /// use std::time::Duration;
    ///
    /// # fn main() -> paceline::Result<()> {
    /// let pool = Pool::new()?;
    /// let registry = Registry::new();
    /// let hub = Hub::builder(&pool).metrics(&registry, "main").build()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let _watch = hub
    ///     .watch(&registry, Duration::from_millis(10))
    ///     .threshold(Threshold::above("paceline_hub_waiting", 9.0).back_at(5.0))
    ///     .on_crossing(move |crossing| drop(tell.send(crossing.to_string())))
    ///     .start()?;
    /// let _slow = hub.mailbox("a", 100)?;
    /// assert!(hub.publish_batch("a", ["x"; 10])?.is_complete());
    /// assert_eq!(told.recv().unwrap(), "crossed at 10: paceline_hub_waiting above 9");
    /// # Ok(()) }
    /// ```
    pub fn watch(&self, registry: &Registry, every: Duration) -> WatchBuilder<'_> {
        let (thresholds, hooks) = (Vec::new(), Vec::new());
        WatchBuilder { hub: self, registry: registry.clone(), every, thresholds, hooks }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    proptest! {
        /// Goal: hysteresis. Method: any figures against a plain description: crossed from the first figure
        /// beyond the limit until the first that is not beyond the way back; falling is rising upside down.
        #[test]
        fn crossings_are_where_the_figure_leaves_and_comes_back(
            figures in prop::collection::vec(-20i32..20, 1..60),
            limit in -10i32..10,
            gap in 0i32..10,
        ) {
            let (limit, back) = (f64::from(limit), f64::from(limit - gap));
            let mut rises = Rule::new(0, Threshold::above("m", limit).back_at(back));
            let mut falls = Rule::new(0, Threshold::below("m", -limit).back_at(-back));
            let mut is_crossed = false;
            for figure in figures.into_iter().map(f64::from) {
                let was = is_crossed;
                is_crossed = figure > limit || (was && figure > back);
                let wanted = (was != is_crossed).then_some((is_crossed, figure));
                let seen = |seen: Option<Crossing>| seen.map(|seen| (seen.crossed, seen.figure));
                prop_assert_eq!(seen(rises.see(figure, 0)), wanted);
                let upside_down = wanted.map(|(crossed, figure)| (crossed, -figure));
                prop_assert_eq!(seen(falls.see(-figure, 0)), upside_down);
                prop_assert!(rises.see(f64::NAN, 0).is_none());
            }
        }
    }

    #[test]
    fn rates_are_from_look_to_look() {
        let mut rule = Rule::new(0, Threshold::above("m", 10.0).rate());
        let mut see = |figure, seconds: u64| {
            let seen = rule.see(figure, seconds * SECOND);
            seen.map(|seen| (seen.crossed, seen.figure))
        };
        assert_eq!(see(1000.0, 1), None, "one figure is no rate");
        assert_eq!(see(1010.0, 2), None);
        assert_eq!(see(1032.0, 4), Some((true, 11.0)));
        assert_eq!(see(1032.0, 5), Some((false, 0.0)));
    }

    #[test]
    fn figures_are_found_by_name_labels_and_part() {
        let registry = Registry::new();
        registry.gauge("g", "", &[("at", "a")]).unwrap().set(1.0);
        registry.gauge("g", "", &[("at", "b")]).unwrap().set(2.0);
        let histogram = registry.histogram("h", "", &[], crate::metrics::Unit::Count).unwrap();
        (1..=100).for_each(|value| histogram.record(value));
        let snapshot = registry.snapshot();
        let figure = |threshold: Threshold| threshold.figure(&snapshot);
        assert_eq!(figure(Threshold::above("g", 0.0)), Some(1.0));
        assert_eq!(figure(Threshold::above("g", 0.0).labels(&[("at", "b")])), Some(2.0));
        assert_eq!(figure(Threshold::above("g", 0.0).labels(&[("at", "c")])), None);
        assert_eq!(figure(Threshold::above("g", 0.0).quantile(0.5)), None);
        assert_eq!(figure(Threshold::above("none", 0.0)), None);
        assert_eq!(figure(Threshold::above("h", 0.0)), Some(100.0));
        assert_eq!(figure(Threshold::above("h", 0.0).quantile(0.5)), Some(50.0));
    }

    #[test]
    fn bad_thresholds_are_named() {
        let refused = |threshold: Threshold| threshold.check().unwrap_err().to_string();
        assert_eq!(
            refused(Threshold::above("m", 5.0).back_at(6.0)),
            "back_at is 6, but must be up to the limit, 5"
        );
        assert_eq!(
            refused(Threshold::below("m", 5.0).back_at(4.0)),
            "back_at is 4, but must be at least the limit, 5"
        );
        assert_eq!(
            refused(Threshold::above("m", 5.0).quantile(1.5)),
            "the quantile of a threshold is 1.5, but must be 0 to 1"
        );
        assert_eq!(
            refused(Threshold::above("m", f64::NAN)),
            "the limit of a threshold is NaN, but must be a finite number"
        );
        let shown = Threshold::below("m", 2.5).labels(&[("a", "b")]).quantile(0.99).to_string();
        assert_eq!(shown, "m{a=\"b\"} quantile 0.99 below 2.5");
    }
}
