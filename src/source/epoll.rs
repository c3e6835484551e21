//! Descriptors: an epoll instance, and an eventfd for its doorbell.
//!
//! # The bell is never read
//!
//! A sound is one write to an eventfd that is watched edge-triggered. Every write reports a new
//! edge, whatever the count, so nobody ever reads it: that would be a system call for each ring. Nor
//! is the usual trick taken, which re-arms (`EPOLL_CTL_MOD`) an eventfd that is always readable: since
//! Linux 5.3 such a wake-up can be lost while another thread is just entering the wait. The counter
//! overflows after 2^64 rings.
//!
//! # Hosts with a loop of their own
//!
//! An epoll descriptor can itself be polled: it is readable while a wait would bring something. Such
//! a host has no time-out to give, so a timerfd joins the set the first time a deadline is told; it
//! is watched like the bell, reported as the bell, and never read either.

use super::doorbell::{Doorbell, Wait};
use super::{Events, Interest, OWN_TOKEN};
use crate::sync::Mutex;
use crate::sys::epoll::{EDGE, Epoll, IN, ONE_SHOT, OUT, PRI, RDHUP};
use crate::sys::eventfd::EventFd;
use crate::sys::timerfd::TimerFd;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::PoisonError;

/// A set of descriptors.
#[derive(Debug)]
pub(crate) struct EpollSource {
    bell: Doorbell,
    epoll: Epoll,
    gong: EventFd,
    /// Made when a host first asks for it. The lock is taken only by such hosts.
    alarm: Mutex<Option<TimerFd>>,
}

impl EpollSource {
    pub(super) fn new() -> io::Result<Self> {
        let (epoll, gong) = (Epoll::new()?, EventFd::new()?);
        epoll.add(gong.as_fd(), IN | EDGE, OWN_TOKEN)?;
        Ok(Self { bell: Doorbell::new(), epoll, gong, alarm: Mutex::new(None) })
    }

    pub(super) fn register(
        &self,
        fd: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
        level: bool,
    ) -> io::Result<()> {
        let trigger = if level { ONE_SHOT } else { EDGE };
        self.epoll.add(fd, wanted(interest) | trigger, token)
    }

    pub(super) fn rearm(&self, fd: RawFd, token: u64, interest: Interest) -> io::Result<()> {
        self.epoll.modify(fd, wanted(interest) | ONE_SHOT, token)
    }

    pub(super) fn deregister(&self, fd: RawFd) -> io::Result<()> {
        self.epoll.delete(fd)
    }

    #[inline]
    pub(super) fn wait(
        &self,
        events: &mut Events,
        max: usize,
        timeout: Option<u64>,
    ) -> io::Result<usize> {
        let count = self.epoll.wait(events.room(max), timeout)?;
        Ok(events.filled(count, OWN_TOKEN))
    }

    #[inline]
    pub(super) fn arm(&self) {
        self.bell.arm(Wait::Blocking);
    }

    #[inline]
    pub(super) fn ring(&self) -> bool {
        let sound = self.bell.ring();
        if sound {
            self.gong.signal();
        }
        sound
    }

    pub(super) fn bell(&self) -> &Doorbell {
        &self.bell
    }

    pub(super) fn pollable(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub(super) fn set_alarm(&self, deadline: Option<u64>) -> io::Result<()> {
        let mut alarm = self.alarm.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*alarm, deadline) {
            (None, None) => Ok(()),
            (Some(timer), None) => timer.clear(),
            (Some(timer), Some(deadline)) => timer.set(deadline),
            (None, Some(deadline)) => {
                let timer = TimerFd::new()?;
                timer.set(deadline)?;
                self.epoll.add(timer.as_fd(), IN | EDGE, OWN_TOKEN)?;
                *alarm = Some(timer);
                Ok(())
            }
        }
    }
}

/// Epoll's bits for an interest. Errors and hang-ups need not be asked for.
fn wanted(interest: Interest) -> u32 {
    let bit = |part: Interest, bits| if interest.contains(part) { bits } else { 0 };
    bit(Interest::READABLE, IN | RDHUP)
        | bit(Interest::WRITABLE, OUT)
        | bit(Interest::PRIORITY, PRI)
}
