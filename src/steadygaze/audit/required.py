"""What an audit may be required to find: refused before anything is read where no audit could."""

from steadygaze.audit.names import check_name
from steadygaze.audit.verdict import QUESTIONS
from steadygaze.errors import unknown
from steadygaze.report.policy import Policy


def checked(*parts: Policy) -> Policy | None:
    """All of them together; None where they require nothing."""
    policy = Policy(
        tuple(one for part in parts for one in part.requirements), tuple(one for part in parts for one in part.verdicts)
    )
    for required in policy.requirements:
        check_name(required.measure)
    known = [name for question in QUESTIONS for name in (question.key, question.asks)]
    for wanted in policy.verdicts:
        if wanted.question not in known:
            raise unknown("question", wanted.question, known)
    return policy if policy.requirements or policy.verdicts else None
