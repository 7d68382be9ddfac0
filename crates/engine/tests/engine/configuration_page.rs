//! The table of all keys in `docs/configuration.md` is what the code reads.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use evenkeel_engine::config::Meaning;
use evenkeel_engine::config::properties::Properties;
use evenkeel_engine::config::settings::Settings;

/// Around what is written by this test.
const BEGIN: &str = "<!-- Written by `cargo xtask generate`. -->\n";
const END: &str = "<!-- So far. -->\n";

/// What makes the engine ask for more.
const ASKING: [&str; 7] = [
    "",
    "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.keystore.location=x\nssl.truststore.location=x",
    "webserver.ssl.enable=true\nwebserver.ssl.keystore.location=x\nwebserver.ssl.sts.enabled=true\n\
     webserver.http.cors.enabled=true\nwebserver.security.enable=true",
    "anomaly.notifier.class=SlackSelfHealingNotifier",
    "anomaly.notifier.class=MSTeamsSelfHealingNotifier",
    "anomaly.notifier.class=AlertaSelfHealingNotifier",
    "anomaly.notifier.class=StrimziCruiseControlNotifier",
];

/// Keys that are read, and make no difference: what they are about is not built.
const WITHOUT_EFFECT: [&str; 8] = [
    "self.healing.maintenance.event.enabled",
    "self.healing.metric.anomaly.enabled",
    "self.healing.topic.anomaly.enabled",
    "webserver.ssl.exclude.ciphers",
    "webserver.ssl.exclude.protocols",
    "webserver.ssl.include.ciphers",
    "webserver.ssl.include.protocols",
    "webserver.ui.diskpath",
];

fn table() -> String {
    let mut keys: BTreeMap<String, Meaning> = BTreeMap::new();
    for text in ASKING {
        keys.extend(Settings::asked_for(&Properties::read(text, |_| None).unwrap()));
    }
    assert!(keys.len() > 80, "only {} keys", keys.len());
    assert!(
        WITHOUT_EFFECT.iter().all(|key| keys.contains_key(*key)),
        "nobody reads one of {WITHOUT_EFFECT:?} any more"
    );
    let mut table = "| key | values | default |\n|---|---|---|\n".to_owned();
    for (key, Meaning { default, values }) in keys {
        let default = default.filter(|default| !default.is_empty()).map(|default| format!("`{default}`"));
        let values =
            if WITHOUT_EFFECT.contains(&key.as_str()) { "without effect" } else { values.as_deref().unwrap_or("") };
        table += &format!("| `{key}` | {values} | {} |\n", default.unwrap_or_default());
    }
    table
}

#[test]
fn the_committed_table_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let page = fs::read_to_string(&path).expect("docs/configuration.md can be read");
    let (before, rest) = page.split_once(BEGIN).expect("the table has a beginning");
    let (committed, after) = rest.split_once(END).expect("the table has an end");
    let fresh = table();
    if env::var_os("EVENKEEL_BLESS").is_some() {
        fs::write(&path, [before, BEGIN, &fresh, END, after].concat()).expect("docs/configuration.md can be written");
        return;
    }
    assert!(committed == fresh, "docs/configuration.md is stale: run `cargo xtask generate`, and commit it");
}
