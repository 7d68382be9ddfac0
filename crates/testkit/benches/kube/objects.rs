//! What is written: config maps of about 1 KiB, and what must be found of them afterwards.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde::Deserialize;
use serde_json::json;

/// The characters in each object's data: with its metadata, that makes about 1 KiB.
const DATA: usize = 900;
/// Objects asked for at once where the time does not matter.
const PAGE: u32 = 2_000;

/// The part of a list that is looked at.
#[derive(Deserialize)]
pub(crate) struct Listed {
    pub(crate) items: Vec<ListedObject>,
}

#[derive(Deserialize)]
pub(crate) struct ListedObject {
    metadata: ListedMetadata,
    #[serde(default)]
    data: ListedData,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedMetadata {
    name: String,
    resource_version: String,
}

#[derive(Default, Deserialize)]
struct ListedData {
    #[serde(default)]
    text: String,
    patched: Option<String>,
}

pub(crate) fn name(number: usize) -> String {
    format!("map-{number:06}")
}

pub(crate) fn config_map(number: usize) -> Result<ConfigMap> {
    let map = json!({"metadata": {"name": name(number)}, "data": {"text": text(number)}});
    serde_json::from_value(map).context("could not make a config map")
}

/// Different in every object, so that nobody gains by storing equal things once.
fn text(number: usize) -> String {
    let mut state = number as u64;
    let mut letter = || {
        // Knuth's multiplier; the high bits are the good ones.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + ((state >> 33) % 26) as u8)
    };
    (0..DATA).map(|_| letter()).collect()
}

/// Makes a namespace and returns its config maps.
pub(crate) async fn namespace(client: &Client, name: &str) -> Result<Api<ConfigMap>> {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace).await.context("could not make a namespace")?;
    Ok(Api::namespaced(client.clone(), name))
}

/// The names of all config maps of a namespace, fetched in pages.
pub(crate) async fn count(maps: &Api<ConfigMap>) -> Result<usize> {
    let mut page = ListParams::default().limit(PAGE);
    let mut count = 0;
    loop {
        let listed = maps.list_metadata(&page).await.context("could not count the objects")?;
        count += listed.items.len();
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(count),
        }
    }
}

/// Fails unless these are the objects from 0 to `count`, whole and with the patch.
pub(crate) fn must_be_complete(listed: &Listed, count: usize) -> Result<()> {
    let found = listed.items.len();
    ensure!(found == count, "{count} objects were written, and {found} were listed");
    for (number, object) in listed.items.iter().enumerate() {
        let expected = name(number);
        let ListedObject { metadata, data } = object;
        ensure!(metadata.name == expected, "{expected} is missing, {} is in its place", metadata.name);
        ensure!(!metadata.resource_version.is_empty(), "{expected} has no resource version");
        ensure!(data.text == text(number), "{expected} does not hold what was written");
        ensure!(data.patched.as_deref() == Some(&expected), "{expected} was patched, and does not show it");
    }
    Ok(())
}
