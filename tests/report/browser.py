"""A headless Chromium, driven over a pipe by the DevTools protocol: nothing but Python is needed for it.

    with Browser(path) as browser:
        page = browser.open(url, width=1200, dark=True)
        page.run("document.title")
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    """The Chromium of this machine, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    def __init__(self, program, seconds=60):
        self.seconds = seconds
        self.profile = tempfile.mkdtemp()
        to_read, self.to = os.pipe()  # Chromium reads its descriptor 3 and writes its descriptor 4
        self.fro, to_write = os.pipe()
        os.set_blocking(self.fro, False)
        command = [program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-first-run", "--hide-scrollbars", "--disable-background-networking", f"--user-data-dir={self.profile}"]
        shell = ["sh", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh"]
        self.process = subprocess.Popen(shell + command, pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.count, self.buffer, self.events = 0, b"", []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError):
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def read(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.fro], [], [], left)[0]:
                raise RuntimeError("the browser does not answer")
            data = os.read(self.fro, 1 << 16)
            if not data:
                raise RuntimeError("the browser has ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        until = time.monotonic() + self.seconds
        while True:
            answer = self.read(until)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url, width=1200, height=900, dark=False, ready="document.readyState === 'complete'"):
        return Page(self, url, width, height, dark, ready)


class Page:
    def __init__(self, browser, url, width, height, dark, ready):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)
        until = time.monotonic() + browser.seconds
        while not self.run(ready):
            if time.monotonic() > until:
                raise RuntimeError(f"{url} is not ready: {self.faults()}")
            time.sleep(0.05)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def run(self, expression):
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def faults(self):
        """What the page said on its console as an error or a warning, and what it threw."""
        said = []
        for event in self.browser.events:
            method, parameters = event.get("method"), event.get("params", {})
            if event.get("sessionId") != self.session:
                continue
            if method == "Runtime.exceptionThrown":
                said.append(json.dumps(parameters["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                said.append(json.dumps(parameters["args"]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                said.append(parameters["entry"]["text"])
        return said

    def requests(self):
        """The addresses that the page has asked for."""
        return [event["params"]["request"]["url"] for event in self.browser.events
                if event.get("method") == "Network.requestWillBeSent" and event.get("sessionId") == self.session]

    def picture(self, file, most=8000):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], most), "scale": 1}
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        with open(file, "wb") as to:
            to.write(base64.b64decode(data))
