//! Replies on their way to a client.
//!
//! All replies to what came in one piece are gathered in a buffer of the thread, and written as one.

use paceline::net::{Conn, WriteStatus};
use std::cell::Cell;
use std::io::IoSlice;
use std::sync::Arc;

/// So much is gathered before it is given to the connection.
const GATHER: usize = 16 << 10;
/// Longer values are not copied into the buffer.
const LONG: usize = 16 << 10;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

pub struct Replies<'a> {
    conn: &'a Conn,
    buffer: Vec<u8>,
    /// The client does not read what it asks for.
    pressed: bool,
}

impl<'a> Replies<'a> {
    pub fn to(conn: &'a Conn) -> Self {
        Self { conn, buffer: SPARE.take(), pressed: false }
    }

    /// `+OK` and the like.
    #[inline]
    pub fn status(&mut self, status: &[u8]) {
        self.line(b'+', status);
    }

    #[inline]
    pub fn ok(&mut self) {
        self.buffer.extend_from_slice(b"+OK\r\n");
    }

    /// The first word of the message is the error's code.
    pub fn error(&mut self, message: &[u8]) {
        self.buffer.push(b'-');
        // A line of the client that is quoted must not end ours.
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        self.buffer.extend(message.iter().map(|byte| if is_end(byte) { b' ' } else { *byte }));
        self.buffer.extend_from_slice(b"\r\n");
    }

    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.line(b':', itoa::Buffer::new().format(value).as_bytes());
    }

    #[inline]
    pub fn array(&mut self, length: usize) {
        self.line(b'*', itoa::Buffer::new().format(length).as_bytes());
    }

    #[inline]
    pub fn null(&mut self) {
        self.buffer.extend_from_slice(b"$-1\r\n");
    }

    pub fn null_array(&mut self) {
        self.buffer.extend_from_slice(b"*-1\r\n");
    }

    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.buffer.extend_from_slice(bytes);
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// A value that is shared with the store. Long ones go to the connection from where they are; not
    /// to be called under a lock.
    pub fn shared(&mut self, bytes: &Arc<[u8]>) {
        if bytes.len() < LONG {
            return self.bulk(bytes);
        }
        self.length(bytes.len());
        let pieces = [&self.buffer[..], bytes, b"\r\n"].map(IoSlice::new);
        let wrote = self.conn.write_vectored(&pieces);
        self.buffer.clear();
        self.note(wrote);
    }

    fn length(&mut self, length: usize) {
        match u8::try_from(length) {
            Ok(digit @ 0..=9) => self.buffer.extend_from_slice(&[b'$', b'0' + digit, b'\r', b'\n']),
            _ => self.line(b'$', itoa::Buffer::new().format(length).as_bytes()),
        }
    }

    #[inline]
    fn line(&mut self, kind: u8, text: &[u8]) {
        self.buffer.reserve(text.len() + 3);
        self.buffer.push(kind);
        self.buffer.extend_from_slice(text);
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// Whether more may be answered now.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        if self.buffer.len() >= GATHER {
            self.write();
        }
        !self.pressed
    }

    fn write(&mut self) {
        let wrote = if self.buffer.capacity() <= 4 * GATHER {
            let wrote = self.conn.write(&self.buffer);
            self.buffer.clear();
            wrote
        } else {
            self.conn.write_owned(std::mem::take(&mut self.buffer))
        };
        self.note(wrote);
    }

    fn note(&mut self, wrote: paceline::Result<WriteStatus>) {
        match wrote {
            Ok(wrote) => self.pressed = wrote == WriteStatus::AboveHighMark,
            Err(_) => {
                // A reply is missing, so none may follow. If the client is gone already, this changes
                // nothing.
                self.conn.abort();
                self.pressed = true;
            }
        }
    }
}

impl Drop for Replies<'_> {
    fn drop(&mut self) {
        if !self.buffer.is_empty() {
            self.write();
        }
        SPARE.set(std::mem::take(&mut self.buffer));
    }
}
