//! Datagrams, which have no connections.

pub(super) mod host;
mod settings;
mod socket;

pub use host::UdpEvent;
pub use settings::UdpBuilder;
pub use socket::{Datagram, DatagramHandler, Datagrams, UdpReport, UdpSocket, UdpStats};
