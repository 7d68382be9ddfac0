//! Where loads come from: the reporter's topic, or a look from outside; one as good as the other to
//! whoever asks.

mod automatic;
mod outside;
mod reporter;

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use automatic::Automatic;
use evenkeel_balancer::cluster::CpuWeights;
use evenkeel_kafka::{Client, Error};
use outside::Outside;
use reporter::Reporter;

use super::{broker_sample::BrokerSample, sample::PartitionSample};
use crate::{
    clock::WallClock,
    config::{
        capacity::Capacities,
        settings::{self, Monitor},
    },
    watch::{Sighting, Sizes},
};

/// What is seen when samples are taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) sighting: &'a Sighting,
    pub(super) sizes: &'a Sizes,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sampled {
    pub(super) partitions: Vec<PartitionSample>,
    pub(super) brokers: Vec<BrokerSample>,
    /// This was the first half of a first sample: the second should not be waited for long.
    pub(super) half: bool,
}

/// What taking samples ends in.
pub(super) type Sampling<'a> = Pin<Box<dyn Future<Output = Result<Sampled, Error>> + Send + 'a>>;

/// Takes samples.
pub(super) trait Source: fmt::Debug + Send {
    /// Those of the time since it was asked last.
    fn sample<'a>(&'a mut self, scene: Scene<'a>) -> Sampling<'a>;
}

/// What every source may need.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    pub(super) client: Client,
    pub(super) clock: WallClock,
    pub(super) capacities: Arc<Capacities>,
    pub(super) topic: String,
    pub(super) interval: i64,
    pub(super) weights: CpuWeights,
}

/// Whichever there is.
pub(super) fn automatic(ground: Ground) -> impl Source {
    Automatic::new(ground)
}

/// The source that is set.
pub(super) fn source(
    client: Client,
    clock: WallClock,
    capacities: Arc<Capacities>,
    settings: &Monitor,
) -> Box<dyn Source> {
    let ground = Ground {
        client,
        clock,
        capacities,
        topic: settings.reporter_topic.clone(),
        interval: settings.interval,
        weights: settings.cpu_weights,
    };
    match settings.source {
        settings::Source::Reporter => Box::new(Reporter::new(ground)),
        settings::Source::ZeroTouch => Box::new(Outside::new(ground)),
        settings::Source::Automatic => Box::new(Automatic::new(ground)),
    }
}
