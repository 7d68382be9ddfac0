//! What happens in a story of chaos: a list of deeds, which a seed chooses. Pure: the same seed tells the same story.

use evenkeel_testkit::story::Chance;

/// How long an operator waits for a pod before it says that the Kafka is not ready, in seconds.
const OPERATION_TIMEOUT: u64 = 300;

/// One thing that happens. Where it has to be somebody, a number chooses among those who are there by then, so that a story
/// of which parts are left out is still one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Deed {
    /// So many tenths of a second pass.
    Wait(u64),
    /// A pool is to have so many brokers.
    Scale(Pool, i32),
    /// These modes are switched on, and no others.
    Modes(Modes),
    /// Automatic rebalancing is held, or goes on.
    Brake(bool),
    /// The Kafka is left alone, or looked after again.
    Pause(bool),
    /// The generated rebalance is left alone, or looked after again.
    PauseRun(bool),
    /// Something becomes of the template.
    Template(Template),
    /// A word to a rebalance.
    Say(Whose, Word),
    /// A rebalance is deleted.
    Delete(Whose),
    /// The generated rebalance is deleted, and its finalizers are torn off.
    Tear,
    /// Somebody edits what automatic rebalancing has made.
    Edit(Edit),
    /// The engine is not wanted any more, or is wanted again.
    Engine(bool),
    /// A user asks for a rebalance.
    Manual { approved: bool },
    /// A topic is made that lies on two brokers only.
    Topic,
    /// A broker is killed, and is back after so many seconds.
    Crash { broker: usize, seconds: u64 },
    /// A broker is cut off for so many seconds.
    CutOff { broker: usize, seconds: u64 },
    /// The pod of a broker is deleted.
    DeletePod(usize),
    /// The operator is killed, and nobody is there for so many seconds: longer than anybody waits for a pod.
    OperatorAway { seconds: u64 },
    /// The operator dies at one of its calls to Kubernetes or to the engine, before or after it: so many from now.
    OperatorDies { calls: usize, after: bool },
    /// The same at a call to Kafka.
    OperatorDiesAtKafka { calls: usize, after: bool },
    /// The engine dies at a call to Kafka.
    EngineDies { calls: usize, after: bool },
    /// From now on writes are refused, answers get lost, and watches break off; or no more.
    Weather(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pool {
    Brokers,
    More,
}

impl Pool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Brokers => "brokers",
            Self::More => "more",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Modes {
    None,
    Add,
    Remove,
    Scaling,
    /// The same without their template: with whatever goals the engine has.
    Bare,
    All,
}

impl Modes {
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Add => &["add-brokers"],
            Self::Remove => &["remove-brokers"],
            Self::Scaling | Self::Bare => &["add-brokers", "remove-brokers"],
            Self::All => &["add-brokers", "remove-brokers", "imbalance"],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Template {
    Gone,
    Unmarked,
    OtherGoals,
    /// A goal that there is not: nothing can be planned with it.
    NoGoals,
    /// Moves take longer.
    Throttled,
    Usual,
}

/// What may be edited. Not the brokers of a rebalance: whoever names others gets those.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Edit {
    /// The rebalance is not approved by itself any more.
    Approval,
    /// By its label it is nobody's.
    Label,
    /// It has other goals.
    Goals,
    /// What is remembered cannot be read any more.
    Damage,
    /// By its label it is nobody's.
    Unlabel,
    /// It is deleted.
    Forget,
    /// Somebody else holds the rebalance, for as long as the bad weather lasts.
    Hold,
    /// By its label the map of violated goals is nobody's.
    UnlabelMap,
}

const EDITS: [Edit; 8] =
    [Edit::Approval, Edit::Label, Edit::Goals, Edit::Damage, Edit::Unlabel, Edit::Forget, Edit::Hold, Edit::UnlabelMap];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Whose {
    /// The one that automatic rebalancing has made.
    Generated,
    /// A user's.
    Manual,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Word {
    Approve,
    Stop,
    Refresh,
}

impl Word {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Stop => "stop",
            Self::Refresh => "refresh",
        }
    }
}

/// What a story is about most. In all of them brokers come and go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Theme {
    /// Users change their minds.
    Minds,
    /// Users lay hands on rebalances.
    Hands,
    /// Brokers fail.
    Brokers,
    /// Processes die.
    Deaths,
    /// Calls are refused and lost, and all else happens, too.
    Weather,
}

pub(crate) const THEMES: [Theme; 5] = [Theme::Minds, Theme::Hands, Theme::Brokers, Theme::Deaths, Theme::Weather];

impl Theme {
    pub(crate) fn of(seed: u64) -> Self {
        THEMES[(seed % THEMES.len() as u64) as usize]
    }
}

/// Kinds of deeds, to be chosen among.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Scale,
    Mind,
    Hand,
    Broker,
    Death,
}

/// The story of a seed.
pub(crate) fn story(seed: u64) -> Vec<Deed> {
    let (theme, mut chance) = (Theme::of(seed), Chance::new(seed));
    let kinds = match theme {
        Theme::Minds => [(Kind::Scale, 4), (Kind::Mind, 6), (Kind::Hand, 1), (Kind::Broker, 0), (Kind::Death, 0)],
        Theme::Hands => [(Kind::Scale, 3), (Kind::Mind, 1), (Kind::Hand, 6), (Kind::Broker, 0), (Kind::Death, 0)],
        Theme::Brokers => [(Kind::Scale, 3), (Kind::Mind, 1), (Kind::Hand, 1), (Kind::Broker, 6), (Kind::Death, 1)],
        Theme::Deaths => [(Kind::Scale, 3), (Kind::Mind, 1), (Kind::Hand, 1), (Kind::Broker, 1), (Kind::Death, 6)],
        Theme::Weather => [(Kind::Scale, 3), (Kind::Mind, 2), (Kind::Hand, 2), (Kind::Broker, 2), (Kind::Death, 2)],
    };
    let mut deeds = Vec::new();
    if theme == Theme::Weather {
        deeds.push(Deed::Weather(true));
    }
    deeds.push(scale(&mut chance));
    for _ in 0..5 + chance.below(5) {
        deeds.push(wait(&mut chance));
        deeds.push(match chance.weighed(&kinds).unwrap_or(Kind::Scale) {
            Kind::Scale => scale(&mut chance),
            Kind::Mind => mind(&mut chance),
            Kind::Hand => hand(&mut chance),
            Kind::Broker => broker(&mut chance),
            Kind::Death => death(&mut chance),
        });
    }
    deeds.push(wait(&mut chance));
    deeds
}

/// Another story of a seed: brokers come and go, users lay hands on what is generated, and edit it.
pub(crate) fn story_of_edits(seed: u64) -> Vec<Deed> {
    let mut chance = Chance::new(seed);
    // In turns, so that a few stories have all of them.
    let mut edits = EDITS.into_iter().cycle().skip(3 * (seed as usize % EDITS.len()));
    let kinds = [(None, 5), (Some(Kind::Scale), 3), (Some(Kind::Mind), 2), (Some(Kind::Hand), 1)];
    let mut deeds = vec![scale(&mut chance)];
    for _ in 0..5 + chance.below(5) {
        deeds.push(wait(&mut chance));
        deeds.push(match chance.weighed(&kinds).flatten() {
            Some(Kind::Mind) => mind(&mut chance),
            Some(Kind::Hand) => hand(&mut chance),
            Some(_) => scale(&mut chance),
            None => edit(&mut chance, &mut edits),
        });
    }
    deeds.push(wait(&mut chance));
    deeds
}

fn edit(chance: &mut Chance, edits: &mut impl Iterator<Item = Edit>) -> Deed {
    match edits.next().filter(|_| !chance.once_in(4)) {
        None => Deed::Engine(chance.once_in(2)),
        Some(edit) => Deed::Edit(edit),
    }
}

/// Some things happen at once; most take a while to be noticed, and data takes a while to move.
fn wait(chance: &mut Chance) -> Deed {
    Deed::Wait(if chance.once_in(3) { chance.below(20) } else { 30 + chance.below(300) })
}

/// Three brokers always stay: journals and samples have as many replicas.
fn scale(chance: &mut Chance) -> Deed {
    match chance.once_in(2) {
        true => Deed::Scale(Pool::Brokers, 3 + chance.below(3) as i32),
        false => Deed::Scale(Pool::More, chance.below(3) as i32),
    }
}

fn mind(chance: &mut Chance) -> Deed {
    match chance.below(8) {
        0 => Deed::Brake(true),
        1 => Deed::Brake(false),
        2 => Deed::Pause(true),
        3 => Deed::Pause(false),
        4 | 5 => {
            let among = [
                (Modes::None, 1),
                (Modes::Add, 1),
                (Modes::Remove, 1),
                (Modes::Scaling, 2),
                (Modes::Bare, 1),
                (Modes::All, 3),
            ];
            Deed::Modes(chance.weighed(&among).unwrap_or(Modes::All))
        }
        _ => {
            let among = [
                (Template::Gone, 1),
                (Template::Unmarked, 1),
                (Template::OtherGoals, 1),
                (Template::NoGoals, 1),
                (Template::Throttled, 1),
                (Template::Usual, 2),
            ];
            Deed::Template(chance.weighed(&among).unwrap_or(Template::Usual))
        }
    }
}

fn hand(chance: &mut Chance) -> Deed {
    let whose = if chance.once_in(3) { Whose::Manual } else { Whose::Generated };
    match chance.below(9) {
        0 | 1 => Deed::Say(whose, Word::Stop),
        2 => Deed::Say(whose, Word::Refresh),
        3 => Deed::Say(Whose::Manual, Word::Approve),
        4 => Deed::Delete(whose),
        5 => Deed::Tear,
        6 => Deed::Manual { approved: chance.once_in(2) },
        7 => Deed::PauseRun(chance.once_in(2)),
        _ => Deed::Topic,
    }
}

/// Mostly for a moment, and at times for longer than anybody waits for a pod.
fn seconds(chance: &mut Chance) -> u64 {
    if chance.once_in(6) { OPERATION_TIMEOUT + chance.below(120) } else { 1 + chance.below(40) }
}

fn broker(chance: &mut Chance) -> Deed {
    let (broker, seconds) = (chance.below(8) as usize, seconds(chance));
    match chance.below(3) {
        0 => Deed::Crash { broker, seconds },
        1 => Deed::CutOff { broker, seconds },
        _ => Deed::DeletePod(broker),
    }
}

fn death(chance: &mut Chance) -> Deed {
    let (calls, after) = (chance.below(12) as usize, chance.once_in(2));
    match chance.below(5) {
        0 | 1 => Deed::OperatorDies { calls, after },
        4 => Deed::OperatorAway { seconds: seconds(chance) },
        2 => Deed::OperatorDiesAtKafka { calls: 1 + calls, after },
        // It speaks with Kafka all the time.
        _ => Deed::EngineDies { calls: 1 + calls * 10, after },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_same_seed_tells_the_same_story() {
        for seed in 0..20 {
            assert_eq!(story(seed), story(seed));
        }
        assert_ne!(story(0), story(5), "of the same theme");
    }

    #[test]
    fn every_story_scales_and_keeps_three_brokers() {
        for seed in 0..500 {
            let scaled: Vec<(Pool, i32)> = story(seed)
                .into_iter()
                .filter_map(|deed| match deed {
                    Deed::Scale(pool, replicas) => Some((pool, replicas)),
                    _ => None,
                })
                .collect();
            assert!(!scaled.is_empty(), "seed {seed}");
            let few = |(pool, replicas): &(Pool, i32)| *pool == Pool::Brokers && *replicas < 3;
            assert!(!scaled.iter().any(few), "seed {seed}");
        }
    }

    /// A kind of deed that no seed chooses would be tried by nobody.
    #[test]
    fn fifty_stories_have_every_kind_of_deed() {
        let kind = |deed: &Deed| format!("{deed:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
        let kinds: BTreeSet<String> = (0..50).flat_map(story).map(|deed| kind(&deed)).collect();
        assert_eq!(kinds.len(), 20, "{kinds:?}");
    }

    #[test]
    fn ten_stories_of_edits_have_every_edit() {
        let deeds: Vec<Deed> = (0..10).flat_map(story_of_edits).collect();
        let all = EDITS.map(Deed::Edit).into_iter().chain([Deed::Engine(false), Deed::Engine(true)]);
        let missing: Vec<Deed> = all.filter(|deed| !deeds.contains(deed)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
