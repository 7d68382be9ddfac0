//! Every setting that takes effect, with the original's keys and defaults.

use std::{collections::BTreeMap, path::PathBuf};

use evenkeel_balancer::{
    cluster::{CpuWeights, Resource},
    goal::Goal,
    options::TopicPattern,
    settings::Settings as GoalSettings,
};

use super::{
    connection::Connection,
    keys::{Keys, Meaning, Remark},
    properties::Properties,
    store::SampleStore,
};
use crate::{
    executor::{Limits, Slowness, Strategy},
    journal::topic::TOPIC,
    monitor::windows::Layout,
    tasks::{self, Class},
};

const MB: f64 = 1024.0 * 1024.0;

/// Where load is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The reporter's topic if it is there, else from outside.
    Automatic,
    /// The reporter's topic.
    Reporter,
    /// From outside: sizes and offsets.
    ZeroTouch,
}

/// All of it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How Kafka is reached.
    pub connection: Connection,
    /// The file that says what brokers can carry, if it is named.
    pub capacity_file: Option<PathBuf>,
    /// How load is measured and kept.
    pub monitor: Monitor,
    /// Which goals, and how strict.
    pub goals: Goals,
    /// How plans are carried out.
    pub executor: Executor,
    /// How anomalies are looked for, and who hears of them.
    pub detectors: super::detectors::Detectors,
    /// How user tasks are kept.
    pub tasks: tasks::Limits,
    /// Longest wait for an answer before the client is told to come back.
    pub answer_within: i64,
    /// Where and how requests are taken.
    pub webserver: super::webserver::Webserver,
}

/// How load is measured and kept.
#[derive(Debug, Clone)]
pub struct Monitor {
    /// Where from.
    pub source: Source,
    /// The reporter's topic.
    pub reporter_topic: String,
    /// Time between two samples, in milliseconds.
    pub interval: i64,
    /// How partitions' samples are kept.
    pub windows: Layout,
    /// The share of partitions that must be known.
    pub valid_ratio: f64,
    /// Topics that samples are stored in: partitions', brokers'.
    pub stores: [String; 2],
    /// How they are stored.
    pub store: SampleStore,
    /// How the processor's time is shared out.
    pub cpu_weights: CpuWeights,
    /// Whether stored samples are left unread at the start.
    pub skip_loading: bool,
}

/// Which goals, and how strict.
#[derive(Debug, Clone)]
pub struct Goals {
    /// All that may be asked for.
    pub supported: Vec<Goal>,
    /// Without a list of the caller's.
    pub default: Vec<Goal>,
    /// A caller's list must contain them.
    pub hard: Vec<Goal>,
    /// Watched.
    pub detection: Vec<Goal>,
    /// For healing; empty means the default ones.
    pub self_healing: Vec<Goal>,
    /// Between the disks of a broker.
    pub intra_broker: Vec<Goal>,
    /// Thresholds for plans.
    pub thresholds: GoalSettings,
    /// Those that are watched: wider bands, so that not everything that could be better is an anomaly.
    pub detection_thresholds: GoalSettings,
    /// Topics that stay where they are, unless a caller says otherwise.
    pub excluded_topics: Option<TopicPattern>,
    /// Topics that this engine keeps for itself.
    pub own_topics: Vec<String>,
    /// Whether the plan that a request without goals asks for is made before anybody asks.
    pub plans_ahead: bool,
}

/// How plans are carried out.
#[derive(Debug, Clone)]
pub struct Executor {
    /// What may be under way at once.
    pub limits: Limits,
    /// No limit may be this large or larger.
    pub ceiling: usize,
    /// Who goes first.
    pub strategies: Vec<Strategy>,
    /// Bytes per second, where a caller names none.
    pub throttle: Option<u64>,
    /// Whether moves of others are taken back.
    pub stops_others: bool,
    /// How long an election may take.
    pub leader_patience: i64,
    /// Which moves are slow.
    pub slowness: Slowness,
    /// How long removed brokers are left alone.
    pub removal_memory: i64,
    /// How long demoted brokers are left alone.
    pub demotion_memory: i64,
}

/// What came of reading: settings, and what is worth saying about them.
#[derive(Debug)]
pub struct Read {
    /// The settings.
    pub settings: Settings,
    /// Keys that would have mattered to the original and do not matter here.
    pub warnings: Vec<Remark>,
}

impl Settings {
    /// Reads them; all that is wrong, if anything is.
    pub fn read(properties: &Properties) -> Result<Read, Vec<Remark>> {
        Settings::read_asking(properties).1
    }

    /// What each key is read as that is asked for with these properties; some are asked for only if others say so.
    pub fn asked_for(properties: &Properties) -> BTreeMap<String, Meaning> {
        Settings::read_asking(properties).0
    }

    fn read_asking(properties: &Properties) -> (BTreeMap<String, Meaning>, Result<Read, Vec<Remark>>) {
        let keys = Keys::new(properties);
        let mut warnings = Vec::new();
        let connection = Connection::of(&keys, &mut warnings);
        let monitor = monitor(&keys, &mut warnings);
        let own_topics = monitor.stores.iter().cloned().chain([TOPIC.to_owned()]).collect();
        let settings = Settings {
            connection,
            capacity_file: keys.text("capacity.config.file").map(PathBuf::from),
            monitor,
            goals: goals(&keys, own_topics, &mut warnings),
            executor: executor(&keys),
            detectors: super::detectors::read(&keys, &mut warnings),
            tasks: user_tasks(&keys),
            answer_within: keys.millis("webserver.request.maxBlockTimeMs", 10_000),
            webserver: super::webserver::read(&keys, &mut warnings),
        };
        refuse_unsafe(&keys);
        for (key, built, text) in CLASSES {
            if let Some(class) = keys.text(key).map(|class| class.rsplit('.').next().unwrap_or(class))
                && !built.contains(&class)
            {
                warnings.push(Remark { key: key.to_owned(), text: format!("{class} is not built: {text}") });
            }
        }
        let (asked, errors) = keys.into_findings();
        if !errors.is_empty() {
            return (asked, Err(errors));
        }
        let unheeded = properties.keys().filter(|key| !asked.contains_key(*key));
        warnings.extend(unheeded.filter_map(|key| {
            let (_, text) = MISSED.iter().find(|(start, _)| key.starts_with(start))?;
            Some(Remark { key: key.to_owned(), text: (*text).to_owned() })
        }));
        warnings.extend(REPLACED.iter().filter_map(|(key, own, text)| {
            let class = properties.get(key).and_then(|class| class.rsplit('.').next()).filter(|class| class != own)?;
            Some(Remark { key: (*key).to_owned(), text: format!("{class} is not built: {text}") })
        }));
        (asked, Ok(Read { settings, warnings }))
    }
}

/// Keys of what is not built: whoever sets one of them expects something.
const MISSED: [(&str, &str); 11] = [
    ("concurrency.adjuster.", "limits are not adjusted by themselves yet"),
    ("prometheus.", "loads are not read from Prometheus yet"),
    ("metric.anomaly.", "metric anomalies are not looked for yet"),
    ("slow.broker.", "slow brokers are not looked for yet"),
    ("topic.anomaly.", "topic anomalies are not looked for yet"),
    ("maintenance.event.", "maintenance events are not read yet"),
    ("provisioner.", "recommendations are given, never carried out"),
    ("use.linear.regression.model", "the static model of processor time is used"),
    ("rack.aware.goal.rack.id.mapper.class", "racks are taken as brokers name them"),
    ("proposal.expiration.ms", "a plan is used again as long as nothing else is known"),
    ("executor.notifier.class", "slow moves are told in the log and in /metrics"),
];

/// Classes of the original that people replace by their own, and what is done whatever they are.
const REPLACED: [(&str, &str, &str); 4] = [
    (
        "optimization.options.generator.class",
        "DefaultOptimizationOptionsGenerator",
        "plans leave alone only what settings and requests name",
    ),
    ("broker.failures.class", "BrokerFailures", "broker failures are mended as the original mends them"),
    ("disk.failures.class", "DiskFailures", "disk failures are mended as the original mends them"),
    ("goal.violations.class", "GoalViolations", "goal violations are mended as the original mends them"),
];

/// Classes that are built here under other names, and what is done instead of any other.
const CLASSES: [(&str, &[&str], &str); 2] = [
    (
        "broker.capacity.config.resolver.class",
        &["BrokerCapacityConfigFileResolver", "BrokerCapacityResolver"],
        "capacities are read from the capacity file",
    ),
    (
        "sample.store.class",
        &["KafkaSampleStore", "ReadOnlyKafkaSampleStore", "NoopSampleStore"],
        "samples are kept in Kafka",
    ),
];

/// What would leave a door open if it were merely ignored.
fn refuse_unsafe(keys: &Keys<'_>) {
    if keys.flag("two.step.verification.enabled", false) {
        keys.wrong("two.step.verification.enabled", "is not built: requests would run without a review");
    }
    let provider = keys.text_or("webserver.security.provider", "BasicSecurityProvider");
    if keys.flag("webserver.security.enable", false) && !provider.ends_with("BasicSecurityProvider") {
        keys.wrong("webserver.security.provider", format!("`{provider}` is not built: only BasicSecurityProvider is"));
    }
}

fn monitor(keys: &Keys<'_>, warnings: &mut Vec<Remark>) -> Monitor {
    let sampler = "metric.sampler.class";
    let source = match keys.text(sampler).map(|class| class.rsplit('.').next().unwrap_or(class)) {
        None => Source::Automatic,
        Some("CruiseControlMetricsReporterSampler") => Source::Reporter,
        Some("ZeroTouchSampler") => Source::ZeroTouch,
        Some(other) => {
            let text = format!(
                "{other} is not built: the reporter's topic is used if it is there, else loads are measured from outside"
            );
            warnings.push(Remark { key: sampler.to_owned(), text });
            Source::Automatic
        }
    };
    let text = |key, default: &'static str| keys.text_or(key, default).to_owned();
    let windows = Layout {
        length: keys.millis("partition.metrics.window.ms", 3_600_000),
        kept: keys.number("num.partition.metrics.windows", 5, 1..=10_000),
        enough: keys.number("min.samples.per.partition.metrics.window", 3, 1..=1_000),
        may_be_stretched: keys.number("max.allowed.extrapolations.per.partition", 5, 0..=10_000),
        early: source != Source::Reporter,
    };
    Monitor {
        source,
        reporter_topic: text("metric.reporter.topic", "__CruiseControlMetrics"),
        interval: keys.millis("metric.sampling.interval.ms", 60_000),
        windows,
        store: SampleStore::read(keys, windows.reach()),
        valid_ratio: keys.number("min.valid.partition.ratio", 0.995, 0.0..=1.0),
        stores: [
            text("partition.metric.sample.store.topic", "__KafkaCruiseControlPartitionMetricSamples"),
            text("broker.metric.sample.store.topic", "__KafkaCruiseControlModelTrainingSamples"),
        ],
        cpu_weights: {
            let usual = CpuWeights::default();
            let weight = |key, usual| keys.number(key, usual, 0.0..=1.0);
            CpuWeights {
                leader_in: weight("leader.network.inbound.weight.for.cpu.util", usual.leader_in),
                leader_out: weight("leader.network.outbound.weight.for.cpu.util", usual.leader_out),
                follower_in: weight("follower.network.inbound.weight.for.cpu.util", usual.follower_in),
            }
        },
        skip_loading: keys.flag("skip.loading.samples", false),
    }
}

fn goals(keys: &Keys<'_>, own_topics: Vec<String>, warnings: &mut Vec<Remark>) -> Goals {
    let all: Vec<Goal> = Goal::ALL.into_iter().filter(|goal| !goal.is_intra_broker()).collect();
    let mut list = |key: &str, default: &[Goal]| keys.goals(key, default, warnings);
    let supported = list("goals", &all);
    let intra_broker = list("intra.broker.goals", &Goal::INTRA_BROKER);
    let default = list("default.goals", &Goal::DEFAULT);
    let hard_by_default: Vec<Goal> = default.iter().copied().filter(|goal| Goal::DEFAULT[..7].contains(goal)).collect();
    let hard = list("hard.goals", &hard_by_default);
    let detection = list("anomaly.detection.goals", &Goal::DEFAULT[..4]);
    let self_healing = list("self.healing.goals", &[]);
    let within = |key: &str, some: &[Goal], whole: &[Goal], name: &str| {
        for goal in some.iter().filter(|goal| !whole.contains(goal)) {
            keys.wrong(key, format!("{} is not among {name}", goal.name()));
        }
    };
    within("default.goals", &default, &[&supported[..], &intra_broker].concat(), "`goals` and `intra.broker.goals`");
    within("hard.goals", &hard, &default, "`default.goals`");
    within("self.healing.goals", &self_healing, &default, "`default.goals`");
    for (key, some) in [("goals", &supported), ("intra.broker.goals", &intra_broker), ("default.goals", &default)] {
        if some.is_empty() {
            keys.wrong(key, "names no goal");
        }
    }
    let pattern = "topics.excluded.from.partition.movement";
    let watched = thresholds(keys);
    Goals {
        supported,
        default,
        hard,
        detection,
        self_healing,
        intra_broker,
        thresholds: GoalSettings { distribution_threshold_multiplier: 1.0, ..watched.clone() },
        detection_thresholds: watched,
        excluded_topics: topics(keys, pattern),
        own_topics,
        // All planning takes its turn: how many threads make no difference, but none does.
        plans_ahead: keys.number("num.proposal.precompute.threads", 1, 0..=1_000) > 0,
    }
}

fn topics(keys: &Keys<'_>, key: &str) -> Option<TopicPattern> {
    let text = keys.text(key)?;
    TopicPattern::new(text).map_err(|error| keys.wrong(key, error.to_string())).ok()
}

fn thresholds(keys: &Keys<'_>) -> GoalSettings {
    let usual = GoalSettings::default();
    let per_resource = |what: &str, usual: [f64; Resource::COUNT], range: std::ops::RangeInclusive<f64>| {
        let mut values = usual;
        for (resource, name) in [
            (Resource::Cpu, "cpu"),
            (Resource::NwIn, "network.inbound"),
            (Resource::NwOut, "network.outbound"),
            (Resource::Disk, "disk"),
        ] {
            let at = resource as usize;
            values[at] = keys.number(&format!("{name}.{what}.threshold"), usual[at], range.clone());
        }
        values
    };
    let ratio = |key: &str, usual: f64| keys.number(key, usual, 1.0..=1e6);
    GoalSettings {
        balance_thresholds: per_resource("balance", usual.balance_thresholds, 1.0..=1e6),
        capacity_thresholds: per_resource("capacity", usual.capacity_thresholds, 0.0..=1.0),
        low_utilization_thresholds: per_resource("low.utilization", usual.low_utilization_thresholds, 0.0..=1.0),
        max_replicas_per_broker: keys.number("max.replicas.per.broker", usual.max_replicas_per_broker, 1..=u64::MAX),
        replica_count_balance_threshold: ratio(
            "replica.count.balance.threshold",
            usual.replica_count_balance_threshold,
        ),
        leader_replica_count_balance_threshold: ratio(
            "leader.replica.count.balance.threshold",
            usual.leader_replica_count_balance_threshold,
        ),
        topic_replica_count_balance_threshold: ratio(
            "topic.replica.count.balance.threshold",
            usual.topic_replica_count_balance_threshold,
        ),
        topic_replica_count_balance_min_gap: keys.number(
            "topic.replica.count.balance.min.gap",
            usual.topic_replica_count_balance_min_gap,
            0..=u32::MAX,
        ),
        topic_replica_count_balance_max_gap: keys.number(
            "topic.replica.count.balance.max.gap",
            usual.topic_replica_count_balance_max_gap,
            0..=u32::MAX,
        ),
        topics_with_min_leaders_per_broker: topics(keys, "topics.with.min.leaders.per.broker"),
        min_topic_leaders_per_broker: keys.number(
            "min.topic.leaders.per.broker",
            usual.min_topic_leaders_per_broker,
            0..=u32::MAX,
        ),
        distribution_threshold_multiplier: ratio(
            "goal.violation.distribution.threshold.multiplier",
            usual.distribution_threshold_multiplier,
        ),
        priority_weight: ratio("goal.balancedness.priority.weight", usual.priority_weight),
        strictness_weight: ratio("goal.balancedness.strictness.weight", usual.strictness_weight),
        overprovisioned_min_brokers: keys.number(
            "overprovisioned.min.brokers",
            usual.overprovisioned_min_brokers,
            1..=usize::MAX,
        ),
        overprovisioned_min_extra_racks: keys.number(
            "overprovisioned.min.extra.racks",
            usual.overprovisioned_min_extra_racks,
            0..=usize::MAX,
        ),
        overprovisioned_max_replicas_per_broker: keys.number(
            "overprovisioned.max.replicas.per.broker",
            usual.overprovisioned_max_replicas_per_broker,
            0..=u64::MAX,
        ),
    }
}

fn executor(keys: &Keys<'_>) -> Executor {
    let limit = |key, default| keys.number(key, default, 1..=1_000_000_usize);
    let usual = Limits::default();
    let limits = Limits {
        per_broker: limit("num.concurrent.partition.movements.per.broker", usual.per_broker),
        in_cluster: limit("max.num.cluster.partition.movements", usual.in_cluster),
        dirs_per_broker: limit("num.concurrent.intra.broker.partition.movements", usual.dirs_per_broker),
        leaders_in_cluster: limit("num.concurrent.leader.movements", usual.leaders_in_cluster),
        leaders_per_broker: limit("num.concurrent.leader.movements.per.broker", usual.leaders_per_broker),
        spared: usual.spared,
    };
    let ceiling_key = "max.num.cluster.movements";
    let ceiling = limit(ceiling_key, 1_250);
    for (limit, what) in [
        (limits.per_broker + 1, "num.concurrent.partition.movements.per.broker"),
        (limits.dirs_per_broker + 1, "num.concurrent.intra.broker.partition.movements"),
        (limits.in_cluster, "max.num.cluster.partition.movements"),
        (limits.leaders_in_cluster, "num.concurrent.leader.movements"),
    ] {
        if limit > ceiling {
            keys.wrong(what, format!("does not fit `{ceiling_key}`, which is {ceiling}"));
        }
    }
    let strategies = "default.replica.movement.strategies";
    let chain = keys.text_or(strategies, "BaseReplicaMovementStrategy").split(',').filter_map(|name| {
        let strategy = Strategy::from_name(name.trim());
        if strategy.is_none() {
            keys.wrong(strategies, format!("`{}` is no strategy", name.trim()));
        }
        strategy
    });
    Executor {
        limits,
        ceiling,
        strategies: chain.collect(),
        throttle: keys.maybe("default.replication.throttle", 1),
        stops_others: keys.flag("auto.stop.external.agent", true),
        leader_patience: keys.millis("leader.movement.timeout.ms", 180_000),
        slowness: slowness(keys),
        removal_memory: keys.millis("removal.history.retention.time.ms", 1_209_600_000),
        demotion_memory: keys.millis("demotion.history.retention.time.ms", 1_209_600_000),
    }
}

fn slowness(keys: &Keys<'_>) -> Slowness {
    let usual = Slowness::default();
    let rate = |key, usual: f64| keys.number(key, usual / MB, 1e-6..=1e9) * MB;
    Slowness {
        after: keys.millis("task.execution.alerting.threshold.ms", usual.after),
        between_brokers: rate("inter.broker.replica.movement.rate.alerting.threshold", usual.between_brokers),
        between_dirs: rate("intra.broker.replica.movement.rate.alerting.threshold", usual.between_dirs),
        backoff: keys.millis("slow.task.alerting.backoff.ms", usual.backoff),
    }
}

fn user_tasks(keys: &Keys<'_>) -> tasks::Limits {
    let retention = keys.millis("completed.user.task.retention.time.ms", 86_400_000);
    let most = keys.number("max.cached.completed.user.tasks", 25, 0..=1_000_000);
    let kept: BTreeMap<Class, (i64, usize)> = [
        (Class::KafkaMonitor, "kafka.monitor"),
        (Class::EngineMonitor, "cruise.control.monitor"),
        (Class::KafkaAdmin, "kafka.admin"),
        (Class::EngineAdmin, "cruise.control.admin"),
    ]
    .into_iter()
    .map(|(class, name)| {
        let own_retention = keys.millis(&format!("completed.{name}.user.task.retention.time.ms"), retention);
        let own_most = keys.number(&format!("max.cached.completed.{name}.user.tasks"), most, 0..=1_000_000);
        (class, (own_retention, own_most))
    })
    .collect();
    tasks::Limits {
        active: keys.number("max.active.user.tasks", 5, 1..=1_000_000),
        session: keys.millis("webserver.session.maxExpiryTimeMs", 60_000),
        kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_settings(text: &str) -> Result<Read, Vec<Remark>> {
        let text = format!("bootstrap.servers=localhost:9092\n{text}");
        Settings::read(&Properties::read(&text, |_| None).unwrap())
    }

    fn errors(text: &str) -> Vec<String> {
        read_settings(text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn defaults_are_the_original_s() {
        let read = read_settings("").unwrap();
        assert_eq!(read.warnings, []);
        let settings = read.settings;
        assert_eq!(
            settings.monitor.windows,
            Layout { length: 3_600_000, kept: 5, enough: 3, may_be_stretched: 5, early: true }
        );
        assert_eq!(settings.goals.default, Goal::DEFAULT);
        assert_eq!(settings.goals.hard, Goal::DEFAULT[..7]);
        assert_eq!((settings.executor.limits.per_broker, settings.executor.throttle), (5, None));
        assert_eq!(settings.tasks.kept[&Class::KafkaAdmin], (86_400_000, 25));
    }

    #[test]
    fn everything_wrong_is_said_at_once() {
        assert_eq!(
            Settings::read(&Properties::default()).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["bootstrap.servers: is required"]
        );
        let said = errors(
            "num.partition.metrics.windows=many\ncpu.capacity.threshold=2\ndefault.goals=RackAwareGoal,DiskUsageGoal\n\
             hard.goals=CpuCapacityGoal\ndefault.replica.movement.strategies=Fastest\ntwo.step.verification.enabled=true",
        );
        assert_eq!(said.len(), 6, "{said:#?}");
        assert!(said.contains(&"hard.goals: CpuCapacityGoal is not among `default.goals`".to_owned()), "{said:#?}");
        assert!(said.contains(&"cpu.capacity.threshold: `2` is no number from 0 to 1".to_owned()), "{said:#?}");
    }

    #[test]
    fn what_is_not_built_is_named_and_what_would_be_unsafe_is_refused() {
        let read = read_settings(
            "concurrency.adjuster.leadership.enabled=true\nsome.plugin.of.mine=1\n\
             goals=com.linkedin.kafka.cruisecontrol.analyzer.goals.BrokerSetAwareGoal,RackAwareGoal\ndefault.goals=RackAwareGoal\n\
             metric.sampler.class=a.b.PrometheusMetricSampler",
        )
        .unwrap();
        let keys: Vec<&str> = read.warnings.iter().map(|warning| warning.key.as_str()).collect();
        assert_eq!(keys, ["metric.sampler.class", "goals", "concurrency.adjuster.leadership.enabled"]);
        assert_eq!(read.settings.goals.supported, [Goal::RackAware]);

        let others = read_settings(
            "broker.capacity.config.resolver.class=x.CloudResolver\nsample.store.class=x.y.KafkaSampleStore\n\
             proposal.expiration.ms=5\nrack.aware.goal.rack.id.mapper.class=x.Mapper",
        );
        let keys: Vec<String> = others.unwrap().warnings.into_iter().map(|warning| warning.key).collect();
        let wanted =
            ["broker.capacity.config.resolver.class", "proposal.expiration.ms", "rack.aware.goal.rack.id.mapper.class"];
        assert_eq!(keys, wanted);

        let replaced = read_settings(
            "optimization.options.generator.class=my.Generator\ndisk.failures.class=a.b.DiskFailures\n\
             goal.violations.class=MyViolations",
        );
        let said: Vec<String> = replaced.unwrap().warnings.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 2, "{said:#?}");
        assert!(said[0].starts_with("optimization.options.generator.class: Generator is not built"), "{said:#?}");

        let secured = "webserver.security.enable=true\nwebserver.security.provider=x.SpnegoSecurityProvider";
        assert_eq!(errors(secured).len(), 1);
    }

    #[test]
    fn what_is_watched_has_wider_bands_than_what_is_planned_for() {
        let goals = read_settings("goal.violation.distribution.threshold.multiplier=2.5").unwrap().settings.goals;
        assert_eq!(goals.detection_thresholds.distribution_threshold_multiplier, 2.5);
        assert_eq!(goals.thresholds.distribution_threshold_multiplier, 1.0);
    }

    #[test]
    fn classes_have_their_own_retention_where_it_is_given() {
        let settings =
            read_settings("completed.user.task.retention.time.ms=1000\nmax.cached.completed.kafka.admin.user.tasks=3")
                .unwrap()
                .settings;
        assert_eq!(settings.tasks.kept[&Class::KafkaAdmin], (1_000, 3));
        assert_eq!(settings.tasks.kept[&Class::KafkaMonitor], (1_000, 25));
    }
}
