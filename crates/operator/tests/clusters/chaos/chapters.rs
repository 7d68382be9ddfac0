//! The crash harness over the chapters of the tour that brokers come and go in, or load drifts: the operator or the engine
//! dies just before or just after one of its calls, to Kubernetes, to the engine or to Kafka, and all comes to the same end. The
//! engine writes to Kubernetes what its detectors find, and nothing else.
//!
//! A chapter is told once in peace. Of the operator's calls that are the same in the same state of the machine the first
//! counts; calls to Kafka, of which there are many alike, are taken from all over the chapter. A soak leaves none of the former
//! out.

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_api::KafkaRebalance;
use tokio::time::{sleep, timeout};

use super::deeds::{Beginning, Chaos};
use super::story::{Deed, Modes, Pool};
use super::told_apart;
use crate::play::REMOVE;

/// Deaths that are tried of each kind, unless a soak asks for more: of the operator at its writes and questions, of the
/// operator at its calls to Kafka, of the engine at its calls to Kafka, of the engine when it is asked, of the engine at its
/// writes.
const TRIED: [usize; 5] = [4, 1, 2, 2, 2];
/// The same in a soak; of the first kind and the last all.
const TRIED_IN_SOAK: [usize; 5] = [usize::MAX, 24, 48, 48, usize::MAX];
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

/// Calls of a chapter that was told in peace.
#[derive(Debug, Default)]
struct Calls {
    operator: Vec<String>,
    to_kafka: usize,
    of_engine: usize,
    asked: usize,
    written_by_engine: usize,
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
                play.machines.world.look(|cluster| {
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
        let operator = life.fate.made().split_off(made);
        let asked = operator.iter().filter(|call| call.starts_with("engine ")).count();
        let of_engine = engine.made().len() - of_engine;
        let to_kafka = life.at_kafka.made().len() - to_kafka;
        Ok(Calls { to_kafka, of_engine, asked, written_by_engine: writing.made().len() - written, operator })
    }
}

/// Numbers of calls to die at: of those that are the same in the same state of the machine, the first.
fn points(made: &[String]) -> Vec<usize> {
    // Names of pods and the like tell brokers apart, which does not matter here.
    let plain = |call: &str| call.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let (mut seen, mut state) = (BTreeSet::new(), String::new());
    let mut points = Vec::new();
    for (number, call) in made.iter().enumerate() {
        let call = plain(call);
        if seen.insert((state.clone(), call.clone())) {
            points.push(number);
        }
        if call.starts_with("PUT") && (call.contains("/kafkas/") || call.contains("/kafkarebalances/")) {
            state = call;
        }
    }
    points
}

/// So many of these, from all over.
fn some_of(all: &[usize], tried: usize) -> Vec<usize> {
    let tried = tried.min(all.len());
    (0..tried).map(|number| all[(2 * number + 1) * all.len() / (2 * tried)]).collect()
}

/// All deaths that are tried in a chapter.
fn dooms(calls: &Calls) -> Vec<Doom> {
    let is_soak = std::env::var_os("EVENKEEL_SEEDS").is_some();
    let tried = if is_soak { TRIED_IN_SOAK } else { TRIED };
    let every = |number: usize| (0..number).collect::<Vec<_>>();
    let of = |whom: Whom| match whom {
        Whom::Operator => points(&calls.operator),
        Whom::OperatorAtKafka => every(calls.to_kafka),
        Whom::EngineAtKafka => every(calls.of_engine),
        Whom::EngineAsked => every(calls.asked),
        Whom::EngineWriting => every(calls.written_by_engine),
    };
    let mut dooms = Vec::new();
    for (whom, tried) in ALL.into_iter().zip(tried) {
        for (number, call) in some_of(&of(whom), tried).into_iter().enumerate() {
            // Both where there is time for both.
            let both = if is_soak { &[false, true][..] } else { &[[false], [true]][number % 2][..] };
            dooms.extend(both.iter().map(|after| Doom { whom, call, after: *after }));
        }
    }
    dooms
}

fn told(chapter: Chapter, doom: Option<Doom>) -> Calls {
    let told = told_apart(async |history| {
        let mut chaos = Chaos::begin(chapter.beginning(), 0, history).await;
        chapter.tell(&mut chaos, doom).await
    });
    told.unwrap_or_else(|failure| panic!("{chapter:?}, {doom:?}: {}\n\n{}", failure.what, failure.log.join("\n")))
}

fn same_end(chapter: Chapter) {
    let calls = told(chapter, None);
    assert!(points(&calls.operator).len() > 10, "{calls:#?}");
    assert!(calls.to_kafka > 0 && calls.of_engine > 0 && calls.asked > 0, "{calls:#?}");
    assert!(chapter != Chapter::Imbalance || calls.written_by_engine > 0, "{calls:#?}");
    for doom in dooms(&calls) {
        told(chapter, Some(doom));
    }
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
    assert_eq!(points(&made.map(str::to_owned)), [0, 2, 3, 5, 6]);
    assert_eq!(some_of(&[0, 2, 3, 5, 6], 2), [2, 5]);
    assert_eq!(some_of(&[0, 2, 3], 9), [0, 2, 3]);
}
