"""The plotting library: plotly, an optional dependency that is imported only when a report is drawn."""

from importlib.util import find_spec

from tailrace.pipeline.failure import PipelineFailed


def demand_plotly() -> None:
    """Raise `PipelineFailed` if plotly is not installed."""
    if find_spec("plotly") is None:
        raise PipelineFailed("a report needs plotly, which is not installed: pip install 'tailrace[report]'")
