"""Reference pages of the site: one per command, per method and per public class.

They are made while the site is built, so they cannot be out of date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import typer

from farshore.cli.app import app
from farshore.runs import catalog
from reproduction.pages.methods import section

# Paragraphs of a docstring that begin with one of these words are set apart.
PARTS = ("Equation", "Paper", "Settings", "Readings")
SYMBOL = r"[A-Za-zα-ωΑ-Ω∇∂²|)\u0302\u0304]"
SCRIPT = re.compile(rf"(?<={SYMBOL})([_^])(\{{[^{{}}]+\}}|[A-Za-z0-9α-ω*]+)")
OBJECT = re.compile(r"^::: (farshore\.\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class SitePage:
    """A page that exists on the site only: its file, its name in the navigation, its text."""

    file: str
    title: str
    text: str


# ---- commands ------------------------------------------------------------------------------------


def command_pages() -> list[SitePage]:
    """An index of all commands and a page for each."""
    group: Any = typer.main.get_command(app)
    pages = [
        SitePage(f"commands/{name}.md", name, _command(name, command))
        for name, command in group.commands.items()
    ]
    rows = [
        f"| [`farshore {name}`]({name}.md) | {_cell(_first_sentence(command.help))} |"
        for name, command in group.commands.items()
    ]
    heading = [*_paragraphs(group.help), "| command | what it does |", "|---|---|", *rows]
    index = "# Commands\n\n" + "\n\n".join(heading[: -len(rows) - 2]) + "\n\n"
    index += "\n".join(heading[-len(rows) - 2 :]) + "\n"
    return [SitePage("commands/index.md", "All commands", index), *pages]


def _command(name: str, command: Any) -> str:
    usage = " ".join(map(_metavar, _arguments(command)))
    lines = [f"# farshore {name}", "", f"```console\n$ farshore {name} {usage} [OPTIONS]\n```", ""]
    for text in _paragraphs(command.help):
        is_example = text.startswith(("Example", "farshore "))
        lines += [f"```text\n{text}\n```" if is_example else escape(text, quote=False), ""]
    for heading, members in (("Arguments", _arguments(command)), ("Options", _options(command))):
        if members:
            lines += [f"## {heading}", "", "| | default | |", "|---|---|---|"]
            lines += [_row(each) for each in members]
            lines.append("")
    return "\n".join(lines)


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _arguments(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "argument"]


def _options(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "option"]


def _row(member: Any) -> str:
    names = [_metavar(member)] if member.param_type_name == "argument" else member.opts
    shown = ", ".join(f"`{name}`" for name in names)
    default = member.default
    has_default = default not in (None, False, (), []) and not callable(default)
    text = "required" if member.required else f"`{default}`" if has_default else ""
    return f"| {shown} | {_cell(text)} | {_cell(member.help or '')} |"


def _cell(text: str) -> str:
    return " ".join(escape(text, quote=False).replace("|", "\\|").split())


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join((text or "").split()))[0]


def _paragraphs(text: str) -> list[str]:
    return [part for part in inspect.cleandoc(text or "").split("\n\n") if part.strip()]


# ---- methods -------------------------------------------------------------------------------------


def method_pages() -> list[SitePage]:
    """A page for each method; docs/methods.md leads to them."""
    return [
        SitePage(f"methods/{kind.name}.md", kind.name, method_text(section(kind)))
        for members in catalog.grouped().values()
        for kind in members
    ]


def method_text(text: str) -> str:
    """The section of a method as a page of its own, with its parts set apart."""
    title, _, rest = text.replace("### ", "# ", 1).partition("\n")
    summary, _, further = rest.strip().partition("\n\n")
    return f"{title}\n\n{with_scripts(summary)}\n\n" + "\n".join(_set_apart(further))


def _set_apart(text: str) -> Iterator[str]:
    """The lines of a docstring: `Equation:` in a box with raised and lowered parts."""
    part, kept = "", []
    for line in [*text.split("\n"), ""]:
        word = line.split(":", 1)[0]
        begins = word in PARTS and ":" in line
        if part and (begins or not line.strip()):
            yield from _box(part, kept)
            part, kept = "", []
        if begins:
            part, kept = word, [line.split(":", 1)[1].strip()]
        elif part:
            kept.append(line)
        else:
            yield line


def _box(part: str, lines: list[str]) -> Iterator[str]:
    text = " ".join(line.strip() for line in lines)
    if part != "Equation":
        yield from ("", f"**{part}.** {text}", "")
        return
    yield from ("", f'<div class="equation" markdown="0">{with_scripts(text)}</div>', "")


def with_scripts(text: str) -> str:
    """An equation in HTML: `x_i` and `x^2` with lowered and raised parts, in the page's font."""

    def script(found: re.Match[str]) -> str:
        tag = {"_": "sub", "^": "sup"}[found[1]]
        return f"<{tag}>{found[2].strip('{}')}</{tag}>"

    return SCRIPT.sub(script, escape(text.replace("`", ""), quote=False))


def method_index(markdown: str) -> str:
    """docs/methods.md on the site: each method in a line that leads to its page."""
    head, _, rest = markdown.partition("\n### ")
    *above, group = head.rsplit("\n## ", 1)
    parts = [*above, f"\n## {group}"]
    for piece in f"\n### {rest}".split("\n### ")[1:]:
        name = piece.split("`")[1]
        summary = next(line for line in piece.split("\n")[1:] if line.strip())
        parts.append(
            f"\n### `{name}`\n\n{summary} [Equation, paper, settings](methods/{name}.md)\n"
        )
        if "\n## " in piece:
            parts.append(f"\n## {piece.split(chr(10) + '## ', 1)[1].strip()}\n")
    return "".join(parts)


# ---- public classes and functions ----------------------------------------------------------------


def object_pages(reference: str) -> list[SitePage]:
    """A page for each public object that docs/reference.md names."""
    return [_object(path) for path in OBJECT.findall(reference)]


def _object(path: str) -> SitePage:
    name = path.rsplit(".", 1)[1]
    options = "    options:\n      show_root_heading: false\n"
    return SitePage(f"reference/{name}.md", name, f"# {name}\n\n::: {path}\n{options}")


def object_index(markdown: str) -> str:
    """docs/reference.md on the site: each object as a link to its page."""
    return OBJECT.sub(
        lambda found: f"- [`{found[1]}`](reference/{found[1].rsplit('.', 1)[1]}.md)", markdown
    )
