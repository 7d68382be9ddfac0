//! Who may enter: tokens that the server reads, and kubeconfigs that carry them.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::json;

/// Files in the run folder, named relative to it.
pub(super) const CERTIFICATES: &str = "certs";
pub(super) const AUTHORITY: &str = "certs/apiserver.crt";
pub(super) const KEY: &str = "certs/apiserver.key";
pub(super) const TOKENS: &str = "tokens.csv";

/// A user with a fixed token: the servers listen on loopback and live for one test run.
pub(super) struct Credentials {
    pub(super) token: &'static str,
    pub(super) kubeconfig: &'static str,
    user: &'static str,
    group: Option<&'static str>,
}

impl Credentials {
    pub(super) const ADMIN: Self =
        Self { token: "evenkeel-admin", kubeconfig: "admin.kubeconfig", user: "admin", group: Some("system:masters") };
    pub(super) const CONTROLLER_MANAGER: Self = Self {
        token: "evenkeel-controller-manager",
        kubeconfig: "controller-manager.kubeconfig",
        user: "system:kube-controller-manager",
        group: None,
    };

    fn token_line(&self) -> String {
        let Self { token, user, group, .. } = self;
        match group {
            Some(group) => format!("{token},{user},{user},\"{group}\"\n"),
            None => format!("{token},{user},{user}\n"),
        }
    }
}

/// Writes the server's token file and a kubeconfig for each user.
pub(super) fn write_all(folder: &Path, url: &str) -> Result<()> {
    let users = [Credentials::ADMIN, Credentials::CONTROLLER_MANAGER];
    let tokens: String = users.iter().map(Credentials::token_line).collect();
    fs::write(folder.join(TOKENS), tokens).context("could not write the tokens")?;
    for user in users {
        // JSON is YAML, and every reader of kubeconfigs takes it.
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "clusters": [{"name": "real", "cluster": {
                "server": url,
                "certificate-authority": folder.join(AUTHORITY),
            }}],
            "users": [{"name": user.user, "user": {"token": user.token}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": user.user}}],
        });
        fs::write(folder.join(user.kubeconfig), kubeconfig.to_string())
            .with_context(|| format!("could not write {}", user.kubeconfig))?;
    }
    Ok(())
}
