//! What it costs those in the process that a key is exported, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use paceline::bridge::Bridge;
use paceline::hub::Message;

use super::{COST, Figures, PACE, PATIENCE, ours, pace, payload, percentiles};

pub const ALONE: &str = "a key that is not exported";
pub const EXPORTED: &str = "a key that is exported";
pub const SUBJECTS: [&str; 2] = [ALONE, EXPORTED];

/// One subscriber counts: flat out in bursts that fit its mailbox, and then at a pace.
pub fn measure(subject: &str, url: &str, window: Duration) -> Result<Figures, String> {
    const BURST: u64 = 1024;
    let error = |error: paceline::Error| error.to_string();
    let hub = ours::hub()?;
    let _bridge = match subject {
        EXPORTED => Some(ours::open(Bridge::nats(&hub, url).export("a"))?),
        _ => None,
    };
    let counted = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&counted);
    let flat_out = hub
        .subscription("a")
        .capacity(BURST as usize)
        .serve(move |_: &Message<'_>| {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .map_err(error)?;
    let (start, mut published) = (Instant::now(), 0);
    while start.elapsed() < window {
        for _ in 0..BURST {
            let _receipt = hub.publish("a", &[b'x'; super::SIZE][..]).map_err(error)?;
        }
        published += BURST;
        while counted.load(Ordering::Relaxed) < published {
            if start.elapsed() > window + PATIENCE {
                return Err("a message is lost".into());
            }
            std::thread::yield_now();
        }
    }
    let cost = start.elapsed().as_secs_f64() * 1e9 / published as f64;
    drop(flat_out);
    let (tell, came) = mpsc::channel();
    let _paced = hub
        .subscribe("a", move |message: &Message<'_>| {
            let now = Instant::now();
            let number = u64::from_le_bytes(message.payload()[..8].try_into().expect("8 bytes"));
            let _gone = tell.send((number, now));
        })
        .map_err(error)?;
    let mut sent = Vec::new();
    pace((PACE * window.as_secs_f64()) as u64, |number| {
        sent.push(Instant::now());
        hub.publish("a", payload(number)).map(drop).map_err(error)
    })?;
    let mut taken = Vec::new();
    for _ in 0..sent.len() {
        let (number, at) = came.recv_timeout(PATIENCE).map_err(|_| "a message is lost")?;
        taken.push(at.duration_since(sent[number as usize]));
    }
    let mut figures = percentiles(taken);
    figures.push((COST, cost));
    Ok(figures)
}
