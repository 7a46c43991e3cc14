"""The driver that does what the manifest lists, and does not think."""

from __future__ import annotations

from typing_extensions import override

from agentplat.domain.actions import Call, Fail, Finish, actions_of
from agentplat.domain.artifacts import Answer
from agentplat.domain.errors import InvalidInput, RunFailed
from agentplat.domain.runs import DriverKind
from agentplat.drivers.port import Driver, Hands, Task


class ScriptedDriver(Driver):
    """Carries out the actions of a version, one after the other."""

    @property
    @override
    def kind(self) -> DriverKind:
        return DriverKind.SCRIPTED

    @override
    def drive(self, task: Task, hands: Hands) -> Answer:
        try:
            actions = actions_of(task.manifest)
        except InvalidInput as error:
            raise RunFailed(f"the version's script cannot be carried out: {error}") from error
        for action in actions:
            match action:
                case Call(tool=tool, arguments=arguments):
                    hands.call(tool, arguments)
                case Finish(answer=answer):
                    return answer
                case Fail(reason=reason):
                    raise RunFailed(reason)
        raise RunFailed("the version's script has no end")  # `actions_of` always gives one
