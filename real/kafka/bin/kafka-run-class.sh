#!/bin/bash
# Stands in for the script of this name in an image of Kafka, which is in no published library: `[-name NAME] [-loggc]
# CLASS ARGUMENTS`, with the variables that the original heeds. Libraries are where an image has them.
while [ $# -gt 0 ]; do
  case $1 in
    -name) shift 2 ;;
    -loggc) shift ;;
    *) break ;;
  esac
done
libraries=$(dirname "$0")/../libs
exec java ${KAFKA_HEAP_OPTS:--Xmx256M} $KAFKA_JVM_PERFORMANCE_OPTS $KAFKA_LOG4J_OPTS -cp "$libraries/*" $KAFKA_OPTS "$@"
