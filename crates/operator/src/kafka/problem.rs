//! What is wrong with a cluster, and what is worth saying about it.

use std::fmt;

use evenkeel_api::{Condition, Reason, conditions};

/// Whose spec it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The Kafka's.
    Kafka,
    /// A node pool's, by its name.
    Pool(String),
}

/// Something that cannot be. The cluster is left as it is until it is mended.
#[derive(thiserror::Error, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Whose spec is to be mended.
    pub subject: Subject,
    /// The field or annotation, such as `spec.storage.size`.
    pub field: String,
    /// What is wrong with it, and what to do.
    pub text: String,
}

impl Problem {
    /// A problem of the Kafka.
    pub fn of_kafka(field: impl Into<String>, text: impl Into<String>) -> Self {
        Self { subject: Subject::Kafka, field: field.into(), text: text.into() }
    }

    /// A problem of a pool.
    pub fn of_pool(pool: &str, field: impl Into<String>, text: impl Into<String>) -> Self {
        Self { subject: Subject::Pool(pool.to_owned()), field: field.into(), text: text.into() }
    }

    /// The condition of the Kafka that says all of them.
    pub fn condition_of(problems: &[Self]) -> Condition {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Condition::state(conditions::NOT_READY).because(Reason::InvalidResourceException, all.join("; "))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Kafka => write!(f, "{}: {}", self.field, self.text),
            Subject::Pool(name) => write!(f, "node pool {name}, {}: {}", self.field, self.text),
        }
    }
}

/// A warning, and whom it concerns. The Kafka shows all of them, a pool its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Whom it concerns.
    pub subject: Subject,
    /// The warning.
    pub condition: Condition,
}

impl Remark {
    /// A warning about the Kafka.
    pub fn of_kafka(reason: Reason, text: impl Into<String>) -> Self {
        Self { subject: Subject::Kafka, condition: Condition::warning(reason, text) }
    }

    /// A warning about a pool. Its name is put in front.
    pub fn of_pool(pool: &str, reason: Reason, text: impl fmt::Display) -> Self {
        Self {
            subject: Subject::Pool(pool.to_owned()),
            condition: Condition::warning(reason, format!("node pool {pool}, {text}")),
        }
    }
}
