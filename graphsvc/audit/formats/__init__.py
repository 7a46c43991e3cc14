"""Findings in the forms that people, build servers and drawing tools read."""
