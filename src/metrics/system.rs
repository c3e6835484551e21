//! What the kernel knows of this process and of the machine.

use super::registry::{Collector, Registry};
use crate::sys::disk;
use procfs::process::{LimitValue, Process};
use procfs::{Current, CurrentSI, ProcResult};
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
            for part in [process, network, machine] {
                if part(collector).is_err() {
                    collector.fail();
                }
            }
            self.disks.iter().for_each(|path| collector.disk(path));
            true
        });
    }
}

fn process(collector: &mut Collector) -> ProcResult<()> {
    let process = Process::myself()?;
    let stat = process.stat()?;
    let seconds = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64;
    let cpu = "CPU time of this process, in seconds";
    for (mode, ticks) in [("user", stat.utime), ("system", stat.stime)] {
        collector.counter("process_cpu_seconds", cpu, &[("mode", mode)], seconds(ticks));
    }
    let pages = stat.rss as f64 * procfs::page_size() as f64;
    collector.gauge("process_resident_memory_bytes", "Resident memory of this process", &[], pages);
    let started = procfs::boot_time_secs()? as f64 + seconds(stat.starttime);
    let help = "When this process was started, in seconds since 1970";
    collector.gauge("process_start_time_seconds", help, &[], started);
    collector.gauge("process_threads", "Threads of this process", &[], stat.num_threads as f64);
    let open = process.fd_count()? as f64;
    collector.gauge("process_open_fds", "Open descriptors of this process", &[], open);
    if let LimitValue::Value(most) = process.limits()?.max_open_files.soft_limit {
        let help = "How many descriptors this process may have";
        collector.gauge("process_max_fds", help, &[], most as f64);
    }
    Ok(())
}

fn network(collector: &mut Collector) -> ProcResult<()> {
    for (name, device) in procfs::net::dev_status()? {
        let labels = [("interface", name.as_str())];
        let mut count = |name: &str, help: &str, figure: u64| {
            collector.counter(name, help, &labels, figure as f64);
        };
        count("system_network_receive_bytes", "Bytes received", device.recv_bytes);
        count("system_network_transmit_bytes", "Bytes sent", device.sent_bytes);
        count("system_network_receive_errors", "Errors in receiving", device.recv_errs);
        count("system_network_transmit_errors", "Errors in sending", device.sent_errs);
        count("system_network_receive_drops", "Packets dropped in receiving", device.recv_drop);
        count("system_network_transmit_drops", "Packets dropped in sending", device.sent_drop);
    }
    Ok(())
}

fn machine(collector: &mut Collector) -> ProcResult<()> {
    let load = procfs::LoadAverage::current()?;
    collector.gauge("system_load1", "Load average of a minute", &[], f64::from(load.one));
    let memory = procfs::Meminfo::current()?;
    let total = memory.mem_total as f64;
    collector.gauge("system_memory_total_bytes", "Memory of the machine", &[], total);
    if let Some(available) = memory.mem_available {
        let help = "Memory that is available without swapping";
        collector.gauge("system_memory_available_bytes", help, &[], available as f64);
    }
    let cpu = procfs::KernelStats::current()?.total;
    let seconds = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64;
    let modes = [("user", cpu.user), ("system", cpu.system), ("idle", cpu.idle)];
    for (mode, ticks) in modes {
        let help = "CPU time of the machine, in seconds";
        collector.counter("system_cpu_seconds", help, &[("mode", mode)], seconds(ticks));
    }
    Ok(())
}

impl Collector {
    /// The free space and the size of the file system that `path` is on: `system_disk_free_bytes` and
    /// `system_disk_total_bytes`, with the label `path`.
    pub fn disk(&mut self, path: impl AsRef<Path>) {
        let Ok(space) = disk::space(path.as_ref()) else { return self.fail() };
        let path = path.as_ref().to_string_lossy();
        let labels = [("path", &*path)];
        let free = "Free space that may be used, of the file system of a path";
        self.gauge("system_disk_free_bytes", free, &labels, space.free as f64);
        let total = "Size of the file system of a path";
        self.gauge("system_disk_total_bytes", total, &labels, space.total as f64);
    }
}
