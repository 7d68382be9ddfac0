//! The whole system in chaos: the API server, the operator with all its controllers, the engine and simulated brokers, in
//! paused time. Users change their minds and lay hands on everything, brokers fail, processes die at one of their calls, and
//! calls are refused and lost; then the weather clears, and the world must come to rest as users want it at last.
//!
//! A seed fixes the story, not how tasks take turns. A failure tells the seed, what is left of the story when all is left out
//! that it does not need, and everything that was seen.

mod chapters;
mod deeds;
mod end;
mod eyes;
mod lives;
mod story;

pub(crate) use end::unrest_of;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use evenkeel_testkit::story::shrunk;
use tokio::runtime::Builder;

use self::deeds::{Beginning, Chaos};
use self::eyes::History;
use self::story::{Deed, Modes, THEMES, Theme, story, story_of_edits};

/// How often a story that went wrong is told again to make it shorter.
const RETOLD: usize = 40;

/// So many failures are enough to look at.
const ENOUGH: usize = 3;

/// Which seeds are tried: more of them by `EVENKEEL_SEEDS`, which a soak sets, or one by `EVENKEEL_SEED`.
fn seeds() -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("EVENKEEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("EVENKEEL_SEEDS").unwrap_or(50),
    }
}

/// How a story went wrong.
struct Failure {
    what: String,
    log: Vec<String>,
}

/// Tells a story in a world of its own.
fn told_apart<T>(tell: impl AsyncFnOnce(&Kept) -> Result<T, String>) -> Result<T, Failure> {
    // Nothing of it is left when this is dropped.
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let history = Kept::default();
    let told = catch_unwind(AssertUnwindSafe(|| runtime.block_on(async { tell(&history).await })));
    let what = match told {
        Ok(Ok(told)) => return Ok(told),
        Ok(Err(what)) => what,
        Err(_) => "somebody panicked".to_owned(),
    };
    let history = history.into_inner().unwrap();
    let log = history.map(|it| std::mem::take(&mut it.lock().unwrap_or_else(|it| it.into_inner()).log));
    Err(Failure { what, log: log.unwrap_or_default() })
}

/// A history that outlives its story, if that got so far.
type Kept = Mutex<Option<Arc<Mutex<History>>>>;

/// Everything happens, the weather clears, and all comes to rest.
fn goes_wrong(seed: u64, deeds: &[Deed]) -> Option<Failure> {
    let beginning = Beginning { brokers: 3, modes: Modes::Scaling };
    told_apart(async |history| {
        let mut chaos = Chaos::begin(beginning, seed, history).await;
        chaos.play(deeds).await;
        chaos.clear().await;
        chaos.come_to_rest().await
    })
    .err()
}

/// Every theme has its own share of the seeds, and its own test, so that they are told side by side.
fn chaos_of(theme: Theme) {
    chaos(&format!("{theme:?}"), seeds().filter(|seed| Theme::of(*seed) == theme), story);
}

#[allow(
    clippy::print_stderr,
    reason = "what went wrong is told before it is shrunk, for whoever does not want to wait"
)]
fn chaos(theme: &str, seeds: impl Iterator<Item = u64>, story: fn(u64) -> Vec<Deed>) {
    let (mut told, mut failures) = (0, Vec::new());
    for seed in seeds {
        told += 1;
        let deeds = story(seed);
        let Some(failure) = goes_wrong(seed, &deeds) else { continue };
        let whole = deeds.len();
        let first = failure.what.clone();
        eprintln!("seed {seed}, {theme}: {first}\n\n{deeds:#?}\n\n{}", failure.log.join("\n"));
        let (deeds, failure) = shrunk(&deeds, failure, RETOLD, |deeds| goes_wrong(seed, deeds));
        failures.push(format!(
            "seed {seed}, {theme}: {first}\n\nof {whole} deeds these are left: {deeds:#?}\n\nwith them: {}\n\n{}",
            failure.what,
            failure.log.join("\n"),
        ));
        if failures.len() == ENOUGH {
            break;
        }
    }
    assert!(failures.is_empty(), "{} of {told} stories went wrong\n\n{}", failures.len(), failures.join("\n\n\n"));
}

#[test]
fn in_chaos_users_may_change_their_minds() {
    chaos_of(Theme::Minds);
}

#[test]
fn in_chaos_users_may_lay_hands_on_rebalances() {
    chaos_of(Theme::Hands);
}

#[test]
fn in_chaos_brokers_may_fail() {
    chaos_of(Theme::Brokers);
}

#[test]
fn in_chaos_processes_may_die() {
    chaos_of(Theme::Deaths);
}

#[test]
fn in_chaos_calls_may_be_refused_and_lost() {
    chaos_of(Theme::Weather);
}

/// Every seed has a story of this kind, too. As many are told as of each theme.
#[test]
fn in_chaos_users_may_edit_what_is_generated() {
    let all = seeds();
    let told = all.start..all.end.min(all.start + (all.end - all.start).div_ceil(THEMES.len() as u64));
    chaos("edits", told, story_of_edits);
}

#[test]
fn every_theme_has_its_tests_and_its_seeds() {
    let shares = THEMES.map(|theme| (0..50).filter(|seed| Theme::of(*seed) == theme).count());
    assert_eq!(shares, [10; 5]);
}
