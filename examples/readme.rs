use paceline::http::{Http, Request, Response};
use paceline::{Pool, Signals, ops::Ops};
use std::{thread::sleep, time::Duration};

fn main() -> paceline::Result<()> {
    let pool = Pool::builder().threads(4).build()?;
    let jobs = pool.clone();
    let order = move |_: &Request<'_>, response: Response| {
        sleep(Duration::from_secs(1)); // a slow database: no other request waits for it
        jobs.post(|| println!("a job: send a mail"))?;
        response.json("ordered")
    };
    let _http =
        Http::builder(&pool).listen("127.0.0.1:8080").route("GET", "/order", order).serve()?;
    let _page = Ops::serve(&pool, "127.0.0.1:9090")?;
    println!("http://127.0.0.1:8080/order is served, http://127.0.0.1:9090 is its live page");
    Signals::shut_down(&pool, Duration::from_secs(30))?.wait(); // on SIGTERM, when all is done
    Ok(())
}
