"""Run folders as strangers write them: inventory, safe readers, forms of files."""
