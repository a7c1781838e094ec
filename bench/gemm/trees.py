#!/usr/bin/env python3
"""Grows the trees by which the planner corrects its model of a GEMM, and judges them on weights that they have not seen.

  trees.py judge FILE...   grows them on four fifths of the weights (n, k) and chooses plans for the rest, five times over:
                           what the choice costs, beside the best plan that was timed and beside the model alone
  trees.py grow FILE...    grows them on everything, and writes engines/gpu/gemm_alone/plan_trees.inc

FILE is what `untax bench gemm --every-plan --json FILE` wrote; its name begins with the GPU, h200 or h100. Needs lightgbm
(PyPI). After https://arxiv.org/abs/2403.17017, which chooses kernels by decision trees where no model is exact.
"""

import argparse
import math
import os
import random

import lightgbm
import numpy

import fit
import model

FOLDS = 5
# What is far from the best need not be known well: so much slower counts a third.
FAR = 0.25
SETTINGS = {"objective": "regression", "learning_rate": 0.15, "num_leaves": 31, "min_data_in_leaf": 10, "lambda_l2": 1.0,
            "bagging_fraction": 0.7, "bagging_freq": 1, "feature_fraction": 0.7, "seed": 1, "deterministic": True,
            "force_row_wise": True, "num_threads": 1, "verbosity": -1}
TREES = 200
MANY_ROWS = 128  # problems of up to so many rows of A are judged together, and those of more


class Timed:
    """A problem, with features and times of its plans."""

    def __init__(self, problem, gpu):
        self.problem, self.gpu = problem, gpu
        plans = [p for p, _ in problem.usual]
        self.cycles = numpy.array([model.cycles(p, model.parameters(gpu)) for p in plans])
        self.seconds = numpy.array([seconds for _, seconds in problem.usual])
        self.features = numpy.array(model.features(plans, self.cycles, gpu))

    def lessons(self):
        """Features, the logarithm of what the model is wrong by, and weights. Only differences between the plans of a problem
        matter, so the logarithms of each are 0 in the mean; and each problem counts the same."""
        wrong = numpy.log(self.seconds / self.cycles)
        weights = numpy.exp(-numpy.log(self.seconds / self.problem.best) / FAR)
        weights /= weights.sum()
        return self.features, wrong - (wrong * weights).sum(), weights


def grown(timed):
    lessons = [t.lessons() for t in timed if t.problem.m > model.TREES_FROM]
    features, wrong, weights = (numpy.concatenate(column) for column in zip(*lessons))
    data = lightgbm.Dataset(features, wrong, weight=weights * len(weights) / weights.sum())
    return lightgbm.train(SETTINGS, data, TREES)


def judge(timed):
    weights = sorted({(t.problem.n, t.problem.k) for t in timed})
    random.Random(1).shuffle(weights)
    fold_of = {w: i % FOLDS for i, w in enumerate(weights)}
    found = {gpu: [] for gpu in model.GPUS}
    for fold in range(FOLDS):
        trees = grown([t for t in timed if fold_of[t.problem.n, t.problem.k] != fold])
        for t in timed:
            if t.problem.m > model.TREES_FROM and fold_of[t.problem.n, t.problem.k] == fold:
                by_trees = t.seconds[numpy.argmin(t.cycles * numpy.exp(trees.predict(t.features)))]
                found[t.gpu].append((t.problem, t.seconds[numpy.argmin(t.cycles)], by_trees))
    for many, title in ((False, f"{model.TREES_FROM + 1} to {MANY_ROWS} rows"), (True, f"more than {MANY_ROWS} rows")):
        print(f"{title}, weights that were not seen")
        print("  GPU   number  chosen by  chosen / best  worst  library / chosen  under 0.90")
        for gpu, all_rows in found.items():
            rows = [row for row in all_rows if (row[0].m > MANY_ROWS) == many]
            for name, which in (("model", 1), ("trees", 2)):
                regret = [row[which] / row[0].best for row in rows]
                ratio = [row[0].library / row[which] for row in rows]
                print(f"  {gpu} {len(rows):>7}  {name:<9} {fit.mean(map(math.log, regret)):>14.4f} {max(regret):>6.2f}"
                      f" {fit.mean(map(math.log, ratio)):>17.4f} {sum(r < 0.9 for r in ratio):>11}")


def words_of(trees):
    """Each tree from its root on, the lower side of a split first; see plan_trees.cpp."""
    words = []
    for tree in trees.dump_model()["tree_info"]:
        nodes = []

        def add(node):
            if "leaf_value" in node:
                nodes.append(["leaf", node["leaf_value"]])
                return
            here = len(nodes)
            nodes.append(None)
            add(node["left_child"])
            nodes[here] = ["split", node["split_feature"], node["threshold"], len(nodes) - here]
            add(node["right_child"])

        add(tree["tree_structure"])
        for at, node in enumerate(nodes):
            if node[0] == "leaf":
                words.append(f"{{-1, {node[1]:.4f}, {len(nodes) - at}}},")
            else:
                words.append(f"{{{node[1]}, {node[2]:.5g}, {node[3]}}},")
    return words


def write(trees, problems, files):
    with open(model.TREES_FILE, "w", encoding="utf-8") as text:
        text.write(f"// {TREES} trees, grown by bench/gemm/trees.py on the times of {problems} products. Read by plan_trees.cpp. From:\n")
        for file in files:
            text.write(f"// {os.path.basename(file)}\n")
        line = ""
        for word in words_of(trees):
            if len(line) + len(word) > 118:
                text.write(line.rstrip() + "\n")
                line = ""
            line += word + " "
        text.write(line.rstrip() + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["judge", "grow"])
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    timed = [Timed(p, os.path.basename(file)[:4]) for file in args.files for p in fit.problems_of(file)]
    if args.verb == "judge":
        judge(timed)
    else:
        write(grown(timed), len(timed), args.files)


if __name__ == "__main__":
    main()
