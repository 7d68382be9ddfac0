//! The engine's two files. Everything that is wrong with them is said at once.

use std::fs;
use std::path::Path;

use evenkeel_engine::config::Remark;
use evenkeel_engine::config::capacity::Capacities;
use evenkeel_engine::config::properties::Properties;
use evenkeel_engine::config::settings::{Read, Settings};

use crate::misuse::Misuse;

/// What they say.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) settings: Settings,
    pub(super) capacities: Capacities,
    pub(super) warnings: Vec<Remark>,
}

impl Files {
    /// Reads the properties, and the capacities that they name.
    pub(super) fn read(config: &Path) -> anyhow::Result<Files> {
        let text = read(config)?;
        let properties = Properties::read(&text, |name| std::env::var(name).ok()).map_err(|why| wrong(config, &why))?;
        let Read { settings, warnings } = Settings::read(&properties).map_err(|remarks| {
            let all: Vec<String> = remarks.iter().map(|remark| format!("{} {}", remark.key, remark.text)).collect();
            Misuse::Configuration { what: format!("{}: {}", config.display(), all.join("; ")) }
        })?;
        let Some(capacity_file) = &settings.capacity_file else {
            let what = format!(
                "{}: capacity.config.file is required: it names the file that says what brokers can carry",
                config.display()
            );
            return Err(Misuse::Configuration { what }.into());
        };
        let capacities = Capacities::read(&read(capacity_file)?).map_err(|why| wrong(capacity_file, &why))?;
        Ok(Files { settings, capacities, warnings })
    }
}

fn read(path: &Path) -> Result<String, Misuse> {
    fs::read_to_string(path).map_err(|why| wrong(path, &why))
}

fn wrong(path: &Path, why: &dyn std::error::Error) -> Misuse {
    let cause = why.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    Misuse::Configuration { what: format!("{}: {why}{cause}", path.display()) }
}
