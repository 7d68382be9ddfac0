//! The cluster and its brokers.

use std::sync::atomic::{AtomicBool, Ordering};

use kafka_protocol::messages::{self, DescribeClusterRequest, UnregisterBrokerRequest};

use crate::{
    client::{Call, Client, Effect, To},
    error::{Error, Refusal},
    types::{BrokerId, message},
};

/// What the cluster is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The cluster's own id.
    pub id: String,
    /// A broker that passes changes on to the controller.
    pub controller: Option<BrokerId>,
    /// The registered brokers, in order of their ids.
    pub brokers: Vec<Broker>,
    /// Whether the fenced ones are among them: brokers before Kafka 4.0 do not name those, so that a broker that is not
    /// listed may well be registered.
    pub names_fenced: bool,
}

/// One registered broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    /// Its number.
    pub id: BrokerId,
    /// Where it listens; empty for one that is fenced and has no such listener.
    pub host: String,
    /// Where it listens.
    pub port: i32,
    /// Where it stands.
    pub rack: Option<String>,
    /// Registered and not alive, as the controller sees it. Brokers before Kafka 4.0 do not name
    /// those at all.
    pub fenced: bool,
}

impl Client {
    /// The brokers with their racks, the fenced ones too.
    pub async fn describe_cluster(&self) -> Result<Cluster, Error> {
        let call = Call { operation: "describe the cluster", to: To::Any, effect: Effect::Repeatable };
        // Which version was spoken last, and so by whoever answered.
        let names_fenced = AtomicBool::new(false);
        let request = |version| {
            names_fenced.store(version >= 2, Ordering::Relaxed);
            DescribeClusterRequest::default().with_include_fenced_brokers(version >= 2)
        };
        let answer = self
            .ask(call, request, |answer: &messages::DescribeClusterResponse| {
                Refusal::check(answer.error_code, message(answer.error_message.clone()))
            })
            .await?;
        let mut brokers: Vec<Broker> = answer
            .brokers
            .into_iter()
            .map(|broker| Broker {
                id: BrokerId(broker.broker_id.0),
                host: broker.host.to_string(),
                port: broker.port,
                rack: message(broker.rack),
                fenced: broker.is_fenced,
            })
            .collect();
        brokers.sort_by_key(|broker| broker.id);
        Ok(Cluster {
            id: answer.cluster_id.to_string(),
            controller: BrokerId::of(answer.controller_id),
            brokers,
            names_fenced: names_fenced.into_inner(),
        })
    }

    /// Strikes a broker off the cluster's list. Kafka checks nothing: not whether it is alive, not
    /// whether it holds data. The caller must have.
    pub async fn unregister_broker(&self, broker: BrokerId) -> Result<(), Error> {
        let call = Call { operation: "unregister a broker", to: To::Controller, effect: Effect::Once };
        let request = |_| UnregisterBrokerRequest::default().with_broker_id(messages::BrokerId(broker.0));
        self.ask(call, request, |answer: &messages::UnregisterBrokerResponse| {
            Refusal::check(answer.error_code, message(answer.error_message.clone()))
        })
        .await?;
        Ok(())
    }
}
