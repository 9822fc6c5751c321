/* The worst elements of an output, bit by bit. */

/* An element's bits as spans for sign, exponent and mantissa; where they differ from other's, they
   are underlined and marked for those who do not see it. */
function bitsOf(words, others, dtype) {
  return words.map((hex, part) => {
    const fields = bitFields(hex, dtype);
    const against = others?.[part]?.length === hex.length ? bitFields(others[part], dtype) : null;
    const names = dtype && dtype.precision !== null ? ['sign', 'exponent', 'mantissa'].slice(-fields
      .length) : [];
    return element('span', { class: 'bits', title: `0x${hex}` }, fields.map((field, at) =>
      element('span', { class: names[at] || 'byte', title: names[at] ? `${names[at]}, 0x${hex}` :
          null }, runs(field, against?.[at]))));
  });
}

function runs(field, other) {
  if (!other || other.length !== field.length) return field;
  const made = [];
  for (let at = 0; at < field.length;) {
    const differs = field[at] !== other[at];
    let end = at;
    while (end < field.length && (field[end] !== other[end]) === differs) end += 1;
    const part = field.slice(at, end);
    made.push(differs ? element('mark', {}, part) : part);
    at = end;
  }
  return made;
}

/* worst: [{index, ulp, got: {value, words}, want: {value, words}}] */
function worstTable(worst, { dtype, wantDtype, dtypes, target }) {
  const got = dtypes[dtype],
    want = dtypes[wantDtype] || got;
  const head = ['index', 'ulp', 'got', `want (${target})`, 'difference', 'bits of got', 'bits of want'];
  return scrolled(`Worst elements against ${target}`,
    element('table', { class: 'worst' },
      tableHead(head),
      element('tbody', {}, worst.map((one) => element('tr', {},
        element('td', { class: 'right' }, `[${one.index.join(',')}]`),
        element('td', { class: 'right', title: exact(one.ulp) }, metric(one.ulp)),
        element('td', { class: 'right', title: exact(one.got.value) }, elementText(one.got.value, got)),
        element('td', { class: 'right', title: exact(one.want.value) }, elementText(one.want.value,
        want)),
        element('td', { class: 'right', ...difference(one) }, metric(difference(one).title)),
        element('td', {}, bitsOf(one.got.words, one.want.words, got)),
        element('td', {}, bitsOf(one.want.words, one.got.words, want)))))));
}

function difference(one) {
  const [a, b] = [one.got.value, one.want.value];
  return { title: typeof a === 'number' && typeof b === 'number' ? exact(a - b) : null };
}
