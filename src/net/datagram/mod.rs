//! Datagrams, which have no connections.

mod figures;
pub(super) mod host;
mod settings;
mod socket;

pub use host::UdpEvent;
pub use settings::UdpBuilder;
pub use socket::{
    Datagram, DatagramHandler, Datagrams, DatagramsIter, UdpReport, UdpSocket, UdpStats,
};
