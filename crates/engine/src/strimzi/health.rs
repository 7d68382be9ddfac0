//! Whether the server serves, as the container's probes ask.

use std::time::Duration;

use evenkeel_rest::{
    client::{Answer, Basic, Client, Error, Limits, http_service, trusting},
    request::State,
};
use http::Uri;
use rustls::pki_types::pem;

use super::{Container, Environment, PASSWORDS, Unfit};

/// Strimzi's probes wait as long.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why it does not.
#[derive(Debug, thiserror::Error)]
pub enum Ailing {
    /// The container is not as it should be.
    #[error(transparent)]
    Container(#[from] Unfit),
    /// Nobody can be trusted.
    #[error("could not read the certificates of the authority")]
    Authorities(#[from] pem::Error),
    /// Nothing was answered.
    #[error("the server does not answer")]
    Server(#[source] Error),
}

impl Container {
    /// Asks the server for its state. Whoever answers serves, whatever the answer is: a server that waits for Kafka must
    /// not be killed for it.
    pub async fn health(&self, variable: impl Fn(&str) -> Option<String>) -> Result<(), Ailing> {
        let environment = Environment::read(variable).map_err(Unfit::from)?;
        // Without HTTPS nobody's certificate is looked at, and there may be none.
        let authorities = if environment.https { self.authorities()? } else { String::new() };
        let tls = trusting(authorities.as_bytes())?;
        let client = Client::new(http_service(tls, PATIENCE), address(&environment))
            .with_limits(Limits { time: PATIENCE, ..Limits::default() });
        let client = if environment.users {
            let password = self.read(&format!("{PASSWORDS}/{}.password", environment.health_user))?;
            let user = Basic::new(environment.health_user, password.trim_end());
            client.with_credentials(move || Some(user.clone()))
        } else {
            client
        };
        match client.ask(&State::default()).await.answer {
            Answer::Unreachable(error) => Err(Ailing::Server(error)),
            _ => Ok(()),
        }
    }
}

/// By the name that is in the certificate.
fn address(environment: &Environment) -> Uri {
    let scheme = if environment.https { "https" } else { "http" };
    let address = format!("{scheme}://localhost:{}/kafkacruisecontrol", environment.port);
    address.parse().expect("a scheme, a host and a port are an address")
}
