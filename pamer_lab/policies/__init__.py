"""The policies that replay can run: one per file, a small registry, and the interface between replay and a policy."""

from pamer_lab.policies.interface import History, Policy, PolicySession, Resources
from pamer_lab.policies.registry import DEFAULT_POLICIES, POLICIES, describe_policies, parse_policies, parse_policy

__all__ = [
    "DEFAULT_POLICIES",
    "POLICIES",
    "History",
    "Policy",
    "PolicySession",
    "Resources",
    "describe_policies",
    "parse_policies",
    "parse_policy",
]
