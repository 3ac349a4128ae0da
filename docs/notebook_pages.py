"""Notebooks as pages of the site: each is run, and what a cell shows stands below it.

    python docs/notebook_pages.py NOTEBOOK    # number, type and length of what each cell shows

A notebook is a jupytext script of ``docs/notebooks``. Nothing of its output is kept, so nothing can be out of date.
"""

import ast
import base64
import contextlib
import html
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)


def notebook_page(notebook: Path) -> str:
    """A notebook in Markdown: text cells as text, the others as Python with what they show."""
    where = f"The file is `docs/notebooks/{notebook.name}`; Jupyter opens it with jupytext."
    source = f"*{where} It was run while this page was built.*"
    parts = [text if value is None else f"{text}\n\n{value}" for text, value in _parts(notebook)]
    return "\n\n".join([parts[0], source, *parts[1:]]) + "\n"


def _parts(notebook: Path) -> Iterator[tuple[str, str | None]]:
    for kind, body, printed, value in run(notebook):
        if "[markdown]" in kind:
            yield re.sub(r"^# ?", "", body, flags=re.MULTILINE), None
        else:
            output = f"<pre>{html.escape(printed)}</pre>" if printed.strip() else ""
            output += "" if value is None else shown(value)
            yield f"```python\n{body}\n```", f'<div class="output">{output}</div>' if output else None


def run(notebook: Path) -> Iterator[tuple[str, str, str, Any]]:
    """Every cell after the other: its kind, its text, what it printed, and the value of its last line."""
    _, *cells = _CELL.split(notebook.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for kind, text in zip(cells[::2], cells[1::2], strict=True):
        body = ast.parse("" if "[markdown]" in kind else text, notebook.name)
        last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(body, notebook.name, "exec"), names)
            expression = ast.Expression(ast.Constant(None) if last is None else last.value)
            value = eval(compile(ast.fix_missing_locations(expression), notebook.name, "eval"), names)
        yield kind, text.strip("\n"), printed.getvalue(), value


def shown(value: Any) -> str:
    """What Jupyter would show of a value, in HTML."""
    if hasattr(value, "_repr_png_"):
        return f'<img alt="plot" src="data:image/png;base64,{base64.b64encode(value._repr_png_()).decode()}">'
    if hasattr(value, "_repr_html_"):
        return str(value._repr_html_())
    return f"<pre>{html.escape(value if isinstance(value, str) else repr(value))}</pre>"


if __name__ == "__main__":
    for number, (_, _, _, found) in enumerate(run(Path(sys.argv[1]))):
        if found is not None:
            sys.stdout.write(f"{number} {type(found).__name__} {len(shown(found))}\n")
