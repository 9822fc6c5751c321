/* The rows of a run, and what filter, table and heatmap make of them. */

const DTYPE_ALIAS = { bf16: 'bfloat16', f16: 'float16', f32: 'float32', f64: 'float64', fp8: 'float8*',
  c64: 'complex64', c128: 'complex128' };

/* The rows of the index as objects, in the order of the run. */
function rowsOf(index) {
  const { columns, texts, measures, measureNames, flagNames, kinds } = index;
  const at = Object.fromEntries(flagNames.map((name, bit) => [name, 1 << bit]));
  return columns.case.map((ofCase, nth) => {
    const said = (name) => texts[columns[name][nth]];
    const flags = columns.flags[nth];
    const either = (yes, no) => (flags & at[yes] ? true : flags & at[no] ? false : null);
    const row = {
      case: ofCase,
      position: nth,
      id: index.cases[ofCase][0],
      op: index.ops[index.cases[ofCase][1]],
      environment: index.environments[columns.environment[nth]],
      path: index.paths[columns.path[nth]],
      output: index.outputs[columns.output[nth]],
      count: columns.count[nth],
      differing: columns.differing[nth],
      undecided: columns.undecided[nth],
      faithful: either('faithful', 'unfaithful'),
      accurate: either('accurate', 'inaccurate'),
      cached: Boolean(flags & at.cached),
      nondeterministic: Boolean(flags & at.nondeterministic),
      baseline: Boolean(flags & at.baseline),
      passes: true,
    };
    for (const name of ['verdict', 'kind', 'outcome', 'stage', 'status', 'dtype', 'detail', 'because',
        'licences', 'model'
      ]) row[name] = said(name);
    measureNames.forEach((name, place) => { row[name] = number(measures[columns.at[nth]][place]); });
    row.fails = row.status === 'finding' || row.status === 'stale';
    row.severity = (row.fails ? 0 : 1) * 100 + kinds.indexOf(row.kind);
    return row;
  });
}

function badness(a, b) {
  const far = (row) => (row.max_ulp === null || Number.isNaN(row.max_ulp) ? Infinity : row.max_ulp);
  return a.severity - b.severity || (far(a) === far(b) ? 0 : far(b) - far(a)) || a.position - b.position;
}

/* What the filter box knows. */
function keysOf(index, rows) {
  const values = (name) => [...new Set(rows.map((row) => row[name]))].filter(Boolean);
  const name = (of, allowedValues, more = {}) => ({ kind: 'name', of: (row) => row[of], values: allowedValues,
    ...more });
  const glob = (of) => ({ kind: 'glob', of });
  const numeric = (of) => ({ kind: 'number', of: (row) => row[of] });
  const flag = (of) => ({
    kind: 'name', values: ['true', 'false', 'unknown'], alias: { yes: 'true', no: 'false' },
    of: (row) => String(row[of] ?? 'unknown'),
  });
  const verdicts = [...new Set([...index.kinds, ...values('verdict')])];
  const file = (id) => id.split('::')[0];
  return {
    grade: { kind: 'name', of: (row) => [row.kind, row.verdict], values: verdicts },
    status: name('status', ['ok', 'expected', 'finding', 'stale']),
    path: name('path', index.paths),
    env: name('environment', index.environments),
    dtype: name('dtype', values('dtype'), { alias: DTYPE_ALIAS }),
    op: name('op', index.ops),
    output: name('output', index.outputs.filter(Boolean)),
    case: glob(({ id }) => [id, file(id), id.split('::')[1] || '', id.split(':').slice(0, 3).join(':')]),
    because: glob((row) => row.because),
    model: glob((row) => row.model),
    licences: glob((row) => row.licences),
    ulp: numeric('max_ulp'),
    abs: numeric('max_abs'),
    ulp64: numeric('max_ulp_f64'),
    abs64: numeric('max_abs_f64'),
    rms64: numeric('rms_rel_f64'),
    share: numeric('bound_share'),
    vacuous: numeric('vacuous'),
    differing: numeric('differing'),
    undecided: numeric('undecided'),
    count: numeric('count'),
    faithful: flag('faithful'),
    accurate: flag('accurate'),
    cached: flag('cached'),
    nondeterministic: flag('nondeterministic'),
    baseline: flag('baseline'),
  };
}

function columnsOf(index) {
  const measured = (key, head, about, label) => ({
    key, head, label, right: true, first: -1,
    about: `${about}; NaN sorts beyond infinity, what does not exist last`,
    value: (row) => row[key],
    cell: (row) => metric(row[key]),
    title: (row) => (row[key] === null ? '' : exact(row[key])),
  });
  const said = (key, head, about) => ({
    key, head, about,
    value: (row) => row[key].toLowerCase() || null,
    cell: (row) => visible(row[key]),
  });
  const output = {
    key: 'output', head: 'output', about: 'the output and its dtype',
    value: (row) => `${row.output} ${row.dtype}`.toLowerCase().trim() || null,
    cell: (row) => row.output && [visible(row.output), ' ', element('span', { class: 'dim' }, row.dtype)],
  };
  const status = {
    key: 'status', head: 'status', about: 'finding and stale fail the run',
    value: (row) => ['finding', 'stale', 'expected', 'ok'].indexOf(row.status),
    cell: (row) => chip(row.status),
  };
  const grade = {
    key: 'grade', head: 'grade', about: 'what it amounts to, the worst first',
    value: (row) => index.kinds.indexOf(row.kind),
    cell: (row) => gradeCell(row, index),
    title: (row) => row.detail,
  };
  const differing = {
    key: 'differing', head: 'differ', about: 'elements that differ from the baseline', right: true, first: -1,
    value: (row) => row.differing,
    cell: (row) => (row.differing === null ? '' : `${row.differing}/${row.count}`),
  };
  return [
    { key: 'case', head: 'case', about: 'the case', value: (row) => row.id.toLowerCase(), cell: caseCell },
    index.environments.length > 1 && said('environment', 'env', 'the environment'),
    said('path', 'path', 'the path'),
    output,
    status,
    grade,
    differing,
    measured('max_abs', 'max abs', 'largest absolute error against the baseline', 'max abs vs baseline'),
    measured('max_ulp', 'max ulp', 'largest error against the baseline, in ulps', 'max ulp vs baseline'),
    measured('max_ulp_f64', 'ulp f64', 'largest error against f64, in ulps', 'max ulp vs f64'),
    measured('rms_rel_f64', 'rms f64', 'relative rms error against f64', 'rms rel vs f64'),
    measured('bound_share', 'share', 'share of the accuracy bound that is used', 'share of bound'),
  ].filter(Boolean);
}

function caseCell({ id }) {
  const [file, ...rest] = id.split('::');
  if (!rest.length) return idText(id);
  return [element('span', { class: 'dim file' }, idText(`${file}::`)), idText(rest.join('::'))];
}

function gradeCell(row, index) {
  const [sign, letter] = index.signs[row.kind];
  const more = [row.baseline && row.kind === 'identical' ? 'baseline' : '', row.model, row.licences, row
    .cached && 'cached', row.nondeterministic && 'nondeterministic'
  ].filter(Boolean).join(', ');
  const why = row.because ? `because ${row.because}` : row.detail;
  return [
    element('span', { class: 'cells' }, element('i', { class: `${letter}u`, 'aria-hidden': 'true' }, sign)),
    ' ', visible(row.verdict),
    more ? element('span', { class: 'dim' }, ' (', visible(more), ')') : null,
    why ? element('div', { class: 'why dim' }, visible(why)) : null,
  ];
}

/* Files with their cases, each with its rows by column of the heatmap. */
function filesOf(index, rows) {
  const column = new Map(index.heatmap.map(([environment, path], at) => [`${environment}\n${path}`, at]));
  const files = new Map(),
    cases = [];
  index.cases.forEach(([id], nth) => {
    const cut = id.indexOf('::');
    const file = cut < 0 ? id : id.slice(0, cut);
    if (!files.has(file)) files.set(file, { name: file, cases: [] });
    cases.push({ id, number: nth, label: cut < 0 ? id : id.slice(cut + 2), cells: new Map() });
    files.get(file).cases.push(cases[nth]);
  });
  for (const row of rows) {
    const { cells } = cases[row.case], at = column.get(`${row.environment}\n${row.path}`);
    if (!cells.has(at)) cells.set(at, []);
    cells.get(at).push(row);
  }
  return [...files.values()];
}
