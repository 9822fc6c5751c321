/* Puts the report of a run together. */

const SHORTCUTS = [
  ['/', 'to the filter'],
  ['j, k', 'next and previous row; in a case the next and previous case'],
  ['arrows', 'walk through the heatmap; on a file, left and right fold it'],
  ['Enter', 'open the case'],
  ['Esc', 'back: out of the filter, out of the case'],
  ['?', 'this help'],
];

class Report extends Frame {
  constructor(index, perChunk) {
    const rows = rowsOf(index);
    super({
      opens: 'case', view: document.getElementById('case'), title: 'case-title', keys: keysOf(index, rows),
      example: 'grade:divergent path:jit ulp:>4 -dtype:bf16 case:*conv*', help: SHORTCUTS,
    });
    Object.assign(this, { index, perChunk, rows, sorted: rows.slice().sort(badness) });
    this.numbers = new Map(index.cases.map(([id], nth) => [id, nth]));
    this.heatmap = new Heatmap({
      files: filesOf(index, rows), columns: index.heatmap, signs: index.signs, kinds: index.kinds,
      onOpen: (nth) => this.open(index.cases[nth][0]),
    });
    this.table = new Table({
      columns: columnsOf(index), caption: 'Rows, those that fail the run first',
      rowAttributes: (row) => ({ class: row.status }),
      onOpen: (row) => this.open(row.id), onSort: () => this.sorting(this.table.sort),
    });
    document.getElementById('heatmap').append(this.heatmap.element);
    document.getElementById('table').append(this.table.element);
    for (const item of document.querySelectorAll('li[data-case]')) this.linked(item);
    addEventListener('beforeprint', () => this.heatmap.drawAll());
  }

  /* Makes the id of a finding a link to its case. */
  linked(item) {
    const code = item.querySelector('code.id'), id = item.dataset.case;
    const open = (event) => {
      event.preventDefault();
      this.open(id);
    };
    code.replaceWith(element('a', { class: 'id', href: hashOf({ case: id }), onclick: open }, [...code.childNodes]));
  }

  textOf(row) {
    return [
      row.id, row.environment, row.path, row.output, row.verdict, row.status, row.dtype, row.detail, row.because,
      row.licences, row.model,
    ].join('\n');
  }

  filtered(passes) {
    for (const row of this.rows) row.passes = passes(row);
    const rows = this.sorted.filter((row) => row.passes), all = rows.length === this.rows.length;
    this.shown = [...new Set(rows.map((row) => row.id))];
    this.heatmap.filter();
    this.table.show(rows);
    const many = `${all ? 'all ' : ''}${plural(rows.length, 'row')}${all ? '' : ` of ${this.rows.length}`}`;
    return `${many} in ${plural(this.shown.length, 'case')}`;
  }

  sortBy(key, sign) {
    const known = key === null || this.table.columns.some((column) => column.key === key);
    if (known) this.table.sortBy(key, sign);
    return known;
  }

  move(by) {
    this.table.move(by);
  }

  async parts(id) {
    const number = this.numbers.get(id);
    if (number === undefined) return null;
    const one = await detail(number, this.perChunk, readCase);
    const named = ({ environment }) => { const how = this.index.arguments[environment || 'default']; return how ? ` ${how}` : ''; };
    return caseView(one, {
      dtypes: this.index.dtypes, several: this.index.environments.length > 1,
      command: (row) => `parity run ${quoted(`${id}[${row.path}]`)}${named(row)}`,
    });
  }
}

start((index, perChunk) => new Report(index, perChunk)).catch(failed);
