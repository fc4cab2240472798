"""The transcriptions the tests compare with are next to them, whatever import mode pytest runs in."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("medxplore", deadline=None)
settings.load_profile("medxplore")
