"""A real PostgreSQL server for tests: started here, asks for a password, gone afterwards."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

USER, PASSWORD = "keeper", "s3cret canary"


def find_server() -> Path | None:
    """The folder with `initdb` and `postgres`."""
    known = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    named = filter(None, [shutil.which("initdb")])
    folders = [Path(path).resolve().parent for path in named] + known
    return next((f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()), None)


def _someone() -> dict:
    """The server refuses to run as root: then run it as somebody else."""
    if os.geteuid() != 0:
        return {}
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    user = "postgres" if "postgres" in names else "nobody"
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


@contextmanager
def server(programs: Path):
    """Yields the port."""
    someone = _someone()
    folder = Path(tempfile.mkdtemp(prefix="trellis-pg-"))
    try:
        (folder / "password").write_text(PASSWORD)
        if someone:
            for path in (folder, folder / "password"):
                shutil.chown(path, someone["user"])
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", USER, "-A", "scram-sha-256",
             f"--pwfile={folder / 'password'}", "--no-sync", "-E", "UTF8", "--no-locale"],
            check=True, **quiet, **someone,
        )  # fmt: skip
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        process = subprocess.Popen(
            [programs / "postgres", "-D", folder / "data", "-p", str(port), "-F",
             "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"],
            **quiet, **someone,
        )  # fmt: skip
        try:
            _wait(process, port)
            yield port
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: subprocess.Popen, port: int) -> None:
    from adbc_driver_postgresql import dbapi

    for _ in range(300):
        assert process.poll() is None, "the server has stopped"
        try:
            dbapi.connect(address(port)).close()
            return
        except dbapi.Error:
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


def address(port: int, user: str = USER, password: str = PASSWORD) -> str:
    from urllib.parse import quote

    return f"postgresql://{user}:{quote(password)}@127.0.0.1:{port}/postgres"
