//! Takes orders, stops, starts again, and replays what was ordered before, with what comes now behind it.
//!
//! ```text
//! cargo run -p examples --example hub_history --features archive
//! ```

use paceline::Pool;
use paceline::hub::history::{ArchiveOptions, History, ReplayFrom};
use paceline::hub::{Hub, Message};
use std::error::Error;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// A hub that keeps orders in a file.
fn open(file: &Path) -> paceline::Result<Hub> {
    let history = History::of("orders.>").archive(ArchiveOptions::at(file));
    Hub::builder(&Pool::new()?).history(history).build()
}

/// The program's first run.
fn take_orders(hub: &Hub, say: &mut impl FnMut(String)) -> paceline::Result<()> {
    for order in ["apples", "pears", "plums"] {
        let receipt = hub.publish("orders.eu", order)?;
        say(format!("ordered {order}: number {}", receipt.sequence));
    }
    // Nobody keeps this.
    hub.publish("prices.eu", "3.50")?;
    // From here on a power failure cannot take them away; by itself it would be so some milliseconds later.
    hub.flush_histories()
}

/// Its second.
fn replay_orders(hub: &Hub, say: &mut impl FnMut(String)) -> Result<(), Box<dyn Error>> {
    let (tell, told) = mpsc::channel();
    let replay = hub.replay("orders.>", ReplayFrom::Beginning).serve(move |m: &Message<'_>| {
        let order = String::from_utf8_lossy(m.payload());
        let _nobody_listens_any_more = tell.send(format!("{} of {}", order, m.key()));
    })?;
    // Whether the replay has come here or not: it gets each order once, and this one last.
    hub.publish("orders.us", "cherries")?;
    for _ in 0..4 {
        say(format!("replayed {}", told.recv_timeout(Duration::from_secs(60))?));
    }
    say(format!("lost: {}", replay.stats().lost));
    Ok(())
}

pub fn story(folder: &Path, mut say: impl FnMut(String)) -> Result<(), Box<dyn Error>> {
    let file = folder.join("orders.db");
    let hub = open(&file)?;
    take_orders(&hub, &mut say)?;
    stop(hub)?;
    say("stopped, and started again".into());
    let hub = open(&file)?;
    replay_orders(&hub, &mut say)?;
    let stats = hub.history_stats().remove(0);
    say(format!("recorded by this run: {}", stats.recorded));
    stop(hub)
}

fn stop(hub: Hub) -> Result<(), Box<dyn Error>> {
    let report = hub.pool().shutdown(Duration::from_secs(60));
    if report.drained { Ok(()) } else { Err(format!("not all was done: {report:?}").into()) }
}

#[allow(dead_code, reason = "the test of this example has a main of its own")]
fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("paceline-orders-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let told = story(&folder, |line| println!("{line}"));
    std::fs::remove_dir_all(&folder)?;
    told
}
