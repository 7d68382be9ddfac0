//! The cluster's authorities and certificates: what is there, and what has to be made.

use std::collections::BTreeMap;

use evenkeel_api::Reason;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;

use super::{
    super::{
        certificates::{self, Authority, CertificateError, Which, certificate_hash, expiry, leaf_key},
        desired::Desired,
        model::Model,
        problem::Remark,
        seen::Seen,
    },
    Deed, secret,
};

/// All of them.
pub(super) struct Issued {
    pub(super) cluster: Authority,
    pub(super) clients: Authority,
    /// Hashes of the nodes' certificates.
    pub(super) nodes: BTreeMap<i32, String>,
    /// Hash of the engine's certificate, if there is an engine.
    pub(super) engine: String,
    /// What runs out, in words.
    expiring: Vec<String>,
    made: Vec<(Secret, bool)>,
}

/// What is there, and what lacks.
pub(super) fn issue(seen: &Seen, model: &Model) -> Result<Issued, CertificateError> {
    let names = &model.names;
    let authority = |which, key: String, certificate: String| {
        let (key, certificate) = (secret(seen, &key), secret(seen, &certificate));
        certificates::authority(model, which, key.as_ref(), certificate.as_ref(), seen.now)
    };
    let (cluster, mut missing) = authority(Which::Cluster, names.cluster_ca_key(), names.cluster_ca_cert())?;
    let (clients, more) = authority(Which::Clients, names.clients_ca_key(), names.clients_ca_cert())?;
    missing.extend(more);
    let mut issued = Issued {
        cluster,
        clients,
        nodes: BTreeMap::new(),
        engine: String::new(),
        expiring: Vec::new(),
        made: missing.into_iter().map(|made| (made, false)).collect(),
    };
    for (authority, key) in
        [names.cluster_ca_cert(), names.clients_ca_cert()].map(|name| (secret(seen, &name), "ca.crt"))
    {
        issued.expiring.extend(authority.and_then(|authority| expiry(&authority, key, seen.now)));
    }
    let existing = secret(seen, &names.operator_certs());
    let made = certificates::of_operator(model, &issued.cluster, existing.as_ref(), seen.now)?;
    issued.take(existing, made, seen.now);
    for node in model.nodes.values() {
        let existing = secret(seen, &node.pod);
        let made = certificates::of_node(model, node, &issued.cluster, existing.as_ref(), seen.now)?;
        let hash = issued.take(existing, made, seen.now);
        issued.nodes.insert(node.id, hash);
    }
    if model.engine.is_some() {
        let existing = secret(seen, &names.engine_certs());
        let made = certificates::of_engine(model, &issued.cluster, existing.as_ref(), seen.now)?;
        issued.engine = issued.take(existing, made, seen.now);
    }
    Ok(issued)
}

impl Issued {
    /// Keeps what was made; returns the hash of what will be there.
    fn take(&mut self, existing: Option<Secret>, made: Option<Secret>, now: Timestamp) -> String {
        let kept = existing.as_ref().filter(|_| made.is_none());
        self.expiring.extend(kept.and_then(|kept| expiry(kept, leaf_key(kept)?, now)));
        let hash = made.as_ref().or(existing.as_ref()).map(certificate_hash).unwrap_or_default();
        self.made.extend(made.map(|made| (made, existing.is_some())));
        hash
    }

    /// One warning about all that runs out: they were made together, and go together.
    pub(super) fn remark(&self) -> Option<Remark> {
        let (first, others) = self.expiring.split_first()?;
        let others = if others.is_empty() { String::new() } else { format!(" ({} others do, too)", others.len()) };
        Some(Remark::of_kafka(Reason::InvalidResourceException, format!("{first}{others}")))
    }

    /// What has to be written, authorities first. What is not there is created and never overwritten: should somebody
    /// else have been faster, theirs is the key that others may already trust.
    pub(super) fn deeds(&self) -> Vec<Deed> {
        let deed = |(made, exists): &(Secret, bool)| match exists {
            true => Deed::Apply(Desired::new(made)),
            false => Deed::Create(Desired::once(made)),
        };
        self.made.iter().map(deed).collect()
    }
}
