//! Results of optimisations as text.

use std::fmt::{self, Write};

use super::{list, map};
use crate::body::{OptimizationResult, Proposal, Statistic, Summary};
use crate::request::Request;

impl OptimizationResult {
    /// As text. `heading` stands above the load afterwards; see [`load_heading`].
    pub fn text(&self, heading: &str) -> String {
        let mut out = self.proposals.as_ref().map(list).unwrap_or_default();
        out.push_str("\n\n");
        out.push_str(&self.summary_text());
        for goal in &self.goal_summary {
            let stats = &goal.cluster_model_stats.statistics;
            let _ = write!(
                out,
                "\n[{:>6} ms] Stats for {}({}):\nAVG:{}\nMAX:{}\nMIN:{}\nSTD:{}\n",
                goal.optimization_time_ms,
                goal.goal,
                goal.status,
                figures(&stats.avg),
                figures(&stats.max),
                figures(&stats.min),
                figures(&stats.std)
            );
        }
        if let Some(before) = &self.load_before_optimization {
            let _ = write!(out, "\nCurrent load:\n{}", before.text());
        }
        let _ = write!(out, "\n{heading}\n{}", self.load_after_optimization.text());
        out
    }

    fn summary_text(&self) -> String {
        let it = &self.summary;
        let counts = self.goal_summary.last().map(|goal| goal.cluster_model_stats.metadata).unwrap_or_default();
        let mut out = format!(
            "Optimization has {} inter-broker replica({} MB) moves, {} intra-broker replica({} MB) moves and {} leadership \
             moves with a cluster model of {} recent windows and {:.3}% of the partitions covered.\n",
            it.num_replica_movements,
            it.data_to_move_mb,
            it.num_intra_broker_replica_movements,
            it.intra_broker_data_to_move_mb,
            it.num_leader_movements,
            it.recent_windows,
            it.monitored_partitions_percentage.0
        );
        let _ = write!(
            out,
            "Excluded Topics: {}.\nExcluded Brokers For Leadership: {}.\nExcluded Brokers For Replica Move: {}.\n\
             Counts: {} brokers {} replicas {} topics.\n\
             On-demand Balancedness Score Before ({:.3}) After({:.3}).\nProvision Status: {}.",
            list(&it.excluded_topics),
            list(&it.excluded_brokers_for_leadership),
            list(&it.excluded_brokers_for_replica_move),
            counts.brokers,
            counts.replicas,
            counts.topics,
            it.on_demand_balancedness_score_before.0,
            it.on_demand_balancedness_score_after.0,
            it.provision_status
        );
        if !it.provision_recommendation.is_empty() {
            let _ = write!(out, " Provision Recommendation: {}", it.provision_recommendation);
        }
        out.push('\n');
        out.push_str(&extensions(it));
        out
    }
}

/// What the original does not say.
fn extensions(summary: &Summary) -> String {
    let mut out = String::new();
    if let Some(id) = &summary.proposal_id {
        let _ = writeln!(out, "Proposal: {id}.");
    }
    if let Some(minutes) = summary.estimated_minutes {
        let _ = writeln!(out, "Estimated Time: {:.1} minutes.", minutes.0);
    }
    if let Some(undone) = summary.left_undone {
        let _ = writeln!(out, "Left Undone: {} changes ({} MB).", undone.num_changes, undone.data_to_move_mb);
    }
    if !summary.unmeasured_goals.is_empty() {
        let _ = writeln!(out, "Goals Left Out (not measured): {}.", list(&summary.unmeasured_goals));
    }
    out
}

fn figures<Count: fmt::Display>(it: &Statistic<Count>) -> String {
    format!(
        "{{cpu:{:>12.3} networkInbound:{:>12.3} networkOutbound:{:>12.3} disk:{:>12.3} potentialNwOut:{:>12.3} \
         replicas:{} leaderReplicas:{} topicReplicas:{}}}",
        it.cpu.0,
        it.network_inbound.0,
        it.network_outbound.0,
        it.disk.0,
        it.potential_nw_out.0,
        it.replicas,
        it.leader_replicas,
        it.topic_replicas
    )
}

/// `{topic-0, oldLeader: 1, [1, 2] -> [2, 3]}`
impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (old, new) = (list(&self.old_replicas), list(&self.new_replicas));
        write!(f, "{{{}, oldLeader: {}, {old} -> {new}}}", self.topic_partition, self.old_leader)
    }
}

/// What stands above the load after an optimisation.
pub fn load_heading(request: &Request) -> String {
    match request {
        Request::AddBroker(it) => format!("Cluster load after adding broker {}:", list(&it.brokerid)),
        Request::RemoveBroker(it) => format!("Cluster load after removing broker {}:", list(&it.brokerid)),
        Request::DemoteBroker(it) => format!("Cluster load after demoting broker {}:", list(&it.brokerid)),
        Request::FixOfflineReplicas(_) => "Cluster load after fixing offline replicas:".to_owned(),
        Request::RemoveDisks(it) => {
            let disks = map(it.brokerid_and_logdirs.iter().map(|(broker, dirs)| (broker, list(dirs))));
            format!("Cluster load after removing disks {disks}:")
        }
        Request::Rebalance(_) => "Cluster load after rebalance:".to_owned(),
        _ => "Optimized load:".to_owned(),
    }
}
