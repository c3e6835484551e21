//! From settings to running threads. Either everything starts, or nothing is left behind.

use super::config::{Builder, SourceKind};
use super::placement::{Occupancy, Pin};
use super::set::HandleSet;
use super::shutdown::{Life, Threads};
use super::worker::Worker;
use super::{Pool, Shared, context};
use crate::error::{Error, Result};
use crate::source::Source;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sys::thread::{self, JoinHandle};
use crate::sys::topology::Topology;
use std::sync::{Arc, mpsc};

pub(crate) fn start(config: Builder) -> Result<Pool> {
    let started = start_by(&config);
    // A hook's last reference may go with the settings: its destructor must not cost the pool.
    let _panicked = context::contain(|| drop(config));
    started
}

fn start_by(config: &Builder) -> Result<Pool> {
    config.validate()?;
    let machine = Topology::of_this_machine();
    let ordinary = config.threads.unwrap_or_else(|| machine.parallelism());
    let threads = ordinary + config.reserved.iter().sum::<usize>();
    let leaders = config.resolve_leaders(ordinary)?;
    let pin = config.pin.clone().unwrap_or_else(|| Pin::by_default(threads, &machine));
    let placement = Occupancy::of_process().place(&pin, threads, &machine)?;
    let shared = Arc::new(Shared::new(config, ordinary, open_sets(config, leaders)?, placement)?);
    let threads = match spawn_all(config, &shared, threads) {
        Ok(threads) => threads,
        Err((started, error)) => {
            shared.stop();
            started.into_iter().for_each(JoinHandle::join);
            return Err(error);
        }
    };
    shared.tell_start(threads.len());
    Ok(Pool { life: Arc::new(Life { shared, threads: Threads::new(threads) }) })
}

fn open_sets(config: &Builder, leaders: usize) -> Result<Box<[HandleSet]>> {
    if let SourceKind::Scripted(_) = config.source
        && leaders > 1
    {
        return Err(Error::invalid("leaders", leaders, "1 with a scripted source"));
    }
    (0..leaders)
        .map(|_| {
            let source = match &config.source {
                SourceKind::Epoll => Source::epoll()
                    .map_err(|error| Error::os("open an event source (epoll, eventfd)", error))?,
                SourceKind::Ring => Source::in_memory(),
                SourceKind::Scripted(script) => Source::scripted(script),
            };
            let now = source.clock().now();
            Ok(HandleSet::new(source, now))
        })
        .collect()
}

type Failed = (Vec<JoinHandle>, Error);

fn spawn_all(
    config: &Builder,
    shared: &Arc<Shared>,
    threads: usize,
) -> core::result::Result<Vec<JoinHandle>, Failed> {
    let (pinned, results) = mpsc::channel();
    let mut started = Vec::with_capacity(threads);
    for index in 0..threads {
        let name = format!("{}-{index}", config.name);
        let body = thread_body(config, Arc::clone(shared), index, pinned.clone());
        shared.arrive();
        match thread::spawn(&name, config.stack_size, Box::new(body)) {
            Ok(thread) => started.push(thread),
            Err(error) => {
                shared.depart();
                return Err((started, Error::os(format!("start thread {index}"), error)));
            }
        }
    }
    for _ in 0..threads {
        match results.recv() {
            Ok(Err(error)) if config.pin_strict => return Err((started, error)),
            _ => {}
        }
    }
    Ok(started)
}

/// What a pool thread does from its first instruction to its last.
fn thread_body(
    config: &Builder,
    shared: Arc<Shared>,
    index: usize,
    pinned: mpsc::Sender<Result<()>>,
) -> impl FnOnce() + Send + 'static {
    let on_start = config.on_start.clone();
    let on_stop = config.on_stop.clone();
    let call = move |shared: &Shared, hook: Option<super::config::Hook>| {
        let Some(hook) = hook else { return };
        shared.run_hook(|| hook(index));
        // It may be the last reference.
        shared.run_hook(|| drop(hook));
    };
    move || {
        #[cfg(feature = "metrics")]
        shared.crew.members[index].kernel_thread.store(thread::id(), Relaxed);
        let result = shared.pin_current(index);
        let _nobody_listens = pinned.send(result);
        drop(pinned);
        // Hooks, and destructors that run while this thread sweeps up, are inside too: what waits for
        // the pool's members must not wait for this one.
        let _member = context::enter(&shared, index);
        call(&shared, on_start);
        Worker::new(&shared, index, u64::MAX).run();
        call(&shared, on_stop);
        #[cfg(feature = "metrics")]
        shared.crew.members[index].kernel_thread.store(0, Relaxed);
        shared.leave();
    }
}

impl Shared {
    fn pin_current(&self, thread: usize) -> Result<()> {
        let member = &self.crew.members[thread];
        let result = self.placement.pin_current(thread);
        match (&result, self.placement.cpu(thread)) {
            (Ok(()), Some(cpu)) => member.pinned.store(cpu as u32 + 1, Relaxed),
            (Err(_), _) => member.pin_failed.store(1, Relaxed),
            (Ok(()), None) => {}
        }
        result
    }

    /// A member leaves. The last one of a stopped pool sweeps up; so does the first one, because a
    /// handler may wait for what will not run, and then never leave.
    pub(crate) fn leave(&self) {
        loop {
            let present = self.present();
            if self.is_stopping() && (present == 1 || self.is_first_to_leave()) {
                self.sweep();
            }
            // Of two that leave at once, one finds that it is the last.
            if self.depart_from(present) {
                return;
            }
        }
    }
}
