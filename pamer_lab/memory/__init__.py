"""What is stored when history leaves the active context: records, commit protocol, retrieval, summaries, checks."""

from pamer_lab.memory.records import CoveredBlock, Memory, MemoryDraft, RawBlock
from pamer_lab.memory.session import SessionMemory
from pamer_lab.memory.store import BufferedMemories, LostRaceError, Memories, MemoryStore
from pamer_lab.memory.summary import DetailLines, DetailWriter, SourceBlock, Summariser, Summary

__all__ = [
    "BufferedMemories",
    "CoveredBlock",
    "DetailLines",
    "DetailWriter",
    "LostRaceError",
    "Memories",
    "Memory",
    "MemoryDraft",
    "MemoryStore",
    "RawBlock",
    "SessionMemory",
    "SourceBlock",
    "Summariser",
    "Summary",
]
