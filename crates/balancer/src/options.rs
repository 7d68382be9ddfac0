//! What a caller asks for: the operation, the goals, and what must be left alone.

use std::collections::BTreeSet;

use regex::Regex;

use crate::cluster::BrokerId;
use crate::goal::Goal;

/// Topics by name: a pattern that the whole name must match, as with Java's `matches()`.
#[derive(Debug, Clone)]
pub struct TopicPattern {
    whole: Regex,
}

impl TopicPattern {
    /// The pattern as people write it.
    pub fn new(pattern: &str) -> Result<TopicPattern, regex::Error> {
        // By itself first, so that what is wrong is said about what was written.
        Regex::new(pattern)?;
        // A comment at the end of a verbose pattern (`(?x)a # why`) takes the rest of its line with it.
        let whole = Regex::new(&format!("^(?:{pattern})$")).or_else(|_| Regex::new(&format!("^(?:{pattern}\n)$")))?;
        Ok(TopicPattern { whole })
    }

    /// These topics by name, and what `pattern` means.
    pub fn with_names<'a>(pattern: Option<&TopicPattern>, names: impl IntoIterator<Item = &'a str>) -> TopicPattern {
        let names: Vec<String> = names.into_iter().map(regex::escape).collect();
        let mut whole = format!("^(?:{})$", names.join("|"));
        if let Some(pattern) = pattern {
            whole = format!("{}|{whole}", pattern.whole.as_str());
        }
        // Both halves were patterns before, and flags do not reach beyond their group.
        TopicPattern { whole: Regex::new(&whole).expect("two patterns make a pattern") }
    }

    /// Whether it means the topic.
    pub fn matches(&self, topic: &str) -> bool {
        self.whole.is_match(topic)
    }
}

/// What is to be done to the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Operation {
    /// Bring every goal as far as it goes.
    #[default]
    Rebalance,
    /// Move data onto these brokers, and only onto them.
    AddBrokers(BTreeSet<BrokerId>),
    /// Empty these brokers.
    RemoveBrokers(BTreeSet<BrokerId>),
    /// Take leadership away from these brokers.
    DemoteBrokers(BTreeSet<BrokerId>),
    /// Move replicas off dead brokers and dead disks.
    FixOfflineReplicas,
    /// Empty these log directories within their brokers.
    RemoveDisks(BTreeSet<(BrokerId, String)>),
    /// Balance the disks of each broker among themselves.
    RebalanceDisks,
}

/// At most so much may a plan move.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// Data copied between brokers and between disks, in MB.
    pub megabytes: Option<f64>,
    /// Partitions changed.
    pub moves: Option<usize>,
}

/// How demotion treats the partitions it finds; unless told otherwise it leaves both kinds alone, as Cruise Control does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demotion {
    /// Leaves partitions with offline replicas alone (`skip_urp_demotion`).
    pub skip_under_replicated: bool,
    /// Leaves partitions alone where the broker only follows (`exclude_follower_demotion`).
    pub exclude_followers: bool,
}

impl Default for Demotion {
    fn default() -> Self {
        Demotion { skip_under_replicated: true, exclude_followers: true }
    }
}

/// A whole request.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What is to be done.
    pub operation: Operation,
    /// Most important first; empty means the operation's own list.
    pub goals: Vec<Goal>,
    /// If not empty, replicas move only onto these brokers.
    pub destinations: BTreeSet<BrokerId>,
    /// Topics whose replicas and leaders stay where they are.
    pub excluded_topics: Option<TopicPattern>,
    /// Brokers that get no new leaders.
    pub excluded_for_leadership: BTreeSet<BrokerId>,
    /// Brokers that get no replicas, unless they are named as destinations.
    pub excluded_for_replica_moves: BTreeSet<BrokerId>,
    /// Moves only replicas that are not where they belong already (offline ones).
    pub only_immigrants: bool,
    /// Whether the goal violation detector asks: bands are then as wide as those it watches, wider than for people by
    /// [`Settings::distribution_threshold_multiplier`](crate::settings::Settings::distribution_threshold_multiplier).
    pub triggered_by_violation: bool,
    /// At most so much.
    pub budget: Budget,
    /// How demotion treats what it finds.
    pub demotion: Demotion,
    /// How many threads may work; the answer does not depend on it.
    pub threads: usize,
}

impl Request {
    /// A rebalance by `goals` with nothing excluded.
    pub fn rebalance(goals: &[Goal]) -> Self {
        Request { goals: goals.to_vec(), ..Request::default() }
    }

    /// The goals in force: the caller's, or the operation's own.
    pub(crate) fn goals_in_force(&self) -> Vec<Goal> {
        if !self.goals.is_empty() {
            return self.goals.clone();
        }
        match self.operation {
            Operation::DemoteBrokers(_) => vec![Goal::PreferredLeaderElection],
            Operation::RemoveDisks(_) => vec![Goal::IntraBrokerDiskCapacity],
            Operation::RebalanceDisks => Goal::INTRA_BROKER.to_vec(),
            _ => Goal::DEFAULT.to_vec(),
        }
    }

    /// Whether what is offline moves, if these goals are in force: electing leaders and tidying disks copies nothing from
    /// broker to broker, unless that is what the operation is for.
    pub(crate) fn evacuates(&self, goals: &[Goal]) -> bool {
        match self.operation {
            Operation::DemoteBrokers(_) | Operation::RemoveDisks(_) | Operation::RebalanceDisks => false,
            Operation::RemoveBrokers(_) | Operation::FixOfflineReplicas => true,
            Operation::Rebalance | Operation::AddBrokers(_) => goals.iter().any(|goal| goal.moves_replicas()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Demotion, TopicPattern};

    #[test]
    fn demotion_leaves_followers_and_partitions_in_trouble_alone_unless_told_otherwise() {
        assert_eq!(Demotion::default(), Demotion { skip_under_replicated: true, exclude_followers: true });
    }

    #[test]
    fn a_pattern_means_the_whole_name_with_every_alternative() {
        let pattern = TopicPattern::new("a|ab").unwrap();
        assert!(pattern.matches("a") && pattern.matches("ab"));
        assert!(!pattern.matches("abc") && !pattern.matches("ba"));
    }

    #[test]
    fn a_comment_at_the_end_of_a_verbose_pattern_does_no_harm() {
        let pattern = TopicPattern::new("(?x)a | b c # the old ones").unwrap();
        assert!(pattern.matches("a") && pattern.matches("bc"));
        assert!(!pattern.matches("ab") && !pattern.matches("a "));
    }

    #[test]
    fn a_pattern_that_does_not_parse_is_refused() {
        assert!(TopicPattern::new("(").is_err());
    }
}
