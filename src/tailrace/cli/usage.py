"""The class of all commands: their usage line reads `produce [OPTIONS] TOPIC`, where typer would print `{TOPIC}`."""

from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]
