//! What holds for every cluster and every sequence of bytes.

use evenkeel_balancer::cluster::{
    BrokerId, BrokerSpec, BrokerState, Cluster, ClusterBuilder, DiskSpec, DiskState, LeadLoad, Load, PendingMove,
    ReplicaSpec, Resource,
};
use evenkeel_snapshot::{Snapshot, read, write};
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn number() -> impl Strategy<Value = f32> {
    prop_oneof![
        Just(0.0_f32),
        0.0_f32..1e6,
        proptest::num::f32::POSITIVE | proptest::num::f32::SUBNORMAL | proptest::num::f32::ZERO,
    ]
}

fn load() -> impl Strategy<Value = Load> {
    (number(), number(), number(), number()).prop_map(|(cpu, nw_in, nw_out, disk)| Load { cpu, nw_in, nw_out, disk })
}

fn broker() -> impl Strategy<Value = BrokerSpec> {
    let state = select(vec![
        BrokerState::Alive,
        BrokerState::New,
        BrokerState::Dead,
        BrokerState::Demoted,
        BrokerState::BadDisks,
    ]);
    let disk_state = select(vec![DiskState::Alive, DiskState::Dead, DiskState::Removed]);
    let disks = proptest::collection::vec((1e-3..1e9_f64, disk_state), 0..3);
    (".{0,4}", state, [1e-3..1e9_f64, 1e-3..1e9, 1e-3..1e9, 1e-3..1e9], disks).prop_map(
        |(rack, state, capacity, disks)| {
            let disk = |(index, (capacity, state))| DiskSpec { name: format!("/disk {index}%"), capacity, state };
            let disks = disks.into_iter().enumerate().map(disk).collect();
            BrokerSpec { id: BrokerId(0), rack, host: String::new(), state, capacity, disks }
        },
    )
}

/// Raw draws for one partition: where each replica begins to look for a broker, and what it carries.
type Drawn = (String, Vec<(Index, Index, Load, bool)>, Index, Option<Index>);

fn cluster() -> impl Strategy<Value = Cluster> {
    let replica = (any::<Index>(), any::<Index>(), load(), any::<bool>());
    let partition = (
        "[a-c.%\u{e9} ]{1,2}",
        proptest::collection::vec(replica, 1..4),
        any::<Index>(),
        proptest::option::weighted(0.2, any::<Index>()),
    );
    let brokers = proptest::collection::vec(broker(), 3..6);
    let unknown = proptest::collection::vec(select(Resource::ALL.to_vec()), 0..2);
    (brokers, proptest::collection::vec(partition, 0..20), unknown)
        .prop_map(|(brokers, partitions, unknown)| build(brokers, partitions, unknown))
}

fn build(mut brokers: Vec<BrokerSpec>, partitions: Vec<Drawn>, unknown: Vec<Resource>) -> Cluster {
    let mut builder = ClusterBuilder::new();
    unknown.into_iter().for_each(|resource| builder.unknown(resource));
    brokers[0].state = BrokerState::Alive;
    for (index, broker) in brokers.iter_mut().enumerate() {
        broker.id = BrokerId(index as i32 * 7);
        broker.host = format!("host {index}");
        builder.broker(broker.clone()).unwrap();
    }
    for (number, (topic, drawn, leader, pending)) in partitions.into_iter().enumerate() {
        let leader = leader.index(drawn.len());
        let first = drawn[0].0.index(brokers.len());
        let replica = |(position, (_, disk, load, offline)): (usize, (Index, Index, Load, bool))| {
            let broker: &BrokerSpec = &brokers[(first + position) % brokers.len()];
            let disk = (!broker.disks.is_empty()).then(|| disk.index(broker.disks.len()));
            let nw_out = if position == leader || number % 3 == 0 { load.nw_out } else { 0.0 };
            ReplicaSpec { broker: broker.id, disk, load: Load { nw_out, ..load }, offline }
        };
        let mut replicas: Vec<ReplicaSpec> = drawn.into_iter().enumerate().map(replica).collect();
        // In some, followers are what follows from their leader, but for a rounding.
        if number % 4 < 2 {
            let rounded = builder.following(replicas[leader].load);
            let others = replicas.iter_mut().enumerate().filter(|(position, _)| *position != leader);
            others.for_each(|(_, other)| other.load = Load { cpu: rounded.cpu.next_up(), ..rounded });
        }
        // Every second one is told in parts.
        if number % 2 == 0 {
            let Load { cpu, nw_out, .. } = replicas[leader].load;
            let leading = LeadLoad { cpu: nw_out.min(1e6), nw_out: cpu.min(1e6) };
            builder.partition_in_parts(&topic, number as i32, leader, &replicas, leading).unwrap();
        } else {
            builder.partition(&topic, number as i32, leader, &replicas).unwrap();
        }
        let holds = |id: BrokerId| replicas.iter().any(|replica| replica.broker == id);
        // What is there already is not on its way.
        if let Some(to) = pending.map(|to| brokers[to.index(brokers.len())].id).filter(|to| !holds(*to)) {
            builder.pending(PendingMove { topic, partition: number as i32, to });
        }
    }
    builder.build().unwrap()
}

/// A cluster, and what somebody noted about it. A key may look like much, but not like a total.
fn snapshot() -> impl Strategy<Value = Snapshot> {
    let key = "[a-z\u{e9}./,!-]{1,6}".prop_filter("a key of its own", |key| {
        key != "-" && !["brokers", "disks", "partitions", "replicas", "moves", "topics"].contains(&key.as_str())
    });
    let notes = proptest::collection::btree_map(key, ".{0,6}", 0..3);
    (cluster(), notes).prop_map(|(cluster, notes)| Snapshot { notes, cluster })
}

fn text(snapshot: &Snapshot) -> String {
    let mut text = Vec::new();
    write(snapshot, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

proptest! {
    #[test]
    fn a_snapshot_survives_writing_and_reading(snapshot in snapshot()) {
        let written = text(&snapshot);
        let again = read("x", written.as_bytes(), None, |_| {}).unwrap();
        prop_assert_eq!(&again, &snapshot);
        prop_assert_eq!(text(&again), written);
    }

    #[test]
    fn the_order_of_the_partitions_does_not_matter(cluster in cluster(), seeds in proptest::collection::vec(any::<u32>(), 20)) {
        let snapshot = Snapshot::from(cluster);
        let written = text(&snapshot);
        let (partitions, others): (Vec<&str>, Vec<&str>) = written.lines().partition(|line| line.starts_with("p "));
        let mut shuffled: Vec<_> = partitions.into_iter().zip(seeds).collect();
        shuffled.sort_by_key(|(_, seed)| *seed);
        let (moves, head): (Vec<&str>, Vec<&str>) = others.into_iter().partition(|line| line.starts_with("move "));
        let lines = head.into_iter().chain(shuffled.into_iter().map(|(line, _)| line)).chain(moves);
        let other = lines.map(|line| format!("{line}\n")).collect::<String>();
        prop_assert_eq!(read("x", other.as_bytes(), None, |_| {}).unwrap(), snapshot);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read("x", &bytes[..], None, |_| {});
        let after_header = [b"evenkeel-snapshot v1 brokers=1 partitions=0\n", &bytes[..]].concat();
        let _ = read("x", &after_header[..], None, |_| {});
        let packed = [&[0x1f, 0x8b, 8, 0][..], &bytes].concat();
        let _ = read("x", &packed[..], None, |_| {});
    }

    #[test]
    fn no_words_in_any_order_make_it_panic(words in proptest::collection::vec(select(vec![
        "p", "broker", "disk", "unknown", "move", "\n", "\n", "\n", "0", "1", "-1", "0,1", "T", "-", "%2D", "%", "ALIVE",
        "DEAD", "99999999999", "1e39", "0,0,0,0", "0,0,0,0@0!", "0,0,0,0@99999999999999999999", "cpu", "",
        "broker 0 a h ALIVE 1 1 1 1\n", "broker 1 - g DEAD 0 0 0 0\n", "p T 0 0,1 0 1,1,1,1 1,1,0,1\n", "move T 0 1\n",
    ]), 0..40)) {
        let text = format!("evenkeel-snapshot v1 brokers=2 partitions=1\n{}\n", words.join(" ").replace("\n ", "\n"));
        if let Err(error) = read("x", text.as_bytes(), None, |_| {}) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }

    #[test]
    fn a_changed_byte_is_refused_or_read_but_never_fatal(snapshot in snapshot(), at in any::<Index>(), byte in any::<u8>()) {
        let mut bytes = text(&snapshot).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = read("x", &bytes[..], None, |_| {});
    }

    /// Whatever the reader takes the writer can write, and the reader reads it as the same.
    #[test]
    fn a_header_that_is_read_can_be_written(entries in proptest::collection::vec("[a-c%=\u{1}\u{7f}\u{e9}0-9-]{0,6}", 0..3)) {
        let header = format!("evenkeel-snapshot v1 brokers=1 partitions=0 {}", entries.join(" "));
        let file = format!("{}\nbroker 0 a h ALIVE 1 1 1 1\n", header.trim_end_matches(' '));
        if let Ok(snapshot) = read("x", file.as_bytes(), None, |_| {}) {
            prop_assert_eq!(read("x", text(&snapshot).as_bytes(), None, |_| {}).unwrap(), snapshot);
        }
    }
}
