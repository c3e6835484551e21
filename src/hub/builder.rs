//! A hub: how it is made, and how it ends.

use crate::error::{Error, Result};
use crate::hub::channel::ring::Spares;
use crate::hub::channel::route::channel_of;
use crate::hub::channel::router::Router;
use crate::hub::core::{Core, MAX_PAYLOAD, MAX_SERVICES};
use crate::hub::group::dispatch::for_each_group;
use crate::hub::group::members::Groups;
use crate::hub::handle::Hub;
use crate::hub::history::keep::Histories;
use crate::hub::history::settings::History;
use crate::hub::keys::intern::Keys;
use crate::hub::keys::key::Key;
use crate::hub::mailbox::closing::shut;
use crate::hub::mailbox::failure::Answer;
use crate::hub::mailbox::rules::RuleBook;
use crate::hub::mailbox::subscribe::SubscriptionBuilder;
use crate::hub::mailbox::subscription::Subscription;
use crate::hub::message::Message;
use crate::hub::run::execute::Service;
use crate::hub::run::ready::Ready;
use crate::hub::supervise::dead::DeadLetters;
use crate::hub::system::figures::tell_stats_later;
use crate::hub::system::key_counts::KeyCounts;
use crate::hub::system::notice::{Notices, Settings};
use crate::hub::system::stats::{audit, for_each_subscriber};
use crate::pool::{self, Pool, Remains, Served, service};
use crate::sync::atomic::Ordering::{Acquire, Relaxed};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use crate::sync::{CachePadded, Mutex};
use crate::sys::futex::Futex;
use core::time::Duration;
use std::sync::{Arc, OnceLock, PoisonError, Weak};

/// Settings of a [`Hub`].
#[must_use = "a builder does nothing until `build`"]
pub struct HubBuilder<'a> {
    pool: &'a Pool,
    pub(in crate::hub) max_payload: usize,
    dead_letters: usize,
    histories: Vec<History>,
    pub(in crate::hub) notices: Settings,
    pub(in crate::hub) count_keys: usize,
    pub(in crate::hub) registry: Option<(crate::metrics::Registry, String)>,
    pub(in crate::hub) stats_interval: Option<Duration>,
}

impl HubBuilder<'_> {
    /// The largest payload, 1 byte to 1 GiB; default 16 MiB.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// How many dead letters are kept, 0 to 10 000 000; default 10 000. When there are more the oldest is
    /// forgotten.
    pub fn dead_letters(mut self, most: usize) -> Self {
        self.dead_letters = most;
        self
    }

    /// Adds a history; up to 31. [`Hub::query`] and [`Hub::replay`] ask the first that keeps all they want.
    pub fn history(mut self, history: History) -> Self {
        self.histories.push(history);
        self
    }

    /// Counts for up to so many keys how often each was published, 0 to 1 000 000; default 0: for none, which
    /// costs nothing. Of more keys the sum is counted.
    pub fn count_keys(mut self, most: usize) -> Self {
        self.count_keys = most;
        self
    }

    /// Puts the figures of this hub into a registry, with the label `hub` = `name`, for as long as it lives:
    /// the counts of the hub, of its publishers, of keys that are [counted](Self::count_keys), of replays to handlers,
    /// and of subscriptions, as long as they last; how long messages wait and are handled for those that are
    /// [measured](crate::hub::SubscriptionBuilder::measured). Of others there are up to 1000.
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self, registry: &crate::metrics::Registry, name: &str) -> Self {
        self.registry = Some((registry.clone(), name.into()));
        self
    }

    /// Publishes the hub's statistics under `$SYS.hub.statistics` as often as this, 10 ms to 1 day, and writes them as
    /// a line to the pool's log and to the `log` facade: target `paceline::hub`, level info. Default: never.
    pub fn stats_interval(mut self, every: Duration) -> Self {
        self.stats_interval = Some(every);
        self
    }

    /// How many errors are kept for [`Hub::errors`], 0 to 1 000 000; default 1024. When there are more the
    /// oldest is forgotten.
    pub fn errors(mut self, most: usize) -> Self {
        self.notices.errors = most;
        self
    }

    /// How often losses of the same kind are told, 1 ms to 1 hour; default 1 s. The first of a burst is told
    /// at once.
    pub fn notice_interval(mut self, interval: Duration) -> Self {
        self.notices.interval = interval;
        self
    }

    /// A hub with these settings.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the setting; [`Error::Os`] names the archive that cannot be opened, and what
    /// is wrong with it; [`Error::Full`] when all `max_handles` of the pool are in use,
    /// [`Error::ShutDown`], [`Error::Forked`].
    pub fn build(self) -> Result<Hub> {
        static HUBS: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(1);
        let shared = Arc::clone(self.pool.shared());
        shared.check_open()?;
        if !(1..=MAX_PAYLOAD).contains(&self.max_payload) {
            return Err(Error::invalid("max_payload", self.max_payload, "1 to 1073741824 bytes"));
        }
        let histories = Histories::open(self.histories, &shared)?;
        let services = shared.ready.members.len().clamp(1, MAX_SERVICES);
        let dead = Arc::new(DeadLetters::new(self.dead_letters)?);
        let notices = Notices::new(self.notices)?;
        let key_counts = KeyCounts::new(self.count_keys)?;
        crate::hub::system::figures::check_stats_interval(self.stats_interval)?;
        let core = Arc::new_cyclic(|me| Core {
            me: Weak::clone(me),
            keys: Keys::new(HUBS.fetch_add(1, core::sync::atomic::Ordering::Relaxed)),
            router: Router::new(),
            ready: Ready::new(services),
            services: OnceLock::new(),
            strand: Mutex::default(),
            spares: Spares::default(),
            rules: RuleBook::default(),
            max_payload: self.max_payload,
            dead,
            groups: Groups::default(),
            requests: Arc::default(),
            sequence: CachePadded::new(AtomicU64::new(histories.first_sequence() - 1)),
            tracks: AtomicBool::new(false),
            subscriptions: AtomicU64::new(0),
            histories,
            notices,
            key_counts,
            publishers: Mutex::default(),
            replays: Mutex::default(),
            detached: Mutex::default(),
            ended: Mutex::default(),
            closed: AtomicBool::new(false),
            held_up: AtomicU32::new(0),
            changed: Futex::new(0),
            waiters: AtomicU32::new(0),
            name: Mutex::default(),
            shared,
        });
        let me: Weak<Core> = Weak::clone(&core.me);
        core.histories.belong_to(me);
        open_services(&core, services)?;
        let served: Weak<Core> = Arc::downgrade(&core);
        core.shared.end.serve(served);
        if let Some((registry, name)) = self.registry {
            crate::hub::system::figures::attach(&registry, &name, &core);
        }
        if let Some(every) = self.stats_interval {
            tell_stats_later(&core, every, audit(&core), crate::sys::clock::now());
        }
        Ok(Hub { pool: self.pool.clone(), core })
    }
}

impl Hub {
    /// A hub with default settings.
    ///
    /// # Errors
    /// As [`HubBuilder::build`].
    pub fn new(pool: &Pool) -> Result<Hub> {
        Self::builder(pool).build()
    }

    /// Settings to build a hub from.
    pub fn builder(pool: &Pool) -> HubBuilder<'_> {
        HubBuilder {
            pool,
            max_payload: 16 << 20,
            dead_letters: 10_000,
            histories: Vec::new(),
            notices: Settings::default(),
            count_keys: 0,
            registry: None,
            stats_interval: None,
        }
    }

    /// The pool whose threads run the handlers.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The key of this text. Publishing with a key is faster than with its text, which is looked up.
    ///
    /// # Errors
    /// [`Error::Invalid`] says what is wrong with it.
    pub fn key(&self, text: &str) -> Result<Key> {
        crate::hub::keys::key::check_key(text)?;
        Ok(self.core.keys.intern(text))
    }

    /// Subscribes with default settings: serial, and up to 1024 messages wait. Publishers wait for room then; on a thread
    /// of the pool or in a handler, publishing fails instead.
    ///
    /// # Errors
    /// As [`SubscriptionBuilder::serve`].
    pub fn subscribe<F, A>(&self, pattern: &str, handler: F) -> Result<Subscription>
    where
        F: FnMut(&Message<'_>) -> A + Send + 'static,
        A: Answer,
    {
        self.subscription(pattern).serve(handler)
    }

    /// Settings of a subscription to a key or pattern.
    pub fn subscription<'a>(&'a self, pattern: &'a str) -> SubscriptionBuilder<'a> {
        SubscriptionBuilder::new(self, pattern)
    }
}

impl Served for Core {
    fn remains(&self, deadline: u64) -> Remains {
        // First: whoever waited for room is not counted any more when its message is in the list.
        match self.held_up.load(Acquire) {
            0 => self.ready.remains(deadline),
            _ => Remains::Work,
        }
    }

    fn left(&self) -> u64 {
        audit(self).waiting + u64::from(self.held_up.load(Acquire))
    }

    /// Behind this, no mailbox takes a message, and what waits is all there is: see *shut* in `mailbox/mail.rs`. Each thread that
    /// ends the pool shuts all of them, since another one may not be through yet.
    fn close(&self) {
        self.closed.store(true, Relaxed);
        // What a group does under its lock is done before its members are shut, or sees that the hub is closed.
        for_each_group(self, |_, _| ());
        for_each_subscriber(self, |subscriber| shut(subscriber, self));
    }

    fn health(&self, say: &mut dyn FnMut(bool, String)) {
        for (pattern, reason) in self.histories.failures() {
            say(true, format!("history {pattern:?} is not written: {reason}"));
        }
    }

    fn figures(&self, to: &mut crate::metrics::Collector, _pool: &str) {
        crate::hub::system::figures::collect(to, None, self);
    }

    fn shown_histories(&self) -> Vec<serde_json::Value> {
        self.histories.shown()
    }

    fn show_dead_letters(&self, to: &mut Vec<serde_json::Value>) -> usize {
        self.dead.show(to)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if !self.shared.is_forked() {
            let keys = self.services.get().into_iter().flatten();
            keys.for_each(|&key| service::close(&self.shared, key));
            let keys = self.keys.all();
            keys.iter().for_each(|key| channel_of(key).clear());
            self.router.channels().iter().for_each(|channel| channel.clear());
            let mut detached = self.detached.lock().unwrap_or_else(PoisonError::into_inner);
            let detached = core::mem::take(&mut *detached);
            detached.iter().for_each(|replay| Arc::clone(replay).leave_log());
            let _panicked = pool::contain(|| drop(detached));
        }
    }
}

fn open_services(core: &Arc<Core>, count: usize) -> Result<()> {
    let mut keys = Vec::with_capacity(count);
    for number in 0..count {
        let mut service = Service::new(Arc::downgrade(core), number);
        match service::open(&core.shared, move || service.serve()) {
            Ok(key) => keys.push(key),
            Err(error) => {
                keys.iter().for_each(|&key| service::close(&core.shared, key));
                return Err(error);
            }
        }
    }
    let _first = core.services.set(keys.into());
    Ok(())
}
