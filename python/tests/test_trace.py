"""Traces: a part of a program, and a whole one."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import untax

PROGRAM = """
import numpy, untax
def body(world):
    op = untax.AllReduce(world, 100, "fp32")
    op(numpy.ones(100, numpy.float32))
untax.run_threads(2, body)
"""


def spans(path):
    return [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]


def test_a_part_of_a_program(tmp_path):
    def body(world):
        op = untax.AllGatherGemm(world, 8, 8, 8, "fp32")
        op(np.ones((8 // world.size, 8), np.float32), np.ones((8, 8), np.float32))

    with untax.Trace(tmp_path / "part.json") as trace:
        with pytest.raises(untax.InvalidArgument):
            untax.Trace(tmp_path / "other.json").__enter__()
        untax.run_threads(2, body)
    untax.run_threads(2, body)
    trace_spans = spans(tmp_path / "part.json")
    assert (sum(event["cat"] == "run" for event in trace_spans), trace.lost) == (2, 0)
    assert trace.events > len(trace_spans)


def test_a_whole_program(tmp_path):
    path = tmp_path / "whole.json"
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env={**os.environ, "UNTAX_TRACE": str(path)})
    assert {event["name"] for event in spans(path) if event["cat"] == "run"} == {"all_reduce"}


def test_a_file_that_cannot_be_written():
    with pytest.raises(untax.InvalidArgument, match="/nowhere/trace.json"):
        untax.Trace("/nowhere/trace.json").__enter__()
