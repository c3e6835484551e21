//! The routes, who may ask, and the settings.

use super::client::{Events, ask, get};
use super::common::{LONG, hang_guard, until};
use paceline::http::{Http, Request, Response};
use paceline::log::{Level, Levels, Log};
use paceline::metrics::Registry;
use paceline::ops::Ops;
use paceline::{Error, Pool};
use serde_json::Value;
use std::io::{Read, Write};
use std::time::Duration;

const TOKEN: &str = "correct-horse-battery";
const BEARER: &str = "Authorization: Bearer correct-horse-battery";

fn pool() -> Pool {
    Pool::builder().name("watched").threads(2).build().unwrap()
}

#[test]
fn every_route_answers_in_its_type() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    for (path, content_type, part) in [
        ("/", "text/html", "<title>paceline</title>"),
        ("/metrics", "text/plain; version=0.0.4", "paceline_thread_led_total{pool=\"watched\""),
        ("/stats.json", "application/json", "\"pool\":\"watched\""),
        ("/health/live", "text/plain", "ok"),
        ("/health/ready", "text/plain", "ok"),
        ("/errors.json", "application/json", "\"errors\":["),
        ("/config", "application/json", "\"settings\":["),
    ] {
        let answer = get(at, path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(answer.head.contains(&format!("content-type: {content_type}")), "{}", answer.head);
        assert!(answer.head.contains("cache-control: no-store"), "{path}: {}", answer.head);
        assert!(answer.body.contains(part), "{path}: {}", answer.body);
    }
    assert_eq!(get(at, "/nothing").status, 404);
    assert_eq!(ask(at, "POST /metrics", &[], "").status, 405);
    let accept = "Accept: application/openmetrics-text; version=1.0.0";
    let exact = ask(at, "GET /metrics", &[accept], "");
    assert!(exact.head.contains("content-type: application/openmetrics-text"), "{}", exact.head);
    assert!(exact.body.ends_with("# EOF\n"));
}

#[test]
fn stats_name_the_threads_that_lead() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let stats: Value = serde_json::from_str(&get(&ops.addresses()[0], "/stats.json").body).unwrap();
    let threads = stats["threads"].as_array().unwrap();
    assert!(threads.len() >= 2, "{stats}");
    assert!(stats["sets"][0]["leader"].is_u64(), "nobody leads: {stats}");
    assert!(stats["figures"]["families"].as_array().unwrap().len() > 10);
}

#[test]
fn a_place_that_others_reach_needs_a_token() {
    let pool = pool();
    let error = Ops::serve(&pool, "0.0.0.0:0").unwrap_err();
    assert!(matches!(error, Error::Invalid { name: "address", .. }), "{error}");
    assert!(Ops::builder(&pool).token(TOKEN).serve("0.0.0.0:0").is_ok());
    let error = Ops::builder(&pool).token("short").serve("127.0.0.1:0").unwrap_err();
    assert!(matches!(error, Error::Invalid { name: "token", .. }), "{error}");
}

#[test]
fn with_a_token_only_the_page_is_sent_without_it() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::builder(&pool).token(TOKEN).serve("127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    assert_eq!(get(at, "/").status, 200);
    for path in ["/metrics", "/stats.json", "/events", "/errors.json", "/config", "/log-level"] {
        let answer = get(at, path);
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.head.contains("www-authenticate: bearer"), "{}", answer.head);
        for (wrong, reason) in [
            ("Bearer", "needs its token"),
            ("Basic correct-horse-battery", "needs its token"),
            ("Bearer correct-horse-batterY", "the token is not that of this endpoint"),
        ] {
            let wrong = format!("Authorization: {wrong}");
            let answer = ask(at, &format!("GET {path}"), &[&wrong], "");
            assert_eq!(answer.status, 401, "{path}");
            assert!(answer.body.contains(reason), "{path}: {}", answer.body);
        }
    }
    assert_eq!(ask(at, "GET /metrics", &[BEARER], "").status, 200);
    assert!(matches!(Events::open(at, "/events"), Err(401)));
}

#[test]
fn a_name_that_leads_here_from_elsewhere_is_refused() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    for (host, status) in [
        ("rebound.example", 403),
        ("rebound.example:80", 403),
        ("localhost", 200),
        ("localhost:9090", 200),
        ("ops.localhost:9090", 200),
        ("127.0.0.1", 200),
        ("[::1]:9090", 200),
    ] {
        let host = format!("Host: {host}");
        assert_eq!(ask(at, "GET /stats.json", &[&host], "").status, status, "{host}");
    }
}

/// By the target, which counts for more than the header.
#[test]
fn a_target_that_names_another_host_is_refused() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    for (target, status) in [
        ("http://rebound.example/stats.json", 403),
        ("http://rebound.example:80/stats.json?a=http://localhost/", 403),
        ("http://localhost/stats.json", 200),
        ("http://127.0.0.1:9090/stats.json", 200),
    ] {
        let answer = ask(at, &format!("GET {target}"), &["Host: localhost"], "");
        assert_eq!(answer.status, status, "{target}");
    }
}

/// It could not read the answer, but take all places of viewers.
#[test]
fn a_page_of_another_site_is_refused() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    for (site, dest, status) in [
        ("cross-site", "empty", 403),
        ("same-site", "image", 403),
        ("cross-site", "iframe", 403),
        ("cross-site", "document", 200),
        ("same-origin", "empty", 200),
        ("none", "document", 200),
    ] {
        let lines = [&*format!("Sec-Fetch-Site: {site}"), &format!("Sec-Fetch-Dest: {dest}")];
        assert_eq!(ask(at, "GET /stats.json", &lines, "").status, status, "{lines:?}");
    }
    // Older browsers say it so only.
    for (origin, status) in [
        ("https://rebound.example", 403),
        ("http://localhost:3000", 403),
        ("null", 403),
        ("http://localhost:9090", 200),
    ] {
        let lines = ["Host: localhost:9090", &format!("Origin: {origin}")];
        assert_eq!(ask(at, "GET /stats.json", &lines, "").status, status, "{origin}");
    }
}

/// A link of another site, which its reader follows, shows figures, but begins nothing.
#[test]
fn a_link_of_another_site_starts_no_recording() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    let lines = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: document"];
    for path in ["/trace?seconds=1", "/events"] {
        let answer = ask(at, &format!("GET {path}"), &lines, "");
        assert_eq!(answer.status, 403, "{path}");
        assert!(answer.body.contains("pages of other sites"), "{}", answer.body);
    }
    assert!(pool.record().is_ok(), "it is being recorded");
}

const PASSED_ON: [&str; 6] = [
    "Forwarded: for=192.0.2.1",
    "X-Forwarded-For: 192.0.2.1",
    "x-forwarded-proto: https",
    "X-Forwarded-Host: ops.example",
    "X-Real-IP: 192.0.2.1",
    "Via: 1.1 proxy",
];

/// Asks as nginx does by default, which names nobody.
fn ask_as_nginx(at: &paceline::net::Address, path: &str) -> String {
    let mut stream = super::client::connect(at);
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {at}\r\nConnection: close\r\n\r\n").unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    all
}

/// A proxy on this machine makes the whole world one of this machine.
#[test]
fn what_a_proxy_has_passed_on_needs_a_token() {
    let _guard = hang_guard();
    let pool = pool();
    let open = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let mounted = Ops::builder(&pool).build().unwrap();
    let http = mounted.mount(Http::builder(&pool).listen("127.0.0.1:0"), "/ops").unwrap();
    let http = http.serve().unwrap();
    let closed = Ops::builder(&pool).token(TOKEN).serve("127.0.0.1:0").unwrap();
    for (at, prefix) in [(&open.addresses()[0], ""), (&http.addresses()[0], "/ops")] {
        let path = format!("{prefix}/stats.json");
        assert_eq!(get(at, &path).status, 200);
        for line in PASSED_ON {
            let answer = ask(at, &format!("GET {path}"), &[line], "");
            assert_eq!(answer.status, 403, "{line}");
            assert!(answer.body.contains("a proxy has passed on"), "{}", answer.body);
            assert!(answer.body.contains("has no token"), "{}", answer.body);
        }
        let answer = ask_as_nginx(at, &path);
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("HTTP/1.0"), "{answer}");
    }
    for line in PASSED_ON {
        let answer = ask(&closed.addresses()[0], "GET /stats.json", &[BEARER, line], "");
        assert_eq!(answer.status, 200, "{line}");
    }
}

/// Orchestrators ask without a secret, and learn nothing else.
#[test]
fn probes_need_no_token_and_are_given_no_reasons() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::builder(&pool).token(TOKEN).serve("127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    for path in ["/health/live", "/health/ready"] {
        let answer = get(at, path);
        assert_eq!((answer.status, &*answer.body), (200, "ok\n"), "{path}");
    }
    let _report = pool.shutdown(LONG);
    for path in ["/health/live", "/health/ready"] {
        let answer = get(at, path);
        assert_eq!((answer.status, &*answer.body), (503, "failing\n"), "{path}");
        let answer = ask(at, &format!("GET {path}"), &[BEARER], "");
        assert_eq!(
            (answer.status, &*answer.body),
            (503, "failing\nthe pool has ended\n"),
            "{path}"
        );
    }
}

#[test]
fn events_are_not_held_back_by_a_proxy() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let head = ask(&ops.addresses()[0], "HEAD /events", &[], "").head;
    assert!(head.contains("x-accel-buffering: no"), "{head}");
}

#[test]
fn levels_of_the_log_are_changed_with_the_token_only() {
    let _guard = hang_guard();
    let log = Log::builder().facade(false).build().unwrap();
    let pool = Pool::builder().threads(1).log(&log).build().unwrap();
    let open = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    assert_eq!(get(&open.addresses()[0], "/log-level").body, "info\n");
    assert_eq!(ask(&open.addresses()[0], "PUT /log-level", &[], "debug").status, 403);
    let ops = Ops::builder(&pool).token(TOKEN).serve("127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    assert_eq!(ask(at, "PUT /log-level", &[], "debug").status, 401);
    assert_eq!(log.levels(), Levels::all(Level::Info));
    let set = ask(at, "PUT /log-level", &[BEARER], "warn,net=debug\n");
    assert_eq!((set.status, &*set.body), (200, "warn,net=debug\n"));
    assert_eq!(log.levels().to_string(), "warn,net=debug");
    let wrong = ask(at, "PUT /log-level", &[BEARER], "loud");
    assert!(wrong.status == 400 && wrong.body.contains("loud"), "{}", wrong.body);
    let none = Pool::builder().threads(1).build().unwrap();
    let ops = Ops::builder(&none).token(TOKEN).serve("127.0.0.1:0").unwrap();
    assert_eq!(ask(&ops.addresses()[0], "GET /log-level", &[BEARER], "").status, 404);
}

#[test]
fn it_can_be_mounted_in_a_server_of_the_program() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::builder(&pool).build().unwrap();
    assert!(ops.addresses().is_empty());
    for wrong in ["", "/", "ops", "/ops/", "/{ops}", "/ops?"] {
        let error = ops.mount(Http::builder(&pool), wrong).unwrap_err();
        assert!(matches!(error, Error::Invalid { name: "prefix", .. }), "{error}");
    }
    let http = Http::builder(&pool).listen("127.0.0.1:0").route(
        "GET",
        "/",
        |_: &Request<'_>, response: Response| response.text("mine"),
    );
    let http = ops.mount(http, "/ops").unwrap().serve().unwrap();
    let at = &http.addresses()[0];
    assert_eq!(get(at, "/").body, "mine");
    assert!(get(at, "/ops").head.contains("location: /ops/"));
    assert!(get(at, "/ops/").body.contains("<title>paceline</title>"));
    assert!(get(at, "/ops/metrics").body.contains("pool=\"watched\""));
    let mut events = Events::open(at, "/ops/events").ok().unwrap();
    assert_eq!(events.next()["pool"], "watched");
    drop(ops);
    while events.next_or_end().is_some() {}
    assert_eq!(get(at, "/ops/metrics").status, 500, "its thread has ended");
    assert_eq!(get(at, "/").body, "mine");
}

#[test]
fn a_timeline_is_recorded_one_at_a_time() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    for wrong in ["0", "31", "-1", "x", "1.5"] {
        assert_eq!(get(at, &format!("/trace?seconds={wrong}")).status, 400, "{wrong}");
    }
    let recording = pool.record().unwrap();
    assert_eq!(get(at, "/trace?seconds=1").status, 409);
    drop(recording);
    let ticks = pool.every(Duration::from_millis(10), || paceline::Flow::Wait).unwrap();
    let answer = get(at, "/trace?seconds=1");
    let trace: Value = serde_json::from_str(&answer.body).unwrap();
    let summary = trace["otherData"]["summary"].as_str().unwrap();
    assert!(summary.starts_with("all of ") && answer.head.contains(summary), "{summary}");
    let events = trace["traceEvents"].as_array().unwrap();
    let handled = events.iter().filter(|event| event["ph"] == "X" && event["name"] != "wait");
    assert!(handled.count() > 0, "{trace}");
    ticks.deregister().unwrap();
    // One whose endpoint ends is stopped.
    let mut asking = super::client::connect(at);
    asking.write_all(b"GET /trace?seconds=30 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    until("it records", || pool.record().is_err());
    drop(ops);
    assert!(pool.record().is_ok());
}

#[test]
fn a_registry_of_the_program_is_shown_too() {
    let _guard = hang_guard();
    let pool = pool();
    let registry = Registry::new();
    registry.counter("orders", "Orders taken", &[("region", "\"<b>\n")]).unwrap().add(3);
    let ops = Ops::builder(&pool).registry(&registry).serve("127.0.0.1:0").unwrap();
    let text = get(&ops.addresses()[0], "/metrics").body;
    assert!(text.contains("orders_total{region=\"\\\"<b>\\n\"} 3"), "{text}");
}

#[cfg(feature = "config")]
#[test]
fn settings_are_shown_with_their_origins_and_without_secrets() {
    let _guard = hang_guard();
    let pairs = [
        ("PACELINE_POOL_SPIN", "10us"),
        ("PACELINE_WEBHOOK_URL", "https://user:secret@example.org/hook"),
        ("PACELINE_OPS_ADDRESS", "127.0.0.1:0"),
        ("PACELINE_OPS_TOKEN", "a-secret-of-16-letters"),
    ];
    let settings = paceline::admin::Settings::layers()
        .variables(pairs.map(|(name, value)| (name.into(), value.into())))
        .set("pool.threads", 1)
        .build()
        .unwrap();
    let pool = settings.pool_builder().build().unwrap();
    let ops = Ops::from_settings(&pool, &settings).unwrap().unwrap();
    assert_eq!(get(&ops.addresses()[0], "/config").status, 401);
    let token = "Authorization: Bearer a-secret-of-16-letters";
    let body = ask(&ops.addresses()[0], "GET /config", &[token], "").body;
    assert!(!body.contains("secret"), "{body}");
    let shown: Value = serde_json::from_str(&body).unwrap();
    let of = |key: &str| {
        let all = shown["settings"].as_array().unwrap();
        let found = all.iter().find(|setting| setting["key"] == key).unwrap();
        (found["value"].as_str().unwrap().to_owned(), found["from"].as_str().unwrap().to_owned())
    };
    assert_eq!(of("pool.threads"), ("1".into(), "set".into()));
    assert_eq!(of("pool.spin"), ("10µs".into(), "PACELINE_POOL_SPIN".into()));
    assert_eq!(of("webhook.url").0, "***");
    assert_eq!(of("ops.token"), ("***".into(), "PACELINE_OPS_TOKEN".into()));
    assert_eq!(of("pool.max_joined").1, "default");
    let silent = paceline::admin::Settings::default();
    assert!(Ops::from_settings(&pool, &silent).unwrap().is_none());
}

#[test]
fn the_end_of_the_pool_is_told() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let _report = pool.shutdown(LONG);
    let answer = get(&ops.addresses()[0], "/health/live");
    assert_eq!((answer.status, &*answer.body), (503, "failing\nthe pool has ended\n"));
    assert_eq!(get(&ops.addresses()[0], "/metrics").status, 200);
    let error = Ops::serve(&pool, "127.0.0.1:0").unwrap_err();
    assert!(matches!(error, Error::ShutDown), "{error}");
}

#[test]
fn a_time_out_of_its_range_is_refused() {
    let pool = pool();
    for wrong in [Duration::ZERO, Duration::from_secs(3601)] {
        let builder = || Ops::builder(&pool);
        for (setting, builder) in [
            ("blocked_after", builder().blocked_after(wrong)),
            ("ready_after", builder().ready_after(wrong)),
            ("dead_after", builder().dead_after(wrong)),
        ] {
            let error = builder.build().unwrap_err();
            assert!(matches!(error, Error::Invalid { name, .. } if name == setting), "{error}");
        }
    }
}
