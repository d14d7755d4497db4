"""Writes the parameter values of an episode into its pictures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gym_dr.randomization.space import ParamSpace, in_effect

Frame = npt.NDArray[np.uint8]  # (height, width, 3)

MAX_LINES = 8  # of a caption
_HEIGHT = 28  # of a picture, in lines of text
_SMALLEST = 10  # pixels of a line


def caption_of(names: Collection[str], params: Mapping[str, float], space: ParamSpace) -> list[str]:
    """Lines with the values of parameters, as many as fit a picture.

    Args:
        names: The parameters, in the order of the lines; those without a value or an effect are left out.
        params: name -> value.
        space: Their units.
    """
    lines = [f"{name} {params[name]:.4g} {_unit(name, space)}".rstrip() for name in in_effect(names, params, space)]
    left = len(lines) - MAX_LINES
    return lines if left <= 0 else [*lines[: MAX_LINES - 1], f"and {left + 1} more"]


def captioned(picture: Any, lines: Sequence[str]) -> Frame:
    """A copy of a picture with lines of text in its upper left corner, on a shade of gray."""
    from PIL import Image, ImageDraw, ImageFont  # heavy

    image = Image.fromarray(np.asarray(picture))
    size = max(_SMALLEST, image.height // _HEIGHT)
    draw = ImageDraw.Draw(image, "RGBA")
    text, place, font = "\n".join(lines), (size // 2, size // 2), ImageFont.load_default(size)
    if lines:
        left, top, right, bottom = draw.multiline_textbbox(place, text, font=font)
        draw.rectangle((left - 4, top - 4, right + 4, bottom + 4), fill=(0, 0, 0, 140))
        draw.multiline_text(place, text, fill="white", font=font)
    return np.asarray(image)


def _unit(name: str, space: ParamSpace) -> str:
    return space[name].unit if name in space and space[name].kind == "float" else ""
