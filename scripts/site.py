#!/usr/bin/env python3
"""Makes the site of the documentation: MkDocs with its Material theme (Debian: mkdocs, mkdocs-material).

    scripts/site.py DIR      writes DIR/site, which needs no network: `python3 -m http.server -d DIR/site` serves it with search
    scripts/site.py --links  checks the links of these pages, without MkDocs: files and headings

Pages are README's and those of docs/. A file of the tree that a page links to becomes a page too: Markdown as it is, code as text.
A link to a file or heading that is not there is an error.
"""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s]+)(\))")
LANGUAGES = {".h": "c", ".c": "c", ".py": "python", ".sh": "sh", ".build": "meson"}
EXPLANATION = ["design.md", "numerics.md", "reproducibility.md", "speed.md", "faq.md", "compatibility.md", "roadmap.md"]

# long names of files and functions must not make a page wider than a phone
STYLE = ".md-typeset h1, .md-typeset h2, .md-typeset p, .md-typeset li, .md-typeset a { overflow-wrap: anywhere; }\n"


def headings(path):
    """What a link can name of a page: its headings, as GitHub writes them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    names = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", name) for name in re.findall(r"^#+ (.*)", text, re.M))
    return {re.sub(r"[^\w\- ]", "", name.lower()).strip().replace(" ", "-") for name in names}


class Site:
    def __init__(self, folder):
        self.pages = folder / "pages"
        self.missing = []
        self.written = set()

    def place(self, path):
        """Where a file of the tree has its page."""
        name = path.relative_to(ROOT).as_posix()
        if name.startswith("docs/"):
            return name[len("docs/"):].replace("results/README.md", "results/index.md")
        if name.startswith("include/"):
            return f"reference/headers/{path.name}.md"
        return f"source/{name}" + ("" if path.suffix == ".md" else ".md")

    def follow(self, page, text):
        """The text of a page, with links to files as links to their pages, which are written."""
        def target(match):
            url, hash_, fragment = match[2].partition("#")
            if re.match(r"[a-z]+:", url):
                return match[0]
            path = (page.parent / url).resolve() if url else page
            if path.is_dir():
                path = next((path / name for name in ("README.md", "index.md") if (path / name).exists()), path)
            if not path.exists():
                self.missing.append(f"{page.relative_to(ROOT)}: {url}")
                return match[0]
            if path.is_dir():
                return match[1] + f"{self.up(page)}index.md" + match[3]
            if fragment and path.suffix == ".md" and fragment not in headings(path):
                self.missing.append(f"{page.relative_to(ROOT)}: {match[2]}")
            self.write(path)
            relative = os.path.relpath(self.place(path), os.path.dirname(self.place(page)) or ".")
            return match[1] + relative + hash_ + fragment + match[3]

        parts = re.split(r"(^```.*?^```|`[^`\n]*`)", text, flags=re.M | re.S)
        return "".join(part if i % 2 else LINK.sub(target, part) for i, part in enumerate(parts))

    def up(self, page):
        return os.path.relpath(".", os.path.dirname(self.place(page)) or ".") + "/"

    def write(self, path):
        if path in self.written:
            return
        self.written.add(path)
        to = self.pages / self.place(path)
        to.parent.mkdir(parents=True, exist_ok=True)
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".md":
            to.write_text(self.follow(path, path.read_text(encoding="utf-8")), encoding="utf-8")
        elif name.startswith("docs/"):
            shutil.copy(path, to)
        else:
            code = path.read_text(encoding="utf-8")
            title = name[len("include/"):] if name.startswith("include/") else name
            to.write_text(f"# {html.escape(title)}\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{code}````\n", encoding="utf-8")

    def title(self, path):
        return re.search(r"^# (.*)", (self.pages / path).read_text(encoding="utf-8"), re.M)[1].replace("`", "")

    def listed(self, folder):
        paths = sorted(path.relative_to(self.pages).as_posix() for path in (self.pages / folder).glob("*.md"))
        return sorted(({self.title(path): path} for path in paths), key=lambda entry: next(iter(entry)).lower())

    def navigation(self):
        headers = self.listed("reference/headers")
        reference = self.listed("reference") + [{"Headers": headers}]
        explanation = [{self.title(path): path} for path in EXPLANATION]
        measurements = self.listed("speed") + [{"Reports of machines": "results/index.md"}]
        return [{"Home": "index.md"}, {"Tutorial": "tutorial.md"}, {"How to": self.listed("howto")}, {"Ops": self.listed("ops")},
                {"Reference": reference}, {"Explanation": explanation}, {"Measurements": measurements}]


def scheme(name, other):
    return {"media": f"(prefers-color-scheme: {name})", "scheme": "default" if name == "light" else "slate", "primary": "teal",
            "accent": "teal", "toggle": {"icon": f"material/weather-{'night' if name == 'light' else 'sunny'}",
                                         "name": f"Switch to the {other} scheme"}}


def write_pages(folder):
    site = Site(folder)
    shutil.rmtree(site.pages, ignore_errors=True)
    for path in [*(ROOT / "docs").rglob("*"), *(ROOT / "include/nrg").glob("*.h"), *ROOT.glob("*.md")]:
        if path.is_file():
            site.write(path)
    (site.pages / "site.css").write_text(STYLE, encoding="utf-8")
    if site.missing:
        sys.exit("links to what is not there:\n" + "\n".join(site.missing))
    return site


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--links":
        with tempfile.TemporaryDirectory() as folder:
            print(f"the links of {len(write_pages(pathlib.Path(folder)).written)} pages lead somewhere")
        return
    folder = pathlib.Path(sys.argv[1]).resolve()
    site = write_pages(folder)
    config = {
        "site_name": "nrg", "site_description": "SIMD kernels for the layers between a neural network's matrix products",
        "docs_dir": str(site.pages), "site_dir": str(folder / "site"), "use_directory_urls": False, "nav": site.navigation(),
        "theme": {"name": "material", "font": False, "palette": [scheme("light", "dark"), scheme("dark", "light")],
                  "features": ["navigation.tabs", "navigation.top", "search.highlight"]},
        "plugins": ["search"], "extra_css": ["site.css"],
        "markdown_extensions": ["tables", "attr_list", "sane_lists", "pymdownx.superfences", "pymdownx.highlight",
                                {"toc": {"permalink": True, "slugify": "@slugify"}}],
    }
    # JSON is YAML, but for the one value that is a Python name
    text = json.dumps(config, indent=1).replace('"@slugify"', "!!python/name:pymdownx.slugs.uslugify")
    (folder / "mkdocs.yml").write_text(text, encoding="utf-8")
    done = subprocess.run(["mkdocs", "build", "--quiet", "--strict", "--clean", "-f", str(folder / "mkdocs.yml")])
    if done.returncode:
        sys.exit(done.returncode)
    print(f"{len(list((folder / 'site').rglob('*.html')))} pages in {folder / 'site'}")


if __name__ == "__main__":
    main()
