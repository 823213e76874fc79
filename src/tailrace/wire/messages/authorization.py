"""Bit sets of the operations a client may perform, sent where it asked for them."""

from typing import Final

NOT_ASKED: Final = -(2**31)
