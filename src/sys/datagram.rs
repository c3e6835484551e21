//! Many datagrams in one system call: recvmmsg(2) and sendmmsg(2). Never blocks, never a SIGPIPE.
#![allow(unsafe_code, reason = "recvmmsg(2), sendmmsg(2)")]

use super::fd::check;
use core::mem::{MaybeUninit, zeroed};
use core::net::SocketAddr;
use core::ptr;
use socket2::{SockAddr, SockAddrStorage};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Datagrams in one system call, at most.
pub(crate) const BATCH: usize = 64;

/// Room for a batch of datagrams, and what came last.
pub(crate) struct Inbox {
    /// One after the other, `size` bytes each. The kernel maps what is touched.
    rooms: Box<[u8]>,
    size: usize,
    names: Box<[libc::sockaddr_storage]>,
    received: Vec<(SocketAddr, usize)>,
}

impl Inbox {
    /// For `count` datagrams of up to `size` bytes each.
    pub(crate) fn new(count: usize, size: usize) -> Self {
        assert!((1..=BATCH).contains(&count) && size > 0);
        Self {
            rooms: vec![0; count * size].into_boxed_slice(),
            size,
            // SAFETY: plain bytes, for which zero is a value.
            names: vec![unsafe { zeroed() }; count].into_boxed_slice(),
            received: Vec::with_capacity(count),
        }
    }

    /// How many it has room for.
    pub(crate) fn capacity(&self) -> usize {
        self.names.len()
    }

    /// Takes what is there, in place of what came last. `WouldBlock`: nothing is.
    pub(crate) fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.received.clear();
        // SAFETY: plain numbers and pointers, for which zero is a value.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
        let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
        let rooms = self.rooms.chunks_exact_mut(self.size).zip(&mut self.names);
        for ((room, name), (header, vector)) in rooms.zip(headers.iter_mut().zip(&mut vectors)) {
            let iov_base = room.as_mut_ptr().cast();
            header.msg_hdr.msg_iov = vector.write(libc::iovec { iov_base, iov_len: room.len() });
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = ptr::from_mut(name).cast();
            header.msg_hdr.msg_namelen = size_of_val(name) as libc::socklen_t;
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        let (count, none) = (self.names.len() as libc::c_uint, ptr::null_mut());
        // SAFETY: `count` headers were filled, with room that is borrowed for the call.
        let answer =
            unsafe { libc::recvmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), count, flags, none) };
        let count = check(answer)? as usize;
        for (header, name) in headers[..count].iter().zip(&self.names) {
            let from = address(name, header.msg_hdr.msg_namelen);
            self.received.push((from, header.msg_len as usize));
        }
        Ok(())
    }

    /// How many came last.
    pub(crate) fn len(&self) -> usize {
        self.received.len()
    }

    /// What came, as much of it as there was room for; from whom; and how long it was.
    pub(crate) fn get(&self, index: usize) -> Option<(&[u8], SocketAddr, usize)> {
        let (from, length) = *self.received.get(index)?;
        let room = &self.rooms[index * self.size..][..self.size];
        Some((&room[..length.min(self.size)], from, length))
    }
}

/// What the kernel has written, `len` bytes of it.
fn address(name: &libc::sockaddr_storage, len: libc::socklen_t) -> SocketAddr {
    let mut storage = SockAddrStorage::zeroed();
    if len > 0 {
        // SAFETY: it is of that type inside.
        *unsafe { storage.view_as() } = *name;
    }
    // SAFETY: the family is the one that the kernel gave with this length, or none.
    unsafe { SockAddr::new(storage, len) }.as_socket().unwrap_or_else(unknown)
}

/// For sockets that are of no IP family.
fn unknown() -> SocketAddr {
    SocketAddr::from(([0; 4], 0))
}

/// Sends as many as the kernel takes, from the front; `to` is left out where it is None. Errors are the
/// first one's.
pub(crate) fn send<'a>(
    fd: BorrowedFd<'_>,
    datagrams: impl ExactSizeIterator<Item = (&'a [u8], Option<SocketAddr>)>,
) -> io::Result<usize> {
    let asked = datagrams.len().min(BATCH);
    let mut names = [const { MaybeUninit::<SockAddr>::uninit() }; BATCH];
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
    // SAFETY: plain numbers and pointers, for which zero is a value.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
    let places = headers.iter_mut().zip(names.iter_mut().zip(&mut vectors));
    for ((bytes, to), (header, (name, vector))) in datagrams.zip(places) {
        // The kernel reads only.
        let iov_base = bytes.as_ptr().cast_mut().cast();
        header.msg_hdr.msg_iov = vector.write(libc::iovec { iov_base, iov_len: bytes.len() });
        header.msg_hdr.msg_iovlen = 1;
        if let Some(to) = to {
            let name = name.write(to.into());
            header.msg_hdr.msg_name = name.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_namelen = name.len();
        }
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: `asked` headers were filled, with bytes and names that are borrowed for the call.
    let answer = unsafe {
        libc::sendmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), asked as libc::c_uint, flags)
    };
    Ok(check(answer)? as usize)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    fn bound() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    #[test]
    fn a_batch_goes_and_comes_in_order() {
        let ((from, source), (to, target)) = (bound(), bound());
        let bytes: Vec<_> = (0..10).map(|index| vec![index; index as usize]).collect();
        let sent = send(from.as_fd(), bytes.iter().map(|bytes| (&bytes[..], Some(target))));
        assert_eq!(sent.unwrap(), 10);
        let mut inbox = Inbox::new(7, 5);
        for expected in [0..7, 7..10] {
            inbox.receive(to.as_fd()).unwrap();
            assert_eq!(inbox.len(), expected.len());
            for (index, length) in expected.enumerate() {
                let cut = &bytes[length][..length.min(5)];
                assert_eq!(inbox.get(index), Some((cut, source, length)));
            }
        }
        assert_eq!(inbox.get(3), None);
        let nothing = inbox.receive(to.as_fd()).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(inbox.len(), 0);
    }

    #[test]
    fn no_more_than_a_batch_is_sent_at_once() {
        let ((from, _), (_to, target)) = (bound(), bound());
        let many = [(&b"x"[..], Some(target)); BATCH + 3];
        assert_eq!(send(from.as_fd(), many.into_iter()).unwrap(), BATCH);
        assert_eq!(send(from.as_fd(), many[..0].iter().copied()).unwrap(), 0);
    }

    /// Method: datagrams over a pair of Unix sockets, since those of UDP leave at once on loopback.
    #[test]
    fn where_there_is_no_room_some_are_sent() {
        let (from, to) = UnixDatagram::pair().unwrap();
        let bytes = vec![7; 20_000];
        let some = || std::iter::repeat_n((&bytes[..], None), 50);
        let sent = send(from.as_fd(), some()).unwrap();
        assert!((1..50).contains(&sent), "{sent}");
        assert_eq!(send(from.as_fd(), some()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut inbox = Inbox::new(BATCH, 100);
        inbox.receive(to.as_fd()).unwrap();
        assert_eq!(inbox.len(), sent);
        assert_eq!(inbox.get(0), Some((&[7; 100][..], unknown(), 20_000)));
    }
}
