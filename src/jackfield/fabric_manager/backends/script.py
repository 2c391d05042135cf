"""The back end of a command of the operator's. Must not know what that command does."""

from jackfield.fabric_manager import wiring
from jackfield.fabric_manager.backends.backend import BackendError
from jackfield.fabric_manager.backends.commands import Commands
from jackfield.fabric_manager.hardware import Device
from jackfield.model.names import NodeName


class Script:
    """Runs COMMAND attach|detach DEVICE MACHINE; exit status 0 is success, the last line on standard error why not."""

    def __init__(self, settings: wiring.Script, commands: Commands) -> None:
        self._command = settings.command
        self._commands = commands

    def close(self) -> None:
        """Let others run commands."""
        self._commands.close()

    async def attach(self, device: Device, node: NodeName) -> None:
        """Run it."""
        await self._run("attach", device, node)

    async def detach(self, device: Device, node: NodeName) -> None:
        """Run it."""
        await self._run("detach", device, node)

    async def _run(self, verb: str, device: Device, node: NodeName) -> None:
        command = (*self._command, verb, device.id, node)
        end = await self._commands.run(command, _environment(verb, device, node))
        if end.status is None:
            raise BackendError(f"{verb} of {device.id} did not end within {self._commands.timeout:g} s")
        if end.status:
            raise BackendError(end.said or f"{verb} of {device.id} ended with status {end.status}")


def _environment(verb: str, device: Device, node: NodeName) -> dict[str, str]:
    """Return what a command may want to know beside its arguments."""
    return {
        "JACKFIELD_VERB": verb,
        "JACKFIELD_DEVICE": str(device.id),
        "JACKFIELD_MACHINE": str(node),
        "JACKFIELD_SERIAL": device.serial,
        "JACKFIELD_MODEL": str(device.batch.model),
        "JACKFIELD_TYPE": device.batch.type,
        "JACKFIELD_SWITCH": str(device.batch.switch),
    }
