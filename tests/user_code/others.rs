//! Logs, figures, files of lines.

use crate::charge::{Driver, panics};
use crate::common::{Count, LONG};
use paceline::Pool;
use paceline::hub::Stored;
use paceline::hub::history::{Query, read_lines};
use paceline::log::Log;
use paceline::metrics::Registry;

pub const DRIVERS: &[(&str, Driver)] = &[
    ("LogBuilder::callback", |_, bang| {
        let (charge, told) = (bang.charge(), Count::new());
        let tell = told.clone();
        let builder = Log::builder().facade(false).levels("info".parse().unwrap());
        let log = builder.callback(move |_| {
            tell.up();
            charge.go()
        });
        let log = log.build().unwrap();
        let own = Pool::builder().threads(1).log(&log).build().unwrap();
        crate::is_sound(&own);
        drop(own);
        log.flush(LONG).unwrap();
        assert!(told.get() > 1, "it is told on");
        log.close(LONG).unwrap();
    }),
    ("Registry::collect", |_, bang| {
        let registry = Registry::new();
        let charge = bang.charge();
        registry.collect(move |_| charge.go());
        // One that goes away, and whose destructor panics.
        let charge = bang.charge();
        registry.collect(move |_| {
            let _held = &charge;
            false
        });
        registry.gauge("heat", "Of the test", &[]).unwrap().set(7.0);
        for _ in 0..2 {
            assert!(registry.snapshot().to_prometheus().contains("\nheat 7.0\n"));
        }
        let _in_drop = panics(|| drop(registry));
    }),
    #[cfg(feature = "systemd")]
    ("Service::start", |pool, bang| {
        let charge = bang.charge();
        let service = paceline::admin::Service::start(pool, move || charge.go()).unwrap();
        crate::common::until("its watchdog is closed", || pool.stats().handles == 0);
        drop(service);
    }),
    ("read_lines", |_, bang| {
        let path = std::env::temp_dir().join(format!("paceline-lines-{}", std::process::id()));
        let pool = Pool::builder().threads(1).build().unwrap();
        let lines = paceline::hub::history::LinesOptions::at(&path);
        let history = paceline::hub::history::History::of("a").lines(lines);
        let hub = paceline::hub::Hub::builder(&pool).history(history).build().unwrap();
        let _ = hub.publish("a", "!").unwrap();
        hub.flush_histories().unwrap();
        let each = move |_: Stored| bang.go();
        assert!(panics(|| drop(read_lines(&path, &Query::of(">"), each))), "the user's own thread");
        drop(hub);
        std::fs::remove_file(path).unwrap();
    }),
];
