"""Corpora, tokenizers, word vectors, synonyms and batches."""
