//! The stories of KafkaRebalances that `crates/operator/tests/rebalance` tells in paused time, told on the real
//! kube-apiserver: the same words, and the same controller, engine and simulated brokers, while time really passes. One
//! is left out, because it takes ten minutes: see `suite.rs`.

#![cfg(feature = "real-kube")]
#![allow(unreachable_pub, reason = "a test binary has no outside")]

#[path = "../../../operator/tests/rebalance/authority.rs"]
mod authority;
#[path = "../../../operator/tests/rebalance/cluster.rs"]
#[allow(dead_code, reason = "nobody dies here, and nobody else moves anything")]
mod cluster;
#[path = "../../../operator/tests/rebalance/deletion.rs"]
mod deletion;
#[path = "../../../operator/tests/rebalance/foreign.rs"]
mod foreign;
#[path = "../../../operator/tests/rebalance/misbehaviour.rs"]
#[allow(dead_code, reason = "what takes ten minutes is told in paused time only")]
mod misbehaviour;
#[path = "../../../operator/tests/rebalance/moves.rs"]
mod moves;
#[path = "../../../operator/tests/clusters/rights.rs"]
mod rights;
#[path = "../../../operator/tests/rebalance/seams.rs"]
#[allow(dead_code, reason = "nobody dies here, and the weather is good")]
mod seams;
#[path = "../../../operator/tests/rebalance/slow.rs"]
mod slow;
#[path = "../../../operator/tests/rebalance/stage.rs"]
#[allow(dead_code, reason = "of its arms only one is here")]
mod stage;
#[path = "../../../operator/tests/rebalance/stories.rs"]
mod stories;
#[path = "../../../operator/tests/rebalance/suite.rs"]
mod suite;
#[path = "../../../operator/tests/rebalance/trouble.rs"]
mod trouble;

mod arm {
    use evenkeel_api::crds;
    use evenkeel_testkit::real_kube::ControlPlane;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::api::PostParams;
    use kube::{Api, Client};
    use tokio::sync::OnceCell;

    use crate::stage::Stage;

    /// A namespace for this story, on the server that all of them share.
    pub async fn real(story: &str) -> Stage {
        static KINDS: OnceCell<()> = OnceCell::const_new();
        let client = ControlPlane::shared().await.expect("the real control plane").client().await.expect("a client");
        KINDS.get_or_init(|| learn(client.clone())).await;
        let namespace: String = story.replace('_', "-").chars().take(60).collect();
        Stage::elsewhere(client, namespace.trim_end_matches('-')).await
    }

    /// Teaches the server our kinds.
    async fn learn(client: Client) {
        let api = Api::<CustomResourceDefinition>::all(client);
        for crd in crds() {
            api.create(&PostParams::default(), &crd).await.expect("a kind of ours");
        }
        for crd in crds() {
            let name = crd.metadata.name.expect("a name");
            loop {
                let found = api.get(&name).await.expect("what was just made");
                let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
                if conditions.iter().any(|it| it.type_ == "Established" && it.status == "True") {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

mod real_arm {
    crate::suite::suite!([#[tokio::test]] real);
    crate::suite::suite!(@sockets [#[tokio::test]] real);
}
