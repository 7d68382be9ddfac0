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

fn table() -> String {
    let mut keys: BTreeMap<String, Meaning> = BTreeMap::new();
    for text in ASKING {
        keys.extend(Settings::asked_for(&Properties::read(text, |_| None).unwrap()));
    }
    assert!(keys.len() > 80, "only {} keys", keys.len());
    let mut table = "| key | values | default |\n|---|---|---|\n".to_owned();
    for (key, Meaning { default, values }) in keys {
        let default = default.filter(|default| !default.is_empty()).map(|default| format!("`{default}`"));
        table += &format!("| `{key}` | {} | {} |\n", values.unwrap_or_default(), default.unwrap_or_default());
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
