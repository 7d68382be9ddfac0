//! Permissions, asked and changed.

use evenkeel_kafka::message::MessageError;
use kafka_protocol::messages::create_acls_response::AclCreationResult;
use kafka_protocol::messages::delete_acls_response::{DeleteAclsFilterResult, DeleteAclsMatchingAcl};
use kafka_protocol::messages::describe_acls_response::{AclDescription, DescribeAclsResource};
use kafka_protocol::messages::{
    CreateAclsRequest, CreateAclsResponse, DeleteAclsRequest, DeleteAclsResponse, DescribeAclsRequest,
    DescribeAclsResponse,
};

use super::convert::{outcome, text};
use super::{Call, Reply};
use crate::cluster::{Acl, AclFilter};

/// What a client writes where it does not know: Kafka hangs up on it.
const UNKNOWN: i8 = 0;

impl Call<'_> {
    pub(super) fn describe_acls(&mut self) -> Result<Reply, MessageError> {
        let it: DescribeAclsRequest = self.decode()?;
        let filter = AclFilter {
            resource_type: it.resource_type_filter,
            resource_name: it.resource_name_filter.map(|name| name.to_string()),
            pattern_type: it.pattern_type_filter,
            principal: it.principal_filter.map(|principal| principal.to_string()),
            host: it.host_filter.map(|host| host.to_string()),
            operation: it.operation,
            permission: it.permission_type,
        };
        if is_unknown(&filter) {
            return Ok(Reply::Close(None));
        }
        let found = self.cluster.describe_acls(&filter);
        let same = |one: &Acl, next: &Acl| resource_of(one) == resource_of(next);
        let resources = found.chunk_by(same).filter_map(|acls| {
            let (resource_type, name, pattern_type) = resource_of(acls.first()?);
            let acls = acls.iter().map(|acl| {
                AclDescription::default()
                    .with_principal(text(&acl.principal))
                    .with_host(text(&acl.host))
                    .with_operation(acl.operation)
                    .with_permission_type(acl.permission)
            });
            let resource = DescribeAclsResource::default().with_resource_type(resource_type);
            Some(resource.with_resource_name(text(name)).with_pattern_type(pattern_type).with_acls(acls.collect()))
        });
        self.encode(&DescribeAclsResponse::default().with_resources(resources.collect()))
    }

    pub(super) fn create_acls(&mut self) -> Result<Reply, MessageError> {
        let request: CreateAclsRequest = self.decode()?;
        let numbers = |it: &kafka_protocol::messages::create_acls_request::AclCreation| {
            [it.resource_type, it.resource_pattern_type, it.operation, it.permission_type]
        };
        if request.creations.iter().any(|it| numbers(it).contains(&UNKNOWN)) {
            return Ok(Reply::Close(None));
        }
        let results = request.creations.into_iter().map(|it| {
            let result = self.cluster.create_acl(Acl {
                resource_type: it.resource_type,
                resource_name: it.resource_name.to_string(),
                pattern_type: it.resource_pattern_type,
                principal: it.principal.to_string(),
                host: it.host.to_string(),
                operation: it.operation,
                permission: it.permission_type,
            });
            let (code, message) = outcome(&result);
            AclCreationResult::default().with_error_code(code).with_error_message(message.or(Some(text(""))))
        });
        let results = results.collect();
        self.encode(&CreateAclsResponse::default().with_results(results))
    }

    pub(super) fn delete_acls(&mut self) -> Result<Reply, MessageError> {
        let request: DeleteAclsRequest = self.decode()?;
        let filters = request.filters.into_iter().map(|it| AclFilter {
            resource_type: it.resource_type_filter,
            resource_name: it.resource_name_filter.map(|name| name.to_string()),
            pattern_type: it.pattern_type_filter,
            principal: it.principal_filter.map(|principal| principal.to_string()),
            host: it.host_filter.map(|host| host.to_string()),
            operation: it.operation,
            permission: it.permission_type,
        });
        let filters: Vec<AclFilter> = filters.collect();
        if filters.iter().any(is_unknown) {
            return Ok(Reply::Close(None));
        }
        let results = filters.iter().map(|filter| {
            let gone = self.cluster.delete_acls(filter).into_iter().map(|acl| {
                DeleteAclsMatchingAcl::default()
                    .with_resource_type(acl.resource_type)
                    .with_resource_name(text(&acl.resource_name))
                    .with_pattern_type(acl.pattern_type)
                    .with_principal(text(&acl.principal))
                    .with_host(text(&acl.host))
                    .with_operation(acl.operation)
                    .with_permission_type(acl.permission)
            });
            DeleteAclsFilterResult::default().with_matching_acls(gone.collect())
        });
        let results = results.collect();
        self.encode(&DeleteAclsResponse::default().with_filter_results(results))
    }
}

fn is_unknown(filter: &AclFilter) -> bool {
    [filter.resource_type, filter.pattern_type, filter.operation, filter.permission].contains(&UNKNOWN)
}

fn resource_of(acl: &Acl) -> (i8, &str, i8) {
    (acl.resource_type, &acl.resource_name, acl.pattern_type)
}
