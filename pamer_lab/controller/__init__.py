"""One request -> one `Decision`: PaMER, PaMER+ and their fallbacks."""

from pamer_lab.controller.pamer import PamerController
from pamer_lab.controller.probe import FixedProbe, Probe, Votes
from pamer_lab.controller.request import as_chat
from pamer_lab.controller.settings import ControllerSettings
from pamer_lab.controller.turn import RequestDecision

__all__ = [
    "ControllerSettings",
    "FixedProbe",
    "PamerController",
    "Probe",
    "RequestDecision",
    "Votes",
    "as_chat",
]
