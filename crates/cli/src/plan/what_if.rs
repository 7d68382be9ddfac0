//! Questions about a cluster that does not exist: with more brokers, with fewer, without a rack.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_balancer::cluster::{BrokerId, BrokerSpec, BrokerState, Cluster, DiskSpec, DiskState, Invalid};

use super::request::id;
use super::{Refusal, rebuild};

/// How the cluster differs from the snapshot.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct WhatIf {
    /// What if there were a new, empty broker like the median one? Without a rack, the one with the fewest brokers, or
    /// none where there are none (repeatable).
    #[arg(long, value_name = "ID[:RACK]")]
    pub(super) add_broker: Vec<String>,
    /// What if this broker were removed? (repeatable)
    #[arg(long, value_name = "ID")]
    pub(super) remove_broker: Vec<String>,
    /// What if all brokers of this rack died?
    #[arg(long, value_name = "RACK")]
    pub(super) lose_rack: Option<String>,
}

impl WhatIf {
    /// Whether a broker is asked about as removed.
    pub(super) fn removes(&self) -> bool {
        !self.remove_broker.is_empty()
    }

    /// The brokers asked about as removed.
    pub(super) fn removed(&self) -> Result<BTreeSet<BrokerId>, Refusal> {
        self.remove_broker.iter().map(|text| id("--remove-broker", text)).collect()
    }

    /// Whether a broker is asked about as added.
    pub(super) fn adds(&self) -> bool {
        !self.add_broker.is_empty()
    }

    /// The brokers asked about as added, with the racks that were named.
    pub(super) fn added(&self) -> Result<Vec<(BrokerId, Option<&str>)>, Refusal> {
        self.add_broker.iter().map(|text| added(text)).collect()
    }

    /// The cluster asked about.
    pub(super) fn apply(&self, cluster: Cluster) -> Result<Cluster, Refusal> {
        let added = self.added()?;
        if added.is_empty() && self.lose_rack.is_none() {
            return Ok(cluster);
        }
        let mut specs = rebuild::brokers(&cluster);
        if let Some(rack) = &self.lose_rack {
            lose(&mut specs, &cluster, rack)?;
        }
        for (id, rack) in added {
            let new = like_the_median(&specs, &cluster, id, rack)?;
            specs.push(new);
        }
        rebuild::on(specs, &cluster).map_err(Refusal::WhatIf)
    }
}

/// The cluster with new, empty brokers of these ids.
pub(crate) fn with_new_brokers(cluster: Cluster, ids: &[i32]) -> Result<Cluster, Refusal> {
    let add_broker = ids.iter().map(ToString::to_string).collect();
    WhatIf { add_broker, ..WhatIf::default() }.apply(cluster)
}

fn added(text: &str) -> Result<(BrokerId, Option<&str>), Refusal> {
    match text.split_once(':') {
        Some((_, "")) => Err(Refusal::value("--add-broker", text, "the rack is missing after the colon")),
        Some((broker, rack)) => Ok((id("--add-broker", broker)?, Some(rack))),
        None => Ok((id("--add-broker", text)?, None)),
    }
}

fn lose(specs: &mut [BrokerSpec], cluster: &Cluster, rack: &str) -> Result<(), Refusal> {
    if !cluster.racks().iter().any(|known| known == rack) {
        let known = format!("no such rack; there are {}", cluster.racks().join(", "));
        return Err(Refusal::value("--lose-rack", rack, known));
    }
    for spec in specs.iter_mut().filter(|spec| spec.rack == rack) {
        spec.state = BrokerState::Dead;
    }
    Ok(())
}

/// A new broker with the capacity and the disks of the one that is in the middle by capacity. A whole broker is
/// copied, not a median per resource, so that what it has fits together.
fn like_the_median(
    specs: &[BrokerSpec],
    cluster: &Cluster,
    id: BrokerId,
    rack: Option<&str>,
) -> Result<BrokerSpec, Refusal> {
    let mut alive: Vec<&BrokerSpec> =
        specs.iter().filter(|spec| spec.state != BrokerState::Dead && cluster.broker(spec.id).is_some()).collect();
    alive.sort_by(|one, other| {
        // Disks differ most often, so they decide first.
        let pairs = one.capacity.iter().zip(&other.capacity).rev();
        pairs.map(|(one, other)| one.total_cmp(other)).find(|order| order.is_ne()).unwrap_or(one.id.cmp(&other.id))
    });
    let Some(median) = alive.get(alive.len() / 2) else {
        return Err(Refusal::WhatIf(Invalid::NoBroker));
    };
    // Where no rack is told its host is the broker's rack, and so it is for a new one.
    let is_told = |spec: &&BrokerSpec| spec.rack != spec.host;
    let smallest = if alive.iter().any(is_told) { smallest_rack(specs) } else { "" };
    Ok(BrokerSpec {
        id,
        rack: rack.unwrap_or(smallest).to_owned(),
        host: format!("what-if-{id}"),
        state: BrokerState::New,
        capacity: median.capacity,
        // What failed there did not fail here.
        disks: median.disks.iter().map(|disk| DiskSpec { state: DiskState::Alive, ..disk.clone() }).collect(),
    })
}

/// The rack with the fewest brokers, of those that are more than the name of a host.
fn smallest_rack(specs: &[BrokerSpec]) -> &str {
    let alive = || specs.iter().filter(|spec| spec.state != BrokerState::Dead);
    let told: BTreeSet<&str> = alive().filter(|spec| spec.rack != spec.host).map(|spec| spec.rack.as_str()).collect();
    let mut by_rack: BTreeMap<&str, usize> = BTreeMap::new();
    for rack in alive().map(|spec| spec.rack.as_str()).filter(|rack| told.contains(rack)) {
        *by_rack.entry(rack).or_default() += 1;
    }
    by_rack.into_iter().min_by_key(|(_, brokers)| *brokers).map_or("", |(rack, _)| rack)
}

#[cfg(test)]
mod tests {
    use evenkeel_balancer::cluster::{Broker, ClusterBuilder};
    use expect_test::expect;

    use super::super::testing;
    use super::*;

    fn what_if(add: &[&str], lose: Option<&str>) -> WhatIf {
        WhatIf {
            add_broker: add.iter().map(|text| (*text).to_owned()).collect(),
            remove_broker: Vec::new(),
            lose_rack: lose.map(str::to_owned),
        }
    }

    fn brokers(cluster: &Cluster) -> String {
        let line = |broker: &Broker| {
            let rack = &cluster.racks()[broker.rack];
            format!("{} {rack} {:?} {:?}\n", broker.id, broker.state, broker.capacity)
        };
        cluster.brokers().iter().map(line).collect()
    }

    #[test]
    fn a_new_broker_is_like_the_median_and_goes_to_the_smallest_rack() {
        let cluster = what_if(&["7", "8:z"], None).apply(testing::cluster()).unwrap();
        expect![[r#"
            0 a Alive [100.0, 300000.0, 200000.0, 300000.0]
            1 a Alive [50.0, 150000.0, 100000.0, 150000.0]
            2 b Alive [100.0, 300000.0, 200000.0, 300000.0]
            3 b Alive [100.0, 300000.0, 200000.0, 300000.0]
            4 c Alive [100.0, 300000.0, 200000.0, 300000.0]
            7 c New [100.0, 300000.0, 200000.0, 300000.0]
            8 z New [100.0, 300000.0, 200000.0, 300000.0]
        "#]]
        .assert_eq(&brokers(&cluster));
        assert_eq!(cluster.replica_count(), testing::cluster().replica_count());
    }

    /// Brokers on these hosts, in these racks or in none.
    fn on_hosts(brokers: &[(i32, &str)]) -> Cluster {
        let mut builder = ClusterBuilder::new();
        for (id, rack) in brokers {
            let (rack, host) = ((*rack).to_owned(), format!("h{id}"));
            let state = BrokerState::Alive;
            let spec = BrokerSpec { id: BrokerId(*id), rack, host, state, capacity: [1.0; 4], disks: Vec::new() };
            builder.broker(spec).unwrap();
        }
        builder.build().unwrap()
    }

    #[test]
    fn where_there_are_no_racks_a_new_broker_is_one_by_itself() {
        let racks = |cluster: Cluster, add: &[&str]| {
            let cluster = what_if(add, None).apply(cluster).unwrap();
            let rack = |broker: &Broker| cluster.racks()[broker.rack].clone();
            cluster.brokers().iter().map(rack).collect::<Vec<_>>().join(" ")
        };
        let none = || on_hosts(&[(0, ""), (1, ""), (2, "")]);
        assert_eq!(racks(none(), &["7", "8"]), "h0 h1 h2 what-if-7 what-if-8");
        assert_eq!(racks(none(), &["7:z", "8"]), "h0 h1 h2 z what-if-8");
        // Where some have one, a new broker gets one as well, and none that is only a broker's host.
        assert_eq!(racks(on_hosts(&[(0, ""), (1, "z"), (2, "z")]), &["7"]), "h0 z z z");
        // A rack may be called like one of the hosts in it.
        assert_eq!(racks(on_hosts(&[(0, "h0"), (1, "h0"), (2, "z")]), &["7"]), "h0 h0 z z");
    }

    #[test]
    fn a_lost_rack_is_dead_and_keeps_its_replicas() {
        let cluster = what_if(&[], Some("b")).apply(testing::cluster()).unwrap();
        expect![[r#"
            0 a Alive [100.0, 300000.0, 200000.0, 300000.0]
            1 a Alive [50.0, 150000.0, 100000.0, 150000.0]
            2 b Dead [100.0, 300000.0, 200000.0, 300000.0]
            3 b Dead [100.0, 300000.0, 200000.0, 300000.0]
            4 c Alive [100.0, 300000.0, 200000.0, 300000.0]
        "#]]
        .assert_eq(&brokers(&cluster));
        let on =
            |cluster: &Cluster| cluster.partitions().flat_map(|p| p.replicas()).map(|r| r.broker).collect::<Vec<_>>();
        assert_eq!(on(&cluster), on(&testing::cluster()));
    }

    #[test]
    fn the_disks_of_a_new_broker_are_alive_whatever_became_of_those_it_is_like() {
        let disk = |name: &str, state| DiskSpec { name: name.to_owned(), capacity: 1.0, state };
        let mut builder = ClusterBuilder::new();
        let only = BrokerSpec {
            id: BrokerId(0),
            rack: "a".to_owned(),
            host: "h".to_owned(),
            state: BrokerState::BadDisks,
            capacity: [1.0; 4],
            disks: vec![disk("/a", DiskState::Dead), disk("/b", DiskState::Removed), disk("/c", DiskState::Alive)],
        };
        builder.broker(only).unwrap();
        let cluster = what_if(&["1"], None).apply(builder.build().unwrap()).unwrap();
        let alive = ["/a", "/b", "/c"].map(|name| disk(name, DiskState::Alive));
        assert_eq!(cluster.broker(BrokerId(1)).unwrap().disks, alive);
    }

    #[test]
    fn nothing_asked_changes_nothing() {
        assert_eq!(what_if(&[], None).apply(testing::cluster()).unwrap(), testing::cluster());
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        let refused = |what_if: WhatIf| what_if.apply(testing::cluster()).unwrap_err().to_string();
        expect!["--lose-rack q: no such rack; there are a, b, c"].assert_eq(&refused(what_if(&[], Some("q"))));
        expect!["the cluster asked about cannot be: broker 1 is listed twice"]
            .assert_eq(&refused(what_if(&["1"], None)));
        expect!["--add-broker x: not a broker's id, which is a number from 0"]
            .assert_eq(&refused(what_if(&["x:b"], None)));
        expect!["--add-broker 9:: the rack is missing after the colon"].assert_eq(&refused(what_if(&["9:"], None)));
    }
}
