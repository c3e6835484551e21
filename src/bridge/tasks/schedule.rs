//! Tasks that are submitted at times of the calendar.

use crate::error::{Error, Result};
use chrono::{DateTime, Utc};
use core::str::FromStr;
use croner::Cron;
use std::time::SystemTime;

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

/// When each of some schedules is due next, by a clock that may be set.
pub(super) struct Due {
    schedules: Vec<Schedule>,
    next: Vec<Option<SystemTime>>,
    seen: SystemTime,
}

impl Due {
    pub(super) fn new(schedules: Vec<Schedule>, now: SystemTime) -> Self {
        let next = schedules.iter().map(|one| one.next(now)).collect();
        Self { schedules, next, seen: now }
    }

    /// The first time that comes. None: none does.
    pub(super) fn first(&mut self, now: SystemTime) -> Option<SystemTime> {
        if now < self.seen {
            // The clock was set back: its times come again.
            self.next = self.schedules.iter().map(|one| one.next(now)).collect();
        }
        self.seen = now;
        self.next.iter().flatten().min().copied()
    }

    /// Which are due at this time. Each is due next after `from`, or after this time.
    pub(super) fn take(&mut self, at: SystemTime, from: SystemTime) -> Vec<usize> {
        let is_due = |index: &usize| self.next[*index] == Some(at);
        let due: Vec<usize> = (0..self.next.len()).filter(is_due).collect();
        for &index in &due {
            self.next[index] = self.schedules[index].next(at.max(from));
        }
        due
    }
}

/// In whole seconds since 1970, for the id of what is submitted then.
pub(super) fn seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Goal: a clock that was set back, and one that was set forward, silences no schedule, and each time has one task.
    #[test]
    fn a_schedule_goes_by_the_clock_that_there_is() {
        let [minute, hour] = [60, 3600].map(Duration::from_secs);
        let noon = SystemTime::UNIX_EPOCH + 14 * 365 * 24 * hour + 12 * hour;
        let mut due = Due::new(vec![Schedule::new("* * * * *").unwrap()], noon);
        let next = noon + minute;
        assert_eq!(due.first(noon), Some(next));
        assert_eq!((due.first(next), due.take(next, noon)), (Some(next), vec![0]));
        assert_eq!(due.first(next), Some(next + minute));
        for back in [hour, 14 * 365 * 24 * hour] {
            let now = noon - back;
            assert_eq!(due.first(now), Some(now + minute), "back by {back:?}");
            assert_eq!(due.take(now + minute, now), [0]);
        }
        let now = noon + 5 * hour;
        let late = due.first(now).unwrap();
        assert!(late < now && due.take(late, now - minute) == [0]);
        assert_eq!(due.first(now), Some(now));
    }

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
