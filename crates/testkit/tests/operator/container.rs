//! A container as near to a kubelet's as one machine comes without one: the files of its pod where they are mounted, the
//! name of its pod for a host, a network of its own. Neither what it runs nor a file that it reads is changed.
//!
//! Its image is what docs/compatibility.md asks of one: Kafka's libraries, and scripts of their names (`real/kafka/bin`).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use evenkeel_testkit::kubectl::in_ci;
use evenkeel_testkit::real_kafka::{Kit, mortal};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Volume};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::scene::Scene;
use crate::world::PATIENCE;

/// Scripts of an image of Kafka.
const SCRIPTS: [(&str, &str); 3] = [
    ("kafka-run-class.sh", include_str!("../../../../real/kafka/bin/kafka-run-class.sh")),
    ("kafka-server-start.sh", include_str!("../../../../real/kafka/bin/kafka-server-start.sh")),
    ("kafka-storage.sh", include_str!("../../../../real/kafka/bin/kafka-storage.sh")),
];
/// A world of its own for what comes after: nobody sees its files and ports, and it sees nobody's.
const APART: [&str; 5] = ["unshare", "--map-root-user", "--mount", "--net", "--uts"];
/// Puts the root in place, with what the image has, and becomes the container. `/tmp` comes last: the root may be there.
const ENTER: &str = r#"
set -e
exec 2>&1
root=$1 libraries=$2
shift 2
hostname "$HOSTNAME"
ip link set lo up
mount --bind "$libraries" "$root/opt/kafka/libs"
for other in /opt/*; do
  if [ -d "$other" ] && [ ! -e "$root$other" ]; then mkdir "$root$other"; mount --rbind "$other" "$root$other"; fi
done
mount --rbind "$root/opt" /opt
mount --bind "$root/etc/hosts" /etc/hosts
mount --bind "$root/var/lib" /var/lib
mount --bind "$root/tmp" /tmp
exec "$@"
"#;
/// What Kafka logs once it serves.
const STARTED: &str = "Kafka Server started";

/// The first container of a pod, which may be started again and again on the same disks.
pub(crate) struct Container {
    root: TempDir,
    kit: Kit,
    command: Vec<String>,
    variables: BTreeMap<String, String>,
    /// The port that tells whether it is ready.
    probed: i32,
    life: Option<Life>,
}

struct Life {
    process: Child,
    /// The line at whose end it dies. Kept apart from the process, which would close it when it is waited for.
    _line: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    log: Vec<String>,
}

impl Container {
    /// Lays out what is mounted. Nothing, and a word about it, where this kernel lets nobody have a world of their own.
    pub(crate) async fn lay_out(scene: &Scene, pod: Pod) -> Result<Option<Self>> {
        let tried = Command::new(APART[0]).args(&APART[1..]).args(["ip", "link", "set", "lo", "up"]).output();
        if !tried.is_ok_and(|tried| tried.status.success()) {
            ensure!(!in_ci(), "this machine gives no namespaces, which a container needs: in CI nothing is skipped");
            writeln!(std::io::stderr(), "skipped: this machine gives no namespaces, which a container needs")?;
            return Ok(None);
        }
        let spec = pod.spec.context("a pod without a spec")?;
        let [container] = &spec.containers[..] else { bail!("not one container: {:?}", spec.containers) };
        let root = tempfile::tempdir()?;
        for mount in container.volume_mounts.iter().flatten() {
            let mut volumes = spec.volumes.iter().flatten();
            let volume = volumes.find(|it| it.name == mount.name).context("a mount of nothing")?;
            let at = root.path().join(mount.mount_path.trim_start_matches('/'));
            fs::create_dir_all(&at)?;
            for (name, content) in files(scene, volume).await? {
                fs::write(at.join(name), content)?;
            }
        }
        let (host, service) = (name(&spec.hostname)?, name(&spec.subdomain)?);
        let whole = format!("{host}.{service}.{}.svc", scene.namespace);
        fs::create_dir_all(root.path().join("etc"))?;
        fs::write(root.path().join("etc/hosts"), format!("127.0.0.1 localhost {whole} {host}\n"))?;
        let home = root.path().join("opt/kafka");
        for folder in ["bin", "libs"] {
            fs::create_dir_all(home.join(folder))?;
        }
        for (name, text) in SCRIPTS {
            executable(&home.join("bin").join(name), text)?;
        }
        let probe = container.readiness_probe.as_ref().and_then(|probe| probe.tcp_socket.as_ref());
        let variables = container.env.iter().flatten().cloned();
        let variables = variables.map(|it| (it.name, it.value.unwrap_or_default()));
        let variables = variables.chain([("HOSTNAME".to_owned(), host.to_owned())]);
        Ok(Some(Self {
            command: container.command.clone().context("an image of Kafka is not told what to run")?,
            variables: variables.collect(),
            probed: match probe.map(|probe| &probe.port) {
                Some(IntOrString::Int(port)) => *port,
                other => bail!("no port is probed: {other:?}"),
            },
            root,
            kit: Kit::from_env()?,
            life: None,
        }))
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        let mut command = mortal(APART[0]);
        command
            .args(&APART[1..])
            .args(["/bin/bash", "-c", ENTER, "container"])
            .arg(self.root())
            .arg(self.kit.libraries());
        command.args(&self.command);
        // Nothing of ours but where programs are.
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).envs(&self.variables);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
        let output = process.stdout.take().context("its output is not ours")?;
        let _line = process.stdin.take();
        self.life = Some(Life { process, _line, lines: BufReader::new(output).lines(), log: Vec::new() });
        Ok(())
    }

    /// Waits until Kafka serves; the port that the pod's probe asks is open then.
    pub(crate) async fn until_ready(&mut self) -> Result<()> {
        let life = self.life.as_mut().context("it was not started")?;
        ensure!(life.said(STARTED).await?, "it has ended:\n{}", life.log.join("\n"));
        let id = life.process.id().context("it has ended")?.to_string();
        let probe = format!("</dev/tcp/127.0.0.1/{}", self.probed);
        let inside = ["--target", &id, "--user", "--preserve-credentials", "--net", "/bin/bash", "-c", &probe];
        let answer = Command::new("nsenter").args(inside).output()?;
        ensure!(answer.status.success(), "port {} is closed: {answer:?}", self.probed);
        Ok(())
    }

    /// Asks it to end, as a kubelet does. Whom the word reaches is Kafka itself.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        let mut life = self.life.take().context("it was not started")?;
        let id = life.process.id().context("it has ended")?.to_string();
        let told = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &id]).status()?;
        ensure!(told.success(), "it could not be told");
        // To its end, or it would wait for somebody to read what it says.
        while life.line().await?.is_some() {}
        let ended = timeout(PATIENCE, life.process.wait()).await.context("it does not end")??;
        // 143: by the signal, as a JVM ends.
        ensure!(ended.success() || ended.code() == Some(143), "it has ended badly, {ended}:\n{}", life.log.join("\n"));
        Ok(())
    }
}

impl Life {
    /// Reads on to a line that has this in it; not so if it ends before.
    async fn said(&mut self, text: &str) -> Result<bool> {
        while let Some(line) = self.line().await? {
            if line.contains(text) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next line that it prints, if it has not ended.
    async fn line(&mut self) -> Result<Option<&str>> {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.with_context(|| format!("it says nothing more:\n{}", self.log.join("\n")))??;
        let Some(line) = line else { return Ok(None) };
        self.log.push(line);
        Ok(self.log.last().map(String::as_str))
    }
}

/// The files of a volume, if it is one with files; disks are empty.
async fn files(scene: &Scene, volume: &Volume) -> Result<BTreeMap<String, Vec<u8>>> {
    if let Some(source) = &volume.config_map {
        let found = scene.api::<ConfigMap>().get(&source.name).await?;
        return Ok(found.data.into_iter().flatten().map(|(name, text)| (name, text.into_bytes())).collect());
    }
    if let Some(source) = volume.secret.as_ref().and_then(|source| source.secret_name.as_ref()) {
        let found = scene.api::<Secret>().get(source).await?;
        return Ok(found.data.into_iter().flatten().map(|(name, bytes)| (name, bytes.0)).collect());
    }
    ensure!(volume.empty_dir.is_some() || volume.persistent_volume_claim.is_some(), "what is {volume:?}?");
    Ok(BTreeMap::new())
}

fn name(part: &Option<String>) -> Result<&str> {
    part.as_deref().context("a pod without a name for a host")
}

fn executable(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, text)?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}
