//! Chores of the repository: `cargo xtask --help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the terminal it was started from")]

mod bench;
mod check;
mod cli;
mod generate;
mod image;
mod kind;
mod metadata;
mod preparation;
mod process;
mod real;
mod soak;
mod tidy;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        // One line: the chore's own output, above, has the details; a backtrace of xtask has none.
        Err(failure) => {
            eprintln!("error: {failure:#}");
            ExitCode::FAILURE
        }
    }
}
