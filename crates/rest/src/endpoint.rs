//! The endpoints: names, methods, who may call them, and which of them are served here.
//!
//! The table in [`Endpoint::facts`] is the one place that knows; parsing of paths, the lists in error texts and the
//! documentation come from it.

use std::fmt;

/// The two methods that endpoints have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Reads, or computes a proposal.
    Get,
    /// Changes something, or may.
    Post,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "GET",
            Self::Post => "POST",
        })
    }
}

impl From<Method> for http::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::GET,
            Method::Post => Self::POST,
        }
    }
}

/// The least role that may call an endpoint; a higher one may as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Sees the cluster and the tasks.
    Viewer,
    /// Sees everything, and may ask for proposals.
    User,
    /// May do everything.
    Admin,
}

impl Role {
    /// The name in credentials files and in the answer of `permissions`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "VIEWER",
            Self::User => "USER",
            Self::Admin => "ADMIN",
        }
    }
}

/// Which retention settings the finished tasks of an endpoint follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskClass {
    /// `kafka.monitor`
    KafkaMonitor,
    /// `cruise.control.monitor`
    CruiseControlMonitor,
    /// `kafka.admin`
    KafkaAdmin,
    /// `cruise.control.admin`
    CruiseControlAdmin,
}

/// Everything that is fixed about an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// As it stands in paths.
    pub name: &'static str,
    /// The one method it answers to.
    pub method: Method,
    /// Whether it may answer 202 with progress and the result later.
    pub is_async: bool,
    /// Which retention its finished tasks follow.
    pub class: TaskClass,
    /// Who may call it.
    pub role: Role,
    /// Whether it is served here; the others answer with a text that says so.
    pub served: bool,
}

/// An endpoint of the API. The order is that of the original's lists: GET first, then POST.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the documentation; docs/rest.md describes them")]
pub enum Endpoint {
    Bootstrap,
    Train,
    Load,
    PartitionLoad,
    Proposals,
    State,
    KafkaClusterState,
    UserTasks,
    ReviewBoard,
    Permissions,
    AddBroker,
    RemoveBroker,
    FixOfflineReplicas,
    Rebalance,
    StopProposalExecution,
    PauseSampling,
    ResumeSampling,
    DemoteBroker,
    Admin,
    Review,
    TopicConfiguration,
    Rightsize,
    RemoveDisks,
}

impl Endpoint {
    /// All of them, in the order in which error texts list them.
    pub const ALL: [Self; 23] = [
        Self::Bootstrap,
        Self::Train,
        Self::Load,
        Self::PartitionLoad,
        Self::Proposals,
        Self::State,
        Self::KafkaClusterState,
        Self::UserTasks,
        Self::ReviewBoard,
        Self::Permissions,
        Self::AddBroker,
        Self::RemoveBroker,
        Self::FixOfflineReplicas,
        Self::Rebalance,
        Self::StopProposalExecution,
        Self::PauseSampling,
        Self::ResumeSampling,
        Self::DemoteBroker,
        Self::Admin,
        Self::Review,
        Self::TopicConfiguration,
        Self::Rightsize,
        Self::RemoveDisks,
    ];

    /// What is fixed about it.
    pub fn facts(self) -> Facts {
        use Method::{Get, Post};
        use Role::{Admin, User, Viewer};
        use TaskClass::{CruiseControlAdmin, CruiseControlMonitor, KafkaAdmin, KafkaMonitor};
        let facts = |name, method, is_async, class, role, served| Facts { name, method, is_async, class, role, served };
        match self {
            Self::Bootstrap => facts("bootstrap", Get, false, CruiseControlAdmin, Admin, false),
            Self::Train => facts("train", Get, false, CruiseControlAdmin, Admin, false),
            Self::Load => facts("load", Get, true, KafkaMonitor, User, true),
            Self::PartitionLoad => facts("partition_load", Get, true, KafkaMonitor, User, true),
            Self::Proposals => facts("proposals", Get, true, KafkaMonitor, User, true),
            Self::State => facts("state", Get, true, CruiseControlMonitor, User, true),
            Self::KafkaClusterState => facts("kafka_cluster_state", Get, false, KafkaMonitor, Viewer, true),
            Self::UserTasks => facts("user_tasks", Get, false, CruiseControlMonitor, Viewer, true),
            Self::ReviewBoard => facts("review_board", Get, false, CruiseControlMonitor, Viewer, false),
            Self::Permissions => facts("permissions", Get, false, CruiseControlMonitor, Viewer, true),
            Self::AddBroker => facts("add_broker", Post, true, KafkaAdmin, Admin, true),
            Self::RemoveBroker => facts("remove_broker", Post, true, KafkaAdmin, Admin, true),
            Self::FixOfflineReplicas => facts("fix_offline_replicas", Post, true, KafkaAdmin, Admin, true),
            Self::Rebalance => facts("rebalance", Post, true, KafkaAdmin, Admin, true),
            Self::StopProposalExecution => facts("stop_proposal_execution", Post, false, KafkaAdmin, Admin, true),
            Self::PauseSampling => facts("pause_sampling", Post, false, CruiseControlAdmin, Admin, true),
            Self::ResumeSampling => facts("resume_sampling", Post, false, CruiseControlAdmin, Admin, true),
            Self::DemoteBroker => facts("demote_broker", Post, true, KafkaAdmin, Admin, true),
            Self::Admin => facts("admin", Post, false, CruiseControlAdmin, Admin, true),
            Self::Review => facts("review", Post, false, CruiseControlAdmin, Admin, false),
            Self::TopicConfiguration => facts("topic_configuration", Post, true, KafkaAdmin, Admin, false),
            Self::Rightsize => facts("rightsize", Post, false, KafkaAdmin, Admin, false),
            Self::RemoveDisks => facts("remove_disks", Post, true, KafkaAdmin, Admin, true),
        }
    }

    /// The name in paths, such as `add_broker`.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The one method it answers to.
    pub fn method(self) -> Method {
        self.facts().method
    }

    /// The endpoint that a path means, for this method. `path` is what comes after the prefix. Like the original,
    /// only the last element counts, in any case; the wrong method finds nothing.
    pub fn find(method: Method, path: &str) -> Option<Self> {
        let last = path.rsplit('/').next().unwrap_or(path);
        Self::ALL.into_iter().find(|it| it.method() == method && it.name().eq_ignore_ascii_case(last))
    }

    /// The endpoint of this name, in any case, whatever its method.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(name))
    }

    /// What progress bodies call the operation. That of `partition_load` also names the range asked for.
    pub fn operation(self) -> String {
        match self {
            Self::Rebalance => "Rebalance".to_owned(),
            Self::Proposals => "Get customized proposals".to_owned(),
            Self::AddBroker => "Add brokers".to_owned(),
            Self::RemoveBroker => "Remove brokers".to_owned(),
            Self::FixOfflineReplicas => "Fix offline replicas".to_owned(),
            Self::DemoteBroker => "Demote".to_owned(),
            Self::RemoveDisks => "Remove disks".to_owned(),
            Self::TopicConfiguration => "Update Topic Configuration".to_owned(),
            Self::State => "Get state".to_owned(),
            Self::Load => "Get broker stats".to_owned(),
            Self::PartitionLoad => "Get partition load".to_owned(),
            other => format!("{other} request"),
        }
    }
}

/// In capitals, as in error texts: `ADD_BROKER`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name().to_ascii_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_element_counts_in_any_case() {
        assert_eq!(Endpoint::find(Method::Get, "/STATE"), Some(Endpoint::State));
        assert_eq!(Endpoint::find(Method::Get, "/x/state"), Some(Endpoint::State));
        assert_eq!(Endpoint::find(Method::Get, "state"), Some(Endpoint::State));
        assert_eq!(Endpoint::find(Method::Get, "/"), None);
        assert_eq!(Endpoint::find(Method::Get, "/state/"), None);
    }

    #[test]
    fn the_wrong_method_finds_nothing() {
        assert_eq!(Endpoint::find(Method::Get, "/rebalance"), None);
        assert_eq!(Endpoint::find(Method::Post, "/state"), None);
    }

    #[test]
    fn every_endpoint_is_found_by_its_own_name() {
        for endpoint in Endpoint::ALL {
            assert_eq!(Endpoint::find(endpoint.method(), endpoint.name()), Some(endpoint));
            assert_eq!(Endpoint::named(endpoint.name()), Some(endpoint));
        }
    }

    #[test]
    fn whoever_changes_something_is_an_administrator() {
        for endpoint in Endpoint::ALL.into_iter().filter(|it| it.method() == Method::Post) {
            assert_eq!(endpoint.facts().role, Role::Admin, "{endpoint}");
        }
    }
}
