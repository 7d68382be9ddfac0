//! From a request to a plan.

use crate::aims::Aims;
use crate::cluster::Cluster;
use crate::goal::Goal;
use crate::improve::Search;
use crate::options::Request;
use crate::plan::{Change, changes};
use crate::rules::{BadRequest, Rules};
use crate::settings::Settings;
use crate::state::State;

/// A plan with what it does to the goals.
#[derive(Debug)]
pub struct Outcome {
    /// What happens, in order.
    pub changes: Vec<Change>,
    /// Per goal: how far it misses before and after.
    pub misses: Vec<(Goal, f64, f64)>,
    /// actions
    pub steps: usize,
}

/// Makes the plan for `request`.
pub fn plan(cluster: &Cluster, request: &Request, settings: &Settings) -> Result<Outcome, BadRequest> {
    let rules = Rules::compile(cluster, request)?;
    let goals = request.goals_in_force();
    let state = State::found(cluster);
    let aims = Aims::compile(&state, &goals, settings, &rules);
    let before: Vec<f64> = (0..goals.len()).map(|goal| aims.miss(goal, &state, &rules)).collect();
    let mut search = Search::new(state, &rules, &aims, request.threads.max(1));
    search.run();
    let after = (0..goals.len()).map(|goal| aims.miss(goal, &search.state, &rules));
    let misses = goals.iter().copied().zip(before).zip(after).map(|((goal, before), after)| (goal, before, after));
    let misses = misses.collect();
    Ok(Outcome { changes: changes(&search.state, &aims, &search.steps), misses, steps: search.steps.len() })
}
