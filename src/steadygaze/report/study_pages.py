"""The pages of a hyper-parameter search and of a reproduced table: HTML files without scripts or external files."""

import shlex

from markupsafe import Markup

from steadygaze.report.chart_svg import draw_trials
from steadygaze.report.page import templates
from steadygaze.results.reproduction import Reproduction
from steadygaze.results.tuning import Tuning


def render_tuning(tuning: Tuning) -> str:
    html = (
        templates()
        .get_template("tuning.html.jinja")
        .render(
            tuning=tuning,
            front={trial.number for trial in tuning.front},
            plot=Markup(_trial_plot(tuning)),  # names of measures and numbers only
            command=shlex.join(tuning.command),
        )
    )
    return html.encode(errors="replace").decode()  # a lone surrogate cannot be written


def _trial_plot(tuning: Tuning) -> str:
    """The first two objectives against each other; a single objective over the trials."""
    names = [measure for measure, _ in tuning.objectives]
    front = {trial.number for trial in tuning.front}
    if len(names) > 1:
        points = [{"x": t.values[1], "y": t.values[0], "front": t.number in front} for t in tuning.complete]
        return draw_trials(points, names[1], names[0])
    points = [{"x": t.number, "y": t.values[0], "front": t.number in front} for t in tuning.complete]
    return draw_trials(points, "trial", names[0])


def render_reproduction(reproduction: Reproduction) -> str:
    page = templates().get_template("reproduction.html.jinja")
    html = page.render(reproduction=reproduction, command=shlex.join(reproduction.command))
    return html.encode(errors="replace").decode()  # a lone surrogate cannot be written
