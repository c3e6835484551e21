//! Structs that may grow: each begins with `uint32_t struct_size`.
//!
//! ```text
//!   in:   caller's   [ size | fields it knows ]            [ size | fields | fields from the future ]
//!         library    [ size | fields | zero ]              [ size | fields ]     must all be zero
//!
//!   out:  as many bytes as both know are written; struct_size then says how many that were
//! ```
//!
//! A struct never shrinks, fields never move, a new one is appended and means its default when it
//! is zero. The size of the first version is frozen as [`Sized::FIRST`]: less is no such struct.
#![allow(unsafe_code, reason = "bytes of C's structs")]

use super::boundary::{Failure, Result, check};
use super::status::PACE_EVERSION;
use core::mem::MaybeUninit;

/// A struct that begins with its own size.
///
/// # Safety
///
/// It is `repr(C)`, its first field is `struct_size: u32`, and all bytes zero are a valid value.
pub(crate) unsafe trait Sized: core::marker::Sized {
    /// Its size in the first version, for ever.
    const FIRST: usize;
    const NAME: &'static str;
    /// Names and offsets of its one-byte flags, when it is an input.
    const FLAGS: &'static [(&'static str, usize)] = &[];
    /// Offsets of reserved bytes, when it is an input.
    const RESERVED: &'static [usize] = &[];
}

/// A struct that C hands over to be read: what the header asks for is NULL, or as many readable bytes as its first field
/// says, until the call ends. Nothing here makes a value of this type, but C.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T: Sized> In<T> {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn read(&self, name: &str) -> Result<T> {
        // SAFETY: C's.
        unsafe { read(self.0, name) }
    }
}

/// The same, of a struct that is written to. One that is filled has as many bytes as the caller says.
#[repr(transparent)]
pub struct InOut<T>(*mut T);

impl<T: Sized> InOut<T> {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn read(&self, name: &str) -> Result<T> {
        // SAFETY: C's.
        unsafe { read(self.0, name) }
    }

    /// Refuses NULL.
    pub(crate) fn check(&self, name: &str) -> Result {
        check(self.0, name)
    }

    pub(crate) fn init(self, size: usize, value: T, name: &str) -> Result {
        // SAFETY: C's.
        unsafe { init(self.0, size, value, name) }
    }

    /// Changes a copy, which takes its place if that succeeds.
    pub(crate) fn change(self, name: &str, change: impl FnOnce(&mut T) -> Result) -> Result {
        let mut value = self.read(name)?;
        change(&mut value)?;
        // SAFETY: the size comes first, and was found good.
        let size = unsafe { self.0.cast::<u32>().read() } as usize;
        self.init(size, value, name)
    }

    pub(crate) fn room(self, name: &str) -> Result<Room<T>> {
        // SAFETY: C's.
        unsafe { Room::new(self.0, name) }
    }
}

/// Reads a caller's struct.
///
/// # Safety
///
/// `pointer` is NULL or points to as many readable bytes as the struct says in its first field.
pub(crate) unsafe fn read<T: Sized>(pointer: *const T, name: &str) -> Result<T> {
    check(pointer, name)?;
    // SAFETY: the caller has at least the first field.
    let size = unsafe { pointer.cast::<u32>().read() } as usize;
    check_size::<T>(size)?;
    // SAFETY: as many bytes as the struct says.
    let bytes = unsafe { core::slice::from_raw_parts(pointer.cast::<u8>(), size) };
    let (known, future) = bytes.split_at(size.min(size_of::<T>()));
    if future.iter().any(|&byte| byte != 0) {
        let text = format!(
            "{} of {size} bytes sets fields that this library, which knows {}, does not have",
            T::NAME,
            size_of::<T>()
        );
        return Err(Failure::told(PACE_EVERSION, text));
    }
    check_bytes::<T>(known)?;
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: `known` is no longer than `T`. Bytes that it does not reach are zero, its flags were
    // checked to be 0 or 1, and every other field may have any value.
    unsafe {
        value.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(known.as_ptr(), known.len());
        Ok(value.assume_init())
    }
}

fn check_size<T: Sized>(size: usize) -> Result {
    // What is far beyond any future is memory that nobody has initialised.
    if (T::FIRST..=T::FIRST + 4096).contains(&size) {
        return Ok(());
    }
    let text = format!(
        "struct_size of {} is {size}, but must be sizeof({}), which is {} here",
        T::NAME,
        T::NAME,
        size_of::<T>()
    );
    Err(Failure::told(PACE_EVERSION, text))
}

fn check_bytes<T: Sized>(bytes: &[u8]) -> Result {
    for (name, offset) in T::FLAGS {
        match bytes.get(*offset) {
            None | Some(0 | 1) => {}
            Some(other) => return Err(Failure::invalid(name, other, "0 or 1")),
        }
    }
    // What the caller's struct does not reach is zero.
    match T::RESERVED.iter().all(|&offset| bytes.get(offset).is_none_or(|&byte| byte == 0)) {
        true => Ok(()),
        false => Err(Failure::invalid("reserved", "not zero", "zero")),
    }
}

/// Fills a caller's struct of `size` bytes with `value`; what this library does not know with zero.
///
/// # Safety
///
/// `pointer` is NULL or points to `size` writable bytes.
pub(crate) unsafe fn init<T: Sized>(pointer: *mut T, size: usize, value: T, name: &str) -> Result {
    check(pointer, name)?;
    check_size::<T>(size)?;
    // SAFETY: `size` bytes are writable, and no more than that are written.
    unsafe {
        pointer.cast::<u8>().write_bytes(0, size);
        copy(&value, pointer, size.min(size_of::<T>()));
        pointer.cast::<u32>().write(size as u32);
    }
    Ok(())
}

/// A result struct of the caller's, which was found good.
pub(crate) struct Room<T> {
    pointer: *mut T,
    size: usize,
}

impl<T: Sized> Room<T> {
    /// # Safety
    ///
    /// `pointer` is NULL or points to as many writable bytes as its first field says, until `fill`.
    pub(crate) unsafe fn new(pointer: *mut T, name: &str) -> Result<Self> {
        check(pointer, name)?;
        // SAFETY: the caller has at least the first field.
        let size = unsafe { pointer.cast::<u32>().read() } as usize;
        check_size::<T>(size)?;
        Ok(Self { pointer, size: size.min(size_of::<T>()) })
    }

    pub(crate) fn fill(self, value: T) {
        // SAFETY: as many bytes are writable as `new` was promised.
        unsafe {
            copy(&value, self.pointer, self.size);
            self.pointer.cast::<u32>().write(self.size as u32);
        }
    }
}

/// # Safety
///
/// `size` bytes can be written, and `T` has as many.
unsafe fn copy<T>(value: &T, to: *mut T, size: usize) {
    let from = core::ptr::from_ref(value).cast::<MaybeUninit<u8>>();
    // SAFETY: as the caller promises.
    unsafe { to.cast::<MaybeUninit<u8>>().copy_from_nonoverlapping(from, size) };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::mem::offset_of;

    /// What a library of tomorrow knows: a field was appended.
    #[repr(C)]
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Grown {
        struct_size: u32,
        flag: bool,
        reserved: [u8; 3],
        first: u64,
        appended: u64,
        appended_flag: bool,
        reserved2: [u8; 7],
    }

    /// What a client of today has.
    #[repr(C)]
    struct Old {
        struct_size: u32,
        flag: bool,
        reserved: [u8; 3],
        first: u64,
        /// Memory behind it, which is nobody's business.
        behind: u64,
    }

    // SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
    unsafe impl Sized for Grown {
        const FIRST: usize = 16;
        const NAME: &'static str = "grown_t";
        const FLAGS: &'static [(&'static str, usize)] = &[
            ("flag", offset_of!(Grown, flag)),
            ("appended_flag", offset_of!(Grown, appended_flag)),
        ];
        const RESERVED: &'static [usize] = &[offset_of!(Grown, reserved2)];
    }

    const TOMORROW: Grown = Grown {
        struct_size: 32,
        flag: true,
        reserved: [0; 3],
        first: 1,
        appended: 2,
        appended_flag: true,
        reserved2: [0; 7],
    };

    fn old_client() -> Old {
        Old { struct_size: 16, flag: false, reserved: [0; 3], first: 9, behind: 77 }
    }

    /// Goal: a client that was compiled before the struct grew works on. Method: what it calls finds a
    /// smaller struct, and must neither read nor write behind it.
    #[test]
    fn an_old_client_is_served_by_a_library_that_has_grown() {
        let mut client = old_client();
        let pointer = (&raw mut client).cast::<Grown>();
        // SAFETY: the struct says how large it is.
        let read = unsafe { read::<Grown>(pointer, "client") }.unwrap();
        assert_eq!((read.first, read.appended), (9, 0), "what it does not know is zero");
        // SAFETY: as above.
        unsafe { Room::new(pointer, "client") }.unwrap().fill(TOMORROW);
        assert_eq!((client.struct_size, client.first, client.behind), (16, 1, 77));
        // SAFETY: as above.
        unsafe { init(pointer, 16, Grown { first: 5, ..TOMORROW }, "client") }.unwrap();
        assert_eq!((client.struct_size, client.first, client.behind), (16, 5, 77));
    }

    #[test]
    fn sizes_that_are_none_and_flags_that_are_none_are_refused() {
        for size in [0, 4, 15, 16 + 4097, u32::MAX] {
            let mut client = Old { struct_size: size, ..old_client() };
            let pointer = (&raw mut client).cast::<Grown>();
            // SAFETY: refused before anything but the first field is looked at.
            assert!(unsafe { read::<Grown>(pointer, "client") }.is_err(), "{size}");
            // SAFETY: as above.
            assert!(unsafe { Room::new(pointer, "client") }.is_err(), "{size}");
        }
        let mut client = old_client();
        let pointer = (&raw mut client).cast::<u8>();
        // SAFETY: a byte of the struct.
        unsafe { pointer.add(offset_of!(Old, flag)).write(2) };
        // SAFETY: the struct says how large it is.
        let refused = unsafe { read::<Grown>(pointer.cast(), "client") };
        assert!(refused.is_err());
    }
}
