//! The answer for people: what is to be done, the goals, the brokers before and after, the biggest moves.

use std::fmt::Write;

use evenkeel_balancer::cluster::{BrokerId, Resource};
use evenkeel_balancer::held::Rule;
use evenkeel_balancer::plan::Change;

use super::report::{BrokerLine, DiskUse, GoalLine, HeldBackBy, Report};
use super::shortfall::NotEmptied;
use super::units::{count, counted, megabytes, minutes};
use crate::columns::columns;
use crate::printable;

/// More brokers than fit on a screen are not drawn; those that change most are.
const MOST_BROKERS: usize = 40;
/// The same for disks.
const MOST_DISKS: usize = 40;
const BIGGEST_MOVES: usize = 10;
/// Characters in a bar.
const BAR: usize = 6;

/// The whole answer as text.
pub(super) fn render(report: &Report<'_>) -> String {
    let mut text = String::new();
    let sections = [summary(report), goals(report), brokers(report), disks(report), biggest_moves(report)];
    for section in sections.iter().filter(|section| !section.is_empty()) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(section);
    }
    text
}

fn summary(report: &Report<'_>) -> String {
    let (cluster, summary) = (&report.cluster, &report.summary);
    let mut text = format!(
        "{}{}, {}, {}, {}\n",
        cluster.name.map(|name| format!("{}: ", printable::line(name))).unwrap_or_default(),
        counted(cluster.brokers as u64, "broker", "brokers"),
        counted(cluster.topics as u64, "topic", "topics"),
        counted(cluster.partitions as u64, "partition", "partitions"),
        counted(cluster.replicas as u64, "replica", "replicas"),
    );
    let mut line = |title: &str, value: String| text.push_str(&format!("{title:12} {}\n", printable::line(&value)));
    let what_if = &report.what_if;
    if !what_if.is_nothing() {
        let mut words: Vec<String> = Vec::new();
        words.extend(what_if.add_brokers.iter().map(|broker| format!("with a new broker {broker}")));
        words.extend(what_if.remove_brokers.iter().map(|broker| format!("without broker {broker}")));
        words.extend(what_if.lose_rack.map(|rack| format!("with rack {rack} lost")));
        line("what if", words.join(", "));
    }
    line("plan", format!("{} ({})", report.plan_id, report.mode));
    if summary.changes == 0 {
        line("to do", "nothing".to_owned());
    } else {
        let mut moves = vec![counted(summary.replica_moves, "replica", "replicas")];
        if summary.disk_moves > 0 {
            moves.push(counted(summary.disk_moves, "replica between disks", "replicas between disks"));
        }
        moves.push(counted(summary.leader_moves, "leader", "leaders"));
        line("to move", moves.join(", "));
        let least = summary.least_data_to_move.unwrap_or_default();
        let bound = if least > 0.0 {
            let ratio = summary.data_ratio.map(|ratio| format!(", this one has {ratio:.2} times that"));
            format!("; no plan gets as far with less than {}{}", megabytes(least), ratio.unwrap_or_default())
        } else {
            String::new()
        };
        line("data", size(summary.data_to_move) + &bound);
        let between_disks = summary.intra_broker_data_to_move.unwrap_or_default();
        if between_disks > 0.0 {
            let time = summary.minutes.between_disks.map(|time| format!(" in {}", minutes(time)));
            let unknown = || "; --disk-bandwidth would tell how long that takes".to_owned();
            line("on disks", megabytes(between_disks) + &time.unwrap_or_else(unknown));
        }
        let [expected, one_by_one] =
            [summary.minutes.expected, summary.minutes.one_by_one].map(Option::unwrap_or_default);
        // Nobody copies between brokers where neither says so, and nobody waits for that.
        let mut times = Vec::new();
        if expected > 0.0 {
            times.push(format!("{} expected", minutes(expected)));
        }
        if one_by_one > 0.0 {
            times.push(format!("{} at the full speed of one broker", minutes(one_by_one)));
        }
        if !times.is_empty() {
            line("time", times.join("; "));
        }
    }
    line("balancedness", format!("{:.1} → {:.1} of 100", report.balancedness.before, report.balancedness.after));
    let provision = &report.provision;
    line("size", [provision.status, provision.recommendation].join(" ").trim_end().to_owned());
    let undone = &summary.undone;
    if undone.changes > 0 {
        let changes = counted(undone.changes as u64, "change", "changes");
        line("left undone", format!("{changes}, {}", size(undone.data_to_move)));
    }
    if let Some(words) = NotEmptied::in_words(&summary.not_emptied) {
        line("not empty", words);
    }
    if let Some(words) = summary.lost.in_words() {
        line("lost", words);
    }
    if summary.unsafe_changes > 0 {
        let changes = counted(summary.unsafe_changes as u64, "change", "changes");
        let verb = if summary.unsafe_changes == 1 { "breaks" } else { "break" };
        line("order", format!("{changes} {verb} a hard goal for a while, in whatever order they come"));
    }
    let holds_back = |rule: Rule| report.goals.iter().flat_map(|goal| &goal.held_back_by).any(|held| held.rule == rule);
    if report.heals && holds_back(Rule::Healing) {
        let rule = "soft goals move only replicas that are offline or on brokers to be removed";
        line("held back", format!("{rule}; a rebalance afterwards may get further"));
    }
    if holds_back(Rule::UnlikeReplicas) {
        let rule = "where replicas of a partition differ, none takes the place of another in the same plan";
        line("held back", format!("{rule}; planning again afterwards may get further"));
    }
    if !report.unmeasured_goals.is_empty() {
        let (goals, what) = (report.unmeasured_goals.join(", "), cluster.unmeasured.join(", "));
        line("not judged", format!("{goals}: {what} not measured"));
    }
    if summary.on_unknown_disks > 0 {
        let replicas = counted(summary.on_unknown_disks, "replica", "replicas");
        line("not judged", format!("{replicas} of which nobody knows the log directory"));
    }
    text
}

/// How much data, if anybody knows how large replicas are.
fn size(data: Option<f64>) -> String {
    data.map_or_else(|| "not known: nobody measured how large replicas are".to_owned(), megabytes)
}

fn goals(report: &Report<'_>) -> String {
    let width = report.goals.iter().map(|goal| goal.goal.len()).max().unwrap_or_default();
    let mut text = String::from("GOALS\n");
    for goal in &report.goals {
        let hard = if goal.hard { "hard" } else { "" };
        let row = format!("{:width$}  {hard:4}  {:9}  {}", goal.goal, goal.status, how(goal));
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// By how much a goal is missed before and after, and what stood in its way.
pub(super) fn how(goal: &GoalLine) -> String {
    if goal.miss_before == 0.0 && goal.miss_after == 0.0 {
        return String::new();
    }
    let mut words = format!("missed by {} → {}", short(goal.miss_before), short(goal.miss_after));
    // Of goals and rules whatever stood in the way most often.
    let (refused, held) = (goal.refused_by.first(), goal.held_back_by.first());
    match (refused, held) {
        (refused, Some(held)) if refused.is_none_or(|refused| refused.times < held.times) => {
            let _ = write!(words, "; {}", in_words(held));
        }
        (Some(first), _) => {
            let _ = write!(words, "; held back by {} ({})", first.goal, counted(first.times, "time", "times"));
        }
        (None, _) => {}
    }
    words
}

/// What a rule kept from the goal.
fn in_words(held: &HeldBackBy) -> String {
    let rule = match held.rule {
        Rule::NothingHelps => return "nothing that was tried helps".to_owned(),
        Rule::Budget => return format!("the budget leaves {} undone", counted(held.times, "change", "changes")),
        Rule::Healing => "only what is offline moves",
        Rule::OnlyNewBrokers => "only new brokers get anything",
        Rule::Destinations => "only the destinations get anything",
        Rule::ExcludedForReplicaMoves => "brokers that get no replicas",
        Rule::ExcludedForLeadership => "brokers that get no leaders",
        Rule::ExcludedTopics => "topics that are left alone",
        Rule::OnlyImmigrants => "only immigrants move",
        Rule::Moving => "partitions that are being reassigned",
        Rule::Offline => "replicas that are offline",
        Rule::UnlikeReplicas => "no replica takes the place of an unlike one in the same plan",
    };
    format!("held back by a rule: {rule} ({})", counted(held.times, "time", "times"))
}

fn short(number: f64) -> String {
    match number {
        0.0 => "0".to_owned(),
        _ if number >= 100.0 => count(number.round() as u64),
        _ if number >= 1.0 => format!("{number:.1}"),
        _ => format!("{number:.3}"),
    }
}

fn brokers(report: &Report<'_>) -> String {
    let shown = most_changed(&report.brokers);
    let measured: Vec<(Resource, &str)> = [
        (Resource::Disk, "DISK"),
        (Resource::Cpu, "CPU"),
        (Resource::NwIn, "NETWORK IN"),
        (Resource::NwOut, "NETWORK OUT"),
    ]
    .into_iter()
    .filter(|(resource, _)| !report.cluster.unmeasured.contains(&resource.name()))
    .collect();
    let mut rows = vec![{
        let titles = ["BROKER", "RACK", "STATE", "REPLICAS", "LEADERS"].map(str::to_owned);
        titles.into_iter().chain(measured.iter().map(|(_, title)| (*title).to_owned())).collect::<Vec<_>>()
    }];
    for line in &shown {
        let mut row = vec![
            line.broker.to_string(),
            line.rack.to_owned(),
            line.state.to_owned(),
            change(line.before.replicas, line.after.replicas),
            change(line.before.leaders, line.after.leaders),
        ];
        row.extend(
            measured.iter().map(|(resource, _)| {
                utilisation(line.before.percent.get(*resource), line.after.percent.get(*resource))
            }),
        );
        rows.push(row);
    }
    let mut text = columns(&rows);
    let hidden = report.brokers.len() - shown.len();
    if hidden > 0 {
        let _ = writeln!(
            text,
            "and {} that change less; --output json has them all",
            counted(hidden as u64, "broker", "brokers")
        );
    }
    text
}

fn disks(report: &Report<'_>) -> String {
    if report.disks.is_empty() {
        return String::new();
    }
    let moved = |disk: &DiskUse<'_>| (disk.after.data - disk.before.data).abs();
    let mut shown: Vec<(usize, &DiskUse<'_>)> = report.disks.iter().enumerate().collect();
    shown.sort_by(|(one_at, one), (other_at, other)| moved(other).total_cmp(&moved(one)).then(one_at.cmp(other_at)));
    shown.truncate(MOST_DISKS);
    shown.sort_by_key(|(at, _)| *at);
    let mut rows = vec![["DISK", "REPLICAS", "USED"].map(str::to_owned).to_vec()];
    for (_, disk) in &shown {
        rows.push(vec![
            format!("{}:{}", disk.broker, disk.directory),
            change(disk.before.replicas, disk.after.replicas),
            utilisation(disk.before.percent, disk.after.percent),
        ]);
    }
    let mut text = columns(&rows);
    let hidden = report.disks.len() - shown.len();
    if hidden > 0 {
        let _ = writeln!(
            text,
            "and {} that change less; --output json has them all",
            counted(hidden as u64, "disk", "disks")
        );
    }
    text
}

/// Those to draw, ascending by id.
fn most_changed<'r, 'a>(brokers: &'r [BrokerLine<'a>]) -> Vec<&'r BrokerLine<'a>> {
    let moved = |line: &BrokerLine<'_>| {
        let difference = |resource| {
            let (before, after) = (line.before.percent.get(resource)?, line.after.percent.get(resource)?);
            Some((after - before).abs())
        };
        Resource::ALL.into_iter().filter_map(difference).fold(0.0, f64::max)
    };
    let mut lines: Vec<&BrokerLine<'_>> = brokers.iter().collect();
    if lines.len() > MOST_BROKERS {
        lines.sort_by(|one, other| moved(other).total_cmp(&moved(one)).then(one.broker.cmp(&other.broker)));
        lines.truncate(MOST_BROKERS);
        lines.sort_by_key(|line| line.broker);
    }
    lines
}

fn change(before: u64, after: u64) -> String {
    if before == after { count(before) } else { format!("{} → {}", count(before), count(after)) }
}

fn utilisation(before: Option<f64>, after: Option<f64>) -> String {
    match (before, after) {
        (Some(before), Some(after)) => format!("{} {} {before:.0} → {after:.0} %", bar(before), bar(after)),
        _ => "–".to_owned(),
    }
}

/// A bar for a share in percent, in eighths of a character.
fn bar(percent: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (percent.clamp(0.0, 100.0) / 100.0 * (BAR * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    let drawn = eighths.div_ceil(8);
    bar.push_str(&"·".repeat(BAR - drawn));
    bar
}

fn biggest_moves(report: &Report<'_>) -> String {
    let size = |change: &Change| change.megabytes + change.disk_megabytes;
    let mut biggest: Vec<&Change> = report.changes.all.iter().collect();
    if biggest.is_empty() {
        return String::new();
    }
    // Stable: of two equal ones, that which comes first in the plan.
    biggest.sort_by(|one, other| size(other).total_cmp(&size(one)));
    biggest.truncate(BIGGEST_MOVES);
    let mut rows = vec![["BIGGEST MOVES", "FROM", "TO", "DATA", "WHY"].map(str::to_owned).to_vec()];
    for change in biggest {
        rows.push(vec![
            format!("{}-{}", change.topic, change.partition),
            list(&change.old_replicas, change.old_leader),
            list(&change.new_replicas, change.new_leader),
            if size(change) > 0.0 { megabytes(size(change)) } else { "–".to_owned() },
            report.changes.explainer.why(change),
        ]);
    }
    columns(&rows)
}

/// The replica list, the leader marked if it is not the first.
fn list(replicas: &[BrokerId], leader: BrokerId) -> String {
    let word = |(position, broker): (usize, &BrokerId)| {
        let mark = if position > 0 && *broker == leader { "*" } else { "" };
        format!("{broker}{mark}")
    };
    replicas.iter().enumerate().map(word).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::testing;
    use super::*;

    #[test]
    fn the_whole_answer() {
        expect![[r#"
            small: 5 brokers, 9 topics, 9 partitions, 18 replicas
            plan         4fc1637cae5ec93aff18472eadff2b9b (rebalance)
            to move      2 replicas, 3 leaders
            data         39.1 GB; no plan gets as far with less than 32.0 GB, this one has 1.22 times that
            time         5 min 30 s expected; 3 min 48 s at the full speed of one broker
            balancedness 0.0 → 74.5 of 100
            size         RIGHT_SIZED
            held back    where replicas of a partition differ, none takes the place of another in the same plan; planning again afterwards may get further

            GOALS
            RackAwareGoal                  hard  FIXED      missed by 1.0 → 0
            DiskUsageDistributionGoal            FIXED      missed by 0.730 → 0
            LeaderReplicaDistributionGoal        VIOLATED   missed by 2.8 → 0.556; held back by DiskUsageDistributionGoal (7 times)

            BROKER  RACK  STATE  REPLICAS  LEADERS  DISK                     CPU                      NETWORK IN               NETWORK OUT
            0       a     ALIVE  6 → 4     6 → 3    ██▍··· █▋···· 40 → 27 %  ██▉··· █▌···· 48 → 25 %  █▏···· ▊····· 18 → 12 %  ██▏··· █▏···· 36 → 18 %
            1       a     ALIVE  2         0 → 1    █▋···· █▋···· 27 → 27 %  ▎····· █····· 4 → 17 %   ▊····· ▊····· 12 → 12 %  ······ ▊····· 0 → 12 %
            2       b     ALIVE  3 → 4     1 → 2    █▎···· █▋···· 20 → 27 %  ▋····· █▏···· 10 → 18 %  ▌····· ▊····· 9 → 12 %   ▍····· ▊····· 6 → 12 %
            3       b     ALIVE  3 → 4     1 → 2    █▎···· █▋···· 20 → 27 %  ▋····· █▏···· 10 → 18 %  ▌····· ▊····· 9 → 12 %   ▍····· ▊····· 6 → 12 %
            4       c     ALIVE  4         1        █▋···· █▋···· 27 → 27 %  ▋····· ▋····· 11 → 11 %  ▊····· ▊····· 12 → 12 %  ▍····· ▍····· 6 → 6 %

            BIGGEST MOVES  FROM  TO   DATA     WHY
            T0-0           0,1   1,2  19.5 GB  RackAwareGoal: brokers 0 and 1 are both in rack a, broker 2 is in b; also LeaderReplicaDistributionGoal
            T3-0           0,4   3,4  19.5 GB  DiskUsageDistributionGoal: disk at 40.0 % on broker 0, 20.0 % on broker 3, 26.7 % on average
            T1-0           0,2   2,0  –        LeaderReplicaDistributionGoal: 6 leaders on broker 0, 1 on broker 2, 2 on average
        "#]].assert_eq(&testing::with_report(render));
    }

    #[test]
    fn nothing_to_do_is_said_and_no_move_is_listed() {
        expect![[r#"
            small: 5 brokers, 4 topics, 4 partitions, 8 replicas
            plan         e3b0c44298fc1c149afbf4c8996fb924 (rebalance)
            to do        nothing
            balancedness 100.0 → 100.0 of 100
            size         RIGHT_SIZED

            GOALS
            RackAwareGoal  hard  NO-ACTION

            BROKER  RACK  STATE  REPLICAS  LEADERS  DISK                     CPU                    NETWORK IN             NETWORK OUT
            0       a     ALIVE  2         1        ▊····· ▊····· 13 → 13 %  ▌····· ▌····· 9 → 9 %  ▍····· ▍····· 6 → 6 %  ▍····· ▍····· 6 → 6 %
            1       a     ALIVE  0         0        ······ ······ 0 → 0 %    ······ ······ 0 → 0 %  ······ ······ 0 → 0 %  ······ ······ 0 → 0 %
            2       b     ALIVE  2         1        ▊····· ▊····· 13 → 13 %  ▌····· ▌····· 9 → 9 %  ▍····· ▍····· 6 → 6 %  ▍····· ▍····· 6 → 6 %
            3       b     ALIVE  2         1        ▊····· ▊····· 13 → 13 %  ▌····· ▌····· 9 → 9 %  ▍····· ▍····· 6 → 6 %  ▍····· ▍····· 6 → 6 %
            4       c     ALIVE  2         1        ▊····· ▊····· 13 → 13 %  ▌····· ▌····· 9 → 9 %  ▍····· ▍····· 6 → 6 %  ▍····· ▍····· 6 → 6 %
        "#]].assert_eq(&testing::with_report_of_a_balanced_cluster(render));
    }

    #[test]
    fn bars_are_as_long_as_what_they_show() {
        let bars: Vec<String> = [0.0, 1.0, 50.0, 71.0, 100.0, 130.0].into_iter().map(bar).collect();
        assert!(bars.iter().all(|bar| bar.chars().count() == BAR));
        expect!["······ ······ ███··· ████▎· ██████ ██████"].assert_eq(&bars.join(" "));
    }
}
