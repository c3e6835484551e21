//! Lists.

use super::{Call, Failure, Outcome, list, list_mut};
use crate::bytes::Bytes;
use crate::store::NEVER;
use crate::value::{List, Value};

pub fn lpush(call: &mut Call) -> Outcome {
    push(call, List::push_front)
}

pub fn rpush(call: &mut Call) -> Outcome {
    push(call, List::push_back)
}

fn push(call: &mut Call, push: fn(&mut List, Bytes)) -> Outcome {
    let items = call.request.from(2).map(Bytes::from);
    let mut place = call.app.store.at(call.key());
    let length = match place.value_mut() {
        Some(value) => {
            let list = list_mut(value)?;
            items.for_each(|item| push(list, item));
            list.len()
        }
        None => {
            let mut list = Box::new(List::new());
            items.for_each(|item| push(&mut list, item));
            let length = list.len();
            place.set(Value::List(list), NEVER);
            length
        }
    };
    call.replies.integer(length as i64);
    Ok(())
}

pub fn lpop(call: &mut Call) -> Outcome {
    pop(call, List::pop_front)
}

pub fn rpop(call: &mut Call) -> Outcome {
    pop(call, List::pop_back)
}

fn pop(call: &mut Call, pop: fn(&mut List) -> Option<Bytes>) -> Outcome {
    let wanted = match call.request.len() {
        2 => None,
        3 => Some(count(call)?),
        _ => return Err(Failure::Arity),
    };
    let mut place = call.app.store.at(call.key());
    let Some(value) = place.value_mut() else {
        if wanted.is_some() {
            call.replies.null_array()
        } else {
            call.replies.null()
        }
        return Ok(());
    };
    let list = list_mut(value)?;
    if let Some(wanted) = wanted {
        call.replies.array(wanted.min(list.len()));
    }
    let popped = std::iter::from_fn(|| pop(list)).take(wanted.unwrap_or(1));
    popped.for_each(|item| call.replies.bulk(item.as_slice()));
    if list.is_empty() {
        place.remove();
    }
    Ok(())
}

fn count(call: &Call) -> Result<usize, Failure> {
    let count = call.integer(2).ok().and_then(|count| usize::try_from(count).ok());
    count.ok_or(Failure::Other(b"ERR value is out of range, must be positive".into()))
}

pub fn llen(call: &mut Call) -> Outcome {
    let mut place = call.app.store.at(call.key());
    let length = place.value().map(list).transpose()?.map_or(0, |list| list.len());
    call.replies.integer(length as i64);
    Ok(())
}

pub fn lrange(call: &mut Call) -> Outcome {
    let (first, last) = (call.integer(2)?, call.integer(3)?);
    let mut place = call.app.store.at(call.key());
    let Some(list) = place.value().map(list).transpose()? else {
        call.replies.array(0);
        return Ok(());
    };
    // Negative places count from the end.
    let length = list.len() as i64;
    let place_of = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
    let from = place_of(first).max(0);
    let to = place_of(last).saturating_add(1).min(length);
    let range = from.min(to) as usize..to.max(0) as usize;
    let range = range.start.min(range.end)..range.end;
    call.replies.array(range.len());
    list.range(range).for_each(|item| call.replies.bulk(item.as_slice()));
    Ok(())
}
