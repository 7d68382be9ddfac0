//! Nobody plans without a second pair of eyes on the plan.

use super::{Finding, has_word, is_rust};

/// The planner's own crate looks its plans over in its tests.
const OWN: &str = "crates/balancer/";

pub(super) fn check(path: &str, text: &str) -> Option<Finding> {
    let looked_over = has_word(text, "inspect(") || has_word(text, "inspect::inspect");
    (is_rust(path) && path.starts_with("crates/") && !path.starts_with(OWN) && plans(text) && !looked_over)
        .then(|| Finding::in_file(path, "plans, and does not `inspect` the plan before anybody sees it"))
}

/// Whether the planner's function is named, by its path or in a list of imports.
fn plans(text: &str) -> bool {
    let in_a_list = |list: &str| list.split('}').next().is_some_and(|names| has_word(names, "plan"));
    has_word(text, "planner::plan") || text.split("planner::{").skip(1).any(in_a_list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_plans_inspects() {
        let alone = [
            "let outcome = planner::plan(&cluster, &request, &settings)?;",
            "use evenkeel_balancer::{\n    planner::{Outcome, plan},\n};",
        ];
        for text in alone {
            assert!(check("crates/engine/src/a.rs", text).is_some());
            assert_eq!(check("crates/balancer/src/a.rs", text), None);
            assert_eq!(check("crates/engine/src/a.rs", &format!("{text}\ninspect(&cluster, &request, &plan);")), None);
        }
        assert_eq!(check("crates/engine/src/a.rs", "use evenkeel_balancer::planner::{Outcome, Status};"), None);
    }
}
