//! YAML, as far as it can be said in JSON.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{MAX_DEPTH, MAX_DUPLICATES, reader};
use crate::api::Body;
use crate::refusal::Findings;

/// How many values and how many bytes of text a document may unfold to. The largest bodies without aliases stay below.
const MAX_VALUES: usize = 2_000_000;
const MAX_TEXT: usize = 16 << 20;
/// How many events of the parser aliases may repeat: as many as the original lets pass without looking.
const MAX_REPEATED: usize = 400_000;

/// Reads the first YAML document.
pub(super) fn read(bytes: &[u8]) -> Result<Body, String> {
    let text = str::from_utf8(bytes).map_err(|_| "yaml: invalid leading UTF-8 octet")?;
    let options = serde_saphyr::options! {
        // Size is bounded by the body and by `State`, so of the parser's own limits only the depth is left.
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_events: usize::MAX,
            max_nodes: usize::MAX,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPEATED },
        // Both are handed on, so that the doubled one can be reported.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        // `010` is eight, as in YAML 1.1.
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    let mut state = State::default();
    let mut first = None;
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        first = Some(Node(&mut state).deserialize(deserializer)?);
        Ok(())
    });
    match (read, first) {
        // Of several documents the first counts.
        (Ok(()) | Err(serde_saphyr::Error::MultipleDocuments { .. }), Some(value)) => {
            Ok(Body { value, duplicates: state.duplicates.into_told() })
        }
        (Ok(()), None) => Ok(Body { value: Value::Null, duplicates: Vec::new() }),
        (Err(_), _) if state.unfolded_too_far => Err(TOO_MANY_ALIASES.to_owned()),
        (Err(error), _) => Err(complaint(&error)),
    }
}

const TOO_MANY_ALIASES: &str = "yaml: document contains excessive aliasing";

fn complaint(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    match error.without_snippet() {
        Error::AliasError { error: cause, .. } => complaint(cause),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => TOO_MANY_ALIASES.to_owned(),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => format!("yaml: exceeded max depth of {MAX_DEPTH}"),
        other => format!("yaml: {other}"),
    }
}

/// What is known beyond the values themselves.
#[derive(Default)]
struct State {
    /// Where we are: names of fields, and `None` with the index of a list's item.
    path: Vec<(Option<String>, usize)>,
    duplicates: Findings<String>,
    values: usize,
    text: usize,
    unfolded_too_far: bool,
}

impl State {
    fn count<E: serde::de::Error>(&mut self, text: usize) -> Result<(), E> {
        self.values += 1;
        self.text += text;
        self.unfolded_too_far = self.values > MAX_VALUES || self.text > MAX_TEXT;
        if self.unfolded_too_far { Err(E::custom(TOO_MANY_ALIASES)) } else { Ok(()) }
    }

    fn report_duplicate(&mut self) {
        if self.duplicates.told().len() < MAX_DUPLICATES {
            let place = &self.path;
            self.duplicates.tell_once(|| written(place));
        }
    }
}

fn written(place: &[(Option<String>, usize)]) -> String {
    let mut path = String::new();
    for (name, index) in place {
        match name {
            Some(name) if path.is_empty() => path.push_str(name),
            Some(name) => path.extend([".", name]),
            None => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

/// Reads any value. Recursion is bounded by the parser's own limit on nesting.
struct Node<'a>(&'a mut State);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can express")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.0.count(0)?;
        Ok(Value::Null)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.0.count(0)?;
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.0.count(0)?;
        Ok(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => self.visit_f64(value as f64),
        }
    }

    fn visit_i128<E: serde::de::Error>(self, value: i128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.0.count(0)?;
        reader::number(value).ok_or_else(|| E::custom(format!("json: unsupported value: {value}")))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.0.count(value.len())?;
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        self.0.count(0)?;
        let mut items = Vec::new();
        loop {
            self.0.path.push((None, items.len()));
            let item = list.next_element_seed(Node(self.0))?;
            self.0.path.pop();
            match item {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        self.0.count(0)?;
        let mut map = Map::new();
        while let Some(key) = fields.next_key_seed(Node(self.0))? {
            let key = match key {
                Value::String(text) => text,
                Value::Bool(_) | Value::Number(_) => key.to_string(),
                other => {
                    let kind = super::json_type(&other);
                    return Err(A::Error::custom(format!("unsupported map key of type: {kind}")));
                }
            };
            self.0.path.push((Some(key.clone()), 0));
            if map.contains_key(&key) {
                self.0.report_duplicate();
            }
            let value = fields.next_value_seed(Node(self.0))?;
            self.0.path.pop();
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
