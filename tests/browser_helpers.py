"""A headless Chromium for tests of pages, over the pipe of its debugging protocol: nothing else is needed."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time

import pytest

KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")

# The browser reads descriptor 3 and writes 4. Ours are moved out of the way first, then there.
_LAUNCHER = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


@contextlib.contextmanager
def browser_page(profile, *, seconds=60):
    """A blank page of a browser whose files lie in the folder ``profile``; skips where there is no browser."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium is installed; on Debian: apt install chromium")
    if os.name == "nt":
        pytest.skip("on Windows a process gets no pipe by the number that the browser wants")
    to_browser, from_browser = os.pipe(), os.pipe()
    command = [
        *(sys.executable, "-c", _LAUNCHER, str(to_browser[0]), str(from_browser[1]), program),
        *("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run"),
        *("--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}"),
        *("--disable-dev-shm-usage", "--hide-scrollbars"),
    ]
    process = subprocess.Popen(
        command, pass_fds=(to_browser[0], from_browser[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        yield Page(to_browser[1], from_browser[0], seconds)
    finally:
        os.close(to_browser[1])
        os.close(from_browser[0])
        process.kill()
        process.wait()


class Page:
    """One page. What it logs as an error, throws, or asks of the network in vain is collected in ``errors``."""

    def __init__(self, write, read, seconds):
        self.errors = []
        self.requests = []
        self._write, self._read, self._seconds = write, read, seconds
        self._buffer = b""
        self._count = 0
        self._session = None
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def command(self, method, **params):
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        number = self._count
        answer = self._wait(lambda found: found.get("id") == number)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def size(self, width, height, *, mobile=False):
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile
        )

    def open(self, url):
        """Go there and wait until all is loaded."""
        answer = self.command("Page.navigate", url=url)
        assert "errorText" not in answer, (url, answer["errorText"])
        self._wait(lambda found: found.get("method") == "Page.loadEventFired")

    def value(self, expression):
        """What JavaScript gives for an expression; a promise is waited for."""
        answer = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression):
        """Wait until an expression is true, and give its value."""
        end = time.monotonic() + self._seconds
        while not (found := self.value(expression)):
            assert time.monotonic() < end, f"not so after {self._seconds} s: {expression}"
            time.sleep(0.05)
        return found

    def press(self, key):
        """A key, at what has the focus."""
        code = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, 0)}
        text = {"text": key} if len(key) == 1 else {}
        self.command("Input.dispatchKeyEvent", type="keyDown", **code, **text)
        self.command("Input.dispatchKeyEvent", type="keyUp", **code)

    def click(self, selector):
        """By the mouse, in the middle of an element, which is brought into view."""
        x, y = self.value(
            f"(() => {{ const it = document.querySelector({json.dumps(selector)}); it.scrollIntoView();"
            " const box = it.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path, *, whole=False):
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _wait(self, wanted):
        end = time.monotonic() + self._seconds
        while True:
            while b"\0" not in self._buffer:
                assert select.select([self._read], [], [], max(0, end - time.monotonic()))[0], "the browser is silent"
                part = os.read(self._read, 1 << 16)
                assert part, "the browser has ended"
                self._buffer += part
            text, _, self._buffer = self._buffer.partition(b"\0")
            message = json.loads(text)
            self._note(message.get("method"), message.get("params", {}))
            if wanted(message):
                return message

    def _note(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append([part.get("value", part.get("description")) for part in params["args"]])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
