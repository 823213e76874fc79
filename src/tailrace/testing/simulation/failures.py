"""How a simulated run ends badly, and how a dead process finds out that it is dead."""


class SimulationFailed(Exception):
    """Something in the run broke: the cause says what, the message where and with which seed."""


class Deadlock(SimulationFailed):
    """Nothing is left to run and the main coroutine still waits."""


class RanTooLong(SimulationFailed):
    """The run used up its steps or its virtual time."""


class RealWorld(Exception):
    """Simulated code reached for a socket, a thread or a signal of the real world."""


class Crashed(Exception):
    """The process that was to answer died first."""


class Dead(BaseException):
    """Raised by every port of a dead process. Not an `Exception`: the dead handle nothing."""
