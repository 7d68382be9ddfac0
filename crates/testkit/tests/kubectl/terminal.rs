//! One kubectl, one kubeconfig, one namespace; and what a command said.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use evenkeel_testkit::kubectl::Kubectl;

/// How long anything may take: generous, because nothing waits this long unless it fails.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where a scene is played.
pub(crate) struct Terminal {
    kubectl: Kubectl,
    kubeconfig: PathBuf,
    namespace: String,
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) succeeded: bool,
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    command: String,
}

impl Ran {
    /// What it printed, if it succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert!(self.succeeded, "{}\n{}{}", self.command, self.out, self.err);
        self.out
    }

    /// It succeeded and printed exactly this, apart from space at the end.
    #[track_caller]
    pub(crate) fn prints(self, expected: &str) {
        let command = self.command.clone();
        assert_eq!(self.ok().trim_end(), expected, "{command}");
    }

    /// It failed, and this is part of what it said.
    #[track_caller]
    pub(crate) fn fails_with(self, part: &str) {
        assert!(!self.succeeded, "{} succeeded:\n{}", self.command, self.out);
        assert!(self.err.contains(part), "{}: {part:?} is not in\n{}", self.command, self.err);
    }
}

impl Terminal {
    pub(crate) fn new(kubectl: Kubectl, kubeconfig: &Path, namespace: String) -> Self {
        Self { kubectl, kubeconfig: kubeconfig.to_owned(), namespace }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Runs kubectl in the scene's namespace.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.feed(arguments, "")
    }

    /// Runs kubectl with something on its standard input.
    pub(crate) fn feed(&self, arguments: &[&str], input: &str) -> Ran {
        let mut child = self.start(arguments);
        let mut stdin = child.stdin.take().expect("its standard input is ours");
        stdin.write_all(input.as_bytes()).expect("kubectl reads its input");
        drop(stdin);
        let output = child.wait_with_output().expect("kubectl ends");
        Ran {
            succeeded: output.status.success(),
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            command: format!("{} {}", self.kubectl.name(), arguments.join(" ")),
        }
    }

    /// Runs it again until the result is as wanted.
    pub(crate) fn until(&self, arguments: &[&str], wanted: impl Fn(&Ran) -> bool) -> Ran {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ran = self.run(arguments);
            if wanted(&ran) {
                return ran;
            }
            assert!(Instant::now() < deadline, "{ran:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts a command that goes on by itself, such as a watch.
    pub(crate) fn follow(&self, arguments: &[&str]) -> Following {
        let mut child = self.start(arguments);
        let out = child.stdout.take().expect("its standard output is ours");
        let (say, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if say.send(line).is_err() {
                    break;
                }
            }
        });
        Following { child, lines }
    }

    fn start(&self, arguments: &[&str]) -> Child {
        self.command()
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl starts")
    }

    fn command(&self) -> Command {
        let mut command = self.kubectl.command(&self.kubeconfig);
        // What `diff` and `edit` call must not depend on whose machine this is.
        command.env("KUBECTL_EXTERNAL_DIFF", "diff -u -N").env("KUBE_EDITOR", "sed -i s/size:.small/size:\\ large/");
        command
    }
}

/// A command that goes on. Dropping it ends it.
pub(crate) struct Following {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Following {
    /// The next line it prints, with runs of spaces made one.
    pub(crate) fn line(&self) -> String {
        let line = self.lines.recv_timeout(PATIENCE).expect("kubectl stayed silent");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Waits until it ends by itself; whether it succeeded.
    pub(crate) fn ends(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("kubectl can be asked") {
                return status.success();
            }
            assert!(Instant::now() < deadline, "kubectl goes on and on");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // Failing means that it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A table with runs of spaces made one.
pub(crate) fn table(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// A widget to feed.
pub(crate) fn widget(name: &str, spec: &str) -> String {
    format!("apiVersion: scenes.example.com/v1\nkind: Widget\nmetadata:\n  name: {name}\nspec: {spec}\n")
}
