//! The picture of the machine in `docs/auto-rebalancing.md`, as text that can be compared with what worlds do.

use std::collections::BTreeSet;

use evenkeel_api::kafka::AutoRebalanceState;

use super::world::World;
use crate::auto_rebalance::state::state_of;

/// From one state to another, by their names.
pub(super) type Arrows = BTreeSet<(String, String)>;

/// What happened to the state between two worlds. None: nothing.
pub(super) fn arrow(before: &World, after: &World) -> Option<(String, String)> {
    let state = |world: &World| world.on_record().mode.map_or(AutoRebalanceState::Idle, state_of);
    let (before, after) = (state(before), state(after));
    (before != after).then(|| (format!("{before:?}"), format!("{after:?}")))
}

/// Every arrow of the picture but the one that it begins with.
fn drawn() -> Arrows {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/auto-rebalancing.md");
    let text = std::fs::read_to_string(page).expect("the page");
    let (_, picture) = text.split_once("stateDiagram-v2").expect("a picture");
    let picture = picture.split("```").next().unwrap_or_default();
    let arrow = |line: &str| {
        let (from, rest) = line.split_once("-->").filter(|(from, _)| from.trim() != "[*]")?;
        let (to, why) = rest.split_once(':').expect("an arrow says why");
        assert!(!why.trim().is_empty(), "{line}");
        Some((from.trim().to_owned(), to.trim().to_owned()))
    };
    picture.lines().filter_map(arrow).collect()
}

/// What was taken is drawn.
pub(super) fn shows(taken: &Arrows) {
    let drawn = drawn();
    let missing: Vec<_> = taken.difference(&drawn).collect();
    assert!(missing.is_empty(), "docs/auto-rebalancing.md does not draw {missing:?}");
}

/// What is drawn was taken.
pub(super) fn invents_nothing(taken: &Arrows) {
    let drawn = drawn();
    let invented: Vec<_> = drawn.difference(taken).collect();
    assert!(invented.is_empty(), "docs/auto-rebalancing.md draws what never happens: {invented:?}");
}
