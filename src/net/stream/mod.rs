//! One stream connection: what users see of it, what threads share of it, and how it runs.
//!
//! A connection has three names. A hook is given a [`Conn`](conn::Conn), any other thread holds a
//! [`ConnRef`](conn::ConnRef), and both lead to the [`Connection`](connection::Connection), which all share. All else
//! is a part of it: its output buffer, its input, and the driver, which is the activity in its slot.

mod alarm;
pub(crate) mod conn;
pub(crate) mod connection;
pub(crate) mod driver;
pub(crate) mod figures;
pub(crate) mod filter;
mod input;
pub(crate) mod limits;
pub(crate) mod origin;
pub(crate) mod output;
pub(crate) mod output_buffer;
pub(crate) mod service;
pub(crate) mod socket;
pub(crate) mod stats;
pub(crate) mod status;
