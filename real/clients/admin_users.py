"""Who may log in by SCRAM, as an administrator with kafka-python sees and changes it; and what comes of it."""

import security
from eventually import eventually
from kafka.admin import KafkaAdminClient, ScramMechanism, UserScramCredentialDeletion, UserScramCredentialUpsertion
from kafka.errors import KafkaError

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def users(admin, bootstrap, name, who):
    """`name` is one that nobody else uses. Where `who` got in by a password, so does the new user."""

    def credentials():
        described = admin.describe_user_scram_credentials([name])[name]
        return {info["mechanism"]: info["iterations"] for info in described["credential_infos"]}

    def alter(*alterations):
        return admin.alter_user_scram_credentials(list(alterations))

    assert "does not exist" in admin.describe_user_scram_credentials([name])[name]["error"]
    assert "twice" in admin.describe_user_scram_credentials([name, name])[name]["error"]
    assert alter(UserScramCredentialUpsertion(name, SHA_256, "first")) == {name: None}
    eventually(lambda: credentials() == {SHA_256: 4096})
    assert alter(UserScramCredentialUpsertion(name, SHA_512, "first", iterations=8192)) == {name: None}
    eventually(lambda: credentials() == {SHA_256: 4096, SHA_512: 8192})
    eventually(lambda: name in admin.describe_user_scram_credentials())

    refusals = alter(
        UserScramCredentialUpsertion(name, SHA_256, "other"),
        UserScramCredentialUpsertion(name, SHA_512, "other"),
        UserScramCredentialUpsertion(f"{name}-few", SHA_512, "other", iterations=4095),
        UserScramCredentialUpsertion(f"{name}-many", SHA_512, "other", iterations=16385),
        UserScramCredentialUpsertion("", SHA_512, "other"),
        UserScramCredentialDeletion(f"{name}-none", SHA_256),
    )
    assert refusals == {
        name: "A user credential cannot be altered twice in the same request",
        f"{name}-few": "Too few iterations",
        f"{name}-many": "Too many iterations",
        "": "Username must not be empty",
        f"{name}-none": "Attempt to delete a user credential that does not exist",
    }, refusals

    if who:
        eventually(lambda: enters(bootstrap, name, "first", who))
        assert not enters(bootstrap, name, "other", who)
        assert alter(UserScramCredentialUpsertion(name, SHA_256, "second")) == {name: None}
        assert alter(UserScramCredentialUpsertion(name, SHA_512, "second")) == {name: None}
        eventually(lambda: enters(bootstrap, name, "second", who))
        eventually(lambda: not enters(bootstrap, name, "first", who))

    assert alter(UserScramCredentialDeletion(name, SHA_512)) == {name: None}
    eventually(lambda: credentials() == {SHA_256: 4096})
    assert alter(UserScramCredentialDeletion(name, SHA_256)) == {name: None}
    eventually(lambda: "does not exist" in (admin.describe_user_scram_credentials([name])[name]["error"] or ""))
    if who:
        eventually(lambda: not enters(bootstrap, name, "second", who))


def enters(bootstrap, name, password, who):
    *_, authority = who
    door = security.for_kafka_python((name, password, authority))
    try:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","), bootstrap_timeout_ms=5_000, **door)
        admin.describe_cluster()
        admin.close()
    except KafkaError:
        return False
    return True
