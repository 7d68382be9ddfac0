//! Containers named `kafka` as real Apache Kafka: one JVM for each, on loopback.
//!
//! A JVM resolves no names of ours, so its file is rewritten ([`rewrite`]): hosts and ports of listeners, of what is
//! advertised and of the quorum by the node's table, paths by where the container's files really are. Nothing else is
//! touched. Certificates must be good for 127.0.0.1, since that is what brokers call each other then.

pub mod rewrite;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::net::TcpStream;
use tokio::process::{ChildStdin, Command};
use tokio::sync::watch;
use tokio::time::sleep;

use self::rewrite::Places;
use crate::addresses::AddressTable;
use crate::kubelet::logs::Log;
use crate::kubelet::program::{Exit, Launch, LaunchError, Process, Programs, Stop};

/// Ends the JVM when our standard input is closed, which is when whoever holds its other end is gone, however it went. A
/// JVM does not look at its standard input, so a watcher beside it does: it knows the JVM by the id of the shell, which
/// becomes the JVM. That id is also the id of the group that both are in, so that nobody else gets it as long as the
/// watcher is there, and a ctrl-c in the terminal does not reach either.
const DIE_WITH_US: &str = r#"
exec 3<&0 </dev/null
(cat <&3; kill -KILL $$) >/dev/null 2>&1 &
exec "$@" 3<&-
"#;
/// Where the operator's logging settings are mounted.
const LOGGING: &str = "/opt/kafka/custom-config/log4j2.properties";
/// How often a port is tried.
const TRY: Duration = Duration::from_millis(100);

/// Several nodes on one machine: a heap that holds the log cleaner's 128 MiB and little else, the collector with the
/// fewest threads, and no time spent on optimising.
const SMALL: [&str; 8] = [
    "-Xms64m",
    "-Xmx512m",
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.net.preferIPv4Stack=true",
];

/// How a JVM is started.
#[derive(Debug, Clone)]
pub struct Jvm {
    /// The program, such as `java`.
    pub java: PathBuf,
    /// What comes before the class: the class path with Kafka's libraries, and the size of the heap.
    pub options: Vec<OsString>,
}

/// Runs real brokers. They need a kubelet that lays files out for real.
#[derive(Debug, Clone)]
pub struct RealBrokers {
    /// How their JVMs are started.
    pub jvm: Jvm,
}

impl Programs for RealBrokers {
    fn launch(&self, what: Launch) -> BoxFuture<'static, Result<Process, LaunchError>> {
        Box::pin(start(self.jvm.clone(), what))
    }
}

async fn start(jvm: Jvm, what: Launch) -> Result<Process, LaunchError> {
    let unusable = |why: String| LaunchError::Configuration(format!("{}: {why}", super::kafka::CONFIG));
    let text = what.files.text(super::kafka::CONFIG).ok_or_else(|| unusable("is missing".to_owned()))?;
    let cluster_id = what.files.text(super::kafka::CLUSTER_ID).map(str::trim).unwrap_or_default().to_owned();
    let Some(root) = what.root.clone() else {
        return Err(LaunchError::NotHere("real brokers need files and sockets, and this node has neither".to_owned()));
    };
    let places = places(&what, &root);
    let rewritten = rewrite::rewritten(text, &places).map_err(|why| unusable(why.to_string()))?;
    let file = root.join("server.config");
    std::fs::write(&file, &rewritten.text).map_err(|error| LaunchError::Start(Box::new(error)))?;
    let logging = what.files.text(LOGGING).map(|_| root.join(LOGGING.trim_start_matches('/')));
    let failed = |error: io::Error| LaunchError::Start(Box::new(error));
    let format = ["kafka.tools.StorageTool", "format", "--ignore-formatted", "--cluster-id", &cluster_id, "--config"];
    let mut formatting = Child::spawn(jvm.command(logging.as_deref(), &format, &file), &what.log).map_err(failed)?;
    let formatted = formatting.wait().await.map_err(failed)?;
    if !formatted.success() {
        return Err(LaunchError::Start(format!("the storage could not be formatted: {formatted}").into()));
    }
    let broker = Child::spawn(jvm.command(logging.as_deref(), &["kafka.Kafka"], &file), &what.log).map_err(failed)?;
    Ok(process(broker, rewritten.ports))
}

fn places<'a>(what: &'a Launch, root: &'a Path) -> Places<'a> {
    let (namespace, pod) = (what.pod.metadata.namespace.clone(), what.pod.metadata.name.clone());
    let own = (namespace.unwrap_or_default(), pod.unwrap_or_default());
    Places {
        port: Box::new(move |host, port| {
            let (namespace, pod) = host.map_or(Some(own.clone()), AddressTable::pod_of)?;
            what.addresses.reserve(&namespace, &pod, port).ok()
        }),
        path: Box::new(move |path| {
            let inside = |mount: &str| path == mount || path.strip_prefix(mount).is_some_and(|it| it.starts_with('/'));
            let mount = what.volumes.iter().filter(|(mount, _)| inside(mount)).max_by_key(|(mount, _)| mount.len());
            match mount.and_then(|(mount, volume)| Some((mount, volume.directory.as_ref()?))) {
                Some((mount, real)) => real.join(path[mount.len()..].trim_start_matches('/')),
                None => root.join(path.trim_start_matches('/')),
            }
        }),
    }
}

impl Jvm {
    fn command(&self, logging: Option<&Path>, class: &[&str], config: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", DIE_WITH_US, "kafka"]).arg(&self.java).args(&self.options);
        if let Some(logging) = logging {
            let mut option = OsString::from("-Dlog4j2.configurationFile=");
            option.push(logging);
            command.arg(option);
        }
        command.args(class).arg(config);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        command
    }
}

/// A JVM, and the line at whose end it dies. Dropping it kills it.
struct Child {
    process: tokio::process::Child,
    /// Kept apart from the process, which closes its own end of it as soon as it is waited for.
    _line: Option<ChildStdin>,
}

impl Child {
    fn spawn(mut command: Command, log: &Log) -> io::Result<Self> {
        let mut process = command.spawn()?;
        follow(&mut process, log);
        let _line = process.stdin.take();
        Ok(Self { process, _line })
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }
}

/// What it prints goes to the log.
fn follow(child: &mut tokio::process::Child, log: &Log) {
    fn lines(from: impl AsyncRead + Send + Unpin + 'static, log: Log) {
        tokio::spawn(async move {
            let mut lines = BufReader::new(from).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                log.line(&line);
            }
        });
    }
    if let Some(out) = child.stdout.take() {
        lines(out, log.clone());
    }
    if let Some(out) = child.stderr.take() {
        lines(out, log.clone());
    }
}

fn process(mut broker: Child, ports: BTreeMap<u16, u16>) -> Process {
    let id = broker.process.id();
    // As the readiness probe of its pod: the port between brokers, or that of controllers, is open.
    let probed = ports.get(&9091).or_else(|| ports.values().next()).copied().unwrap_or_default();
    let (readiness, ready) = watch::channel(false);
    let (urge, mut urged) = watch::channel(None);
    Process {
        ports,
        ready,
        ended: Box::pin(async move {
            let probing = async {
                while TcpStream::connect(("127.0.0.1", probed)).await.is_err() {
                    sleep(TRY).await;
                }
                readiness.send_replace(true);
                std::future::pending::<()>().await;
            };
            let killing = async {
                if urged.wait_for(|how| *how == Some(Stop::Now)).await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            let ended = tokio::select! {
                ended = broker.wait() => ended,
                () = killing => {
                    // One that has just ended cannot be killed, and need not be.
                    let _ = broker.process.start_kill();
                    broker.wait().await
                }
                () = probing => return Exit::killed(),
            };
            exit(ended)
        }),
        stop: Box::new(move |how| {
            if how == Stop::Politely
                && let Some(id) = id
            {
                // The shell's own `kill`: signals are beyond the standard library. Whoever does not hear it is killed
                // when the grace is over.
                let told = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &id.to_string()]).spawn();
                drop(told);
            }
            urge.send_replace(Some(how));
        }),
    }
}

impl Jvm {
    /// Kafka below a directory as it is unpacked: its libraries are in `libs`. A line says what is missing.
    pub fn find(java: PathBuf, home: &Path) -> Result<Self, String> {
        let libraries = home.join("libs");
        let has = |prefix: &str| {
            let files = std::fs::read_dir(&libraries).into_iter().flatten().flatten();
            files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with(prefix))
        };
        if !has("kafka-clients-") || !has("kafka-server-") {
            return Err(format!("{} holds no Kafka: its libraries are missing", libraries.display()));
        }
        let version = std::process::Command::new(&java).arg("-version").stdin(Stdio::null()).output();
        match version {
            Ok(output) if output.status.success() => {}
            Ok(output) => return Err(format!("{} does not start a JVM: {}", java.display(), output.status)),
            Err(error) => return Err(format!("there is no Java: {} could not be run: {error}", java.display())),
        }
        let mut class_path = libraries.into_os_string();
        class_path.push("/*");
        let mut options: Vec<OsString> = SMALL.iter().map(OsString::from).collect();
        options.extend(["-classpath".into(), class_path]);
        Ok(Self { java, options })
    }
}

fn exit(ended: io::Result<ExitStatus>) -> Exit {
    match ended {
        // 143 is how a JVM ends that was asked to.
        Ok(status) if status.success() || status.code() == Some(143) => Exit::success(),
        Ok(status) => match status.code() {
            Some(code) => Exit { code, message: "the broker's JVM has ended".to_owned() },
            None => Exit::killed(),
        },
        Err(error) => Exit::failure(format!("the broker's JVM is lost: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::clock::Clock;

    /// What a JVM would be: prints once it listens for signals, and sleeps until it is told to end.
    const SCRIPT: &str = "trap 'exit 143' TERM; echo begun; while :; do sleep 0.05; done";

    fn log() -> Log {
        Log::new(Clock::new(|| Timestamp::UNIX_EPOCH))
    }

    fn child(script: &str, log: &Log) -> Child {
        let jvm = Jvm { java: "sh".into(), options: vec!["-c".into(), script.into()] };
        Child::spawn(jvm.command(None, &["class"], Path::new("config")), log).unwrap()
    }

    async fn begun(log: &Log) {
        let mut reader = log.reader();
        assert_eq!(reader.more().await.unwrap()[0].text, "begun");
    }

    #[tokio::test]
    async fn one_that_is_waited_for_lives_on_and_one_whose_line_is_cut_does_not() {
        let log = log();
        let mut child = child(SCRIPT, &log);
        begun(&log).await;
        let soon = tokio::time::timeout(Duration::from_millis(200), child.wait()).await;
        assert!(soon.is_err(), "waiting for it has ended it: {soon:?}");
        child._line = None;
        let ended = child.wait().await.unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(9));
    }

    #[tokio::test]
    async fn a_stop_is_heard_and_a_deaf_one_is_killed() {
        let log = log();
        let mut process = process(child(SCRIPT, &log), BTreeMap::new());
        begun(&log).await;
        (process.stop)(Stop::Politely);
        assert_eq!(process.ended.await, Exit::success());

        let log = self::log();
        let mut process =
            self::process(child("trap '' TERM; echo begun; while :; do sleep 0.05; done", &log), BTreeMap::new());
        begun(&log).await;
        (process.stop)(Stop::Politely);
        (process.stop)(Stop::Now);
        assert_eq!(process.ended.await, Exit::killed());
    }

    #[tokio::test]
    async fn one_that_fails_says_how() {
        let log = log();
        let process = process(child("echo no >&2; exit 3", &log), BTreeMap::new());
        assert_eq!(process.ended.await, Exit { code: 3, message: "the broker's JVM has ended".to_owned() });
    }

    #[test]
    fn what_is_missing_is_said_in_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let why = Jvm::find("java".into(), dir.path()).unwrap_err();
        assert_eq!(why, format!("{}/libs holds no Kafka: its libraries are missing", dir.path().display()));
        std::fs::create_dir(dir.path().join("libs")).unwrap();
        for name in ["kafka-clients-4.3.1.jar", "kafka-server-4.3.1.jar"] {
            std::fs::write(dir.path().join("libs").join(name), "").unwrap();
        }
        let why = Jvm::find("/nowhere/java".into(), dir.path()).unwrap_err();
        assert!(why.starts_with("there is no Java: /nowhere/java could not be run: "), "{why}");
        let jvm = Jvm::find("true".into(), dir.path()).unwrap();
        assert_eq!(jvm.options.last(), Some(&dir.path().join("libs/*").into_os_string()));
    }
}
