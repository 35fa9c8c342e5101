"""Commands as a user types them."""

from typer.testing import CliRunner

from trellis.cli.app import app


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments) -> str:
    """What a command says on standard output."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output + result.stderr
    return result.stdout


def refused(*arguments) -> str:
    """The one line of an error."""
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    line = result.stderr.splitlines()[-1]
    assert line.startswith("error: ")
    return line
