#!/usr/bin/env python3
"""The site that scripts/site.py makes: links, titles, and in a headless Chromium width, schemes and search.

    site_test.py SITE [PICTURES]     SITE: the folder with index.html; PICTURES: a folder for screenshots
    site_test.py SITE --no-browser   links and titles only

Ends with 77 if there is no Chromium.
"""
import functools
import html.parser
import http.server
import pathlib
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "report"))
import browser  # noqa: E402

PHONE, DESK = 390, 1200
SHOWN = ["index.html", "tutorial.html", "ops/softmax.html", "reference/functions.html", "reference/headers/norm.h.html"]
site = pathlib.Path(sys.argv[1]).resolve()
checked = failed = 0


def expect(condition, text):
    global checked, failed
    checked += 1
    if not condition:
        failed += 1
        print(f"FAILED: {text}")


class Html(html.parser.HTMLParser):
    """What a page links to, loads, and can be linked to."""
    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.ids, self.title, self.in_title = [], [], set(), "", False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        self.ids |= {a[key] for key in ("id", "name") if a.get(key)}
        self.in_title |= tag == "title" and not self.title
        if tag == "a" and "href" in a:
            self.links.append(a["href"])
        elif tag in ("script", "img", "iframe") and "src" in a:
            self.loads.append(a["src"])
        elif tag == "link" and a.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(a["href"])

    def handle_endtag(self, tag):
        self.in_title &= tag != "title"

    def handle_data(self, data):
        if self.in_title:
            self.title += data


def test_pages(pages):
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        expect(page.title.strip(), f"{name}: no title")
        for url in page.loads:
            expect(not urllib.parse.urlsplit(url).netloc, f"{name}: loads {url}")
        for url in page.links + page.loads:
            parts = urllib.parse.urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if parts.path.startswith("/"):
                to = site / parts.path[1:]
            to = to / "index.html" if to.is_dir() else to
            expect(to.exists(), f"{name}: dead link {url}")
            if parts.fragment and to in pages:
                expect(urllib.parse.unquote(parts.fragment) in pages[to].ids, f"{name}: no such place: {url}")


def test_search(page):
    """Types until the index is loaded."""
    page.run("document.querySelector('[data-md-component=search-query]').focus()")
    for _ in range(150):
        page.run("(() => { const e = document.querySelector('[data-md-component=search-query]'); e.value = 'softmax';"
                 " e.dispatchEvent(new Event('keyup', {bubbles: true})); })()")
        if page.run("document.querySelectorAll('.md-search-result__item').length"):
            break
        time.sleep(0.2)
    found = page.run("document.querySelector('.md-search-result').innerText")
    expect("nrg_softmax_forward" in found, f"search for softmax finds {found[:100]!r}")


def test_in_browser(program, pages, pictures):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}/"
    with browser.Browser(program) as chromium:
        for path in sorted(pages):
            name = path.relative_to(site).as_posix()
            phone = chromium.open(root + name, PHONE)
            width = phone.run("document.documentElement.scrollWidth")
            expect(width <= PHONE, f"{name}: {width} pixels wide on a phone of {PHONE}")
            expect(not phone.faults(), f"{name}: {phone.faults()}")
            others = [url for url in phone.requests() if not url.startswith((root, "data:", "blob:"))]
            expect(not others, f"{name}: requests {others}")
            phone.call("Page.close")
        page = chromium.open(root + "index.html", DESK)
        test_search(page)
        colours = {name: set() for name in SHOWN}
        for dark in (False, True):
            scheme = "slate" if dark else "default"
            applied = f"document.readyState === 'complete' && document.body.dataset.mdColorScheme === '{scheme}'"
            page.run("localStorage.clear()")  # the theme stores the scheme of the first page
            for name in SHOWN:
                page = chromium.open(root + name, DESK, dark=dark, ready=applied)
                colours[name].add(page.run("getComputedStyle(document.body).backgroundColor"))
                if pictures:
                    page.picture(pictures / f"{name.replace('/', '-')}-{'dark' if dark else 'light'}.png")
                    phone = chromium.open(root + name, PHONE, dark=dark, ready=applied)
                    phone.picture(pictures / f"{name.replace('/', '-')}-{'dark' if dark else 'light'}-phone.png")
    for name, found in colours.items():
        expect(len(found) == 2, f"{name}: both schemes have the background {found}")
    server.shutdown()


def main():
    pages = {path: Html(path) for path in site.rglob("*.html") if "results" not in path.parts or path.name == "index.html"}
    expect(len(pages) > 50, f"{len(pages)} pages")
    test_pages(pages)
    if "--no-browser" not in sys.argv:
        program = browser.find()
        if not program:
            print("not here: no Chromium")
            sys.exit(77)
        pictures = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
        if pictures:
            pictures.mkdir(parents=True, exist_ok=True)
        test_in_browser(program, pages, pictures)
    print(f"the site: {len(pages)} pages, {checked} checks, {failed} wrong")
    sys.exit(failed > 0)


main()
