//! Tasks that are submitted at times of the calendar.

use crate::error::{Error, Result};
use chrono::{DateTime, Utc};
use core::str::FromStr;
use croner::Cron;
use std::time::{Duration, SystemTime};

/// When, in the manner of cron, by UTC.
#[derive(Clone)]
pub(super) struct Schedule {
    cron: Cron,
}

impl Schedule {
    /// Five fields: minute, hour, day, month, day of the week; or six, with seconds before them.
    pub(super) fn new(text: &str) -> Result<Self> {
        match Cron::from_str(text) {
            Ok(cron) => Ok(Self { cron }),
            Err(error) => {
                let allowed = format!("minute hour day month weekday: {error}");
                Err(Error::invalid("schedule", format!("{text:?}"), allowed))
            }
        }
    }

    /// The first time after this one.
    pub(super) fn next(&self, after: SystemTime) -> Option<SystemTime> {
        let after: DateTime<Utc> = after.into();
        self.cron.find_next_occurrence(&after, false).ok().map(SystemTime::from)
    }
}

/// In whole seconds since 1970, for the id of what is submitted then.
pub(super) fn seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// How long until then.
pub(super) fn until(at: SystemTime) -> Duration {
    at.duration_since(SystemTime::now()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_calendar_come_in_order() {
        let schedule = Schedule::new("30 3 * * *").unwrap();
        let day = Duration::from_secs(86_400);
        let first = schedule.next(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(seconds(first), 3 * 3600 + 30 * 60);
        assert_eq!(schedule.next(first).unwrap(), first + day);
        assert!(
            Schedule::new("61 * * * *").is_err_and(|error| error.to_string().contains("minute"))
        );
    }
}
