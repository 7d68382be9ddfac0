//! `evenkeel crd`

use std::io::{self, ErrorKind, Write};

/// Prints the CRDs. A reader that has seen enough, such as `head`, is no error.
pub(crate) fn run() -> anyhow::Result<()> {
    let yaml = evenkeel_api::crds_yaml()?;
    match io::stdout().write_all(yaml.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
