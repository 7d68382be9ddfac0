//! The crash harness over the chapters of the tour that brokers come and go in, or load drifts: the operator or the engine
//! dies just before or just after one of its calls, to Kubernetes, to the engine or to Kafka, and all comes to the same end. The
//! engine writes to Kubernetes what its detectors find, and nothing else.
//!
//! A chapter is told once in peace, and every call is written down with the state that the machine was in: what the operator
//! has last written of the Kafka or of a KafkaRebalance. Of calls that are the same in the same state the first counts. A soak
//! leaves none of these out, and dies before and after each; every run of the tests takes some, from all over the chapter.

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_api::KafkaRebalance;
use tokio::time::{Instant, sleep, timeout};

use super::deeds::{Beginning, Chaos};
use super::story::{Deed, Modes, Pool};
use super::{ENOUGH, told_apart};
use crate::play::REMOVE;

/// Deaths that are tried of each kind, unless a soak asks for all: of the operator at its writes and questions, of the
/// operator at its calls to Kafka, of the engine at its calls to Kafka, of the engine when it is asked, of the engine at its
/// writes.
const TRIED: [usize; 5] = [4, 1, 2, 2, 2];
/// For so long it is waited for the moment from which on the engine's calls are counted.
const BEGUN_WITHIN: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Chapter {
    /// 4: three brokers become five.
    Up,
    /// 5: five become three.
    Down,
    /// 6: one comes while another one goes.
    Both,
    /// 7: load drifts.
    Imbalance,
    /// 8: the engine is killed while data moves, whoever dies besides.
    Killed,
}

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Whom {
    /// The operator, at a write or a question to the engine.
    Operator,
    /// The operator, at a call to Kafka.
    OperatorAtKafka,
    /// The engine, at a call to Kafka after it was first asked for something.
    EngineAtKafka,
    /// The engine, at a question of the operator.
    EngineAsked,
    /// The engine, at a write to Kubernetes.
    EngineWriting,
}

const ALL: [Whom; 5] =
    [Whom::Operator, Whom::OperatorAtKafka, Whom::EngineAtKafka, Whom::EngineAsked, Whom::EngineWriting];

/// A death: at a call, counted from 0, before it or after.
#[derive(Clone, Copy, Debug)]
struct Doom {
    whom: Whom,
    call: usize,
    after: bool,
}

/// A call, by what it is and by the state that the machine was in.
type Call = (String, String);

/// Calls of a chapter that was told in peace.
#[derive(Debug, Default)]
struct Calls {
    operator: Vec<Call>,
    to_kafka: Vec<Call>,
    of_engine: Vec<Call>,
    asked: Vec<Call>,
    written_by_engine: Vec<Call>,
}

impl Calls {
    fn of(&self, whom: Whom) -> &[Call] {
        match whom {
            Whom::Operator => &self.operator,
            Whom::OperatorAtKafka => &self.to_kafka,
            Whom::EngineAtKafka => &self.of_engine,
            Whom::EngineAsked => &self.asked,
            Whom::EngineWriting => &self.written_by_engine,
        }
    }
}

impl Chapter {
    fn beginning(self) -> Beginning {
        let (brokers, modes) = match self {
            Self::Up => (3, Modes::Scaling),
            Self::Down => (5, Modes::Scaling),
            Self::Both | Self::Killed => (4, Modes::Scaling),
            Self::Imbalance => (3, Modes::All),
        };
        Beginning { brokers, modes }
    }

    fn deeds(self) -> &'static [Deed] {
        match self {
            Self::Up => &[Deed::Scale(Pool::Brokers, 5)],
            Self::Down | Self::Killed => &[Deed::Scale(Pool::Brokers, 3)],
            Self::Both => &[Deed::Scale(Pool::More, 1), Deed::Scale(Pool::Brokers, 3)],
            Self::Imbalance => &[Deed::Topic, Deed::Topic, Deed::Topic],
        }
    }

    /// Brokers that hold data in the end.
    fn holders(self) -> BTreeSet<i32> {
        match self {
            Self::Up => (0..5).collect(),
            Self::Down | Self::Imbalance | Self::Killed => (0..3).collect(),
            Self::Both => BTreeSet::from([0, 1, 2, 4]),
        }
    }

    /// Tells it. What was called, if nobody was doomed.
    async fn tell(self, chaos: &mut Chaos, doom: Option<Doom>) -> Result<Calls, String> {
        let life = chaos.lives.present();
        // Until it is at rest the new operator looks around.
        sleep(Duration::from_secs(2)).await;
        let writing = chaos.play.room.at_kubernetes();
        match doom {
            Some(Doom { whom: Whom::Operator, call, after }) => life.fate.doom(Some(call), after),
            Some(Doom { whom: Whom::OperatorAtKafka, call, after }) => life.at_kafka.doom(1 + call, after),
            Some(Doom { whom: Whom::EngineAsked, call, after }) => {
                *life.until_engine_dies.lock().unwrap() = Some((call, after));
            }
            Some(Doom { whom: Whom::EngineWriting, call, after }) => writing.doom(Some(call), after),
            _ => {}
        }
        let (made, to_kafka) = (life.fate.made().len(), life.at_kafka.made().len());
        let written = writing.made().len();
        chaos.play(self.deeds()).await;
        let begun = async {
            while chaos.play.stage.api::<KafkaRebalance>().list(&Default::default()).await.unwrap().items.len() < 2 {
                sleep(Duration::from_millis(100)).await;
            }
        };
        // Whoever died before may have to be waited for; then there is nobody left to die.
        let has_begun = timeout(BEGUN_WITHIN, begun).await.is_ok();
        let engine = chaos.play.room.fate();
        let of_engine = engine.made().len();
        if let Some(Doom { whom: Whom::EngineAtKafka, call, after }) = doom.filter(|_| has_begun) {
            engine.doom(1 + call, after);
        }
        if self == Self::Killed {
            chaos
                .play
                .until("data moves", async |play| play.is_moving(REMOVE).await || play.holders().len() == 3)
                .await;
            chaos.play.room.kill();
        }
        if self == Self::Imbalance {
            let spread = async |play: &crate::play::Play| {
                play.machines.world().look(|cluster| {
                    let held = cluster.replicas_on(evenkeel_sim::BrokerId(2));
                    held.iter().any(|partition| partition.topic.starts_with("t-"))
                })
            };
            chaos.play.until("load is spread", spread).await;
        }
        chaos.come_to_rest().await?;
        let holders = chaos.play.holders();
        if holders != self.holders() {
            return Err(format!("data lies on {holders:?}"));
        }
        let by_operator = life.fate.timed();
        let with_states = |calls: Vec<(Instant, String)>| -> Vec<Call> {
            calls.into_iter().map(|(when, call)| (call, state_at(&by_operator, when))).collect()
        };
        // Kafka's calls have numbers.
        let keys = |calls: Vec<(Instant, i16)>, from: usize| {
            with_states(calls.into_iter().skip(from).map(|(when, key)| (when, key.to_string())).collect())
        };
        let written = writing.timed().into_iter().skip(written).map(|(when, call)| (when, plain(&call)));
        let operator = with_states_in_order(by_operator.iter().map(|(_, call)| call.as_str())).split_off(made);
        let asked = operator.iter().filter(|(call, _)| call.starts_with("engine ")).cloned().collect();
        Ok(Calls {
            asked,
            operator,
            to_kafka: keys(life.at_kafka.timed(), to_kafka),
            of_engine: keys(engine.timed(), of_engine),
            written_by_engine: with_states(written.collect()),
        })
    }
}

/// Names of pods and the like tell brokers apart, which does not matter here.
fn plain(call: &str) -> String {
    call.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Whether a call says where the machine stands from then on.
fn is_state(call: &str) -> bool {
    call.starts_with("PUT") && (call.contains("/kafkas/") || call.contains("/kafkarebalances/"))
}

/// Where the machine stood at a moment.
fn state_at(by_operator: &[(Instant, String)], when: Instant) -> String {
    let mut before = by_operator.iter().rev().skip_while(|(made, _)| *made > when);
    before.find(|(_, call)| is_state(call)).map(|(_, call)| plain(call)).unwrap_or_default()
}

/// The operator's own calls, one after the other.
fn with_states_in_order<'a>(calls: impl Iterator<Item = &'a str>) -> Vec<Call> {
    let mut state = String::new();
    let mut all = Vec::new();
    for call in calls {
        all.push((plain(call), state.clone()));
        if is_state(call) {
            state = plain(call);
        }
    }
    all
}

/// Numbers of calls to die at: of those that are the same in the same state of the machine, the first.
fn points(calls: &[Call]) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    calls.iter().enumerate().filter(|(_, call)| seen.insert(*call)).map(|(number, _)| number).collect()
}

/// So many of these, from all over.
fn some_of(all: &[usize], tried: usize) -> Vec<usize> {
    let tried = tried.min(all.len());
    (0..tried).map(|number| all[(2 * number + 1) * all.len() / (2 * tried)]).collect()
}

/// All deaths that are tried in a chapter.
fn dooms(calls: &Calls) -> Vec<Doom> {
    let is_soak = std::env::var_os("EVENKEEL_SEEDS").is_some();
    let mut dooms = Vec::new();
    for (whom, tried) in ALL.into_iter().zip(TRIED) {
        let points = points(calls.of(whom));
        let tried = if is_soak { points.len() } else { tried };
        for (number, call) in some_of(&points, tried).into_iter().enumerate() {
            // Both where there is time for both.
            let both = if is_soak { &[false, true][..] } else { &[[false], [true]][number % 2][..] };
            dooms.extend(both.iter().map(|after| Doom { whom, call, after: *after }));
        }
    }
    dooms
}

fn told(chapter: Chapter, doom: Option<Doom>) -> Result<Calls, String> {
    let told = told_apart(async |history| {
        let mut chaos = Chaos::begin(chapter.beginning(), 0, history).await;
        chapter.tell(&mut chaos, doom).await
    });
    told.map_err(|failure| format!("{chapter:?}, {doom:?}: {}\n\n{}", failure.what, failure.log.join("\n")))
}

#[allow(clippy::print_stdout, reason = "how many deaths there were is what whoever runs a soak wants to know")]
fn same_end(chapter: Chapter) {
    let calls = told(chapter, None).unwrap_or_else(|failure| panic!("{failure}"));
    for whom in ALL {
        let tried = whom != Whom::EngineWriting || chapter == Chapter::Imbalance;
        assert!(!tried || !calls.of(whom).is_empty(), "{whom:?} {calls:#?}");
    }
    assert!(points(&calls.operator).len() > 10, "{calls:#?}");
    let dooms = dooms(&calls);
    let failed = dooms.iter().filter_map(|doom| told(chapter, Some(*doom)).err()).take(ENOUGH);
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n\n"));
    let points = ALL.map(|whom| format!("{whom:?} {}", points(calls.of(whom)).len()));
    println!("{chapter:?}: {} deaths; distinct calls: {}", dooms.len(), points.join(", "));
}

#[test]
fn brokers_that_come_get_data_whoever_dies() {
    same_end(Chapter::Up);
}

#[test]
fn brokers_that_go_are_emptied_first_whoever_dies() {
    same_end(Chapter::Down);
}

#[test]
fn one_comes_while_another_one_goes_whoever_dies() {
    same_end(Chapter::Both);
}

#[test]
fn load_that_has_drifted_is_mended_whoever_dies() {
    same_end(Chapter::Imbalance);
}

#[test]
fn an_engine_killed_mid_run_goes_on_whoever_dies() {
    same_end(Chapter::Killed);
}

#[test]
fn calls_that_are_the_same_in_the_same_state_are_one_point() {
    let (idle, up) =
        ("PUT /x/kafkas/c/status \"Ready\" \"Idle\"", "PUT /x/kafkas/c/status \"Ready\" \"RebalanceOnScaleUp\"");
    let made = [
        "PATCH /x/pods/b-3",
        "PATCH /x/pods/b-4",
        idle,
        "PATCH /x/pods/b-3",
        "PATCH /x/pods/b-4",
        up,
        "PATCH /x/pods/b-5",
    ];
    assert_eq!(points(&with_states_in_order(made.into_iter())), [0, 2, 3, 5, 6]);
    assert_eq!(some_of(&[0, 2, 3, 5, 6], 2), [2, 5]);
    assert_eq!(some_of(&[0, 2, 3], 9), [0, 2, 3]);
}
