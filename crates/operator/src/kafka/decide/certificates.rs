//! The cluster's authorities and certificates: what is there, and what has to be made.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;

use super::{
    super::{
        certificates::{self, Authority, CertificateError, Which, certificate_hash},
        desired::Desired,
        model::Model,
        seen::Seen,
    },
    Deed, secret,
};

/// All of them.
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) cluster: Authority,
    pub(super) clients: Authority,
    /// Hashes of the nodes' certificates.
    pub(super) nodes: BTreeMap<i32, String>,
    /// Hash of the engine's certificate, if there is an engine.
    pub(super) engine: String,
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
        made: missing.into_iter().map(|made| (made, false)).collect(),
    };
    let existing = secret(seen, &names.operator_certs());
    let made = certificates::of_operator(model, &issued.cluster, existing.as_ref(), seen.now)?;
    issued.take(existing, made);
    for node in model.nodes.values() {
        let existing = secret(seen, &node.pod);
        let made = certificates::of_node(model, node, &issued.cluster, existing.as_ref(), seen.now)?;
        let hash = issued.take(existing, made);
        issued.nodes.insert(node.id, hash);
    }
    if model.engine.is_some() {
        let existing = secret(seen, &names.engine_certs());
        let made = certificates::of_engine(model, &issued.cluster, existing.as_ref(), seen.now)?;
        issued.engine = issued.take(existing, made);
    }
    Ok(issued)
}

impl Issued {
    /// Keeps what was made; returns the hash of what will be there.
    fn take(&mut self, existing: Option<Secret>, made: Option<Secret>) -> String {
        let hash = made.as_ref().or(existing.as_ref()).map(certificate_hash).unwrap_or_default();
        self.made.extend(made.map(|made| (made, existing.is_some())));
        hash
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
