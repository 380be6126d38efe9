"""Plain-text mathematics on a page: Greek letters, raised and lowered parts, links on tags."""

from __future__ import annotations

import re
from collections.abc import Callable

from markupsafe import Markup, escape

from experiments.report.glossary import Entry, find

# As in the statements of claims. Longest first, so that "Delta0" is not "Delta" and a 0.
_SIGNS = {
    "Phi^-1": "Φ⁻¹",
    "infinity": "∞",
    "->": "→",
    "<=": "≤",
    ">=": "≥",
    " - ": " − ",
    "_inf": "_∞",
}
_WORDS = {
    "Delta0": "Δ0",
    "Delta": "Δ",
    "Omega": "Ω",
    "Theta": "Θ",
    "Phi": "Φ",
    "beta": "β",
    "delta": "δ",
    "eps": "ε",
    "lambda": "λ",
    "pi": "π",
    "sigma": "σ",
    "sqrt": "√",
    "tau": "τ",
}
_WORD = re.compile(rf"(?<![A-Za-z])({'|'.join(_WORDS)})(?![A-Za-z])")
_MINUS = re.compile(r"(?<!\de)-(?=[\d(])")
# One tag or several: [U2], [E5, E6].
_TAG = re.compile(r"\[[A-Z][A-Za-z0-9.∞*-]{0,7}(?:, [A-Z][A-Za-z0-9.∞*-]{0,7})*\]")
# What is raised or lowered: a bracket, or a short word; max_items_per_user stays as it is.
_MOVED = re.compile(
    r"\^(?=\(|[-−]?\w)|(?<=[\w\u0303)])_(?=\(|∞|\+|[A-Za-z0-9θ]{1,2}(?![A-Za-z0-9_]))"
)
_ATOM = re.compile(r"[-−]?(?:\d+(?:\.\d+)?|[A-Za-z0-9]{1,2}(?![A-Za-z0-9])|\w|∞|\+)['*]?")
_DEEPEST = 4


def symbols(text: str) -> str:
    """Greek letters and signs for their names.

    Example:
        >>> symbols("MM <= sqrt(eps N)/(s-1) + max_items_per_user")
        'MM ≤ √(ε N)/(s−1) + max_items_per_user'
    """
    for name, sign in _SIGNS.items():
        text = text.replace(name, sign)
    return _MINUS.sub("−", _WORD.sub(lambda found: _WORDS[found[1]], text))


def linked(text: object) -> Markup:
    """Text with every tag that the glossary knows as a link to its entry; all else escaped.

    Example:
        >>> linked("<b> [U2]")
        Markup('&lt;b&gt; <a class="tag" href="#tag-U2">[U2]</a>')
    """
    return _tagged(text, link)


def named(title: str) -> str:
    """A claim's title as text: symbols, and tags as the glossary spells them.

    Example:
        >>> named("Theorem 3.6 [U-inf] with tau")
        'Theorem 3.6 [U∞] with τ'
    """

    def spelt(found: re.Match[str]) -> str:
        entries = _entries(found[0])
        return f"[{', '.join(entry.tag for entry in entries)}]" if entries else found[0]

    return _TAG.sub(spelt, symbols(title))


def marked(title: str) -> Markup:
    """The same for a page, without links: for places that react to a click themselves.

    Example:
        >>> marked("Theorem 3.6 [U-inf]")
        Markup('Theorem 3.6 <span class="tag">[U∞]</span>')
    """
    return _tagged(
        symbols(title), lambda entry: Markup('<span class="tag">[{}]</span>').format(entry.tag)
    )


def _entries(tags: str) -> list[Entry]:
    """The entries of "[U2]" or "[E5, E6]"; none if one of them is not known."""
    found = [find(tag) for tag in tags[1:-1].split(", ")]
    known = [entry for entry in found if entry is not None]
    return known if len(known) == len(found) else []


def _tagged(text: object, made_of: Callable[[Entry], Markup]) -> Markup:
    shown, made, done = str(text), Markup(), 0
    for found in _TAG.finditer(shown):
        entries = _entries(found[0])
        if entries:
            made += escape(shown[done : found.start()])
            made += Markup(", ").join(made_of(entry) for entry in entries)
            done = found.end()
    return made + escape(shown[done:])


def link(entry: Entry) -> Markup:
    """A link to the entry of a tag."""
    return Markup('<a class="tag" href="#{}">[{}]</a>').format(entry.anchor, entry.tag)


def typeset(text: str) -> Markup:
    """A statement or formula as HTML: symbols, raised and lowered parts, links on tags.

    Example:
        >>> typeset("C^(1/s) (tau/N)^((s-1)/s) < 1")
        Markup('C<sup>1/s</sup> (τ/N)<sup>(s−1)/s</sup> &lt; 1')
        >>> typeset("N(x) <= MM_inf, max_items_per_user")
        Markup('N(x) ≤ MM<sub>∞</sub>, max_items_per_user')
    """
    return _set(symbols(text), 0)


def _set(text: str, depth: int) -> Markup:
    made = Markup()
    while depth < _DEEPEST and (found := _MOVED.search(text)):
        element = Markup("sup" if found[0] == "^" else "sub")
        part, rest = _operand(text[found.end() :])
        inner = _set(part.replace("-", "−"), depth + 1)
        made += linked(text[: found.start()])
        made += Markup("<{}>{}</{}>").format(element, inner, element)
        text = rest
    return made + linked(text)


def _operand(text: str) -> tuple[str, str]:
    """What is raised or lowered, without its brackets, and the rest."""
    if text.startswith("("):
        depth = 0
        for place, sign in enumerate(text):
            depth += (sign == "(") - (sign == ")")
            if depth == 0:
                return text[1:place], text[place + 1 :]
    found = _ATOM.match(text)
    end = found.end() if found else 1
    return text[:end], text[end:]
