"""Time of ferret-xai's measures for bench/audit.py, which runs this script in an environment of its own.

The first line of the standard input has explanations as JSON.  For each further line, the script measures all of them
and prints the seconds.
"""

import json
import sys
import time

import torch
from ferret.evaluators.faithfulness_measures import AOPC_Comprehensiveness_Evaluation, AOPC_Sufficiency_Evaluation
from ferret.explainers.explanation import Explanation
from transformers import AutoModelForSequenceClassification, AutoTokenizer

SIZES = {"remove_tokens": True, "based_on": "perc", "thresholds": [0.01, 0.05, 0.1, 0.2, 0.5]}


def main() -> None:
    folder, threads, device = sys.argv[1:]
    torch.set_num_threads(int(threads))
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval().to(device)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    measures = [kind(model, tokenizer) for kind in (AOPC_Comprehensiveness_Evaluation, AOPC_Sufficiency_Evaluation)]
    explanations = [
        Explanation(record["text"], record["tokens"], record["scores"], "given", record["target"])
        for record in json.loads(sys.stdin.readline())
    ]

    def measure(explanation: Explanation) -> list[float]:
        return [kind.compute_evaluation(explanation, explanation.target, removal_args=SIZES).score for kind in measures]

    measure(explanations[0])  # the first call is not timed
    for _ in sys.stdin:
        start = time.perf_counter()
        for explanation in explanations:
            measure(explanation)
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
