"""A cluster as an administrator with kafka-python sees it: everything that client offers but consumer groups.

    admin.py BOOTSTRAP TOPIC [--user NAME PASSWORD AUTHORITY]

Needs brokers 0 to 3 with two log directories each and an authorizer, and a topic name that is free. Exits with 0 if all went as it goes
on Apache Kafka; otherwise the traceback says what did not.

Each question may go to another broker, and each broker hears in its own time of what the controller has decided. So
whatever a broker answers out of its own knowledge is asked for until it is so; what the controller decides (whether a
change is accepted) is so at once.
"""

import sys
from functools import partial

import security
from admin_acls import permissions
from admin_features import features
from admin_transactions import transactions
from admin_users import users
from eventually import eventually
from kafka import TopicPartition, TopicPartitionReplica
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic, OffsetSpec
from kafka.errors import NoError
from refusal import refused

PREFERRED = 0


def main(bootstrap, topic, who):
    door = security.for_kafka_python(who)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","), client_id="admin.py", **door)
    what_brokers_speak(admin)
    a_cluster_of_four(admin)
    a_quorum_that_four_follow(admin)
    a_topic_is_made(admin, topic)
    its_settings_change(admin, topic)
    what_has_settings_is_listed(admin, topic)
    records_are_deleted(admin, topic)
    a_broker_is_throttled_and_released(admin)
    it_grows(admin, topic)
    it_moves(admin, topic)
    its_leader_is_elected(admin, topic)
    a_replica_changes_its_directory(admin, topic)
    transactions(admin, bootstrap, topic, door)
    it_is_deleted(admin, topic)
    users(admin, bootstrap, f"{topic}-user", who)
    permissions(admin, f"{topic}-reader")
    features(admin)
    admin.close()


def what_brokers_speak(admin):
    assert admin.api_versions(), "nothing"
    assert all(admin.get_broker_version_data(broker) for broker in range(4))


def a_cluster_of_four(admin):
    def as_expected():
        cluster = admin.describe_cluster()
        brokers = {broker["broker_id"]: broker for broker in cluster["brokers"]}
        everybody = {0, 1, 2, 3} <= brokers.keys() and all(broker["rack"] for broker in brokers.values())
        return everybody and cluster["controller_id"] in brokers

    eventually(as_expected)


def a_quorum_that_four_follow(admin):
    def as_expected():
        quorum = admin.describe_metadata_quorum()["topics"][0]["partitions"][0]
        observers = {observer["replica_id"] for observer in quorum["observers"]}
        voters = {voter["replica_id"] for voter in quorum["current_voters"]}
        return quorum["leader_id"] in voters and {0, 1, 2, 3} <= observers

    eventually(as_expected)


def a_topic_is_made(admin, topic):
    made = admin.create_topics([NewTopic(topic, replica_assignments={0: [0, 1], 1: [1, 2]})])
    assert made["topics"][0]["error_code"] == 0, made
    eventually(lambda: replicas(admin, topic) == {0: [0, 1], 1: [1, 2]})
    refused(lambda: admin.create_topics([NewTopic(topic, 1, 1)]), 36)

    def in_sync():
        listed = admin.describe_topic_partitions([topic])["topics"][0]["partitions"]
        return [partition["isr_nodes"] for partition in listed]

    eventually(lambda: in_sync() == [[0, 1], [1, 2]])
    eventually(lambda: topic in admin.list_topics())
    admin.wait_for_topics([topic])
    first = TopicPartition(topic, 0)
    eventually(lambda: admin.list_partition_offsets({first: OffsetSpec.LATEST})[first].offset == 0)


def its_settings_change(admin, topic):
    key = "retention.ms"

    # With all settings, or a broker that does not know the topic would look like one where nothing is set.
    def source():
        described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
        setting = described["topic"][topic][key]
        return setting["config_source"], setting["value"]

    # Without the client's own check of the name, which asks some broker and so may ask one that does not know the topic.
    def change(deed, value):
        outcome = deed([ConfigResource(ConfigResourceType.TOPIC, topic, value)], raise_on_unknown=False)
        assert outcome == {"topic": {topic: "OK"}}, outcome

    eventually(lambda: source()[0] == "DEFAULT_CONFIG")
    change(admin.alter_configs, {key: "3600000"})
    eventually(lambda: source() == ("DYNAMIC_TOPIC_CONFIG", "3600000"))
    change(admin.reset_configs, [key])
    eventually(lambda: source()[0] == "DEFAULT_CONFIG")
    # The older call, of all settings at once.
    change(partial(admin.alter_configs, incremental=False), {key: "7200000"})
    eventually(lambda: source() == ("DYNAMIC_TOPIC_CONFIG", "7200000"))
    change(partial(admin.reset_configs, incremental=False), [])
    eventually(lambda: source()[0] == "DEFAULT_CONFIG")


def what_has_settings_is_listed(admin, topic):
    def as_expected():
        listed = admin.list_config_resources(["TOPIC", "BROKER"])
        return topic in listed["topic"] and {"0", "1", "2", "3"} <= set(listed["broker"])

    eventually(as_expected)


def records_are_deleted(admin, topic):
    # There are none: all of them are gone, and one more is too many.
    first = TopicPartition(topic, 0)
    assert admin.delete_records({first: -1})[first]["low_watermark"] == 0
    refused(lambda: admin.delete_records({first: 1}), 1)


def a_broker_is_throttled_and_released(admin):
    key = "leader.replication.throttled.rate"

    def rate():
        settings = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "3")])["broker"]["3"]
        return settings.get(key, {}).get("value")

    # The name is not among a broker's settings until it is set, so the client has to be told that it exists.
    throttled = ConfigResource(ConfigResourceType.BROKER, "3", {key: "10000000"})
    admin.alter_configs([throttled], raise_on_unknown=False)
    eventually(lambda: rate() == "10000000")
    admin.reset_configs([ConfigResource(ConfigResourceType.BROKER, "3", [key])], raise_on_unknown=False)
    eventually(lambda: rate() is None)


def it_grows(admin, topic):
    admin.create_partitions({topic: NewPartitions(3, [[2, 3]])})
    eventually(lambda: replicas(admin, topic) == {0: [0, 1], 1: [1, 2], 2: [2, 3]})
    refused(lambda: admin.create_partitions({topic: NewPartitions(2)}), 37)


def it_moves(admin, topic):
    first = TopicPartition(topic, 0)
    admin.alter_partition_reassignments({first: [2, 3]})
    eventually(lambda: not admin.list_partition_reassignments({topic: [0]}) and replicas(admin, topic).get(0) == [2, 3])
    outcome = admin.alter_partition_reassignments({first: None, TopicPartition(topic, 1): [1, 99]})
    codes = {partition.partition: error.errno for partition, error in outcome.items()}
    assert codes == {0: 85, 1: 39}, outcome


def its_leader_is_elected(admin, topic):
    # A pure change of order moves no data and no leadership.
    admin.alter_partition_reassignments({TopicPartition(topic, 0): [3, 2]})
    eventually(lambda: replicas_and_leader(admin, topic) == ([3, 2], 2))
    admin.elect_leaders(PREFERRED, {topic: [0]})
    eventually(lambda: replicas_and_leader(admin, topic) == ([3, 2], 3))


def a_replica_changes_its_directory(admin, topic):
    def where():
        described = admin.describe_log_dirs({topic: [0]}, brokers=[3])[0]["log_dirs"]
        held = [entry["log_dir"] for entry in described for held in entry["topics"] if held["name"] == topic]
        return [entry["log_dir"] for entry in described], held

    eventually(lambda: len(where()[1]) == 1)
    all_of_them, held = where()
    assert len(all_of_them) == 2, all_of_them
    other = next(folder for folder in all_of_them if folder != held[0])
    replica = TopicPartitionReplica(topic, 0, 3)
    assert admin.alter_replica_log_dirs({replica: other}) == {replica: NoError}
    eventually(lambda: where()[1] == [other])


def it_is_deleted(admin, topic):
    admin.delete_topics([topic])
    eventually(lambda: topic not in admin.list_topics())
    refused(lambda: admin.delete_topics([topic]), 3)


def partitions(admin, topic):
    described = admin.describe_topics([topic])[0]
    return {partition["partition_index"]: partition for partition in described["partitions"]}


def replicas(admin, topic):
    return {index: partition["replica_nodes"] for index, partition in partitions(admin, topic).items()}


def replicas_and_leader(admin, topic):
    """Of its first partition, out of one answer: two might come from two brokers."""
    first = partitions(admin, topic).get(0, {})
    return first.get("replica_nodes"), first.get("leader_id")


if __name__ == "__main__":
    arguments, who = security.split(sys.argv[1:])
    main(*arguments, who=who)
