"""The exceptions of the simulator: a run that failed, and a process that is dead."""


class SimulationFailed(Exception):
    """Something in the run failed: the cause says what, the message at which virtual time, a note with which seed."""


class Deadlock(SimulationFailed):
    """No callback and no timer is left, and the main coroutine still waits."""


class RanTooLong(SimulationFailed):
    """The run exceeded its number of steps or its virtual time."""


class NotSimulated(Exception):
    """Simulated code called something of asyncio that needs a real socket, thread, process or signal."""


class Crashed(Exception):
    """The machine crashed before the coroutine that was awaited from outside (`Machine.run`) had ended."""


class Dead(BaseException):
    """Raised by every port of a dead process. Not an `Exception`: no handler of the dead process may catch it."""
