//! The live page: one document, whose script and style are its own.
//!
//! Its policy allows only what carries this answer's nonce, and connections to where it came from. It has no data: what
//! it shows comes from `/events`, for which it asks with the token that its reader has given.

use crate::error::Result;
use crate::http::Response;
use core::hash::{BuildHasher, Hasher};
use std::hash::RandomState;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub(super) fn send(response: Response) -> Result<()> {
    let nonce = nonce();
    let page = PAGE
        .replacen("{style}", STYLE, 1)
        .replacen("{script}", SCRIPT, 1)
        .replace("{nonce}", &nonce);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    response
        .header("Content-Security-Policy", policy)
        .header("Referrer-Policy", "no-referrer")
        .header("X-Content-Type-Options", "nosniff")
        .header("Cache-Control", "no-store")
        .send_as("text/html; charset=utf-8", page)
}

/// Another one each time: the standard library's hash keys are random.
fn nonce() -> String {
    let number = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", number(), number())
}
