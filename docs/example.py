"""The Python interface in nine cells: run it from the checkout (`python docs/example.py`), or open it as a notebook.

Nothing is written: without a workspace a replay leaves nothing behind. `docs/python.md` explains every name and column.
"""

# %% A trace: any known format, or a folder of files
import polars as pl

from pamer_lab import InputError, ReplayOptions, compare, figures, read_traces, replay
from pamer_lab.analysis import compact, growth, published
from pamer_lab.analysis.frontier import frontier
from pamer_lab.analysis.outcomes import outcome
from pamer_lab.analysis.published import sample_study
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.prices import find_prices
from pamer_lab.probes.margins import unpack
from pamer_lab.runs.cost import run_cost
from pamer_lab.runs.export import run_json
from pamer_lab.runs.timeline import lay_out

[trace] = read_traces("sample_traces/demo/service-handover.json")
messages = trace.frame()
print(messages.group_by("role").len().sort("role"))

# %% Replay it through policies that need no model: about a second for all turns
runs = [replay(trace, policy) for policy in ("base", "sliding-window:3", "periodic-summary:10")]
table = compare(runs, [trace])
print(table.select("policy", "total", "change_pct", "peak_active", "evidence_in_context_pct"))

# %% PaMER reads a model's hidden state before each turn; here for the first turns only
pamer = replay(trace, "pamer", options=ReplayOptions(turn_limit=8))
turns = pamer.turns_frame()
print(turns.select("t", "action", "active_tokens", pl.col("votes").list.sum().alias("votes for"), "reason"))

# %% How full is the context, what happened when, where is each block?
context = figures.context(runs)
events = figures.events(runs)
ledger = figures.ledger(runs[2])

# %% What would it cost with prompt caching? Simulated at the prices of a table
tokens = profile_tokens(load_profile("embedded"))
timeline = lay_out(trace, tokens)
costs = [run_cost(run, find_prices(), timeline, tokens.counter) for run in runs]
cost_per_turn = figures.cost_per_turn(runs[2], costs[2])
facts = [run_json(run, timeline, cost=cost) for run, cost in zip(runs, costs, strict=True)]
evidence_against_cost = figures.frontier(frontier(outcome(run, run["totals"], run["cost"], run["evidence"]) for run in facts))

# %% The recorded trace alone
history = figures.history([turn.raw_tokens for turn in runs[0].turns])
blocks = figures.blocks(runs[0].head.block_tokens)

# %% Means over runs of many traces; here of one
means = growth.mean_context(pl.concat([run.turns_frame() for run in runs]))
mean_context = figures.mean_context(means)

# %% Studies: the sample results that come with the lab, in dark colours
study = sample_study("layerwise")
layers = figures.layers(study, "auroc", figures.Shown(poolings=("last",)), figures.DARK)
scores = figures.scores(unpack(next(row for row in study.rows if row.get("margins"))))
tradeoff = figures.tradeoff(compact.tradeoff(sample_study("compact")))
paper = figures.published_table(published.table("full_benchmark"))

# %% Bad input is one sentence with the file, the place and what to do
try:
    read_traces("sample_traces/broken.json")
except InputError as error:
    refusal = str(error)
    print(refusal)
