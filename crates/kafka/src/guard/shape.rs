//! What messages look like on the wire, as tables one can read beside Kafka's protocol guide.
//!
//! A message starts with its name, API key, direction, the versions it has, and from which version
//! on it is flexible (`compact`: short lengths, tagged fields). Its fields follow, indented:
//!
//! ```text
//! Metadata 3 request 0-13 compact 9+
//!   topics []{}                      an array of structures, whose fields are indented further
//!     topic_id uuid 10+              a field of versions 10 and later
//!     name string
//!   allow_auto_topic_creation bool 4+
//!   include_cluster_authorized_operations bool 8-10
//! ```
//!
//! Besides: `[]int32` an array of numbers, `maybe {}` a structure that may be absent, `tag 0` a
//! tagged field. Whether a length may be null is left to the codec, which refuses it with an error.
//! A table that cannot be read is a bug of ours, so the reader panics; the tests read them all.

use std::{collections::BTreeMap, iter::Peekable, ops::RangeInclusive, str::Lines, sync::LazyLock};

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From a client to a broker.
    Request,
    /// From a broker to a client.
    Response,
}

#[derive(Debug)]
pub(crate) struct Shape {
    pub(super) name: &'static str,
    pub(crate) versions: RangeInclusive<i16>,
    /// The first flexible version.
    flexible: Option<i16>,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(crate) versions: RangeInclusive<i16>,
    pub(super) tag: Option<u32>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Bool,
    /// A number, a time or an identifier of so many bytes.
    Fixed(usize),
    String,
    Bytes,
    Array(Box<Kind>),
    Struct(Vec<Field>),
    /// A structure behind a byte that says whether it is there.
    Maybe(Vec<Field>),
}

impl Shape {
    pub(super) fn is_flexible(&self, version: i16) -> bool {
        self.flexible.is_some_and(|first| version >= first)
    }
}

/// The shape of a message, if it is one of those we speak.
pub(crate) fn of(key: i16, direction: Direction) -> Option<&'static Shape> {
    SHAPES.get(&(key, direction))
}

/// All shapes, by API key.
pub(crate) fn all() -> impl Iterator<Item = (i16, Direction, &'static Shape)> {
    SHAPES.iter().map(|((key, direction), shape)| (*key, *direction, shape))
}

static SHAPES: LazyLock<BTreeMap<(i16, Direction), Shape>> = LazyLock::new(|| {
    let mut shapes = BTreeMap::new();
    for table in [
        include_str!("shapes/session.txt"),
        include_str!("shapes/cluster.txt"),
        include_str!("shapes/admin.txt"),
        include_str!("shapes/records.txt"),
        include_str!("shapes/governance.txt"),
    ] {
        let mut lines = table.lines().peekable();
        while let Some(line) = lines.next() {
            if !line.is_empty() && !line.starts_with('#') {
                let (key, shape) = message(line, &mut lines);
                assert!(shapes.insert(key, shape).is_none(), "twice: {line}");
            }
        }
    }
    shapes
});

fn message(line: &'static str, lines: &mut Peekable<Lines<'static>>) -> ((i16, Direction), Shape) {
    let words: Vec<&str> = line.split(' ').collect();
    let (name, key, direction, span) = match words[..] {
        [name, key, direction, versions] | [name, key, direction, versions, "compact", _] => {
            (name, key.parse().expect(line), direction, range(versions))
        }
        _ => panic!("not the head of a message: {line}"),
    };
    let direction = match direction {
        "request" => Direction::Request,
        "response" => Direction::Response,
        _ => panic!("neither request nor response: {line}"),
    };
    let flexible = words.get(5).map(|versions| *range(versions).start());
    ((key, direction), Shape { name, versions: span, flexible, fields: fields(1, lines) })
}

fn fields(depth: usize, lines: &mut Peekable<Lines<'static>>) -> Vec<Field> {
    let mut fields = Vec::new();
    while let Some(line) = lines.next_if(|line| indent(line) == depth) {
        fields.push(field(line, depth, lines));
    }
    fields
}

fn field(line: &'static str, depth: usize, lines: &mut Peekable<Lines<'static>>) -> Field {
    let mut words = line.trim_start().split(' ').peekable();
    let name = words.next().expect("a line has words");
    let maybe = words.next_if_eq(&"maybe").is_some();
    let word = words.next().unwrap_or_else(|| panic!("no kind: {line}"));
    let (is_array, word) = match word.strip_prefix("[]") {
        Some(element) => (true, element),
        None => (false, word),
    };
    let one = match word {
        "{}" if maybe => Kind::Maybe(fields(depth + 1, lines)),
        "{}" => Kind::Struct(fields(depth + 1, lines)),
        "bool" => Kind::Bool,
        "int8" => Kind::Fixed(1),
        "int16" => Kind::Fixed(2),
        "int32" => Kind::Fixed(4),
        "int64" | "float64" => Kind::Fixed(8),
        "uuid" => Kind::Fixed(16),
        "string" => Kind::String,
        "bytes" => Kind::Bytes,
        _ => panic!("unknown kind: {line}"),
    };
    let kind = if is_array { Kind::Array(Box::new(one)) } else { one };
    let versions = words.next_if(|word| *word != "tag").map_or(0..=i16::MAX, range);
    let tag = words.next().map(|_| words.next().expect(line).parse().expect(line));
    Field { name, versions, tag, kind }
}

fn indent(line: &str) -> usize {
    (line.len() - line.trim_start().len()) / 2
}

/// `7+`, `3-9` or `4`.
fn range(text: &str) -> RangeInclusive<i16> {
    let number = |text: &str| text.parse::<i16>().unwrap_or_else(|_| panic!("not a version: {text}"));
    match (text.strip_suffix('+'), text.split_once('-')) {
        (Some(first), _) => number(first)..=i16::MAX,
        (None, Some((first, last))) => number(first)..=number(last),
        (None, None) => number(text)..=number(text),
    }
}
