//! The API on a socket: HTTPS with its own authority, one administrator, and limits on what strangers can hold.

mod auth;
pub mod certificates;
mod connection;
mod farewell;
mod kubeconfig;
mod patience;
mod plain;
mod strangers;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use self::certificates::Certificates;
use self::connection::Limits;
pub use self::kubeconfig::Foreign;
use crate::http::{Options, Shared, moment, router};

/// Where and how to listen.
#[derive(Debug)]
pub struct Settings {
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Listening beyond this machine must be asked for.
    pub allow_remote: bool,
    /// Further names and addresses that the certificate is good for.
    pub names: Vec<String>,
    /// The API itself.
    pub options: Options,
}

impl Default for Settings {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { listen, allow_remote: false, names: Vec::new(), options: Options::default() }
    }
}

/// Why the server does not run, or its kubeconfig is not there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Everyone on the network would reach it, and nobody said that they should.
    #[error("{address} is reachable from other machines; say so explicitly if that is wanted")]
    NotLoopback {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The address is taken, or not ours.
    #[error("could not listen on {address}")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Nobody can reach a server by that name.
    #[error("{name:?} is neither a host's name nor an address")]
    Name {
        /// What was given.
        name: String,
    },
    /// A fault of ours: no certificate could be made for names that were looked at.
    #[error("could not make certificates")]
    Certificates {
        /// What is wrong.
        source: rcgen::Error,
    },
    /// A fault of ours: certificates just made were not taken.
    #[error("could not set up TLS")]
    Tls {
        /// What is wrong.
        source: rustls::Error,
    },
    /// The directory is missing or not writable.
    #[error("could not write {}", path.display())]
    WriteKubeconfig {
        /// Where to.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The kubeconfig would replace what is not ours.
    #[error("{foreign}; name another file")]
    ForeignKubeconfig {
        /// Which file, and what it is.
        foreign: Foreign,
    },
}

/// A running server. Dropping it ends it at once; [`Server::stop`] lets requests finish.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    certificates: Certificates,
    token: String,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts listening. Returns when clients can connect.
    pub async fn start(settings: Settings) -> Result<Self, Error> {
        Self::start_within(settings, Limits::default()).await
    }

    async fn start_within(settings: Settings, limits: Limits) -> Result<Self, Error> {
        let Settings { listen, allow_remote, mut names, options } = settings;
        if !listen.ip().is_loopback() && !allow_remote {
            return Err(Error::NotLoopback { address: listen });
        }
        if let Some(name) = names.iter().find(|name| !certificates::is_host(name)) {
            return Err(Error::Name { name: name.clone() });
        }
        if !listen.ip().is_unspecified() && !listen.ip().is_loopback() {
            names.push(listen.ip().to_string());
        }
        let certificates =
            Certificates::make(&names, options.moments.now()).map_err(|source| Error::Certificates { source })?;
        let tls = connection::tls(&certificates).map_err(|source| Error::Tls { source })?;
        let failed = |source| Error::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let token = token();
        let shared = Shared::new(options);
        let door = connection::Door::new(router(Arc::clone(&shared)), tls, token.clone(), limits);
        let accepting = tokio::spawn(connection::accept(listener, door, shared.stopping()));
        Ok(Self { address, shared, certificates, token, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://…`, as the kubeconfig names it.
    pub fn url(&self) -> String {
        let host = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
            ip => ip,
        };
        format!("https://{}", SocketAddr::new(host, self.address.port()))
    }

    /// The API behind it, for a client in this process.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The administrator's bearer token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The authority and the administrator's certificate.
    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// A kubeconfig that leads here.
    pub fn kubeconfig(&self) -> String {
        kubeconfig::render(&self.url(), &self.certificates, &self.token)
    }

    /// Writes the kubeconfig so that only its owner can read it. Replaces one of ours, and nothing else.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), Error> {
        kubeconfig::write(path, &self.kubeconfig())
    }

    /// Ends watches, lets running requests finish, and closes the door.
    pub async fn stop(mut self) {
        self.shared.stop();
        // The task ends by itself; if it panicked there is nothing left to stop.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop();
        self.accepting.abort();
    }
}

/// 256 random bits, in a form that fits a header.
fn token() -> String {
    let mut bytes = [0; 32];
    moment::random(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
