"""What the programs here say at a door where they are asked who they are.

All of them take, behind their other arguments, `--user NAME PASSWORD AUTHORITY`: SASL_SSL with SCRAM-SHA-512, brokers
trusted by the word of the authority in that file. Without it they speak to anybody, in the clear.
"""

FLAG = "--user"
MECHANISM = "SCRAM-SHA-512"


def split(arguments):
    """The other arguments, and what to say at the door."""
    if FLAG not in arguments:
        return arguments, None
    at = arguments.index(FLAG)
    user, password, authority = arguments[at + 1 :]
    return arguments[:at], (user, password, authority)


def for_kafka_python(security):
    if security is None:
        return {}
    user, password, authority = security
    return {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": MECHANISM,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
        "ssl_cafile": authority,
    }


def for_librdkafka(security):
    if security is None:
        return {}
    user, password, authority = security
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": authority,
    }
