//! How anomalies are looked for, and who hears of them; with the original's keys and defaults.
//!
//! Keys of ours: `evenkeel.notifier.webhook`, an address that gets every alert as JSON, whatever the notifier;
//! `evenkeel.cluster.name` and `evenkeel.cluster.namespace`, whose ConfigMap StrimziCruiseControlNotifier writes
//! (without a namespace, the one that the engine runs in).

use std::collections::BTreeSet;

use evenkeel_kafka::login::Secret;
use evenkeel_rest::parameter::AnomalyType;
use http::Uri;

use super::keys::{Keys, Remark};
use crate::{
    detect::{
        Millis,
        failures::Bearable,
        goals::Spared,
        notifier::{Healing, Manner},
        timetable::Intervals,
    },
    notify::messages::Channel,
};

/// All of it.
#[derive(Debug, Clone)]
pub struct Detectors {
    /// How often is looked.
    pub intervals: Intervals,
    /// How anomalies are taken.
    pub healing: Healing,
    /// What is mended without asking, at first.
    pub enabled: BTreeSet<AnomalyType>,
    /// How many brokers may fail before people have to see to it.
    pub bearable: Bearable,
    /// Brokers that are left alone.
    pub spared: Spared,
    /// Whether capacities may be estimates.
    pub may_estimate: bool,
    /// How many anomalies of each kind are remembered.
    pub kept: usize,
    /// Who is told.
    pub channels: Vec<Channel>,
    /// Whose ConfigMap shows violated goals.
    pub map_of: Option<ClusterName>,
}

/// A cluster by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterName {
    /// Its name.
    pub name: String,
    /// Its namespace; the engine's own if not given.
    pub namespace: Option<String>,
}

pub(super) fn read(keys: &Keys<'_>, warnings: &mut Vec<Remark>) -> Detectors {
    let (manner, mut channels, map_of) = notifier(keys, warnings);
    // Read whatever the notifier: what is wrong with it is wrong, and it is no key that nobody knows.
    let webhook = address(keys, WEBHOOK).map(|url| Channel::Webhook { url });
    if manner != Manner::Indifferent {
        channels.extend(webhook);
    }
    let enabled = enabled(keys);
    if class(keys) == NOOP && !enabled.is_empty() {
        let text = "is NoopNotifier, which mends nothing: self-healing is on, and needs SelfHealingNotifier or one of those \
                    that also tell somebody";
        warnings.push(Remark { key: NOTIFIER.to_owned(), text: text.to_owned() });
    }
    let usual = keys.millis("anomaly.detection.interval.ms", 300_000);
    let interval = |kind: &str| keys.millis(&format!("{kind}.detection.interval.ms"), usual);
    Detectors {
        intervals: Intervals {
            goals: interval("goal.violation"),
            disks: interval("disk.failure"),
            brokers: interval("broker.failure"),
            backoff: keys.millis("broker.failure.detection.backoff.ms", 300_000),
        },
        healing: healing(keys, manner),
        enabled,
        bearable: Bearable {
            count: keys.number("fixable.failed.broker.count.threshold", 10, 0..=100_000),
            share: keys.number("fixable.failed.broker.percentage.threshold", 0.4, 0.0..=1.0),
        },
        spared: Spared {
            removed: keys.flag("self.healing.exclude.recently.removed.brokers", true),
            demoted: keys.flag("self.healing.exclude.recently.demoted.brokers", true),
        },
        may_estimate: keys.flag("anomaly.detection.allow.capacity.estimation", true),
        kept: keys.number("num.cached.recent.anomaly.states", 10, 1..=100),
        channels,
        map_of,
    }
}

const NOTIFIER: &str = "anomaly.notifier.class";
const NOOP: &str = "NoopNotifier";
const WEBHOOK: &str = "evenkeel.notifier.webhook";

/// The notifier's name without its package.
fn class<'a>(keys: &Keys<'a>) -> &'a str {
    let class = keys.text_or(NOTIFIER, NOOP);
    class.rsplit('.').next().unwrap_or(class)
}

fn notifier(keys: &Keys<'_>, warnings: &mut Vec<Remark>) -> (Manner, Vec<Channel>, Option<ClusterName>) {
    let class = class(keys);
    let mut warn = |key: &str, text: String| warnings.push(Remark { key: key.to_owned(), text });
    let unsent = |key: &str| format!("is not set: without it nothing is sent to {key}");
    match class {
        NOOP => (Manner::Indifferent, Vec::new(), None),
        "SelfHealingNotifier" => (Manner::Heals, Vec::new(), None),
        "SlackSelfHealingNotifier" => {
            let text = |key: &str| keys.text(&format!("slack.self.healing.notifier.{key}")).map(str::to_owned);
            let (webhook, channel) = (address(keys, "slack.self.healing.notifier.webhook"), text("channel"));
            for (key, missing) in [("webhook", webhook.is_none()), ("channel", channel.is_none())] {
                if missing {
                    warn(&format!("slack.self.healing.notifier.{key}"), unsent("Slack"));
                }
            }
            let user = text("user").unwrap_or_else(|| "Cruise Control".to_owned());
            let icon = text("icon").unwrap_or_else(|| ":information_source:".to_owned());
            let slack = webhook.zip(channel).map(|(webhook, channel)| Channel::Slack { webhook, channel, icon, user });
            (Manner::Heals, slack.into_iter().collect(), None)
        }
        "MSTeamsSelfHealingNotifier" => {
            let key = "msteams.self.healing.notifier.webhook";
            let teams = address(keys, key).map(|webhook| Channel::Teams { webhook });
            if teams.is_none() {
                warn(key, unsent("MS Teams"));
            }
            (Manner::Heals, teams.into_iter().collect(), None)
        }
        "AlertaSelfHealingNotifier" => {
            let (url_key, key_key) = ("alerta.self.healing.notifier.api.url", "alerta.self.healing.notifier.api.key");
            let (url, key) = (address(keys, url_key), keys.text(key_key).map(Secret::new));
            for (name, missing) in [(url_key, url.is_none()), (key_key, key.is_none())] {
                if missing {
                    warn(name, unsent("Alerta"));
                }
            }
            let environment = keys.text("alerta.self.healing.notifier.environment").map(str::to_owned);
            let alerta = url.zip(key).map(|(url, key)| Channel::Alerta { url, key, environment });
            (Manner::Heals, alerta.into_iter().collect(), None)
        }
        "StrimziCruiseControlNotifier" => {
            let name = keys.text("evenkeel.cluster.name").map(str::to_owned);
            if name.is_none() {
                let text = "is required by StrimziCruiseControlNotifier: it says whose ConfigMap to write";
                keys.wrong("evenkeel.cluster.name", text);
            }
            let namespace = keys.text("evenkeel.cluster.namespace").map(str::to_owned);
            (Manner::Tells, Vec::new(), name.map(|name| ClusterName { name, namespace }))
        }
        other => {
            warn(NOTIFIER, format!("{other} is not built: nobody hears of anomalies, and nothing is mended"));
            (Manner::Indifferent, Vec::new(), None)
        }
    }
}

/// Where something is posted. It may hold a secret: it is not repeated, whatever is wrong with it.
fn address(keys: &Keys<'_>, key: &str) -> Option<Secret> {
    let text = keys.text(key)?;
    let fits = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    if !text.parse::<Uri>().is_ok_and(|uri| fits(&uri)) {
        keys.wrong(key, "is no address of the form https://…");
        return None;
    }
    Some(Secret::new(text))
}

fn healing(keys: &Keys<'_>, manner: Manner) -> Healing {
    let (alert, fix) = ("broker.failure.alert.threshold.ms", "broker.failure.self.healing.threshold.ms");
    let threshold = |key: &str, default: Millis| keys.number(key, default, 0..=Millis::MAX / 4);
    let healing =
        Healing { manner, broker_alert_after: threshold(alert, 900_000), broker_fix_after: threshold(fix, 1_800_000) };
    if healing.broker_alert_after > healing.broker_fix_after {
        keys.wrong(alert, format!("is longer than `{fix}`: nobody would hear of it before it is mended"));
    }
    healing
}

fn enabled(keys: &Keys<'_>) -> BTreeSet<AnomalyType> {
    let all = keys.flag("self.healing.enabled", false);
    let on = |kind: &AnomalyType| {
        let name = kind.name().to_ascii_lowercase().replace('_', ".");
        keys.flag(&format!("self.healing.{name}.enabled"), all)
    };
    AnomalyType::ALL.iter().copied().filter(on).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::{Remark, detectors::*, properties::Properties, settings::Settings};

    fn read(text: &str) -> Result<(Detectors, Vec<String>), Vec<String>> {
        let text = format!("bootstrap.servers=localhost:9092\n{text}");
        let said = |remarks: Vec<Remark>| remarks.iter().map(ToString::to_string).collect();
        let read = Settings::read(&Properties::read(&text, |_| None).unwrap()).map_err(said)?;
        Ok((read.settings.detectors, said(read.warnings)))
    }

    #[test]
    fn defaults_are_the_original_s() {
        let (detectors, warnings) = read("").unwrap();
        assert_eq!(warnings, [""; 0]);
        let minutes = 60_000;
        let five = 5 * minutes;
        assert_eq!(detectors.intervals, Intervals { goals: five, disks: five, brokers: five, backoff: five });
        let (broker_alert_after, broker_fix_after) = (15 * minutes, 30 * minutes);
        let healing = Healing { manner: Manner::Indifferent, broker_alert_after, broker_fix_after };
        assert_eq!((detectors.healing, detectors.enabled), (healing, BTreeSet::new()));
        assert_eq!(detectors.bearable, Bearable { count: 10, share: 0.4 });
        assert_eq!(detectors.spared, Spared { removed: true, demoted: true });
        assert_eq!((detectors.may_estimate, detectors.kept, detectors.channels.len()), (true, 10, 0));
    }

    #[test]
    fn each_kind_may_have_its_own_interval_and_switch() {
        let (detectors, _) = read(
            "anomaly.detection.interval.ms=1000\ngoal.violation.detection.interval.ms=2000\nself.healing.enabled=true\n\
             self.healing.goal.violation.enabled=false\nanomaly.notifier.class=x.SelfHealingNotifier",
        )
        .unwrap();
        assert_eq!(detectors.intervals, Intervals { goals: 2_000, disks: 1_000, brokers: 1_000, backoff: 300_000 });
        assert!(!detectors.enabled.contains(&AnomalyType::GoalViolation));
        assert_eq!((detectors.enabled.len(), detectors.healing.manner), (5, Manner::Heals));
        let wrong = read("broker.failure.alert.threshold.ms=10\nbroker.failure.self.healing.threshold.ms=9");
        assert_eq!(wrong.unwrap_err().len(), 1);
    }

    #[test]
    fn self_healing_that_nobody_would_do_is_warned_of() {
        for on in ["self.healing.enabled=true", "self.healing.broker.failure.enabled=true"] {
            let (_, warnings) = read(on).unwrap();
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].starts_with("anomaly.notifier.class: is NoopNotifier"), "{warnings:?}");
            let (_, warnings) = read(&format!("{on}\nanomaly.notifier.class=x.SelfHealingNotifier")).unwrap();
            assert_eq!(warnings, [""; 0]);
        }
    }

    #[test]
    fn notifiers_are_known_by_class() {
        let package = "com.linkedin.kafka.cruisecontrol.detector.notifier";
        let (slack, warnings) = read(&format!(
            "anomaly.notifier.class={package}.SlackSelfHealingNotifier\n\
             slack.self.healing.notifier.webhook=https://hooks/hush\nslack.self.healing.notifier.channel=#ops\n\
             evenkeel.notifier.webhook=http://here/hush"
        ))
        .unwrap();
        assert_eq!(warnings, [""; 0]);
        let [Channel::Slack { channel, icon, user, .. }, Channel::Webhook { .. }] = &slack.channels[..] else {
            panic!("{slack:?}");
        };
        assert_eq!([channel, icon, user], ["#ops", ":information_source:", "Cruise Control"]);
        assert!(!format!("{slack:?}").contains("hush"));

        let (strimzi, _) =
            read("anomaly.notifier.class=io.strimzi.StrimziCruiseControlNotifier\nevenkeel.cluster.name=my").unwrap();
        assert_eq!(strimzi.map_of, Some(ClusterName { name: "my".to_owned(), namespace: None }));
        assert_eq!(strimzi.healing.manner, Manner::Tells);
    }

    #[test]
    fn what_is_missing_or_unknown_is_said_without_secrets() {
        let (unknown, warnings) = read("anomaly.notifier.class=my.PagerNotifier").unwrap();
        assert_eq!(unknown.healing.manner, Manner::Indifferent);
        assert!(warnings[0].starts_with("anomaly.notifier.class: PagerNotifier is not built"), "{warnings:?}");
        for (class, missing) in [("Slack", 2), ("MSTeams", 1), ("Alerta", 2)] {
            let (silent, warnings) = read(&format!("anomaly.notifier.class={class}SelfHealingNotifier")).unwrap();
            assert_eq!((silent.channels.len(), warnings.len()), (0, missing), "{warnings:?}");
        }
        let wrong = read(
            "anomaly.notifier.class=StrimziCruiseControlNotifier\nevenkeel.notifier.webhook=hush hush\n\
             msteams.self.healing.notifier.webhook=unread",
        )
        .unwrap_err();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(!wrong.concat().contains("hush"), "{wrong:?}");
    }
}
