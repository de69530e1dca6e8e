"""What each verb of the command line does, without parsing and printing."""

from steadygaze.verbs.explain_fitting import check_explain_fit as check_explain_fit
from steadygaze.verbs.explain_fitting import explain_fit as explain_fit
from steadygaze.verbs.given import columns as columns
from steadygaze.verbs.given import describe as describe
from steadygaze.verbs.given import texts as texts
from steadygaze.verbs.given import unfinished as unfinished
from steadygaze.verbs.reading import certify as certify
from steadygaze.verbs.reading import explain as explain
from steadygaze.verbs.reading import predict as predict
from steadygaze.verbs.reading import read as read
from steadygaze.verbs.reading import write_explanations as write_explanations
from steadygaze.verbs.training import check_place as check_place
from steadygaze.verbs.training import check_train as check_train
from steadygaze.verbs.training import summary as summary
from steadygaze.verbs.training import train as train
