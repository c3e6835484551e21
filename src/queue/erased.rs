//! A task by value: any `FnOnce() + Send` in 56 bytes.
//!
//! ```text
//! { act: fn(Act, *mut ()), storage: 48 bytes }      with a slot's state: one line of the cache
//! ```
//!
//! One function knows the closure's type, and either runs or drops what is in the storage. A
//! closure that is larger than [`INLINE_SIZE`] or aligned to more than [`INLINE_ALIGN`] lives in a
//! box, and the storage holds the pointer. Alignment 16 would cost 8 bytes of every slot, so it is
//! boxed too.
#![allow(unsafe_code, reason = "the closure's type is known only to the function beside it")]

use core::any::type_name;
use core::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) const INLINE_SIZE: usize = 48;
pub(crate) const INLINE_ALIGN: usize = 8;

/// What a task is made of: any `FnOnce() + Send`, or a type that wraps one and must be able to give
/// it back when the task is refused.
pub(crate) trait Run: Send + 'static {
    /// Whether, as a timer, it is one that the program has asked for, and not one of the library's own.
    const ASKED_FOR: bool = false;

    /// What it is called. Empty: it says so itself when it runs.
    fn name() -> &'static str {
        type_name::<Self>()
    }

    fn run(self);
}

impl<F: FnOnce() + Send + 'static> Run for F {
    #[inline(always)]
    fn run(self) {
        self()
    }
}

#[repr(C, align(8))]
struct Storage<const SIZE: usize>([MaybeUninit<u8>; SIZE]);

#[derive(Clone, Copy)]
enum Act {
    Run,
    Drop,
    /// Puts the name, a `&'static str`, where the storage would be. Nothing is consumed.
    Name,
}

/// The type of a task's closure.
#[derive(Clone, Copy)]
pub(crate) struct ClosureType(unsafe fn(Act, *mut Storage<INLINE_SIZE>));

impl ClosureType {
    /// Where its function is; types with different names have different ones.
    #[inline]
    pub(crate) fn address(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn name(self) -> &'static str {
        let mut name = "";
        // SAFETY: a name is written to where there is one, and nothing is looked at.
        unsafe { (self.0)(Act::Name, (&raw mut name).cast()) };
        name
    }
}

/// A task in a slot.
pub(crate) type Erased = ErasedIn<INLINE_SIZE>;

/// A type-erased closure that runs once, or is dropped unrun, with `SIZE` bytes of room.
#[must_use = "a task that is dropped never runs"]
pub(crate) struct ErasedIn<const SIZE: usize> {
    /// Consumes what is in the storage.
    act: unsafe fn(Act, *mut Storage<SIZE>),
    storage: Storage<SIZE>,
}

// SAFETY: every constructor demands that the closure is `Send`.
unsafe impl<const SIZE: usize> Send for ErasedIn<SIZE> {}

impl<const SIZE: usize> ErasedIn<SIZE> {
    /// Whether `F` lies in the task itself.
    pub(crate) const fn fits<F>() -> bool {
        size_of::<F>() <= SIZE && align_of::<F>() <= INLINE_ALIGN
    }

    /// Inline if it fits, else boxed; which of the two is known when compiling.
    #[inline(always)]
    pub(crate) fn new<F: Run>(work: F) -> Self {
        if const { Self::fits::<F>() } { Self::inline(work) } else { Self::boxed(work) }
    }

    /// Allocates nothing. Panics if the closure does not fit, which folds away when compiling.
    #[inline(always)]
    pub(crate) fn inline<F: Run>(work: F) -> Self {
        Self::store(work, act_inline::<F, SIZE>)
    }

    /// Allocates a box for the closure.
    #[inline(always)]
    pub(crate) fn boxed<F: Run>(work: F) -> Self {
        Self::store(Box::new(work), act_boxed::<F, SIZE>)
    }

    /// A task of this kind without its closure, for a place where it is to lie. It must be
    /// [filled](Self::fill) before anything else is done with it, even dropping it.
    #[inline(always)]
    pub(crate) fn hollow<F: Run>() -> Self {
        let act =
            if const { Self::fits::<F>() } { act_inline::<F, SIZE> } else { act_boxed::<F, SIZE> };
        Self { act, storage: Storage([MaybeUninit::uninit(); SIZE]) }
    }

    /// Puts the closure where it will be run from. A task that is made elsewhere is moved there in pieces
    /// of other sizes than it was written in, which the processor waits for.
    ///
    /// # Safety
    ///
    /// `self` was made by [`hollow::<F>`](Self::hollow), with this very `F`, and was not filled.
    #[inline(always)]
    pub(crate) unsafe fn fill<F: Run>(&mut self, work: F) {
        let storage = &raw mut self.storage;
        // SAFETY: the caller vouches for `F`; `hollow` chose between the two by the same condition.
        unsafe {
            if const { Self::fits::<F>() } {
                storage.cast::<F>().write(work);
            } else {
                storage.cast::<Box<F>>().write(Box::new(work));
            }
        }
    }

    /// Makes a task where it will lie. Panics if the closure does not fit, which folds away when compiling.
    #[inline(always)]
    pub(crate) fn put_inline<F: Run>(place: &mut MaybeUninit<Self>, work: F) {
        assert!(Self::fits::<F>(), "too large or over-aligned to be a task inline");
        let place = place.as_mut_ptr();
        // SAFETY: the place is there to be written, and `F` fits its storage.
        unsafe {
            (&raw mut (*place).act).write(act_inline::<F, SIZE>);
            (&raw mut (*place).storage).cast::<F>().write(work);
        }
    }

    /// `act` must consume a `V`.
    #[inline(always)]
    fn store<V>(value: V, act: unsafe fn(Act, *mut Storage<SIZE>)) -> Self {
        assert!(Self::fits::<V>(), "too large or over-aligned to be a task inline");
        let mut storage = Storage([MaybeUninit::uninit(); SIZE]);
        // SAFETY: `V` fits the storage by size and alignment, as asserted.
        unsafe { (&raw mut storage).cast::<V>().write(value) };
        Self { act, storage }
    }

    /// Runs the closure. If it panics it has been dropped all the same.
    #[inline]
    pub(crate) fn run(self) {
        let mut task = ManuallyDrop::new(self);
        // SAFETY: `act` belongs to what is stored, which is consumed only here: no drop follows.
        unsafe { (task.act)(Act::Run, &raw mut task.storage) };
    }

    /// Runs the closure. A panic is the answer.
    #[inline]
    pub(crate) fn run_caught(self) -> std::thread::Result<()> {
        let mut task = ManuallyDrop::new(self);
        // SAFETY: the task is there, and is not dropped afterwards.
        unsafe { Self::run_there(&raw mut *task) }
    }

    /// Runs the task at `place`. A panic is the answer.
    ///
    /// The closure stays where it is until it is called: reading back 56 bytes that were only just
    /// written, by stores of other sizes, costs more than an empty task.
    ///
    /// # Safety
    ///
    /// There is a task, which is the caller's, and nobody uses or drops it afterwards.
    #[inline(always)]
    pub(crate) unsafe fn run_there(place: *mut Self) -> std::thread::Result<()> {
        catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: `act` belongs to what is stored, which is consumed here, also if it panics.
            unsafe { ((*place).act)(Act::Run, &raw mut (*place).storage) };
        }))
    }

    /// The closure itself, for a caller whose push was refused.
    ///
    /// # Safety
    ///
    /// `self` was made by [`Erased::new::<F>`](Self::new), with this very `F`.
    #[inline]
    pub(crate) unsafe fn into_inner<F: Run>(self) -> F {
        let mut task = ManuallyDrop::new(self);
        let storage = &raw mut task.storage;
        // SAFETY: the caller vouches for `F`; `new` chose between the two by the same condition,
        // and what is stored is consumed only here.
        unsafe {
            if const { Self::fits::<F>() } {
                storage.cast::<F>().read()
            } else {
                *storage.cast::<Box<F>>().read()
            }
        }
    }
}

impl Erased {
    /// The type of the closure.
    #[inline]
    pub(crate) fn closure_type(&self) -> ClosureType {
        ClosureType(self.act)
    }
}

impl<const SIZE: usize> Drop for ErasedIn<SIZE> {
    /// Drops the closure unrun.
    fn drop(&mut self) {
        // SAFETY: `act` belongs to what is stored, and `run` and `into_inner` do not come here.
        unsafe { (self.act)(Act::Drop, &raw mut self.storage) };
    }
}

/// # Safety
///
/// The storage holds an `F`, which the call consumes; or, to be named, has room for a `&str`.
unsafe fn act_inline<F: Run, const SIZE: usize>(act: Act, storage: *mut Storage<SIZE>) {
    // SAFETY: as promised by the caller.
    unsafe {
        match act {
            Act::Run => storage.cast::<F>().read().run(),
            Act::Drop => drop(storage.cast::<F>().read()),
            Act::Name => storage.cast::<&str>().write(F::name()),
        }
    }
}

/// # Safety
///
/// The storage holds a `Box<F>`, which the call consumes; or, to be named, has room for a `&str`.
unsafe fn act_boxed<F: Run, const SIZE: usize>(act: Act, storage: *mut Storage<SIZE>) {
    // SAFETY: as promised by the caller.
    unsafe {
        match act {
            Act::Run => (*storage.cast::<Box<F>>().read()).run(),
            Act::Drop => drop(storage.cast::<Box<F>>().read()),
            Act::Name => storage.cast::<&str>().write(F::name()),
        }
    }
}

impl<const SIZE: usize> core::fmt::Debug for ErasedIn<SIZE> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Erased(..)")
    }
}
