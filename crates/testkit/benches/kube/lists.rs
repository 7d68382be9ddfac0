//! One list of everything: the time until the whole body is there.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use evenkeel_testkit::measure::{Measurement, Spread, Unit};
use futures::AsyncReadExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};

use crate::{
    contestant::Running,
    load::NAMESPACE,
    objects::{self, Listed},
    sizes::Sizes,
};

/// A list as it came over the wire.
struct Answer {
    took: Duration,
    body: Vec<u8>,
}

/// Lists what [`crate::load`] has created and patched.
pub(crate) async fn measure(server: &Running, sizes: &Sizes) -> Result<Vec<Measurement>> {
    let client = server.client().await?;
    // The first opens the connection, and tells whether the answer is right.
    let first = list(&client, 0).await?;
    let listed: Listed = serde_json::from_slice(&first.body).context("the list is not JSON")?;
    objects::must_be_complete(&listed, sizes.objects)?;

    let before = server.cost()?.cpu;
    let mut times = Vec::with_capacity(sizes.lists);
    for _ in 0..sizes.lists {
        let answer = list(&client, first.body.len()).await?;
        // Only the length: the servers have no reason to answer differently, and comparing would warm caches.
        anyhow::ensure!(answer.body.len() == first.body.len(), "the same list came back with another length");
        times.push(answer.took);
    }
    let cpu = server.cost()?.cpu.saturating_sub(before);

    let times = Spread::of(times).context("nothing was listed")?;
    let (median, megabytes) = (times.median().as_secs_f64(), first.body.len() as f64 / 1e6);
    let what = format!("list of {} objects", sizes.objects);
    Ok(vec![
        Measurement::new(format!("{what}, p50"), Unit::Milliseconds, median * 1e3),
        Measurement::new(format!("{what}, throughput"), Unit::MegabytesPerSecond, megabytes / median),
        Measurement::new(
            format!("{what}, server CPU"),
            Unit::Milliseconds,
            cpu.as_secs_f64() * 1e3 / sizes.lists as f64,
        ),
    ])
}

/// Asks for everything in one piece. Decoding it is the client's business, and is left out.
async fn list(client: &Client, expected: usize) -> Result<Answer> {
    let path = Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE).resource_url().to_owned();
    let mut body = Vec::with_capacity(expected);
    let started = Instant::now();
    let request = http::Request::get(path).body(Vec::new())?;
    let mut stream = client.request_stream(request).await.context("could not list")?;
    stream.read_to_end(&mut body).await.context("the list broke off")?;
    Ok(Answer { took: started.elapsed(), body })
}
