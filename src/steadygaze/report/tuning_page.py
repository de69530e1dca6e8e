"""The page of a hyper-parameter search: one HTML file without scripts or external files, rendered from a Tuning."""

import shlex

from markupsafe import Markup

from steadygaze.report.chart_svg import draw_trials
from steadygaze.report.page import templates
from steadygaze.results.tuning import Tuning


def render(tuning: Tuning) -> str:
    html = (
        templates()
        .get_template("tuning.html.jinja")
        .render(
            tuning=tuning,
            front={trial.number for trial in tuning.front},
            plot=Markup(_plot(tuning)),  # names of measures and numbers only
            command=shlex.join(tuning.command),
        )
    )
    return html.encode(errors="replace").decode()  # a lone surrogate cannot be written


def _plot(tuning: Tuning) -> str:
    """The first two objectives against each other; a single objective over the trials."""
    names = [measure for measure, _ in tuning.objectives]
    front = {trial.number for trial in tuning.front}
    if len(names) > 1:
        points = [{"x": t.values[1], "y": t.values[0], "front": t.number in front} for t in tuning.complete]
        return draw_trials(points, names[1], names[0])
    points = [{"x": t.number, "y": t.values[0], "front": t.number in front} for t in tuning.complete]
    return draw_trials(points, "trial", names[0])
