"""``python -m msops``: see `msops._run`."""

from msops._run import main

main()
