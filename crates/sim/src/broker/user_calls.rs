//! Who may log in by SCRAM, asked and changed.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::alter_user_scram_credentials_response::AlterUserScramCredentialsResult;
use kafka_protocol::messages::describe_user_scram_credentials_response::{
    CredentialInfo, DescribeUserScramCredentialsResult,
};
use kafka_protocol::messages::{
    AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse, DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
};

use super::Call;
use super::convert::{outcome, text};
use crate::cluster::ScramUpsertion;
use crate::code::Code;

impl Call<'_> {
    pub(super) fn describe_user_scram_credentials(
        &mut self,
        request: DescribeUserScramCredentialsRequest,
    ) -> DescribeUserScramCredentialsResponse {
        // Nobody in particular is everybody.
        let named = request.users.unwrap_or_default();
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for user in &named {
            *times.entry(user.name.to_string()).or_default() += 1;
        }
        let wanted = if named.is_empty() {
            self.cluster.scram_users()
        } else {
            let mut seen = BTreeSet::new();
            named.iter().map(|user| user.name.to_string()).filter(|user| seen.insert(user.clone())).collect()
        };
        let results = wanted.into_iter().map(|user| {
            let described = if times.get(&user).is_some_and(|times| *times > 1) {
                let what = "Cannot describe SCRAM credentials for the same user twice in a single request";
                Err(Code::DuplicateResource.because(format!("{what}: {user}")))
            } else {
                self.cluster.describe_scram(&user)
            };
            let (code, message) = outcome(&described);
            let infos = described.unwrap_or_default().into_iter().map(|(mechanism, iterations)| {
                let iterations = i32::try_from(iterations).unwrap_or(i32::MAX);
                CredentialInfo::default().with_mechanism(mechanism).with_iterations(iterations)
            });
            DescribeUserScramCredentialsResult::default()
                .with_user(text(&user))
                .with_error_code(code)
                .with_error_message(message)
                .with_credential_infos(infos.collect())
        });
        DescribeUserScramCredentialsResponse::default().with_results(results.collect())
    }

    pub(super) fn alter_user_scram_credentials(
        &mut self,
        request: AlterUserScramCredentialsRequest,
    ) -> AlterUserScramCredentialsResponse {
        let deletions: Vec<_> = request.deletions.iter().map(|it| (it.name.to_string(), it.mechanism)).collect();
        let upsertions = request.upsertions.into_iter().map(|it| ScramUpsertion {
            user: it.name.to_string(),
            mechanism: it.mechanism,
            // Copies, or each would keep the whole request in memory.
            salt: bytes::Bytes::copy_from_slice(&it.salt),
            iterations: it.iterations,
            salted_password: bytes::Bytes::copy_from_slice(&it.salted_password),
        });
        let outcomes = self.cluster.alter_scram(&deletions, &upsertions.collect::<Vec<_>>());
        let results = outcomes.iter().map(|(user, result)| {
            let (code, message) = outcome(result);
            AlterUserScramCredentialsResult::default()
                .with_user(text(user))
                .with_error_code(code)
                .with_error_message(message)
        });
        AlterUserScramCredentialsResponse::default().with_results(results.collect())
    }
}
