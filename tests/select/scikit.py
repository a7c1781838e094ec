"""Is a tree of untax/select as good as one of scikit-learn? Both see a public table in as many folds,
each made in its own way, all that is gathered, and the same guards; scikit-learn's learns the name of the best format,
each record weighted by what the wrong one costs. Called by scikit.sh with the figures of `untax select evaluate`."""
import csv
import gzip
import json
import math
import sys

import numpy
from sklearn.tree import DecisionTreeClassifier

GATHERED = ["row_min", "row_q1", "row_median", "row_q3", "row_max", "row_variance", "row_skewness", "row_kurtosis"]
FORMATS = ["csr", "coo", "ell", "hybrid", "sellp"]
FOLDS = 5
AT_MOST = 1.005  # of scikit-learn's best


def read(path):
    features, times, allowed = [], [], []
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            number = {key: float(row[key]) for key in ["rows", "cols", "nnz", *GATHERED]}
            mean = number["nnz"] / number["rows"]
            padding = number["row_max"] / mean
            time = [float(row["t_" + name]) if row["t_" + name] else math.inf for name in FORMATS]
            # The guards of the schema.
            guard = [True, True, padding <= 3 and number["rows"] * number["row_max"] <= 1.33e9, number["nnz"] <= 7e7,
                     padding <= 30 and number["nnz"] <= 1.33e9]
            features.append([*number.values(), mean, number["rows"] / number["cols"], padding,
                             math.sqrt(number["row_variance"]) / mean, number["rows"] * number["row_max"]])
            times.append(time)
            allowed.append(guard)
    return numpy.array(features), numpy.array(times), numpy.array(allowed)


def mean_ratio(features, times, allowed, depth, leaf):
    """By cross-validation, over the best format of all. CSR takes the place of a format that a guard refuses, as with
    untax."""
    finite = numpy.where(allowed & numpy.isfinite(times), times, times[:, :1])
    best = finite.argmin(axis=1)
    weight = numpy.log(finite.max(axis=1) / finite.min(axis=1)) + 1e-3
    fold = numpy.random.default_rng(1).permutation(len(best)) % FOLDS
    ratios = numpy.empty(len(best))
    for one in range(FOLDS):
        rest = fold != one
        tree = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=leaf, random_state=1)
        tree.fit(features[rest], best[rest], sample_weight=weight[rest])
        taken = tree.predict(features[~rest])
        here = numpy.flatnonzero(~rest)
        ratios[here] = finite[here, taken] / times[here].min(axis=1)
    return math.exp(numpy.log(ratios).mean())


def main(figures, table):
    with open(figures, encoding="utf-8") as file:
        ours = next(f["mean_ratio"] for f in json.load(file) if f["way"] == "gathered for free" and f["iterations"] == 1)
    records = read(table)
    theirs = {(depth, leaf): mean_ratio(*records, depth, leaf) for depth in (5, 8, 12) for leaf in (3, 8, 20)}
    best = min(theirs, key=theirs.get)
    print(f"{table}: untax {ours:.4f}; scikit-learn {theirs[best]:.4f}, at best of {len(theirs)}, with depth {best[0]} "
          f"and {best[1]} records a leaf")
    sys.exit(0 if ours <= theirs[best] * AT_MOST else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
