//! Whether a consumer's place is one in the stream that there is; and where one that is made anew begins.
//!
//! The broker keeps a consumer's place, up to which it has delivered and heard acknowledgements, in a file of its own. A
//! stream that has lost its last messages with their numbers (it was killed at a bad moment, its host lost power, an older
//! copy of its files was put back) gives these numbers again; the place stays. What is stored up to there is delivered to
//! nobody, and nothing says so: `num_pending` is 0. So each time that a consumer is bound its place is looked at.
//!
//! | stream | the place is not of this stream if |
//! |---|---|
//! | any | its number is above that of the stream's last message |
//! | any | a message that this process has had was stored at another time |
//! | work queue | there is a message that it has acknowledged: acknowledged ones are removed |
//!
//! # Where the new one begins
//!
//! At least once, so nothing that may be new is left out. Of a work queue all that is there. Of others, with the time T at
//! which the latest message that this process has had was stored: at the first one that was not acknowledged, if that is
//! as old as T, for then the stream has lost nothing before it; else at T. A process that has had none begins where the
//! import says, and in place of "new" when the consumer was made.
//!
//! What this cannot see: a stream whose messages are kept and which is past the place again, by a process that has had none
//! of them.

use super::rules::{Keeps, Source, StartAt};
use super::session::Lost;
use super::sink::Entry;
use async_nats::jetstream::consumer::{DeliverPolicy, PullConsumer};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use core::time::Duration;

/// So often, and so long after each other, a message is there that was acknowledged, before it is taken for another: the
/// broker removes it a moment later.
const LOOKS: usize = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Whether a broker of this version keeps the numbers of a work queue when it is killed. (The client's own comparison makes a
/// regular expression when it is used first: a child that is forked meanwhile waits for that for ever.)
pub(super) fn is_safe(version: &str) -> bool {
    let numbers = version.split(|c: char| !c.is_ascii_digit());
    let mut numbers = numbers.filter_map(|text| text.parse::<u32>().ok());
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next()) >= (2, 10, 26)
}

/// What is wrong with a consumer's place, and where one in its stead begins.
pub(super) struct Displaced {
    pub(super) why: String,
    pub(super) begin: DeliverPolicy,
}

/// Where the consumer of an import begins that has none yet.
pub(super) fn policy(start: StartAt) -> DeliverPolicy {
    match start {
        StartAt::First => DeliverPolicy::All,
        StartAt::New => DeliverPolicy::New,
        StartAt::Sequence(number) => {
            DeliverPolicy::ByStartSequence { start_sequence: number.max(1) }
        }
        StartAt::Time(time) => DeliverPolicy::ByStartTime { start_time: time.into() },
    }
}

/// None: its place is one in this stream. `seen`: the latest message that this process has had of it.
pub(super) async fn displaced(
    stream: &Stream,
    consumer: &PullConsumer,
    source: &Source,
    seen: Option<Entry>,
) -> Result<Option<Displaced>, Lost> {
    // Before the stream's, which only grows.
    let info = consumer.get_info().await?;
    let last = stream.get_info().await?.state.last_sequence;
    let filter = info.config.filter_subject.as_str();
    let (place, floor) = (info.delivered.stream_sequence, info.ack_floor.stream_sequence);
    let again = match seen {
        Some(entry) => at(stream, entry.number, filter)
            .await?
            .filter(|message| message.sequence == entry.number && stored(message) != entry.stored),
        None => None,
    };
    let why = if place.max(floor) > last {
        format!("it is at {}, and the stream's last message is {last}", place.max(floor))
    } else if let Some(again) = again {
        format!("message {} of the stream is another than before", again.sequence)
    } else if source.keeps == Keeps::UntilDone
        && let Some(number) = stays(stream, consumer, filter).await?
    {
        format!("message {number} is there, and it has acknowledged up to {floor}")
    } else {
        return Ok(None);
    };
    let begin = match (source.keeps, seen, source.start) {
        (Keeps::UntilDone, ..) => DeliverPolicy::All,
        (_, Some(seen), _) => {
            let open = at(stream, floor + 1, filter).await?;
            match open.filter(|message| stored(message) <= seen.stored) {
                Some(old) => DeliverPolicy::ByStartSequence { start_sequence: old.sequence },
                None => {
                    let start_time = async_nats::datetime::from_nanos(seen.stored)?;
                    DeliverPolicy::ByStartTime { start_time }
                }
            }
        }
        (_, None, StartAt::New) => DeliverPolicy::ByStartTime { start_time: info.created },
        (_, None, start) => policy(start),
    };
    Ok(Some(Displaced { why, begin }))
}

/// The first message of a work queue, if the consumer has acknowledged it and it stays.
async fn stays(
    stream: &Stream,
    consumer: &PullConsumer,
    filter: &str,
) -> Result<Option<u64>, Lost> {
    let mut first = None;
    for look in 0..LOOKS {
        if look > 0 {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        let floor = consumer.get_info().await?.ack_floor.stream_sequence;
        let Some(message) = at(stream, 1, filter).await? else { return Ok(None) };
        let number = message.sequence;
        if number > floor || first.replace(number).is_some_and(|first| first != number) {
            return Ok(None);
        }
    }
    Ok(first)
}

/// The first message of these subjects with this number, or a greater one.
async fn at(stream: &Stream, number: u64, filter: &str) -> Result<Option<StreamMessage>, Lost> {
    match stream.raw_message_builder().sequence(number).next_by_subject(filter).send().await {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn stored(message: &StreamMessage) -> i128 {
    message.time.unix_timestamp_nanos()
}

#[cfg(test)]
mod tests {
    use super::is_safe;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for safe in ["2.10.26", "2.10.27-RC.1", "2.11.0", "3.0", "10.1.1"] {
            assert!(is_safe(safe), "{safe}");
        }
        for old in ["2.9.10", "2.10.25", "2.10", "1.99.99", "", "dev"] {
            assert!(!is_safe(old), "{old}");
        }
    }
}
