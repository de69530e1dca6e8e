"""Tables that `python -m studies run papers PLAN...` runs, with our limits on texts, epochs and seeds."""

Choice = dict[str, object]
"""Fields of ReproduceOptions; `vectors`: the file of --glove if it is left out, or UNIT."""
SEEDS = 5
BF16 = {"precision": "bf16"}
UNIT = "unit"
"""Word vectors from N(0, 1) for bAbI, written to the folder of the run."""
BABI: Choice = {"vectors": UNIT, "batch_size": 50, "settings": {"hidden": 32, "decoder": "mlp", "patience": 10}}
"""Jain & Wallace 2019, whom the paper follows; the study `babi_settings` compares them with the defaults."""
PLANS: dict[str, list[tuple[str, Choice]]] = {
    "seat": [("seat/table1", {"only": ("bilstm", "rnn")})],
    "kitada": [
        ("kitada/table2", {"only": ("sst2", "newsgroups_sport", "snli"), "limit": 2000}),
        ("kitada/table2", {"only": ("ag_news",), "limit": 2000, "train_limit": 10_000}),
        ("kitada/table2", {"only": ("imdb",), "limit": 1000, "train_limit": 5_000}),
    ],
    "figure4": [("kitada/figure4", {"only": ("sst2",), "seeds": 3})],
    "seat-minilm": [
        ("seat/table1", {"only": ("minilm", "sst2", "rotten_tomatoes"), "vectors": None, "epochs": 3, "settings": BF16})
    ],
    "seat-figure2": [("seat/figure2", {})],
    "seat-table4": [("seat/table4", {"only": ("bilstm", "rnn")})],
    "babi": [
        ("kitada/table2", {"only": ("babi_2",), "seeds": 3, "epochs": 40, **BABI}),
        ("kitada/table2", {"only": ("babi_1",), "epochs": 40, **BABI}),
        ("kitada/table2", {"only": ("babi_3",), "seeds": 3, "epochs": 100, **BABI}),
        ("kitada/figure4", {"only": ("multinli", "ε = 30"), "seeds": 3}),
    ],
    "multinli": [("kitada/table2", {"only": ("multinli",)})],
    "multinli-figure4": [("kitada/figure4", {"only": ("multinli",), "seeds": 3})],
}
"""Name -> tables and choices.  The largest sets have a limit, which the records name."""
TINY: Choice = {"limit": 24, "train_limit": 64, "epochs": 1, "seeds": 2, "settings": {"hidden": 4}}
ONE_WORKER: Choice = {"only": ("sst2", "bilstm"), "seeds": 1}
"""The cells of Table 1 of SEAT that --one-by-one times."""
