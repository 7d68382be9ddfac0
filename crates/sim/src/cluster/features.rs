//! What the cluster can do and has agreed on: features, their levels, and who may change them how.

use super::Cluster;
use crate::code::{Code, Refusal};

/// What brokers of one release support, and what is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name.
    pub name: &'static str,
    /// The levels that are supported.
    pub supported: (i16, i16),
    /// The level in force; none if it is off.
    pub level: i16,
}

/// How a feature is to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureChange {
    /// To a newer level.
    Upgrade,
    /// To an older one, if nothing is lost.
    SafeDowngrade,
    /// To an older one whatever is lost.
    UnsafeDowngrade,
}

/// The metadata version of 4.3: the newest, so there is no way up, and none down that loses nothing.
const METADATA_VERSION: (&str, (i16, i16), i16) = ("metadata.version", (7, 30), 30);
const ELIGIBLE_LEADERS: &str = "eligible.leader.replicas.version";

impl Cluster {
    /// All features.
    pub fn features(&self) -> [Feature; 2] {
        let (name, supported, level) = METADATA_VERSION;
        let eligible = i16::from(self.options.eligible_leader_replicas);
        [Feature { name, supported, level }, Feature { name: ELIGIBLE_LEADERS, supported: (0, 1), level: eligible }]
    }

    /// Changes levels: all that is asked for or nothing. With `dry_run` nothing in any case.
    pub fn update_features(
        &mut self,
        controller: i32,
        updates: &[(String, i16, Option<FeatureChange>)],
        dry_run: bool,
    ) -> Result<(), Refusal> {
        for (name, level, change) in updates {
            self.check_update(controller, name, *level, *change).map_err(|why| {
                Code::InvalidUpdateVersion.because(format!(
                    "The update failed for all features since the following feature had an error: {why}"
                ))
            })?;
        }
        if dry_run {
            return Ok(());
        }
        for (_, level, _) in updates.iter().filter(|(name, ..)| name == ELIGIBLE_LEADERS) {
            self.options.eligible_leader_replicas = *level > 0;
        }
        self.next_metadata_offset();
        Ok(())
    }

    /// Why not, if not.
    fn check_update(
        &self,
        controller: i32,
        name: &str,
        level: i16,
        change: Option<FeatureChange>,
    ) -> Result<(), String> {
        let invalid = |why: String| Err(format!("Invalid update version {level} for feature {name}. {why}"));
        let Some(change) = change else {
            return invalid("The controller does not support the given upgrade type.".to_owned());
        };
        if level < 0 {
            return invalid("A feature version cannot be less than 0.".to_owned());
        }
        let Some(known) = self.features().into_iter().find(|feature| feature.name == name) else {
            return invalid(match level {
                0 => format!("Feature {name} not found."),
                _ => format!("Local controller {controller} does not support this feature."),
            });
        };
        let (least, most) = known.supported;
        if !(least..=most).contains(&level) {
            return invalid(format!("Local controller {controller} only supports versions {least}-{most}"));
        }
        if level < known.level && change == FeatureChange::Upgrade {
            let how = "without setting the upgrade type to either safe or unsafe downgrade.";
            return invalid(format!("Can't downgrade the version of this feature {how}"));
        }
        if level > known.level && change != FeatureChange::Upgrade {
            return invalid("Can't downgrade to a newer version.".to_owned());
        }
        if level < known.level && name == METADATA_VERSION.0 {
            let why = match change {
                FeatureChange::UnsafeDowngrade => "Unsafe metadata downgrade is not supported in this version.",
                _ => "Refusing to perform the requested downgrade because it might delete metadata information.",
            };
            return Err(format!("Unsupported metadata.version downgrade from {} to {level}. {why}", known.level));
        }
        Ok(())
    }
}
