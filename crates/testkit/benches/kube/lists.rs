//! One list of everything: the time until the whole body is there.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use evenkeel_testkit::measure::{Measurement, Spread, Unit, grouped};
use futures::AsyncBufReadExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};

use crate::{
    contestant::Running,
    load::NAMESPACE,
    meter::Meter,
    objects::{self, Listed},
    sizes::Sizes,
};

/// A list as it came over the wire.
struct Answer {
    took: Duration,
    body: Vec<u8>,
}

/// Which state a list may show.
#[derive(Clone, Copy)]
enum Freshness {
    /// The latest, whatever it takes to be sure of that: what a client gets that asks for nothing.
    Latest,
    /// Any that the server has at hand, as informers ask for when they start.
    Any,
}

impl Freshness {
    fn query(self) -> &'static str {
        match self {
            Self::Latest => "",
            Self::Any => "?resourceVersion=0",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Latest => "",
            Self::Any => " at any version",
        }
    }
}

/// Lists what [`crate::load`] has created and patched.
pub(crate) async fn measure(server: &Running, sizes: &Sizes) -> Result<Vec<Measurement>> {
    let client = server.client().await?;
    let mut measured = Vec::new();
    for freshness in [Freshness::Latest, Freshness::Any] {
        measured.extend(repeat(server, &client, sizes, freshness).await?);
    }
    Ok(measured)
}

async fn repeat(server: &Running, client: &Client, sizes: &Sizes, freshness: Freshness) -> Result<Vec<Measurement>> {
    // The first opens the connection, and tells whether the answer is right.
    let first = list(client, freshness, 0).await?;
    let listed: Listed = serde_json::from_slice(&first.body).context("the list is not JSON")?;
    objects::must_be_complete(&listed, sizes.objects)?;

    let meter = Meter::start(server)?;
    let mut times = Vec::with_capacity(sizes.lists);
    for _ in 0..sizes.lists {
        let answer = list(client, freshness, first.body.len()).await?;
        // The length is enough: nothing was written in between.
        ensure!(answer.body.len() == first.body.len(), "the same list came back with another length");
        times.push(answer.took);
    }
    let what = format!("list of {} objects{}", grouped(sizes.objects), freshness.name());
    let spent = meter.read(&what, Unit::Milliseconds, sizes.lists)?;

    let median = Spread::of(times).context("nothing was listed")?.median();
    let rate = first.body.len() as f64 / 1e6 / median.as_secs_f64();
    let mut measured = vec![
        Measurement::time(format!("{what}, p50"), Unit::Milliseconds, median),
        Measurement::new(format!("{what}, throughput"), Unit::MegabytesPerSecond, rate),
    ];
    measured.extend(spent);
    Ok(measured)
}

/// Asks for everything in one piece. Decoding it is the client's business, and is left out.
async fn list(client: &Client, freshness: Freshness, expected: usize) -> Result<Answer> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let path = format!("{}{}", maps.resource_url(), freshness.query());
    let mut body = Vec::with_capacity(expected);
    let started = Instant::now();
    let request = http::Request::get(path).body(Vec::new())?;
    let mut stream = client.request_stream(request).await.context("could not list")?;
    // Not `read_to_end`: it clears the free part of the buffer on every wake-up, and so would charge a server that sends
    // in small pieces for the client's own work.
    loop {
        let piece = stream.fill_buf().await.context("the list broke off")?;
        if piece.is_empty() {
            return Ok(Answer { took: started.elapsed(), body });
        }
        body.extend_from_slice(piece);
        let length = piece.len();
        stream.consume_unpin(length);
    }
}
