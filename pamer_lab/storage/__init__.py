"""The only room that knows LanceDB: tables in the workspace, safe filters, numbered schemas."""

from pamer_lab.storage.database import Database
from pamer_lab.storage.specs import TableSpec, equals, is_in

__all__ = ["Database", "TableSpec", "equals", "is_in"]
