//! A command line that cannot be understood is said in one line, as everything else that goes wrong.

use clap::error::ErrorKind;

/// What clap has to say, in one line with where to read on; nothing if it was asked for help and should just print that.
pub(crate) fn complaint(error: &clap::Error, subcommand: Option<&str>) -> Option<String> {
    let help_was_asked_for = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if help_was_asked_for {
        return None;
    }
    let command = subcommand.map(|name| format!(" {name}")).unwrap_or_default();
    Some(format!("{}; evenkeel{command} --help tells more", in_one_line(&error.render().to_string())))
}

/// The paragraphs before the usage, joined.
fn in_one_line(rendered: &str) -> String {
    let said = rendered
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let mut text = String::new();
    let mut lists = false;
    for line in said {
        let line = line.strip_prefix("error: ").or_else(|| line.strip_prefix("tip: ")).unwrap_or(line);
        let is_choice = line.starts_with('[');
        match text.chars().last() {
            None => {}
            Some(':') => text.push(' '),
            Some(_) if is_choice => text.push(' '),
            Some(_) => text.push_str(if lists { ", " } else { "; " }),
        }
        text.push_str(line);
        // What follows a colon at the end of a line are several of the same.
        lists = lists || line.ends_with(':');
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::Cli;

    fn said(arguments: &[&str]) -> Option<String> {
        let error = Cli::try_parse_from([&["evenkeel"], arguments].concat()).map(|_| ()).expect_err("not understood");
        complaint(&error, arguments.first().copied())
    }

    #[test]
    fn each_mistake_is_one_line_with_a_hint() {
        for (arguments, says) in [
            (
                &["plan"][..],
                "the following required arguments were not provided: --snapshot <FILE>; evenkeel plan --help tells more",
            ),
            (
                &["plan", "--snapshot", "x", "--brokrs", "1"],
                "unexpected argument '--brokrs' found; a similar argument exists: '--brokers'; evenkeel plan --help \
                 tells more",
            ),
            (
                &["plan", "--snapshot", "x", "--output", "tabel"],
                "invalid value 'tabel' for '--output <FORMAT>' [possible values: table, json, yaml, reassignment, \
                 snapshot, html]; a similar value exists: 'table'; evenkeel plan --help tells more",
            ),
            (
                &["sim", "--brokers", "0"],
                "invalid value '0' for '--brokers <BROKERS>': 0 is not in 1..=1000; evenkeel sim --help tells more",
            ),
            (
                &["sim", "--password-file", "x"],
                "the following required arguments were not provided: --user <USER>; evenkeel sim --help tells more",
            ),
        ] {
            assert_eq!(said(arguments).as_deref(), Some(says));
        }
    }

    #[test]
    fn help_and_version_are_no_mistakes() {
        for asked in [&["--help"][..], &["plan", "--help"], &["--version"], &[]] {
            assert_eq!(said(asked), None, "{asked:?}");
        }
    }

    #[test]
    fn every_subcommand_can_be_asked_for_help() {
        let names: Vec<String> = Cli::command().get_subcommands().map(|it| it.get_name().to_owned()).collect();
        assert!(names.iter().any(|name| name == "plan"), "{names:?}");
        for name in names {
            assert_eq!(said(&[&name, "--help"]), None, "{name}");
        }
    }
}
