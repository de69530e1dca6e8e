"""Stable training inside a script of the transformers library: `StableTrainer`.

Imported only when used: it imports the library.
"""

from steadygaze.transformers.stable_trainer import StableTrainer as StableTrainer
