"""One topic, set up, moved and waited for by kafka-python, around what another program does with it.

    topic.py BOOTSTRAP create TOPIC "0,1 1,2"     makes it, with these replicas of its partitions
    topic.py BOOTSTRAP move TOPIC "1,2 2,3"       gives its partitions these replicas, and waits until they have them
    topic.py BOOTSTRAP in-sync TOPIC              waits until all replicas of all partitions are in sync
    topic.py BOOTSTRAP missed TOPIC BROKER        waits until this broker leads none of its partitions

Each may end in `--user NAME PASSWORD AUTHORITY`. Each look is one answer of one broker: two could come from brokers of which one has not heard yet what the other shows.
"""

import sys

import security
from eventually import eventually
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic


def main(bootstrap, deed, topic, wanted="", *, who):
    door = security.for_kafka_python(who)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","), client_id="topic.py", **door)

    def look():
        return sorted(admin.describe_topics([topic])[0]["partitions"], key=lambda each: each["partition_index"])

    def has(replicas):
        return [partition["replica_nodes"] for partition in look()] == replicas

    def in_sync():
        seen = look()
        return bool(seen) and all(sorted(each["isr_nodes"]) == sorted(each["replica_nodes"]) for each in seen)

    def is_missed(broker):
        seen = look()
        return bool(seen) and all(partition["leader_id"] != broker for partition in seen)

    def assignment():
        return [[int(broker) for broker in replicas.split(",")] for replicas in wanted.split()]

    if deed == "create":
        admin.create_topics([NewTopic(topic, replica_assignments=dict(enumerate(assignment())))])
        eventually(lambda: has(assignment()))
    elif deed == "move":
        target = {TopicPartition(topic, index): replicas for index, replicas in enumerate(assignment())}
        outcome = admin.alter_partition_reassignments(target)
        assert not any(outcome.values()), outcome
        eventually(lambda: not admin.list_partition_reassignments() and has(assignment()))
    elif deed == "in-sync":
        eventually(in_sync)
    elif deed == "missed":
        eventually(lambda: is_missed(int(wanted)))
    else:
        sys.exit(__doc__)
    admin.close()


if __name__ == "__main__":
    arguments, who = security.split(sys.argv[1:])
    main(*arguments, who=who)
