"""`selc` itself: the group of commands and the one place that turns exceptions into exit codes.

0 done, 1 the answer is no, 2 the input is wrong or not supported, 3 an internal error.
Results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from selc import __version__
from selc.cli.bench import bench
from selc.cli.bits import bits
from selc.cli.cache import cache
from selc.cli.check import check
from selc.cli.compile import compile_command
from selc.cli.crash import report
from selc.cli.explain import explain
from selc.cli.facts import facts
from selc.cli.legal import legal
from selc.cli.lint import lint
from selc.cli.output import wants_json, write_errors
from selc.cli.profile import profile
from selc.cli.tune import tune
from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.span import Span

_INTERRUPTED = 130
_REFUSED_BY_SYSTEM = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT),
    *(errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EEXIST),
)
_PIPE_CLOSED = 141


class Program(click.Group):
    """A group whose exit codes are those of the contract, also when run by click's test runner."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and exit unless `standalone_mode` is off."""
        arguments = list(sys.argv[1:] if args is None else args)

        def run() -> int:
            result = super(Program, self).main(
                arguments,
                prog_name=prog_name or "selc",
                complete_var=complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )
            return result if isinstance(result, int) else 0

        if not standalone_mode:
            return run()
        sys.exit(_guarded(run, arguments))


def _guarded(run: Any, arguments: list[str]) -> int:
    """Run, and turn whatever happens into an exit code and a message."""
    try:
        code = int(run())
        sys.stdout.flush()
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.UsageError as error:
        return _usage(error, arguments)
    except click.ClickException as error:
        write_errors([Diagnostic("SEL909", error.format_message())], wants_json(arguments))
        return 2
    except Refused as refusal:
        write_errors(refusal.diagnostics, wants_json(arguments))
        return refusal.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("selc: interrupted", err=True)
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough; leave nothing for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    except OSError as error:
        if error.errno not in _REFUSED_BY_SYSTEM or error.filename is None:
            return report(error, arguments)
        place = Span(str(error.filename), 0, 0, 0, 0)
        message = f"the system refuses access: {error.strerror}"
        write_errors([Diagnostic("SEL915", message, place)], wants_json(arguments))
        return 2
    except Exception as error:  # noqa: BLE001 the last resort: the user gets no traceback
        return report(error, arguments)
    return code


def _usage(error: click.UsageError, arguments: list[str]) -> int:
    """A wrong command line, told like every other error."""
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help; new in click 8.2
        click.echo(error.format_message(), err=True)
        return 2
    command = error.ctx.command_path if error.ctx else "selc"
    diagnostic = Diagnostic("SEL909", error.format_message(), help=f"see `{command} --help`")
    write_errors([diagnostic], wants_json(arguments))
    return 2


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="TARGET is path.py, path.py:function or package.module:function. Exit codes: 0 done, "
    "1 the answer is no, 2 the input is wrong or not supported, 3 an internal error.",
)
@click.version_option(__version__, prog_name="selc", message="%(prog)s %(version)s")
def app() -> None:
    """Make the kernel selection of an LLM engine independent of the batch."""


app.add_command(compile_command)
app.add_command(check)
app.add_command(explain)
app.add_command(legal)
app.add_command(bits)
app.add_command(bench)
app.add_command(tune)
app.add_command(profile)
app.add_command(facts)
app.add_command(lint)
app.add_command(cache)


def main() -> None:
    """The console script."""
    app.main()
