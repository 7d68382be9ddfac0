//! Bars on standard error while a large cluster is read or recorded, and planned, and only if that is a terminal.

use std::time::Duration;

use evenkeel_snapshot::Progress;
use indicatif::{ProgressBar, ProgressStyle};

const TICK: Duration = Duration::from_millis(200);

/// The bar of a file being read.
pub(super) struct Reading(ProgressBar);

impl Reading {
    pub(super) fn start() -> Reading {
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("reading    {wide_bar} {bytes} of {total_bytes}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Reading(bar)
    }

    pub(super) fn update(&self, progress: Progress) {
        // A pipe has no length; the bytes still count up.
        if let Some(total) = progress.total {
            self.0.set_length(total);
        }
        self.0.set_position(progress.read);
    }

    pub(super) fn finish(self) {
        self.0.finish_and_clear();
    }
}

/// A sign of life while a running cluster is looked at twice, or does not answer.
pub(crate) fn recording(addresses: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("recording  {spinner} {msg}, {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(crate::printable::line(addresses).into_owned());
    bar.enable_steady_tick(TICK);
    bar
}

/// A sign of life while the balancer, which knows no terminals, is at work.
pub(super) fn planning(replicas: usize) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("planning   {spinner} {msg}, {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(format!("{} replicas", super::units::count(replicas as u64)));
    bar.enable_steady_tick(TICK);
    bar
}
