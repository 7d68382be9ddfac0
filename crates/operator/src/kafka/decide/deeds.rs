//! Things to do, and which of them rest on which: when one fails, those that do not need it are done all the same.

use evenkeel_api::{
    KafkaNodePoolStatus,
    annotations::{CA_CERT_GENERATION, CA_KEY_GENERATION},
};
use kube::core::ApiResource;

use super::super::{
    config::DynamicChange,
    desired::{Desired, notes},
};
use crate::seams::Happening;

/// Something to do, and what to tell when it is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What to do.
    pub deed: Deed,
    /// What is told then.
    pub told: Vec<Happening>,
}

impl From<Deed> for Step {
    fn from(deed: Deed) -> Self {
        Self { deed, told: Vec::new() }
    }
}

/// Something to do. None of them chooses anything; all of them may be done twice.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// Make an object what it should be.
    Apply(Desired),
    /// Make an object if it is not there.
    Create(Desired),
    /// Delete an object.
    Delete {
        /// What kind of object.
        resource: ApiResource,
        /// Its name.
        name: String,
        /// Exactly this one.
        uid: Option<String>,
    },
    /// Set an annotation of an object, or take it off.
    Annotate {
        /// What kind of object.
        resource: ApiResource,
        /// Its name.
        name: String,
        /// Exactly this one.
        uid: Option<String>,
        /// Which annotation.
        key: &'static str,
        /// What it says. None: it goes.
        value: Option<&'static str>,
    },
    /// Write the status of a pool.
    PoolStatus {
        /// Which.
        pool: String,
        /// What it says.
        status: Box<KafkaNodePoolStatus>,
    },
    /// Change settings of running brokers. `None` is for all of them.
    Reconfigure(Vec<(Option<i32>, DynamicChange)>),
    /// Restart a pod.
    Restart {
        /// Which.
        pod: String,
        /// Exactly this one.
        uid: String,
    },
    /// Strike a broker that is gone off Kafka's list.
    Unregister(i32),
}

/// What a deed is about, as far as others depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Matter {
    /// What pods need to start: certificates, claims, the account.
    Needs,
    /// The files that remember what brokers were told.
    Files,
    /// What brokers are told.
    Told,
    /// The memory of who the nodes are.
    Memory,
    /// The lists of pods.
    Pods,
    /// What nobody waits for.
    Aside,
}

impl Deed {
    pub(super) fn applying(desired: Desired) -> Self {
        if desired.only_created { Self::Create(desired) } else { Self::Apply(desired) }
    }

    /// Whether this is not to be done if `other`, which came before it, failed.
    pub fn rests_on(&self, other: &Self) -> bool {
        match (self.matter(), other.matter()) {
            (Matter::Pods, Matter::Needs | Matter::Files | Matter::Told | Matter::Memory) => true,
            // A file that remembers what nobody was told would never be told again.
            (Matter::Files, Matter::Told) => true,
            _ => false,
        }
    }

    /// Whether this may be done at the same time as `other`, which stands beside it: both only make an object what it should
    /// be, and no pod starts from them yet. An authority comes before what it signs: should somebody else have been faster,
    /// theirs counts, and nothing is signed by ours.
    pub fn goes_beside(&self, other: &Self) -> bool {
        self.only_makes() && other.only_makes()
    }

    fn only_makes(&self) -> bool {
        let (Self::Apply(desired) | Self::Create(desired)) = self else { return false };
        let signs = |key: &&str| notes(&desired.value).is_some_and(|notes| notes.contains_key(*key));
        let is_authority = [CA_CERT_GENERATION, CA_KEY_GENERATION].iter().any(signs);
        self.matter() != Matter::Pods && !is_authority
    }

    fn matter(&self) -> Matter {
        match self {
            // One that is only made is for others to fill: no pod starts from it.
            Self::Create(desired) if desired.resource.kind == "ConfigMap" => Matter::Aside,
            Self::Apply(desired) | Self::Create(desired) => match desired.resource.kind.as_str() {
                "Secret" | "PersistentVolumeClaim" | "ServiceAccount" => Matter::Needs,
                "ConfigMap" => Matter::Files,
                "StrimziPodSet" | "Deployment" => Matter::Pods,
                _ => Matter::Aside,
            },
            Self::PoolStatus { .. } => Matter::Memory,
            Self::Reconfigure(_) => Matter::Told,
            Self::Restart { .. } => Matter::Pods,
            Self::Delete { .. } | Self::Annotate { .. } | Self::Unregister(_) => Matter::Aside,
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_api::StrimziPodSet;
    use k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Secret, Service},
    };

    use super::*;

    #[test]
    fn who_fails_keeps_back_only_what_needs_it() {
        let set = Deed::Apply(Desired::new(&StrimziPodSet::new("s", Default::default())));
        let file = Deed::Apply(Desired::new(&ConfigMap::default()));
        let secret = Deed::Create(Desired::once(&Secret::default()));
        let service = Deed::Apply(Desired::new(&Service::default()));
        let engine = Deed::Apply(Desired::new(&Deployment::default()));
        let violation_map = Deed::Create(Desired::once(&ConfigMap::default()));
        let told = Deed::Reconfigure(Vec::new());
        let mut signs = Secret::default();
        signs.metadata.annotations = Some([(CA_KEY_GENERATION.to_owned(), "0".to_owned())].into());
        let authority = Deed::Create(Desired::once(&signs));
        let memory = Deed::PoolStatus { pool: "p".into(), status: Box::default() };
        let restart = Deed::Restart { pod: "p".into(), uid: "u".into() };
        for waits in [&set, &engine, &restart] {
            for failed in [&file, &secret, &told, &memory] {
                assert!(waits.rests_on(failed), "{waits:?} {failed:?}");
            }
            assert!(!waits.rests_on(&service) && !waits.rests_on(&violation_map));
        }
        assert!(file.rests_on(&told));
        for both in [&file, &secret, &service, &violation_map] {
            assert!(both.goes_beside(&secret) && both.goes_beside(&file) && file.goes_beside(both), "{both:?}");
            for alone in [&set, &engine, &told, &memory, &restart, &authority] {
                assert!(!both.goes_beside(alone) && !alone.goes_beside(both), "{both:?} {alone:?}");
            }
        }
        for (goes_on, failed) in
            [(&service, &secret), (&told, &service), (&Deed::Unregister(3), &told), (&file, &secret)]
        {
            assert!(!goes_on.rests_on(failed), "{goes_on:?} {failed:?}");
        }
    }
}
