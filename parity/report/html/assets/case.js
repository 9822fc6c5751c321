/* All that is known of one case, built when it is opened. */

const TARGETS = { baseline: 'the baseline', f64: 'f64, the ideal', strict: 'strict, as declared' };
const METRICS = {
  count: ['elements', 'elements of the output'],
  excluded: ['excluded', 'elements that no rule determines'],
  nonfinite_want: ['not finite in want', 'elements left out of the numbers below'],
  differing: ['differing', 'elements that differ'],
  pattern: ['other NaN, inf', 'elements of which one side is NaN, +inf or -inf and the other is not'],
  max_abs: ['max abs', 'largest |got - want|'],
  mean_abs: ['mean abs', 'mean |got - want|'],
  max_rel: ['max rel', 'largest |got - want| / |want|'],
  max_ulp: ['max ulp', 'largest error in ulps of the output dtype'],
  mean_ulp: ['mean ulp', 'mean error in ulps'],
  p99_ulp: ['p99 ulp', 'the error in ulps that 99 % of the elements do not exceed'],
  bias_ulp: ['bias ulp', 'mean signed error in ulps'],
  rms_rel: ['rms rel', '‖got - want‖₂ / ‖want‖₂'],
  cosine: ['cosine', '<got, want> / (‖got‖₂ ‖want‖₂)'],
  sqnr_db: ['SQNR, dB', '-20 log₁₀(rms rel)'],
  min_rtol: ['least rtol', 'smallest rtol that passes with atol = 0'],
  min_atol: ['least atol', 'smallest atol that passes with rtol = 0'],
};
for (const [kind, name] of [
    ['nan', 'NaN'],
    ['posinf', '+inf'],
    ['neginf', '-inf'],
    ['negzero', '-0'],
    ['subnormal', 'subnormal']
  ]) {
  METRICS[`${kind}_got`] = [`${name}, got`, `elements that are ${name} in the output`];
  METRICS[`${kind}_want`] = [`${name}, want`, `elements that are ${name} in what is wanted`];
}
const ALWAYS = ['count', 'differing', 'max_abs', 'mean_abs', 'max_rel', 'max_ulp', 'mean_ulp', 'p99_ulp',
  'bias_ulp', 'rms_rel', 'cosine', 'sqnr_db', 'min_rtol', 'min_atol'
];

/* The case as details.py wrote it, with doubles and bytes put back in their places. */
function readCase(value, reader) {
  for (const list of ['rows', 'references']) {
    let before = {};
    value[list] = value[list].map((changed) => {
      if ('bound_share' in changed) changed.bound_share = reader.number(changed.bound_share);
      if (changed.values) changed.values = changed.values.map((one) => reader.number(one));
      if (changed.sha256 === true) changed.sha256 = reader.hex(value.digest);
      for (const [name, of] of Object.entries(changed.evidence || {}))
        if (of === true) changed.evidence[name] = reader.hex(value.digest);
      before = Object.fromEntries(Object.entries({ ...before, ...changed }).filter(([, of]) => of !==
      null));
      return before;
    });
  }
  for (const metrics of value.metrics) readMetrics(metrics, reader);
  return value;
}

function readMetrics(metrics, reader) {
  for (const name of Object.keys(METRICS))
    if (metrics[name] === true) metrics[name] = reader.number(true);
  for (const name of ['min_rtol', 'min_atol'])
    if (metrics[name] in METRICS) metrics[name] = metrics[metrics[name]];
  metrics.worst = (metrics.worst || []).map((packed) => {
    const [index, ulp, ...rest] = packed;
    const sides = metrics.formats.map((format) => {
      const bits = rest.shift().map((length) => reader.hex(length));
      return { words: bits, value: format ? valueOf(bits[0], format) : rest.shift() };
    });
    return { index, ulp, got: sides[0], want: sides[1] };
  });
}

/* The view of a case. page: {dtypes, several (environments), command: row => text} */
function caseView(one, page) {
  const outputs = [...new Set(one.rows.map((row) => row.output).filter(Boolean))];
  return [
    element('h2', { id: 'case-title', tabindex: -1 }, idText(one.id)),
    element('p', { class: 'about' }, visible(one.about)),
    one.links.length ? element('ul', { class: 'links' }, one.links.map((address) => element('li', {}, link(
      address)))) : null,
    inWords(one, page),
    section('Paths', pathsTable(one, page)),
    failures(one, page),
    explanations(one, page),
    outputs.map((output) => outputView(one, output, page)),
    fold('Evidence and timings', evidenceTable(one, page)),
    fold('The resolved case', [
      element('p', {},
        `The case file that is this case alone (from line ${one.line} of ${one.id.split('::')[0]}). `,
        copyButton(one.yaml)),
      element('pre', { class: 'yaml', tabindex: 0 }, visible(one.yaml, { lines: true })),
    ], true),
    fold('Every field of every row', [
      element('p', { class: 'dim' },
        'As recorded; fields that are empty or have their default are left out, and metrics stand above.'),
      element('pre', { tabindex: 0 }, visible(JSON.stringify([...one.rows, ...one.references], null,
      1), { lines: true })),
    ]),
  ];
}

function section(title, ...children) {
  return element('section', {}, element('h3', {}, title), children);
}

function fold(title, children, open = false) {
  return element('details', { class: 'fold', open }, element('summary', {}, element('h3', {}, title)),
  children);
}

const where = (row, page) => (page.several ? `${row.environment} ${row.path}` : row.path);

function inWords(one, page) {
  const named = (environment) => (page.several ? [element('b', {}, visible(environment)), ' '] : null);
  const said = (of, kind) => Object.entries(of).flatMap(([environment, lines]) => lines.map((line) =>
    element('li', { class: kind }, named(environment), kind === 'note' ? 'reference: ' : null, visible(line))));
  const reasons = new Map();
  for (const row of one.rows) {
    if (row.status !== 'expected') continue;
    const key = JSON.stringify([row.because, row.link || null]);
    reasons.set(key, [...(reasons.get(key) || []), `${where(row, page)} ${row.grade || row.outcome}`]);
  }
  const expected = [...reasons].map(([key, rows]) => {
    const [because, address] = JSON.parse(key);
    return element('li', { class: 'expected' }, 'expected: ', visible([...new Set(rows)].join(', ')),
      ', because ', visible(because || ''), address ? [' (', link(address), ')'] : null);
  });
  const lines = [...said(one.words, 'word'), ...expected, ...said(one.notes, 'note')];
  return lines.length ? section('In words', element('ul', { class: 'words' }, lines)) : null;
}

const YES = { true: 'yes', false: 'no' };

function pathsTable(one, page) {
  const reference = (row) => one.references.includes(row);
  const isBaseline = (row) => row.path === one.baseline && !reference(row);
  const columns = [
    ['path', (row) => [visible(where(row, page)), isBaseline(row) ? dim(' baseline') : null]],
    ['run again', (row) => (reference(row) ? null : copyButton(page.command(row), 'copy command'))],
    ['output', (row) => [visible(row.output), row.dtype ? dim(` ${row.dtype}[${row.shape || ''}]`) : null]],
    ['status', (row) => (reference(row) ? null : chip(row.status || 'ok'))],
    ['grade', (row) => (!reference(row) ? verdict(row) : row.outcome === 'ok' ? 'reference' : 'no reference')],
    ['faithful', (row) => YES[row.faithful]],
    ['accurate', (row) => YES[row.accurate]],
    ['share of bound', (row) => titled(row.bound_share), 'right'],
    ['vacuous', (row) => titled(row.vacuous || null), 'right'],
    ['undecided', (row) => titled(row.undecided || null), 'right'],
    ['licences, model', (row) => visible([row.licences, row.model].filter(Boolean).join('; '))],
    ['values', (row) => row.values && element('span', { class: 'values' },
      `[${row.values.map((value) => elementText(value, page.dtypes[row.dtype])).join(', ')}]`)],
    ['why', (row) => remarks(row), 'why'],
  ];
  const rows = [...one.rows, ...one.references];
  const cells = rows.map((row) => columns.map(([, cell]) => [cell(row)].flat(Infinity).filter((part) => part ||
    part === 0)));
  const kept = columns.map((_, at) => cells.some((row) => row[at].length && row[at].some((part) => part !==
    '')));
  return scrolled('Paths', element('table', { class: 'paths' },
    tableHead(columns.filter((_, at) => kept[at]).map(([name, , align]) => [name, align])),
    element('tbody', {}, cells.map((row, nth) => element('tr', { class: reference(rows[nth]) ? 'reference' :
          rows[nth].status || 'ok' },
      columns.map(([name, , align], at) => kept[at] && element('td', { class: align, 'data-head': name },
        row[at].length ? element('div', {}, row[at]) : null)))))));
}

const dim = (text) => element('span', { class: 'dim' }, text);

const chip = (status) => element('span', { class: `chip ${status}` }, status);

function verdict(row) {
  const what = row.outcome === 'ok' ? row.grade || 'no output' : row.outcome;
  return row.stage && row.outcome !== 'unsupported' ? `${what} at ${row.stage}` : what;
}

function titled(value) {
  return value === undefined || value === null ? null : element('span', { title: exact(value) }, metric(value));
}

function remarks(row) {
  const flags = [
    row.nondeterministic && 'nondeterministic: a repeated run gave other bits',
    row.tolerance_refused && 'tolerance refused: strict itself fails it',
  ].filter(Boolean);
  return [
    row.detail ? element('div', {}, visible(row.detail)) : null,
    row.because ? element('div', {}, 'because ', visible(row.because), row.link ? [' (', link(row.link),
      ')'] : null) : null,
    row.own_error === undefined ? null : element('div', { title: exact(row.own_error) },
      `its own error is at most ${metric(row.own_error)}`),
    row.cached ? dim('cached: taken from an earlier run') : null,
    flags.map((flag) => element('div', { class: 'flag' }, flag)),
  ];
}

function failures(one, page) {
  const failed = [...one.rows, ...one.references].filter((row) => row.outcome !== 'ok');
  if (!failed.length) return null;
  return section('What failed', failed.map((row) => element('div', { class: 'failure' },
    element('h4', {}, visible(where(row, page)), ': ', verdict(row), row.error_type ? [': ', visible(row
      .error_type)] : null),
    row.message ? element('pre', { tabindex: 0 }, visible(row.message, { lines: true })) : null,
    row.stderr ? [element('h5', {}, 'last lines on stderr'), element('pre', { class: 'stderr',
      tabindex: 0 }, visible(row.stderr, { lines: true }))] : null)));
}

/* Why rows are not identical, each explanation once. */
function explanations(one, page) {
  const found = new Map();
  for (const row of one.rows)
    if (row.explanation) found.set(where(row, page), row.explanation);
  return [...found].map(([name, why]) => section(['Why ', visible(name), ' differs from ', visible(why.against)],
    element('p', { class: 'headline' }, visible(why.headline)),
    why.sections.map((part) => explanationPart(part))));
}

function explanationPart(part) {
  const series = part.plot ? Object.entries(part.plot.series).map(([name, values]) => ({ name, values })) : [];
  return element('details', { class: 'fold', open: part.title !== 'What was compiled' },
    element('summary', {}, element('h4', {}, part.title)),
    part.lines.length ? element('ul', {}, part.lines.map((line) => element('li', {}, visible(line)))) : null,
    part.plot ? [growthChart(series, part.plot), key(series.map((one) => one.name), { markers: true })] : null,
    part.head.length ? scrolled(part.title, element('table', { class: 'explanation' }, tableHead(part.head),
      element('tbody', {}, part.cells.map((row) => element('tr', {}, row.map((cell) => element('td', {},
        visible(cell)))))))) : null,
    part.code.map(([name, said]) => [element('h5', {}, visible(name)),
      element('pre', { tabindex: 0 }, visible(said, { lines: true }))]));
}

function evidenceTable(one, page) {
  const rows = one.rows.filter((row) => row.evidence || row.timings || row.sha256);
  const names = (of) => [...new Set(rows.flatMap((row) => Object.keys(row[of] || {})))];
  const [evidence, stages] = [names('evidence'), names('timings')];
  const cut = one.digest < 32 ? element('p', { class: 'dim' },
    `This is a large run: of digests the first ${2 * one.digest} of 64 digits are shown.`) : null;
  const long = (said) => (said ? element('span', { class: 'hash', title: spelled(said) }, visible(said)) :
  null);
  return [cut, scrolled('Evidence and timings', element('table', { class: 'evidence' },
    tableHead(['path', 'output', ...evidence.map((name) => name.replaceAll('_', ' ')),
      'SHA-256 of the bits',
      ...stages.map((stage) => [`${stage}, s`, 'right'])
    ]),
    element('tbody', {}, rows.map((row) => element('tr', {},
      element('td', {}, visible(where(row, page))), element('td', {}, visible(row.output)),
      evidence.map((name) => element('td', {}, long(row.evidence?.[name]))), element('td', {}, long(
        row.sha256)),
      stages.map((stage) => element('td', { class: 'right' }, metric(row.timings?.[stage]))))))))];
}
