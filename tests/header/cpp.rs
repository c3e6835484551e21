//! The enumerations of C++, from constants of the C interface.

use crate::model::{Item, Model};
use crate::wrapped;

/// An enumeration of C++.
struct Enum {
    name: &'static str,
    about: &'static str,
    kind: Kind,
    /// What the names of its constants begin with.
    prefix: &'static str,
    /// The rest of their names; empty: all that begin so. `EINVAL=Invalid`, if C++ has another name.
    values: &'static str,
}

enum Kind {
    /// `enum class`, of what the C interface has as `int32_t`.
    Signed,
    /// `enum class`, of what the C interface has as `uint32_t`.
    Unsigned,
    /// A class whose base this is has the values as its own: `Reason::Peer`.
    Base,
}

const fn of(name: &'static str, prefix: &'static str, kind: Kind, about: &'static str) -> Enum {
    Enum { name, about, kind, prefix, values: "" }
}

use Kind::{Base, Signed, Unsigned};

#[rustfmt::skip]
const ENUMS: &[Enum] = &[
    Enum {
        values: "OK=Ok EINVAL=Invalid EFULL=Full EEMPTY=Empty ETIMEDOUT=TimedOut ESHUTDOWN=ShutDown EFORKED=Forked \
            ESTALE=Stale ECLOSING=Closing EDEADLOCK=WouldDeadlock ECANCELLED=Cancelled EFAILED=Failed EPANIC=Panicked \
            EOS=Os EVERSION=Version EBUSY=Busy ENORESPONDERS=NoResponders EUNSUPPORTED=Unsupported EGIVENUP=GivenUp",
        ..of("Code", "PACE_", Signed, "What went wrong. The numbers are those of the C interface.")
    },
    of("Flow", "PACE_FLOW_", Signed, "What a handler returns: what happens next with its descriptor, timer or ring."),
    Enum {
        values: "OFF ERROR WARN INFO DEBUG TRACE",
        ..of("LogLevel", "PACE_LOG_", Unsigned, "How important a line of the log is.")
    },
    Enum {
        values: "POOL NET HTTP TASK HUB HISTORY WEBHOOK SERVICE LOG",
        ..of("LogComponent", "PACE_LOG_", Unsigned, "Which part of the library writes a line of the log.")
    },
    of("Lane", "PACE_LANE_", Unsigned, "The four queues of a pool's tasks, by priority. The default is Normal."),
    of("Source", "PACE_SOURCE_", Unsigned, "What the leader of a pool waits at."),
    of("Promotion", "PACE_PROMOTION_", Unsigned, "When a leader hands leadership on."),
    of("Role", "PACE_ROLE_", Unsigned, "What a thread of a pool is doing, in its statistics."),
    of("WriteStatus", "PACE_WRITE_STATUS_", Unsigned, "What became of the bytes of a write."),
    of("Accept", "PACE_ACCEPT_", Signed, "What the hook `open` answers: whether the connection is wanted."),
    of("Timeout", "PACE_TIMEOUT_", Unsigned, "Which time of a connection is over."),
    of("TimeoutAction", "PACE_TIMEOUT_ACTION_", Signed, "What the hook `timeout` answers."),
    of("ReasonKind", "PACE_REASON_", Base, "Why a connection has ended: the kinds of a Reason."),
    of("TaskStatus", "PACE_TASK_", Unsigned, "The state of a task of a worker pool. Completed and all below it are ends."),
    of("DurableStatus", "PACE_DURABLE_", Unsigned, "How a durable task has ended."),
    of("MissedTick", "PACE_MISSED_TICK_", Unsigned, "What happens to the ticks of a Periodic that come while a run has not ended."),
    of("AccessFormat", "PACE_ACCESS_", Unsigned, "What an access log tells of a request."),
    of("JsonKind", "PACE_JSON_", Unsigned, "What stands at a place of a JSON text: json_kind()."),
    of("MetricKind", "PACE_METRIC_", Unsigned, "What a metric measures, and how its values are summed up."),
    of("Priority", "PACE_PRIORITY_", Signed, "Which messages a mailbox with priorities delivers first. The default is Normal."),
    of("Execution", "PACE_EXECUTION_", Unsigned, "Where a subscription's handler runs."),
    of("Overflow", "PACE_OVERFLOW_", Unsigned, "What happens to a message for a mailbox that is full."),
    of("Unsubscribe", "PACE_UNSUBSCRIBE_", Unsigned, "How a subscription ends."),
    of("OnExhausted", "PACE_ON_EXHAUSTED_", Unsigned, "What happens to a message when its handler has failed at the last attempt."),
    of("RestartStrategy", "PACE_RESTART_", Unsigned, "Which handlers of a supervisor a failure restarts."),
    of("StartAt", "PACE_START_AT_", Unsigned, "Where an import from a stream begins, if the broker does not know how far it has come."),
    of("Severity", "PACE_SEVERITY_", Unsigned, "How serious an error or a notice of a hub is."),
    of("ConnEventKind", "PACE_CONN_EVENT_", Unsigned, "What has happened to a connection that is attached to a completion queue."),
    Enum {
        values: "READY TICK TIMER TASK CONN REQUEST BODY BODY_END BODY_BROKEN BODY_WRITABLE REQUEST_ENDED DATAGRAM \
            DATAGRAM_ERROR ATTEMPT TASK_ENDED MESSAGE REPLY RECORD SIGNAL ENDED CLIENT_GONE",
        ..of("EntryKind", "PACE_CQ_", Unsigned, "What an entry of a completion queue tells of.")
    },
];

/// `enums.hpp`
pub fn enums(model: &Model) -> String {
    let mut text = String::from(
        "// The enumerations of paceline.hpp, generated from the headers in include; not to be edited.\n\
         // PACELINE_BLESS=1 cargo test --test header renews it.\n\
         #ifndef PACELINE_ENUMS_HPP\n#define PACELINE_ENUMS_HPP\n\n#include <cstdint>\n\nnamespace paceline {\n\n",
    );
    for each in ENUMS {
        text.push_str(&comment("", each.about));
        text.push_str(&match each.kind {
            Signed => format!("enum class {} : std::int32_t {{\n", each.name),
            Unsigned => format!("enum class {} : std::uint32_t {{\n", each.name),
            Base => format!("struct {} {{\n    enum Kind : std::uint32_t {{\n", each.name),
        });
        let indent = if matches!(each.kind, Base) { "        " } else { "    " };
        for (item, name) in each.constants(model) {
            text.push_str(&comment(indent, &said_in_cpp(model, &item.doc)));
            text.push_str(&format!(
                "{indent}{name} = {},\n",
                item.value().expect("it is a constant")
            ));
        }
        text.push_str(if matches!(each.kind, Base) { "    };\n};\n\n" } else { "};\n\n" });
    }
    text + "} // namespace paceline\n\n#endif // PACELINE_ENUMS_HPP\n"
}

impl Enum {
    /// Its constants, each with its name in C++.
    fn constants<'a>(&self, model: &'a Model) -> Vec<(&'a Item, String)> {
        let constants = model.items.iter().filter(|item| item.value().is_some());
        let rests = constants.filter_map(|item| Some((item, item.name.strip_prefix(self.prefix)?)));
        if self.values.is_empty() {
            let is_longer = |rest: &str| rest.starts_with("EVENT_") || rest.starts_with("ACTION_");
            let own = rests.filter(|(_, rest)| !is_longer(rest));
            return own.map(|(item, rest)| (item, camel(rest))).collect();
        }
        let rests: Vec<_> = rests.collect();
        let values = self.values.split_whitespace().map(|value| {
            let (rest, name) = value.split_once('=').unwrap_or((value, ""));
            let found = rests.iter().find(|(_, other)| *other == rest);
            let (item, _) = found.unwrap_or_else(|| panic!("there is no {}{rest}", self.prefix));
            (*item, if name.is_empty() { camel(rest) } else { name.to_owned() })
        });
        values.collect()
    }
}

/// `HighMark` for `HIGH_MARK`.
fn camel(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_owned() + &word[1..].to_lowercase()).collect()
}

/// A comment with the names of C++ for those constants that are values here.
fn said_in_cpp(model: &Model, doc: &str) -> String {
    let mut names: Vec<(&str, String)> = Vec::new();
    for each in ENUMS {
        let named = each.constants(model).into_iter();
        names.extend(named.map(|(item, name)| (&*item.name, format!("{}::{name}", each.name))));
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut said = String::new();
    let mut rest = doc;
    while let Some(at) = rest.find("PACE_") {
        let (before, from) = rest.split_at(at);
        let (name, after) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
        let own = names.iter().find(|(other, _)| *other == name).map(|(_, own)| &**own);
        said.extend([before, own.unwrap_or(name)]);
        rest = after;
    }
    said + rest
}

fn comment(indent: &str, text: &str) -> String {
    wrapped(&format!("{indent}/// "), text.split_whitespace().map(str::to_owned))
}
