//! The simulated cluster as text.

use evenkeel_sim::BrokerId;
use evenkeel_sim::cluster::{BrokerState, BrokerStatus, CopyStatus, DirStatus, MoveView, TopicStatus};

use super::command::USAGES;
use crate::columns::columns;
use crate::plan::units::{count, megabytes};

const BAR: usize = 20;
/// More copies than fit on a screen are counted, not drawn.
const MOST_COPIES: usize = 20;

fn bytes(bytes: f64) -> String {
    megabytes(bytes / (1024.0 * 1024.0))
}

fn bar(part: f64) -> String {
    let full = ((part.clamp(0.0, 1.0) * BAR as f64).round() as usize).min(BAR);
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

/// Brokers, their disks, and copies under way.
pub(super) fn status(brokers: &[BrokerStatus], copies: &[CopyStatus], controller: Option<BrokerId>) -> String {
    let head = ["broker", "rack", "state", "replicas", "leaders", "behind", "disks"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for broker in brokers {
        let shown = if Some(broker.id) == controller { " (controller)" } else { "" };
        let slow = if broker.link_pace < 1.0 { slow("link", broker.link_pace) } else { String::new() };
        let stale = if broker.stale { ", metadata stand still" } else { "" };
        rows.push(vec![
            broker.id.to_string(),
            broker.rack.clone().unwrap_or_else(|| "-".to_owned()),
            format!("{}{shown}{slow}{stale}", state(broker.state)),
            count(broker.replicas as u64),
            count(broker.leaders as u64),
            count(broker.out_of_sync as u64),
            broker.dirs.iter().map(disk).collect::<Vec<_>>().join("; "),
        ]);
    }
    let mut text = columns(&rows);
    if copies.is_empty() {
        return text;
    }
    text.push('\n');
    let mut rows = vec![["copy", "from", "to", "", "done"].map(str::to_owned).to_vec()];
    for copy in copies.iter().take(MOST_COPIES) {
        let part = if copy.total > 0.0 { copy.done / copy.total } else { 0.0 };
        let to = copy.to_dir.as_ref().map_or_else(|| copy.to.to_string(), |dir| format!("{}:{dir}", copy.to));
        rows.push(vec![
            copy.partition.to_string(),
            copy.from.map_or_else(|| "-".to_owned(), |from| from.to_string()),
            to,
            bar(part),
            format!("{:.0} %, {} of {}", part * 100.0, bytes(copy.done), bytes(copy.total)),
        ]);
    }
    text.push_str(&columns(&rows));
    if copies.len() > MOST_COPIES {
        text.push_str(&format!("and {} more copies\n", count((copies.len() - MOST_COPIES) as u64)));
    }
    text
}

/// What the cluster's clock has lost, if it has: see [`evenkeel_sim::serve::World::with_diligence`].
pub(super) fn left_out(millis: i64) -> String {
    match millis / 1_000 {
        0 => String::new(),
        seconds => format!(
            "{} seconds of the cluster have been left out: it takes longer than its time; a smaller --speed would do\n",
            count(seconds.unsigned_abs())
        ),
    }
}

fn state(state: BrokerState) -> &'static str {
    match state {
        BrokerState::Running => "running",
        BrokerState::Fenced => "fenced",
        BrokerState::CutOff => "cut off",
        BrokerState::Down => "down",
        BrokerState::Unregistered => "removed",
    }
}

fn slow(what: &str, pace: f64) -> String {
    // Down to a thousandth, without trailing zeros.
    format!(", {what} at {} %", (pace * 100_000.0).round() / 1_000.0)
}

fn disk(dir: &DirStatus) -> String {
    if dir.failed {
        return format!("{} failed", dir.path);
    }
    let slow = if dir.pace < 1.0 { slow("disk", dir.pace) } else { String::new() };
    let percent = if dir.capacity > 0.0 { 100.0 * dir.used / dir.capacity } else { 100.0 };
    format!("{} {} ({percent:.1} %){slow}", dir.path, bytes(dir.used))
}

/// Topics, their sizes and rates.
pub(super) fn topics(topics: &[TopicStatus]) -> String {
    let head = ["topic", "partitions", "factor", "size", "in", "records", "under-replicated", "leaderless"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(topics.iter().map(|topic| {
        vec![
            topic.name.clone(),
            count(topic.partitions as u64),
            topic.factor.to_string(),
            bytes(topic.bytes),
            format!("{}/s", bytes(topic.bytes_in)),
            count(u64::try_from(topic.records).unwrap_or(0)),
            count(topic.under_replicated as u64),
            count(topic.leaderless as u64),
        ]
    }));
    columns(&rows)
}

/// Reassignments under way.
pub(super) fn moves(moves: &[MoveView]) -> String {
    if moves.is_empty() {
        return "no reassignment is under way\n".to_owned();
    }
    let list = |ids: &[BrokerId]| ids.iter().map(BrokerId::to_string).collect::<Vec<_>>().join(",");
    let mut rows = vec![["partition", "replicas", "adding", "removing"].map(str::to_owned).to_vec()];
    rows.extend(
        moves.iter().map(|it| vec![it.partition.to_string(), list(&it.replicas), list(&it.adding), list(&it.removing)]),
    );
    columns(&rows)
}

/// All commands.
pub(super) fn help() -> String {
    columns(&USAGES.map(|(usage, what)| vec![usage.to_owned(), what.to_owned()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_sim::cluster::{BrokerSpec, Fault, NewTopic, Reassignment};
    use evenkeel_sim::traffic::Load;
    use evenkeel_sim::{Cluster, Options, TopicPartition};
    use expect_test::expect;

    #[test]
    fn the_page_lists_the_commands_as_help_does() {
        let page = include_str!("../../../../docs/sim.md");
        assert!(page.contains(&format!("```text\n{}```\n", help())), "docs/sim.md lacks:\n{}", help());
    }

    #[test]
    fn a_cluster_in_trouble_can_be_read_at_a_glance() {
        let spec = |id: i32| BrokerSpec::new(id).in_rack(["a", "b"][id as usize % 2]).with_dirs(["/d0", "/d1"]);
        let mut cluster = Cluster::new(Options::default(), (0..4).map(spec));
        let load = Load::steady(1_048_576.0);
        cluster
            .create_topic(&NewTopic::manual("orders", &[&[0, 1], &[1, 2]]).loaded(load, 600_000), false)
            .expect("made");
        cluster.tick(1_000);
        for fault in [
            Fault::SlowLink(BrokerId(3), 0.125),
            Fault::SlowDisk(BrokerId(0), 1, 0.5),
            Fault::FailedDir(BrokerId(2), 1),
            Fault::ForeignReassignment(Reassignment {
                partition: TopicPartition::new("orders", 0),
                target: Some(vec![BrokerId(0), BrokerId(3)]),
            }),
        ] {
            cluster.suffer(&fault);
        }
        cluster.tick(10_000);
        let status = status(&cluster.broker_status(), &cluster.copy_status(), Some(BrokerId(0)));
        expect![[r#"
            broker  rack  state                    replicas  leaders  behind  disks
            0       a     running (controller)     1         1        0       /d0 306 MB (0.0 %); /d1 0 B (0.0 %), disk at 50 %
            1       b     running                  2         1        0       /d0 306 MB (0.0 %); /d1 306 MB (0.0 %)
            2       a     running                  1         0        0       /d0 306 MB (0.0 %); /d1 failed
            3       b     running, link at 12.5 %  1         0        1       /d0 148 MB (0.0 %); /d1 0 B (0.0 %)

            copy      from  to                        done
            orders-0  0     3   ██████████░░░░░░░░░░  48 %, 148 MB of 306 MB
        "#]].assert_eq(&status);
        expect![[r#"
            topic   partitions  factor  size    in         records  under-replicated  leaderless
            orders  2           3       611 MB  1.00 MB/s  640,678  1                 0
        "#]]
        .assert_eq(&topics(&cluster.topic_status()));
        expect![[r#"
            partition  replicas  adding  removing
            orders-0   0,3,1     3       1
        "#]]
        .assert_eq(&moves(&cluster.list_reassignments(None)));
    }
}
