"""One request -> one `Decision`: PaMER, PaMER+ and their fallbacks."""

from pamer_lab.controller.decision import Action, Auxiliary, BlockState, ContextItem, Decision
from pamer_lab.controller.pamer import PamerController
from pamer_lab.controller.probe import FixedProbe, Probe, Votes
from pamer_lab.controller.request import as_chat
from pamer_lab.controller.settings import ControllerSettings

__all__ = [
    "Action",
    "Auxiliary",
    "BlockState",
    "ContextItem",
    "ControllerSettings",
    "Decision",
    "FixedProbe",
    "PamerController",
    "Probe",
    "Votes",
    "as_chat",
]
