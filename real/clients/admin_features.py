"""What a cluster has agreed on, as an administrator with kafka-python sees and changes it."""

from eventually import eventually
from refusal import refused

ELIGIBLE_LEADERS = "eligible.leader.replicas.version"
METADATA = "metadata.version"
INVALID_UPDATE_VERSION = 95


def features(admin):
    known = admin.describe_features()
    oldest, newest = known[METADATA]["supported"]
    assert known[METADATA]["finalized"] == (newest, newest), known
    assert known[ELIGIBLE_LEADERS]["supported"] == (0, 1), known
    eventually(lambda: level(admin) == (1, 1))

    for update in [
        {METADATA: newest + 1},
        {METADATA: oldest - 1},
        {METADATA: newest - 1},
        {METADATA: ("SAFE_DOWNGRADE", newest - 1)},
        {METADATA: ("UNSAFE_DOWNGRADE", newest - 1)},
        {"no.such.feature": 1},
        {"no.such.feature": 0},
        {ELIGIBLE_LEADERS: 0},
        {ELIGIBLE_LEADERS: 2},
        {ELIGIBLE_LEADERS: -1},
        {ELIGIBLE_LEADERS: ("UNKNOWN", 1)},
        # All or nothing.
        {ELIGIBLE_LEADERS: ("SAFE_DOWNGRADE", 0), "no.such.feature": 1},
    ]:
        refused(lambda: admin.update_features(update), INVALID_UPDATE_VERSION)
    assert admin.update_features({METADATA: newest}) == {METADATA: "OK"}
    down = {ELIGIBLE_LEADERS: ("SAFE_DOWNGRADE", 0)}
    assert admin.update_features(down, validate_only=True) == {ELIGIBLE_LEADERS: "OK"}
    # Neither what was refused nor what was only tried has changed anything.
    refused(lambda: admin.update_features({ELIGIBLE_LEADERS: ("SAFE_DOWNGRADE", 2)}), INVALID_UPDATE_VERSION)
    assert level(admin) == (1, 1)

    admin.update_features(down)
    eventually(lambda: level(admin) is None)
    refused(lambda: admin.update_features({ELIGIBLE_LEADERS: ("SAFE_DOWNGRADE", 1)}), INVALID_UPDATE_VERSION)
    admin.update_features({ELIGIBLE_LEADERS: 1})
    eventually(lambda: level(admin) == (1, 1))


def level(admin):
    return admin.describe_features()[ELIGIBLE_LEADERS].get("finalized")
