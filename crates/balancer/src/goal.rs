//! The goals by name: which there are, which are hard, what each needs to be known.

use std::fmt;

use crate::cluster::{Resource, Resources};

/// Something a well-balanced cluster satisfies. Names, kinds and order are Cruise Control's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the documentation; each is defined where it is compiled")]
pub enum Goal {
    RackAware,
    RackAwareDistribution,
    MinTopicLeadersPerBroker,
    ReplicaCapacity,
    DiskCapacity,
    NetworkInboundCapacity,
    NetworkOutboundCapacity,
    CpuCapacity,
    ReplicaDistribution,
    PotentialNwOut,
    DiskUsageDistribution,
    NetworkInboundUsageDistribution,
    NetworkOutboundUsageDistribution,
    CpuUsageDistribution,
    TopicReplicaDistribution,
    LeaderReplicaDistribution,
    LeaderBytesInDistribution,
    PreferredLeaderElection,
    IntraBrokerDiskCapacity,
    IntraBrokerDiskUsageDistribution,
}

/// A goal name nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no goal `{name}`; {}", meant(*.nearest))]
pub struct UnknownGoal {
    /// As given.
    pub name: String,
    /// The goal that was likeliest meant, if one comes near.
    pub nearest: Option<Goal>,
}

/// The goal that comes near, or all of them: a guess that shares nothing with what was typed helps nobody.
fn meant(nearest: Option<Goal>) -> String {
    match nearest {
        Some(goal) => format!("did you mean `{goal}`?"),
        None => format!("there are {}", Goal::ALL.map(Goal::name).join(", ")),
    }
}

impl Goal {
    /// Every goal.
    pub const ALL: [Goal; 20] = [
        Goal::RackAware,
        Goal::RackAwareDistribution,
        Goal::MinTopicLeadersPerBroker,
        Goal::ReplicaCapacity,
        Goal::DiskCapacity,
        Goal::NetworkInboundCapacity,
        Goal::NetworkOutboundCapacity,
        Goal::CpuCapacity,
        Goal::ReplicaDistribution,
        Goal::PotentialNwOut,
        Goal::DiskUsageDistribution,
        Goal::NetworkInboundUsageDistribution,
        Goal::NetworkOutboundUsageDistribution,
        Goal::CpuUsageDistribution,
        Goal::TopicReplicaDistribution,
        Goal::LeaderReplicaDistribution,
        Goal::LeaderBytesInDistribution,
        Goal::PreferredLeaderElection,
        Goal::IntraBrokerDiskCapacity,
        Goal::IntraBrokerDiskUsageDistribution,
    ];

    /// The goals of a rebalance that names none, most important first.
    pub const DEFAULT: [Goal; 16] = [
        Goal::RackAware,
        Goal::MinTopicLeadersPerBroker,
        Goal::ReplicaCapacity,
        Goal::DiskCapacity,
        Goal::NetworkInboundCapacity,
        Goal::NetworkOutboundCapacity,
        Goal::CpuCapacity,
        Goal::ReplicaDistribution,
        Goal::PotentialNwOut,
        Goal::DiskUsageDistribution,
        Goal::NetworkInboundUsageDistribution,
        Goal::NetworkOutboundUsageDistribution,
        Goal::CpuUsageDistribution,
        Goal::TopicReplicaDistribution,
        Goal::LeaderReplicaDistribution,
        Goal::LeaderBytesInDistribution,
    ];

    /// The goals of a rebalance inside the brokers.
    pub const INTRA_BROKER: [Goal; 2] = [Goal::IntraBrokerDiskCapacity, Goal::IntraBrokerDiskUsageDistribution];

    /// The simple class name.
    pub fn name(self) -> &'static str {
        match self {
            Goal::RackAware => "RackAwareGoal",
            Goal::RackAwareDistribution => "RackAwareDistributionGoal",
            Goal::MinTopicLeadersPerBroker => "MinTopicLeadersPerBrokerGoal",
            Goal::ReplicaCapacity => "ReplicaCapacityGoal",
            Goal::DiskCapacity => "DiskCapacityGoal",
            Goal::NetworkInboundCapacity => "NetworkInboundCapacityGoal",
            Goal::NetworkOutboundCapacity => "NetworkOutboundCapacityGoal",
            Goal::CpuCapacity => "CpuCapacityGoal",
            Goal::ReplicaDistribution => "ReplicaDistributionGoal",
            Goal::PotentialNwOut => "PotentialNwOutGoal",
            Goal::DiskUsageDistribution => "DiskUsageDistributionGoal",
            Goal::NetworkInboundUsageDistribution => "NetworkInboundUsageDistributionGoal",
            Goal::NetworkOutboundUsageDistribution => "NetworkOutboundUsageDistributionGoal",
            Goal::CpuUsageDistribution => "CpuUsageDistributionGoal",
            Goal::TopicReplicaDistribution => "TopicReplicaDistributionGoal",
            Goal::LeaderReplicaDistribution => "LeaderReplicaDistributionGoal",
            Goal::LeaderBytesInDistribution => "LeaderBytesInDistributionGoal",
            Goal::PreferredLeaderElection => "PreferredLeaderElectionGoal",
            Goal::IntraBrokerDiskCapacity => "IntraBrokerDiskCapacityGoal",
            Goal::IntraBrokerDiskUsageDistribution => "IntraBrokerDiskUsageDistributionGoal",
        }
    }

    /// The goal called `name`: simple or with its package, in any case.
    pub fn from_name(name: &str) -> Result<Goal, UnknownGoal> {
        let simple = name.trim().rsplit('.').next().unwrap_or_default();
        let found = Goal::ALL.into_iter().find(|goal| goal.name().eq_ignore_ascii_case(simple));
        found.ok_or_else(|| {
            // That it is called a goal says nothing of which.
            let typed = simple.to_ascii_lowercase();
            let typed = typed.strip_suffix("goal").unwrap_or(&typed);
            let nearest = nearest(typed, Goal::ALL, |goal| goal.name().trim_end_matches("Goal"));
            UnknownGoal { name: name.trim().to_owned(), nearest }
        })
    }

    /// Whether a plan that leaves it violated is refused.
    pub fn is_hard(self) -> bool {
        matches!(
            self,
            Goal::RackAware
                | Goal::RackAwareDistribution
                | Goal::MinTopicLeadersPerBroker
                | Goal::ReplicaCapacity
                | Goal::DiskCapacity
                | Goal::NetworkInboundCapacity
                | Goal::NetworkOutboundCapacity
                | Goal::CpuCapacity
                | Goal::IntraBrokerDiskCapacity
        )
    }

    /// Whether it moves replicas between the disks of one broker.
    pub fn is_intra_broker(self) -> bool {
        Goal::INTRA_BROKER.contains(&self)
    }

    /// Whether replicas go from broker to broker while it is in force, be it only because they are offline. Electing
    /// preferred leaders copies nothing.
    pub(crate) fn moves_replicas(self) -> bool {
        self != Goal::PreferredLeaderElection && !self.is_intra_broker()
    }

    /// The resource it cannot do without, if any.
    pub fn resource(self) -> Option<Resource> {
        match self {
            Goal::DiskCapacity
            | Goal::DiskUsageDistribution
            | Goal::IntraBrokerDiskCapacity
            | Goal::IntraBrokerDiskUsageDistribution => Some(Resource::Disk),
            Goal::NetworkInboundCapacity | Goal::NetworkInboundUsageDistribution | Goal::LeaderBytesInDistribution => {
                Some(Resource::NwIn)
            }
            Goal::NetworkOutboundCapacity | Goal::NetworkOutboundUsageDistribution | Goal::PotentialNwOut => {
                Some(Resource::NwOut)
            }
            Goal::CpuCapacity | Goal::CpuUsageDistribution => Some(Resource::Cpu),
            _ => None,
        }
    }

    /// Whether it can be judged when `unknown` was not measured.
    pub fn is_measurable(self, unknown: Resources) -> bool {
        !self.resource().is_some_and(|resource| unknown.contains(resource))
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// That of `all` which was likeliest meant by `asked`, going by their names; none if none comes near.
pub fn nearest<T: Copy>(asked: &str, all: impl IntoIterator<Item = T>, name: impl Fn(T) -> &'static str) -> Option<T> {
    let asked = asked.to_ascii_lowercase();
    let name = |one: T| name(one).to_ascii_lowercase();
    // Left-out words are likelier than wrong ones: first whose name has all that was typed, then whose is nearest.
    let likeliest = all.into_iter().min_by_key(|one| {
        let name = name(*one);
        (asked.len() - in_common(&asked, &name), distance(&asked, &name))
    });
    likeliest.filter(|one| is_near(&asked, &name(*one)))
}

/// Whether at least half of what was typed, taken by two letters, is in the name.
fn is_near(typed: &str, name: &str) -> bool {
    let pairs = typed.as_bytes().windows(2);
    let shared = pairs.clone().filter(|pair| name.as_bytes().windows(2).any(|other| other == *pair)).count();
    shared > 0 && 2 * shared >= pairs.len()
}

/// How many letters must be typed, dropped or changed to get from one word to the other.
fn distance(one: &str, other: &str) -> usize {
    let other = other.as_bytes();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

/// How many letters of one word stand in the other, in the same order.
fn in_common(one: &str, other: &str) -> usize {
    let other = other.as_bytes();
    let mut row = vec![0; other.len() + 1];
    for a in one.bytes() {
        let mut diagonal = 0;
        for (j, b) in other.iter().enumerate() {
            let longest = if a == *b { diagonal + 1 } else { row[j + 1].max(row[j]) };
            diagonal = row[j + 1];
            row[j + 1] = longest;
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_found_by_simple_and_by_full_name_in_any_case() {
        for goal in Goal::ALL {
            let full = format!("com.linkedin.kafka.cruisecontrol.analyzer.goals.{}", goal.name());
            assert_eq!(Goal::from_name(&full), Ok(goal));
            assert_eq!(Goal::from_name(&goal.name().to_lowercase()), Ok(goal));
        }
    }

    #[test]
    fn a_misspelt_goal_names_the_nearest() {
        let nearest = |typed: &str| Goal::from_name(typed).unwrap_err().nearest;
        assert_eq!(nearest("DiskUsageDistributonGoal"), Some(Goal::DiskUsageDistribution));
        assert_eq!(nearest("RackAwar"), Some(Goal::RackAware));
        assert_eq!(nearest("RakcAwareGoal"), Some(Goal::RackAware));
    }

    /// Whoever asks, be it a command or a configuration, is told all of them instead of one at random.
    #[test]
    fn a_name_that_comes_near_no_goal_gets_no_guess() {
        for typed in ["", "x", "goal", "foo", "FooGoal", "BananaGoal", "BrokerSetAwareGoal", "ü"] {
            let unknown = Goal::from_name(typed).unwrap_err();
            assert_eq!(unknown.nearest, None, "{typed}");
            let words = format!("there is no goal `{typed}`; there are RackAwareGoal, RackAwareDistributionGoal, ");
            assert!(unknown.to_string().starts_with(&words), "{unknown}");
            assert!(Goal::ALL.iter().all(|goal| unknown.to_string().contains(goal.name())), "{unknown}");
        }
    }

    #[test]
    fn a_goal_with_words_left_out_names_the_one_that_has_the_others() {
        for (typed, meant) in [
            ("DiskUsageGoal", Goal::DiskUsageDistribution),
            ("diskusage", Goal::DiskUsageDistribution),
            ("CpuGoal", Goal::CpuCapacity),
            ("LeaderReplicaGoal", Goal::LeaderReplicaDistribution),
            ("LeaderBytesInGoal", Goal::LeaderBytesInDistribution),
            ("MinTopicLeadersGoal", Goal::MinTopicLeadersPerBroker),
            ("TopicReplicaGoal", Goal::TopicReplicaDistribution),
            ("PreferredLeaderGoal", Goal::PreferredLeaderElection),
        ] {
            assert_eq!(Goal::from_name(typed).unwrap_err().nearest, Some(meant), "{typed}");
        }
    }

    #[test]
    fn letters_in_common_keep_their_order() {
        assert_eq!(in_common("abc", "xaybzc"), 3);
        assert_eq!(in_common("abc", "cba"), 1);
        assert_eq!(in_common("", "cba"), 0);
    }

    #[test]
    fn the_first_seven_defaults_are_the_hard_ones() {
        let hard: Vec<bool> = Goal::DEFAULT.into_iter().map(Goal::is_hard).collect();
        assert_eq!(hard, [vec![true; 7], vec![false; 9]].concat());
    }
}
