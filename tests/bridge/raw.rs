//! A client that speaks the broker's protocol by hand, and says what no well-behaved client would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

pub struct Raw {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Raw {
    pub fn connect(url: &str) -> Self {
        let writer = TcpStream::connect(url.trim_start_matches("nats://")).unwrap();
        let mut raw = Self { reader: BufReader::new(writer.try_clone().unwrap()), writer };
        raw.write(b"CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\n");
        raw.write(b"SUB answer.> 1\r\n");
        raw.sync();
        raw
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).unwrap();
    }

    pub fn publish(&mut self, subject: &str, payload: &[u8]) {
        self.write(&message(subject, None, "", payload));
    }

    /// Each header with `\r\n` behind it.
    pub fn publish_with(
        &mut self,
        subject: &str,
        reply: Option<&str>,
        headers: &str,
        payload: &[u8],
    ) {
        self.write(&message(subject, reply, headers, payload));
    }

    /// Waits until the broker has dealt with all that was written.
    pub fn sync(&mut self) {
        self.write(b"PING\r\n");
        while self.line() != "PONG" {}
    }

    /// What one who listens says; also that of the broker's JetStream.
    pub fn request(&mut self, subject: &str, payload: &str) -> String {
        self.publish_with(subject, Some("answer.here"), "", payload.as_bytes());
        loop {
            let line = self.line();
            let words: Vec<&str> = line.split(' ').collect();
            if words[0] == "MSG" || words[0] == "HMSG" {
                let length: usize = words.last().unwrap().parse().unwrap();
                let mut text = vec![0; length + 2];
                self.reader.read_exact(&mut text).unwrap();
                return String::from_utf8_lossy(&text[..length]).into_owned();
            }
        }
    }

    /// The next that the broker says; what it asks is answered.
    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.reader.read_line(&mut line).unwrap() > 0, "the broker has hung up");
            match line.trim_end() {
                "PING" => self.writer.write_all(b"PONG\r\n").unwrap(),
                line => return line.to_owned(),
            }
        }
    }
}

/// As it goes to the broker.
pub fn message(subject: &str, reply: Option<&str>, headers: &str, payload: &[u8]) -> Vec<u8> {
    let reply = reply.map_or(String::new(), |reply| format!("{reply} "));
    let mut bytes = match headers {
        "" => format!("PUB {subject} {reply}{}\r\n", payload.len()).into_bytes(),
        _ => {
            let headers = format!("NATS/1.0\r\n{headers}\r\n");
            let (head, all) = (headers.len(), headers.len() + payload.len());
            format!("HPUB {subject} {reply}{head} {all}\r\n{headers}").into_bytes()
        }
    };
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// A broker's stream as a test has it answer: by subject and payload, with JSON. None: it does not answer.
pub struct Scripted {
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scripted {
    /// Of a broker without streams of its own.
    pub fn listen(
        url: &str,
        subjects: &[&str],
        mut script: impl FnMut(&str, &str) -> Option<String> + Send + 'static,
    ) -> Self {
        let mut raw = Raw::connect(url);
        for (index, subject) in subjects.iter().enumerate() {
            raw.write(format!("SUB {subject} {}\r\n", index + 2).as_bytes());
        }
        raw.sync();
        raw.writer.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let stops = Arc::<AtomicBool>::default();
        let told = Arc::clone(&stops);
        let thread = std::thread::spawn(move || {
            while !told.load(Relaxed) {
                // A line that has begun is there as a whole, as the broker writes it at once.
                if raw.reader.fill_buf().is_ok() {
                    raw.answer(&mut script);
                }
            }
        });
        Self { stops, thread: Some(thread) }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.stops.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Raw {
    fn answer(&mut self, script: &mut impl FnMut(&str, &str) -> Option<String>) {
        let line = self.line();
        let words: Vec<&str> = line.split(' ').collect();
        let (head, sizes) = match words[..] {
            ["MSG", subject, _, reply, all] => ((subject, reply), (0, all)),
            ["HMSG", subject, _, reply, head, all] => {
                ((subject, reply), (head.parse().unwrap(), all))
            }
            _ => return,
        };
        self.writer.set_read_timeout(None).unwrap();
        let mut text = vec![0; sizes.1.parse::<usize>().unwrap() + 2];
        self.reader.read_exact(&mut text).unwrap();
        self.writer.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let payload = String::from_utf8_lossy(&text[sizes.0..text.len() - 2]).into_owned();
        if let Some(answer) = script(head.0, &payload) {
            self.publish(head.1, answer.as_bytes());
        }
    }
}
