//! The C interface as data: what the headers declare. All that is generated for other languages is made from this.

use std::collections::BTreeMap;

/// What all headers declare, in their order: nothing is named before it is declared.
pub struct Model {
    pub items: Vec<Item>,
}

pub struct Item {
    pub name: String,
    pub doc: String,
    pub kind: Kind,
}

pub enum Kind {
    Constant(i128),
    /// A type that is used by pointers only.
    Handle,
    Alias(Type),
    Record(Record),
    Callback,
    Function(Signature),
}

/// A struct or a union.
pub struct Record {
    pub is_union: bool,
    pub fields: Vec<Field>,
}

pub struct Signature {
    pub result: Type,
    pub parameters: Vec<Field>,
}

/// A field or a parameter. An anonymous union in a struct has no name.
pub struct Field {
    pub name: String,
    pub doc: String,
    pub kind: Type,
}

pub struct Type {
    pub base: Base,
    /// Of what the first pointer leads to.
    pub is_const: bool,
    pub pointers: usize,
    /// Of an array.
    pub length: Option<usize>,
}

pub enum Base {
    Named(String),
    Inline(Record),
}

impl Model {
    /// Reads the texts of headers.
    pub fn read<'a>(headers: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut model, mut constants) = (Self { items: Vec::new() }, BTreeMap::new());
        for text in headers {
            let tokens = tokens(text);
            let mut parser = Parser { rest: &tokens, constants: &mut constants };
            while !parser.rest.is_empty() {
                let doc = parser.doc();
                let (name, kind) = parser.item();
                // A typedef of a handle may come again in C, and the constants of two sections may be one.
                if model.items.iter().all(|item| item.name != name) {
                    model.items.push(Item { name, doc, kind });
                }
            }
        }
        model
    }

    pub fn constants(&self) -> impl Iterator<Item = (&Item, i128)> {
        self.items.iter().filter_map(|item| Some((item, item.value()?)))
    }

    pub fn records(&self) -> impl Iterator<Item = (&Item, &Record)> {
        self.items.iter().filter_map(|item| match &item.kind {
            Kind::Record(record) => Some((item, record)),
            _ => None,
        })
    }

    pub fn functions(&self) -> impl Iterator<Item = (&Item, &Signature)> {
        self.items.iter().filter_map(|item| match &item.kind {
            Kind::Function(signature) => Some((item, signature)),
            _ => None,
        })
    }

    /// What a name of a type stands for; None: it is a type of C itself.
    pub fn kind(&self, name: &str) -> Option<&Kind> {
        self.items.iter().find(|item| item.name == name).map(|item| &item.kind)
    }
}

impl Item {
    /// Of a constant.
    pub fn value(&self) -> Option<i128> {
        match self.kind {
            Kind::Constant(value) => Some(value),
            _ => None,
        }
    }
}

impl Record {
    /// A struct of one 64-bit integer is an id.
    pub fn is_id(&self) -> bool {
        matches!(&*self.fields, [Field { kind, .. }] if kind.is("uint64_t"))
    }
}

impl Type {
    /// Whether it is a type by its name, and no pointer or array.
    pub fn is(&self, name: &str) -> bool {
        self.pointers == 0 && self.length.is_none() && self.name() == Some(name)
    }

    pub fn name(&self) -> Option<&str> {
        match &self.base {
            Base::Named(name) => Some(name),
            Base::Inline(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    /// A comment on what follows.
    Doc(&'a str),
    Define(&'a str, &'a str),
    Word(&'a str),
    Sign(char),
}

/// Of a header, without what is for the preprocessor, but for constants.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match first {
            '/' => rest.find("*/").expect("a comment ends") + 2,
            '#' if rest.starts_with("#ifdef __cplusplus") => {
                rest.find("#endif").expect("it ends") + "#endif".len()
            }
            '#' => rest.find('\n').unwrap_or(rest.len()),
            first if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        match first {
            '/' => {
                let doc = token.strip_prefix("/**").and_then(|rest| rest.strip_suffix("*/"));
                tokens.extend(doc.map(Token::Doc));
            }
            '#' => {
                let constant = token.strip_prefix("#define ").and_then(|rest| rest.split_once(' '));
                // Others are macros with arguments.
                let constant = constant.filter(|(name, _)| !name.contains('('));
                tokens.extend(constant.map(|(name, value)| Token::Define(name, value)));
            }
            first if is_word(first) => tokens.push(Token::Word(token)),
            first => tokens.push(Token::Sign(first)),
        }
        rest = after.trim_start();
    }
    tokens
}

struct Parser<'a, 'b> {
    rest: &'b [Token<'a>],
    /// The values of all constants until here.
    constants: &'b mut BTreeMap<String, i128>,
}

impl<'a> Parser<'a, '_> {
    fn next(&mut self) -> Token<'a> {
        let (first, rest) = self.rest.split_first().expect("a declaration ends");
        self.rest = rest;
        *first
    }

    /// Passes a token, if it is this one.
    fn pass(&mut self, token: Token<'_>) -> bool {
        let passed = self.rest.first() == Some(&token);
        self.rest = &self.rest[usize::from(passed)..];
        passed
    }

    fn expect(&mut self, sign: char) {
        assert!(self.pass(Token::Sign(sign)), "{sign:?}, not {:?}", &self.rest[..3]);
    }

    fn word(&mut self) -> String {
        match self.next() {
            Token::Word(word) => word.to_owned(),
            other => panic!("a name, not {other:?}"),
        }
    }

    /// The comment on what follows, as one line for each paragraph.
    fn doc(&mut self) -> String {
        let mut doc = String::new();
        while let [Token::Doc(text), rest @ ..] = self.rest {
            self.rest = rest;
            doc.clear();
            for line in text.lines().map(|line| line.trim().trim_start_matches('*').trim()) {
                match line {
                    "" => doc.push('\n'),
                    line if doc.is_empty() || doc.ends_with('\n') => doc.push_str(line),
                    line => doc.extend([" ", line]),
                }
            }
        }
        doc.trim().to_owned()
    }

    fn item(&mut self) -> (String, Kind) {
        if let Token::Define(name, value) = self.rest[0] {
            self.next();
            let value = match value.trim_matches(['(', ')']) {
                "UINT32_MAX" => u32::MAX.into(),
                "UINT64_MAX" => u64::MAX.into(),
                number => number.parse().unwrap_or_else(|_| panic!("{name} is {value}")),
            };
            self.constants.insert(name.to_owned(), value);
            return (name.to_owned(), Kind::Constant(value));
        }
        if !self.pass(Token::Word("typedef")) {
            let result = self.base();
            let result = self.pointers(result);
            let name = self.word();
            let parameters = self.parameters();
            self.expect(';');
            return (name, Kind::Function(Signature { result, parameters }));
        }
        if let [Token::Word("struct"), Token::Word(_), Token::Word(_), ..] = self.rest {
            self.rest = &self.rest[2..];
            let name = self.word();
            self.expect(';');
            return (name, Kind::Handle);
        }
        let aliased = self.base();
        let aliased = self.pointers(aliased);
        if self.pass(Token::Sign('(')) {
            self.expect('*');
            let name = self.word();
            self.expect(')');
            self.parameters();
            self.expect(';');
            return (name, Kind::Callback);
        }
        let name = self.word();
        self.expect(';');
        match aliased {
            Type { base: Base::Inline(record), pointers: 0, .. } => (name, Kind::Record(record)),
            alias => (name, Kind::Alias(alias)),
        }
    }

    /// A type up to its pointers: a name, or a struct or union with its fields.
    fn base(&mut self) -> Type {
        let is_const = self.pass(Token::Word("const"));
        let is_union = self.rest[0] == Token::Word("union");
        let base = if is_union || self.rest[0] == Token::Word("struct") {
            self.next();
            let tag = matches!(self.rest[0], Token::Word(_)).then(|| self.word());
            match self.pass(Token::Sign('{')) {
                true => Base::Inline(Record { is_union, fields: self.fields() }),
                false => Base::Named(tag.expect("it has a name or fields")),
            }
        } else {
            Base::Named(self.word())
        };
        Type { base, is_const, pointers: 0, length: None }
    }

    fn pointers(&mut self, mut base: Type) -> Type {
        while self.pass(Token::Sign('*')) {
            base.pointers += 1;
            self.pass(Token::Word("const"));
        }
        base
    }

    /// A type and its name, and its length if it is an array. An anonymous union has no name.
    fn field(&mut self) -> Field {
        let doc = self.doc();
        let base = self.base();
        let mut kind = self.pointers(base);
        let is_named = matches!(self.rest[0], Token::Word(_));
        let name = if is_named { self.word() } else { String::new() };
        if self.pass(Token::Sign('[')) {
            let length = self.word();
            let known = self.constants.get(&length).map(|&value| value as usize);
            kind.length = known.or_else(|| length.parse().ok());
            assert!(kind.length.is_some(), "{name} is of {length} elements");
            self.expect(']');
        }
        Field { name, doc, kind }
    }

    fn fields(&mut self) -> Vec<Field> {
        let mut fields = Vec::new();
        while !self.pass(Token::Sign('}')) {
            fields.push(self.field());
            self.expect(';');
        }
        fields
    }

    fn parameters(&mut self) -> Vec<Field> {
        let mut parameters = Vec::new();
        self.expect('(');
        while !self.pass(Token::Sign(')')) {
            parameters.push(self.field());
            self.pass(Token::Sign(','));
        }
        // `(void)`
        parameters.retain(|parameter| !parameter.kind.is("void"));
        parameters
    }
}
