/* Cases down, paths across: a grid to walk through with the arrow keys. Cases are drawn in blocks
   when they come near the window; until then a block keeps their place. */

const BLOCK = 50;
const STATUSES = { ok: '', expected: 'E', stale: 'S', finding: 'F' };

class Heatmap {
  /* files: [{name, cases: [{id, label, number, cells: Map of column to rows}]}], columns:
     [[environment, path]], signs: by kind [sign, letter, meaning], onOpen: number of the case => … */
  constructor({ files, columns, signs, kinds, onOpen }) {
    Object.assign(this, { files, columns, signs, kinds, onOpen });
    this.several = new Set(columns.map(([environment]) => environment)).size > 1;
    this.place = { file: 0, row: -1, column: 0 };
    this.element = element('div', {
      class: 'cells grid',
      role: 'grid',
      'aria-label': 'Cases and paths',
      'aria-colcount': columns.length + 1,
    }, this.head());
    this.element.addEventListener('click', (event) => this.clicked(event));
    this.element.addEventListener('keydown', (event) => this.pressed(event));
    this.element.addEventListener('focusin', (event) => this.focused(event));
    this.seen = new IntersectionObserver((entries) => {
      for (const entry of entries)
        if (entry.isIntersecting) this.drawBlock(entry.target);
    }, { rootMargin: '800px' });
    const many = files.reduce((sum, file) => sum + file.cases.length, 0) > 40;
    for (const [at, file] of files.entries()) {
      file.open = !many || file.cases.some((one) => [...one.cells.values()].flat().some((row) => row
        .status !== 'ok'));
      this.element.append(this.group(file, at));
    }
  }

  head() {
    const rows = [];
    if (this.several) {
      const spans = new Map();
      for (const [environment] of this.columns) spans.set(environment, (spans.get(environment) || 0) + 1);
      rows.push(element('div', { role: 'row', class: 'environments' }, element('span', { role: 'columnheader',
          class: 'id' }),
        [...spans].map(([name, count]) => {
          const made = element('span', { role: 'columnheader', 'aria-colspan': count, title: spelled(
              name) }, visible(name));
          made.style.setProperty('--span', count);
          return made;
        })));
    }
    rows.push(element('div', { role: 'row', class: 'paths' }, element('span', { role: 'columnheader',
        class: 'id' }, 'case'),
      this.columns.map(([environment, path], at) => element('span', {
        role: 'columnheader',
        class: this.starts(at) ? 'starts' : null,
        title: spelled(this.several ? `${environment} ${path}` : path),
      }, element('span', {}, visible(path))))));
    return element('div', { role: 'rowgroup', class: 'head' }, rows);
  }

  /* Whether a column is the first of its environment. */
  starts(at) {
    return at > 0 && this.columns[at - 1][0] !== this.columns[at][0];
  }

  group(file, at) {
    file.shown = file.cases;
    file.button = element('button', { type: 'button', class: 'fold', 'aria-expanded': file.open,
        tabindex: at ? -1 : 0 },
      element('span', { class: 'arrow', 'aria-hidden': 'true' }), element('b', {}, visible(file.name)), ' ',
      element('span', { class: 'dim' }));
    file.body = element('div', { role: 'presentation' });
    file.element = element('div', { role: 'rowgroup', class: 'file' },
      element('div', { role: 'row', class: 'title' }, element(
    'div', { role: 'gridcell', 'aria-colspan': this.columns.length + 1 }, file.button)), file.body);
    file.element.at = at;
    this.lay(file);
    return file.element;
  }

  /* Blocks for the cases that are shown, each as high as its cases will be. */
  lay(file) {
    const counts = new Map();
    for (const one of file.shown) {
      for (const rows of one.cells.values())
        for (const row of rows) counts.set(row.verdict, (counts.get(row.verdict) || 0) + 1);
    }
    const said = [...counts].sort((a, b) => b[1] - a[1]).map(([what, count]) => `${count} ${what}`).join(
    ', ');
    file.button.lastChild.replaceChildren(visible(`${plural(file.shown.length, 'case')}: ${said}`));
    file.button.setAttribute('aria-expanded', file.open);
    file.element.hidden = !file.shown.length;
    file.body.replaceChildren();
    if (!file.open) return;
    for (let at = 0; at < file.shown.length; at += BLOCK) {
      const block = element('div', { role: 'presentation', class: 'block' });
      Object.assign(block, { file, from: at, count: Math.min(BLOCK, file.shown.length - at) });
      block.style.setProperty('--rows', block.count);
      file.body.append(block);
      this.seen.observe(block);
    }
  }

  drawBlock(block) {
    this.seen.unobserve(block);
    if (block.firstChild) return;
    block.append(...block.file.shown.slice(block.from, block.from + block.count).map((one) => this.row(one)));
  }

  /* All at once, for print. */
  drawAll() {
    for (const block of this.element.querySelectorAll('.block')) this.drawBlock(block);
  }

  row(one) {
    return element('div', { role: 'row', 'data-case': one.number },
      element('span', { role: 'rowheader', class: 'id', tabindex: -1, title: spelled(one.id) }, visible(one
        .label)),
      this.columns.map((column, at) => this.cell(one, at)));
  }

  cell(one, at) {
    const rows = one.cells.get(at);
    const [environment, path] = this.columns[at];
    const starts = this.starts(at) ? ' starts' : '';
    if (!rows) return element('span', { role: 'gridcell', tabindex: -1,
    class: `-${starts}`, 'aria-label': `${path}: not run` });
    const rank = (row) => this.kinds.indexOf(row.kind) - (row.fails ? 0.5 : 0);
    const worst = rows.reduce((a, b) => (rank(b) < rank(a) ? b : a));
    const status = rows.map((row) => row.status).reduce((a, b) => (STATUSES[b] > STATUSES[a] ? b : a));
    const [sign, letter] = this.signs[worst.kind];
    const said = `${this.several ? `${environment} ` : ''}${path}: ${words(rows, worst, status)}`;
    return element('span', {
      role: 'gridcell',
      tabindex: -1,
      title: spelled(said),
      'aria-label': spelled(said),
      class: `${letter}${share(rows)}${STATUSES[status]}${starts}${rows.some((row) => row.passes) ? '' : ' off'}`,
    }, worst.baseline && worst.kind === 'identical' ? this.signs.baseline[0] : sign);
  }

  /* Shows the cases of which a row passes the filter; the others' cells are dimmed. */
  filter() {
    for (const file of this.files) {
      file.shown = file.cases.filter((one) => [...one.cells.values()].flat().some((row) => row.passes));
      this.lay(file);
    }
  }

  fold(file, open) {
    if (file.open === open) return;
    file.open = open;
    this.lay(file);
  }

  clicked(event) {
    const button = event.target.closest('button.fold');
    if (button) return this.fold(this.files[button.closest('.file').at], button.getAttribute(
      'aria-expanded') !== 'true');
    const row = event.target.closest('[data-case]');
    if (row && !String(getSelection())) this.onOpen(Number(row.dataset.case), this.pathOf(event.target));
    return undefined;
  }

  pathOf(cell) {
    const at = [...cell.parentElement.children].indexOf(cell) - 1;
    return this.columns[at];
  }

  focused(event) {
    const file = event.target.closest('.file');
    if (!file) return;
    const row = event.target.closest('[data-case]');
    const at = row ? this.files[file.at].shown.findIndex((one) => one.number === Number(row.dataset.case)) : -
      1;
    const column = row ? [...row.children].indexOf(event.target.closest('[role]')) : this.place.column;
    this.place = { file: file.at, row: at, column: Math.max(column, 0) };
    for (const other of this.element.querySelectorAll('[tabindex="0"]')) other.setAttribute('tabindex', '-1');
    event.target.setAttribute('tabindex', '0');
  }

  pressed(event) {
    const { file, row, column } = this.place;
    const here = this.files[file];
    const moves = {
      ArrowDown: () => this.step(1),
      ArrowUp: () => this.step(-1),
      PageDown: () => this.step(10),
      PageUp: () => this.step(-10),
      ArrowLeft: () => (row < 0 ? this.fold(here, false) : this.focus(file, row, Math.max(0, column - 1))),
      ArrowRight: () => (row < 0 ? this.fold(here, true) : this.focus(file, row, Math.min(this.columns
        .length, column + 1))),
      Home: () => this.focus(file, row, 0),
      End: () => this.focus(file, row, this.columns.length),
      Enter: () => (row < 0 ? this.fold(here, !here.open) : this.onOpen(here.shown[row].number, this
        .columns[column - 1])),
    };
    if (!moves[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    moves[event.key]();
  }

  /* By so many lines, files and the cases of open ones; to the end where there are fewer. */
  step(by) {
    let { file, row } = this.place;
    const next = (sign) => {
      if (sign > 0 && this.files[file].open && row + 1 < this.files[file].shown.length) return [file, row +
        1
      ];
      if (sign < 0 && row >= 0) return [file, row - 1];
      for (let at = file + sign; this.files[at]; at += sign) {
        const { shown, open } = this.files[at];
        if (shown.length) return [at, sign > 0 || !open ? -1 : shown.length - 1];
      }
      return null;
    };
    for (let left = Math.abs(by); left; left -= 1) {
      const to = next(Math.sign(by));
      if (!to) break;
      [file, row] = to;
    }
    this.focus(file, row, this.place.column);
  }

  focus(at, row, column) {
    const file = this.files[at];
    if (row < 0) {
      file.button.focus();
      this.place.column = column;
      return;
    }
    const block = file.body.children[Math.floor(row / BLOCK)];
    this.drawBlock(block);
    block.children[row % BLOCK].children[column].focus();
  }
}

/* The share of the bound that is used: tenths rounded up, as cells.py has it. */
function share(rows) {
  if (rows.some((row) => row.vacuous)) return 'v';
  const shares = rows.map((row) => row.bound_share).filter((one) => one !== null);
  if (!shares.length || shares.some(Number.isNaN)) return 'u';
  const largest = Math.max(...shares);
  return largest > 1 ? 'x' : Math.ceil(largest * 10).toString(16).toUpperCase();
}

function words(rows, worst, status) {
  const shares = rows.map((row) => row.bound_share).filter((one) => one !== null);
  const vacuous = Math.max(0, ...rows.map((row) => row.vacuous || 0));
  const said = [worst.baseline ? `${worst.verdict} (baseline)` : worst.verdict];
  if (status !== 'ok') said.push(status);
  if (shares.length) said.push(
    `${metric(shares.some(Number.isNaN) ? NaN : Math.max(...shares))} of the bound used`);
  else if (worst.kind !== 'unsupported' && rows.some((row) => row.outcome === 'ok')) said.push(
    'share of the bound unknown');
  if (vacuous) said.push(`bound vacuous for ${metric(100 * vacuous)} % of the elements`);
  return said.join(', ');
}
