//! From the command line to a request the balancer understands.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::thread;

use clap::ValueEnum;
use evenkeel_balancer::cluster::{Broker, BrokerId, BrokerState, Cluster, Resource};
use evenkeel_balancer::estimate::Pace;
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Budget, Demotion, Operation, Request, TopicPattern};
use evenkeel_balancer::planner::Refused;
use evenkeel_balancer::rules::BadRequest;
use evenkeel_balancer::settings::Settings;

use super::Refusal;
use super::settings;
use super::units;
use super::what_if::WhatIf;

/// What is to be done, and what is to be left alone. Lists are separated by commas.
#[derive(clap::Args, Default)]
pub(crate) struct Question {
    /// What is to be done [default: rebalance, or remove-brokers with --remove-broker]
    #[arg(long)]
    mode: Option<Mode>,
    /// The brokers to add, to remove or to demote.
    #[arg(long, value_name = "ID,…")]
    brokers: Option<String>,
    /// The log directories to remove, such as 1:/data/a,2:/data/b.
    #[arg(long, value_name = "ID:DIR,…")]
    disks: Option<String>,
    /// The goals, most important first [default: those of the mode]
    #[arg(long, value_name = "GOAL,…")]
    pub(super) goals: Option<String>,
    /// Leaves topics alone whose whole name matches, but for replicas that must leave their broker or disk.
    #[arg(long, value_name = "REGEX")]
    exclude_topics: Option<String>,
    /// Moves replicas onto these brokers only, be they excluded or old.
    #[arg(long, value_name = "ID,…")]
    destination_brokers: Option<String>,
    /// Gives these brokers no leaders.
    #[arg(long, value_name = "ID,…")]
    exclude_brokers_for_leadership: Option<String>,
    /// Gives these brokers no replicas.
    #[arg(long, value_name = "ID,…")]
    exclude_brokers_for_replica_moves: Option<String>,
    /// Moves at most so much data, such as 500GB.
    #[arg(long, value_name = "SIZE")]
    max_data: Option<String>,
    /// Changes at most so many partitions.
    #[arg(long, value_name = "N")]
    max_moves: Option<usize>,
    /// How fast each broker may copy, such as 50MB/s: for the estimate of the time.
    #[arg(long, value_name = "RATE")]
    throttle: Option<String>,
    /// The most replicas a broker may hold (`max.replicas.per.broker`) [default: 10000]
    #[arg(long, value_name = "N")]
    max_replicas_per_broker: Option<u64>,
    /// Configures goals with Cruise Control's keys, such as disk.balance.threshold=1.2 (repeatable).
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// With `--mode demote`: leaves partitions with offline replicas alone.
    #[arg(long)]
    skip_urp_demotion: bool,
    /// With `--mode demote`: leaves partitions alone that the brokers do not lead.
    #[arg(long)]
    exclude_follower_demotion: bool,
    /// How fast a broker copies between its disks, such as 100MB/s: for the estimate of the time.
    #[arg(long, value_name = "RATE")]
    disk_bandwidth: Option<String>,
    /// Threads to plan with; the plan does not depend on it [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

/// What can be done to a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Mode {
    /// Brings every goal as far as it goes.
    Rebalance,
    /// Moves data onto the brokers, and only onto them.
    AddBrokers,
    /// Empties the brokers.
    RemoveBrokers,
    /// Takes leadership away from the brokers.
    Demote,
    /// Moves replicas off dead brokers and dead disks.
    FixOffline,
    /// Empties log directories into the others of their broker.
    RemoveDisks,
    /// Balances the disks of each broker among themselves.
    RebalanceDisks,
}

impl Mode {
    /// As it is typed.
    pub(super) fn name(self) -> &'static str {
        match self {
            Mode::Rebalance => "rebalance",
            Mode::AddBrokers => "add-brokers",
            Mode::RemoveBrokers => "remove-brokers",
            Mode::Demote => "demote",
            Mode::FixOffline => "fix-offline",
            Mode::RemoveDisks => "remove-disks",
            Mode::RebalanceDisks => "rebalance-disks",
        }
    }
}

/// A question that makes sense, as far as can be said without the cluster.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) mode: Mode,
    pub(super) what_if: WhatIf,
    pub(super) request: Request,
    pub(super) settings: Settings,
    /// How fast the plan is to be carried out.
    pub(super) pace: Pace,
}

impl Asked {
    /// Refuses brokers to exclude that are not there, destinations that can take nothing, brokers to add that are to lead
    /// nothing, and a limit to what nobody measured: a slip of the finger must not become a plan.
    pub(super) fn check_against(&self, cluster: &Cluster) -> Result<(), Refusal> {
        if self.request.budget.megabytes.is_some() && cluster.unknown().contains(Resource::Disk) {
            let problem = "--max-data cannot be kept: nobody measured how large replicas are; --max-moves can";
            return Err(Refusal::Options(problem.to_owned()));
        }
        for id in &self.request.destinations {
            if cluster.broker(*id).is_some_and(|broker| !broker.is_alive()) {
                return Err(Refusal::value("--destination-brokers", &id.to_string(), "the broker is dead"));
            }
        }
        if let Operation::AddBrokers(added) = &self.request.operation {
            let is_demoted = |id: &BrokerId| cluster.broker(*id).is_some_and(|it| it.state == BrokerState::Demoted);
            if let Some(id) = added.iter().copied().find(is_demoted) {
                let problem = "the broker is demoted, and would lead again if it were new; write ALIVE for DEMOTED in \
                               the snapshot if that is meant";
                return Err(Refusal::value("--brokers", &id.to_string(), problem));
            }
        }
        let excluded = self.request.excluded_for_leadership.iter().chain(&self.request.excluded_for_replica_moves);
        let unknown = excluded.copied().find(|id| cluster.broker(*id).is_none());
        unknown.map_or(Ok(()), |id| Err(Refused::from(BadRequest::UnknownBroker(id)).into()))
    }

    /// Removes by name only those that live. The balancer takes it that whoever is removed by name has its data, though it
    /// may be called dead; here those are dead that the snapshot says are. What is on them leaves them as it is.
    pub(super) fn forget_dead(&mut self, cluster: &Cluster) {
        if let Operation::RemoveBrokers(ids) = &mut self.request.operation {
            ids.retain(|id| cluster.broker(*id).is_none_or(Broker::is_alive));
        }
    }
}

impl Question {
    /// Reads every value, and refuses the first that cannot be.
    pub(super) fn parse(&self, what_if: &WhatIf) -> Result<Asked, Refusal> {
        let mode = self.mode(what_if)?;
        let list = |option, text: &Option<String>| {
            text.as_deref().map_or_else(|| Ok(BTreeSet::new()), |text| ids(option, text))
        };
        let mut settings = Settings::default();
        let set = settings::set(&mut settings, &self.set)?;
        if let Some(most) = self.max_replicas_per_broker {
            if set.contains("max.replicas.per.broker") {
                let problem =
                    "--max-replicas-per-broker and --set max.replicas.per.broker say the same: give one of them";
                return Err(Refusal::Options(problem.to_owned()));
            }
            settings.max_replicas_per_broker = most;
        }
        let megabytes = self
            .max_data
            .as_deref()
            .map(|text| units::size(text).ok_or_else(|| Refusal::value("--max-data", text, units::SIZE)));
        let rate = |option, text: &Option<String>| {
            let read = |text: &str| units::rate(text).ok_or_else(|| Refusal::value(option, text, units::RATE));
            text.as_deref().map(read).transpose()
        };
        let (throttle, disk_bandwidth) =
            (rate("--throttle", &self.throttle)?, rate("--disk-bandwidth", &self.disk_bandwidth)?);
        let pace = Pace { throttle, disk_bandwidth, ..Pace::default() };
        let request = Request {
            operation: self.operation(mode, what_if)?,
            goals: self.goals.as_deref().map_or_else(|| Ok(Vec::new()), goals)?,
            destinations: list("--destination-brokers", &self.destination_brokers)?,
            excluded_topics: self.exclude_topics.as_deref().map(topics).transpose()?,
            excluded_for_leadership: list("--exclude-brokers-for-leadership", &self.exclude_brokers_for_leadership)?,
            excluded_for_replica_moves: list(
                "--exclude-brokers-for-replica-moves",
                &self.exclude_brokers_for_replica_moves,
            )?,
            budget: Budget { megabytes: megabytes.transpose()?, moves: self.max_moves },
            threads: self.threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get),
            demotion: self.demotion(mode)?,
            ..Request::default()
        };
        contradiction(&request, what_if)?;
        Ok(Asked { mode, what_if: what_if.clone(), request, settings, pace })
    }

    fn mode(&self, what_if: &WhatIf) -> Result<Mode, Refusal> {
        match self.mode {
            None if what_if.removes() => Ok(Mode::RemoveBrokers),
            None => Ok(Mode::Rebalance),
            Some(mode) if what_if.removes() && mode != Mode::RemoveBrokers => Err(Refusal::Options(format!(
                "--remove-broker asks for --mode remove-brokers and does not go with --mode {}",
                mode.name()
            ))),
            Some(mode) => Ok(mode),
        }
    }

    fn demotion(&self, mode: Mode) -> Result<Demotion, Refusal> {
        let flags = [
            ("--skip-urp-demotion", self.skip_urp_demotion),
            ("--exclude-follower-demotion", self.exclude_follower_demotion),
        ];
        match flags.into_iter().find(|(_, given)| *given && mode != Mode::Demote) {
            Some((flag, _)) => Err(Refusal::Options(format!("{flag} goes with --mode demote only"))),
            None => Ok(Demotion {
                skip_under_replicated: self.skip_urp_demotion,
                exclude_followers: self.exclude_follower_demotion,
            }),
        }
    }

    fn operation(&self, mode: Mode, what_if: &WhatIf) -> Result<Operation, Refusal> {
        let takes = |option: &str, wanted: bool, given: bool| match (wanted, given) {
            (true, false) => Err(Refusal::Options(format!("--mode {} needs {option}", mode.name()))),
            (false, true) => Err(Refusal::Options(format!("--mode {} does not take {option}", mode.name()))),
            _ => Ok(()),
        };
        let of_brokers = matches!(mode, Mode::AddBrokers | Mode::RemoveBrokers | Mode::Demote);
        let what_if_names_them = match mode {
            Mode::AddBrokers => what_if.adds(),
            Mode::RemoveBrokers => what_if.removes(),
            _ => false,
        };
        takes("--brokers", of_brokers, self.brokers.is_some() || what_if_names_them)?;
        takes("--disks", mode == Mode::RemoveDisks, self.disks.is_some())?;
        let mut brokers = self.brokers.as_deref().map_or_else(|| Ok(BTreeSet::new()), |text| ids("--brokers", text))?;
        brokers.extend(what_if.removed()?);
        if mode == Mode::AddBrokers {
            brokers.extend(what_if.added()?.into_iter().map(|(id, _)| id));
        }
        Ok(match mode {
            Mode::Rebalance => Operation::Rebalance,
            Mode::AddBrokers => Operation::AddBrokers(brokers),
            Mode::RemoveBrokers => Operation::RemoveBrokers(brokers),
            Mode::Demote => Operation::DemoteBrokers(brokers),
            Mode::FixOffline => Operation::FixOfflineReplicas,
            Mode::RemoveDisks => {
                Operation::RemoveDisks(self.disks.as_deref().map_or_else(|| Ok(BTreeSet::new()), disks)?)
            }
            Mode::RebalanceDisks => Operation::RebalanceDisks,
        })
    }
}

/// Refuses to ask for a thing and for its opposite, and to add a broker that can get nothing. What else the options of a
/// request make of each other is the planner's to say: there, destinations override exclusions and the rule of new
/// brokers, as in Cruise Control.
fn contradiction(request: &Request, what_if: &WhatIf) -> Result<(), Refusal> {
    let operation = &request.operation;
    let stays_put =
        matches!(operation, Operation::DemoteBrokers(_) | Operation::RemoveDisks(_) | Operation::RebalanceDisks);
    let moves_elsewhere = |id: BrokerId| !request.destinations.is_empty() && !request.destinations.contains(&id);
    for (id, _) in what_if.added()? {
        let problem = if matches!(operation, Operation::RemoveBrokers(removed) if removed.contains(&id)) {
            "the broker cannot be removed at the same time"
        } else if stays_put {
            "nothing moves from broker to broker in this mode, so it would stay empty"
        } else if moves_elsewhere(id) {
            "the broker is none of --destination-brokers, so it would stay empty"
        } else if request.destinations.is_empty() && request.excluded_for_replica_moves.contains(&id) {
            "the broker is excluded for replica moves, so it would stay empty"
        } else {
            continue;
        };
        return Err(Refusal::value("--add-broker", &id.to_string(), problem));
    }
    if let Operation::AddBrokers(added) = operation
        && let Some(id) = added.iter().copied().find(|id| moves_elsewhere(*id))
    {
        let problem = "the broker is to be added, and yet none of --destination-brokers";
        return Err(Refusal::value("--brokers", &id.to_string(), problem));
    }
    Ok(())
}

/// A broker's id.
pub(super) fn id(option: &'static str, text: &str) -> Result<BrokerId, Refusal> {
    let id = text.trim().parse().ok().filter(|id| *id >= 0).map(BrokerId);
    id.ok_or_else(|| Refusal::value(option, text, "not a broker's id, which is a number from 0"))
}

fn ids(option: &'static str, text: &str) -> Result<BTreeSet<BrokerId>, Refusal> {
    text.split(',').map(|word| id(option, word)).collect()
}

fn disks(text: &str) -> Result<BTreeSet<(BrokerId, String)>, Refusal> {
    let disk = |word: &str| match word.split_once(':') {
        Some((broker, directory)) if !directory.is_empty() => Ok((id("--disks", broker)?, directory.to_owned())),
        _ => Err(Refusal::value("--disks", word, "not a broker and its log directory, such as 1:/data/a")),
    };
    text.split(',').map(disk).collect()
}

fn goals(text: &str) -> Result<Vec<Goal>, Refusal> {
    let mut goals = Vec::new();
    for name in text.split(',') {
        let goal = Goal::from_name(name).map_err(|unknown| Refusal::Goal(unknown.to_string()))?;
        if goals.contains(&goal) {
            return Err(Refusal::value("--goals", text, format!("{goal} is listed twice")));
        }
        goals.push(goal);
    }
    Ok(goals)
}

fn topics(text: &str) -> Result<TopicPattern, Refusal> {
    TopicPattern::new(text).map_err(|error| {
        // The library draws the place over several lines; the last one says what is wrong.
        let error = error.to_string();
        let last = error.lines().last().unwrap_or_default().trim();
        Refusal::value("--exclude-topics", text, last.strip_prefix("error: ").unwrap_or(last))
    })
}

#[cfg(test)]
mod tests;
