"""One topic, set up, moved and waited for by kafka-python, around what another program does with it.

    topic.py BOOTSTRAP create TOPIC "0,1 1,2"     makes it, with these replicas of its partitions
    topic.py BOOTSTRAP move TOPIC "1,2 2,3"       gives its partitions these replicas, and waits until they have them
    topic.py BOOTSTRAP in-sync TOPIC              waits until all replicas of all partitions are in sync
    topic.py BOOTSTRAP missing TOPIC              waits until some replica is not
"""

import sys

from eventually import eventually
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic


def main(bootstrap, deed, topic, wanted=""):
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","), client_id="topic.py")
    wanted = [[int(broker) for broker in replicas.split(",")] for replicas in wanted.split()]

    def partitions(what):
        described = admin.describe_topics([topic])[0]["partitions"]
        return [partition[what] for partition in sorted(described, key=lambda each: each["partition_index"])]

    def all_in_sync():
        return list(map(sorted, partitions("isr_nodes"))) == list(map(sorted, partitions("replica_nodes")))

    if deed == "create":
        admin.create_topics([NewTopic(topic, replica_assignments=dict(enumerate(wanted)))])
        eventually(lambda: partitions("replica_nodes") == wanted)
    elif deed == "move":
        target = {TopicPartition(topic, index): replicas for index, replicas in enumerate(wanted)}
        outcome = admin.alter_partition_reassignments(target)
        assert not any(outcome.values()), outcome
        eventually(lambda: not admin.list_partition_reassignments() and partitions("replica_nodes") == wanted)
    elif deed == "in-sync":
        eventually(all_in_sync)
    elif deed == "missing":
        eventually(lambda: not all_in_sync())
    else:
        sys.exit(__doc__)
    admin.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
