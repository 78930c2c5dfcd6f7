"""What `fabric-fix` and `python -m fabric_fix` start."""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command. What it loads and parses is many objects and little garbage: collecting it takes a fifth."""
    gc.set_threshold(1_000_000, 30, 30)
    from fabric_fix.cli import main as run

    run()


if __name__ == "__main__":
    main()
