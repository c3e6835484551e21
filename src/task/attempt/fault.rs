//! What an attempt comes to: a value, or a fault.

use core::fmt;
use core::time::Duration;
use std::error::Error;

/// Why an attempt failed, and what that means for the next one.
pub struct Fault(Box<Inner>);

struct Inner {
    message: Box<str>,
    advice: Advice,
    code: i32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::task) enum Advice {
    /// Another attempt may succeed.
    Transient,
    /// None will.
    Permanent,
    /// One may, after this time.
    After(Duration),
    /// The function panicked.
    Panicked,
}

impl Fault {
    fn with(message: impl Into<String>, advice: Advice) -> Self {
        Self(Box::new(Inner { message: message.into().into(), advice, code: 0 }))
    }

    /// With a number for programs, which means what the function wants it to.
    #[must_use]
    pub fn with_code(mut self, code: i32) -> Self {
        self.0.code = code;
        self
    }

    /// The number that it was given, or 0.
    pub fn code(&self) -> i32 {
        self.0.code
    }

    /// A failure that another attempt may mend.
    pub fn new(message: impl Into<String>) -> Self {
        Self::with(message, Advice::Transient)
    }

    /// A failure that no other attempt will mend: there is none.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::with(message, Advice::Permanent)
    }

    /// A failure that another attempt may mend, not earlier than `delay` from now. It takes the place of
    /// the delay that the retry policy would choose.
    pub fn retry_after(message: impl Into<String>, delay: Duration) -> Self {
        Self::with(message, Advice::After(delay))
    }

    pub(in crate::task) fn panicked(message: impl Into<String>) -> Self {
        Self::with(message, Advice::Panicked)
    }

    /// What went wrong, in words.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether the function said that no other attempt will help.
    pub fn is_permanent(&self) -> bool {
        self.0.advice == Advice::Permanent
    }

    /// Whether the function panicked.
    pub fn is_panic(&self) -> bool {
        self.0.advice == Advice::Panicked
    }

    /// Before which time another attempt is of no use, if its function has said so.
    #[cfg_attr(not(feature = "nats"), allow(dead_code, reason = "for durable tasks"))]
    pub(crate) fn delay(&self) -> Option<Duration> {
        match self.0.advice {
            Advice::After(delay) => Some(delay),
            _ => None,
        }
    }

    pub(in crate::task) fn advice(&self) -> Advice {
        self.0.advice
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fault({:?}, {:?})", self.message(), self.0.advice)
    }
}

impl PartialEq for Fault {
    fn eq(&self, other: &Self) -> bool {
        self.message() == other.message() && self.0.advice == other.0.advice
    }
}

/// The error's message, with those of its causes.
fn told(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}

impl<E: Error> From<E> for Fault {
    /// The error's message, with those of its causes.
    fn from(error: E) -> Self {
        Self::new(told(&error))
    }
}

/// A [`Fault`] inside a boxed error. `Fault` is no error itself, so that `?` makes one of every error.
#[derive(Debug)]
struct Boxed(Fault);

impl fmt::Display for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Boxed {}

impl From<Fault> for Box<dyn Error + Send + Sync> {
    fn from(fault: Fault) -> Self {
        Box::new(Boxed(fault))
    }
}

/// What a task's function may return: a `Result`, whose error fails the attempt, or a plain value.
///
/// The error of a `Result` is whatever converts into `Box<dyn Error + Send + Sync>`: that box itself, an error type,
/// a `String`, a `&str`, a [`Fault`], or the error of a crate such as `anyhow`. The attempt fails with the error's
/// message, followed by those of its causes. A [`Fault`] keeps its advice and its code, also inside the box.
///
/// Numbers, texts, tuples, `Option`, `Vec` and `Box` are returned as they are. [`Plain`] returns a value of any other
/// type, or a `Result` that is the task's value.
#[diagnostic::on_unimplemented(
    message = "a task cannot return `{Self}` as it is",
    label = "return `Plain(value)`, or a `Result` whose error converts into `Box<dyn Error + Send + Sync>`"
)]
pub trait Outcome {
    /// What a completed task yields.
    type Value: Send + 'static;

    /// The value, or why there is none.
    ///
    /// # Errors
    /// The failure that the function reported.
    fn into_result(self) -> Result<Self::Value, Fault>;
}

impl<T: Send + 'static, E: Into<Box<dyn Error + Send + Sync>>> Outcome for Result<T, E> {
    type Value = T;

    #[inline]
    fn into_result(self) -> Result<T, Fault> {
        self.map_err(|error| match error.into().downcast::<Boxed>() {
            Ok(boxed) => boxed.0,
            Err(other) => Fault::new(told(&*other)),
        })
    }
}

/// A value of any type that a task's function returns: the task yields it without the wrapper.
///
/// ```
/// use paceline::Pool;
/// use paceline::task::{Attempt, Plain, WorkerPool};
///
/// struct Picture {
///     width: u32,
/// }
///
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let workers = WorkerPool::new(&pool);
/// let task = workers.task("resize", |_: &Attempt| Plain(Picture { width: 640 }));
/// let report = task.submit().expect("an open pool").wait()?;
/// assert_eq!(report.result.unwrap().width, 640);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plain<T>(pub T);

impl<T: Send + 'static> Outcome for Plain<T> {
    type Value = T;

    #[inline]
    fn into_result(self) -> Result<T, Fault> {
        Ok(self.0)
    }
}

macro_rules! plain_values {
    ($({$($generics:tt)*} $type:ty),* $(,)?) => {$(
        impl<$($generics)*> Outcome for $type {
            type Value = Self;

            #[inline]
            fn into_result(self) -> Result<Self, Fault> {
                Ok(self)
            }
        }
    )*};
}

plain_values!(
    {} (), {} bool, {} char, {} u8, {} u16, {} u32, {} u64, {} u128, {} usize,
    {} i8, {} i16, {} i32, {} i64, {} i128, {} isize, {} f32, {} f64,
    {} String, {} &'static str, {} Duration,
    {T: Send + 'static} Vec<T>, {T: Send + 'static} Option<T>, {T: Send + 'static + ?Sized} Box<T>,
    {A: Send + 'static, B: Send + 'static} (A, B),
    {A: Send + 'static, B: Send + 'static, C: Send + 'static} (A, B, C),
);
