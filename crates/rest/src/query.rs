//! A query string as pairs of names and values, decoded once and written the way that clients of the original write it:
//! form-urlencoded, a comma as `%2C`, a blank as `+`.

use std::collections::BTreeSet;

/// The parameters of one request, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Reads the text after the question mark, or a form body. Never fails: what is no escape stays as it is.
    pub fn parse(text: &str) -> Self {
        Self { pairs: form_urlencoded::parse(text.as_bytes()).into_owned().collect() }
    }

    /// The query and then the form body of one request: parameters come from both, the query's first.
    pub fn with_form(mut self, body: &str) -> Self {
        self.pairs.extend(Self::parse(body).pairs);
        self
    }

    /// Adds a parameter at the end.
    pub fn push(&mut self, name: &str, value: impl Into<String>) {
        self.pairs.push((name.to_owned(), value.into()));
    }

    /// The value of a parameter, whatever the case of its name. The first one wins.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Whether a flag is set: only `true`, in any case, is true.
    pub fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The names that `known` does not hold, as they were written, sorted.
    pub fn unknown(&self, known: &[&str]) -> BTreeSet<&str> {
        let names = self.pairs.iter().map(|(name, _)| name.as_str());
        names.filter(|name| !known.iter().any(|it| it.eq_ignore_ascii_case(name))).collect()
    }

    /// What makes two requests the same one to the task that works on it: the same parameters, in any order.
    pub fn canonical(&self) -> BTreeSet<(String, String)> {
        self.pairs.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect()
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// As it stands in a URL, without the question mark.
    pub fn encoded(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.pairs).finish()
    }

    /// As `user_tasks` shows it in `RequestURL`: nothing is escaped.
    pub fn decoded(&self) -> String {
        let pairs: Vec<String> = self.pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("&")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_the_first_one_wins() {
        let query = Query::parse("SubStates=executor&SUBSTATES=monitor&json=TRUE&verbose=yes");
        assert_eq!(query.get("substates"), Some("executor"));
        assert!(query.is_set("json"));
        assert!(!query.is_set("verbose"));
        assert!(!query.is_set("absent"));
    }

    #[test]
    fn values_are_decoded_and_written_as_forms_are() {
        let query = Query::parse("brokerid_and_logdirs=0-%2Fd1%2C1-/d2&reason=why+not%3F");
        assert_eq!(query.get("brokerid_and_logdirs"), Some("0-/d1,1-/d2"));
        assert_eq!(query.get("reason"), Some("why not?"));
        assert_eq!(query.encoded(), "brokerid_and_logdirs=0-%2Fd1%2C1-%2Fd2&reason=why+not%3F");
        assert_eq!(query.decoded(), "brokerid_and_logdirs=0-/d1,1-/d2&reason=why not?");
    }

    #[test]
    fn broken_escapes_stay_as_they_are() {
        assert_eq!(Query::parse("a=%zz&b=%").get("a"), Some("%zz"));
    }

    #[test]
    fn unknown_names_are_sorted_and_as_written() {
        let query = Query::parse("foo=1&Bar=2&JSON=true");
        assert_eq!(query.unknown(&["json"]).into_iter().collect::<Vec<_>>(), ["Bar", "foo"]);
    }

    #[test]
    fn the_order_of_parameters_does_not_make_another_request() {
        assert_eq!(Query::parse("a=1&b=2").canonical(), Query::parse("B=2&a=1").canonical());
        assert_ne!(Query::parse("a=1").canonical(), Query::parse("a=2").canonical());
    }
}
