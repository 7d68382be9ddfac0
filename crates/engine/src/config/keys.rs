//! Reads typed values out of properties and gathers everything that is wrong with them, so that one
//! look at the answer mends the whole file.

use std::{cell::RefCell, collections::BTreeMap, fmt::Display, ops::RangeInclusive, str::FromStr};

use evenkeel_balancer::goal::Goal;

use super::properties::Properties;

/// Something to be said about a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Which.
    pub key: String,
    /// What.
    pub text: String,
}

impl Display for Remark {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}", self.key, self.text)
    }
}

/// What a key is read as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meaning {
    /// What holds where it is not given, if that is one value.
    pub default: Option<String>,
    /// What it may be, if not any text.
    pub values: Option<String>,
}

/// Properties being read.
pub(super) struct Keys<'a> {
    properties: &'a Properties,
    asked: RefCell<BTreeMap<String, Meaning>>,
    errors: RefCell<Vec<Remark>>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(properties: &'a Properties) -> Self {
        Keys { properties, asked: RefCell::default(), errors: RefCell::default() }
    }

    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.asked.borrow_mut().entry(key.to_owned()).or_default();
        self.properties.get(key)
    }

    /// What stands in the properties, or else the default.
    pub(super) fn text_or(&self, key: &str, default: &'a str) -> &'a str {
        self.note(key, Some(default.to_owned()), None);
        self.text(key).unwrap_or(default)
    }

    fn note(&self, key: &str, default: Option<String>, values: Option<String>) {
        self.asked.borrow_mut().insert(key.to_owned(), Meaning { default, values });
    }

    /// Whether it is given, be it as nothing.
    pub(super) fn is_there(&self, key: &str) -> bool {
        self.properties.keys().any(|given| given == key)
    }

    pub(super) fn wrong(&self, key: &str, text: impl Into<String>) {
        self.errors.borrow_mut().push(Remark { key: key.to_owned(), text: text.into() });
    }

    /// A number within a range, or the default.
    pub(super) fn number<T>(&self, key: &str, default: T, range: RangeInclusive<T>) -> T
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let (least, most) = (range.start(), range.end().to_string());
        // What no one would ever reach is no limit to speak of.
        let values = if most.len() > 15 { format!("{least} and more") } else { format!("{least} to {most}") };
        self.note(key, Some(default.to_string()), Some(values));
        let Some(text) = self.text(key) else { return default };
        match text.parse() {
            Ok(number) if range.contains(&number) => number,
            _ => {
                self.wrong(key, format!("`{text}` is no number from {} to {}", range.start(), range.end()));
                default
            }
        }
    }

    /// A number that may be absent, with `-1` and the like standing for that.
    pub(super) fn maybe<T: FromStr + PartialOrd + Display + Copy>(&self, key: &str, least: T) -> Option<T> {
        self.note(key, None, Some(format!("{least} and more")));
        let text = self.text(key)?;
        match text.parse() {
            Ok(number) if number >= least => Some(number),
            Ok(_) => None,
            Err(_) => {
                self.wrong(key, format!("`{text}` is no number"));
                None
            }
        }
    }

    /// Milliseconds: at least 1.
    pub(super) fn millis(&self, key: &str, default: i64) -> i64 {
        self.number(key, default, 1..=i64::MAX / 4)
    }

    /// As Java reads it: `true` in any case is true, anything else is not.
    pub(super) fn flag(&self, key: &str, default: bool) -> bool {
        self.note(key, Some(default.to_string()), Some("true, false".to_owned()));
        self.text(key).map_or(default, |text| text.eq_ignore_ascii_case("true"))
    }

    /// Goals by name, with or without their package. Those that are not built are left out and named.
    pub(super) fn goals(&self, key: &str, default: &[Goal], unbuilt: &mut Vec<Remark>) -> Vec<Goal> {
        let names: Vec<&str> = default.iter().map(|goal| goal.name()).collect();
        self.note(key, Some(names.join(", ")), Some("names of goals".to_owned()));
        let Some(text) = self.text(key) else { return default.to_vec() };
        let mut goals = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let short = name.rsplit('.').next().unwrap_or(name);
            if LATER.contains(&short) {
                unbuilt.push(Remark { key: key.to_owned(), text: format!("{short} is not built yet and is left out") });
                continue;
            }
            match Goal::from_name(short) {
                Ok(goal) if goals.contains(&goal) => self.wrong(key, format!("{short} is there twice")),
                Ok(goal) => goals.push(goal),
                Err(unknown) => self.wrong(key, unknown.to_string()),
            }
        }
        goals
    }

    /// What was asked for, and what was wrong.
    pub(super) fn into_findings(self) -> (BTreeMap<String, Meaning>, Vec<Remark>) {
        (self.asked.into_inner(), self.errors.into_inner())
    }
}

/// Goals of the original that come later.
const LATER: [&str; 3] =
    ["BrokerSetAwareGoal", "KafkaAssignerDiskUsageDistributionGoal", "KafkaAssignerEvenRackAwareGoal"];
