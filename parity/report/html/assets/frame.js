/* What a page of rows is held together by: a filter box, one thing that is opened, keys. What the
   reader chose is in the address: q, sort, and the id of what is opened. */

function stateOf(hash, names) {
  const found = new URLSearchParams(hash.replace(/^#/, ''));
  return Object.fromEntries(names.map((name) => [name, found.get(name) || '']));
}

function hashOf(state) {
  const kept = Object.entries(state).filter(([, value]) => value);
  return kept.length ? `#${new URLSearchParams(kept)}` : '#';
}

/* opens: what is opened, and its name in the address; view: the element that shows it; title: the
   id of its heading; keys: of the filter; example: a query; help: [[key, what it does]].

   A page has beside these:
     textOf(row)        what free text is looked for in
     filtered(passes)   shows the rows that pass, sets `shown` to the ids of what can be opened
                        in order, and says how many they are
     sortBy(key, sign)  sorts its rows, and says whether it knows the key
     parts(id)          the nodes of what is opened (a promise), null if there is no such id
     move(by)           moves the focus by so many rows */
class Frame {
  constructor({ opens, view, title, keys, example, help }) {
    Object.assign(this, { opens, view, title, keys, example, shortcuts: help });
    this.names = ['q', 'sort', opens];
    this.state = stateOf('', this.names);
    this.shown = null;
    this.texts = new Map();
    this.overview = document.getElementById('overview');
    document.getElementById('filter')?.append(this.filterBox());
  }

  filterBox() {
    this.input = element('input', { id: 'q', type: 'search', autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'said', placeholder: this.example });
    this.said = element('p', { id: 'said', role: 'status' });
    let timer = 0;
    this.input.addEventListener('input', () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.ask(this.input.value), 120);
    });
    return element('div', { class: 'filter', role: 'search' },
      element('div', { class: 'line' }, element('label', { for: 'q' }, 'Filter'), this.input,
        element('button', { type: 'button', onclick: () => this.clear() }, 'clear'),
        copyButtonOf(() => location.href, 'copy link'),
        element('button', { type: 'button', onclick: () => this.help() }, 'help')),
      this.said);
  }

  /* Filters by a query. */
  ask(query) {
    this.state.q = query;
    if (this.input.value !== query) this.input.value = query;
    this.filter();
    this.replace();
  }

  clear() {
    Object.assign(this.state, { q: '', sort: '' });
    this.replace();
    this.restore();
  }

  filter() {
    let passes = () => true, problem = '';
    try {
      passes = parseFilter(this.state.q, this.keys, (row) => this.searched(row));
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      problem = error.message;
    }
    const said = this.filtered(passes);
    this.input?.setAttribute('aria-invalid', Boolean(problem));
    this.said?.replaceChildren(problem ? element('strong', { class: 'problem' }, visible(problem), '; nothing is filtered') : said);
  }

  searched(row) {
    if (!this.texts.has(row)) this.texts.set(row, this.textOf(row).toLowerCase());
    return this.texts.get(row);
  }

  /* Takes over how a table is sorted. */
  sorting({ key, sign }) {
    this.state.sort = key ? `${sign < 0 ? '-' : ''}${key}` : '';
    this.replace();
  }

  replace() {
    history.replaceState(null, '', hashOf(this.state));
  }

  hashFor(id) {
    return hashOf({ ...this.state, [this.opens]: id });
  }

  open(id) {
    location.hash = this.hashFor(id);
  }

  close() {
    this.open('');
  }

  /* Takes over what the address says. */
  restore() {
    const before = this.state;
    this.state = stateOf(location.hash, this.names);
    if (this.input) this.input.value = this.state.q;
    if (!this.shown || this.state.sort !== before.sort) {
      const key = this.state.sort.replace(/^-/, ''), sign = this.state.sort.startsWith('-') ? -1 : 1;
      if (!this.sortBy(key || null, sign)) this.sortBy(null, 1);
    }
    if (!this.shown || this.state.q !== before.q) this.filter();
    this.show(before[this.opens]);
  }

  async show(before) {
    const wanted = this.state[this.opens];
    if (!wanted) {
      this.view.hidden = true;
      this.view.replaceChildren();
      this.overview.hidden = false;
      if (before) this.back();
      return;
    }
    if (!this.overview.hidden) this.left = { scroll: scrollY, focus: document.activeElement };
    const parts = await this.parts(wanted);
    if (this.state[this.opens] !== wanted) return; // another one was opened meanwhile
    const missing = () => [element('h2', { id: this.title, tabindex: -1 }, `No such ${this.opens} in this report`), element('p', {}, visible(wanted))];
    this.view.replaceChildren(this.navigation(wanted), ...(parts || missing()).flat(Infinity).filter(Boolean));
    this.overview.hidden = true;
    this.view.hidden = false;
    document.getElementById(this.title).focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  /* To where the reader was before something was opened. */
  back() {
    if (!this.left) return;
    this.left.focus?.focus?.({ preventScroll: true });
    scrollTo(0, this.left.scroll);
  }

  navigation(id) {
    const at = this.shown.indexOf(id), all = this.shown.length;
    const step = (by, label, name) => element('button', { type: 'button', disabled: this.shown[at + by] === undefined || (at < 0 && by < 0), onclick: () => this.step(by), title: name }, label);
    return element('nav', { class: 'case', 'aria-label': `Every ${this.opens}` },
      element('button', { type: 'button', onclick: () => this.close() }, '← overview'), step(-1, '↑ previous', 'key k'), step(1, '↓ next', 'key j'),
      element('span', { class: 'dim' }, at < 0 ? 'not among those that pass the filter' : `${this.opens} ${at + 1} of ${all}, the worst first`), copyButtonOf(() => location.href, 'copy link'));
  }

  step(by) {
    const next = this.shown[this.shown.indexOf(this.state[this.opens]) + by];
    if (next !== undefined) this.open(next);
  }

  pressed(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || this.dialog?.open) return undefined;
    const typing = event.target.matches?.('input, textarea, select');
    const opened = this.state[this.opens];
    const keys = {
      '/': () => this.toFilter(),
      '?': () => this.help(),
      j: () => (opened ? this.step(1) : this.move(1)),
      k: () => (opened ? this.step(-1) : this.move(-1)),
    };
    if (event.key === 'Escape') return this.escape(event);
    if (typing && event.target.type !== 'radio') return undefined;
    if (event.target.closest?.('table.rows tbody')) Object.assign(keys, { ArrowDown: keys.j, ArrowUp: keys.k });
    if (!keys[event.key]) return undefined;
    event.preventDefault();
    return keys[event.key]();
  }

  toFilter() {
    if (!this.state[this.opens]) return this.input?.focus();
    this.left = { scroll: 0, focus: this.input };
    return this.close();
  }

  escape(event) {
    if (event.target === this.input) {
      if (this.input.value) this.ask('');
      this.input.blur();
    } else if (this.state[this.opens]) this.close();
  }

  help() {
    const allowedValues = Object.entries(this.keys).map(([name, of]) => element('li', {}, element('code', {}, `${name}:`), ' ', visible(of.values ? of.values.slice(0, 12).join(', ') + (of.values.length > 12 ? ', …' : '') : of.kind === 'number' ? 'a number with >, >=, <, <=; nan, inf, none' : 'a text, with * and ?')));
    this.dialog = element('dialog', { 'aria-labelledby': 'help-title' }, element('h2', { id: 'help-title' }, 'Keys and filter'),
      element('dl', { class: 'keys' }, this.shortcuts.map(([keys, what]) => element('div', {}, element('dt', {}, element('kbd', {}, keys)), element('dd', {}, what)))),
      element('p', {}, 'Tokens must all hold; ', element('code', {}, 'a,b'), ' means either, ', element('code', {}, '-'), ' before a token its opposite; quotes hold spaces together, other words are looked for in ids and reasons.'),
      element('ul', {}, allowedValues), element('form', { method: 'dialog' }, element('button', {}, 'close')));
    this.dialog.addEventListener('close', () => this.dialog.remove());
    document.body.append(this.dialog);
    this.dialog.showModal();
  }
}

/* A copy button whose text is asked for when it is pressed. */
function copyButtonOf(text, label) {
  const button = copyButton('', label);
  const fresh = button.cloneNode(true);
  fresh.addEventListener('click', () => {
    const now = copyButton(text(), label);
    fresh.replaceWith(now);
    now.click();
    now.focus();
    setTimeout(() => now.replaceWith(fresh), 1600);
  });
  return fresh;
}

/* Starts a page. make: (index, perChunk) => Frame */
async function start(make) {
  document.documentElement.classList.add('js');
  for (const anchor of document.querySelectorAll('a[href^="#"]')) {
    anchor.addEventListener('click', (event) => { event.preventDefault(); const to = document.querySelector(anchor.getAttribute('href')); to.scrollIntoView(); to.focus(); });
  }
  for (const code of document.querySelectorAll('[data-copy]')) code.after(' ', copyButton(code.dataset.copy));
  if (!('DecompressionStream' in window)) throw new Error('this browser lacks DecompressionStream; without JavaScript the page shows its static part');
  const { values: [index] } = await unpack('index');
  const frame = make(index, Number(document.body.dataset.perChunk));
  addEventListener('hashchange', () => frame.restore());
  document.addEventListener('keydown', (event) => frame.pressed(event));
  frame.restore();
  document.documentElement.classList.add('ready');
}

function failed(error) {
  document.documentElement.classList.add('ready');
  document.getElementById('main').prepend(element('p', { class: 'problem', role: 'alert' }, `The interactive part of this report failed: ${error.message}`));
  throw error;
}
