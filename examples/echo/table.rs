//! What the example prints.

use paceline::Stats;
use std::fmt;

/// Who has led, and what each thread has done.
pub struct Threads<'a>(pub &'a Stats);

impl fmt::Display for Threads<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>6} {:>4} {:>9} {:>10} {:>8} {:>10} {:>10} {:>8} {:>8} {:>8}",
            "thread",
            "cpu",
            "led",
            "hand-overs",
            "rescues",
            "events",
            "handled",
            "stolen",
            "parked",
            "ticks",
        )?;
        for (index, thread) in self.0.threads.iter().enumerate() {
            let cpu = thread.cpu.map_or("any".into(), |cpu| cpu.to_string());
            write!(
                f,
                "\n{index:>6} {cpu:>4} {:>9} {:>10} {:>8} {:>10} {:>10} {:>8} {:>8} {:>8}",
                thread.terms,
                thread.handovers,
                thread.rescues,
                thread.events,
                thread.handled,
                thread.stolen,
                thread.parked,
                thread.ticks,
            )?;
        }
        Ok(())
    }
}
