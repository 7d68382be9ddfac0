//! `evenkeel crd`

use std::io::{self, ErrorKind, Write};

/// Prints the CRDs.
pub(crate) fn run() -> anyhow::Result<()> {
    print(&evenkeel_api::crds_yaml()?)
}

/// Prints a text. A reader that has seen enough, such as `head`, is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
