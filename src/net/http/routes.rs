//! Which handler a request is for.

use super::head::Head;
use super::request::{Request, RequestBody};
use super::response::Response;
use crate::error::{Error, Result};
use core::cell::Cell;
use matchit::{Params, Router};

pub(super) type WholeHandler = dyn Fn(&Request<'_>, Response) + Send + Sync;
pub(super) type StreamingFactory =
    dyn Fn(&Request<'_>, Response) -> Box<dyn RequestBody> + Send + Sync;

/// What handles a request.
pub(super) enum Route {
    /// With its whole body.
    Whole(Box<WholeHandler>),
    /// With its body as it comes.
    Streaming(Box<StreamingFactory>),
}

/// What one pattern has for each method.
#[derive(Default)]
struct Endpoint {
    /// The only path that it matches. None: its pattern has parameters.
    path: Option<String>,
    methods: Vec<(String, Route)>,
    /// Where GET is among them, which is asked for most.
    get: Option<usize>,
    /// `Allow: GET, HEAD`, with the end of the line.
    allow: String,
}

impl Endpoint {
    #[inline]
    fn find(&self, method: &str) -> Option<&Route> {
        if let (b"GET", Some(at)) = (method.as_bytes(), self.get) {
            return Some(&self.methods[at].1);
        }
        self.find_other(method)
    }

    #[inline(never)]
    fn find_other(&self, method: &str) -> Option<&Route> {
        let named = |name: &str| Some(&self.methods.iter().find(|(of, _)| of == name)?.1);
        match named(method) {
            None if method == "HEAD" => named("GET"),
            found => found,
        }
    }

    fn tell_allowed(&mut self) {
        let mut names: Vec<&str> = self.methods.iter().map(|(name, _)| name.as_str()).collect();
        if names.contains(&"GET") && !names.contains(&"HEAD") {
            names.push("HEAD");
        }
        self.allow = format!("Allow: {}\r\n", names.join(", "));
    }
}

/// What was found.
pub(super) enum Found<'r> {
    Route(&'r Route),
    /// With the Allow line.
    NotAllowed(&'r str),
    /// No route of the server has this method, and it is none of HTTP's own.
    NotImplemented,
    Nothing,
}

/// Methods that are understood, though a server may have no route for them.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"];

/// Where a method and a path were found that are kept. A note of other routes says nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    /// The number of the routes; 0: none.
    of: u64,
    endpoint: u32,
    method: u32,
}

impl Noted {
    pub(super) const NOWHERE: Self = Self { of: 0, endpoint: 0, method: 0 };
}

/// The routes of each server have a number that no others ever have.
fn number() -> u64 {
    // Of the standard library also in models: it orders nothing.
    static LAST: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1
}

/// All routes of a server.
pub(super) struct Routes {
    number: u64,
    endpoints: Vec<Endpoint>,
    /// Which of them each pattern is for.
    router: Router<usize>,
    methods: Vec<String>,
}

impl Routes {
    /// # Errors
    /// [`Error::Invalid`] names the route that cannot be.
    pub(super) fn new(routes: Vec<(String, String, Route)>) -> Result<Self> {
        let mut endpoints: Vec<(String, Endpoint)> = Vec::new();
        let mut methods: Vec<String> = METHODS.map(String::from).into();
        for (method, pattern, route) in with_options(routes) {
            check(&method, &pattern)?;
            methods.push(method.clone());
            let known = endpoints.iter().position(|(of, _)| *of == pattern);
            let at = known.unwrap_or_else(|| {
                endpoints.push((pattern.clone(), Endpoint::default()));
                endpoints.len() - 1
            });
            let (_, endpoint) = &mut endpoints[at];
            if endpoint.methods.iter().any(|(name, _)| *name == method) {
                let value = format!("{method} {pattern}");
                return Err(Error::invalid("route", value, "there once"));
            }
            endpoint.methods.push((method, route));
        }
        let mut router = Router::new();
        for (number, (pattern, _)) in endpoints.iter().enumerate() {
            router.insert(pattern, number).map_err(|error| {
                Error::invalid("route", pattern, format!("a pattern of its own ({error})"))
            })?;
        }
        let endpoints = endpoints.into_iter().map(|(pattern, mut endpoint)| {
            endpoint.tell_allowed();
            endpoint.get = endpoint.methods.iter().position(|(name, _)| name == "GET");
            endpoint.path = (!pattern.contains(['{', '}'])).then_some(pattern);
            endpoint
        });
        Ok(Self { number: number(), endpoints: endpoints.collect(), router, methods })
    }

    /// Looks first at the endpoint that `last` says, and leaves there which one it was: requests of a
    /// connection are often for the same. A path that is a pattern without parameters belongs to that
    /// one before all others. What stands for parameters is left in `params`. A head that is kept has it
    /// noted where a GET of such a path was found.
    #[inline(always)] // It is a few instructions of each request.
    pub(super) fn find<'r, 'p>(
        &'r self,
        head: &Head<'_, 'p>,
        last: &mut u32,
        params: &mut Option<Params<'r, 'p>>,
    ) -> Found<'r> {
        if let Some(noted) = head.noted.map(Cell::get)
            && noted.of == self.number
        {
            return Found::Route(
                &self.endpoints[noted.endpoint as usize].methods[noted.method as usize].1,
            );
        }
        self.find_anew(head, last, params)
    }

    #[inline(never)]
    fn find_anew<'r, 'p>(
        &'r self,
        head: &Head<'_, 'p>,
        last: &mut u32,
        params: &mut Option<Params<'r, 'p>>,
    ) -> Found<'r> {
        let (method, path) = (head.method, head.path);
        if let Some(endpoint) = self.endpoints.get(*last as usize)
            && endpoint.path.as_deref() == Some(path)
            && let Some(route) = endpoint.find(method)
        {
            if let (b"GET", Some(at), Some(noted)) = (method.as_bytes(), endpoint.get, head.noted) {
                noted.set(Noted { of: self.number, endpoint: *last, method: at as u32 });
            }
            return Found::Route(route);
        }
        self.search(method, path, last, params)
    }

    fn search<'r, 'p>(
        &'r self,
        method: &str,
        path: &'p str,
        last: &mut u32,
        params: &mut Option<Params<'r, 'p>>,
    ) -> Found<'r> {
        let Ok(found) = self.router.at(path) else { return self.missing(method, Found::Nothing) };
        let endpoint = &self.endpoints[*found.value];
        (*last, *params) = (*found.value as u32, Some(found.params));
        match endpoint.find(method) {
            Some(route) => Found::Route(route),
            None => self.missing(method, Found::NotAllowed(&endpoint.allow)),
        }
    }

    #[cold]
    fn missing<'r>(&self, method: &str, otherwise: Found<'r>) -> Found<'r> {
        match self.methods.iter().any(|name| name == method) {
            true => otherwise,
            false => Found::NotImplemented,
        }
    }
}

/// With a route for the options of the whole server, unless it has one: all methods that it has routes
/// for (RFC 9110, 9.3.7).
fn with_options(mut routes: Vec<(String, String, Route)>) -> Vec<(String, String, Route)> {
    if routes.iter().any(|(method, pattern, _)| method == "OPTIONS" && pattern == "*") {
        return routes;
    }
    let mut names = Vec::new();
    for (method, ..) in &routes {
        let implied = (method == "GET").then_some("HEAD");
        for name in [method.as_str()].into_iter().chain(implied) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.retain(|name| *name != "OPTIONS");
    names.push("OPTIONS");
    let allow = names.join(", ");
    let answer = move |_: &Request<'_>, response: Response| {
        // It fails when the peer is gone, which is counted elsewhere.
        let _ = response.header("Allow", &allow).send("");
    };
    routes.push(("OPTIONS".into(), "*".into(), Route::Whole(Box::new(answer))));
    routes
}

fn check(method: &str, pattern: &str) -> Result<()> {
    if method.is_empty() || !method.bytes().all(super::chunks::is_token) {
        return Err(Error::invalid("method", format!("{method:?}"), "a token, as GET"));
    }
    if method == "CONNECT" {
        return Err(Error::invalid("method", method, "another one, as there are no tunnels here"));
    }
    if pattern == "*" && method != "OPTIONS" {
        return Err(Error::invalid("route", format!("{method} *"), "OPTIONS * or one of a path"));
    }
    if !pattern.starts_with('/') && pattern != "*" {
        return Err(Error::invalid("route", pattern, "a path that begins with /"));
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::head::{Fields, Length};
    use super::*;

    fn routes(patterns: &[(&str, &str)]) -> Routes {
        let route = |(method, pattern): &(&str, &str)| {
            let handler = Box::new(|_: &Request<'_>, response| drop::<Response>(response));
            (method.to_string(), pattern.to_string(), Route::Whole(handler))
        };
        Routes::new(patterns.iter().map(route).collect()).unwrap()
    }

    /// What is found: the route's address, or why there is none, and the parameters.
    fn found(routes: &Routes, method: &str, path: &str, last: &mut u32) -> String {
        found_of(routes, &head(method, path, None), last)
    }

    fn head<'b>(method: &'b str, path: &'b str, noted: Option<&'b Cell<Noted>>) -> Head<'b, 'b> {
        Head {
            method,
            target: path,
            path,
            query: None,
            is_1_1: true,
            fields: Fields::Found(&[]),
            block: b"",
            size: 0,
            body: Length::Known(0),
            persists: true,
            expects_continue: false,
            upgrade: None,
            noted,
        }
    }

    fn found_of(routes: &Routes, head: &Head<'_, '_>, last: &mut u32) -> String {
        let mut params = None;
        let found = match routes.find(head, last, &mut params) {
            Found::Route(route) => format!("{:p}", core::ptr::from_ref(route)),
            Found::NotAllowed(allow) => allow.to_owned(),
            Found::NotImplemented => "not implemented".to_owned(),
            Found::Nothing => "nothing".to_owned(),
        };
        let params: Vec<_> = params.iter().flat_map(Params::iter).collect();
        format!("{found} {params:?}")
    }

    /// Goal: what is found does not depend on what was found before. Method: every request after every
    /// endpoint, and after none.
    #[test]
    fn what_was_found_last_changes_nothing() {
        let routes = routes(&[
            ("GET", "/"),
            ("GET", "/a"),
            ("POST", "/a"),
            ("GET", "/{name}"),
            ("PUT", "/a/{name}"),
            ("GET", "/a/b"),
            ("GET", "/{{c}}"),
            ("GET", "/d/{*rest}"),
        ]);
        let mut seen = Vec::new();
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "BREW"] {
            for path in
                ["/", "/a", "/b", "/a/b", "/a/c", "/{c}", "/{{c}}", "/d/e/f", "/{name}", "/x/y"]
            {
                let expected = found(&routes, method, path, &mut { u32::MAX });
                for last in 0..routes.endpoints.len() as u32 {
                    assert_eq!(
                        found(&routes, method, path, &mut { last }),
                        expected,
                        "{method} {path}"
                    );
                }
                seen.push(expected);
            }
        }
        seen.sort();
        seen.dedup();
        assert!(seen.len() > 15, "{seen:?}");
    }

    /// Goal: what is noted of a head changes nothing either, whoever's routes it is shown to. Method: servers
    /// that have the same paths in another order, or match them otherwise, ask with one note in turn.
    #[test]
    fn what_was_noted_changes_nothing() {
        let all = [
            routes(&[("GET", "/a"), ("GET", "/b")]),
            routes(&[("POST", "/a"), ("GET", "/b"), ("GET", "/a")]),
            routes(&[("GET", "/{name}")]),
            routes(&[("GET", "/{name}"), ("GET", "/b")]),
        ];
        let mut noted = 0;
        for (method, path) in [("GET", "/a"), ("GET", "/b"), ("HEAD", "/a"), ("POST", "/a")] {
            let note = Cell::new(Noted::NOWHERE);
            let orders = (0..all.len()).flat_map(|a| (0..all.len()).map(move |b| [a, b, a]));
            for routes in orders.flatten().map(|at| &all[at]) {
                let expected = found(routes, method, path, &mut { u32::MAX });
                let mut last = u32::MAX;
                for _ in 0..3 {
                    let found = found_of(routes, &head(method, path, Some(&note)), &mut last);
                    assert_eq!(found, expected, "{method} {path}");
                    noted += usize::from(note.get().of == routes.number);
                }
            }
        }
        assert!(noted > 20, "{noted}");
    }
}
