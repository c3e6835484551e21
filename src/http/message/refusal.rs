//! Why the server answers in a handler's place, and in which form.

use crate::accept::preferred;

/// Why the server answers in a handler's place, as a status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    BadRequest,
    NotFound,
    MethodNotAllowed,
    Timeout,
    BodyTooLarge,
    TargetTooLong,
    Expectation,
    HeadTooLarge,
    /// The handler panicked.
    Panicked,
    /// The handler dropped its response, or spoiled it.
    Unanswered,
    NotImplemented,
    Busy,
    Version,
}

impl Refusal {
    pub(crate) const COUNT: usize = 13;

    pub(crate) fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Timeout => 408,
            Self::BodyTooLarge => 413,
            Self::TargetTooLong => 414,
            Self::Expectation => 417,
            Self::HeadTooLarge => 431,
            Self::Panicked | Self::Unanswered => 500,
            Self::NotImplemented => 501,
            Self::Busy => 503,
            Self::Version => 505,
        }
    }

    /// The one of this number, as `as` gives it.
    pub(crate) fn numbered(number: u16) -> Self {
        const ALL: [Refusal; Refusal::COUNT] = [
            Refusal::BadRequest,
            Refusal::NotFound,
            Refusal::MethodNotAllowed,
            Refusal::Timeout,
            Refusal::BodyTooLarge,
            Refusal::TargetTooLong,
            Refusal::Expectation,
            Refusal::HeadTooLarge,
            Refusal::Panicked,
            Refusal::Unanswered,
            Refusal::NotImplemented,
            Refusal::Busy,
            Refusal::Version,
        ];
        ALL[usize::from(number)]
    }
}

/// In which form a peer wants an error, as its Accept header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Media {
    Text,
    Json,
    /// RFC 9457.
    Problem,
    Html,
}

impl Media {
    pub(crate) fn by(accept: &[u8]) -> Self {
        let offers = ["text/plain", "application/json", "application/problem+json", "text/html"];
        let accept = core::str::from_utf8(accept).unwrap_or_default();
        [Self::Text, Self::Json, Self::Problem, Self::Html][preferred(accept, &offers)]
    }
}
