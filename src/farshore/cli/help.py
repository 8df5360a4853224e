"""Help in sections: the flags of a command by their group, the commands by what they are for."""

from typing import Any, ClassVar

from typer.core import TyperCommand, TyperGroup

# Every command, in the order of the help; its file and its function have its name.
SECTIONS = {
    "Begin": ("demo", "audit"),
    "One model, site after site": (
        *("learn", "predict", "arrive", "evaluate", "calibrate", "show", "undo", "forget"),
        *("join", "export", "card"),
    ),
    "Compare methods": ("compare", "run", "sweep", "results", "report"),
    "What there is": ("methods", "benchmarks", "prepare"),
}


class SectionedCommand(TyperCommand):
    """A command whose help has a section per group of flags."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, the flags of the command itself, then those of each group."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            heading = getattr(parameter, "rich_help_panel", None) or "Options"
            if parameter.param_type_name == "argument":
                heading = "Arguments"
            if record is not None:
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class SectionedGroup(TyperGroup):
    """`farshore` itself: its commands by what they are for."""

    sections: ClassVar = SECTIONS

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with the first sentence of its help."""
        for heading, names in self.sections.items():
            with formatter.section(heading):
                lines = ((self.commands[name].help or "").split("\n")[0] for name in names)
                formatter.write_dl(list(zip(names, lines, strict=True)))
