//! Where the fields of each struct lie, by the rules of C on 64 bits: assertions on this for Rust's compiler, and the
//! same for C's, so that the two agree with each other.

use crate::model::{Base, Field, Kind, Model, Record, Type};
use crate::wrapped;
use std::collections::BTreeMap;

/// `tests/c/layout.h`
pub fn c(model: &Model) -> String {
    let mut text = String::from(
        "/* Sizes and offsets, as src/ffi/layout.rs has them for Rust. Generated from the headers; not to be edited:\n\
         \x20* PACELINE_BLESS=1 cargo test --test header renews it. */\n\n\
         #define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)\n\
         #define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type \".\" #field)\n",
    );
    for (name, record) in records(model) {
        let (fields, size) = placed(model, record);
        let fields = fields.iter().map(|(field, offset)| format!("AT({name}, {field}, {offset});"));
        text.push_str(&format!("\nSIZE({name}, {size});\n{}", wrapped("", fields)));
    }
    text
}

/// `src/ffi/layout.rs`, from the files of `src/ffi` by their names.
pub fn rust(model: &Model, sources: &BTreeMap<String, String>) -> String {
    let mut text = String::from(
        "//! Sizes and offsets, as `tests/c/layout.h` has them for C. Generated from the headers; not to be edited:\n\
         //! `PACELINE_BLESS=1 cargo test --test header` renews it.\n\n\
         use std::mem::offset_of;\n\n\
         macro_rules! layout {\n\
         \x20   ($($file:ident :: $name:ident $size:literal { $($field:ident $offset:literal)* })*) => {$(\n\
         \x20       const _: () = {\n\
         \x20           use super::$file::$name as Struct;\n\
         \x20           assert!(size_of::<Struct>() == $size, stringify!($name));\n\
         \x20           $(assert!(offset_of!(Struct, $field) == $offset, stringify!($name.$field));)*\n\
         \x20       };\n\
         \x20   )*};\n\
         }\n\nlayout! {\n",
    );
    for (name, record) in records(model) {
        let kind = if record.is_union { "union" } else { "struct" };
        let definition = format!("pub {kind} {name} {{");
        let found = sources.iter().find(|(_, source)| source.contains(&definition));
        let (file, _) = found.unwrap_or_else(|| panic!("no file of src/ffi has {definition}"));
        let (fields, size) = placed(model, record);
        let fields = fields.iter().map(|(field, offset)| format!("{field} {offset}"));
        let fields = wrapped("        ", fields);
        text.push_str(&format!("    {file}::{name} {size} {{\n{fields}    }}\n"));
    }
    text + "}\n"
}

fn records(model: &Model) -> impl Iterator<Item = (&str, &Record)> {
    model.items.iter().filter_map(|item| match &item.kind {
        Kind::Record(record) => Some((&*item.name, record)),
        _ => None,
    })
}

/// The fields that have names, with their offsets, and the size of all.
fn placed<'a>(model: &Model, record: &'a Record) -> (Vec<(&'a str, usize)>, usize) {
    let (fields, size, _) = layout(model, record);
    let named = fields.into_iter().filter(|(field, _)| !field.name.is_empty());
    (named.map(|(field, offset)| (&*field.name, offset)).collect(), size)
}

/// The fields with their offsets, the size, and the alignment.
fn layout<'a>(model: &Model, record: &'a Record) -> (Vec<(&'a Field, usize)>, usize, usize) {
    let (mut fields, mut end, mut widest) = (Vec::new(), 0_usize, 1);
    for field in &record.fields {
        let (size, alignment) = extent(model, &field.kind);
        let offset = if record.is_union { 0 } else { end.next_multiple_of(alignment) };
        fields.push((field, offset));
        end = end.max(offset + size);
        widest = widest.max(alignment);
    }
    (fields, end.next_multiple_of(widest), widest)
}

/// Size and alignment.
fn extent(model: &Model, kind: &Type) -> (usize, usize) {
    let (size, alignment) = match &kind.base {
        _ if kind.pointers > 0 => (8, 8),
        Base::Inline(record) => {
            let (_, size, alignment) = layout(model, record);
            (size, alignment)
        }
        Base::Named(name) => match model.kind(name) {
            Some(Kind::Record(record)) => {
                let (_, size, alignment) = layout(model, record);
                (size, alignment)
            }
            Some(Kind::Alias(aliased)) => extent(model, aliased),
            Some(Kind::Callback) => (8, 8),
            Some(_) => panic!("{name} in a struct"),
            None => {
                let size = match &**name {
                    "bool" | "char" | "uint8_t" | "int8_t" => 1,
                    "uint16_t" | "int16_t" => 2,
                    "uint32_t" | "int32_t" | "float" => 4,
                    "uint64_t" | "int64_t" | "double" | "size_t" => 8,
                    _ => panic!("the size of {name} is not known"),
                };
                (size, size)
            }
        },
    };
    (size * kind.length.unwrap_or(1), alignment)
}
