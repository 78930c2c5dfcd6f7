"""The command line: options, their checks, and the exit status."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import click

from fabric_fix import __version__
from fabric_fix.config import OUTPUT_FORMATS, Settings, exclude_patterns, rule_words, seconds, strategy_names
from fabric_fix.deadline import PER_FILE
from fabric_fix.problem import RegistryError, os_reason
from fabric_fix.streams import BROKEN_PIPE, emit, give_up, say

EPILOG = (
    "Without --check or --diff, files are fixed in place. Exit status: 0 nothing found, 1 something found or changed,"
    " 2 wrong usage or a file that could not be handled, 141 whoever read the output closed it."
)


def _checked(check: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Callable[..., tuple[str, ...] | None]:
    """A click callback that runs a check of `config`, so that both ways to give an option say the same."""

    def callback(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...] | None:
        try:
            return check(value) if value else None
        except ValueError as error:
            raise click.BadParameter(str(error), context, option) from error

    return callback


def _seconds(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    try:
        return None if value is None else seconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, option) from error


def _list_rules(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Print a line for each rule and end."""
    if wanted and not context.resilient_parsing:
        from fabric_fix.registry import all_rules

        for rule in all_rules():
            emit(f"{rule.code}  {rule.name:<28}  {_first_line(rule.explanation())}".rstrip().encode() + b"\n")
        context.exit(0)


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line), "")


def _explain(context: click.Context, option: click.Parameter, word: str | None) -> None:
    """Print a rule's documentation and end."""
    if word is None or context.resilient_parsing:
        return
    from fabric_fix.registry import all_rules, similar

    rules = {key: rule for rule in all_rules() for key in (rule.code.casefold(), rule.name.casefold())}
    rule = rules.get(word.strip().casefold())
    if rule is None:
        raise click.BadParameter(f"no rule '{word}'{similar(word, all_rules())}", context, option)
    emit(f"{rule.code} {rule.name}\n\n{rule.explanation()}\n".encode())
    context.exit(0)


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
)
@click.argument("paths", nargs=-1, metavar="[PATHS]...", type=click.Path(readable=False))
@click.option("--check", is_flag=True, help="Report only, write nothing.")
@click.option("--diff", is_flag=True, help="Print the patch that would be made, for git apply; write nothing.")
@click.option(
    "--strategy",
    multiple=True,
    metavar="NAME",
    callback=_checked(strategy_names),
    help="A strategy that the program must run on, beside those its source shows. Repeatable.",
)
@click.option(
    "--unsafe-fixes/--no-unsafe-fixes",
    default=None,
    help="Make the fixes that depend on something the source does not show, too.",
)
@click.option(
    "--select",
    multiple=True,
    metavar="CODES",
    callback=_checked(rule_words),
    help="Rules to apply: codes, beginnings such as FF1, names. Default: all.",
)
@click.option("--ignore", multiple=True, metavar="CODES", callback=_checked(rule_words), help="Rules to leave out.")
@click.option(
    "--exclude",
    multiple=True,
    metavar="GLOB",
    callback=_checked(exclude_patterns),
    help="Paths to leave out, even if named; patterns as in .gitignore. Repeatable.",
)
@click.option(
    "--timeout",
    type=float,
    metavar="SECONDS",
    callback=_seconds,
    help=f"Time for one file, after which it counts as not analysed; 0 for no limit. Default: {PER_FILE:g}.",
)
@click.option(
    "--total-timeout",
    type=float,
    metavar="SECONDS",
    callback=_seconds,
    help="Time for the whole run, after which the files left are named as not analysed. Default: no limit.",
)
@click.option(
    "--output-format", type=click.Choice(OUTPUT_FORMATS), default=None, help="How findings are reported. Default: text."
)
@click.option(
    "--cache-dir",
    envvar="FABRIC_FIX_CACHE_DIR",
    metavar="PATH",
    help="Where what was found out is kept for the next run. Default: .fabric_fix_cache in the root of the project.",
)
@click.option("--no-cache", is_flag=True, default=None, help="Neither use nor keep what was found out.")
@click.option(
    "--stdin-filename", metavar="PATH", help="What '-' is called in reports, and where its settings are looked up."
)
@click.option(
    "-q", "--quiet", is_flag=True, default=None, help="Errors only; a patch, code or machine format is still printed."
)
@click.option("-v", "--verbose", is_flag=True, default=None, help="Also say what was left out, and why.")
@click.option(
    "--explain",
    metavar="CODE",
    expose_value=False,
    is_eager=True,
    callback=_explain,
    help="Print the documentation of a rule.",
)
@click.option(
    "--list-rules", is_flag=True, expose_value=False, is_eager=True, callback=_list_rules, help="List all rules."
)
@click.version_option(__version__, prog_name="fabric-fix")
@click.pass_context
def command(
    context: click.Context,
    /,
    paths: tuple[str, ...],
    check: bool,
    diff: bool,
    stdin_filename: str | None,
    **options: Any,
) -> None:
    """Find and repair misuse of Lightning Fabric in training code.

    PATHS are files and folders, or - for standard input; the default is the working directory.
    """
    if check and diff:
        raise click.UsageError("--check and --diff exclude each other.")
    if "-" in paths and len(paths) > 1:
        raise click.UsageError("'-' cannot be combined with other paths.")
    if stdin_filename is not None and paths != ("-",):
        raise click.UsageError("--stdin-filename is for standard input: give '-' as the only path.")
    if options["quiet"] and options["verbose"]:
        raise click.UsageError("--quiet and --verbose exclude each other.")
    context.exit(_run(paths or (".",), check, diff, stdin_filename, Settings(**options)))


def _run(paths: tuple[str, ...], check: bool, diff: bool, stdin_filename: str | None, settings: Settings) -> int:
    import os
    import warnings

    from fabric_fix.records import replace
    from fabric_fix.run import Mode, Run

    warnings.simplefilter("ignore")  # what the parser thinks of escapes in other people's strings is not our message
    mode = Mode.CHECK if check else Mode.DIFF if diff else Mode.FIX
    run = Run(mode, replace(settings, base=os.getcwd()))
    return run.standard_input(stdin_filename) if paths == ("-",) else run.files(paths)


def main() -> None:
    """Entry point of `fabric-fix`; ends the process with the exit status of the interface."""
    try:
        status = _status()
    except BrokenPipeError:  # the reader of the patch has gone, as `| head` does
        status = BROKEN_PIPE
    except OSError as error:  # all files are handled elsewhere: this is about a standard stream
        status = 2
        with contextlib.suppress(OSError):
            say(f"error: the output cannot be written: {os_reason(error)}")
    except KeyboardInterrupt:
        status = 130
    if status not in (0, 1):
        give_up()
    sys.exit(status)


def _status() -> int:
    """Run the command without click's own end. Raises OSError for standard streams that are gone."""
    try:
        return int(command.main(standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except SystemExit as error:  # click's answer to a broken pipe: status 1, which is "found" here
        raise BrokenPipeError from error
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except RegistryError as error:
        say(f"error: {error}")
        return 2
