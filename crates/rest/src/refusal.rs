//! Answers that are no results: their codes and the texts around what went wrong. What went wrong is a [`Failure`].

use std::collections::BTreeSet;

use crate::endpoint::{Endpoint, Method};
use crate::failure::Failure;

/// A request that is not answered with what it asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {message}")]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// `errorMessage` of the JSON form; all of the text form.
    pub message: String,
}

impl Refusal {
    /// 400: a parameter cannot be read, or contradicts another. The text stands alone.
    pub fn bad_parameter(message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into() }
    }

    /// 400: parameters that the endpoint does not have.
    pub fn unknown_parameters<'n>(endpoint: Endpoint, names: BTreeSet<&'n str>) -> Self {
        let names = names.into_iter().collect::<Vec<&'n str>>().join(", ");
        let method = endpoint.method();
        Self::bad_parameter(format!("Unrecognized endpoint parameters in {endpoint} {method} request: [{names}]."))
    }

    /// 400: understood, but cannot be done as asked.
    pub fn bad_request(method: Method, path: &str, why: &str) -> Self {
        Self { status: 400, message: format!("Bad {method} request '{path}' due to '{why}'.") }
    }

    /// 400: `permissions` without security: there is nobody to have any.
    pub fn no_permissions(path: &str) -> Self {
        let why = "Unable to retrieve privilege information for an unsecure connection.";
        Self::bad_request(Method::Get, path, why)
    }

    /// 403: the configuration does not allow it.
    pub fn not_configured(method: Method, path: &str, why: &str) -> Self {
        Self { status: 403, message: format!("Cannot process {method} request '{path}' due to: '{why}'.") }
    }

    /// 404: no such endpoint for this method. Lists those that the original has.
    pub fn unknown_endpoint(method: Method, path: &str) -> Self {
        let names: Vec<String> = Endpoint::ALL
            .into_iter()
            .filter(|endpoint| endpoint.method() == method)
            .map(|endpoint| endpoint.to_string())
            .collect();
        let supported = names.join(", ");
        let message = format!("Unrecognized endpoint in request '{path}'\nSupported {method} endpoints: [{supported}]");
        Self { status: 404, message }
    }

    /// An endpoint of the original that is not there yet. The review board answers as the original does without
    /// two-step verification, which is how this engine always runs; the others say that they are not there.
    pub fn not_served(endpoint: Endpoint, path: &str) -> Self {
        let method = endpoint.method();
        if matches!(endpoint, Endpoint::Review | Endpoint::ReviewBoard) {
            let why = format!(
                "Attempt to access {endpoint} endpoint without enabling 'two.step.verification.enabled' config."
            );
            return Self::not_configured(method, path, &why);
        }
        let failure = Failure::new(format!("{endpoint} is not supported by this engine yet."));
        Self { status: 501, ..Self::failed(method, path, &failure) }
    }

    /// 500: it was tried, and failed. 503 if nothing was begun, and the same may work later; 400 if it never will.
    pub fn failed(method: Method, path: &str, failure: &Failure) -> Self {
        if failure.is_bad_request() {
            return Self::bad_request(method, path, &failure.to_string());
        }
        let status = if failure.passes() { 503 } else { 500 };
        Self { status, message: format!("Error processing {method} request '{path}' due to: '{failure}'.") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_endpoint_is_told_the_others() {
        let refusal = Refusal::unknown_endpoint(Method::Get, "/nosuch");
        assert_eq!(refusal.status, 404);
        assert_eq!(
            refusal.message,
            "Unrecognized endpoint in request '/nosuch'\nSupported GET endpoints: [BOOTSTRAP, TRAIN, LOAD, \
             PARTITION_LOAD, PROPOSALS, STATE, KAFKA_CLUSTER_STATE, USER_TASKS, REVIEW_BOARD, PERMISSIONS]"
        );
        assert!(Refusal::unknown_endpoint(Method::Post, "/").message.ends_with(
            "Supported POST endpoints: [ADD_BROKER, REMOVE_BROKER, FIX_OFFLINE_REPLICAS, REBALANCE, \
             STOP_PROPOSAL_EXECUTION, PAUSE_SAMPLING, RESUME_SAMPLING, DEMOTE_BROKER, ADMIN, REVIEW, \
             TOPIC_CONFIGURATION, RIGHTSIZE, REMOVE_DISKS]"
        ));
    }

    #[test]
    fn what_is_not_there_says_so() {
        let refusal = Refusal::not_served(Endpoint::Rightsize, "/rightsize");
        assert_eq!(refusal.status, 501);
        assert_eq!(
            refusal.message,
            "Error processing POST request '/rightsize' due to: 'RIGHTSIZE is not supported by this engine yet.'."
        );
        let review = Refusal::not_served(Endpoint::ReviewBoard, "/review_board");
        assert_eq!(review.status, 403);
        assert_eq!(
            review.message,
            "Cannot process GET request '/review_board' due to: 'Attempt to access REVIEW_BOARD endpoint without \
             enabling 'two.step.verification.enabled' config.'."
        );
    }

    #[test]
    fn what_passes_has_a_status_of_its_own_and_the_same_text() {
        let of = |failure: Failure| Refusal::failed(Method::Post, "/rebalance", &failure);
        let (passing, lasting) = (of(Failure::not_now("x")), of(Failure::illegal_state("x")));
        assert_eq!((passing.status, lasting.status), (503, 500));
        assert_eq!(passing.message, lasting.message);
        let bad = of(Failure::bad_request("x"));
        assert_eq!((bad.status, bad.message.as_str()), (400, "Bad POST request '/rebalance' due to 'x'."));
    }

    #[test]
    fn permissions_need_security() {
        assert_eq!(
            Refusal::no_permissions("/permissions").message,
            "Bad GET request '/permissions' due to 'Unable to retrieve privilege information for an unsecure connection.'."
        );
    }
}
