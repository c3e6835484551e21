//! Datagrams, which have no connections.

mod pulled;
mod socket;

pub use pulled::{PulledUdp, UdpEvent};
pub use socket::{
    Datagram, DatagramHandler, Datagrams, UdpBuilder, UdpReport, UdpSocket, UdpStats,
};
