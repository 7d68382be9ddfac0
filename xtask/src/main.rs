//! Chores of the repository: `cargo xtask --help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the terminal it was started from")]

mod check;
mod cli;
mod generate;
mod metadata;
mod process;
mod real;
mod tidy;
mod workspace;

fn main() -> anyhow::Result<()> {
    cli::run()
}
