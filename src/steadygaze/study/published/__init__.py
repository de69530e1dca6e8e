"""The tables and figures of four papers as data: one TOML file per paper, read by `study.published_tables`."""
