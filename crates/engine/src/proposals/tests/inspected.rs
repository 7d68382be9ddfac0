//! What the second pair of eyes finds fault with goes no further.

use evenkeel_balancer::{
    cluster::{BrokerId, Cluster},
    plan::Plan,
};

use super::scene::Scene;
use crate::{
    model,
    proposals::{Proposal, proposal::inspected},
};

/// The plan that empties broker 0, and the cluster that it is for.
fn planned() -> (Proposal, Cluster) {
    let scene = Scene::draw("b0 a: t0*\nb1 b: t0\nb2 c: u0*");
    let url = "remove_broker?brokerid=0&goals=ReplicaDistributionGoal&skip_hard_goal_check=true";
    let (proposal, known) = (scene.propose(url).unwrap(), scene.known());
    let weights = scene.settings.monitor.cpu_weights;
    let cluster =
        model::build(&known.sighting.view, &known.loads, &scene.capacities, weights, &proposal.ask.purpose).unwrap();
    (proposal, cluster)
}

#[test]
fn a_plan_that_doubles_a_replica_is_refused_before_anybody_sees_it() {
    let (proposal, cluster) = planned();
    let refusal = |plan: &Plan| inspected(&cluster, &proposal.ask.request, plan).map_err(|failure| failure.to_string());
    let mut plan = proposal.outcome.plan;
    assert_eq!(refusal(&plan), Ok(()));
    plan.changes[0].new_replicas = vec![BrokerId(1), BrokerId(1)];
    let said = refusal(&plan).unwrap_err();
    assert!(said.contains("the plan is wrong in") && said.contains("t-0: two replicas on broker 1"), "{said}");
}
