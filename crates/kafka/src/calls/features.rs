//! What the brokers of a cluster have agreed on.

use std::collections::BTreeMap;

use kafka_protocol::messages::ApiVersionsResponse;

use crate::{
    client::{Call, Client, Effect, To},
    connection,
    error::{Error, Refusal},
};

impl Client {
    /// The levels of the features that are in force, such as `metadata.version`. Brokers before Kafka 2.7 name none.
    pub async fn finalized_features(&self) -> Result<BTreeMap<String, i16>, Error> {
        let call = Call { operation: "read the cluster's features", to: To::Any, effect: Effect::Repeatable };
        let answer = self
            .ask(call, connection::versions_request, |answer: &ApiVersionsResponse| {
                Refusal::check(answer.error_code, None)
            })
            .await?;
        let levels = answer.finalized_features.into_iter();
        Ok(levels.map(|feature| (feature.name.to_string(), feature.max_version_level)).collect())
    }
}
