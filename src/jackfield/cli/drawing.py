"""The live picture: nodes with their devices and pods, the pool, and the story running below.

Knows rich. Must not know where the picture comes from.
"""

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from jackfield.sim import story
from jackfield.sim.picture import NodePicture, Picture, PoolPicture

STYLES = {"own": "cyan", "attaching": "yellow", "attached": "green", "leaving": "magenta"}
SIGNS = {"own": "▣", "attaching": "◌", "attached": "▣", "leaving": "◌"}
WORDS = {
    "own": "its own",
    "attaching": "being attached",
    "attached": "from the pool",
    "leaving": "on its way back",
}


def scene(title: str, now: Picture, told: list[story.Line], at: float) -> RenderableType:
    """Return the picture of one moment."""
    boxes: list[RenderableType] = [_pool(one) for one in now.pools]
    boxes += [_node(one) for one in sorted(now.nodes, key=lambda node: node.added)]
    waiting = Text("pods without a node: ", style="bold")
    waiting.append(", ".join(now.waiting) or "none", style="yellow" if now.waiting else "dim")
    head = Text(f"{title}  {at:6.1f} s", style="bold")
    return Group(head, Columns(boxes, padding=(0, 1)), waiting, _story(told))


def _pool(pool: PoolPicture) -> Panel:
    text = Text("▣ " * pool.free, style="green")
    text.append("· " * (pool.total - pool.free), style="dim")
    text.append(f"\n{pool.free} of {pool.total} GPUs free", style="dim")
    return Panel(text, title=f"pool {pool.fabric}", border_style="green", width=30)


def _node(node: NodePicture) -> Panel:
    text = Text()
    for device in node.devices:
        style = STYLES[device.state]
        text.append(f"{SIGNS[device.state]} {device.name}", style=style)
        text.append(f" {device.pod or WORDS[device.state]}\n", style="dim")
    text.append(f"{node.memory} memory", style="dim")
    for pod in node.pods:
        text.append(f"\n● {pod}", style="bold")
    word = "" if node.ready else " (coming)"
    style = "blue" if node.ready else "yellow"
    return Panel(text, title=f"{node.name}{word}", border_style=style, width=34)


def _story(told: list[story.Line]) -> Table:
    table = Table(box=None, padding=(0, 1), expand=True, show_edge=False)
    table.add_column("seconds", justify="right", min_width=7, no_wrap=True)
    for name, share in (("object", 6), ("action", 6), ("decided by", 3), ("because", 9)):
        table.add_column(name, ratio=share, no_wrap=True, overflow="ellipsis")
    for line in told:
        table.add_row(f"{line.at:.1f}", line.object, line.action, line.by, line.because)
    return table
