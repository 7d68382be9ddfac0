"""Permissions, as an administrator with kafka-python gives, finds and takes them. The cluster has an authorizer."""

from eventually import eventually
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import InvalidRequestError, NoError

ANY, MATCH = ACLResourcePatternType.ANY, ACLResourcePatternType.MATCH
LITERAL, PREFIXED = ACLResourcePatternType.LITERAL, ACLResourcePatternType.PREFIXED
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP


def permissions(admin, name):
    """`name` is one that nobody else uses, and neither does anybody begin with it."""
    who = f"User:{name}"

    def acl(resource, pattern=LITERAL, kind=TOPIC, operation=ACLOperation.READ, principal=who):
        pattern = ResourcePattern(kind, resource, pattern)
        return ACL(principal, "*", operation, ACLPermissionType.ALLOW, pattern)

    def about(resource=None, pattern=ANY, kind=ResourceType.ANY, operation=ACLOperation.ANY):
        pattern = ResourcePatternFilter(kind, resource, pattern)
        return ACLFilter(who, None, operation, ACLPermissionType.ANY, pattern)

    def found(wanted):
        acls, error = admin.describe_acls(wanted)
        assert error is NoError, error
        return set(acls)

    exact, prefix, every = acl(f"{name}-1"), acl(name, PREFIXED), acl("*")
    group, write = acl(f"{name}-1", kind=GROUP), acl(f"{name}-1", operation=ACLOperation.WRITE)
    all_of_them = {exact, prefix, every, group, write}

    assert found(about()) == set()
    made = admin.create_acls([*all_of_them, exact])
    assert len(made["succeeded"]) == 6 and not made["failed"], made
    eventually(lambda: found(about()) == all_of_them)
    for wanted, expected in [
        (about(kind=TOPIC), all_of_them - {group}),
        (about(f"{name}-1", LITERAL), {exact, group, write}),
        (about(f"{name}-1"), {exact, group, write}),
        (about(f"{name}-1", MATCH, TOPIC), {exact, prefix, every, write}),
        (about(f"{name}-2", MATCH), {prefix, every}),
        (about(pattern=PREFIXED), {prefix}),
        (about("*", LITERAL), {every}),
        (about(operation=ACLOperation.WRITE), {write}),
        (about(operation=ACLOperation.ALL), set()),
    ]:
        eventually(lambda: found(wanted) == expected)

    nonsense = [acl(""), acl(name, principal=name), acl(name, kind=ResourceType.CLUSTER)]
    refused = admin.create_acls(nonsense)
    assert refused == {"succeeded": [], "failed": [InvalidRequestError] * 3}, refused

    removed = admin.delete_acls([about(f"{name}-1", MATCH, GROUP), about("nothing-of-this-name")])
    assert [(set(acls), error) for _, acls, error in removed] == [({group}, NoError), (set(), NoError)], removed
    eventually(lambda: found(about()) == all_of_them - {group})
    assert set(admin.delete_acls([about()])[0][1]) == all_of_them - {group}
    eventually(lambda: found(about()) == set())
