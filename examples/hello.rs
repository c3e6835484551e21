//! A task, ten tasks, a timer.
//!
//! ```text
//! cargo run -p examples --example hello
//! ```

use paceline::{Pool, Task};
use std::error::Error;
use std::sync::mpsc;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    // A thread per CPU that this process may use.
    let pool = Pool::new()?;

    // A task, and its value.
    let answer = pool.submit(|| 6 * 7)?;
    println!("a task says {}", answer.wait()?);

    // Ten tasks. They run on any thread in any order; the values are taken in this one.
    let squares: Vec<Task<u32>> =
        (1..=10).map(|n| pool.submit(move || n * n)).collect::<Result<_, _>>()?;
    let values = squares.into_iter().map(Task::wait).collect::<Result<Vec<_>, _>>()?;
    println!("ten tasks say {values:?}");

    // A timer, which ends by itself: nothing need be kept. It runs late if at all, never early.
    let (said, hear) = mpsc::channel();
    let (began, delay) = (Instant::now(), Duration::from_millis(20));
    pool.after(delay, move || said.send(began.elapsed() >= delay).unwrap_or(()))?;
    println!("a timer says that 20 ms have passed: {}", hear.recv()?);

    // What was accepted has ended, and every task is accounted for.
    let report = pool.shutdown(Duration::from_secs(1));
    println!("drained: {}, the books balance: {}", report.drained, pool.audit().balances());
    Ok(())
}
