"""Everything replay can run: one policy per file, a small registry, and the seam between replay and a policy."""

from pamer_lab.policies.interface import Policy, PolicySession, Resources
from pamer_lab.policies.registry import DEFAULT_POLICIES, POLICIES, describe_policies, parse_policies, parse_policy
from pamer_lab.policies.values import Action, Answer, History, Item, Spent

__all__ = [
    "DEFAULT_POLICIES",
    "POLICIES",
    "Action",
    "Answer",
    "History",
    "Item",
    "Policy",
    "PolicySession",
    "Resources",
    "Spent",
    "describe_policies",
    "parse_policies",
    "parse_policy",
]
