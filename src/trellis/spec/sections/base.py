"""What all sections of a spec have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A section of a spec.

    One that was made without validation is validated when it becomes part of a spec.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, revalidate_instances="always")
