"""A real browser for tests: headless Chromium, driven over a pipe, with the standard library."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page; what its scripts complain about is collected in `complaints`."""

    def __init__(self, program: str):
        self._profile = tempfile.mkdtemp(prefix="trellis-browser-")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        command = (
            f'exec "$0" --headless --no-sandbox --disable-gpu --hide-scrollbars '
            f'--user-data-dir="$1" --remote-debugging-pipe 3<&{theirs_in} 4>&{theirs_out}'
        )
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, self._profile],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._send, self._receive = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
        self._buffer, self._number, self._session = b"", 0, None
        self.complaints: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self._send.close()
        self._receive.close()
        self._process.terminate()
        self._process.wait(30)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._send.write(json.dumps(message).encode() + b"\0")
        self._send.flush()
        while (answer := self._next()).get("id") != self._number:
            self._hear(answer)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def open(self, path: Path) -> None:
        self._loaded = False
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not self._loaded:
            self._hear(self._next())

    def resize(self, width: int, height: int, phone: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=phone,
        )  # fmt: skip

    def run(self, script: str):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, path: Path, part: str = "html") -> bytes:
        """A picture of one element, as far down as it goes."""
        box = self.run(
            f"(() => {{ const r = document.querySelector({part!r}).getBoundingClientRect();"
            " return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height}; })()"
        )
        clip = {**box, "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        return self._keep(path, shot["data"])

    def pdf(self, path: Path) -> bytes:
        return self._keep(path, self.call("Page.printToPDF", preferCSSPageSize=True)["data"])

    @staticmethod
    def _keep(path: Path, data: str) -> bytes:
        content = base64.b64decode(data)
        path.write_bytes(content)
        return content

    def _next(self):
        while b"\0" not in self._buffer:
            chunk = os.read(self._receive.fileno(), 1 << 16)
            assert chunk, "the browser has gone"
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _hear(self, event) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"]["text"])
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
