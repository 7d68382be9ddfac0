//! The goals' configuration on the command line: `--set key=value`, with the keys that Cruise Control has for it.

use std::collections::BTreeSet;

use evenkeel_balancer::cluster::Resource;
use evenkeel_balancer::goal::nearest;
use evenkeel_balancer::options::TopicPattern;
use evenkeel_balancer::settings::Settings;

use super::Refusal;

const OPTION: &str = "--set";

/// Takes a value over into the settings, or says what it should have been.
type Setter = fn(&mut Settings, &str) -> Result<(), String>;

/// Every key, and what it sets.
const KEYS: [(&str, Setter); 25] = [
    ("cpu.balance.threshold", |s, v| at_least_one(&mut s.balance_thresholds[Resource::Cpu as usize], v)),
    ("network.inbound.balance.threshold", |s, v| at_least_one(&mut s.balance_thresholds[Resource::NwIn as usize], v)),
    ("network.outbound.balance.threshold", |s, v| at_least_one(&mut s.balance_thresholds[Resource::NwOut as usize], v)),
    ("disk.balance.threshold", |s, v| at_least_one(&mut s.balance_thresholds[Resource::Disk as usize], v)),
    ("cpu.capacity.threshold", |s, v| share(&mut s.capacity_thresholds[Resource::Cpu as usize], v)),
    ("network.inbound.capacity.threshold", |s, v| share(&mut s.capacity_thresholds[Resource::NwIn as usize], v)),
    ("network.outbound.capacity.threshold", |s, v| share(&mut s.capacity_thresholds[Resource::NwOut as usize], v)),
    ("disk.capacity.threshold", |s, v| share(&mut s.capacity_thresholds[Resource::Disk as usize], v)),
    ("cpu.low.utilization.threshold", |s, v| share(&mut s.low_utilization_thresholds[Resource::Cpu as usize], v)),
    ("network.inbound.low.utilization.threshold", |s, v| {
        share(&mut s.low_utilization_thresholds[Resource::NwIn as usize], v)
    }),
    ("network.outbound.low.utilization.threshold", |s, v| {
        share(&mut s.low_utilization_thresholds[Resource::NwOut as usize], v)
    }),
    ("disk.low.utilization.threshold", |s, v| share(&mut s.low_utilization_thresholds[Resource::Disk as usize], v)),
    ("max.replicas.per.broker", |s, v| whole(&mut s.max_replicas_per_broker, v)),
    ("replica.count.balance.threshold", |s, v| at_least_one(&mut s.replica_count_balance_threshold, v)),
    ("leader.replica.count.balance.threshold", |s, v| at_least_one(&mut s.leader_replica_count_balance_threshold, v)),
    ("topic.replica.count.balance.threshold", |s, v| at_least_one(&mut s.topic_replica_count_balance_threshold, v)),
    ("topic.replica.count.balance.min.gap", |s, v| whole(&mut s.topic_replica_count_balance_min_gap, v)),
    ("topic.replica.count.balance.max.gap", |s, v| whole(&mut s.topic_replica_count_balance_max_gap, v)),
    ("topics.with.min.leaders.per.broker", |s, v| {
        let pattern = TopicPattern::new(v).map_err(|_| "a regular expression".to_owned())?;
        // Nothing at all is how Cruise Control says that there are none.
        s.topics_with_min_leaders_per_broker = (!v.is_empty()).then_some(pattern);
        Ok(())
    }),
    ("min.topic.leaders.per.broker", |s, v| whole(&mut s.min_topic_leaders_per_broker, v)),
    ("goal.balancedness.priority.weight", |s, v| at_least_one(&mut s.priority_weight, v)),
    ("goal.balancedness.strictness.weight", |s, v| at_least_one(&mut s.strictness_weight, v)),
    ("overprovisioned.min.brokers", |s, v| whole(&mut s.overprovisioned_min_brokers, v)),
    ("overprovisioned.min.extra.racks", |s, v| whole(&mut s.overprovisioned_min_extra_racks, v)),
    ("overprovisioned.max.replicas.per.broker", |s, v| whole(&mut s.overprovisioned_max_replicas_per_broker, v)),
];

/// Sets everything that `given` says, each key once, and tells which keys these were.
pub(super) fn set(settings: &mut Settings, given: &[String]) -> Result<BTreeSet<&'static str>, Refusal> {
    let mut done = BTreeSet::new();
    for text in given {
        let Some((key, value)) = text.split_once('=') else {
            return Err(Refusal::value(OPTION, text, "not key=value, such as disk.balance.threshold=1.2"));
        };
        let (key, value) = (key.trim(), value.trim());
        let Some((known, setter)) = KEYS.iter().find(|(known, _)| *known == key) else {
            return Err(Refusal::value(OPTION, text, unknown_key(key)));
        };
        if !done.insert(*known) {
            return Err(Refusal::value(OPTION, text, "the key is set twice"));
        }
        setter(settings, value).map_err(|wanted| Refusal::value(OPTION, text, format!("it must be {wanted}")))?;
    }
    Ok(done)
}

/// With the key that is near, or all of them if none is.
fn unknown_key(key: &str) -> String {
    let all = || KEYS.iter().map(|(known, _)| *known);
    match nearest(key, all(), |known| known) {
        Some(near) => format!("there is no key `{key}`; did you mean `{near}`?"),
        None => format!("there is no key `{key}`; there are {}", all().collect::<Vec<_>>().join(", ")),
    }
}

fn at_least_one(place: &mut f64, value: &str) -> Result<(), String> {
    number(place, value, 1.0..=f64::MAX, "a number from 1")
}

fn share(place: &mut f64, value: &str) -> Result<(), String> {
    number(place, value, 0.0..=1.0, "a number from 0 to 1")
}

fn number(
    place: &mut f64,
    value: &str,
    range: std::ops::RangeInclusive<f64>,
    wanted: &'static str,
) -> Result<(), String> {
    *place = value.parse().ok().filter(|number| range.contains(number)).ok_or(wanted)?;
    Ok(())
}

fn whole<T: std::str::FromStr>(place: &mut T, value: &str) -> Result<(), String> {
    *place = value.parse().map_err(|_| "a whole number from 0".to_owned())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn with(given: &[&str]) -> Result<Settings, String> {
        let mut settings = Settings::default();
        let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
        set(&mut settings, &given).map(|_| settings).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn values_arrive_where_they_belong() {
        let settings =
            with(&["disk.balance.threshold=1.3", " cpu.capacity.threshold = 0.5", "max.replicas.per.broker=7"]);
        let settings = settings.unwrap();
        assert_eq!(settings.balance_thresholds, [1.1, 1.1, 1.1, 1.3]);
        assert_eq!(settings.capacity_thresholds, [0.5, 0.8, 0.8, 0.8]);
        assert_eq!(settings.max_replicas_per_broker, 7);
        let pattern = with(&["topics.with.min.leaders.per.broker=a.*"]).unwrap().topics_with_min_leaders_per_broker;
        assert!(pattern.unwrap().matches("abc"));
    }

    #[test]
    fn every_key_takes_a_value() {
        for (key, _) in KEYS {
            assert!(with(&[&format!("{key}=1")]).is_ok(), "{key}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        let refused = |text: &str| with(&[text]).unwrap_err();
        expect!["--set disk.threshold=1.2: there is no key `disk.threshold`; did you mean `disk.balance.threshold`?"]
            .assert_eq(&refused("disk.threshold=1.2"));
        let unlike_any = refused("foo=1");
        assert!(unlike_any.starts_with("--set foo=1: there is no key `foo`; there are cpu.balance.threshold, "));
        assert!(KEYS.iter().all(|(key, _)| unlike_any.contains(key)), "{unlike_any}");
        let twice = with(&["disk.balance.threshold=1.2", "disk.balance.threshold = 1.3"]);
        expect!["--set disk.balance.threshold = 1.3: the key is set twice"].assert_eq(&twice.unwrap_err());
        expect!["--set x: not key=value, such as disk.balance.threshold=1.2"].assert_eq(&refused("x"));
        expect!["--set disk.balance.threshold=0.9: it must be a number from 1"]
            .assert_eq(&refused("disk.balance.threshold=0.9"));
        expect!["--set cpu.capacity.threshold=NaN: it must be a number from 0 to 1"]
            .assert_eq(&refused("cpu.capacity.threshold=NaN"));
        expect!["--set min.topic.leaders.per.broker=-1: it must be a whole number from 0"]
            .assert_eq(&refused("min.topic.leaders.per.broker=-1"));
        expect!["--set topics.with.min.leaders.per.broker=(: it must be a regular expression"]
            .assert_eq(&refused("topics.with.min.leaders.per.broker=("));
    }
}
