//! The page's text; that a browser shows it is `tests/program/plan_page.rs`.

use super::super::testing::{with_report, with_report_of_a_balanced_cluster};
use super::html::text;
use super::render;

#[test]
fn names_cannot_become_markup() {
    assert_eq!(text("<b a='1' c=\"2\">&").to_string(), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
    assert_eq!(text("orders.v2").to_string(), "orders.v2");
    assert_eq!(text("a\u{1b}[2J\n\u{202e}<").to_string(), r"a\u{1b}[2J\n\u{202e}&lt;");
}

#[test]
fn it_tells_what_the_tables_tell() {
    let (page, plan, moved, brokers) = with_report(|report| {
        let brokers: Vec<i32> = report.brokers.iter().map(|line| line.broker).collect();
        (render(report), report.plan_id.clone(), report.changes.all.len(), brokers)
    });
    assert!(page.contains(&plan));
    assert!(page.contains("RackAwareGoal <small>hard</small></td><td><span class=\"status fixed\">FIXED</span>"));
    assert!(page.contains("A row is a broker, by its id and its rack"), "nobody has to guess what a label says");
    let (_, changes) = page.split_once("<tbody>").unwrap();
    assert_eq!(changes.matches("<tr>").count(), moved, "a row per partition that changes");
    for title in ["Disk, percent", "CPU, percent", "Network in, percent", "Network out, percent", "Replicas", "Leaders"]
    {
        let (_, chart) = page.split_once(&format!("<figcaption>{title}")).unwrap();
        let (chart, _) = chart.split_once("</figure>").unwrap();
        assert_eq!(chart.matches("<tr><th>").count(), brokers.len(), "{title}: a row per broker");
    }
}

#[test]
fn it_needs_nothing_from_elsewhere() {
    let page = with_report(render);
    for fetches in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(fetches), "{fetches}");
    }
}

#[test]
fn data_flows_add_up() {
    let (page, data) = with_report(|report| (render(report), report.summary.data_to_move.unwrap()));
    let (_, flows) = page.split_once("<table class=\"flows\">").unwrap();
    let (flows, _) = flows.split_once("</table>").unwrap();
    let (rows, receives) = flows.rsplit_once("<tr>").unwrap();
    let sums = |text: &str| -> f64 {
        let cells = text.split("<td class=\"sum\">").skip(1);
        cells.map(|cell| super::super::units::size(cell.split('<').next().unwrap()).unwrap()).sum()
    };
    assert!(data > 0.0);
    for told in [sums(rows), sums(receives)] {
        assert!((told - data).abs() < data * 0.01, "{told} of {data} MB");
    }
}

#[test]
fn a_plan_that_does_nothing_says_so() {
    let page = with_report_of_a_balanced_cluster(render);
    assert!(page.contains("<p>Nothing moves.</p>") && page.contains("<p>No data moves between brokers.</p>"));
    assert!(!page.contains("id=\"filter\""), "there is nothing to filter");
}
