//! The kubectl binaries of this machine, for suites that want to see several of them.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
    sync::Once,
};

/// One kubectl program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubectl {
    program: PathBuf,
    /// What comes before kubectl's own arguments.
    role: Option<&'static str>,
}

impl Kubectl {
    /// Every kubectl that can be found, oldest first; empty where there is none.
    ///
    /// Some distributions ship a dispatcher with one binary per minor beside it (`kubectl.1.33`).
    /// Those are taken then, because the dispatcher chooses by the server's version.
    pub fn installed() -> Vec<Self> {
        let Some(found) = on_path("kubectl") else { return Vec::new() };
        let found = found.canonicalize().unwrap_or(found);
        let folder = found.parent().unwrap_or(Path::new("/"));
        let beside = fs::read_dir(folder).map_or_else(
            |_| Vec::new(),
            |entries| entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect(),
        );
        let minors = one_per_minor(&beside);
        let programs =
            if minors.is_empty() { vec![found.clone()] } else { minors.iter().map(|name| folder.join(name)).collect() };
        programs.into_iter().map(|program| Self { program, role: None }).collect()
    }

    /// As [`Kubectl::installed`], for a suite that cannot run without: where there is none, one line says what was
    /// skipped, and in CI (`CI` set) it is a failure.
    ///
    /// # Panics
    ///
    /// In CI, when there is no kubectl.
    pub fn installed_or_skip(suite: &str) -> Vec<Self> {
        static SAID: Once = Once::new();

        let installed = Self::installed();
        if installed.is_empty() {
            assert!(!in_ci(), "kubectl is not installed, and in CI {suite} must not be skipped");
            // Past the test harness, which shows what a test prints only if it fails. Nobody is left to tell when
            // standard error is closed.
            SAID.call_once(|| drop(writeln!(io::stderr(), "kubectl is not installed: skipped {suite}")));
        }
        installed
    }

    /// The kubectl inside the real control plane's binary, of exactly the servers' version.
    pub fn in_kubetest(kubetest: &Path) -> Self {
        Self { program: kubetest.to_path_buf(), role: Some("kubectl") }
    }

    /// A command that sees this kubeconfig and nothing of the user's: caches go beside the kubeconfig.
    pub fn command(&self, kubeconfig: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(self.role)
            .env("KUBECONFIG", kubeconfig)
            .env("KUBECACHEDIR", kubeconfig.with_extension("kubectl-cache"))
            // Preferences and plug-ins of whoever runs the tests would change what is tested.
            .env("KUBERC", "off");
        command
    }

    /// The program's file name, for messages.
    pub fn name(&self) -> String {
        self.program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Whether nothing may be skipped unseen.
pub fn in_ci() -> bool {
    env::var_os("CI").is_some()
}

fn on_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Names like `kubectl.1.33`, by minor.
fn one_per_minor(names: &[String]) -> Vec<&str> {
    let mut minors: Vec<(u32, &str)> =
        names.iter().filter_map(|name| Some((name.strip_prefix("kubectl.1.")?.parse().ok()?, name.as_str()))).collect();
    minors.sort_unstable();
    minors.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minors_come_in_order_and_nothing_else_is_taken_for_one() {
        let names = ["kubectl.1.33", "kubectl", "kubectl.1.9", "kubectl.sha256", "kubectl.1.x", "kubectl.1.27"];
        assert_eq!(one_per_minor(&names.map(str::to_owned)), ["kubectl.1.9", "kubectl.1.27", "kubectl.1.33"]);
    }

    #[test]
    fn the_users_own_configuration_is_never_seen() {
        let kubectl = Kubectl::in_kubetest(Path::new("/x/kubetest"));
        let command = kubectl.command(Path::new("/run/admin.kubeconfig"));
        let environment: Vec<_> = command.get_envs().collect();
        assert!(environment.contains(&("KUBECONFIG".as_ref(), Some("/run/admin.kubeconfig".as_ref()))));
        assert!(environment.contains(&("KUBECACHEDIR".as_ref(), Some("/run/admin.kubectl-cache".as_ref()))));
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["kubectl"]);
    }
}
