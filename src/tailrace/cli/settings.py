"""`tailrace settings`: everything a broker or a topic can be told, from the tables that the broker itself reads."""

from typing import Annotated, NamedTuple

import typer

from tailrace.cli.output import print_json, print_table
from tailrace.model.settings import Settings, parse, row, rows, variable_name, yaml_name
from tailrace.model.topics import TOPIC_SETTINGS, default_text


class Line(NamedTuple):
    name: str
    default: str  # as people write it
    typed: object  # the same as a value
    help: str
    values: str
    forms: str  # how else it can be given


def broker_lines() -> list[Line]:
    found = []
    for name, one in rows().items():
        said = row(one)
        forms = [f"`{yaml_name(name)}`", f"`{variable_name(name)}`", *([f"`{said.flag}`"] if said.flag else [])]
        default = str(one.default).lower() if isinstance(one.default, bool) else str(one.default)
        found.append(Line(name, default, one.default, said.help, said.wants, ", ".join(forms)))
    return found


def topic_lines() -> list[Line]:
    broker = Settings()
    found = []
    for name, one in TOPIC_SETTINGS.items():
        values = f"only {one.only or 'empty'} so far" if one.only is not None else one.wants
        default = default_text(one, broker)
        found.append(Line(name, default, parse(name, one.kind, default), one.help, values, ""))
    return found


def markdown() -> str:
    """The page `docs/settings.md`."""
    out = [
        "# Settings",
        "",
        "Made by `tailrace settings --markdown` from the tables that the broker reads; a test holds them together.",
        "",
        "## Broker",
        "From `--config FILE.yaml`, the environment and flags, in rising order.",
        "",
        "| setting | default | what it does | values | YAML, environment, flag |",
        "|---|---|---|---|---|",
        *(
            f"| `{one.name}` | {_cell(one.default)} | {one.help} | {one.values} | {one.forms} |"
            for one in broker_lines()
        ),
        "",
        "## Topic",
        'Set with `tailrace topic create|alter`, or any client. "only … so far": any other value is refused by name.',
        "",
        "| setting | default | what it does | values |",
        "|---|---|---|---|",
        *(f"| `{one.name}` | {_cell(one.default)} | {one.help} | {one.values} |" for one in topic_lines()),
    ]
    return "\n".join(out) + "\n"


def _cell(text: str) -> str:
    return f"`{text}`" if text else "(empty)"


def settings(
    topics: Annotated[bool, typer.Option("--topics", help="Those of topics instead of the broker's.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON list.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="The page docs/settings.md.")] = False,
) -> None:
    """Show everything a broker or a topic can be told.

    \b
    Examples:
      tailrace settings
      tailrace settings --topics --json
    """
    if as_markdown:
        print(markdown(), end="")
        return
    lines = topic_lines() if topics else broker_lines()
    if as_json:
        print_json([_json(one) for one in lines])
    else:
        print_table(["setting and default", "what it does"], [(f"{one.name}={one.default}", one.help) for one in lines])


def _json(line: Line) -> dict[str, object]:
    forms = [form.strip("`") for form in line.forms.split(", ") if form]
    return {"name": line.name, "default": line.typed, "help": line.help, "values": line.values, "forms": forms}
