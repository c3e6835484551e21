//! What a connection has received and its handler has not consumed.
//!
//! Bytes are read into a buffer of the thread, and the handler looks at them there: in the common case
//! it consumes all of them, nothing is copied, and an idle connection holds no buffer.

use core::cell::Cell;

/// Read at once.
const READ: usize = 64 << 10;

thread_local! {
    static BUFFER: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
}

/// The thread's read buffer, while it is lent.
pub(crate) struct ReadBuffer(Option<Box<[u8]>>);

impl ReadBuffer {
    /// A new one if the thread's is lent already, or the thread ends.
    #[inline]
    pub(crate) fn lend() -> Self {
        let own = BUFFER.try_with(Cell::take).ok().flatten();
        Self(Some(own.unwrap_or_else(|| vec![0; READ].into_boxed_slice())))
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        self.0.as_deref_mut().unwrap_or_default()
    }

    /// As dropping it does, in place.
    #[inline(always)] // It is a few instructions of each run.
    pub(crate) fn give_back(mut self) {
        self.put_back();
        // There is nothing left in it.
        core::mem::forget(self);
    }

    #[inline(always)]
    fn put_back(&mut self) {
        let _ = BUFFER.try_with(|own| own.set(self.0.take()));
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        self.put_back();
    }
}

/// The bytes left over. Allocated only while there are some.
#[derive(Default)]
pub(crate) struct Input {
    #[allow(
        clippy::box_collection,
        reason = "most connections have none, and idle ones are smaller"
    )]
    left: Option<Box<Vec<u8>>>,
}

impl Input {
    pub(crate) fn len(&self) -> usize {
        self.left.as_ref().map_or(0, |left| left.len())
    }

    /// An empty buffer is not kept.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_none()
    }

    fn keep(&mut self, left: Vec<u8>) {
        self.left = (!left.is_empty()).then(|| Box::new(left));
    }

    #[cold]
    fn keep_copy(&mut self, left: &[u8]) {
        self.keep(left.to_vec());
    }

    /// These were consumed, but are to be shown again, before what is left over.
    pub(crate) fn put_back(&mut self, bytes: Vec<u8>) {
        match &mut self.left {
            None => self.keep(bytes),
            Some(left) => drop(left.splice(..0, bytes)),
        }
    }

    /// Shows what is left over, followed by `new`, to `consume`, and keeps what that does not take.
    /// Says how much it took.
    ///
    /// # Panics
    /// If it says that it took more than there was.
    #[inline(always)] // Of plain runs.
    pub(crate) fn feed(&mut self, new: &[u8], consume: impl FnOnce(&[u8]) -> usize) -> usize {
        if !self.is_empty() {
            return self.feed_more(new, consume);
        }
        let taken = checked(consume(new), new.len());
        if taken < new.len() {
            self.keep_copy(&new[taken..]);
        }
        taken
    }

    #[cold]
    fn feed_more(&mut self, new: &[u8], consume: impl FnOnce(&[u8]) -> usize) -> usize {
        let Some(left) = &mut self.left else { return 0 };
        left.extend_from_slice(new);
        let taken = checked(consume(left), left.len());
        let kept = left.len() - taken;
        if kept <= left.capacity() / 4 {
            // A message may have needed much more than what is left over now.
            let little = left[taken..].to_vec();
            self.keep(little);
        } else {
            left.drain(..taken);
        }
        taken
    }
}

#[inline]
fn checked(taken: usize, len: usize) -> usize {
    assert!(taken <= len, "a handler consumed {taken} of {len} bytes");
    taken
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_shown_again_with_what_follows() {
        let mut input = Input::default();
        assert_eq!(input.feed(b"abc", |bytes| bytes.len()), 3);
        assert!(input.is_empty());
        assert_eq!(input.feed(b"abc", |_| 1), 1);
        assert_eq!(input.len(), 2);
        let mut seen = Vec::new();
        input.feed(b"de", |bytes| {
            seen.extend_from_slice(bytes);
            3
        });
        assert_eq!(seen, b"bcde");
        assert_eq!(input.feed(b"", |bytes| bytes.len()), 1);
        assert!(input.left.is_none());
    }

    /// Goal: a long message does not leave a long buffer behind, even if a part of the next one does
    /// stay.
    #[test]
    fn what_is_left_over_has_a_buffer_of_its_size() {
        let mut input = Input::default();
        (0..100).for_each(|_| assert_eq!(input.feed(&[7; 10_000], |_| 0), 0));
        assert_eq!(input.feed(b"abc", |bytes| bytes.len() - 3), 1_000_000);
        let left = input.left.unwrap();
        assert_eq!(*left, b"abc");
        assert!(left.capacity() < 100);
    }

    #[test]
    #[should_panic(expected = "consumed 4 of 3 bytes")]
    fn nobody_consumes_what_is_not_there() {
        Input::default().feed(b"abc", |_| 4);
    }

    #[test]
    fn a_buffer_that_is_lent_is_not_lent_twice() {
        let mut first = ReadBuffer::lend();
        let mut second = ReadBuffer::lend();
        assert_ne!(first.bytes().as_ptr(), second.bytes().as_ptr());
        let own = second.bytes().as_ptr();
        drop((first, second));
        assert_eq!(ReadBuffer::lend().bytes().as_ptr(), own);
    }
}
