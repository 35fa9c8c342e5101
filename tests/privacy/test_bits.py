import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from seeded_bits import SeededBits
from trellis.privacy import bits as bits_module
from trellis.privacy.bits import OsRandom, RandomBits


@pytest.fixture(params=[OsRandom, lambda: SeededBits(1)], ids=["OsRandom", "SeededBits"])
def source(request) -> RandomBits:
    return request.param()


@pytest.mark.parametrize("n", [0, 1, 7, 1 << 15, (1 << 15) + 1, 100_000])
def test_words_have_the_promised_form(source, n):
    words = source.words(n)
    assert words.shape == (n,)
    assert words.dtype == np.uint64
    assert words.flags.writeable


def test_words_do_not_repeat(source):
    drawn = np.concatenate([source.words(n) for n in (1, 3, 50_000, 2)])
    assert len(np.unique(drawn)) == len(drawn)


def test_every_bit_is_fair(source):
    """Six standard deviations: a false alarm in 64 bits once in 8 million runs."""
    n = 100_000
    ones = np.array([(source.words(n) >> np.uint64(b) & np.uint64(1)).sum() for b in range(64)])
    assert np.abs(ones - n / 2).max() < 6 * np.sqrt(n) / 2


def test_instances_are_independent():
    first, second = OsRandom().words(1000), OsRandom().words(1000)
    assert not np.intersect1d(first, second).size


def test_words_are_the_key_stream_of_aes_ctr(monkeypatch):
    key = bytes(range(32))
    monkeypatch.setattr(bits_module.os, "urandom", lambda n: key[:n])
    source = OsRandom()
    drawn = np.concatenate([source.words(n) for n in (1, 0, 40_000, 3, 70_001)])

    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    np.testing.assert_array_equal(
        drawn, np.frombuffer(encryptor.update(bytes(drawn.nbytes)), np.uint64)
    )


def test_a_key_is_replaced_in_time(monkeypatch):
    keys = []

    def urandom(n):
        keys.append(bytes([len(keys)]) * n)
        return keys[-1]

    monkeypatch.setattr(bits_module.os, "urandom", urandom)
    monkeypatch.setattr(bits_module, "_BYTES_PER_KEY", 8 * (1 << 15))
    source = OsRandom()
    drawn = np.concatenate([source.words(20_000) for _ in range(10)])
    assert len(keys) == 10  # two calls of 20,000 words exceed one key
    assert len(np.unique(drawn)) == len(drawn)


FORKED = """
import ctypes, os
from trellis.privacy.bits import OsRandom
HERE
source = OsRandom()
source.words(5)
read, write = os.pipe()
if fork() == 0:
    os.write(write, source.words(100).tobytes())
    os._exit(0)
child = os.read(read, 800)
assert len(child) == 800
assert child != source.words(100).tobytes()
"""


@pytest.mark.parametrize(
    "fork",
    [
        "fork = os.fork",
        "fork = os.fork; os.getpid = lambda: 1",  # as in a namespace of its own
        "fork = ctypes.CDLL(None).fork",  # which Python does not hear of
    ],
)
def test_a_forked_child_has_its_own_stream(fork):
    subprocess.run([sys.executable, "-c", FORKED.replace("HERE", fork)], check=True)


def test_threads_share_an_instance_but_no_words():
    source, drawn = OsRandom(), []
    threads = [
        threading.Thread(target=lambda: drawn.extend(source.words(50_000))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 200_000


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_no_duplicates_of_a_stream(duplicate):
    source = OsRandom()
    source.words(1)
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        duplicate(source)


def test_no_seed_and_no_key_to_see():
    with pytest.raises(TypeError):
        OsRandom(1)
    source = OsRandom()
    source.words(1)
    assert repr(source) == "OsRandom()"
    assert not hasattr(source, "__dict__")
