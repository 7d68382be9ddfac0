use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::{BrokerId, TopicPartition};

use super::scene::{Scene, request};
use crate::{
    executor::{Action, DirSight, Ending, Execution, Kind, Order, PartitionSight, Sight, Strategy},
    proposals::{Proposal, order, result},
};

const OPERATIONS: [&str; 10] = [
    "rebalance",
    "rebalance?goals=DiskUsageDistributionGoal,ReplicaDistributionGoal&skip_hard_goal_check=true&replication_throttle=1000000",
    "rebalance?max_data_to_move_mb=300&goals=DiskUsageDistributionGoal&skip_hard_goal_check=true",
    "add_broker?brokerid=4",
    "remove_broker?brokerid=1",
    "demote_broker?brokerid=0,2&exclude_follower_demotion=false",
    "fix_offline_replicas",
    "remove_disks?brokerid_and_logdirs=0-/d0,3-/d1",
    "rebalance?rebalance_disk=true",
    "rebalance?goals=ReplicaDistributionGoal,IntraBrokerDiskCapacityGoal,IntraBrokerDiskUsageDistributionGoal&skip_hard_goal_check=true",
];

/// Five brokers in racks of their own and twenty-four partitions with two replicas each, drawn by `seed`.
fn random(seed: u64, one_is_down: bool) -> Scene {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut draw = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut lines = vec![String::new(); 5];
    let mut sizes = Vec::new();
    for number in 0..24 {
        let name = format!("{}{number}", ["t", "u", "v"][number % 3]);
        // Brokers with low ids are likelier, so that there is something to do.
        let leader = draw(5).min(draw(5)) as usize;
        let follower = (leader + 1 + draw(3) as usize) % 5;
        lines[leader].push_str(&format!(" {name}*@/d{}", draw(2)));
        lines[follower].push_str(&format!(" {name}@/d{}", draw(2)));
        sizes.push((name, 20.0 + draw(200) as f64 + 0.3));
    }
    let down = |id: usize| if one_is_down && id == 1 { " down" } else { "" };
    let lines: Vec<String> =
        lines.iter().enumerate().map(|(id, line)| format!("b{id} r{id}{}:{line}", down(id))).collect();
    let mut scene = sizes
        .into_iter()
        .fold(Scene::draw(&lines.join("\n")).with_dirs(), |scene, (name, size)| scene.with_size(&name, size));
    // Who leads what is led by nobody is for the controller to say.
    for seen in scene.sighting.view.partitions.values_mut() {
        let alive = |id: &i32| !(one_is_down && *id == 1);
        seen.leader = seen.leader.filter(alive).or_else(|| seen.replicas.iter().copied().find(alive));
    }
    scene
}

/// A cluster that does at once whatever it is asked for.
struct Obedient {
    sight: Sight,
}

impl Obedient {
    fn of(scene: &Scene) -> Obedient {
        let view = &scene.sighting.view;
        let up: BTreeSet<BrokerId> = view.brokers.iter().filter(|(_, it)| it.up).map(|(id, _)| BrokerId(*id)).collect();
        let partitions = view.partitions.iter().map(|(partition, seen)| {
            let replicas: Vec<BrokerId> = seen.replicas.iter().copied().map(BrokerId).collect();
            let in_sync = replicas.iter().copied().filter(|id| up.contains(id)).collect();
            let leader = seen.leader.map(BrokerId);
            let seen = PartitionSight { replicas, in_sync, leader, min_in_sync: 1, ..PartitionSight::default() };
            (partition.clone(), seen)
        });
        let dirs = view.brokers.iter().flat_map(|(id, broker)| {
            broker.dirs.iter().map(|(partition, dir)| {
                ((BrokerId(*id), partition.clone()), DirSight { dir: dir.to_string(), ..DirSight::default() })
            })
        });
        let registered = view.brokers.keys().copied().map(BrokerId).collect();
        Obedient {
            sight: Sight { partitions: partitions.collect(), dirs: dirs.collect(), up, registered, ..Sight::default() },
        }
    }

    fn carry_out(&mut self, order: Order) -> Ending {
        let mut execution = Execution::new(order);
        for _ in 0..1_000 {
            self.sight.now += 1_000;
            let step = execution.step(&self.sight);
            for action in step.actions {
                self.act(action, &mut execution);
            }
            if let Some(ending) = step.ending {
                return ending;
            }
        }
        panic!("it does not end: {:?}", execution.tasks());
    }

    fn act(&mut self, action: Action, execution: &mut Execution) {
        match action {
            Action::LookForRates(asked) => execution.rates_were_found(&asked, &BTreeSet::new()),
            Action::Throttle(_) => execution.throttle_is_set(),
            Action::Relist(_) => {}
            Action::Unthrottle(_) => execution.throttle_is_lifted(),
            Action::PreferDirs(dirs) | Action::MoveDirs(dirs) => {
                for (broker, dirs) in dirs {
                    for (partition, dir) in dirs {
                        self.sight.dirs.entry((broker, partition)).or_default().dir = dir;
                    }
                }
            }
            Action::Reassign(lists) => {
                for (partition, replicas) in lists {
                    let seen = self.sight.partitions.get_mut(&partition).unwrap();
                    seen.in_sync = replicas.iter().copied().filter(|id| self.sight.up.contains(id)).collect();
                    seen.leader = seen.leader.filter(|id| replicas.contains(id)).or_else(|| replicas.first().copied());
                    seen.replicas = replicas;
                }
            }
            Action::Elect(partitions) => {
                for partition in partitions {
                    let seen = self.sight.partitions.get_mut(&partition).unwrap();
                    seen.leader = seen.replicas.first().copied();
                }
            }
            Action::Cancel(partitions) => panic!("nothing is to be taken back: {partitions:?}"),
        }
    }
}

/// Every proposal that can be made of these clusters.
fn proposals() -> Vec<(String, Scene, Proposal)> {
    let mut made = Vec::new();
    for seed in 0..24 {
        for url in OPERATIONS {
            let scene =
                random(seed, url == "fix_offline_replicas" || seed % 6 == 5 && url.starts_with("remove_broker"));
            if let Ok(proposal) = scene.propose(url) {
                made.push((format!("{url} on {seed}"), scene, proposal));
            }
        }
    }
    for url in OPERATIONS {
        let some = made
            .iter()
            .filter(|(name, _, it)| name.starts_with(&format!("{url} ")) && !it.outcome.plan.changes.is_empty());
        assert!(some.count() > 3, "{url} is hardly ever planned");
    }
    made
}

#[test]
fn an_order_does_what_was_planned_and_nothing_else() {
    for (name, scene, proposal) in proposals() {
        let request = request(name.split(' ').next().unwrap());
        let mut cluster = Obedient::of(&scene);
        let before = cluster.sight.clone();
        let ending = cluster.carry_out(order(&proposal, &request, &scene.settings.executor));
        assert_eq!(ending, Ending::Completed, "{name}");
        let mut wanted: BTreeMap<TopicPartition, (Vec<i32>, Option<i32>)> = BTreeMap::new();
        for (partition, seen) in before.partitions {
            wanted.insert(partition, (seen.replicas.iter().map(|id| id.0).collect(), seen.leader.map(|id| id.0)));
        }
        for change in &proposal.outcome.plan.changes {
            let partition = TopicPartition::new(&change.topic, change.partition);
            for disk in &change.disks {
                let lies = &cluster.sight.dirs[&(BrokerId(disk.broker.0), partition.clone())];
                assert_eq!(lies.dir, disk.to, "{name}: {partition}");
            }
            let replicas = change.new_replicas.iter().map(|id| id.0).collect();
            wanted.insert(partition, (replicas, Some(change.new_leader.0)));
        }
        for (partition, seen) in cluster.sight.partitions {
            let found = (seen.replicas.iter().map(|id| id.0).collect(), seen.leader.map(|id| id.0));
            assert_eq!(found, wanted[&partition], "{name}: {partition}");
        }
    }
}

#[test]
fn a_summary_counts_what_the_order_moves() {
    for (name, scene, proposal) in proposals() {
        let request = request(name.split(' ').next().unwrap());
        let summary = result(&proposal, &request, &scene.settings.executor).summary;
        let execution = Execution::new(order(&proposal, &request, &scene.settings.executor));
        let moves = &execution.order().moves;
        let progress = execution.progress(&Sight::default());
        const MB: u64 = 1024 * 1024;
        assert_eq!(summary.data_to_move_mb, progress.bytes_total / MB, "{name}");
        assert_eq!(summary.intra_broker_data_to_move_mb, progress.dir_bytes_total / MB, "{name}");
        assert_eq!(summary.num_intra_broker_replica_movements, progress.dirs.total() as u64, "{name}");
        let copies = |of: usize| moves[of].added().next().is_some();
        let of_kind = |kind: Kind| execution.tasks().iter().filter(move |task| task.kind == kind).map(|task| task.of);
        let copied = of_kind(Kind::Replicas).filter(|of| copies(*of)).count();
        assert_eq!(summary.num_replica_movements, copied as u64, "{name}");
        let elected = of_kind(Kind::Leader).filter(|of| !copies(*of) && moves[*of].dirs.is_empty()).count();
        assert_eq!(summary.num_leader_movements, elected as u64, "{name}");
        let planned = proposal.outcome.plan.megabytes();
        assert!((progress.bytes_total as f64 / MB as f64 - planned).abs() < 0.01, "{name}: {planned}");
        if let Some(budget) = proposal.ask.request.budget.megabytes {
            assert!(summary.data_to_move_mb as f64 <= budget, "{name}");
        }
    }
}

#[test]
fn an_order_goes_at_the_pace_of_the_request_or_of_the_settings() {
    let scene = Scene::draw("b0 a: t0* t1*\nb1 b:")
        .with_settings("default.replication.throttle=7\nauto.stop.external.agent=false");
    let order = |url: &str| order(&scene.propose(url).unwrap(), &request(url), &scene.settings.executor);
    let plain = order("rebalance");
    assert_eq!(
        (&plain.limits, &plain.strategies),
        (&scene.settings.executor.limits, &scene.settings.executor.strategies)
    );
    assert_eq!((plain.throttle, plain.stops_others, plain.leader_patience), (Some(7), false, 180_000));
    assert!(plain.emptied.is_empty() && !plain.repairs);
    assert_eq!(plain.baseline.up, [BrokerId(0), BrokerId(1)].into());
    let asked = order(
        "rebalance?replication_throttle=9&concurrent_partition_movements_per_broker=3&max_partition_movements_in_cluster=99999&\
         concurrent_leader_movements=11&broker_concurrent_leader_movements=4&concurrent_intra_broker_partition_movements=6&\
         replica_movement_strategies=PrioritizeSmallReplicaMovementStrategy,BaseReplicaMovementStrategy",
    );
    let limits = &asked.limits;
    assert_eq!(
        (limits.per_broker, limits.dirs_per_broker, limits.leaders_in_cluster, limits.leaders_per_broker),
        (3, 6, 11, 4)
    );
    assert_eq!(limits.in_cluster, 1_250, "never beyond what the cluster may do at once");
    assert_eq!(asked.strategies, [Strategy::PrioritizeSmallReplicaMovement, Strategy::Base]);
    assert_eq!(asked.throttle, Some(9));
    assert_eq!(order("rebalance?replication_throttle=0").throttle, None);
    let removal = order("remove_broker?brokerid=1&throttle_removed_broker=false");
    assert_eq!((removal.emptied, removal.limits.spared), ([BrokerId(1)].into(), [BrokerId(1)].into()));
    assert_eq!(order("add_broker?brokerid=1&throttle_added_broker=false").limits.spared, [BrokerId(1)].into());
}

#[test]
fn repairs_are_told_apart_and_what_was_short_is_remembered() {
    let mut scene = Scene::draw("b0 a: t0*\nb1 b down: t0\nb2 c:");
    scene.sighting.lagging.insert(TopicPartition::new("t", 0), vec![1]);
    scene.sighting.min_in_sync.insert("t".to_owned(), 2);
    let url = "fix_offline_replicas";
    let order = order(&scene.propose(url).unwrap(), &request(url), &scene.settings.executor);
    assert!(order.repairs);
    assert_eq!(order.baseline.up, [BrokerId(0), BrokerId(2)].into());
    assert_eq!(order.baseline.short, [TopicPartition::new("t", 0)].into());
}
