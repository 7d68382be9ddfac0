//! Plans for one of the generated clusters, measured by what Cruise Control made of the same one. `cargo xtask bench
//! balancer` does the same for all of them.

use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::inspect::inspect;
use evenkeel_balancer::options::Request;
use evenkeel_balancer::planner::{Status, plan};
use evenkeel_balancer::settings::Settings;
use evenkeel_snapshot::generate::{generate, preset};

/// Cruise Control moves 140,514 MB and leaves two goals violated.
#[test]
fn a_cluster_that_begins_rack_aware_is_balanced_with_a_quarter_less_data_than_by_cruise_control() {
    let cluster = generate(&preset("ar").unwrap(), |_| {}).unwrap();
    let request = Request { threads: 2, ..Request::rebalance(&Goal::DEFAULT) };
    let outcome = plan(&cluster, &request, &Settings::default()).unwrap();
    assert_eq!(inspect(&cluster, &request, &outcome.plan), []);
    let violated: Vec<Goal> =
        outcome.verdicts.iter().filter(|line| line.status == Status::Violated).map(|line| line.goal).collect();
    assert_eq!(violated, []);
    let megabytes = outcome.plan.megabytes();
    assert!(megabytes < 0.78 * 140_514.0, "{megabytes}");
    // No plan that gets as far moves less than the bound.
    assert!(megabytes < 1.12 * outcome.least_megabytes, "{megabytes} of {}", outcome.least_megabytes);
}
