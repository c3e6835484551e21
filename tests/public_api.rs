//! The public interface in Rust, as a listing that is kept in tests/public_api.txt: a change of it shows in every
//! review. After a change that is meant: `PACELINE_BLESS=1 cargo test --test public_api`.
//!
//! The listing is read off the sources, all features on: what a public path leads to, with its fields, variants and
//! methods. Implementations of traits are not in it.
#![cfg(not(loom))]

use quote::ToTokens;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};
use syn::punctuated::Punctuated;
use syn::{Attribute, Fields, ImplItem, Item, Meta, TraitItem, Type, UseTree, Visibility};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const LISTING: &str = "tests/public_api.txt";

/// A path from the crate: ["pool", "timer", "Timer"].
type Names = Vec<String>;

/// A module: its items, and what its imports call by which name.
#[derive(Default)]
struct Module {
    items: Vec<Item>,
    uses: Vec<Use>,
}

struct Use {
    /// What it is called here.
    name: String,
    /// As it is written.
    path: Names,
    is_public: bool,
}

/// All modules of the crate, by their paths.
#[derive(Default)]
struct Crate(BTreeMap<Names, Module>);

impl Crate {
    fn read() -> Self {
        let mut all = Self::default();
        let file = Path::new(ROOT).join("src/lib.rs");
        let items = parse(&file);
        all.add(Vec::new(), &file, items);
        all
    }

    fn add(&mut self, path: Names, file: &Path, items: Vec<Item>) {
        let mut module = Module::default();
        for item in items.into_iter().filter(|item| is_there(attributes(item))) {
            match item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let is_public = matches!(inner.vis, Visibility::Public(_));
                    let below = [path.clone(), vec![name.clone()]].concat();
                    match inner.content {
                        Some((_, items)) => self.add(below.clone(), file, items),
                        None => {
                            let file = file_of(file, &path, &name);
                            let items = parse(&file);
                            self.add(below.clone(), &file, items);
                        }
                    }
                    if is_public {
                        let path = [vec!["crate".to_owned()], below].concat();
                        module.uses.push(Use { name, path, is_public });
                    }
                }
                Item::Use(import) => {
                    let is_public = matches!(import.vis, Visibility::Public(_));
                    collect(&import.tree, Vec::new(), is_public, &mut module.uses);
                }
                other => module.items.push(other),
            }
        }
        // The same module under two conditions: the first is that with all features.
        self.0.entry(path).or_insert(module);
    }

    /// Where what `path` says in `module` is defined: the module and the name. None: in another crate.
    fn find(&self, module: &[String], path: &[String]) -> Option<(Names, String)> {
        let (mut at, mut rest) = (module.to_vec(), path);
        while let [first, tail @ ..] = rest {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => _ = at.pop(),
                _ if tail.is_empty() => return self.find_here(&at, first),
                name => {
                    let below = [at.clone(), vec![name.to_owned()]].concat();
                    if self.0.contains_key(&below) {
                        at = below;
                    } else {
                        // An enum's variant, or a module that is imported.
                        let import = self.0.get(&at)?.uses.iter().find(|one| one.name == name)?;
                        let path = [import.path.clone(), tail.to_vec()].concat();
                        return self.find(&at, &path);
                    }
                }
            }
            rest = tail;
        }
        None
    }

    fn find_here(&self, at: &[String], name: &str) -> Option<(Names, String)> {
        let module = self.0.get(at)?;
        if module.items.iter().any(|item| name_of(item).is_some_and(|it| it == name)) {
            return Some((at.to_vec(), name.to_owned()));
        }
        let import = module.uses.iter().find(|one| one.name == name)?;
        self.find(at, &import.path)
    }

    /// What a public module shows, by its public path.
    fn show(&self, path: &Names, shown: &mut BTreeMap<String, (Names, String)>) {
        let module = &self.0[path];
        let full = |name: &str| [path.clone(), vec![name.to_owned()]].concat().join("::");
        for item in &module.items {
            if let (Some(name), true) = (name_of(item), is_public(item)) {
                shown.insert(full(&name), (path.clone(), name));
            }
        }
        for import in module.uses.iter().filter(|import| import.is_public) {
            let below = [path.clone(), vec![import.name.clone()]].concat();
            if self.0.contains_key(&below) {
                self.show(&below, shown);
            } else {
                // What no item defines is made by a macro.
                let found = self.find(path, &import.path);
                shown.insert(full(&import.name), found.unwrap_or_default());
            }
        }
    }

    /// The public methods of a type, wherever they are written.
    fn methods(&self, target: &(Names, String)) -> Vec<String> {
        let mut found = Vec::new();
        for (path, module) in &self.0 {
            for item in &module.items {
                let Item::Impl(block) = item else { continue };
                let Type::Path(of) = &*block.self_ty else { continue };
                let names: Names =
                    of.path.segments.iter().map(|one| one.ident.to_string()).collect();
                if block.trait_.is_some() || self.find(path, &names).as_ref() != Some(target) {
                    continue;
                }
                for item in &block.items {
                    let line = match item {
                        ImplItem::Fn(method) if is_listed(&method.vis, &method.attrs) => {
                            method.sig.to_token_stream().to_string()
                        }
                        ImplItem::Const(constant) if is_listed(&constant.vis, &constant.attrs) => {
                            let mut constant = constant.clone();
                            constant.attrs.clear();
                            format!("const {}: {}", constant.ident, constant.ty.to_token_stream())
                        }
                        _ => continue,
                    };
                    found.push(line);
                }
            }
        }
        found.sort();
        found
    }

    fn listing(&self) -> String {
        let mut shown = BTreeMap::new();
        self.show(&Vec::new(), &mut shown);
        let mut text = String::new();
        for (path, target) in shown {
            let (module, name) = &target;
            if name.is_empty() {
                text += &format!("{path}: made by a macro\n");
                continue;
            }
            let mut is_first = true;
            for item in
                self.0[module].items.iter().filter(|it| name_of(it).is_some_and(|it| it == *name))
            {
                // The same under another condition.
                if !std::mem::take(&mut is_first) {
                    continue;
                }
                let (head, parts) = described(item);
                text += &format!("{path}: {}\n", tidy(&head));
                for part in parts {
                    text += &format!("    {}\n", tidy(&part));
                }
            }
            for method in self.methods(&target) {
                text += &format!("    {}\n", tidy(&method));
            }
        }
        text
    }
}

fn parse(file: &Path) -> Vec<Item> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{file:?}: {error}")).items
}

/// The file of a module that is declared in another.
fn file_of(parent: &Path, path: &[String], name: &str) -> PathBuf {
    let is_directory = path.is_empty() || parent.ends_with("mod.rs");
    let directory = match is_directory {
        true => parent.parent().expect("it is in src").to_owned(),
        false => parent.with_extension(""),
    };
    let file = directory.join(name).with_extension("rs");
    if file.exists() { file } else { directory.join(name).join("mod.rs") }
}

fn collect(tree: &UseTree, before: Names, is_public: bool, uses: &mut Vec<Use>) {
    let with = |name: String| [before.clone(), vec![name]].concat();
    match tree {
        UseTree::Path(path) => collect(&path.tree, with(path.ident.to_string()), is_public, uses),
        UseTree::Name(name) if name.ident == "self" => {
            let own = before.last().cloned().unwrap_or_default();
            uses.push(Use { name: own, path: before, is_public });
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            uses.push(Use { path: with(name.clone()), name, is_public });
        }
        UseTree::Rename(rename) => {
            let path = with(rename.ident.to_string());
            uses.push(Use { name: rename.rename.to_string(), path, is_public });
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| collect(tree, before.clone(), is_public, uses));
        }
        UseTree::Glob(_) => assert!(!is_public, "a public import of all of a module"),
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Union(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// Whether it is compiled for users with all features on.
fn is_there(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|one| one.path().is_ident("cfg")).all(|one| {
        let Meta::List(list) = &one.meta else { return true };
        holds(&list.parse_args().expect("a condition"))
    })
}

fn holds(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => {
            !["test", "loom", "fuzzing", "doctest"].iter().any(|it| path.is_ident(it))
        }
        Meta::NameValue(_) => true,
        Meta::List(list) => {
            let parts = list.parse_args_with(Punctuated::<Meta, syn::Token![,]>::parse_terminated);
            let parts = parts.expect("conditions");
            match () {
                () if list.path.is_ident("not") => !parts.iter().all(holds),
                () if list.path.is_ident("any") => parts.iter().any(holds),
                () => parts.iter().all(holds),
            }
        }
    }
}

fn is_listed(visibility: &Visibility, attributes: &[Attribute]) -> bool {
    matches!(visibility, Visibility::Public(_)) && is_there(attributes)
}

fn is_public(item: &Item) -> bool {
    let visibility = match item {
        Item::Const(it) => &it.vis,
        Item::Enum(it) => &it.vis,
        Item::Fn(it) => &it.vis,
        Item::Struct(it) => &it.vis,
        Item::Trait(it) => &it.vis,
        Item::Type(it) => &it.vis,
        _ => return false,
    };
    matches!(visibility, Visibility::Public(_))
}

fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(it) => it.ident.to_string(),
        Item::Enum(it) => it.ident.to_string(),
        Item::Fn(it) => it.sig.ident.to_string(),
        Item::Struct(it) => it.ident.to_string(),
        Item::Trait(it) => it.ident.to_string(),
        Item::Type(it) => it.ident.to_string(),
        _ => return None,
    })
}

fn fields(fields: &Fields) -> Vec<String> {
    let public = fields.iter().filter(|field| is_listed(&field.vis, &field.attrs));
    let shown = public.map(|field| {
        let name = field.ident.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        format!("{name}{}", field.ty.to_token_stream())
    });
    shown.collect()
}

/// What an item is, and its parts.
fn described(item: &Item) -> (String, Vec<String>) {
    match item {
        Item::Const(it) => (format!("const {}", it.ty.to_token_stream()), Vec::new()),
        Item::Fn(it) => (it.sig.to_token_stream().to_string(), Vec::new()),
        Item::Type(it) => (format!("type {}", it.ty.to_token_stream()), Vec::new()),
        Item::Struct(it) => {
            (format!("struct{}", it.generics.to_token_stream()), fields(&it.fields))
        }
        Item::Enum(it) => {
            let variants = it.variants.iter().filter(|variant| is_there(&variant.attrs));
            let shown = variants.map(|variant| {
                let parts = variant.fields.iter().map(|field| {
                    let name =
                        field.ident.as_ref().map_or_else(String::new, |it| format!("{it}: "));
                    format!("{name}{}", field.ty.to_token_stream())
                });
                let parts: Vec<_> = parts.collect();
                let parts = parts.join(", ");
                let is_plain = parts.is_empty();
                if is_plain {
                    variant.ident.to_string()
                } else {
                    format!("{} {{ {parts} }}", variant.ident)
                }
            });
            (format!("enum{}", it.generics.to_token_stream()), shown.collect())
        }
        Item::Trait(it) => {
            let parts = it.items.iter().filter_map(|item| match item {
                TraitItem::Fn(method) => {
                    let given = if method.default.is_some() { " (has a default)" } else { "" };
                    Some(format!("{}{given}", method.sig.to_token_stream()))
                }
                TraitItem::Type(kind) => Some(format!("type {}", kind.ident)),
                TraitItem::Const(constant) => Some(format!("const {}", constant.ident)),
                _ => None,
            });
            let above = match it.supertraits.is_empty() {
                true => String::new(),
                false => format!(": {}", it.supertraits.to_token_stream()),
            };
            (format!("trait{}{above}", it.generics.to_token_stream()), parts.collect())
        }
        _ => unreachable!("it has a name"),
    }
}

/// Tokens as people write them, near enough.
fn tidy(tokens: &str) -> String {
    let mut text = tokens.split_whitespace().collect::<Vec<_>>().join(" ");
    for (from, to) in [
        (" ::", "::"),
        (":: ", "::"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        ("> (", ">("),
        (" ,", ","),
        (",)", ")"),
        ("( ", "("),
        (" (", "("),
        (" )", ")"),
        ("& ", "&"),
        (" :", ":"),
        (" ;", ";"),
        ("[ ", "["),
        (" ]", "]"),
        ("' ", "'"),
        (", >", ">"),
        ("- >", "->"),
        ("->", " -> "),
        ("fn(", "fn("),
        ("impl<", "impl <"),
    ] {
        text = text.replace(from, to);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_listing_is_what_the_sources_say() {
    let made = Crate::read().listing();
    let file = Path::new(ROOT).join(LISTING);
    if env::var_os("PACELINE_BLESS").is_some() {
        fs::write(&file, &made).expect("the listing can be written");
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    let (made, kept): (Vec<_>, Vec<_>) = (made.lines().collect(), kept.lines().collect());
    let new: Vec<_> = made.iter().filter(|line| !kept.contains(line)).collect();
    let gone: Vec<_> = kept.iter().filter(|line| !made.contains(line)).collect();
    assert!(
        made == kept,
        "the public interface differs from {LISTING}\nnew: {new:#?}\ngone: {gone:#?}\nif that is meant: \
         PACELINE_BLESS=1 cargo test --test public_api, and a line in CHANGELOG.md"
    );
    assert!(made.len() > 500, "only {} lines", made.len());
}
