//! Many clients writing at once: creates and merge patches.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use evenkeel_testkit::measure::{Measurement, Spread, Unit};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{contestant::Running, meter::Meter, objects, sizes::Sizes};

/// Where the objects are that are created, patched and listed.
pub(crate) const NAMESPACE: &str = "bench";
const WARM_UP: &str = "warm-up";
/// Writes of each client before anything is measured: connections are open then, and caches filled.
const WARM_UP_WRITES: usize = 20;

/// What is done to object after object.
#[derive(Clone, Copy)]
pub(crate) enum Write {
    Create,
    Patch,
}

/// How it went.
struct Load {
    took: Duration,
    each: Spread,
}

impl Write {
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Create => "creates",
            Self::Patch => "merge patches",
        }
    }

    fn singular(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Patch => "merge patch",
        }
    }

    async fn run(self, maps: &Api<ConfigMap>, number: usize) -> Result<()> {
        let written = match self {
            Self::Create => maps.create(&PostParams::default(), &objects::config_map(number)?).await,
            Self::Patch => {
                let name = objects::name(number);
                let patch = json!({"data": {"patched": name}});
                maps.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await
            }
        };
        let written = written.with_context(|| format!("{} {number}", self.singular()))?;
        let text = written.data.as_ref().and_then(|data| data.get("text"));
        ensure!(text.is_some(), "{} {number} was answered without its data", self.singular());
        Ok(())
    }
}

/// Opens connections and makes both kinds of writes known to the server, in a namespace of their own.
pub(crate) async fn warm_up(server: &Running, sizes: &Sizes) -> Result<()> {
    let clients = server.clients(sizes.clients).await?;
    for namespace in [WARM_UP, NAMESPACE] {
        objects::namespace(&clients[0], namespace).await?;
    }
    for write in [Write::Create, Write::Patch] {
        write_all(&clients, WARM_UP, write, sizes.clients * WARM_UP_WRITES).await?;
    }
    Ok(())
}

/// Writes every object once, and tells how fast and at what cost.
pub(crate) async fn measure(server: &Running, sizes: &Sizes, write: Write) -> Result<Vec<Measurement>> {
    let clients = server.clients(sizes.clients).await?;
    let meter = Meter::start(server)?;
    let Load { took, each } = write_all(&clients, NAMESPACE, write, sizes.objects).await?;
    let (plural, singular) = (write.plural(), write.singular());
    let spent = meter.read(singular, Unit::Microseconds, sizes.objects)?;
    ensure!(each.count() == sizes.objects, "{} of {} {plural} were made", each.count(), sizes.objects);
    let rate = sizes.objects as f64 / took.as_secs_f64();
    let mut measured = vec![
        Measurement::new(format!("{plural}, {} clients", sizes.clients), Unit::PerSecond, rate),
        Measurement::time(format!("{singular}, p50"), Unit::Milliseconds, each.median()),
        Measurement::time(format!("{singular}, p99"), Unit::Milliseconds, each.percentile(99)),
    ];
    measured.extend(spent);
    Ok(measured)
}

/// Fills a namespace, as fast as the server takes it.
pub(crate) async fn fill(server: &Running, sizes: &Sizes) -> Result<Api<ConfigMap>> {
    let clients = server.clients(sizes.clients).await?;
    let maps = objects::namespace(&clients[0], NAMESPACE).await?;
    write_all(&clients, NAMESPACE, Write::Create, sizes.stored).await?;
    Ok(maps)
}

/// Each client takes the next number that nobody has, until `count` are done.
async fn write_all(clients: &[Client], namespace: &str, write: Write, count: usize) -> Result<Load> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    let started = Instant::now();
    for client in clients {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let next = Arc::clone(&next);
        workers.spawn(async move {
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok::<_, anyhow::Error>(times);
                }
                let started = Instant::now();
                write.run(&maps, number).await?;
                times.push(started.elapsed());
            }
        });
    }
    let mut times = Vec::with_capacity(count);
    while let Some(worker) = workers.join_next().await {
        times.extend(worker.context("a client was lost")??);
    }
    let took = started.elapsed();
    Ok(Load { took, each: Spread::of(times).context("nothing was written")? })
}
