//! Keeps the ConfigMap `<cluster>-goal-violation-map` by what each round has judged.
//!
//! Two write it, the engine and the operator, so it is replaced only as it was read: if somebody was faster, it is
//! read again. Usually the operator has made it, with its owner and its labels, which are kept; if it is absent it
//! is created.

use std::{collections::BTreeMap, time::Duration};

use evenkeel_balancer::goal::Goal;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use uuid::Uuid;

use super::Error;
use crate::detect::violation_map;

/// How often it is read again because somebody was faster.
const READINGS: u32 = 8;
/// Before it is read again; each time twice as long.
const PAUSE: Duration = Duration::from_millis(20);

/// The ConfigMap of one cluster.
#[derive(Debug, Clone)]
pub struct ViolationMap {
    api: Api<ConfigMap>,
    name: String,
    cluster: String,
}

impl ViolationMap {
    /// Of this cluster; in the namespace of the client if none is given.
    pub fn new(client: Client, namespace: Option<&str>, cluster: &str) -> ViolationMap {
        let api = match namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::default_namespaced(client),
        };
        ViolationMap { api, name: format!("{cluster}-goal-violation-map"), cluster: cluster.to_owned() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Shows what a round has judged.
    pub async fn record(&self, id: Uuid, fixable: &[Goal], unfixable: &[Goal]) -> Result<(), Error> {
        let mut pause = PAUSE;
        for _ in 0..READINGS {
            let current = self.api.get_opt(&self.name).await.map_err(failed("read"))?;
            let data = current.as_ref().and_then(|map| map.data.clone()).unwrap_or_default();
            let Some(next) = violation_map::after(&data, id, fixable, unfixable) else { return Ok(()) };
            let how = PostParams::default();
            let written = match current {
                // The version that was read goes along: a newer one is not overwritten.
                Some(map) => {
                    let map = ConfigMap { data: Some(next), ..map };
                    self.api.replace(&self.name, &how, &map).await.map_err(failed("replace"))
                }
                None => self.api.create(&how, &self.fresh(next)).await.map_err(failed("create")),
            };
            match written {
                Ok(_) => return Ok(()),
                Err(error) if is_outrun(&error) => tokio::time::sleep(pause).await,
                Err(error) => return Err(error),
            }
            pause *= 2;
        }
        Err(Error::Contended(READINGS))
    }

    fn fresh(&self, data: BTreeMap<String, String>) -> ConfigMap {
        let labels = [("strimzi.io/cluster", self.cluster.as_str()), ("strimzi.io/kind", "Kafka")];
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            labels: Some(labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()),
            ..ObjectMeta::default()
        };
        ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
    }
}

fn failed(what: &'static str) -> impl Fn(kube::Error) -> Error {
    move |source| Error::Map { what, source: Box::new(source) }
}

/// Whether somebody has changed, made or removed it since it was read.
fn is_outrun(error: &Error) -> bool {
    let Error::Map { source, .. } = error else { return false };
    matches!(&**source, kube::Error::Api(status) if matches!(status.code, 404 | 409))
}
