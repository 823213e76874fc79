"""Bit sets of the operations a client may perform, sent where it asked for them."""

from typing import Final

not_asked: Final = -(2**31)
