//! Why there is no plan: one line, and an exit code that tells bad input from a cluster that cannot be helped.

use evenkeel_balancer::cluster::Invalid;
use evenkeel_balancer::goal::UnknownGoal;
use evenkeel_balancer::planner::Refused;

/// Why nothing was planned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The file does not describe a cluster, or is not there.
    #[error(transparent)]
    Snapshot(evenkeel_snapshot::Error),
    /// Options that do not go together, or miss one another.
    #[error("{0}")]
    Options(String),
    /// A value that cannot be read.
    #[error("{option} {value}: {problem}")]
    Value {
        /// The option it was given for.
        option: &'static str,
        /// As given.
        value: String,
        /// What is wrong, in one line.
        problem: String,
    },
    /// A goal nobody knows.
    #[error("--goals: {0}")]
    Goal(UnknownGoal),
    /// The cluster cannot be changed as asked.
    #[error("the cluster asked about cannot be: {0}")]
    WhatIf(Invalid),
    /// The balancer refused.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl Refusal {
    /// 2 for bad input, 3 for a hard goal that cannot be satisfied.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Refusal::Refused(Refused::Infeasible(_)) => 3,
            _ => 2,
        }
    }

    pub(super) fn value(option: &'static str, value: &str, problem: impl Into<String>) -> Refusal {
        Refusal::Value { option, value: value.to_owned(), problem: problem.into() }
    }
}
