"""Models behind an OpenAI-compatible server, as models of every command.

server.py          openai:MODEL@URL: the name of a hosted model, its address and its key
client.py          one request: retries, Retry-After, errors that name the fix
request_form.py    the fields of a request, and what its answer says: log-probabilities or a text
label_reading.py   an answer -> the probability of each label
budget.py          --max-requests: the estimate before the run, and the limit during it
answer_file.py     all answers on disk: an interrupted run continues, and nothing is paid twice
hosted_model.py    texts -> probabilities
"""
