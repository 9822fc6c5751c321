/* The filter box's language: tokens key:value, any of them negated by -, and free text.

   keys: by name {kind: 'name' | 'glob' | 'number' | 'text', values?: [allowed], of: row => value
   or values, about: what it is, alias?: {short: long}}. A value may list several, a,b: any of them. */

class FilterError extends Error {}

function nearest(word, among) {
  let best = null, least = Math.max(2, word.length / 2);
  for (const other of among) {
    const far = distance(word.toLowerCase(), other.toLowerCase());
    if (far < least) [best, least] = [other, far];
  }
  return best;
}

/* Levenshtein's distance. */
function distance(a, b) {
  let before = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i += 1) {
    const now = [i];
    for (let j = 1; j <= b.length; j += 1) {
      now[j] = Math.min(before[j] + 1, now[j - 1] + 1, before[j - 1] + (a[i - 1] !== b[j - 1]));
    }
    before = now;
  }
  return before[b.length];
}

function misspelt(what, got, allowed) {
  const close = nearest(got, allowed);
  const hint = close ? `; did you mean ${close}?` : '';
  return new FilterError(`no such ${what} (got ${got || 'nothing'}; allowed ${allowed.join(', ')})${hint}`);
}

/* Tokens of a query; quotes hold spaces together: case:"a b". */
function tokens(query) {
  const found = query.match(/-?[\w.]+:"[^"]*"|-?"[^"]*"|\S+/g) || [];
  return found.map((text) => {
    const negated = text.length > 1 && text.startsWith('-');
    const body = negated ? text.slice(1) : text;
    const [, key, value] = /^([A-Za-z_][\w.]*):(.*)$/s.exec(body) || [];
    const plain = (word) => word.replace(/^"(.*)"$/s, '$1');
    return key === undefined || value.startsWith(':') || value.startsWith('/')
      ? { negated, text: plain(body) }
      : { negated, key: key.toLowerCase(), value: plain(value) };
  });
}

/* A function row => whether it passes, or a FilterError that says what is allowed. */
function parseFilter(query, keys, textOf) {
  const tests = tokens(query).map((token) => {
    const test = token.key === undefined ? freeText(token.text, textOf) : keyed(token, keys);
    return token.negated ? (row) => !test(row) : test;
  });
  return (row) => tests.every((test) => test(row));
}

function freeText(text, textOf) {
  const wanted = text.toLowerCase();
  return (row) => textOf(row).includes(wanted);
}

function keyed({ key, value }, keys) {
  const known = keys[key];
  if (!known) throw misspelt('key', key, Object.keys(keys));
  if (!value) throw new FilterError(`${key}: needs a value (${allowed(known)})`);
  const tests = value.split(',').map((one) => single(key, one, known));
  return (row) => tests.some((test) => test(row));
}

function allowed(known) {
  return known.kind === 'number'
    ? 'allowed a number with >, >=, <, <= or =, nan, inf, none'
    : known.values ? `allowed ${known.values.join(', ')}` : 'allowed any text with * and ?';
}

function single(key, value, known) {
  if (known.kind === 'number') return compared(key, value, known);
  const word = known.alias?.[value.toLowerCase()] ?? value;
  const test = pattern(word);
  if (known.values && !known.values.some((one) => test.test(one))) throw misspelt(key, value, known.values);
  return (row) => [known.of(row)].flat().some((one) => test.test(one));
}

/* A glob of * and ?, the whole text, upper and lower case alike. */
function pattern(glob) {
  const escaped = glob.replace(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*').replaceAll('?', '.');
  return new RegExp(`^${escaped}$`, 'is');
}

function compared(key, value, known) {
  const [, sign, text] = /^(>=|<=|>|<|=)?(.*)$/s.exec(value);
  const word = text.toLowerCase();
  if (word === 'none' && (!sign || sign === '=')) return (row) => known.of(row) === null;
  if (word === 'nan' && (!sign || sign === '=')) return (row) => Number.isNaN(known.of(row));
  const limit = { inf: Infinity, '-inf': -Infinity }[word] ?? (text.trim() === '' ? NaN : Number(text));
  if (Number.isNaN(limit)) throw new FilterError(`${key}: not a number (got ${value}; ${allowed(known)})`);
  const tests = {
    '>': (x) => x > limit || Number.isNaN(x), // NaN is worse than any number, and never hidden
    '>=': (x) => x >= limit || Number.isNaN(x),
    '<': (x) => x < limit,
    '<=': (x) => x <= limit,
    '=': (x) => x === limit,
  };
  const test = tests[sign || '='];
  return (row) => {
    const x = known.of(row);
    return x !== null && test(x);
  };
}
