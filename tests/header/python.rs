//! What Python needs to know of the C interface: its constants and structs, and the types of its functions. Formatted
//! as ruff does.

use crate::model::{Base, Kind, Model, Record, Type};

/// Of a line.
const LONGEST: usize = 105;

const RENEWED: &str = "Generated from the headers in ``include``; not to be edited.\n\
    ``PACELINE_BLESS=1 cargo test --test header`` renews it.";

/// `_layout.py`
pub fn layout(model: &Model) -> String {
    let mut text = format!(
        "\"\"\"The constants and structs of the C interface.\n\n{RENEWED}\n\"\"\"\n\n\
         from __future__ import annotations\n\nimport ctypes as c\n\n"
    );
    for (item, value) in model.constants() {
        let name = item.name.trim_start_matches("PACE_");
        text.push_str(&match value {
            0xFFFF_FFFF => format!("{name} = 0xFFFF_FFFF\n"),
            0xFFFF_FFFF_FFFF_FFFF => format!("{name} = 0xFFFF_FFFF_FFFF_FFFF\n"),
            value => format!("{name} = {value}\n"),
        });
    }
    let structs: Vec<_> = model.records().filter(|(_, record)| !record.is_id()).collect();
    for (item, record) in &structs {
        text.push_str(&class(
            model,
            &class_name(&item.name),
            &format!("``{}``", item.name),
            record,
        ));
    }
    text.push_str("\n\n#: By their names in C.\n");
    text.push_str("STRUCTURES: dict[str, type[c.Structure | c.Union]] = {\n");
    for (item, _) in &structs {
        text.push_str(&format!("    \"{0}\": {1},\n", item.name, class_name(&item.name)));
    }
    text + "}\n"
}

/// `_signatures.py`
pub fn signatures(model: &Model) -> String {
    let mut text = format!(
        "\"\"\"The types of the C interface's functions.\n\n{RENEWED}\n\"\"\"\n\n\
         from __future__ import annotations\n\nimport ctypes as c\nfrom typing import Any\n\n\
         #: For each function the type of its result, and those of its arguments. An id, which is a struct of one\n\
         #: integer in C, is that integer: ctypes passes the two alike.\n\
         SIGNATURES: dict[str, tuple[Any, ...]] = {{\n"
    );
    for (item, signature) in model.functions() {
        let types = [&signature.result].into_iter();
        let types = types.chain(signature.parameters.iter().map(|parameter| &parameter.kind));
        let types: Vec<_> = types.map(|kind| passed(model, kind)).collect();
        let name = &item.name;
        let line = match &*types {
            [only] => format!("    \"{name}\": ({only},),\n"),
            types => format!("    \"{name}\": ({}),\n", types.join(", ")),
        };
        if line.chars().count() <= LONGEST + 1 {
            text.push_str(&line);
        } else {
            let lines = types.join(",\n        ");
            text.push_str(&format!("    \"{name}\": (\n        {lines},\n    ),\n"));
        }
    }
    text + "}\n"
}

/// `PoolConfig` for `pace_pool_config_t`.
fn class_name(name: &str) -> String {
    camel(name.trim_start_matches("pace_").trim_end_matches("_t"))
}

fn camel(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// A class for a struct or union, after those for the unions in it.
fn class(model: &Model, name: &str, about: &str, record: &Record) -> String {
    let (mut before, mut anonymous) = (String::new(), Vec::new());
    let mut fields = Vec::new();
    for (index, field) in record.fields.iter().enumerate() {
        let mut own_name = field.name.clone();
        if own_name.is_empty() {
            own_name = format!("_{index}");
            anonymous.push(format!("\"{own_name}\","));
        }
        let mut kind = match &field.kind.base {
            Base::Inline(inner) => {
                let inner_name = format!("{name}{}", camel(&own_name));
                before += &class(model, &inner_name, &format!("``{own_name}`` of {about}"), inner);
                inner_name
            }
            Base::Named(_) => held(model, record, index),
        };
        if let Some(length) = field.kind.length {
            kind = format!("{kind} * {length}");
        }
        fields.push(format!("        (\"{own_name}\", {kind}),\n"));
    }
    let base = if record.is_union { "Union" } else { "Structure" };
    let anonymous = match &*anonymous.join(" ") {
        "" => String::new(),
        names => format!("    _anonymous_ = ({names})\n"),
    };
    format!(
        "{before}\n\nclass {name}(c.{base}):\n    \"\"\"{about}\"\"\"\n\n{anonymous}    _fields_ = [\n{}    ]\n",
        fields.concat()
    )
}

/// The type of a field, or of an element of one that is an array.
fn held(model: &Model, record: &Record, index: usize) -> String {
    let kind = &record.fields[index].kind;
    let has_size = record.fields.get(index + 1).is_some_and(|next| next.name == "size");
    match (kind.pointers, kind.name()) {
        (0, Some(name)) => by_value(model, name),
        // With its size beside it: it does not end with a NUL.
        (1, Some("char")) if has_size => "c.c_void_p".into(),
        // Bytes that the caller lends. Those that the library does may have NULs, where ctypes would end them.
        (1, Some("void")) if kind.is_const && is_settings(model, record) => "c.c_char_p".into(),
        (1, Some("char")) => "c.c_char_p".into(),
        (1, _) => "c.c_void_p".into(),
        _ => to(model, kind),
    }
}

/// Whether the caller fills it in, after a function has with the defaults.
fn is_settings(model: &Model, record: &Record) -> bool {
    let its = model.records().find(|(_, other)| std::ptr::eq(*other, record));
    its.is_some_and(|(item, _)| {
        let init = format!("{}_init", item.name.trim_end_matches("_t"));
        model.functions().any(|(function, _)| function.name == init)
    })
}

/// The type of an argument or a result.
fn passed(model: &Model, kind: &Type) -> String {
    match (kind.pointers, kind.name()) {
        (0, Some("void")) => "None".into(),
        (0, Some(name)) => by_value(model, name),
        (1, Some("char")) if kind.is_const => "c.c_char_p".into(),
        (1, Some("char" | "void")) => "c.c_void_p".into(),
        (1, Some(name)) if is_opaque(model, name) => "c.c_void_p".into(),
        _ => to(model, kind),
    }
}

/// The type of a pointer that is no address only.
fn to(model: &Model, kind: &Type) -> String {
    let inner = match (kind.pointers, kind.name()) {
        (2, Some("char")) => "c.c_char_p".into(),
        (1, Some(name)) => by_value(model, name),
        _ => "c.c_void_p".into(),
    };
    format!("c.POINTER({inner})")
}

/// Whether an address stands for a type: it is a handle, or a struct, of which there may be an array.
fn is_opaque(model: &Model, name: &str) -> bool {
    match model.kind(name) {
        Some(Kind::Record(record)) => !record.is_id(),
        Some(Kind::Handle) => true,
        _ => false,
    }
}

fn by_value(model: &Model, name: &str) -> String {
    match model.kind(name) {
        Some(Kind::Record(record)) if record.is_id() => "c.c_uint64".into(),
        Some(Kind::Record(_)) => class_name(name),
        Some(Kind::Alias(kind)) => by_value(model, kind.name().expect("it has a name")),
        Some(Kind::Callback) => "c.c_void_p".into(),
        Some(_) => panic!("{name} by value"),
        None => format!("c.c_{}", name.trim_end_matches("_t").replace("size", "size_t")),
    }
}
