//! The subscriptions of a channel that are on their own, as publishers read them: a list that is never changed, but
//! replaced by another.
//!
//! Most have one, and a publisher has far to go to each thing that no cache has. So that of one is a reference to
//! the subscription itself, and only longer ones lie between. The last bit of the address says which.
#![allow(unsafe_code, reason = "`RefCnt`, to have the last bit of an address")]

use super::subscribe::Subscriber;
use arc_swap::{ArcSwapAny, Guard, RefCnt};
use core::ops::Deref;
use std::sync::Arc;

/// See the head of the file. None of them is [`None`].
#[derive(Clone)]
enum List {
    One(Arc<Subscriber>),
    Many(Arc<Members>),
}

type Members = Vec<Arc<Subscriber>>;

/// In the address of a list of many. What a reference leads to is never at such an address.
const MANY: usize = 1;
const _: () = assert!(align_of::<Subscriber>() > MANY && align_of::<Members>() > MANY);

// SAFETY: an address stands for what it leads to, and for its count: that of a list of one is the one that
// `Arc<Subscriber>` has, and is counted likewise; that of another is no other's, by its last bit. What `into_ptr`
// and `as_ptr` answer is the same, and neither null nor does it change when the list is moved. Nothing panics.
unsafe impl RefCnt for List {
    type Base = u8;

    fn into_ptr(me: Self) -> *mut u8 {
        match me {
            Self::One(only) => Arc::into_raw(only).cast::<u8>().cast_mut(),
            Self::Many(list) => Arc::into_raw(list).cast::<u8>().wrapping_add(MANY).cast_mut(),
        }
    }

    #[inline]
    fn as_ptr(me: &Self) -> *mut u8 {
        match me {
            Self::One(only) => Arc::as_ptr(only).cast::<u8>().cast_mut(),
            Self::Many(list) => Arc::as_ptr(list).cast::<u8>().wrapping_add(MANY).cast_mut(),
        }
    }

    #[inline]
    unsafe fn from_ptr(ptr: *const u8) -> Self {
        match ptr.addr() & MANY == 0 {
            // SAFETY: from `into_ptr`, as the caller says, and without the bit: of a list of one.
            true => Self::One(unsafe { Arc::from_raw(ptr.cast()) }),
            // SAFETY: likewise, and with the bit.
            false => Self::Many(unsafe { Arc::from_raw(ptr.wrapping_sub(MANY).cast()) }),
        }
    }
}

/// Where publishers find the list.
pub(super) struct Own(ArcSwapAny<Option<List>>);

impl Own {
    pub(super) fn nobody() -> Self {
        Self(ArcSwapAny::new(None))
    }

    pub(super) fn set(&self, members: &[Arc<Subscriber>]) {
        self.0.store(match members {
            [] => None,
            [only] => Some(List::One(Arc::clone(only))),
            many => Some(List::Many(Arc::new(many.to_vec()))),
        });
    }

    #[inline]
    pub(super) fn load(&self) -> Snapshot {
        Snapshot(self.0.load())
    }
}

/// The list as it was at some moment.
pub(super) struct Snapshot(Guard<Option<List>>);

impl Deref for Snapshot {
    type Target = [Arc<Subscriber>];

    #[inline]
    fn deref(&self) -> &[Arc<Subscriber>] {
        match &*self.0 {
            None => &[],
            Some(List::One(only)) => core::slice::from_ref(only),
            Some(List::Many(list)) => list,
        }
    }
}
