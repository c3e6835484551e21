//! What a request says about its answer.

use crate::http::message::answer_head::Persistence;
use crate::http::message::head::Head;
use crate::http::message::refusal::Media;

/// What the request says about its answer. In one byte, for what is shared, and for connections to be small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestFlags(u8);

/// What the peer would do besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offer {
    Nothing,
    /// Speak another protocol.
    Upgrade,
    /// Send the body, after `100 Continue`, which was not sent yet.
    Body,
}

impl RequestFlags {
    const IS_1_1: u8 = 1;
    const HEAD_ONLY: u8 = 1 << 1;
    const PERSISTS: u8 = 1 << 2;
    const UPGRADE: u8 = 1 << 3;
    /// The bit of [`Offer::Body`].
    pub(crate) const BODY: u8 = 1 << 4;
    /// Where the two bits of [`Media`] are.
    const MEDIA: u32 = 5;

    #[inline]
    pub(crate) fn to_bits(self) -> u8 {
        self.0
    }

    #[inline]
    pub(crate) fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    #[inline]
    pub(crate) fn is_1_1(self) -> bool {
        self.0 & Self::IS_1_1 != 0
    }

    /// HEAD: the answer has no body.
    #[inline]
    pub(crate) fn head_only(self) -> bool {
        self.0 & Self::HEAD_ONLY != 0
    }

    /// More requests may follow, as far as the request and the server's settings go.
    #[inline]
    pub(crate) fn persists(self) -> bool {
        self.0 & Self::PERSISTS != 0
    }

    /// The same, unless no more requests follow.
    #[inline]
    pub(crate) fn persists_if(self, persists: bool) -> Self {
        if persists { self } else { Self(self.0 & !Self::PERSISTS) }
    }

    #[inline]
    pub(crate) fn offer(self) -> Offer {
        match self.0 & (Self::UPGRADE | Self::BODY) {
            0 => Offer::Nothing,
            Self::UPGRADE => Offer::Upgrade,
            _ => Offer::Body,
        }
    }

    #[inline]
    pub(crate) fn with_offer(self, offer: Offer) -> Self {
        let bits = match offer {
            Offer::Nothing => 0,
            Offer::Upgrade => Self::UPGRADE,
            Offer::Body => Self::BODY,
        };
        Self(self.0 & !(Self::UPGRADE | Self::BODY) | bits)
    }

    /// The form in which it wants an error.
    pub(crate) fn media(self) -> Media {
        match self.0 >> Self::MEDIA & 3 {
            0 => Media::Text,
            1 => Media::Json,
            2 => Media::Problem,
            _ => Media::Html,
        }
    }

    /// Whether the answer may be followed by another request. One that comes before the body was asked for
    /// is the last: whether the peer sends the body then cannot be known (RFC 9110, 10.1.1).
    #[inline]
    pub(crate) fn goes_on(self) -> bool {
        self.persists() && self.offer() != Offer::Body
    }

    /// By what is no request.
    pub(crate) fn nothing() -> Self {
        Self(Self::IS_1_1)
    }

    /// By bytes that are no whole or no good head.
    #[cold]
    pub(crate) fn by_part(bytes: &[u8]) -> Self {
        let head_only = bytes.trim_ascii_start().starts_with(b"HEAD ");
        Self(Self::IS_1_1 | if head_only { Self::HEAD_ONLY } else { 0 })
    }

    #[inline]
    pub(crate) fn by(head: &Head<'_, '_>, persists: bool) -> Self {
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        Self(
            bit(head.is_1_1, Self::IS_1_1)
                | bit(head.method == "HEAD", Self::HEAD_ONLY)
                | bit(persists, Self::PERSISTS)
                | bit(head.upgrade.is_some(), Self::UPGRADE)
                | (head.media as u8) << Self::MEDIA,
        )
    }

    #[inline]
    pub(crate) fn persistence(self, closes: bool) -> Persistence {
        match (closes, self.is_1_1()) {
            (true, _) => Persistence::Close,
            (false, true) => Persistence::Implied,
            (false, false) => Persistence::KeepAlive,
        }
    }
}
