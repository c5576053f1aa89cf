"""The one stylesheet of all drawings: light, dark and paper; what colour says is said by shape or text as well."""

STYLE = """\
.fw { --fw-ink: #1b1f24; --fw-soft: #55606c; --fw-line: #d5dae0; --fw-bar: #2f6f9f; --fw-mark: #fff3c4;
  --fw-g0: #2f6f9f; --fw-g1: #b3541e; --fw-g2: #2e7d4f; --fw-g3: #7b3fa0; --fw-g4: #8a6d00; --fw-g5: #444b53; }
@media (prefers-color-scheme: dark) {
  .fw { --fw-ink: #e8ebee; --fw-soft: #a3adb8; --fw-line: #39424c; --fw-bar: #6cb2e3; --fw-mark: #4a3f12;
    --fw-g0: #6cb2e3; --fw-g1: #f0a070; --fw-g2: #7fd0a0; --fw-g3: #d0a0f0; --fw-g4: #e0c860; --fw-g5: #c0c8d0; }
}
.fw { color: var(--fw-ink); }
figure.fw { margin: .8rem 0; }
.fw figcaption { margin-bottom: .3rem; }
.fw-wide { overflow-x: auto; }
.fw table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums; }
.fw caption { text-align: left; color: var(--fw-soft); padding-bottom: .2rem; }
.fw th, .fw td { border-bottom: 1px solid var(--fw-line); padding: .25rem .8rem .25rem 0; text-align: left;
  vertical-align: top; }
.fw tbody th { font-weight: inherit; }
.fw td.n { text-align: right; white-space: nowrap; }
.fw tr.fw-changed { font-weight: 700; background: var(--fw-mark); }
.fw tr.fw-same { color: var(--fw-soft); }
.fw .fw-mark { font-weight: 400; font-size: .85em; }
.fw summary { cursor: pointer; color: var(--fw-soft); }
.fw svg { max-width: 100%; height: auto; display: block; }
.fw svg text { fill: var(--fw-ink); font: 13px system-ui, sans-serif; }
.fw .fw-bar { fill: var(--fw-bar); }
.fw .fw-axis, .fw .fw-edge { fill: none; stroke: var(--fw-soft); stroke-width: 1; }
.fw .fw-stays { fill: none; stroke: var(--fw-soft); stroke-width: 2; }
.fw .fw-cross { fill: none; stroke: var(--fw-soft); stroke-width: 2; }
.fw .fw-turned { fill: var(--fw-bar); }
.fw .fw-g0 { fill: var(--fw-g0); }
.fw .fw-g1 { fill: var(--fw-g1); }
.fw .fw-g2 { fill: var(--fw-g2); }
.fw .fw-g3 { fill: var(--fw-g3); }
.fw .fw-g4 { fill: none; stroke: var(--fw-g4); stroke-width: 2; }
.fw .fw-g5 { fill: none; stroke: var(--fw-g5); stroke-width: 2; }
@media print {
  .fw { --fw-ink: #000; --fw-soft: #333; --fw-line: #999; --fw-bar: #444; --fw-mark: #eee;
    --fw-g0: #000; --fw-g1: #555; --fw-g2: #222; --fw-g3: #666; --fw-g4: #000; --fw-g5: #333; }
  .fw svg, .fw tr { break-inside: avoid; }
  .fw-wide > details::details-content { content-visibility: visible; block-size: auto; }
}
"""
