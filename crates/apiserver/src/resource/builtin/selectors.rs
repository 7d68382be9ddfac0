//! Label selectors of built-in objects as text: what `scale` carries and tables show.

use serde_json::Value;

/// A `LabelSelector` object as text, ordered by key: `app=web,tier in (a,b),!old`. Empty for one that selects all.
pub fn selector_text(selector: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut parts: Vec<(String, String)> =
        labels.map(|(key, value)| (key.clone(), format!("{key}={}", text(value)))).collect();
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = expression.get("key").map(text).unwrap_or_default();
        let mut values: Vec<String> =
            expression.get("values").and_then(Value::as_array).into_iter().flatten().map(text).collect();
        values.sort();
        let values = values.join(",");
        let part = match expression.get("operator").and_then(Value::as_str) {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.clone(),
        };
        parts.push((key, part));
    }
    parts.sort();
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_operator_has_its_text() {
        let selector = json!({"matchLabels": {"z": "1", "a": "b"}, "matchExpressions": [
            {"key": "k", "operator": "In", "values": ["y", "x"]}, {"key": "e", "operator": "Exists"},
            {"key": "n", "operator": "NotIn", "values": ["q"]}, {"key": "d", "operator": "DoesNotExist"}]});
        assert_eq!(selector_text(&selector), "a=b,!d,e,k in (x,y),n notin (q),z=1");
        assert_eq!(selector_text(&json!({})), "");
        assert_eq!(selector_text(&Value::Null), "");
    }
}
