//! `labelSelector=`: equalities and sets over labels.
//!
//! ```text
//! selector    := [ requirement { "," requirement } ]
//! requirement := key | "!" key | key ("=" | "==" | "!=" | ">" | "<") value | key ("in" | "notin") "(" values ")"
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::names::{label_value, qualified_name};
use crate::refusal::{Fault, FieldError, Refusal};

/// `labelSelector=`. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<LabelRequirement>,
}

/// One term of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRequirement {
    /// The label's key.
    pub key: String,
    /// What is asked of it.
    pub operator: LabelOperator,
    /// What it is compared with, in order; exactly one text for the operators other than the set and existence ones.
    pub values: Vec<String>,
}

/// What is asked of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOperator {
    /// `in`.
    In,
    /// `notin`; holds, too, where the label is absent.
    NotIn,
    /// `=`.
    Equals,
    /// `==`.
    DoubleEquals,
    /// `!=`; holds, too, where the label is absent.
    NotEquals,
    /// `>`, between whole numbers.
    GreaterThan,
    /// `<`, between whole numbers.
    LessThan,
    /// Just the key.
    Exists,
    /// `!` and the key.
    DoesNotExist,
}

impl LabelSelector {
    /// Reads the text of a selector. Terms are ordered by key.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let parser = Parser { tokens: tokens(text), at: 0 };
        let mut requirements = parser.selector().map_err(Refusal::bad_request)?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { requirements })
    }

    /// From a `LabelSelector` object (`matchLabels`, `matchExpressions`), as deployments and disruption budgets carry
    /// it. An empty object selects everything.
    pub fn from_object(object: &Value) -> Result<Self, Refusal> {
        let mut requirements = Vec::new();
        let labels = object.get("matchLabels").and_then(Value::as_object);
        for (key, value) in labels.into_iter().flatten() {
            let values = vec![value.as_str().unwrap_or_default().to_owned()];
            requirements.push(LabelRequirement { key: key.clone(), operator: LabelOperator::Equals, values });
        }
        let expressions = object.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.into_iter().flatten() {
            let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
            let operator = match text("operator") {
                "In" => LabelOperator::In,
                "NotIn" => LabelOperator::NotIn,
                "Exists" => LabelOperator::Exists,
                "DoesNotExist" => LabelOperator::DoesNotExist,
                other => {
                    return Err(Refusal::bad_request(format!("{other:?} is not a valid label selector operator")));
                }
            };
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values: BTreeSet<String> = values.filter_map(|v| v.as_str().map(str::to_owned)).collect();
            let values = values.into_iter().collect();
            requirements.push(LabelRequirement { key: text("key").to_owned(), operator, values });
        }
        for requirement in &requirements {
            requirement.check().map_err(Refusal::bad_request)?;
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { requirements })
    }

    /// The terms; all of them must hold.
    pub fn requirements(&self) -> &[LabelRequirement] {
        &self.requirements
    }

    /// Nothing is asked for.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels.get(&requirement.key)))
    }
}

impl LabelRequirement {
    fn matches(&self, actual: Option<&String>) -> bool {
        match self.operator {
            LabelOperator::Exists => actual.is_some(),
            LabelOperator::DoesNotExist => actual.is_none(),
            LabelOperator::In | LabelOperator::Equals | LabelOperator::DoubleEquals => {
                actual.is_some_and(|actual| self.values.contains(actual))
            }
            LabelOperator::NotIn | LabelOperator::NotEquals => {
                actual.is_none_or(|actual| !self.values.contains(actual))
            }
            LabelOperator::GreaterThan => self.numbers(actual).is_some_and(|(actual, bound)| actual > bound),
            LabelOperator::LessThan => self.numbers(actual).is_some_and(|(actual, bound)| actual < bound),
        }
    }

    /// The label and what it is compared with, if both are numbers.
    fn numbers(&self, actual: Option<&String>) -> Option<(i64, i64)> {
        Some((actual?.parse().ok()?, self.values.first()?.parse().ok()?))
    }

    fn check(&self) -> Result<(), String> {
        let mut errors = Vec::new();
        let complaints = qualified_name(&self.key);
        if !complaints.is_empty() {
            errors.push(invalid("key", &self.key, &complaints));
        }
        let sets = matches!(self.operator, LabelOperator::In | LabelOperator::NotIn);
        let existence = matches!(self.operator, LabelOperator::Exists | LabelOperator::DoesNotExist);
        if sets && self.values.is_empty() {
            let detail = "for 'in', 'notin' operators, values set can't be empty";
            errors.push(FieldError::with_value("values", Fault::Invalid, &Value::Array(Vec::new()), detail));
        }
        if existence && !self.values.is_empty() {
            let detail = "values set must be empty for exists and does not exist";
            errors.push(FieldError::with_value("values", Fault::Invalid, &self.values.clone().into(), detail));
        }
        if matches!(self.operator, LabelOperator::GreaterThan | LabelOperator::LessThan) {
            for (n, value) in self.values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer".to_owned();
                errors.push(invalid(&format!("values[{n}]"), value, &[detail]));
            }
        }
        for (n, value) in self.values.iter().enumerate() {
            let complaints = label_value(value);
            if !complaints.is_empty() {
                errors.push(invalid(&format!("values[{n}][{}]", self.key), value, &complaints));
            }
        }
        match errors.as_slice() {
            [] => Ok(()),
            [one] => Err(one.to_string()),
            many => Err(format!("[{}]", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))),
        }
    }
}

fn invalid(field: &str, value: &str, complaints: &[String]) -> FieldError {
    FieldError::with_value(field, Fault::Invalid, &value.into(), complaints.join("; "))
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, requirement) in self.requirements.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            LabelOperator::In => write!(f, "{key} in ({values})"),
            LabelOperator::NotIn => write!(f, "{key} notin ({values})"),
            LabelOperator::Equals => write!(f, "{key}={values}"),
            LabelOperator::DoubleEquals => write!(f, "{key}=={values}"),
            LabelOperator::NotEquals => write!(f, "{key}!={values}"),
            LabelOperator::GreaterThan => write!(f, "{key}>{values}"),
            LabelOperator::LessThan => write!(f, "{key}<{values}"),
            LabelOperator::Exists => write!(f, "{key}"),
            LabelOperator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

/// A word, an operator, or a punctuation mark; the empty text stands for the end.
fn tokens(text: &str) -> Vec<&str> {
    let special = |b: u8| matches!(b, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<');
    let space = |b: u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at += 1;
        if space(bytes[start]) {
            continue;
        }
        if special(bytes[start]) {
            if matches!(bytes[start], b'=' | b'!') && bytes.get(at) == Some(&b'=') {
                at += 1;
            }
        } else {
            while at < bytes.len() && !special(bytes[at]) && !space(bytes[at]) {
                at += 1;
            }
        }
        // Both ends are ASCII or the ends of the text, so this is on character boundaries.
        tokens.push(&text[start..at]);
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<&'a str>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or_default()
    }

    fn take(&mut self) -> &'a str {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(mut self) -> Result<Vec<LabelRequirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                "" => return Ok(requirements),
                token if token != "!" && !is_word(token) => {
                    return Err(format!("found '{token}', expected: !, identifier, or 'end of string'"));
                }
                _ => {}
            }
            requirements.push(self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?);
            match self.take() {
                "" => return Ok(requirements),
                "," => {
                    let next = self.peek();
                    if next != "!" && !is_word(next) {
                        return Err(format!("found '{next}', expected: identifier after ','"));
                    }
                }
                other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let mut key = self.take();
        let absent = key == "!";
        if absent {
            key = self.take();
        }
        if !is_word(key) {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let complaints = qualified_name(key);
        if !complaints.is_empty() {
            return Err(invalid("", key, &complaints).to_string());
        }
        let (operator, values) = if absent {
            // What follows, if anything, is the caller's surprise, as in the original.
            (LabelOperator::DoesNotExist, Vec::new())
        } else if matches!(self.peek(), "" | ",") {
            (LabelOperator::Exists, Vec::new())
        } else {
            let operator = self.operator()?;
            let values = match operator {
                LabelOperator::In | LabelOperator::NotIn => self.values()?.into_iter().collect(),
                _ => vec![self.value()?],
            };
            (operator, values)
        };
        let requirement = LabelRequirement { key: key.to_owned(), operator, values };
        requirement.check()?;
        Ok(requirement)
    }

    fn operator(&mut self) -> Result<LabelOperator, String> {
        match self.take() {
            "in" => Ok(LabelOperator::In),
            "notin" => Ok(LabelOperator::NotIn),
            "=" => Ok(LabelOperator::Equals),
            "==" => Ok(LabelOperator::DoubleEquals),
            "!=" => Ok(LabelOperator::NotEquals),
            ">" => Ok(LabelOperator::GreaterThan),
            "<" => Ok(LabelOperator::LessThan),
            other => Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        }
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), "" | ",") {
            return Ok(String::new());
        }
        match self.take() {
            word if is_word(word) => Ok(word.to_owned()),
            other => Err(format!("found '{other}', expected: identifier")),
        }
    }

    /// `(a,b)`. Between, before and after lone commas stands the empty text.
    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        match self.take() {
            "(" => {}
            other => return Err(format!("found '{other}' expected: '('")),
        }
        let mut values = BTreeSet::new();
        let first = self.peek();
        if first != ")" && first != "," && !is_word(first) {
            return Err(format!("found '{first}', expected: ',', ')' or identifier"));
        }
        loop {
            match self.peek() {
                word if is_word(word) => {
                    values.insert(self.take().to_owned());
                }
                "," | ")" => {
                    values.insert(String::new());
                }
                other => return Err(format!("found '{other}', expected: ',', or identifier")),
            }
            match self.take() {
                ")" => return Ok(values),
                "," => {}
                other => return Err(format!("found '{other}', expected: ',' or ')'")),
            }
        }
    }
}

/// A key or a value. `in` and `notin` may be either, so it is their place that makes them operators.
fn is_word(token: &str) -> bool {
    !matches!(token, "" | "=" | "==" | "!=" | "!" | "(" | ")" | "," | ">" | "<")
}

#[cfg(test)]
mod tests;
