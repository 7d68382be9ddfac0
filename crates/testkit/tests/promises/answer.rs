//! The answer to one request, and the ways a promise looks at it.

use http::HeaderMap;
use serde_json::Value;

/// Code, headers and body of an answer. Bodies that are no JSON are kept as text.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) request: String,
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    /// The body of a request that was carried out.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!((200..300).contains(&self.code), "{}: {} {}", self.request, self.code, self.text);
        self.body
    }

    /// It was carried out with exactly this code.
    #[track_caller]
    pub(crate) fn code(self, code: u16) -> Self {
        assert_eq!(self.code, code, "{}: {}", self.request, self.text);
        self
    }

    /// It was refused with this code and reason, in the form of a `Status`.
    #[track_caller]
    pub(crate) fn refused(self, code: u16, reason: &str) -> Self {
        let seen = (self.code, self.body["reason"].as_str().unwrap_or_default());
        assert_eq!(seen, (code, reason), "{}: {}", self.request, self.text);
        assert_eq!(self.body["kind"], "Status", "{}", self.text);
        assert_eq!(self.body["apiVersion"], "v1", "{}", self.text);
        assert_eq!(self.body["status"], "Failure", "{}", self.text);
        assert_eq!(self.body["code"], code, "{}", self.text);
        self
    }

    /// The refusal has exactly this text.
    #[track_caller]
    pub(crate) fn says(self, message: &str) -> Self {
        assert_eq!(self.message(), message, "{}", self.request);
        self
    }

    /// The refusal's text contains this.
    #[track_caller]
    pub(crate) fn mentions(self, part: &str) -> Self {
        assert!(self.message().contains(part), "{}: {part:?} is not in {:?}", self.request, self.message());
        self
    }

    /// The refusal has exactly these causes, as (reason, field), in any order. The original repeats some.
    #[track_caller]
    pub(crate) fn causes(self, expected: &[(&str, &str)]) -> Self {
        let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
        let causes = self.body["details"]["causes"].as_array().cloned().unwrap_or_default();
        let mut seen: Vec<_> = causes.iter().map(|c| (text(c, "reason"), text(c, "field"))).collect();
        let mut expected: Vec<_> = expected.iter().map(|(r, f)| ((*r).to_owned(), (*f).to_owned())).collect();
        seen.sort();
        seen.dedup();
        expected.sort();
        assert_eq!(seen, expected, "{}: {}", self.request, self.text);
        self
    }

    /// The refusal is about this object: group, resource or kind, name.
    #[track_caller]
    pub(crate) fn about(self, group: &str, kind: &str, name: &str) -> Self {
        let part = |key: &str| self.body["details"][key].as_str().unwrap_or_default();
        assert_eq!((part("group"), part("kind"), part("name")), (group, kind, name), "{}", self.text);
        self
    }

    /// The texts of the `Warning:` headers, without code and agent.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let text = |warning: &http::HeaderValue| {
            let quoted = warning.to_str().ok()?.strip_prefix("299 - \"")?.strip_suffix('"')?;
            Some(quoted.replace("\\\"", "\"").replace("\\\\", "\\"))
        };
        self.headers.get_all("warning").iter().filter_map(text).collect()
    }

    /// One header, empty when absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }

    /// The refusal's text.
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

/// Names of the items of a list, in order.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

/// `metadata.resourceVersion` of an object or a list.
#[track_caller]
pub(crate) fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().expect("a resourceVersion").to_owned()
}

/// The same as a number: as texts, `100` would come before `99`.
#[track_caller]
pub(crate) fn revision(object: &Value) -> u64 {
    version(object).parse().expect("versions are numbers here")
}
