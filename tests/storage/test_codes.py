"""Codes of areas as Arrow text: the copy of a block of bytes against the way one by one."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.model import Hierarchy
from trellis.model.trees.codes import CODE
from trellis.storage import codes as module
from trellis.storage.codes import codes_from_arrow, codes_to_arrow, level_codes

texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=0, max_size=20)
same_length = st.integers(1, 20).flatmap(
    lambda n: st.lists(st.text("0123456789aZ=-", min_size=n, max_size=n))
)
awkward = st.lists(st.sampled_from(["é1", "ab", "a\0", "\0\0", "上海"]))


@given(st.lists(texts) | same_length | awkward, st.integers(0, 3))
def test_codes_survive_the_way_to_arrow_and_back(codes, skipped):
    array = np.array(codes, dtype=CODE)
    arrow = codes_to_arrow(array)
    assert arrow.type == pa.string()
    assert arrow.to_pylist() == codes
    # A slice begins inside a block of bytes; chunks are put together.
    assert codes_from_arrow(arrow[skipped:]).tolist() == codes[skipped:]
    chunks = pa.chunked_array([arrow[:skipped], arrow[skipped:]])
    assert codes_from_arrow(chunks).tolist() == codes
    assert codes_from_arrow(chunks).dtype == CODE


def test_only_ascii_codes_of_one_length_are_copied_as_a_block():
    assert module._equal_lengths(pa.array(["01001", "01003"])).tolist() == [b"01001", b"01003"]
    for codes in (["1", "22"], ["é", "ö"], ["a\0"], [""], []):
        assert module._equal_lengths(pa.array(codes, pa.string())) is None


def test_a_missing_code_is_refused():
    with pytest.raises(ValueError, match="a code is missing"):
        codes_from_arrow(pa.array(["a", None]))


def test_a_level_is_converted_once_and_forgotten_with_its_hierarchy():
    gc.collect()  # those of other tests
    tree = Hierarchy.from_paths([("r", "a"), ("r", "b")], ["top", "town"])
    assert level_codes(tree, "town").to_pylist() == ["a", "b"]
    assert level_codes(tree, 1) is level_codes(tree, "town")
    assert tree in module._known
    kept = len(module._known)
    assert level_codes(tree, 0).to_pylist() == ["r"]
    del tree
    gc.collect()
    assert len(module._known) == kept - 1
