//! The boundary: what every function does before and after its own work.
//!
//! | on the way in | on the way out |
//! |---|---|
//! | NULL is refused, by the argument's name, and so is what is not aligned | a failure leaves its status, and its text for this thread |
//! | a forked child is refused | a panic stops here, as `PACE_EPANIC` |
//! | | outputs are written last, and only on success |
//!
//! The text of a failure is made only when there is one, and those that are everyday answers (full,
//! empty, timed out) allocate nothing.
#![allow(unsafe_code, reason = "pointers come from C")]

use super::status::*;
use crate::{Error, Rejected};
use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;
use core::time::Duration;
use std::borrow::Cow;
use std::ffi::CString;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Message = Cow<'static, CStr>;

thread_local! {
    /// What this thread's last failed call had to say.
    static LAST_ERROR: RefCell<Message> = const { RefCell::new(Cow::Borrowed(c"")) };
    static LAST_OS_ERROR: Cell<i32> = const { Cell::new(0) };
}

/// Why a call did nothing.
#[derive(Debug)]
pub(crate) struct Failure {
    status: pace_status_t,
    os_error: i32,
    text: Message,
}

pub(crate) type Result<T = ()> = core::result::Result<T, Failure>;

impl Failure {
    /// With a text that is known beforehand.
    pub(crate) const fn plain(status: pace_status_t, text: &'static CStr) -> Self {
        Self { status, os_error: 0, text: Cow::Borrowed(text) }
    }

    /// With a text of its own.
    #[cold]
    pub(crate) fn told(status: pace_status_t, text: impl Into<Vec<u8>>) -> Self {
        let mut text = text.into();
        text.retain(|&byte| byte != 0);
        let text = CString::new(text).unwrap_or_default();
        Self { status, os_error: 0, text: Cow::Owned(text) }
    }

    #[cold]
    pub(crate) fn invalid(name: &str, value: impl core::fmt::Display, allowed: &str) -> Self {
        Self::told(PACE_EINVAL, format!("{name} is {value}, but must be {allowed}"))
    }

    #[cold]
    fn null(name: &str) -> Self {
        Self::told(PACE_EINVAL, format!("{name} is NULL"))
    }

    #[cold]
    fn no_place<T>(pointer: *const T, name: &str) -> Self {
        match pointer.is_null() {
            true => Self::null(name),
            false => Self::invalid(name, format_args!("{pointer:p}"), "aligned as its type"),
        }
    }

    /// Leaves the text for `pace_last_error`.
    #[cold]
    fn leave(self) -> pace_status_t {
        // A thread that is ending has no place for it any more.
        let _ = LAST_OS_ERROR.try_with(|place| place.set(self.os_error));
        let _ = LAST_ERROR.try_with(|place| place.replace(self.text));
        self.status
    }
}

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Invalid { .. } => PACE_EINVAL,
            Error::Os { .. } => PACE_EOS,
            Error::ShutDown => PACE_ESHUTDOWN,
            Error::Forked => PACE_EFORKED,
            Error::WouldDeadlock => PACE_EDEADLOCK,
            Error::TimedOut => return TIMED_OUT,
            Error::Broker { .. } => PACE_ETIMEDOUT,
            Error::Closing => PACE_ECLOSING,
            Error::Panicked { .. } => PACE_EPANIC,
            Error::Cancelled => PACE_ECANCELLED,
            Error::Stale { .. } => PACE_ESTALE,
            Error::Full { .. } | Error::NoRoom(_) => PACE_EFULL,
            Error::MailboxFull { .. } => PACE_EFULL,
            Error::GivenUp { .. } => PACE_EGIVENUP,
            Error::Settings { .. } => PACE_EINVAL,
        };
        let os_error = match &error {
            Error::Os { source, .. } => {
                source.raw_os_error().unwrap_or_else(|| errno(source.kind()))
            }
            _ => 0,
        };
        Self { os_error, ..Self::told(status, error.to_string()) }
    }
}

/// The way back from what std makes of an errno, and the errno that is nearest to what std or this library
/// refuses without asking the kernel. Never 0.
pub(crate) fn errno(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::NotFound => libc::ENOENT,
        ErrorKind::PermissionDenied => libc::EACCES,
        ErrorKind::ConnectionRefused => libc::ECONNREFUSED,
        ErrorKind::ConnectionReset => libc::ECONNRESET,
        ErrorKind::ConnectionAborted => libc::ECONNABORTED,
        ErrorKind::NotConnected => libc::ENOTCONN,
        ErrorKind::HostUnreachable => libc::EHOSTUNREACH,
        ErrorKind::NetworkUnreachable => libc::ENETUNREACH,
        ErrorKind::NetworkDown => libc::ENETDOWN,
        ErrorKind::AddrNotAvailable => libc::EADDRNOTAVAIL,
        ErrorKind::AddrInUse => libc::EADDRINUSE,
        ErrorKind::BrokenPipe => libc::EPIPE,
        ErrorKind::TimedOut => libc::ETIMEDOUT,
        ErrorKind::OutOfMemory => libc::ENOMEM,
        ErrorKind::AlreadyExists => libc::EEXIST,
        ErrorKind::StorageFull => libc::ENOSPC,
        ErrorKind::InvalidInput => libc::EINVAL,
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => libc::EBADMSG,
        ErrorKind::Unsupported => libc::EOPNOTSUPP,
        _ => libc::EIO,
    }
}

impl<F> From<&Rejected<F>> for Failure {
    fn from(rejected: &Rejected<F>) -> Self {
        match rejected {
            Rejected::Full(_, room) => Self::told(PACE_EFULL, room.to_string()),
            Rejected::ShutDown(_) => Self::plain(PACE_ESHUTDOWN, c"it is shut down or closed"),
            Rejected::Forked(_) => FORKED,
        }
    }
}

pub(crate) const FORKED: Failure = Failure::plain(
    PACE_EFORKED,
    c"this process was forked; what the parent made works only in the parent",
);
pub(crate) const TIMED_OUT: Failure = Failure::plain(PACE_ETIMEDOUT, c"the time ran out");

/// Runs the body of a function of the header.
#[inline]
pub(crate) fn call(body: impl FnOnce() -> Result) -> pace_status_t {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => PACE_OK,
        Ok(Err(failure)) => failure.leave(),
        Err(panic) => leave_panic(panic),
    }
}

/// As [`call`], for functions that give nothing back.
pub(crate) fn call_void(body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        leave_panic(panic);
    }
}

#[cold]
fn leave_panic(panic: Box<dyn core::any::Any + Send>) -> pace_status_t {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = format!("the library panicked: {}", text.unwrap_or("without a message"));
    // Its destructor could panic once more.
    core::mem::forget(panic);
    Failure::told(PACE_EPANIC, text).leave()
}

pub(crate) fn last_error() -> *const c_char {
    LAST_ERROR.try_with(|text| text.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

pub(crate) fn last_os_error() -> i32 {
    LAST_OS_ERROR.try_with(Cell::get).unwrap_or(0)
}

// --- pointers ---------------------------------------------------------------------------------------

/// Borrows what an argument points to.
///
/// # Safety
///
/// It is NULL or points to a `T` that lives and is not changed for `'a`.
#[inline]
pub(crate) unsafe fn borrow<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    check(pointer, name)?;
    // SAFETY: not NULL, aligned, and as the caller promises.
    Ok(unsafe { &*pointer })
}

/// A type that C has pointers to, which come from here.
pub(crate) trait Handle {
    /// What arguments of this type are called.
    const NAME: &'static str;

    /// Whether this process is a child, made by fork, of the one that made it.
    fn is_forked(&self) -> bool;
}

/// What an argument names: not NULL, and made by this process.
#[inline]
pub(crate) fn usable<T: Handle>(handle: Option<&T>) -> Result<&T> {
    let handle = handle.ok_or_else(|| Failure::null(T::NAME))?;
    if handle.is_forked() { Err(FORKED) } else { Ok(handle) }
}

/// What an argument gives back, to be dropped. In a forked child nothing is freed: the parent has what belongs to it.
pub(crate) fn consumed<T: Handle>(handle: Option<Box<T>>) -> Result<Box<T>> {
    let handle = handle.ok_or_else(|| Failure::null(T::NAME))?;
    if handle.is_forked() {
        core::mem::forget(handle);
        return Err(FORKED);
    }
    Ok(handle)
}

/// Refuses NULL, and what no `T` can lie at.
#[inline]
pub(crate) fn check<T>(pointer: *const T, name: &str) -> Result {
    match !pointer.is_null() && pointer.is_aligned() {
        true => Ok(()),
        false => Err(Failure::no_place(pointer, name)),
    }
}

/// Refuses a callback that is NULL.
#[inline]
pub(crate) fn callback<F>(function: Option<F>, name: &str) -> Result<F> {
    function.ok_or_else(|| Failure::null(name))
}

/// Where a result goes.
#[must_use]
pub(crate) struct Out<'a, T>(Option<&'a mut MaybeUninit<T>>);

/// Where a result goes that the caller must want.
#[inline]
pub(crate) fn out<'a, T>(place: Option<&'a mut MaybeUninit<T>>, name: &str) -> Result<Out<'a, T>> {
    match place {
        Some(place) => Ok(Out(Some(place))),
        None => Err(Failure::null(name)),
    }
}

/// Where a result goes, if the caller wants it.
#[inline]
pub(crate) fn optional_out<T>(place: Option<&mut MaybeUninit<T>>) -> Out<'_, T> {
    Out(place)
}

impl<'a, T> Out<'a, T> {
    /// # Safety
    ///
    /// `pointer` is NULL or can be written to until the call ends.
    #[inline]
    pub(crate) unsafe fn new(pointer: *mut T, name: &str) -> Result<Self> {
        check(pointer, name)?;
        // SAFETY: as the caller promises.
        Ok(Self(unsafe { pointer.cast::<MaybeUninit<T>>().as_mut() }))
    }

    /// As [`new`](Self::new), where NULL means that the caller does not want it.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline]
    pub(crate) unsafe fn optional(pointer: *mut T, name: &str) -> Result<Self> {
        if pointer.is_null() {
            return Ok(Self(None));
        }
        // SAFETY: as the caller promises.
        unsafe { Self::new(pointer, name) }
    }

    #[inline]
    pub(crate) fn set(self, value: T) {
        if let Some(place) = self.0 {
            place.write(value);
        }
    }
}

/// The bytes of `count` items of `size` bytes.
///
/// # Safety
///
/// If `count` is not zero, `pointer` is NULL or points to as many bytes, which live for `'a`.
pub(crate) unsafe fn bytes<'a>(
    pointer: *const core::ffi::c_void,
    count: usize,
    size: usize,
    name: &str,
) -> Result<&'a [u8]> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer, name)?;
    let most = isize::MAX as usize / size;
    if count > most {
        return Err(Failure::invalid("count", count, &format!("at most {most}")));
    }
    // SAFETY: as the caller promises, and no more than a slice may have.
    Ok(unsafe { core::slice::from_raw_parts(pointer.cast(), count * size) })
}

/// An array of C's.
///
/// # Safety
///
/// If `count` is not zero, `pointer` is NULL or points to as many, which live for `'a`.
pub(super) unsafe fn array<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    // SAFETY: as the caller promises. This refuses NULL, and more than a slice may have.
    let bytes = unsafe { bytes(pointer.cast(), count, size_of::<T>(), name) }?;
    if bytes.is_empty() {
        return Ok(&[]);
    }
    check(pointer, name)?;
    // SAFETY: aligned, and as many as bytes were found good for.
    Ok(unsafe { core::slice::from_raw_parts(pointer, count) })
}

/// A NUL-terminated text of C.
///
/// # Safety
///
/// `pointer` is NULL, which is refused, or ends with NUL.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    check(pointer, name)?;
    // SAFETY: not NULL; as the caller promises.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::invalid(name, format_args!("{text:?}"), "UTF-8"))
}

/// A text that C hands over: what the header asks for is NULL, or ends with NUL, and lives until the call ends. Nothing here
/// makes a value of this type, but C.
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// The text, which must be UTF-8.
    pub(crate) fn get(&self, name: &str) -> Result<&str> {
        // SAFETY: C's.
        unsafe { text(self.0, name) }
    }
}

/// Words of C for people to read: what is not UTF-8 in them is replaced, so that they cannot be refused where
/// they say what has failed.
///
/// # Safety
///
/// `pointer` is not NULL and ends with NUL.
pub(crate) unsafe fn words<'a>(pointer: *const c_char) -> Cow<'a, str> {
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy()
}

/// A time-out or delay.
#[inline]
pub(crate) fn nanos(time: u64) -> Duration {
    Duration::from_nanos(time)
}
