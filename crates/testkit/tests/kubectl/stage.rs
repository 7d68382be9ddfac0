//! The servers that scenes are played against: one per arm and test process, with the widgets installed.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use evenkeel_apiserver::serve::{Server, Settings};
use evenkeel_testkit::kubectl::{self, Kubectl};
use tempfile::TempDir;

use crate::terminal::Terminal;

/// A running server and a kubeconfig that leads to it.
pub(crate) struct Stage {
    kubeconfig: PathBuf,
    /// With whom scenes are played.
    kubectls: fn() -> Vec<Kubectl>,
    _folder: Option<TempDir>,
}

/// The embedded server, for whom is installed.
pub(crate) fn embedded() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| Stage::embedded(installed))
}

/// The embedded server, for the kubectl of its own version.
#[cfg(feature = "real-kube")]
pub(crate) fn embedded_and_newest_kubectl() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| Stage::embedded(|| vec![newest()]))
}

/// The real control plane.
#[cfg(feature = "real-kube")]
pub(crate) fn real() -> &'static Stage {
    use evenkeel_testkit::real_kube::ControlPlane;

    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let kubeconfig = runtime.block_on(async {
            let control_plane = ControlPlane::shared().await.expect("the real control plane");
            // Before its controllers: the garbage collector learns of new kinds only every half minute.
            let stage = Stage { kubeconfig: control_plane.kubeconfig(), kubectls: installed, _folder: None };
            stage.furnish();
            control_plane.start_controller_manager().await.expect("the real controllers");
            control_plane.kubeconfig()
        });
        Stage { kubeconfig, kubectls: || installed().into_iter().chain([newest()]).collect(), _folder: None }
    })
}

/// The newest that is installed, and the one two minors older. Still older ones validate by OpenAPI v2, of which the
/// embedded server has only an empty document.
fn installed() -> Vec<Kubectl> {
    let installed = Kubectl::installed_or_skip("the kubectl suite");
    let chosen: Vec<_> = installed.iter().rev().step_by(2).take(2).cloned().collect();
    assert!(chosen.len() >= 2 || !kubectl::in_ci(), "in CI scenes are played with two minors, not with {chosen:?}");
    chosen
}

/// The one that comes with the real control plane, of its version.
#[cfg(feature = "real-kube")]
fn newest() -> Kubectl {
    let kubetest = std::env::var_os(evenkeel_testkit::real_kube::KUBETEST).expect("cargo xtask real kube names it");
    Kubectl::in_kubetest(kubetest.as_ref())
}

impl Stage {
    /// The embedded server over TLS on a loopback port, with our controllers.
    fn embedded(kubectls: fn() -> Vec<Kubectl>) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the kubeconfig");
        let kubeconfig = folder.path().join("kubeconfig");
        let written = kubeconfig.clone();
        let (ready, wait) = std::sync::mpsc::channel();
        // The server must outlive every test, so it has a thread of its own.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let server = Server::start(Settings::default()).await.expect("the embedded server");
                server.write_kubeconfig(&written).expect("the kubeconfig");
                let router = evenkeel_apiserver::http::router(server.shared().clone());
                let client = kube::Client::new(router, "default");
                ready.send(()).expect("somebody waits for the server");
                evenkeel_node::run(client, std::future::pending()).await;
            });
        });
        wait.recv().expect("the embedded server did not start");
        let stage = Self { kubeconfig, kubectls, _folder: Some(folder) };
        stage.furnish();
        stage
    }

    /// Plays a scene once with each kubectl, each time in a namespace of its own.
    pub(crate) fn play(&self, scene: fn(&Terminal)) {
        for kubectl in (self.kubectls)() {
            let terminal = Terminal::new(kubectl, &self.kubeconfig, unique("scene"));
            terminal.run(&["create", "namespace", terminal.namespace()]).ok();
            scene(&terminal);
        }
    }

    /// Installs the widgets and waits until they can be used, by every way in which kubectl learns of them.
    fn furnish(&self) {
        for kubectl in (self.kubectls)() {
            let terminal = Terminal::new(kubectl, &self.kubeconfig, "default".into());
            terminal.feed(&["apply", "-f", "-"], WIDGETS).ok();
            terminal.until(&["get", "widgets"], |ran| ran.succeeded);
            terminal.until(&["explain", "widgets.spec"], |ran| ran.succeeded);
        }
    }
}

fn unique(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

const WIDGETS: &str = include_str!("widgets.yaml");
