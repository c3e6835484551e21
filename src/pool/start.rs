//! From settings to running threads. Either everything starts, or nothing is left behind.

use super::config::{Builder, Hook, SourceKind};
use super::leader::HandleSet;
use super::placement::{Occupancy, Pin};
use super::shared::Shared;
use super::shutdown::{Life, Threads};
use super::worker::Worker;
use super::{Pool, context, log};
use crate::contain::contain;
use crate::error::{Error, Result};
use crate::source::Source;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sys::thread::{self, JoinHandle};
use crate::sys::topology::Topology;
use std::sync::{Arc, mpsc};

impl Pool {
    /// A pool with default settings: a thread per usable CPU, epoll, deferred promotion.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new() -> Result<Pool> {
        Builder::default().build()
    }

    /// Settings to build a pool from.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// Builds the pool and starts its threads.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field, its value and the allowed range. [`Error::Os`] if the
    /// system refuses a thread or a descriptor. Whatever had been started is stopped again.
    pub fn build(self) -> Result<Pool> {
        let started = start(&self);
        // A hook's last reference may go with the settings: its destructor must not cost the pool.
        let _panicked = contain(|| drop(self));
        started
    }
}

fn start(config: &Builder) -> Result<Pool> {
    config.validate()?;
    let machine = Topology::of_this_machine();
    let ordinary = config.threads.unwrap_or_else(|| machine.parallelism());
    let threads = ordinary + config.reserved.iter().sum::<usize>();
    let leaders = config.resolve_leaders(ordinary)?;
    let pin = config.pin.clone().unwrap_or_else(|| Pin::by_default(threads, &machine));
    let placement = Occupancy::of_process().place(&pin, threads, &machine)?;
    let shared = Shared::new(config, ordinary, open_sets(config, leaders)?, placement)?;
    let threads = match spawn_all(config, &shared, threads) {
        Ok(threads) => threads,
        Err((started, error)) => {
            shared.stop();
            started.into_iter().for_each(JoinHandle::join);
            return Err(error);
        }
    };
    let Shared { ready, log, .. } = &*shared;
    log::started(log, threads.len(), ready.handles.sets.len(), &ready.members);
    Ok(Pool::from_life(Life { shared, threads: Threads::new(threads) }))
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
        shared.ready.members.arrive();
        match thread::spawn(&name, config.stack_size, Box::new(body)) {
            Ok(thread) => started.push(thread),
            Err(error) => {
                shared.ready.members.depart();
                shared.ready.handles.changed.announce();
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
    let call = move |shared: &Shared, hook: Option<Hook>| {
        let Some(hook) = hook else { return };
        shared.run_hook(|| hook(index));
        // It may be the last reference.
        shared.run_hook(|| drop(hook));
    };
    move || {
        shared.ready.members[index].kernel_thread.store(thread::id(), Relaxed);
        let result = pin_current(&shared, index);
        let _nobody_listens = pinned.send(result);
        drop(pinned);
        // Hooks, and destructors that run while this thread sweeps up, are inside too: what waits for
        // the pool's members must not wait for this one.
        let _member = context::enter(&shared, index);
        call(&shared, on_start);
        Worker::new(&shared, index, u64::MAX).run();
        call(&shared, on_stop);
        shared.ready.members[index].kernel_thread.store(0, Relaxed);
        shared.leave();
    }
}

fn pin_current(shared: &Shared, thread: usize) -> Result<()> {
    let member = &shared.ready.members[thread];
    let result = shared.placement.pin_current(thread);
    match (&result, shared.placement.cpu(thread)) {
        (Ok(()), Some(cpu)) => member.pinned.store(cpu as u32 + 1, Relaxed),
        (Err(_), _) => member.pin_failed.store(1, Relaxed),
        (Ok(()), None) => {}
    }
    result
}
