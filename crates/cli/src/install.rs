//! `evenkeel install` and `evenkeel uninstall`

use anyhow::Context;
use evenkeel_operator::installation::{self, DEFAULT_NAMESPACE, Done, Extent, Manifests};

use crate::crd::print;
use crate::misuse::Misuse;

/// What is installed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where the operator lives.
    #[arg(long, default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// The image with the binary `evenkeel`, for the operator and for what it makes [default: with --apply the one that is
    /// installed; none is published]
    #[arg(long)]
    image: Option<String>,
    /// The namespaces that the operator looks after, separated by commas, or `*` for all [default: with --apply those of the
    /// operator that is installed; else all]
    #[arg(long, value_name = "NAMESPACES", value_delimiter = ',')]
    watch: Vec<String>,
    /// The labels that a Kafka must have for the operator to look after it: `name=value` pairs, separated by commas, or '' for
    /// none [default: with --apply those of the operator that is installed; else none]
    #[arg(long, value_name = "LABELS")]
    selector: Option<String>,
    /// Leaves out the CustomResourceDefinitions, for a cluster that has Strimzi's.
    #[arg(long)]
    no_crds: bool,
    /// Applies the manifests to the cluster that the kubeconfig names instead of printing them. What somebody else has
    /// installed there, above all CustomResourceDefinitions, is left as it is. Refused if the operator would look after
    /// clusters that another operator runs.
    #[arg(long)]
    apply: bool,
}

/// What is removed.
#[derive(clap::Args)]
pub(crate) struct Removal {
    /// Where the operator lives.
    #[arg(long, default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// Removes the CustomResourceDefinitions too, if there is nothing of their kinds any more.
    #[arg(long)]
    crds: bool,
    /// Removes the CustomResourceDefinitions and with them every Kafka cluster. Refused while there are clusters that the
    /// operator did not look after.
    #[arg(long, conflicts_with = "crds")]
    crds_and_clusters: bool,
    /// Goes on although the operator's pod does not end, on a node that is lost for example, or was installed otherwise.
    #[arg(long)]
    force: bool,
}

/// Prints the manifests, or applies them.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut manifests = manifests(&args.namespace, args.image.as_deref(), &args.watch, args.selector.as_deref())?;
    manifests.crds = !args.no_crds;
    if !args.apply {
        return print(&manifests.yaml()?);
    }
    on_cluster(async |client| tell(installation::put(&client, &manifests).await))
}

/// Removes the operator from the cluster that the kubeconfig names.
pub(crate) fn remove(args: &Removal) -> anyhow::Result<()> {
    let manifests = manifests(&args.namespace, None, &[], None)?;
    let extent = match (args.crds, args.crds_and_clusters) {
        (_, true) => Extent::Clusters,
        (true, false) => Extent::Crds,
        (false, false) => Extent::Operator,
    };
    on_cluster(async |client| tell(installation::remove(&client, &manifests, extent, args.force).await))
}

fn manifests(
    namespace: &str,
    image: Option<&str>,
    watched: &[String],
    selector: Option<&str>,
) -> Result<Manifests, Misuse> {
    let manifests = Manifests::new(Some(namespace), image).and_then(|manifests| manifests.watching(watched));
    let manifests = manifests.and_then(|manifests| manifests.selecting(selector));
    manifests.map_err(|invalid| Misuse::Installation { what: invalid.to_string() })
}

fn on_cluster(work: impl AsyncFnOnce(kube::Client) -> anyhow::Result<()>) -> anyhow::Result<()> {
    // Only fails when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async { work(kube::Client::try_default().await.context("could not find the Kubernetes API")?).await })
}

/// Says what became of each object.
fn tell(outcome: Result<Vec<Done>, installation::Error>) -> anyhow::Result<()> {
    match outcome {
        Ok(done) => print(&done.iter().map(|done| format!("{done}\n")).collect::<String>()),
        Err(error) => {
            let remedy = error.remedy();
            Err(anyhow::Error::new(error).context(remedy))
        }
    }
}
