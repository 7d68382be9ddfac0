//! The life of an engine: the runtime it is in, whether it is ready, and its end.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_engine::engine::WORK;
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

/// How long what an engine does without waiting may take to come to its end.
const SHUT_DOWN_WITHIN: Duration = Duration::from_secs(5);

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
        let mut kept = self.ready.clone();
        let life = Arc::new(Mutex::new(Some(self)));
        let held = Arc::clone(&life);
        Process {
            ports,
            ready,
            ended: Box::pin(async move {
                // The keeper has the sender, so there is an error when it has ended.
                while kept.changed().await.is_ok() {}
                // Whoever takes the life ends it: a keeper that was not stopped has broken off.
                if let Some(life) = take(&held) {
                    life.log.line("a part of the engine has failed, and the engine ends with it");
                    return Exit::failure("a part of the engine has failed; its log says why");
                }
                let exit = end.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone());
                exit.unwrap_or_else(Exit::killed)
            }),
            stop: Box::new(move |how| {
                // What is under way is on record, and carried on by the next: there is nothing to finish.
                let Some(life) = take(&life) else { return };
                life.log.line("the engine is being stopped");
                life.end(how, told.clone());
            }),
        }
    }

    /// Ends it, and tells so when nothing of it is left. The next one must not begin beside its last writes.
    fn end(mut self, how: Stop, told: watch::Sender<Option<Exit>>) {
        self.keeper.abort();
        match (how, self.runtime.take()) {
            (Stop::Politely, Some(runtime)) => drop(std::thread::spawn(move || {
                runtime.shutdown_timeout(SHUT_DOWN_WITHIN);
                told.send_replace(Some(Exit::success()));
            })),
            (Stop::Politely, None) => drop(told.send_replace(Some(Exit::success()))),
            (Stop::Now, runtime) => {
                runtime.into_iter().for_each(Runtime::shutdown_background);
                told.send_replace(Some(Exit::killed()));
            }
        }
    }
}

fn take(life: &Mutex<Option<Life>>) -> Option<Life> {
    life.lock().unwrap_or_else(PoisonError::into_inner).take()
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

/// Holds an engine, and tells whether it is ready, until it is aborted or the engine has broken for good.
async fn keep(working: Working, readiness: watch::Sender<bool>) {
    while working.running.door().readiness().of(WORK).is_none() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    /// A life whose engine is somebody who waits.
    fn life() -> (Life, Log) {
        let log = Log::new(Clock::simulated(jiff::Timestamp::UNIX_EPOCH));
        let (readiness, ready) = watch::channel(true);
        let keeper = tokio::spawn(async move {
            let _held = readiness;
            std::future::pending::<()>().await;
        });
        (Life { runtime: None, keeper: keeper.abort_handle(), port: 1, ready, log: log.clone() }, log)
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_breaks_off_has_failed() {
        let (life, log) = life();
        let keeper = life.keeper.clone();
        let mut process = life.into_process(9090);
        keeper.abort();
        assert_eq!(process.ended.await, Exit::failure("a part of the engine has failed; its log says why"));
        assert_eq!(log.reader().read().len(), 2);
        // Too late, and without effect.
        (process.stop)(Stop::Politely);
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_is_stopped_has_not() {
        for (how, exit) in [(Stop::Politely, Exit::success()), (Stop::Now, Exit::killed())] {
            let mut process = life().0.into_process(9090);
            (process.stop)(how);
            assert_eq!(process.ended.await, exit);
        }
    }
}
