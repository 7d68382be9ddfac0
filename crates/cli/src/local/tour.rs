//! `evenkeel local --tour`: the story of the whole system, told while it happens, with its promises checked.

mod backstage;
mod brokers;
mod chapters;
mod guide;
mod seen;
mod show;

use std::io::{self, IsTerminal, Stdout};
use std::time::Instant;

pub(crate) use self::backstage::Backstage;
use self::chapters::TITLES;
pub(crate) use self::guide::Guide;
pub(crate) use self::show::Show;
use crate::misuse::Misuse;

/// How the tour is given.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Play the whole story by itself, check its promises, and end.
    #[arg(long)]
    pub(crate) tour: bool,
    /// Stop after this chapter; those before it are played, since it stands on them.
    #[arg(long, value_name = "N", requires = "tour")]
    chapter: Option<usize>,
    /// Wait for Enter before each chapter.
    #[arg(long, requires = "tour")]
    pause: bool,
}

impl Options {
    /// The last chapter to play.
    pub(crate) fn last(&self) -> Result<usize, Misuse> {
        match self.chapter {
            None => Ok(TITLES.len()),
            Some(number) if (1..=TITLES.len()).contains(&number) => Ok(number),
            Some(number) => {
                Err(Misuse::Local { what: format!("--chapter {number}: there are chapters 1 to {}", TITLES.len()) })
            }
        }
    }

    pub(crate) fn pauses(&self) -> bool {
        self.pause
    }
}

/// Where the tour is shown: standard output, lively if that is a terminal and nobody asked for plain text.
pub(crate) fn show() -> Show<Stdout> {
    let plain = std::env::var_os("NO_COLOR").is_some() || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let lively = io::stdout().is_terminal() && !plain;
    Show::new(io::stdout(), lively)
}

/// Plays the chapters up to `last`. An error is a promise that was not kept, or that could not be looked at.
pub(crate) async fn play(guide: &mut Guide<Stdout>, last: usize) -> anyhow::Result<()> {
    let begun = Instant::now();
    for (number, title) in (1..=last).zip(TITLES) {
        guide.heading(&format!("Chapter {number}: {title}")).await?;
        chapters::play(number, guide).await?;
    }
    let (kept, seconds) = (guide.kept(), begun.elapsed().as_secs());
    guide.tell("")?;
    guide.tell(&format!("All {kept} promises of {last} chapters were kept, in {seconds} s."))?;
    Ok(())
}
