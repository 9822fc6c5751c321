/* All that is known of one change, built when it is opened. */

const SIDES = ['A', 'B'];
const COUNTS = { differing: 0, pattern: 0, nonfinite_want: 0, excluded: 0, nan_got: 0, posinf_got: 0, neginf_got: 0, subnormal_got: 0 };
const OF_F64 = ['max_abs', 'max_rel', 'max_ulp', 'mean_ulp', 'p99_ulp', 'bias_ulp', 'rms_rel', 'sqnr_db', ...Object.keys(COUNTS)];
const OF_APART = ['differing', 'max_abs', 'max_rel', 'max_ulp', 'mean_ulp', 'p99_ulp', 'bias_ulp', 'rms_rel', 'pattern'];

/* row: of the index; one: its detail; page: {dtypes, signs, program: n => promise, others: rows of
   the case, hashFor: id => address, command: side => text, compare: text} */
async function changeView(row, one, page) {
  const program = one.program === null ? null : await page.program(one.program);
  return [
    changeHead(row, page, one.form),
    saidOf(row, one),
    section('A, B, and what changed', sidesTable(row, one, page)),
    one.apart ? section('How far B is from A', apartTable(one.apart)) : null,
    one.worst.length ? section(`A beside B: ${one.worst.length < one.apart.differing ? `the ${one.worst.length} worst of ` : ''}${plural(one.apart.differing, 'element')} that ${one.apart.differing === 1 ? 'differs' : 'differ'}`, alignedTable(one.worst, row, page)) : null,
    figures(one),
    program ? section([program.name, element('span', { class: 'dim' }, program.missing ? '' : ' - A, + B')], programView(program, page)) : null,
    one.evidence.length ? section('Evidence', hashTable(one.evidence)) : null,
    commands(page),
  ];
}

/* What the index alone says of a row whose finding has too many of them. */
function thinView(row, page) {
  const rows = [['grade', gradeOf(row, 'a', page), gradeOf(row, 'b', page), ''],
    ...[['max ulp vs f64', 'ulp_f64'], ['rms rel vs f64', 'rms_f64'], ['share of bound', 'share']].map(([name, key]) => pair(name, row[`${key}_a`], row[`${key}_b`]))];
  return [
    changeHead(row, page, row.dtype),
    section('A, B, and what changed', threeColumns(rows.filter(Boolean)),
      row.ulp === null ? null : element('p', {}, `A to B: ${row.differing} of ${row.count} elements differ, by at most ${metric(row.abs)} (${metric(row.ulp)} ulp)`),
      element('p', { class: 'dim' }, 'This comparison is large: histograms, elements and programs of the worst rows of each finding alone are in this file; the commands below give them for this one.')),
    commands(page),
  ];
}

function changeHead(row, page, form) {
  const { finding } = row;
  return [
    element('h2', { id: 'change-title', tabindex: -1 }, visible(row.id), ' ', element('span', { class: 'dim' }, form)),
    element('p', { class: 'about' }, element('span', { class: `tag ${finding.tag}` }, finding.tag), ` ${finding.direction}: `, visible(finding.op), ' on ', visible(finding.path), ': ', element('b', {}, finding.cause), row.finding.why ? [' (', visible(finding.why), ')'] : null),
    page.others.length > 1 ? element('details', { class: 'fold' }, element('summary', {}, `${page.others.length} rows of this case changed`),
      element('ul', { class: 'ids' }, page.others.map((other) => element('li', {}, other === row ? [visible(other.id), ' (this one)'] : element('a', { href: page.hashFor(other.id) }, visible(other.id)), `: ${other.finding.direction}`)))) : null,
  ];
}

function saidOf(row, one) {
  const expected = one.sides.flatMap((side, at) => (side && side.because ? element('li', { class: 'expected' }, `expected in ${SIDES[at]}, because `, visible(side.because), side.link ? [' (', link(side.link), ')'] : null) : []));
  const repeated = one.sides.flatMap((side, at) => (side && side.nondeterministic ? element('li', {}, `${SIDES[at]}: a repeated run gave other bits`) : []));
  const lines = [...one.remarks.map((line) => element('li', {}, visible(line))), ...repeated, ...expected];
  return lines.length ? section('In words', element('ul', { class: 'words' }, lines)) : null;
}

/* A line of a table A | B | change for two numbers, null where neither side has it. */
function pair(name, a, b, { title, how = factor } = {}) {
  if ((a ?? null) === null && (b ?? null) === null) return null;
  return [title ? element('span', { title }, name) : name, titled(a), titled(b), how(a, b)];
}

const CHANGES = {
  bias_ulp: () => '',
  sqnr_db: (a, b) => (Number.isFinite(a) && Number.isFinite(b) && a !== b ? `${b > a ? '+' : ''}${general(b - a, 3)} dB` : ''),
};

/* By which factor a number changed, as numbers.py has it. */
function factor(a, b) {
  const [old, now] = [a, b].map((value) => ((value ?? null) === null ? NaN : Number(value)));
  if (!old || !now || !Number.isFinite(old) || !Number.isFinite(now)) return '';
  const less = Math.abs(now) < Math.abs(old), times = Number((less ? old / now : now / old).toPrecision(3));
  if (times === 1) return '';
  const text = times >= 100 && times < 1e7 ? times.toLocaleString('en-US', { maximumFractionDigits: 0 }) : general(times, 3);
  return `${text} times${less ? ' less' : ''}`;
}

function threeColumns(rows, second = null) {
  const head = [element('td'), element('th', { scope: 'col', class: 'right' }, 'A'), element('th', { scope: 'col', class: 'right' }, 'B'), element('th', { scope: 'col' }, 'change')];
  const width = rows.some((cells) => cells[3]) ? 4 : 3;
  return element('div', { class: 'scroll', role: 'region', 'aria-label': 'A, B, and what changed', tabindex: 0 }, element('table', { class: 'sides' },
    element('thead', {}, element('tr', {}, head.slice(0, width))),
    element('tbody', {}, rows.map((cells, at) => element('tr', { class: second === at ? 'second' : null },
      cells.slice(0, width).map((cell, place) => element(place ? 'td' : 'th', { scope: place ? null : 'row', class: place === 1 || place === 2 ? 'right' : null }, cell)))))));
}

function gradeOf(row, side, page) {
  const [sign, letter] = page.signs[row[`kind_${side}`]] || [];
  return [sign ? element('span', { class: 'cells' }, element('i', { class: `${letter}u`, 'aria-hidden': 'true' }, sign)) : null, ' ', visible(row[`grade_${side}`])];
}

function sidesTable(row, one, page) {
  const [a, b] = one.sides;
  const yes = (side, name) => (side ? YES[side[name]] || '' : '');
  const words = (name, label) => [label, yes(a, name), yes(b, name), yes(a, name) !== yes(b, name) && yes(a, name) && yes(b, name) ? 'changed' : ''];
  const rows = [
    ['grade', gradeOf(row, 'a', page), gradeOf(row, 'b', page), row.grade_a === row.grade_b ? '' : 'changed'],
    ['status', a && chip(a.status), b && chip(b.status), ''],
    words('faithful', 'faithful, as declared'), words('accurate', 'accurate, within the bound'),
    pair('share of the accuracy bound', a?.share, b?.share),
    row.finding.path === one.baseline ? null : pair(`elements that differ from ${one.baseline}`, a?.differing, b?.differing),
  ].filter((line) => line && [line[1], line[2]].some((cell) => cell && cell !== ''));
  const measured = OF_F64.map((name) => {
    const [old, now] = [a, b].map((side) => (side?.f64 ? side.f64[name] ?? (name in COUNTS ? 0 : null) : null));
    const silent = name in COUNTS && !old && !now;
    return silent ? null : pair(`${METRICS[name][0].replace(', got', '')}, against f64`, old, now, { title: METRICS[name][1], how: CHANGES[name] });
  }).filter(Boolean);
  return threeColumns([...rows, ...measured], rows.length);
}

function apartTable(metrics) {
  const known = OF_APART.filter((name) => name in metrics);
  return element('dl', { class: 'facts' }, known.map((name) => element('div', {}, element('dt', { title: METRICS[name][1].replace('got', 'B').replace('want', 'A') }, METRICS[name][0]),
    element('dd', { title: exact(metrics[name]) }, metric(metrics[name]), name === 'differing' ? ` of ${metrics.count}` : ''))));
}

function alignedTable(worst, row, page) {
  const dtype = page.dtypes[row.dtype];
  const head = [['index', 1], ['ulp, A to B', 1], ['A', 1], ['B', 1], ['f64', 1], ['bits of A', 0], ['bits of B', 0]];
  return element('div', { class: 'scroll', role: 'region', 'aria-label': 'Elements, A beside B', tabindex: 0 }, element('table', { class: 'worst' },
    element('thead', {}, element('tr', {}, head.map(([name, right]) => element('th', { scope: 'col', class: right ? 'right' : null }, name)))),
    element('tbody', {}, worst.map(([index, ulp, a, b, ideal, bitsA, bitsB]) => element('tr', {},
      [`[${index.join(',')}]`, titled(ulp), a, b, ideal].map((cell) => element('td', { class: 'right' }, cell)),
      element('td', {}, bitsOf(bitsA, bitsB, dtype)), element('td', {}, bitsOf(bitsB, bitsA, dtype)))))));
}

function figures(one) {
  const having = (name) => one.sides.map((side, at) => ({ name: SIDES[at], of: side?.f64?.[name] })).filter(({ of }) => of && of.length);
  const bins = having('histogram').map(({ name, of }) => ({ name, bins: of }));
  const bands = having('profile').map(({ name, of }) => ({ name, bands: of }));
  const moved = one.apart?.histogram;
  const made = [
    bins.length ? figure('Elements by ulp error against f64', key(bins.map(({ name }) => name), { markers: false }), histogramChart(bins, 'f64'),
      ['side', 'bin', 'elements'], bins.flatMap(({ name, bins: of }) => of.flatMap((n, at) => (n ? [[name, binName(at, of.length), n]] : [])))) : null,
    bands.length ? figure('Ulp error by magnitude: largest with markers, mean thin', key(bands.map(({ name }) => name), { markers: true }), profileChart(bands, 'f64'),
      ['side', 'from', 'elements', 'max ulp', 'mean ulp'], bands.flatMap(({ name, bands: of }) => of.map((band) => [name, ...band]))) : null,
    moved ? figure('Elements by how far B is from A', key(['B against A'], { markers: false }), histogramChart([{ name: 'B', bins: moved }], 'A'),
      ['side', 'bin', 'elements'], moved.flatMap((n, at) => (n ? [['B', binName(at, moved.length), n]] : []))) : null,
  ].filter(Boolean);
  return made.length ? section('Where the error is', element('div', { class: 'figures' }, made)) : null;
}

function figure(title, names, chart, head, rows) {
  return element('figure', {}, element('figcaption', {}, title), names, chart, numbersOf(head, rows));
}

/* A unified diff; additions and removals are marked by + and - beside their colour. */
function programView(program, page) {
  if (program.missing) return element('p', {}, visible(program.missing));
  const kinds = { '-': 'removed', '+': 'added', '@': 'hunk' };
  return [
    element('pre', { class: 'program', tabindex: 0, role: 'region', 'aria-label': `${program.name}, A to B` }, program.lines.map((line) => element('span', { class: kinds[line[0]] || null }, visible(line), '\n'))),
    program.more ? element('p', { class: 'dim' }, `${plural(program.more, 'line')} more${page.compare ? '; the last command below shows all' : ''}`) : null,
  ];
}

function hashTable(evidence) {
  const hash = (text) => (text ? element('span', { class: 'hash', title: text }, text) : element('span', { class: 'dim' }, 'none'));
  return element('div', { class: 'scroll', role: 'region', 'aria-label': 'Evidence', tabindex: 0 }, element('table', { class: 'evidence' },
    element('thead', {}, element('tr', {}, ['SHA-256 of', '', 'A', 'B'].map((name) => element('th', { scope: 'col' }, name)))),
    element('tbody', {}, evidence.map(([name, a, b]) => element('tr', {}, element('th', { scope: 'row' }, name),
      element('td', {}, !a || !b ? 'on one side' : a === b ? 'the same' : element('b', {}, 'differs')), element('td', {}, hash(a)), element('td', {}, hash(b)))))));
}

function commands(page) {
  const lines = [...SIDES.map((name, at) => [`run ${name} again`, page.command(at)]), ...(page.compare ? [['compare again', page.compare]] : [])];
  return section('Commands', element('dl', { class: 'facts' }, lines.map(([name, text]) => element('div', { class: 'wide' }, element('dt', {}, name), element('dd', {}, element('code', {}, visible(text)), ' ', copyButton(text))))));
}
