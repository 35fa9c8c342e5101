"""The half that works from the run folder alone: estimate, release, report."""
