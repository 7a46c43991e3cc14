"""The words of the graph service: names, declarations, reports, redaction, wording. No input or output happens here."""
