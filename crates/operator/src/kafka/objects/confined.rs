//! What pods and containers may not do unless their template says otherwise: as little as namespaces of the Pod Security level
//! `restricted` want.

use k8s_openapi::api::core::v1::{Capabilities, PodSecurityContext, SeccompProfile, SecurityContext};

/// User and group of the official image of Kafka. The image names its user by a word, of which a kubelet cannot tell that it
/// is not root.
const KAFKA: i64 = 1000;

/// A pod whose image has a user with a number.
pub(in crate::kafka) fn pod() -> PodSecurityContext {
    let profile = SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None };
    PodSecurityContext { run_as_non_root: Some(true), seccomp_profile: Some(profile), ..PodSecurityContext::default() }
}

/// A pod of Kafka. Volumes are made writable for the group of the official image. Who runs in another one is not known: it
/// keeps its user, be it root.
pub(super) fn kafka_pod(is_official: bool) -> PodSecurityContext {
    PodSecurityContext {
        fs_group: Some(KAFKA),
        run_as_user: is_official.then_some(KAFKA),
        run_as_non_root: is_official.then_some(true),
        ..pod()
    }
}

/// A container that needs no rights of its own.
pub(in crate::kafka) fn container() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { add: None, drop: Some(vec!["ALL".to_owned()]) }),
        ..SecurityContext::default()
    }
}

/// One of our program, which writes to volumes only.
pub(in crate::kafka) fn own_container() -> SecurityContext {
    SecurityContext { read_only_root_filesystem: Some(true), ..container() }
}
