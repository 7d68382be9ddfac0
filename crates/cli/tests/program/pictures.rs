//! The picture in the docs, and the answer beside it, are of a plan that the program makes.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

const PICTURE: &str = "docs/pictures/load.svg";
/// An uneven cluster, the same one each time.
const CLUSTER: [&str; 10] =
    ["--brokers", "10", "--topics", "30", "--replicas", "900", "--distribution", "exponential", "--mean-disk", "900"];
/// Bars are so long at most, so high, and so far apart.
const LONGEST: f64 = 260.0;
const HEIGHT: usize = 14;
const STEP: usize = 20;

fn evenkeel(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(arguments).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The plan for that cluster, in some form.
fn plan(form: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let snapshot = dir.path().join("cluster.snap");
    let snapshot = snapshot.to_str().unwrap();
    evenkeel(&[&["generate"], &CLUSTER[..], &["-o", snapshot]].concat());
    evenkeel(&["plan", "--snapshot", snapshot, "--output", form])
}

/// How full the disks of each broker are, in percent, before and after.
fn loads() -> Vec<(u64, f64, f64)> {
    let plan: Value = serde_json::from_slice(&plan("json")).unwrap();
    let percent = |broker: &Value, when: &str| broker[when]["percent"]["disk"].as_f64().unwrap();
    let brokers = plan["brokers"].as_array().unwrap().iter();
    brokers.map(|it| (it["broker"].as_u64().unwrap(), percent(it, "before"), percent(it, "after"))).collect()
}

/// Grey, blue and transparent, so that it can be seen on light and on dark pages.
fn picture(loads: &[(u64, f64, f64)]) -> String {
    let most = loads.iter().map(|(_, before, after)| before.max(*after)).fold(0.0, f64::max);
    let height = 44 + loads.len() * STEP;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 {height}\" font-family=\"sans-serif\" \
         font-size=\"12\" fill=\"#808080\" role=\"img\">\n\
         <title>How full the disks of ten brokers are, before a plan and after it</title>\n\
         <text x=\"76\" y=\"18\">before</text><text x=\"426\" y=\"18\">after</text>\n"
    );
    for (row, (broker, before, after)) in loads.iter().enumerate() {
        let top = 30 + row * STEP;
        let line = top + HEIGHT - 3;
        let _ = writeln!(svg, "<text x=\"64\" y=\"{line}\" text-anchor=\"end\">broker {broker}</text>");
        for (left, percent, colour) in [(76, before, "#c0762b"), (426, after, "#3a7bd0")] {
            let length = (percent / most * LONGEST).round();
            let label = f64::from(left) + length + 6.0;
            let _ = writeln!(
                svg,
                "<rect x=\"{left}\" y=\"{top}\" width=\"{length}\" height=\"{HEIGHT}\" fill=\"{colour}\"/>\
                 <text x=\"{label}\" y=\"{line}\">{percent:.0} %</text>"
            );
        }
    }
    svg + "</svg>\n"
}

#[test]
fn the_committed_picture_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PICTURE);
    let fresh = picture(&loads());
    if env::var_os("EVENKEEL_BLESS").is_some() {
        fs::write(&path, fresh).expect("the picture can be written");
        return;
    }
    let committed = fs::read_to_string(&path).expect("the picture is there");
    assert!(committed == fresh, "{PICTURE} is stale: run `cargo xtask generate`, and commit it");
}

/// What `evenkeel plan` prints of it: the summary, how full disks are, and the first moves.
fn excerpt() -> String {
    /// How wide a page is, and the columns up to those of the disks; how many moves are shown.
    const PAGE: usize = 120;
    const DISKS: usize = 65;
    const MOVES: usize = 3;
    let told = String::from_utf8(plan("table")).unwrap();
    let parts: Vec<&str> = told.split("\n\n").collect();
    let part = |beginning: &str| *parts.iter().find(|part| part.starts_with(beginning)).expect(beginning);
    let shown = |part: &str, lines: usize, columns: usize| -> String {
        let cut = |line: &str| match line.char_indices().nth(columns) {
            Some((end, _)) => format!("{} …\n", line[..end].trim_end()),
            None => format!("{line}\n"),
        };
        part.lines().take(lines).map(cut).collect()
    };
    let all = usize::MAX;
    let (brokers, moves) = (part("BROKER "), part("BIGGEST MOVES"));
    [shown(parts[0], all, PAGE), shown(brokers, all, DISKS), shown(moves, 1 + MOVES, PAGE)].join("\n")
}

#[test]
fn the_committed_excerpt_is_fresh() {
    const PAGE: &str = "docs/plan.md";
    const BEGIN: &str = "```text plan\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    let page = fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("an excerpt");
    let (committed, after) = rest.split_once("```").expect("it ends");
    let fresh = excerpt();
    if env::var_os("EVENKEEL_BLESS").is_some() {
        fs::write(&path, [before, BEGIN, &fresh, "```", after].concat()).expect("the page can be written");
        return;
    }
    assert!(committed == fresh, "{PAGE} is stale: run `cargo xtask generate`, and commit it");
}
