"""An independent check of every promise of a finished run.

Reads the files as a stranger would, and shares no code with the stages that wrote them.
"""

from trellis.verify.verify import Finding, as_data, is_reduced, verify_run

__all__ = ["Finding", "as_data", "is_reduced", "verify_run"]
