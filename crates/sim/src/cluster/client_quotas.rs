//! Quotas of clients: kept and found, and obeyed by nobody. (Those of replication are another matter: see `quota`.)

use std::collections::{BTreeMap, BTreeSet};

use super::Cluster;
use crate::code::{Code, Refusal};

/// Who a quota is for: a name, or the default (none), for each of the kinds `user`, `client-id` and `ip`.
pub type QuotaEntity = BTreeMap<String, Option<String>>;

/// Quotas by who they are for.
pub(crate) type ClientQuotas = BTreeMap<QuotaEntity, BTreeMap<String, f64>>;

/// What a filter says of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaMatch {
    /// This name.
    Exactly(String),
    /// The default.
    Default,
    /// Any name, or the default.
    Any,
}

const OF_CLIENTS: [&str; 4] =
    ["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"];
const OF_ADDRESSES: [&str; 1] = ["connection_creation_rate"];

impl Cluster {
    /// Those who are meant, each with all its quotas. With `strict` nobody of a kind that the filter does not name.
    pub fn describe_client_quotas(
        &self,
        filter: &BTreeMap<String, QuotaMatch>,
        strict: bool,
    ) -> Vec<(QuotaEntity, BTreeMap<String, f64>)> {
        let meant = |entity: &QuotaEntity| {
            let named = filter.iter().all(|(kind, wanted)| match (entity.get(kind), wanted) {
                (None, _) => false,
                (Some(_), QuotaMatch::Any) => true,
                (Some(name), QuotaMatch::Default) => name.is_none(),
                (Some(name), QuotaMatch::Exactly(wanted)) => name.as_ref() == Some(wanted),
            });
            named && (!strict || entity.len() == filter.len())
        };
        let found = self.client_quotas.iter().filter(|(entity, _)| meant(entity));
        found.map(|(entity, quotas)| (entity.clone(), quotas.clone())).collect()
    }

    /// Sets quotas of one entity, or takes them away (none). With `dry_run` it only says whether it could.
    pub fn alter_client_quotas(
        &mut self,
        entity: &QuotaEntity,
        changes: &[(String, Option<f64>)],
        dry_run: bool,
    ) -> Result<(), Refusal> {
        let known = check_entity(entity)?;
        let mut named = BTreeSet::new();
        for (key, value) in changes {
            let problem = if !known.contains(&key.as_str()) {
                format!("Invalid configuration key {key}")
            } else if !named.insert(key) {
                format!("Duplicate configuration key {key}")
            } else if value.is_some_and(|value| !value.is_finite() || value <= 0.0) {
                format!("Quota {key} must be greater than 0")
            } else {
                continue;
            };
            return Err(Code::InvalidRequest.because(problem));
        }
        if dry_run {
            return Ok(());
        }
        let quotas = self.client_quotas.entry(entity.clone()).or_default();
        for (key, value) in changes {
            match value {
                Some(value) => quotas.insert(key.clone(), *value),
                None => quotas.remove(key),
            };
        }
        self.client_quotas.retain(|_, quotas| !quotas.is_empty());
        Ok(())
    }
}

/// The keys that an entity may have.
fn check_entity(entity: &QuotaEntity) -> Result<&'static [&'static str], Refusal> {
    let kinds: Vec<&str> = entity.keys().map(String::as_str).collect();
    let empty = entity.values().any(|name| name.as_deref() == Some(""));
    match kinds[..] {
        _ if empty => Err(Code::InvalidRequest.because("Empty client quota entity name")),
        [] => Err(Code::InvalidRequest.because("Invalid empty client quota entity")),
        ["ip"] => Ok(&OF_ADDRESSES),
        ["user"] | ["client-id"] | ["client-id", "user"] => Ok(&OF_CLIENTS),
        _ => Err(Code::InvalidRequest.because("Invalid client quota entity")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Options;

    fn entity(parts: &[(&str, Option<&str>)]) -> QuotaEntity {
        parts.iter().map(|(kind, name)| ((*kind).to_owned(), name.map(str::to_owned))).collect()
    }

    fn rate(value: Option<f64>) -> [(String, Option<f64>); 1] {
        [("producer_byte_rate".to_owned(), value)]
    }

    #[test]
    fn quotas_are_kept_found_and_taken_away() {
        let mut cluster = Cluster::new(Options::default(), []);
        let (anna, anybody) = (entity(&[("user", Some("anna"))]), entity(&[("user", None)]));
        let both = entity(&[("user", Some("anna")), ("client-id", Some("app"))]);
        for (nth, who) in [&anna, &anybody, &both].into_iter().enumerate() {
            assert_eq!(cluster.alter_client_quotas(who, &rate(Some(1.0 + nth as f64)), false), Ok(()));
        }
        let find = |cluster: &Cluster, wanted: &[QuotaMatch], strict| {
            let filter = wanted.iter().map(|wanted| ("user".to_owned(), wanted.clone())).collect();
            let found = cluster.describe_client_quotas(&filter, strict);
            found.into_iter().map(|(_, quotas)| quotas["producer_byte_rate"]).collect::<Vec<_>>()
        };
        let exactly = [QuotaMatch::Exactly("anna".to_owned())];
        assert_eq!(find(&cluster, &exactly, true), [1.0]);
        assert_eq!(find(&cluster, &exactly, false), [3.0, 1.0]);
        assert_eq!(find(&cluster, &[QuotaMatch::Default], true), [2.0]);
        assert_eq!(find(&cluster, &[QuotaMatch::Any], true), [2.0, 1.0]);
        assert_eq!(find(&cluster, &[], false).len(), 3);
        assert_eq!(cluster.alter_client_quotas(&anna, &rate(None), true), Ok(()));
        assert_eq!(find(&cluster, &exactly, true), [1.0], "nothing was to be done");
        assert_eq!(cluster.alter_client_quotas(&anna, &rate(None), false), Ok(()));
        assert_eq!(find(&cluster, &exactly, true), [0.0; 0]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let mut cluster = Cluster::new(Options::default(), []);
        let mut refused = |who: &[(&str, Option<&str>)], value| {
            let outcome = cluster.alter_client_quotas(&entity(who), &rate(value), false);
            outcome.is_err_and(|refusal| refusal.code == Code::InvalidRequest)
        };
        assert!(refused(&[], Some(1.0)) && refused(&[("tribe", None)], Some(1.0)));
        assert!(refused(&[("ip", None)], Some(1.0)), "of clients, not of addresses");
        assert!(refused(&[("user", Some(""))], Some(1.0)));
        assert!(refused(&[("user", None)], Some(0.0)) && refused(&[("user", None)], Some(f64::NAN)));
    }
}
