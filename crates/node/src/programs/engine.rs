//! Containers named `cruise-control` whose command is `evenkeel engine`: the engine itself.
//!
//! It reads the very files that its Deployment mounts, laid out under a directory; serves HTTPS on a port of its own;
//! and reaches Kafka by the names in its properties, through the node's table.
//!
//! On loopback an engine has a tokio runtime of its own, as it would in a process of its own: ending it ends whatever it
//! has begun, and its log lines are told apart from everybody else's by the threads they come from. Over pipes it shares
//! the runtime of whoever started it, because paused time is of one runtime; its log lines then go where the others go.

mod account;
mod life;

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenkeel_engine::clock::WallClock;
use evenkeel_engine::engine::{Engine, Parts, Running};
use evenkeel_engine::files::{self, Files};
use evenkeel_engine::serve::listen::Server;
use evenkeel_engine::serve::router;
use futures::future::BoxFuture;
use kube::Client;
use tempfile::TempDir;

use self::life::Life;
use super::wires::{Wires, loopback};
use crate::clock::Clock;
use crate::kubelet::program::{Launch, LaunchError, Process, Programs};
use crate::kubelet::tree::Tree;

/// Runs engines. Clones are the same.
#[derive(Clone)]
pub struct Engines {
    wires: Wires,
    clock: Clock,
    kubernetes: Option<Client>,
}

impl std::fmt::Debug for Engines {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Engines").field("wires", &self.wires).finish_non_exhaustive()
    }
}

impl Engines {
    /// `kubernetes` is what an engine writes its ConfigMap of violated goals to, if it is told to. Without it an engine
    /// reaches the API with what its pod mounts, as it would in a cluster; under paused time there is no such way.
    pub fn new(wires: Wires, clock: Clock, kubernetes: Option<Client>) -> Self {
        Self { wires, clock, kubernetes }
    }

    async fn start(self, what: Launch) -> Result<Process, LaunchError> {
        let config = config_file(&what.command)
            .map_err(|why| LaunchError::NotHere(format!("{why}; a local node runs `evenkeel engine FILE` here")))?;
        let (root, laid_out) = match &what.root {
            Some(root) => (root.clone(), None),
            None => {
                let dir = lay_out(&what.files).map_err(|error| LaunchError::Start(Box::new(error)))?;
                (dir.path().to_owned(), Some(dir))
            }
        };
        let files = Files::read(&root, &config, |name| what.env.get(name).cloned());
        let files = files.map_err(|why| LaunchError::Configuration(why.to_string()))?;
        let port = files.settings.webserver.port;
        for warning in &files.warnings {
            what.log.line(&format!("{}: {}", warning.key, warning.text));
        }
        let log = what.log.clone();
        let recipe = Recipe { engines: self.clone(), files, what, _laid_out: laid_out };
        let life = match &self.wires {
            Wires::Loopback => Life::apart(log, recipe.make()).await?,
            Wires::Pipes(_) => Life::here(log, recipe.make().await?),
        };
        Ok(life.into_process(port))
    }
}

impl Programs for Engines {
    fn launch(&self, what: Launch) -> BoxFuture<'static, Result<Process, LaunchError>> {
        Box::pin(self.clone().start(what))
    }
}

/// Everything that an engine is made of; made in the runtime in which it lives.
struct Recipe {
    engines: Engines,
    files: Files,
    what: Launch,
    /// Files that nobody else has laid out: certificates are read again for new connections.
    _laid_out: Option<TempDir>,
}

/// An engine that runs and answers.
struct Working {
    running: Running,
    server: Server,
    _recipe: Option<TempDir>,
}

impl Recipe {
    async fn make(self) -> Result<Working, LaunchError> {
        let Recipe { engines, files, what, _laid_out } = self;
        let Files { mut settings, capacities, .. } = files;
        let refused = |error: Box<dyn std::error::Error + Send + Sync>| LaunchError::Start(error);
        // Where a container listens on all addresses, a laptop should not.
        settings.webserver.address = "127.0.0.1".to_owned();
        settings.webserver.port = 0;
        if let Some(cluster) = &mut settings.detectors.map_of {
            // Its own namespace is the pod's, whatever the handed client thinks.
            let own = what.pod.metadata.namespace.clone();
            cluster.namespace = cluster.namespace.take().or(own);
        }
        let below = engines.wires.connector(what.addresses.clone());
        let client = settings.connection.client_over(below).map_err(|error| refused(Box::new(error)))?;
        let kubernetes = async || match &engines.kubernetes {
            Some(handed) => Ok(handed.clone()),
            None => account::client(&what).await,
        };
        let courier = files::courier(&settings.detectors, kubernetes).await;
        let settings = Arc::new(settings);
        let parts = Parts {
            client,
            settings: Arc::clone(&settings),
            capacities: Arc::new(capacities),
            courier: courier.map_err(|error| refused(Box::new(error)))?,
            clock: WallClock::starting_at(engines.clock.now().as_millisecond()),
        };
        let running = Engine::start(parts).map_err(|error| refused(Box::new(error)))?;
        let door = router(running.door());
        let server = match &engines.wires {
            Wires::Loopback => Server::start(&settings.webserver, door).await,
            Wires::Pipes(pipes) => {
                let port = pipes.free_port();
                let arriving = pipes.memory().listen(loopback(port));
                Server::start_at((std::net::Ipv4Addr::LOCALHOST, port).into(), arriving, &settings.webserver, door)
            }
        };
        let server = server.map_err(|error| refused(Box::new(error)))?;
        Ok(Working { running, server, _recipe: _laid_out })
    }
}

/// The properties file that `evenkeel engine` is given.
fn config_file(command: &[String]) -> Result<PathBuf, String> {
    let named = || format!("the command is `{}`", command.join(" "));
    let is_ours = |program: &String| Path::new(program).file_name().is_some_and(|name| name == "evenkeel");
    if command.is_empty() {
        return Err("the container has no command".to_owned());
    }
    let [program, subcommand, rest @ ..] = command else { return Err(named()) };
    if !is_ours(program) || subcommand != "engine" {
        return Err(named());
    }
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--log" => drop(rest.next()),
            flag if flag.starts_with("--log=") => {}
            flag if flag.starts_with('-') => return Err(format!("the engine is started with {flag}")),
            file => return Ok(PathBuf::from(file)),
        }
    }
    Err("the engine is started without a properties file".to_owned())
}

/// Writes files for their owner alone: keys and passwords are among them.
fn lay_out(files: &Tree) -> std::io::Result<TempDir> {
    let dir = tempfile::Builder::new().prefix("evenkeel-engine-").tempdir()?;
    for (path, file) in files.iter() {
        let real = dir.path().join(path.trim_start_matches('/'));
        if let Some(parent) = real.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::File::options().write(true).create_new(true).mode(0o600).open(&real)?.write_all(&file.bytes)?;
    }
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_of(command: &str) -> Result<PathBuf, String> {
        config_file(&command.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_file_is_found_among_the_engine_s_arguments() {
        let file = Ok(PathBuf::from("/c.properties"));
        assert_eq!(config_of("evenkeel engine /c.properties"), file);
        assert_eq!(config_of("/usr/bin/evenkeel engine --log json /c.properties 9090 0.0.0.0"), file);
        assert_eq!(config_of("evenkeel engine --log=json /c.properties"), file);
    }

    #[test]
    fn other_commands_are_named() {
        let said = [
            ("", "the container has no command"),
            (
                "/opt/cruise-control/cruise_control_run.sh now",
                "the command is `/opt/cruise-control/cruise_control_run.sh now`",
            ),
            ("evenkeel sim", "the command is `evenkeel sim`"),
            ("evenkeel engine", "the engine is started without a properties file"),
            ("evenkeel engine --check /c", "the engine is started with --check"),
        ];
        for (command, why) in said {
            assert_eq!(config_of(command), Err(why.to_owned()));
        }
    }
}
