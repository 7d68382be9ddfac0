//! Starting other programs, in an environment that is not marked by our own start.

use std::{env, ffi::OsStr, process::Command};

use anyhow::{Context, Result, bail};

/// A command that inherits our environment, without what `cargo run` added for us.
///
/// Build scripts (ring's among them) ask to be run again when `CARGO_MANIFEST_DIR` and its like
/// change; if they leaked into the cargo we start, half of the workspace would be built twice.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(describes_this_package) {
            command.env_remove(name);
        }
    }
    command
}

/// The cargo that started us, so that the pinned toolchain stays the only one.
pub(crate) fn cargo() -> Command {
    command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs to the end, output to our own terminal; a bad end is an error that shows the command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    println!("$ {shown}");
    let status = command.status().with_context(|| format!("could not start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Runs to the end and returns what it printed.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.output().with_context(|| format!("could not start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` did not print UTF-8"))
}

/// Whether a program of this name can be found.
pub(crate) fn is_installed(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

fn describes_this_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"]
        .iter()
        .any(|prefix| variable.starts_with(prefix))
}

/// The command as one would type it, by the program's name rather than its full path.
fn show(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|word| {
            let word = word.to_string_lossy();
            if word.contains(' ') { format!("'{word}'") } else { word.into_owned() }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_run_adds_is_told_from_what_the_user_set() {
        assert!(describes_this_package("CARGO_MANIFEST_DIR"));
        assert!(describes_this_package("CARGO_PKG_VERSION_MAJOR"));
        assert!(!describes_this_package("CARGO_TARGET_DIR"));
        assert!(!describes_this_package("CARGO_HOME"));
    }

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("/opt/go/bin/go");
        command.args(["build", "-ldflags", "-s -w"]);
        assert_eq!(show(&command), "go build -ldflags '-s -w'");
    }
}
