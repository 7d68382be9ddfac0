//! What each broker carries before and after: two bars per broker, one picture per resource.

use std::fmt::Write as _;

use evenkeel_balancer::cluster::Resource;

use super::super::report::{BrokerLine, Carried, Report};
use super::super::units::count;
use super::html::text;

const RESOURCES: [(Resource, &str); 4] = [
    (Resource::Disk, "Disk"),
    (Resource::Cpu, "CPU"),
    (Resource::NwIn, "Network in"),
    (Resource::NwOut, "Network out"),
];

/// A number per broker, before and after.
struct Chart {
    title: String,
    /// What fills a bar: 100 for percent unless somebody has more, the largest for counts.
    full: f64,
    /// The number in words.
    said: fn(f64) -> String,
    bars: Vec<Bars>,
}

struct Bars {
    broker: String,
    before: f64,
    after: f64,
}

pub(super) fn render(report: &Report<'_>) -> String {
    let mut charts: Vec<Chart> = RESOURCES
        .into_iter()
        .filter(|(resource, _)| !report.cluster.unmeasured.contains(&resource.name()))
        .map(|(resource, title)| {
            let used = |carried: &Carried| carried.percent.get(resource).unwrap_or_default();
            chart(report, &format!("{title}, percent of capacity"), 100.0, percent, used)
        })
        .collect();
    charts.push(chart(report, "Replicas", 1.0, whole, |carried| carried.replicas as f64));
    charts.push(chart(report, "Leaders", 1.0, whole, |carried| carried.leaders as f64));
    let mut page = String::from(
        "<p class=\"legend\">A row is a broker, by its id and its rack: \
         <span class=\"before\"></span> before <span class=\"after\"></span> after</p>\n\
         <div class=\"charts\">\n",
    );
    for chart in charts {
        chart.render(&mut page);
    }
    page.push_str("</div>\n");
    page
}

fn chart(
    report: &Report<'_>,
    title: &str,
    least: f64,
    said: fn(f64) -> String,
    number: impl Fn(&Carried) -> f64,
) -> Chart {
    let bars: Vec<Bars> = report
        .brokers
        .iter()
        .map(|line| Bars { broker: label(line), before: number(&line.before), after: number(&line.after) })
        .collect();
    let full = bars.iter().fold(least, |most, bar| most.max(bar.before).max(bar.after));
    Chart { title: title.to_owned(), full, said, bars }
}

/// The id, its rack, and its state if it is not an ordinary one.
fn label(line: &BrokerLine<'_>) -> String {
    let state = if line.state == "ALIVE" { String::new() } else { format!(" {}", line.state) };
    format!("{} {}{state}", line.broker, line.rack)
}

fn percent(number: f64) -> String {
    format!("{number:.1} %")
}

fn whole(number: f64) -> String {
    count(number as u64)
}

impl Chart {
    fn render(&self, page: &mut String) {
        let _ = write!(page, "<figure>\n<figcaption>{}</figcaption>\n<table class=\"bars\">\n", text(&self.title));
        for bar in &self.bars {
            let (before, after) = ((self.said)(bar.before), (self.said)(bar.after));
            let _ = writeln!(
                page,
                "<tr><th>{}</th><td class=\"bar\"><i class=\"before\" style=\"width:{:.2}%\"></i>\
                 <i class=\"after\" style=\"width:{:.2}%\"></i></td><td class=\"number\">{}</td></tr>",
                text(&bar.broker),
                self.share(bar.before),
                self.share(bar.after),
                if before == after { after } else { format!("{before} → {after}") },
            );
        }
        page.push_str("</table>\n</figure>\n");
    }

    fn share(&self, number: f64) -> f64 {
        (100.0 * number / self.full).clamp(0.0, 100.0)
    }
}
