"""Find the demo model's syntactic and positional heads and write them beside it.

    python tools/make_demo_masks.py sentences.tsv

The file holds one sentence per line, or per row in a column `sentence`. Needs spaCy and an
English pipeline (the `syntax` extra). Run it again whenever the demo model changes.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from mixwidget import demo, head_masks
from mixwidget.methods.head_masks import FILE


def sentences(path: Path, most: int) -> list[str]:
    with path.open(encoding="utf-8", newline="") as lines:
        if path.suffix != ".tsv":
            return [line.strip() for line in lines if line.strip()][:most]
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [row["sentence"].strip() for row in rows if row["sentence"].strip()][:most]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--most", type=int, default=1000, help="sentences that are read")
    parser.add_argument("--nlp", help="a spaCy pipeline; the first English one by default")
    options = parser.parse_args()
    model, tokenizer = demo.load()
    texts = sentences(options.sentences, options.most)
    masks = head_masks(model, texts, options.nlp, tokenizer=tokenizer)
    masks.save(demo.FOLDER / FILE)
    print(f"{int(masks.syntactic.sum())} syntactic and {int(masks.positional.sum())} positional "
          f"heads of {masks.mask.size}, from {len(texts)} sentences")  # fmt: skip


if __name__ == "__main__":
    main()
