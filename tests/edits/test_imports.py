"""Where an import goes, and when none is needed."""

from __future__ import annotations

import pytest

from tests.edits.support import Case, Edits, check_case, reason_of

STRATEGIES = "lightning.fabric.strategies"

CASES: dict[str, Case] = {
    "import beside its package": (
        "import os\nimport lightning as L\nimport torch\n\na\n",
        lambda e: [e.add_import("lightning.fabric.strategies", "XLAStrategy")],
        "import os\nimport lightning as L\nfrom lightning.fabric.strategies import XLAStrategy\nimport torch\n\na\n",
    ),
    "import at the end of the block": (
        "import os\nimport torch\n\na\n",
        lambda e: [e.add_import("x.y", "F")],
        "import os\nimport torch\nfrom x.y import F\n\na\n",
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
        "import a\nfrom l import F, G\n",
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
    "import beside those of its package, wherever they stand": (
        "import os\n\nos.environ['X'] = '1'\n\nimport lightning as L\nimport torch\n\na\n",
        lambda e: [e.add_import(STRATEGIES, "XLAStrategy"), e.expression("a", "b")],
        "import os\n\nos.environ['X'] = '1'\n\nimport lightning as L\n"
        "from lightning.fabric.strategies import XLAStrategy\nimport torch\n\nb\n",
    ),
    "import below the last import, though statements stand between": (
        "import os\nos.environ['X'] = '1'\nimport torch\n\na\nimport late\n",
        lambda e: [e.add_import("x", "F"), e.expression("a", "b")],
        "import os\nos.environ['X'] = '1'\nimport torch\nfrom x import F\n\nb\nimport late\n",
    ),
    "import above what needs it": (
        "import lightning as L\na\nfrom lightning import seed\n",
        lambda e: [e.add_import("lightning.fabric", "F"), e.expression("a", "b")],
        "import lightning as L\nfrom lightning.fabric import F\nb\nfrom lightning import seed\n",
    ),
    "import widens one of its module": (
        "import lightning\nfrom lightning.fabric.strategies import FSDPStrategy as F\nimport torch\na\n",
        lambda e: [e.add_import(STRATEGIES, "XLAStrategy"), e.add_import(STRATEGIES, "DeepSpeedStrategy")],
        "import lightning\nfrom lightning.fabric.strategies import FSDPStrategy as F, XLAStrategy, DeepSpeedStrategy\n"
        "import torch\na\n",
    ),
    "import widens one in a semicolon line": (
        "import os; from x import G ; a\n",
        lambda e: [e.add_import("x", "F")],
        "import os; from x import G, F ; a\n",
    ),
    "import widens none with a comment": (
        "from x import G  # c\na\n",
        lambda e: [e.add_import("x", "F")],
        "from x import G  # c\nfrom x import F\na\n",
    ),
    "import widens none with parentheses": (
        "from x import (G)\na\n",
        lambda e: [e.add_import("x", "F")],
        "from x import (G)\nfrom x import F\na\n",
    ),
    "import widens none of all names": (
        "from x import *\na\n",
        lambda e: [e.add_import("x", "F")],
        "from x import *\nfrom x import F\na\n",
    ),
    "import of the stand-alone package": (
        "import lightning_fabric as L\na\n",
        lambda e: [e.add_import(STRATEGIES, "XLAStrategy")],
        "import lightning_fabric as L\nfrom lightning_fabric.strategies import XLAStrategy\na\n",
    ),
    "import there already, from the stand-alone package": (
        "from lightning_fabric.strategies import XLAStrategy\na\n",
        lambda e: [e.add_import(STRATEGIES, "XLAStrategy")],
        "from lightning_fabric.strategies import XLAStrategy\na\n",
    ),
    "import there already, from the module that defines it": (
        "from lightning.fabric.strategies.xla import XLAStrategy\na\n",
        lambda e: [e.add_import(STRATEGIES, "XLAStrategy")],
        "from lightning.fabric.strategies.xla import XLAStrategy\na\n",
    ),
    "import that only type checkers see, beside its package": (
        "import l\nif TYPE_CHECKING:\n    from l import F\n",
        lambda e: [e.add_import("l", "F")],
        "import l\nfrom l import F\nif TYPE_CHECKING:\n    from l import F\n",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_edit(case: Case) -> None:
    check_case(case)


REFUSED: dict[str, tuple[str, Edits, str]] = {
    "package imported in a try": (
        "import a\ntry:\n    import lightning\nexcept ImportError:\n    pass\n",
        lambda e: [e.add_import("lightning", "F")],
        "`lightning` is imported inside a function or a condition only, so `F` has no place",
    ),
    "package imported for type checkers": (
        "import a\nif TYPE_CHECKING:\n    from l import F\n",
        lambda e: [e.add_import("l", "F")],
        "`l` is imported inside a function or a condition only, so `F` has no place",
    ),
    "all imports below what needs the name": (
        "a\nimport lightning\n",
        lambda e: [e.add_import("lightning", "F"), e.expression("a", "b")],
        "`F` is needed above the imports that it would have to stand behind",
    ),
    "both packages": (
        "try:\n    import lightning as L\nexcept ImportError:\n    import lightning_fabric as L\na\n",
        lambda e: [e.add_import(STRATEGIES, "XLAStrategy")],
        "the file imports `lightning` and `lightning_fabric`, whose classes are not the same",
    ),
    "neither package": (
        "from project import fabric\na\n",
        lambda e: [e.add_import(STRATEGIES, "XLAStrategy")],
        "the file does not show whether Fabric comes from `lightning` or `lightning_fabric`",
    ),
    "class of the same name": (
        "import lightning as L\nfrom lightning.pytorch.strategies import XLAStrategy\na\n",
        lambda e: [e.add_import(STRATEGIES, "XLAStrategy")],
        "the name `XLAStrategy` already means something else in this file",
    ),
    "local name": (
        "import lightning as L\ndef f(XLAStrategy):\n    a\n",
        lambda e: [e.add_import(STRATEGIES, "XLAStrategy")],
        "the name `XLAStrategy` already means something else in this file",
    ),
    "import inside a function": (
        "import x\ndef f():\n    a\n    from x import F\n",
        lambda e: [e.add_import("x", "F")],
        "the name `F` is imported inside a function, which may hide it",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(case: tuple[str, Edits, str]) -> None:
    text, edits, reason = case
    assert reason_of(text, edits) == reason
