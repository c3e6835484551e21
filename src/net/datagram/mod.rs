//! Datagrams, which have no connections.

pub(super) mod pulled;
mod settings;
mod socket;

pub use pulled::{PulledUdp, UdpEvent};
pub use settings::UdpBuilder;
pub use socket::{Datagram, DatagramHandler, Datagrams, UdpReport, UdpSocket, UdpStats};
