//! The same task, with lane, handle and limit, driven from C; and what Python's standard library has for it.

use std::process::Command;
use std::time::Duration;

use super::peers::Peer;

pub const IN_C: &str = "paceline task in C";
pub const STANDARD: &str = "ThreadPoolExecutor";
pub const ALL: [&str; 2] = [IN_C, STANDARD];

/// As in [`peers`](super::peers): two threads, and the older half of 4096 handles is redeemed when there are
/// so many. It prints nanoseconds per task by the clock, and of CPU time.
const SCRIPT: &str = "
import sys, time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

def tick():
    pass

def run(executor, seconds):
    kept, count, end = deque(), 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(256):
            kept.append(executor.submit(tick))
        count += 256
        if len(kept) >= 4096:
            for _ in range(2048):
                kept.popleft().result()
    for future in kept:
        future.result()
    return count

with ThreadPoolExecutor(2) as executor:
    window = float(sys.argv[1])
    run(executor, window / 3)
    start, cpu = time.perf_counter_ns(), time.process_time_ns()
    count = run(executor, window)
    print((time.perf_counter_ns() - start) / count, (time.process_time_ns() - cpu) / count)
";

/// Nanoseconds per task, by the clock and of CPU time.
pub fn standard(window: Duration) -> Result<(f64, f64), String> {
    let mut command = Command::new("python3");
    command.args(["-c", SCRIPT, &window.as_secs_f64().to_string()]);
    let output = command.output().map_err(|error| format!("python3: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut figures = text.split_whitespace().map(str::parse);
    match (figures.next(), figures.next()) {
        (Some(Ok(time)), Some(Ok(cpu))) => Ok((time, cpu)),
        _ => Err(format!("it printed {text:?}")),
    }
}

#[cfg(has_paceline)]
pub fn in_c() -> Result<Box<dyn Peer>, String> {
    Ok(Box::new(shim::InC::new()))
}

#[cfg(not(has_paceline))]
pub fn in_c() -> Result<Box<dyn Peer>, String> {
    Err("there is no C++ compiler".into())
}

#[cfg(has_paceline)]
mod shim {
    use super::super::peers::{Peer, WORKERS};
    use std::ffi::{c_int, c_void};

    // SAFETY: as in cpp/shim_paceline.cpp.
    unsafe extern "C" {
        fn paceline_workers_new(threads: c_int) -> *mut c_void;
        fn paceline_workers_free(workers: *mut c_void);
        fn paceline_workers_submit(workers: *mut c_void, count: usize);
        fn paceline_workers_settle(workers: *mut c_void);
    }

    /// What [`paceline_workers_new`] has made.
    pub struct InC(*mut c_void);

    impl InC {
        pub fn new() -> Self {
            // SAFETY: it aborts rather than fail.
            Self(unsafe { paceline_workers_new(WORKERS as c_int) })
        }
    }

    impl Peer for InC {
        fn submit(&mut self, count: usize) {
            // SAFETY: it lives, and this is the only thread that uses it.
            unsafe { paceline_workers_submit(self.0, count) }
        }

        fn settle(&mut self) {
            // SAFETY: as above.
            unsafe { paceline_workers_settle(self.0) }
        }
    }

    impl Drop for InC {
        fn drop(&mut self) {
            // SAFETY: as above, and this is the last use.
            unsafe { paceline_workers_free(self.0) }
        }
    }
}
