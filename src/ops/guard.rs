//! Who may ask.
//!
//! | peer | without a token | with a token |
//! |---|---|---|
//! | of this machine, asking for this machine | may read | must show it |
//! | of this machine, asking for another name | 403 | must show it |
//! | a browser of this machine, for a page of another site | 403 | must show it |
//! | another | 403 | must show it |
//!
//! The second row is a page of elsewhere whose name was made to lead here (DNS rebinding): a browser sends its name
//! as `Host`. The third one is a page that cannot read the answer, but could take all places of viewers or have the
//! pool recorded: a browser says so in `Sec-Fetch-Site`. A link that its reader follows is answered.

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

    /// May this request read?
    pub(super) fn check(&self, request: &Request<'_>) -> core::result::Result<(), Refused> {
        match &self.token {
            Some(token) => match shown(request) {
                Some(given) if is_same(given.as_bytes(), token.as_bytes()) => Ok(()),
                _ => Err(Refused::NoToken),
            },
            None if !is_near(request.peer()) => {
                Err(Refused::Forbidden("without a token only this machine is answered\n"))
            }
            None if !is_for_us(request) => Err(Refused::Forbidden(
                "without a token the Host must be an address or localhost\n",
            )),
            None if is_for_another_site(request) => {
                Err(Refused::Forbidden("without a token pages of other sites are not answered\n"))
            }
            None => Ok(()),
        }
    }

    /// May it change something?
    pub(super) fn check_change(&self, request: &Request<'_>) -> core::result::Result<(), Refused> {
        match self.token {
            Some(_) => self.check(request),
            None => Err(Refused::Forbidden("changes need a token, and this endpoint has none\n")),
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

/// Whether the name that was asked for is an address, or one that only this machine has. A Unix socket has any.
fn is_for_us(request: &Request<'_>) -> bool {
    if !matches!(request.peer(), Address::Tcp(_)) {
        return true;
    }
    let Some(host) = request.header("host") else { return true };
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
fn is_for_another_site(request: &Request<'_>) -> bool {
    let is = |name, value: &str| request.header(name).is_some_and(|it| it.trim() == value);
    let is_foreign = is("sec-fetch-site", "cross-site") || is("sec-fetch-site", "same-site");
    is_foreign && !is("sec-fetch-dest", "document")
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
