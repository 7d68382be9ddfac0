//! Topics by name.
//!
//! People bring the patterns they wrote for Cruise Control, which are Java's. Nearly all of them are matched in linear
//! time; those that look around (`(?!important).*`) or refer back can only be matched by trying, and that is bounded by a
//! number of steps, because a pattern may come from anybody who may ask for a plan.

use std::collections::BTreeSet;

use fancy_regex::BytesMode;
use regex::bytes::{Regex, RegexBuilder};

/// Steps that trying may take with one name. Names have 249 characters at most, and honest patterns need a few for each.
const MOST_STEPS: usize = 10_000;

/// Instructions that such a pattern may become. What calls its own groups (`\g<1>`) is written out in full when it is
/// compiled, and would fill all memory.
const MOST_INSTRUCTIONS: usize = 10_000;

/// Bytes that each part of it may take that is matched in linear time: there may be hundreds of them.
const MOST_BYTES: usize = 1 << 20;

/// Topics by name: a pattern that the whole name must match, as with Java's `matches()`.
#[derive(Debug, Clone)]
pub struct TopicPattern {
    whole: Option<Matcher>,
    /// These as well.
    names: BTreeSet<String>,
}

#[derive(Debug, Clone)]
enum Matcher {
    Linear(Regex),
    Trying(fancy_regex::Regex),
}

/// A pattern that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadPattern(String);

impl TopicPattern {
    /// The pattern as people write it.
    pub fn new(pattern: &str) -> Result<TopicPattern, BadPattern> {
        // By itself first, so that what is wrong is said about what was written.
        let whole = match linear(pattern) {
            Ok(_) => Matcher::Linear(whole(pattern, linear).map_err(|error| BadPattern(error.to_string()))?),
            Err(error) if looks_around(&error) => {
                trying(pattern).map_err(|error| BadPattern(error.to_string()))?;
                Matcher::Trying(whole(pattern, trying).map_err(|error| BadPattern(error.to_string()))?)
            }
            Err(error) => return Err(BadPattern(error.to_string())),
        };
        Ok(TopicPattern { whole: Some(whole), names: BTreeSet::new() })
    }

    /// These topics by name, and what `pattern` means.
    pub fn with_names<'a>(pattern: Option<&TopicPattern>, names: impl IntoIterator<Item = &'a str>) -> TopicPattern {
        let mut all = pattern.cloned().unwrap_or(TopicPattern { whole: None, names: BTreeSet::new() });
        all.names.extend(names.into_iter().map(str::to_owned));
        all
    }

    /// Whether it means the topic. One that takes too long to tell is not meant; [`TopicPattern::undecided`] finds those.
    pub fn matches(&self, topic: &str) -> bool {
        self.names.contains(topic) || self.try_matches(topic).unwrap_or(false)
    }

    /// The first of the topics of which it takes too many steps to say whether it is meant.
    pub fn undecided<'t>(&self, topics: impl IntoIterator<Item = &'t str>) -> Option<&'t str> {
        // Nothing else ever gives up.
        let Some(Matcher::Trying(_)) = self.whole else { return None };
        topics.into_iter().find(|topic| self.try_matches(topic).is_none())
    }

    fn try_matches(&self, topic: &str) -> Option<bool> {
        match &self.whole {
            None => Some(false),
            Some(Matcher::Linear(regex)) => Some(regex.is_match(topic.as_bytes())),
            Some(Matcher::Trying(regex)) => regex.is_match(topic).ok(),
        }
    }
}

/// The pattern made to match whole names.
fn whole<R, E>(pattern: &str, compile: impl Fn(&str) -> Result<R, E>) -> Result<R, E> {
    // A comment at the end of a verbose pattern (`(?x)a # why`) takes the rest of its line with it.
    compile(&format!("^(?:{pattern})$")).or_else(|_| compile(&format!("^(?:{pattern}\n)$")))
}

/// Names of topics are ASCII, and so are Java's `\w` and its like. Those of Unicode are a hundred times as large, so that a
/// harmless `\w{1,249}` would be too much; they are there for patterns that cannot do without (`\p{L}`).
fn linear(pattern: &str) -> Result<Regex, regex::Error> {
    let build = |unicode: bool| RegexBuilder::new(pattern).unicode(unicode).build();
    build(false).or_else(|_| build(true))
}

/// The same by trying.
fn trying(pattern: &str) -> Result<fancy_regex::Regex, fancy_regex::Error> {
    let build = |mode: BytesMode| {
        fancy_regex::RegexBuilder::new(pattern)
            .bytes_mode(mode)
            .backtrack_limit(MOST_STEPS)
            .max_prog_size(MOST_INSTRUCTIONS)
            .delegate_size_limit(MOST_BYTES)
            .build()
    };
    build(BytesMode::Ascii).or_else(|_| build(BytesMode::Unicode))
}

/// Whether that is what is wrong with it; everything else is said better by whoever refused it first.
fn looks_around(error: &regex::Error) -> bool {
    let text = error.to_string();
    // The lines before it quote the pattern.
    let what = text.lines().last().unwrap_or_default();
    what.contains("look-around") || what.contains("backreferences")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(pattern: &str, names: &[&str]) -> Vec<bool> {
        let pattern = TopicPattern::new(pattern).unwrap();
        names.iter().map(|name| pattern.matches(name)).collect()
    }

    #[test]
    fn a_pattern_means_the_whole_name_with_every_alternative() {
        assert_eq!(means("a|ab", &["a", "ab", "abc", "ba"]), [true, true, false, false]);
        assert_eq!(means("(?!c)a|ab", &["a", "ab", "abc", "ba"]), [true, true, false, false]);
    }

    #[test]
    fn a_comment_at_the_end_of_a_verbose_pattern_does_no_harm() {
        assert_eq!(means("(?x)a | b c # the old ones", &["a", "bc", "ab", "a "]), [true, true, false, false]);
    }

    #[test]
    fn patterns_may_look_ahead_and_back_as_javas_do() {
        let names = ["important", "important.a", "orders", "orders-dlq", "a.important"];
        assert_eq!(means("^(?!important).*", &names), [false, false, true, true, true]);
        assert_eq!(means(".*(?<!-dlq)", &names), [true, true, true, false, true]);
        assert_eq!(means("^((?!important).)*$", &names), [false, false, true, true, false]);
        assert_eq!(means("(?=.*ord).*dlq", &names), [false, false, false, true, false]);
        assert_eq!(means(r"(o).*\1.*", &["oo", "orders", "orders.o"]), [true, false, true]);
    }

    /// Names have 249 characters at most, and people write that down.
    #[test]
    fn a_long_name_may_be_asked_for_however_it_is_matched() {
        let (long, too_long) = ("a".repeat(249), "a".repeat(250));
        let names = ["x.y", "orders", &long, &too_long];
        assert_eq!(means(r"\w{1,249}", &names), [false, true, true, false]);
        assert_eq!(means(r"(?!x)\w{1,249}", &names), [false, true, true, false]);
        assert_eq!(means(r"(?!x)(?:[\w.-]{1,249}-)?[\w.-]{1,249}", &names), [false, true, true, false]);
        assert_eq!(means(r"[\w.-]{1,249}(?:-[\w.-]{1,249}(?:-[\w.-]{1,249})?)?", &names), [true, true, true, false]);
    }

    #[test]
    fn classes_of_unicode_are_understood() {
        for pattern in [r"\p{L}+", r"(?!b)\p{L}+", "(?u)[a-zà-ü]+", "(?!b)[a-zà-ü]+"] {
            assert_eq!(means(pattern, &["a", "a1"]), [true, false], "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_does_not_parse_is_refused() {
        assert!(TopicPattern::new("(").is_err());
        assert!(TopicPattern::new("(?!a").is_err());
        // Billions of states, however it is matched.
        assert!(TopicPattern::new("(?:(?:a{1000}){1000}){1000}").is_err());
        assert!(TopicPattern::new("(?!b)(?:(?:a{1000}){1000}){1000}").is_err());
        assert!(TopicPattern::new(r"(?!b)(a|b\g<1>\g<1>\g<1>)").is_err());
    }

    #[test]
    fn what_a_pattern_is_about_is_not_what_is_wrong_with_it() {
        for pattern in ["look-around(", "(backreferences"] {
            let refused = TopicPattern::new(pattern).unwrap_err().to_string();
            assert!(refused.starts_with("regex parse error"), "{refused}");
        }
    }

    #[test]
    fn a_pattern_that_would_take_for_ever_is_given_up() {
        let pattern = TopicPattern::new("(?!b)((a*)*)*\\2c").unwrap();
        let long = "a".repeat(249);
        let names = ["b", &long];
        assert_eq!(pattern.undecided(names), Some(names[1]));
        assert!(!pattern.matches(names[1]));
        assert_eq!(TopicPattern::new("^((?!foo).)*$").unwrap().undecided(names), None);
        // Not even asked.
        let untouched = std::iter::from_fn(|| -> Option<&str> { unreachable!("it is matched in linear time") });
        assert_eq!(TopicPattern::new("(a*)*c").unwrap().undecided(untouched), None);
    }

    #[test]
    fn names_are_meant_besides() {
        for pattern in ["b.*", "(?!a).*"] {
            let pattern = TopicPattern::new(pattern).unwrap();
            let both = TopicPattern::with_names(Some(&pattern), ["a.", "a+"]);
            assert!(both.matches("a.") && both.matches("a+") && both.matches("bc") && !both.matches("aa"));
        }
        let names = TopicPattern::with_names(None, ["a"]);
        assert!(names.matches("a") && !names.matches("b"));
    }
}
