"""The spec in a run folder can be read again, whatever the kind of release."""

import size_worlds
from trellis.spec import Spec
from worlds import SPEC


def test_the_copy_of_a_spec_is_a_spec():
    for content in (SPEC, size_worlds.SPEC, size_worlds.SPEC | size_worlds.TABLE_FORM):
        public = Spec.parse(content).public()
        assert Spec.parse(public).public() == public
