//! The real control plane: etcd, kube-apiserver and kube-controller-manager as child processes.
//!
//! All three are roles of one binary, built from `real/kubetest` by `cargo xtask real kube`, which
//! passes its path in [`KUBETEST`]. Data is throwaway: servers are killed, never asked to stop, and
//! they die with this process however it ends.
//!
//! What a suite does: [`ControlPlane::shared`], install the CRDs, then
//! [`ControlPlane::start_controller_manager`]. In this order, because the garbage collector learns
//! of new kinds only every 30 seconds; for a CRD installed later a test must wait a minute or more.
//! A namespace takes more than five seconds to disappear: give each test one of its own and leave it
//! behind.

mod kubeconfig;

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::OnceCell;

use kubeconfig::Credentials;

use crate::{
    client,
    ports::lasting_ports,
    readiness,
    run_folder::RunFolder,
    server::{EarlyExit, Server},
};

/// The environment variable with the path of the kubetest binary.
pub const KUBETEST: &str = "EVENKEEL_KUBETEST";

/// Roles of the binary.
const APISERVER: &str = "apiserver";
const ETCD: &str = "etcd";

/// A running control plane with one administrator.
///
/// No kubelet and no scheduler: pods stay pending, and a test that needs a status writes it.
#[derive(Debug)]
pub struct ControlPlane {
    kubetest: PathBuf,
    url: String,
    // In this order: each server goes before the one it talks to, and the folder last.
    controller_manager: OnceCell<Server>,
    apiserver: Server,
    etcd: Server,
    folder: RunFolder,
}

impl ControlPlane {
    /// Starts etcd and kube-apiserver and returns once the API is ready.
    ///
    /// # Errors
    ///
    /// When a server exits early twice in a row, or is not ready in time; the error carries the
    /// end of that server's log.
    pub async fn start(kubetest: &Path) -> Result<Self> {
        match Self::try_start(kubetest).await {
            // A port chosen as free was taken before the server had it: rare, and gone at once.
            Err(failure) if failure.is::<EarlyExit>() => Self::try_start(kubetest).await,
            outcome => outcome,
        }
    }

    /// The control plane of this test process, started by whoever asks first.
    ///
    /// It lives as long as the process: no destructor of a static runs, but the servers notice
    /// that their standard input was closed.
    ///
    /// # Errors
    ///
    /// When [`KUBETEST`] is not set, or as [`ControlPlane::start`] does.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        SHARED
            .get_or_try_init(|| async {
                let kubetest = env::var_os(KUBETEST)
                    .with_context(|| format!("{KUBETEST} is not set; `cargo xtask real kube` sets it"))?;
                Self::start(Path::new(&kubetest)).await
            })
            .await
    }

    /// Starts the garbage collector, the namespace and service account controllers, and those that protect claims and
    /// volumes, once.
    ///
    /// Returns when they are at work. Later calls return at once.
    ///
    /// # Errors
    ///
    /// When the controller manager exits early or the default service account does not appear.
    pub async fn start_controller_manager(&self) -> Result<()> {
        self.controller_manager
            .get_or_try_init(|| async {
                let mut server = Server::start(
                    &self.kubetest,
                    self.folder.path(),
                    "controller-manager",
                    &controller_manager_flags(),
                )?;
                readiness::controllers(&mut server, &self.client().await?).await?;
                Ok::<_, anyhow::Error>(server)
            })
            .await?;
        Ok(())
    }

    /// A new client with all rights.
    ///
    /// Each test takes its own: a client's connection dies with the runtime that made it, and every
    /// `#[tokio::test]` has a runtime of its own. Refusals for being busy (429, as a kind just
    /// installed answers for a moment) are retried, as kube's clients do in production.
    ///
    /// # Errors
    ///
    /// When the kubeconfig cannot be read back.
    pub async fn client(&self) -> Result<Client> {
        client::from_kubeconfig(&self.kubeconfig()).await
    }

    /// A new client with the rights of a service account, and no others.
    ///
    /// # Errors
    ///
    /// When there is no such account, or the kubeconfig cannot be read back.
    pub async fn client_of(&self, namespace: &str, account: &str) -> Result<Client> {
        let accounts = Api::<ServiceAccount>::namespaced(self.client().await?, namespace);
        // As long as the server gives one: nobody renews it here.
        let asked = TokenRequest {
            spec: TokenRequestSpec { expiration_seconds: Some(24 * 3600), ..TokenRequestSpec::default() },
            ..TokenRequest::default()
        };
        let granted = accounts
            .create_token_request(account, &PostParams::default(), &asked)
            .await
            .with_context(|| format!("no token for {namespace}/{account}"))?;
        let token = granted.status.context("a token request without an answer")?.token;
        client::with_token(&self.kubeconfig(), token).await
    }

    /// A kubeconfig with all rights, for kubectl and other programs.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join(Credentials::ADMIN.kubeconfig)
    }

    /// Where the API is, for requests that no client would send.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The bearer token with all rights.
    pub fn token(&self) -> &'static str {
        Credentials::ADMIN.token
    }

    /// The certificates to trust, in PEM.
    pub fn certificate_authority(&self) -> PathBuf {
        self.folder.path().join(kubeconfig::AUTHORITY)
    }

    /// The servers that every control plane has, by role, with their process ids.
    pub fn processes(&self) -> [(&'static str, u32); 2] {
        [(APISERVER, self.apiserver.id()), (ETCD, self.etcd.id())]
    }

    async fn try_start(kubetest: &Path) -> Result<Self> {
        let mut folder = RunFolder::new("control-plane")?;
        let [etcd_port, peer_port, api_port] = lasting_ports()?;
        let url = format!("https://127.0.0.1:{api_port}");
        kubeconfig::write_all(folder.path(), &url)?;
        let servers = async {
            let mut etcd = Server::start(kubetest, folder.path(), ETCD, &etcd_flags(etcd_port, peer_port))?;
            readiness::port(&mut etcd, etcd_port).await?;
            let flags = apiserver_flags(etcd_port, api_port);
            let mut apiserver = Server::start(kubetest, folder.path(), APISERVER, &flags)?;
            readiness::api(&mut apiserver, &folder.path().join(Credentials::ADMIN.kubeconfig)).await?;
            Ok((etcd, apiserver))
        };
        match servers.await {
            Ok((etcd, apiserver)) => Ok(Self {
                kubetest: kubetest.to_path_buf(),
                url,
                controller_manager: OnceCell::new(),
                apiserver,
                etcd,
                folder,
            }),
            Err(failure) => {
                folder.keep();
                Err(failure)
            }
        }
    }
}

fn etcd_flags(client: u16, peer: u16) -> Vec<String> {
    vec![
        "--name=kt".into(),
        "--data-dir=etcd".into(),
        "--unsafe-no-fsync".into(), // The data never outlives the test.
        "--log-level=warn".into(),
        format!("--listen-client-urls=http://127.0.0.1:{client}"),
        format!("--advertise-client-urls=http://127.0.0.1:{client}"),
        format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-cluster=kt=http://127.0.0.1:{peer}"),
    ]
}

fn apiserver_flags(etcd: u16, port: u16) -> Vec<String> {
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        "--endpoint-reconciler-type=none".into(),
        // The server writes its own certificate there, and the key signs service account tokens.
        format!("--cert-dir={}", kubeconfig::CERTIFICATES),
        format!("--service-account-key-file={}", kubeconfig::KEY),
        format!("--service-account-signing-key-file={}", kubeconfig::KEY),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--token-auth-file={}", kubeconfig::TOKENS),
        "--authorization-mode=RBAC".into(),
        // As strict as clusters get: who makes something that holds up the deletion of an object needs rights on that one.
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".into(),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
    ]
}

fn controller_manager_flags() -> Vec<String> {
    vec![
        format!("--kubeconfig={}", Credentials::CONTROLLER_MANAGER.kubeconfig),
        "--secure-port=0".into(),
        "--leader-elect=false".into(),
        // Each controller's rights belong to its own account; without this they fail as forbidden,
        // which only their log tells.
        "--use-service-account-credentials=true".into(),
        "--controllers=garbage-collector-controller,namespace-controller,\
         persistentvolumeclaim-protection-controller,persistentvolume-protection-controller,\
         serviceaccount-controller,root-ca-certificate-publisher-controller"
            .into(),
        format!("--service-account-private-key-file={}", kubeconfig::KEY),
        format!("--root-ca-file={}", kubeconfig::AUTHORITY),
    ]
}
