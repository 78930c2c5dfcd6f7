"""`python -m fabric_fix` is `fabric-fix`."""

from fabric_fix.cli import main

if __name__ == "__main__":
    main()
