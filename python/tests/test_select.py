"""Selectors: trained from records or a file, kept, asked."""

import gzip

import pytest

import untax

schema = {"known": ["n"], "gathered": ["odd"], "gathering": "1e-3",
          "candidates": [{"name": "a", "time": "t_a"}, {"name": "b", "time": "t_b", "guard": "n <= 1e6"}]}
# Of large ones those that are odd go by b; a has failed for some.
records = [{"n": n, "odd": n % 2, "t_a": 1 if n <= 20 or n % 2 == 0 else 9 if n < 50 else None,
            "t_b": 9 if n <= 20 or n % 2 == 0 else 1} for n in range(1, 61)]


def test_trained_and_saved_selectors_choose_alike(tmp_path):
    trained = untax.Selector.train(schema, records)
    trained.save(tmp_path / "selector.json")
    with gzip.open(tmp_path / "table.csv.gz", "wt") as file:
        file.write("n,odd,t_a,t_b\n")
        file.writelines(",".join("" if v is None else str(v) for v in r.values()) + "\n" for r in records)
    for selector in (trained, untax.Selector.load(tmp_path / "selector.json"),
                     untax.Selector.train(schema, tmp_path / "table.csv.gz")):
        assert str(selector) == str(trained) and "n <= " in str(selector)
        looks = []
        for n in (40, 41):
            assert selector.choose({"n": n}, lambda: looks.append(n) or {"odd": n % 2}) == "ab"[n % 2]
        assert looks == [40, 41]
        assert selector.choose({"n": 2e6}, lambda: {"odd": 1}) == "a"
        assert selector.choose({"n": 5}) == "a"


def test_impossible_requests_are_refused():
    def broken():
        raise KeyError("no such input")

    selector = untax.Selector.train(schema, records)
    for call, text in ((lambda: selector.choose({"m": 3}), "known features are m; they have to be n"),
                       (lambda: selector.choose({"n": 40}, lambda: {}), "gathered features are none"),
                       (lambda: selector.choose({"n": 40}, iterations=0), "iterations is 0"),
                       (lambda: selector.choose({"n": float("nan")}), "feature n is nan; it has to be a finite number"),
                       (lambda: selector.choose({"n": 40}, lambda: {"odd": float("inf")}), "feature odd is inf"),
                       (lambda: untax.Selector.train(schema, [*records[:9], {**records[9], "t_a": float("nan")}]),
                        'line 10: "NaN" in column "t_a" is not a finite number; leave it empty'),
                       (lambda: untax.Selector.train(schema, records[:1]), "1 record"),
                       (lambda: untax.Selector.train({"known": ["n"]}, records), "schema")):
        with pytest.raises(untax.InvalidArgument, match=text):
            call()
    with pytest.raises(KeyError, match="no such input"):
        selector.choose({"n": 40}, broken)
