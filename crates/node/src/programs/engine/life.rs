//! The life of an engine: the runtime it is in, whether it is ready, and its end.

use std::cell::RefCell;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::sleep;
use tracing::Dispatch;
use tracing::dispatcher::DefaultGuard;
use tracing_subscriber::filter::LevelFilter;

use super::Working;
use crate::kubelet::logs::Log;
use crate::kubelet::program::{Exit, LaunchError, Process, Stop};

/// How often it is asked whether it is ready.
const ASK: Duration = Duration::from_millis(200);
/// Threads of an engine's own runtime: planning has threads of its own.
const THREADS: usize = 2;

/// An engine and where it lives. Dropping it ends it.
pub(super) struct Life {
    /// The engine's own runtime, or nothing if it shares one.
    runtime: Option<Runtime>,
    /// Looks after the engine, and holds it.
    keeper: AbortHandle,
    port: u16,
    ready: watch::Receiver<bool>,
    log: Log,
}

impl Life {
    /// In a runtime of its own.
    pub(super) async fn apart(
        log: Log,
        making: impl Future<Output = Result<Working, LaunchError>> + Send + 'static,
    ) -> Result<Self, LaunchError> {
        let runtime = Unfinished(Some(runtime(&log).map_err(|error| LaunchError::Start(Box::new(error)))?));
        let (readiness, ready) = watch::channel(false);
        let (made, began) = oneshot::channel();
        let keeper = runtime.spawn(async move {
            match making.await {
                Ok(working) => {
                    // Nobody waits any more if the launch was called off; the runtime ends then.
                    let _ = made.send(Ok(working.server.address().port()));
                    keep(working, readiness).await;
                }
                Err(error) => drop(made.send(Err(error))),
            }
        });
        let gone = || LaunchError::Start("the engine ended before it began".into());
        let port = began.await.map_err(|_| gone())??;
        Ok(Self { runtime: runtime.finish(), keeper, port, ready, log })
    }

    /// In the runtime of the caller.
    pub(super) fn here(log: Log, working: Working) -> Self {
        let (readiness, ready) = watch::channel(false);
        let port = working.server.address().port();
        let keeper = tokio::spawn(keep(working, readiness)).abort_handle();
        Self { runtime: None, keeper, port, ready, log }
    }

    pub(super) fn into_process(self, container_port: u16) -> Process {
        self.log.line(&format!("the engine listens on 127.0.0.1:{}", self.port));
        let (ports, ready) = ([(container_port, self.port)].into(), self.ready.clone());
        let (told, mut end) = watch::channel(None);
        let life = Mutex::new(Some(self));
        Process {
            ports,
            ready,
            ended: Box::pin(async move {
                let exit = end.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone());
                exit.unwrap_or_else(Exit::killed)
            }),
            stop: Box::new(move |how| {
                // What is under way is on record, and carried on by the next: there is nothing to finish.
                let life = life.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(life) = life {
                    life.log.line("the engine is being stopped");
                    drop(life);
                    told.send_replace(Some(match how {
                        Stop::Politely => Exit::success(),
                        Stop::Now => Exit::killed(),
                    }));
                }
            }),
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.keeper.abort();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A runtime whose engine has not begun yet. Runtimes must not be dropped where others run.
struct Unfinished(Option<Runtime>);

impl Unfinished {
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        match &self.0 {
            Some(runtime) => runtime.spawn(work).abort_handle(),
            // It is taken at the end only.
            None => tokio::spawn(work).abort_handle(),
        }
    }

    fn finish(mut self) -> Option<Runtime> {
        self.0.take()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Holds an engine, and tells whether it is ready, until it is aborted.
async fn keep(working: Working, readiness: watch::Sender<bool>) {
    loop {
        let is_ready = working.running.door().readiness().troubles().is_none();
        readiness.send_if_modified(|known| std::mem::replace(known, is_ready) != is_ready);
        sleep(ASK).await;
    }
}

thread_local! {
    /// Where this thread's log lines go for as long as it lives.
    static LINES: RefCell<Option<DefaultGuard>> = const { RefCell::new(None) };
}

/// A runtime whose threads log to `log`.
fn runtime(log: &Log) -> io::Result<Runtime> {
    let log = log.clone();
    let lines = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(LevelFilter::INFO)
        .with_writer(move || Lines(log.clone()))
        .finish();
    let lines = Dispatch::new(lines);
    Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("engine")
        .enable_all()
        .on_thread_start(move || LINES.set(Some(tracing::dispatcher::set_default(&lines))))
        .build()
}

/// Writes to a log.
struct Lines(Log);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.line(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
