//! Quotas of clients, asked and changed.

use kafka_protocol::messages::alter_client_quotas_response::{EntityData as AlteredEntity, EntryData as AlteredEntry};
use kafka_protocol::messages::describe_client_quotas_response::{EntityData, EntryData, ValueData};
use kafka_protocol::messages::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, DescribeClientQuotasRequest, DescribeClientQuotasResponse,
};

use super::Call;
use super::convert::{outcome, text};
use crate::cluster::{QuotaEntity, QuotaMatch};
use crate::code::{Code, Refusal};

impl Call<'_> {
    pub(super) fn describe_client_quotas(
        &mut self,
        request: DescribeClientQuotasRequest,
    ) -> DescribeClientQuotasResponse {
        let components = request.components.iter().map(|it| {
            let wanted = match (it.match_type, &it._match) {
                (0, Some(name)) => QuotaMatch::Exactly(name.to_string()),
                (1, None) => QuotaMatch::Default,
                (2, None) => QuotaMatch::Any,
                _ => return Err(Code::InvalidRequest.because("Unexpected match type or name in a component")),
            };
            Ok((it.entity_type.to_string(), wanted))
        });
        let filter: Result<_, Refusal> = components.collect();
        let response = DescribeClientQuotasResponse::default();
        let (code, message) = outcome(&filter);
        let Ok(filter) = filter else {
            return response.with_error_code(code).with_error_message(message).with_entries(None);
        };
        let found = self.cluster.describe_client_quotas(&filter, request.strict).into_iter();
        let entries = found.map(|(entity, quotas)| {
            let entity = entity.iter().map(|(kind, name)| {
                EntityData::default().with_entity_type(text(kind)).with_entity_name(name.as_deref().map(text))
            });
            let values = quotas.iter().map(|(key, value)| ValueData::default().with_key(text(key)).with_value(*value));
            EntryData::default().with_entity(entity.collect()).with_values(values.collect())
        });
        response.with_entries(Some(entries.collect()))
    }

    pub(super) fn alter_client_quotas(&mut self, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse {
        let entries = request.entries.into_iter().map(|entry| {
            let names = entry
                .entity
                .iter()
                .map(|it| (it.entity_type.to_string(), it.entity_name.as_ref().map(|name| name.to_string())));
            let entity: QuotaEntity = names.collect();
            let ops = entry.ops.iter().map(|op| (op.key.to_string(), (!op.remove).then_some(op.value)));
            let changes: Vec<_> = ops.collect();
            let result = self.cluster.alter_client_quotas(&entity, &changes, request.validate_only);
            let (code, message) = outcome(&result);
            let same = entry
                .entity
                .into_iter()
                .map(|it| AlteredEntity::default().with_entity_type(it.entity_type).with_entity_name(it.entity_name));
            AlteredEntry::default().with_error_code(code).with_error_message(message).with_entity(same.collect())
        });
        AlterClientQuotasResponse::default().with_entries(entries.collect())
    }
}
