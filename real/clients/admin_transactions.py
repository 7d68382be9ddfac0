"""Transactions and their producers, as an administrator with kafka-python finds them, and ends one that hangs."""

from eventually import eventually
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import AbortTransactionSpec, TransactionState
from refusal import refused

COORDINATOR_FENCED = 52
ID_NOT_FOUND = 105
INVALID_REGULAR_EXPRESSION = 128


def transactions(admin, bootstrap, topic, door):
    """`topic` has two partitions that nobody writes to."""
    name = f"{topic}-writer"
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    def listed(**filters):
        everybodys = admin.list_transactions(**filters).values()
        return {it.state for those in everybodys for it in those if it.transactional_id == name}

    def described():
        return admin.describe_transactions([name])[name]

    def producer_of(partition):
        active = admin.describe_producers([partition])[partition].active_producers
        return next((it for it in active if it.producer_id == described().producer_id), None)

    writer = KafkaProducer(
        bootstrap_servers=bootstrap.split(","), transactional_id=name, transaction_timeout_ms=50_000, **door
    )
    writer.init_transactions()
    eventually(lambda: listed() == {TransactionState.EMPTY})
    refused(lambda: admin.describe_transactions([f"{name}-nobody"]), ID_NOT_FOUND)
    assert (described().transaction_timeout_ms, described().transaction_start_time_ms) == (50_000, -1)
    assert producer_of(first) is None

    writer.begin_transaction()
    written = writer.send(topic, b"committed", partition=0).get(30)
    assert described().state == TransactionState.ONGOING and described().topic_partitions == {first}
    assert described().transaction_start_time_ms > 0
    seen = producer_of(first)
    assert (seen.last_sequence, seen.coordinator_epoch, seen.current_transaction_start_offset) == (0, -1, written.offset)
    assert producer_of(second) is None
    ongoing, own = {TransactionState.ONGOING}, described().producer_id
    for filters, expected in [
        ({"state_filters": ["Ongoing"]}, ongoing),
        ({"state_filters": ["Empty"]}, set()),
        ({"state_filters": ["NoSuchState"]}, set()),
        ({"producer_id_filters": [own]}, ongoing),
        ({"producer_id_filters": [own + 4711]}, set()),
        ({"duration_filter_ms": 600_000}, set()),
        ({"transactional_id_pattern": f"{topic}.*"}, ongoing),
        # All of the id, not some of it.
        ({"transactional_id_pattern": topic}, set()),
    ]:
        assert listed(**filters) == expected, filters
    refused(lambda: admin.list_transactions(transactional_id_pattern="("), INVALID_REGULAR_EXPRESSION)
    assert name not in {it["transactional_id"] for it in admin.find_hanging_transactions()}
    # Old enough when nothing has to be old.
    hanging = admin.find_hanging_transactions(max_transaction_timeout_ms=-600_000)
    assert name in {it["transactional_id"] for it in hanging}, hanging

    writer.commit_transaction()
    eventually(lambda: described().state == TransactionState.COMPLETE_COMMIT)
    assert described().topic_partitions == set() and described().transaction_start_time_ms > 0
    eventually(lambda: producer_of(first).current_transaction_start_offset == -1)
    assert producer_of(first).coordinator_epoch == 0

    # One that hangs: an administrator ends it in its partition, and the coordinator does not hear of it.
    writer.begin_transaction()
    written = writer.send(topic, b"hangs", partition=0).get(30)
    seen = producer_of(first)
    assert seen.current_transaction_start_offset == written.offset, seen
    spec = AbortTransactionSpec(first, seen.producer_id, seen.producer_epoch, seen.coordinator_epoch)
    refused(lambda: admin.abort_transaction(spec._replace(coordinator_epoch=-1)), COORDINATOR_FENCED)
    refused(lambda: admin.abort_transaction(spec._replace(producer_epoch=seen.producer_epoch - 1)), -1)
    assert producer_of(first).current_transaction_start_offset == written.offset
    admin.abort_transaction(spec)
    assert producer_of(first).current_transaction_start_offset == -1
    assert described().state == TransactionState.ONGOING
    eventually(lambda: values(bootstrap, first, "read_committed", door) == [b"committed"])
    assert values(bootstrap, first, "read_uncommitted", door) == [b"committed", b"hangs"]
    writer.abort_transaction()
    eventually(lambda: described().state == TransactionState.COMPLETE_ABORT)
    writer.close()


def values(bootstrap, partition, isolation, door):
    reader = KafkaConsumer(bootstrap_servers=bootstrap.split(","), isolation_level=isolation, **door)
    reader.assign([partition])
    reader.seek_to_beginning(partition)
    end = reader.end_offsets([partition])[partition]
    seen = []
    while reader.position(partition) < end:
        seen += [record.value for records in reader.poll(1_000).values() for record in records]
    reader.close()
    return seen
