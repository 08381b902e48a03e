"""Hooks of the documentation site (mkdocs.yml). Pages of the repository's root are part of the site, without copies in git.

Every page keeps the relative links that work in a checkout. Here a link to a file that the site has elsewhere, such as
`../LANGUAGE.md`, is rewritten for the site.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "index.md",
    "LANGUAGE.md": "language.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
OTHERS = ("benchmarks/results/*.png", "examples/alarms.yml")
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^```text (\S+)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, uri in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / name)))
    for pattern in OTHERS:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source, here = Path(str(page.file.abs_src_path)), Path(page.file.src_uri).parent

    def moved(link: re.Match[str]) -> str:
        path = Path(os.path.normpath(source.parent / link[2])).relative_to(ROOT).as_posix()
        uri = PAGES.get(path, path.removeprefix("docs/"))
        return f"{link[1]}{os.path.relpath(uri, here)}{link[3]}"

    return FENCE.sub(r'```text title="\1"', LINK.sub(moved, markdown))
