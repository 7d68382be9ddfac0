//! What exactly is sent to whom. Pure.
//!
//! | receiver | what |
//! |---|---|
//! | Slack | one message: user, text, icon, channel |
//! | MS Teams | one MessageCard with a fact for each thing to know |
//! | Alerta | an alert for each goal, broker or disk, to `<url>/alert`, with `Authorization: Key …` |
//! | webhook | the anomaly as `state` shows it, with its type and its text |

use evenkeel_balancer::goal::Goal;
use evenkeel_kafka::login::Secret;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Alert;
use crate::detect::{Finding, Kind, Millis, words::date};

/// Somebody who is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Channel {
    /// A channel of Slack.
    Slack {
        /// Where to post.
        webhook: Secret,
        /// In which channel it appears.
        channel: String,
        /// With which icon.
        icon: String,
        /// Under which name.
        user: String,
    },
    /// A channel of Microsoft Teams.
    Teams {
        /// Where to post.
        webhook: Secret,
    },
    /// Alerta.
    Alerta {
        /// Where its API is.
        url: Secret,
        /// Who may post there.
        key: Secret,
        /// The environment that alerts belong to.
        environment: Option<String>,
    },
    /// Anybody who takes JSON.
    Webhook {
        /// Where to post.
        url: Secret,
    },
}

impl Channel {
    /// Its name, for logs.
    pub fn name(&self) -> &'static str {
        match self {
            Channel::Slack { .. } => "Slack",
            Channel::Teams { .. } => "MS Teams",
            Channel::Alerta { .. } => "Alerta",
            Channel::Webhook { .. } => "webhook",
        }
    }
}

/// Something to be posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Where to.
    pub to: Secret,
    /// The key that lets in.
    pub key: Option<Secret>,
    /// JSON.
    pub body: String,
}

/// What an alert makes for one who is told. `host` is the name of this machine.
pub fn letters(channel: &Channel, alert: &Alert, host: &str) -> Vec<Letter> {
    let letter = |to: &Secret, body: String| vec![Letter { to: to.clone(), key: None, body }];
    match channel {
        Channel::Slack { webhook, channel, icon, user } => {
            letter(webhook, written(&Slack { username: user, text: alert.text(), icon_emoji: icon, channel }))
        }
        Channel::Teams { webhook } => letter(webhook, written(&teams(alert))),
        Channel::Webhook { url } => letter(url, written(&webhook(alert))),
        Channel::Alerta { url, key, environment } => {
            let to = Secret::new(format!("{}/alert", url.reveal().trim_end_matches('/')));
            let host = if host.is_empty() { CRUISE_CONTROL } else { host };
            alerta(alert, host, environment.as_deref())
                .iter()
                .map(|body| Letter { to: to.clone(), key: Some(key.clone()), body: written(body) })
                .collect()
        }
    }
}

fn written(body: &impl Serialize) -> String {
    // Texts, numbers and lists of them under fixed names: nothing in it has no JSON form.
    serde_json::to_string(body).expect("messages have a JSON form")
}

/// The service that alerts are about.
const CRUISE_CONTROL: &str = "cruise-control";

#[derive(Serialize)]
struct Slack<'a> {
    username: &'a str,
    text: String,
    icon_emoji: &'a str,
    channel: &'a str,
}

#[derive(Serialize)]
struct Card {
    #[serde(rename = "@type")]
    kind: &'static str,
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "themeColor")]
    theme_color: &'static str,
    summary: &'static str,
    sections: [Section; 1],
}

#[derive(Serialize)]
struct Section {
    facts: Vec<Fact>,
}

#[derive(Serialize)]
struct Fact {
    name: &'static str,
    value: String,
}

fn teams(alert: &Alert) -> Card {
    let fact = |name, value| Fact { name, value };
    let mut facts = vec![
        fact("Anomaly type", alert.finding.kind().name().to_owned()),
        fact("Anomaly", alert.words.clone()),
        fact("Self Healing enabled", alert.mends_at.is_some().to_string()),
        fact("Auto fix triggered", alert.fixing.to_string()),
    ];
    facts.extend(alert.mends_at.map(|at| fact("Self Healing start time", date(at))));
    Card {
        kind: "MessageCard",
        context: "http://schema.org/extensions",
        theme_color: "0076D7",
        summary: "Cruise-Control Alert",
        sections: [Section { facts }],
    }
}

/// In the order of the alphabet, as the original sends them; what is not given is left out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Alerta<'a> {
    create_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'a str>,
    event: String,
    group: &'static str,
    origin: String,
    raw_data: &'a str,
    resource: String,
    service: [&'static str; 1],
    severity: &'static str,
    tags: [String; 1],
    text: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

fn alerta<'a>(alert: &'a Alert, host: &str, environment: Option<&'a str>) -> Vec<Alerta<'a>> {
    let kind = alert.finding.kind();
    let one = |resource: String, event: String, at: Millis, value: Option<String>| Alerta {
        create_time: date(at).replace('Z', ".000Z"),
        environment,
        event,
        group: if kind == Kind::DiskFailure { "Storage" } else { "Performance" },
        origin: format!("{CRUISE_CONTROL}/{host}"),
        raw_data: &alert.words,
        resource,
        service: [CRUISE_CONTROL],
        severity: match kind {
            Kind::BrokerFailure => "critical",
            Kind::DiskFailure => "major",
            Kind::GoalViolation => "minor",
        },
        tags: [format!("alarm_id:{}", alert.id)],
        text: alert.text(),
        kind: "cruiseControlAlarm",
        value,
    };
    let name = kind.name();
    match &alert.finding {
        Finding::GoalViolation { fixable, unfixable } => {
            let goals = unfixable.iter().chain(fixable);
            goals.map(|goal| one(host.to_owned(), format!("{name} - {goal}"), alert.detected, None)).collect()
        }
        Finding::BrokerFailure { since, .. } => {
            let failed = since.iter();
            failed.map(|(broker, at)| one(format!("{host} - Broker {broker}"), name.to_owned(), *at, None)).collect()
        }
        Finding::DiskFailure { since } => {
            let disks = since.iter().flat_map(|(broker, dirs)| dirs.iter().map(move |(dir, at)| (broker, dir, at)));
            disks
                .map(|(broker, dir, at)| {
                    one(format!("{host} - Broker{broker}"), format!("{name} - {dir}"), *at, Some(dir.clone()))
                })
                .collect()
        }
    }
}

/// The keys of the anomaly in `state`, and what a receiver without more knowledge can show.
fn webhook(alert: &Alert) -> Value {
    let names = |goals: &[Goal]| goals.iter().map(|goal| goal.name()).collect::<Vec<_>>();
    let mut body = Map::new();
    body.insert("anomalyId".to_owned(), json!(alert.id.to_string()));
    body.insert("anomalyType".to_owned(), json!(alert.finding.kind().name()));
    body.insert("detectionMs".to_owned(), json!(alert.detected));
    body.insert("selfHealingEnabled".to_owned(), json!(alert.mends_at.is_some()));
    body.insert("selfHealingTriggered".to_owned(), json!(alert.fixing));
    body.insert("text".to_owned(), json!(alert.text()));
    match &alert.finding {
        Finding::GoalViolation { fixable, unfixable } => {
            body.insert("fixableViolatedGoals".to_owned(), json!(names(fixable)));
            body.insert("unfixableViolatedGoals".to_owned(), json!(names(unfixable)));
        }
        Finding::BrokerFailure { since, .. } => {
            body.insert("failedBrokersByTimeMs".to_owned(), json!(since));
        }
        Finding::DiskFailure { since } => {
            body.insert("failedDisksByTimeMs".to_owned(), json!(since));
        }
    }
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::detect::{goals::Spared, words::words};

    fn alert(finding: Finding, mends_at: Option<Millis>, fixing: bool) -> Alert {
        let words = words(&finding, Spared { removed: true, demoted: true });
        Alert { id: Uuid::from_u128(7), detected: 1_731_574_274_321, finding, words, mends_at, fixing }
    }

    fn failure() -> Finding {
        Finding::BrokerFailure { since: [(3, 1_731_574_274_321)].into(), fixable: true }
    }

    fn bodies(channel: &Channel, alert: &Alert) -> Vec<String> {
        letters(channel, alert, "cc-0").into_iter().map(|letter| letter.body).collect()
    }

    #[test]
    fn slack_gets_a_text() {
        let slack = Channel::Slack {
            webhook: Secret::new("https://hooks.slack.com/T0/hush"),
            channel: "#kafka".to_owned(),
            icon: ":information_source:".to_owned(),
            user: "Cruise Control".to_owned(),
        };
        let words = "BROKER_FAILURE detected {Fixable broker failures detected: {Broker 3 failed at \
                     2024-11-14T08:51:14Z}}. Self healing";
        let message = |text: &str| {
            vec![format!(
                "{{\"username\":\"Cruise Control\",\"text\":\"{words} {text}\",\
                 \"icon_emoji\":\":information_source:\",\"channel\":\"#kafka\"}}"
            )]
        };
        assert_eq!(bodies(&slack, &alert(failure(), None, false)), message("is disabled."));
        assert_eq!(
            bodies(&slack, &alert(failure(), Some(1_731_576_074_321), true)),
            message("start time 2024-11-14T09:21:14Z.\\nSelf-healing has been triggered.")
        );
        assert_eq!(
            letters(&slack, &alert(failure(), None, false), "")[0].to.reveal(),
            "https://hooks.slack.com/T0/hush"
        );
    }

    #[test]
    fn teams_gets_a_card_of_facts() {
        let teams = Channel::Teams { webhook: Secret::new("https://teams/hush") };
        assert_eq!(
            bodies(&teams, &alert(failure(), Some(1_731_576_074_321), false)),
            ["{\"@type\":\"MessageCard\",\"@context\":\"http://schema.org/extensions\",\"themeColor\":\"0076D7\",\
              \"summary\":\"Cruise-Control Alert\",\"sections\":[{\"facts\":[\
              {\"name\":\"Anomaly type\",\"value\":\"BROKER_FAILURE\"},\
              {\"name\":\"Anomaly\",\"value\":\"{Fixable broker failures detected: {Broker 3 failed at 2024-11-14T08:51:14Z}}\"},\
              {\"name\":\"Self Healing enabled\",\"value\":\"true\"},\
              {\"name\":\"Auto fix triggered\",\"value\":\"false\"},\
              {\"name\":\"Self Healing start time\",\"value\":\"2024-11-14T09:21:14Z\"}]}]}"]
        );
        let off = bodies(&teams, &alert(failure(), None, false)).concat();
        assert!(off.contains("\"Self Healing enabled\",\"value\":\"false\"") && !off.contains("start time"), "{off}");
    }

    #[test]
    fn alerta_gets_an_alert_for_each_thing() {
        let alerta = |environment: Option<&str>| Channel::Alerta {
            url: Secret::new("https://alerta/api/"),
            key: Secret::new("hush"),
            environment: environment.map(str::to_owned),
        };
        let failed = letters(&alerta(Some("Production")), &alert(failure(), None, false), "cc-0");
        assert_eq!(failed[0].to.reveal(), "https://alerta/api/alert");
        assert_eq!(failed[0].key.as_ref().map(Secret::reveal), Some("hush"));
        assert_eq!(
            failed[0].body,
            "{\"createTime\":\"2024-11-14T08:51:14.000Z\",\"environment\":\"Production\",\"event\":\"BROKER_FAILURE\",\
             \"group\":\"Performance\",\"origin\":\"cruise-control/cc-0\",\
             \"rawData\":\"{Fixable broker failures detected: {Broker 3 failed at 2024-11-14T08:51:14Z}}\",\
             \"resource\":\"cc-0 - Broker 3\",\"service\":[\"cruise-control\"],\"severity\":\"critical\",\
             \"tags\":[\"alarm_id:00000000-0000-0000-0000-000000000007\"],\
             \"text\":\"BROKER_FAILURE detected {Fixable broker failures detected: {Broker 3 failed at \
             2024-11-14T08:51:14Z}}. Self healing is disabled.\",\"type\":\"cruiseControlAlarm\"}"
        );
        let told = |finding: Finding| -> Vec<[Value; 5]> {
            let bodies = bodies(&alerta(None), &alert(finding, None, false));
            let keys = ["resource", "event", "group", "severity", "value"];
            bodies
                .iter()
                .map(|body| serde_json::from_str::<Value>(body).unwrap())
                .map(|it| keys.map(|key| it[key].clone()))
                .collect()
        };
        let goals = Finding::GoalViolation { fixable: vec![Goal::RackAware], unfixable: vec![Goal::CpuCapacity] };
        let null = Value::Null;
        assert_eq!(
            told(goals),
            [
                [
                    json!("cc-0"),
                    json!("GOAL_VIOLATION - CpuCapacityGoal"),
                    json!("Performance"),
                    json!("minor"),
                    null.clone()
                ],
                [json!("cc-0"), json!("GOAL_VIOLATION - RackAwareGoal"), json!("Performance"), json!("minor"), null],
            ]
        );
        let disk = Finding::DiskFailure { since: [(1, [("/a".to_owned(), 0)].into())].into() };
        assert_eq!(
            told(disk),
            [[json!("cc-0 - Broker1"), json!("DISK_FAILURE - /a"), json!("Storage"), json!("major"), json!("/a")]]
        );
    }

    #[test]
    fn a_webhook_gets_the_anomaly_as_state_shows_it() {
        let webhook = Channel::Webhook { url: Secret::new("http://x/") };
        let told = |finding| -> Value {
            serde_json::from_str(&bodies(&webhook, &alert(finding, None, false)).concat()).unwrap()
        };
        let goals = Finding::GoalViolation { fixable: vec![Goal::RackAware], unfixable: Vec::new() };
        assert_eq!(
            told(goals),
            json!({"anomalyId": "00000000-0000-0000-0000-000000000007", "anomalyType": "GOAL_VIOLATION",
                "detectionMs": 1_731_574_274_321_i64, "selfHealingEnabled": false, "selfHealingTriggered": false,
                "fixableViolatedGoals": ["RackAwareGoal"], "unfixableViolatedGoals": [],
                "text": "GOAL_VIOLATION detected {Unfixable goal violations: {}, Fixable goal violations: {RackAwareGoal}, \
                         Exclude brokers recently (removed: true demoted: true)}. Self healing is disabled."})
        );
        assert_eq!(told(failure())["failedBrokersByTimeMs"], json!({"3": 1_731_574_274_321_i64}));
    }
}
