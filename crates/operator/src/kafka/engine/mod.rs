//! The engine's deployment: Cruise Control, ours or another.
//!
//! | file | what |
//! |---|---|
//! | `wanted` | what the Kafka asks for |
//! | `capacity` | `capacity.json`: what brokers can carry |
//! | `goals` | which goals make sense for these capacities |
//! | `misspelt` | goals that nobody knows |
//! | `settings` | `cruisecontrol.properties` |
//! | `users` | the Secret with users and passwords |
//! | `objects` | all of it as objects of Kubernetes |
//!
//! For our image the properties are complete; any other finishes them when it starts, as Strimzi's does.

mod capacity;
mod goals;
mod misspelt;
mod objects;
mod settings;
mod users;
mod wanted;

pub use capacity::{Capacities, capacities};
pub use goals::watched;
pub(super) use objects::passed_over;
pub use objects::{EngineObjects, Facts, objects};
pub use settings::properties;
pub(crate) use settings::{SAMPLER, ZERO_TOUCH};
pub(super) use users::API_USERS;
pub(crate) use users::OPERATOR;
pub use users::{ApiSecret, api_secret, named_users, password};
pub(crate) use wanted::REPORTER;
pub use wanted::Wanted;

/// The engine's port.
pub const PORT: u16 = 9090;
/// Where the engine's ConfigMap is in its container.
pub const CONFIG_PATH: &str = "/opt/cruise-control/custom-config";
/// The key of the settings in its ConfigMap.
pub const PROPERTIES: &str = "cruisecontrol.properties";
/// The key of the capacities in its ConfigMap.
pub const CAPACITY: &str = "capacity.json";
/// Where its users are in its container.
const USERS_PATH: &str = "/opt/cruise-control/api-auth-config";
/// Where its own key and certificate are in its container.
const CERTS_PATH: &str = "/etc/cruise-control/cc-certs";
/// Where the cluster authority's certificate is in its container.
const TRUST_PATH: &str = "/etc/cruise-control/cluster-ca-certs";

#[cfg(test)]
mod tests;
