"""``python -m msops``: see `msops._tools.run`."""

from msops._tools.run import main

main()
