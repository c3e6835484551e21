use paceline::{Flow, Pool};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

#[test]
fn tasks_timers_and_strands_run_and_the_books_balance() {
    let pool = Pool::builder().threads(2).build().unwrap();
    let n = Arc::new(AtomicU64::new(0));
    for _ in 0..100_000 {
        let n = n.clone();
        pool.post(move || {
            n.fetch_add(1, SeqCst);
        })
        .unwrap();
    }
    let t = pool.submit(|| 6 * 7).unwrap();
    assert_eq!(t.wait().unwrap(), 42);
    let (tx, rx) = std::sync::mpsc::channel();
    let timer = pool.after(Duration::from_millis(5), move || tx.send(7).unwrap()).unwrap();
    assert_eq!(rx.recv().unwrap(), 7);
    assert!(!timer.is_pending());
    let strand = pool.strand().unwrap();
    let log = Arc::new(std::sync::Mutex::new(Vec::new()));
    for i in 0..10_000 {
        let log = log.clone();
        strand.post(move || log.lock().unwrap().push(i)).unwrap();
    }
    let last = strand.submit(|| ()).unwrap();
    last.wait().unwrap();
    assert_eq!(*log.lock().unwrap(), (0..10_000).collect::<Vec<_>>());
    let ticks = Arc::new(AtomicU64::new(0));
    let t2 = ticks.clone();
    let h = pool
        .every(Duration::from_millis(1), move || {
            t2.fetch_add(1, SeqCst);
            Flow::Wait
        })
        .unwrap();
    while ticks.load(SeqCst) < 5 {
        std::thread::sleep(Duration::from_millis(1));
    }
    h.deregister().unwrap();
    let report = pool.shutdown(Duration::from_secs(10));
    assert!(report.drained, "{report:?}");
    let audit = pool.audit();
    assert!(audit.balances(), "{audit:?}");
    assert_eq!(n.load(SeqCst), 100_000);
    assert_eq!(audit.in_flight, 0, "{audit:?}");
}
