//! Delegation tokens, which brokers without a secret of their own do not have.

use kafka_protocol::messages::{
    CreateDelegationTokenRequest, CreateDelegationTokenResponse, DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse, ExpireDelegationTokenRequest, ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest, RenewDelegationTokenResponse,
};

use super::Call;
use crate::code::Code;

impl Call<'_> {
    pub(super) fn create_delegation_token(&mut self, _: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse {
        CreateDelegationTokenResponse::default()
            .with_error_code(Code::DelegationTokenAuthDisabled.number())
            .with_issue_timestamp_ms(-1)
            .with_expiry_timestamp_ms(-1)
            .with_max_timestamp_ms(-1)
    }

    pub(super) fn renew_delegation_token(&mut self, _: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse {
        let response = RenewDelegationTokenResponse::default().with_expiry_timestamp_ms(-1);
        response.with_error_code(Code::DelegationTokenAuthDisabled.number())
    }

    pub(super) fn expire_delegation_token(&mut self, _: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse {
        let response = ExpireDelegationTokenResponse::default().with_expiry_timestamp_ms(-1);
        response.with_error_code(Code::DelegationTokenAuthDisabled.number())
    }

    pub(super) fn describe_delegation_token(
        &mut self,
        _: DescribeDelegationTokenRequest,
    ) -> DescribeDelegationTokenResponse {
        DescribeDelegationTokenResponse::default().with_error_code(Code::DelegationTokenAuthDisabled.number())
    }
}
