//! Who may ask.
//!
//! | request | without a token | with a token |
//! |---|---|---|
//! | of this machine, for this machine | may read | must show it |
//! | of this machine, for another name, in `Host` or in the target | 403 | must show it |
//! | of this machine, that a proxy has passed on | 403 | must show it |
//! | of a browser of this machine, for a page of another site | 403 | must show it |
//! | a link of another site to `/trace` or `/events`, which a browser follows | 403 | must show it |
//! | of another machine | 403 | must show it |
//! | to change something | 403 | must show it |
//! | for the page itself, which has no data | answered | answered |
//! | for `/health/…`, by anybody else | `ok` or `failing`, without reasons | `ok` or `failing`, without reasons |
//!
//! Another name is a page of elsewhere whose name was made to lead here (DNS rebinding): a browser sends its name as
//! `Host`. A page of another site cannot read the answer, but could take places of viewers or have the pool recorded: a
//! browser says so in `Sec-Fetch-Site`, an older one in `Origin`. A link that its reader follows is answered, but for those
//! that make the endpoint work: a recording has to be asked for from the page.
//!
//! A proxy on the same machine makes every request one of this machine. It is known by `Forwarded`, `X-Forwarded-…`,
//! `X-Real-IP` or `Via`, or by HTTP/1.0, which nginx asks with unless it is told otherwise. One that hides itself, as a
//! tunnel does, cannot be told from a program of this machine: whoever sets one up sets a token.
//!
//! Mounting without a token is allowed: a server that only this machine reaches needs none, and what comes to any other is
//! refused request by request. An orchestrator's probes cannot carry a secret, and learn from `/health/…` what its status
//! says anyway. No answer is compressed: readers of this machine gain nothing by it, and a proxy in front can do it.

use crate::error::{Error, Result};
use crate::http::Request;
use crate::net::Address;
use core::net::IpAddr;

/// The least letters of a token.
const LEAST: usize = 16;

/// See the module's documentation.
pub(super) struct Guard {
    token: Option<String>,
}

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// 401.
    NoToken,
    /// 401.
    WrongToken,
    /// 403, with the reason.
    Forbidden(&'static str),
}

impl Guard {
    /// # Errors
    /// [`Error::Invalid`] for a token that is short, or cannot be sent as one.
    pub(super) fn new(token: Option<String>) -> Result<Self> {
        if let Some(token) = &token {
            let is_whole = token.bytes().all(|byte| byte.is_ascii_graphic());
            if token.len() < LEAST || !is_whole {
                let allowed = "at least 16 visible ASCII characters";
                let value = format!("of {} characters", token.chars().count());
                return Err(Error::invalid("token", value, allowed));
            }
        }
        Ok(Self { token })
    }

    /// # Errors
    /// [`Error::Invalid`]: peers of other machines could connect there, and there is no token.
    pub(super) fn check_place(&self, place: &Address) -> Result<()> {
        let is_open = matches!(place, Address::Tcp(address) if !address.ip().is_loopback());
        match is_open && self.token.is_none() {
            false => Ok(()),
            true => Err(Error::invalid(
                "address",
                place,
                "a loopback address or a Unix socket, unless a token is set",
            )),
        }
    }

    /// May this request read? `works`: the answer takes a place, or has the pool recorded.
    pub(super) fn check(
        &self,
        request: &Request<'_>,
        works: bool,
    ) -> core::result::Result<(), Refused> {
        let reason = match &self.token {
            Some(token) => {
                return match shown(request) {
                    Some(given) if is_same(given.as_bytes(), token.as_bytes()) => Ok(()),
                    Some(_) => Err(Refused::WrongToken),
                    None => Err(Refused::NoToken),
                };
            }
            None if !is_near(request.peer()) => "only this machine is answered",
            None if is_passed_on(request) => {
                "no request is answered that a proxy has passed on, which Forwarded, X-Forwarded-*, X-Real-IP and Via tell"
            }
            None if request.version() == 0 => {
                "HTTP/1.0 is not answered, since a proxy asks with it for other machines, as nginx does by default"
            }
            None if !is_for_us(request) => "the Host must be an address or localhost",
            None if is_for_another_site(request, works) => "pages of other sites are not answered",
            None => return Ok(()),
        };
        Err(Refused::Forbidden(reason))
    }

    /// May it change something?
    pub(super) fn check_change(&self, request: &Request<'_>) -> core::result::Result<(), Refused> {
        match self.token {
            Some(_) => self.check(request, true),
            None => Err(Refused::Forbidden("nothing can be changed")),
        }
    }
}

fn shown<'a>(request: &Request<'a>) -> Option<&'a str> {
    let (scheme, token) = request.header("authorization")?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Takes as long for every wrong token of the same length.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let differs = given.iter().zip(token).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && core::hint::black_box(differs) == 0
}

fn is_near(peer: &Address) -> bool {
    match peer {
        Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
        Address::Unix(_) | Address::Abstract(_) | Address::Unnamed => true,
    }
}

/// Whether a proxy says that it asks for somebody else.
fn is_passed_on(request: &Request<'_>) -> bool {
    request.headers().any(|(name, _)| {
        let name = name.to_ascii_lowercase();
        name.starts_with("x-forwarded") || matches!(&*name, "forwarded" | "x-real-ip" | "via")
    })
}

/// Whether the names that were asked for are addresses, or ones that only this machine has. A Unix socket has any.
fn is_for_us(request: &Request<'_>) -> bool {
    if !matches!(request.peer(), Address::Tcp(_)) {
        return true;
    }
    // A target may name a host, too, which counts for more than the header (RFC 9112, 3.2.2).
    let named = request.target().split_once("://").filter(|_| !request.target().starts_with('/'));
    let named = named.map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or(rest));
    named.into_iter().chain(request.header("host")).all(is_ours)
}

fn is_ours(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.');
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
}

/// Whether a browser asks for a page of another site, and not to show the answer to its reader.
fn is_for_another_site(request: &Request<'_>, works: bool) -> bool {
    let is = |name, value: &str| request.header(name).is_some_and(|it| it.trim() == value);
    // Of its own: the scheme and what `Host` has. A browser that sends none asks for a page of its own, or follows a link.
    let is_own =
        |origin: &str| origin.split_once("://").map(|(_, host)| host) == request.header("host");
    if request.header("origin").is_some_and(|origin| !is_own(origin)) {
        return true;
    }
    let is_foreign = is("sec-fetch-site", "cross-site") || is("sec-fetch-site", "same-site");
    is_foreign && (works || !is("sec-fetch-dest", "document"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_compared_whole() {
        assert!(is_same(b"0123456789abcdef", b"0123456789abcdef"));
        for wrong in ["", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0"] {
            assert!(!is_same(wrong.as_bytes(), b"0123456789abcdef"), "{wrong:?}");
        }
    }

    #[test]
    fn a_token_that_is_short_or_cannot_be_sent_is_refused_without_being_shown() {
        for wrong in ["short", "0123456789abcde", "0123456789 abcdef", "0123456789abcdé\n"] {
            let error = Guard::new(Some(wrong.into())).err().unwrap().to_string();
            assert!(error.contains("token") && !error.contains(wrong), "{error}");
        }
        assert!(Guard::new(Some("0123456789abcdef".into())).is_ok());
    }

    #[test]
    fn only_loopback_needs_no_token() {
        let open = Guard::new(None).unwrap();
        let closed = Guard::new(Some("0123456789abcdef".into())).unwrap();
        for (place, is_allowed) in [
            ("127.0.0.1:0", true),
            ("[::1]:0", true),
            ("unix:@ops", true),
            ("0.0.0.0:0", false),
            ("[::]:0", false),
            ("192.0.2.1:80", false),
        ] {
            let place = crate::net::ToAddress::to_address(place).unwrap();
            assert_eq!(open.check_place(&place).is_ok(), is_allowed, "{place}");
            assert!(closed.check_place(&place).is_ok());
        }
    }
}
