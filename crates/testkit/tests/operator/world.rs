//! One real control plane with the operator installed and at work, for all stories of a run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_api::KafkaRebalance;
use evenkeel_operator::installation::{self, DEFAULT_NAMESPACE, Done, Manifests, Outcome};
use evenkeel_operator::process;
use evenkeel_operator::seams::{Context, NAME};
use evenkeel_operator::settings::Settings;
use evenkeel_testkit::real_kube::ControlPlane;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::node::{ByTable, Node};
use crate::refusals::Refusals;

/// How long something may take. Generous: the machine is shared with compilers, and nothing waits so long unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// What all stories share.
pub(crate) struct World {
    pub(crate) control_plane: &'static ControlPlane,
    pub(crate) node: Node,
    /// What the server did not want of the operator.
    pub(crate) refusals: Refusals,
    _files: tempfile::TempDir,
}

impl World {
    /// The world of this run, begun by whoever asks first. The server is strict with what the operator writes.
    pub(crate) async fn shared() -> &'static Self {
        static SHARED: OnceCell<World> = OnceCell::const_new();
        let begin = async || {
            let control_plane = ControlPlane::shared().await.expect("the real control plane");
            for done in install(&control_plane.client().await.expect("a client")).await {
                assert_eq!(done.outcome, Outcome::Applied, "{done}");
            }
            Self::begin(control_plane, Refusals::strict()).await
        };
        SHARED.get_or_init(begin).await
    }

    /// One of its own, where the operator has been installed already.
    pub(crate) async fn begin(control_plane: &'static ControlPlane, refusals: Refusals) -> Self {
        // Silent, unless RUST_LOG asks for more.
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
        // Only now: the garbage collector must know our kinds.
        control_plane.start_controller_manager().await.expect("the real controllers");
        let node = Node::new();
        let files = tempfile::tempdir().expect("a folder for pods");
        let (running, dir) = (node.clone(), files.path().to_owned());
        live(async move { running.run(control_plane, dir).await });
        let (watched, table) = (refusals.clone(), node.table.clone());
        live(async move {
            let client = control_plane.client_of(DEFAULT_NAMESPACE, NAME).await.expect("the operator's account");
            let context = Context::new(watched.of(client), settings()).finding(Arc::new(ByTable(table)));
            process::run(context, None, std::future::pending()).await.expect("the only operator");
        });
        Self { control_plane, node, refusals, _files: files }
    }
}

/// Runs something for as long as this process lives: every test has a runtime of its own, and it must outlive them all.
fn live(work: impl Future<Output = ()> + Send + 'static) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(work);
    });
}

/// Installs the operator as `evenkeel install --apply` does, but for its pod: it runs in this process.
pub(crate) async fn install(admin: &Client) -> Vec<Done> {
    let manifests = Manifests::new(None, Some("registry.example/evenkeel:1")).expect("an image");
    let done = installation::put(admin, &manifests).await.expect("the manifests are taken");
    let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
    let deployments = Api::<Deployment>::namespaced(admin.clone(), DEFAULT_NAMESPACE);
    deployments.patch(NAME, &PatchParams::default(), &none).await.expect("the operator's deployment");
    until("our kinds are served", async || {
        Api::<KafkaRebalance>::all(admin.clone()).list(&Default::default()).await.is_ok()
    })
    .await;
    done
}

/// The settings that the manifest of the deployment says, and one that no manifest does: real brokers call each other by
/// the address of this machine.
fn settings() -> Settings {
    let text = include_str!("../../../../deploy/operator/deployment.yaml");
    let deployment: Deployment = serde_saphyr::from_str(text).expect("a deployment");
    let spec = deployment.spec.and_then(|spec| spec.template.spec).expect("a pod");
    let env = spec.containers.into_iter().flat_map(|container| container.env.unwrap_or_default());
    let env: Vec<_> = env.map(|variable| (variable.name, variable.value)).collect();
    let variable = |name: &str| match env.iter().find(|(known, _)| known == name)? {
        (_, Some(value)) => Some(value.clone()),
        // Where the pod's own metadata is meant.
        (name, None) if name.ends_with("NAMESPACE") => Some(DEFAULT_NAMESPACE.to_owned()),
        (_, None) => Some("evenkeel-operator-0".to_owned()),
    };
    let mut settings = Settings::read(variable, Some(DEFAULT_NAMESPACE)).expect("settings");
    settings.clusters.extra_names = vec!["127.0.0.1".to_owned()];
    assert!(settings.lease.is_some() && settings.namespaces.is_empty(), "{settings:?}");
    settings
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
