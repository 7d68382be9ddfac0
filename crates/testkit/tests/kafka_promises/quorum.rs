//! What brokers tell of the controllers behind them, and of what all have agreed on.

use crate::world::{World, eventually};

promises!(
    whoever_is_asked_tells_who_leads_the_controllers_and_who_has_caught_up,
    the_metadata_version_in_force_is_told
);

async fn whoever_is_asked_tells_who_leads_the_controllers_and_who_has_caught_up(world: &World) {
    for broker in world.alive().await {
        let client = world.client_of(broker).await;
        let first = client.describe_quorum().await.expect("an answer");
        let leader = first.leader.expect("a leader");
        assert!(!world.alive().await.contains(&leader.0), "it is no broker: {first:?}");
        let own = |quorum: &evenkeel_kafka::calls::quorum::Quorum| {
            let found = quorum.voters.iter().find(|voter| voter.id == leader).copied().expect("the leader votes");
            (found.log_end.expect("its end is known"), found.caught_up_at.expect("it has caught up with itself"))
        };
        let (end, at) = own(&first);
        // With every change their log goes on, and so does the leader's clock.
        world.topic_with(&format!("of-{broker}"), &[&[0]], &[]).await;
        eventually("it goes on", async || {
            let (later_end, later_at) = own(&client.describe_quorum().await.expect("an answer"));
            (later_end > end && later_at > at).then_some(())
        })
        .await;
    }
}

/// The level: 30 is `4.3-IV0`.
async fn the_metadata_version_in_force_is_told(world: &World) {
    for broker in world.alive().await {
        let features = world.client_of(broker).await.finalized_features().await.expect("an answer");
        assert_eq!(features.get("metadata.version"), Some(&30), "{features:?}");
    }
}
