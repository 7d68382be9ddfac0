"""Numbered records through librdkafka (confluent-kafka) while somebody else disturbs the brokers.

    traffic.py BOOTSTRAP TOPIC PARTITIONS [--user NAME PASSWORD AUTHORITY]

Produces to all partitions of a topic that exists, and consumes them by assignment. Prints `under way` once records
arrive, then produces on until a line comes in on standard input; reads what is left, and prints as JSON what became of
it all. Whoever started it decides whether that is good.
"""

import json
import sys
import threading
import time

import security
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

PAUSE = 0.002
# For what is left when production has ended. Brokers that come back need seconds, not minutes.
PATIENCE = 60


class Traffic:
    def __init__(self, bootstrap, topic, partitions, who):
        self.topic = topic
        self.partitions = partitions
        common = {"bootstrap.servers": bootstrap, "client.id": "traffic.py", "reconnect.backoff.max.ms": 500}
        common |= security.for_librdkafka(who)
        self.producer = Producer(common | {"enable.idempotence": True, "linger.ms": 5, "retry.backoff.ms": 50})
        self.consumer = Consumer(
            common
            | {"group.id": "traffic.py", "enable.auto.commit": False, "isolation.level": "read_committed"}
        )
        self.sent = 0
        self.acknowledged = set()
        self.failures = []
        self.arrived = {partition: [] for partition in range(partitions)}

    def produce_until(self, finish):
        while not finish.is_set():
            try:
                self.producer.produce(
                    self.topic,
                    value=str(self.sent).encode(),
                    partition=self.sent % self.partitions,
                    on_delivery=self.delivered,
                )
                self.sent += 1
            except BufferError:
                pass  # The queue is full while no leader is there; it empties again.
            self.producer.poll(PAUSE)
        self.producer.flush(PATIENCE)

    def delivered(self, error, message):
        if error is None:
            self.acknowledged.add(int(message.value()))
        else:
            self.failures.append(str(error))

    def consume(self, enough, patience):
        deadline = time.monotonic() + patience
        while not enough() and time.monotonic() < deadline:
            message = self.consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is None:
                self.arrived[message.partition()].append(int(message.value()))
            # Trouble with one broker is what this is about, and librdkafka mends it by itself.
            elif message.error().fatal() or message.error().code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise RuntimeError(message.error())

    def count(self):
        return sum(len(numbers) for numbers in self.arrived.values())

    def run(self):
        self.consumer.assign([TopicPartition(self.topic, partition, 0) for partition in range(self.partitions)])
        finish = threading.Event()
        producing = threading.Thread(target=self.produce_until, args=(finish,))
        listening = threading.Thread(target=lambda: (sys.stdin.readline(), finish.set()), daemon=True)
        producing.start()
        listening.start()
        self.consume(lambda: all(self.arrived.values()), PATIENCE)
        print("under way", flush=True)
        self.consume(finish.is_set, float("inf"))
        producing.join()
        self.consume(lambda: self.count() >= len(self.acknowledged), PATIENCE)
        self.consumer.close()
        numbers = [number for partition in self.arrived.values() for number in partition]
        print(
            json.dumps(
                {
                    "sent": self.sent,
                    "acknowledged": len(self.acknowledged),
                    "failed": self.failures[:5],
                    "lost": sorted(self.acknowledged - set(numbers))[:20],
                    "repeated": len(numbers) - len(set(numbers)),
                    "in_order": all(partition == sorted(partition) for partition in self.arrived.values()),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    (bootstrap, topic, partitions), who = security.split(sys.argv[1:])
    Traffic(bootstrap, topic, int(partitions), who).run()
