//! What the kernel knows of this process and of the machine.

use super::registry::{Collector, Registry};
use crate::sys::machine::{self, Interface};
use std::io;
use std::path::{Path, PathBuf};

/// Which figures of the process and the system a registry shall have: CPU time, its start, resident memory,
/// threads, descriptors, network counters, load, memory of the machine, and free space of file systems. They are
/// read from `/proc` at each snapshot. What cannot be read is left out, and counted as a failure.
#[derive(Clone, Debug, Default)]
#[must_use = "they are in no registry before `attach`"]
pub struct SystemFigures {
    disks: Vec<PathBuf>,
}

impl SystemFigures {
    /// Everything but file systems.
    pub fn new() -> Self {
        Self::default()
    }

    /// And the file system that this path is on.
    pub fn disk(mut self, path: impl AsRef<Path>) -> Self {
        self.disks.push(path.as_ref().into());
        self
    }

    /// Puts them into a registry.
    pub fn attach(self, registry: &Registry) {
        registry.collect(move |collector| {
            for part in [process, network, whole_machine] {
                if part(collector).is_err() {
                    collector.fail();
                }
            }
            self.disks.iter().for_each(|path| collector.disk(path));
            true
        });
    }
}

fn process(collector: &mut Collector) -> io::Result<()> {
    let process = machine::process()?;
    let cpu = "CPU time of this process, in seconds";
    for (mode, time) in [("user", process.user), ("system", process.system)] {
        collector.counter("process_cpu_seconds", cpu, &[("mode", mode)], time);
    }
    let help = "Resident memory of this process";
    collector.gauge("process_resident_memory_bytes", help, &[], process.resident_bytes);
    let help = "When this process was started, in seconds since 1970";
    let started = machine::cpu()?.started + process.started;
    collector.gauge("process_start_time_seconds", help, &[], started);
    collector.gauge("process_threads", "Threads of this process", &[], process.threads);
    let open = machine::descriptors()? as f64;
    collector.gauge("process_open_fds", "Open descriptors of this process", &[], open);
    if let Some(most) = machine::most_descriptors()? {
        let help = "How many descriptors this process may have";
        collector.gauge("process_max_fds", help, &[], most as f64);
    }
    Ok(())
}

fn network(collector: &mut Collector) -> io::Result<()> {
    for Interface { name, received, sent } in machine::interfaces()? {
        let labels = [("interface", name.as_str())];
        let mut count = |name: &str, help: &str, figure: f64| {
            collector.counter(name, help, &labels, figure);
        };
        count("system_network_receive_bytes", "Bytes received", received.bytes);
        count("system_network_transmit_bytes", "Bytes sent", sent.bytes);
        count("system_network_receive_errors", "Errors in receiving", received.errors);
        count("system_network_transmit_errors", "Errors in sending", sent.errors);
        count("system_network_receive_drops", "Packets dropped in receiving", received.drops);
        count("system_network_transmit_drops", "Packets dropped in sending", sent.drops);
    }
    Ok(())
}

fn whole_machine(collector: &mut Collector) -> io::Result<()> {
    collector.gauge("system_load1", "Load average of a minute", &[], machine::load()?);
    let memory = machine::memory()?;
    for (name, help, figure) in [
        ("system_memory_total_bytes", "Memory of the machine", "MemTotal"),
        (
            "system_memory_available_bytes",
            "Memory that is available without swapping",
            "MemAvailable",
        ),
    ] {
        memory(figure).into_iter().for_each(|bytes| collector.gauge(name, help, &[], bytes));
    }
    let cpu = machine::cpu()?;
    for (mode, time) in [("user", cpu.user), ("system", cpu.system), ("idle", cpu.idle)] {
        let help = "CPU time of the machine, in seconds";
        collector.counter("system_cpu_seconds", help, &[("mode", mode)], time);
    }
    Ok(())
}

impl Collector {
    /// The free space and the size of the file system that `path` is on: `system_disk_free_bytes` and
    /// `system_disk_total_bytes`, with the label `path`.
    pub fn disk(&mut self, path: impl AsRef<Path>) {
        let Ok(space) = machine::space(path.as_ref()) else { return self.fail() };
        let path = path.as_ref().to_string_lossy();
        let labels = [("path", &*path)];
        let free = "Free space that may be used, of the file system of a path";
        self.gauge("system_disk_free_bytes", free, &labels, space.free as f64);
        let total = "Size of the file system of a path";
        self.gauge("system_disk_total_bytes", total, &labels, space.total as f64);
    }
}
