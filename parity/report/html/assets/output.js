/* One output of a case: which paths agree, how far each is off, and where. */

/* Rows of an output with the same bits and the same metrics as one: [{name, rows, row}]. */
function sorts(one, output, page) {
  const found = new Map();
  for (const row of [...one.rows, ...one.references]) {
    if (row.output !== output || !row.sha256) continue;
    const key = [row.sha256, row.f64, row.strict, row.baseline, JSON.stringify(row.shards)].join();
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(row);
  }
  return [...found.values()].map((rows) => ({ rows, row: rows[0], name: names(rows, page) }));
}

function names(rows, page) {
  if (!page.several) return rows.map((row) => row.path).join(', ');
  const by = new Map();
  for (const row of rows) by.set(row.environment, [...(by.get(row.environment) || []), row.path]);
  return [...by].map(([environment, paths]) => `${environment}: ${paths.join(', ')}`).join('; ');
}

function outputView(one, output, page) {
  const all = sorts(one, output, page);
  const first = all[0]?.row;
  return section(['Output ', visible(output), first ? element('span', { class: 'dim' },
      ` ${first.dtype}[${first.shape || ''}]`) : null],
    equalBits(one, output, page),
    all.length ? element('h4', {}, 'How far it is off') : null,
    all.length ? errorTable(all, one) : null,
    deviceTable(all),
    all.length ? looking(all, one, page) : null);
}

/* The paths by equal bits over all environments; strict stands among its equals. */
function equalBits(one, output, page) {
  const found = new Map();
  const rows = [...one.rows, ...one.references.filter((row) => row.path === 'strict')].filter((row) => row
    .output === output && row.sha256);
  for (const row of rows) found.set(row.sha256, [...(found.get(row.sha256) || []), row]);
  return element('div', { class: 'groups' }, element('h4', {}, 'Equal bits'), element('ul', {}, [...found].map((
        [sha256, group]) =>
      element('li', {}, '{', visible(names(group, page)), '} ', element('span', { class: 'dim hash',
        title: sha256 }, sha256.slice(0, 12))))),
    recordedGroups(one, output, found));
}

/* Groups count all NaNs as equal, digests do not: said where that makes a difference. */
function recordedGroups(one, output, found) {
  const counted = Object.values(one.groups).reduce((sum, of) => sum + (of [output] || []).length, 0);
  const digests = new Set(one.rows.filter((row) => row.output === output && row.sha256).map((row) =>
    `${row.environment} ${row.sha256}`));
  if (counted === digests.size || !found.size) return null;
  const lists = Object.entries(one.groups).flatMap(([environment, of]) => (of [output] || []).map((paths) =>
    `${environment}: ${paths.join(', ')}`));
  return element('p', {}, 'With all NaNs taken as equal: ', lists.map((list) => ['{', visible(list), '} ']));
}

function errorTable(all, one) {
  const columns = Object.keys(TARGETS).flatMap((target) => all
    .filter(({ row }) => row[target] !== undefined)
    .map((sort) => ({ target, name: sort.name, metrics: one.metrics[sort.row[target]] })));
  const spans = Object.keys(TARGETS).map((target) => [target, columns.filter((column) => column.target ===
    target).length]).filter(([, n]) => n);
  const known = Object.keys(METRICS).filter((name) => ALWAYS.includes(name) || columns.some(({ metrics }) =>
    metrics[name]));
  const starts = columns.map((column, at) => (at === 0 || columns[at - 1].target !== column.target ? ' starts' :
    ''));
  return scrolled('Errors', element('table', { class: 'errors' },
    element('thead', {},
      element('tr', {}, element('td'), spans.map(([target, n]) => element('th', { colspan: n,
        scope: 'colgroup', class: 'starts' }, `against ${TARGETS[target]}`))),
      element('tr', {}, element('th', { scope: 'col' }, 'metric'), columns.map((column, at) => element(
      'th', { scope: 'col', class: `right${starts[at]}` }, visible(column.name))))),
    element('tbody', {}, known.map((name) => element('tr', {},
      element('th', { scope: 'row', title: METRICS[name][1] }, METRICS[name][0]),
      columns.map(({ metrics }, at) => metricCell(metrics, name, starts[at])))))));
}

/* What each device holds, of an output that lies on several. */
function deviceTable(all) {
  const held = all.flatMap(({ name, row }) => (row.shards || []).map((shard) => ({ name, shard })));
  if (!held.length) return null;
  const part = ({ start, shape }) => `[${start.map((first, at) => `${first}:${first + shape[at]}`).join(', ')}]`;
  const number = (value) => element('td', { class: 'right' }, value === null ? '–' : metric(value));
  return [element('h4', {}, 'What each device has'), scrolled('Errors by device', element('table', {
      class: 'devices' },
    tableHead([['paths'], ['device', 'right'], ['part'], ['replica', 'right'], ['differ from baseline',
      'right'], ['max abs error', 'right'], ['max ulp', 'right'], ['rms rel', 'right'],
      ['differ from replica 0', 'right'], ['by at most', 'right']]),
    element('tbody', {}, held.map(({ name, shard }) => element('tr', {},
      element('td', {}, visible(name)), number(shard.device), element('td', {}, part(shard)), number(shard
        .replica), number(shard.differing), number(shard.max_abs), number(shard.max_ulp), number(shard
        .rms_rel), number(shard.apart), number(shard.max_apart))))))];
}

/* What is left out of the JSON is 0 for a count and does not exist for a metric. */
function metricCell(metrics, name, starts) {
  const isCount = /_(got|want)$/.test(name) || ['count', 'excluded', 'differing', 'pattern'].includes(name);
  const value = metrics[name] ?? (isCount ? 0 : null);
  return element('td', { class: `right${starts}`, title: value === null ? 'nothing to measure' : exact(value) },
    value === null ? '–' : metric(value));
}

/* Charts and worst elements against a target that the reader chooses. */
function looking(all, one, page) {
  const having = Object.keys(TARGETS).filter((target) => all.some(({ row }) => row[target] !== undefined));
  const differs = all.some(({ row }) => row.baseline !== undefined && one.metrics[row.baseline].differing);
  const first = having.includes('baseline') && differs ? 'baseline' : having.includes('f64') ? 'f64' : having[
  0];
  if (!first) return null;
  const shown = element('div');
  const group = `target-${looking.count = (looking.count || 0) + 1}`;
  const draw = (target) => shown.replaceChildren(...[charts(all, one, target), worstElements(all, one, page,
    target)].flat().filter(Boolean));
  draw(first);
  return element('div', {}, element('h4', {}, 'Where it is off'),
    element('fieldset', { class: 'targets' }, element('legend', { class: 'hidden' }, 'Compared with'), having
      .map((target) => element('label', {},
        element('input', { type: 'radio', name: group, value: target, checked: target === first,
        onchange: () => draw(target) }), ` against ${TARGETS[target]}`))), shown);
}

/* The sorts that have something against a target, without the baseline against itself. */
function seriesOf(all, one, target, what) {
  return all.filter(({ row, rows }) => row[target] !== undefined && one.metrics[row[target]][what] &&
      !(target === 'baseline' && rows.every((other) => other.path === one.baseline)))
    .map((sort) => ({ name: sort.name, row: sort.row, of: one.metrics[sort.row[target]][what] }));
}

function charts(all, one, target) {
  const bins = seriesOf(all, one, target, 'histogram').map(({ name, of }) => ({ name, bins: of }));
  const bands = seriesOf(all, one, target, 'profile').filter(({ of }) => of.length).map(({ name, of }) =>
({ name, bands: of }));
  const thin = all.some(({ row }) => row[target] !== undefined && one.metrics[row[target]].thin);
  const made = [];
  if (bins.length) {
    made.push(element('figure', {}, element('figcaption', {}, 'Elements by ulp error'), key(bins.map(
      ({ name }) => name), { markers: false }),
      histogramChart(bins, target), numbersOf(['ulp error', ...bins.map(({ name }) => name)],
        bins[0].bins.map((_, at) => [binName(at, bins[0].bins.length), ...bins.map((series) => series.bins[
          at])]).filter((row) => row.slice(1).some(Boolean)))));
  }
  if (bands.length) {
    made.push(element('figure', {}, element('figcaption', {},
        'Ulp error by magnitude: largest with markers, mean thin'), key(bands.map(({ name }) =>
      name), { markers: true }),
      profileChart(bands, target), numbersOf(['paths', 'from', 'elements', 'max ulp', 'mean ulp'],
        bands.flatMap(({ name, bands: of }) => of.map((band) => [name, ...band])))));
  }
  return [
    made.length ? element('div', { class: 'figures' }, made) : null,
    thin ? element('p', { class: 'dim' },
      'This is a large run: plots and elements of rows that are identical and fine are not in this file; ',
      element('code', {}, visible(`parity show RECORD --case ${quoted(one.id)} --format json`)), ' has them.'
      ) : null,
  ];
}

function numbersOf(head, rows) {
  return element('details', { class: 'numbers' }, element('summary', {}, 'numbers'), scrolled(
    'Numbers of the plot', element('table', {},
      tableHead(head.map((name, at) => [name, at ? 'right' : null])),
      element('tbody', {}, rows.map((row) => element('tr', {}, row.map((value, at) => element(
        'td', { class: at ? 'right' : null }, typeof value === 'string' && at === 0 ? visible(
        value) : metric(value)))))))));
}

function worstElements(all, one, page, target) {
  return seriesOf(all, one, target, 'worst').filter(({ of }) => of.length).map(({ name, row, of }) => {
    const metrics = one.metrics[row[target]];
    const widths = (side) => of [0][side].words.map((word) => word.length).join();
    const wide = { float: 'float64', complex: 'complex128' } [page.dtypes[row.dtype].kind];
    const wantDtype = metrics.formats[1] || (widths('got') === widths('want') ? row.dtype : wide);
    return element('div', { class: 'worst' }, element('h5', {},
        `The ${of.length} worst of ${metrics.differing} that differ: `, visible(name)),
      worstTable(of, { dtype: row.dtype, wantDtype, dtypes: page.dtypes, target }));
  });
}
