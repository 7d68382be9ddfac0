//! Whom the operator trusts in a cluster, and who it is there itself.

use std::fmt;

use evenkeel_kafka::connect::TlsPem;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use super::ClusterRef;

/// The certificates with which the operator speaks to one cluster, PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Trust {
    /// The cluster's authorities.
    pub authorities: Vec<u8>,
    /// The operator's own certificate and key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Trust {
    /// Not the content: a private key is in it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Trust").field("has_identity", &self.identity.is_some()).finish_non_exhaustive()
    }
}

impl Trust {
    /// Name of the Secret with the cluster's authority.
    pub fn authority_secret(cluster: &str) -> String {
        format!("{cluster}-cluster-ca-cert")
    }

    /// Name of the Secret with the operator's certificate.
    pub fn identity_secret(cluster: &str) -> String {
        format!("{cluster}-cluster-operator-certs")
    }

    /// What these Secrets hold; None if there is no authority in them.
    pub fn of_secrets(authority: Option<&Secret>, identity: Option<&Secret>) -> Option<Self> {
        let entry = |secret: Option<&Secret>, key: &str| -> Option<Vec<u8>> {
            Some(secret?.data.as_ref()?.get(key)?.0.clone()).filter(|bytes| !bytes.is_empty())
        };
        Some(Self {
            authorities: entry(authority, "ca.crt")?,
            identity: entry(identity, "cluster-operator.crt").zip(entry(identity, "cluster-operator.key")),
        })
    }

    /// Reads the Secrets of a cluster; None while there are none.
    pub async fn read(client: &Client, of: &ClusterRef) -> Result<Option<Self>, kube::Error> {
        let secrets = Api::<Secret>::namespaced(client.clone(), &of.namespace);
        let authority = secrets.get_opt(&Self::authority_secret(&of.name)).await?;
        let identity = secrets.get_opt(&Self::identity_secret(&of.name)).await?;
        Ok(Self::of_secrets(authority.as_ref(), identity.as_ref()))
    }
}

impl From<&Trust> for TlsPem {
    fn from(trust: &Trust) -> Self {
        Self { authorities: trust.authorities.clone(), identity: trust.identity.clone() }
    }
}
