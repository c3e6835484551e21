//! Which records are made: a level for each component.

use super::record::{Component, Level};
use crate::error::{Error, Result};
use crate::sync::atomic::AtomicU8;
use crate::sync::atomic::Ordering::Relaxed;
use core::fmt;
use core::str::FromStr;

const COMPONENTS: usize = Component::ALL.len();
pub(crate) const ALLOWED: &str = "levels (off, error, warn, info, debug, trace), one for all and one for each of pool, net, \
     http, task, hub, history, webhook, service, log, as info,net=debug";

/// The level of each component. As a text `info,net=debug,task=off`: a level for all, then those that differ;
/// what comes later wins.
///
/// ```
/// use paceline::log::{Component, Level, Levels};
///
/// let levels: Levels = "warn,net=debug,hub=off".parse()?;
/// assert_eq!(levels.of(Component::Net), Some(Level::Debug));
/// assert_eq!(levels.of(Component::Hub), None);
/// assert_eq!(levels.to_string(), "warn,net=debug,hub=off");
/// # Ok::<(), paceline::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Levels([Option<Level>; COMPONENTS]);

impl Levels {
    /// Nothing is told.
    pub const OFF: Self = Self([None; COMPONENTS]);

    /// The same for all.
    #[must_use]
    pub const fn all(level: Level) -> Self {
        Self([Some(level); COMPONENTS])
    }

    /// Another one for this component; none: it tells nothing.
    #[must_use]
    pub fn with(mut self, component: Component, level: impl Into<Option<Level>>) -> Self {
        self.0[component as usize] = level.into();
        self
    }

    /// That of this component; none: it tells nothing.
    #[must_use]
    pub const fn of(&self, component: Component) -> Option<Level> {
        self.0[component as usize]
    }
}

/// Information and what matters more.
impl Default for Levels {
    fn default() -> Self {
        Self::all(Level::Info)
    }
}

/// # Errors
/// [`Error::Invalid`] has the text and what is allowed.
impl FromStr for Levels {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::invalid("levels", format!("{text:?}"), ALLOWED);
        let level = |name: &str| match name.trim() {
            "off" => Some(None),
            name => Level::ALL.into_iter().find(|level| level.name() == name).map(Some),
        };
        let mut levels = Self::OFF;
        for part in text.split(',') {
            match part.split_once('=') {
                None => levels = Self([level(part).ok_or_else(wrong)?; COMPONENTS]),
                Some((name, its)) => {
                    let is_it = |one: &Component| one.name() == name.trim();
                    let component = Component::ALL.into_iter().find(is_it).ok_or_else(wrong)?;
                    levels.0[component as usize] = level(its).ok_or_else(wrong)?;
                }
            }
        }
        Ok(levels)
    }
}

fn name_of(level: Option<Level>) -> &'static str {
    level.map_or("off", Level::name)
}

/// What is most frequent, or first of those, for all; then those that differ.
impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = |level| self.0.iter().filter(|other| **other == level).count();
        // Of equals `max_by_key` takes the last one.
        let base = self.0.iter().rev().max_by_key(|level| times(**level)).copied().flatten();
        f.write_str(name_of(base))?;
        for component in Component::ALL {
            let level = self.of(component);
            if level != base {
                write!(f, ",{component}={}", name_of(level))?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Levels({self})")
    }
}

/// The levels that are in force. They order nothing: who tells something beside a change is told of by the old
/// level or by the new one.
pub(super) struct InForce([AtomicU8; COMPONENTS]);

impl InForce {
    pub(super) fn new(levels: Levels) -> Self {
        Self(levels.0.map(|level| AtomicU8::new(number(level))))
    }

    #[inline(always)]
    pub(super) fn has(&self, component: Component, level: Level) -> bool {
        level as u8 <= self.0[component as usize].load(Relaxed)
    }

    pub(super) fn get(&self) -> Levels {
        let level = |number: &AtomicU8| {
            let number = number.load(Relaxed);
            Level::ALL.into_iter().find(|level| *level as u8 == number)
        };
        Levels(core::array::from_fn(|index| level(&self.0[index])))
    }

    pub(super) fn set(&self, levels: Levels) {
        for (place, level) in self.0.iter().zip(levels.0) {
            place.store(number(level), Relaxed);
        }
    }
}

/// 0: nothing.
const fn number(level: Option<Level>) -> u8 {
    match level {
        Some(level) => level as u8,
        None => 0,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_in_order_and_written_back() {
        for (text, written) in [
            ("info", "info"),
            ("off", "off"),
            ("net=debug", "off,net=debug"),
            (" warn , net = trace ", "warn,net=trace"),
            ("net=debug,info", "info"),
            ("info,net=debug,net=off", "info,net=off"),
            (
                "error,pool=info,net=info,http=info,task=info,hub=info",
                "info,history=error,webhook=error,service=error,log=error",
            ),
        ] {
            let levels: Levels = text.parse().unwrap();
            assert_eq!(levels.to_string(), written);
            assert_eq!(written.parse::<Levels>().unwrap(), levels);
        }
    }

    #[test]
    fn texts_that_are_wrong_are_refused_whole() {
        for text in
            ["", "loud", "info,", "nte=info", "net", "net=", "=info", "net=info=debug", "INFO"]
        {
            let refused = text.parse::<Levels>().unwrap_err().to_string();
            assert_eq!(refused, format!("levels is {text:?}, but must be {ALLOWED}"));
        }
    }

    /// Goal: what is in force is what was set, for every component and level.
    #[test]
    fn a_level_lets_through_what_matters_as_much_or_more() {
        let force = InForce::new(Levels::OFF);
        for component in Component::ALL {
            for (index, level) in Level::ALL.into_iter().enumerate() {
                force.set(Levels::OFF.with(component, level));
                assert_eq!(force.get().of(component), Some(level));
                let passed = Level::ALL.into_iter().filter(|one| force.has(component, *one));
                assert_eq!(passed.count(), index + 1);
                let others = Component::ALL.into_iter().filter(|one| *one != component);
                assert!(others.into_iter().all(|one| !force.has(one, Level::Error)));
            }
        }
    }
}
