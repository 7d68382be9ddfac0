//! Requests as types: one struct per endpoint, read from a query and written into one.
//!
//! The structs are declared in the modules below, with names, kinds, defaults and help of their parameters; what cannot go
//! together is said beside them. [`Request`] joins them.

mod control;
mod groups;
mod optimization;
mod reading;
#[cfg(test)]
mod tests;

pub use control::{Admin, PauseSampling, ResumeSampling, StopProposalExecution};
pub use groups::{Detail, Execution, GoalOptions, Optimization, Pace, Run, STRATEGIES};
pub use optimization::{
    AddBroker, DemoteBroker, FixOfflineReplicas, Proposals, Rebalance, RemoveBroker, RemoveDisks, Scope,
};
pub use reading::{KafkaClusterState, Load, PartitionLoad, Permissions, State, UserTasks};

use crate::endpoint::{Endpoint, Method};
use crate::parameter::{Parameter, Parameters, Unfit};
use crate::query::Query;
use crate::refusal::Refusal;

/// Requests whose parameters may contradict each other.
pub(crate) trait Consistent {
    /// The first contradiction, in the original's words.
    fn contradiction(&self) -> Option<String> {
        None
    }
}

/// How the answer shall look; every endpoint takes these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presentation {
    /// JSON instead of text.
    pub json: bool,
    /// With JSON: describe its shape in a header.
    pub schema: bool,
    /// On whose behalf a trusted proxy asks; accepted and not used here.
    pub do_as: Option<String>,
}

impl Presentation {
    const NAMES: [&str; 3] = ["json", "get_response_schema", "doAs"];

    /// What the query says about it. Cannot fail, so that an error can be presented as asked for.
    pub fn of(query: &Query) -> Self {
        Self {
            json: query.is_set(Self::NAMES[0]),
            schema: query.is_set(Self::NAMES[1]),
            do_as: query.get(Self::NAMES[2]).map(str::to_owned),
        }
    }

    /// For the documentation.
    pub fn parameters() -> Vec<Parameter> {
        let flag = |name, help| Parameter { name, kind: "flag", default: "false".to_owned(), help };
        vec![
            flag(Self::NAMES[0], "JSON instead of text."),
            flag(Self::NAMES[1], "With `json`: the header `Cruise-Control-JSON-Schema` describes the body."),
            Parameter { name: Self::NAMES[2], kind: "text", default: String::new(), help: "Accepted, without effect." },
        ]
    }
}

/// Declares [`Request`] from the endpoints that are served.
macro_rules! requests {
    ($($endpoint:ident),+ $(,)?) => {
        /// A request that can be carried out: every value is what it should be, and none contradicts another.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "each variant is documented at its struct")]
        #[allow(clippy::large_enum_variant, reason = "one request at a time; boxing would only hide its fields")]
        pub enum Request { $($endpoint($endpoint)),+ }

        $(impl From<$endpoint> for Request {
            fn from(request: $endpoint) -> Self {
                Self::$endpoint(request)
            }
        })+

        impl Request {
            /// The endpoint that it goes to.
            pub fn endpoint(&self) -> Endpoint {
                match self { $(Self::$endpoint(_) => Endpoint::$endpoint),+ }
            }

            /// The parameters of an endpoint, for the documentation. Empty for one that is not served.
            pub fn parameters(endpoint: Endpoint) -> Vec<Parameter> {
                let mut list = Vec::new();
                match endpoint {
                    $(Endpoint::$endpoint => <$endpoint as Parameters>::list(&mut list),)+
                    _ => {}
                }
                list
            }

            fn read(endpoint: Endpoint, query: &Query) -> Option<Result<Self, Unfit>> {
                match endpoint {
                    $(Endpoint::$endpoint => Some(<$endpoint as Parameters>::read(query).map(Self::$endpoint)),)+
                    _ => None,
                }
            }

            fn write(&self, into: &mut Query) {
                match self { $(Self::$endpoint(request) => request.write(into)),+ }
            }

            /// What in it cannot go together, in the original's words; nothing for a request that was parsed.
            pub fn contradiction(&self) -> Option<String> {
                match self { $(Self::$endpoint(request) => request.contradiction()),+ }
            }
        }
    };
}

requests! {
    Load, PartitionLoad, Proposals, State, KafkaClusterState, UserTasks, Permissions,
    AddBroker, RemoveBroker, FixOfflineReplicas, Rebalance, StopProposalExecution, PauseSampling, ResumeSampling,
    DemoteBroker, Admin, RemoveDisks,
}

impl Request {
    /// Reads a request. `path` is what comes after the prefix, with its slash, as error texts show it.
    pub fn parse(method: Method, path: &str, query: &Query) -> Result<Self, Refusal> {
        let endpoint = Endpoint::find(method, path).ok_or_else(|| Refusal::unknown_endpoint(method, path))?;
        if !endpoint.facts().served {
            return Err(Refusal::not_served(endpoint, path));
        }
        let parameters = Self::parameters(endpoint);
        let known: Vec<&str> = parameters.iter().map(|it| it.name).chain(Presentation::NAMES).collect();
        let unknown = query.unknown(&known);
        if !unknown.is_empty() {
            return Err(Refusal::unknown_parameters(endpoint, unknown));
        }
        if query.get("review_id").is_some() {
            return Err(Refusal::bad_parameter(
                "review_id parameter is not relevant when two-step verification is disabled.",
            ));
        }
        let request = Self::read(endpoint, query)
            .ok_or_else(|| Refusal::not_served(endpoint, path))?
            .map_err(|unfit| Refusal::bad_parameter(unfit.to_string()))?;
        match request.contradiction() {
            Some(text) => Err(Refusal::bad_parameter(text)),
            None => Ok(request),
        }
    }

    /// As a query, without saying how the answer shall look. Parameters that have their default are left out.
    pub fn query(&self) -> Query {
        let mut query = Query::default();
        self.write(&mut query);
        query
    }

    /// What a request that came at this time, in milliseconds since 1970, is called where its progress is told.
    pub fn operation(&self, at: i64) -> String {
        match self {
            Self::PartitionLoad(it) => {
                let (start, end) = (it.start.unwrap_or(-1), it.end.unwrap_or(at));
                format!("{} from {start} to {end}", Endpoint::PartitionLoad.operation())
            }
            _ => self.endpoint().operation(),
        }
    }

    /// What concerns carrying out, for requests that can be carried out.
    pub fn run(&self) -> Option<&Run> {
        match self {
            Self::AddBroker(it) => Some(&it.execution.run),
            Self::RemoveBroker(it) => Some(&it.execution.run),
            Self::FixOfflineReplicas(it) => Some(&it.execution.run),
            Self::Rebalance(it) => Some(&it.execution.run),
            Self::DemoteBroker(it) => Some(&it.run),
            Self::RemoveDisks(it) => Some(&it.run),
            _ => None,
        }
    }

    /// Whether it changes where replicas lie or who leads.
    pub fn executes(&self) -> bool {
        self.run().is_some_and(|run| !run.dryrun)
    }

    /// Why somebody asks.
    pub fn reason(&self) -> Option<&str> {
        let reason = match self {
            Self::Load(it) => &it.reason,
            Self::PartitionLoad(it) => &it.reason,
            Self::Proposals(it) => &it.reason,
            Self::State(it) => &it.reason,
            Self::KafkaClusterState(it) => &it.reason,
            Self::UserTasks(it) => &it.reason,
            Self::Permissions(it) => &it.reason,
            Self::StopProposalExecution(it) => &it.reason,
            Self::PauseSampling(it) => &it.reason,
            Self::ResumeSampling(it) => &it.reason,
            Self::Admin(it) => &it.reason,
            _ => return self.run().and_then(|run| run.reason.as_deref()),
        };
        reason.as_deref()
    }
}
