"""What is to fail, and how."""

from kafka.errors import KafkaError


def refused(call, code):
    """The call fails, and with this error code."""
    try:
        answer = call()
    except KafkaError as error:
        assert error.errno == code, repr(error)
    else:
        raise AssertionError(f"not refused: {answer}")
