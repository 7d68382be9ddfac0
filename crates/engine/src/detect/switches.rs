//! Which kinds of anomalies are mended without asking, and how much of the time they were.

use std::collections::BTreeMap;

use evenkeel_rest::parameter::AnomalyType;

use super::Millis;

/// A switch for each kind; also for those that are not looked for yet, as callers may set them.
#[derive(Debug, Clone)]
pub struct Switches {
    began: Millis,
    by_type: BTreeMap<AnomalyType, Switch>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Switch {
    /// Since when it is on.
    on_since: Option<Millis>,
    /// How long it was on before that.
    before: Millis,
}

impl Switches {
    /// From now on, with these on.
    pub fn new(on: impl IntoIterator<Item = AnomalyType>, now: Millis) -> Switches {
        let mut by_type: BTreeMap<AnomalyType, Switch> =
            AnomalyType::ALL.iter().map(|kind| (*kind, Switch::default())).collect();
        for kind in on {
            by_type.insert(kind, Switch { on_since: Some(now), before: 0 });
        }
        Switches { began: now, by_type }
    }

    /// Whether this kind is mended without asking.
    pub fn is_on(&self, kind: AnomalyType) -> bool {
        self.by_type.get(&kind).is_some_and(|switch| switch.on_since.is_some())
    }

    /// Sets one; says how it was.
    pub fn set(&mut self, kind: AnomalyType, on: bool, now: Millis) -> bool {
        let switch = self.by_type.entry(kind).or_default();
        let was = switch.on_since;
        match was {
            None if on => switch.on_since = Some(now),
            Some(since) if !on => *switch = Switch { on_since: None, before: switch.before + (now - since) },
            _ => {}
        }
        was.is_some()
    }

    /// How much of the time it was on, from 0 to 1.
    pub fn ratio(&self, kind: AnomalyType, now: Millis) -> f64 {
        let Some(switch) = self.by_type.get(&kind) else { return 0.0 };
        let on = switch.before + switch.on_since.map_or(0, |since| now - since);
        match now - self.began {
            whole if whole > 0 => on as f64 / whole as f64,
            _ => f64::from(u8::from(switch.on_since.is_some())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_say_how_they_were_and_how_long() {
        let (violation, failure) = (AnomalyType::GoalViolation, AnomalyType::BrokerFailure);
        let mut switches = Switches::new([failure], 1_000);
        assert_eq!((switches.ratio(failure, 1_000), switches.ratio(violation, 1_000)), (1.0, 0.0));
        assert!(!switches.set(violation, true, 1_100));
        assert!(switches.set(violation, true, 1_150), "already on");
        assert!(switches.set(violation, false, 1_200));
        assert!(!switches.set(violation, true, 1_300));
        assert_eq!(switches.ratio(violation, 1_400), 0.5);
        assert!(switches.is_on(violation) && switches.is_on(failure) && !switches.is_on(AnomalyType::DiskFailure));
    }
}
