//! Hashes: maps of fields within a key.

use super::{Call, Failure, Outcome, fields, fields_mut};
use crate::bytes::Bytes;
use crate::store::NEVER;
use crate::value::{Fields, Value};

pub fn hset(call: &mut Call) -> Outcome {
    if !call.request.len().is_multiple_of(2) {
        return Err(Failure::Arity);
    }
    let names = call.request.from(2).step_by(2);
    let values = call.request.from(3).step_by(2);
    let mut new = 0;
    let put = |fields: &mut Fields| {
        for (name, value) in names.zip(values) {
            new += i64::from(fields.insert(name.into(), value.into()).is_none());
        }
    };
    let mut place = call.app.store.at(call.key());
    match place.value_mut() {
        Some(value) => put(fields_mut(value)?),
        None => {
            let mut fields = Box::new(Fields::default());
            put(&mut fields);
            place.set(Value::Fields(fields), NEVER);
        }
    }
    call.replies.integer(new);
    Ok(())
}

pub fn hget(call: &mut Call) -> Outcome {
    let mut place = call.app.store.at(call.key());
    let fields = place.value().map(fields).transpose()?;
    match fields.and_then(|fields| fields.get(call.request.get(2))) {
        Some(value) => call.replies.bulk(value.as_slice()),
        None => call.replies.null(),
    }
    Ok(())
}

pub fn hgetall(call: &mut Call) -> Outcome {
    let mut place = call.app.store.at(call.key());
    let fields = place.value().map(fields).transpose()?;
    call.replies.array(fields.map_or(0, |fields| 2 * fields.len()));
    let both = |(name, value): (&Bytes, &Bytes)| {
        call.replies.bulk(name.as_slice());
        call.replies.bulk(value.as_slice());
    };
    fields.into_iter().flatten().for_each(both);
    Ok(())
}

pub fn hdel(call: &mut Call) -> Outcome {
    let mut place = call.app.store.at(call.key());
    let Some(value) = place.value_mut() else {
        call.replies.integer(0);
        return Ok(());
    };
    let fields = fields_mut(value)?;
    let gone = call.request.from(2).filter(|name| fields.shift_remove(*name).is_some()).count();
    if fields.is_empty() {
        place.remove();
    }
    call.replies.integer(gone as i64);
    Ok(())
}

pub fn hlen(call: &mut Call) -> Outcome {
    let mut place = call.app.store.at(call.key());
    let length = place.value().map(fields).transpose()?.map_or(0, |fields| fields.len());
    call.replies.integer(length as i64);
    Ok(())
}
