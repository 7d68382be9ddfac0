//! `fieldSelector=`: equalities over a few fields, with `\` before `\`, `,` and `=` in values.

use std::fmt;

use crate::refusal::Refusal;

/// `fieldSelector=`. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

/// One term of a field selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The field, as written: `metadata.name`.
    pub path: String,
    /// Whether the value is wanted or unwanted.
    pub operator: FieldOperator,
    /// The value, unescaped.
    pub value: String,
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldOperator {
    /// `=` or `==`.
    Equals,
    /// `!=`.
    NotEquals,
}

impl FieldSelector {
    /// Reads the text of a selector. Terms are ordered, empty ones dropped.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let requirements = terms.into_iter().filter(|term| !term.is_empty()).map(|term| {
            let Some((path, operator, value)) = split_term(term) else {
                let why = format!("invalid selector: '{text}'; can't understand '{term}'");
                return Err(Refusal::bad_request(why));
            };
            Ok(FieldRequirement { path: path.to_owned(), operator, value: unescape(value)? })
        });
        Ok(Self { requirements: requirements.collect::<Result<_, _>>()? })
    }

    /// The terms; all of them must hold.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// Nothing is asked for.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object matches whose fields `lookup` reads. A field that is not there reads as the empty text.
    pub fn matches(&self, lookup: impl Fn(&str) -> String) -> bool {
        self.requirements.iter().all(|requirement| {
            let equal = lookup(&requirement.path) == requirement.value;
            equal == (requirement.operator == FieldOperator::Equals)
        })
    }

    /// The value that `path` must have, if the selector asks for one: lets a list of one name be a lookup.
    pub fn wanted(&self, path: &str) -> Option<&str> {
        let wanted = self.requirements.iter().find(|r| r.path == path && r.operator == FieldOperator::Equals);
        wanted.map(|requirement| requirement.value.as_str())
    }

    /// Refuses fields that cannot be selected by. For custom resources and the built-in kinds with fields of their
    /// own (pods, nodes, events, secrets, namespaces, ...).
    pub fn check(&self, allowed: impl Fn(&str) -> bool) -> Result<(), Refusal> {
        let unknown = self.requirements.iter().find(|requirement| !allowed(&requirement.path));
        unknown.map_or(Ok(()), |requirement| {
            Err(Refusal::bad_request(format!("field label not supported: {}", requirement.path)))
        })
    }

    /// Refuses everything but name and namespace, in the words used for built-in kinds that know no other field.
    pub fn check_metadata_only(&self) -> Result<(), Refusal> {
        let known = ["metadata.name", "metadata.namespace"];
        let unknown = self.requirements.iter().find(|requirement| !known.contains(&requirement.path.as_str()));
        unknown.map_or(Ok(()), |requirement| {
            let path = &requirement.path;
            Err(Refusal::bad_request(format!(
                "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            )))
        })
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, requirement) in self.requirements.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            let operator = match requirement.operator {
                FieldOperator::Equals => "=",
                FieldOperator::NotEquals => "!=",
            };
            write!(f, "{comma}{}{operator}", requirement.path)?;
            for c in requirement.value.chars() {
                if matches!(c, '\\' | ',' | '=') {
                    write!(f, "\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

/// Splits at commas that have no backslash before them.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// The first operator splits; the left side knows no escapes.
fn split_term(term: &str) -> Option<(&str, FieldOperator, &str)> {
    let at = term.find('=')?;
    let (before, after) = (&term[..at], &term[at + 1..]);
    match before.strip_suffix('!') {
        Some(path) => Some((path, FieldOperator::NotEquals, after)),
        None => Some((before, FieldOperator::Equals, after.strip_prefix('=').unwrap_or(after))),
    }
}

fn unescape(text: &str) -> Result<String, Refusal> {
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(Refusal::bad_request(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            ',' | '=' => {
                let number = u32::from(c);
                return Err(Refusal::bad_request(format!(
                    "invalid field selector: unescaped character in value: {number}"
                )));
            }
            _ => value.push(c),
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> String {
        let refusal = FieldSelector::parse(text).unwrap_err();
        assert_eq!((refusal.code, refusal.reason), (400, "BadRequest"));
        refusal.message
    }

    #[test]
    fn terms_compare_fields() {
        let selector = FieldSelector::parse("metadata.name==a,metadata.namespace!=b,,").unwrap();
        let lookup = |name: &'static str, namespace: &'static str| {
            move |path: &str| if path == "metadata.name" { name.to_owned() } else { namespace.to_owned() }
        };
        assert!(selector.matches(lookup("a", "c")));
        assert!(!selector.matches(lookup("a", "b")));
        assert!(!selector.matches(lookup("x", "c")));
        assert_eq!(selector.wanted("metadata.name"), Some("a"));
        assert_eq!(selector.wanted("metadata.namespace"), None);
        assert!(FieldSelector::parse("").unwrap().is_everything());
    }

    #[test]
    fn what_cannot_be_read_is_refused_in_the_originals_words() {
        assert_eq!(refused("a,b"), "invalid selector: 'a,b'; can't understand 'a'");
        assert_eq!(refused("metadata.name=a\\"), "invalid field selector: invalid escape sequence: \\");
        assert_eq!(refused("metadata.name=a\\x"), "invalid field selector: invalid escape sequence: \\x");
        assert_eq!(refused("metadata.name=a=b"), "invalid field selector: unescaped character in value: 61");
    }

    #[test]
    fn unknown_fields_are_refused() {
        let selector = FieldSelector::parse("spec.foo=b").unwrap();
        assert_eq!(selector.check(|_| false).unwrap_err().message, "field label not supported: spec.foo");
        assert_eq!(selector.check(|path| path == "spec.foo"), Ok(()));
        assert_eq!(
            selector.check_metadata_only().unwrap_err().message,
            "\"spec.foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        );
        assert_eq!(FieldSelector::parse("metadata.name=b").unwrap().check_metadata_only(), Ok(()));
    }

    proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(terms in prop::collection::vec(("[a-z.]{1,8}", any::<bool>(), any::<String>()), 0..4)) {
            let mut requirements: Vec<FieldRequirement> = terms
                .into_iter()
                .map(|(path, equal, value)| {
                    let operator = if equal { FieldOperator::Equals } else { FieldOperator::NotEquals };
                    FieldRequirement { path, operator, value }
                })
                .collect();
            requirements.sort_by_key(|r| FieldSelector { requirements: vec![r.clone()] }.to_string());
            let selector = FieldSelector { requirements };
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in any::<String>(), almost in "[a.=!\\\\,é]{0,12}") {
            let _ = FieldSelector::parse(&text);
            // Terms are ordered by their text, and `==` is written `=`: only what was printed once keeps its order.
            if let Ok(selector) = FieldSelector::parse(&almost) {
                let printed = FieldSelector::parse(&selector.to_string()).unwrap();
                prop_assert!(FieldSelector::parse(&printed.to_string()).unwrap() == printed);
                prop_assert!(selector.requirements.iter().all(|term| printed.requirements.contains(term)));
                prop_assert_eq!(selector.requirements.len(), printed.requirements.len());
            }
        }

        #[test]
        fn a_term_and_its_opposite_never_agree(value in "[a-z]{0,3}", actual in "[a-z]{0,3}") {
            let selector = |operator| FieldSelector::parse(&format!("x{operator}{value}")).unwrap();
            let lookup = |_: &str| actual.clone();
            prop_assert_ne!(selector("=").matches(lookup), selector("!=").matches(lookup));
        }
    }
}
