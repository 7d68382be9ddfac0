//! Real Apache Kafka as a kit that a harness starts nodes from: published libraries, how to start a JVM, the first
//! records of a cluster, and an archive of loaded classes that halves the time a node needs to start.
//!
//! | file of the kit | what |
//! |---|---|
//! | `libs/` | the libraries that `real/kafka/pom.xml` names, and what they need |
//! | `java.options` | `java @java.options -XX:SharedArchiveFile=classes.jsa kafka.Kafka server.properties` starts a node |
//! | `users.json` | who may enter by SCRAM, with passwords |
//! | `bootstrap.checkpoint` | for the controller's folder: finalised features, and those users |
//! | `classes.jsa` | the archive; the last file to appear |

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use super::{
    cache,
    maven::{POM, copy_libraries},
};
use crate::{process, workspace::Workspace};

const SOURCE: &str = "real/kafka";
/// All that decides what the kit is, besides the JDK.
const SOURCE_FILES: [&str; 4] = [POM, "jvm.options", "log4j2.xml", "users.json"];
const ARCHIVE: &str = "classes.jsa";
/// Names another Kafka than the one in the pom, to see what differs there.
const VERSION: &str = "EVENKEEL_KAFKA_VERSION";
const CHECKPOINT: &str = "bootstrap.checkpoint";
/// What a node logs once it serves.
const STARTED: &str = "Kafka Server started";

/// The folder of the kit, made first if no earlier run left it.
pub(super) fn folder(workspace: &Workspace) -> Result<PathBuf> {
    let source = workspace.path(SOURCE);
    let mut parts = cache::contents(&source, &SOURCE_FILES)?;
    // An archive of classes is of use to the very build of Java that made it.
    parts.push(java_version()?.into_bytes());
    let version = std::env::var(VERSION).ok();
    parts.extend(version.clone().map(String::into_bytes));
    let kit = cache::folder("kafka", &parts)?;
    cache::make_once(&kit, |folder| {
        println!("fetching the libraries of Apache Kafka, once");
        lay_out(&source, folder, &kit, version.as_deref())
    })?;
    // The archive remembers where its libraries were, so it is made in the kit's final place.
    if !kit.join(ARCHIVE).is_file() {
        println!("rehearsing a start of Apache Kafka, once");
        rehearse(&kit)?;
    }
    Ok(kit)
}

fn java_version() -> Result<String> {
    process::read(process::command("java").arg("--version")).context("real brokers need Java 17 or newer")
}

/// Fills `folder`, which will be called `kit`.
fn lay_out(source: &Path, folder: &Path, kit: &Path, version: Option<&str>) -> Result<()> {
    for file in SOURCE_FILES {
        fs::copy(source.join(file), folder.join(file)).with_context(|| format!("could not copy {file}"))?;
    }
    let libraries = folder.join("libs");
    let version: Vec<_> = version.map(|version| format!("-Dkafka.version={version}")).into_iter().collect();
    copy_libraries(source, &libraries, &version)?;
    let names = jars(&libraries)?;
    let jvm = fs::read_to_string(folder.join("jvm.options")).context("could not read the JVM's options")?;
    fs::write(folder.join("java.options"), java_options(&jvm, text(kit)?, &names))
        .context("could not write the options of java")
}

/// The names of all libraries, in a fixed order: the archive is bound to the order of the class path.
fn jars(libraries: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(libraries).context("Maven copied no libraries")? {
        let name = entry?.file_name().into_string().ok().context("a library's name is not UTF-8")?;
        names.push(name);
    }
    names.sort();
    Ok(names)
}

/// A file of arguments for `java @file`.
fn java_options(jvm: &str, kit: &str, jars: &[String]) -> String {
    let class_path: Vec<_> = jars.iter().map(|jar| format!("{kit}/libs/{jar}")).collect();
    let mut options = jvm.to_owned();
    for option in
        [format!("-Dlog4j2.configurationFile={kit}/log4j2.xml"), "-classpath".to_owned(), class_path.join(":")]
    {
        options.push_str(&quoted(&option));
        options.push('\n');
    }
    options
}

fn quoted(argument: &str) -> String {
    format!("\"{}\"", argument.replace('\\', r"\\").replace('"', "\\\""))
}

fn java(kit: &Path) -> Result<Command> {
    let mut java = process::command("java");
    java.arg(format!("@{}", text(&kit.join("java.options"))?));
    Ok(java)
}

/// Formats and runs one node for a moment, and keeps what every later start profits from.
fn rehearse(kit: &Path) -> Result<()> {
    let scratch = tempfile::tempdir_in(kit).context("could not make a scratch folder")?;
    let folder = scratch.path();
    let properties = folder.join("server.properties");
    fs::write(&properties, rehearsal_properties(text(folder)?, free_port()?)).context("could not write properties")?;
    format(kit, &properties)?;
    fs::rename(folder.join("data").join(CHECKPOINT), kit.join(CHECKPOINT))
        .context("formatting left no first records")?;
    let archive = folder.join(ARCHIVE);
    run_for_a_moment(
        java(kit)?.arg(format!("-XX:ArchiveClassesAtExit={}", text(&archive)?)).arg("kafka.Kafka").arg(&properties),
    )?;
    fs::rename(&archive, kit.join(ARCHIVE)).context("the rehearsal left no archive of classes")
}

/// The format tool of Kafka itself: what it writes first into a controller's log belongs to the version.
fn format(kit: &Path, properties: &Path) -> Result<()> {
    let mut tool = java(kit)?;
    tool.args(["kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER, "--config"]).arg(properties);
    let users = fs::read(kit.join("users.json")).context("could not read the users")?;
    let users: BTreeMap<String, String> =
        serde_json::from_slice(&users).context("the users are not names with passwords")?;
    for (name, password) in users {
        for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512"] {
            tool.args(["--add-scram", &format!("{mechanism}=[name={name},password={password}]")]);
        }
    }
    process::read(&mut tool).map(drop).context("Kafka's format tool failed")
}

/// Any id will do: the records that are kept from the rehearsal do not carry it.
const CLUSTER: &str = "UmVoZWFyc2FsUmVoZWFycw";

/// Broker and controller in one, so that the classes of both are met.
fn rehearsal_properties(folder: &str, controller: u16) -> String {
    format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{controller}\n\
         controller.listener.names=CONTROLLER\n\
         controller.quorum.voters=1@127.0.0.1:{controller}\n\
         log.dirs={folder}/data\n\
         log.cleaner.dedupe.buffer.size=2097152\n"
    )
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port on loopback")?;
    Ok(listener.local_addr()?.port())
}

/// Starts a node, waits until it serves, asks it to stop, and waits until it has.
fn run_for_a_moment(java: &mut Command) -> Result<()> {
    let mut child = java.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("could not start java")?;
    let mut output = BufReader::new(child.stdout.take().context("the output of java is not ours")?);
    let (mut log, mut line) = (String::new(), String::new());
    while output.read_line(&mut line).context("could not read the log of a node")? > 0 {
        log.push_str(&line);
        if line.contains(STARTED) {
            process::read(process::command("sh").args(["-c", "kill -TERM \"$0\"", &child.id().to_string()]))?;
            break;
        }
        line.clear();
    }
    // To its end, or the node would block on a full pipe.
    output.read_to_string(&mut log).context("could not read the log of a node")?;
    let status = child.wait().context("could not wait for java")?;
    // 143: ended by the signal we sent.
    if !log.contains(STARTED) || !(status.success() || status.code() == Some(143)) {
        bail!("Kafka did not start and stop as it should ({status}); its log:\n{log}");
    }
    Ok(())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_is_told_where_everything_is_even_below_a_folder_with_spaces() {
        let jars = ["a.jar".to_owned(), "b.jar".to_owned()];
        assert_eq!(
            java_options("-Xmx64m\n", "/my cache/k", &jars),
            "-Xmx64m\n\
             \"-Dlog4j2.configurationFile=/my cache/k/log4j2.xml\"\n\
             \"-classpath\"\n\
             \"/my cache/k/libs/a.jar:/my cache/k/libs/b.jar\"\n"
        );
        assert_eq!(quoted(r#"a"b\c"#), r#""a\"b\\c""#);
    }
}
