//! What is on disk: restarts, kills, full disks.

use super::replay::joins;
use super::*;
use crate::common::{Random, hang_guard, in_child_blocking, is_child, start_child};
use paceline::hub::history::{
    Archive, ArchiveOptions, Durability, Limits, LinesOptions, ReplayFrom, WhenFull, read_lines,
};
use paceline::hub::{DeadFilter, ErrorFilter, Severity};
use paceline::{Error, Pool};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self::at(std::env::temp_dir().join(format!("paceline-{name}-{}", std::process::id())))
    }

    fn at(path: PathBuf) -> Self {
        let _of_a_run_before = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whatever is committed can only be read from the disk.
fn archived(path: PathBuf) -> History {
    let archive = ArchiveOptions::at(path).durability(Durability::Process);
    History::of(">").keep(Limits::of_count(0)).archive(archive)
}

#[test]
fn the_disk_is_joined_to_what_is_live() {
    let _guard = hang_guard();
    let folder = Folder::new("joins");
    joins(archived(folder.file("a")).commit(256, Duration::from_millis(1)));
}

/// Goal: who pulls nothing, or no more than the letters that come again, passes nothing that is on the disk.
#[test]
fn a_pull_without_room_passes_nothing() {
    let _guard = hang_guard();
    let folder = Folder::new("room");
    let pool = pool(1);
    let hub = hub(&pool, archived(folder.file("a")));
    (0..3).for_each(|_| {
        let _ = hub.publish("a", "x").unwrap();
    });
    hub.flush_histories().unwrap();
    let replay = hub.replay(">", ReplayFrom::Beginning).mailbox().unwrap();
    let mut taken = Vec::new();
    assert_eq!(replay.recv_batch(&mut taken, 0).unwrap(), 0);
    assert_eq!(replay.recv_batch(&mut taken, 1).unwrap(), 1);
    replay.bury(&taken[0], None, 1).unwrap();
    assert_eq!(hub.redeliver(&DeadFilter::all()).unwrap().enqueued, 1);
    assert_eq!(replay.recv_batch(&mut taken, 1).unwrap(), 1);
    assert_eq!(replay.recv_batch(&mut taken, 9).unwrap(), 2);
    let sequences: Vec<_> = taken.iter().map(|received| received.sequence()).collect();
    assert_eq!((sequences, replay.stats().lost), (vec![1, 1, 2, 3], 0));
    drop((replay, hub));
    finish(&pool);
}

#[test]
fn a_restart_goes_on() {
    let _guard = hang_guard();
    let folder = Folder::new("restart");
    let path = folder.file("a");
    for run in 0..3u64 {
        let pool = pool(2);
        let hub = hub(&pool, archived(path.clone()));
        assert_eq!(hub.query(&everything()).unwrap().len() as u64, run * 100);
        let got = Got::default();
        let replay =
            hub.replay(">", ReplayFrom::Sequence(run * 100 - run)).serve(got.handler()).unwrap();
        (0..100).for_each(|_| {
            let _ = hub.publish("a", "").unwrap();
        });
        let last = (run + 1) * 100;
        got.until_has(last);
        let first = (run * 100 - run).max(1);
        assert_eq!(got.sequences(), (first..=last).collect::<Vec<_>>());
        drop((replay, hub));
        finish(&pool);
    }
}

#[test]
fn a_flush_makes_durable() {
    let _guard = hang_guard();
    let folder = Folder::new("flush");
    let pool = pool(1);
    let hub = hub(&pool, archived(folder.file("a")).commit(1000, Duration::from_secs(3600)));
    assert_eq!(hub.history_stats()[0].durable, Some(0));
    let sent: Vec<u64> = (0..5).map(|_| hub.publish("a", "x").unwrap().sequence).collect();
    let last = sent[4];
    let stats = &hub.history_stats()[0];
    assert_eq!((stats.durable, stats.waiting), (Some(0), 5));
    hub.flush_histories().unwrap();
    let stats = &hub.history_stats()[0];
    assert_eq!((stats.durable, stats.waiting, stats.commits), (Some(last), 0, 1));
    assert_eq!(Archive::open(folder.file("a")).unwrap().query(&everything()).unwrap().len(), 5);
    drop(hub);
    finish(&pool);
}

/// Goal: commits come by themselves, by number and by time.
#[test]
fn commits_come_by_themselves() {
    let _guard = hang_guard();
    let folder = Folder::new("commits");
    let pool = pool(1);
    for (batch, delay) in [(10, Duration::from_secs(3600)), (1000, Duration::from_millis(1))] {
        let file = folder.file(&format!("{batch}"));
        let hub = hub(&pool, archived(file).commit(batch, delay));
        (0..10).for_each(|_| {
            let _ = hub.publish("a", "x").unwrap();
        });
        until("a commit", || hub.history_stats()[0].durable == Some(10));
    }
    finish(&pool);
}

#[test]
fn lines_are_written_beside() {
    let _guard = hang_guard();
    let folder = Folder::new("beside");
    let pool = pool(1);
    let lines = LinesOptions::at(folder.file("lines"));
    let hub = hub(&pool, archived(folder.file("a")).lines(lines));
    (0..500).for_each(|n| {
        let _ = hub.publish("a.b", n.to_string()).unwrap();
    });
    hub.flush_histories().unwrap();
    let mut read = Vec::new();
    let keep = |stored| {
        read.push(stored);
        Ok(())
    };
    assert_eq!(read_lines(folder.file("lines"), &everything(), keep).unwrap().messages, 500);
    assert_eq!(read, hub.query(&everything()).unwrap());
    drop(hub);
    finish(&pool);
}

/// What the killed child does: it publishes, and says what is durable, and the first and the last that it has
/// published.
fn publish_until_killed(path: PathBuf) -> ! {
    let pool = pool(2);
    let hub = hub(&pool, archived(path).commit(64, Duration::from_millis(1)));
    let mut random = Random::new(u64::from(std::process::id()));
    let mut publish = move |hub: &Hub| {
        let payload = vec![random.next() as u8; random.below(2000) as usize];
        hub.publish("a.b", payload).unwrap().sequence
    };
    let first = publish(&hub);
    loop {
        let last = (0..100).map(|_| publish(&hub)).last().unwrap();
        println!("{} {first} {last}", hub.history_stats()[0].durable.unwrap());
    }
}

/// What such a child has said.
#[derive(Default)]
struct Said {
    durable: u64,
    first: u64,
    last: u64,
}

impl Said {
    /// Whether the line was a word of the child's.
    fn hear(&mut self, line: &str) -> bool {
        let numbers: Vec<u64> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [durable, first, last] = numbers[..] else { return false };
        self.durable = self.durable.max(durable);
        self.first = first;
        // The last line may be cut short, and its number smaller.
        self.last = self.last.max(last);
        true
    }
}

/// Goal: what was said to be durable is there after a kill at any time, all of it, once, and no sequence that
/// was seen is given again. Method: a child that publishes as fast as it can, killed after so many words of
/// its, ten times over, with the same file.
#[test]
fn a_kill_takes_nothing_that_was_durable() {
    const TEST: &str = "archive::a_kill_takes_nothing_that_was_durable";
    let name = |process: u32| std::env::temp_dir().join(format!("paceline-kill-{process}"));
    if is_child(TEST) {
        publish_until_killed(name(std::os::unix::process::parent_id()).join("a"));
    }
    let _guard = hang_guard();
    let folder = Folder::at(name(std::process::id()));
    let path = folder.file("a");
    let mut random = Random::new(7);
    let mut all: Vec<(u64, u64)> = Vec::new();
    for _ in 0..10 {
        let mut child = start_child(TEST, &[], Stdio::piped());
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut said = Said::default();
        let mut words = 1 + random.below(60);
        while words > 0 {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "the child has ended");
            words -= u64::from(said.hear(&line));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before the kill counts, too.
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        rest.lines().for_each(|line| {
            said.hear(line);
        });
        let seen = all.last().map_or(0, |(_, last)| *last);
        assert!(said.first > seen, "{} was seen, and {} comes again", seen, said.first);
        // Durable of this run, and everything that was seen.
        all.push((said.durable, said.last));
        let found = Archive::open(&path).unwrap().query(&everything()).unwrap();
        assert!(found.is_sorted_by(|a, b| a.sequence() < b.sequence()));
        let whole = |stored: &Stored| stored.payload().windows(2).all(|pair| pair[0] == pair[1]);
        assert!(found.iter().all(whole));
        let found: BTreeSet<u64> = found.iter().map(Stored::sequence).collect();
        for sequence in said.first..=said.durable {
            assert!(found.contains(&sequence), "{sequence} of {} is lost", said.durable);
        }
        let mut before = all.iter().filter(|(durable, _)| *durable > 0);
        assert!(before.all(|(durable, _)| found.contains(durable)));
    }
    assert!(all.iter().any(|(durable, _)| *durable > 0), "nothing was ever durable");
}

/// Goal: when the histories are closed, a copy of the file has everything, no descriptor is left, another hub goes on at
/// once, and nothing is taken that would not be written; a history without files goes on. Method: a hub that stays.
#[test]
fn closed_histories_are_in_their_files() {
    let _guard = hang_guard();
    let folder = Folder::new("closed");
    let path = folder.file("a");
    let pool = pool(2);
    for (run, when_full) in [WhenFull::GiveUp, WhenFull::default()].into_iter().enumerate() {
        let history = archived(path.clone()).when_full(when_full);
        let hub = Hub::builder(&pool).history(history).history(History::of("b")).build().unwrap();
        let replay = hub.replay("a", ReplayFrom::Beginning).mailbox().unwrap();
        (0..1000).for_each(|_| {
            let _ = hub.publish("a", "x").unwrap();
        });
        hub.close_histories().unwrap();
        hub.close_histories().unwrap();
        let open = fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
        let left: Vec<_> = open.filter(|file| file.starts_with(&folder.0)).collect();
        assert_eq!((left, folder.0.read_dir().unwrap().count()), (Vec::<PathBuf>::new(), 1));
        let copy = folder.file("copy");
        fs::copy(&path, &copy).unwrap();
        let kept = Archive::open(&copy).unwrap().query(&everything()).unwrap().len();
        assert_eq!(kept, 1000 * (run + 1));
        for file in ["copy", "copy-wal", "copy-shm"] {
            let _gone = fs::remove_file(folder.file(file));
        }
        assert!(matches!(hub.publish("a", "x"), Err(Error::ShutDown)));
        assert!(matches!(hub.query(&everything()), Err(Error::ShutDown)));
        hub.flush_histories().unwrap();
        let stats = hub.history_stats().remove(0);
        assert_eq!((stats.recorded, stats.waiting, stats.given_up), (1000, 0, 0));
        assert_eq!(replay.stats().lost, 0);
        drop((replay, hub));
    }
    finish(&pool);
}

/// Goal: a hub whose archive cannot be written is not closed, and can be when there is room again.
#[test]
fn what_cannot_be_written_is_not_closed() {
    in_child_blocking(&[libc::SIGXFSZ], || {
        let _guard = hang_guard();
        let folder = Folder::new("unclosed");
        let pool = pool(1);
        let hub = hub(&pool, archived(folder.file("a")).commit(1000, Duration::from_secs(3600)));
        let _ = hub.publish("a", vec![7; 100_000]).unwrap();
        crate::common::limit(libc::RLIMIT_FSIZE, 1);
        assert!(matches!(hub.close_histories(), Err(Error::Os { .. })));
        crate::common::limit(libc::RLIMIT_FSIZE, libc::RLIM_INFINITY);
        let _ = hub.publish("a", "x").unwrap();
        hub.close_histories().unwrap();
        assert_eq!(Archive::open(folder.file("a")).unwrap().query(&everything()).unwrap().len(), 2);
        drop(hub);
        finish(&pool);
    });
}

/// Goal: what is durable is in the file, though the program has read the file by itself, which takes the locks of SQLite
/// away, and another program has looked into it since. Method: a child looks before and behind a commit.
#[test]
fn what_is_durable_is_found_though_others_have_looked() {
    const TEST: &str = "archive::what_is_durable_is_found_though_others_have_looked";
    let path = |process: u32| std::env::temp_dir().join(format!("paceline-look-{process}"));
    if is_child(TEST) {
        let archive = Archive::open(path(std::os::unix::process::parent_id()).join("a")).unwrap();
        println!("\nfound {}", archive.query(&everything()).unwrap().len());
        return;
    }
    let _guard = hang_guard();
    let folder = Folder::at(path(std::process::id()));
    let pool = pool(1);
    let hub = hub(&pool, archived(folder.file("a")));
    for last in [100, 1100] {
        while hub.publish("a", "x").unwrap().sequence < last {}
        hub.flush_histories().unwrap();
        assert_eq!(hub.history_stats()[0].durable, Some(last));
        for file in ["a", "a-shm"] {
            let _removed_by_the_child = fs::read(folder.file(file));
        }
        let child = start_child(TEST, &[], Stdio::piped()).wait_with_output().unwrap();
        let said = String::from_utf8(child.stdout).unwrap();
        assert!(said.contains(&format!("\nfound {last}\n")), "{last}: {said}");
    }
    drop(hub);
    finish(&pool);
}

/// Goal: on a full disk publishers go on, the error is told, what is given up is counted and is a gap to who
/// reads; when there is room the archive goes on. Method: a limit of the size of files, in a child.
#[test]
fn an_archive_has_what_lines_have_lost() {
    let _guard = hang_guard();
    let folder = Folder::new("lost-lines");
    let pool = Pool::builder().threads(1).pin(paceline::Pin::None).build().unwrap();
    let history = archived(folder.file("a")).lines(LinesOptions::at("/dev/full"));
    let hub = Hub::builder(&pool).history(history).build().unwrap();
    let _ = hub.publish("a", "kept").unwrap();
    hub.flush_histories().unwrap();
    let stats = hub.history_stats().remove(0);
    assert_eq!((stats.given_up, stats.lines_lost), (0, 1));
}

#[test]
fn a_full_disk_gives_up_and_goes_on() {
    in_child_blocking(&[libc::SIGXFSZ], || {
        let _guard = hang_guard();
        let folder = Folder::new("full");
        let pool = Pool::builder().threads(2).pin(paceline::Pin::None);
        let (log, logged) = crate::common::log_of_events("info");
        let pool = pool.log(&log);
        let pool = pool.build().unwrap();
        let history = archived(folder.file("a")).commit(16, Duration::from_millis(1));
        let history = history.waiting(64, 1 << 20).when_full(WhenFull::GiveUp);
        let interval = Duration::from_secs(3600);
        let hub = Hub::builder(&pool).history(history).notice_interval(interval).build().unwrap();
        let publish = || hub.publish("a", vec![7; 1000]).unwrap().sequence;
        let first = publish();
        hub.flush_histories().unwrap();
        crate::common::limit(libc::RLIMIT_FSIZE, 256 << 10);
        let stats = || hub.history_stats().remove(0);
        until("the disk is full", || {
            publish();
            stats().errors > 0 && stats().given_up > 100
        });
        let told = stats().last_error.unwrap();
        let expected = format!("cannot write to the archive {}: ", folder.file("a").display());
        assert!(told.starts_with(&expected), "{told}");
        assert!(matches!(hub.flush_histories(), Err(Error::Os { .. })));
        let errors = hub.errors(&ErrorFilter::all().event("history.failed"));
        assert_eq!((&*errors[0].origin, errors.len()), ("history >", 1), "it is told once");
        assert!(errors[0].message.starts_with(&expected), "{errors:?}");
        let errors = hub.errors(&ErrorFilter::all().event("history.given_up"));
        assert_eq!((&*errors[0].origin, errors.len()), ("history >", 1), "the losses of a burst");
        assert_eq!(errors[0].severity, Severity::Error);
        assert_eq!(errors[0].message, "1 messages were given up: they are not on disk");
        let heard = hub.mailbox("$SYS.history.*", 10).unwrap();
        crate::common::limit(libc::RLIMIT_FSIZE, libc::RLIM_INFINITY);
        let given_up = || match hub.flush_histories().unwrap_err() {
            Error::GivenUp { messages } => messages,
            other => panic!("{other}"),
        };
        let lost = given_up();
        assert_eq!(lost, stats().given_up);
        until("it is told that it is written again", || {
            let notice = heard.try_recv().unwrap();
            notice.is_some_and(|notice| notice.key().as_str() == "$SYS.history.recovered")
        });
        drop(heard);
        let last = publish();
        assert_eq!(given_up(), lost, "no more");
        let stats = stats();
        assert_eq!((stats.waiting, stats.last_error), (0, None));
        // Nothing up to this is missing.
        let durable = stats.durable.unwrap();
        let found = hub.query(&everything().sequences(first..=durable)).unwrap();
        assert_eq!(found.len() as u64, durable - first + 1);
        assert!(durable < last);
        // The notice had a sequence, too.
        assert_eq!(stats.recorded + hub.notice_stats().told, last - first + 1);
        let found = hub.query(&everything()).unwrap();
        assert_eq!(found.len() as u64 + stats.given_up, stats.recorded);
        assert_eq!(found.last().unwrap().sequence(), last);
        let got = Got::default();
        let replay = hub.replay(">", ReplayFrom::Beginning).serve(got.handler()).unwrap();
        got.until_has(last);
        let lost: u64 = got.all().iter().map(|(_, lost_before)| lost_before).sum();
        assert_eq!((lost, replay.stats().lost), (stats.given_up, stats.given_up));
        {
            use paceline::log::{Component, Level};
            log.flush(LONG).unwrap();
            let mut logged = logged.lock().unwrap().clone();
            logged.retain(|(component, ..)| *component == Component::History);
            let failed = (Component::History, Level::Error, "history.failed");
            let given_up = (Component::History, Level::Error, "history.given_up");
            let recovered = (Component::History, Level::Info, "history.recovered");
            assert_eq!(logged, [failed, given_up, recovered]);
        }
        drop((replay, hub));
        finish(&pool);
    });
}

/// Goal: a process whose history cannot be written is ready, and says why it is degraded, how many messages wait, and that
/// it is well again; the figures and the page have it, too. Method: a limit of the size of files, in a child.
#[cfg(all(feature = "http", feature = "metrics"))]
#[test]
fn health_says_why_a_history_is_not_written() {
    in_child_blocking(&[libc::SIGXFSZ], || {
        let _guard = hang_guard();
        let folder = Folder::new("health");
        let pool = pool(2);
        let hub = hub(&pool, archived(folder.file("a")).commit(1000, Duration::from_secs(3600)));
        let figures = paceline::metrics::Registry::new();
        hub.metrics(&figures, "main");
        let ops = paceline::ops::Ops::serve(&pool, "127.0.0.1:0").unwrap();
        let at = &ops.addresses()[0];
        let ready = || {
            let answer = crate::client::get(at, "/health/ready");
            assert_eq!(answer.status, 200, "{}", answer.body);
            answer.body
        };
        let mut events = crate::client::Events::open(at, "/events").ok().unwrap();
        let mut shown = || events.next()["histories"][0].clone();
        let figure = |name: &str| {
            let text = figures.snapshot().to_prometheus();
            let begin = format!("paceline_hub_history_{name}{{");
            let line = text.lines().find(|line| line.starts_with(&begin)).unwrap().to_owned();
            line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap() as u64
        };
        let _ = hub.publish("a", vec![7; 100_000]).unwrap();
        assert_eq!(ready(), "ok\n");
        crate::common::limit(libc::RLIMIT_FSIZE, 1);
        assert!(hub.flush_histories().is_err());
        let told = ready();
        let expected = format!(
            "history \">\" is not written: cannot write to the archive {}: ",
            folder.file("a").display()
        );
        assert!(
            told.contains(&expected) && told.contains("; 1 messages wait for the disk"),
            "{told}"
        );
        assert_eq!((figure("failing"), figure("waiting"), figure("errors_total")), (1, 1, 1));
        until("the page is told", || shown()["reason"].is_string());
        crate::common::limit(libc::RLIMIT_FSIZE, libc::RLIM_INFINITY);
        hub.flush_histories().unwrap();
        assert_eq!((ready(), figure("failing"), figure("waiting")), ("ok\n".into(), 0, 0));
        until("the page is told again", || shown()["reason"].is_null());
        assert_eq!(shown()["pattern"], ">");
        drop((ops, hub));
        finish(&pool);
    });
}

/// Goal: lines and a log that cannot be written are told by the health, with the reason, until they are written again.
#[test]
fn health_says_why_lines_and_the_log_are_not_written() {
    in_child_blocking(&[libc::SIGXFSZ], || {
        let _guard = hang_guard();
        let folder = Folder::new("health-lines");
        let file = folder.file("log");
        let log = paceline::log::Log::builder().facade(false).file(&file).build().unwrap();
        let pool = Pool::builder().threads(2).pin(paceline::Pin::None).log(&log).build().unwrap();
        let lines = History::of(">").lines(LinesOptions::at(folder.file("lines")));
        let hub = hub(&pool, lines.commit(1000, Duration::from_secs(3600)));
        let ops = paceline::ops::Ops::serve(&pool, "127.0.0.1:0").unwrap();
        let ready = || {
            let answer = crate::client::get(&ops.addresses()[0], "/health/ready");
            assert_eq!(answer.status, 200, "{}", answer.body);
            answer.body
        };
        // As a pool that begins and ends does.
        let log_something =
            || drop(Pool::builder().threads(1).pin(paceline::Pin::None).log(&log).build().unwrap());
        log_something();
        log.flush(LONG).unwrap();
        assert_eq!(ready(), "ok\n");
        crate::common::limit(libc::RLIMIT_FSIZE, 1);
        let _ = hub.publish("a", "x").unwrap();
        let _lines_are_lost = hub.flush_histories();
        let told = ready();
        let of_lines = format!(
            "history \">\" is not written: cannot write to {}: ",
            folder.file("lines").display()
        );
        assert!(told.contains(&of_lines), "{told}");
        log_something();
        log.flush(LONG).unwrap();
        let told = ready();
        let of_log = format!("the log is not written: cannot write to {}: ", file.display());
        assert!(told.contains(&of_log), "{told}");
        crate::common::limit(libc::RLIMIT_FSIZE, libc::RLIM_INFINITY);
        let _ = hub.publish("a", "x").unwrap();
        let _some_were_lost = hub.flush_histories();
        log_something();
        log.flush(LONG).unwrap();
        assert_eq!(ready(), "ok\n");
        drop((ops, hub));
        finish(&pool);
    });
}

/// Goal: with the defaults nothing is lost, however fast it is published: publishers wait for the disk.
#[test]
fn by_default_everything_that_was_published_is_archived() {
    const MESSAGES: u64 = 100_000;
    let _guard = hang_guard();
    let folder = Folder::new("default");
    let pool = pool(2);
    let archive = ArchiveOptions::at(folder.file("a")).durability(Durability::Process);
    let hub = hub(&pool, History::of("orders.>").archive(archive));
    let key = hub.key("orders.eu").unwrap();
    let mut last = 0;
    for _ in 0..MESSAGES {
        last = hub.publish(&key, "x").unwrap().sequence;
    }
    hub.flush_histories().unwrap();
    let stats = hub.history_stats().remove(0);
    assert_eq!((stats.given_up, stats.durable), (0, Some(last)));
    assert_eq!(hub.query(&Query::of("orders.>")).unwrap().len() as u64, MESSAGES);
    drop(hub);
    finish(&pool);
}

/// Goal: what cannot be committed when the hub goes is told by the log.
#[test]
fn a_loss_at_the_end_is_logged() {
    use paceline::log::{Component, Level};
    in_child_blocking(&[libc::SIGXFSZ], || {
        let _guard = hang_guard();
        let folder = Folder::new("end");
        let (log, logged) = crate::common::log_of_events("error");
        let pool = Pool::builder().threads(1).pin(paceline::Pin::None).log(&log).build().unwrap();
        let hub = hub(&pool, archived(folder.file("a")).commit(1000, Duration::from_secs(3600)));
        let _ = hub.publish("a", vec![7; 100_000]).unwrap();
        crate::common::limit(libc::RLIMIT_FSIZE, 1);
        drop(hub);
        finish(&pool);
        log.flush(LONG).unwrap();
        let given_up = (Component::History, Level::Error, "history.given_up");
        assert!(logged.lock().unwrap().contains(&given_up), "{logged:?}");
        crate::common::limit(libc::RLIMIT_FSIZE, libc::RLIM_INFINITY);
    });
}

/// Goal: what a history has recorded is published, though the pool ends meanwhile and nobody gets it: who is told that it is not
/// would publish it again. Method: the pool ends while the payloads of a batch are made.
#[test]
fn what_was_recorded_is_published_though_the_pool_ends() {
    let _guard = hang_guard();
    let folder = Folder::new("late");
    let pool = pool(1);
    let hub = hub(&pool, archived(folder.file("a")));
    let payloads = (0..2).map(|number: u8| {
        finish(&pool);
        vec![number]
    });
    let receipt = hub.publish_batch("a", payloads).unwrap();
    assert_eq!((receipt.sequence, receipt.matched), (2, 0));
    assert!(matches!(hub.publish("a", "later"), Err(Error::ShutDown)));
    hub.close_histories().unwrap();
    let there = Archive::open(folder.file("a")).unwrap().query(&everything()).unwrap();
    assert_eq!(there.iter().map(|one| one.sequence()).collect::<Vec<_>>(), [1, 2]);
}

/// Goal: with `Wait` nothing is given up: publishing fails, or waits until there is room.
#[test]
fn a_full_disk_makes_publishers_wait() {
    in_child_blocking(&[libc::SIGXFSZ], || {
        let _guard = hang_guard();
        let folder = Folder::new("wait");
        let pool = pool(2);
        let history = archived(folder.file("a")).commit(16, Duration::from_millis(1));
        let when_full = WhenFull::Wait(Duration::from_millis(20));
        let hub = hub(&pool, history.waiting(64, 1 << 20).when_full(when_full));
        crate::common::limit(libc::RLIMIT_FSIZE, 256 << 10);
        let mut published = 0;
        let refused = loop {
            match hub.publish("a", vec![7; 1000]) {
                Ok(_) => published += 1,
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!(refused, "all 64 places for messages that wait for the archive are in use");
        let (tell, told) = std::sync::mpsc::channel();
        let inside = hub.clone();
        pool.post(move || tell.send(inside.publish("a", "x").is_err()).unwrap()).unwrap();
        assert!(told.recv().unwrap(), "it is refused at once on a thread of the pool");
        crate::common::limit(libc::RLIMIT_FSIZE, libc::RLIM_INFINITY);
        until("there is room again", || hub.publish("a", "last").is_ok());
        hub.flush_histories().unwrap();
        let stats = hub.history_stats().remove(0);
        assert_eq!((stats.given_up, stats.waiting, stats.recorded), (0, 0, published + 1));
        assert_eq!(hub.query(&everything()).unwrap().len() as u64, published + 1);
        drop(hub);
        finish(&pool);
    });
}

/// Goal: a replay that meets a damaged part of the archive tells what it has lost, and goes on with what is live.
#[test]
fn a_damaged_archive_is_a_loss() {
    let _guard = hang_guard();
    let folder = Folder::new("damaged");
    let path = folder.file("a");
    let before = pool(1);
    let first = hub(&before, archived(path.clone()));
    (0..2000).for_each(|_| {
        assert!(first.publish("a", vec![7; 100]).unwrap().is_complete());
    });
    drop(first);
    // A thread of the pool may have been the last to let the hub go.
    finish(&before);
    let pool = pool(1);
    let history = archived(path.clone()).keep(Limits::of_count(100));
    let hub = Hub::builder(&pool).history(history).build().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let pages = bytes.len() / 4096;
    for page in (12..pages).step_by(2) {
        bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
    }
    fs::write(&path, bytes).unwrap();
    let got = Got::default();
    let replay = hub.replay(">", ReplayFrom::Sequence(1)).serve(got.handler()).unwrap();
    let last = hub.publish("a", "live").unwrap().sequence;
    got.until_has(last);
    let stats = replay.stats();
    assert!(stats.lost > 0, "{stats:?}");
    assert_eq!(stats.lost + stats.delivered, last);
    let told = hub.history_stats().remove(0).last_read_error.unwrap();
    let expected = format!("cannot read the archive {}: ", path.display());
    assert!(told.starts_with(&expected), "{told}");
    drop((replay, hub));
    finish(&pool);
}

#[test]
fn an_archive_that_cannot_be_opened_is_told() {
    let pool = pool(1);
    let path = std::env::temp_dir().join("paceline-not-there/a");
    let told = Hub::builder(&pool).history(archived(path.clone())).build().unwrap_err().to_string();
    let expected = format!("cannot open the archive {}: No such file or directory", path.display());
    assert!(told.starts_with(&expected), "{told}");
    finish(&pool);
}

/// Goal: what SQLite takes for no file is refused, and not told of as a table that is missing.
#[test]
fn an_archive_is_a_file() {
    let pool = pool(1);
    for path in ["", ":memory:"] {
        let expected = format!(
            "the archive is {path:?}, but must be the path of a file: what is only in memory needs no archive"
        );
        let told = Hub::builder(&pool).history(archived(path.into())).build().unwrap_err();
        assert_eq!(told.to_string(), expected);
        assert_eq!(Archive::open(path).unwrap_err().to_string(), expected);
    }
    finish(&pool);
}

#[test]
fn the_example_replays_what_was_ordered_before_it_stopped() {
    let _guard = hang_guard();
    let folder = Folder::new("example");
    let mut lines = Vec::new();
    crate::example::story(&folder.file(""), |line| lines.push(line)).unwrap();
    let expected = [
        "ordered apples: number 1",
        "ordered pears: number 2",
        "ordered plums: number 3",
        "stopped, and started again",
        "replayed apples of orders.eu",
        "replayed pears of orders.eu",
        "replayed plums of orders.eu",
        "replayed cherries of orders.us",
        "lost: 0",
        "recorded by this run: 1",
    ];
    assert_eq!(lines, expected);
}

/// Goal: a history in memory, and one that is on disk in part, is exported as it is queried, and another hub goes on with
/// what was imported.
#[test]
fn what_a_hub_exports_another_goes_on_with() {
    let _guard = hang_guard();
    let folder = Folder::new("hub-export");
    let lines = folder.file("lines");
    let on_disk = archived(folder.file("first")).keep(Limits::of_count(7));
    for history in [History::of(">"), on_disk] {
        let pool = Pool::builder().threads(2).build().unwrap();
        let hub = Hub::builder(&pool).history(history).build().unwrap();
        for number in 0..3000u32 {
            let key = if number % 3 == 0 { "a.x" } else { "b.x" };
            let _ = hub.publish(key, &number.to_le_bytes()).unwrap();
        }
        hub.flush_histories().unwrap();
        let asked = Query::of("a.*").sequences(1000..=u64::MAX).limit(500);
        let wanted = hub.query(&asked).unwrap();
        assert_eq!(hub.export(&asked, &lines).unwrap(), wanted.len() as u64);
        let mut read = Vec::new();
        read_lines(&lines, &everything(), |stored| {
            read.push(stored);
            Ok(())
        })
        .unwrap();
        assert_eq!((read.len(), read), (wanted.len(), wanted));
        assert!(matches!(hub.export(&asked, "/nowhere/at/all"), Err(Error::Os { .. })));
        assert!(pool.shutdown(LONG).drained);
    }
    let second = ArchiveOptions::at(folder.file("second"));
    let read = Archive::import(&second, &lines, &everything()).unwrap();
    assert_eq!((read.messages, read.torn), (500, 0));
    assert!(matches!(Archive::import(&second, &lines, &everything()), Err(Error::Invalid { .. })));
    let pool = Pool::builder().threads(1).build().unwrap();
    let hub = Hub::builder(&pool).history(History::of(">").archive(second)).build().unwrap();
    let last = hub.query(&everything().last(1)).unwrap()[0].sequence();
    assert_eq!(hub.query(&everything()).unwrap().len(), 500);
    assert_eq!(hub.publish("a.x", b"").unwrap().sequence, last + 1);
}
