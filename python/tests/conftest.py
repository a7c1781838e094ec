"""Small heaps, and waits that a busy machine does not bring to their limit."""

import os
import random
import signal

import pytest

os.environ.setdefault("UNTAX_HEAP_BYTES", "32M")
os.environ.setdefault("UNTAX_WAIT_LIMIT_MS", "60000")

# A shell starts what is in its background with SIGINT ignored, and the programs that tests interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def seed():
    """A seed that is printed where a test fails; UNTAX_TEST_SEED sets it."""
    value = int(os.environ.get("UNTAX_TEST_SEED", random.SystemRandom().randrange(2**31)))
    print(f"UNTAX_TEST_SEED={value}")
    return value
