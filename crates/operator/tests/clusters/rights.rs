//! What the operator asks of the API server is what its manifest allows, and the other way round.

use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};

const ROLE: &str = include_str!("../../../../deploy/operator/cluster-role.yaml");
/// The first document of it is the role.
const RACKS: &str = include_str!("../../../../deploy/operator/rack-binding-role.yaml");

/// A call as rights are about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    pub(crate) verb: &'static str,
    pub(crate) group: String,
    pub(crate) resource: String,
}

impl Call {
    /// What a request asks for, such as `PATCH /api/v1/namespaces/ns/pods/p`: an object that is applied is changed, and
    /// made where it lacks, which is a right of its own.
    pub(crate) fn all(method: &str, path: &str, query: &str) -> Vec<Self> {
        let call = Self::of(method, path, query);
        let applies = call.verb == "patch" && query.contains("force=true");
        let made = applies.then(|| Self { verb: "create", ..call.clone() });
        [call].into_iter().chain(made).collect()
    }

    fn of(method: &str, path: &str, query: &str) -> Self {
        let mut parts = path.trim_start_matches('/').split('/');
        let group = match parts.next() {
            Some("apis") => parts.next().unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        let mut rest: Vec<&str> = parts.skip(1).collect();
        if rest.first() == Some(&"namespaces") && rest.len() > 2 {
            rest.drain(..2);
        }
        let resource = match rest[..] {
            [resource, _, sub] => format!("{resource}/{sub}"),
            _ => rest.first().copied().unwrap_or_default().to_owned(),
        };
        let verb = match (method, rest.len() > 1) {
            ("GET", true) => "get",
            ("GET", false) if query.contains("watch=") => "watch",
            ("GET", false) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", _) => "delete",
            _ => "unknown",
        };
        Self { verb, group, resource }
    }

    fn is_allowed_by(&self, rule: &PolicyRule) -> bool {
        let has =
            |list: Option<&Vec<String>>, wanted: &str| list.is_some_and(|list| list.iter().any(|it| it == wanted));
        has(rule.api_groups.as_ref(), &self.group)
            && has(rule.resources.as_ref(), &self.resource)
            && rule.verbs.iter().any(|verb| verb == self.verb)
    }
}

fn rules(role: &str) -> Vec<PolicyRule> {
    let role: ClusterRole = serde_saphyr::from_str(role.split("\n---\n").next().unwrap()).unwrap();
    role.rules.unwrap_or_default()
}

/// Fails if the operator asked for more than its roles give.
pub(crate) fn check(calls: &BTreeSet<Call>) {
    let rules = [rules(ROLE), rules(RACKS)].concat();
    let refused: Vec<&Call> = calls.iter().filter(|call| !rules.iter().any(|rule| call.is_allowed_by(rule))).collect();
    assert!(refused.is_empty(), "neither in cluster-role.yaml nor in rack-binding-role.yaml: {refused:?}");
}

/// Fails if the role gives more than the operator asked for in a life in which everything happened.
#[allow(dead_code, reason = "only one of the suites has all controllers")]
pub(crate) fn check_all_are_used(calls: &BTreeSet<Call>) {
    let texts = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    let mut unused = Vec::new();
    for rule in rules(ROLE) {
        for group in texts(&rule.api_groups) {
            for resource in texts(&rule.resources) {
                let used = |verb: &&String| {
                    calls.iter().any(|it| it.verb == *verb && it.group == group && it.resource == resource)
                };
                unused.extend(rule.verbs.iter().filter(|verb| !used(verb)).map(|verb| format!("{verb} {resource}")));
            }
        }
    }
    assert_eq!(unused, [""; 0], "in cluster-role.yaml, and nobody needs it");
}

#[test]
fn requests_are_told_apart() {
    let call = |verb, group: &str, resource: &str| Call { verb, group: group.into(), resource: resource.into() };
    for (request, expected) in [
        (("GET", "/api/v1/namespaces/ns/pods", ""), call("list", "", "pods")),
        (("GET", "/api/v1/pods", "watch=true"), call("watch", "", "pods")),
        (
            ("PUT", "/apis/kafka.strimzi.io/v1/namespaces/ns/kafkas/k/status", ""),
            call("update", "kafka.strimzi.io", "kafkas/status"),
        ),
        (("PATCH", "/apis/apps/v1/namespaces/ns/deployments/d", ""), call("patch", "apps", "deployments")),
        (("POST", "/apis/events.k8s.io/v1/namespaces/ns/events", ""), call("create", "events.k8s.io", "events")),
    ] {
        assert_eq!(Call::of(request.0, request.1, request.2), expected);
    }
}
