"""The page of a reproduced table: one HTML file without scripts or external files, rendered from a Reproduction."""

import shlex

from steadygaze.report.page import templates
from steadygaze.results.reproduction import Reproduction


def render(reproduction: Reproduction) -> str:
    page = templates().get_template("reproduction.html.jinja")
    html = page.render(reproduction=reproduction, command=shlex.join(reproduction.command))
    return html.encode(errors="replace").decode()  # a lone surrogate cannot be written
