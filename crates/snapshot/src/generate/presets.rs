//! The clusters that benchmarks are about, by name.

use super::parameters::{Means, Parameters};

/// The names [`preset`] knows, and what they stand for.
pub const PRESETS: [(&str, &str); 8] = [
    ("a", "40 brokers, 50,001 replicas"),
    ("ar", "the same, rack-aware from the start"),
    ("b", "140 brokers, 75,006 replicas"),
    ("c", "270 brokers, 10,500 topics, 1.3 million replicas"),
    ("d", "215 brokers, 3,500 topics, 2.8 million replicas"),
    ("e", "80 brokers with 10 disks each, 50,001 replicas"),
    ("f", "ar with brokers 0 to 4 dead"),
    ("mr", "60 brokers, 300,000 replicas, rack-aware from the start"),
];

/// The parameters of the cluster called `name`.
pub fn preset(name: &str) -> Option<Parameters> {
    let base = Parameters::default();
    let means =
        |cpu, network_in_and_disk, nw_out| Means { cpu, nw_in: network_in_and_disk, nw_out, disk: network_in_and_disk };
    Some(match name {
        "a" => base,
        "ar" => Parameters { rack_aware: true, ..base },
        "b" => Parameters { brokers: 140, replicas: 75_006, ..base },
        "c" => Parameters {
            brokers: 270,
            topics: 10_500,
            replicas: 1_300_002,
            means: means(0.0104, 34.0, 25.0),
            digits: Some(5),
            ..base
        },
        "d" => Parameters { brokers: 215, topics: 3_500, replicas: 2_799_999, means: means(0.0038, 12.7, 9.2), ..base },
        "e" => Parameters { brokers: 80, disks_per_broker: 10, ..base },
        "f" => Parameters { rack_aware: true, dead_brokers: 5, ..base },
        "mr" => Parameters { brokers: 60, replicas: 300_000, means: means(0.01, 33.0, 24.0), rack_aware: true, ..base },
        _ => return None,
    })
}
