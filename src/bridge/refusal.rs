//! What it means that the broker did not store a message: that it never will, or not now.
//!
//! | answer | meaning |
//! |---|---|
//! | an error that is in `FINAL`, or the client's that it is too large | the message is at fault: it is given up, and its publisher told |
//! | any other error of the broker's | there is no room for now: fewer are sent at once, after a longer pause each time |
//! | no answer, or one that is none | it is not known: the stream is asked for again, and all is sent again |

use super::waiters::Place;
use crate::time::{Backoff, Jitter};
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::{self, ErrorCode};
use core::hash::BuildHasher;
use core::time::Duration;
use std::hash::RandomState;

/// What became of a message that was sent.
pub(super) enum Sent {
    Stored(Place),
    /// Not for now.
    NoRoom(String),
    Never(String),
    Unknown(String),
}

/// Errors that are about the message itself, so that it has them each time that it is sent: those of the broker's table
/// (`errors.json` of nats-server) that it answers a publication with, up to 2.14. Not among them are, for instance, a full
/// account (10002), a full disk (10047), a full stream (10077), and more requests than the broker can keep (10167).
const FINAL: [ErrorCode; 34] = [
    // Its size, and that of its headers.
    ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM,
    ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM,
    // What its headers expect of the stream.
    ErrorCode::STREAM_NOT_MATCH,
    ErrorCode::STREAM_WRONG_LAST_MESSAGE_ID,
    ErrorCode::STREAM_WRONG_LAST_SEQUENCE,
    ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT,
    ErrorCode::STREAM_EXPECTED_LAST_SEQ_PER_SUBJECT_INVALID,
    ErrorCode::STREAM_MIN_LAST_SEQ,
    // What they have the stream do, and it does not.
    ErrorCode::STREAM_ROLLUP_FAILED,
    ErrorCode::MESSAGE_TTL_INVALID,
    ErrorCode::MESSAGE_TTL_DISABLED,
    ErrorCode::MESSAGE_INCR_DISABLED,
    ErrorCode::MESSAGE_INCR_MISSING,
    ErrorCode::MESSAGE_INCR_PAYLOAD,
    ErrorCode::MESSAGE_INCR_INVALID,
    ErrorCode::MESSAGE_COUNTER_BROKEN,
    ErrorCode::MESSAGE_SCHEDULES_DISABLED,
    ErrorCode::MESSAGE_SCHEDULES_PATTERN_INVALID,
    ErrorCode::MESSAGE_SCHEDULES_TARGET_INVALID,
    ErrorCode::MESSAGE_SCHEDULES_TTL_INVALID,
    ErrorCode::MESSAGE_SCHEDULES_ROLLUP_INVALID,
    ErrorCode::MESSAGE_SCHEDULES_SOURCE_INVALID,
    ErrorCode::MESSAGE_SCHEDULES_SCHEDULER_INVALID,
    ErrorCode::ATOMIC_PUBLISH_DISABLED,
    ErrorCode::ATOMIC_PUBLISH_MISSING_SEQ,
    ErrorCode::ATOMIC_PUBLISH_INCOMPLETE_BATCH,
    ErrorCode::ATOMIC_PUBLISH_UNSUPPORTED_HEADER,
    ErrorCode::ATOMIC_PUBLISH_INVALID_BATCH_ID,
    ErrorCode::ATOMIC_PUBLISH_INVALID_BATCH_COMMIT,
    ErrorCode::BATCH_PUBLISH_DISABLED,
    ErrorCode::BATCH_PUBLISH_INVALID_PATTERN,
    ErrorCode::BATCH_PUBLISH_INVALID_BATCH_ID,
    ErrorCode::BATCH_PUBLISH_UNKNOWN_BATCH_ID,
    // The stream takes no message any more.
    ErrorCode::STREAM_SEALED,
];

/// `expects`: its publisher has said which stream is to store it.
pub(super) fn sent(ack: Result<PublishAck, PublishError>, expects: bool) -> Sent {
    let error = match ack {
        Ok(ack) => {
            return Sent::Stored(Place { sequence: ack.sequence, is_duplicate: ack.duplicate });
        }
        Err(error) => error,
    };
    let reason = error.to_string();
    match (error.kind(), code_of(&error)) {
        (PublishErrorKind::MaxPayloadExceeded, _) => Sent::Never(reason),
        // The rule's fault, not the message's: another stream has the subject.
        (_, Some(ErrorCode::STREAM_NOT_MATCH)) if !expects => Sent::NoRoom(reason),
        (_, Some(code)) if FINAL.contains(&code) => Sent::Never(reason),
        (_, Some(_)) => Sent::NoRoom(reason),
        (_, None) => Sent::Unknown(reason),
    }
}

fn code_of(error: &PublishError) -> Option<ErrorCode> {
    let source = std::error::Error::source(error)?;
    source.downcast_ref::<jetstream::Error>().map(jetstream::Error::error_code)
}

/// How many messages may be under way to a stream, and how long it is left alone when it has no room: with each refusal in
/// a row half as many, and twice as long; with each message that it stores one more, up to the rule's own number.
pub(super) struct Pace {
    most: usize,
    window: usize,
    refusals: u32,
    /// That not all processes come back at once.
    seed: u64,
}

impl Pace {
    pub(super) fn new(most: usize) -> Self {
        Self { most, window: most, refusals: 0, seed: RandomState::new().hash_one(()) }
    }

    pub(super) fn window(&self) -> usize {
        self.window
    }

    pub(super) fn stored(&mut self) {
        self.window = self.most.min(self.window + 1);
        self.refusals = 0;
    }

    /// The answer: for how long nothing is to be sent.
    pub(super) fn refused(&mut self) -> Duration {
        self.window = (self.window / 2).max(1);
        self.refusals = self.refusals.saturating_add(1);
        Backoff::exponential(Duration::from_millis(250))
            .cap(Duration::from_secs(10))
            .jitter(Jitter::Equal)
            .delay(self.refusals, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_refused_sends_less_and_waits_longer_until_something_is_stored() {
        let mut pace = Pace::new(100);
        let pauses: Vec<Duration> = (0..20).map(|_| pace.refused()).collect();
        assert_eq!(pace.window(), 1);
        assert!(pauses[0] < Duration::from_millis(251) && pauses[19] >= Duration::from_secs(5));
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(10)));
        (0..200).for_each(|_| pace.stored());
        assert_eq!(pace.window(), 100);
        assert!(pace.refused() < Duration::from_millis(251));
    }
}
