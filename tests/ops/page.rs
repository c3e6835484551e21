//! The live page in a real browser, by `page.py`, and the README's picture of it, which is made where `PACELINE_BLESS` is
//! set.

use super::common::{Gate, hang_guard, skipped};
use paceline::http::{Http, Request, Response};
use paceline::hub::{Hub, Message, Overflow};
use paceline::ops::Ops;
use paceline::{Flow, Pin, Pool};
use std::env;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const TOKEN: &str = "correct-horse-battery";
const CLIENT: &str = "playwright==1.65.2";
const PICTURE: &str = "docs/live.png";

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Python with the browser's client, and the browser. None: they are not here.
fn browser() -> Option<(PathBuf, &'static str)> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let Some(browser) = names.into_iter().find(is_there) else {
        skipped("there is no chromium");
        return None;
    };
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    let runs = |command: &mut Command| command.output().is_ok_and(|told| told.status.success());
    let python = place.join("bin/python");
    let is_made = runs(Command::new(&python).args(["-c", "import playwright"]))
        || runs(Command::new("python3").args(["-m", "venv"]).arg(&place))
            && runs(Command::new(&python).args(["-m", "pip", "install", "--quiet", CLIENT]));
    if !is_made {
        skipped(format_args!("{CLIENT} cannot be installed from a package index"));
        return None;
    }
    // It wants to know where the browser is.
    let which = Command::new("sh").args(["-c", "command -v \"$0\"", browser]).output().ok()?;
    let path = String::from_utf8(which.stdout).ok()?.trim().to_owned();
    Some((python, path.leak()))
}

/// Its closure is what blocks, and is named after this.
fn holds_its_thread(pool: &Pool, gate: &Gate) {
    let gate = gate.clone();
    pool.post(move || gate.wait()).unwrap();
}

/// A page of a pool with a bridge that finds no broker, and a message that its export has no room for.
#[cfg(feature = "nats")]
fn bridged() -> Option<(Ops, Hub, paceline::bridge::Bridge)> {
    use paceline::bridge::{Bridge, Export, Import};
    let pool = Pool::builder().name("bridged").threads(1).build().unwrap();
    let hub = Hub::new(&pool).unwrap();
    let bridge = Bridge::nats(&hub, "nats://joe:secret@127.0.0.1:1")
        .name("away")
        .export(Export::new("orders.>").buffer(2))
        .import(Import::new("jobs").at_least_once("JOBS", "shop"))
        .import("<img/src=x/onerror=alert(1)//")
        .open()
        .unwrap();
    for _ in 0..5 {
        let _ = hub.publish("orders.a", "x").unwrap();
    }
    Some((Ops::serve(&pool, "127.0.0.1:0").unwrap(), hub, bridge))
}

#[cfg(not(feature = "nats"))]
fn bridged() -> Option<(Ops,)> {
    None
}

#[test]
fn a_browser_shows_who_leads_and_what_is_held_up() {
    let _guard = hang_guard();
    let Some((python, chromium)) = browser() else { return };
    let pool = Pool::builder().name("watched").threads(6).pin(Pin::None).build().unwrap();
    // Two timers whose handlers outlast the watch's period: it steps in.
    let busy: Vec<_> = (0..2)
        .map(|_| {
            pool.every(Duration::from_millis(20), || {
                sleep(Duration::from_millis(15));
                Flow::Wait
            })
        })
        .collect();
    let hub = Hub::new(&pool).unwrap();
    let lagging =
        ["orders.late", "<img/src=x/onerror=alert(1)//", "\u{202e}239.late"].map(|pattern| {
            let late = hub.subscription(pattern).capacity(100).overflow(Overflow::DropOldest);
            let late = late.serve(|_: &Message| sleep(Duration::from_millis(200))).unwrap();
            (pattern, late)
        });
    let keys = lagging.each_ref().map(|(pattern, _)| *pattern);
    let published = hub.clone();
    let feeding = pool.every(Duration::from_millis(20), move || {
        keys.iter().for_each(|key| drop(published.publish(key, b"one more")));
        Flow::Wait
    });
    let http = Http::builder(&pool)
        .listen("127.0.0.1:0")
        .route("GET", "/", |_: &Request<'_>, response: Response| response.text("hello"))
        .serve()
        .unwrap();
    let asking = http.addresses()[0].clone();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let closed = Ops::builder(&pool).token(TOKEN).serve("127.0.0.1:0").unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::create_dir_all(&folder).unwrap();

    let many = Pool::builder().name("many").threads(64).pin(Pin::None).build().unwrap();
    let mut many_ops = Some(Ops::serve(&many, "127.0.0.1:0").unwrap());
    let bridged = bridged();
    let mut child = Command::new(python)
        .arg(source("tests/ops/page.py"))
        .arg(chromium)
        .arg(format!("http://{}/", ops.addresses()[0]))
        .args([&format!("http://{}/", closed.addresses()[0]), TOKEN])
        .arg(&folder)
        .arg(format!("http://{}/", many_ops.as_ref().unwrap().addresses()[0]))
        .args(bridged.iter().map(|(ops, ..)| format!("http://{}/", ops.addresses()[0])))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = std::sync::Arc::clone(&stop);
    let client = std::thread::spawn(move || {
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            assert_eq!(super::client::get(&asking, "/").body, "hello");
            sleep(Duration::from_millis(20));
        }
    });
    let gate = Gate::new();
    let mut told = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        match &*line {
            "block" => holds_its_thread(&pool, &gate),
            "open" => gate.open(),
            "end" => drop(many_ops.take()),
            _ => {}
        }
        told.push(line);
    }
    gate.open();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    client.join().unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(told, ["block", "open", "end", "done"]);
    drop((busy, feeding, lagging));
}

#[test]
fn the_picture_of_the_readme_is_there() {
    if env::var_os("PACELINE_BLESS").is_none_or(|value| value != "picture") {
        let picture = std::fs::read(source(PICTURE)).expect("PACELINE_BLESS=picture makes it");
        assert!(picture.starts_with(b"\x89PNG") && picture.len() < 300_000);
        return;
    }
    let Some((python, chromium)) = browser() else { return };
    let test = env::current_exe().unwrap();
    let example = test.ancestors().nth(2).unwrap().join("examples/observe");
    let mut observe = Command::new(example)
        .args(["127.0.0.1:0", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(observe.stdout.take().unwrap()).lines();
    let page = lines.next().unwrap().unwrap().replace("the live page: ", "");
    let server = lines.next().unwrap().unwrap();
    let server =
        server.trim_start_matches("the server: http://").split('/').next().unwrap().to_owned();
    std::thread::spawn(move || {
        loop {
            // It ends with the process.
            let Ok(mut stream) = std::net::TcpStream::connect(&server) else { return };
            let _gone = std::io::Write::write_all(&mut stream, b"GET /hello HTTP/1.0\r\n\r\n");
            let _gone = std::io::copy(&mut stream, &mut std::io::sink());
            sleep(Duration::from_millis(5));
        }
    });
    let made = Command::new(python)
        .arg(source("tests/ops/page.py"))
        .args([chromium, &page])
        .arg(source(PICTURE))
        .status()
        .unwrap();
    let _ended = observe.kill();
    let _ended = observe.wait();
    assert!(made.success());
}
