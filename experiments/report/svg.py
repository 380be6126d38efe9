"""Drawings for a page: only shapes and text remain, and no name clashes with another drawing.

A results folder may come from anywhere, so nothing is taken over that is not on a list: no script,
no style sheet, no link, no reference to anything outside the drawing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.parsers import expat

from markupsafe import Markup, escape

from theory._check import invalid

_SVG = "http://www.w3.org/2000/svg"
_ELEMENTS = frozenset(
    "svg g defs use path rect circle ellipse line polyline polygon text tspan clipPath pattern "
    "linearGradient radialGradient stop image".split()
)
_ATTRIBUTES = frozenset(
    "id d points x y x1 y1 x2 y2 cx cy r rx ry dx dy width height viewBox transform style "
    "fill stroke opacity clip-path clip-rule fill-rule fill-opacity stroke-opacity stroke-width "
    "stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit "
    "text-anchor font-family font-size font-style font-weight offset stop-color stop-opacity "
    "patternUnits patternContentUnits patternTransform clipPathUnits gradientUnits "
    "gradientTransform preserveAspectRatio href".split()
)
_LONG = re.compile(r"-?\d+\.\d{3,}(?!\d*e)")
_REFERENCE = re.compile(r"#([\w.:-]+)")
_INSIDE = re.compile(r"url\(\s*#([\w.:-]+)\s*\)")
_PICTURE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=\s]*")
# What a style may say: a name, and a value without a function other than url(#...) and rgb().
_DECLARATION = re.compile(
    r"\s*([a-z-]+)\s*:\s*([#\w\s.,%'\"+-]*|rgba?\([\d\s.,%]*\)|url\(#[^)]*\))"
)


@dataclass(frozen=True)
class Drawing:
    """A drawing that is safe to put into a page.

    Attributes:
        markup: The `<svg>` element.
        width: Natural width in points.
    """

    markup: Markup
    width: float


def inline(source: bytes, *, prefix: str, label: str, name: str = "drawing") -> Drawing:
    """An SVG file as an element of a page.

    Args:
        source: The file.
        prefix: Put before every name in the drawing, so that none clashes with another's.
        label: Name of the picture for those who do not see it.
        name: For messages: name of the file.

    Raises:
        InvalidInput: Not a well-formed SVG file, or one that declares entities.

    Example:
        >>> inline(b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="x()">'
        ...        b'<script>x()</script><path d="M 1.23456 2"/></svg>', prefix="a", label="&"
        ... ).markup
        Markup('<svg viewBox="0 0 9 9" role="img" aria-label="&amp;"><path d="M 1.23 2"/></svg>')
    """
    cleaner = _Cleaner(source, prefix, label)
    try:
        return cleaner.run()
    except (expat.ExpatError, ValueError) as error:
        invalid(name, "", f"must be a plain SVG file ({error})")


class _Cleaner:
    """One pass over the file; whatever is on no list is left out with all it contains."""

    def __init__(self, source: bytes, prefix: str, label: str) -> None:
        self._source, self._prefix, self._label = source, prefix, label
        self._used = set(_REFERENCE.findall(source.decode("utf-8", "replace")))
        self._parts: list[str] = []
        self._open = False  # whether the last start tag still lacks its ">"
        self._skipping = 0
        self._width = 0.0

    def run(self) -> Drawing:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = self._refuse
        parser.Parse(self._source, True)
        if not self._parts:
            raise ValueError("no svg element")
        return Drawing(Markup("".join(self._parts)), self._width)

    def _refuse(self, *_: object) -> None:
        raise ValueError("it declares entities")

    def _start(self, full_name: str, attributes: dict[str, str]) -> None:
        space, _, element = full_name.rpartition(" ")
        outermost = not self._parts and not self._skipping
        if outermost and element != "svg":
            raise ValueError("no svg element")
        if self._skipping or space not in (_SVG, "") or element not in _ELEMENTS:
            self._skipping += 1
            return
        self._close_tag()
        kept = [self._attribute(name.rpartition(" ")[2], v) for name, v in attributes.items()]
        if outermost:
            self._width = _points(attributes)
            # Pages set the size; the style that matplotlib gives to all elements is inherited.
            size = re.compile(r"(width|height|style|id)=")
            kept = [text for text in kept if text and not size.match(text)]
            kept.append(f'role="img" aria-label="{escape(self._label)}"')
            if b"stroke-linejoin: round; stroke-linecap: butt" in self._source:
                kept.append('style="stroke-linejoin:round;stroke-linecap:butt"')
        self._parts.append(" ".join([f"<{element}", *filter(None, kept)]))
        self._open = True

    def _attribute(self, name: str, value: str) -> str:
        if name not in _ATTRIBUTES or (name == "id" and value not in self._used):
            return ""
        if name == "id":
            value = self._own(value)
        elif name == "href":
            if value.startswith("#"):
                value = "#" + self._own(value[1:])
            elif not _PICTURE.fullmatch(value):
                return ""
        elif name == "style":
            value = ";".join(self._declarations(value))
        elif "(" in value and name in ("fill", "stroke", "clip-path"):
            inside = _INSIDE.fullmatch(value.strip())
            if inside is None:
                return ""
            value = f"url(#{self._own(inside[1])})"
        elif name in ("d", "points", "x", "y", "width", "height"):
            value = _LONG.sub(lambda found: f"{float(found[0]):.2f}", value)
            value = " ".join(value.split())
        return f'{name}="{escape(value)}"' if value else ""

    def _declarations(self, style: str) -> list[str]:
        found = [_DECLARATION.fullmatch(part) for part in style.split(";")]
        return [
            f"{one[1]}:{_INSIDE.sub(lambda to: f'url(#{self._own(to[1])})', one[2].strip())}"
            for one in found
            if one is not None
        ]

    def _own(self, name: str) -> str:
        return f"{self._prefix}-" + re.sub(r"[^\w.-]", "_", name)

    def _end(self, full_name: str) -> None:
        if self._skipping:
            self._skipping -= 1
        elif self._open:
            self._parts.append("/>")
            self._open = False
        else:
            self._parts.append(f"</{full_name.rpartition(' ')[2]}>")

    def _text(self, text: str) -> None:
        if not self._skipping and text.strip():
            self._close_tag()
            self._parts.append(str(escape(text)))

    def _close_tag(self) -> None:
        if self._open:
            self._parts.append(">")
            self._open = False


def _points(attributes: dict[str, str]) -> float:
    """Natural width: the attribute, or else that of the view box."""
    stated = re.match(r"\d+(\.\d+)?", attributes.get("width", ""))
    box = attributes.get("viewBox", "").replace(",", " ").split()
    try:
        return float(stated[0]) if stated else float(box[2])
    except (IndexError, ValueError):
        return 480.0
