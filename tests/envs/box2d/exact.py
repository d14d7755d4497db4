"""Where bit equality with Box2D's wheels can be had."""

from __future__ import annotations

import platform
import sys

# It needs the same floating-point operations on both sides: x86-64, where compilers of Box2D's wheels do not fuse
# multiplications with additions, and glibc's sine. Elsewhere comparisons are of outcomes.
EXACT = platform.machine() in ("x86_64", "AMD64") and sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
