"""Labelled traces by construction: a world, a plan over it, words for the plan, labels from the plan."""

from pamer_lab.corpus.writer import make_worlds, write_corpus, write_trace

__all__ = ["make_worlds", "write_corpus", "write_trace"]
