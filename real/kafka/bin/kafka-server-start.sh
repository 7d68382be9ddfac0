#!/bin/bash
export KAFKA_HEAP_OPTS="${KAFKA_HEAP_OPTS:--Xmx1G -Xms1G}"
exec "$(dirname "$0")/kafka-run-class.sh" ${EXTRA_ARGS-'-name kafkaServer -loggc'} kafka.Kafka "$@"
