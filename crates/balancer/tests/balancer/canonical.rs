//! One cluster, however it is told.

use evenkeel_balancer::cluster::{
    BrokerId, BrokerSpec, BrokerState, Cluster, ClusterBuilder, DiskSpec, DiskState, Load, ReplicaSpec,
};

/// One broker with the disks in this order, and a replica on the disk called `/b`, which failed.
fn on_failed_b(disks: [&str; 3]) -> Cluster {
    let disk = |name: &&str| DiskSpec {
        name: (*name).to_owned(),
        capacity: 10.0,
        state: if *name == "/b" { DiskState::Dead } else { DiskState::Alive },
    };
    let mut builder = ClusterBuilder::new();
    let broker = BrokerSpec {
        id: BrokerId(0),
        rack: String::new(),
        host: "h".to_owned(),
        state: BrokerState::BadDisks,
        capacity: [1.0; 4],
        disks: disks.iter().map(disk).collect(),
    };
    builder.broker(broker).unwrap();
    let disk = disks.iter().position(|name| *name == "/b");
    let replica = ReplicaSpec { broker: BrokerId(0), disk, load: Load::default(), offline: false };
    builder.partition("t", 0, 0, &[replica]).unwrap();
    builder.build().unwrap()
}

#[test]
fn the_order_of_disks_does_not_matter() {
    let cluster = on_failed_b(["/a", "/b", "/c"]);
    assert_eq!(on_failed_b(["/c", "/b", "/a"]), cluster);
    assert_eq!(on_failed_b(["/b", "/c", "/a"]), cluster);
    let replica = cluster.partition(0).replicas().next().unwrap();
    assert_eq!((replica.disk, replica.offline), (Some(1), true));
}
