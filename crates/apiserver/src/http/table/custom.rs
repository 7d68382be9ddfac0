//! Columns and cells of custom resources, from their definition's `additionalPrinterColumns`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::human_age;
use super::path::JsonPath;
use crate::resource::Column;

/// The original's words for `metadata.creationTimestamp`, as it stands in tables.
const AGE_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was \
    created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set \
    this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for \
    lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The columns of one version of a custom resource, with their paths taken apart.
#[derive(Debug)]
pub struct CustomColumns(Vec<(Column, Option<JsonPath>)>);

impl CustomColumns {
    /// From the definition; without columns of its own a resource shows its age.
    pub fn new(columns: &[Column]) -> Self {
        let with_path = |column: &Column| (column.clone(), JsonPath::parse(&column.json_path));
        if columns.is_empty() {
            return Self(vec![with_path(&age())]);
        }
        Self(columns.iter().map(with_path).collect())
    }

    /// The columns after the name.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        self.0.iter().map(|(column, _)| column)
    }

    /// The cells after the name.
    pub fn cells<'a>(&'a self, object: &'a Value, now: Timestamp) -> impl Iterator<Item = Value> + 'a {
        self.0.iter().map(move |(column, path)| {
            let found = path.as_ref().and_then(|path| path.first(object));
            found.map_or(Value::Null, |value| cell(&column.ty, value, now))
        })
    }
}

fn age() -> Column {
    Column {
        name: "Age".into(),
        ty: "date".into(),
        format: String::new(),
        description: AGE_DESCRIPTION.into(),
        priority: 0,
        json_path: ".metadata.creationTimestamp".into(),
    }
}

/// A value as its column's type shows it; nothing where the two do not fit.
fn cell(ty: &str, value: &Value, now: Timestamp) -> Value {
    match (ty, value) {
        ("string", Value::String(_)) => value.clone(),
        ("string", Value::Null) => Value::Null,
        ("string", other) => Value::String(other.to_string()),
        ("integer", Value::Number(n)) => match (n.as_i64(), n.as_f64()) {
            (Some(whole), _) => json!(whole),
            // The original cuts fractions off.
            #[expect(clippy::cast_possible_truncation, reason = "cutting off is what is wanted")]
            (None, Some(number)) => json!(number as i64),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(then) => Value::String(human_age(now, then)),
            Err(_) => json!("<invalid>"),
        },
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(ty: &str, json_path: &str) -> Column {
        Column { ty: ty.into(), json_path: json_path.into(), ..age() }
    }

    fn cells(columns: &[Column], object: &Value) -> Vec<Value> {
        let now = "2026-01-01T01:00:00Z".parse().expect("a time");
        CustomColumns::new(columns).cells(object, now).collect()
    }

    #[test]
    fn values_appear_as_their_columns_type_or_not_at_all() {
        let object = json!({"n": 3, "f": 2.7, "t": "x", "b": true, "list": [1, 2], "when": "2026-01-01T00:00:00Z", "no": "never"});
        let cases = [
            (column("string", ".n"), json!("3")),
            (column("string", ".list"), json!("[1,2]")),
            (column("integer", ".n"), json!(3)),
            (column("integer", ".f"), json!(2)),
            (column("integer", ".t"), Value::Null),
            (column("boolean", ".b"), json!(true)),
            (column("date", ".when"), json!("60m")),
            (column("date", ".no"), json!("<invalid>")),
            (column("string", ".missing"), Value::Null),
            (column("string", ".broken["), Value::Null),
        ];
        for (column, expected) in cases {
            assert_eq!(cells(std::slice::from_ref(&column), &object), [expected], "{column:?}");
        }
    }

    #[test]
    fn a_resource_without_columns_shows_its_age() {
        let object = json!({"metadata": {"creationTimestamp": "2026-01-01T00:59:30Z"}});
        assert_eq!(cells(&[], &object), [json!("30s")]);
    }
}
