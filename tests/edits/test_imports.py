"""Where an import goes, and when none is needed."""

from __future__ import annotations

import pytest

from tests.edits.support import Case, check_case

CASES: dict[str, Case] = {
    "import beside its package": (
        "import os\nimport lightning as L\nimport torch\n\na\n",
        lambda e: [e.add_import("lightning.fabric.strategies", "XLAStrategy")],
        "import os\nimport lightning as L\nfrom lightning.fabric.strategies import XLAStrategy\nimport torch\n\na\n",
    ),
    "import at the end of the block": (
        "import os\nimport torch\n\na\n",
        lambda e: [e.add_import("lightning.fabric.strategies", "XLAStrategy")],
        "import os\nimport torch\nfrom lightning.fabric.strategies import XLAStrategy\n\na\n",
    ),
    "import after future and docstring": (
        "'''doc'''\nfrom __future__ import annotations\n\nimport os\n\na\n",
        lambda e: [e.add_import("lightning", "Fabric")],
        "'''doc'''\nfrom __future__ import annotations\n\nimport os\nfrom lightning import Fabric\n\na\n",
    ),
    "import after future only": (
        "from __future__ import annotations\n\na\n",
        lambda e: [e.add_import("lightning", "Fabric")],
        "from __future__ import annotations\n\nfrom lightning import Fabric\n\na\n",
    ),
    "import after docstring only": (
        "'''doc'''\n\na\n",
        lambda e: [e.add_import("lightning", "Fabric")],
        "'''doc'''\n\nfrom lightning import Fabric\n\na\n",
    ),
    "import into nothing": (
        "# licence\n\nxx = 1\n",
        lambda e: [e.add_import("lightning", "Fabric")],
        "# licence\n\nfrom lightning import Fabric\n\nxx = 1\n",
    ),
    "import there already": (
        "from lightning import Fabric, seed\na\n",
        lambda e: [e.add_import("lightning", "Fabric")],
        "from lightning import Fabric, seed\na\n",
    ),
    "import twice": (
        "import a\n",
        lambda e: [e.add_import("l", "F"), e.add_import("l", "F"), e.add_import("l", "G")],
        "import a\nfrom l import F\nfrom l import G\n",
    ),
    "import not in try": (
        "import a\ntry:\n    import lightning\nexcept ImportError:\n    pass\n",
        lambda e: [e.add_import("lightning", "F")],
        "import a\nfrom lightning import F\ntry:\n    import lightning\nexcept ImportError:\n    pass\n",
    ),
    "import parenthesised neighbour": (
        "from lightning import (  # c\n    a,\n    b,\n)\nx\n",
        lambda e: [e.add_import("lightning", "F")],
        "from lightning import (  # c\n    a,\n    b,\n)\nfrom lightning import F\nx\n",
    ),
    "import in a semicolon line": (
        "import os; import torch\na\n",
        lambda e: [e.add_import("x", "F")],
        "import os; import torch\nfrom x import F\na\n",
    ),
    "import crlf": (
        "import os\r\nx = 1\r\n",
        lambda e: [e.add_import("x", "F")],
        "import os\r\nfrom x import F\r\nx = 1\r\n",
    ),
    "import relative block": (
        "from . import x\nfrom .y import *\n\na\n",
        lambda e: [e.add_import("x", "F")],
        "from . import x\nfrom .y import *\nfrom x import F\n\na\n",
    ),
    "import that only type checkers see": (
        "import a\nif TYPE_CHECKING:\n    from l import F\n",
        lambda e: [e.add_import("l", "F")],
        "import a\nfrom l import F\nif TYPE_CHECKING:\n    from l import F\n",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_edit(case: Case) -> None:
    check_case(case)
