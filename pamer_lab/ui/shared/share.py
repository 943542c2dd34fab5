"""Sharing a page: its link, and an offline file that does not need PaMER Lab.

A page names the report sections of its share file. Nothing is computed before the reader asks, the findings of the secret scan are shown
before the download, and one finished file is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

import msgspec
import streamlit as st

from pamer_lab.aside import SCAN_SECONDS, ask
from pamer_lab.errors import LabError
from pamer_lab.figures.text import counted
from pamer_lab.opening import read_file
from pamer_lab.redaction import Finding, Redaction, summary
from pamer_lab.report.config import ReportConfig
from pamer_lab.ui.shared.charts import PICTURE, PICTURES, picture_format
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import sentences, table, table_height

Sections = Callable[[], Sequence[Any]]
"""Gives the sections of `pamer_lab.report.config` that a page's share file would hold; called only when one is made."""

REDACTIONS: dict[Redaction, str] = {"keys": "Keys and tokens", "all": "All findings", "none": "Nothing"}
READY = "share-ready"
"""Session key: the finished report and the configuration it was made from."""
SHOWN_FINDINGS = 200


def share(sections: Sections | None = None) -> None:
    """The button that opens the link and, if the page has content to share, the share file."""
    if st.button("Share", icon=":material/share:", key="share", width="stretch"):
        _panel(sections)


# A dialog, not a popover: a popover that reports its closing undoes the click on another page that closed it.
@st.dialog("Share", width="medium", on_dismiss="rerun")
def _panel(sections: Sections | None) -> None:
    query = urlencode({name: st.query_params.get_all(name) for name in st.query_params}, doseq=True)
    st.markdown("**A link**")
    st.caption("Opens the same trace, policies, turn and settings, in any workspace with the same trace.")
    st.code(f"{(st.context.url or '').partition('?')[0]}?{query}", language=None, wrap_lines=True)
    if sections is not None:
        with sentences():
            share_file(sections)
    _pictures()


def _pictures() -> None:
    """How charts are saved; kept in the session, since Streamlit forgets widgets that a page does not show."""
    st.markdown("**Pictures**")
    st.segmented_control(
        "Format of saved charts",
        list(PICTURES),
        default=picture_format(),
        required=True,
        format_func=str.upper,
        key="picture",
        on_change=lambda: st.session_state.update({PICTURE: st.session_state["picture"]}),
    )
    st.caption("Hover over a chart and click the camera to save it. SVG for print, PNG for slides.")


def share_file(sections: Sections) -> None:
    """The file: what goes in, what the scan found, and the downloads."""
    st.markdown("**A file**")
    st.caption("One HTML file that works offline, verifies its own numbers, and accepts reviews.")
    text = st.toggle("Include trace text", value=True, key="share-text")
    redact = choose_redaction("share-redact")
    made: tuple[ReportConfig, Prepared] | None = st.session_state.get(READY)
    pressed = st.button("Scan and prepare", key="share-make", icon=":material/inventory_2:")
    if not pressed and made is None:
        return
    config = ReportConfig(sections=tuple(sections()), text=text, redact=redact, prices=str(st.session_state.get("prices") or ""))
    if pressed:
        with st.spinner("Preparing the file…"):
            try:
                made = (config, prepared(config))
            except LabError as error:
                st.error(in_code(str(error), 400))
                return
            st.session_state[READY] = made
    if made is None or made[0] != config:
        st.caption("The page or these options have changed since the file was prepared. Prepare it again.")
        return
    _ready(made[1])


@dataclass(frozen=True)
class Prepared:
    """A share file that is ready for its reader."""

    findings: list[Finding]
    cut: int
    """Texts that were shortened."""
    html: bytes
    archive: bytes


class _Said(msgspec.Struct):
    findings: list[Finding]
    text: dict[str, Any]


def prepared(config: ReportConfig) -> Prepared:
    """Scan and build the file in a separate process, since the texts are untrusted."""
    command = "pamer-lab report --config config.json --out share.html"
    with TemporaryDirectory(prefix="pamer-lab-share-") as folder:
        asked = [str(workspace().path.absolute()), config.model_dump_json(), command, folder]
        said = ask("share", asked, _Said, seconds=SCAN_SECONDS, what="Preparing the share file")
        files = [read_file(Path(folder) / name) for name in ("share.html", "share.zip")]
    return Prepared(said.findings, said.text["cut"], *files)


def _ready(report: Prepared) -> None:
    show_findings(report.findings)
    if report.cut:
        st.caption(f"{counted(report.cut, 'long text')} shortened in the middle to stay under the size limit.")
    with st.container(horizontal=True):
        st.download_button(
            f"HTML, {len(report.html) / 1e6:.1f} MB",
            report.html,
            "share.html",
            "text/html",
            key="share-html",
            on_click="ignore",
            type="primary",
        )
        st.download_button(
            f"Numbers and config, {len(report.archive) / 1e6:.1f} MB",
            report.archive,
            "share.zip",
            "application/zip",
            key="share-zip",
            on_click="ignore",
        )


def choose_redaction(key: str, default: Redaction = "keys") -> Redaction:
    """Which findings are replaced."""
    words = "Redact what the secret scan finds"
    picked = st.segmented_control(
        words, list(REDACTIONS), default=default, required=True, format_func=lambda choice: REDACTIONS[choice], key=key
    )
    return picked or default


def show_findings(found: Sequence[Finding]) -> None:
    """What the scan found, with places; or that it found nothing."""
    if not found:
        st.caption("The scan found no keys, tokens, private keys, e-mail addresses or home folders. It may miss some.")
        return
    words = [
        f"{row['different']} {row['kind']} in {counted(row['places'], 'place')} {'redacted' if row['redacted'] else '**left in**'}"
        for row in summary(found)
    ]
    st.warning(f"The scan found {', '.join(words)}. The file lists them. The scan may miss some.")
    table(
        [
            {
                "Kind": f"{item.kind} {item.number}",
                "Where": item.place,
                "Starts with": item.shown,
                "In the file": "redacted" if item.redacted else "left in",
            }
            for item in found[:SHOWN_FINDINGS]
        ],
        height=table_height(min(len(found), SHOWN_FINDINGS), most=240),
    )
