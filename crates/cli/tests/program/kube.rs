//! `evenkeel kube`, as a program: what it prints, what it leaves behind, how it ends.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};

/// A home and a place for temporary files that nobody else uses.
struct Surroundings {
    root: tempfile::TempDir,
}

impl Surroundings {
    fn new() -> Self {
        let surroundings = Self { root: tempfile::tempdir().unwrap() };
        std::fs::create_dir(surroundings.home()).unwrap();
        std::fs::create_dir(surroundings.temporary()).unwrap();
        surroundings
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    fn temporary(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        command.arg("kube").env("HOME", self.home()).env("TMPDIR", self.temporary());
        command.env_remove("KUBECONFIG").env_remove("RUST_LOG").stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Ends the program when a test fails before it could.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Waits for the end, but not for ever.
    fn ended(&mut self) -> ExitStatus {
        let before = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(before.elapsed() < Duration::from_secs(20), "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The line that says it is ready.
    fn first_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("export KUBECONFIG="), "{line:?} {}", self.complaint());
        line
    }

    /// What it says when it was asked for something that it does not do: one line.
    fn refusal(&mut self) -> String {
        let code = self.ended().code();
        let complaint = self.complaint();
        assert_eq!((code, complaint.lines().count()), (Some(2), 1), "{complaint}");
        complaint.trim_end().to_owned()
    }

    fn complaint(&mut self) -> String {
        let mut text = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// What the variable is after a shell has run that line.
fn exported(line: &str) -> PathBuf {
    let script = format!("{line}\nprintf %s \"$KUBECONFIG\"");
    let output = Command::new("sh").arg("-c").arg(script).env_remove("KUBECONFIG").output().unwrap();
    assert!(output.status.success(), "{line}");
    String::from_utf8(output.stdout).unwrap().into()
}

#[tokio::test]
async fn it_serves_until_it_is_interrupted_and_leaves_nothing_behind() {
    let surroundings = Surroundings::new();
    let mut running = Running(surroundings.command().spawn().unwrap());
    let line = running.first_line();
    let path = exported(line.trim_end());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(entries(&surroundings.temporary()), [path.parent().unwrap()]);
    assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);

    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(&path).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    assert_eq!(config.cluster_url.scheme_str(), Some("https"));
    let versions = kube::Client::try_from(config).unwrap().list_core_api_versions().await.unwrap();
    assert_eq!(versions.versions, ["v1"]);

    let interrupted = Command::new("kill").args(["-INT", &running.0.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(running.ended().code(), Some(0), "{}", running.complaint());
    assert_eq!(entries(&surroundings.temporary()), Vec::<PathBuf>::new(), "the temporary directory is gone");
    assert_eq!(entries(&surroundings.home()), Vec::<PathBuf>::new(), "no .kube, nor anything else");
}

#[test]
fn it_ends_in_good_order_when_nobody_reads_any_more() {
    let surroundings = Surroundings::new();
    let mut running = Running(surroundings.command().spawn().unwrap());
    running.first_line();
    drop(running.0.stdout.take());
    assert_eq!((running.ended().code(), running.complaint()), (Some(0), String::new()));
    assert_eq!(entries(&surroundings.temporary()), Vec::<PathBuf>::new(), "the temporary directory is gone");
}

#[test]
fn a_port_in_use_is_one_line_and_a_failure() {
    let surroundings = Surroundings::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut running = Running(surroundings.command().args(["--listen", &address]).spawn().unwrap());
    assert_eq!(running.ended().code(), Some(1));
    let complaint = running.complaint();
    assert!(complaint.starts_with(&format!("evenkeel: could not listen on {address}: ")), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert_eq!(entries(&surroundings.temporary()), Vec::<PathBuf>::new());
}

#[test]
fn a_directory_has_one_owner_at_a_time() {
    let surroundings = Surroundings::new();
    let dir = surroundings.temporary().join("shared");
    let start = || Running(surroundings.command().arg("--dir").arg(&dir).spawn().unwrap());
    let mut first = start();
    first.first_line();
    let kubeconfig = std::fs::read(dir.join("kubeconfig")).unwrap();
    let (pid, shown) = (first.0.id(), dir.display());
    assert_eq!(
        start().refusal(),
        format!("evenkeel: {shown} is in use by another evenkeel, process {pid}; stop it or name another --dir")
    );
    assert_eq!(std::fs::read(dir.join("kubeconfig")).unwrap(), kubeconfig, "still the first one's");
    // Killed, so that it had no chance to tidy up.
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    start().first_line();
    assert_ne!(std::fs::read(dir.join("kubeconfig")).unwrap(), kubeconfig, "replaced");
}

#[test]
fn a_kubeconfig_that_is_not_ours_is_left_alone() {
    let surroundings = Surroundings::new();
    let file = surroundings.temporary().join("precious");
    std::fs::write(&file, "apiVersion: v1\nclusters: [{name: production}]\n").unwrap();
    let refusal = Running(surroundings.command().arg("--kubeconfig").arg(&file).spawn().unwrap()).refusal();
    let shown = file.display();
    let why = "is there already and was not written by evenkeel; name another with --kubeconfig";
    assert_eq!(refusal, format!("evenkeel: {shown} {why}"));
    assert!(std::fs::read_to_string(&file).unwrap().contains("production"));

    let own = surroundings.home().join(".kube/config");
    std::fs::create_dir(own.parent().unwrap()).unwrap();
    let refusal = Running(surroundings.command().arg("--kubeconfig").arg(&own).spawn().unwrap()).refusal();
    assert!(refusal.ends_with("is your own kubeconfig and is left alone; name another with --kubeconfig"), "{refusal}");
    assert!(!own.exists());
}

#[test]
fn an_address_that_others_reach_and_a_version_that_is_none_are_refused_with_what_to_write() {
    let surroundings = Surroundings::new();
    let refusal = |args: [&str; 2]| Running(surroundings.command().args(args).spawn().unwrap()).refusal();
    assert_eq!(
        refusal(["--listen", "0.0.0.0:6443"]),
        "evenkeel: --listen 0.0.0.0:6443 is reachable from other machines; add --allow-remote if that is wanted, or \
         listen on 127.0.0.1:6443"
    );
    assert_eq!(
        refusal(["--kubernetes-version", "bogus"]),
        "evenkeel: --kubernetes-version bogus: that is no version; write vMAJOR.MINOR.PATCH, such as v1.35.0"
    );
    assert_eq!(entries(&surroundings.temporary()), Vec::<PathBuf>::new());
}

#[test]
fn names_that_lead_to_no_host_are_refused_with_what_to_write() {
    let surroundings = Surroundings::new();
    for name in ["https://laptop", "", "my laptop", "-laptop", "192.0.2.300", "läptop"] {
        let refusal = Running(surroundings.command().arg(format!("--name={name}")).spawn().unwrap()).refusal();
        let write = "write one such as laptop.local or 192.0.2.7";
        assert_eq!(refusal, format!("evenkeel: --name {name:?} is neither a host's name nor an address; {write}"));
    }
    assert_eq!(entries(&surroundings.temporary()), Vec::<PathBuf>::new());
}

#[test]
fn the_command_that_it_suggests_runs_where_it_is_not_on_the_path() {
    let surroundings = Surroundings::new();
    let mut running = Running(surroundings.command().env("PATH", "/usr/bin:/bin").spawn().unwrap());
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let suggested = lines.find(|line| line.contains(" crd | ")).unwrap();
    let (command, _) = suggested.trim().split_once(" | ").unwrap();
    let printed = Command::new("sh").arg("-c").arg(command).env("PATH", "/usr/bin:/bin").output().unwrap();
    assert!(String::from_utf8(printed.stdout).unwrap().contains("kind: CustomResourceDefinition"), "{command}");
}
