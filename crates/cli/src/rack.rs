//! `evenkeel rack`: what the init container of a broker does.

use std::path::PathBuf;

use anyhow::Context;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};

/// Whose label, and where it goes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The node that the pod runs on.
    #[arg(long, env = "NODE_NAME")]
    node: String,
    /// The label that names the rack, such as topology.kubernetes.io/zone.
    #[arg(long)]
    label: String,
    /// The file that the rack is written to.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

/// Asks the Kubernetes API for the node, and writes the value of the label into the file.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // Only fails when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let node = runtime.block_on(async {
        let client = Client::try_default().await.context("no Kubernetes API is to be found")?;
        let found = Api::<Node>::all(client).get(&args.node).await;
        found.with_context(|| format!("could not read node {}", args.node))
    })?;
    let rack = rack_of(&node, &args.label).with_context(|| {
        format!("node {} has no label {}: label it, or take spec.kafka.rack away", args.node, args.label)
    })?;
    std::fs::write(&args.to, rack).with_context(|| format!("could not write {}", args.to.display()))
}

fn rack_of<'a>(node: &'a Node, label: &str) -> Option<&'a str> {
    let value = node.metadata.labels.as_ref()?.get(label)?;
    Some(value.as_str()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rack_is_the_value_of_the_label_and_nothing_is_none() {
        let mut node = Node::default();
        assert_eq!(rack_of(&node, "zone"), None);
        node.metadata.labels = Some([("zone".to_owned(), "a".to_owned()), ("bare".to_owned(), String::new())].into());
        assert_eq!(rack_of(&node, "zone"), Some("a"));
        assert_eq!(rack_of(&node, "bare"), None);
    }
}
