"""Tables and plots from the result files; nothing in them is typed by hand.

    python benchmarks/report.py

Writes `results/README.md` and a plot an experiment, from every `results/*.json`.
Needs matplotlib.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def flat(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """Every figure with the path of names that leads to it; a time as median and spread."""
    if isinstance(value, dict) and "median_us" in value:
        times = f"{value['median_us']} us ({value['p10_us']} to {value['p90_us']})"
        rest = {k: v for k, v in value.items() if not k.endswith("_us") and k != "runs"}
        rest |= {k: v for k, v in value.items() if k == "floor_us"}
        return [(name, times), *flat(rest, name)]
    if isinstance(value, dict):
        return [row for k, v in value.items() for row in flat(v, f"{name}, {k}" if name else k)]
    return [(name, value)]


def medians(value: Any) -> dict[str, float]:
    """The medians directly below an experiment."""
    return {
        name: inner["median_us"]
        for name, inner in value.items()
        if isinstance(inner, dict) and "median_us" in inner
    }


def table(content: dict[str, Any]) -> str:
    """One experiment file as Markdown."""
    machine = content["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    where = (
        f"{machine.get('gpu') or machine['cpu']}, {machine['date']}, Python {machine['python']},"
        f" CUDA {machine.get('runtime_cuda', 'none')}, driver for CUDA"
        f" {machine.get('driver_cuda', 'none')}; {versions}."
    )
    lines = [where, ""]
    for experiment, rows in content["results"].items():
        lines += [f"### {experiment}", "", "| what | result |", "| --- | --- |"]
        lines += [f"| {name or 'result'} | {value} |" for name, value in flat(rows)]
        lines.append("")
    return "\n".join(lines)


def plot(name: str, content: dict[str, Any]) -> Path | None:
    """Bars of all medians, one panel an experiment, on a logarithmic scale."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "trtpatch"
    import matplotlib.pyplot as plt

    panels = {k: m for k, v in content["results"].items() if len(m := medians(v)) > 1}
    for experiment, rows in content["results"].items():
        for inner, value in rows.items() if isinstance(rows, dict) else ():
            if isinstance(value, dict) and len(m := medians(value)) > 1:
                panels[f"{experiment}, {inner}"] = m
    if not panels:
        return None
    heights = [len(bars) for bars in panels.values()]
    figure, axes = plt.subplots(
        len(panels),
        figsize=(9, 0.5 + sum(0.32 * h + 0.6 for h in heights)),
        gridspec_kw={"height_ratios": heights},
        squeeze=False,
    )
    for axis, (title, bars) in zip(axes[:, 0], panels.items(), strict=True):
        names = list(bars)[::-1]
        colors = ["#76b900" if "trtpatch" in n or "graph required" in n else "#888" for n in names]
        drawn = axis.barh(names, [bars[n] for n in names], color=colors)
        axis.bar_label(drawn, fmt="%.0f us", padding=3, fontsize=8)
        axis.set_xscale("log")
        axis.set_title(title, loc="left", fontsize=9)
        axis.tick_params(labelsize=8)
        axis.margins(x=0.15)
    figure.tight_layout()
    path = RESULTS / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path


def main() -> None:
    parts = ["# Results", "", "Made by `python benchmarks/report.py` from the files beside it.", ""]
    for path in sorted(RESULTS.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        parts += [f"## {path.stem}", "", f"From [{path.name}]({path.name}).", ""]
        drawn = plot(path.stem, content)
        if drawn:
            parts += [f"![{path.stem}]({drawn.name})", ""]
        parts.append(table(content))
    (RESULTS / "README.md").write_text("\n".join(parts), encoding="utf-8")
    print(RESULTS / "README.md")


if __name__ == "__main__":
    main()
