//! YAML, from the events of its parser: one document of texts, numbers, lists and sections, with aliases.
//! What a text means is said by YAML's core schema.

use super::node::Node;
use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use std::collections::HashMap;

/// A document may have so many nodes, what its aliases stand for and what is kept for them included: they
/// multiply, and each level of them costs at least as much as the one below.
const MAX_NODES: usize = 10_000;

/// A document of nothing but comments is an empty one. Repeated keys are told later, as for JSON.
pub(super) fn read(text: &str) -> Result<Node, String> {
    let options = granit_parser::options! { emit_comments: false };
    let mut composer = Composer::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| at(error.info(), error.marker()))?;
        composer.take(event).map_err(|reason| at(reason, &span.start))?;
    }
    Ok(composer.root.unwrap_or(Node::Null))
}

fn at(reason: String, marker: &Marker) -> String {
    format!("{reason} at line {}, column {}", marker.line(), marker.col() + 1)
}

/// A list or a section whose end has not been read.
struct Open {
    node: Node,
    /// The key that has been read, and not yet its value.
    key: Option<String>,
    anchor: usize,
    /// The count of nodes when it began.
    before: usize,
}

#[derive(Default)]
struct Composer {
    root: Option<Node>,
    open: Vec<Open>,
    /// What has an anchor, and of how many nodes it is.
    anchors: HashMap<usize, (Node, usize)>,
    count: usize,
}

impl Composer {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                return Err("a second document begins".into());
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.charge(1)?;
                if let Some(key) = self.awaited_key() {
                    if text == "<<" && style == ScalarStyle::Plain {
                        return Err(
                            "merge keys (<<) are not supported: write the settings out,".into()
                        );
                    }
                    *key = Some(text.into_owned());
                    return Ok(());
                }
                let node = scalar(&text, style, tag.as_deref())?;
                self.put(node, anchor, 1)?;
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.begin(Node::List(vec![]), anchor, tag.as_deref(), "seq")?;
            }
            Event::MappingStart(_, anchor, tag) => {
                self.begin(Node::Section(vec![]), anchor, tag.as_deref(), "map")?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { node, anchor, before, .. }) = self.open.pop() {
                    self.put(node, anchor, self.count - before)?;
                }
            }
            Event::Alias(anchor) => {
                let Some((_, size)) = self.anchors.get(&anchor) else {
                    return Err("an alias is inside of what it stands for".into());
                };
                let size = *size;
                self.charge(size)?;
                let node = self.anchors[&anchor].0.clone();
                if let Some(key) = self.awaited_key() {
                    let Node::Text(text) = node else { return Err("a key must be a text".into()) };
                    *key = Some(text);
                    return Ok(());
                }
                self.put(node, 0, size)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(
        &mut self,
        node: Node,
        anchor: usize,
        tag: Option<&Tag>,
        expected: &str,
    ) -> Result<(), String> {
        let before = self.count;
        self.charge(1)?;
        if self.awaited_key().is_some() {
            return Err("a key must be a text".into());
        }
        match tag {
            Some(tag) if tag.core_suffix() != Some(expected) => Err(unknown(tag)),
            _ => {
                self.open.push(Open { node, key: None, anchor, before });
                Ok(())
            }
        }
    }

    /// Puts what is complete where it belongs.
    fn put(&mut self, node: Node, anchor: usize, size: usize) -> Result<(), String> {
        if anchor != 0 {
            self.charge(size)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open { node: Node::Section(entries), key, .. }) => {
                entries.extend(key.take().map(|key| (key, node)));
            }
            Some(Open { node: Node::List(nodes), .. }) => nodes.push(node),
            Some(_) => {}
        }
        Ok(())
    }

    /// Where the next scalar goes if it is a key.
    fn awaited_key(&mut self) -> Option<&mut Option<String>> {
        match self.open.last_mut() {
            Some(Open { node: Node::Section(_), key, .. }) if key.is_none() => Some(key),
            _ => None,
        }
    }

    fn charge(&mut self, nodes: usize) -> Result<(), String> {
        self.count += nodes;
        match self.count > MAX_NODES {
            true => Err(format!("more than {MAX_NODES} values, with what aliases stand for,")),
            false => Ok(()),
        }
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Node, String> {
    let Some(tag) = tag else {
        return Ok(match style {
            ScalarStyle::Plain => plain(text),
            _ => Node::Text(text.into()),
        });
    };
    let node = plain(text);
    match (tag.core_suffix().ok_or_else(|| unknown(tag))?, &node) {
        ("str", _) => Ok(Node::Text(text.into())),
        ("null", Node::Null) | ("bool", Node::Flag(_)) => Ok(node),
        ("int", Node::Int(_)) | ("float", Node::Int(_) | Node::Float(_)) => Ok(node),
        _ => Err(format!("{text:?} is not of the type {}", tag.original())),
    }
}

fn unknown(tag: &Tag) -> String {
    format!("the tag {} does not belong here", tag.original())
}

/// The core schema: null, flags and numbers without quotes, and whatever else is a text. An integer that 64
/// bits cannot hold is a float.
fn plain(text: &str) -> Node {
    let radix = |digits: &str, radix| match digits.starts_with(['+', '-']) {
        true => None,
        false => u64::from_str_radix(digits, radix).ok().map(i128::from),
    };
    let int = match text.get(..2) {
        Some("0x") => radix(&text[2..], 16),
        Some("0o") => radix(&text[2..], 8),
        _ => text.parse().ok().filter(|int| (i64::MIN.into()..=u64::MAX.into()).contains(int)),
    };
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Node::Null,
        "true" | "True" | "TRUE" => Node::Flag(true),
        "false" | "False" | "FALSE" => Node::Flag(false),
        ".nan" | ".NaN" | ".NAN" => Node::Float(f64::NAN),
        _ => match (int, text.trim_start_matches(['+', '-'])) {
            (Some(int), _) => Node::Int(int),
            (None, ".inf" | ".Inf" | ".INF") if text.len() <= 5 => {
                Node::Float(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY })
            }
            // What Rust reads beyond this are the words for infinity and NaN.
            (None, rest) if rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                text.parse().map_or_else(|_| Node::Text(text.into()), Node::Float)
            }
            _ => Node::Text(text.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the messages write it, with the insides of sections.
    fn shown(node: &Node) -> String {
        let each = |nodes: &mut dyn Iterator<Item = String>| nodes.collect::<Vec<_>>().join(", ");
        match node {
            Node::List(nodes) => format!("[{}]", each(&mut nodes.iter().map(shown))),
            Node::Section(entries) => {
                let entry = |(key, node): &(String, Node)| format!("{key}: {}", shown(node));
                format!("{{{}}}", each(&mut entries.iter().map(entry)))
            }
            node => node.to_string(),
        }
    }

    #[test]
    fn documents() {
        for (text, expected) in [
            ("", "null"),
            ("# nothing\n", "null"),
            ("--- # begins\n", "null"),
            ("%YAML 1.2\n---\na: 1\n...\n", "{a: 1}"),
            (
                "a: 1\nb:\n  c: [x, {y: z}]\n  d:\n  - 1\n  -\n",
                "{a: 1, b: {c: [\"x\", {y: \"z\"}], d: [1, null]}}",
            ),
            ("{a: 1, a: 2, 4: 3, null: 5, 'q r': 6}", "{a: 1, a: 2, 4: 3, null: 5, q r: 6}"),
            (
                "[~, null, Null, 'null', nULL, true, TRUE, false, yes, on]",
                "[null, null, null, \"null\", \"nULL\", true, true, false, \"yes\", \"on\"]",
            ),
            (
                "[0, -0, +7, 0x1F, 0o17, 017, 1_000, 0x, 0x-1, 18446744073709551615, -9223372036854775808]",
                "[0, 0, 7, 31, 15, 17, \"1_000\", \"0x\", \"0x-1\", 18446744073709551615, -9223372036854775808]",
            ),
            (
                "[18446744073709551616, 1.5, .5, 1., 1e3, -2.5E-1, ., +, ++1, 1.2.3, e3]",
                "[1.8446744073709552e19, 1.5, 0.5, 1.0, 1000.0, -0.25, \".\", \"+\", \"++1\", \"1.2.3\", \"e3\"]",
            ),
            (
                "[.inf, -.INF, +.Inf, .nan, inf, nan, infinity, -+.inf]",
                "[inf, -inf, inf, NaN, \"inf\", \"nan\", \"infinity\", \"-+.inf\"]",
            ),
            ("['4', \"a\\tb\"]", "[\"4\", \"a\\tb\"]"),
            ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{a: \"x\\ny\\n\", b: \"x y\"}"),
            (
                "[!!str 4, !!int 4, !!float 4, !!bool true, !!null ~, !!seq [], !!map {}]",
                "[\"4\", 4, 4, true, null, [], {}]",
            ),
            (
                "{a: &a 1, b: *a, c: &c [*a, *a], d: *c, e: &k key, *k : 2}",
                "{a: 1, b: 1, c: [1, 1], d: [1, 1], e: \"key\", key: 2}",
            ),
        ] {
            assert_eq!(read(text).map(|node| shown(&node)).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, expected) in [
            ("a: 1\n---\nb: 2\n", "a second document begins at line 2, column 1"),
            ("{[a]: 1}", "a key must be a text at line 1, column 2"),
            ("{a: &a [], *a : 1}", "a key must be a text at line 1, column 12"),
            (
                "a: &a {b: 1}\nc:\n  <<: *a\n",
                "merge keys (<<) are not supported: write the settings out, at line 3, column 3",
            ),
            ("a: &a [*a]", "an alias is inside of what it stands for at line 1, column 8"),
            ("a: !point [1]", "the tag !point does not belong here at line 1, column 11"),
            ("a: !!int b", "\"b\" is not of the type !!int at line 1, column 10"),
            ("a: !!binary b", "the tag !!binary does not belong here at line 1, column 13"),
        ] {
            assert_eq!(read(text), Err(expected.into()), "{text}");
        }
    }

    #[test]
    fn what_aliases_stand_for_is_bounded() {
        let long = |count: usize| format!("[{}]", "x,".repeat(count));
        assert!(read(&long(MAX_NODES - 1)).is_ok());
        assert!(read(&long(MAX_NODES)).is_err());
        // An anchor at every level: what is kept for it counts too.
        let nested = format!("{}{}{}", "&a [".repeat(200), "x,".repeat(100), "]".repeat(200));
        assert!(read(&nested).is_err());
    }
}
