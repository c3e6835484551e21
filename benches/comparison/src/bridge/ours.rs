//! Hubs and bridges.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use paceline::Pool;
use paceline::bridge::{Bridge, BridgeBuilder, Export};
use paceline::hub::{Hub, Message, Overflow, Subscription};

use super::{IN_FLIGHT, PATIENCE, Publish, SIZE, Travel, bare};

pub fn hub() -> Result<Hub, String> {
    let pool = Pool::builder().threads(1).build().map_err(|error| error.to_string())?;
    Hub::new(&pool).map_err(|error| error.to_string())
}

pub fn open(builder: BridgeBuilder) -> Result<Bridge, String> {
    let bridge = builder.open().map_err(|error| error.to_string())?;
    bridge.wait_connected(PATIENCE).map_err(|error| error.to_string())?;
    Ok(bridge)
}

/// One hub whose key goes to the broker.
pub struct Stream {
    hub: Hub,
    bridge: Bridge,
    /// At most once: the end of what was published comes here.
    end: Option<bare::Listener>,
}

impl Stream {
    pub fn at_most_once(url: &str) -> Result<Self, String> {
        let hub = hub()?;
        // Nothing is to be lost: the publisher waits for room.
        let rule = Export::new("a.*").overflow(Overflow::Block(PATIENCE));
        let bridge = open(Bridge::nats(&hub, url).export(rule))?;
        Ok(Self { hub, bridge, end: Some(bare::Listener::new(url, "a.end")?) })
    }

    pub fn at_least_once(url: &str) -> Result<Self, String> {
        let hub = hub()?;
        let rule = Export::new("a.*").at_least_once("A").in_flight(IN_FLIGHT);
        let rule = rule.overflow(Overflow::Block(PATIENCE));
        let bridge = open(Bridge::nats(&hub, url).export(rule))?;
        Ok(Self { hub, bridge, end: None })
    }
}

impl Publish for Stream {
    fn publish(&mut self, count: usize) -> Result<(), String> {
        for _ in 0..count {
            let published = self.hub.publish("a.b", &[b'x'; SIZE][..]);
            let _receipt = published.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        let Some(end) = &mut self.end else {
            return self.bridge.flush(PATIENCE).map_err(|error| error.to_string());
        };
        let _receipt = self.hub.publish("a.end", "").map_err(|error| error.to_string())?;
        end.next().map(drop)
    }
}

/// Two hubs, from one of which a key goes to the other.
pub struct Pair {
    from: Hub,
    came: mpsc::Receiver<(Vec<u8>, Instant)>,
    _bridges: [Bridge; 2],
    _subscription: Subscription,
}

impl Pair {
    pub fn new(url: &str) -> Result<Self, String> {
        let (from, to) = (hub()?, hub()?);
        let (tell, came) = mpsc::channel();
        let subscription = to
            .subscribe("a", move |message: &Message<'_>| {
                let now = Instant::now();
                let _gone = tell.send((message.payload().to_vec(), now));
            })
            .map_err(|error| error.to_string())?;
        let into = open(Bridge::nats(&to, url).import("a"))?;
        let out = open(Bridge::nats(&from, url).export("a"))?;
        // The broker has the subscription some time after the connection.
        std::thread::sleep(Duration::from_millis(50));
        Ok(Self { from, came, _bridges: [out, into], _subscription: subscription })
    }
}

impl Travel for Pair {
    fn send(&mut self, payload: Vec<u8>) -> Result<(), String> {
        self.from.publish("a", payload).map(drop).map_err(|error| error.to_string())
    }

    fn arrival(&mut self) -> Result<(Vec<u8>, Instant), String> {
        self.came.recv_timeout(PATIENCE).map_err(|_| "a message is lost".into())
    }
}
