//! The generated clusters are those that others measured.
//!
//! The sums are of the canonical text of clusters that Cruise Control's own generator drew; their
//! files are not needed here.

use evenkeel_snapshot::Snapshot;
use evenkeel_snapshot::generate::{Distribution, PRESETS, Parameters, generate, preset};
use expect_test::expect;
use sha2::{Digest, Sha256};

fn text(parameters: &Parameters) -> String {
    let cluster = generate(parameters, |_| {}).unwrap();
    let mut text = Vec::new();
    evenkeel_snapshot::write(&Snapshot::from(cluster), &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn sum(name: &str) -> String {
    Sha256::digest(text(&preset(name).unwrap())).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_presets_are_the_clusters_that_cruise_control_drew() {
    let sums = [
        ("a", "89465f3e11546a454085c602012415907c5e647b46a6f4e1069d5ffaec352802"),
        ("ar", "5bed1f2c5706187f52915e7d0a9fc09fd3ce4d9ce14d0807a58b4beffcc8b24b"),
        ("b", "f00d83dc8e1a5a0a4cf9d0201ed87d228f5e603a34e7eacd2c4ea3dd4e4bf8f7"),
        ("c", "19acb7c76e48230eb8d3b2274e6ff3cc2f0aed14b34370e67b9e9602270bd4f9"),
        ("f", "ba0bc568a29f318d5cbef0f32915224b3cbe771d5f0d4313511d5b7dd5b794cd"),
        ("mr", "9eef970cbde6f7e42c9afd28cc35401f7c3571bafbe17450734b46936706a949"),
    ];
    for (name, expected) in sums {
        assert_eq!(sum(name), expected, "{name}");
    }
}

/// Not compared with anything: the disks are ours. It only must not change unnoticed.
#[test]
fn the_cluster_with_disks_stays_as_it_is() {
    expect!["f95a848634e8b90965e7a398962f853999459ef98dad94d251e267f53da0f93d"].assert_eq(&sum("e"));
}

#[test]
fn every_name_has_parameters() {
    for (name, _) in PRESETS {
        assert!(preset(name).is_some(), "{name}");
    }
    assert_eq!(preset("z"), None);
}

/// Broker 33 is in the rack of broker 7: the first draw of the second replica clashes, and the third
/// replica then steps over two seeds.
#[test]
fn clashes_of_racks_are_resolved_as_in_the_original() {
    let text = text(&preset("ar").unwrap());
    let brokers = |topic_and_partition: &str| {
        let start = format!("p {topic_and_partition} ");
        text.lines().find_map(|line| line.strip_prefix(&start)?.split(' ').next().map(str::to_owned)).unwrap()
    };
    assert_eq!(["T0 0", "T0 4", "T0 6", "T100 0"].map(brokers), ["3,29,32", "7,36,29", "18,12,1", "13,2,35"]);
}

fn small() -> Parameters {
    Parameters { racks: 2, brokers: 5, topics: 2, replicas: 15, min_factor: 2, max_factor: 3, ..Parameters::default() }
}

#[test]
fn a_small_cluster_can_be_looked_at() {
    let jbod = Parameters {
        dead_brokers: 1,
        disks_per_broker: 2,
        distribution: Distribution::Linear,
        digits: Some(3),
        ..small()
    };
    expect![[r#"
        evenkeel-snapshot v1 brokers=5 topics=3 partitions=10 replicas=25 disks=10
        broker 0 0 0 DEAD 0 0 0 0
        disk 0 /mnt/i00 ALIVE 150000
        disk 0 /mnt/i01 ALIVE 150000
        broker 1 1 1 ALIVE 100 150000 150000 150000
        disk 1 /mnt/i00 ALIVE 75000
        disk 1 /mnt/i01 ALIVE 75000
        broker 2 1 2 ALIVE 100 300000 200000 300000
        disk 2 /mnt/i00 ALIVE 150000
        disk 2 /mnt/i01 ALIVE 150000
        broker 3 1 3 ALIVE 100 300000 200000 300000
        disk 3 /mnt/i00 ALIVE 150000
        disk 3 /mnt/i01 ALIVE 150000
        broker 4 1 4 ALIVE 100 300000 200000 300000
        disk 4 /mnt/i00 ALIVE 150000
        disk 4 /mnt/i01 ALIVE 150000
        p T0 0 4,0,2 0 0.00157,4.82,42.2,21.9@0 0.00285,1.32,0,11.9@1 0.000907,6.82,0,140@0
        p T0 1 4,0,1 0 0.000672,0.301,34.6,8.23@1 0.00207,19.7,0,24.3@0 0.0029,20.4,0,32.3@1
        p T0 2 4,0,2 0 0.00212,10.3,38.2,17.3@0 0.0122,6.69,0,2.79@0 0.000421,24,0,4.72@0
        p T1 0 3,2,4 0 0.00769,12.4,48,21.1@1 0.00507,242,0,39.5@1 0.0022,60.6,0,92.9@1
        p T1 1 3,4,1 0 0.0126,86,19.8,95.1@0 0.0276,77.4,0,181@1 0.0182,74.2,0,73.4@1
        p TopicWithOneLeaderPerBroker 0 3,4 0 0.0000474,3.96,18.3,4.87@1 0.000482,11.8,0,2.81@1
        p TopicWithOneLeaderPerBroker 1 4,3 0 0.000784,15.8,2.95,7.72@0 0.000558,6.29,0,1.74@0
        p TopicWithOneLeaderPerBroker 2 3,4 0 0.000699,3.59,1.08,3.63@1 0.0000181,4.02,0,8.96@0
        p TopicWithOneLeaderPerBroker 3 4,1 0 0.000317,4.47,20.9,10@1 0.000637,1.84,0,1.47@1
        p TopicWithOneLeaderPerBroker 4 4,1 0 0.000117,12.9,4.5,4.07@0 0.000613,10.2,0,19@1
    "#]]
    .assert_eq(&text(&jbod));
}

#[test]
fn another_seed_gives_another_cluster() {
    let other = Parameters { seed: 1, ..small() };
    assert_ne!(text(&small()), text(&other));
    assert_eq!(text(&other), text(&other));
}

#[test]
fn parameters_that_contradict_each_other_are_refused() {
    let base = Parameters::default;
    let refused = [
        Parameters { racks: 0, ..base() },
        Parameters { brokers: 2, ..base() },
        Parameters { brokers: 50_000, ..base() },
        Parameters { racks: 2, rack_aware: true, ..base() },
        Parameters { dead_brokers: 40, ..base() },
        Parameters { replicas: 100, ..base() },
        Parameters { replicas: 50_000, ..base() },
        Parameters { min_factor: 4, ..base() },
        Parameters { digits: Some(0), ..base() },
        Parameters { seed: i64::MIN, ..base() },
        Parameters { replicas: u32::MAX, ..base() },
        Parameters { topics: u32::MAX, min_factor: 3, ..base() },
        Parameters { means: evenkeel_snapshot::generate::Means { cpu: f64::NAN, ..base().means }, ..base() },
    ];
    let complaints = refused.map(|parameters| generate(&parameters, |_| {}).unwrap_err().to_string());
    expect![[r#"
        cannot generate such a cluster: racks, topics and replicas of a partition must be at least 1
        cannot generate such a cluster: 2 brokers cannot hold 3 replicas of a partition
        cannot generate such a cluster: 50000 brokers, at most 46340 are possible
        cannot generate such a cluster: 2 racks cannot hold 3 replicas of a partition apart
        cannot generate such a cluster: 40 of 40 brokers dead leaves none alive
        cannot generate such a cluster: 3000 topics with 3 replicas of a partition need at least 9000 replicas
        cannot generate such a cluster: partitions of 3 to 3 replicas do not add up to 50000, only to 49998
        cannot generate such a cluster: 4 to 3 replicas of a partition is no range within 1 to 255
        cannot generate such a cluster: loads can be rounded to 1 to 9 digits
        cannot generate such a cluster: the seed must lie between -4611686018427387904 and 4611686018427387904
        cannot generate such a cluster: 4294967295 replicas, at most 2000000000 are possible
        cannot generate such a cluster: 4294967295 topics with 3 replicas of a partition need at least 12884901885 replicas
        cannot generate such a cluster: mean loads must be numbers that are not negative
    "#]].assert_eq(&(complaints.join("\n") + "\n"));
}
