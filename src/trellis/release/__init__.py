"""From estimates to what data users get: tables, the privacy record and the manifest."""
