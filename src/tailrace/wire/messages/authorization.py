"""Bit sets of authorized operations, which a response holds only if the request asked for them."""

from typing import Final

NOT_ASKED: Final = -(2**31)
