import polars as pl

from pamer_lab import figures
from pamer_lab.figures.cost import frontier
from pamer_lab.figures.growth import MOST_LINES, by_family, drawn_traces
from pamer_lab.figures.theme import LIGHT
from pamer_lab.policies.interface import FAMILIES
from pamer_lab.policies.registry import family_of, offered_policies


def test_a_line_of_one_trace_tells_its_name_as_text() -> None:
    turns = pl.DataFrame({"policy": ["base"] * 2, "trace_id": ["t-1"] * 2, "t": [0, 1], "active_tokens": [5, 9], "raw_tokens": [5, 9]})
    means = pl.DataFrame({"policy": ["base"] * 2, "t": [0, 1], "mean_active": [5.0, 9.0], "low": [5, 9], "high": [5, 9], "running": [1, 1]})
    figure = figures.mean_context(means, ["base"], LIGHT, singles=turns, names={"t-1": "<b>x</b> %{y}"}, reference=False)
    (line,) = [trace for trace in figure.data if trace.meta]
    assert line.meta == "&lt;b&gt;x&lt;/b&gt; %{y}" and line.hovertemplate.startswith("%{meta}<br>base, turn")
    assert figure.layout.hovermode == "closest"


def test_every_policy_keeps_the_same_lines() -> None:
    count = MOST_LINES // 2 + 10
    names = [f"t-{number // 2:03d}" for number in range(2 * count)]
    runs = pl.DataFrame({"policy": ["a", "b"] * count, "trace_id": names, "turns": [int(name[2:]) for name in names]})
    drawn = drawn_traces(runs)
    assert len(drawn) == MOST_LINES // 2 and drawn[0] == names[-1], "the longest first"
    assert sorted(drawn_traces(runs.head(60))) == sorted({*names[:60]}), "all where there is room"


MANY = [
    "base",
    "sliding-window:5",
    "auto-compact",
    "observation-masking",
    "acon",
    "comem",
    "memgpt",
    "sam",
    "lre",
    "tokenprune-idf",
    "pamer",
]


def _means(policies: list[str]) -> pl.DataFrame:
    rows = [(policy, turn, 100.0 * turn + place, 3) for place, policy in enumerate(policies) for turn in range(3)]
    table = pl.DataFrame(rows, schema=["policy", "t", "mean_active", "running"], orient="row")
    return table.with_columns(pl.col("mean_active").alias("low"), pl.col("mean_active").alias("high"))


def test_families_have_a_panel_each_with_the_base_agent_in_every_one() -> None:
    figure = by_family(_means(MANY), MANY)
    named = [trace for trace in figure.data if trace.showlegend is not False]
    assert sorted(trace.name for trace in named) == sorted(MANY)
    assert figure.layout.margin.t >= 30, "titles of the first row are not cut"
    panels = {trace.xaxis for trace in figure.data}
    assert len(panels) == len({family_of(policy) for policy in MANY}) == 5
    assert {trace.xaxis for trace in figure.data if trace.name == "base"} == panels
    assert {trace.legendgroup for trace in named if family_of(trace.name) == "host"} == {FAMILIES["host"]}


def test_twenty_lines_are_told_apart_by_colour_and_dash() -> None:
    policies = [*offered_policies()]
    figure = by_family(_means(policies), policies)
    lines = [(trace.xaxis, trace.line.color, trace.line.dash) for trace in figure.data if trace.showlegend is not False]
    assert len(lines) == len(policies) > 20 and len({*lines}) == len(lines)


def test_highlighted_policies_keep_their_looks_and_the_others_become_faint() -> None:
    figure = figures.mean_context(_means(MANY), MANY, LIGHT, highlight=["acon", "memgpt"])
    assert {trace.line.color for trace in figure.data[: len(MANY) - 2]} == {LIGHT["faint"]}  # drawn first, so under the others
    upper = {trace.name: trace for trace in figure.data if trace.yaxis in (None, "y") and trace.name}
    assert {name for name, trace in upper.items() if trace.showlegend is not False} == {"acon", "memgpt"}
    assert {trace.line.color for name, trace in upper.items() if name not in ("acon", "memgpt")} == {LIGHT["faint"]}


def test_the_line_of_the_frontier_goes_from_the_cheapest_to_the_dearest() -> None:
    costs = {policy: 1.0 - 0.05 * place for place, policy in enumerate(MANY)}
    points = [
        *(
            {"policy": policy, "evidence_pct": 100 * cost, "cost_vs_base": cost, "frontier": True, "traces": 1, "tokens_vs_base": 1.0}
            | {"mean_peak": 10, "uncached_share": 0.1}
            for policy, cost in costs.items()
        )
    ]
    figure = frontier({"points": points})
    assert list(figure.data[0].x) == sorted(costs.values())
    assert {trace.legendgroup for trace in figure.data[1:]} == {FAMILIES[family_of(policy)] for policy in MANY}
