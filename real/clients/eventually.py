"""What one broker was told, another knows a moment later."""

import time

from kafka.errors import KafkaError


def eventually(holds):
    """Asks until it holds. A broker that has not heard yet refuses, or leaves out what was asked for."""
    deadline = time.monotonic() + 60
    while True:
        try:
            if holds():
                return
            cause = None
        except (KafkaError, LookupError) as error:
            cause = error
        if time.monotonic() > deadline:
            raise AssertionError("did not come true in 60 s") from cause
        time.sleep(0.05)
