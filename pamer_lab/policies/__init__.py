"""Everything replay can run: one policy per file, a small registry, and the seam between replay and a policy."""

from pamer_lab.policies.interface import Policy, PolicySession, Resources
from pamer_lab.policies.registry import ALL_SEVEN, POLICIES, describe_policies, parse_policies, parse_policy
from pamer_lab.policies.values import Action, Answer, History, Item, Spent

__all__ = [
    "ALL_SEVEN",
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
