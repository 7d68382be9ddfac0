//! What is asked about.

use std::fmt;
use std::str::FromStr;

use evenkeel_api::names::is_name;

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// All that there is in the namespace.
    Everything,
    /// One KafkaRebalance.
    Rebalance(String),
    /// One Kafka.
    Cluster(String),
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => out.write_str("anything"),
            Self::Rebalance(name) => write!(out, "KafkaRebalance {name}"),
            Self::Cluster(name) => write!(out, "Kafka {name}"),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once('/').unwrap_or(("kafkarebalance", text));
        if !is_name(name) {
            return Err(format!("`{text}` names nothing: write kafkarebalance/NAME or kafka/NAME"));
        }
        match kind.to_ascii_lowercase().as_str() {
            "kafkarebalance" | "kafkarebalances" | "kr" => Ok(Self::Rebalance(name.to_owned())),
            "kafka" | "kafkas" | "k" => Ok(Self::Cluster(name.to_owned())),
            _ => Err(format!("there is no status of a `{kind}`: write kafkarebalance/NAME or kafka/NAME")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_named_as_for_kubectl_and_a_bare_name_is_a_rebalance() {
        for (text, expected) in [
            ("r", Target::Rebalance("r".into())),
            ("kafkarebalance/r", Target::Rebalance("r".into())),
            ("KafkaRebalance/r", Target::Rebalance("r".into())),
            ("kafka/my.cluster-1", Target::Cluster("my.cluster-1".into())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_what_to_write() {
        for wrong in ["", "kafka/", "pod/p", "kafka/a/b", "Großes", "kafka/\u{1b}[2J"] {
            let why = wrong.parse::<Target>().unwrap_err();
            assert!(why.ends_with("write kafkarebalance/NAME or kafka/NAME"), "{why}");
        }
    }
}
