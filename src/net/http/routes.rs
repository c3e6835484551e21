//! Which handler a request is for.

use super::request::{Request, RequestBody};
use super::response::Response;
use crate::error::{Error, Result};
use matchit::{Params, Router};
use std::collections::BTreeMap;

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
    methods: Vec<(String, Route)>,
    /// `Allow: GET, HEAD`, with the end of the line.
    allow: String,
}

impl Endpoint {
    #[inline]
    fn find(&self, method: &str) -> Option<&Route> {
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
pub(super) enum Found<'r, 'p> {
    Route(&'r Route, Params<'r, 'p>),
    /// With the Allow line.
    NotAllowed(&'r str),
    /// No route of the server has this method, and it is none of HTTP's own.
    NotImplemented,
    Nothing,
}

/// Methods that are understood, though a server may have no route for them.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"];

/// All routes of a server.
pub(super) struct Routes {
    router: Router<Endpoint>,
    methods: Vec<String>,
}

impl Routes {
    /// # Errors
    /// [`Error::Invalid`] names the route that cannot be.
    pub(super) fn new(routes: Vec<(String, String, Route)>) -> Result<Self> {
        let mut endpoints: BTreeMap<String, Endpoint> = BTreeMap::new();
        let mut methods: Vec<String> = METHODS.map(String::from).into();
        for (method, pattern, route) in routes {
            check(&method, &pattern)?;
            methods.push(method.clone());
            let endpoint = endpoints.entry(pattern.clone()).or_default();
            if endpoint.methods.iter().any(|(name, _)| *name == method) {
                let value = format!("{method} {pattern}");
                return Err(Error::invalid("route", value, "there once"));
            }
            endpoint.methods.push((method, route));
        }
        let mut router = Router::new();
        for (pattern, mut endpoint) in endpoints {
            endpoint.tell_allowed();
            router.insert(&pattern, endpoint).map_err(|error| {
                Error::invalid("route", &pattern, format!("a pattern of its own ({error})"))
            })?;
        }
        Ok(Self { router, methods })
    }

    #[inline]
    pub(super) fn find<'r, 'p>(&'r self, method: &str, path: &'p str) -> Found<'r, 'p> {
        let Ok(found) = self.router.at(path) else { return self.missing(method, Found::Nothing) };
        match found.value.find(method) {
            Some(route) => Found::Route(route, found.params),
            None => self.missing(method, Found::NotAllowed(&found.value.allow)),
        }
    }

    #[cold]
    fn missing<'r, 'p>(&self, method: &str, otherwise: Found<'r, 'p>) -> Found<'r, 'p> {
        match self.methods.iter().any(|name| name == method) {
            true => otherwise,
            false => Found::NotImplemented,
        }
    }
}

fn check(method: &str, pattern: &str) -> Result<()> {
    if method.is_empty() || !method.bytes().all(super::chunks::is_token) {
        return Err(Error::invalid("method", format!("{method:?}"), "a token, as GET"));
    }
    if !pattern.starts_with('/') && pattern != "*" {
        return Err(Error::invalid("route", pattern, "a path that begins with /"));
    }
    Ok(())
}
