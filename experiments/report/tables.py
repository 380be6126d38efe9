"""Tables as they are read: on a page, in Markdown and in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table of finished texts.

    Attributes:
        name: Name for a file, such as "claims".
        title: One line above it.
        columns: Heads.
        rows: Texts, one per column.
        left: Number of columns, from the first, that hold words; the others hold numbers.
        note: What else a reader should know; may be empty.

    Example:
        >>> Table("claims by eps", "Claims", ("claim", "cells"), (("theorem-3.3", "12"),)).slug
        'claims-by-eps'
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    note: str = ""

    @property
    def slug(self) -> str:
        """The name with nothing in it that a file name or a label could not have."""
        return re.sub(r"[^A-Za-z0-9]+", "-", self.name).strip("-") or "table"


# ---- Markdown

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#~$])")


def markdown_text(text: object) -> str:
    r"""A text that Markdown shows as it is.

    Example:
        >>> markdown_text("<b>a|b</b>")
        '\\<b\\>a\\|b\\</b\\>'
    """
    one_line = " ".join(str(text).split())
    return _MARKDOWN.sub(r"\\\1", one_line.replace("&", "&amp;"))


def markdown(table: Table) -> str:
    """The table in GitHub's Markdown.

    Args:
        table: The table; whatever its texts hold is shown as it is.

    Returns:
        Lines, the last one ended.

    Example:
        >>> print(markdown(Table("a", "Two", ("name", "n"), (("x", "1"),))), end="")
        **Two**
        <BLANKLINE>
        | name | n |
        |:--|--:|
        | x | 1 |
    """
    rules = [":--" if place < table.left else "--:" for place in range(len(table.columns))]
    lines = [
        f"**{markdown_text(table.title)}**",
        "",
        _row(map(markdown_text, table.columns)),
        f"|{'|'.join(rules)}|",
        *(_row(map(markdown_text, row)) for row in table.rows),
    ]
    if table.note:
        lines += ["", markdown_text(table.note)]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


# ---- LaTeX

_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: rf"\{sign}" for sign in "{}$&#_%"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # After \\ a bracket would be read as its argument.
    "[": "{[}",
    "]": "{]}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{
        sign: f"${code}$"
        for sign, code in {
            "×": r"\times",
            "÷": r"\div",
            "≤": r"\le",
            "≥": r"\ge",
            "≈": r"\approx",
            "→": r"\to",
            "∞": r"\infty",
            "−": "-",
            "√": r"\surd",
            "Δ": r"\Delta",
            "Θ": r"\Theta",
            "Φ": r"\Phi",
            "Ω": r"\Omega",
            "α": r"\alpha",
            "β": r"\beta",
            "δ": r"\delta",
            "ε": r"\varepsilon",
            "λ": r"\lambda",
            "π": r"\pi",
            "σ": r"\sigma",
            "τ": r"\tau",
            "ℓ": r"\ell",
        }.items()
    },
    "–": "--",
    "…": r"\dots{}",
}


def latex_text(text: object) -> str:
    r"""A text that LaTeX prints as it is, Greek letters in mathematics.

    Letters of other scripts are left alone: XeLaTeX and LuaLaTeX print them.

    Example:
        >>> latex_text("50 % of a_b [U2], Δ0 ≤ 5")
        '50 \\% of a\\_b {[}U2{]}, $\\Delta$0 $\\le$ 5'
    """
    one_line = " ".join(str(text).split())
    return "".join(_LATEX.get(c, c if c.isprintable() else "?") for c in one_line)


def latex(table: Table) -> str:
    r"""The table for LaTeX, with booktabs; one that may break across pages if it is long.

    Args:
        table: The table; whatever its texts hold is printed as it is.

    Returns:
        Lines, the last one ended.

    Example:
        >>> print(latex(Table("a", "Two", ("name", "n"), (("x", "1"),))), end="")
        % \usepackage{booktabs}
        \begin{table}
        \centering
        \caption{Two}\label{tab:a}
        \begin{tabular}{lr}
        \toprule
        name & n \\
        \midrule
        x & 1 \\
        \bottomrule
        \end{tabular}
        \end{table}
    """
    head = " & ".join(map(latex_text, table.columns)) + r" \\"
    body = [" & ".join(map(latex_text, row)) + r" \\" for row in table.rows]
    layout = "l" * table.left + "r" * (len(table.columns) - table.left)
    caption = rf"\caption{{{latex_text(table.title)}}}\label{{tab:{table.slug}}}"
    note = [rf"\par\smallskip {latex_text(table.note)}"] if table.note else []
    if len(table.rows) > 40:
        lines = [
            r"% \usepackage{booktabs,longtable}", rf"\begin{{longtable}}{{{layout}}}",
            caption + r" \\", r"\toprule", head, r"\midrule", r"\endfirsthead", r"\toprule", head,
            r"\midrule", r"\endhead", *body, r"\bottomrule", r"\end{longtable}", *note,
        ]  # fmt: skip
    else:
        lines = [
            r"% \usepackage{booktabs}", r"\begin{table}", r"\centering", caption,
            rf"\begin{{tabular}}{{{layout}}}", r"\toprule", head, r"\midrule", *body,
            r"\bottomrule", r"\end{tabular}", *note, r"\end{table}",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"
