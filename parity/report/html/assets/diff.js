/* The comparison of two runs: its findings, each with a table of its rows, and one row that is opened. */

const DTYPE_ALIAS = { bf16: 'bfloat16', f16: 'float16', f32: 'float32', f64: 'float64', fp8: 'float8*', c64: 'complex64', c128: 'complex128' };
const FEW = 50; // so many rows that pass a filter are unfolded
const SHORTCUTS = [
  ['/', 'to the filter'], ['j, k', 'next and previous row'], ['Enter', 'open the row, or fold a finding'],
  ['Esc', 'back: out of the filter, out of the row'], ['?', 'this help'],
];

/* The rows of the index as objects, the worst first; ids as wording.row_id has them. */
function rowsOf({ texts, measures, measureNames, columns, findings }) {
  return columns.finding.map((of, nth) => {
    const row = { of, finding: findings[of], at: columns.at[nth] };
    for (const name of ['case', 'output', 'dtype', 'grade_a', 'kind_a', 'grade_b', 'kind_b']) row[name] = texts[columns[name][nth]];
    measureNames.forEach((name, place) => { row[name] = number(measures[columns.measured[nth]][place]); });
    row.id = `${row.case}[${row.finding.path}]${['', 'out'].includes(row.output) ? '' : ` ${row.output}`}`;
    return row;
  });
}

/* Words as a token takes them: "newly divergent" as newly-divergent. */
const joined = (words) => words.replace(/,? /g, '-');

/* What the filter box knows. */
function keysOf(rows) {
  const words = (of, more = {}) => {
    const known = [...new Set(rows.flatMap(of))].filter(Boolean);
    return { kind: 'name', of: (row) => of(row).map(joined), values: known.map(joined), alias: Object.fromEntries(known.map((one) => [one, joined(one)])), ...more };
  };
  const glob = (of) => ({ kind: 'glob', of });
  const numeric = (of) => ({ kind: 'number', of: (row) => row[of] });
  const file = (id) => id.split('::')[0];
  return {
    is: words((row) => [row.finding.tag]),
    direction: words((row) => [row.finding.direction]),
    cause: words((row) => [row.finding.cause]),
    path: words((row) => [row.finding.path]),
    op: words((row) => [row.finding.op]),
    case: glob((row) => [row.case, file(row.case), row.case.split('::')[1] || '', row.case.split(':').slice(0, 3).join(':')]),
    dtype: words((row) => [row.dtype], { alias: DTYPE_ALIAS }),
    output: words((row) => [row.output]),
    grade: words((row) => [row.kind_a, row.kind_b]), a: words((row) => [row.kind_a]), b: words((row) => [row.kind_b]),
    why: glob((row) => row.finding.why), because: glob((row) => row.finding.because || ''),
    ulp: numeric('ulp'), abs: numeric('abs'), differing: numeric('differing'),
    'ulp64.a': numeric('ulp_f64_a'), 'ulp64.b': numeric('ulp_f64_b'), 'rms64.a': numeric('rms_f64_a'), 'rms64.b': numeric('rms_f64_b'),
    'share.a': numeric('share_a'), 'share.b': numeric('share_b'),
  };
}

function columnsOf(index, rows) {
  const measured = (key, head, about) => ({ key, head, about: `${about}; NaN sorts beyond infinity, what does not exist last`, right: true, first: -1, value: (row) => row[key], cell: (row) => metric(row[key]), title: (row) => (row[key] === null ? '' : exact(row[key])) });
  const said = (key, head, about) => ({ key, head, about, value: (row) => row[key].toLowerCase() || null, cell: (row) => visible(row[key]) });
  const graded = (side) => ({ key: `grade_${side}`, head: side.toUpperCase(), about: `what ${side.toUpperCase()} amounts to, the worst first`, value: (row) => index.kinds.indexOf(row[`kind_${side}`]), cell: (row) => gradeOf(row, side, index) });
  return [
    { key: 'case', head: 'case', about: 'the case', value: (row) => row.case.toLowerCase(), cell: (row) => caseCell(row.case) },
    rows.some((row) => !['', 'out'].includes(row.output)) && said('output', 'output', 'the output'),
    said('dtype', 'dtype', 'of the output'),
    graded('a'), graded('b'),
    measured('ulp', 'ulp, A to B', 'how far B is from A, in ulps'),
    measured('abs', 'abs, A to B', 'largest absolute difference of B from A'),
    { key: 'differing', head: 'differ', about: 'elements in which B differs from A', right: true, first: -1, value: (row) => row.differing, cell: (row) => (row.differing === null ? '' : `${row.differing}/${row.count}`) },
    measured('ulp_f64_a', 'ulp f64, A', 'largest error of A against f64, in ulps'),
    measured('ulp_f64_b', 'ulp f64, B', 'largest error of B against f64, in ulps'),
    measured('share_a', 'share, A', 'share of the accuracy bound that A uses'),
    measured('share_b', 'share, B', 'share of the accuracy bound that B uses'),
  ].filter((column) => column && (!column.right || rows.some((row) => row[column.key] !== null)));
}

function caseCell(id) {
  const [file, ...rest] = id.split('::');
  return rest.length ? [element('span', { class: 'dim file' }, visible(`${file}::`)), element('wbr'), visible(rest.join('::'))] : visible(id);
}

class DiffReport extends Frame {
  constructor(index, perChunk) {
    const rows = rowsOf(index);
    super({ opens: 'row', view: document.getElementById('change'), title: 'change-title', keys: keysOf(rows), example: 'is:worse direction:farther-from-f64 path:jit dtype:bf16 ulp:>4 case:*conv*', help: SHORTCUTS });
    Object.assign(this, { index, perChunk, rows });
    this.byId = new Map(rows.map((row) => [row.id, row]));
    this.order = { key: null, sign: 1 };
    this.findings = [...document.querySelectorAll('[data-finding]')].map((fold) => this.finding(fold));
    this.none = document.getElementById('none');
    for (const name of document.querySelectorAll('header [data-tag]')) {
      const query = `is:${name.dataset.tag}`;
      name.replaceWith(element('button', { type: 'button', class: name.className, title: `filter by ${query}`, onclick: () => { this.ask(this.state.q === query ? '' : query); document.getElementById('findings').scrollIntoView(); } }, name.textContent));
    }
  }

  /* A finding of the page: its fold, its rows and, once it is open, their table. */
  finding(fold) {
    const number = Number(fold.dataset.finding);
    const one = { fold, rows: this.rows.filter((row) => row.of === number), size: fold.querySelector('.size'), shown: [] };
    one.said = one.size.textContent;
    const code = fold.querySelector('code.id');
    code.replaceWith(element('a', { class: 'id', href: hashOf({ row: one.rows[0].id }), onclick: (event) => { event.preventDefault(); this.open(one.rows[0].id); } }, [...code.childNodes]));
    one.every = fold.querySelector('.every');
    for (const each of [fold, one.every]) each.addEventListener('toggle', () => this.draw(one));
    return one;
  }

  /* Whether its rows are to be seen. */
  unfolded(one) {
    return one.fold.open && one.every.open && one.shown.length > 0;
  }

  unfold(one) {
    one.fold.open = one.every.open = true;
    this.draw(one);
  }

  /* Draws the rows of a finding where they are to be seen. */
  draw(one) {
    if (!this.unfolded(one) || one.drawn === one.shown) return;
    if (!one.table) {
      one.table = new Table({
        columns: columnsOf(this.index, one.rows), caption: `Rows of ${one.fold.querySelector('h4').textContent}`, onOpen: (row) => this.open(row.id),
        rowAttributes: () => ({}), onSort: () => { this.sortBy(one.table.sort.key, one.table.sort.sign); this.sorting(one.table.sort); },
      });
      one.fold.querySelector('.changes').append(one.table.element);
      one.table.sortBy(this.order.key, this.order.sign);
    }
    one.table.show(one.shown);
    one.drawn = one.shown;
  }

  textOf(row) {
    const { finding } = row;
    return [row.id, row.dtype, row.grade_a, row.grade_b, finding.tag, finding.direction, finding.op, finding.cause, finding.why, finding.because || ''].join('\n');
  }

  filtered(passes) {
    for (const one of this.findings) {
      one.shown = one.rows.filter(passes);
      one.fold.hidden = !one.shown.length;
      one.size.textContent = one.shown.length === one.rows.length ? one.said : `${one.shown.length} of ${one.said}`;
      this.draw(one);
    }
    const shown = this.findings.flatMap((one) => one.shown), open = this.findings.filter((one) => one.shown.length).length;
    this.shown = shown.map((row) => row.id);
    if (this.none) this.none.hidden = open > 0;
    const all = shown.length === this.rows.length;
    if (!all && shown.length <= FEW) for (const one of this.findings) if (one.shown.length) this.unfold(one);
    return `${all ? 'all ' : ''}${plural(shown.length, 'row')}${all ? '' : ` of ${this.rows.length}`} in ${plural(open, 'finding')}`;
  }

  sortBy(key, sign) {
    const known = key === null || columnsOf(this.index, this.rows).some((column) => column.key === key);
    if (!known) return false;
    this.order = { key, sign };
    for (const { table } of this.findings) if (table && (table.sort.key !== key || table.sort.sign !== sign)) table.sortBy(key, sign);
    return true;
  }

  move(by) {
    const first = this.findings.find((one) => one.shown.length);
    if (!first) return;
    if (!this.findings.some((one) => this.unfolded(one))) this.unfold(first);
    const rows = this.findings.flatMap((one) => (this.unfolded(one) ? [...one.table.body.children].map((tr) => [one.table, tr]) : []));
    const at = rows.findIndex(([, tr]) => tr === document.activeElement);
    const to = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(at + by, rows.length - 1));
    const [table, tr] = rows[to];
    if (!tr.nextSibling && table.drawn < table.rows.length) table.draw(DRAWN_AT_ONCE);
    table.focus([...table.body.children].indexOf(tr));
  }

  async parts(id) {
    const row = this.byId.get(id);
    if (!row) return null;
    const read = (n) => detail(n, this.perChunk, (value) => value);
    const { path } = row.finding, { arguments: how, command } = this.index;
    const page = {
      dtypes: this.index.dtypes, signs: this.index.signs, program: (n) => read(this.index.programs + n),
      others: this.rows.filter((other) => other.case === row.case), hashFor: (other) => this.hashFor(other),
      command: (side) => `parity run ${quoted(`${row.case}[${path}]`)}${how[side] && ` ${how[side]}`}`,
      compare: command && `${command} --case ${quoted(row.case)} --path ${quoted(path)} -v`,
    };
    return row.at === null ? thinView(row, page) : changeView(row, await read(row.at), page);
  }
}

/* On paper every finding is open. */
function printing(report) {
  let folded = [];
  addEventListener('beforeprint', () => {
    folded = report.findings.flatMap(({ fold, every }) => [fold, every]).filter((one) => !one.open);
    for (const one of report.findings) report.unfold(one);
  });
  addEventListener('afterprint', () => folded.forEach((one) => { one.open = false; }));
}

start((index, perChunk) => {
  const report = new DiffReport(index, perChunk);
  printing(report);
  return report;
}).catch(failed);
