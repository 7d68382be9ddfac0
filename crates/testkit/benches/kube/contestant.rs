//! The two servers, alike from here on: a kubeconfig to enter by, and processes that cost something.

use std::{
    env,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use evenkeel_testkit::{
    client,
    evenkeel_kube::{EVENKEEL, EvenkeelKube},
    measure::Cost,
    real_kube::{ControlPlane, KUBETEST},
};
use kube::Client;

/// A server that can be started.
pub(crate) enum Contestant {
    Ours { evenkeel: PathBuf },
    Real { kubetest: PathBuf },
}

/// A server that was started; it dies when this is dropped.
pub(crate) struct Running {
    /// From the moment its first process was started until it said that it is ready.
    pub(crate) start: Duration,
    kubeconfig: PathBuf,
    processes: Vec<(String, u32)>,
    _server: Server,
}

/// Held for its destructor.
#[expect(dead_code, reason = "the server lives as long as its handle")]
enum Server {
    Ours(EvenkeelKube),
    Real(Box<ControlPlane>),
}

impl Contestant {
    pub(crate) fn ours() -> Result<Self> {
        Ok(Self::Ours { evenkeel: path_in(EVENKEEL)? })
    }

    pub(crate) fn real() -> Result<Self> {
        Ok(Self::Real { kubetest: path_in(KUBETEST)? })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Ours { .. } => "ours",
            Self::Real { .. } => "real",
        }
    }

    pub(crate) async fn start(&self) -> Result<Running> {
        let started = Instant::now();
        Ok(match self {
            Self::Ours { evenkeel } => {
                let server = EvenkeelKube::start(evenkeel).await?;
                Running {
                    start: started.elapsed(),
                    kubeconfig: server.kubeconfig(),
                    processes: owned([server.process()]),
                    _server: Server::Ours(server),
                }
            }
            Self::Real { kubetest } => {
                let server = ControlPlane::start(kubetest).await?;
                Running {
                    start: started.elapsed(),
                    kubeconfig: server.kubeconfig(),
                    processes: owned(server.processes()),
                    _server: Server::Real(Box::new(server)),
                }
            }
        })
    }
}

impl Running {
    /// A client with connections of its own.
    pub(crate) async fn client(&self) -> Result<Client> {
        client::from_kubeconfig(&self.kubeconfig).await
    }

    pub(crate) async fn clients(&self, count: usize) -> Result<Vec<Client>> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(self.client().await?);
        }
        Ok(clients)
    }

    /// What each of its processes costs up to now, by role.
    pub(crate) fn costs(&self) -> Result<Vec<(&str, Cost)>> {
        self.processes.iter().map(|(role, process)| Ok((role.as_str(), Cost::of(*process)?))).collect()
    }

    /// What all of them cost together.
    pub(crate) fn cost(&self) -> Result<Cost> {
        Ok(self.costs()?.into_iter().map(|(_, cost)| cost).sum())
    }
}

fn path_in(variable: &str) -> Result<PathBuf> {
    let path =
        env::var_os(variable).with_context(|| format!("{variable} is not set; `cargo xtask bench kube` sets it"))?;
    // `cargo bench` starts us in the package's folder, not where the caller was.
    std::path::absolute(Path::new(&path)).context("a binary has no usable path")
}

fn owned<const N: usize>(processes: [(&str, u32); N]) -> Vec<(String, u32)> {
    processes.map(|(role, process)| (role.to_owned(), process)).into()
}
