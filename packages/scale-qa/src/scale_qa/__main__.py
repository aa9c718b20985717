"""``python -m scale_qa`` is ``scale-qa``."""

import sys

from scale_qa.cli import main

sys.exit(main())
