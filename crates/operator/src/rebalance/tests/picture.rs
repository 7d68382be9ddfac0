//! The picture of the machine in `docs/rebalancing.md`, as text that can be compared with what the machine does.

use std::collections::BTreeSet;

use evenkeel_api::rebalance::RebalanceState;

/// From one state to another, by their names.
pub(super) type Step = (String, String);

/// A step as the machine makes it. None: it stays where it is, or is paused, which is not drawn.
pub(super) fn step(before: RebalanceState, after: RebalanceState) -> Option<Step> {
    let is_drawn = |state| state != RebalanceState::ReconciliationPaused;
    let step = || (before.as_str().to_owned(), after.as_str().to_owned());
    (before != after && is_drawn(before) && is_drawn(after)).then(step)
}

/// Every arrow of the picture.
fn drawn() -> BTreeSet<Step> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rebalancing.md");
    let text = std::fs::read_to_string(page).expect("the page");
    let picture = text.split("```mermaid").nth(1).and_then(|rest| rest.split("```").next()).expect("a picture");
    let name = |state: &str| state.trim().replace("[*]", RebalanceState::New.as_str());
    let arrow = |line: &str| {
        let (from, rest) = line.split_once("-->")?;
        let (to, why) = rest.split_once(':').expect("an arrow says why");
        assert!(!why.trim().is_empty(), "{line}");
        Some((name(from), name(to)))
    };
    picture.lines().filter_map(arrow).collect()
}

/// What was seen is drawn, and of these states everything that is drawn was seen.
pub(super) fn shows(seen: &BTreeSet<Step>, all_of: &[RebalanceState]) {
    let drawn = drawn();
    let is_of = |step: &&Step| all_of.iter().any(|state| state.as_str() == step.0);
    let missing: Vec<&Step> = seen.difference(&drawn).collect();
    let invented: Vec<&Step> = drawn.difference(seen).filter(is_of).collect();
    assert!(missing.is_empty() && invented.is_empty(), "not drawn: {missing:?}; drawn, and never seen: {invented:?}");
}
