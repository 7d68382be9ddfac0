//! What `evenkeel kube` prints when it is ready.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

/// What there is to tell.
pub(super) struct Greeting<'a> {
    pub(super) kubeconfig: &'a Path,
    pub(super) url: &'a str,
    pub(super) crds_installed: bool,
    /// How a shell starts this very program.
    pub(super) program: &'a str,
}

impl Greeting<'_> {
    /// The line to paste, and what to try after it.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "export KUBECONFIG={}", quoted(self.kubeconfig))?;
        writeln!(out)?;
        let url = self.url;
        writeln!(
            out,
            "A Kubernetes API is at {url}; ctrl-c stops it. Paste the line above into another terminal, then try:"
        )?;
        writeln!(out)?;
        if !self.crds_installed {
            writeln!(out, "  {} crd | kubectl apply -f -", self.program)?;
        }
        writeln!(out, "  kubectl api-resources")?;
        writeln!(out, "  kubectl apply -f examples/")?;
        writeln!(out, "  kubectl get kafka,kafkanodepool,kafkarebalance")?;
        out.flush()
    }
}

/// How a shell starts this program: by its name where that leads here, by its path elsewhere, as after `cargo run`.
pub(super) fn program(running: &Path, search_path: Option<&OsStr>) -> String {
    let name = "evenkeel";
    let mut found = search_path.into_iter().flat_map(std::env::split_paths).map(|dir| dir.join(name));
    let first = found.find(|candidate| candidate.is_file());
    let is_this =
        |candidate: &Path| candidate.canonicalize().ok().is_some_and(|c| running.canonicalize().ok() == Some(c));
    if first.as_deref().is_some_and(is_this) { name.to_owned() } else { quoted(running) }
}

/// Quotes a path for the shell where it needs that.
pub(crate) fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if path.chars().all(plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_can_be_pasted() {
        let mut out = Vec::new();
        let kubeconfig = Path::new("/tmp/it's here/kubeconfig");
        let greeting = Greeting { kubeconfig, url: "https://127.0.0.1:1", crds_installed: false, program: "evenkeel" };
        greeting.print(&mut out).expect("written");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text.lines().next(), Some(r"export KUBECONFIG='/tmp/it'\''s here/kubeconfig'"));
    }

    #[test]
    fn the_program_goes_by_its_name_only_where_that_leads_to_it() {
        let root = tempfile::tempdir().expect("a directory");
        let (here, there) = (root.path().join("it is here"), root.path().join("there"));
        for dir in [&here, &there] {
            std::fs::create_dir(dir).expect("made");
            std::fs::write(dir.join("evenkeel"), "").expect("written");
        }
        let running = here.join("evenkeel");
        let by_path = format!("'{}'", running.display());
        let search = |dirs: &[&Path]| std::env::join_paths(dirs).expect("joined");
        assert_eq!(program(&running, None), by_path);
        assert_eq!(program(&running, Some(&search(&[root.path()]))), by_path, "it is not there");
        assert_eq!(program(&running, Some(&search(&[&there, &here]))), by_path, "another comes first");
        assert_eq!(program(&running, Some(&search(&[root.path(), &here, &there]))), "evenkeel");
    }
}
