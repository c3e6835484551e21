//! A plain client of HTTP/1.1, that of the standard library's sockets.

use paceline::net::Address;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

pub fn tcp(address: &Address) -> SocketAddr {
    match address {
        Address::Tcp(address) => *address,
        other => panic!("{other} is no TCP address"),
    }
}

/// Asks once, with these lines in the head.
pub fn ask(address: &Address, first: &str, lines: &[&str], body: &str) -> Answer {
    let mut stream = connect(address);
    let mut head = format!("{first} HTTP/1.1\r\nConnection: close\r\n");
    for line in lines {
        head.push_str(&format!("{line}\r\n"));
    }
    if !lines.iter().any(|line| line.starts_with("Host:")) {
        head.push_str(&format!("Host: {}\r\n", tcp(address)));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(head.as_bytes()).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let all = String::from_utf8(all).unwrap();
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {all:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    Answer { status, head: head.to_lowercase(), body: body.into() }
}

pub fn get(address: &Address, path: &str) -> Answer {
    ask(address, &format!("GET {path}"), &[], "")
}

pub fn connect(address: &Address) -> TcpStream {
    let stream = TcpStream::connect(tcp(address)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// The events of one viewer.
pub struct Events {
    lines: BufReader<TcpStream>,
}

impl Events {
    /// None: it was refused, with this status.
    pub fn open(address: &Address, path: &str) -> Result<Self, u16> {
        let mut stream = connect(address);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", tcp(address)).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let status: u16 = line.split(' ').nth(1).unwrap().parse().unwrap();
        while line != "\r\n" {
            line.clear();
            lines.read_line(&mut line).unwrap();
        }
        if status == 200 { Ok(Self { lines }) } else { Err(status) }
    }

    /// The next event.
    pub fn next(&mut self) -> serde_json::Value {
        self.next_or_end().expect("the feed has ended")
    }

    /// None: the feed has ended.
    pub fn next_or_end(&mut self) -> Option<serde_json::Value> {
        loop {
            let mut line = String::new();
            // A connection that goes on has a chunk of no length at the end.
            if self.lines.read_line(&mut line).unwrap() == 0 || line == "0\r\n" {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}
