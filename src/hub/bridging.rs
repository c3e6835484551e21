//! What a bridge needs of its hub beyond what users call.

use crate::error::{Error, Result};
use crate::hub::handle::Hub;
use crate::hub::history::{ReplayFrom, ReplayMailbox};
use crate::hub::keys::key;
use crate::hub::message::Headers;
use crate::hub::publish::publishing::{Publication, ToKey};
use crate::hub::request::asking::end_request;
use crate::hub::system::notice::{Notice, Severity};
use crate::hub::system::tell::tell;
use crate::pool::Shared;
use serde_json::Value;
use std::sync::Arc;

impl Hub {
    /// Its number among the hubs of this process.
    pub(crate) fn number(&self) -> u32 {
        self.core.keys.hub()
    }

    /// The pool that its handlers run on.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.core.shared
    }

    /// That it has not ended.
    pub(crate) fn check_open(&self) -> Result<()> {
        self.core.check_open()
    }

    /// The sequence of the last message that was published.
    pub(crate) fn published(&self) -> u64 {
        self.core.published()
    }

    /// A replay of what an archive has of these keys behind this sequence, to a host that acknowledges. None: this hub has
    /// not published that much, so the sequence is another archive's.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a hub without a history of all of them; [`Error::ShutDown`], [`Error::Forked`].
    pub(crate) fn replay_archive(
        &self,
        pattern: &str,
        behind: u64,
    ) -> Result<Option<ReplayMailbox>> {
        if behind > self.published() {
            return Ok(None);
        }
        // From the beginning, too, what is let go of from now on is lost.
        let from = ReplayFrom::Sequence(behind + 1);
        self.replay(pattern, from).acknowledged().mailbox().map(Some)
    }

    /// The id of the archive that has all keys of this pattern.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a hub without one.
    pub(crate) fn archive_of(&self, pattern: &str) -> Result<u64> {
        self.core.histories.archive_of(pattern)?.ok_or_else(|| {
            let allowed = "within that of a history with an archive";
            Error::invalid("the pattern of a spool", format!("{pattern:?}"), allowed)
        })
    }

    /// Whether somebody waits for the reply to the request with this inbox.
    pub(crate) fn awaits_reply(&self, inbox: &str) -> bool {
        self.core.requests.is_open(inbox)
    }

    /// One of those who took the request with this inbox has found nobody who replies.
    pub(crate) fn refuse_request(&self, inbox: &str) {
        if let Some(ended) = self.core.requests.refuse(inbox) {
            end_request(&self.core, ended);
        }
    }

    /// Tells what has happened to a bridge, under `$SYS.bridge.`.
    pub(crate) fn tell_of_bridge(
        &self,
        event: &'static str,
        severity: Severity,
        name: &str,
        message: String,
        fields: Value,
    ) {
        let origin = format!("bridge {name:?}");
        tell(&self.core, severity, None, || Notice { event, severity, origin, message, fields });
    }
}

impl<K: ToKey> Publication<'_, K> {
    /// With one header more, and what the function says of its key.
    pub(crate) fn with_header<R>(
        mut self,
        name: &str,
        value: &str,
        of_key: impl FnOnce(&str) -> R,
    ) -> Result<(Self, R)> {
        let own = core::iter::once((name, value));
        self.options.headers = Headers::new(self.options.headers.iter().chain(own))?;
        let answer = self.key.with_key(self.hub, |key| Ok(of_key(key.as_str())))?;
        Ok((self, answer))
    }
}

/// Whether a key can match both.
pub(crate) fn overlap(one: &str, other: &str) -> bool {
    let (mut left, mut right) = (one.split('.'), other.split('.'));
    loop {
        match (left.next(), right.next()) {
            (Some(">"), Some(_)) | (Some(_), Some(">")) | (None, None) => return true,
            (Some("*"), Some(_)) | (Some(_), Some("*")) => {}
            (Some(a), Some(b)) if a == b => {}
            _ => return false,
        }
    }
}

/// Checks a pattern that crosses a process boundary: none that matches a key of the hub's own or an inbox.
pub(crate) fn check_crossing(name: &'static str, pattern: &str) -> Result<()> {
    key::check_pattern(pattern)?;
    match key::is_reserved(pattern) || is_inbox(pattern) {
        false => Ok(()),
        true => {
            let allowed = "one without the keys of the hub's own and inboxes";
            Err(Error::invalid(name, format!("{pattern:?}"), allowed))
        }
    }
}

/// Whether the first token is that of inboxes.
pub(crate) fn is_inbox(text: &str) -> bool {
    text == "_INBOX" || text.starts_with("_INBOX.")
}
