//! While the spec of a Kafka is refused nothing begins: what it asks for is not known. What runs can be ended all the same.

use super::{Act, draft::ending};
use crate::auto_rebalance::{
    generated::{Generated, Phase, StopReason},
    observe::Brake,
    settings::Configured,
};

/// What ends what runs, if somebody pulls the brake or switches the feature off.
pub(crate) fn while_refused(generated: &[Generated], brake: &Brake, configured: &Configured) -> Vec<Act> {
    let why = match brake {
        Brake::Pulled => StopReason::Braked,
        Brake::Released | Brake::Unreadable(_) if configured.modes.is_empty() => StopReason::SwitchedOff,
        Brake::Released | Brake::Unreadable(_) => return Vec::new(),
    };
    let underway = generated.iter().filter(|own| own.phase() == Phase::Underway);
    underway.filter_map(|own| ending(own, why)).collect()
}
