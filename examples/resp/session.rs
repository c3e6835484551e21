//! One client: from bytes to requests, from requests to replies.

use crate::app::App;
use crate::commands::Call;
use crate::replies::Replies;
use crate::request::{Parsed, Parser};
use paceline::net::{Accept, Conn, ConnHandler, Reason};
use std::sync::Arc;

pub struct Session {
    app: Arc<App>,
    parser: Parser,
}

impl Session {
    pub fn new(app: Arc<App>) -> Self {
        Self { app, parser: Parser::default() }
    }
}

impl ConnHandler for Session {
    fn open(&mut self, _: &Conn) -> Accept {
        self.app.count_client();
        Accept::Yes
    }

    /// Carries out all requests that are complete. It stops early if the client does not read the
    /// replies, and is shown the rest again when it has.
    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        let mut replies = Replies::to(conn);
        let (mut consumed, mut commands, mut ends) = (0, 0, false);
        while replies.has_room() {
            let rest = &bytes[consumed..];
            match self.parser.next(rest) {
                Parsed::Request(length) => {
                    consumed += length;
                    commands += 1;
                    let (app, request) = (&*self.app, self.parser.request(rest));
                    let mut call = Call { app, request, replies: &mut replies, quits: false };
                    call.run();
                    if call.quits {
                        ends = true;
                        break;
                    }
                }
                Parsed::Nothing(length) => consumed += length,
                Parsed::Partial => break,
                Parsed::Wrong(wrong) => {
                    replies.error(&[b"ERR Protocol error: ", &wrong.message()[..]].concat());
                    ends = true;
                    break;
                }
            }
        }
        drop(replies);
        if ends {
            conn.close();
        }
        self.parser.rest();
        self.app.count_commands(commands);
        consumed
    }

    fn close(&mut self, _: &Conn, _: Reason) {
        self.app.forget_client();
    }
}
