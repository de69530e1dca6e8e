"""Generated pages of the site: method cards, metrics, API, CLI, contributing.  MkDocs calls the functions on_*."""

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

import api_pages
import cli_pages
import data_tables
import metric_pages
import notebook_pages
import plot_svg
import repository_pages
import technique_cards

SECTIONS = {"Methods": technique_cards, "Metrics": metric_pages, "API": api_pages, "CLI": cli_pages}
"""Navigation section -> the module with its pages()."""
SHIM = "https://unpkg.com/iframe-worker/shim"
SEARCH = 'data-md-component="search" role="dialog" aria-label="Search"'
FOCUSABLE = re.compile(r"<(table|math(?= [^>]*display=.block))")
"""Elements that may scroll: the keyboard must reach them."""
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
MARKUP = re.compile(r"(<pre.*?</pre>|<code>[^<]*</code>|<code.*?</code>|<math.*?</math>|<[^>]+>)", re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
CELL = re.compile(r"<td>(.*?)</td>", re.DOTALL)
LONG = 60
"""Characters of a table cell that is not narrowed to one word per line on a phone."""
BLOCK = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.DOTALL)


def on_config(config: Any) -> Any:
    """Generate the pages, and add them to the navigation."""
    root = Path(config.config_file_path).parent
    config.generated_pages = {}
    for section, module in SECTIONS.items():
        pages = module.pages(root)
        entries = next(entry[section] for entry in config.nav if section in entry)
        entries.extend(path for path in pages if path not in entries)
        config.generated_pages |= pages
    config.generated_pages |= notebook_pages.pages(root) | repository_pages.pages(root)
    return config


def on_files(files: Files, config: Any) -> Files:
    for path, text in config.generated_pages.items():
        if (existing := files.get_file_from_path(path)) is not None:
            files.remove(existing)
        files.append(File.generated(config, path, content=text))
    return files


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """Equations as MathML, which need no script; plots in the colors of the theme; tables of CSV files."""
    html = INLINE.sub(lambda match: convert(_plain(match[1])), html)
    html = BLOCK.sub(lambda match: convert(_plain(match[1]), display="block"), html)
    html = FOCUSABLE.sub(r'<\1 tabindex="0"', unbroken(html))
    html = CELL.sub(
        lambda match: match[0].replace("<td>", '<td class="long">', 1) if _is_long(match[1]) else match[0], html
    )
    docs = Path(config.docs_dir)
    return data_tables.with_tables(plot_svg.inline(html, docs), (docs / page.file.src_uri).parent)


def unbroken(html: str) -> str:
    """No line break between a number and %, nor in an option of a command."""
    parts = MARKUP.split(html)
    for i, part in enumerate(parts):
        if not i % 2:
            parts[i] = re.sub(r"(?<=\d) %", "&nbsp;%", part)
        elif part.startswith("<code>"):
            parts[i] = OPTION.sub(lambda match: f'<span class="option">{match[0]}</span>', part)
    return "".join(parts)


def _is_long(cell: str) -> bool:
    return len(re.sub(r"<[^>]+>", "", cell)) > LONG


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The script that lets search work without a server, from this site; a name for the search dialog."""
    output = output.replace(SHIM, get_relative_url("scripts/iframe-worker.js", page.url))
    return output.replace('data-md-component="search" role="dialog"', SEARCH)


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """The same for 404.html, at the root of the site."""
    return (
        output_content.replace(SHIM, "scripts/iframe-worker.js") if template_name.endswith(".html") else output_content
    )


def _plain(latex: str) -> str:
    return latex.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()
