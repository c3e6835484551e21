//! Keys, whatever their values, and their times.

use super::{Call, Failure, Outcome};
use crate::pattern;
use crate::store::{NEVER, now};

pub fn del(call: &mut Call) -> Outcome {
    let keys = call.request.from(1);
    let mut places = call.app.store.at_once(keys.clone());
    let gone: Vec<_> = keys.filter_map(|key| places.at(key).remove()).collect();
    drop(places);
    call.replies.integer(gone.len() as i64);
    Ok(())
}

pub fn exists(call: &mut Call) -> Outcome {
    let keys = call.request.from(1);
    let mut places = call.app.store.at_once(keys.clone());
    let found = keys.filter(|key| places.at(key).value().is_some()).count();
    call.replies.integer(found as i64);
    Ok(())
}

pub fn kind(call: &mut Call) -> Outcome {
    let mut place = call.app.store.at(call.key());
    let kind = place.value_mut().map_or("none", |value| value.kind());
    call.replies.status(kind.as_bytes());
    Ok(())
}

pub fn keys(call: &mut Call) -> Outcome {
    let mut found: Vec<Vec<u8>> = Vec::new();
    call.app.store.for_each_key(|key| {
        if pattern::matches(call.key(), key) {
            found.push(key.into());
        }
    });
    call.replies.array(found.len());
    found.iter().for_each(|key| call.replies.bulk(key));
    Ok(())
}

pub fn dbsize(call: &mut Call) -> Outcome {
    call.replies.integer(call.app.store.totals().keys as i64);
    Ok(())
}

pub fn flush(call: &mut Call) -> Outcome {
    let is_plain = call.request.len() == 1;
    if !is_plain && (call.request.len() > 2 || !call.is(1, "sync") && !call.is(1, "async")) {
        return Err(Failure::Syntax);
    }
    call.app.store.clear();
    call.replies.ok();
    Ok(())
}

// --- times -----------------------------------------------------------------------------------------

pub fn expire(call: &mut Call) -> Outcome {
    set_time(call, 1000, "expire")
}

pub fn pexpire(call: &mut Call) -> Outcome {
    set_time(call, 1, "pexpire")
}

/// Which of the times that a key may have are replaced.
#[derive(Default)]
struct Only {
    new: bool,
    old: bool,
    later: bool,
    earlier: bool,
}

impl Only {
    fn parse(call: &Call) -> Result<Self, Failure> {
        let mut only = Self::default();
        for (at, word) in call.request.from(3).enumerate() {
            match () {
                () if call.is(at + 3, "nx") => only.new = true,
                () if call.is(at + 3, "xx") => only.old = true,
                () if call.is(at + 3, "gt") => only.later = true,
                () if call.is(at + 3, "lt") => only.earlier = true,
                () => {
                    let message = [b"ERR Unsupported option ", word].concat();
                    return Err(Failure::Other(message));
                }
            }
        }
        let contradiction: &[u8] = if only.new && (only.old || only.later || only.earlier) {
            b"ERR NX and XX, GT or LT options at the same time are not compatible"
        } else if only.later && only.earlier {
            b"ERR GT and LT options at the same time are not compatible"
        } else {
            return Ok(only);
        };
        Err(Failure::Other(contradiction.into()))
    }

    /// A key without a time counts as one that expires later than all others.
    fn admits(&self, before: i64, after: i64) -> bool {
        !(self.new && before != NEVER
            || self.old && before == NEVER
            || self.later && after <= before
            || self.earlier && after >= before)
    }
}

fn set_time(call: &mut Call, millis: i64, command: &'static str) -> Outcome {
    let only = Only::parse(call)?;
    let now = now();
    let time = call.integer(2)?.checked_mul(millis).and_then(|time| time.checked_add(now));
    let after = time.filter(|time| *time != NEVER).ok_or(Failure::ExpireTime(command))?;
    let mut place = call.app.store.at(call.key());
    let is_set = place.expires().is_some_and(|before| only.admits(before, after));
    if is_set && after <= now {
        place.remove();
    } else if is_set {
        place.set_expires(after);
    }
    call.replies.integer(is_set.into());
    Ok(())
}

pub fn persist(call: &mut Call) -> Outcome {
    let mut place = call.app.store.at(call.key());
    let expires = place.expires().is_some_and(|at| at != NEVER);
    let is_changed = expires && place.set_expires(NEVER);
    call.replies.integer(is_changed.into());
    Ok(())
}

pub fn ttl(call: &mut Call) -> Outcome {
    // To the nearest second.
    tell_time(call, |millis| (millis + 500) / 1000)
}

pub fn pttl(call: &mut Call) -> Outcome {
    tell_time(call, |millis| millis)
}

fn tell_time(call: &mut Call, unit: impl FnOnce(i64) -> i64) -> Outcome {
    let expires = call.app.store.at(call.key()).expires();
    call.replies.integer(match expires {
        None => -2,
        Some(NEVER) => -1,
        Some(at) => unit((at - now()).max(0)),
    });
    Ok(())
}
