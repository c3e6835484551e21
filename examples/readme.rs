use paceline::Pool;
use std::{thread::sleep, time::Duration};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::new()?; // one thread per CPU
    pool.post(|| {
        sleep(Duration::from_secs(1));
        println!("the slow task has ended");
    })?;
    pool.after(Duration::from_millis(20), || println!("20 ms have passed"))?;
    Ok(()) // the pool is dropped: this waits for the slow task
}
