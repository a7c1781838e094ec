"""Opens pages of untax taxes in headless Chromium, and says what a reader would stumble over.

    page.py CHROMIUM FOLDER PAGE...

Each page is opened in light and dark, 400 and 1400 pixels wide, with and without JavaScript. A message in its
console, a request to anything but the page itself, a horizontal scroll bar, 2 MB or more, a scheme that changes no
colour, or words that are there only with JavaScript are printed, one a line, and the exit status is 1. FOLDER gets
a picture of every view, unless it is -. Chromium is spoken to over pipes, in the DevTools protocol: it listens at no port."""

import base64
import itertools
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

LIMIT = 60  # seconds that Chromium may take for one answer
LARGEST = 2_000_000  # bytes of a page
# The words that a reader sees. Details are opened: that takes no script.
WORDS = """(() => {
  for (const d of document.querySelectorAll('details')) d.open = true;
  const copy = document.body.cloneNode(true);
  for (const s of copy.querySelectorAll('script, noscript, style')) s.remove();
  return copy.textContent.replace(/\\s+/g, ' ').trim();
})()"""


class Chromium:
    """A browser of its own folder, and its one tab."""

    def __init__(self, command, folder):
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        # The browser reads descriptor 3 and writes 4; copies from 10 on collide with neither.
        reads, writes = os.dup2(to_browser, 60), os.dup2(from_browser, 61)
        arguments = [command, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                     "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run",
                     f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec "$@" 3<&60 4>&61 60<&- 61>&-', "bash", *arguments],
            pass_fds=(reads, writes), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (to_browser, from_browser, reads, writes):
            os.close(end)
        self.number = 0
        self.buffer = b""
        self.events = []
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        answer = self.read_until(lambda m: m.get("id") == self.number, method)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def read_until(self, wanted, name):
        end = time.monotonic() + LIMIT
        while True:
            while b"\0" in self.buffer:
                text, self.buffer = self.buffer.split(b"\0", 1)
                message = json.loads(text)
                if "method" in message:
                    self.events.append(message)
                if wanted(message):
                    return message
            if not select.select([self.read_end], [], [], max(0, end - time.monotonic()))[0]:
                raise RuntimeError(f"no answer in {LIMIT} s: {name}")
            data = os.read(self.read_end, 1 << 16)
            if not data:
                raise RuntimeError(f"Chromium ended before it answered {name}")
            self.buffer += data

    def evaluate(self, expression):
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def open(self, address):
        self.events = []
        self.ask("Page.navigate", url=address)
        self.read_until(lambda m: m.get("method") == "Page.loadEventFired", "the page's load")

    def close(self):
        self.process.kill()
        self.process.wait()


def complaints(events, address):
    """The page's messages on the console, and its requests."""
    for event in events:
        method, params = event["method"], event["params"]
        if method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if url != address and not url.startswith("data:"):
                yield f"a request to {url}"
        elif method == "Runtime.exceptionThrown":
            yield f"an error: {params['exceptionDetails'].get('exception', {}).get('description', params)}"
        elif method == "Runtime.consoleAPICalled":
            yield f"a message in the console: {params['args']}"
        elif method == "Log.entryAdded":
            yield f"a message in the log: {params['entry']['text']}"


def look_at(browser, page, folder):
    address = page.resolve().as_uri()
    if page.stat().st_size >= LARGEST:
        yield f"{page.stat().st_size} bytes, should be less than {LARGEST}"
    words, colours = {}, {}
    for scheme, width, scripts in itertools.product(("light", "dark"), (400, 1400), (True, False)):
        view = f"{scheme}, {width} pixels, {'with' if scripts else 'without'} JavaScript"
        browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        browser.ask("Emulation.setScriptExecutionDisabled", value=not scripts)
        browser.open(address)
        shown = browser.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        words[scripts] = browser.evaluate(WORDS)
        opened = browser.evaluate("document.documentElement.scrollWidth")
        colours[scheme] = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        if max(shown[0], opened) > shown[1] or shown[1] != width:
            yield f"{view}: a horizontal scroll bar, {max(shown[0], opened)} pixels of {shown[1]}"
        for complaint in complaints(browser.events, address):
            yield f"{view}: {complaint}"
        if not scripts and words[True] != words[False]:
            missing = next(i for i, (a, b) in enumerate(itertools.zip_longest(words[True], words[False])) if a != b)
            yield f"{view}: the words differ from {words[True][missing:missing + 60]!r} on"
        if scripts and folder:
            size = browser.ask("Page.getLayoutMetrics")["cssContentSize"]
            picture = browser.ask("Page.captureScreenshot", captureBeyondViewport=True,
                                  clip={"x": 0, "y": 0, "width": width, "height": size["height"], "scale": 1})
            (folder / f"{page.stem}-{scheme}-{width}.png").write_bytes(base64.b64decode(picture["data"]))
    if not words[True]:
        yield "no words at all"
    if colours["light"] == colours["dark"]:
        yield f"light and dark are both {colours['light']}"


def main():
    command, pages = sys.argv[1], [pathlib.Path(p) for p in sys.argv[3:]]
    folder = pathlib.Path(sys.argv[2]) if sys.argv[2] != "-" else None
    count = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Chromium(command, profile)
        try:
            for page in pages:
                for problem in look_at(browser, page, folder):
                    print(f"{page.name}: {problem}")
                    count += 1
        finally:
            browser.close()
    print(f"{len(pages)} pages, 8 views each, {count} complaints")
    return count > 0


if __name__ == "__main__":
    sys.exit(main())
