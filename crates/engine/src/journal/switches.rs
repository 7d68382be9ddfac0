//! What people have switched by requests, so that a restart does not undo it.

use std::collections::BTreeMap;

use evenkeel_rest::parameter::AnomalyType;
use serde::{Deserialize, Serialize};

use super::{Entry, entry};

/// The key of their record.
pub(super) const KEY: &str = "switches";

/// The switches that differ from what the settings say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// By the name of the anomaly, whether it is mended without asking.
    #[serde(default)]
    healing: BTreeMap<String, Switched>,
    /// Why no samples are taken, if none are.
    #[serde(default)]
    pub paused: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Switched {
    /// What the settings said then: whoever changes them later means them.
    configured: bool,
    on: bool,
}

impl Switches {
    /// Remembers that somebody has switched the mending of a kind.
    pub fn heal(&mut self, kind: AnomalyType, configured: bool, on: bool) {
        self.healing.insert(kind.to_string(), Switched { configured, on });
    }

    /// How somebody has switched it, unless the settings have changed since.
    pub fn heals(&self, kind: AnomalyType, configured: bool) -> Option<bool> {
        let switched = self.healing.get(&kind.to_string()).filter(|it| it.configured == configured);
        switched.map(|it| it.on)
    }

    /// Its record.
    pub fn entry(&self) -> Entry {
        entry(KEY.to_owned(), self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_switched_holds_until_the_settings_change() {
        let mut switches = Switches::default();
        let kind = AnomalyType::BrokerFailure;
        assert_eq!(switches.heals(kind, true), None);
        switches.heal(kind, true, false);
        assert_eq!((switches.heals(kind, true), switches.heals(kind, false)), (Some(false), None));
    }
}
