//! The operator of a local run. It lives in a runtime of its own and comes in by the door, so that it can be killed as a
//! process is killed: whatever it has begun ends where it is, and the next one has nothing but what the API tells.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_operator::process;
use evenkeel_operator::seams::{Context, EndpointSlices};
use evenkeel_operator::settings::Settings;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::stack::outside;

/// Threads of its runtime.
const THREADS: usize = 2;
/// How long what it does without waiting may take to come to its end.
const DEAD_WITHIN: Duration = Duration::from_secs(5);

/// An operator that can be killed and started again. Clones are the same.
#[derive(Clone)]
pub(crate) struct Operator {
    kubeconfig: PathBuf,
    life: Arc<Mutex<Option<Life>>>,
}

/// One life of it.
struct Life {
    runtime: Option<Runtime>,
    work: JoinHandle<()>,
}

impl Operator {
    /// Starts one that reaches the API with what this kubeconfig says.
    pub(super) fn start(kubeconfig: &Path) -> io::Result<Self> {
        let operator = Self { kubeconfig: kubeconfig.to_owned(), life: Arc::default() };
        operator.start_again()?;
        Ok(operator)
    }

    /// Starts a new one; one that is still there is dropped.
    pub(crate) fn start_again(&self) -> io::Result<()> {
        let runtime =
            Builder::new_multi_thread().worker_threads(THREADS).thread_name("operator").enable_all().build()?;
        let work = runtime.spawn(work(self.kubeconfig.clone()));
        self.put(Some(Life { runtime: Some(runtime), work }));
        Ok(())
    }

    /// Kills it, as `SIGKILL` does: nothing is finished, and nobody is told. Nothing of it is left afterwards.
    pub(crate) async fn kill(&self) {
        let Some(runtime) = self.put(None).and_then(|mut life| life.runtime.take()) else { return };
        // It only fails if this run ends as well.
        let _ = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(DEAD_WITHIN)).await;
    }

    /// Whether it has ended by itself, which it should not.
    pub(super) fn has_ended(&self) -> bool {
        let life = self.life.lock().unwrap_or_else(PoisonError::into_inner);
        life.as_ref().is_some_and(|life| life.work.is_finished())
    }

    fn put(&self, life: Option<Life>) -> Option<Life> {
        std::mem::replace(&mut *self.life.lock().unwrap_or_else(PoisonError::into_inner), life)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // Runtimes must not be dropped where others run.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Comes back only if the operator has ended by itself.
async fn work(kubeconfig: PathBuf) {
    let client = match outside(&kubeconfig).await {
        Ok(client) => client,
        Err(error) => return tracing::error!("the operator does not find the API: {error:#}"),
    };
    let mut settings = Settings::default();
    // People's clients dial the listeners of brokers where they really are.
    settings.clusters.extra_names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let context = Context::new(client.clone(), settings).finding(Arc::new(EndpointSlices(client)));
    if let Err(error) = process::run(context, None, std::future::pending()).await {
        tracing::error!(%error, "the operator has ended");
    }
}
