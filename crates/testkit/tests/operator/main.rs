//! The whole system on the real kube-apiserver: its own controllers, our node that runs pods (simulated brokers and the
//! engine), and the operator with the rights of its service account, which are those in `deploy/operator`.
//!
//! What the operator decides is tested in its own suites, in paused time, and what becomes of KafkaRebalances also by the
//! suite `rebalances_on_a_real_server`. Here it is the other side that counts: that
//! the real server takes every object, also where it is strict about fields, and that no right is missing. Nothing of
//! it may be refused, and every story looks whether something was. Only installing and removing has an embedded arm.
//! In one file nothing is simulated: `real_brokers`. In another the definitions are Strimzi's own: `strimzis_definitions`.

#[cfg(feature = "real-kube")]
mod container;
mod installing;
#[cfg(feature = "real-kube")]
mod node;
#[cfg(feature = "real-kube")]
mod real_brokers;
#[cfg(feature = "real-kube")]
mod refusals;
#[cfg(feature = "real-kube")]
mod scene;
#[cfg(feature = "real-kube")]
mod stories;
#[cfg(feature = "real-kube")]
mod strimzis_definitions;
#[cfg(feature = "real-kube")]
mod world;
