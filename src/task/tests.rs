//! What needs no public door.

use crate::sys::clock;
use crate::task::result::report::Status;
use crate::task::stamp::{stamp_begin, stamp_end};
use crate::thread_state::next_lap;

#[test]
fn a_status_survives_its_bits() {
    for bits in 0..8 {
        let status = Status::from_bits(bits);
        assert_eq!(status as u32, bits);
        assert_eq!(status.is_end(), bits >= 3, "{status}");
    }
}

#[test]
fn an_attempt_begins_when_the_one_before_it_has_ended_unless_something_came_between() {
    for (at_once, others, same) in [(true, 0, true), (true, 1, false), (false, 0, false)] {
        let end = stamp_end(at_once);
        next_lap();
        for _ in 0..others {
            next_lap();
        }
        // Then a stamp that is taken anew is a later one.
        while clock::coarse() <= end {
            core::hint::spin_loop();
        }
        assert_eq!(stamp_begin() == end, same, "at once: {at_once}, others: {others}");
    }
}
