"""A headless Chromium for tests, over its own debugging pipe: standard library only."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
# The browser reads commands from descriptor 3 and answers on 4.
_LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 13), os.dup2(int(sys.argv[2]), 14)
os.dup2(13, 3), os.dup2(14, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    """Path of a Chromium, if there is one."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab. Console errors, exceptions and requests are collected as they come."""

    def __init__(self, executable: str) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(theirs_in), str(theirs_out), executable,
             *_FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._out, self._in, self._rest, self._number = ours_out, ours_in, b"", 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Send one command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._in, 1 << 20)
            if not part:
                raise RuntimeError("the browser has closed its pipe")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, file: Path, *, width: int, height: int = 844, dark: bool = False) -> None:
        """Show a file at a size of the window, and wait until it is loaded."""
        scheme = "dark" if dark else "light"
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        self.call("Emulation.setEmulatedMedia", media="screen",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])  # fmt: skip
        self.events.clear()
        self.call("Page.navigate", url=file.resolve().as_uri())
        deadline = time.monotonic() + 60
        while self.run("document.readyState") != "complete":
            if time.monotonic() > deadline:
                raise TimeoutError(f"{file} is not loaded after a minute")
            time.sleep(0.05)

    def run(self, expression: str) -> Any:
        """Value of a JavaScript expression; promises are awaited."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"]))
        return found["result"].get("value")

    def press(self, key: str, code: str | None = None, text: str = "") -> None:
        """Press and release one key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key,
                      windowsVirtualKeyCode={"Tab": 9, "Enter": 13, " ": 32}.get(key, 0),
                      text=text if kind == "keyDown" else "")  # fmt: skip

    def complaints(self) -> list[str]:
        """Errors and warnings of the console so far, and uncaught exceptions."""
        self.run("new Promise((done) => setTimeout(done, 50))")
        return [
            json.dumps(event["params"])
            for event in self.events
            if event.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown")
            or event.get("method") == "Runtime.consoleAPICalled"
        ]

    def requests(self) -> list[str]:
        """Addresses asked for since the file was opened."""
        sent = [e["params"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [entry["request"]["url"] for entry in sent]

    def screenshot(self, file: Path, *, top: int = 0, height: int | None = None) -> None:
        """A picture of the page from `top` on, its whole length by default."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        shown = size["height"] - top if height is None else height
        area = {"x": 0, "y": top, "width": size["width"], "height": shown, "scale": 1}
        picture = self.call("Page.captureScreenshot", clip=area, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(picture["data"]))

    def close(self) -> None:
        """End the browser that was started here."""
        self._session = None
        try:
            self.call("Browser.close")
        except (RuntimeError, OSError):
            self._process.terminate()
        self._process.wait(timeout=30)
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()
