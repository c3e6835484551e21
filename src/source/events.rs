//! What one wait brought, in a buffer that is allocated once per handle set.

use super::Ready;
use crate::sys::epoll::EpollEvent;

/// The bits of [`Ready`] that epoll has at the same place.
const COMMON: u32 = 0x1f;
/// How far epoll's RDHUP is above [`Ready::READ_CLOSED`].
const READ_CLOSED_SHIFT: u32 = 8;

const _: () = {
    use crate::sys::epoll::{ERR, HUP, IN, OUT, PRI, RDHUP};
    assert!(IN == Ready::READABLE.bits() as u32 && OUT == Ready::WRITABLE.bits() as u32);
    assert!(ERR == Ready::ERROR.bits() as u32 && HUP == Ready::HANG_UP.bits() as u32);
    assert!(PRI == Ready::PRIORITY.bits() as u32 && IN | PRI | OUT | ERR | HUP == COMMON);
    assert!(RDHUP >> READ_CLOSED_SHIFT == Ready::READ_CLOSED.bits() as u32);
};

/// A reusable buffer for one leader's waits. It remembers what the last one brought.
pub(crate) struct Events {
    list: Box<[EpollEvent]>,
    len: usize,
    rung: bool,
    /// Waits in a row that a source without descriptors looked at its doorbell in vain.
    pub(super) vain_looks: u8,
}

impl Events {
    /// Room for `capacity` events, at least 1.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let list = vec![EpollEvent::default(); capacity.max(1)].into_boxed_slice();
        Self { list, len: 0, rung: false, vain_looks: 0 }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.list.len()
    }

    /// How many events the last wait brought; the doorbell is not among them.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether the source's own bell ended the last wait, maybe beside events. A bell that was rung
    /// for an earlier wait counts too.
    #[inline]
    pub(crate) fn is_rung(&self) -> bool {
        self.rung
    }

    /// The events of the last wait: the token given to `register`, and what the descriptor is ready
    /// for.
    #[inline]
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (u64, Ready)> + '_ {
        self.list[..self.len].iter().map(|event| (event.token(), ready(event.bits())))
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.rung = false;
    }

    /// Where a wait may write up to `max` events. Each wait reports with [`filled`](Self::filled).
    #[inline]
    pub(super) fn room(&mut self, max: usize) -> &mut [EpollEvent] {
        let max = max.min(self.list.len());
        &mut self.list[..max]
    }

    /// The first `count` places have been written; those that bear the token `own` are the source's
    /// own bell, not events.
    #[inline]
    pub(super) fn filled(&mut self, count: usize, own: u64) -> usize {
        (self.len, self.rung) = (count, false);
        let mut index = 0;
        while index < self.len {
            if self.list[index].token() == own {
                self.len -= 1;
                self.list.swap(index, self.len);
                self.rung = true;
            } else {
                index += 1;
            }
        }
        self.len
    }

    /// Adds an event. The caller has seen to it that there is room.
    pub(super) fn push(&mut self, token: u64, ready: Ready) {
        self.list[self.len] = EpollEvent::new(bits(ready), token);
        self.len += 1;
    }

    pub(super) fn set_rung(&mut self, rung: bool) {
        self.rung = rung;
    }
}

/// Epoll's bits as ours.
#[inline]
fn ready(bits: u32) -> Ready {
    Ready::from_bits((bits & COMMON) as u8 | (bits >> READ_CLOSED_SHIFT) as u8 & !COMMON as u8)
}

/// The inverse of [`ready`].
fn bits(ready: Ready) -> u32 {
    let bits = u32::from(ready.bits());
    bits & COMMON | (bits & !COMMON) << READ_CLOSED_SHIFT
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_flags_survives_the_translation() {
        for flags in 0..64 {
            assert_eq!(ready(bits(Ready::from_bits(flags))).bits(), flags);
        }
    }

    #[test]
    fn the_bell_is_told_apart_wherever_it_stands() {
        const BELL: u64 = 99;
        for tokens in [[BELL, 1, 2], [1, BELL, 2], [1, 2, BELL], [BELL, BELL, 1], [BELL; 3]] {
            let mut events = Events::with_capacity(3);
            let room = events.room(8);
            assert_eq!(room.len(), 3);
            for (event, token) in room.iter_mut().zip(tokens) {
                *event = EpollEvent::new(1, token);
            }
            let bells = tokens.iter().filter(|&&token| token == BELL).count();
            assert_eq!(events.filled(3, BELL), 3 - bells);
            assert!(events.is_rung());
            assert!(events.iter().all(|(token, ready)| token != BELL && ready == Ready::READABLE));
        }
    }
}
