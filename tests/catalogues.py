"""The real catalogues of ../shared/data and how far their answers reach."""

from __future__ import annotations

CATALOGUES = (
    "airflow-assets",
    "asyncapi-social-media",
    "aws-ecommerce-eventbridge",
    "aws-ecommerce-eventbridge-lenient",
    "busytown-agents",
    "eshop-integration-events",
    "eventcatalog-default",
    "github-actions-chains",
    "homeassistant-a",
    "llamaindex-workflows",
    "metagpt-roles",
    "n8n-execute-workflow",
    "ralph-hats",
    "ros-caret-e2e",
)
LONGEST_ANSWERED = 8
"""Agents in the longest loop that the answers name."""

MOST_ANSWERED = 200
"""Most loops that they name through one agent."""
