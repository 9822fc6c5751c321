/* A table of many rows: sorted by any column, drawn as far as it is looked at. */

const DRAWN_AT_ONCE = 200;

/* columns: {key, head, group?, about?, right?, value: row => what sorts, cell: row => nodes,
   title?: row => text, first?: -1 where the largest is the most telling}.
   rowAttributes: row => attributes of its tr; onOpen: row => …; onSort: () => … */
class Table {
  constructor({ columns, caption, rowAttributes, onOpen, onSort }) {
    Object.assign(this, { columns, rowAttributes, onOpen, onSort });
    this.sort = { key: null, sign: 1 };
    this.rows = [];
    this.drawn = 0;
    this.at = 0;
    this.headings = element('tr', { role: 'row' }, columns.map((column) => this.heading(column)));
    this.body = element('tbody', { role: 'rowgroup' });
    this.more = element('button', { type: 'button', class: 'more', onclick: () => this.draw(DRAWN_AT_ONCE) });
    this.all = element('button', { type: 'button', class: 'more', onclick: () => this.draw(Infinity) },
      'show all');
    this.rest = element('p', { class: 'rest' }, this.more, ' ', this.all);
    const table = element('table', { class: 'rows', role: 'table' },
      element('caption', { class: 'hidden' }, caption),
      element('thead', { role: 'rowgroup' }, this.headings), this.body);
    this.element = element('div', {}, scrolled(caption, table), this.rest);
    this.body.addEventListener('click', (event) => {
      const row = event.target.closest('tr');
      if (row && !event.target.closest('a, button') && !String(getSelection())) this.open(row);
    });
    this.body.addEventListener('focusin', (event) => {
      const row = event.target.closest('tr');
      if (row) this.at = Array.prototype.indexOf.call(this.body.children, row);
    });
    this.body.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && event.target.matches('tr')) this.open(event.target);
    });
    new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting) && this.drawn) this.draw(DRAWN_AT_ONCE);
    }, { rootMargin: '600px' }).observe(this.rest);
  }

  heading(column) {
    const button = element('button', { type: 'button', title: column.about, onclick: () => this.toggle(
        column) },
      column.head, element('span', { class: 'arrow', 'aria-hidden': 'true' }));
    return element('th', { scope: 'col', role: 'columnheader', 'data-key': column.key, class: column.right ?
        'right' : null, 'aria-sort': 'none' }, button);
  }

  toggle(column) {
    const again = this.sort.key === column.key;
    const first = column.first || 1;
    this.sortBy(column.key, again ? -this.sort.sign : first);
    this.onSort();
  }

  /* null for the order in which rows are given. */
  sortBy(key, sign) {
    this.sort = { key, sign };
    for (const th of this.headings.children) {
      const of = th.dataset.key === key;
      th.setAttribute('aria-sort', !of ? 'none' : sign > 0 ? 'ascending' : 'descending');
      th.querySelector('.arrow').textContent = !of ? '' : sign > 0 ? ' ▲' : ' ▼';
    }
    this.show(this.given || []);
  }

  show(rows) {
    this.given = rows;
    const column = this.columns.find((one) => one.key === this.sort.key);
    this.rows = rows.slice();
    if (column) {
      const values = new Map(rows.map((row) => [row, column.value(row)]));
      this.rows.sort((a, b) => order(values.get(a), values.get(b), this.sort.sign));
    }
    this.body.replaceChildren();
    this.drawn = 0;
    this.at = 0;
    this.draw(DRAWN_AT_ONCE);
  }

  draw(count) {
    const some = this.rows.slice(this.drawn, this.drawn + count);
    this.body.append(...some.map((row) => this.row(row)));
    if (!this.drawn) this.body.firstChild?.setAttribute('tabindex', '0');
    this.drawn += some.length;
    const left = this.rows.length - this.drawn;
    this.rest.hidden = left === 0;
    this.more.textContent = `show ${Math.min(DRAWN_AT_ONCE, left)} more of ${left}`;
  }

  row(row) {
    const made = element('tr', { role: 'row', tabindex: -1, ...this.rowAttributes(row) }, this.columns.map((
      column) => {
      const title = column.title?.(row);
      return element('td', { role: 'cell', class: column.right ? 'right' : null, title: title ? spelled(
          title) : null, 'data-head': column.label || column.head }, element('div', {}, column.cell(
        row)));
    }));
    made.row = row;
    return made;
  }

  open(tr) {
    this.onOpen(tr.row);
  }

  /* Moves the focus by so many rows. */
  move(by) {
    const rows = this.body.children;
    if (!rows.length) return;
    const focused = this.body.contains(document.activeElement);
    const at = focused ? this.at + by : this.at;
    if (at >= this.drawn) this.draw(DRAWN_AT_ONCE);
    this.focus(Math.max(0, Math.min(at, rows.length - 1)));
  }

  focus(at) {
    const rows = this.body.children;
    for (const row of this.body.querySelectorAll('[tabindex="0"]')) row.setAttribute('tabindex', '-1');
    rows[at].setAttribute('tabindex', '0');
    rows[at].focus();
    this.at = at;
  }
}
