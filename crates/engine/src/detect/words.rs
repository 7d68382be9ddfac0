//! Findings in the words that the original's messages and reasons have.

use evenkeel_balancer::goal::Goal;
use jiff::Timestamp;

use super::{Finding, Millis, goals::Spared};

/// What is wrong, in words.
pub fn words(finding: &Finding, spared: Spared) -> String {
    match finding {
        Finding::GoalViolation { fixable, unfixable } => format!(
            "{{Unfixable goal violations: {{{}}}, Fixable goal violations: {{{}}}, Exclude brokers recently \
             (removed: {} demoted: {})}}",
            names(unfixable),
            names(fixable),
            spared.removed,
            spared.demoted
        ),
        Finding::BrokerFailure { since, fixable } => {
            let failures = since.iter().map(|(broker, at)| format!("Broker {broker} failed at {}", date(*at)));
            let fixable = if *fixable { "Fixable" } else { "Unfixable" };
            format!("{{{fixable} broker failures detected: {{{}}}}}", failures.collect::<Vec<_>>().join(",\t"))
        }
        Finding::DiskFailure { since } => {
            let disks = since.iter().flat_map(|(broker, dirs)| {
                dirs.iter().map(move |(dir, at)| format!("Disk {dir} on broker {broker} failed at {}", date(*at)))
            });
            format!("{{Disk failures detected: {{{}}}}}", disks.collect::<Vec<_>>().join(",\t"))
        }
    }
}

/// `2026-11-15T20:12:33Z`.
pub fn date(at: Millis) -> String {
    evenkeel_rest::reason::date(Timestamp::from_millisecond(at).unwrap_or_default())
}

fn names(goals: &[Goal]) -> String {
    goals.iter().map(|goal| goal.name()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_read_as_the_original_s() {
        let spared = Spared { removed: true, demoted: false };
        let violation = Finding::GoalViolation {
            fixable: vec![Goal::RackAware, Goal::DiskCapacity],
            unfixable: vec![Goal::CpuCapacity],
        };
        assert_eq!(
            words(&violation, spared),
            "{Unfixable goal violations: {CpuCapacityGoal}, Fixable goal violations: {RackAwareGoal,DiskCapacityGoal}, \
             Exclude brokers recently (removed: true demoted: false)}"
        );
        let failure = Finding::BrokerFailure { since: [(3, 1_731_574_274_321), (4, 0)].into(), fixable: true };
        assert_eq!(
            words(&failure, spared),
            "{Fixable broker failures detected: {Broker 3 failed at 2024-11-14T08:51:14Z,\tBroker 4 failed at \
             1970-01-01T00:00:00Z}}"
        );
        let disk = Finding::DiskFailure { since: [(1, [("/a".to_owned(), 0)].into())].into() };
        assert_eq!(
            words(&disk, spared),
            "{Disk failures detected: {Disk /a on broker 1 failed at 1970-01-01T00:00:00Z}}"
        );
    }
}
