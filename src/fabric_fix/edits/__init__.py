"""Edits: their descriptions (`model`), their meaning on `ast` (`tree`), and their making with LibCST (`rewrite`)."""
