//! The operator as a process: who may act, the controllers side by side, and a door for those who ask how it fares.

mod door;
mod lease;
mod ready;

use std::{io, sync::Arc};

use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
};

use crate::{installation::definitions, kafka, pod_set, rebalance::controller as rebalance, seams::Context};

pub use lease::{Held, Verdict, judge};

/// The port for `/healthy`, `/ready` and `/metrics`.
pub const PORT: u16 = 8080;

/// Threads that work, and threads that wait for names to be resolved: few, however many cores the machine has. An operator
/// waits most of its time, and each thread has memory of its own.
const THREADS: usize = 2;
const BLOCKING_THREADS: usize = 16;

/// Why an operator ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// Another one holds the Lease: this one must not go on.
    #[error("the Lease {0} is held by another operator")]
    LeaseLost(String),
    /// Controllers go on until they are dropped.
    #[error("a controller has ended by itself")]
    Controllers,
    /// The door does not open.
    #[error("nobody can be answered on the operator's port")]
    Door(#[source] io::Error),
}

impl Ended {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::LeaseLost(_) => "Start it again: it then waits for its turn",
            Self::Controllers => "Start it again; its log says what happened",
            Self::Door(_) => "Free the port, or end the other operator on this machine",
        }
    }
}

/// What an operator runs in.
pub fn runtime() -> io::Result<Runtime> {
    let mut threads = Builder::new_multi_thread();
    threads.worker_threads(THREADS).max_blocking_threads(BLOCKING_THREADS).enable_all().build()
}

/// Runs an operator until `stop` comes, or until it must not go on. `door` is where it is asked how it fares.
pub async fn run(context: Context, door: Option<TcpListener>, stop: impl Future<Output = ()>) -> Result<(), Ended> {
    let figures = Arc::clone(&context.figures);
    let is_ready = door::Readiness::default();
    let asked = async {
        match door {
            Some(listener) => door::serve(listener, figures, is_ready.clone()).await.map_err(Ended::Door),
            None => std::future::pending().await,
        }
    };
    // One that waits for its turn is as ready as it can be.
    let readying = async {
        ready::until_it_could_act(&context).await;
        is_ready.set();
        std::future::pending().await
    };
    let working = async {
        match &context.settings.lease {
            None => {
                controllers(context.clone()).await;
                Err(Ended::Controllers)
            }
            Some(name) => {
                let mut held = Held::take(&context, name).await;
                tracing::info!(lease = name.name, identity = context.settings.identity, "this operator acts");
                tokio::select! {
                    () = controllers(context.clone()) => Err(Ended::Controllers),
                    () = held.keep() => Err(Ended::LeaseLost(format!("{}/{}", name.namespace, name.name))),
                    // Dropped below: nobody acts any more when the Lease is given up.
                }
            }
        }
    };
    tokio::select! {
        ended = working => ended,
        ended = asked => ended,
        ended = readying => ended,
        () = stop => {
            if let Some(name) = &context.settings.lease {
                lease::give_up(&context, name).await;
            }
            Ok(())
        }
    }
}

/// All controllers, side by side, until dropped. Should one end, none goes on without it.
async fn controllers(context: Context) {
    let told = async {
        definitions::tell(&context.client).await;
        std::future::pending::<()>().await;
    };
    // Whoever makes pods asks little, and does not wait behind a thousand others.
    let (for_pods, others) = (context.clone().taking_turns(), context.clone().taking_turns());
    tokio::select! {
        () = told => {}
        () = pod_set::run(for_pods) => {}
        () = kafka::run(others.clone()) => {}
        () = rebalance::run(others) => {}
    }
}
