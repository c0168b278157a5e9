"""The papers' tables on any model and dataset: the paper's number beside the measured one.

python -m benchmarks.tables.alti MODEL DATA [--limit 120] [--workers 2] [--cache FOLDER]

and likewise globenc, value_zeroing, attcat, mask_lrp. MODEL is a name or folder, DATA a .tsv,
.csv or .jsonl file. The papers' numbers are of other models, and often of other texts: what
can be compared is the order of the methods.
"""
