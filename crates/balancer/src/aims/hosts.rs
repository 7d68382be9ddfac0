//! Brokers that share a host share its network and its processors.
//!
//! Network capacity is a limit of the host alone, CPU capacity one of the host and of each broker, and a
//! broker is in the band of a distribution goal if it or its host is. Hosts are kept only if some host
//! has several brokers that are alive: elsewhere nothing here is ever asked.

use super::{Aims, Limit, NOISE, Rise};
use crate::cluster::{Cluster, Seat};
use crate::gauges::Gauge;
use crate::rules::Rules;
use crate::state::{Effect, State};

/// What a band has to do with hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nothing: each broker stands for itself.
    Broker,
    /// The host must keep to its limit, its brokers are free.
    Host,
    /// The host must, and each of its brokers.
    Both,
    /// The broker must, or its host.
    Either,
}

/// The hosts that several live brokers share.
#[derive(Debug)]
pub(super) struct Hosts {
    /// The live brokers of each such host, ascending.
    mates: Vec<Vec<Seat>>,
    /// Which of these hosts each broker is on, if it is on one.
    of: Vec<Option<usize>>,
    bands: usize,
    reaches: Vec<Reach>,
    /// `bands` limits for each host.
    limits: Vec<Limit>,
}

impl Hosts {
    /// `None` if every broker has a host to itself.
    pub(super) fn shared(cluster: &Cluster, rules: &Rules, bands: usize) -> Option<Hosts> {
        let mut mates: Vec<Vec<Seat>> = vec![Vec::new(); cluster.hosts().len()];
        for (seat, broker) in (0..).zip(cluster.brokers()) {
            if rules.is_alive(seat) {
                mates[broker.host].push(seat);
            }
        }
        mates.retain(|mates| mates.len() > 1);
        let mut of = vec![None; cluster.brokers().len()];
        for (host, mates) in mates.iter().enumerate() {
            mates.iter().for_each(|seat| of[usize::from(*seat)] = Some(host));
        }
        let limits = vec![Limit::FREE; bands * mates.len()];
        (!mates.is_empty()).then(|| Hosts { mates, of, bands, reaches: vec![Reach::Broker; bands], limits })
    }

    /// Sums up the limits of a host's brokers, and sets the brokers free where the host alone counts.
    pub(super) fn add_band(&mut self, band: usize, reach: Reach, limits: &mut [Limit]) {
        self.reaches[band] = reach;
        for (host, mates) in self.mates.iter().enumerate() {
            let of = |seat: &Seat| usize::from(*seat) * self.bands + band;
            let own: Vec<Limit> = mates.iter().map(|seat| limits[of(seat)]).collect();
            self.limits[host * self.bands + band] = Limit::sum(&own);
            if reach == Reach::Host {
                mates.iter().for_each(|seat| limits[of(seat)] = Limit::FREE);
            }
        }
    }

    fn limit(&self, band: usize, host: usize) -> &Limit {
        &self.limits[host * self.bands + band]
    }

    fn total(&self, host: usize, level: &dyn Fn(Seat) -> f64) -> f64 {
        self.mates[host].iter().map(|seat| level(*seat)).sum()
    }
}

impl Aims {
    /// The host that the broker shares, if the band has to do with it.
    fn shared(&self, band: usize, seat: Seat) -> Option<(&Hosts, usize)> {
        let hosts = self.hosts.as_ref().filter(|hosts| hosts.reaches[band] != Reach::Broker)?;
        hosts.of[usize::from(seat)].map(|host| (hosts, host))
    }

    /// Whether the broker's host matters to the band.
    pub(crate) fn is_shared(&self, band: usize, seat: Seat) -> bool {
        self.shared(band, seat).is_some()
    }

    /// The brokers, and those that share a host with one of them where the band has to do with hosts; each once.
    pub(crate) fn with_mates(&self, band: usize, seats: &[Seat]) -> Vec<Seat> {
        let mut all: Vec<Seat> = Vec::with_capacity(seats.len());
        for seat in seats {
            match self.shared(band, *seat) {
                Some((hosts, host)) => all.extend(&hosts.mates[host]),
                None => all.push(*seat),
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The level that the band holds against the broker, and the limit to it: its own or its host's.
    pub(crate) fn standing(&self, band: usize, gauge: Gauge, state: &State<'_>, seat: Seat) -> (f64, &Limit) {
        let level = |seat: Seat| state.levels(seat)[gauge as usize];
        let own = (level(seat), self.limit(band, seat));
        let Some((hosts, host)) = self.shared(band, seat) else { return own };
        let whole = (hosts.total(host, &level), hosts.limit(band, host));
        match hosts.reaches[band] {
            // What every broker keeps to its host keeps to as well.
            Reach::Broker | Reach::Both => own,
            Reach::Host => whole,
            Reach::Either => {
                if whole.1.miss(whole.0) < own.1.miss(own.0) {
                    whole
                } else {
                    own
                }
            }
        }
    }

    /// How far the broker is from its band. A host's own miss is told once, by its first broker.
    pub(crate) fn miss_of(&self, band: usize, seat: Seat, level: &dyn Fn(Seat) -> f64) -> f64 {
        let own = self.limit(band, seat);
        let Some((hosts, host)) = self.shared(band, seat) else { return own.miss(level(seat)) };
        let (limit, total) = (hosts.limit(band, host), hosts.total(host, level));
        let once = || if hosts.mates[host][0] == seat { limit.miss(total) } else { 0.0 };
        match hosts.reaches[band] {
            Reach::Broker => own.miss(level(seat)),
            Reach::Host => once(),
            Reach::Both => own.miss(level(seat)) + once(),
            Reach::Either => {
                let (one, other) = (own.beyond(level(seat)), limit.beyond(total));
                let miss = one.0.min(other.0) + one.1.min(other.1);
                if miss > NOISE { miss } else { 0.0 }
            }
        }
    }

    /// What [`Aims::change`] says of a band, where hosts are shared: all brokers of both hosts count.
    pub(super) fn change_on_hosts(
        &self,
        (gauge, band, rise): (Gauge, usize, Rise),
        state: &State<'_>,
        effect: &Effect,
        asked: f64,
    ) -> f64 {
        let asks = [(effect.from, effect.to, effect.on_from[gauge as usize]), (effect.to, effect.from, asked)];
        let barred =
            |&(seat, other, ask): &(Seat, Seat, f64)| ask > 0.0 && self.bars(band, gauge, state, seat, other, ask);
        if rise != Rise::Traded && asks.iter().any(barred) {
            return f64::INFINITY;
        }
        self.misses_on_hosts(band, gauge, state, effect).map(|(before, after)| after - before).sum()
    }

    /// Whether the broker or its host has no room for so much more. What comes from the same host changes
    /// nothing there, so the host is not asked.
    fn bars(&self, band: usize, gauge: Gauge, state: &State<'_>, seat: Seat, from: Seat, more: f64) -> bool {
        let level = |seat: Seat| state.levels(seat)[gauge as usize];
        let on_broker = level(seat) + more > self.limit(band, seat).ceiling;
        on_broker
            || self.shared(band, seat).is_some_and(|(hosts, host)| {
                hosts.reaches[band] != Reach::Either
                    && hosts.of[usize::from(from)] != Some(host)
                    && hosts.total(host, &level) + more > hosts.limit(band, host).ceiling
            })
    }

    /// Every broker that the action touches directly or through a host, by how much it misses before and after.
    pub(super) fn misses_on_hosts(
        &self,
        band: usize,
        gauge: Gauge,
        state: &State<'_>,
        effect: &Effect,
    ) -> impl Iterator<Item = (f64, f64)> {
        let before = move |seat: Seat| state.levels(seat)[gauge as usize];
        let (from, to) = ((effect.from, effect.on_from[gauge as usize]), (effect.to, effect.on_to[gauge as usize]));
        let after = move |seat: Seat| {
            before(seat) + if seat == from.0 { from.1 } else { 0.0 } + if seat == to.0 { to.1 } else { 0.0 }
        };
        let touched = self.with_mates(band, &[effect.from, effect.to]);
        touched.into_iter().map(move |seat| (self.miss_of(band, seat, &before), self.miss_of(band, seat, &after)))
    }
}
