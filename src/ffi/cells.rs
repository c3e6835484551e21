//! Events and items whose size is known at run time only.
//!
//! Rust's rings and queues are made for a type. Six types stand for all sizes: cells of 8, 16, 32, 64,
//! 128 and 256 bytes, aligned to 8. What C hands over is copied into the front of a cell; the rest of
//! it is zero.
#![allow(unsafe_code, reason = "copies bytes of C's")]

use core::mem::size_of;

pub(crate) const LARGEST: usize = 256;

/// A cell of `N` words.
pub(crate) type Cell<const N: usize> = [u64; N];

/// Evaluates an expression with `$N` as the number of words that `$size` bytes take, 1 to
/// [`LARGEST`]; or another one for other sizes.
macro_rules! for_size {
    ($size:expr, $N:ident => $body:expr, _ => $other:expr) => {
        for_size!(@ $size, $N, $body, $other, 8 1, 16 2, 32 4, 64 8, 128 16, 256 32)
    };
    (@ $size:expr, $N:ident, $body:expr, $other:expr, $($bytes:literal $words:literal),*) => {
        match $size {
            0 => $other,
            $(..=$bytes => {
                const $N: usize = $words;
                $body
            })*
            _ => $other,
        }
    };
}
pub(crate) use for_size;

/// A cell with `size` bytes from `from`.
///
/// # Safety
///
/// They can be read, and are no more than a cell has.
#[inline]
pub(crate) unsafe fn fill<const N: usize>(from: *const u8, size: usize) -> Cell<N> {
    debug_assert!(size <= size_of::<Cell<N>>());
    let mut cell = [0; N];
    // SAFETY: as the caller promises.
    unsafe { cell.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from, size) };
    cell
}

/// Copies the first `size` bytes of a cell out.
///
/// # Safety
///
/// They can be written, and are no more than a cell has.
#[inline]
pub(crate) unsafe fn empty<const N: usize>(cell: &Cell<N>, to: *mut u8, size: usize) {
    debug_assert!(size <= size_of::<Cell<N>>());
    // SAFETY: as the caller promises.
    unsafe { to.copy_from_nonoverlapping(cell.as_ptr().cast(), size) };
}

/// Bytes as cells, where they lie as cells would: as large, and aligned.
pub(crate) fn in_place<const N: usize>(bytes: &[u8], size: usize) -> Option<&[Cell<N>]> {
    let first = bytes.as_ptr().cast::<Cell<N>>();
    (size == size_of::<Cell<N>>() && first.is_aligned())
        // SAFETY: aligned, and every pattern of bits is a cell.
        .then(|| unsafe { core::slice::from_raw_parts(first, bytes.len() / size) })
}
