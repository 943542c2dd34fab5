"""The only package that knows LanceDB: tables in the workspace, safe filters, numbered schemas."""

from pamer_lab.storage.database import Database
from pamer_lab.storage.specs import TableSpec, contains, equals, in_parts, is_in, starts

__all__ = ["Database", "TableSpec", "contains", "equals", "in_parts", "is_in", "starts"]
