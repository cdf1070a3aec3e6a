"""`python -m selc`, where no command is installed."""

from selc.cli import main

main()
