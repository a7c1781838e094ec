"""Several process groups of torch at once, and compiled layers, in processes, on CPUs."""

import os
import shutil

import pytest
from ranks import HERE, fork
from test_torch import pytestmark  # noqa: F401 (the mark is pytest's)

needs_compiler = pytest.mark.skipif(not any(map(shutil.which, (os.environ.get("CXX", "g++"), "g++", "clang++"))),
                                    reason="torch.compile needs a compiler for C++, and none is on the PATH")


@pytest.mark.parametrize(("check", "ranks"), [("groups_of_a_mesh", 4), ("tensors_of_a_mesh", 2), ("tensors_of_a_mesh", 4),
                                              ("two_groups_of_the_same_ranks", 2),
                                              ("two_groups_of_the_same_ranks", 3), ("a_rank_that_does_not_come", 3),
                                              pytest.param("compiled_layers", 2, marks=needs_compiler)])
def test_groups(check, ranks):
    said = fork(ranks, HERE / "torch_groups.py", check)
    for rank in range(ranks):
        assert f"rank {rank}: {check} is right" in said


def test_a_rank_whose_limit_ended_first_is_not_missed():
    from untax import Timeout
    from untax.process_groups import _wait_for_ranks

    class Store:
        """Rank 1 never comes; rank 2 comes, and takes its key back when its own limit ends."""

        looks = 0

        def check(self, keys):
            self.looks += 1
            return keys == ["0"] or (keys == ["2"] and self.looks < 10)

    with pytest.raises(Timeout, match="rank 0: rank 1 of 3 did not come") as missed:
        _wait_for_ranks(Store(), ["0", "1", "2"], 0, 0.1)
    assert missed.value.suspect == 1
