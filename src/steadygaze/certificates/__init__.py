"""Certificates: attention weights that may change, and words that may be substituted, without another prediction."""
