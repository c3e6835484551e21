//! What is asked for, and its answer.

use super::endpoint::Endpoint;
use super::feed::bridges;
use super::guard::Refused;
use super::{errors, page};
use crate::error::{Error, Result};
use crate::http::{HttpBuilder, Request, Response};
use crate::log::Levels;
use crate::metrics::TextFormat;
use crate::pool::{Recording, Stats};
use core::ops::RangeInclusive;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};
use core::time::Duration;
use serde_json::{Value as Json, from_str, json};
use std::sync::Arc;

/// Answers that may be under way, until their last byte is written; more requests are answered with 503.
const MOST_UNDER_WAY: usize = 32;
/// Answers up to here are sent at once; larger ones go out as the peer takes them.
const PIECE: usize = 64 << 10;
/// Faults that `/errors.json` has.
const ERRORS: usize = 256;
const TRACE_SECONDS: RangeInclusive<u64> = 1..=30;
/// Records of a trace, of all threads together: 8 MiB, and some 30 MB of JSON.
const MOST_RECORDS: usize = 1 << 18;
/// The header of a timeline that says what of it is there.
const TRACE_SPAN: &str = "Paceline-Trace";
/// Of each thread, should there be very many.
const LEAST_RECORDS: usize = 64;
/// Bytes of the levels that a request may set.
pub(super) const MOST_LEVELS: usize = 1 << 10;
const JSON: &str = "application/json";

/// What can be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Route {
    Metrics,
    Stats,
    Live,
    Ready,
    Errors,
    Config,
    LogLevel,
    Events,
    Trace,
    Curves,
}

const ROUTES: [(&str, Route); 10] = [
    ("/metrics", Route::Metrics),
    ("/stats.json", Route::Stats),
    ("/health/live", Route::Live),
    ("/health/ready", Route::Ready),
    ("/errors.json", Route::Errors),
    ("/config", Route::Config),
    ("/log-level", Route::LogLevel),
    ("/events", Route::Events),
    ("/trace", Route::Trace),
    ("/curves.json", Route::Curves),
];

/// What a request says beside its route.
struct Asked {
    accept: Option<String>,
    seconds: Option<String>,
    /// Who asks may read reasons.
    may_read: bool,
}

/// Adds the routes, each behind `prefix`: "" or `/ops`.
pub(super) fn add(mut http: HttpBuilder, prefix: &str, endpoint: &Arc<Endpoint>) -> HttpBuilder {
    let page = format!("{prefix}/");
    http = http.route("GET", &page, |_: &Request<'_>, response: Response| page::send(response));
    if !prefix.is_empty() {
        let target = page.clone();
        http = http.route("GET", prefix, move |_: &Request<'_>, response: Response| {
            response.status(308).header("Location", &target).send("")
        });
    }
    for (path, route) in ROUTES {
        let endpoint = Arc::clone(endpoint);
        let path = format!("{prefix}{path}");
        let answered = move |request: &Request<'_>, response: Response| {
            let works = matches!(route, Route::Events | Route::Trace);
            let checked = endpoint.guard.check(request, works);
            match checked {
                Err(refused) if !matches!(route, Route::Live | Route::Ready) => {
                    refuse(refused, response)
                }
                checked => hand_over(&endpoint, route, request, checked.is_ok(), plain(response)),
            }
        };
        http = http.route("GET", &path, answered);
    }
    let endpoint = Arc::clone(endpoint);
    let path = format!("{prefix}/log-level");
    http.route("PUT", &path, move |request: &Request<'_>, response: Response| {
        match endpoint.guard.check_change(request) {
            Ok(()) => set_levels(&endpoint, request, plain(response)),
            Err(refused) => refuse(refused, response),
        }
    })
}

/// No answer may be kept, or taken for another type than it has.
fn plain(response: Response) -> Response {
    response
        .header("Cache-Control", "no-store")
        .header("X-Content-Type-Options", "nosniff")
        .header("Cross-Origin-Resource-Policy", "same-origin")
}

fn refuse(refused: Refused, response: Response) -> Result<()> {
    let (challenge, reason) = match refused {
        Refused::NoToken => ("Bearer", "this endpoint needs its token: Authorization: Bearer …\n"),
        Refused::WrongToken => {
            ("Bearer error=\"invalid_token\"", "the token is not that of this endpoint\n")
        }
        Refused::Forbidden(reason) => {
            let reason = format!("this endpoint has no token, and without one {reason}\n");
            return response.status(403).text(reason);
        }
    };
    response.status(401).header("WWW-Authenticate", challenge).text(reason)
}

/// Has the endpoint's thread answer.
fn hand_over(
    endpoint: &Arc<Endpoint>,
    route: Route,
    request: &Request<'_>,
    may_read: bool,
    response: Response,
) -> Result<()> {
    let seconds = request.query_pairs().find(|(name, _)| name == "seconds");
    let asked = Asked {
        accept: request.header("accept").map(str::to_owned),
        seconds: seconds.map(|(_, value)| value.into_owned()),
        may_read,
    };
    let Some(place) = Place::take(endpoint, MOST_UNDER_WAY, |it| &it.under_way) else {
        return busy(response, "too many requests are under way\n");
    };
    // The peer may have gone: then there is nobody to tell.
    let work = move || drop(answer(place, route, &asked, response));
    // One that is refused drops its response: the peer gets a 500, as from a server that ends.
    endpoint.pool.try_post(work).map_err(|_| Error::ShutDown)
}

/// The right to have an answer under way, until all of it is written, or its connection ends.
struct Place {
    endpoint: Arc<Endpoint>,
    count: fn(&Endpoint) -> &AtomicUsize,
}

impl Place {
    /// None: there are `most` already.
    fn take(
        endpoint: &Arc<Endpoint>,
        most: usize,
        count: fn(&Endpoint) -> &AtomicUsize,
    ) -> Option<Self> {
        let place = Self { endpoint: Arc::clone(endpoint), count };
        (count(endpoint).fetch_add(1, AcqRel) < most).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        (self.count)(&self.endpoint).fetch_sub(1, AcqRel);
    }
}

fn busy(response: Response, reason: &str) -> Result<()> {
    response.status(503).header("Retry-After", "5").text(reason)
}

fn answer(place: Place, route: Route, asked: &Asked, response: Response) -> Result<()> {
    let endpoint = &*Arc::clone(&place.endpoint);
    match route {
        Route::Metrics => {
            let format = TextFormat::negotiate(asked.accept.as_deref());
            let text = endpoint.registry.snapshot().to_text(format);
            send(response.header("Vary", "Accept"), format.media_type(), text, place)
        }
        Route::Stats => send(response, JSON, endpoint.stats().to_string(), place),
        Route::Live => health(endpoint, response, true, asked.may_read),
        Route::Ready => health(endpoint, response, false, asked.may_read),
        Route::Errors => send(response, JSON, errors::newest(ERRORS).to_string(), place),
        Route::Curves => {
            let curves = endpoint.feed().curves();
            send(response, JSON, curves.to_string(), place)
        }
        Route::Config => send(response, JSON, endpoint.config().to_string(), place),
        Route::LogLevel => match endpoint.levels() {
            Some(levels) => response.text(format!("{levels}\n")),
            None => response.status(404).text("the pool has no log\n"),
        },
        Route::Events => watch(endpoint, response),
        Route::Trace => trace(&place.endpoint, asked, response),
    }
}

/// Records the pool for a while, and sends the timeline then.
fn trace(endpoint: &Arc<Endpoint>, asked: &Asked, response: Response) -> Result<()> {
    let seconds = asked.seconds.as_deref().unwrap_or("3").parse::<u64>();
    let Some(seconds) = seconds.ok().filter(|seconds| TRACE_SECONDS.contains(seconds)) else {
        return response.status(400).text("seconds must be a whole number from 1 to 30\n");
    };
    let Some(shared) = endpoint.watched.upgrade() else {
        return response.status(503).text("the pool has ended\n");
    };
    // Held until the peer has taken all of it: one such text is large.
    let Some(place) = Place::take(endpoint, 1, |it| &it.timelines) else {
        return response.status(409).text("another timeline is recorded or sent\n");
    };
    let each = MOST_RECORDS / shared.ready.members.len();
    let recording = match Recording::of(&shared, each.max(LEAST_RECORDS)) {
        Ok(recording) => recording,
        Err(Error::Invalid { .. }) => {
            return response.status(409).text("the pool is being recorded already\n");
        }
        Err(error) => return response.status(503).text(format!("{error}\n")),
    };
    let finish = move || {
        let trace = recording.finish();
        let response = response
            .header("Content-Disposition", "inline; filename=trace.json")
            .header(TRACE_SPAN, trace.summary());
        // The peer may have gone.
        let _gone = send(response, JSON, trace.to_json(), place);
    };
    let _timer = endpoint.pool.after(Duration::from_secs(seconds), finish)?;
    Ok(())
}

/// A body of any size. It has its place to its end.
fn send(response: Response, content_type: &str, text: String, place: Place) -> Result<()> {
    if text.len() <= PIECE {
        return response.send_as(content_type, text);
    }
    let mut at = 0;
    let response = response.header("Content-Type", content_type);
    response.stream(Some(text.len() as u64))?.pump(move |body| {
        let _held = &place;
        let end = (at + PIECE).min(text.len());
        body.write(&text.as_bytes()[at..end])?;
        at = end;
        Ok(at < text.len())
    });
    Ok(())
}

/// 200 or 503; a reason a line, for who may read them.
fn health(endpoint: &Endpoint, response: Response, live: bool, may_read: bool) -> Result<()> {
    let health = endpoint.health();
    let (is_well, unready) = match live {
        true => (health.is_live(), &[][..]),
        false => (health.is_ready(), &*health.unready),
    };
    let mut text = String::from(if is_well { "ok\n" } else { "failing\n" });
    let reasons = health.dead.iter().chain(unready).chain(&health.degraded);
    for reason in reasons.filter(|_| may_read) {
        text.push_str(reason);
        text.push('\n');
    }
    response.status(if is_well { 200 } else { 503 }).text(text)
}

/// One more viewer, for whom another gives way if there are too many.
fn watch(endpoint: &Endpoint, response: Response) -> Result<()> {
    // nginx would hold events back until its buffer is full.
    let response = response.header("X-Accel-Buffering", "no");
    let body = response.header("Content-Type", "text/event-stream").stream(None)?;
    let mut feed = endpoint.feed();
    feed.admit(body);
    drop(feed);
    endpoint.watch_closely();
    Ok(())
}

fn set_levels(endpoint: &Endpoint, request: &Request<'_>, response: Response) -> Result<()> {
    // A server of the program's may take more, which would be sent back in the reason.
    if request.body().len() > MOST_LEVELS {
        return response.status(413).text(format!("levels have at most {MOST_LEVELS} bytes\n"));
    }
    let text = String::from_utf8_lossy(request.body());
    match text.trim().parse::<Levels>() {
        Err(error) => response.status(400).text(format!("{error}\n")),
        Ok(levels) if endpoint.set_levels(levels) => response.text(format!("{levels}\n")),
        Ok(_) => response.status(404).text("the pool has no log\n"),
    }
}

impl Endpoint {
    /// The pool by itself, and all figures.
    fn stats(&self) -> Json {
        let shared = self.watched.upgrade();
        let stats = shared.as_ref().map(|shared| Stats::of(shared));
        let threads = stats.iter().flat_map(|stats| &stats.threads).enumerate();
        let threads: Vec<_> = threads
            .map(|(index, thread)| {
                json!({
                    "thread": index,
                    "role": format!("{:?}", thread.role).to_lowercase(),
                    "cpu": thread.cpu,
                    "terms": thread.terms,
                    "handovers": thread.handovers,
                    "rescues": thread.rescues,
                    "events": thread.events,
                    "handled": thread.handled,
                    "tasks": thread.tasks,
                    "panics": thread.panics,
                })
            })
            .collect();
        let sets = stats.iter().flat_map(|stats| &stats.sets);
        let sets: Vec<_> = sets
            .map(|set| json!({ "leader": set.leader, "terms": set.harvests, "surplus": set.surplus }))
            .collect();
        let figures: Json = from_str(&self.registry.snapshot().to_json()).unwrap_or_default();
        json!({
            "pool": self.name,
            "threads": threads,
            "sets": sets,
            "queued": stats.as_ref().map(|stats| stats.queued),
            "figures": figures,
            "bridges": shared.as_ref().map(bridges),
            "viewers": self.feed().viewers(),
            "under_way": self.under_way.load(Relaxed),
        })
    }
}
