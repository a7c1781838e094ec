#include "report_page.hpp"

namespace untax {

const std::string_view report_style = R"css(
:root {
  color-scheme: light dark;
  --page: #faf9f6; --card: #ffffff; --ink: #23282d; --soft: #5c656e; --line: #e4e1da; --faint: #f2f0ea;
  --total: #414a53; --launch: #d68a1f; --engine: #98a1aa; --bulk_synchronous: #c4513a;
  --locality: #8660a6; --joint: #a55a70; --stand_in: #98a1aa; --remainder: #7fa3b8; --bound: #2c6c8c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15181b; --card: #1c2024; --ink: #e6e4df; --soft: #a3abb3; --line: #30363c; --faint: #24292e;
    --total: #b9c0c7; --launch: #e5a84e; --engine: #7d8790; --bulk_synchronous: #e07a63;
    --locality: #b08fd0; --joint: #cb8498; --stand_in: #7d8790; --remainder: #6d93a9; --bound: #4f9cc0;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif;
  font-variant-numeric: tabular-nums;
}
main, header, footer { max-width: 68rem; margin: 0 auto; padding: 0 1.5rem; }
header { padding-top: 3rem; }
footer { padding-top: 1rem; padding-bottom: 3rem; color: var(--soft); font-size: .85rem; }
section { margin-top: 3rem; }
h1 { font-size: 2.2rem; line-height: 1.15; margin: .2rem 0 .8rem; letter-spacing: -.02em; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 0 0 .3rem; letter-spacing: -.01em; }
h3 { font-size: 1.02rem; margin: 0; }
p { margin: 0 0 1rem; max-width: 46rem; }
code { font: .88em ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.eyebrow { color: var(--soft); font-size: .85rem; margin: 0; }
.hint { color: var(--soft); font-size: .9rem; }
.chips { list-style: none; display: flex; flex-wrap: wrap; gap: .4rem; margin: 0 0 1.4rem; padding: 0; }
.chips li { border: 1px solid var(--line); border-radius: 99px; padding: .1rem .75rem; font-size: .85rem; color: var(--soft);
  background: var(--card); }
.finding { font-size: 1.15rem; line-height: 1.5; max-width: 52rem; text-wrap: pretty; }
.warning { border-left: 4px solid currentColor; padding: .1rem .9rem; max-width: 52rem; font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .9rem; margin: 1.8rem 0 0; }
.tiles div, .card, .panel { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.tiles div { padding: .9rem 1.1rem; }
.tiles dt { font-size: .85rem; color: var(--soft); }
.tiles dd { margin: 0; font-size: 1.55rem; font-weight: 600; letter-spacing: -.02em; line-height: 1.3; }
.tiles .more { font-size: .82rem; color: var(--soft); font-weight: 400; letter-spacing: 0; display: block; }
.panel { padding: 1.3rem 1.5rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1rem; margin-top: 1rem; }
.card { padding: 1.1rem 1.25rem; min-width: 0; }
.card header { padding: 0; display: flex; justify-content: space-between; gap: 1rem; align-items: baseline; }
.card .hint { margin: .1rem 0 .8rem; }
.waterfall { list-style: none; margin: 0; padding: 0; }
.waterfall li { display: grid; grid-template-columns: 13rem 1fr 9.5rem 4rem; align-items: center; column-gap: .9rem; }
.card .waterfall li { grid-template-columns: 6.6rem 1fr 5.4rem; column-gap: .6rem; font-size: .88rem; }
.card .share, .card .chance { display: none; }
.value, .share { text-align: right; white-space: nowrap; }
.share, .chance { color: var(--soft); font-size: .85rem; }
.bar { display: block; width: 100%; height: 2.1rem; overflow: visible; }
.card .bar { height: 1.45rem; }
.bar rect { stroke-width: 1; }
.bar .link { stroke: var(--line); stroke-width: 1.5; }
.bar .less { fill-opacity: .18; stroke-dasharray: 3 2; }
.swatch { display: inline-block; width: .7rem; height: .7rem; border-radius: 3px; margin-right: .5rem; }
.total { fill: var(--total); stroke: var(--total); background: var(--total); }
.launch { fill: var(--launch); stroke: var(--launch); background: var(--launch); }
.engine { fill: var(--engine); stroke: var(--engine); background: var(--engine); }
.bulk_synchronous { fill: var(--bulk_synchronous); stroke: var(--bulk_synchronous); background: var(--bulk_synchronous); }
.locality { fill: var(--locality); stroke: var(--locality); background: var(--locality); }
.stand_in { fill: var(--stand_in); stroke: var(--stand_in); background: var(--stand_in); }
.joint { fill: var(--joint); stroke: var(--joint); background: var(--joint); }
.remainder { fill: var(--remainder); stroke: var(--remainder); background: var(--remainder); }
.bound { fill: var(--bound); stroke: var(--bound); background: var(--bound); }
.timeline { margin: 1rem 0 0; padding: 0; }
.timeline figcaption { font-size: .93rem; margin-bottom: .3rem; }
.strip { display: grid; grid-template-columns: max-content 1fr; column-gap: .7rem; }
.strip ol { list-style: none; margin: 0; padding: 0; font-size: .8rem; color: var(--soft); }
.strip div { overflow-x: auto; min-width: 0; }
.strip svg { display: block; width: 100%; background: var(--faint); }
.zoom:checked + label { font-weight: 600; }
#zoom4:checked ~ .timeline svg { width: 400%; }
#zoom16:checked ~ .timeline svg { width: 1600%; }
.in_flight line, .in_flight circle { visibility: hidden; stroke: var(--ink); stroke-width: 1.5; fill: var(--ink); }
.in_flight:hover line, .in_flight:hover circle { visibility: visible; }
.compute { fill: var(--bound); background: var(--bound); }
.late_peer { fill: var(--bulk_synchronous); background: var(--bulk_synchronous); }
.in_flight, .in_flight rect { fill: var(--locality); background: var(--locality); }
.own_movement { fill: var(--remainder); background: var(--remainder); }
.skew_at_entry { fill: var(--engine); background: var(--engine); }
details { margin-top: .7rem; font-size: .88rem; }
summary { cursor: pointer; color: var(--soft); }
summary:hover { color: var(--ink); }
.scroll { overflow-x: auto; margin-top: .8rem; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
caption { text-align: left; color: var(--soft); padding-bottom: .5rem; }
th, td { padding: .42rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, .words { text-align: left; }
thead th { color: var(--soft); font-weight: 500; }
tbody th { font-weight: 500; }
tbody tr:last-child > * { border-bottom: 0; }
tr.sum > * { background: var(--faint); font-weight: 600; }
.steps td, .steps th { padding: .25rem .4rem; }
.steps .words { white-space: normal; width: 60%; }
.steps td, .steps th { vertical-align: top; }
.range { display: block; width: 100%; min-width: 7rem; height: .8rem; overflow: visible; }
.range line { stroke: var(--soft); stroke-width: 2; }
.range circle { fill: var(--ink); }
.doubtful { color: var(--soft); }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.4rem; margin: .8rem 0 0; font-size: .93rem; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.facts .swatch { vertical-align: -.03rem; }
.notes { margin: .6rem 0 0; padding-left: 1.1rem; max-width: 46rem; }
.notes li { margin-bottom: .4rem; }
@media (max-width: 40rem) {
  main, header, footer { padding-left: 1rem; padding-right: 1rem; }
  header { padding-top: 1.6rem; }
  section { margin-top: 2.2rem; }
  h1 { font-size: 1.75rem; }
  .panel { padding: 1rem; }
  .waterfall li { grid-template-columns: 1fr auto 3.8rem; }
  .card .waterfall li { grid-template-columns: 1fr auto; }
  .waterfall li, .card .waterfall li { row-gap: 0; margin-bottom: .35rem; }
  .waterfall .bar { grid-column: 1 / -1; grid-row: 2; height: 1.1rem; }
  .waterfall .link { display: none; }
  .facts { grid-template-columns: 1fr; gap: 0; }
  .facts dd { margin-bottom: .6rem; }
}
@media print {
  body { background: #fff; }
  .card, .panel, .tiles div { break-inside: avoid; }
}
)css";

}  // namespace untax
