//! Permissions: kept, found and removed as a cluster with an authorizer does, and obeyed by nobody.

use super::Cluster;
use crate::code::{Code, Refusal};

const ANY: i8 = 1;
/// In a filter: everything that would have a say about a resource of this name.
const MATCH: i8 = 2;
const LITERAL: i8 = 3;
const PREFIXED: i8 = 4;
/// The resource type of the cluster, and the only name it may have.
const CLUSTER: i8 = 4;
const CLUSTER_NAME: &str = "kafka-cluster";
/// The last number that means something, of resource types and of operations.
const LAST_RESOURCE: i8 = 7;
const LAST_OPERATION: i8 = 15;
/// A literal name that stands for every name.
const EVERY_NAME: &str = "*";

/// Who may, or may not, do what with which resources. Numbers are Kafka's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Acl {
    /// The kind of resource.
    pub resource_type: i8,
    /// Its name, or how it begins.
    pub resource_name: String,
    /// Which of the two.
    pub pattern_type: i8,
    /// Who.
    pub principal: String,
    /// From where.
    pub host: String,
    /// Does what.
    pub operation: i8,
    /// Whether that is denied or allowed.
    pub permission: i8,
}

/// Which of them are meant; what is not there, or is the number for any, does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclFilter {
    /// The kind of resource.
    pub resource_type: i8,
    /// Its name.
    pub resource_name: Option<String>,
    /// How the name is meant.
    pub pattern_type: i8,
    /// Who.
    pub principal: Option<String>,
    /// From where.
    pub host: Option<String>,
    /// Does what.
    pub operation: i8,
    /// Whether that is denied or allowed.
    pub permission: i8,
}

impl AclFilter {
    fn matches(&self, acl: &Acl) -> bool {
        let number = |wanted: i8, there: i8| wanted == ANY || wanted == there;
        let text = |wanted: &Option<String>, there: &str| wanted.as_deref().is_none_or(|wanted| wanted == there);
        number(self.resource_type, acl.resource_type)
            && self.covers(acl)
            && text(&self.principal, &acl.principal)
            && text(&self.host, &acl.host)
            && number(self.operation, acl.operation)
            && number(self.permission, acl.permission)
    }

    fn covers(&self, acl: &Acl) -> bool {
        let right_kind = matches!(self.pattern_type, ANY | MATCH) || self.pattern_type == acl.pattern_type;
        let Some(name) = self.resource_name.as_deref().filter(|_| right_kind) else { return right_kind };
        match (self.pattern_type, acl.pattern_type) {
            (MATCH, LITERAL) => acl.resource_name == name || acl.resource_name == EVERY_NAME,
            (MATCH, _) => name.starts_with(&acl.resource_name),
            _ => acl.resource_name == name,
        }
    }
}

impl Cluster {
    /// Keeps one more.
    pub fn create_acl(&mut self, acl: Acl) -> Result<(), Refusal> {
        check(&acl)?;
        self.acls.insert(acl);
        Ok(())
    }

    /// Those that are meant, by resource.
    pub fn describe_acls(&self, filter: &AclFilter) -> Vec<Acl> {
        self.acls.iter().filter(|acl| filter.matches(acl)).cloned().collect()
    }

    /// Removes those that are meant, and returns them.
    pub fn delete_acls(&mut self, filter: &AclFilter) -> Vec<Acl> {
        let gone = self.describe_acls(filter);
        self.acls.retain(|acl| !filter.matches(acl));
        gone
    }
}

fn check(acl: &Acl) -> Result<(), Refusal> {
    let invalid = |text: &str| Err(Code::InvalidRequest.because(text));
    if acl.resource_type == CLUSTER && acl.resource_name != CLUSTER_NAME {
        return invalid(&format!("The only valid name for the CLUSTER resource is {CLUSTER_NAME}"));
    }
    if acl.resource_name.is_empty() {
        return invalid("Invalid empty resource name");
    }
    // Where Kafka fails on what only a filter may say.
    let of_filters = [acl.resource_type, acl.operation, acl.permission, acl.pattern_type].contains(&ANY);
    if of_filters || acl.pattern_type == MATCH {
        return Err(Code::UnknownServerError.plain());
    }
    let unknown = [
        (acl.resource_type, LAST_RESOURCE, "resource type"),
        (acl.pattern_type, PREFIXED, "pattern type"),
        (acl.operation, LAST_OPERATION, "operation"),
        (acl.permission, 3, "permission type"),
    ];
    for (number, last, what) in unknown {
        if !(1..=last).contains(&number) {
            return invalid(&format!("Invalid {what} UNKNOWN"));
        }
    }
    if !acl.principal.contains(':') {
        return invalid(&format!(
            "Could not parse principal from `{}` (no colon is present separating the principal type from the principal name)",
            acl.principal
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Options;

    const READ: i8 = 3;
    const ALLOW: i8 = 3;
    const TOPIC: i8 = 2;

    fn acl(name: &str, pattern_type: i8) -> Acl {
        let (principal, host) = ("User:reader".to_owned(), "*".to_owned());
        let resource_name = name.to_owned();
        Acl { resource_type: TOPIC, resource_name, pattern_type, principal, host, operation: READ, permission: ALLOW }
    }

    fn about(name: Option<&str>, pattern_type: i8) -> AclFilter {
        AclFilter {
            resource_type: ANY,
            resource_name: name.map(str::to_owned),
            pattern_type,
            principal: None,
            host: None,
            operation: ANY,
            permission: ANY,
        }
    }

    #[test]
    fn filters_find_what_they_say() {
        let mut cluster = Cluster::new(Options::default(), []);
        for (name, pattern) in [("abc", LITERAL), ("ab", PREFIXED), ("*", LITERAL), ("xyz", LITERAL)] {
            cluster.create_acl(acl(name, pattern)).expect("a good one");
        }
        let names = |filter: &AclFilter| -> Vec<String> {
            cluster.describe_acls(filter).into_iter().map(|acl| acl.resource_name).collect()
        };
        assert_eq!(names(&about(None, ANY)), ["*", "ab", "abc", "xyz"]);
        assert_eq!(names(&about(Some("abc"), MATCH)), ["*", "ab", "abc"]);
        assert_eq!(names(&about(Some("abc"), LITERAL)), ["abc"]);
        assert_eq!(names(&about(Some("abc"), ANY)), ["abc"]);
        assert_eq!(names(&about(None, PREFIXED)), ["ab"]);
        assert_eq!(names(&AclFilter { principal: Some("User:other".to_owned()), ..about(None, ANY) }), [""; 0]);
        assert_eq!(names(&AclFilter { operation: READ + 1, ..about(None, ANY) }), [""; 0]);
        assert_eq!(cluster.delete_acls(&about(Some("abc"), MATCH)).len(), 3);
        assert_eq!(cluster.describe_acls(&about(None, ANY)), [acl("xyz", LITERAL)]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_brokers_codes() {
        let mut cluster = Cluster::new(Options::default(), []);
        let mut code = |acl: Acl| cluster.create_acl(acl).map_err(|refusal| refusal.code);
        let good = acl("abc", LITERAL);
        assert_eq!(code(acl("", LITERAL)), Err(Code::InvalidRequest));
        assert_eq!(code(Acl { principal: "reader".to_owned(), ..good.clone() }), Err(Code::InvalidRequest));
        assert_eq!(code(Acl { resource_type: CLUSTER, ..good.clone() }), Err(Code::InvalidRequest));
        assert_eq!(code(Acl { operation: 99, ..good.clone() }), Err(Code::InvalidRequest));
        assert_eq!(code(Acl { operation: ANY, ..good.clone() }), Err(Code::UnknownServerError));
        assert_eq!(code(acl("abc", MATCH)), Err(Code::UnknownServerError));
        assert_eq!(code(good), Ok(()));
    }
}
