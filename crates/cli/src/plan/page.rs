//! `--report`: the plan as one page for a browser, to look at rather than to read.
//!
//! The page stands alone: its style and its script are in it, it asks the network for nothing, and without the
//! script it shows the same, only unfiltered. Whatever comes from the cluster is escaped on its way in.

mod brokers;
mod flows;
mod html;

use std::fmt::Write as _;

use super::report::{GoalLine, Report};
use super::shortfall::NotEmptied;
use super::table;
use super::units::{count, counted, megabytes, minutes};
use flows::Flows;
use html::text;

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Beyond this many the largest moves are shown, and a browser stays quick.
const MOST_CHANGES: usize = 1_000;

/// The whole page.
pub(super) fn render(report: &Report<'_>) -> String {
    let name = report.cluster.name.unwrap_or("Kafka cluster");
    let mut page = String::new();
    page.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    // Nothing may be fetched from anywhere, whatever a name in the cluster contains.
    page.push_str("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ");
    page.push_str("style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n");
    let _ = writeln!(page, "<title>{}: a plan to balance it</title>", text(name));
    let _ = write!(page, "<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n");
    let _ = writeln!(page, "<h1>{}</h1>", text(name));
    page.push_str(&lead(report));
    page.push_str(&tiles(report));
    section(&mut page, "goals", "Goals", &goals(&report.goals));
    section(&mut page, "brokers", "Brokers, before and after", &brokers::render(report));
    section(&mut page, "flows", "Who sends data to whom", &flows_section(report));
    section(&mut page, "moves", "What moves, and why", &changes(report));
    let _ = writeln!(page, "<footer>Plan {} by Evenkeel.</footer>", text(&report.plan_id));
    let _ = write!(page, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    page
}

fn section(page: &mut String, id: &str, title: &str, content: &str) {
    let _ = write!(page, "<section id=\"{id}\">\n<h2>{title}</h2>\n{content}</section>\n");
}

/// One sentence on what the cluster is, and one on what is supposed of it.
fn lead(report: &Report<'_>) -> String {
    let cluster = &report.cluster;
    let mut words = format!(
        "<p class=\"lead\">{}, {}, {}, {}; mode {}.",
        counted(cluster.brokers as u64, "broker", "brokers"),
        counted(cluster.topics as u64, "topic", "topics"),
        counted(cluster.partitions as u64, "partition", "partitions"),
        counted(cluster.replicas as u64, "replica", "replicas"),
        text(report.mode),
    );
    if !report.what_if.is_nothing() {
        words.push_str(" This is a what-if:");
        for broker in report.what_if.add_brokers {
            let _ = write!(words, " with broker {};", text(broker));
        }
        for broker in report.what_if.remove_brokers {
            let _ = write!(words, " without broker {};", text(broker));
        }
        if let Some(rack) = report.what_if.lose_rack {
            let _ = write!(words, " without rack {};", text(rack));
        }
    }
    words.push_str("</p>\n");
    words
}

fn tiles(report: &Report<'_>) -> String {
    let summary = &report.summary;
    let mut tiles = vec![
        ("balancedness", format!("{:.1} → {:.1}", report.balancedness.before, report.balancedness.after)),
        ("data to move", summary.data_to_move.map_or_else(|| "not measured".to_owned(), megabytes)),
        ("replicas to move", count(summary.replica_moves)),
        ("leaders to move", count(summary.leader_moves)),
    ];
    if let Some(data) = summary.intra_broker_data_to_move.filter(|data| *data > 0.0) {
        tiles.push(("between disks", megabytes(data)));
    }
    if let Some(time) = summary.minutes.expected.filter(|time| *time > 0.0) {
        tiles.push(("expected to take", minutes(time)));
    }
    if let Some(least) = summary.least_data_to_move.filter(|least| *least > 0.0) {
        tiles.push(("no plan does with less than", megabytes(least)));
    }
    if summary.undone.changes > 0 {
        tiles.push(("left undone", counted(summary.undone.changes as u64, "change", "changes")));
    }
    tiles.push(("size of the cluster", report.provision.status.to_lowercase().replace('_', " ")));
    let mut list = String::from("<dl class=\"tiles\">\n");
    for (what, value) in tiles {
        let _ = writeln!(list, "<div><dt>{what}</dt><dd>{}</dd></div>", text(&value));
    }
    list.push_str("</dl>\n");
    let not_emptied = NotEmptied::in_words(&summary.not_emptied).map(|words| format!("Not empty afterwards: {words}."));
    let lost = summary.lost.in_words().map(|words| format!("Lost: {words}."));
    for words in [not_emptied, lost].into_iter().flatten() {
        let _ = writeln!(list, "<p>{}</p>", text(&words));
    }
    if !report.provision.recommendation.is_empty() {
        let _ = writeln!(list, "<p>{}</p>", text(report.provision.recommendation));
    }
    list
}

fn goals(goals: &[GoalLine]) -> String {
    let mut rows = String::from("<table>\n<tr><th>Goal</th><th>Status</th><th>How</th></tr>\n");
    for goal in goals {
        let _ = writeln!(
            rows,
            "<tr><td>{}{}</td><td><span class=\"status {}\">{}</span></td><td>{}</td></tr>",
            text(goal.goal),
            if goal.hard { " <small>hard</small>" } else { "" },
            goal.status.to_lowercase(),
            goal.status,
            text(&table::how(goal)),
        );
    }
    rows.push_str("</table>\n");
    rows
}

fn flows_section(report: &Report<'_>) -> String {
    let flows = Flows::of(&report.changes, &report.brokers);
    match flows.is_empty() {
        true => "<p>No data moves between brokers.</p>\n".to_owned(),
        false => flows.render(),
    }
}

/// The largest changes, in the plan's own order if all of them fit.
fn changes(report: &Report<'_>) -> String {
    let mut lines: Vec<_> = report.changes.lines().collect();
    if lines.is_empty() {
        return "<p>Nothing moves.</p>\n".to_owned();
    }
    let all = lines.len();
    if all > MOST_CHANGES {
        lines.sort_by(|one, other| {
            other.data_to_move.unwrap_or_default().total_cmp(&one.data_to_move.unwrap_or_default())
        });
        lines.truncate(MOST_CHANGES);
    }
    let mut rows = String::from(
        "<p><label>Show those that name <input id=\"filter\" type=\"search\" placeholder=\"topic, broker, goal\">\
         </label> <output id=\"shown\"></output></p>\n",
    );
    if all > MOST_CHANGES {
        let _ = writeln!(
            rows,
            "<p>The {} that copy the most, of {}; <code>--output json</code> has them all.</p>",
            count(MOST_CHANGES as u64),
            count(all as u64)
        );
    }
    rows.push_str("<table id=\"changes\">\n<thead><tr><th>Partition</th><th>Replicas</th><th>Leader</th>");
    rows.push_str("<th>Data</th><th>Why</th></tr></thead>\n<tbody>\n");
    for line in lines {
        let _ = writeln!(
            rows,
            "<tr><td>{}-{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td><td>{}</td></tr>",
            text(line.topic),
            line.partition,
            if line.old_replicas == line.new_replicas {
                listed(&line.old_replicas)
            } else {
                format!("{} → {}", listed(&line.old_replicas), listed(&line.new_replicas))
            },
            if line.old_leader == line.new_leader {
                line.old_leader.to_string()
            } else {
                format!("{} → {}", line.old_leader, line.new_leader)
            },
            text(&line.data_to_move.zip(line.intra_broker_data_to_move).map_or_else(
                || "–".to_owned(),
                |(between_brokers, between_disks)| megabytes(between_brokers + between_disks),
            )),
            text(&line.why),
        );
    }
    rows.push_str("</tbody>\n</table>\n");
    rows
}

fn listed(brokers: &[i32]) -> String {
    brokers.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
