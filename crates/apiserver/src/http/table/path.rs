//! The JSON paths of printer columns: Kubernetes' own dialect, of which columns use a small part.
//!
//! `.a.b`, `.labels.strimzi\.io/cluster`, `['a']`, `[0]`, `[-1]`, `[*]`, `.*`, and filters such as
//! `[?(@.type=="Ready")]`. A cell shows the first value found.

use serde_json::Value;

/// A path, taken apart once and followed for every row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    Every,
    Filter { path: Vec<Step>, test: Test },
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Exists,
    Compare(Comparison, Value),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Two-character operators come first: `<` is also the start of `<=`.
const OPERATORS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl JsonPath {
    /// Reads a path. `None` when it is none, or uses a part of the dialect that columns do not need.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        steps(text.trim()).map(Self)
    }

    /// The first value at the path.
    pub(crate) fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        first(&self.0, root)
    }
}

fn first<'a>(steps: &[Step], value: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match step {
        Step::Field(name) => first(rest, value.get(name)?),
        Step::Index(index) => {
            let list = value.as_array()?;
            let length = i64::try_from(list.len()).ok()?;
            let index = if *index < 0 { index + length } else { *index };
            first(rest, list.get(usize::try_from(index).ok()?)?)
        }
        Step::Every => children(value).find_map(|child| first(rest, child)),
        Step::Filter { path, test } => {
            let list = value.as_array()?;
            list.iter().filter(|item| test.holds(first(path, item))).find_map(|item| first(rest, item))
        }
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(list) => Box::new(list.iter()),
        Value::Object(map) => Box::new(map.values()),
        _ => Box::new(std::iter::empty()),
    }
}

impl Test {
    fn holds(&self, found: Option<&Value>) -> bool {
        match (self, found) {
            (Self::Exists, found) => found.is_some(),
            (Self::Compare(..), None) => false,
            (Self::Compare(Comparison::Equal, expected), Some(found)) => found == expected,
            (Self::Compare(Comparison::Unequal, expected), Some(found)) => found != expected,
            (Self::Compare(comparison, expected), Some(found)) => {
                let order = match (found, expected) {
                    (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
                    (a, b) => a.as_f64().zip(b.as_f64()).and_then(|(a, b)| a.partial_cmp(&b)),
                };
                order.is_some_and(|order| match comparison {
                    Comparison::Less => order.is_lt(),
                    Comparison::LessOrEqual => order.is_le(),
                    Comparison::Greater => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
        }
    }
}

fn steps(text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("[?(") {
            let end = closing(after, ")]")?;
            steps.push(filter(&after[..end])?);
            rest = &after[end + 2..];
        } else if let Some(after) = rest.strip_prefix('[') {
            let end = closing(after, "]")?;
            steps.push(bracket(after[..end].trim())?);
            rest = &after[end + 1..];
        } else if let Some(after) = rest.strip_prefix('.') {
            if after.is_empty() || after.starts_with('[') {
                rest = after;
                continue;
            }
            let (name, left) = name(after)?;
            steps.push(if name == "*" { Step::Every } else { Step::Field(name) });
            rest = left;
        } else if steps.is_empty() {
            let (name, left) = name(rest)?;
            steps.push(Step::Field(name));
            rest = left;
        } else {
            return None;
        }
    }
    Some(steps)
}

/// A field name and what follows it; `\.` is a dot that belongs to the name.
fn name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            '.' | '[' => return (!name.is_empty()).then_some((name, &text[at..])),
            c => name.push(c),
        }
    }
    (!name.is_empty()).then_some((name, ""))
}

/// Where `end` stands outside quotes.
fn closing(text: &str, end: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, _) if text[at..].starts_with(end) => return Some(at),
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Step> {
    if inner == "*" {
        return Some(Step::Every);
    }
    match unquoted(inner) {
        Some(name) => Some(Step::Field(name)),
        None => inner.parse().ok().map(Step::Index),
    }
}

fn filter(inner: &str) -> Option<Step> {
    let path = |text: &str| steps(text.trim().strip_prefix('@')?);
    let found = OPERATORS.iter().filter_map(|(sign, comparison)| Some((closing(inner, sign)?, sign, *comparison)));
    match found.min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len()))) {
        None => Some(Step::Filter { path: path(inner)?, test: Test::Exists }),
        Some((at, sign, comparison)) => {
            let right = inner[at + sign.len()..].trim();
            let expected = match unquoted(right) {
                Some(text) => Value::String(text),
                None => serde_json::from_str(right).ok()?,
            };
            Some(Step::Filter { path: path(&inner[..at])?, test: Test::Compare(comparison, expected) })
        }
    }
}

fn unquoted(text: &str) -> Option<String> {
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
    quoted('\'').or_else(|| quoted('"')).map(|inner| inner.replace("\\.", "."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn look(path: &str) -> Option<Value> {
        let object = json!({
            "metadata": {"labels": {"strimzi.io/cluster": "blue"}},
            "spec": {"replicas": 3, "servers": [{"name": "a", "port": 1}, {"name": "b", "port": 9}]},
            "status": {"conditions": [
                {"type": "Ready", "status": "True"}, {"type": "Warning", "status": "True"}, {"type": "Stale", "status": "False"},
            ]},
        });
        JsonPath::parse(path).expect("a readable path").first(&object).cloned()
    }

    #[test]
    fn the_forms_that_columns_use() {
        let cases = [
            (r".metadata.labels.strimzi\.io/cluster", json!("blue")),
            (".metadata.labels['strimzi\\.io/cluster']", json!("blue")),
            (".spec.replicas", json!(3)),
            ("spec.replicas", json!(3)),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!("True")),
            (r#".status.conditions[?(@.type == 'Stale')].status"#, json!("False")),
            (r#".status.conditions[?(@.status=="True")].type"#, json!("Ready")),
            (r#".status.conditions[?(@.type!="Ready")].type"#, json!("Warning")),
            (".status.conditions[*].type", json!("Ready")),
            (".status.conditions[1].type", json!("Warning")),
            (".status.conditions[-1].type", json!("Stale")),
            (".spec.servers[?(@.port>1)].name", json!("b")),
            (".spec.servers[?(@.port<=1)].name", json!("a")),
            (".spec.servers[?(@.name)].port", json!(1)),
        ];
        for (path, expected) in cases {
            assert_eq!(look(path), Some(expected), "{path}");
        }
    }

    #[test]
    fn what_is_not_there_is_nothing() {
        for path in [".status.missing", ".status.conditions[9].type", r#".status.conditions[?(@.type=="No")].status"#] {
            assert_eq!(look(path), None, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused_without_a_panic() {
        for text in [".a[", ".a[?(@.b", ".a[x]", ".a[?(b==1)]", r".a\", ".a[0]b", "['a'", ".a[?(@.b==)]"] {
            assert_eq!(JsonPath::parse(text), None, "{text}");
        }
    }
}
