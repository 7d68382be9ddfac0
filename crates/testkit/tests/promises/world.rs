//! A server to talk to, with a namespace of the test's own, and the requests that promises are made of.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::watching::Watch;

/// How long something may take that the other side does on its own time. Generous, because the real arm shares a
/// small machine with compilers; nothing waits this long unless it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Between two looks at something that is not watched.
const PAUSE: Duration = Duration::from_millis(20);

/// A server, seen through a client with all rights, and a namespace that belongs to one promise.
pub(crate) struct World {
    pub(crate) client: kube::Client,
    pub(crate) namespace: String,
    arm: Arm,
}

/// Whose API server it is.
#[derive(Clone, Copy, PartialEq)]
enum Arm {
    Embedded,
    #[cfg(feature = "real-kube")]
    Real,
}

impl Arm {
    /// How long a request is repeated that was told to come back later. For a moment after its definition changed, the
    /// real server says that of a custom kind; ours has no such moment, so there it would be a failure.
    fn comes_back_for(self) -> Duration {
        if self == Self::Embedded { Duration::ZERO } else { PATIENCE }
    }
}

/// Content types of patches.
pub(crate) const JSON: &str = "application/json-patch+json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// The embedded server with the garbage collector and the namespace life cycle beside it.
pub(crate) async fn embedded() -> World {
    World::new(evenkeel_testkit::embedded().await, Arm::Embedded).await
}

/// The real kube-apiserver, shared by all promises of one run; or one that already runs, whose kubeconfig the variable
/// `EVENKEEL_REAL_KUBECONFIG` names, which spares its start while promises are written.
#[cfg(feature = "real-kube")]
pub(crate) async fn real() -> World {
    let kubeconfig = match std::env::var_os("EVENKEEL_REAL_KUBECONFIG") {
        Some(path) => std::path::PathBuf::from(path),
        None => {
            let control_plane =
                evenkeel_testkit::real_kube::ControlPlane::shared().await.expect("the real control plane");
            control_plane.start_controller_manager().await.expect("the real controllers");
            control_plane.kubeconfig()
        }
    };
    World::new(client(&kubeconfig).await, Arm::Real).await
}

/// A real API server without controllers of its own; ours look after it instead.
#[cfg(feature = "real-kube")]
pub(crate) async fn real_with_node() -> World {
    use evenkeel_testkit::real_kube::{ControlPlane, KUBETEST};

    static SHARED: tokio::sync::OnceCell<ControlPlane> = tokio::sync::OnceCell::const_new();
    let start = || async {
        let kubetest = std::env::var_os(KUBETEST).expect("`cargo xtask real kube` says where kubetest is");
        let control_plane = ControlPlane::start(kubetest.as_ref()).await.expect("the real API server");
        let kubeconfig = control_plane.kubeconfig();
        // Every test has a runtime of its own; this one must outlive them all.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async { evenkeel_node::run(client(&kubeconfig).await, std::future::pending()).await });
        });
        control_plane
    };
    World::new(client(&SHARED.get_or_init(start).await.kubeconfig()).await, Arm::Real).await
}

/// A client that shows every answer: one that tries again by itself would hide some.
#[cfg(feature = "real-kube")]
async fn client(kubeconfig: &std::path::Path) -> kube::Client {
    // Only the first call in a process installs it; later ones find it there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await;
    let mut config = config.expect("a usable kubeconfig");
    config.default_retry = false;
    kube::Client::try_from(config).expect("a client")
}

impl World {
    async fn new(client: kube::Client, arm: Arm) -> Self {
        let world = Self { client, namespace: unique("promise"), arm };
        world.post("/api/v1/namespaces", json!({"metadata": {"name": world.namespace}})).await.ok();
        // Pods are refused until the account exists that they run as; whoever is first makes it.
        let account = json!({"metadata": {"name": "default"}});
        let answer = world.post(&world.core("serviceaccounts"), account).await;
        assert!(matches!(answer.code, 201 | 409), "{}", answer.text);
        world
    }

    /// Path of a resource of the core group in this world's namespace.
    pub(crate) fn core(&self, resource: &str) -> String {
        format!("/api/v1/namespaces/{}/{resource}", self.namespace)
    }

    /// Path of a resource of a named group in this world's namespace.
    pub(crate) fn of_group(&self, group_version: &str, resource: &str) -> String {
        format!("/apis/{group_version}/namespaces/{}/{resource}", self.namespace)
    }

    /// Path of this namespace's config maps, the plainest of the built-in kinds.
    pub(crate) fn maps(&self) -> String {
        self.core("configmaps")
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], Vec::new()).await
    }

    /// A GET that asks for another form of the answer.
    pub(crate) async fn get_as(&self, accept: &str, path: &str) -> Answer {
        self.send(Method::GET, path, &[("accept", accept)], Vec::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &[("content-type", "application/json")], bytes(&body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, &[("content-type", "application/json")], bytes(body)).await
    }

    pub(crate) async fn patch(&self, content_type: &str, path: &str, body: Value) -> Answer {
        self.send(Method::PATCH, path, &[("content-type", content_type)], bytes(&body)).await
    }

    /// A delete with options; `Value::Null` sends none.
    pub(crate) async fn delete(&self, path: &str, options: Value) -> Answer {
        let body = if options.is_null() { Vec::new() } else { bytes(&options) };
        self.send(Method::DELETE, path, &[("content-type", "application/json")], body).await
    }

    /// Server-side apply by `manager`, not forced.
    pub(crate) async fn apply(&self, manager: &str, path: &str, body: Value) -> Answer {
        self.patch(APPLY, &with_query(path, &format!("fieldManager={manager}")), body).await
    }

    /// Server-side apply by `manager`, forced.
    pub(crate) async fn force(&self, manager: &str, path: &str, body: Value) -> Answer {
        self.patch(APPLY, &with_query(path, &format!("fieldManager={manager}&force=true")), body).await
    }

    /// Any request at all.
    pub(crate) async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        let request = format!("{method} {path}");
        let deadline = Instant::now() + self.arm.comes_back_for();
        let response = loop {
            let sent = self.client.send(build(method.clone(), path, headers, body.clone()));
            let response = tokio::time::timeout(PATIENCE, sent).await.expect(&request).expect(&request);
            if !matches!(response.status().as_u16(), 429 | 503) || Instant::now() >= deadline {
                break response;
            }
            tokio::time::sleep(PAUSE).await;
        };
        let (head, body) = response.into_parts();
        let body = tokio::time::timeout(PATIENCE, body.collect_bytes()).await.expect(&request).expect(&request);
        let text = String::from_utf8_lossy(&body).into_owned();
        let body = serde_json::from_str(&text).unwrap_or_default();
        Answer { request, code: head.status.as_u16(), headers: head.headers, body, text }
    }

    /// Starts a watch; `query` without `watch=true`.
    pub(crate) async fn watch(&self, path: &str, query: &str) -> Watch {
        self.watch_as("application/json", path, query).await
    }

    /// Starts a watch whose events come in another form.
    pub(crate) async fn watch_as(&self, accept: &str, path: &str, query: &str) -> Watch {
        let path = with_query(path, &format!("watch=true&{query}"));
        let response = self.client.send(build(Method::GET, &path, &[("accept", accept)], Vec::new()));
        let response = tokio::time::timeout(PATIENCE, response).await.expect(&path).expect(&path);
        assert_eq!(response.status(), 200, "{path}");
        Watch::new(response.into_body())
    }

    /// A config map of that name, made now.
    pub(crate) async fn map(&self, name: &str, labels: Value) -> Value {
        self.post(&self.maps(), json!({"metadata": {"name": name, "labels": labels}})).await.ok()
    }

    /// Asks again until the answer is as wanted: for what the other side does on its own time.
    pub(crate) async fn until(&self, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.get(path).await;
            if wanted(&answer) {
                return answer;
            }
            assert!(Instant::now() < deadline, "{path} stayed {} {}", answer.code, answer.text);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until nothing is found at the path.
    pub(crate) async fn gone(&self, path: &str) {
        self.until(path, |answer| answer.code == 404).await;
    }
}

/// A name that no other promise, arm or run has.
pub(crate) fn unique(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Adds query parameters to a path that may have some already.
pub(crate) fn with_query(path: &str, query: &str) -> String {
    format!("{path}{}{query}", if path.contains('?') { '&' } else { '?' })
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

fn build(method: Method, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Body::from(body)).expect("a request of the suite is well formed")
}
