"""Tables of pandas, which is an optional dependency."""

from typing import TYPE_CHECKING, Any

from steadygaze.core.errors import UserError

if TYPE_CHECKING:
    from pandas import DataFrame


def data_frame(data: Any, columns: list[str] | None = None) -> "DataFrame":
    """A DataFrame of records, of rows with the names of their columns, or of columns by name."""
    try:
        import pandas
    except ImportError:
        raise UserError("to_pandas() needs pandas, which is not installed: pip install pandas.") from None
    return pandas.DataFrame(data, columns=columns)
