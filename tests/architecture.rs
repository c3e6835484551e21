//! The map in docs/ARCHITECTURE.md, held to the sources: floors, knots, owners, sizes, switches, words.
//!
//! A file *imports* another one when a `use` item or a path names something that the other defines. Re-exports are
//! followed to the definition; a `mod.rs` that only hands names on imports nothing. Tests and models are left out.
#![cfg(not(loom))]

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemImpl, Macro, Type, UseTree, Visibility};

const SRC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

/// The rooms from the ground up. A room imports from floors below its own and from itself, but not from its neighbours.
const FLOORS: &[&[&str]] = &[
    &["error", "contain", "accept", "thread_state", "sync::atomic"],
    &["sys"],
    &["sync", "rotate", "time", "metrics"],
    &["queue", "trace"],
    &["log", "source"],
    &["pool"],
    &["net", "task", "hub"],
    &["http"],
    &["admin", "cq"],
    &["bridge"],
    &["ops"],
    &["ffi"],
];

/// Public types whose methods are told by topic, in files of several rooms.
const FACADES: &[&str] = &[
    "Hub",
    "Pool",
    "Publication",
    "Subscription",
    "SubscriptionBuilder",
    "TaskBuilder",
    "TaskType",
    "WorkerPool",
];

/// So many files may import each other in a circle.
const MOST_IN_KNOT: usize = 3;
/// In so many files a type may have methods.
const MOST_WITH_METHODS: usize = 3;
/// So many lines of code a file may have.
const MOST_LINES: usize = 700;

/// Words of our own that the field's have replaced.
const REPLACED: &[(&str, &str)] = &[
    ("books", "counters"),
    ("seat", "thread number"),
    ("crew", "members"),
    ("purse", "reference cache"),
    ("estate", "arena"),
    ("limbo", "garbage"),
    ("lobby", "wait lists"),
    ("teller", "log writer, or signal notifier"),
    ("house", "fixture"),
    ("Wrote", "WriteStatus"),
    ("Inflow", "FilterRead"),
    ("Patience", "TimeoutAction"),
    ("Verdict", "Accept"),
    ("Fate", "OnExhausted"),
    ("ruling", "failure policy"),
    ("trial", "failure policy"),
];

/// What one file of the crate names and defines.
#[derive(Default)]
struct Source {
    /// As "pool::handle"; that of the crate is "".
    module: String,
    path: PathBuf,
    text: String,
    children: BTreeSet<String>,
    /// The names that `use` items bind, with the path of each.
    bound: HashMap<String, Vec<String>>,
    /// Those of them that other files can see.
    shown: BTreeSet<String>,
    globs: Vec<Vec<String>>,
    defined: BTreeSet<String>,
    /// The types that this file gives methods of their own.
    given_methods: BTreeSet<String>,
    /// Each path of several parts.
    named: BTreeSet<Vec<String>>,
}

/// The crate, by module.
struct Map(BTreeMap<String, Source>);

impl Map {
    fn read() -> Self {
        let mut map = Self(BTreeMap::new());
        map.add("", Path::new(SRC).join("lib.rs"));
        map
    }

    fn add(&mut self, module: &str, path: PathBuf) {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let mut source =
            Source { module: module.into(), path: path.clone(), text, ..Source::default() };
        source.visit_file(&file);
        let folder = match path.file_stem().and_then(|stem| stem.to_str()) {
            Some("lib" | "mod") => path.parent().expect("a folder").to_owned(),
            _ => path.with_extension(""),
        };
        let children = source.children.clone();
        self.0.insert(module.into(), source);
        for child in children {
            let beside = folder.join(format!("{child}.rs"));
            let inside = folder.join(&child).join("mod.rs");
            self.add(&join(module, &child), if beside.is_file() { beside } else { inside });
        }
    }

    /// The module and the name that a path in this module leads to. None: it is not of this crate.
    fn resolve(&self, from: &str, path: &[String], depth: usize) -> Option<(&str, String)> {
        if depth > 20 {
            return None;
        }
        let source = &self.0[from];
        let (mut module, mut rest) = match path.first()?.as_str() {
            "crate" => (String::new(), &path[1..]),
            "self" => (from.to_owned(), &path[1..]),
            "super" => {
                let mut module = from.to_owned();
                let mut rest = path;
                while rest.first().is_some_and(|part| part == "super") {
                    module = module.rsplit_once("::").map_or("", |(parent, _)| parent).to_owned();
                    rest = &rest[1..];
                }
                (module, rest)
            }
            first if source.children.contains(first) => (from.to_owned(), path),
            first => {
                let bound = source.bound.get(first).filter(|bound| bound.first() != Some(&path[0]));
                let whole: Vec<String> = bound?.iter().chain(&path[1..]).cloned().collect();
                return self.resolve(from, &whole, depth + 1);
            }
        };
        while let Some((next, after)) = rest.split_first() {
            let here = self.0.get(&module)?;
            if here.children.contains(next) {
                (module, rest) = (join(&module, next), after);
            } else if here.shown.contains(next) && !here.defined.contains(next) {
                let whole: Vec<String> = here.bound[next].iter().chain(after).cloned().collect();
                return self.resolve(&module, &whole, depth + 1);
            } else if here.defined.contains(next) {
                break;
            } else {
                let through = |glob: &Vec<String>| {
                    let (there, name) = self.resolve(&module, glob, depth + 1)?;
                    let found = name.is_empty() && self.0[there].defined.contains(next);
                    found.then_some(there)
                };
                if let Some(there) = here.globs.iter().find_map(through) {
                    return Some((there, next.clone()));
                }
                break;
            }
        }
        let (module, _) = self.0.get_key_value(&module)?;
        Some((module, rest.first().cloned().unwrap_or_default()))
    }

    /// The modules that this one imports from.
    fn imports(&self, source: &Source) -> BTreeSet<&str> {
        let is_facade = |name: &String| source.shown.contains(name);
        let used = source.bound.iter().filter(|(name, _)| !is_facade(name)).map(|(_, path)| path);
        let is_module = |found: &(&str, String)| found.1.is_empty();
        let globs = source.globs.iter().filter_map(|path| self.resolve(&source.module, path, 0));
        used.chain(&source.named)
            .filter_map(|path| self.resolve(&source.module, path, 0))
            .filter(|found| !is_module(found))
            .chain(globs)
            .map(|(module, _)| module)
            .filter(|module| *module != source.module)
            .collect()
    }

    fn graph(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        self.0.iter().map(|(module, source)| (&**module, self.imports(source))).collect()
    }

    fn path_of(&self, module: &str) -> String {
        let path = &self.0[module].path;
        format!("src/{}", path.strip_prefix(SRC).expect("inside").display())
    }
}

fn join(module: &str, child: &str) -> String {
    if module.is_empty() { child.to_owned() } else { format!("{module}::{child}") }
}

/// Whether it is compiled for tests or for models alone.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|one| one.path().is_ident("cfg")).any(|one| {
        let text = one.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
        let text = text.replace("not (loom)", "").replace("not (test)", "");
        text.split(|c: char| !c.is_alphanumeric())
            .any(|word| ["test", "loom", "fuzzing"].contains(&word))
            && !text.starts_with("any")
    })
}

impl Source {
    fn bind(&mut self, tree: &UseTree, prefix: &[String], is_shown: bool) {
        let with = |name: &syn::Ident| {
            let mut path = prefix.to_vec();
            if name != "self" || prefix.is_empty() {
                path.push(name.to_string());
            }
            path
        };
        let mut add = |name: String, path: Vec<String>| {
            if is_shown {
                self.shown.insert(name.clone());
            }
            self.bound.insert(name, path);
        };
        match tree {
            UseTree::Path(path) => self.bind(&path.tree, &with(&path.ident), is_shown),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.bind(tree, prefix, is_shown));
            }
            UseTree::Name(name) => {
                let path = with(&name.ident);
                add(path.last().cloned().unwrap_or_default(), path);
            }
            UseTree::Rename(rename) => add(rename.rename.to_string(), with(&rename.ident)),
            UseTree::Glob(_) => self.globs.push(prefix.to_vec()),
        }
    }
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name): (&[Attribute], _) = match item {
            Item::Const(it) => (&it.attrs, Some(&it.ident)),
            Item::Enum(it) => (&it.attrs, Some(&it.ident)),
            Item::Fn(it) => (&it.attrs, Some(&it.sig.ident)),
            Item::Macro(it) => (&it.attrs, it.ident.as_ref()),
            Item::Static(it) => (&it.attrs, Some(&it.ident)),
            Item::Struct(it) => (&it.attrs, Some(&it.ident)),
            Item::Trait(it) => (&it.attrs, Some(&it.ident)),
            Item::Type(it) => (&it.attrs, Some(&it.ident)),
            Item::Union(it) => (&it.attrs, Some(&it.ident)),
            Item::Impl(it) => (&it.attrs, None),
            Item::Mod(it) => (&it.attrs, None),
            Item::Use(it) => (&it.attrs, None),
            _ => (&[], None),
        };
        if is_for_tests(attributes) {
            return;
        }
        self.defined.extend(name.map(syn::Ident::to_string));
        match item {
            Item::Mod(it) if it.content.is_none() => _ = self.children.insert(it.ident.to_string()),
            Item::Use(it) => {
                let is_shown = !matches!(it.vis, Visibility::Inherited);
                self.bind(&it.tree, &[], is_shown);
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if let (None, Type::Path(path)) = (&item.trait_, &*item.self_ty) {
            let name = path.path.segments.last().expect("a name").ident.to_string();
            self.given_methods.insert(name);
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<_> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if parts.len() > 1 {
            self.named.insert(parts);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, macro_: &'ast Macro) {
        self.visit_path(&macro_.path);
        self.paths_in(macro_.tokens.clone());
    }
}

impl Source {
    /// What the arguments of a macro name.
    fn paths_in(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.named.extend((path.len() > 1).then(|| std::mem::take(&mut path)));
                        path.clear();
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    self.named.extend((path.len() > 1).then(|| std::mem::take(&mut path)));
                    path.clear();
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.paths_in(group.stream());
                    }
                }
            }
        }
        self.named.extend((path.len() > 1).then_some(path));
    }
}

/// Sets of files that import each other, directly or through others of the set.
fn knots<'a>(graph: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let reached = |from: &'a str| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(next) = todo.pop() {
            todo.extend(graph[next].iter().filter(|other| seen.insert(**other)));
        }
        seen
    };
    let reach: BTreeMap<_, _> = graph.keys().map(|module| (*module, reached(module))).collect();
    let mut knots = BTreeSet::new();
    for (module, seen) in &reach {
        let knot: Vec<_> =
            seen.iter().filter(|other| reach[*other].contains(module)).copied().collect();
        if knot.len() > 1 {
            knots.insert(knot);
        }
    }
    knots.into_iter().collect()
}

/// Lines that are neither empty, nor comments, nor tests.
fn code_lines(text: &str) -> usize {
    let mut lines = text.lines().map(str::trim_end).peekable();
    let mut count = 0;
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            let is_module =
                lines.peek().is_some_and(|next| next.contains("mod ") && next.ends_with('{'));
            if is_module {
                lines.by_ref().find(|line| *line == "}");
            }
            continue;
        }
        let line = line.trim_start();
        count += usize::from(!line.is_empty() && !line.starts_with("//"));
    }
    count
}

/// The room of a module, and its floor.
fn room_of(module: &str) -> (usize, &'static str) {
    let rooms = FLOORS.iter().enumerate();
    rooms
        .flat_map(|(floor, rooms)| rooms.iter().map(move |room| (floor, *room)))
        .filter(|(_, room)| module == *room || module.starts_with(&format!("{room}::")))
        .max_by_key(|(_, room)| room.len())
        .unwrap_or_else(|| panic!("{module} is in no room: name it in tests/architecture.rs"))
}

#[test]
fn no_import_goes_up() {
    let map = Map::read();
    let mut up = Vec::new();
    for (module, imports) in map.graph().into_iter().filter(|(module, _)| !module.is_empty()) {
        let (floor, room) = room_of(module);
        for other in imports.into_iter().filter(|other| !other.is_empty()) {
            let (other_floor, other_room) = room_of(other);
            if other_room != room && other_floor >= floor {
                let (from, to) = (map.path_of(module), map.path_of(other));
                up.push(format!("{from} imports {to}: {other_room} is not below {room}"));
            }
        }
    }
    assert!(up.is_empty(), "{}", up.join("\n"));
}

#[test]
fn files_form_no_knots() {
    let map = Map::read();
    let graph = map.graph();
    let mut found = Vec::new();
    for knot in knots(&graph) {
        let (_, room) = room_of(knot[0]);
        if knot.len() > MOST_IN_KNOT {
            let pairs = knot.iter().flat_map(|module| {
                let inside = graph[module].iter().filter(|other| knot.contains(other));
                let map = &map;
                inside.map(move |other| {
                    format!("{} imports {}", map.path_of(module), map.path_of(other))
                })
            });
            let pairs: Vec<_> = pairs.collect();
            found.push(format!(
                "{} files of {room}, {MOST_IN_KNOT} may be:\n  {}",
                knot.len(),
                pairs.join("\n  ")
            ));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Public façades apart, a type has its methods in its own file, or in those of its folder and below.
#[test]
fn methods_are_in_the_folder_of_their_type() {
    let map = Map::read();
    let folder = |module: &str| map.0[module].path.parent().expect("a folder").to_owned();
    let mut found = Vec::new();
    for source in map.0.values() {
        for name in source.given_methods.iter().filter(|name| !source.defined.contains(*name)) {
            let path = std::slice::from_ref(name);
            let Some((home, name)) = map.resolve(&source.module, path, 0) else { continue };
            let is_there = folder(&source.module).starts_with(folder(home));
            if !is_there && !FACADES.contains(&&*name) {
                let (here, home) = (map.path_of(&source.module), map.path_of(home));
                found.push(format!("{name} of {home} has methods in {here}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Public façades apart, few files have to be read to know what a type does.
#[test]
fn a_type_has_its_methods_in_few_files() {
    let map = Map::read();
    let mut files: BTreeMap<(&str, String), BTreeSet<String>> = BTreeMap::new();
    for source in map.0.values() {
        for name in &source.given_methods {
            let path = std::slice::from_ref(name);
            let home = match source.defined.contains(name) {
                true => Some((&*source.module, name.clone())),
                false => map.resolve(&source.module, path, 0),
            };
            let Some((home, name)) = home else { continue };
            files.entry((home, name)).or_default().insert(map.path_of(&source.module));
        }
    }
    let mut found = Vec::new();
    for ((home, name), files) in files {
        if files.len() > MOST_WITH_METHODS && !FACADES.contains(&&*name) {
            let files: Vec<_> = files.into_iter().collect();
            found.push(format!(
                "{name} of {} has methods in {}",
                map.path_of(home),
                files.join(", ")
            ));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_file_is_long() {
    let map = Map::read();
    let mut found = Vec::new();
    for source in map.0.values() {
        let (lines, path) = (code_lines(&source.text), map.path_of(&source.module));
        if lines > MOST_LINES {
            found.push(format!("{path} has {lines} lines of code, {MOST_LINES} may be"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn few_lines_ask_for_a_feature() {
    let map = Map::read();
    let asks = |line: &&str| line.contains("cfg") && line.contains("feature = ");
    let count: usize = map.0.values().map(|source| source.text.lines().filter(asks).count()).sum();
    assert!(count <= 170, "{count} lines of src have a condition on a feature, 170 may have");
}

/// In names and in comments. A word that begins with a capital is a type's name.
#[test]
fn no_replaced_word_comes_back() {
    let map = Map::read();
    let mut found = Vec::new();
    for source in map.0.values() {
        let words: BTreeSet<&str> = source.text.split(|c: char| !c.is_alphanumeric()).collect();
        for (word, by) in REPLACED.iter().filter(|(word, _)| words.contains(word)) {
            found.push(format!("{} says {word}: {by}", map.path_of(&source.module)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The rooms by floor, each with the first sentence of its module, and what it imports.
fn picture(map: &Map) -> String {
    const WIDE: usize = 1000;
    const HIGH: usize = 46;
    const GAP: usize = 14;
    const MARGIN: usize = 10;
    let first_sentence = |room: &str| {
        let text = &map.0[room].text;
        let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
        let text: Vec<_> = lines.map(str::trim).take_while(|line| !line.is_empty()).collect();
        let text = text.join(" ").replace(['`', '[', ']'], "");
        text.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned()
    };
    let mut imports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (module, others) in map.graph().into_iter().filter(|(module, _)| !module.is_empty()) {
        let others =
            others.into_iter().filter(|other| !other.is_empty()).map(|other| room_of(other).1);
        imports.entry(room_of(module).1).or_default().extend(others);
    }
    let height = 2 * MARGIN + FLOORS.len() * (HIGH + GAP) - GAP;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDE} {height}\" font-family=\"sans-serif\" \
         role=\"img\" aria-label=\"The rooms of src, by floor\">\n\
         <rect width=\"{WIDE}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (up, rooms) in FLOORS.iter().rev().enumerate() {
        let y = MARGIN + up * (HIGH + GAP);
        let width = (WIDE - 2 * MARGIN + GAP) / rooms.len();
        for (index, room) in rooms.iter().enumerate() {
            let x = MARGIN + index * width;
            let below: Vec<_> = imports
                .get(room)
                .into_iter()
                .flatten()
                .filter(|other| *other != room)
                .copied()
                .collect();
            let title = format!(
                "{room} imports {}",
                if below.is_empty() { "no room".into() } else { below.join(", ") }
            );
            let most = (width - GAP) / 6;
            let mut line = first_sentence(room);
            if line.chars().count() > most {
                line = line.chars().take(most - 1).collect::<String>() + "…";
            }
            svg += &format!(
                "<g><title>{title}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{HIGH}\" rx=\"4\" \
                 fill=\"#eef3fa\" stroke=\"#35507a\"/>\n<text x=\"{}\" y=\"{}\" font-size=\"15\" \
                 font-weight=\"bold\">{}</text>\n<text x=\"{}\" y=\"{}\" font-size=\"11\">{line}</text></g>\n",
                width - GAP,
                x + 8,
                y + 19,
                room.replace("::", "/"),
                x + 8,
                y + 36,
            );
        }
    }
    svg + "</svg>\n"
}

/// `PACELINE_BLESS=1` draws it anew.
#[test]
fn the_picture_is_of_these_sources() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.svg");
    let drawn = picture(&Map::read());
    if std::env::var_os("PACELINE_BLESS").is_some() {
        fs::write(&path, &drawn).expect("docs/architecture.svg");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == drawn, "docs/architecture.svg is of other sources: cargo xtask map draws it");
}

/// Of a struct of the C interface that says its own size: what is looked at when a program has filled it.
#[derive(Default)]
struct Input {
    first: String,
    flags: String,
    is_reserved_checked: bool,
}

/// Goal: no flag of a struct that C fills is taken as it is, since any other byte than 0 and 1 is no `bool`; room for later
/// versions is zero; and the size of the first version is a number that does not grow. Method: the structs that a function
/// takes by a pointer to what it only reads, in the sources.
#[test]
fn structs_that_c_fills_are_checked() {
    let files = fs::read_dir(Path::new(SRC).join("ffi")).expect("the folder");
    let texts: Vec<_> =
        files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let (mut fields, mut sized) = (BTreeMap::new(), BTreeMap::<String, Input>::new());
    for item in texts.iter().flat_map(|text| syn::parse_file(text).unwrap().items) {
        match item {
            Item::Struct(item) => {
                let all = item.fields.iter().filter_map(|field| {
                    let is_flag =
                        matches!(&field.ty, Type::Path(path) if path.path.is_ident("bool"));
                    Some((field.ident.as_ref()?.to_string(), is_flag))
                });
                fields.insert(item.ident.to_string(), all.collect::<Vec<_>>());
            }
            Item::Impl(ItemImpl { trait_: Some((_, path, _)), self_ty, items, .. })
                if path.segments.last().is_some_and(|last| last.ident == "Sized") =>
            {
                let Type::Path(name) = *self_ty else { continue };
                let of =
                    sized.entry(name.path.segments.last().unwrap().ident.to_string()).or_default();
                for item in items {
                    let syn::ImplItem::Const(item) = item else { continue };
                    let value = item.expr.to_token_stream().to_string();
                    match item.ident.to_string().as_str() {
                        "FIRST" => of.first = value,
                        "FLAGS" => of.flags = value,
                        "RESERVED" => of.is_reserved_checked = true,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let is_input = |name: &String| {
        let ways = [format!("*const {name}"), format!(" In<{name}>")];
        texts.iter().any(|text| ways.iter().any(|way| text.contains(way)))
    };
    let mut inputs = 0;
    for (name, of) in sized.iter().filter(|(name, _)| is_input(name)) {
        inputs += 1;
        assert!(!of.first.contains("size_of"), "{name}: FIRST grows with the struct");
        for (field, is_flag) in &fields[name] {
            let is_checked = of.flags.contains(&format!("\"{field}\""));
            assert!(!is_flag || is_checked, "{name}.{field} is in no FLAGS");
            let is_reserved = field.starts_with("reserved");
            assert!(!is_reserved || of.is_reserved_checked, "{name}.{field} is in no RESERVED");
        }
    }
    assert!(inputs > 25, "{inputs} of {}", sized.len());
}
