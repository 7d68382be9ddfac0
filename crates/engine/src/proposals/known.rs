//! What is said of what is known, and of what is not.

use evenkeel_kafka::BrokerId;
use evenkeel_rest::Failure;

use crate::{executor::Baseline, monitor::windows::NotEnough, watch::Sighting};

/// What is wrong already, and so holds nothing up.
pub(super) fn baseline(seen: &Sighting) -> Baseline {
    Baseline { up: seen.up().map(BrokerId).collect(), short: seen.short().cloned().collect() }
}

/// That too little is known, in the words that clients wait on.
pub fn not_enough(why: &NotEnough) -> Failure {
    match why {
        // The window being filled is not asked for.
        NotEnough::NoWindow { now, newest, oldest } => Failure::no_window(-1, *now, (1, newest - 1), *newest, *oldest),
        NotEnough::TooFew { valid, wanted, ratio, now } => {
            let options = format!("(minValidEntityRatio={ratio:.2}, minValidWindows={wanted})");
            Failure::too_few_windows(*valid, -1, *now, options)
        }
    }
}
