//! Which handler a request is for.

use super::middleware::{self, Middleware};
use crate::error::{Error, Result};
use crate::http::exchange::request::{PathParams, Request, RequestBody};
use crate::http::exchange::response::Response;
use crate::http::message::chunks::is_token;
use crate::http::message::head::Head;
use crate::trace::{self, Name};
use matchit::{Match, Router};
use std::collections::HashSet;
use std::sync::Arc;

pub(crate) type WholeHandler = dyn Fn(&Request<'_>, Response) + Send + Sync;
/// Says also whether the body is wanted at once.
pub(crate) type StreamingFactory =
    dyn Fn(&Request<'_>, Response) -> (Box<dyn RequestBody>, bool) + Send + Sync;

/// What handles a request.
pub(crate) enum Route {
    /// With its whole body.
    Whole(Box<WholeHandler>),
    /// With its body as it comes.
    Streaming(Box<StreamingFactory>),
}

impl Route {
    /// With all of these around it. A middleware that does not go on leaves no body to be taken.
    fn within(self, middleware: &Arc<[Box<Middleware>]>) -> Self {
        if middleware.is_empty() {
            return self;
        }
        let middleware = Arc::clone(middleware);
        match self {
            Self::Whole(handler) => Self::Whole(Box::new(move |request, response| {
                middleware::run(&middleware, request, response, &mut |request, response| {
                    handler(request, response);
                });
            })),
            Self::Streaming(factory) => Self::Streaming(Box::new(move |request, response| {
                let mut made = None;
                middleware::run(&middleware, request, response, &mut |request, response| {
                    made = Some(factory(request, response));
                });
                made.unwrap_or_else(nothing_taken)
            })),
        }
    }
}

/// What takes the body of a request that nobody wants.
struct Dropped;

impl RequestBody for Dropped {
    fn data(&mut self, bytes: &[u8]) -> usize {
        bytes.len()
    }
    fn end(self: Box<Self>) {}
}

fn nothing_taken() -> (Box<dyn RequestBody>, bool) {
    (Box::new(Dropped), false)
}

/// What one pattern has for one method.
pub(crate) struct Endpoint {
    /// None: it is no route's.
    pub(crate) pattern: Option<String>,
    /// What its requests are called.
    name: Name,
    pub(crate) route: Route,
    /// In the order in which routes were set; beyond all of them if it is no route's.
    pub(crate) number: u32,
    method: String,
}

impl Endpoint {
    /// Its handler runs from now on.
    #[inline]
    pub(crate) fn entered(&self) -> &Self {
        trace::runs(self.name);
        self
    }
}

/// What the patterns of one method are for: numbers of endpoints.
struct Table {
    method: String,
    router: Router<u32>,
}

/// The tables of all methods. Each method is routed by itself: a pattern that matches is not hidden by a
/// closer one of another method.
struct Tables(Vec<Table>);

impl Tables {
    fn at<'r, 'p>(&'r self, method: &str, path: &'p str) -> Option<Match<'r, 'p, &'r u32>> {
        let table = self.0.iter().find(|table| table.method == method)?;
        table.router.at(path).ok()
    }

    /// The methods that a path has routes for, as an Allow line names them. None: it has none.
    fn allowed(&self, path: &str) -> Option<String> {
        // The whole server (RFC 9110, 9.3.7).
        let is_any = path == "*";
        let mut names: Vec<&str> = Vec::new();
        for Table { method, router } in &self.0 {
            if is_any || router.at(path).is_ok() {
                names.push(method);
                names.extend((method == "GET").then_some("HEAD"));
            }
        }
        if names.is_empty() && !is_any {
            return None;
        }
        names.retain(|name| *name != "OPTIONS");
        names.push("OPTIONS");
        let mut allowed: Vec<&str> = Vec::new();
        for name in names {
            if !allowed.contains(&name) {
                allowed.push(name);
            }
        }
        Some(allowed.join(", "))
    }
}

/// The patterns of routes, in the order in which they are set.
#[derive(Default)]
pub(crate) struct Patterns {
    tables: Vec<Table>,
    known: HashSet<(String, String)>,
}

impl Patterns {
    /// # Errors
    /// [`Error::Invalid`] names the route that cannot be; nothing has changed then.
    pub(crate) fn add(&mut self, method: &str, pattern: &str) -> Result<()> {
        check(method, pattern)?;
        let number = self.known.len() as u32;
        let route = (method.to_owned(), pattern.to_owned());
        if self.known.contains(&route) {
            let value = format!("{method} {pattern}");
            return Err(Error::invalid("route", value, "there once"));
        }
        let known = self.tables.iter().position(|table| table.method == method);
        let at = known.unwrap_or_else(|| {
            self.tables.push(Table { method: method.to_owned(), router: Router::new() });
            self.tables.len() - 1
        });
        self.tables[at].router.insert(pattern, number).map_err(|error| {
            Error::invalid("route", pattern, format!("a pattern of its own ({error})"))
        })?;
        self.known.insert(route);
        Ok(())
    }
}

/// What was found.
pub(crate) enum Found<'r> {
    Route(&'r Endpoint),
    /// A parameter of its path is no text.
    Undecodable,
    /// With the Allow line.
    NotAllowed(String),
    /// No route of the server has this method, and it is none of HTTP's own.
    NotImplemented,
    Nothing,
}

/// Methods that are understood, though a server may have no route for them.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"];

/// All routes of a server.
pub(crate) struct Routes {
    endpoints: Vec<Endpoint>,
    tables: Arc<Tables>,
    /// Answers OPTIONS of what has no route for it.
    options: Endpoint,
    /// Answers what no route takes. None: the connection does.
    pub(crate) fallback: Option<Endpoint>,
}

impl Routes {
    /// # Errors
    /// [`Error::Invalid`] names the route that cannot be.
    pub(crate) fn new(
        routes: Vec<(String, String, Route)>,
        middleware: Vec<Box<Middleware>>,
        fallback: Option<Box<WholeHandler>>,
    ) -> Result<Self> {
        let middleware = Arc::from(middleware);
        let (mut endpoints, mut patterns) = (Vec::<Endpoint>::new(), Patterns::default());
        for (method, pattern, route) in routes {
            patterns.add(&method, &pattern)?;
            endpoints.push(Endpoint {
                name: Name::new(&format!("{method} {pattern}")),
                pattern: Some(pattern),
                route: route.within(&middleware),
                number: endpoints.len() as u32,
                method,
            });
        }
        let tables = Arc::new(Tables(patterns.tables));
        let nowhere = |name: &str, route: Route| Endpoint {
            pattern: None,
            name: Name::new(name),
            route: route.within(&middleware),
            number: u32::MAX,
            method: String::new(),
        };
        let options = nowhere("OPTIONS", options(Arc::clone(&tables)));
        let error = || -> Box<WholeHandler> {
            // It fails when the peer is gone, which is counted elsewhere.
            Box::new(|_, response| drop(response.error()))
        };
        let fallback = fallback.or_else(|| (!middleware.is_empty()).then(error)).map(|handler| {
            nowhere(
                "(no route)",
                Route::Streaming(Box::new(move |request, response| {
                    handler(request, response);
                    nothing_taken()
                })),
            )
        });
        Ok(Self { endpoints, tables, options, fallback })
    }

    /// The method and the pattern of each route, by number.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.endpoints
            .iter()
            .map(|route| (&*route.method, route.pattern.as_deref().unwrap_or_default()))
    }

    /// What stands for parameters is left in `params`.
    pub(crate) fn find<'r, 'p>(
        &'r self,
        head: &Head<'_, 'p>,
        params: &mut Option<PathParams<'r, 'p>>,
    ) -> Found<'r> {
        let (method, path) = (head.method, head.path);
        let found = match self.tables.at(method, path) {
            None if method == "HEAD" => self.tables.at("GET", path),
            found => found,
        };
        let Some(found) = found else { return self.missing(method, path) };
        *params = PathParams::decode(found.params, path);
        match params {
            Some(_) => Found::Route(&self.endpoints[*found.value as usize]),
            None => Found::Undecodable,
        }
    }

    #[cold]
    fn missing(&self, method: &str, path: &str) -> Found<'_> {
        let is_known =
            METHODS.contains(&method) || self.tables.0.iter().any(|table| table.method == method);
        match self.tables.allowed(path) {
            _ if !is_known => Found::NotImplemented,
            None => Found::Nothing,
            Some(_) if method == "OPTIONS" => Found::Route(&self.options),
            Some(allow) => Found::NotAllowed(format!("Allow: {allow}\r\n")),
        }
    }
}

/// Says which methods a path has routes for, or the whole server (RFC 9110, 9.3.7).
fn options(tables: Arc<Tables>) -> Route {
    Route::Whole(Box::new(move |request: &Request<'_>, response: Response| {
        let allow = tables.allowed(request.path()).unwrap_or_default();
        // It fails when the peer is gone, which is counted elsewhere.
        let _ = response.status(204).header("Allow", allow).send("");
    }))
}

fn check(method: &str, pattern: &str) -> Result<()> {
    if method.is_empty() || !method.bytes().all(is_token) {
        return Err(Error::invalid("method", format!("{method:?}"), "a token, as GET"));
    }
    let upper = method.to_ascii_uppercase();
    if method != upper && (METHODS.contains(&&*upper) || upper == "CONNECT") {
        let allowed = format!("\"{upper}\": methods distinguish upper and lower case");
        return Err(Error::invalid("method", format!("{method:?}"), allowed));
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
    let wrong = |allowed: String| Err(Error::invalid("route", pattern, allowed));
    for segment in pattern.split('/').filter(|_| pattern != "*") {
        if let Some(name) = segment.strip_prefix(':').or_else(|| segment.strip_prefix('*')) {
            let star = if segment.starts_with('*') { "*" } else { "" };
            let name = if name.is_empty() { "name" } else { name };
            return wrong(format!(
                "a path whose parameters are written {{{star}{name}}}, not {segment}"
            ));
        }
    }
    let (literal, names) = parts(pattern);
    if let Some((_, name)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name))
    {
        return wrong(format!(
            "one with a name of its own for each parameter: {{{name}}} is there twice"
        ));
    }
    if let Some(letter) = literal.chars().find(|letter| !is_of_path(*letter)) {
        return wrong(match letter {
            '?' | '#' => format!("a path alone, without {letter} and what follows"),
            letter => format!(
                "percent-encoded where it has {letter:?}: paths are matched as they are sent"
            ),
        });
    }
    Ok(())
}

/// Whether a path may have it, as `head.rs` reads one.
fn is_of_path(letter: char) -> bool {
    letter.is_ascii_graphic() && !matches!(letter, '?' | '"' | '#' | '<' | '>' | '\\')
}

/// What stands in a pattern for itself, and the names of its parameters. Braces that come twice stand for one.
fn parts(pattern: &str) -> (String, Vec<&str>) {
    let (mut literal, mut names, mut rest) = (String::new(), Vec::new(), pattern);
    while let Some((before, behind)) = rest.split_once('{') {
        literal.push_str(before);
        rest = match behind.strip_prefix('{') {
            Some(behind) => behind,
            None => {
                let (name, behind) = behind.split_once('}').unwrap_or((behind, ""));
                names.push(name.strip_prefix('*').unwrap_or(name));
                behind
            }
        };
    }
    literal.push_str(rest);
    (literal, names)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::http::message::chunks::Length;
    use crate::http::message::refusal::Media;

    fn routes(patterns: &[(&str, &str)]) -> Routes {
        let route = |(method, pattern): &(&str, &str)| {
            let handler = Box::new(|_: &Request<'_>, response| drop::<Response>(response));
            (method.to_string(), pattern.to_string(), Route::Whole(handler))
        };
        Routes::new(patterns.iter().map(route).collect(), Vec::new(), None).unwrap()
    }

    /// What is found: the route's address, or why there is none, and the parameters.
    fn found(routes: &Routes, method: &str, path: &str) -> String {
        let head = &Head {
            method,
            target: path,
            path,
            query: None,
            is_1_1: true,
            fields: &[],
            size: 0,
            body: Length::Known(0),
            persists: true,
            expects_continue: false,
            upgrade: None,
            media: Media::Text,
        };
        let mut params = None;
        let found = match routes.find(head, &mut params) {
            Found::Route(endpoint) => format!("{:p}", core::ptr::from_ref(endpoint)),
            Found::Undecodable => "undecodable".to_owned(),
            Found::NotAllowed(allow) => allow,
            Found::NotImplemented => "not implemented".to_owned(),
            Found::Nothing => "nothing".to_owned(),
        };
        let params: Vec<_> = params.iter().flat_map(PathParams::iter).collect();
        format!("{found} {params:?}")
    }

    /// Goal: each method and path has the route that is meant for it, or the reason why it has none.
    #[test]
    fn each_request_finds_its_route() {
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
        let route =
            |at: usize, params: &str| format!("{:p} [{params}]", &raw const routes.endpoints[at]);
        for (method, path, expected) in [
            ("GET", "/", route(0, "")),
            ("HEAD", "/", route(0, "")),
            ("GET", "/a", route(1, "")),
            ("POST", "/a", route(2, "")),
            ("GET", "/b", route(3, "(\"name\", \"b\")")),
            ("GET", "/{name}", route(3, "(\"name\", \"{name}\")")),
            ("PUT", "/a/b", route(4, "(\"name\", \"b\")")),
            ("GET", "/a/b", route(5, "")),
            ("GET", "/{c}", route(6, "")),
            ("HEAD", "/d/e/f", route(7, "(\"rest\", \"e/f\")")),
            ("GET", "/x/y", "nothing []".into()),
            ("PUT", "/a", "Allow: GET, HEAD, POST, OPTIONS\r\n []".into()),
            ("DELETE", "/a/c", "Allow: PUT, OPTIONS\r\n []".into()),
            ("BREW", "/a", "not implemented []".into()),
            ("GET", "/%ff", "undecodable []".into()),
        ] {
            assert_eq!(found(&routes, method, path), expected, "{method} {path}");
        }
    }
}
