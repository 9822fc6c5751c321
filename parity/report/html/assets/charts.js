/* Charts of a case as SVG, each with a title, a description and its numbers as a table. Series are
   told apart by line style and marker, not by colour alone. */

const CHART = { width: 560, height: 260, left: 58, right: 14, top: 14, bottom: 46 };
const MARKERS = ['circle', 'square', 'triangle', 'diamond', 'cross', 'plus'];

const svg = (name, attributes, ...children) => element(`svg:${name}`, attributes, ...children);

function axis(x1, y1, x2, y2) {
  return svg('line', { class: 'axis', x1, y1, x2, y2 });
}

function text(x, y, said, attributes = {}) {
  return svg('text', { x, y, ...attributes }, said);
}

function marker(kind, x, y) {
  const r = 3.5;
  const paths = {
    circle: `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
    square: `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    triangle: `M${x} ${y - r}l${r} ${2 * r}h${-2 * r}z`,
    diamond: `M${x} ${y - r - 1}l${r + 1} ${r + 1}l${-r - 1} ${r + 1}l${-r - 1} ${-r - 1}z`,
    cross: `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`,
    plus: `M${x - r} ${y}h${2 * r}M${x} ${y - r}v${2 * r}`,
  };
  return svg('path', { class: 'marker', d: paths[kind] });
}

/* The frame of a chart: axes, ticks [position in 0..1, label], names. */
function frame({ title, about, xTicks, yTicks, xName, yName }, ...series) {
  const { width, height, left, right, top, bottom } = CHART;
  const x = (u) => left + u * (width - left - right),
    y = (v) => height - bottom - v * (height - top - bottom);
  const id = `chart-${frame.count = (frame.count || 0) + 1}`;
  const made = svg('svg', { viewBox: `0 0 ${width} ${height}`,
    role: 'img', 'aria-labelledby': `${id}-t ${id}-d`, class: 'chart' },
    svg('title', { id: `${id}-t` }, title), svg('desc', { id: `${id}-d` }, about),
    yTicks.map(([v, label]) => [svg('line', { class: 'gridline', x1: left, x2: width - right, y1: y(v), y2: y(
          v) }),
      text(left - 6, y(v) + 4, label, { class: 'tick end' })
    ]),
    xTicks.map(([u, label]) => [svg('line', { class: 'axis', x1: x(u), x2: x(u), y1: height - bottom,
        y2: height - bottom + 4 }),
      text(x(u), height - bottom + 16, label, { class: 'tick middle' })
    ]),
    axis(left, height - bottom, width - right, height - bottom), axis(left, top, left, height - bottom),
    text((left + width - right) / 2, height - 8, xName, { class: 'name middle' }),
    text(14, (top + height - bottom) / 2, yName, { class: 'name middle',
      transform: `rotate(-90 14 ${(top + height - bottom) / 2})` }));
  made.append(...series.flatMap((draw) => draw(x, y)));
  return made;
}

/* series: [{name, bins}]; bins as tally.BUCKETS: none, below 2^-8, one for each power of two, beyond. */
function histogramChart(series, target) {
  const bins = series[0].bins.length;
  const most = Math.max(1, ...series.flatMap((one) => one.bins));
  const height = (n) => (n ? (1 + Math.log10(n)) / (1 + Math.ceil(Math.log10(most) + 1e-9)) : 0);
  const yTicks = [
    [0, '0']
  ];
  for (let n = 1; n <= 10 ** Math.ceil(Math.log10(most) + 1e-9); n *= 10) yTicks.push([height(n), tenth(n)]);
  const xTicks = [];
  for (let at = 0; at < bins; at += 1) {
    if (at === 0) xTicks.push([0.5 / bins, '0']);
    else if (at >= 2 && at < bins - 1 && (at - 10) % 4 === 0) xTicks.push([at / bins,
      `2${superscript(at - 10)}`]);
    else if (at === bins - 1) xTicks.push([(at + 0.5) / bins, `≥2${superscript(24)}`]);
  }
  const about = series.map((one) => `${one.name}: ${binsInWords(one.bins)}`).join('. ');
  return frame({
    title: `Histogram of ulp errors against ${target}`,
    about,
    xTicks,
    yTicks,
    xName: `ulp error against ${target} (log₂)`,
    yName: 'elements (log₁₀)',
  }, ...series.map((one, nth) => (x, y) => {
    let d = `M${x(0)} ${y(0)}`;
    one.bins.forEach((n, at) => { d += `V${y(height(n))}H${x((at + 1) / bins)}`; });
    return [svg('path', { class: `line line-${nth % 6}`, d: `${d}V${y(0)}` })];
  }));
}

const tenth = (n) => (n < 10000 ? String(n) : `10${superscript(Math.round(Math.log10(n)))}`);

function superscript(n) {
  return String(n).replace('-', '⁻').replace(/\d/g, (digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹' [digit]);
}

function binName(at, bins) {
  if (at === 0) return '0';
  if (at === 1) return `below 2${superscript(-8)}`;
  return at === bins - 1 ? `2${superscript(24)} and more, inf, nan` :
    `2${superscript(at - 10)} to 2${superscript(at - 9)}`;
}

function binsInWords(bins) {
  const most = bins.map((n, at) => [n, at]).filter(([n]) => n);
  return most.map(([n, at]) => `${n} at ${binName(at, bins.length)} ulp`).join(', ') || 'no element';
}

function bandsInWords(bands) {
  return bands.map(([low, count, largest, mean]) =>
    `from ${metric(low)} ${plural(count, 'element')}, at most ${metric(largest)}, mean ${metric(mean)} ulp`).join('; ');
}

/* series: [{name, bands}]; a band: [low, count, largest, mean]. Line: largest; thin line: mean. */
function profileChart(series, target) {
  const bands = series.flatMap((one) => one.bands);
  const lows = bands.map((band) => band[0]).filter((low) => low > 0).map(Math.log2);
  const least = lows.length ? Math.min(...lows) : 0,
    span = Math.max(1, (lows.length ? Math.max(...lows) : 0) - least);
  const zeros = bands.some((band) => band[0] === 0) ? 0.06 : 0;
  const u = (low) => (low > 0 ? zeros + 0.02 + (0.96 - zeros) * (Math.log2(low) - least) / span : 0.02);
  const ulps = bands.flatMap((band) => [Number(band[2]), Number(band[3])]).filter((x) => x > 0 && Number
    .isFinite(x)).map(Math.log2);
  const low = ulps.length ? Math.floor(Math.min(...ulps)) : 0,
    high = Math.max(ulps.length ? Math.ceil(Math.max(...ulps)) : 1, low + 1);
  const beyond = bands.some((band) => !Number.isFinite(Number(band[2])));
  const v = (value) => {
    const x = Number(value);
    if (x === 0) return 0;
    return Number.isFinite(x) ? 0.08 + (beyond ? 0.8 : 0.9) * (Math.log2(x) - low) / (high - low) : 1;
  };
  const yTicks = [
      [0, '0']
    ],
    every = Math.ceil((high - low) / 6);
  for (let e = low; e <= high; e += every) yTicks.push([v(2 ** e), `2${superscript(e)}`]);
  if (beyond) yTicks.push([1, 'inf, nan']);
  const xTicks = zeros ? [
      [0.02, '0']
    ] : [],
    step = Math.ceil(span / 8);
  for (let e = least; e <= least + span; e += step)
    if (lows.length) xTicks.push([u(2 ** e), `2${superscript(e)}`]);
  const about = series.map((one) => `${one.name}: ${bandsInWords(one.bands)}`).join('. ');
  return frame({
    title: `Ulp error by magnitude against ${target}`,
    about,
    xTicks,
    yTicks,
    xName: `|${target}| (lower end of the band, log₂)`,
    yName: 'ulp error (log₂)',
  }, ...series.map((one, nth) => (x, y) => [3, 2].flatMap((of) => {
    const points = one.bands.map((band) => [x(u(band[0])), y(v(band[of]))]);
    const line = svg('path', { class: `line line-${nth % 6}${of === 3 ? ' mean' : ''}`,
      d: `M${points.map((p) => p.join(' ')).join('L')}` });
    return of === 3 ? [line] : [line, svg('g', { class: `line-${nth % 6}` }, points.map(([a, b]) =>
      marker(MARKERS[nth % 6], a, b)))];
  })));
}

/* series: [{name, values}], one value for each label of the plot, null where there is none. */
function growthChart(series, plot) {
  const known = series.flatMap((one) => one.values.map(Number)).filter((x) => x > 0 && Number.isFinite(x));
  const low = known.length ? Math.floor(Math.log10(Math.min(...known))) : 0,
    high = Math.max(known.length ? Math.ceil(Math.log10(Math.max(...known))) : 1, low + 1);
  const last = Math.max(plot.labels.length - 1, 1);
  const u = (at) => 0.02 + 0.96 * at / last;
  const v = (value) => (Number(value) > 0 ? 0.08 + 0.9 * (Math.log10(value) - low) / (high - low) : 0);
  const yTicks = [
      [0, '0']
    ],
    every = Math.ceil((high - low) / 6);
  for (let e = low; e <= high; e += every) yTicks.push([v(10 ** e), `10${superscript(e)}`]);
  const step = Math.ceil((last + 1) / 10),
    xTicks = [];
  for (let at = 0; at <= last; at += step) xTicks.push([u(at), (plot.labels[at] || '').split(/[ .]/)[0]]);
  const drawn = (one) => one.values.map((value, at) => [at, value]).filter(([, value]) => value !== null &&
    Number.isFinite(Number(value)));
  return frame({
    title: `${plot.what} along the program`,
    about: series.map((one) => `${one.name}: ${drawn(one).map(([at, value]) =>
      `${metric(value)} at ${plot.labels[at]}`).join(', ')}`).join('. '),
    xTicks,
    yTicks,
    xName: 'equation',
    yName: 'relative rms (log₁₀)',
  }, ...series.map((one, nth) => (x, y) => {
    const points = drawn(one).map(([at, value]) => [x(u(at)), y(v(value))]);
    if (!points.length) return [];
    return [svg('path', { class: `line line-${nth % 6}`, d: `M${points.map((p) => p.join(' ')).join('L')}` }),
      svg('g', { class: `line-${nth % 6}` }, points.map(([a, b]) => marker(MARKERS[nth % 6], a, b)))];
  }));
}

/* The names of the series, each beside a piece of its line. */
function key(names, { markers }) {
  return element('ul', { class: 'key' }, names.map((name, nth) => element('li', {},
    svg('svg', { viewBox: '0 0 36 12', class: 'sample', 'aria-hidden': 'true' },
      svg('path', { class: `line line-${nth % 6}`, d: 'M0 6H36' }),
      markers && svg('g', { class: `line-${nth % 6}` }, marker(MARKERS[nth % 6], 18, 6))), ' ', visible(
      name))));
}
