//! Everything there is to say about a plan, as one value: `--output json` and `yaml` write it down, and the tables
//! are drawn from it. `docs/plan.md` describes its fields; they are renamed or dropped only with `version`.

use evenkeel_balancer::cluster::{Broker, BrokerState, Cluster, Resource};
use evenkeel_balancer::plan::Change;
use evenkeel_balancer::planner::{BrokerLoad, Outcome, Status, Verdict};
use evenkeel_balancer::statistics::Spread;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use super::request::Asked;
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
    pub(super) spread: Vec<SpreadLine>,
    pub(super) brokers: Vec<BrokerLine<'a>>,
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
    #[serde(rename = "dataToMoveMB")]
    pub(super) data_to_move: f64,
    #[serde(rename = "intraBrokerDataToMoveMB")]
    pub(super) intra_broker_data_to_move: f64,
    pub(super) changes: usize,
    pub(super) replica_moves: u64,
    pub(super) leader_moves: u64,
    pub(super) disk_moves: u64,
    /// The least data that any plan must move that gets as far.
    #[serde(rename = "leastDataToMoveMB")]
    pub(super) least_data_to_move: f64,
    pub(super) minutes: Minutes,
    pub(super) undone: Undone,
}

/// How long it takes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Minutes {
    pub(super) expected: f64,
    pub(super) one_by_one: f64,
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
    pub(super) data_to_move: f64,
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
}

/// A more important goal that stood in the way.
#[derive(Serialize)]
pub(super) struct RefusedBy {
    pub(super) goal: &'static str,
    pub(super) times: u64,
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
    pub(super) explainer: Explainer<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChangeLine<'a> {
    topic: &'a str,
    partition: i32,
    old_replicas: Vec<i32>,
    new_replicas: Vec<i32>,
    old_leader: i32,
    new_leader: i32,
    #[serde(rename = "dataToMoveMB")]
    data_to_move: f64,
    #[serde(rename = "intraBrokerDataToMoveMB")]
    intra_broker_data_to_move: f64,
    disks: Vec<DiskLine<'a>>,
    reasons: Vec<ReasonLine>,
    why: String,
}

#[derive(Serialize)]
struct DiskLine<'a> {
    broker: i32,
    from: &'a str,
    to: &'a str,
}

#[derive(Serialize)]
struct ReasonLine {
    goal: &'static str,
    from: i32,
    to: i32,
    gain: f64,
}

impl Serialize for Changes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.all.len()))?;
        for change in self.all {
            list.serialize_element(&self.line(change))?;
        }
        list.end()
    }
}

impl Changes<'_> {
    fn line<'c>(&self, change: &'c Change) -> ChangeLine<'c> {
        let reason = |reason: &evenkeel_balancer::plan::Reason| ReasonLine {
            goal: reason.goal.name(),
            from: reason.from.0,
            to: reason.to.0,
            gain: reason.gain,
        };
        ChangeLine {
            topic: &change.topic,
            partition: change.partition,
            old_replicas: change.old_replicas.iter().map(|broker| broker.0).collect(),
            new_replicas: change.new_replicas.iter().map(|broker| broker.0).collect(),
            old_leader: change.old_leader.0,
            new_leader: change.new_leader.0,
            data_to_move: positive(change.megabytes),
            intra_broker_data_to_move: positive(change.disk_megabytes),
            disks: change
                .disks
                .iter()
                .map(|disk| DiskLine { broker: disk.broker.0, from: &disk.from, to: &disk.to })
                .collect(),
            reasons: change.reasons.iter().map(reason).collect(),
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
            spread: spread(cluster, outcome),
            brokers,
            changes: Changes {
                all: &outcome.plan.changes,
                explainer: Explainer::new(cluster, &asked.request.operation, &outcome.before),
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
    }
}

/// Rust's sum of nothing is -0, which looks odd in JSON.
fn positive(sum: f64) -> f64 {
    sum + 0.0
}

fn summary(cluster: &Cluster, asked: &Asked, outcome: &Outcome) -> Summary {
    let plan = &outcome.plan;
    let estimate = outcome.estimate(cluster, &asked.pace);
    Summary {
        data_to_move: positive(plan.megabytes()),
        intra_broker_data_to_move: positive(plan.changes.iter().map(|change| change.disk_megabytes).sum()),
        changes: plan.changes.len(),
        replica_moves: plan.changes.iter().map(|change| change.added().count() as u64).sum(),
        leader_moves: plan.changes.iter().filter(|change| change.old_leader != change.new_leader).count() as u64,
        disk_moves: plan.changes.iter().map(|change| change.disks.len() as u64).sum(),
        least_data_to_move: outcome.least_megabytes,
        minutes: Minutes { expected: estimate.expected, one_by_one: estimate.one_by_one },
        undone: Undone { changes: plan.undone.changes, data_to_move: plan.undone.megabytes },
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
mod tests {
    use expect_test::expect;

    use super::super::testing;

    #[test]
    fn the_fields_are_those_documented() {
        let json = testing::with_report(|report| serde_json::to_string_pretty(report).unwrap());
        expect![[r#"
            {
              "version": 1,
              "planId": "a331dde8d879242b1eaa0a274d9fe1ef",
              "mode": "rebalance",
              "cluster": {
                "name": "small",
                "brokers": 5,
                "topics": 9,
                "partitions": 9,
                "replicas": 18,
                "unmeasured": []
              },
              "summary": {
                "dataToMoveMB": 40000.0,
                "intraBrokerDataToMoveMB": 0.0,
                "changes": 3,
                "replicaMoves": 2,
                "leaderMoves": 3,
                "diskMoves": 0,
                "leastDataToMoveMB": 32800.0,
                "minutes": {
                  "expected": 5.5,
                  "oneByOne": 3.7925925925925923
                },
                "undone": {
                  "changes": 0,
                  "dataToMoveMB": 0.0
                }
              },
              "balancedness": {
                "before": 0.0,
                "after": 74.45721583652619
              },
              "provision": {
                "status": "RIGHT_SIZED",
                "recommendation": ""
              },
              "goals": [
                {
                  "goal": "RackAwareGoal",
                  "hard": true,
                  "status": "FIXED",
                  "missBefore": 1.0,
                  "missAfter": 0.0,
                  "refusedBy": []
                },
                {
                  "goal": "DiskUsageDistributionGoal",
                  "hard": false,
                  "status": "FIXED",
                  "missBefore": 0.7299999999999996,
                  "missAfter": 0.0,
                  "refusedBy": []
                },
                {
                  "goal": "LeaderReplicaDistributionGoal",
                  "hard": false,
                  "status": "VIOLATED",
                  "missBefore": 2.7777777777777777,
                  "missAfter": 0.5555555555555556,
                  "refusedBy": [
                    {
                      "goal": "DiskUsageDistributionGoal",
                      "times": 7
                    }
                  ]
                }
              ],
              "unmeasuredGoals": [],
              "spread": [
                {
                  "of": "cpu",
                  "unit": "percent",
                  "before": {
                    "min": 4.0,
                    "mean": 16.59999978542328,
                    "max": 47.99999928474426,
                    "standardDeviation": 15.894652934645723
                  },
                  "after": {
                    "min": 10.99999988079071,
                    "mean": 17.93333308696747,
                    "max": 25.333333015441895,
                    "standardDeviation": 4.543126616464341
                  }
                },
                {
                  "of": "networkInbound",
                  "unit": "percent",
                  "before": {
                    "min": 9.0,
                    "mean": 12.0,
                    "max": 18.0,
                    "standardDeviation": 3.286335345030997
                  },
                  "after": {
                    "min": 12.0,
                    "mean": 12.0,
                    "max": 12.0,
                    "standardDeviation": 0.0
                  }
                },
                {
                  "of": "networkOutbound",
                  "unit": "percent",
                  "before": {
                    "min": 0.0,
                    "mean": 10.8,
                    "max": 36.0,
                    "standardDeviation": 12.812493902437572
                  },
                  "after": {
                    "min": 6.0,
                    "mean": 12.0,
                    "max": 18.0,
                    "standardDeviation": 3.794733192202055
                  }
                },
                {
                  "of": "disk",
                  "unit": "percent",
                  "before": {
                    "min": 20.0,
                    "mean": 26.666666666666668,
                    "max": 40.0,
                    "standardDeviation": 7.302967433402214
                  },
                  "after": {
                    "min": 26.666666666666668,
                    "mean": 26.666666666666668,
                    "max": 26.666666666666668,
                    "standardDeviation": 0.0
                  }
                },
                {
                  "of": "replicas",
                  "unit": "count",
                  "before": {
                    "min": 2.0,
                    "mean": 3.6,
                    "max": 6.0,
                    "standardDeviation": 1.3564659966250536
                  },
                  "after": {
                    "min": 2.0,
                    "mean": 3.6,
                    "max": 4.0,
                    "standardDeviation": 0.8000000000000002
                  }
                },
                {
                  "of": "leaders",
                  "unit": "count",
                  "before": {
                    "min": 0.0,
                    "mean": 1.8,
                    "max": 6.0,
                    "standardDeviation": 2.1354156504062622
                  },
                  "after": {
                    "min": 1.0,
                    "mean": 1.8,
                    "max": 3.0,
                    "standardDeviation": 0.7483314773547883
                  }
                },
                {
                  "of": "potentialNetworkOutbound",
                  "unit": "percent",
                  "before": {
                    "min": 18.0,
                    "mean": 24.0,
                    "max": 36.0,
                    "standardDeviation": 6.572670690061994
                  },
                  "after": {
                    "min": 24.0,
                    "mean": 24.0,
                    "max": 24.0,
                    "standardDeviation": 0.0
                  }
                },
                {
                  "of": "leaderNetworkInbound",
                  "unit": "KB/s",
                  "before": {
                    "min": 0.0,
                    "mean": 16200.0,
                    "max": 54000.0,
                    "standardDeviation": 19218.74085365636
                  },
                  "after": {
                    "min": 9000.0,
                    "mean": 16200.0,
                    "max": 27000.0,
                    "standardDeviation": 6734.983296193094
                  }
                }
              ],
              "brokers": [
                {
                  "broker": 0,
                  "rack": "a",
                  "host": "h0",
                  "state": "ALIVE",
                  "capacity": {
                    "cpu": 100.0,
                    "networkInbound": 300000.0,
                    "networkOutbound": 200000.0,
                    "disk": 300000.0
                  },
                  "before": {
                    "replicas": 6,
                    "leaders": 6,
                    "load": {
                      "cpu": 47.99999928474426,
                      "networkInbound": 54000.0,
                      "networkOutbound": 72000.0,
                      "disk": 120000.0
                    },
                    "percent": {
                      "cpu": 47.99999928474426,
                      "networkInbound": 18.0,
                      "networkOutbound": 36.0,
                      "disk": 40.0
                    },
                    "potentialNetworkOutbound": 72000.0,
                    "leaderNetworkInbound": 54000.0
                  },
                  "after": {
                    "replicas": 4,
                    "leaders": 3,
                    "load": {
                      "cpu": 25.333333015441895,
                      "networkInbound": 36000.0,
                      "networkOutbound": 36000.0,
                      "disk": 80000.0
                    },
                    "percent": {
                      "cpu": 25.333333015441895,
                      "networkInbound": 12.0,
                      "networkOutbound": 18.0,
                      "disk": 26.666666666666668
                    },
                    "potentialNetworkOutbound": 48000.0,
                    "leaderNetworkInbound": 27000.0
                  }
                },
                {
                  "broker": 1,
                  "rack": "a",
                  "host": "h1",
                  "state": "ALIVE",
                  "capacity": {
                    "cpu": 50.0,
                    "networkInbound": 150000.0,
                    "networkOutbound": 100000.0,
                    "disk": 150000.0
                  },
                  "before": {
                    "replicas": 2,
                    "leaders": 0,
                    "load": {
                      "cpu": 2.0,
                      "networkInbound": 18000.0,
                      "networkOutbound": 0.0,
                      "disk": 40000.0
                    },
                    "percent": {
                      "cpu": 4.0,
                      "networkInbound": 12.0,
                      "networkOutbound": 0.0,
                      "disk": 26.666666666666668
                    },
                    "potentialNetworkOutbound": 24000.0,
                    "leaderNetworkInbound": 0.0
                  },
                  "after": {
                    "replicas": 2,
                    "leaders": 1,
                    "load": {
                      "cpu": 8.666666507720947,
                      "networkInbound": 18000.0,
                      "networkOutbound": 12000.0,
                      "disk": 40000.0
                    },
                    "percent": {
                      "cpu": 17.333333015441895,
                      "networkInbound": 12.0,
                      "networkOutbound": 12.0,
                      "disk": 26.666666666666668
                    },
                    "potentialNetworkOutbound": 24000.0,
                    "leaderNetworkInbound": 9000.0
                  }
                },
                {
                  "broker": 2,
                  "rack": "b",
                  "host": "h2",
                  "state": "ALIVE",
                  "capacity": {
                    "cpu": 100.0,
                    "networkInbound": 300000.0,
                    "networkOutbound": 200000.0,
                    "disk": 300000.0
                  },
                  "before": {
                    "replicas": 3,
                    "leaders": 1,
                    "load": {
                      "cpu": 9.99999988079071,
                      "networkInbound": 27000.0,
                      "networkOutbound": 12000.0,
                      "disk": 60000.0
                    },
                    "percent": {
                      "cpu": 9.99999988079071,
                      "networkInbound": 9.0,
                      "networkOutbound": 6.0,
                      "disk": 20.0
                    },
                    "potentialNetworkOutbound": 36000.0,
                    "leaderNetworkInbound": 9000.0
                  },
                  "after": {
                    "replicas": 4,
                    "leaders": 2,
                    "load": {
                      "cpu": 17.99999976158142,
                      "networkInbound": 36000.0,
                      "networkOutbound": 24000.0,
                      "disk": 80000.0
                    },
                    "percent": {
                      "cpu": 17.99999976158142,
                      "networkInbound": 12.0,
                      "networkOutbound": 12.0,
                      "disk": 26.666666666666668
                    },
                    "potentialNetworkOutbound": 48000.0,
                    "leaderNetworkInbound": 18000.0
                  }
                },
                {
                  "broker": 3,
                  "rack": "b",
                  "host": "h3",
                  "state": "ALIVE",
                  "capacity": {
                    "cpu": 100.0,
                    "networkInbound": 300000.0,
                    "networkOutbound": 200000.0,
                    "disk": 300000.0
                  },
                  "before": {
                    "replicas": 3,
                    "leaders": 1,
                    "load": {
                      "cpu": 9.99999988079071,
                      "networkInbound": 27000.0,
                      "networkOutbound": 12000.0,
                      "disk": 60000.0
                    },
                    "percent": {
                      "cpu": 9.99999988079071,
                      "networkInbound": 9.0,
                      "networkOutbound": 6.0,
                      "disk": 20.0
                    },
                    "potentialNetworkOutbound": 36000.0,
                    "leaderNetworkInbound": 9000.0
                  },
                  "after": {
                    "replicas": 4,
                    "leaders": 2,
                    "load": {
                      "cpu": 17.99999976158142,
                      "networkInbound": 36000.0,
                      "networkOutbound": 24000.0,
                      "disk": 80000.0
                    },
                    "percent": {
                      "cpu": 17.99999976158142,
                      "networkInbound": 12.0,
                      "networkOutbound": 12.0,
                      "disk": 26.666666666666668
                    },
                    "potentialNetworkOutbound": 48000.0,
                    "leaderNetworkInbound": 18000.0
                  }
                },
                {
                  "broker": 4,
                  "rack": "c",
                  "host": "h4",
                  "state": "ALIVE",
                  "capacity": {
                    "cpu": 100.0,
                    "networkInbound": 300000.0,
                    "networkOutbound": 200000.0,
                    "disk": 300000.0
                  },
                  "before": {
                    "replicas": 4,
                    "leaders": 1,
                    "load": {
                      "cpu": 10.99999988079071,
                      "networkInbound": 36000.0,
                      "networkOutbound": 12000.0,
                      "disk": 80000.0
                    },
                    "percent": {
                      "cpu": 10.99999988079071,
                      "networkInbound": 12.0,
                      "networkOutbound": 6.0,
                      "disk": 26.666666666666668
                    },
                    "potentialNetworkOutbound": 48000.0,
                    "leaderNetworkInbound": 9000.0
                  },
                  "after": {
                    "replicas": 4,
                    "leaders": 1,
                    "load": {
                      "cpu": 10.99999988079071,
                      "networkInbound": 36000.0,
                      "networkOutbound": 12000.0,
                      "disk": 80000.0
                    },
                    "percent": {
                      "cpu": 10.99999988079071,
                      "networkInbound": 12.0,
                      "networkOutbound": 6.0,
                      "disk": 26.666666666666668
                    },
                    "potentialNetworkOutbound": 48000.0,
                    "leaderNetworkInbound": 9000.0
                  }
                }
              ],
              "changes": [
                {
                  "topic": "T0",
                  "partition": 0,
                  "oldReplicas": [
                    0,
                    1
                  ],
                  "newReplicas": [
                    1,
                    2
                  ],
                  "oldLeader": 0,
                  "newLeader": 1,
                  "dataToMoveMB": 20000.0,
                  "intraBrokerDataToMoveMB": 0.0,
                  "disks": [],
                  "reasons": [
                    {
                      "goal": "RackAwareGoal",
                      "from": 0,
                      "to": 2,
                      "gain": 1.0
                    },
                    {
                      "goal": "LeaderReplicaDistributionGoal",
                      "from": 2,
                      "to": 1,
                      "gain": 0.5555555555555556
                    }
                  ],
                  "why": "RackAwareGoal: brokers 0 and 1 are both in rack a, broker 2 is in b; also LeaderReplicaDistributionGoal"
                },
                {
                  "topic": "T3",
                  "partition": 0,
                  "oldReplicas": [
                    0,
                    4
                  ],
                  "newReplicas": [
                    3,
                    4
                  ],
                  "oldLeader": 0,
                  "newLeader": 3,
                  "dataToMoveMB": 20000.0,
                  "intraBrokerDataToMoveMB": 0.0,
                  "disks": [],
                  "reasons": [
                    {
                      "goal": "DiskUsageDistributionGoal",
                      "from": 0,
                      "to": 3,
                      "gain": 0.31999999999999984
                    }
                  ],
                  "why": "DiskUsageDistributionGoal: disk at 40.0 % on broker 0, 20.0 % on broker 3, 26.7 % on average"
                },
                {
                  "topic": "T1",
                  "partition": 0,
                  "oldReplicas": [
                    0,
                    2
                  ],
                  "newReplicas": [
                    2,
                    0
                  ],
                  "oldLeader": 0,
                  "newLeader": 2,
                  "dataToMoveMB": 0.0,
                  "intraBrokerDataToMoveMB": 0.0,
                  "disks": [],
                  "reasons": [
                    {
                      "goal": "LeaderReplicaDistributionGoal",
                      "from": 0,
                      "to": 2,
                      "gain": 0.5555555555555556
                    }
                  ],
                  "why": "LeaderReplicaDistributionGoal: 6 leaders on broker 0, 1 on broker 2, 2 on average"
                }
              ]
            }"#]].assert_eq(&json);
    }
}
