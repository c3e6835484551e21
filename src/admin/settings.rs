//! Settings in layers: what the code says wins over the environment, that over files, and those over the
//! defaults.
//!
//! Every layer is checked against one [table](Settings::fields) of fields. Whatever is wrong in any of
//! them is told at once, each with its file or variable, its key, its value and what is allowed.

mod node;
mod service;
mod table;
mod yaml;

pub use service::{
    BridgeSettings, ExportSettings, Growth, HistorySettings, HttpSettings, HubSettings,
    ImportSettings, OpsSettings, ServerSettings, TaskSettings, WebhookSettings,
};
pub use table::LogSettings;
pub use table::WorkerSettings;
pub use table::{Field, Kind, PoolSettings};

use crate::error::{Error, Problem, Result};
use crate::pool::{Builder, Pool};
use core::fmt;
use node::Node;
use service::Rule;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use table::{TABLE, Value};

/// A file of settings may have up to so many bytes.
const MAX_FILE: u64 = 1 << 20;

/// What a variable that sets something begins with.
const PREFIX: &str = "PACELINE_";

/// Settings that are in their ranges, merged from all layers. The fields may be changed: what the code
/// says comes last, and is checked when something is built.
///
/// ```
/// # fn main() -> Result<(), paceline::Error> {
/// # let path = std::env::temp_dir().join(format!("paceline-settings-{}.yaml", std::process::id()));
/// std::fs::write(&path, "pool:\n  threads: 2\n  watch_period: 500us\n").unwrap();
/// let settings = paceline::admin::Settings::layers().file(&path).environment().build()?;
/// let pool = settings.pool_builder().name("worker").build()?;
/// # std::fs::remove_file(&path).unwrap();
/// assert_eq!(pool.stats().threads.len(), 2 + 4);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// What a [`Pool`] is built with.
    pub pool: PoolSettings,
    /// What a [`WorkerPool`](crate::task::WorkerPool) is built with.
    pub workers: WorkerSettings,
    /// What a task type is built with.
    pub tasks: TaskSettings,
    /// What a [`Hub`](crate::hub::Hub) is built with.
    pub hub: HubSettings,
    /// What its [`History`](crate::hub::history::History) is made with.
    pub history: HistorySettings,
    /// What listeners are opened with.
    pub server: ServerSettings,
    /// What an HTTP server is built with, beside its listener.
    pub http: HttpSettings,
    /// What a webhook is built with.
    pub webhook: WebhookSettings,
    /// What an operations endpoint is built with.
    pub ops: OpsSettings,
    /// What a bridge to a broker is built with.
    pub bridge: BridgeSettings,
    /// What a [`Log`](crate::log::Log) is built with.
    pub log: LogSettings,
    /// By key, what the layers have given, and where each came from.
    given: BTreeMap<String, (String, String)>,
}

impl Settings {
    /// Begins with the defaults only.
    pub fn layers() -> Layers {
        Layers::default()
    }

    /// The table of all settings.
    pub fn fields() -> impl Iterator<Item = &'static Field> {
        TABLE.iter().flat_map(|section| section.iter())
    }

    /// The table of what the rules of a bridge may say, each an entry of the lists `bridge.exports` and `bridge.imports`.
    pub fn rule_fields() -> impl Iterator<Item = &'static Field> {
        service::EXPORTS.iter().chain(service::IMPORTS)
    }

    /// Every setting as the layers have left it: its key, its value for people, and where that came from. What code has
    /// changed since is not seen.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (String, String, String)> {
        Self::fields().map(|field| {
            let key = field.key();
            let default = || (field.default.to_owned(), "default".to_owned());
            let (value, origin) = self.given.get(&key).cloned().unwrap_or_else(default);
            (key, value, origin)
        })
    }

    /// A builder with the settings of the section `pool`.
    pub fn pool_builder(&self) -> Builder {
        self.pool.apply(Pool::builder())
    }

    /// A builder with the settings of the section `workers`.
    pub fn worker_pool_builder(&self, pool: &Pool) -> crate::task::WorkerPoolBuilder {
        self.workers.apply(crate::task::WorkerPool::builder(pool))
    }

    /// A builder of a task type with the settings of the section `tasks`.
    pub fn task_type<'a>(
        &self,
        workers: &'a crate::task::WorkerPool,
        name: &'a str,
    ) -> crate::task::TaskTypeBuilder<'a> {
        self.tasks.apply(workers.task_type(name))
    }

    /// A builder with the settings of the section `hub`, with a history if one of the section `history` is set.
    pub fn hub_builder<'a>(&self, pool: &'a Pool) -> crate::hub::HubBuilder<'a> {
        let builder = self.hub.apply(crate::hub::Hub::builder(pool));
        match self.history.history() {
            Some(history) => builder.history(history),
            None => builder,
        }
    }

    /// A builder that listens at `server.address`, if it is set, with the settings of the section `server`.
    pub fn server_builder(&self, pool: &Pool) -> crate::net::ServerBuilder {
        self.server.apply(crate::net::Server::builder(pool))
    }

    /// A builder with the settings of the section `log`.
    pub fn log_builder(&self) -> crate::log::LogBuilder {
        self.log.apply(crate::log::Log::builder())
    }
}

/// Collects layers of settings; see [`Settings::layers`]. Which layer wins does not depend on the order
/// of the calls: [`set`](Self::set), then the environment, then files, of which the later wins.
#[derive(Clone, Debug, Default)]
#[must_use = "layers do nothing until `build`"]
pub struct Layers {
    given: Vec<Given>,
    problems: Vec<Problem>,
}

/// A value that is in its range.
#[derive(Clone, Debug)]
struct Given {
    layer: Layer,
    origin: String,
    field: &'static Field,
    value: Value,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Layer {
    File,
    Environment,
    Code,
}

impl Layers {
    /// Adds a file of up to 1 MiB: JSON if its name ends in `.json`, YAML if in `.yaml` or `.yml`. Its
    /// first level are sections, the second their settings. A byte order mark at its start is skipped. Merge keys
    /// of YAML (`<<`) are refused; aliases are not.
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let origin = path.display().to_string();
        let unreadable = match read(path) {
            Ok(Node::Null) => None,
            Ok(Node::Section(sections)) => {
                self.sections(&origin, &sections);
                None
            }
            Ok(node) => Some(not_sections(&node)),
            Err(reason) => Some(reason),
        };
        if let Some(reason) = unreadable {
            self.problem(Problem::Unreadable { origin, reason });
        }
        self
    }

    /// Adds the variables of this process that begin with `PACELINE_` and the name of a section, as
    /// `PACELINE_POOL_THREADS`. One that is set but empty counts as not set.
    pub fn environment(self) -> Self {
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        self.variables(std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))))
    }

    /// As [`environment`](Self::environment), of these pairs of a name and a value.
    pub fn variables(mut self, pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        for (name, text) in pairs {
            match Settings::fields().find(|field| field.variable() == name) {
                Some(_) if text.is_empty() => {}
                Some(field) => {
                    self.give(Layer::Environment, &name, field, &field.kind.lift(&text));
                }
                None if is_of_a_section(&name) => self.problem(Problem::Unknown {
                    nearest: nearest(&name, Settings::fields().map(Field::variable)),
                    origin: "the environment".into(),
                    key: name,
                }),
                None => {}
            }
        }
        self
    }

    /// Sets one field by its key, as a command line would: `set("pool.threads", 4)`. Of two calls with
    /// the same key the later wins.
    pub fn set(mut self, key: &str, value: impl fmt::Display) -> Self {
        let origin = "set";
        match Settings::fields().find(|field| field.key() == key) {
            Some(field) => {
                self.give(Layer::Code, origin, field, &field.kind.lift(&value.to_string()))
            }
            None => self.unknown(origin, key.into()),
        }
        self
    }

    /// Merges the layers.
    ///
    /// # Errors
    /// [`Error::Settings`] with everything that is wrong, also in what another layer overrides.
    pub fn build(mut self) -> Result<Settings> {
        self.given.sort_by_key(|given| given.layer);
        let mut settings = Settings::default();
        let mut origins = BTreeMap::new();
        for Given { origin, field, value, .. } in self.given {
            let key = field.key();
            let shown = service::without_secret(&key, value.to_string());
            settings.given.insert(key.clone(), (shown, origin.clone()));
            (field.store)(&mut settings, value);
            origins.insert(key, origin);
        }
        if self.problems.is_empty() {
            self.problems.extend(contradiction(&settings, &origins));
        }
        match self.problems.is_empty() {
            true => Ok(settings),
            false => Err(Error::Settings { problems: self.problems }),
        }
    }

    fn sections(&mut self, origin: &str, sections: &[(String, Node)]) {
        self.repetitions(origin, "", sections);
        for (section, node) in sections {
            match node {
                _ if !Settings::fields().any(|field| field.section == section) => {
                    self.unknown(origin, section.clone());
                }
                Node::Section(entries) => self.entries(origin, section, entries),
                _ => {
                    let allowed = "a section of settings".into();
                    self.wrong(origin, section.clone(), node.to_string(), allowed);
                }
            }
        }
    }

    fn entries(&mut self, origin: &str, section: &str, entries: &[(String, Node)]) {
        self.repetitions(origin, &format!("{section}."), entries);
        for (name, node) in entries {
            let is_it = |field: &&Field| field.section == section && field.name == name;
            match Settings::fields().find(is_it) {
                Some(field) => self.give(Layer::File, origin, field, node),
                None => self.unknown(origin, format!("{section}.{name}")),
            }
        }
    }

    fn repetitions(&mut self, origin: &str, prefix: &str, entries: &[(String, Node)]) {
        for (index, (name, _)) in entries.iter().enumerate() {
            if entries[..index].iter().any(|(earlier, _)| earlier == name) {
                let (origin, key) = (origin.into(), format!("{prefix}{name}"));
                self.problem(Problem::Repeated { origin, key });
            }
        }
    }

    fn give(&mut self, layer: Layer, origin: &str, field: &'static Field, node: &Node) {
        let key = field.key();
        let value = match field.kind {
            Kind::Exports => self.rules(origin, field, node).map(Value::Exports),
            Kind::Imports => self.rules(origin, field, node).map(Value::Imports),
            _ => self.read(origin, key, field, node),
        };
        let origin = origin.to_owned();
        self.given.extend(value.map(|value| Given { layer, origin, field, value }));
    }

    /// None: it is wrong, which is noted.
    fn read(&mut self, origin: &str, key: String, field: &Field, node: &Node) -> Option<Value> {
        let value = field.kind.read(node);
        if value.is_none() {
            let value = service::without_secret(&key, node.to_string());
            self.wrong(origin, key, value, field.kind.to_string());
        }
        value
    }

    /// The rules of a list. None: one of them is wrong, which is noted.
    fn rules<T: Rule>(&mut self, origin: &str, field: &Field, node: &Node) -> Option<Vec<T>> {
        let (key, before) = (field.key(), self.problems.len());
        let of_text;
        let nodes = match node {
            Node::List(nodes) => nodes,
            Node::Text(text) => {
                of_text = table::parts(text);
                &of_text
            }
            _ => {
                self.wrong(origin, key, node.to_string(), field.kind.to_string());
                return None;
            }
        };
        let rules = nodes.iter().enumerate();
        let rules =
            rules.map(|(at, node)| self.rule(origin, &format!("{key}[{at}]"), node)).collect();
        (self.problems.len() == before).then_some(rules)
    }

    /// One rule: a pattern, or a section. What is wrong is noted.
    fn rule<T: Rule>(&mut self, origin: &str, key: &str, node: &Node) -> T {
        let of_text;
        let entries = match node {
            Node::Section(entries) => entries,
            other => {
                of_text = vec![("pattern".to_owned(), other.clone())];
                &of_text
            }
        };
        self.repetitions(origin, &format!("{key}."), entries);
        let mut rule = T::default();
        let before = self.problems.len();
        for (name, node) in entries {
            let key = format!("{key}.{name}");
            let Some(field) = T::FIELDS.iter().find(|field| field.name == name) else {
                let prefix = key.strip_suffix(name.as_str()).unwrap_or_default();
                let known = T::FIELDS.iter().map(|field| format!("{prefix}{}", field.name));
                let nearest = nearest(&key, known);
                self.problem(Problem::Unknown { origin: origin.into(), key, nearest });
                continue;
            };
            if let Some(value) = self.read(origin, key, field, node) {
                rule.store(field, value);
            }
        }
        if self.problems.len() == before {
            self.rule_is_whole::<T>(origin, key, entries);
        }
        rule
    }

    /// What a rule needs is there, and it says nothing of a stream without one.
    fn rule_is_whole<T: Rule>(&mut self, origin: &str, key: &str, entries: &[(String, Node)]) {
        let has = |name: &str| entries.iter().any(|(given, _)| given == name);
        let mut wrong = |name: &str, is: &str, must: &str| {
            self.wrong(origin, format!("{key}.{name}"), is.into(), must.into());
        };
        if !has("pattern") {
            wrong("pattern", "unset", "set");
        }
        if has("stream") && T::OF_STREAMS.contains(&"durable") && !has("durable") {
            wrong("durable", "unset", "set, as there is a stream");
        }
        for name in T::OF_STREAMS.iter().filter(|name| has(name) && !has("stream")) {
            wrong(name, "set", "unset, as there is no stream");
        }
    }

    fn wrong(&mut self, origin: &str, key: String, value: String, allowed: String) {
        self.problem(Problem::Wrong { origin: origin.into(), key, value, allowed });
    }

    fn unknown(&mut self, origin: &str, key: String) {
        let sections = Settings::fields().map(|field| field.section.to_owned());
        let nearest = nearest(&key, sections.chain(Settings::fields().map(Field::key)));
        self.problem(Problem::Unknown { origin: origin.into(), key, nearest });
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

fn read(path: &Path) -> Result<Node, String> {
    let is = |ending: &str| path.extension().is_some_and(|it| it.eq_ignore_ascii_case(ending));
    let text = || -> Result<String, String> {
        let mut text = String::new();
        // Some editors write it first.
        let without_mark =
            |text: String| text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let file = File::open(path).map_err(|error| error.to_string())?;
        let size = file.take(MAX_FILE + 1).read_to_string(&mut text);
        match size.map_err(|error| error.to_string())? as u64 > MAX_FILE {
            true => Err("it is larger than 1 MiB".into()),
            false => Ok(without_mark(text)),
        }
    };
    if is("json") {
        serde_json::from_str(&text()?).map_err(|error| error.to_string())
    } else if is("yaml") || is("yml") {
        yaml::read(&text()?)
    } else {
        Err("its name must end in .json, .yaml or .yml".into())
    }
}

fn not_sections(node: &Node) -> String {
    format!("it is {node}, but must be sections of settings")
}

fn is_of_a_section(variable: &str) -> bool {
    variable.strip_prefix(PREFIX).is_some_and(|rest| {
        let of = |field: &Field| {
            rest.strip_prefix(&field.section.to_uppercase()).is_some_and(|it| it.starts_with('_'))
        };
        Settings::fields().any(of)
    })
}

/// The known key that was probably meant: one slip away, or one in four letters.
fn nearest(key: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let distance = |known: String| (strsim::damerau_levenshtein(key, &known), known);
    let best = known.map(distance).min_by_key(|(distance, _)| *distance);
    best.filter(|(distance, _)| *distance <= (key.len() / 4).max(1)).map(|(_, known)| known)
}

/// What is wrong with settings that are each in their ranges.
fn contradiction(settings: &Settings, origins: &BTreeMap<String, String>) -> Option<Problem> {
    if let (false, Some(path)) = (cfg!(feature = "archive"), &settings.history.archive) {
        let (key, value) = ("history.archive".to_owned(), format!("{path:?}"));
        let origin = origins.get(&key).cloned().unwrap_or_default();
        let allowed = "unset, as the library was built without the feature `archive`".into();
        return Some(Problem::Wrong { origin, key, value, allowed });
    }
    if let Some((name, is_set, allowed)) = settings.bridge.contradiction() {
        let key = format!("bridge.{name}");
        let origin = origins.get(&key).or(origins
            .iter()
            .find(|(key, _)| key.starts_with("bridge."))
            .map(|(_, origin)| origin));
        let value = if is_set { "set" } else { "unset" }.into();
        return Some(Problem::Wrong {
            origin: origin.cloned().unwrap_or_default(),
            key,
            value,
            allowed,
        });
    }
    match settings.pool_builder().validate_settings() {
        Err(Error::Invalid { name, value, allowed }) => {
            let key = format!("pool.{name}");
            let origin = origins.get(&key).map_or("the defaults", String::as_str).into();
            Some(Problem::Wrong { origin, key, value, allowed })
        }
        _ => None,
    }
}
