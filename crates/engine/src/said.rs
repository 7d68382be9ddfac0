//! Errors in words.

use evenkeel_kafka::{Error, Remedy};
use evenkeel_rest::Failure;

/// An error with all its causes, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        said.push_str(": ");
        said.push_str(&next.to_string());
        cause = next.source();
    }
    said
}

/// What a request comes to that failed of Kafka, with nothing begun.
pub(crate) fn failure(error: &Error) -> Failure {
    failure_of(error, error)
}

/// The same, in the words of what came of it. What only has to be waited for says so: a broker that does not answer may
/// answer later, and another engine that has taken over does already.
pub(crate) fn failure_of(cause: &Error, said: &dyn std::error::Error) -> Failure {
    match (cause, cause.remedy()) {
        (Error::Fenced { .. }, _) | (_, Remedy::Retry | Remedy::Wait(_) | Remedy::RefreshMetadata) => {
            Failure::not_now(chain(said))
        }
        (_, Remedy::AskUser) => Failure::illegal_state(chain(said)),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_kafka::{ErrorCode, Refusal};

    use super::*;

    #[test]
    fn what_needs_somebody_is_told_apart_from_what_passes() {
        let refused = |code| {
            let refusal = Refusal { code, message: None };
            failure(&Error::Refused { operation: "write the journal", refusal })
        };
        assert!(refused(ErrorCode::LEADER_NOT_AVAILABLE).passes());
        // TOPIC_AUTHORIZATION_FAILED: somebody has to allow it.
        assert!(!refused(ErrorCode(29)).passes());
    }
}
