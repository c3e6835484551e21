//! Texts, and numbers in them.

use super::{Call, Failure, Outcome, text};
use crate::bytes::Bytes;
use crate::number;
use crate::store::{NEVER, now};
use crate::value::Value;

pub fn get(call: &mut Call) -> Outcome {
    let mut place = call.app.store.at(call.key());
    match place.value().map(text).transpose()? {
        None => call.replies.null(),
        Some(short @ Bytes::Short { .. }) => call.replies.bulk(short.as_slice()),
        Some(Bytes::Long(long)) => {
            let long = long.clone();
            drop(place);
            call.replies.shared(&long);
        }
    }
    Ok(())
}

/// What stands behind a SET's value.
#[derive(Default)]
struct Options {
    only_new: bool,
    only_old: bool,
    get: bool,
    keep_time: bool,
    expires: Option<i64>,
}

pub fn set(call: &mut Call) -> Outcome {
    if call.request.len() > 3 {
        return set_with_options(call);
    }
    let _old = call.app.store.at(call.key()).set_text(call.request.get(2), NEVER);
    call.replies.ok();
    Ok(())
}

fn set_with_options(call: &mut Call) -> Outcome {
    let options = options(call)?;
    let mut place = call.app.store.at(call.key());
    let old = match place.value_mut() {
        Some(value) if options.get => Some(text(value)?.clone()),
        _ => None,
    };
    let before = place.expires();
    let is_wanted = !(options.only_new && before.is_some() || options.only_old && before.is_none());
    if is_wanted {
        let kept = before.filter(|_| options.keep_time);
        let expires = options.expires.or(kept).unwrap_or(NEVER);
        place.set_text(call.request.get(2), expires);
    }
    drop(place);
    match old {
        Some(Bytes::Long(old)) => call.replies.shared(&old),
        Some(old) => call.replies.bulk(old.as_slice()),
        None if options.get || !is_wanted => call.replies.null(),
        None => call.replies.ok(),
    }
    Ok(())
}

fn options(call: &Call) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut time = None;
    let mut words = 3..call.request.len();
    while let Some(at) = words.next() {
        let is = |word| call.is(at, word);
        let has_time = time.is_some() || options.keep_time;
        if is("nx") && !options.only_old {
            options.only_new = true;
        } else if is("xx") && !options.only_new {
            options.only_old = true;
        } else if is("get") {
            options.get = true;
        } else if is("keepttl") && time.is_none() {
            options.keep_time = true;
        } else if let Some(unit) = unit(call, at).filter(|_| !has_time)
            && let Some(at) = words.next()
        {
            time = Some((unit, at));
        } else {
            return Err(Failure::Syntax);
        }
    }
    if let Some((unit, at)) = time {
        options.expires = Some(deadline(call.integer(at)?, unit)?);
    }
    Ok(options)
}

/// Milliseconds in what a time is given in, and whether it is counted from now.
#[derive(Clone, Copy)]
struct Unit {
    millis: i64,
    is_relative: bool,
}

fn unit(call: &Call, at: usize) -> Option<Unit> {
    const UNITS: [(&str, i64, bool); 4] =
        [("ex", 1000, true), ("px", 1, true), ("exat", 1000, false), ("pxat", 1, false)];
    let (_, millis, is_relative) = *UNITS.iter().find(|(word, ..)| call.is(at, word))?;
    Some(Unit { millis, is_relative })
}

fn deadline(time: i64, unit: Unit) -> Result<i64, Failure> {
    let from = if unit.is_relative { now() } else { 0 };
    let at = time.checked_mul(unit.millis).and_then(|time| time.checked_add(from));
    at.filter(|at| time > 0 && *at != NEVER).ok_or(Failure::ExpireTime("set"))
}

pub fn incr(call: &mut Call) -> Outcome {
    add(call, 1)
}

pub fn decr(call: &mut Call) -> Outcome {
    add(call, -1)
}

pub fn incrby(call: &mut Call) -> Outcome {
    add(call, call.integer(2)?)
}

pub fn decrby(call: &mut Call) -> Outcome {
    let amount = call.integer(2)?.checked_neg();
    add(call, amount.ok_or(Failure::Other(b"ERR decrement would overflow".into()))?)
}

fn add(call: &mut Call, amount: i64) -> Outcome {
    let mut place = call.app.store.at(call.key());
    let sum = match place.value_mut() {
        None => {
            place.set(decimal(amount), NEVER);
            amount
        }
        Some(value) => {
            let before = number::parse(text(value)?.as_slice()).ok_or(Failure::NotInteger)?;
            let sum = before.checked_add(amount).ok_or(Failure::Overflow)?;
            *value = decimal(sum);
            sum
        }
    };
    call.replies.integer(sum);
    Ok(())
}

fn decimal(value: i64) -> Value {
    Value::text(itoa::Buffer::new().format(value).as_bytes())
}

pub fn mget(call: &mut Call) -> Outcome {
    let keys = call.request.from(1);
    let mut places = call.app.store.at_once(keys.clone());
    call.replies.array(call.request.len() - 1);
    for key in keys {
        match places.at(key).value() {
            Some(Value::Text(text)) => call.replies.bulk(text.as_slice()),
            _ => call.replies.null(),
        }
    }
    Ok(())
}

pub fn mset(call: &mut Call) -> Outcome {
    if call.request.len().is_multiple_of(2) {
        return Err(Failure::Arity);
    }
    let keys = || call.request.from(1).step_by(2);
    let values = call.request.from(2).step_by(2);
    let mut places = call.app.store.at_once(keys());
    for (key, value) in keys().zip(values) {
        places.at(key).set_text(value, NEVER);
    }
    call.replies.ok();
    Ok(())
}

pub fn strlen(call: &mut Call) -> Outcome {
    let mut place = call.app.store.at(call.key());
    let length = place.value().map(text).transpose()?.map_or(0, |text| text.as_slice().len());
    call.replies.integer(length as i64);
    Ok(())
}

pub fn append(call: &mut Call) -> Outcome {
    let more = call.request.get(2);
    let mut place = call.app.store.at(call.key());
    let length = match place.value_mut() {
        None => {
            place.set_text(more, NEVER);
            more.len()
        }
        Some(value) => {
            let whole = [text(value)?.as_slice(), more].concat();
            *value = Value::text(&whole);
            whole.len()
        }
    };
    call.replies.integer(length as i64);
    Ok(())
}
