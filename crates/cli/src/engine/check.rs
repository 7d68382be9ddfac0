//! What the files come to, in words: for `--check`.

use std::fmt::Write;
use std::path::Path;

use evenkeel_balancer::goal::Goal;
use evenkeel_engine::config::capacity::Disk;
use evenkeel_engine::config::settings::Source;
use evenkeel_engine::files::Files;

use crate::printable;

/// The whole text.
pub(super) fn explained(config: &Path, files: &Files) -> String {
    let Files { settings, capacities, warnings } = files;
    let mut text = String::new();
    let mut line = |name: &str, what: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<12} {}", printable::line(&what));
    };
    line("file", format!("{} can be used", config.display()));
    let connection = &settings.connection;
    let addresses: Vec<String> = connection.bootstrap.iter().map(ToString::to_string).collect();
    let by = match (&connection.tls, &connection.credentials) {
        (None, None) => "plain",
        (Some(_), None) => "TLS",
        (None, Some(_)) => "a password, without TLS",
        (Some(_), Some(_)) => "a password, over TLS",
    };
    line("Kafka", format!("{} by {by}", addresses.join(", ")));
    let web = &settings.webserver;
    let scheme = if web.tls.is_some() { "https" } else { "http" };
    let who = if web.credentials.is_some() { "users of the credentials file" } else { "everybody" };
    line("API", format!("{scheme}://{}:{}{}/ for {who}", web.address, web.port, web.prefix));
    let monitor = &settings.monitor;
    let from = match monitor.source {
        Source::Automatic => "the reporter's topic if it is there, else from outside",
        Source::Reporter => "the reporter's topic",
        Source::ZeroTouch => "from outside",
    };
    let windows = &monitor.windows;
    line(
        "loads",
        format!(
            "{from}; every {}, {} windows of {}",
            duration(monitor.interval),
            windows.kept,
            duration(windows.length)
        ),
    );
    let listed = capacities.listed.len();
    let rest = if capacities.default.is_some() { "a default for the others" } else { "none for the others" };
    let by_dir = capacities.listed.values().chain(&capacities.default).any(|it| matches!(it.disk, Disk::Dirs(_)));
    let dirs = if by_dir { ", disks by log directory" } else { "" };
    line("capacities", format!("{listed} brokers listed, {rest}{dirs}"));
    line("goals", names(&settings.goals.default));
    line("hard goals", names(&settings.goals.hard));
    line("watched", names(&settings.goals.detection));
    let told = settings.detectors.channels.iter().map(|channel| channel.name().to_owned());
    let map = settings.detectors.map_of.iter().map(|cluster| format!("ConfigMap {}-goal-violation-map", cluster.name));
    let told: Vec<String> = told.chain(map).collect();
    line("tells", if told.is_empty() { "nobody but the log".to_owned() } else { told.join(", ") });
    for warning in warnings {
        line("warning", format!("{}: {}", warning.key, warning.text));
    }
    text
}

fn names(goals: &[Goal]) -> String {
    let names: Vec<&str> = goals.iter().map(|goal| goal.name()).collect();
    names.join(", ")
}

/// Milliseconds as people say them.
fn duration(millis: i64) -> String {
    match millis {
        it if it % 3_600_000 == 0 => format!("{} h", it / 3_600_000),
        it if it % 60_000 == 0 => format!("{} min", it / 60_000),
        it if it % 1_000 == 0 => format!("{} s", it / 1_000),
        it => format!("{it} ms"),
    }
}
