//! What sockets of streams and of datagrams have in common.

use socket2::Socket;
use std::io;

/// None: the system's.
pub(crate) fn set_buffers(
    socket: &Socket,
    send: Option<usize>,
    receive: Option<usize>,
) -> io::Result<()> {
    if let Some(bytes) = send {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = receive {
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}

/// Whether descriptors or memory have run out.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let exhausted = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| exhausted.contains(&code))
}
