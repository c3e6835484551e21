//! Events and items whose size is known at run time only.
//!
//! A queue is made for a type. Six types stand for all sizes up to 256 bytes: cells of 8, 16, 32, 64, 128
//! and 256 bytes. An item that is larger lies in a box of its own. A ring needs no types: its events are
//! so many words each.
#![allow(unsafe_code, reason = "shows words as bytes, and bytes as words")]

/// The largest event or item, in bytes.
pub(crate) const LARGEST: usize = 128 * 1024;

/// What a queue holds of an item.
pub(crate) trait Item: Sized + Send + 'static {
    /// Whether making one allocates.
    const BOXED: bool;

    /// A copy of the bytes.
    fn copy_of(bytes: &[u8]) -> Self;

    /// At least the bytes that it is a copy of.
    fn bytes(&self) -> &[u8];
}

/// A cell of `N` words. The words behind the item's bytes are zero.
pub(crate) type Cell<const N: usize> = [u64; N];

impl<const N: usize> Item for Cell<N> {
    const BOXED: bool = false;

    #[inline]
    fn copy_of(bytes: &[u8]) -> Self {
        let mut cell = [0; N];
        copy(bytes, &mut cell);
        cell
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        // SAFETY: words are bytes, eight times as many.
        unsafe { core::slice::from_raw_parts(self.as_ptr().cast(), size_of_val(self)) }
    }
}

impl Item for Box<[u8]> {
    const BOXED: bool = true;

    fn copy_of(bytes: &[u8]) -> Self {
        bytes.into()
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Evaluates an expression with `$Item` as the type that holds `$size` bytes, 1 to [`LARGEST`]; or
/// another one for other sizes.
macro_rules! for_size {
    ($size:expr, $Item:ident => $body:expr, _ => $other:expr) => {
        for_size!(@ $size, $Item, $body, $other, 8 1, 16 2, 32 4, 64 8, 128 16, 256 32)
    };
    (@ $size:expr, $Item:ident, $body:expr, $other:expr, $($bytes:literal $words:literal),*) => {
        match $size {
            0 => $other,
            $(..=$bytes => {
                type $Item = Cell<$words>;
                $body
            })*
            ..=LARGEST => {
                type $Item = Box<[u8]>;
                $body
            }
            _ => $other,
        }
    };
}
pub(crate) use for_size;

/// Copies bytes to the front of words.
#[inline]
pub(crate) fn copy(bytes: &[u8], to: &mut [u64]) {
    // SAFETY: words are bytes, eight times as many, and every pattern of bits is a word.
    let to =
        unsafe { core::slice::from_raw_parts_mut(to.as_mut_ptr().cast::<u8>(), size_of_val(to)) };
    to[..bytes.len()].copy_from_slice(bytes);
}

/// Bytes as words, if they are whole words and aligned.
pub(crate) fn as_words(bytes: &[u8], size: usize) -> Option<&[u64]> {
    let first = bytes.as_ptr().cast::<u64>();
    (size.is_multiple_of(size_of::<u64>()) && first.is_aligned())
        // SAFETY: aligned, and every pattern of bits is a word.
        .then(|| unsafe { core::slice::from_raw_parts(first, bytes.len() / size_of::<u64>()) })
}
