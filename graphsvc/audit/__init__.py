"""Audits of whole graphs: loop components, shortest loops, what to drop, and events that lead nowhere, for one auditor."""
