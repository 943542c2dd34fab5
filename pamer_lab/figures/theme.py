"""Colours with one meaning each, in light and dark (Okabe-Ito); a dash or marker always repeats the meaning."""

from typing import Any, Literal

from pamer_lab.looks import Colour

Meaning = Literal[
    "base",
    "pamer",
    "pamer+",
    "sliding",
    "periodic",
    "ablation",
    "compression",
    "recall",
    "fallback",
    "good",
    "bad",
    "active",
    "summarised",
    "recalled",
    "restored",
    "absent",
    "chosen",
    "faint",
]
"""`base` to `ablation`: policies. `compression`, `recall`, `fallback`: events. `good`, `bad`: changes. `active` to
`absent`: block states. `chosen`: what the reader opened. `faint`: everything else in the background."""

LIGHT: dict[Meaning, str] = {
    "base": "#7A7A7A",
    "pamer": "#0072B2",
    "pamer+": "#D55E00",
    "sliding": "#56B4E9",
    "periodic": "#B8860B",
    "ablation": "#CC79A7",
    "compression": "#000000",
    "recall": "#009E73",
    "fallback": "#E69F00",
    "good": "#009E73",
    "bad": "#D55E00",
    "active": "#3C4650",
    "summarised": "#9AA3AB",
    "recalled": "#66C2A4",
    "restored": "#009E73",
    "absent": "#E4E4DE",
    "chosen": "#0072B2",
    "faint": "#B9BEC3",
}
DARK: dict[Meaning, str] = {
    "base": "#A6A6A6",
    "pamer": "#5CB3E6",
    "pamer+": "#FF8A4C",
    "sliding": "#8CD0F5",
    "periodic": "#DDB14A",
    "ablation": "#E3A3C6",
    "compression": "#FFFFFF",
    "recall": "#3CC79E",
    "fallback": "#F2B84B",
    "good": "#3CC79E",
    "bad": "#FF8A4C",
    "active": "#D3D9DE",
    "summarised": "#7C858D",
    "recalled": "#2F8F72",
    "restored": "#3CC79E",
    "absent": "#31363C",
    "chosen": "#5CB3E6",
    "faint": "#565D65",
}
NAMED: dict[Colour, Meaning] = {
    "grey": "base",
    "blue": "pamer",
    "vermilion": "pamer+",
    "sky": "sliding",
    "brown": "periodic",
    "purple": "ablation",
    "green": "recall",
    "black": "compression",
}
"""Colours as policies and conditions name them."""


def layout(**more: Any) -> dict[str, Any]:
    """What all our figures share; fonts, grid and background come from Streamlit's theme."""
    base: dict[str, Any] = {
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "showlegend": False,
        "hoverlabel": {"align": "left"},
        "dragmode": False,
        "bargap": 0.15,
    }
    return base | more


CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "zoom2d", "pan2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
}
"""Plotly's own tool bar: keep the camera and the reset."""
