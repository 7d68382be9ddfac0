//! Everything there is to say about a plan, as one value: `--output json` and `yaml` write it down, and the tables
//! are drawn from it. `docs/plan.md` describes its fields; they are renamed or dropped only with `version`.

use evenkeel_balancer::DiskLoad;
use evenkeel_balancer::cluster::{Broker, BrokerState, Cluster, Resource};
use evenkeel_balancer::held::Rule;
use evenkeel_balancer::plan::{Cause, Change, Reason};
use evenkeel_balancer::planner::{BrokerLoad, Outcome, Status, Verdict};
use evenkeel_balancer::statistics::Spread;
use serde::Serialize;
use serde::ser::Serializer;

use super::request::Asked;
use super::shortfall::{Lost, NotEmptied};
use super::why::Explainer;

/// The whole answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report<'a> {
    pub(super) version: u32,
    pub(super) plan_id: String,
    pub(super) mode: &'static str,
    #[serde(skip_serializing_if = "WhatIf::is_nothing")]
    pub(super) what_if: WhatIf<'a>,
    pub(super) cluster: Totals<'a>,
    pub(super) summary: Summary,
    pub(super) balancedness: Balancedness,
    pub(super) provision: Provision<'a>,
    pub(super) goals: Vec<GoalLine>,
    pub(super) unmeasured_goals: Vec<&'static str>,
    /// Whether soft goals move only replicas that cannot stay where they are.
    pub(super) heals: bool,
    pub(super) spread: Vec<SpreadLine>,
    pub(super) brokers: Vec<BrokerLine<'a>>,
    pub(super) disks: Vec<DiskUse<'a>>,
    pub(super) changes: Changes<'a>,
}

/// How the cluster differs from the snapshot.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WhatIf<'a> {
    pub(super) add_brokers: &'a [String],
    pub(super) remove_brokers: &'a [String],
    pub(super) lose_rack: Option<&'a str>,
}

impl WhatIf<'_> {
    pub(super) fn is_nothing(&self) -> bool {
        self.add_brokers.is_empty() && self.remove_brokers.is_empty() && self.lose_rack.is_none()
    }
}

/// What the cluster consists of.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Totals<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) brokers: usize,
    pub(super) topics: usize,
    pub(super) partitions: usize,
    pub(super) replicas: usize,
    pub(super) unmeasured: Vec<&'static str>,
}

/// How much is to be done.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// What is about data is none where nobody measured how large replicas are.
    #[serde(rename = "dataToMoveMB")]
    pub(super) data_to_move: Option<f64>,
    #[serde(rename = "intraBrokerDataToMoveMB")]
    pub(super) intra_broker_data_to_move: Option<f64>,
    pub(super) changes: usize,
    pub(super) replica_moves: u64,
    pub(super) leader_moves: u64,
    pub(super) disk_moves: u64,
    /// Changes at the end that break a hard goal for a while, in whatever order they come.
    pub(super) unsafe_changes: usize,
    /// The least data that any plan must move that gets as far.
    #[serde(rename = "leastDataToMoveMB")]
    pub(super) least_data_to_move: Option<f64>,
    /// How many times that is moved; none if nothing had to be.
    pub(super) data_ratio: Option<f64>,
    pub(super) minutes: Minutes,
    pub(super) undone: Undone,
    pub(super) lost: Lost,
    pub(super) not_emptied: Vec<NotEmptied>,
    /// Replicas on disks that goals inside brokers judge, nobody knows on which.
    pub(super) on_unknown_disks: u64,
}

/// How long it takes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Minutes {
    pub(super) expected: Option<f64>,
    pub(super) one_by_one: Option<f64>,
    /// Between disks of one broker; none unless their bandwidth is known.
    pub(super) between_disks: Option<f64>,
}

/// One number for all goals: 100 if none is violated.
#[derive(Serialize)]
pub(super) struct Balancedness {
    pub(super) before: f64,
    pub(super) after: f64,
}

/// Whether the cluster has the right size.
#[derive(Serialize)]
pub(super) struct Provision<'a> {
    pub(super) status: &'static str,
    pub(super) recommendation: &'a str,
}

/// What a budget left out.
#[derive(Serialize)]
pub(super) struct Undone {
    pub(super) changes: usize,
    #[serde(rename = "dataToMoveMB")]
    pub(super) data_to_move: Option<f64>,
}

/// How a goal fares.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GoalLine {
    pub(super) goal: &'static str,
    pub(super) hard: bool,
    pub(super) status: &'static str,
    pub(super) miss_before: f64,
    pub(super) miss_after: f64,
    pub(super) refused_by: Vec<RefusedBy>,
    pub(super) held_back_by: Vec<HeldBackBy>,
}

/// A more important goal that stood in the way.
#[derive(Serialize)]
pub(super) struct RefusedBy {
    pub(super) goal: &'static str,
    pub(super) times: u64,
}

/// A rule that stood in the way.
#[derive(Serialize)]
pub(super) struct HeldBackBy {
    #[serde(serialize_with = "by_name")]
    pub(super) rule: Rule,
    pub(super) times: u64,
}

fn by_name<S: Serializer>(rule: &Rule, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(rule.name())
}

/// How evenly the brokers that live carry something.
#[derive(Serialize)]
pub(super) struct SpreadLine {
    pub(super) of: &'static str,
    pub(super) unit: &'static str,
    pub(super) before: Statistics,
    pub(super) after: Statistics,
}

/// Of one number per broker.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Statistics {
    pub(super) min: f64,
    pub(super) mean: f64,
    pub(super) max: f64,
    pub(super) standard_deviation: f64,
}

impl From<Spread> for Statistics {
    fn from(spread: Spread) -> Self {
        Statistics { min: spread.min, mean: spread.mean, max: spread.max, standard_deviation: spread.deviation }
    }
}

/// A broker before and after.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BrokerLine<'a> {
    pub(super) broker: i32,
    pub(super) rack: &'a str,
    pub(super) host: &'a str,
    pub(super) state: &'static str,
    pub(super) capacity: PerResource,
    pub(super) before: Carried,
    pub(super) after: Carried,
}

/// A log directory before and after.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiskUse<'a> {
    pub(super) broker: i32,
    pub(super) directory: &'a str,
    /// 0 if it is dead or to be taken out.
    #[serde(rename = "capacityMB")]
    pub(super) capacity: f64,
    pub(super) before: Stored,
    pub(super) after: Stored,
}

/// What a disk holds.
#[derive(Serialize)]
pub(super) struct Stored {
    pub(super) replicas: u64,
    #[serde(rename = "dataMB")]
    pub(super) data: f64,
    pub(super) percent: Option<f64>,
}

impl<'a> From<&'a DiskLoad> for DiskUse<'a> {
    fn from(disk: &'a DiskLoad) -> Self {
        let stored = |replicas, data: f64| Stored {
            replicas,
            data: positive(data),
            percent: (disk.capacity > 0.0).then(|| positive(100.0 * data / disk.capacity)),
        };
        DiskUse {
            broker: disk.broker.0,
            directory: &disk.disk,
            capacity: disk.capacity,
            before: stored(disk.replicas.0, disk.megabytes.0),
            after: stored(disk.replicas.1, disk.megabytes.1),
        }
    }
}

/// What a broker carries.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Carried {
    pub(super) replicas: u64,
    pub(super) leaders: u64,
    pub(super) load: PerResource,
    pub(super) percent: PerResource,
    pub(super) potential_network_outbound: Option<f64>,
    pub(super) leader_network_inbound: Option<f64>,
}

/// One number per resource; none for what was not measured, or cannot be said.
#[derive(Serialize, Clone, Copy)]
#[serde(rename_all = "camelCase")]
pub(super) struct PerResource {
    pub(super) cpu: Option<f64>,
    pub(super) network_inbound: Option<f64>,
    pub(super) network_outbound: Option<f64>,
    pub(super) disk: Option<f64>,
}

impl PerResource {
    fn of(number: impl Fn(Resource) -> Option<f64>) -> PerResource {
        PerResource {
            cpu: number(Resource::Cpu),
            network_inbound: number(Resource::NwIn),
            network_outbound: number(Resource::NwOut),
            disk: number(Resource::Disk),
        }
    }

    pub(super) fn get(self, resource: Resource) -> Option<f64> {
        match resource {
            Resource::Cpu => self.cpu,
            Resource::NwIn => self.network_inbound,
            Resource::NwOut => self.network_outbound,
            Resource::Disk => self.disk,
        }
    }
}

/// The changes in the order of the plan, put into words only as they are written: there may be hundreds of thousands.
pub(super) struct Changes<'a> {
    pub(super) all: &'a [Change],
    /// Whether anybody knows how large replicas are.
    sized: bool,
    pub(super) explainer: Explainer<'a>,
}

/// What happens to one partition, and why.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangeLine<'a> {
    pub(super) topic: &'a str,
    pub(super) partition: i32,
    pub(super) old_replicas: Vec<i32>,
    pub(super) new_replicas: Vec<i32>,
    moves: Vec<MoveLine>,
    pub(super) old_leader: i32,
    pub(super) new_leader: i32,
    #[serde(rename = "dataToMoveMB")]
    pub(super) data_to_move: Option<f64>,
    #[serde(rename = "intraBrokerDataToMoveMB")]
    pub(super) intra_broker_data_to_move: Option<f64>,
    disks: Vec<DiskLine<'a>>,
    /// Whether nobody has the partition's data.
    lost: bool,
    reasons: Vec<ReasonLine<'a>>,
    pub(super) why: String,
}

#[derive(Serialize)]
struct DiskLine<'a> {
    broker: i32,
    from: &'a str,
    to: &'a str,
}

#[derive(Serialize)]
struct ReasonLine<'a> {
    cause: &'static str,
    goal: Option<&'static str>,
    from: i32,
    to: i32,
    gain: Option<f64>,
    exchange: bool,
    /// With whom, if it is an exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    partner: Option<PartnerLine<'a>>,
}

#[derive(Serialize)]
struct PartnerLine<'a> {
    topic: &'a str,
    partition: i32,
}

impl<'a> ReasonLine<'a> {
    fn of(explainer: &Explainer<'a>, reason: &Reason) -> Self {
        let (cause, goal, gain) = match reason.cause {
            Cause::Goal { goal, gain } => ("goal", Some(goal.name()), Some(gain)),
            Cause::Offline | Cause::Removed | Cause::Demoted => (reason.name(), None, None),
        };
        let partner = explainer.partner(reason).map(|(topic, partition)| PartnerLine { topic, partition });
        let exchange = partner.is_some();
        ReasonLine { cause, goal, from: reason.from.0, to: reason.to.0, gain, exchange, partner }
    }
}

#[derive(Serialize)]
struct MoveLine {
    from: i32,
    to: i32,
}

impl Serialize for Changes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.lines())
    }
}

impl<'a> Changes<'a> {
    pub(super) fn lines(&self) -> impl ExactSizeIterator<Item = ChangeLine<'a>> {
        self.all.iter().map(|change| self.line(change))
    }

    fn line(&self, change: &'a Change) -> ChangeLine<'a> {
        ChangeLine {
            topic: &change.topic,
            partition: change.partition,
            old_replicas: change.old_replicas.iter().map(|broker| broker.0).collect(),
            new_replicas: change.new_replicas.iter().map(|broker| broker.0).collect(),
            moves: change.moves.iter().map(|(from, to)| MoveLine { from: from.0, to: to.0 }).collect(),
            old_leader: change.old_leader.0,
            new_leader: change.new_leader.0,
            data_to_move: self.sized.then(|| positive(change.megabytes)),
            intra_broker_data_to_move: self.sized.then(|| positive(change.disk_megabytes)),
            disks: change
                .disks
                .iter()
                .map(|disk| DiskLine { broker: disk.broker.0, from: &disk.from, to: &disk.to })
                .collect(),
            lost: self.explainer.is_lost(change),
            reasons: change.reasons.iter().map(|reason| ReasonLine::of(&self.explainer, reason)).collect(),
            why: self.explainer.why(change),
        }
    }
}

impl<'a> Report<'a> {
    pub(super) fn of(
        cluster: &'a Cluster,
        name: Option<&'a str>,
        asked: &'a Asked,
        outcome: &'a Outcome,
    ) -> Report<'a> {
        let loads = outcome.before.iter().zip(&outcome.after);
        let brokers = cluster.brokers().iter().zip(loads).map(|(broker, (before, after))| BrokerLine {
            broker: broker.id.0,
            rack: &cluster.racks()[broker.rack],
            host: &cluster.hosts()[broker.host],
            state: state(broker.state),
            capacity: PerResource::of(|resource| Some(broker.capacity[resource as usize])),
            before: carried(cluster, broker, before),
            after: carried(cluster, broker, after),
        });
        let brokers: Vec<BrokerLine<'_>> = brokers.collect();
        Report {
            version: 1,
            plan_id: outcome.plan.id(),
            mode: asked.mode.name(),
            what_if: WhatIf {
                add_brokers: &asked.what_if.add_broker,
                remove_brokers: &asked.what_if.remove_broker,
                lose_rack: asked.what_if.lose_rack.as_deref(),
            },
            cluster: Totals {
                name,
                brokers: cluster.brokers().len(),
                topics: cluster.topics().len(),
                partitions: cluster.partition_count(),
                replicas: cluster.replica_count(),
                unmeasured: cluster.unknown().iter().map(Resource::name).collect(),
            },
            summary: summary(cluster, asked, outcome),
            balancedness: Balancedness { before: outcome.score.0, after: outcome.score.1 },
            provision: Provision {
                status: outcome.provision.status.name(),
                recommendation: &outcome.provision.recommendation,
            },
            goals: outcome.verdicts.iter().map(goal_line).collect(),
            unmeasured_goals: outcome.unmeasured.iter().map(|goal| goal.name()).collect(),
            heals: outcome.heals,
            spread: spread(cluster, outcome),
            brokers,
            disks: outcome.disks.iter().map(DiskUse::from).collect(),
            changes: Changes {
                all: &outcome.plan.changes,
                sized: sized(cluster),
                explainer: Explainer::new(cluster, &asked.request, &asked.settings, outcome),
            },
        }
    }
}

fn state(state: BrokerState) -> &'static str {
    match state {
        BrokerState::Alive => "ALIVE",
        BrokerState::New => "NEW",
        BrokerState::Dead => "DEAD",
        BrokerState::Demoted => "DEMOTED",
        BrokerState::BadDisks => "BAD_DISKS",
    }
}

fn carried(cluster: &Cluster, broker: &Broker, load: &BrokerLoad) -> Carried {
    let known = |resource| !cluster.unknown().contains(resource);
    let percent = |resource: Resource| {
        let capacity = broker.capacity[resource as usize];
        (known(resource) && capacity > 0.0).then(|| 100.0 * load.resources[resource as usize] / capacity)
    };
    Carried {
        replicas: load.replicas,
        leaders: load.leaders,
        load: PerResource::of(|resource| known(resource).then(|| load.resources[resource as usize])),
        percent: PerResource::of(percent),
        potential_network_outbound: known(Resource::NwOut).then_some(load.potential_out),
        leader_network_inbound: known(Resource::NwIn).then_some(load.leader_in),
    }
}

fn goal_line(verdict: &Verdict) -> GoalLine {
    GoalLine {
        goal: verdict.goal.name(),
        hard: verdict.goal.is_hard(),
        status: match verdict.status {
            Status::Violated => "VIOLATED",
            Status::Fixed => "FIXED",
            Status::NoAction => "NO-ACTION",
        },
        miss_before: verdict.miss.0,
        miss_after: verdict.miss.1,
        refused_by: verdict
            .refused_by
            .iter()
            .map(|(goal, times)| RefusedBy { goal: goal.name(), times: *times })
            .collect(),
        held_back_by: verdict
            .held_back_by
            .iter()
            .map(|(rule, times)| HeldBackBy { rule: *rule, times: *times })
            .collect(),
    }
}

/// Rust's sum of nothing is -0, which looks odd in JSON.
fn positive(sum: f64) -> f64 {
    sum + 0.0
}

/// Whether anybody knows how large replicas are.
fn sized(cluster: &Cluster) -> bool {
    !cluster.unknown().contains(Resource::Disk)
}

fn summary(cluster: &Cluster, asked: &Asked, outcome: &Outcome) -> Summary {
    let plan = &outcome.plan;
    let estimate = outcome.estimate(cluster, &asked.pace);
    let data = |number: f64| sized(cluster).then(|| positive(number));
    Summary {
        data_to_move: data(plan.megabytes()),
        intra_broker_data_to_move: data(plan.changes.iter().map(|change| change.disk_megabytes).sum()),
        changes: plan.changes.len(),
        replica_moves: plan.changes.iter().map(|change| change.added().count() as u64).sum(),
        leader_moves: plan.changes.iter().filter(|change| change.old_leader != change.new_leader).count() as u64,
        disk_moves: plan.changes.iter().flat_map(|change| &change.disks).filter(|disk| !disk.from.is_empty()).count()
            as u64,
        unsafe_changes: outcome.unsafe_changes,
        least_data_to_move: data(outcome.least_megabytes),
        data_ratio: outcome.bytes_ratio().filter(|_| sized(cluster)),
        minutes: Minutes {
            expected: data(estimate.expected),
            one_by_one: data(estimate.one_by_one),
            between_disks: estimate.disks.filter(|_| sized(cluster)),
        },
        undone: Undone { changes: plan.undone.changes, data_to_move: data(plan.undone.megabytes) },
        lost: Lost::of(cluster, &asked.request.operation),
        not_emptied: NotEmptied::all(cluster, &asked.request.operation, outcome),
        on_unknown_disks: outcome.unplaced,
    }
}

fn spread(cluster: &Cluster, outcome: &Outcome) -> Vec<SpreadLine> {
    let (before, after) = &outcome.statistics;
    let line =
        |of, unit, before: Spread, after: Spread| SpreadLine { of, unit, before: before.into(), after: after.into() };
    let known = |resource: &Resource| !cluster.unknown().contains(*resource);
    let used = Resource::ALL.into_iter().filter(known).map(|resource| {
        let index = resource as usize;
        line(resource.name(), "percent", before.resources[index], after.resources[index])
    });
    let mut lines: Vec<SpreadLine> = used.collect();
    lines.push(line("replicas", "count", before.replicas, after.replicas));
    lines.push(line("leaders", "count", before.leaders, after.leaders));
    if known(&Resource::NwOut) {
        lines.push(line("potentialNetworkOutbound", "percent", before.potential_out, after.potential_out));
    }
    if known(&Resource::NwIn) {
        lines.push(line("leaderNetworkInbound", "KB/s", before.leader_in, after.leader_in));
    }
    lines
}

#[cfg(test)]
mod tests;
