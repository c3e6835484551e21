//! What the crate offers to its users, found by reading its sources.
//!
//! The sources are formatted by rustfmt, so lines are enough: an item at the top of a file begins at the first column,
//! and so does the brace that ends it.

use std::fs;
use std::path::{Path, PathBuf};

/// A public function, or a method of a public trait.
#[derive(Debug)]
pub struct Function {
    /// `Type::function`, `Trait::method`, or the function alone.
    pub name: String,
    /// On one line.
    pub signature: String,
    /// Users may implement it.
    pub is_of_trait: bool,
}

/// All that are compiled with these features. The C interface is left out.
pub fn functions() -> Vec<Function> {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    files.sort();
    files.iter().flat_map(|file| functions_of(&fs::read_to_string(file).unwrap())).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_left_out = match &*name {
            "ffi" | "tests" | "models" => true,
            "bridge" => !cfg!(feature = "nats"),
            "webhook" => !cfg!(feature = "webhook"),
            "systemd" => !cfg!(feature = "systemd"),
            "archive" => !cfg!(feature = "archive"),
            _ => false,
        };
        match path.is_dir() {
            _ if is_left_out => {}
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}

fn functions_of(source: &str) -> Vec<Function> {
    let lines: Vec<&str> = source.lines().collect();
    let joined = |from: usize, end: fn(&str) -> bool| {
        let to = (from..lines.len()).find(|&line| end(lines[line])).expect("an item ends");
        lines[from..=to].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    };
    let (mut functions, mut owner, mut is_test) = (Vec::new(), Owner::None, false);
    for (number, line) in lines.iter().enumerate() {
        if line.starts_with("#[cfg(test") || line.starts_with("#[cfg(all(test") {
            is_test = true;
        }
        if line.starts_with('}') {
            (owner, is_test) = (Owner::None, false);
        }
        if is_test {
            continue;
        }
        if line.starts_with("impl") {
            let head = joined(number, |line| line.contains('{'));
            owner = Owner::Type(implemented(&head));
        } else if let Some(rest) = line.strip_prefix("pub trait ") {
            let is_empty = line.ends_with("{}");
            owner = if is_empty { Owner::None } else { Owner::Trait(word(rest)) };
        }
        let inner = line.trim_start();
        let after = match &owner {
            Owner::Trait(_) => inner.strip_prefix("fn "),
            _ => ["pub fn ", "pub const fn ", "pub unsafe fn "]
                .iter()
                .find_map(|start| inner.strip_prefix(start)),
        };
        if let Some(after) = after {
            let function = word(after);
            let (name, is_of_trait) = match &owner {
                Owner::None => (function, false),
                Owner::Type(of) => (format!("{of}::{function}"), false),
                Owner::Trait(of) => (format!("{of}::{function}"), true),
            };
            let signature = joined(number, |line| line.ends_with(['{', ';', '}']));
            functions.push(Function { name, signature, is_of_trait });
        }
    }
    functions
}

enum Owner {
    None,
    Type(String),
    Trait(String),
}

/// The type that an `impl` is for.
fn implemented(head: &str) -> String {
    let mut depth = 0;
    let mut plain = String::new();
    for letter in head.strip_prefix("impl").expect("an impl").chars() {
        match letter {
            '<' => depth += 1,
            '>' if !plain.ends_with('-') => depth -= 1,
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    let of = plain.split(" for ").last().unwrap().trim_start();
    word(of)
}

fn word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}
