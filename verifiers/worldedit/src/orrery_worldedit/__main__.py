"""`python -m orrery_worldedit`, the form the images' wrapper command uses."""

import sys

from orrery_worldedit.cli import main

sys.exit(main())
