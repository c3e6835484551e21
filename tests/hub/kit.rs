//! What the tests of the hub share.

use crate::common::{LONG, until};
use paceline::hub::{Hub, HubAudit, Message, Receipt};
use paceline::{Error, Pool};
use std::sync::{Arc, Mutex};

pub fn pool(threads: usize) -> Pool {
    Pool::builder().threads(threads).pin(paceline::Pin::None).build().unwrap()
}

pub fn hub(threads: usize) -> Hub {
    Hub::new(&pool(threads)).unwrap()
}

/// What came, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn note(&self, message: &Message<'_>) {
        self.add(text(message));
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// The receipt of what was published, whether a mailbox has refused it or not.
pub fn told(published: Result<Receipt, Error>) -> Receipt {
    match published {
        Ok(receipt) => receipt,
        Err(Error::MailboxFull { receipt, .. }) => *receipt,
        Err(error) => panic!("{error}"),
    }
}

pub fn text(message: &Message<'_>) -> String {
    String::from_utf8(message.payload().to_vec()).unwrap()
}

/// Waits until nothing waits and nothing runs, and says how the books are then.
pub fn at_rest(hub: &Hub) -> HubAudit {
    until("nothing waits or runs", || {
        let audit = hub.audit();
        audit.waiting == 0 && audit.running == 0
    });
    hub.audit()
}

/// The end of a test: what matched is accounted for, and the pool's books balance, too.
pub fn settle(hub: &Hub) {
    let audit = at_rest(hub);
    assert!(audit.is_balanced(), "{audit:?}");
    let report = hub.pool().shutdown(LONG);
    assert!(report.drained, "{report:?}");
    let audit = hub.audit();
    assert!(audit.is_balanced() && audit.waiting == 0, "{audit:?}");
}
