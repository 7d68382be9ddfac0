"""Round trips of kafka-python's administrator, timed one after the other: the other side of `cargo xtask bench kafka`.

    round_trips.py BOOTSTRAP TOPIC WARM_UP COUNT

Needs a topic of four partitions without records. Makes each trip WARM_UP times, then COUNT times, and prints as JSON how
many seconds each of the latter took.
"""

import json
import sys
import time

from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, OffsetSpec


def main(bootstrap, topic, warm_up, count):
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","), client_id="round_trips.py")
    first = TopicPartition(topic, 0)
    settings = ConfigResource(ConfigResourceType.TOPIC, topic)

    def alter(n):
        change = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": str(3_600_000 + n)})
        # Its own check of the name would be a second trip.
        return admin.alter_configs([change], raise_on_unknown=False) == {"topic": {topic: "OK"}}

    trips = {
        "describe the cluster": lambda n: len(admin.describe_cluster()["brokers"]) == 3,
        "describe a topic": lambda n: len(admin.describe_topics([topic])[0]["partitions"]) == 4,
        "describe all topics": lambda n: len(admin.describe_topics()) > 50,
        "describe a topic's settings": lambda n: admin.describe_configs([settings], config_filter="all")["topic"][topic],
        "alter a topic's setting": alter,
        "list reassignments": lambda n: admin.list_partition_reassignments() == {},
        "find the end of a partition": lambda n: admin.list_partition_offsets({first: OffsetSpec.LATEST})[first].offset == 0,
    }
    print(json.dumps({name: timed(trip, warm_up, count) for name, trip in trips.items()}))
    admin.close()


def timed(trip, warm_up, count):
    seconds = []
    for n in range(warm_up + count):
        began = time.perf_counter()
        assert trip(n), trip
        if n >= warm_up:
            seconds.append(time.perf_counter() - began)
    return seconds


if __name__ == "__main__":
    bootstrap, topic, warm_up, count = sys.argv[1:]
    main(bootstrap, topic, int(warm_up), int(count))
