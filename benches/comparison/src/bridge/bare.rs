//! The client by itself.

use std::collections::VecDeque;
use std::future::IntoFuture;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, context::PublishAckFuture};
use async_nats::{Client, HeaderMap, Message};
use futures_util::StreamExt;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::{IN_FLIGHT, PATIENCE, Publish, SIZE, Travel};

/// A client on a thread of its own, as that of a bridge.
struct Home {
    client: Client,
    handle: Handle,
    /// Its end is that of the thread.
    _end: oneshot::Sender<()>,
}

impl Home {
    fn new(url: &str) -> Result<Self, String> {
        let (tell, told) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let url = url.to_owned();
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let client = async_nats::connect(url).await.map_err(|error| error.to_string());
                let _gone = tell.send(client.map(|client| (client, Handle::current())));
                let _dropped = ended.await;
            });
            runtime.shutdown_background();
        });
        let (client, handle) = told.recv_timeout(PATIENCE).map_err(|_| "no connection")??;
        Ok(Self { client, handle, _end: end })
    }
}

/// Waits for a future of a client, on another thread than the client's.
fn wait<F: IntoFuture>(handle: &Handle, future: F) -> F::Output {
    let _inside = handle.enter();
    handle.block_on(future.into_future())
}

fn one_header(number: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // As long as that of the bridge.
    headers.insert("Nats-Msg-Id", format!("{:024x}.{number}.{number:016x}", 1).as_str());
    headers
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Messages in one direction.
pub struct Stream {
    home: Home,
    has_header: bool,
    number: u64,
    /// At least once.
    context: Option<jetstream::Context>,
    acks: VecDeque<PublishAckFuture>,
    end: Option<Listener>,
}

impl Stream {
    pub fn at_most_once(url: &str, has_header: bool) -> Result<Self, String> {
        let end = Some(Listener::new(url, "a.end")?);
        let home = Home::new(url)?;
        Ok(Self { home, has_header, number: 0, context: None, acks: VecDeque::new(), end })
    }

    pub fn at_least_once(url: &str, has_header: bool) -> Result<Self, String> {
        let home = Home::new(url)?;
        let context = {
            let _inside = home.handle.enter();
            jetstream::new(home.client.clone())
        };
        let config = jetstream::stream::Config {
            name: "A".into(),
            subjects: vec!["a.*".into()],
            duplicate_window: Duration::from_secs(120),
            ..Default::default()
        };
        wait(&home.handle, context.create_stream(config)).map_err(text)?;
        let (context, acks) = (Some(context), VecDeque::new());
        Ok(Self { home, has_header, number: 0, context, acks, end: None })
    }

    async fn one(&mut self) -> Result<(), String> {
        let payload = bytes::Bytes::copy_from_slice(&[b'x'; SIZE]);
        self.number += 1;
        let Some(context) = &self.context else {
            let client = &self.home.client;
            return match self.has_header {
                true => client.publish_with_headers("a.b", one_header(self.number), payload).await,
                false => client.publish("a.b", payload).await,
            }
            .map_err(text);
        };
        if self.acks.len() == IN_FLIGHT {
            let oldest = self.acks.pop_front().expect("one");
            oldest.await.map_err(text)?;
        }
        let ack = match self.has_header {
            true => context.publish_with_headers("a.b", one_header(self.number), payload).await,
            false => context.publish("a.b", payload).await,
        };
        self.acks.push_back(ack.map_err(text)?);
        Ok(())
    }
}

impl Publish for Stream {
    fn publish(&mut self, count: usize) -> Result<(), String> {
        let handle = self.home.handle.clone();
        wait(&handle, async {
            for _ in 0..count {
                self.one().await?;
            }
            Ok(())
        })
    }

    fn finish(&mut self) -> Result<(), String> {
        let handle = self.home.handle.clone();
        if let Some(end) = &mut self.end {
            wait(&handle, self.home.client.publish("a.end", "".into())).map_err(text)?;
            return end.next().map(drop);
        }
        wait(&handle, async {
            for ack in self.acks.drain(..) {
                ack.await.map_err(text)?;
            }
            Ok(())
        })
    }
}

/// What comes for one subject.
pub struct Listener {
    came: mpsc::Receiver<(Message, Instant)>,
    _home: Home,
}

impl Listener {
    pub fn new(url: &str, subject: &'static str) -> Result<Self, String> {
        let home = Home::new(url)?;
        let mut messages = wait(&home.handle, home.client.subscribe(subject)).map_err(text)?;
        // The broker has the subscription when it has answered.
        wait(&home.handle, home.client.flush()).map_err(text)?;
        let (tell, came) = mpsc::channel();
        home.handle.spawn(async move {
            while let Some(message) = messages.next().await {
                let _gone = tell.send((message, Instant::now()));
            }
        });
        std::thread::sleep(Duration::from_millis(50));
        Ok(Self { came, _home: home })
    }

    pub fn next(&mut self) -> Result<(Message, Instant), String> {
        self.came.recv_timeout(PATIENCE).map_err(|_| "a message is lost".into())
    }
}

/// One client sends, another listens.
pub struct Pair {
    from: Home,
    to: Listener,
    has_header: bool,
    number: u64,
}

impl Pair {
    pub fn new(url: &str, has_header: bool) -> Result<Self, String> {
        Ok(Self { to: Listener::new(url, "a")?, from: Home::new(url)?, has_header, number: 0 })
    }
}

impl Travel for Pair {
    fn send(&mut self, payload: Vec<u8>) -> Result<(), String> {
        self.number += 1;
        let client = &self.from.client;
        match self.has_header {
            true => {
                let headers = one_header(self.number);
                wait(&self.from.handle, client.publish_with_headers("a", headers, payload.into()))
            }
            false => wait(&self.from.handle, client.publish("a", payload.into())),
        }
        .map_err(text)
    }

    fn arrival(&mut self) -> Result<(Vec<u8>, Instant), String> {
        let (message, at) = self.to.next()?;
        Ok((message.payload.to_vec(), at))
    }
}
