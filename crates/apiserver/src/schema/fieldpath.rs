//! Paths written in a CRD (`.spec.mode`, `.labels['a.b']`), looked up in its schema.

use std::iter::Peekable;
use std::str::Chars;

use crate::schema::Schema;

/// Why a path leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldPathError {
    /// A name that the schema does not have.
    #[error("does not refer to a valid field")]
    NoSuchField,
    /// Brackets where only names are allowed.
    #[error("array notation is not allowed")]
    Brackets,
    /// Ends in the middle.
    #[error("unexpected end of JSON path")]
    Unfinished,
    /// Not a path.
    #[error("{0}")]
    Malformed(String),
}

/// The schema that a path leads to, and the path as errors write it (`spec.mode`, `labels[a.b]`).
pub fn resolve_path<'a>(
    schema: &'a Schema,
    path: &str,
    allow_brackets: bool,
) -> Result<(&'a Schema, String), FieldPathError> {
    let mut at = schema;
    let mut written = String::new();
    let mut chars = path.chars().peekable();
    while let Some(first) = chars.next() {
        let name = match first {
            '.' => name(&mut chars)?,
            '[' if !allow_brackets => return Err(FieldPathError::Brackets),
            '[' => quoted_key(&mut chars)?,
            other => return Err(FieldPathError::Malformed(format!("expected [ or . but got: {other}{}", rest(chars)))),
        };
        if at.properties.is_empty() {
            at = at.additional.as_deref().ok_or(FieldPathError::NoSuchField)?;
            written.push_str(&format!("[{name}]"));
        } else {
            at = at.properties.get(&name).ok_or(FieldPathError::NoSuchField)?;
            if !written.is_empty() {
                written.push('.');
            }
            written.push_str(&name);
        }
    }
    Ok((at, written))
}

fn rest(chars: Peekable<Chars<'_>>) -> String {
    chars.take_while(|c| !".[]".contains(*c)).collect()
}

fn name(chars: &mut Peekable<Chars<'_>>) -> Result<String, FieldPathError> {
    let mut name = String::new();
    while let Some(c) = chars.next_if(|c| !".[]".contains(*c)) {
        name.push(c);
    }
    if name.is_empty() { Err(FieldPathError::Unfinished) } else { Ok(name) }
}

fn quoted_key(chars: &mut Peekable<Chars<'_>>) -> Result<String, FieldPathError> {
    if chars.next_if_eq(&'\'').is_none() {
        let got = rest(chars.clone());
        return Err(FieldPathError::Malformed(format!("expected single quoted string but got {got}")));
    }
    let mut key = String::new();
    loop {
        match chars.next().ok_or(FieldPathError::Unfinished)? {
            '\'' => break,
            '\\' => key.push(match chars.next().ok_or(FieldPathError::Unfinished)? {
                'a' => '\x07',
                'b' => '\x08',
                'f' => '\x0c',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\x0b',
                c @ ('\'' | '\\') => c,
                c => {
                    let why = format!("invalid string literal: invalid escape char \\{c}");
                    return Err(FieldPathError::Malformed(why));
                }
            }),
            c => key.push(c),
        }
    }
    match chars.next() {
        Some(']') => Ok(key),
        Some(c) => Err(FieldPathError::Malformed(format!("expected ] but got {c}"))),
        None => Err(FieldPathError::Unfinished),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_follow_the_schema() {
        let schema = Schema::parse(
            &json!({"type": "object", "properties": {"a": {"type": "object", "properties": {
                "b.c": {"type": "string"}, "m": {"type": "object", "additionalProperties": {"type": "integer"}}}}}}),
            "s",
        )
        .expect("valid");
        let written = |path: &str| resolve_path(&schema, path, true).map(|(_, written)| written);
        assert_eq!(written(".a['b.c']").as_deref(), Ok("a.b.c"));
        assert_eq!(written(".a.m['k']").as_deref(), Ok("a.m[k]"));
        assert_eq!(written(".a.x"), Err(FieldPathError::NoSuchField));
        assert_eq!(written(".a."), Err(FieldPathError::Unfinished));
        assert_eq!(written("a"), Err(FieldPathError::Malformed("expected [ or . but got: a".into())));
        assert_eq!(written(".a['m"), Err(FieldPathError::Unfinished));
        assert_eq!(resolve_path(&schema, ".a['m']", false).map(|r| r.1), Err(FieldPathError::Brackets));
    }
}
