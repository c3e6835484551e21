//! A list that mostly has one element, which then lies in it: two words, and nothing elsewhere.
#![allow(
    clippy::box_collection,
    reason = "two words for all lists, of which there are many, for a step in some"
)]

use core::ops::Deref;

/// See the head of the file.
#[derive(Default)]
pub(super) enum Few<T> {
    #[default]
    None,
    One(T),
    /// It stays this until it is empty: a list that has had two will have two again.
    Many(Box<Vec<T>>),
}

impl<T> Few<T> {
    pub(super) fn push(&mut self, element: T) {
        *self = match core::mem::take(self) {
            Self::None => Self::One(element),
            Self::One(first) => Self::Many(Box::new(vec![first, element])),
            Self::Many(mut list) => {
                list.push(element);
                Self::Many(list)
            }
        }
    }

    /// Takes one out; the last comes to its place.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn swap_remove(&mut self, index: usize) -> T {
        match core::mem::take(self) {
            Self::One(only) if index == 0 => only,
            Self::Many(mut list) => {
                let taken = list.swap_remove(index);
                if !list.is_empty() {
                    *self = Self::Many(list);
                }
                taken
            }
            Self::None | Self::One(_) => panic!("no element {index} in a list of {}", self.len()),
        }
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::None => &[],
            Self::One(only) => core::slice::from_ref(only),
            Self::Many(list) => list,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_list() {
        let mut few = Few::default();
        assert!(few.is_empty());
        few.push(1);
        assert_eq!(*few, [1]);
        assert_eq!(few.swap_remove(0), 1);
        (1..=3).for_each(|number| few.push(number));
        assert_eq!((few.swap_remove(0), few.swap_remove(1)), (1, 2));
        assert_eq!(*few, [3]);
        few.push(4);
        assert_eq!((few.swap_remove(1), few.swap_remove(0), few.len()), (4, 3, 0));
        assert_eq!(size_of::<Few<Box<u8>>>(), 2 * size_of::<usize>());
    }

    #[test]
    #[should_panic(expected = "no element 1")]
    fn what_is_not_there_is_not_taken() {
        let mut few = Few::One(1);
        let _ = few.swap_remove(1);
    }
}
